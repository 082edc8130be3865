//! What an expert saw, what it decided and what it was allowed to do, with shapes and values
//! checked once.

mod constraints;
mod names;
mod relation;

pub(crate) use constraints::Rows as ConstraintRows;
pub use constraints::{ConstraintArrays, Constraints};
pub use names::{Names, Units};
pub use relation::{Half, Relation};

use crate::error::Error;
use ndarray::{Array2, ArrayView2, Axis, concatenate};

/// Signals (n_samples × signal_dim) and the decisions taken on them (n_samples × decision_dim),
/// with the constraints they were taken under and how much each sample counts, where data says so.
/// Every value is finite.
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset {
    signals: Array2<f64>,
    decisions: Array2<f64>,
    constraints: Option<Constraints>,
    weights: Option<Vec<f64>>,
    names: Names,
    /// What number each row has where it came from; counted from zero where there is none.
    numbers: Option<Vec<usize>>,
}

impl Dataset {
    /// Pairs signals with decisions, row by row.
    ///
    /// Fails on different numbers of rows, on none, on arrays without columns and on values that
    /// are not finite.
    pub fn new(signals: Array2<f64>, decisions: Array2<f64>) -> Result<Self, Error> {
        if signals.nrows() != decisions.nrows() {
            return Err(Error::RowCount {
                left: "signals",
                left_rows: signals.nrows(),
                right: "decisions",
                right_rows: decisions.nrows(),
            });
        }
        check_finite("signals", signals.view())?;
        check_finite("decisions", decisions.view())?;
        let names = Names::default();
        Ok(Self { signals, decisions, constraints: None, weights: None, names, numbers: None })
    }

    /// The same with constraints, for all samples or one set a sample.
    pub fn with_constraints(mut self, constraints: Constraints) -> Result<Self, Error> {
        constraints.check(self.n_samples(), self.decisions.ncols())?;
        self.constraints = Some(constraints);
        Ok(self)
    }

    /// The same with sample i counting as `weights[i]` samples: exactly as if its row stood there
    /// that many times. Zero leaves it out.
    pub fn with_weights(mut self, weights: Vec<f64>) -> Result<Self, Error> {
        if weights.len() != self.n_samples() {
            return Err(Error::RowCount {
                left: "weights",
                left_rows: weights.len(),
                right: "signals",
                right_rows: self.n_samples(),
            });
        }
        if let Some((row, w)) =
            weights.iter().enumerate().find(|(_, w)| !(**w >= 0.0 && w.is_finite()))
        {
            return Err(Error::Weights {
                what: format!("row {row} has the weight {w}; weights are finite and not negative"),
            });
        }
        self.weights = Some(in_range(weights));
        Ok(self)
    }

    /// The same with names for what there is; a model fitted to it keeps them.
    pub fn with_names(mut self, names: Names) -> Result<Self, Error> {
        names.check(self.signals.ncols(), self.decisions.ncols())?;
        self.names = names;
        Ok(self)
    }

    /// The same with the numbers that its rows have where they came from, of which these may be
    /// some: messages and models speak of rows by them.
    pub fn with_numbers(mut self, numbers: Vec<usize>) -> Result<Self, Error> {
        if numbers.len() != self.n_samples() {
            return Err(Error::RowCount {
                left: "row numbers",
                left_rows: numbers.len(),
                right: "signals",
                right_rows: self.n_samples(),
            });
        }
        self.numbers = Some(numbers);
        Ok(self)
    }

    /// The number that a row has where it came from.
    pub fn number(&self, row: usize) -> usize {
        self.numbers.as_ref().map_or(row, |numbers| numbers[row])
    }

    /// What signals, decisions and limits are called.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// What limits the decisions beside the model's own limits.
    pub fn constraints(&self) -> Option<&Constraints> {
        self.constraints.as_ref()
    }

    /// How much each sample counts; one each where there is none.
    pub fn weights(&self) -> Option<&[f64]> {
        self.weights.as_deref()
    }

    /// n_samples × signal_dim.
    pub fn signals(&self) -> ArrayView2<'_, f64> {
        self.signals.view()
    }

    /// n_samples × decision_dim.
    pub fn decisions(&self) -> ArrayView2<'_, f64> {
        self.decisions.view()
    }

    /// Rows.
    pub fn n_samples(&self) -> usize {
        self.signals.nrows()
    }

    /// The listed rows, in their order.
    #[must_use]
    pub fn select(&self, rows: &[usize]) -> Self {
        Self {
            signals: self.signals.select(Axis(0), rows),
            decisions: self.decisions.select(Axis(0), rows),
            constraints: self.constraints.as_ref().map(|given| given.select(rows)),
            weights: self.weights.as_ref().map(|w| rows.iter().map(|&row| w[row]).collect()),
            names: self.names.clone(),
            numbers: self.numbers.as_ref().map(|own| rows.iter().map(|&row| own[row]).collect()),
        }
    }

    /// These rows with those of `other` behind them, under the names of these, counted from zero. A
    /// side without weights has one each.
    pub fn joined(&self, other: &Self) -> Result<Self, Error> {
        let columns = |what, owner, a: &Array2<f64>, b: &Array2<f64>| {
            let rows = [a.view(), b.view()];
            concatenate(Axis(0), &rows).map_err(|_| Error::Width {
                what,
                owner,
                expected: a.ncols(),
                found: b.ncols(),
            })
        };
        let counts = (self.n_samples(), other.n_samples());
        let nothing = Constraints::new();
        let given = |data: &Self| data.constraints.clone().unwrap_or_else(|| nothing.clone());
        let constraints = given(self).joined(&given(other), counts)?;
        let weights = (self.weights.is_some() || other.weights.is_some()).then(|| {
            let of =
                |data: &Self| data.weights.clone().unwrap_or_else(|| vec![1.0; data.n_samples()]);
            [of(self), of(other)].concat()
        });
        Ok(Self {
            signals: columns("signals", "the old data", &self.signals, &other.signals)?,
            decisions: columns("decisions", "the old data", &self.decisions, &other.decisions)?,
            constraints: (!constraints.is_empty()).then_some(constraints),
            weights,
            names: self.names.clone(),
            numbers: None,
        })
    }

    /// Both arrays, by value.
    pub fn into_parts(self) -> (Array2<f64>, Array2<f64>) {
        (self.signals, self.decisions)
    }
}

/// Refuses arrays with no rows, no columns, or a value that is NaN or infinite (naming its place).
pub fn check_finite(what: &'static str, values: ArrayView2<'_, f64>) -> Result<(), Error> {
    if values.nrows() == 0 {
        return Err(Error::NoSamples);
    }
    if values.ncols() == 0 {
        return Err(Error::Width { what, owner: "the least that will do", expected: 1, found: 0 });
    }
    // Without a branch for each value; where one is not finite, again to find it.
    let finite = |part: &[f64]| part.iter().fold(true, |all, v| all & v.is_finite());
    if values.as_slice().is_some_and(|values| values.chunks(4096).all(finite)) {
        return Ok(());
    }
    match values.indexed_iter().find(|(_, value)| !value.is_finite()) {
        Some(((row, column), &value)) => Err(Error::NotFinite { what, row, column, value }),
        None => Ok(()),
    }
}

/// The same weights in another unit, where their sums and products would leave the range of f64:
/// only their ratios count.
fn in_range(mut weights: Vec<f64>) -> Vec<f64> {
    let largest = weights.iter().copied().fold(0.0, f64::max);
    if largest > 0.0 && !(1e-100..=1e100).contains(&largest) {
        // Twice, because 1/largest may leave the range itself; by a power of two, which rounds
        // nothing.
        let half = (-0.5 * largest.log2()).round().exp2();
        weights.iter_mut().for_each(|w| *w = *w * half * half);
    }
    weights
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn refuses_what_does_not_fit() {
        let two = array![[1.0], [2.0]];
        assert!(matches!(
            Dataset::new(two.clone(), array![[1.0]]),
            Err(Error::RowCount { left_rows: 2, right_rows: 1, .. })
        ));
        assert_eq!(
            Dataset::new(Array2::zeros((0, 1)), Array2::zeros((0, 1))),
            Err(Error::NoSamples)
        );
        assert!(Dataset::new(two.clone(), Array2::zeros((2, 0))).is_err());
        assert!(matches!(
            Dataset::new(two, array![[1.0], [f64::NAN]]),
            Err(Error::NotFinite { what: "decisions", row: 1, column: 0, .. })
        ));
    }
}
