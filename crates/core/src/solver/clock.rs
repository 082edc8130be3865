//! When a solver has to stop: out of time, or told to.

use super::observer::{Iteration, Observer};
use super::outcome::Status;
use super::state::State;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Time, interrupts and the observer behind one question: go on?
pub(crate) struct Clock<'a> {
    start: Instant,
    limit: Option<Duration>,
    observer: &'a mut dyn Observer,
    pub(crate) stopped: Option<Status>,
}

impl<'a> Clock<'a> {
    pub(crate) fn new(time_limit: Option<f64>, observer: &'a mut dyn Observer) -> Self {
        let limit = time_limit.map(Duration::from_secs_f64);
        Self { start: Instant::now(), limit, observer, stopped: None }
    }

    /// Passes a step on; the observer may stop the solver there.
    pub(crate) fn tell(&mut self, iteration: &Iteration) {
        if self.observer.on_iteration(iteration).is_break() && self.stopped.is_none() {
            self.stopped = Some(Status::Interrupted);
        }
    }

    /// Offers what has been reached.
    pub(crate) fn offer(&mut self, state: &dyn Fn() -> State) {
        self.observer.on_state(state);
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// Whether to stop now.
    pub(crate) fn poll(&mut self) -> bool {
        if self.stopped.is_none() {
            if self.observer.poll().is_break() {
                self.stopped = Some(Status::Interrupted);
            } else if self.limit.is_some_and(|limit| self.start.elapsed() >= limit) {
                self.stopped = Some(Status::TimeLimit);
            }
        }
        self.stopped.is_some()
    }
}

/// To a solver inside another's step: it asks whether to go on, and its own steps are reported to
/// nobody.
impl Observer for Clock<'_> {
    fn poll(&mut self) -> ControlFlow<()> {
        if Clock::poll(self) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// As [`Clock`], to a solver of all samples: what it reaches is worth keeping.
pub(crate) struct Within<'a, 'b>(pub(crate) &'a mut Clock<'b>);

impl Observer for Within<'_, '_> {
    fn on_state(&mut self, state: &dyn Fn() -> State) {
        self.0.offer(state);
    }

    fn poll(&mut self) -> ControlFlow<()> {
        Observer::poll(self.0)
    }
}
