//! What a model keeps of the situations it was trained on, to tell familiar ones from others.

use crate::error::Error;
use ndarray::Array2;

/// Situations that span the rest, and how well they span the rest.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// Least value of each signal.
    pub lowest: Vec<f64>,
    /// Greatest value of each signal.
    pub highest: Vec<f64>,
    /// Situations that span the others, n_pivots × signal_dim.
    pub pivots: Array2<f64>,
    /// What is left of κ(s, s) of the training situations beside the pivots, each without itself:
    /// quantiles at [`LEVELS`].
    pub left: Vec<f64>,
}

/// Percentages of the training situations that the quantiles of [`Seen::left`] are at: closest
/// where strange situations begin.
pub const LEVELS: [f64; 17] = [
    0.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 97.5, 98.5, 99.0, 99.5,
    100.0,
];

impl Seen {
    /// Whether the parts fit together and are those of signals of this length.
    pub fn validate(&self, signal_dim: usize) -> Result<(), Error> {
        for (what, found) in [
            ("least signals", self.lowest.len()),
            ("greatest signals", self.highest.len()),
            ("pivot signals", self.pivots.ncols()),
        ] {
            if found != signal_dim {
                let (owner, expected) = ("the model", signal_dim);
                return Err(Error::Width { what, owner, expected, found });
            }
        }
        let numbers = [&self.lowest, &self.highest, &self.left].into_iter().flatten();
        if let Some(value) = numbers.chain(&self.pivots).find(|value| !value.is_finite()) {
            let (what, value) = ("what was seen", *value);
            return Err(Error::NotFinite { what, row: 0, column: 0, value });
        }
        let ordered = self.lowest.iter().zip(&self.highest).all(|(low, high)| low <= high);
        if ordered && self.left.len() == LEVELS.len() && self.left.is_sorted() {
            return Ok(());
        }
        let (found, allowed) = ("out of order".to_owned(), "ranges and 17 ascending quantiles");
        Err(Error::Setting { name: "what was seen", found, allowed })
    }
}
