//! How well decisions match the expert's.

use crate::decision_set::SampleSets;
use crate::error::Error;
use crate::qp::Metric;
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

/// Beyond a limit by more than this share of the limits' scale a prediction would count as outside.
const PREDICTION_TOLERANCE: f64 = 1e-9;

/// Compares X(`desired`) with `observed`, both n × decision_dim, under θ_uu and the sets of the rows.
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
    // uᵀΘu − 2gᵀu.
    let cost = |u: &[f64], g: &[f64]| -> f64 {
        let mut weighted = vec![0.0; u.len()];
        metric.apply(u, &mut weighted);
        (0..u.len()).map(|j| (weighted[j] - 2.0 * g[j]) * u[j]).sum()
    };
    for (i, (g, u)) in desired.rows().into_iter().zip(observed.rows()).enumerate() {
        let (g, u, predicted) = (g.to_vec(), u.to_vec(), predicted.column(i).to_vec());
        infeasible +=
            usize::from(sets.excess(i, &predicted) > PREDICTION_TOLERANCE * sets.scale(0, i));
        for (p, u) in predicted.iter().zip(&u) {
            square += (p - u) * (p - u);
            absolute += (p - u).abs();
            largest = largest.max((p - u).abs());
        }
        suboptimality += cost(&u, &g) - cost(&predicted, &g);
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
}
