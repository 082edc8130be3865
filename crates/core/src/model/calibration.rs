//! What a model keeps of the rows that were kept aside: how far it was from the expert on them.

use crate::error::Error;
use ndarray::Array2;

/// Errors on rows kept aside, in units of what was to be expected there, and what that is.
///
/// In a situation of which v is left unexplained by those seen (relative to κ(s, s) of training
/// situations, see [`familiarity`](crate::familiarity)) the error of dimension j is expected to be
/// about σ_j, with σ_j² = noise_j + growth_j·v + spread_j²·u. The last term counts beyond what the
/// rows kept aside were like, u = max(0, v − known)/(1 − known): where nothing is known, as much
/// as decisions differ at all.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// σ² in familiar situations, one a dimension; positive.
    pub noise: Vec<f64>,
    /// What σ² grows by with v.
    pub growth: Vec<f64>,
    /// How much decisions differ from each other: their standard deviation.
    pub spread: Vec<f64>,
    /// v that hardly any row kept aside was above; less than one.
    pub known: f64,
    /// |error|/σ of the rows kept aside, ascending, decision_dim × n_rows.
    pub scores: Array2<f64>,
}

impl Calibration {
    /// Rows that were kept aside.
    pub fn n_rows(&self) -> usize {
        self.scores.ncols()
    }

    /// Whether the parts fit together and are those of decisions of this length.
    pub fn validate(&self, decision_dim: usize) -> Result<(), Error> {
        for (what, found) in [
            ("the noise of ranges", self.noise.len()),
            ("the growth of ranges", self.growth.len()),
            ("the spread of decisions", self.spread.len()),
            ("the scores of ranges", self.scores.nrows()),
        ] {
            if found != decision_dim {
                let (owner, expected) = ("the model", decision_dim);
                return Err(Error::Width { what, owner, expected, found });
            }
        }
        let positive = |values: &[f64]| values.iter().all(|v| v.is_finite() && *v >= 0.0);
        let scores = self.scores.rows().into_iter().all(|row| {
            let row = row.to_vec();
            positive(&row) && row.is_sorted()
        });
        let numbers = [&self.growth, &self.spread, &self.noise].into_iter().all(|v| positive(v));
        let above = self.noise.iter().all(|noise| *noise > 0.0);
        if scores && numbers && above && (0.0..1.0).contains(&self.known) && self.n_rows() > 0 {
            return Ok(());
        }
        let (found, allowed) = ("out of order".to_owned(), "finite, positive and ascending");
        Err(Error::Setting { name: "what ranges are made of", found, allowed })
    }
}
