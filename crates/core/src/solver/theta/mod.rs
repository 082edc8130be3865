//! Learns θ_uu = Θ ⪰ I together with the coefficients: [KIO 6], by projected Newton on Θ.
//!
//! Enters: a problem with Θ = I and an operator. Leaves: an outcome with Θ, its multiplier and a
//! certificate of the whole. For fixed Θ the inner problem is (Q); with A = mean ûûᵀ, B(x) = A −
//! mean xxᵀ and x its optimum,
//!
//! ```text
//! Φ(Θ) = k‖Θ‖² + max over x of Tr(ΘB(x)) − k‖α‖²_K,        ∇Φ = 2kΘ + B(x),
//! ∇²Φ[Ξ] = 2kΞ − mean(ẋxᵀ + xẋᵀ),      ẋ = −λRq,   (RᵀKR + λI) q = RᵀΞx.
//! ```
//!
//! Any feasible x gives a lower bound with Θ_x = V max(E, 1)Vᵀ, −B(x)/(2k) = V diag(E) Vᵀ, and P_x
//! = 2kΘ_x + B(x) ⪰ 0. The gap is a sum of nonnegative terms: that of the inner problem, k‖Θ −
//! Θ_x‖² and Tr((Θ − I)P_x). Θ is known to √(gap/k).

mod curvature;
mod quadratic_model;

use super::clock::{Clock, Within};
use super::newton::{self, Answer, Assembled, NewtonSettings};
use super::observer::{Iteration, Observer};
use super::outcome::{Effort, LearnedTheta, Outcome, Status};
use super::state::State;
use crate::error::Error;
use crate::operator::KernelOperator;
use crate::problem::{Certificate, Certified, Problem, ThetaBound, at_least_identity, square};
use crate::qp::Metric;
use curvature::{Curvature, Tools};
use ndarray::Array2;
use quadratic_model::{ModelSteps, minimise};

/// Largest decisions whose second derivative is formed; beyond, only products with it are.
const FORMED: usize = 15;
/// Vectors that one product with K takes while the second derivative is formed.
const TOGETHER: usize = 96;
/// Share of the tolerance that the inner problem may use up.
const INNER: f64 = 0.1;
/// Relative gaps below this are beyond f64.
const LEAST_TOL: f64 = 1e-14;
/// Θ is wanted to this share of its size where precision allows.
const THETA_TOL: f64 = 1e-3;
/// Share of the predicted decrease that a step must bring.
const ARMIJO: f64 = 1e-4;
/// Halvings of a step at most.
const HALVINGS: usize = 12;

/// Minimises over Θ ⪰ I and the coefficients to `settings.tol`. `problem` has Θ = I.
pub fn solve(
    problem: &Problem,
    operator: &dyn KernelOperator,
    settings: &NewtonSettings,
    seed: u64,
    observer: &mut dyn Observer,
) -> Result<Outcome, Error> {
    solve_from(problem, operator, settings, seed, None, observer)
}

/// The same from a state.
pub fn solve_from(
    problem: &Problem,
    operator: &dyn KernelOperator,
    settings: &NewtonSettings,
    seed: u64,
    start: Option<&State>,
    observer: &mut dyn Observer,
) -> Result<Outcome, Error> {
    settings.validate()?;
    check_precision(problem)?;
    let operator = &problem.weigh(operator)?;
    let mut clock = Clock::new(settings.time_limit, observer);
    // Unless Θ = I is the answer the dimensions are coupled, whatever the sets are.
    let coupled = problem.clone().coupled();
    let theta = start.map(|start| start.theta(problem)).transpose()?.flatten();
    let metric = theta.map(|theta| Metric::new(theta.view())).transpose()?;
    let metric = metric.filter(|metric| !metric.is_identity());
    let at_first = metric.map(|metric| coupled.clone().with_theta(metric));
    let at_first = at_first.as_ref().unwrap_or(problem);
    let start = start.map(|start| start.start(at_first, operator)).transpose()?;
    let first = OuterPoint::first(at_first, operator, settings, seed, start, &mut clock)?;
    let solver = Learner { problem: &coupled, settings, seed, first_products: first.products };
    let (outcome, theta) = solver.run(operator, first, &mut clock)?;
    let metric = Metric::new(theta.theta_uu.view())?;
    Outcome { theta: Some(theta), ..outcome }.finished(&coupled.with_theta(metric))
}

/// Bytes that learning Θ takes beside what its inner problem does.
pub fn bytes(n_samples: usize, decision_dim: usize) -> u64 {
    // Right-hand sides, residuals, directions, their images and what CG keeps of them.
    (10 * vectors(decision_dim) * n_samples * size_of::<f64>()) as u64
}

/// Vectors that one product with K takes at most.
pub fn vectors(decision_dim: usize) -> usize {
    if decision_dim <= FORMED { TOGETHER.max(decision_dim) } else { decision_dim }
}

/// Θ follows from B/(2k): where rounding in B alone moves it visibly, k is too small to learn it,
/// and this fails.
pub fn check_precision(problem: &Problem) -> Result<(), Error> {
    let k = problem.regularization();
    let rounding = 1e-15 * problem.mean_square();
    if rounding / (2.0 * k) > THETA_TOL {
        return Err(Error::ThetaPrecision {
            regularization: k,
            least: 1.1 * rounding / (2.0 * THETA_TOL),
        });
    }
    Ok(())
}

/// A point of the outer problem, certified.
struct OuterPoint {
    theta: Array2<f64>,
    inner: Certified,
    bound: ThetaBound,
    products: usize,
    rescued: usize,
    status: Status,
}

impl OuterPoint {
    /// The solution for the problem's Θ, at first I, by whatever way its sets allow.
    fn first(
        problem: &Problem,
        operator: &dyn KernelOperator,
        settings: &NewtonSettings,
        seed: u64,
        start: Option<(Array2<f64>, Array2<f64>)>,
        clock: &mut Clock<'_>,
    ) -> Result<Self, Error> {
        let own = NewtonSettings { time_limit: None, tol: inner_tol(settings.tol), ..*settings };
        let products = usize::from(start.is_some());
        let shape = problem.decisions().dim();
        let start = start.unwrap_or_else(|| (Array2::zeros(shape), Array2::zeros(shape)));
        let answer = Answer::Coefficients;
        let mut within = Within(clock);
        let outcome =
            newton::solve_from(problem, operator, &own, seed, start, answer, &mut within)?;
        let first = Self::new(problem, outcome)?;
        Ok(Self { products: first.products + products, ..first })
    }

    /// `problem` has the Θ that the outcome is of.
    fn new(problem: &Problem, outcome: Outcome) -> Result<Self, Error> {
        Ok(Self {
            theta: problem.metric().theta().to_owned(),
            bound: problem.certify_theta(&outcome.certified)?,
            inner: outcome.certified,
            products: outcome.kernel_products,
            rescued: outcome.rescued_decisions,
            status: outcome.status,
        })
    }

    fn certificate(&self) -> Certificate {
        self.bound.certificate
    }

    /// How far Θ can be from the optimal one.
    fn uncertainty(&self, problem: &Problem) -> f64 {
        self.certificate().theta_bound(problem.regularization())
    }
}

fn inner_tol(tol: f64) -> f64 {
    (INNER * tol).max(LEAST_TOL)
}

struct Learner<'a> {
    /// With its dimensions coupled.
    problem: &'a Problem,
    settings: &'a NewtonSettings,
    seed: u64,
    first_products: usize,
}

impl Learner<'_> {
    fn run(
        &self,
        operator: &dyn KernelOperator,
        first: OuterPoint,
        clock: &mut Clock<'_>,
    ) -> Result<(Outcome, LearnedTheta), Error> {
        let (settings, problem) = (self.settings, self.problem);
        let (mut iterations, mut products, mut rescued) = (0, self.first_products, first.rescued);
        let mut best = first;
        let mut tol = inner_tol(settings.tol);
        self.tell(&best, iterations, products, clock)?;
        // Built when it is first needed, then kept: it follows the faces.
        let mut parts: Option<Assembled<'_>> = None;
        let status = loop {
            let relative = best.certificate().relative_gap;
            let solved = relative <= settings.tol;
            let sure = best.uncertainty(problem) <= THETA_TOL * square(&best.theta).sqrt();
            if solved && sure {
                break Status::Solved;
            }
            clock.poll();
            let stopped = clock.stopped.or(match best.status {
                Status::Interrupted | Status::TimeLimit => Some(best.status),
                _ => None,
            });
            if let Some(stopped) = stopped {
                break if solved { Status::Solved } else { stopped };
            }
            if iterations >= settings.max_iterations {
                break if solved { Status::Solved } else { Status::MaxIterations };
            }
            let parts = match &mut parts {
                Some(parts) => parts,
                none => {
                    let (seed, ridge) = (self.seed, problem.ridge());
                    none.insert(Assembled::new(
                        problem,
                        operator,
                        settings,
                        (seed, None),
                        ridge,
                        clock,
                    )?)
                }
            };
            tol = tol.min(inner_tol(0.01 * relative)).max(LEAST_TOL);
            let own = NewtonSettings { time_limit: None, tol, ..*settings };
            let tools = Tools { parts, own };
            let (next, spent) = self.improve(&best, tools, clock)?;
            products += spent;
            iterations += 1;
            let Some(next) = next else {
                // No step is left that lowers Φ visibly.
                break match (solved, clock.stopped) {
                    (true, _) => Status::Solved,
                    (false, Some(stopped)) => stopped,
                    (false, None) => Status::Stalled,
                };
            };
            rescued += next.rescued;
            let progress = next.certificate().gap < 0.5 * best.certificate().gap;
            if next.certificate().gap < best.certificate().gap || !solved {
                best = next;
            }
            self.tell(&best, iterations, products, clock)?;
            if solved && !progress {
                break Status::Solved;
            }
        };
        let certificate = best.certificate();
        let effort = Effort {
            iterations,
            kernel_products: products,
            rescued_decisions: rescued,
            seconds: clock.seconds(),
        };
        let theta = LearnedTheta { theta_uu: best.theta, multiplier: best.bound.multiplier };
        let certified = Certified { certificate, ..best.inner };
        Ok((Outcome::new(certified, status, effort), theta))
    }

    fn tell(
        &self,
        step: &OuterPoint,
        iteration: usize,
        kernel_products: usize,
        clock: &mut Clock<'_>,
    ) -> Result<(), Error> {
        let problem = self.problem.clone().with_theta(Metric::new(step.theta.view())?);
        let decided = problem.decide(&step.inner.desired, None)?;
        let (bounds, responses) = (step.certificate(), &step.inner.responses);
        clock.tell(&Iteration {
            kernel_products,
            seconds: clock.seconds(),
            ..Iteration::at(iteration, &bounds, &problem, responses, &decided)
        });
        Ok(())
    }

    /// One projected Newton step on Θ; none where no step lowers Φ. Also the products it took.
    fn improve(
        &self,
        at: &OuterPoint,
        tools: Tools<'_, '_>,
        clock: &mut Clock<'_>,
    ) -> Result<(Option<OuterPoint>, usize), Error> {
        let k = self.problem.regularization();
        let gradient = &at.theta * (2.0 * k) + &at.bound.b;
        let problem = self.problem.clone().with_theta(Metric::new(at.theta.view())?);
        let decided = problem.decide(&at.inner.desired, None)?;
        tools.parts.preconditioner.update(&decided.faces)?;
        let mut curvature = Curvature { problem: &problem, decided: &decided, products: 0 };
        let n = at.theta.nrows();
        let target = if n <= FORMED {
            let Some(formed) = curvature.form(&at.inner.responses, &tools, clock)? else {
                return Ok((None, curvature.products));
            };
            minimise(&at.theta, &gradient, ModelSteps::CHEAP, |v| Ok(Some(formed.times(v))))?
        } else {
            minimise(&at.theta, &gradient, ModelSteps::COSTLY, |v| {
                let images =
                    curvature.times(&at.inner.responses, std::slice::from_ref(v), &tools, clock)?;
                Ok(images.map(|mut images| images.remove(0)))
            })?
        };
        let mut products = curvature.products;
        let Some(target) = target else { return Ok((None, products)) };
        let direction = &target - &at.theta;
        let slope = (&direction * &gradient).sum();
        let mut t = 1.0;
        for _ in 0..HALVINGS {
            let theta = at_least_identity(&(&at.theta + &(&direction * t)))?;
            let problem = self.problem.clone().with_theta(Metric::new(theta.view())?);
            let start = (at.inner.coefficients.clone(), at.inner.desired.clone());
            let parts = tools.parts.lend();
            let answer = Answer::Coefficients;
            let mut within = Within(&mut *clock);
            let mut inner_clock = Clock::new(None, &mut within);
            let outcome =
                newton::solve_with(&problem, parts, &tools.own, start, answer, &mut inner_clock)?;
            let step = OuterPoint::new(&problem, outcome)?;
            products += step.products;
            // Inner solutions are inexact: what their gaps allow counts as a decrease.
            let allowed =
                ARMIJO * t * slope + step.inner.certificate.gap + at.inner.certificate.gap;
            let stopped = matches!(step.status, Status::Interrupted | Status::TimeLimit);
            let (new, old) = (step.certificate(), at.certificate());
            if new.primal <= old.primal + allowed || new.gap < old.gap || stopped {
                return Ok((Some(step), products));
            }
            t *= 0.5;
        }
        Ok((None, products))
    }
}
