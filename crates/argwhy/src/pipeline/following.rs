//! Who follows a fit, and what is kept on the way.

use crate::checkpoint::Checkpoints;
use crate::plan::Plan;
use argwhy_core::decision_set::Outside;
use argwhy_core::solver::{Iteration, Observer, State};
use std::ops::ControlFlow;

/// Follows a fit: the plan first, then the solver.
pub trait Progress: Observer {
    /// What the fit will take, before it starts.
    fn on_plan(&mut self, _plan: &Plan, _outside: &Outside) {}

    /// Something to know about the fit, before the plan. Settings in it are marked, `{bounds}`:
    /// print it as [`Worded`](argwhy_core::wording::Worded).
    fn on_note(&mut self, _note: &str) {}
}

/// Follows nothing.
pub struct Silent;

impl Observer for Silent {}
impl Progress for Silent {}

/// The solver's side of a [`Progress`], which also keeps what is reached.
pub(super) struct Forward<'a> {
    pub(super) progress: &'a mut (dyn Progress + Send),
    pub(super) keep: Option<&'a Checkpoints>,
    /// Fingerprint of the rows.
    pub(super) rows: String,
    pub(super) seen: Option<Iteration>,
}

impl Observer for Forward<'_> {
    fn on_iteration(&mut self, iteration: &Iteration) -> ControlFlow<()> {
        self.seen = Some(*iteration);
        self.progress.on_iteration(iteration)
    }

    fn on_state(&mut self, state: &dyn Fn() -> State) {
        self.progress.on_state(state);
        if let Some(keep) = self.keep
            && let Err(error) = keep.keep(&self.rows, self.seen.as_ref(), state)
        {
            self.progress.on_note(&format!("{error}; the fit goes on without"));
        }
    }

    fn poll(&mut self) -> ControlFlow<()> {
        self.progress.poll()
    }
}
