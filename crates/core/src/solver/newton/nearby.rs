//! From a point near the optimum, such as the coefficients of most of the rows: a product a step.
//!
//! Far away Newton's systems say which samples end on their limits; near the optimum the low-rank
//! K̃ ≈ K of the preconditioner says it without a product. A step solves the whole problem with
//! K̃ in place of K for the change d, r(d) = û − X(g + K̃d) − λ(α + d) = 0, by Newton's method
//! with systems that Woodbury's identity solves, makes d conjugate to the step before, and
//! minimises P along it. That is the method of conjugate gradients on a piecewise quadratic
//! function, preconditioned by one: where no sample changes sides any more, by the inverse of
//! RᵀK̃R + λI.
//!
//! What does not pay is left to Newton's steps, which converge from anywhere (ADR 0024).

use super::{APPROACH, Newton, Point};
use crate::decision_set::{Boxes, Faces, SampleSets};
use crate::error::Error;
use crate::linalg::sums::dot;
use crate::problem::{Values, slice};
use crate::solver::clock::Clock;
use crate::solver::line_search::{Preference, StepLength};
use crate::solver::observer::Iteration;
use crate::solver::state::State;
use ndarray::{Array2, ArrayView1};

/// Relative gap up to which a point counts as near.
const NEAR: f64 = 0.5;
/// Steps at most, and the share of the residual that each has to leave at most.
const STEPS: usize = 20;
const PAYS: f64 = 0.7;
/// Newton steps of the problem with K̃ at most, and the share of its residual to be left.
const MODEL_STEPS: usize = 6;
const MODEL_TOL: f64 = 0.1;

/// A direction and its image.
type Step = (Array2<f64>, Array2<f64>);

impl Newton<'_> {
    /// Takes the point as near as such steps do; `arrived` says whether that is near enough.
    pub(super) fn draw_near(
        &mut self,
        point: &mut Point,
        clock: &mut Clock<'_>,
    ) -> Result<(), Error> {
        let problem = self.problem;
        let SampleSets::Boxes(boxes) = problem.sets() else { return Ok(()) };
        let mut last: Option<(Array2<f64>, Array2<f64>)> = None;
        let mut left = f64::INFINITY;
        for _ in 0..STEPS {
            let Some(seen) = self.glance(point, clock)? else { return Ok(()) };
            self.arrived = seen.relative_gap <= APPROACH * self.settings.tol;
            let residual = norm(&self.residual(point));
            let pays = residual <= PAYS * left && seen.relative_gap <= NEAR;
            let done = self.iterations >= self.settings.max_iterations || clock.poll();
            if self.arrived || !pays || done {
                return Ok(());
            }
            left = residual;
            let Some(mut direction) = self.by_model(point, boxes)? else { return Ok(()) };
            let mut image = self.product(direction.view())?;
            if let Some((old, old_image)) = &last {
                let ridge = problem.ridge();
                let faces = &point.decided.faces;
                conjugate((&mut direction, &mut image), (old, old_image), faces, ridge)?;
            }
            let along = (&direction, &image);
            let preference = (Preference::Minimiser, 0.0);
            let steps =
                self.search_boxes(boxes, point, along, (problem.offset(), None), preference)?;
            if steps.iter().any(|step| matches!(step, StepLength::Uphill)) {
                return Ok(());
            }
            point.advance(problem, &steps, &direction, &image)?;
            self.iterations += 1;
            last = Some((direction, image));
        }
        Ok(())
    }

    /// r = û − X(g) − λα.
    fn residual(&self, point: &Point) -> Array2<f64> {
        let ridge = self.problem.ridge();
        &self.problem.decisions() - &point.decided.decisions - &(&point.coefficients * ridge)
    }

    /// The point's bounds with ‖·‖ of K̃ + λI for that of K, which takes no product; none where the
    /// preconditioner has no K̃.
    fn glance(&mut self, point: &Point, clock: &mut Clock<'_>) -> Result<Option<Iteration>, Error> {
        let problem = self.problem;
        let responses = problem.responses(point.coefficients.view())?;
        let decided = &point.decided;
        let mut gap = problem.gaps(&responses, &point.desired, &decided.decisions);
        if let Some(offset) = self.offset(point, &responses) {
            let energies = self.parts.preconditioner.model_energies(offset.view());
            let Some(energies) = energies else { return Ok(None) };
            let own = problem.squared_norms(&offset, &(&offset * problem.ridge()));
            let norms = problem.energies_in_groups(&energies).into_iter().zip(own);
            gap.iter_mut().zip(norms).for_each(|(gap, (norm, own))| *gap += norm + own);
        }
        let primal = problem.primals(&point.coefficients, &point.desired, &decided.decisions);
        let values = Values::below(primal, gap);
        let objective = problem.mean_square() - values.total_dual();
        let seen = self.seen(&problem.bounds(&values, objective)?, &responses, decided, clock);
        clock.tell(&seen);
        clock.offer(&|| State::of(problem, &point.coefficients));
        Ok(Some(seen))
    }

    /// The change that would solve the problem if K were K̃.
    fn by_model(&mut self, point: &Point, boxes: &Boxes) -> Result<Option<Array2<f64>>, Error> {
        let mut at = Point {
            coefficients: point.coefficients.clone(),
            desired: point.desired.clone(),
            decided: point.decided.clone(),
        };
        let mut first = None;
        for _ in 0..MODEL_STEPS {
            let residual = self.residual(&at);
            let left = norm(&residual);
            if left <= MODEL_TOL * *first.get_or_insert(left) {
                break;
            }
            self.parts.preconditioner.update(&at.decided.faces)?;
            let Some((direction, image)) = self.model_step(&at.decided.faces, residual)? else {
                return Ok(None);
            };
            let (along, preference) = ((&direction, &image), (Preference::Nearer, 0.0));
            let begun = (Some(&point.desired), Some(&point.coefficients));
            let steps = self.search_boxes(boxes, &at, along, begun, preference)?;
            at.advance(self.problem, &steps, &direction, &image)?;
        }
        Ok(Some(at.coefficients - &point.coefficients))
    }

    /// A Newton step of the problem with K̃ and its image, for the faces followed last.
    fn model_step(&self, faces: &Faces, residual: Array2<f64>) -> Result<Option<Step>, Error> {
        let preconditioner = self.parts.preconditioner.as_ref();
        if let Some(step) = preconditioner.model_step(&residual) {
            return Ok(Some(step));
        }
        let systems: Vec<usize> = (0..residual.nrows()).collect();
        let split = faces.split(self.problem.metric(), &residual);
        let mut direction = split.bound / self.problem.ridge();
        let Some(mut image) = preconditioner.model_product(direction.view()) else {
            return Ok(None);
        };
        let mut rhs = image.clone();
        faces.reduce(&systems, &mut rhs);
        rhs = split.inside - rhs;
        let mut free = zeros(&rhs);
        preconditioner.apply(&systems, rhs.view(), free.view_mut())?;
        let Some(free_image) = preconditioner.model_product(free.view()) else { return Ok(None) };
        direction += &free;
        image += &free_image;
        Ok(Some((direction, image)))
    }
}

/// Takes off a direction, in each dimension, what it has of the step before: the curvature of P is
/// λK + KDK with the D of the faces.
fn conjugate(
    (direction, image): (&mut Array2<f64>, &mut Array2<f64>),
    (old, old_image): (&Array2<f64>, &Array2<f64>),
    faces: &Faces,
    ridge: f64,
) -> Result<(), Error> {
    let free = faces.mask()?;
    for j in 0..direction.nrows() {
        let curvature = |v: ArrayView1<'_, f64>, v_image: ArrayView1<'_, f64>| {
            let own = v.iter().zip(v_image).zip(free.row(j)).zip(old_image.row(j));
            own.map(|(((v, w), free), old)| (ridge * v + if *free { *w } else { 0.0 }) * old).sum()
        };
        let mixed: f64 = curvature(direction.row(j), image.row(j));
        let squared: f64 = curvature(old.row(j), old_image.row(j));
        if squared > 0.0 {
            direction.row_mut(j).scaled_add(-mixed / squared, &old.row(j));
            image.row_mut(j).scaled_add(-mixed / squared, &old_image.row(j));
        }
    }
    Ok(())
}

fn norm(v: &Array2<f64>) -> f64 {
    dot(slice(v), slice(v)).sqrt()
}

fn zeros(like: &Array2<f64>) -> Array2<f64> {
    Array2::zeros(like.dim())
}
