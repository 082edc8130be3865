//! Problems that differ in their regularization alone, one after the other.
//!
//! Enters: a problem, an operator and the regularizations. Leaves: an outcome for each, as
//! certified as that of any other fit. Each solve starts from the coefficients of the one before,
//! whose desired decisions are known exactly, and all share one low-rank factor of K, made for the
//! smallest λ; only the small matrices of the preconditioner are factorised anew.

use super::clock::Clock;
use super::newton::{self, Answer, Assembled, NewtonSettings};
use super::observer::Observer;
use super::outcome::{Outcome, Status};
use super::state::State;
use crate::error::Error;
use crate::operator::KernelOperator;
use crate::precond::KeptFactor;
use crate::problem::Problem;
use ndarray::Array2;
use std::sync::Arc;

/// Where a path starts.
#[derive(Debug, Default)]
pub struct Beginning<'a> {
    /// Coefficients in place of zeros.
    pub state: Option<&'a State>,
    /// What a fit of the first samples, by the same kernel and without weights, has left.
    pub factor: Option<KeptFactor>,
    /// Whether outcomes are to have what this one leaves.
    pub keep: bool,
}

impl<'a> From<Option<&'a State>> for Beginning<'a> {
    fn from(state: Option<&'a State>) -> Self {
        Self { state, ..Self::default() }
    }
}

/// Minimises P of `problem` with each of `regularizations` in place of its own, the first from
/// `start`, and hands each outcome to `each` with the problem it solves. An interrupted one is the
/// last; so is one that `each` fails on.
#[expect(clippy::too_many_arguments, reason = "as the other solvers, and what to do with each")]
pub fn solve<'b, E: From<Error>>(
    mut problem: Problem,
    operator: &dyn KernelOperator,
    regularizations: &[f64],
    settings: &NewtonSettings,
    seed: u64,
    start: impl Into<Beginning<'b>>,
    observer: &mut dyn Observer,
    mut each: impl FnMut(&Problem, Outcome) -> Result<(), E>,
) -> Result<(), E> {
    settings.validate()?;
    let operator = problem.weigh(operator)?;
    let smallest = regularizations.iter().copied().fold(f64::INFINITY, f64::min);
    let Beginning { state, factor, keep } = start.into();
    // Rows of another problem, with weights, would be others.
    let factor = factor.filter(|_| problem.roots().is_none());
    let known = factor.as_ref().and_then(|factor| factor.desired.as_ref());
    let start = state.map(|state| state.start_knowing(&problem, &operator, known)).transpose()?;
    // Where most of g is known it is a twentieth of a product or so.
    let mut products = usize::from(start.is_some() && known.is_none());
    let nearby = start.is_some();
    let mut path =
        Path { operator: &operator, settings, seed, smallest, made: None, factor, start, nearby };
    for &regularization in regularizations {
        problem = problem.with_regularization(regularization)?;
        let mut outcome = path.solve(&problem, observer)?;
        outcome.kernel_products += std::mem::take(&mut products);
        if keep && problem.roots().is_none() {
            let left = path.made.as_ref().and_then(|made| made.preconditioner.keep());
            let desired = path.start.as_ref().map(|(_, desired)| desired.clone());
            outcome.factor = left.map(|left| Arc::new(KeptFactor { desired, ..left }));
        }
        let interrupted = outcome.status == Status::Interrupted;
        each(&problem, outcome)?;
        if interrupted {
            break;
        }
    }
    Ok(())
}

/// What one solve leaves to the next.
struct Path<'a> {
    /// With the problem's weights.
    operator: &'a dyn KernelOperator,
    settings: &'a NewtonSettings,
    seed: u64,
    /// The smallest regularization that will be asked for.
    smallest: f64,
    made: Option<Assembled<'a>>,
    /// What an earlier fit has left for it.
    factor: Option<KeptFactor>,
    /// Coefficients and their desired decisions.
    start: Option<(Array2<f64>, Array2<f64>)>,
    /// Whether they are those of another fit of much the same problem.
    nearby: bool,
}

impl Path<'_> {
    fn solve(&mut self, problem: &Problem, observer: &mut dyn Observer) -> Result<Outcome, Error> {
        let mut clock = Clock::new(self.settings.time_limit, observer);
        let kept = match &mut self.made {
            Some(kept) => kept.preconditioner.set_ridge(problem.ridge()),
            None => false,
        };
        if !kept {
            // The old factor goes before the new one comes.
            self.made = None;
            let finest = self.smallest / problem.regularization() * problem.ridge();
            self.made = Some(Assembled::new(
                problem,
                self.operator,
                self.settings,
                (self.seed, self.factor.take()),
                finest,
                &mut clock,
            )?);
        }
        let made = self.made.as_mut().expect("kept or made just now");
        let zeros = || Array2::zeros(problem.decisions().dim());
        let start = self.start.take().unwrap_or_else(|| (zeros(), zeros()));
        let (parts, settings) = (made.lend(), self.settings);
        let outcome = if std::mem::take(&mut self.nearby) {
            newton::solve_nearby(problem, parts, settings, start, &mut clock)?
        } else {
            let answer = Answer::Coefficients;
            newton::solve_with(problem, parts, settings, start, answer, &mut clock)?
        };
        let certified = &outcome.certified;
        self.start = Some((certified.coefficients.clone(), certified.desired.clone()));
        outcome.finished(problem)
    }
}
