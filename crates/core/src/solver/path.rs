//! Problems that differ in their regularization alone, one after the other.
//!
//! Enters: an operator and the regularizations to come. Leaves: an outcome for each, as certified as that of any other fit. Each solve starts
//! from the coefficients of the one before, whose desired decisions are known exactly, and all share one low-rank factor of K,
//! made for the smallest λ; only the small matrices of the preconditioner are factorised anew.

use super::clock::Clock;
use super::newton::{self, Answer, Assembled, NewtonSettings};
use super::observer::Observer;
use super::outcome::Outcome;
use crate::error::Error;
use crate::operator::KernelOperator;
use crate::precond::Preconditioner;
use crate::problem::Problem;
use ndarray::Array2;

/// What one solve leaves to the next.
pub struct Path<'a> {
    operator: &'a dyn KernelOperator,
    settings: NewtonSettings,
    seed: u64,
    /// The smallest regularization that will be asked for.
    smallest: f64,
    made: Option<(&'a dyn KernelOperator, Box<dyn Preconditioner + 'a>)>,
    /// Coefficients and their desired decisions.
    start: Option<(Array2<f64>, Array2<f64>)>,
}

impl<'a> Path<'a> {
    /// A path whose regularizations are not below `smallest`.
    pub fn new(
        operator: &'a dyn KernelOperator,
        settings: NewtonSettings,
        smallest: f64,
        seed: u64,
    ) -> Self {
        Self { operator, settings, seed, smallest, made: None, start: None }
    }

    /// Minimises P of the next problem: the same decisions, sets and weights as before, and a regularization of its own.
    pub fn solve(
        &mut self,
        problem: &Problem,
        observer: &mut dyn Observer,
    ) -> Result<Outcome, Error> {
        self.settings.validate()?;
        let mut clock = Clock::new(self.settings.time_limit, observer);
        let kept = match &mut self.made {
            Some((_, kept)) => kept.set_ridge(problem.ridge()),
            None => false,
        };
        if !kept {
            // The old factor goes before the new one comes.
            self.made = None;
            let finest = self.smallest / problem.regularization() * problem.ridge();
            let (settings, seed) = (&self.settings, self.seed);
            self.made = Some(newton::preconditioned(
                problem,
                self.operator,
                settings,
                seed,
                finest,
                &mut clock,
            )?);
        }
        let (operator, preconditioner) = self.made.as_mut().expect("kept or made just now");
        let zeros = || Array2::zeros(problem.decisions().dim());
        let start = self.start.take().unwrap_or_else(|| (zeros(), zeros()));
        let outcome = newton::solve_with(
            problem,
            Assembled { operator: *operator, preconditioner: Box::new(&mut **preconditioner) },
            &self.settings,
            start,
            Answer::Coefficients,
            &mut clock,
        )?;
        let certified = &outcome.certified;
        self.start = Some((certified.coefficients.clone(), certified.desired.clone()));
        outcome.finished(problem)
    }
}
