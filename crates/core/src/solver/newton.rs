//! The exact solver: semismooth Newton with an exact line search, its systems solved by preconditioned CG.
//!
//! Enters: a problem and an operator. Leaves: an outcome whose certificate the problem recomputed with the f64 kernel.
//! The root of r(α) = û − X(Kα) − λα is the optimum. With RRᵀ the derivative of X at g and r = Ry + w, where y = RᵀΘr, the Newton direction
//! is d = Rc + w/λ with (RᵀKR + λI) c = y − RᵀKw/λ. For boxes and Θ = I the matrix R selects the coordinates F strictly inside their limits,
//! w is the residual of the rest, and the dimensions are separate systems. P is convex, once differentiable and piecewise
//! quadratic, so the line search makes this converge from anywhere, and at the end in a finite number of steps.
//!
//! Steps run in the operator's working precision until the gap is small; then α is replaced by that of the nearest feasible
//! responses where this does not lose what was gained, g = Kα is computed with the f64 kernel, and the remaining steps
//! correct the exact residual. What is returned is always such an exact point. Where rounded kernel values stop the correction, its products turn exact too.

use super::clock::Clock;
use super::conjugate_gradient::System;
use super::line_search::{CoupledLine, Line, Preference, Step};
use super::observer::{Iteration, Observer};
use super::outcome::{Outcome, Status};
use crate::decision_set::{Boxes, Face, Polyhedra, Prices, SampleSets};
use crate::error::Error;
use crate::operator::KernelOperator;
use crate::precond::{Coupled, Direct, Identity, LowRank, Preconditioner, RankLimits, Woodbury};
use crate::problem::{Certified, Decided, Problem, Values, slice};
use crate::random::stream;
use ndarray::{Array2, ArrayView2, concatenate, s};
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

    /// The largest rank worth its cost where all `decision_dim` dimensions are one system: its matrix has rank · dimensions rows.
    pub fn coupled_rank_for(&self, n_samples: usize, decision_dim: usize) -> usize {
        let automatic = n_samples.min((COUPLED_ROWS / decision_dim).max(20));
        self.max_rank.unwrap_or(automatic).min(automatic)
    }

    /// The largest rank worth its cost where K + λI is not factorised. Products grow with N², what a rank costs with N: hopper,
    /// medium and expert mixed, N = 20,000, k = 1e-6, takes 200, 95, 40, 29 products at rank 500, 1000, 2000, 3000, and is fastest at
    /// 2000. Where less will do, the factor stops by itself.
    pub fn partial_rank_for(n_samples: usize) -> usize {
        let growing = (n_samples / 10).min(2500);
        (n_samples / 6).clamp(500, 1000).max(growing).min(n_samples / 2 + 1)
    }
}

/// Samples up to which factorising K + λI costs less than iterating: measured on hopper-expert, k = 1e-6, two cores, where 2500
/// take 0.35 against 0.44 s, 3000 the same, 4000 1.0 against 0.75 s.
const FACTORISED: usize = 2800;
/// Rows of the coupled preconditioner's matrix at most.
const COUPLED_ROWS: usize = 2400;
/// trace(K − BᵀB)/λ at which the preconditioner is good enough.
const ENOUGH_TRACE: f64 = 200.0;
/// Relative residual the Newton systems are solved to.
const CG_TOL: f64 = 1e-2;
/// And to this share of the residual that the step is to remove. On noiseless saturated data (N = 200) the first bound alone takes
/// 100 steps and fails; with 0.01, 0.1, 0.3 here it takes 8, 10, 16, and hopper-expert (N = 5000) 88, 71, 61 products.
const FORCING: f64 = 0.1;
/// Where more than this share of the expert's decisions sits on a limit, the first steps are those of problems with a larger λ, by
/// these factors: their smoother answers find the bound samples sooner (half of hopper-expert saturated, N = 5000: 17 steps without).
const SATURATED: f64 = 0.3;
const EASING: [f64; 2] = [16.0, 4.0];
/// Relative residual the systems of those steps are solved to.
const EASING_TOL: f64 = 1e-2;
/// Products a Newton system may take.
const CG_PRODUCTS: usize = 400;
/// Share of the tolerance to reach in working precision before the point is certified with the exact kernel.
const APPROACH: f64 = 0.1;
/// Relative gap below which lack of progress means the end of precision.
const NEAR: f64 = 1e-8;
/// Relative decrease of the primal value below which there is none.
const ROUNDING: f64 = 1e-14;
/// Share of the gap that P may rise by in a full step that halves the residual.
const SLACK: f64 = 1e-3;
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

/// The same where all dimensions are one system, as with constraints: [`bytes`] with the faces and the preconditioner of polyhedra.
pub fn coupled_bytes(n_samples: usize, decision_dim: usize, rank: usize) -> u64 {
    let arrays = 20 * n_samples * decision_dim * size_of::<f64>();
    // Of the point, of the point being made from what the tasks found, and of the preconditioner.
    let faces = 4 * n_samples as u64 * Face::bytes(decision_dim);
    arrays as u64 + faces + Coupled::bytes(n_samples, rank, decision_dim)
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
    let start = (Array2::zeros(shape), Array2::zeros(shape));
    let operator = &problem.weigh(operator)?;
    solve_from(problem, operator, settings, seed, start, Answer::Coefficients, observer)?
        .finished(problem)
}

/// What the tolerance is about.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Answer {
    /// Any α with a small gap to its responses.
    Coefficients,
    /// Responses whose own α = (û − x)/λ has a small gap: what a block of SSO passes on.
    Responses,
}

/// As [`solve`], from coefficients whose desired decisions are known, with an operator that has the problem's weights.
pub(crate) fn solve_from(
    problem: &Problem,
    operator: &dyn KernelOperator,
    settings: &NewtonSettings,
    seed: u64,
    (coefficients, desired): (Array2<f64>, Array2<f64>),
    answer: Answer,
    observer: &mut dyn Observer,
) -> Result<Outcome, Error> {
    settings.validate()?;
    let mut clock = Clock::new(settings.time_limit, observer);
    let (operator, preconditioner) =
        preconditioned(problem, operator, settings, seed, problem.ridge(), &mut clock)?;
    let parts = Assembled { operator, preconditioner };
    solve_with(problem, parts, settings, (coefficients, desired), answer, &mut clock)
}

/// An operator and the preconditioner of its systems.
pub(crate) struct Assembled<'a> {
    pub(crate) operator: &'a dyn KernelOperator,
    pub(crate) preconditioner: Box<dyn Preconditioner + 'a>,
}

/// As [`solve_from`], with a preconditioner that is there already.
pub(crate) fn solve_with<'a>(
    problem: &'a Problem,
    Assembled { operator, preconditioner }: Assembled<'a>,
    settings: &'a NewtonSettings,
    (coefficients, desired): (Array2<f64>, Array2<f64>),
    answer: Answer,
    clock: &mut Clock<'_>,
) -> Result<Outcome, Error> {
    let newton = Newton {
        problem,
        operator,
        gap: 0.0,
        settings,
        answer,
        preconditioner,
        products: 0,
        iterations: 0,
        rescued: 0,
    };
    let start = Point::new(problem, coefficients, desired)?;
    newton.run(start, clock)
}

/// A preconditioner for the systems of `problem`, good enough for a λ of `finest` too, and the operator it is of.
pub(crate) fn preconditioned<'a>(
    problem: &Problem,
    operator: &'a dyn KernelOperator,
    settings: &NewtonSettings,
    seed: u64,
    finest: f64,
    clock: &mut Clock<'_>,
) -> Result<(&'a dyn KernelOperator, Box<dyn Preconditioner + 'a>), Error> {
    let (n_samples, dim) = (problem.n_samples(), problem.decision_dim());
    let separate = matches!(problem.sets(), SampleSets::Boxes(_));
    let max_rank = if separate {
        settings.rank_for(n_samples)
    } else {
        settings.coupled_rank_for(n_samples, dim)
    };
    if separate && max_rank == n_samples {
        return factorised(problem, operator);
    }
    let limits = RankLimits { max_rank, enough_trace: ENOUGH_TRACE * finest };
    let mut rng = stream(seed, "pivots");
    let factor = LowRank::build(operator, limits, &mut rng, || !clock.poll())?;
    let preconditioner: Box<dyn Preconditioner + 'a> = if separate {
        Box::new(Woodbury::new(factor, problem.ridge(), dim))
    } else {
        Box::new(Coupled::new(factor, problem.ridge(), dim))
    };
    Ok((operator, preconditioner))
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

/// α with its desired decisions g, in working precision, and X(g).
pub(crate) struct Point {
    pub(crate) coefficients: Array2<f64>,
    pub(crate) desired: Array2<f64>,
    pub(crate) decided: Decided,
}

impl Point {
    fn new(
        problem: &Problem,
        coefficients: Array2<f64>,
        desired: Array2<f64>,
    ) -> Result<Self, Error> {
        let decided = problem.decide(&desired, None)?;
        Ok(Self { coefficients, desired, decided })
    }
}

/// What a step starts with: the residual taken apart, r = R·inside + w, and d = w/λ with its image.
struct Prepared {
    /// λ, or more for the first steps of saturated problems.
    ridge: f64,
    residual: Array2<f64>,
    inside: Array2<f64>,
    direction: Array2<f64>,
    image: Array2<f64>,
}

struct Newton<'a> {
    problem: &'a Problem,
    operator: &'a dyn KernelOperator,
    /// The gap where the step starts.
    gap: f64,
    settings: &'a NewtonSettings,
    answer: Answer,
    preconditioner: Box<dyn Preconditioner + 'a>,
    products: usize,
    iterations: usize,
    /// Decisions that the small quadratic programs' fallback had to find.
    rescued: usize,
}

impl Newton<'_> {
    fn run(mut self, start: Point, clock: &mut Clock<'_>) -> Result<Outcome, Error> {
        let easing = self.easing(&start);
        let point = self.approach(start, easing, clock)?;
        self.correct(point, clock)
    }

    /// Factors on λ for the first steps.
    fn easing(&self, start: &Point) -> &'static [f64] {
        let SampleSets::Boxes(boxes) = self.problem.sets() else { return &[] };
        let decisions = self.problem.decisions();
        let on_limit = decisions
            .indexed_iter()
            .filter(|((j, i), u)| **u <= boxes.lower(*j, *i) || boxes.upper(*j, *i) <= **u)
            .count() as f64;
        let from_nothing = start.coefficients.iter().all(|a| *a == 0.0);
        if from_nothing && on_limit > SATURATED * decisions.len() as f64 { &EASING } else { &[] }
    }

    /// Newton steps in working precision, to a gap where the exact kernel takes over.
    fn approach(
        &mut self,
        mut point: Point,
        easing: &[f64],
        clock: &mut Clock<'_>,
    ) -> Result<Point, Error> {
        let target = APPROACH * self.settings.tol;
        let (mut best, mut idle) = (f64::INFINITY, 0);
        let (mut lowest, mut stuck) = (f64::INFINITY, 0);
        for factor in easing.iter().copied().chain(std::iter::repeat(1.0)) {
            let responses = self.problem.responses(point.coefficients.view())?;
            let offset = self.offset(&point, &responses);
            let (prepared, image) = self.prepare(&point, factor, offset.as_ref())?;
            let offset = offset.as_ref().zip(image.as_ref());
            let iteration = self.measure(&point, &responses, offset, clock.seconds())?;
            clock.tell(&iteration);
            self.gap = iteration.gap;
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
            if done || !self.step(&mut point, prepared, clock)? {
                break;
            }
        }
        Ok(point)
    }

    /// Newton steps on the exact residual, each ending with a certificate.
    fn correct(mut self, point: Point, clock: &mut Clock<'_>) -> Result<Outcome, Error> {
        let problem = self.problem;
        let mut best = self.certify(point.coefficients, clock)?;
        let from = |certified: &Certified| {
            Point::new(problem, certified.coefficients.clone(), certified.desired.clone())
        };
        let mut point = from(&best)?;
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
                let (prepared, _) = self.prepare(&point, 1.0, None)?;
                if !self.step(&mut point, prepared, clock)? {
                    continue;
                }
            } else if self.operator.is_exact() {
                break Status::Stalled;
            } else {
                // Rounding of kernel values has the last word: on in f64, recomputing them, from where this got.
                self.turn_exact()?;
                point = self.approach(from(&best)?, &[], clock)?;
                idle = 0;
            }
            let next = self.certify(point.coefficients, clock)?;
            point = from(&next)?;
            idle = if next.certificate.gap < 0.5 * best.certificate.gap { 0 } else { idle + 1 };
            if next.certificate.gap < best.certificate.gap {
                best = next;
            }
        };
        Ok(Outcome {
            certified: best,
            weights: None,
            theta: None,
            prices: Prices::default(),
            status,
            iterations: self.iterations,
            kernel_products: self.products,
            rescued_decisions: self.rescued,
            seconds: clock.seconds(),
        })
    }

    /// From here on with kernel values in f64.
    fn turn_exact(&mut self) -> Result<(), Error> {
        self.operator = self.operator.exact();
        let n_samples = self.problem.n_samples();
        let separate = matches!(self.problem.sets(), SampleSets::Boxes(_));
        if separate && self.settings.rank_for(n_samples) == n_samples {
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
        let responses = problem.responses(coefficients.view())?;
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
        let decided = problem.decide(&certified.desired, None)?;
        let iteration = Iteration {
            iteration: self.iterations,
            objective: c.objective,
            primal: c.primal,
            dual: c.dual,
            gap: c.gap,
            relative_gap: c.relative_gap,
            violation: self.violation(&certified.responses, &decided),
            free: decided.faces.free_share(problem.decision_dim()),
            exact: true,
            kernel_products: self.products,
            seconds: clock.seconds(),
            block: None,
        };
        clock.tell(&iteration);
        self.gap = c.gap;
        Ok(certified)
    }

    fn violation(&self, responses: &Array2<f64>, decided: &Decided) -> f64 {
        let violations = self.problem.violations(responses.view(), decided.decisions.view());
        violations.into_iter().fold(0.0, f64::max)
    }

    /// α − (û − x)/λ, where that is not zero: (û − (û − λα))/λ misses α by rounding, which is no difference.
    fn offset(&self, point: &Point, responses: &Array2<f64>) -> Option<Array2<f64>> {
        let largest = |a: &Array2<f64>| a.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        let scale = largest(&point.coefficients);
        let mut offset = &point.coefficients - &self.problem.coefficients(responses.view());
        offset.mapv_inplace(|e| if e.abs() <= 1e-12 * scale { 0.0 } else { e });
        offset.iter().any(|e| *e != 0.0).then_some(offset)
    }

    /// The gap between P(α) and D(x) in working precision. Where α is not that of the responses x the identity's first
    /// term takes their difference with its image.
    fn measure(
        &mut self,
        point: &Point,
        responses: &Array2<f64>,
        offset: Option<(&Array2<f64>, &Array2<f64>)>,
        seconds: f64,
    ) -> Result<Iteration, Error> {
        let problem = self.problem;
        let decided = &point.decided;
        let mut gap = problem.gaps(responses, &point.desired, &decided.decisions);
        if let Some((offset, image)) = offset {
            let norms = problem.squared_norms(offset, image);
            gap.iter_mut().zip(norms).for_each(|(gap, norm)| *gap += norm.max(0.0));
        }
        let primal = problem.primals(&point.coefficients, &point.desired, &decided.decisions);
        let values = Values::below(primal, gap);
        let (primal, dual, gap) = (values.total_primal(), values.total_dual(), values.total_gap());
        if !(primal.is_finite() && gap.is_finite()) {
            return Err(Error::Numerical { what: format!("the objective overflowed ({primal})") });
        }
        Ok(Iteration {
            iteration: self.iterations,
            objective: problem.mean_square() - dual,
            primal,
            dual,
            gap,
            relative_gap: problem.relative_gap(&values)?,
            violation: self.violation(responses, decided),
            free: decided.faces.free_share(problem.decision_dim()),
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

    /// The parts of the residual that need no solve, for λ times `factor`. The product they take is shared with `offset`, whose image comes
    /// second.
    fn prepare(
        &mut self,
        point: &Point,
        factor: f64,
        offset: Option<&Array2<f64>>,
    ) -> Result<(Prepared, Option<Array2<f64>>), Error> {
        let (problem, ridge) = (self.problem, factor * self.problem.ridge());
        let residual =
            &problem.decisions() - &point.decided.decisions - &(&point.coefficients * ridge);
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
        Ok((Prepared { ridge, residual, inside, direction, image }, offset_image))
    }

    /// One Newton step with its line search. False where it was interrupted: the point is then unchanged.
    fn step(
        &mut self,
        point: &mut Point,
        prepared: Prepared,
        clock: &mut Clock<'_>,
    ) -> Result<bool, Error> {
        let Prepared { ridge, residual, inside, mut direction, mut image } = prepared;
        let eased = ridge > self.problem.ridge();
        let faces = &point.decided.faces;
        let mut rhs = image.clone();
        let n_systems = if faces.is_separate() { rhs.nrows() } else { 1 };
        let systems: Vec<usize> = (0..n_systems).collect();
        faces.reduce(&systems, &mut rhs);
        rhs = inside - rhs;
        self.preconditioner.update(faces)?;
        let preconditioner = self.preconditioner.as_ref();
        let decision_dim = self.problem.decision_dim();
        let system = System { operator: self.operator, preconditioner, faces, ridge, decision_dim };
        // K_FA d_A can make the right-hand side many times larger than the residual that the step is to remove.
        let targets: Vec<f64> = system
            .norms(&rhs)
            .iter()
            .zip(system.norms(&residual))
            .map(|(b, r)| if eased { EASING_TOL * b } else { (CG_TOL * b).min(FORCING * r) })
            .collect();
        let solution = system.solve(rhs, &targets, CG_PRODUCTS, clock)?;
        self.products += solution.products;
        if !solution.finished {
            return Ok(false);
        }
        if solution.indefinite && !self.operator.is_exact() {
            self.turn_exact()?;
            let desired = self.problem.desired(self.operator, &point.coefficients)?;
            self.products += 1;
            *point = Point::new(self.problem, point.coefficients.clone(), desired)?;
            let (prepared, _) = self.prepare(point, ridge / self.problem.ridge(), None)?;
            return self.step(point, prepared, clock);
        }
        direction += &solution.direction;
        image += &solution.image;

        let preference = if eased { Preference::Full } else { Preference::Nearer };
        let mut steps = self.search(point, &direction, &image, preference)?;
        if steps.iter().any(|step| matches!(step, Step::Uphill)) {
            // CG was too loose there; the residual itself always descends.
            let along_residual = self.product(residual.view())?;
            for (j, step) in steps.iter().enumerate() {
                if matches!(step, Step::Uphill) {
                    direction.row_mut(j).assign(&residual.row(j));
                    image.row_mut(j).assign(&along_residual.row(j));
                }
            }
            steps = self.search(point, &direction, &image, Preference::Nearer)?;
        }
        for (j, step) in steps.iter().enumerate() {
            let t = if let Step::At(t) = step { *t } else { 0.0 };
            point.coefficients.row_mut(j).scaled_add(t, &direction.row(j));
            point.desired.row_mut(j).scaled_add(t, &image.row(j));
        }
        point.decided = self.problem.decide(&point.desired, Some(&point.decided.faces))?;
        self.rescued += point.decided.faces.rescued();
        self.iterations += 1;
        Ok(true)
    }

    /// What a full step may add to N·P.
    fn slack(&self) -> f64 {
        SLACK * self.gap * self.problem.n_samples() as f64
    }

    /// A step for each dimension.
    fn search(
        &self,
        point: &Point,
        direction: &Array2<f64>,
        image: &Array2<f64>,
        preference: Preference,
    ) -> Result<Vec<Step>, Error> {
        match self.problem.sets() {
            SampleSets::Boxes(boxes) => {
                self.search_boxes(boxes, point, direction, image, preference)
            }
            SampleSets::Polyhedra(polyhedra) => {
                self.search_polyhedra(polyhedra, point, direction, image)
            }
        }
    }

    fn search_boxes(
        &self,
        boxes: &Boxes,
        point: &Point,
        direction: &Array2<f64>,
        image: &Array2<f64>,
        preference: Preference,
    ) -> Result<Vec<Step>, Error> {
        let (problem, n) = (self.problem, self.problem.n_samples());
        let slack = self.slack() / problem.decision_dim() as f64;
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
                    offset: problem.offset().map(|offset| &slice(offset)[range]),
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
        direction: &Array2<f64>,
        image: &Array2<f64>,
    ) -> Result<Vec<Step>, Error> {
        let line = CoupledLine {
            problem: self.problem,
            polyhedra,
            faces: &point.decided.faces,
            coefficients: &point.coefficients,
            desired: &point.desired,
            direction,
            kernel_direction: image,
            slack: self.slack(),
        };
        let step = line.search()?;
        let all = 0..self.problem.decision_dim();
        Ok(all.map(|_| if let Step::At(t) = step { Step::At(t) } else { Step::Uphill }).collect())
    }
}
