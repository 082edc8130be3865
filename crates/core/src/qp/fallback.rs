//! The way out when the active-set method goes in circles: Clarabel's interior-point method names
//! the active rows.

use super::{Constraints, Metric, QpError, farkas};
use clarabel::algebra::CscMatrix;
use clarabel::solver::{
    DefaultSettings, DefaultSolver, IPSolver, SolverStatus, SupportedConeT::NonnegativeConeT,
    SupportedConeT::ZeroConeT,
};

/// Rows an interior-point method takes for active, the strongest multiplier first.
pub(super) fn active_rows(
    metric: &Metric,
    set: Constraints<'_>,
    g: &[f64],
) -> Result<Vec<u32>, QpError> {
    let n = metric.dim();
    let finite = |i: &usize| *i < set.equalities || set.limits[*i] < f64::INFINITY;
    let kept: Vec<usize> = (0..set.limits.len()).filter(finite).collect();
    let limits: Vec<f64> = kept.iter().map(|&i| set.limits[i]).collect();
    let theta = metric.theta();
    let objective = dense_columns(n, n, |i, j| if i <= j { 2.0 * theta[[i, j]] } else { 0.0 });
    let rows = dense_columns(kept.len(), n, |i, j| set.rows[kept[i] * n + j]);
    let linear: Vec<f64> = g.iter().map(|g| -2.0 * g).collect();
    let cones = [ZeroConeT(set.equalities), NonnegativeConeT(kept.len() - set.equalities)];
    let settings = DefaultSettings {
        verbose: false,
        max_threads: 1,
        tol_gap_abs: 1e-12,
        tol_gap_rel: 1e-12,
        tol_feas: 1e-12,
        ..DefaultSettings::default()
    };
    let mut solver = DefaultSolver::new(&objective, &linear, &rows, &limits, &cones, settings)
        .map_err(|_| QpError::Unsolved)?;
    solver.solve();
    let answer = &solver.solution;
    if answer.status == SolverStatus::PrimalInfeasible {
        let weights: Vec<(u32, f64)> = kept
            .iter()
            .zip(&answer.z)
            .filter(|(i, z)| **i < set.equalities || **z > 0.0)
            .map(|(i, z)| (*i as u32, *z))
            .collect();
        if farkas::proves_empty(set, n, &weights) {
            return Err(QpError::Empty { rows: weights.into_iter().map(|(i, _)| i).collect() });
        }
    }
    // Complementarity: of slack and multiplier one goes to zero, and the larger one tells which.
    let mut active: Vec<usize> =
        (set.equalities..kept.len()).filter(|&i| answer.z[i] > answer.s[i]).collect();
    active.sort_by(|&i, &j| answer.z[j].total_cmp(&answer.z[i]));
    Ok(active.into_iter().map(|i| kept[i] as u32).collect())
}

/// A matrix in compressed columns, zeros left out.
fn dense_columns(m: usize, n: usize, entry: impl Fn(usize, usize) -> f64) -> CscMatrix<f64> {
    let (mut starts, mut places, mut values) = (vec![0], Vec::new(), Vec::new());
    for j in 0..n {
        for i in 0..m {
            let value = entry(i, j);
            if value != 0.0 {
                places.push(i);
                values.push(value);
            }
        }
        starts.push(values.len());
    }
    CscMatrix::new(m, n, starts, places, values)
}
