//! Proof that a set is empty.
//!
//! Weights w (≥ 0 on inequalities, any on equalities) with Σ w_i row_i = 0 and Σ w_i limit_i < 0
//! rule out every point: 0 = Σ w_i row_iᵀu ≤ Σ w_i limit_i < 0. In floating point the sum of the
//! rows is some small e instead, and the weights rule out the points with ‖u‖ < −Σ w_i limit_i /
//! ‖e‖.

use super::Constraints;

/// What the sum of weighted limits must be below, in units of the sum of their sizes, to count as
/// clearly negative.
const CLEAR: f64 = 1e-10;

/// How many times larger than the limits the ball must be in which no point is left.
const REACH: f64 = 1e4;

/// Whether `weights` (row, weight) prove the set empty; inequalities with a negative weight are
/// left out by the caller.
pub(super) fn proves_empty(set: Constraints<'_>, n: usize, weights: &[(u32, f64)]) -> bool {
    let mut sum = vec![0.0; n];
    let (mut value, mut size) = (0.0, 0.0);
    for &(row, weight) in weights {
        let row = row as usize;
        if row >= set.equalities && weight < 0.0 {
            return false;
        }
        let limit = set.limits[row];
        for (sum, a) in sum.iter_mut().zip(set.row(row, n)) {
            *sum += weight * a;
        }
        value += weight * limit;
        size += (weight * limit).abs();
    }
    let largest =
        weights.iter().fold(0.0_f64, |m, (row, _)| m.max(set.limits[*row as usize].abs()));
    let residual = sum.iter().map(|x| x * x).sum::<f64>().sqrt();
    value < -CLEAR * size && residual * REACH * largest < -value
}
