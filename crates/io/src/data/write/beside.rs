//! What stands beside decisions in a file.

use ndarray::ArrayView2;

/// What is written beside decisions, row by row.
#[derive(Clone, Copy, Default)]
pub struct Beside<'a> {
    /// Least and greatest decisions, n × decision_dim each: arrays `decisions_low` and
    /// `decisions_high` of an `.npz`, columns `NAME_low` and `NAME_high` of a `.csv`.
    pub range: Option<(ArrayView2<'a, f64>, ArrayView2<'a, f64>)>,
    /// An array, or a column, `familiarity`.
    pub familiarity: Option<&'a [f64]>,
}

impl Beside<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.range.is_none() && self.familiarity.is_none()
    }
}
