//! One Newton step: its system, its line search.
//!
//! With RRᵀ the derivative of X at g and r = Ry + w, where y = RᵀΘr, the Newton direction is
//! d = Rc + w/λ with (RᵀKR + λI) c = y − RᵀKw/λ. For boxes and Θ = I the matrix R selects the
//! coordinates F strictly inside their limits, w is the residual of the rest, and the dimensions
//! are separate systems.

use super::{Newton, Point};
use crate::decision_set::{Boxes, Faces, Polyhedra, SampleSets};
use crate::error::Error;
use crate::linalg::entries::filled;
use crate::problem::slice;
use crate::solver::clock::Clock;
use crate::solver::conjugate_gradient::{Solution, System};
use crate::solver::line_search::{CoupledLine, Line, Preference, StepLength};
use ndarray::{Array2, concatenate, s};
use rayon::prelude::*;

/// Relative residual the Newton systems are solved to, and the share of the residual that the step
/// is to remove (ADR 0018).
const CG_TOL: f64 = 1e-2;
const FORCING: f64 = 0.1;
/// Relative residual the systems of steps with a larger λ are solved to.
const EASING_TOL: f64 = 1e-2;
/// Products a Newton system may take.
const CG_PRODUCTS: usize = 400;
/// Share of the gap that P may rise by in a full step that halves the residual.
const SLACK: f64 = 1e-3;

/// What a step starts with: the residual taken apart, r = R·inside + w, and d = w/λ with its image.
pub(super) struct Start {
    /// λ, or more for the first steps of saturated problems.
    pub(super) ridge: f64,
    pub(super) residual: Array2<f64>,
    pub(super) inside: Array2<f64>,
    pub(super) direction: Array2<f64>,
    pub(super) image: Array2<f64>,
    /// The gap where the step starts.
    pub(super) gap: f64,
}

/// What came of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Moved {
    /// It was taken.
    On,
    /// The clock stopped it, and the point is where it was.
    Interrupted,
}

impl Newton<'_> {
    /// The parts of the residual that need no solve, for λ times `factor`. The product they take is
    /// shared with `offset`, whose image comes second.
    pub(super) fn start(
        &mut self,
        point: &Point,
        factor: f64,
        offset: Option<&Array2<f64>>,
    ) -> Result<(Start, Option<Array2<f64>>), Error> {
        let (problem, ridge) = (self.problem, factor * self.problem.ridge());
        let (decisions, decided) = (problem.decisions(), &point.decided.decisions);
        let residual = filled(decided.dim(), |j, i| {
            decisions[[j, i]] - decided[[j, i]] - point.coefficients[[j, i]] * ridge
        });
        let split = point.decided.faces.split(problem.metric(), &residual);
        // What no free direction reaches needs no solve: (λI + DK)d = r reads λd = r there.
        let direction = split.bound / ridge;
        let moves = direction.iter().any(|d| *d != 0.0);
        let zeros = || Array2::zeros(direction.dim());
        let (image, offset_image) = match (moves, offset) {
            (true, Some(offset)) => {
                let both = concatenate![ndarray::Axis(0), direction.view(), offset.view()];
                let images = self.product(both.view())?;
                let n = direction.nrows();
                let part = |rows| images.slice(rows).to_owned();
                (part(s![..n, ..]), Some(part(s![n.., ..])))
            }
            (true, None) => (self.product(direction.view())?, None),
            (false, Some(offset)) => (zeros(), Some(self.product(offset.view())?)),
            (false, None) => (zeros(), None),
        };
        let inside = split.inside;
        Ok((Start { ridge, residual, inside, direction, image, gap: 0.0 }, offset_image))
    }

    /// One Newton step with its line search. Interrupted, it leaves the point as it is.
    pub(super) fn step(
        &mut self,
        point: &mut Point,
        start: Start,
        clock: &mut Clock<'_>,
    ) -> Result<Moved, Error> {
        let Start { ridge, residual, inside, mut direction, mut image, gap } = start;
        let eased = ridge > self.problem.ridge();
        let faces = &point.decided.faces;
        let mut rhs = image.clone();
        let (n_systems, _) = faces.systems(rhs.nrows());
        let systems: Vec<usize> = (0..n_systems).collect();
        faces.reduce(&systems, &mut rhs);
        rhs = inside - rhs;
        let solution = self.solve_system((faces, ridge), rhs, &residual, clock)?;
        if !solution.finished {
            return Ok(Moved::Interrupted);
        }
        if solution.indefinite && !self.parts.operator.is_exact() {
            self.parts.turn_exact(self.problem)?;
            let desired = self.problem.desired(self.parts.operator, &point.coefficients)?;
            self.products += 1;
            *point = Point::new(self.problem, point.coefficients.clone(), desired)?;
            let (start, _) = self.start(point, ridge / self.problem.ridge(), None)?;
            return self.step(point, Start { gap, ..start }, clock);
        }
        direction += &solution.direction;
        image += &solution.image;

        let preference = if eased { Preference::Full } else { Preference::Nearer };
        let mut steps = self.search(point, &direction, &image, (preference, gap))?;
        if steps.iter().any(|step| matches!(step, StepLength::Uphill)) {
            // CG was too loose there; the residual itself always descends.
            let along_residual = self.product(residual.view())?;
            for (j, step) in steps.iter().enumerate() {
                if matches!(step, StepLength::Uphill) {
                    direction.row_mut(j).assign(&residual.row(j));
                    image.row_mut(j).assign(&along_residual.row(j));
                }
            }
            steps = self.search(point, &direction, &image, (Preference::Nearer, gap))?;
        }
        point.advance(self.problem, &steps, &direction, &image)?;
        self.rescued += point.decided.faces.rescued();
        self.iterations += 1;
        Ok(Moved::On)
    }

    /// The step's system, by conjugate gradients, and where these take as many products as its own
    /// factor is worth, by that.
    fn solve_system(
        &mut self,
        (faces, ridge): (&Faces, f64),
        rhs: Array2<f64>,
        residual: &Array2<f64>,
        clock: &mut Clock<'_>,
    ) -> Result<Solution, Error> {
        self.parts.follow(self.problem, faces)?;
        let patience = self.parts.patience(self.problem, faces);
        let system = self.system(faces, ridge);
        let eased = ridge > self.problem.ridge();
        // K_FA d_A can make the right-hand side many times larger than the residual that the step
        // is to remove.
        let targets: Vec<f64> = system
            .norms(&rhs)
            .iter()
            .zip(system.norms(residual))
            .map(|(b, r)| if eased { EASING_TOL * b } else { (CG_TOL * b).min(FORCING * r) })
            .collect();
        let Some(patience) = patience else {
            let solution = system.solve(rhs, &targets, CG_PRODUCTS, clock)?;
            self.products += solution.products;
            return Ok(solution);
        };
        let solution = system.solve(rhs.clone(), &targets, patience.min(CG_PRODUCTS), clock)?;
        self.products += solution.products;
        if solution.converged || solution.indefinite || !solution.finished {
            return Ok(solution);
        }
        self.parts.lose_patience();
        self.parts.follow(self.problem, faces)?;
        let solution = self.system(faces, ridge).solve(rhs, &targets, CG_PRODUCTS, clock)?;
        self.products += solution.products;
        Ok(solution)
    }

    fn system<'b>(&'b self, faces: &'b Faces, ridge: f64) -> System<'b> {
        let (operator, preconditioner) = (self.parts.operator, self.parts.followed());
        let decision_dim = self.problem.decision_dim();
        System { operator, preconditioner, faces, ridge, decision_dim }
    }

    /// A step for each dimension.
    pub(super) fn search(
        &self,
        point: &Point,
        direction: &Array2<f64>,
        image: &Array2<f64>,
        (preference, gap): (Preference, f64),
    ) -> Result<Vec<StepLength>, Error> {
        // What a full step may add to N·P.
        let slack = SLACK * gap * self.problem.n_samples() as f64;
        match self.problem.sets() {
            SampleSets::Boxes(boxes) => {
                let own = self.problem.offset();
                self.search_boxes(
                    boxes,
                    point,
                    (direction, image),
                    (own, None),
                    (preference, slack),
                )
            }
            SampleSets::Polyhedra(polyhedra) => {
                self.search_polyhedra(polyhedra, point, (direction, image), slack)
            }
        }
    }

    /// A step for each dimension of boxes. `own` is what the desired decisions have beside the
    /// direction's kernel times the coefficients, or times what these have changed by since
    /// `begun`.
    pub(super) fn search_boxes(
        &self,
        boxes: &Boxes,
        point: &Point,
        (direction, image): (&Array2<f64>, &Array2<f64>),
        (own, begun): (Option<&Array2<f64>>, Option<&Array2<f64>>),
        (preference, slack): (Preference, f64),
    ) -> Result<Vec<StepLength>, Error> {
        let (problem, n) = (self.problem, self.problem.n_samples());
        let slack = slack / problem.decision_dim() as f64;
        let decisions = problem.decisions();
        let decisions = decisions.as_slice().expect("a problem keeps decisions in standard layout");
        (0..problem.decision_dim())
            .into_par_iter()
            .map(|j| {
                let range = j * n..(j + 1) * n;
                let line = Line {
                    decisions: &decisions[range.clone()],
                    coefficients: &slice(&point.coefficients)[range.clone()],
                    desired: &slice(&point.desired)[range.clone()],
                    direction: &slice(direction)[range.clone()],
                    kernel_direction: &slice(image)[range.clone()],
                    offset: own.map(|own| &slice(own)[range.clone()]),
                    begun: begun.map(|begun| &slice(begun)[range]),
                    ridge: problem.ridge(),
                    slack,
                };
                line.search(preference, |i, g| boxes.clamp(j, i, g))
            })
            .collect()
    }

    fn search_polyhedra(
        &self,
        polyhedra: &Polyhedra,
        point: &Point,
        (direction, image): (&Array2<f64>, &Array2<f64>),
        slack: f64,
    ) -> Result<Vec<StepLength>, Error> {
        let line = CoupledLine {
            problem: self.problem,
            polyhedra,
            faces: &point.decided.faces,
            coefficients: &point.coefficients,
            desired: &point.desired,
            direction,
            kernel_direction: image,
            slack,
        };
        let step = line.search()?;
        let all = 0..self.problem.decision_dim();
        Ok(all
            .map(
                |_| {
                    if let StepLength::At(t) = step {
                        StepLength::At(t)
                    } else {
                        StepLength::Uphill
                    }
                },
            )
            .collect())
    }
}
