//! How well decisions match the expert's.

use crate::decision_set::SampleSets;
use crate::error::Error;
use crate::predict::objective;
use crate::qp::Metric;
use ndarray::{ArrayView1, ArrayView2, Axis};
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
    /// Mean of F(s, û) − min over U of F(s, u) under the learned objective: zero where the model
    /// would have decided as the expert did, negative only for decisions outside their set.
    pub mean_suboptimality: f64,
    /// Predictions outside their set: zero, always.
    pub infeasible: usize,
}

/// Beyond a limit by more than this share of the limits' scale a prediction would count as outside.
const PREDICTION_TOLERANCE: f64 = 1e-9;

/// Compares X(`desired`) with `observed`, both n × decision_dim, under θ_uu and the sets of the
/// rows.
pub fn evaluate(
    desired: ArrayView2<'_, f64>,
    observed: ArrayView2<'_, f64>,
    metric: &Metric,
    sets: &SampleSets,
) -> Result<Metrics, Error> {
    if desired.nrows() != observed.nrows() {
        return Err(Error::RowCount {
            left: "predictions",
            left_rows: desired.nrows(),
            right: "decisions",
            right_rows: observed.nrows(),
        });
    }
    if observed.ncols() != sets.decision_dim() {
        return Err(Error::Width {
            what: "decisions",
            owner: "the model",
            expected: sets.decision_dim(),
            found: observed.ncols(),
        });
    }
    let (mut square, mut absolute, mut largest) = (0.0, 0.0, 0.0_f64);
    let (mut suboptimality, mut infeasible) = (0.0, 0);
    let columns = desired.t().as_standard_layout().into_owned();
    let (predicted, _) = sets.decide(metric, &columns, None)?;
    for (i, (g, u)) in desired.rows().into_iter().zip(observed.rows()).enumerate() {
        let (g, u, predicted) = (g.to_vec(), u.to_vec(), predicted.column(i).to_vec());
        infeasible +=
            usize::from(sets.excess(i, &predicted) > PREDICTION_TOLERANCE * sets.scale(0, i));
        for (p, u) in predicted.iter().zip(&u) {
            square += (p - u) * (p - u);
            absolute += (p - u).abs();
            largest = largest.max((p - u).abs());
        }
        suboptimality += objective(metric, &u, &g) - objective(metric, &predicted, &g);
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

/// The coefficient of determination R² of `predicted` for `observed`, both n × decision_dim: one
/// minus the squared error over the spread of what was observed, averaged over the dimensions.
///
/// A dimension without spread counts one where it is met exactly, else zero, as in scikit-learn.
/// `weights` has one number a row, or is none. NaN for fewer than two rows.
pub fn r2(
    predicted: ArrayView2<'_, f64>,
    observed: ArrayView2<'_, f64>,
    weights: Option<ArrayView1<'_, f64>>,
) -> f64 {
    if observed.nrows() < 2 {
        return f64::NAN;
    }
    let weight = |i: usize| weights.map_or(1.0, |weights| weights[i]);
    let total: f64 = (0..observed.nrows()).map(weight).sum();
    let of_dimension = |(predicted, observed): (ArrayView1<'_, f64>, ArrayView1<'_, f64>)| {
        let mean = observed.iter().enumerate().map(|(i, u)| weight(i) * u).sum::<f64>() / total;
        let (mut error, mut spread) = (0.0, 0.0);
        for (i, (p, u)) in predicted.iter().zip(observed).enumerate() {
            error += weight(i) * (u - p) * (u - p);
            spread += weight(i) * (u - mean) * (u - mean);
        }
        match (error, spread) {
            (0.0, 0.0) => 1.0,
            (_, 0.0) => 0.0,
            _ => 1.0 - error / spread,
        }
    };
    let columns = predicted.axis_iter(Axis(1)).zip(observed.axis_iter(Axis(1)));
    columns.map(of_dimension).sum::<f64>() / observed.ncols().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision_set::DecisionSet;
    use ndarray::array;

    #[test]
    fn measures_by_hand() {
        let sets = SampleSets::from(DecisionSet::bounds(1, -1.0, 1.0).unwrap());
        let metric = Metric::identity(1);
        let (desired, observed) = (array![[0.5], [3.0]], array![[0.0], [1.0]]);
        let m = evaluate(desired.view(), observed.view(), &metric, &sets).unwrap();
        assert_eq!((m.n, m.mae, m.max_error, m.infeasible), (2, 0.25, 0.5, 0));
        assert!((m.rmse - 0.125_f64.sqrt()).abs() < 1e-15);
        // Row 0: (0 − 0.5)² − 0; row 1 sits where the limit forces it: (1 − 3)² − (1 − 3)² = 0.
        assert!((m.mean_suboptimality - 0.125).abs() < 1e-15);
    }

    #[test]
    fn determination_by_hand() {
        let observed = array![[0.0, 5.0], [2.0, 5.0], [4.0, 5.0]];
        let predicted = array![[1.0, 5.0], [2.0, 5.0], [4.0, 5.0]];
        // 1 − 1/8 in the first dimension, met exactly in the second.
        let r = r2(predicted.view(), observed.view(), None);
        assert!((r - f64::midpoint(0.875, 1.0)).abs() < 1e-15);
        let weights = array![0.0, 1.0, 1.0];
        assert_eq!(r2(predicted.view(), observed.view(), Some(weights.view())), 1.0);
        let missed = array![[1.0, 4.0], [2.0, 5.0], [4.0, 5.0]];
        assert!((r2(missed.view(), observed.view(), None) - 0.4375).abs() < 1e-15);
        assert!(
            r2(predicted.slice(ndarray::s![..1, ..]), observed.slice(ndarray::s![..1, ..]), None)
                .is_nan()
        );
    }
}
