//! The training rows that a model explains worst: usually errors in the data, or another expert.

use crate::error::Error;
use ndarray::ArrayView2;
use serde::{Deserialize, Serialize};

/// Rows that are kept at most.
const KEPT: usize = 10;

/// Rows on which a model that has not learned from them is furthest from the expert, worst first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Misfits {
    /// How the rows were kept out of the model.
    pub by: KeptOut,
    /// The rows.
    pub rows: Vec<Misfit>,
}

/// How rows were kept out of the model that is to explain them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeptOut {
    /// Each row by itself, and all of them.
    LeaveOneOut,
    /// Rows that were kept aside together, and these alone.
    HeldOut,
}

/// One row that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Misfit {
    /// Its place in the data.
    pub row: u64,
    /// The dimension it fits worst in.
    pub dimension: usize,
    /// What the expert decided there.
    pub decision: f64,
    /// What the model would have decided.
    pub expected: f64,
    /// How far these are apart, in units of the usual error (root mean square) of the dimension.
    pub times_usual: f64,
}

impl Misfits {
    /// The worst of `rows`, of which this was decided (n × decision_dim), and this would have been
    /// by a model that has not learned from them.
    pub fn new(
        by: KeptOut,
        rows: &[usize],
        decided: ArrayView2<'_, f64>,
        expected: ArrayView2<'_, f64>,
    ) -> Self {
        let errors = &decided - &expected;
        let n = rows.len().max(1) as f64;
        let usual: Vec<f64> =
            errors.columns().into_iter().map(|e| (e.dot(&e) / n).sqrt()).collect();
        let worst_of = |i: usize| {
            let times = |j: usize| {
                let error = errors[[i, j]].abs();
                if error > 0.0 { error / usual[j] } else { 0.0 }
            };
            let dimension = (0..usual.len()).max_by(|&a, &b| times(a).total_cmp(&times(b)));
            dimension.map(|dimension| Misfit {
                row: rows[i] as u64,
                dimension,
                decision: decided[[i, dimension]],
                expected: expected[[i, dimension]],
                times_usual: times(dimension),
            })
        };
        let mut all: Vec<Misfit> = (0..rows.len())
            .filter_map(worst_of)
            .filter(|misfit| misfit.times_usual > 0.0 && misfit.times_usual.is_finite())
            .collect();
        all.sort_by(|a, b| b.times_usual.total_cmp(&a.times_usual).then(a.row.cmp(&b.row)));
        all.truncate(KEPT);
        Self { by, rows: all }
    }

    /// Whether they are of decisions of this length, and numbers.
    pub fn validate(&self, decision_dim: usize) -> Result<(), Error> {
        let right = |misfit: &Misfit| {
            misfit.dimension < decision_dim
                && [misfit.decision, misfit.expected, misfit.times_usual]
                    .iter()
                    .all(|value| value.is_finite())
        };
        if self.rows.iter().all(right) {
            return Ok(());
        }
        let (found, allowed) = ("out of order".to_owned(), "finite, in the decision's dimensions");
        Err(Error::Setting { name: "rows that do not fit", found, allowed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array2;

    #[test]
    fn the_worst_row_is_the_one_furthest_off_in_units_of_its_dimension() {
        // Dimension 1 is a thousand times larger; its errors are no worse for that.
        let mut decided = Array2::from_shape_fn((50, 2), |(i, j)| {
            (i as f64).sin() * if j == 1 { 1000.0 } else { 1.0 }
        });
        let expected = &decided * 0.9;
        decided[[7, 0]] += 3.0;
        decided[[9, 1]] -= 1500.0;
        let rows: Vec<usize> = (100..150).collect();
        let found = Misfits::new(KeptOut::LeaveOneOut, &rows, decided.view(), expected.view());
        assert_eq!((found.rows.len(), found.rows[0].row, found.rows[0].dimension), (KEPT, 107, 0));
        assert_eq!((found.rows[1].row, found.rows[1].dimension), (109, 1));
        assert!(found.rows[0].times_usual > 5.0 && found.validate(2).is_ok());
        assert!(found.validate(1).is_err());
        let right = Misfits::new(KeptOut::HeldOut, &rows, decided.view(), decided.view());
        assert!(right.rows.is_empty());
    }
}
