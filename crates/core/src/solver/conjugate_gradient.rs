//! Preconditioned conjugate gradients for (RᵀKR + λI) c = b in the free directions of every
//! sample's face.
//!
//! For boxes R selects the samples strictly inside, and every dimension is a system of its own with
//! its own scalars; for polyhedra all dimensions are one system, of which several with different
//! right-hand sides may stand one below the other. Systems share the products with K. The image K R
//! c over *all* samples comes along for nothing, since every product computes it: the line search
//! needs it.
//!
//! What is here decides which systems go on and when all stop; the steps themselves are a
//! [`Descent`], [`Here`] or on the machine that keeps K and the preconditioner.

use super::observer::Observer;
use crate::decision_set::Faces;
use crate::error::Error;
use crate::kernel::clearly_negative;
use crate::linalg::sums::dot;
use crate::operator::{Descent, KernelOperator, Step};
use crate::precond::Preconditioner;
use crate::problem::slice;
use ndarray::{Array2, Axis, s};
use std::ops::Range;

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
        let norms = self.norms(&rhs);
        let mut active: Vec<usize> = (0..norms.len()).filter(|&c| norms[c] > targets[c]).collect();
        let (mut products, mut finished, mut indefinite) = (0, true, false);
        if active.is_empty() {
            let (direction, image) = (Array2::zeros(rhs.dim()), Array2::zeros(rhs.dim()));
            let converged = true;
            return Ok(Solution { direction, image, products, finished, converged, indefinite });
        }
        if let Some((found, image)) = self.preconditioner.solve(self.ridge, &rhs) {
            let direction = self.faces.expand(norms.len(), &found).into_owned();
            let converged = true;
            return Ok(Solution { direction, image, products, finished, converged, indefinite });
        }
        let mut descent = self.descent(rhs)?;
        while !active.is_empty() && products < max_products {
            if observer.poll().is_break() {
                finished = false;
                break;
            }
            let steps = descent.step(&active)?;
            products += 1;
            if steps.iter().any(|step| matches!(step, Step::Flat { .. })) {
                // Rounding has made K indefinite. In f64 what is found so far is the answer; else
                // f64 will find a better one.
                indefinite = true;
                if !self.operator.is_exact() {
                    break;
                }
                self.refuse_indefinite(&steps)?;
            }
            active = active
                .iter()
                .zip(&steps)
                .filter(|(c, step)| step.leaves_more_than(targets[**c]))
                .map(|(c, _)| *c)
                .collect();
        }
        let (found, image) = descent.finish()?;
        let direction = self.faces.expand(norms.len(), &found).into_owned();
        let converged = active.is_empty();
        Ok(Solution { direction, image, products, finished, converged, indefinite })
    }

    /// Steps on the machine that keeps the preconditioner where that takes them, else here.
    fn descent(&self, rhs: Array2<f64>) -> Result<Box<dyn Descent + '_>, Error> {
        let exact = self.operator.is_exact();
        let there = self.preconditioner.descent(rhs.view(), self.ridge, exact)?;
        Ok(there.unwrap_or_else(|| Box::new(Here::new(self, rhs))))
    }

    /// Fails where pᵀ(RᵀKR + λI)p ≤ 0 is more than rounding can explain.
    fn refuse_indefinite(&self, steps: &[Step]) -> Result<(), Error> {
        for step in steps {
            let Step::Flat { curvature, square } = step else { continue };
            let trace = self.operator.diagonal()?.iter().sum();
            let own = curvature / square - self.ridge;
            if let Some(fault) = clearly_negative(own, trace, self.operator.n_samples()) {
                return Err(Error::NotPositiveSemidefinite(fault));
            }
        }
        Ok(())
    }
}

impl Step {
    fn leaves_more_than(&self, target: f64) -> bool {
        matches!(self, Self::Taken { residual } if *residual > target)
    }
}

/// Steps with the vectors in this process.
struct Here<'a> {
    system: &'a System<'a>,
    each: usize,
    /// The systems that rows of `residual`, `direction` and `rho` belong to.
    systems: Vec<usize>,
    residual: Array2<f64>,
    /// p and ⟨r, z⟩; none before the first step.
    last: Option<(Array2<f64>, Vec<f64>)>,
    /// c and its image, of all systems.
    found: Array2<f64>,
    image: Array2<f64>,
}

impl<'a> Here<'a> {
    fn new(system: &'a System<'a>, rhs: Array2<f64>) -> Self {
        let (shape, each) = (rhs.dim(), system.rows_each());
        Self {
            system,
            each,
            systems: (0..rhs.nrows() / each).collect(),
            residual: rhs,
            last: None,
            found: Array2::zeros(shape),
            image: Array2::zeros(shape),
        }
    }

    /// Leaves out what is not listed.
    fn keep(&mut self, systems: &[usize]) {
        if self.systems == systems {
            return;
        }
        let places = (0..self.systems.len()).filter(|&c| systems.contains(&self.systems[c]));
        let places: Vec<usize> = places.collect();
        let rows: Vec<usize> = places.iter().flat_map(|&c| of(c, self.each)).collect();
        self.residual = self.residual.select(Axis(0), &rows);
        self.last = self
            .last
            .take()
            .map(|(p, rho)| (p.select(Axis(0), &rows), places.iter().map(|&c| rho[c]).collect()));
        self.systems = systems.to_vec();
    }

    /// The next direction, p = z + βp with the preconditioned residual z, and ρ = ⟨r, z⟩.
    fn turn(&mut self) -> Result<(Array2<f64>, Vec<f64>), Error> {
        let (each, residual) = (self.each, &self.residual);
        let mut z = Array2::zeros(residual.dim());
        self.system.preconditioner.apply(&self.systems, residual.view(), z.view_mut())?;
        let next: Vec<f64> =
            (0..self.systems.len()).map(|c| inner(residual, &z, c, each)).collect();
        let Some((mut p, rho)) = self.last.take() else { return Ok((z, next)) };
        for (c, (next, rho)) in next.iter().zip(rho).enumerate() {
            let beta = next / rho;
            let z = z.slice(s![of(c, each), ..]);
            p.slice_mut(s![of(c, each), ..]).zip_mut_with(&z, |p, z| *p = z + beta * *p);
        }
        Ok((p, next))
    }
}

impl Descent for Here<'_> {
    fn step(&mut self, systems: &[usize]) -> Result<Vec<Step>, Error> {
        self.keep(systems);
        let (p, rho) = self.turn()?;
        let System { operator, faces, ridge, .. } = *self.system;
        let mut full = Array2::zeros(p.dim());
        operator.apply(faces.expand(systems.len(), &p).view(), full.view_mut())?;
        let mut q = full.clone();
        faces.reduce(systems, &mut q);
        q.scaled_add(ridge, &p);
        let each = self.each;
        let mut steps = Vec::with_capacity(systems.len());
        for (c, &system) in systems.iter().enumerate() {
            let curvature = inner(&p, &q, c, each);
            if curvature <= 0.0 || !curvature.is_finite() {
                steps.push(Step::Flat { curvature, square: inner(&p, &p, c, each) });
                if operator.is_exact() {
                    continue;
                }
                break;
            }
            let a = rho[c] / curvature;
            let (here, there) = (of(c, each), of(system, each));
            let add = |out: &mut Array2<f64>, to: &Range<usize>, a: f64, v: &Array2<f64>| {
                out.slice_mut(s![to.clone(), ..]).scaled_add(a, &v.slice(s![here.clone(), ..]));
            };
            add(&mut self.image, &there, a, &full);
            add(&mut self.found, &there, a, &p);
            add(&mut self.residual, &here, -a, &q);
            let residual = inner(&self.residual, &self.residual, c, each).sqrt();
            steps.push(Step::Taken { residual });
        }
        self.last = Some((p, rho));
        Ok(steps)
    }

    fn finish(self: Box<Self>) -> Result<(Array2<f64>, Array2<f64>), Error> {
        Ok((self.found, self.image))
    }
}

fn of(system: usize, each: usize) -> Range<usize> {
    system * each..(system + 1) * each
}

/// Inner product of the rows of one system.
fn inner(a: &Array2<f64>, b: &Array2<f64>, system: usize, each: usize) -> f64 {
    let part = system * each * a.ncols()..(system + 1) * each * a.ncols();
    dot(&slice(a)[part.clone()], &slice(b)[part])
}
