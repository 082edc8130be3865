//! The certificate of a learned Θ = θ_uu: [KIO 6] bounded from both sides.
//!
//! With A = mean ûûᵀ and B(x) = A − mean xxᵀ, any feasible x gives a lower bound with Θ_x = V
//! max(E, 1)Vᵀ, −B(x)/(2k) = V diag(E) Vᵀ, and P_x = 2kΘ_x + B(x) ⪰ 0. The gap is a sum of
//! nonnegative terms: that of the problem with Θ fixed, k‖Θ − Θ_x‖² and Tr((Θ − I)P_x). Θ is known
//! to √(gap/k).

use super::rounding::SUMS;
use super::{Certificate, Certified, Problem};
use crate::error::Error;
use crate::linalg::dense::eigen;
use ndarray::Array2;

/// A bound on [KIO 6] with what it is made of.
pub(crate) struct ThetaBound {
    /// B(x).
    pub(crate) b: Array2<f64>,
    /// P_x, the multiplier of Θ ⪰ I.
    pub(crate) multiplier: Array2<f64>,
    pub(crate) certificate: Certificate,
}

impl Problem {
    /// Bounds [KIO 6] at Θ, which is this problem's, and a point of it. Cost: O(N n²).
    pub(crate) fn certify_theta(&self, inner: &Certified) -> Result<ThetaBound, Error> {
        let k = self.regularization;
        let theta = self.metric.theta();
        let c = inner.certificate;
        // ûûᵀ − xxᵀ = (û − x)ûᵀ + x(û − x)ᵀ: what is fixed, or explained, adds nothing that could
        // be rounded.
        let step = &*self.decisions - &inner.responses;
        let half = step.dot(&self.decisions.t()) + inner.responses.dot(&step.t());
        let b = (&half + &half.t()) / (2.0 * self.total);
        let theta_x = at_least_identity(&(&b / (-2.0 * k)))?;
        let multiplier = &theta_x * (2.0 * k) + &b;
        let distance = square(&(&theta - &theta_x)).sqrt();
        let above = &theta - &Array2::<f64>::eye(theta.nrows());
        let slack = (&above * &multiplier).sum().max(0.0);

        let size = |a: &Array2<f64>| a.iter().map(|v| v * v).sum::<f64>().sqrt();
        let both = size(&step) * (size(&self.decisions) + size(&inner.responses)) / self.total;
        let off = SUMS * (both + square(&b).sqrt());
        let rounding = (2.0 * distance + off / (2.0 * k)) * off / 2.0 + 2.0 * off * size(&above);

        let gap = c.gap + k * distance * distance + slack + rounding;
        let primal = k * square(&theta.to_owned()) + c.primal;
        // D_Θ(x) = Tr(ΘB(x)) − energy.
        let energy = (&theta * &b).sum() - c.dual;
        let dual = k * square(&theta_x) + (&theta_x * &b).sum() - energy;
        // Inner bounds may be further apart than their gap, by what P itself may be off.
        let bound = primal - gap - (c.primal - c.dual - c.gap).max(0.0);
        let certificate = Certificate {
            // The minimum of [KIO 6] is minus the saddle value.
            objective: -dual,
            primal,
            dual: bound,
            gap,
            relative_gap: if gap == 0.0 { 0.0 } else { gap / primal.abs().max(bound.abs()) },
            rounding: c.rounding + rounding,
        };
        Ok(ThetaBound { b, multiplier, certificate })
    }
}

/// ‖A‖².
pub(crate) fn square(a: &Array2<f64>) -> f64 {
    a.iter().map(|v| v * v).sum()
}

/// The nearest matrix with no eigenvalue below one.
pub(crate) fn at_least_identity(a: &Array2<f64>) -> Result<Array2<f64>, Error> {
    let n = a.nrows();
    let symmetric = (a + &a.t()) / 2.0;
    let flat: Vec<f64> = symmetric.iter().copied().collect();
    let lost =
        || Error::Numerical { what: "the eigenvalues of theta_uu were not found".to_owned() };
    let (vectors, values) = eigen(&flat, n).ok_or_else(lost)?;
    if values.iter().any(|e| !e.is_finite()) {
        return Err(lost());
    }
    let mut out = Array2::eye(n);
    for (column, e) in vectors.chunks(n).zip(values).filter(|(_, e)| *e > 1.0) {
        for i in 0..n {
            for j in 0..n {
                out[[i, j]] += (e - 1.0) * column[i] * column[j];
            }
        }
    }
    Ok(out)
}
