//! Preconditioned conjugate gradients for (RᵀKR + λI) c = b in the free directions of every
//! sample's face.
//!
//! For boxes R selects the samples strictly inside, and every dimension is a system of its own with
//! its own scalars; for polyhedra all dimensions are one system, of which several with different
//! right-hand sides may stand one below the other. Systems share the products with K. The image K R
//! c over *all* samples comes along for nothing, since every product computes it: the line search
//! needs it.

use super::observer::Observer;
use crate::decision_set::Faces;
use crate::error::Error;
use crate::kernel::clearly_negative;
use crate::linalg::sums::dot;
use crate::operator::KernelOperator;
use crate::precond::Preconditioner;
use crate::problem::slice;
use ndarray::{Array2, Axis, s};

pub(crate) struct Solution {
    /// R c, over all samples.
    pub(crate) direction: Array2<f64>,
    /// K R c over all samples.
    pub(crate) image: Array2<f64>,
    pub(crate) products: usize,
    /// False where the observer stopped it.
    pub(crate) finished: bool,
    /// Whether every system came down to its target.
    pub(crate) converged: bool,
    /// Whether a direction was met along which the matrix does not curve upwards.
    pub(crate) indefinite: bool,
}

/// The matrix RᵀKR + λI.
pub(crate) struct System<'a> {
    pub(crate) operator: &'a dyn KernelOperator,
    pub(crate) preconditioner: &'a dyn Preconditioner,
    pub(crate) faces: &'a Faces,
    pub(crate) ridge: f64,
    pub(crate) decision_dim: usize,
}

impl System<'_> {
    /// Rows that belong to one system.
    fn rows_each(&self) -> usize {
        self.faces.systems(self.decision_dim).1
    }

    /// ‖b‖ of each system.
    pub(crate) fn norms(&self, b: &Array2<f64>) -> Vec<f64> {
        let each = self.rows_each();
        (0..b.nrows() / each).map(|c| inner(b, b, c, each).sqrt()).collect()
    }

    /// Solves to ‖residual‖ ≤ `targets` in each system. `rhs` is in the coordinates of the faces.
    pub(crate) fn solve(
        &self,
        rhs: Array2<f64>,
        targets: &[f64],
        max_products: usize,
        observer: &mut dyn Observer,
    ) -> Result<Solution, Error> {
        let shape = rhs.dim();
        let each = self.rows_each();
        let mut found = Array2::zeros(shape);
        let mut image = Array2::zeros(shape);
        let norms = self.norms(&rhs);
        let mut active: Vec<usize> = (0..norms.len()).filter(|&c| norms[c] > targets[c]).collect();
        let (mut products, mut finished, mut indefinite) = (0, true, false);
        if active.is_empty() {
            let converged = true;
            return Ok(Solution {
                direction: found,
                image,
                products,
                finished,
                converged,
                indefinite,
            });
        }
        if let Some((found, image)) = self.preconditioner.solve(self.ridge, &rhs) {
            let direction = self.faces.expand(norms.len(), &found).into_owned();
            let converged = true;
            return Ok(Solution { direction, image, products, finished, converged, indefinite });
        }
        let rows = |keep: &[usize]| -> Vec<usize> {
            keep.iter().flat_map(|&c| c * each..(c + 1) * each).collect()
        };
        let mut residual = rhs.select(Axis(0), &rows(&active));
        let mut z = Array2::zeros(residual.dim());
        self.preconditioner.apply(&active, residual.view(), z.view_mut())?;
        let mut p = z.clone();
        let mut rho: Vec<f64> = (0..active.len()).map(|c| inner(&residual, &z, c, each)).collect();
        'iterations: while !active.is_empty() && products < max_products {
            if observer.poll().is_break() {
                finished = false;
                break;
            }
            let mut full = Array2::zeros(p.dim());
            self.operator.apply(self.faces.expand(active.len(), &p).view(), full.view_mut())?;
            products += 1;
            let mut q = full.clone();
            self.faces.reduce(&active, &mut q);
            q.scaled_add(self.ridge, &p);
            let mut keep = Vec::new();
            for (c, &system) in active.iter().enumerate() {
                let curvature = inner(&p, &q, c, each);
                if curvature <= 0.0 || !curvature.is_finite() {
                    // Rounding has made K indefinite. In f64 what is found so far is the answer;
                    // else f64 will find a better one.
                    indefinite = true;
                    if self.operator.is_exact() {
                        self.refuse_indefinite(curvature, inner(&p, &p, c, each))?;
                        continue;
                    }
                    break 'iterations;
                }
                let a = rho[c] / curvature;
                let (here, there) = (of(c, each), of(system, each));
                let add = |out: &mut Array2<f64>,
                           to: &std::ops::Range<usize>,
                           a: f64,
                           v: &Array2<f64>| {
                    out.slice_mut(s![to.clone(), ..]).scaled_add(a, &v.slice(s![here.clone(), ..]));
                };
                add(&mut image, &there, a, &full);
                add(&mut found, &there, a, &p);
                add(&mut residual, &here, -a, &q);
                if inner(&residual, &residual, c, each).sqrt() > targets[system] {
                    keep.push(c);
                }
            }
            if keep.len() < active.len() {
                active = keep.iter().map(|&c| active[c]).collect();
                residual = residual.select(Axis(0), &rows(&keep));
                p = p.select(Axis(0), &rows(&keep));
                rho = keep.iter().map(|&c| rho[c]).collect();
                z = Array2::zeros(residual.dim());
            }
            if active.is_empty() {
                break;
            }
            self.preconditioner.apply(&active, residual.view(), z.view_mut())?;
            for (c, rho) in rho.iter_mut().enumerate() {
                let next = inner(&residual, &z, c, each);
                let beta = next / *rho;
                *rho = next;
                let z = z.slice(s![of(c, each), ..]);
                p.slice_mut(s![of(c, each), ..]).zip_mut_with(&z, |p, z| *p = z + beta * *p);
            }
        }
        let direction = self.faces.expand(norms.len(), &found).into_owned();
        let converged = active.is_empty();
        Ok(Solution { direction, image, products, finished, converged, indefinite })
    }
}

impl System<'_> {
    /// Fails where pᵀ(RᵀKR + λI)p ≤ 0, for a p of the squared length given, is more than rounding
    /// can explain.
    fn refuse_indefinite(&self, curvature: f64, square: f64) -> Result<(), Error> {
        let trace = self.operator.diagonal()?.iter().sum();
        let own = curvature / square - self.ridge;
        match clearly_negative(own, trace, self.operator.n_samples()) {
            Some(fault) => Err(Error::NotPositiveSemidefinite(fault)),
            None => Ok(()),
        }
    }
}

fn of(system: usize, each: usize) -> std::ops::Range<usize> {
    system * each..(system + 1) * each
}

/// Inner product of the rows of one system.
fn inner(a: &Array2<f64>, b: &Array2<f64>, system: usize, each: usize) -> f64 {
    let part = system * each * a.ncols()..(system + 1) * each * a.ncols();
    dot(&slice(a)[part.clone()], &slice(b)[part])
}
