//! A fit that runs on a thread of its own, followed from the thread that asked for it.
//!
//! Signal handlers and callbacks run where Python expects them, on the caller's thread; the solver
//! meanwhile needs no interpreter. The caller wakes for every message, and often enough in between
//! to notice Ctrl-C.

use argwhy::core::decision_set::Outside;
use argwhy::core::solver::{Iteration as Step, Observer};
use argwhy::core::wording::Worded;
use argwhy::{Plan, Progress};
use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};

/// Where a solver stands after a step.
#[allow(clippy::struct_field_names, reason = "the names of the trace")]
#[pyclass(frozen, get_all, module = "argwhy")]
#[derive(Clone, Copy)]
pub struct Iteration {
    /// Steps taken so far.
    iteration: usize,
    /// The paper's objective (9) at the feasible responses.
    objective: f64,
    /// Upper bound on the optimum.
    primal: f64,
    /// Lower bound on it.
    dual: f64,
    /// Their distance.
    gap: f64,
    /// Relative to the bounds' size.
    relative_gap: f64,
    /// Largest squared distance of a response from its optimality condition.
    violation: f64,
    /// Share of decision coordinates strictly inside their limits.
    free: f64,
    /// Whether the numbers come from the double-precision kernel; in early steps they come from the
    /// working precision.
    exact: bool,
    /// Products with the kernel matrix so far.
    kernel_products: usize,
    /// Seconds since the solver started.
    seconds: f64,
}

#[pymethods]
impl Iteration {
    fn __repr__(&self) -> String {
        format!(
            "Iteration(iteration={}, objective={:?}, relative_gap={:?}, seconds={:.3})",
            self.iteration, self.objective, self.relative_gap, self.seconds
        )
    }
}

impl From<&Step> for Iteration {
    fn from(step: &Step) -> Self {
        Self {
            iteration: step.iteration,
            objective: step.objective,
            primal: step.primal,
            dual: step.dual,
            gap: step.gap,
            relative_gap: step.relative_gap,
            violation: step.violation,
            free: step.free,
            exact: step.exact,
            kernel_products: step.kernel_products,
            seconds: step.seconds,
        }
    }
}

/// What the solver's thread tells the caller's.
pub enum Message {
    /// What there is to say before the solver starts.
    Plan(Vec<String>),
    /// A step; the solver waits until it may go on.
    Step(Step),
}

/// The solver's end.
pub struct Follow {
    /// Set by the caller to stop the solver.
    pub stop: Arc<AtomicBool>,
    /// To the caller, and its word to go on; none where nobody listens.
    pub caller: Option<(Sender<Message>, Receiver<()>)>,
    /// What else is worth saying before the solver starts.
    pub notes: Vec<String>,
    /// Every step.
    pub history: Vec<Step>,
}

impl Observer for Follow {
    fn on_iteration(&mut self, step: &Step) -> ControlFlow<()> {
        self.history.push(*step);
        if let Some((sender, go)) = &self.caller {
            // A caller that is gone stops nothing.
            if sender.send(Message::Step(*step)).is_ok() {
                let _ = go.recv();
            }
        }
        self.poll()
    }

    fn poll(&mut self) -> ControlFlow<()> {
        if self.stop.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

impl Progress for Follow {
    fn on_note(&mut self, note: &str) {
        self.notes.push(format!("note: {}", Worded(note)));
    }

    fn on_plan(&mut self, plan: &Plan, _outside: &Outside) {
        if let Some((sender, _)) = &self.caller {
            let mut lines = vec![plan.summary()];
            lines.extend(self.notes.clone());
            let _ = sender.send(Message::Plan(lines));
        }
    }
}
