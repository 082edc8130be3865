//! How well decisions match the expert's.

use crate::decision_set::DecisionSet;
use crate::error::Error;
use ndarray::ArrayView2;
use serde::Serialize;

/// Comparison of predicted with observed decisions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Metrics {
    /// Rows compared.
    pub n: usize,
    /// Root of the mean squared difference over all entries.
    pub rmse: f64,
    /// Mean absolute difference.
    pub mae: f64,
    /// Largest absolute difference.
    pub max_error: f64,
    /// Mean of F(s, û) − min over U of F(s, u) under the learned objective: zero where the model would have decided as
    /// the expert did, negative only for decisions outside their set.
    pub mean_suboptimality: f64,
    /// Predictions outside their set: zero, always.
    pub infeasible: usize,
}

/// Compares Π(`desired`) with `observed`, both n × decision_dim.
pub fn evaluate(
    desired: ArrayView2<'_, f64>,
    observed: ArrayView2<'_, f64>,
    set: &DecisionSet,
) -> Result<Metrics, Error> {
    if desired.nrows() != observed.nrows() {
        return Err(Error::RowCount {
            left: "predictions",
            left_rows: desired.nrows(),
            right: "decisions",
            right_rows: observed.nrows(),
        });
    }
    if observed.ncols() != set.decision_dim() {
        return Err(Error::Width {
            what: "decisions",
            owner: "the model",
            expected: set.decision_dim(),
            found: observed.ncols(),
        });
    }
    let (mut square, mut absolute, mut largest) = (0.0, 0.0, 0.0_f64);
    let (mut suboptimality, mut infeasible) = (0.0, 0);
    let square_distance =
        |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum() };
    for (g, u) in desired.rows().into_iter().zip(observed.rows()) {
        let (g, u) = (g.to_vec(), u.to_vec());
        let mut predicted = g.clone();
        set.project(&mut predicted);
        infeasible += usize::from(!set.contains(&predicted));
        square += square_distance(&predicted, &u);
        for (p, u) in predicted.iter().zip(&u) {
            absolute += (p - u).abs();
            largest = largest.max((p - u).abs());
        }
        suboptimality += square_distance(&u, &g) - square_distance(&predicted, &g);
    }
    let n = observed.nrows();
    let entries = observed.len().max(1) as f64;
    Ok(Metrics {
        n,
        rmse: (square / entries).sqrt(),
        mae: absolute / entries,
        max_error: largest,
        mean_suboptimality: suboptimality / n.max(1) as f64,
        infeasible,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn measures_by_hand() {
        let set = DecisionSet::bounds(1, -1.0, 1.0).unwrap();
        let m = evaluate(array![[0.5], [3.0]].view(), array![[0.0], [1.0]].view(), &set).unwrap();
        assert_eq!((m.n, m.mae, m.max_error, m.infeasible), (2, 0.25, 0.5, 0));
        assert!((m.rmse - 0.125_f64.sqrt()).abs() < 1e-15);
        // Row 0: (0 − 0.5)² − 0; row 1 sits where the limit forces it: (1 − 3)² − (1 − 3)² = 0.
        assert!((m.mean_suboptimality - 0.125).abs() < 1e-15);
    }
}
