//! ∇²Φ: products with it, and itself where decisions are short.

use super::TOGETHER;
use crate::error::Error;
use crate::problem::{Decided, Problem};
use crate::solver::clock::Clock;
use crate::solver::conjugate_gradient::System;
use crate::solver::newton::{Assembled, NewtonSettings};
use ndarray::{Array1, Array2, Axis, s};

/// Relative residual the systems of the second derivative are solved to.
const CURVATURE_TOL: f64 = 1e-6;
/// Products with K such a system may take.
const CURVATURE_PRODUCTS: usize = 200;

/// What systems are solved with.
pub(super) struct Tools<'a, 'b> {
    pub(super) parts: &'a mut Assembled<'b>,
    pub(super) own: NewtonSettings,
}

/// ∇²Φ at a point.
pub(super) struct Curvature<'a> {
    pub(super) problem: &'a Problem,
    pub(super) decided: &'a Decided,
    pub(super) products: usize,
}

/// ∇²Φ as a matrix over the entries i ≥ j of a symmetric matrix, those off the diagonal times √2.
pub(super) struct Formed {
    matrix: Array2<f64>,
    n: usize,
}

fn pairs(n: usize) -> Vec<(usize, usize)> {
    (0..n).flat_map(|i| (0..=i).map(move |j| (i, j))).collect()
}

/// A symmetric matrix as a vector with the same inner products.
fn pack(a: &Array2<f64>) -> Array1<f64> {
    let entry =
        |(i, j): (usize, usize)| if i == j { a[[i, j]] } else { a[[i, j]] * 2.0_f64.sqrt() };
    pairs(a.nrows()).into_iter().map(entry).collect()
}

fn unpack(v: &Array1<f64>, n: usize) -> Array2<f64> {
    let mut a = Array2::zeros((n, n));
    for ((i, j), v) in pairs(n).into_iter().zip(v) {
        let value = if i == j { *v } else { v / 2.0_f64.sqrt() };
        a[[i, j]] = value;
        a[[j, i]] = value;
    }
    a
}

impl Formed {
    pub(super) fn times(&self, v: &Array2<f64>) -> Array2<f64> {
        unpack(&self.matrix.dot(&pack(v)), self.n)
    }
}

impl Curvature<'_> {
    /// ∇²Φ[Ξ] for several Ξ; none where it was interrupted.
    pub(super) fn times(
        &mut self,
        x: &Array2<f64>,
        directions: &[Array2<f64>],
        tools: &Tools<'_, '_>,
        clock: &mut Clock<'_>,
    ) -> Result<Option<Vec<Array2<f64>>>, Error> {
        let (problem, faces) = (self.problem, &self.decided.faces);
        let (n, n_samples) = x.dim();
        let systems: Vec<usize> = (0..directions.len()).collect();
        let mut rhs = Array2::zeros((directions.len() * n, n_samples));
        for (mut part, xi) in rhs.axis_chunks_iter_mut(Axis(0), n).zip(directions) {
            part.assign(&xi.dot(x));
        }
        faces.reduce(&systems, &mut rhs);
        let ridge = problem.ridge();
        let system = System {
            operator: tools.parts.operator,
            preconditioner: &*tools.parts.preconditioner,
            faces,
            ridge,
            decision_dim: n,
        };
        let targets: Vec<f64> = system.norms(&rhs).iter().map(|b| CURVATURE_TOL * b).collect();
        let solution = system.solve(rhs, &targets, CURVATURE_PRODUCTS, clock)?;
        self.products += solution.products;
        if !solution.finished {
            return Ok(None);
        }
        let images = directions.iter().enumerate().map(|(at, xi)| {
            let q = solution.direction.slice(s![at * n..(at + 1) * n, ..]);
            // −ẋ/λ = Rq.
            let cross = q.dot(&x.t()) * (ridge / problem.total());
            xi * (2.0 * problem.regularization()) + &cross + cross.t()
        });
        Ok(Some(images.collect()))
    }

    /// ∇²Φ itself; none where it was interrupted.
    pub(super) fn form(
        &mut self,
        x: &Array2<f64>,
        tools: &Tools<'_, '_>,
        clock: &mut Clock<'_>,
    ) -> Result<Option<Formed>, Error> {
        let n = x.nrows();
        let size = n * (n + 1) / 2;
        let basis: Vec<Array2<f64>> = (0..size)
            .map(|at| {
                let mut unit = Array1::zeros(size);
                unit[at] = 1.0;
                unpack(&unit, n)
            })
            .collect();
        let mut matrix = Array2::zeros((size, size));
        for (group, part) in basis.chunks((TOGETHER / n).max(1)).enumerate() {
            let Some(images) = self.times(x, part, tools, clock)? else { return Ok(None) };
            for (at, image) in images.iter().enumerate() {
                let column = group * (TOGETHER / n).max(1) + at;
                matrix.column_mut(column).assign(&pack(image));
            }
        }
        let matrix = (&matrix + &matrix.t()) / 2.0;
        Ok(Some(Formed { matrix, n }))
    }
}
