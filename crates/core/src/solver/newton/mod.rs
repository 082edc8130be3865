//! The exact solver: semismooth Newton with an exact line search, its systems solved by
//! preconditioned CG.
//!
//! Enters: a problem and an operator. Leaves: an outcome whose certificate the problem recomputed
//! with the f64 kernel. The root of r(α) = û − X(Kα) − λα is the optimum. P is convex, once
//! differentiable and piecewise quadratic, so the line search makes Newton's method converge from
//! anywhere, and at the end in a finite number of steps (`step` has the step itself, `assembled`
//! what it multiplies with).
//!
//! Steps run in the operator's working precision until the gap is small; then α is replaced by that
//! of the nearest feasible responses where this does not lose what was gained, g = Kα is computed
//! with the f64 kernel, and the remaining steps correct the exact residual. What is returned is
//! always such an exact point. Where rounded kernel values stop the correction, its products turn
//! exact too.

mod assembled;
mod ladder;
mod nearby;
mod progress;
mod settings;
mod step;

pub(crate) use assembled::Assembled;
pub use settings::{NewtonSettings, bytes, coupled_bytes};

use super::clock::Clock;
use super::line_search::StepLength;
use super::observer::{Iteration, Observer};
use super::outcome::{Effort, Outcome, Status};
use super::state::State;
use crate::error::Error;
use crate::linalg::entries::filled;
use crate::operator::KernelOperator;
use crate::problem::{Certificate, Certified, Decided, Problem, Values};
use ndarray::{Array2, ArrayView2};
use progress::Progress;
use step::{Moved, Start};

/// Where more than this share of the expert's decisions sits on a limit, the first steps are those
/// of problems with a larger λ, by these factors: their smoother answers find the bound samples
/// sooner (ADR 0010, 0018).
const SATURATED: f64 = 0.3;
const EASING: [f64; 2] = [16.0, 4.0];
/// Share of the tolerance to reach in working precision before the point is certified with the
/// exact kernel.
const APPROACH: f64 = 0.1;

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

/// As [`solve`], from coefficients whose desired decisions are known, with an operator that has the
/// problem's weights.
pub(crate) fn solve_from(
    problem: &Problem,
    operator: &dyn KernelOperator,
    settings: &NewtonSettings,
    seed: u64,
    start: (Array2<f64>, Array2<f64>),
    answer: Answer,
    observer: &mut dyn Observer,
) -> Result<Outcome, Error> {
    settings.validate()?;
    let mut clock = Clock::new(settings.time_limit, observer);
    let parts =
        Assembled::new(problem, operator, settings, (seed, None), problem.ridge(), &mut clock)?;
    solve_with(problem, parts, settings, start, answer, &mut clock)
}

/// As [`solve_from`], with a preconditioner that is there already.
pub(crate) fn solve_with<'a>(
    problem: &'a Problem,
    mut parts: Assembled<'a>,
    settings: &'a NewtonSettings,
    mut start: (Array2<f64>, Array2<f64>),
    answer: Answer,
    clock: &mut Clock<'_>,
) -> Result<Outcome, Error> {
    let mut spent = Effort::default();
    if answer == Answer::Coefficients && start.0.iter().all(|a| *a == 0.0) {
        (start, spent) = ladder::come_down(problem, &mut parts, settings, start, clock)?;
    }
    let (coefficients, desired) = start;
    let point = Point::new(problem, coefficients, desired)?;
    Newton::new(problem, parts, settings, answer).after(spent).run(point, clock)
}

/// As [`solve_with`], from a point that is thought to be near the optimum, such as that of most of
/// the rows.
pub(crate) fn solve_nearby<'a>(
    problem: &'a Problem,
    parts: Assembled<'a>,
    settings: &'a NewtonSettings,
    (coefficients, desired): (Array2<f64>, Array2<f64>),
    clock: &mut Clock<'_>,
) -> Result<Outcome, Error> {
    let mut point = Point::new(problem, coefficients, desired)?;
    let nothing = Point::new(problem, zeros(problem), zeros(problem))?;
    if point.primal(problem) > nothing.primal(problem) {
        // Such as what is left where others' coefficients, that balanced these, were dropped.
        let start = (nothing.coefficients, nothing.desired);
        return solve_with(problem, parts, settings, start, Answer::Coefficients, clock);
    }
    let mut newton = Newton::new(problem, parts, settings, Answer::Coefficients);
    newton.draw_near(&mut point, clock)?;
    newton.run(point, clock)
}

fn zeros(problem: &Problem) -> Array2<f64> {
    Array2::zeros(problem.decisions().dim())
}

/// α with its desired decisions g, in working precision, and X(g).
pub(crate) struct Point {
    pub(crate) coefficients: Array2<f64>,
    pub(crate) desired: Array2<f64>,
    pub(crate) decided: Decided,
}

impl Point {
    /// Goes so far along a direction in each dimension.
    fn advance(
        &mut self,
        problem: &Problem,
        steps: &[StepLength],
        direction: &Array2<f64>,
        image: &Array2<f64>,
    ) -> Result<(), Error> {
        for (j, step) in steps.iter().enumerate() {
            let t = if let StepLength::At(t) = step { *t } else { 0.0 };
            self.coefficients.row_mut(j).scaled_add(t, &direction.row(j));
            self.desired.row_mut(j).scaled_add(t, &image.row(j));
        }
        self.decided = problem.decide(&self.desired, Some(&self.decided.faces))?;
        Ok(())
    }

    /// P.
    fn primal(&self, problem: &Problem) -> f64 {
        let decisions = &self.decided.decisions;
        problem.primals(&self.coefficients, &self.desired, decisions).iter().sum()
    }

    fn new(
        problem: &Problem,
        coefficients: Array2<f64>,
        desired: Array2<f64>,
    ) -> Result<Self, Error> {
        let decided = problem.decide(&desired, None)?;
        Ok(Self { coefficients, desired, decided })
    }

    fn of(problem: &Problem, certified: &Certified) -> Result<Self, Error> {
        Self::new(problem, certified.coefficients.clone(), certified.desired.clone())
    }
}

struct Newton<'a> {
    problem: &'a Problem,
    parts: Assembled<'a>,
    settings: &'a NewtonSettings,
    answer: Answer,
    products: usize,
    iterations: usize,
    /// Decisions that the small quadratic programs' fallback had to find.
    rescued: usize,
    /// Whether the point has arrived where it is to be certified, before the first step.
    arrived: bool,
}

/// Which residual the steps remove.
#[derive(Clone, Copy, PartialEq)]
enum Phase {
    /// That of the working precision, from any point, up to where the exact kernel takes over.
    Approach,
    /// The exact one, each step ending with a certificate.
    Correct,
}

impl<'a> Newton<'a> {
    fn new(
        problem: &'a Problem,
        parts: Assembled<'a>,
        settings: &'a NewtonSettings,
        answer: Answer,
    ) -> Self {
        let (products, iterations, rescued) = (0, 0, 0);
        let arrived = false;
        Self { problem, parts, settings, answer, products, iterations, rescued, arrived }
    }

    /// The same, counting what was done before.
    fn after(self, spent: Effort) -> Self {
        let Effort { iterations, kernel_products: products, rescued_decisions: rescued, .. } =
            spent;
        Self { products, iterations, rescued, ..self }
    }
}

impl Newton<'_> {
    fn run(mut self, mut point: Point, clock: &mut Clock<'_>) -> Result<Outcome, Error> {
        let problem = self.problem;
        let mut factors = self.easing(&point).iter();
        let mut phase = Phase::Approach;
        let mut approach = Progress::default();
        let mut correction = Progress::default();
        let mut best: Option<Certified> = None;
        let status = loop {
            if phase == Phase::Approach && !self.arrived {
                let factor = factors.next().copied().unwrap_or(1.0);
                let (start, seen) = self.measure(&point, factor, clock)?;
                let arrived = seen.relative_gap <= APPROACH * self.settings.tol
                    || approach.is_exhausted(&seen)
                    || self.iterations >= self.settings.max_iterations
                    || clock.poll();
                if !arrived && self.step(&mut point, start, clock)? == Moved::On {
                    continue;
                }
            }

            let next = self.certify(point.coefficients, clock)?;
            point = Point::of(problem, &next)?;
            let gap = next.certificate.gap;
            correction.note_gap(gap);
            let best = match &mut best {
                Some(best) if best.certificate.gap <= next.certificate.gap => best,
                best => best.insert(next),
            };
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

            if !correction.is_idle() {
                phase = Phase::Correct;
                let (start, _) = self.start(&point, 1.0, None)?;
                if self.step(&mut point, Start { gap, ..start }, clock)? == Moved::Interrupted {
                    break clock.stopped.unwrap_or(Status::Interrupted);
                }
            } else if self.parts.operator.is_exact() {
                break Status::Stalled;
            } else {
                // Rounding of kernel values has the last word: on in f64, recomputing them, from
                // the best point.
                self.parts.turn_exact(problem)?;
                point = Point::of(problem, best)?;
                phase = Phase::Approach;
                approach = Progress::default();
                correction = Progress::since(best.certificate.gap);
            }
        };
        let mut certified = best.expect("a loop that ends has certified a point");
        let led_astray = matches!(status, Status::Stalled | Status::MaxIterations);
        if led_astray && self.answer == Answer::Coefficients {
            // Where rounding has led astray, nothing at all may be the better model.
            let nothing = Array2::zeros(problem.decisions().dim());
            let nothing =
                problem.certify(self.parts.operator, problem.responses(nothing.view())?)?;
            self.products += 1;
            if nothing.certificate.primal < certified.certificate.primal {
                certified = nothing;
            }
        }
        Ok(Outcome::new(certified, status, self.effort(clock)))
    }

    /// Factors on λ for the first steps.
    fn easing(&self, start: &Point) -> &'static [f64] {
        let share = self.problem.sets().share_on_limits(self.problem.decisions());
        let from_nothing = start.coefficients.iter().all(|a| *a == 0.0);
        if from_nothing && share.is_some_and(|share| share > SATURATED) { &EASING } else { &[] }
    }

    fn effort(&self, clock: &Clock<'_>) -> Effort {
        Effort {
            iterations: self.iterations,
            kernel_products: self.products,
            rescued_decisions: self.rescued,
            seconds: clock.seconds(),
        }
    }

    /// Certifies the responses of α with coefficients of their own, and where that is not enough
    /// with α: the gap of the former can be larger by ‖K‖/λ.
    fn certify(
        &mut self,
        coefficients: Array2<f64>,
        clock: &mut Clock<'_>,
    ) -> Result<Certified, Error> {
        let (problem, operator) = (self.problem, self.parts.operator);
        let responses = problem.responses(coefficients.view())?;
        let certified = if std::mem::take(&mut self.arrived) {
            self.products += 1;
            problem.certify_alone(operator, problem.without_rounding(coefficients), responses)?
        } else {
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
            certified
        };
        let decided = problem.decide(&certified.desired, None)?;
        let seen = Iteration {
            exact: true,
            ..self.seen(&certified.certificate, &certified.responses, &decided, clock)
        };
        clock.tell(&seen);
        clock.offer(&|| State::of(problem, &certified.coefficients));
        Ok(certified)
    }

    /// What a step from the point starts with, and the point's bounds in working precision.
    fn measure(
        &mut self,
        point: &Point,
        factor: f64,
        clock: &mut Clock<'_>,
    ) -> Result<(Start, Iteration), Error> {
        let problem = self.problem;
        let responses = problem.responses(point.coefficients.view())?;
        let offset = self.offset(point, &responses);
        let (start, image) = self.start(point, factor, offset.as_ref())?;
        let decided = &point.decided;
        let mut gap = problem.gaps(&responses, &point.desired, &decided.decisions);
        // Where α is not that of the responses x the identity's first term takes their difference
        // with its image.
        if let Some((offset, image)) = offset.as_ref().zip(image.as_ref()) {
            let norms = problem.squared_norms(offset, image);
            gap.iter_mut().zip(norms).for_each(|(gap, norm)| *gap += norm.max(0.0));
        }
        let primal = problem.primals(&point.coefficients, &point.desired, &decided.decisions);
        let values = Values::below(primal, gap);
        let objective = problem.mean_square() - values.total_dual();
        let bounds = problem.bounds(&values, objective)?;
        let seen = self.seen(&bounds, &responses, decided, clock);
        clock.tell(&seen);
        clock.offer(&|| State::of(problem, &point.coefficients));
        Ok((Start { gap: seen.gap, ..start }, seen))
    }

    fn seen(
        &self,
        bounds: &Certificate,
        responses: &Array2<f64>,
        decided: &Decided,
        clock: &Clock<'_>,
    ) -> Iteration {
        Iteration {
            exact: self.parts.operator.is_exact(),
            kernel_products: self.products,
            seconds: clock.seconds(),
            ..Iteration::at(self.iterations, bounds, self.problem, responses, decided)
        }
    }

    /// α − (û − x)/λ, where that is not zero: (û − (û − λα))/λ misses α by rounding, which is no
    /// difference.
    fn offset(&self, point: &Point, responses: &Array2<f64>) -> Option<Array2<f64>> {
        let largest = |a: &Array2<f64>| a.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        let scale = largest(&point.coefficients);
        let (decisions, ridge) = (self.problem.decisions(), self.problem.ridge());
        let offset = filled(responses.dim(), |j, i| {
            let own = (decisions[[j, i]] - responses[[j, i]]) / ridge;
            let e = point.coefficients[[j, i]] - own;
            if e.abs() <= 1e-12 * scale { 0.0 } else { e }
        });
        offset.iter().any(|e| *e != 0.0).then_some(offset)
    }

    fn product(&mut self, v: ArrayView2<'_, f64>) -> Result<Array2<f64>, Error> {
        let mut out = Array2::zeros(v.dim());
        self.parts.operator.apply(v, out.view_mut())?;
        self.products += 1;
        Ok(out)
    }
}
