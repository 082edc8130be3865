//! What a file says of its sizes before its numbers are read.

/// The sizes of what was asked for, from headers alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survey {
    /// Rows of the file. Of a csv file, lines that could be rows.
    pub n_rows: usize,
    /// Rows that are kept.
    pub n_kept: usize,
    /// Entries of a signal.
    pub signal_dim: usize,
    /// Entries of a decision, where decisions are read.
    pub decision_dim: Option<usize>,
    /// Whether weights are read.
    pub weighted: bool,
    /// The arrays of constraints that are read, with their shapes in the file.
    pub constraints: Vec<(&'static str, Vec<usize>)>,
}

impl Survey {
    /// Numbers that the constraints will hold once read.
    pub fn constraint_numbers(&self) -> usize {
        let kept = |shape: &[usize]| {
            let numbers = shape.iter().fold(1usize, |product, size| product.saturating_mul(*size));
            let own = shape.first() == Some(&self.n_rows);
            if own { numbers / self.n_rows.max(1) * self.n_kept } else { numbers }
        };
        self.constraints.iter().map(|(_, shape)| kept(shape)).sum()
    }
}
