//! What a solver tells while it runs, and how it is asked to stop.

use super::state::State;
use crate::problem::{Certificate, Decided, Problem};
use ndarray::Array2;
use serde::Serialize;
use std::ops::ControlFlow;

/// Where a solver stands.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Iteration {
    /// Steps taken so far.
    pub iteration: usize,
    /// (Q) at the feasible responses.
    pub objective: f64,
    /// Upper bound.
    pub primal: f64,
    /// Lower bound.
    pub dual: f64,
    /// Their distance.
    pub gap: f64,
    /// Relative to the bounds' size.
    pub relative_gap: f64,
    /// Largest ‖x_i − Π(g_i)‖² over the samples.
    pub violation: f64,
    /// Share of decision coordinates strictly inside their limits.
    pub free: f64,
    /// Whether the numbers come from the f64 kernel; in early steps they come from the working
    /// precision.
    pub exact: bool,
    /// Products with the kernel matrix so far.
    pub kernel_products: usize,
    /// Seconds since the solver started.
    pub seconds: f64,
    /// The block that was solved last, where a solver works block by block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<BlockStep>,
}

impl Iteration {
    /// After so many steps, at bounds and the point they are of. Products, seconds and whether the
    /// numbers are exact are the solver's to say.
    pub(crate) fn at(
        iteration: usize,
        bounds: &Certificate,
        problem: &Problem,
        responses: &Array2<f64>,
        decided: &Decided,
    ) -> Self {
        let violations = problem.violations(responses.view(), decided.decisions.view());
        Self {
            iteration,
            objective: bounds.objective,
            primal: bounds.primal,
            dual: bounds.dual,
            gap: bounds.gap,
            relative_gap: bounds.relative_gap,
            violation: violations.into_iter().fold(0.0, f64::max),
            free: decided.faces.free_share(problem.decision_dim()),
            exact: true,
            kernel_products: 0,
            seconds: 0.0,
            block: None,
        }
    }
}

/// A block of samples that was solved for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BlockStep {
    /// Samples in it.
    pub samples: usize,
    /// Of these chosen by the rule; the others at random.
    pub chosen: usize,
    /// Samples whose response changed.
    pub moved: usize,
}

/// Follows a solver. Every function has an empty default.
pub trait Observer {
    /// After each step; breaking stops the solver at this point with status `interrupted`.
    fn on_iteration(&mut self, _iteration: &Iteration) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// After each step, what a later fit can go on from. It is made when `state` is called, which
    /// copies as many numbers as there are decisions.
    fn on_state(&mut self, _state: &dyn Fn() -> State) {}

    /// Between the products inside a step, some milliseconds to seconds apart; breaking abandons
    /// the step.
    fn poll(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Follows nothing.
pub struct Ignore;

impl Observer for Ignore {}
