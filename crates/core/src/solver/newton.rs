//! The exact solver: semismooth Newton with an exact line search, its systems solved by preconditioned CG.
//!
//! Enters: a problem and an operator. Leaves: an outcome whose certificate the problem recomputed with the f64 kernel.
//! The root of r(α) = û − Π(Kα) − λα is the optimum. With F the coordinates where Kα lies strictly inside its limits and
//! A the rest, the Newton direction is d_A = r_A/λ and (K_FF + λI) d_F = r_F − K_FA d_A. P is convex, once
//! differentiable and piecewise quadratic, so the exact line search makes this converge from anywhere, and at the end
//! in a finite number of steps.
//!
//! Steps run in the operator's working precision until the gap is small; then α is replaced by that of the nearest feasible
//! responses where this does not lose what was gained, g = Kα is computed with the f64 kernel, and the remaining steps
//! correct the exact residual. What is returned is always such an exact point. Where rounded kernel values stop the correction, its products turn exact too.

use super::clock::Clock;
use super::conjugate_gradient;
use super::line_search::{Line, Step};
use super::observer::{Iteration, Observer};
use super::outcome::{Outcome, Status};
use crate::error::Error;
use crate::operator::KernelOperator;
use crate::precond::{Direct, Identity, LowRank, Preconditioner, RankLimits, Woodbury};
use crate::problem::{Certified, Problem, slice};
use crate::random::stream;
use ndarray::{Array2, ArrayView1, ArrayView2, Zip};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// How far and how long.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NewtonSettings {
    /// Relative duality gap to reach; positive.
    pub tol: f64,
    /// Newton steps at most.
    pub max_iterations: usize,
    /// Seconds at most; none by default.
    pub time_limit: Option<f64>,
    /// Rank of the preconditioner at most; chosen by the problem's size where none is given.
    pub max_rank: Option<usize>,
}

impl Default for NewtonSettings {
    fn default() -> Self {
        Self { tol: 1e-6, max_iterations: 100, time_limit: None, max_rank: None }
    }
}

impl NewtonSettings {
    /// Checks every range.
    pub fn validate(&self) -> Result<(), Error> {
        let setting = |name, found: String, allowed| Err(Error::Setting { name, found, allowed });
        if !(self.tol > 0.0 && self.tol.is_finite()) {
            return setting("tol", self.tol.to_string(), "a positive finite number");
        }
        match self.time_limit {
            Some(limit) if !(limit > 0.0 && limit <= 1e9) => {
                setting("time-limit", limit.to_string(), "a positive number of seconds")
            }
            _ => Ok(()),
        }
    }

    /// The largest rank worth its cost for `n_samples`: all of them where K + λI can be factorised outright. Beyond, building
    /// takes N·r², each step r³/3 a dimension, and both are paid back by fewer products only up to a point.
    pub fn rank_for(&self, n_samples: usize) -> usize {
        let automatic =
            if n_samples <= FACTORISED { n_samples } else { Self::partial_rank_for(n_samples) };
        self.max_rank.unwrap_or(automatic).min(n_samples)
    }

    /// The largest rank worth its cost where K + λI is not factorised.
    pub fn partial_rank_for(n_samples: usize) -> usize {
        (n_samples / 6).clamp(500, 1000).min(n_samples / 2 + 1)
    }
}

/// Samples up to which factorising K + λI costs less than iterating: measured on hopper-expert, k = 1e-6, two cores, where 2500
/// take 0.35 against 0.44 s, 3000 the same, 4000 1.0 against 0.75 s.
const FACTORISED: usize = 2800;
/// trace(K − BᵀB)/λ at which the preconditioner is good enough.
const ENOUGH_TRACE: f64 = 200.0;
/// Relative residual the Newton systems are solved to.
const CG_TOL: f64 = 1e-4;
/// And to this share of the residual that the step is to remove. On noiseless saturated data (N = 200) the first bound alone takes
/// 100 steps and fails; with 0.01, 0.1, 0.3 here it takes 8, 10, 16, and hopper-expert (N = 5000) 88, 71, 61 products.
const FORCING: f64 = 0.1;
/// Products a Newton system may take.
const CG_PRODUCTS: usize = 400;
/// Share of the tolerance to reach in working precision before the point is made feasible and certified: moving α to that
/// of the nearest feasible responses magnifies what is left of the gap by up to ‖K‖/λ.
const APPROACH: f64 = 1e-3;
/// Relative gap below which lack of progress means the end of precision.
const NEAR: f64 = 1e-8;
/// Relative decrease of the primal value below which there is none.
const ROUNDING: f64 = 1e-14;
/// Steps without progress before giving up.
const PATIENCE: usize = 3;

/// Bytes of the iterates and of the preconditioner of `rank`, beside the operator.
pub fn bytes(n_samples: usize, decision_dim: usize, rank: usize) -> u64 {
    let arrays = 20 * n_samples * decision_dim * size_of::<f64>();
    let preconditioner = if rank >= n_samples {
        Direct::bytes(n_samples, decision_dim)
    } else {
        LowRank::bytes(n_samples, rank) + Woodbury::bytes(rank, decision_dim)
    };
    arrays as u64 + preconditioner
}

/// Minimises P to `settings.tol`.
pub fn solve(
    problem: &Problem,
    operator: &dyn KernelOperator,
    settings: &NewtonSettings,
    seed: u64,
    observer: &mut dyn Observer,
) -> Result<Outcome, Error> {
    let shape = problem.decisions().dim();
    let start = Point { coefficients: Array2::zeros(shape), desired: Array2::zeros(shape) };
    solve_from(problem, operator, settings, seed, start, Answer::Coefficients, observer)
}

/// What the tolerance is about.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Answer {
    /// Any α with a small gap to its responses.
    Coefficients,
    /// Responses whose own α = (û − x)/λ has a small gap: what a block of SSO passes on.
    Responses,
}

/// As [`solve`], from a point whose desired decisions are known.
pub(crate) fn solve_from(
    problem: &Problem,
    operator: &dyn KernelOperator,
    settings: &NewtonSettings,
    seed: u64,
    start: Point,
    answer: Answer,
    observer: &mut dyn Observer,
) -> Result<Outcome, Error> {
    settings.validate()?;
    let mut clock = Clock::new(settings.time_limit, observer);
    let max_rank = settings.rank_for(problem.n_samples());
    let (operator, preconditioner) = if max_rank == problem.n_samples() {
        factorised(problem, operator)?
    } else {
        let limits = RankLimits { max_rank, enough_trace: ENOUGH_TRACE * problem.ridge() };
        let mut rng = stream(seed, "pivots");
        let factor = LowRank::build(operator, limits, &mut rng, || !clock.poll())?;
        let woodbury = Woodbury::new(factor, problem.ridge(), problem.decision_dim());
        (operator, Box::new(woodbury) as Box<dyn Preconditioner>)
    };
    let newton =
        Newton { problem, operator, settings, answer, preconditioner, products: 0, iterations: 0 };
    newton.run(start, &mut clock)
}

/// K + λI factorised: of the operator's working precision, or in f64 where rounding has made that indefinite. Also the operator
/// it is of.
fn factorised<'a>(
    problem: &Problem,
    operator: &'a dyn KernelOperator,
) -> Result<(&'a dyn KernelOperator, Box<dyn Preconditioner + 'a>), Error> {
    let direct = Direct::new(operator, problem.ridge(), problem.decision_dim())?;
    if direct.indefinite() && !operator.is_exact() {
        drop(direct);
        return factorised(problem, operator.exact());
    }
    if direct.indefinite()
        && let Some(fault) = direct.fault()?
    {
        return Err(Error::NotPositiveSemidefinite(fault));
    }
    Ok((operator, Box::new(direct)))
}

/// α with its desired decisions g, in working precision.
pub(crate) struct Point {
    pub(crate) coefficients: Array2<f64>,
    pub(crate) desired: Array2<f64>,
}

struct Newton<'a> {
    problem: &'a Problem,
    operator: &'a dyn KernelOperator,
    settings: &'a NewtonSettings,
    answer: Answer,
    preconditioner: Box<dyn Preconditioner + 'a>,
    products: usize,
    iterations: usize,
}

impl Newton<'_> {
    fn run(mut self, start: Point, clock: &mut Clock<'_>) -> Result<Outcome, Error> {
        let point = self.approach(start, clock)?;
        self.correct(point, clock)
    }

    /// Newton steps in working precision, to a gap where the exact kernel takes over.
    fn approach(&mut self, mut point: Point, clock: &mut Clock<'_>) -> Result<Point, Error> {
        let target = APPROACH * self.settings.tol;
        let (mut best, mut idle) = (f64::INFINITY, 0);
        let (mut lowest, mut stuck) = (f64::INFINITY, 0);
        loop {
            let responses = self.problem.responses(point.coefficients.view());
            let iteration = self.measure(&point, &responses, clock.seconds())?;
            clock.tell(&iteration);
            // Close to the optimum every step gains digits, until there are none left to gain.
            idle = if iteration.gap < 0.5 * best { 0 } else { idle + 1 };
            best = best.min(iteration.gap);
            // Far from it the gap may rise for many steps, but the primal value falls, or there is nothing to be had here.
            let falls = iteration.primal < lowest - ROUNDING * lowest.abs();
            stuck = if falls { 0 } else { stuck + 1 };
            lowest = lowest.min(iteration.primal);
            let done = iteration.relative_gap <= target
                || (iteration.relative_gap < NEAR && idle > PATIENCE)
                || stuck > PATIENCE
                || self.iterations >= self.settings.max_iterations
                || clock.poll();
            if done || !self.step(&mut point, clock)? {
                return Ok(point);
            }
        }
    }

    /// Newton steps on the exact residual, each ending with a certificate.
    fn correct(mut self, point: Point, clock: &mut Clock<'_>) -> Result<Outcome, Error> {
        let mut best = self.certify(point.coefficients, clock)?;
        let from = |certified: &Certified| Point {
            coefficients: certified.coefficients.clone(),
            desired: certified.desired.clone(),
        };
        let mut point = from(&best);
        let mut idle = 0;
        let status = loop {
            if best.certificate.relative_gap <= self.settings.tol {
                break Status::Solved;
            }
            clock.poll();
            if let Some(stopped) = clock.stopped {
                break stopped;
            }
            if self.iterations >= self.settings.max_iterations {
                break Status::MaxIterations;
            }
            if idle < PATIENCE {
                if !self.step(&mut point, clock)? {
                    continue;
                }
            } else if self.operator.is_exact() {
                break Status::Stalled;
            } else {
                // Rounding of kernel values has the last word: on in f64, recomputing them, from where this got.
                self.turn_exact()?;
                point = self.approach(from(&best), clock)?;
                idle = 0;
            }
            let next = self.certify(point.coefficients, clock)?;
            point = from(&next);
            idle = if next.certificate.gap < 0.5 * best.certificate.gap { 0 } else { idle + 1 };
            if next.certificate.gap < best.certificate.gap {
                best = next;
            }
        };
        Ok(Outcome {
            certified: best,
            status,
            iterations: self.iterations,
            kernel_products: self.products,
            seconds: clock.seconds(),
        })
    }

    /// From here on with kernel values in f64.
    fn turn_exact(&mut self) -> Result<(), Error> {
        self.operator = self.operator.exact();
        let n_samples = self.problem.n_samples();
        if self.settings.rank_for(n_samples) == n_samples {
            // The old factor goes before the new one comes.
            self.preconditioner = Box::new(Identity);
            (self.operator, self.preconditioner) = factorised(self.problem, self.operator)?;
        }
        Ok(())
    }

    /// Certifies the responses of α with coefficients of their own, and where that is not enough with α: the gap of the former can
    /// be larger by ‖K‖/λ.
    fn certify(
        &mut self,
        coefficients: Array2<f64>,
        clock: &mut Clock<'_>,
    ) -> Result<Certified, Error> {
        let (problem, operator) = (self.problem, self.operator);
        let responses = problem.responses(coefficients.view());
        let mut certified = problem.certify(operator, responses)?;
        self.products += 1;
        let missed = certified.certificate.relative_gap > self.settings.tol;
        if missed && self.answer == Answer::Coefficients {
            let coefficients = problem.without_rounding(coefficients);
            let pair = problem.certify_pair(operator, coefficients, &certified)?;
            self.products += 2;
            if pair.certificate.gap < certified.certificate.gap {
                certified = pair;
            }
        }
        let c = certified.certificate;
        let iteration = Iteration {
            iteration: self.iterations,
            objective: c.objective,
            primal: c.primal,
            dual: c.dual,
            gap: c.gap,
            relative_gap: c.relative_gap,
            violation: self.violation(&certified.responses, &certified.desired),
            free: share(&self.free(&certified.desired)),
            exact: true,
            kernel_products: self.products,
            seconds: clock.seconds(),
            block: None,
        };
        clock.tell(&iteration);
        Ok(certified)
    }

    fn violation(&self, responses: &Array2<f64>, desired: &Array2<f64>) -> f64 {
        let violations = self.problem.violations(responses.view(), desired.view());
        violations.into_iter().fold(0.0, f64::max)
    }

    /// Coordinates whose desired decision lies strictly inside its limits.
    fn free(&self, desired: &Array2<f64>) -> Array2<bool> {
        let limits = self.problem.limits();
        Array2::from_shape_fn(desired.dim(), |(j, i)| {
            limits.lower()[j] < desired[[j, i]] && desired[[j, i]] < limits.upper()[j]
        })
    }

    /// The gap between P(α) and D(x) in working precision. Where α is not that of the responses x the identity's first
    /// term takes one product.
    fn measure(
        &mut self,
        point: &Point,
        responses: &Array2<f64>,
        seconds: f64,
    ) -> Result<Iteration, Error> {
        let problem = self.problem;
        let mut gap = problem.mean_gap(responses, &point.desired);
        let mut offset = &point.coefficients - &problem.coefficients(responses.view());
        let largest = |a: &Array2<f64>| a.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        let scale = largest(&point.coefficients);
        // (û − (û − λα))/λ misses α by rounding; that is no difference.
        offset.mapv_inplace(|e| if e.abs() <= 1e-12 * scale { 0.0 } else { e });
        if offset.iter().any(|e| *e != 0.0) {
            let image = self.product(offset.view())?;
            let norm = crate::linalg::sums::dot(slice(&offset), slice(&image));
            gap += problem.regularization() * norm.max(0.0);
        }
        let primal = problem.primal(&point.coefficients, &point.desired);
        let dual = primal - gap;
        if !(primal.is_finite() && gap.is_finite()) {
            return Err(Error::Numerical { what: format!("the objective overflowed ({primal})") });
        }
        Ok(Iteration {
            iteration: self.iterations,
            objective: problem.mean_square() - dual,
            primal,
            dual,
            gap,
            relative_gap: problem.relative(gap, primal, dual),
            violation: self.violation(responses, &point.desired),
            free: share(&self.free(&point.desired)),
            exact: self.operator.is_exact(),
            kernel_products: self.products,
            seconds,
            block: None,
        })
    }

    fn product(&mut self, v: ArrayView2<'_, f64>) -> Result<Array2<f64>, Error> {
        let mut out = Array2::zeros(v.dim());
        self.operator.apply(v, out.view_mut())?;
        self.products += 1;
        Ok(out)
    }

    /// One Newton step with its line search. False where it was interrupted: the point is then unchanged.
    fn step(&mut self, point: &mut Point, clock: &mut Clock<'_>) -> Result<bool, Error> {
        let (problem, ridge) = (self.problem, self.problem.ridge());
        let limits = problem.limits();
        let free = self.free(&point.desired);
        let mut residual = Array2::zeros(free.dim());
        Zip::indexed(&mut residual)
            .and(&problem.decisions())
            .and(&point.desired)
            .and(&point.coefficients)
            .for_each(|(j, _), r, u, g, a| *r = u - limits.clamp(j, *g) - ridge * a);

        // Bound coordinates need no solve: (λI + DK)d = r reads λd = r there.
        let mut direction = Array2::zeros(free.dim());
        Zip::from(&mut direction)
            .and(&residual)
            .and(&free)
            .for_each(|d, r, free| *d = if *free { 0.0 } else { r / ridge });
        let mut image = if direction.iter().any(|d| *d != 0.0) {
            self.product(direction.view())?
        } else {
            Array2::zeros(free.dim())
        };
        let mut rhs = Array2::zeros(free.dim());
        Zip::from(&mut rhs)
            .and(&residual)
            .and(&image)
            .and(&free)
            .for_each(|b, r, kd, free| *b = if *free { r - kd } else { 0.0 });
        self.preconditioner.update(free.view())?;
        // K_FA d_A can make the right-hand side many times larger than the residual that the step is to remove.
        let norm = |a: ArrayView1<'_, f64>| a.dot(&a).sqrt();
        let targets: Vec<f64> = rhs
            .rows()
            .into_iter()
            .zip(residual.rows())
            .map(|(b, r)| (CG_TOL * norm(b)).min(FORCING * norm(r)))
            .collect();
        let solution = conjugate_gradient::solve(
            self.operator,
            self.preconditioner.as_ref(),
            free.view(),
            ridge,
            rhs,
            &targets,
            CG_PRODUCTS,
            clock,
        )?;
        self.products += solution.products;
        if !solution.finished {
            return Ok(false);
        }
        if solution.indefinite && !self.operator.is_exact() {
            self.turn_exact()?;
            point.desired = self.problem.desired(self.operator, &point.coefficients)?;
            self.products += 1;
            return self.step(point, clock);
        }
        direction += &solution.direction;
        image += &solution.image;

        let mut steps = self.search(point, &direction, &image);
        if steps.iter().any(|step| matches!(step, Step::Uphill)) {
            // CG was too loose there; the residual itself always descends.
            let along_residual = self.product(residual.view())?;
            for (j, step) in steps.iter().enumerate() {
                if matches!(step, Step::Uphill) {
                    direction.row_mut(j).assign(&residual.row(j));
                    image.row_mut(j).assign(&along_residual.row(j));
                }
            }
            steps = self.search(point, &direction, &image);
        }
        for (j, step) in steps.iter().enumerate() {
            let t = if let Step::At(t) = step { *t } else { 0.0 };
            point.coefficients.row_mut(j).scaled_add(t, &direction.row(j));
            point.desired.row_mut(j).scaled_add(t, &image.row(j));
        }
        self.iterations += 1;
        Ok(true)
    }

    fn search(&self, point: &Point, direction: &Array2<f64>, image: &Array2<f64>) -> Vec<Step> {
        let (problem, n) = (self.problem, self.problem.n_samples());
        let limits = problem.limits();
        let decisions = problem.decisions();
        let decisions = decisions.as_slice().expect("a problem keeps decisions in standard layout");
        let part = |values: &'_ [f64], j: usize| -> std::ops::Range<usize> {
            debug_assert!(values.len() >= (j + 1) * n);
            j * n..(j + 1) * n
        };
        (0..problem.decision_dim())
            .into_par_iter()
            .map(|j| {
                let range = part(decisions, j);
                Line {
                    decisions: &decisions[range.clone()],
                    coefficients: &slice(&point.coefficients)[range.clone()],
                    desired: &slice(&point.desired)[range.clone()],
                    direction: &slice(direction)[range.clone()],
                    kernel_direction: &slice(image)[range],
                    lower: limits.lower()[j],
                    upper: limits.upper()[j],
                    ridge: problem.ridge(),
                }
                .search()
            })
            .collect()
    }
}

fn share(mask: &Array2<bool>) -> f64 {
    mask.iter().filter(|free| **free).count() as f64 / mask.len() as f64
}
