//! What limits cost.

use super::label::RowLabel;

/// What limits cost: the multiplier ν of every limit that holds a decision, Σ ν_l·row_l = 2(g −
/// Θu). Loosening limit l by one unit lowers the learned objective uᵀΘu − 2gᵀu by ν_l.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prices {
    /// Samples, in increasing order.
    pub samples: Vec<u64>,
    /// The limit of each entry.
    pub limits: Vec<RowLabel>,
    /// ν; nonnegative except for equalities.
    pub values: Vec<f64>,
}

impl Prices {
    pub(super) fn push(&mut self, sample: usize, limit: RowLabel, value: f64) {
        self.samples.push(sample as u64);
        self.limits.push(limit);
        self.values.push(value);
    }

    /// Entries.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Whether no limit holds any decision.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }
}
