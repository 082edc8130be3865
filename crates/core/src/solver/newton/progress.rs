//! Whether steps still lead anywhere.

use crate::solver::observer::Iteration;

/// Relative gap below which lack of progress means the end of precision.
const NEAR: f64 = 1e-8;
/// Relative decrease of the primal value below which there is none.
const ROUNDING: f64 = 1e-14;
/// Steps without progress before giving up.
const PATIENCE: usize = 3;

/// The best seen so far, and for how many steps nothing better came.
pub(super) struct Progress {
    gap: f64,
    /// Steps that have not halved the gap.
    idle: usize,
    primal: f64,
    /// Steps that have not lowered P.
    stuck: usize,
}

impl Default for Progress {
    fn default() -> Self {
        Self { gap: f64::INFINITY, idle: 0, primal: f64::INFINITY, stuck: 0 }
    }
}

impl Progress {
    /// From a gap that is reached.
    pub(super) fn since(gap: f64) -> Self {
        Self { gap, ..Self::default() }
    }

    /// Close to the optimum every step gains digits, until there are none left to gain.
    pub(super) fn note_gap(&mut self, gap: f64) {
        self.idle = if gap < 0.5 * self.gap { 0 } else { self.idle + 1 };
        self.gap = self.gap.min(gap);
    }

    /// Whether the gap has long not been halved.
    pub(super) fn is_idle(&self) -> bool {
        self.idle >= PATIENCE
    }

    /// Whether there is nothing to be had where the steps lead. Far from the optimum the gap may
    /// rise for many of them, but the primal value falls.
    pub(super) fn is_exhausted(&mut self, seen: &Iteration) -> bool {
        self.note_gap(seen.gap);
        let falls = seen.primal < self.primal - ROUNDING * self.primal.abs();
        self.stuck = if falls { 0 } else { self.stuck + 1 };
        self.primal = self.primal.min(seen.primal);
        (seen.relative_gap < NEAR && self.idle > PATIENCE) || self.stuck > PATIENCE
    }
}
