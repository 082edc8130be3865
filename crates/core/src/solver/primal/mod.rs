//! Plain inverse optimization: explicit features, the semismooth Newton method in the weights
//! themselves.
//!
//! Enters: a problem and the matrix Φ of features. Leaves: weights V = −θ_su with their
//! certificate. With g_i = Vφ_i,
//!
//! ```text
//! P(V) = k‖V‖²_F + (1/N) Σ ℓ_i(g_i),
//! (N/2)∇P = λV − Σ (û_i − X_i(g_i)) φ_iᵀ = λ(V − V_x),     x = X(g),  V_x = (û − x)Φ/λ.
//! ```
//!
//! A Newton direction solves (λI + Σ D_i ⊗ φ_iφ_iᵀ) δ = −λ(V − V_x), with D_i = RRᵀ the derivative
//! of X_i: for boxes one system of n_features unknowns a dimension, over the samples strictly
//! inside their limits. A step passes over Φ twice, for the direction's image and for the gradient
//! at its end; nothing of the size of Φ or of a kernel matrix is ever held. The gap of V and x is
//! k‖V − V_x‖², the gradient in other units, so every step has its certificate for free.
//!
//! V is decision_dim × n_features here: a dimension is a contiguous vector, as in all of the
//! solvers.

mod hessian;
mod line;

use super::clock::Clock;
use super::line_search::Least;
use super::newton::NewtonSettings;
use super::observer::{Iteration, Observer};
use super::outcome::{Effort, Outcome, Status};
use crate::decision_set::Face;
use crate::error::Error;
use crate::features::Design;
use crate::problem::{Certificate, Certified, Decided, Problem};
use hessian::Hessian;
use line::Line;
use ndarray::{Array1, Array2, Axis, concatenate, s};
use serde::{Deserialize, Serialize};
use std::cell::OnceCell;

/// How far and how long.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PrimalSettings {
    /// Relative duality gap to reach; positive.
    pub tol: f64,
    /// Newton steps at most.
    pub max_iterations: usize,
    /// Seconds at most; none by default.
    pub time_limit: Option<f64>,
}

impl Default for PrimalSettings {
    fn default() -> Self {
        let NewtonSettings { tol, max_iterations, time_limit, .. } = NewtonSettings::default();
        Self { tol, max_iterations, time_limit }
    }
}

impl PrimalSettings {
    /// Checks every range.
    pub fn validate(&self) -> Result<(), Error> {
        let Self { tol, max_iterations, time_limit } = *self;
        NewtonSettings { tol, max_iterations, time_limit, ..NewtonSettings::default() }.validate()
    }
}

/// Relative decrease of P below which there is none.
const ROUNDING: f64 = 1e-14;
/// Steps without progress before giving up.
const PATIENCE: usize = 3;
/// Arrays of decision_dim × n_samples numbers that are there at once, at most: decisions, two
/// candidates' desired decisions, decisions and residuals, the direction's image, the point itself,
/// and at the end responses, coefficients and prices.
const ARRAYS: usize = 14;

/// Faces of all samples that are there at once, at most: of the point, of two candidates, and of
/// the Gram matrices.
const FACES: u64 = 4;

/// Bytes beside signals and decisions as they were loaded. `coupled`: the sets are not boxes.
pub fn bytes(n_samples: usize, decision_dim: usize, n_features: usize, coupled: bool) -> u64 {
    let arrays = ARRAYS * n_samples * decision_dim * size_of::<f64>();
    let (face, systems) = if coupled {
        (Face::bytes(decision_dim), (1, decision_dim))
    } else {
        (decision_dim as u64, (decision_dim, 1))
    };
    arrays as u64 + FACES * n_samples as u64 * face + Hessian::bytes(systems, n_features)
}

/// Minimises P over V to `settings.tol`. The coefficients of the outcome are those of its
/// responses.
pub fn solve(
    problem: &Problem,
    design: &Design<'_>,
    settings: &PrimalSettings,
    observer: &mut dyn Observer,
) -> Result<Outcome, Error> {
    settings.validate()?;
    if design.n_samples() != problem.n_samples() {
        return Err(Error::RowCount {
            left: "signals",
            left_rows: design.n_samples(),
            right: "decisions",
            right_rows: problem.n_samples(),
        });
    }
    let mut clock = Clock::new(settings.time_limit, observer);
    let design = design.with_factors(problem.roots());
    let hessian = Hessian::new(&design, problem);
    let primal = Primal {
        problem,
        design,
        settings,
        hessian,
        lengths: OnceCell::new(),
        iterations: 0,
        rescued: 0,
    };
    primal.run(&mut clock)?.finished(problem)
}

/// V with everything that follows from it.
#[derive(Clone)]
struct Point {
    weights: Array2<f64>,
    /// g = VΦᵀ, by updates.
    desired: Array2<f64>,
    decided: Decided,
    /// V_x = (û − x)Φ/λ.
    own: Array2<f64>,
}

struct Primal<'a> {
    problem: &'a Problem,
    design: Design<'a>,
    settings: &'a PrimalSettings,
    hessian: Hessian,
    /// ‖φ_i‖, once they are asked for.
    lengths: OnceCell<Vec<f64>>,
    iterations: usize,
    /// Decisions that the small quadratic programs' fallback had to find.
    rescued: usize,
}

/// The best weights so far, and how often nothing better came.
struct Progress {
    weights: Array2<f64>,
    gap: f64,
    lowest: f64,
    idle: usize,
}

impl Progress {
    /// Whether there is any: the gap may rise for many steps while P falls, and at the end P stands
    /// still while the gap falls.
    fn note(&mut self, point: &Point, c: &Certificate) -> bool {
        let falls = c.primal < self.lowest - ROUNDING * self.lowest.abs();
        let closes = c.gap < 0.5 * self.gap;
        self.idle = if falls || closes { 0 } else { self.idle + 1 };
        self.lowest = self.lowest.min(c.primal);
        if c.gap < self.gap {
            self.gap = c.gap;
            self.weights.assign(&point.weights);
        }
        self.idle <= PATIENCE
    }
}

impl Primal<'_> {
    fn run(mut self, clock: &mut Clock<'_>) -> Result<Outcome, Error> {
        let weights = Array2::zeros((self.problem.decision_dim(), self.design.n_features()));
        let mut point = self.at(weights.clone())?;
        let (gap, lowest) = (f64::INFINITY, f64::INFINITY);
        let mut progress = Progress { weights, gap, lowest, idle: 0 };
        let (status, point) = loop {
            let certificate = self.measure(&point)?;
            // The responses are the decisions themselves.
            let (x, decided) = (&point.decided.decisions, &point.decided);
            clock.tell(&Iteration {
                seconds: clock.seconds(),
                ..Iteration::at(self.iterations, &certificate, self.problem, x, decided)
            });
            let moves = progress.note(&point, &certificate);
            if certificate.relative_gap <= self.settings.tol {
                // Steps carry g by updates; what is returned is recomputed from V.
                point = self.at(point.weights)?;
                if self.certificate(&point)?.relative_gap <= self.settings.tol {
                    break (Status::Solved, point);
                }
            }
            clock.poll();
            let stopped = match clock.stopped {
                Some(status) => Some(status),
                None if self.iterations >= self.settings.max_iterations => {
                    Some(Status::MaxIterations)
                }
                None if !moves => Some(Status::Stalled),
                None => None,
            };
            if let Some(status) = stopped {
                break (status, self.at(progress.weights)?);
            }
            point = self.step(point)?;
        };
        let certificate = self.certificate(&point)?;
        // A point that was recomputed may have reached what its updates had not.
        let solved = certificate.relative_gap <= self.settings.tol;
        let status = if solved { Status::Solved } else { status };
        let Point { weights, desired, decided, .. } = point;
        let responses = decided.decisions;
        let coefficients = self.problem.coefficients(responses.view());
        let certified = Certified { responses, coefficients, desired, certificate };
        let effort = Effort {
            iterations: self.iterations,
            kernel_products: 0,
            rescued_decisions: self.rescued,
            seconds: clock.seconds(),
        };
        Ok(Outcome { feature_weights: Some(weights), ..Outcome::new(certified, status, effort) })
    }

    /// Everything about V, from the definitions. Cost: two passes.
    fn at(&self, weights: Array2<f64>) -> Result<Point, Error> {
        let starts = weights.iter().all(|v| *v == 0.0);
        let shape = (self.problem.decision_dim(), self.problem.n_samples());
        let desired = if starts { Array2::zeros(shape) } else { self.design.images(&weights) };
        let decided = self.problem.decide(&desired, None)?;
        let own = self.own(&self.residual(&decided.decisions));
        Ok(Point { weights, desired, decided, own })
    }

    /// û − x.
    fn residual(&self, decided: &Array2<f64>) -> Array2<f64> {
        &self.problem.decisions() - decided
    }

    /// V_x for û − x.
    fn own(&self, residual: &Array2<f64>) -> Array2<f64> {
        self.design.transposed(residual) / self.problem.ridge()
    }

    /// The certificate as it looks on the way: without what rounding may hide.
    fn measure(&self, point: &Point) -> Result<Certificate, Error> {
        self.certificate_with(point, &vec![0.0; self.problem.n_samples()])
    }

    /// The certificate, and the part of its relative gap that is a bound on rounding. Cost: a pass
    /// the first time.
    fn certificate(&self, point: &Point) -> Result<Certificate, Error> {
        self.certificate_with(point, self.lengths.get_or_init(|| self.design.lengths()))
    }

    fn certificate_with(&self, point: &Point, lengths: &[f64]) -> Result<Certificate, Error> {
        let Point { weights, own, desired, decided } = point;
        let chain = self.design.chain();
        self.problem.certificate_of_weights((weights, own), desired, decided, (lengths, chain))
    }

    /// One Newton step with its line search.
    fn step(&mut self, point: Point) -> Result<Point, Error> {
        self.hessian.update(&self.design, &point.decided.faces);
        let downhill = &point.own - &point.weights;
        let direction = self.hessian.solve(downhill * self.problem.ridge())?;
        let image = self.design.images(&direction);
        let line =
            Line { problem: self.problem, point: &point, direction: &direction, image: &image };
        let lengths = line.search()?;
        self.iterations += 1;

        // The minimiser, and beside it the full step wherever P falls with that too.
        let length = |least: &Least, full: bool| match least {
            Least::At { full_falls: true, .. } if full => 1.0,
            Least::At { t, .. } => *t,
            Least::Flat => 1.0,
            Least::Uphill => 0.0,
        };
        let least: Array1<f64> = lengths.iter().map(|l| length(l, false)).collect();
        let full: Array1<f64> = lengths.iter().map(|l| length(l, true)).collect();
        let next = self.moved(&point, &direction, &image, &least)?;
        let next = if full == least {
            let own = self.own(&self.residual(&next.decided.decisions));
            Point { own, ..next }
        } else {
            let other = self.moved(&point, &direction, &image, &full)?;
            drop((point, image));
            self.better(next, other)?
        };
        self.rescued += next.decided.faces.rescued();
        Ok(next)
    }

    /// V + tδ for a t a dimension; its V_x is still that of V.
    fn moved(
        &self,
        point: &Point,
        direction: &Array2<f64>,
        image: &Array2<f64>,
        lengths: &Array1<f64>,
    ) -> Result<Point, Error> {
        let lengths = lengths.view().insert_axis(Axis(1));
        let weights = &point.weights + &(direction * &lengths);
        let desired = &point.desired + &(image * &lengths);
        let decided = self.problem.decide(&desired, Some(&point.decided.faces))?;
        Ok(Point { weights, desired, decided, own: point.own.clone() })
    }

    /// Of two points that descend the one with the smaller gradient, dimension by dimension where
    /// these are separate. Cost: a pass.
    fn better(&self, mut a: Point, b: Point) -> Result<Point, Error> {
        let n = self.problem.decision_dim();
        let residuals = [&a, &b].map(|point| self.residual(&point.decided.decisions));
        let both = concatenate![Axis(0), residuals[0].view(), residuals[1].view()];
        drop(residuals);
        let own = self.own(&both);
        let owns = [own.slice(s![..n, ..]), own.slice(s![n.., ..])];
        let size = |point: &Point, own: &ndarray::ArrayView2<'_, f64>| -> Vec<f64> {
            let gradient = &point.weights - own;
            gradient.rows().into_iter().map(|row| row.dot(&row)).collect()
        };
        let (size_a, size_b) = (size(&a, &owns[0]), size(&b, &owns[1]));
        let each = self.problem.sets().dims_per_system();
        let systems = size_a.chunks(each).zip(size_b.chunks(each));
        let take_b: Vec<bool> =
            systems.map(|(a, b)| b.iter().sum::<f64>() <= a.iter().sum::<f64>()).collect();
        if take_b.iter().all(|b| *b == take_b[0]) {
            let (point, own) = if take_b[0] { (b, owns[1]) } else { (a, owns[0]) };
            return Ok(Point { own: own.to_owned(), ..point });
        }
        a.own.assign(&owns[0]);
        for j in (0..n).filter(|&j| take_b[j / each]) {
            a.weights.row_mut(j).assign(&b.weights.row(j));
            a.desired.row_mut(j).assign(&b.desired.row(j));
            a.own.row_mut(j).assign(&owns[1].row(j));
        }
        a.decided = self.problem.decide(&a.desired, None)?;
        Ok(a)
    }
}
