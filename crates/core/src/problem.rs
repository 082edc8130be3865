//! The problem itself: objective, certificate and violations as pure functions of a point. Nothing here iterates.
//!
//! Enters: the expert's decisions û_i, their set U and the regularization k. With θ_uu = I the semidefinite program [KIO 9]
//! is, exactly (book, chapter "One projection"),
//!
//! ```text
//! (Q)  min over x_i ∈ U of  (1/N) Σ‖x_i‖² + (1/(kN²)) Σ κ_ij (û_i − x_i)ᵀ(û_j − x_j),     α_i = (û_i − x_i)/λ,  λ = kN
//! ```
//!
//! with g = Kα the desired decisions and x_i = Π(g_i) at the optimum. A response x ∈ U is a point of (Q), its α a point of
//! the primal [KIO 3], and the two values enclose the optimum:
//!
//! ```text
//! P(α) = k‖α‖²_K + (1/N) Σ (‖û_i − g_i‖² − dist²(g_i, U)),    D(x) = (1/N) Σ‖û_i‖² − (Q)(x),
//! P(α) − D(x) = k‖α − (û−x)/λ‖²_K + (1/N) Σ δ_i,              δ_i = ‖x_i − g_i‖² − dist²(g_i, U) ≥ 0.
//! ```
//!
//! All arrays here are decision_dim × n_samples: a dimension is a contiguous vector.

use crate::decision_set::{BoxLimits, DecisionSet};
use crate::error::Error;
use crate::linalg::sums::{dot, sum_over};
use crate::operator::KernelOperator;
use ndarray::{Array2, ArrayView2, Axis};
use serde::{Deserialize, Serialize};

/// Decisions to explain, the set they were taken from, and how much simplicity is worth.
#[derive(Clone, Debug)]
pub struct Problem {
    decisions: Array2<f64>,
    set: DecisionSet,
    regularization: f64,
    mean_square: f64,
    /// max |û|.
    largest: f64,
    /// Samples that means run over: all of them, also in the problem of a block.
    n_total: usize,
    /// What the samples outside a block add to its desired decisions; none for a whole problem.
    offset: Option<Array2<f64>>,
    /// What relative gaps of a block refer to: the whole problem's bounds.
    scale: Option<f64>,
}

/// Relative to the largest decision, a step below this is rounding.
const ROUNDING: f64 = 1e-12;

/// Two values that enclose the optimum, and how far apart they are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// (Q)(x), the paper's [KIO 9], at the responses.
    pub objective: f64,
    /// P(α): an upper bound on the optimal suboptimality loss plus regularization ([KIO 3] without the constant kn).
    pub primal: f64,
    /// D(x): a lower bound on the same.
    pub dual: f64,
    /// P(α) − D(x) from the identity of nonnegative terms.
    pub gap: f64,
    /// gap / max(|P|, |D|, 1e-12 · mean‖û‖²).
    pub relative_gap: f64,
}

/// A feasible point with everything that follows from it.
#[derive(Clone, Debug)]
pub struct Certified {
    /// x, decision_dim × n_samples, in U.
    pub responses: Array2<f64>,
    /// α: that of the responses, (û − x)/λ, unless a solver found one with a smaller gap.
    pub coefficients: Array2<f64>,
    /// g = Kα by the f64 kernel.
    pub desired: Array2<f64>,
    /// The proof.
    pub certificate: Certificate,
}

impl Problem {
    /// `decisions` is n_samples × decision_dim, as data comes.
    pub fn new(
        decisions: ArrayView2<'_, f64>,
        set: DecisionSet,
        regularization: f64,
    ) -> Result<Self, Error> {
        if !(regularization > 0.0 && regularization.is_finite()) {
            return Err(Error::Setting {
                name: "regularization",
                found: regularization.to_string(),
                allowed: "a positive finite number",
            });
        }
        if decisions.nrows() == 0 {
            return Err(Error::NoSamples);
        }
        if decisions.ncols() != set.decision_dim() {
            return Err(Error::Width {
                what: "decisions",
                owner: "the decision set",
                expected: set.decision_dim(),
                found: decisions.ncols(),
            });
        }
        let n_total = decisions.nrows();
        let decisions = decisions.t().as_standard_layout().into_owned();
        let flat = slice(&decisions);
        let mean_square = dot(flat, flat) / n_total as f64;
        let largest = flat.iter().fold(0.0, |m: f64, u| m.max(u.abs()));
        let (offset, scale) = (None, None);
        Ok(Self { decisions, set, regularization, mean_square, largest, n_total, offset, scale })
    }

    /// The problem of the samples of a block while all others stay as they are.
    ///
    /// It has the form of the whole one, with the same λ = kN, except that the desired decisions are g_S = K_SSα_S + c:
    /// `offset` is c = g_S − K_SSα_S. Its gap is the block's share (1/N)Σδ_i of the whole gap, and relative gaps
    /// refer to `scale`.
    #[must_use]
    pub fn block(&self, samples: &[usize], offset: Array2<f64>, scale: f64) -> Self {
        let decisions = self.decisions.select(Axis(1), samples).as_standard_layout().into_owned();
        let flat = slice(&decisions);
        let mean_square = dot(flat, flat) / self.n_total as f64;
        Self {
            decisions,
            set: self.set.clone(),
            regularization: self.regularization,
            mean_square,
            largest: self.largest,
            n_total: self.n_total,
            offset: Some(offset),
            scale: Some(scale),
        }
    }

    /// Samples of this problem: N, or a block's p.
    pub fn n_samples(&self) -> usize {
        self.decisions.ncols()
    }

    /// n.
    pub fn decision_dim(&self) -> usize {
        self.decisions.nrows()
    }

    /// û, decision_dim × n_samples.
    pub fn decisions(&self) -> ArrayView2<'_, f64> {
        self.decisions.view()
    }

    /// U.
    pub fn set(&self) -> &DecisionSet {
        &self.set
    }

    /// k.
    pub fn regularization(&self) -> f64 {
        self.regularization
    }

    /// λ = kN.
    pub fn ridge(&self) -> f64 {
        self.regularization * self.n_total as f64
    }

    /// What relative gaps refer to at these bounds.
    pub(crate) fn scale(&self, primal: f64, dual: f64) -> f64 {
        self.scale.unwrap_or_else(|| primal.abs().max(dual.abs()).max(1e-12 * self.mean_square))
    }

    /// ⟨α, c⟩: what the samples outside a block add to ‖α‖²_K, once.
    fn offset_product(&self, coefficients: &Array2<f64>) -> f64 {
        self.offset.as_ref().map_or(0.0, |offset| dot(slice(coefficients), slice(offset)))
    }

    pub(crate) fn limits(&self) -> &BoxLimits {
        self.set.limits()
    }

    /// Π(û − λα): the feasible responses nearest to what the coefficients stand for. Where that is the decision itself to
    /// rounding, it is the decision: a sample that its limit explains has a coefficient of exactly zero.
    pub fn responses(&self, coefficients: ArrayView2<'_, f64>) -> Array2<f64> {
        let (ridge, limits) = (self.ridge(), self.limits());
        let rounding = ROUNDING * self.largest;
        Array2::from_shape_fn(coefficients.dim(), |(j, i)| {
            let decision = self.decisions[[j, i]];
            let step = ridge * coefficients[[j, i]];
            limits.clamp(j, if step.abs() <= rounding { decision } else { decision - step })
        })
    }

    /// Coefficients whose effect on a response is rounding become zero, as those of [`responses`](Self::responses) are.
    pub(crate) fn without_rounding(&self, mut coefficients: Array2<f64>) -> Array2<f64> {
        let (ridge, rounding) = (self.ridge(), ROUNDING * self.largest);
        coefficients.mapv_inplace(|a| if (ridge * a).abs() <= rounding { 0.0 } else { a });
        coefficients
    }

    /// α = (û − x)/λ.
    pub fn coefficients(&self, responses: ArrayView2<'_, f64>) -> Array2<f64> {
        (&self.decisions - &responses) / self.ridge()
    }

    /// How far each response is from optimal: ‖x_i − Π(g_i)‖², zero for every sample at the optimum.
    ///
    /// Completes [KIO 12], which covers only samples strictly inside their set.
    pub fn violations(
        &self,
        responses: ArrayView2<'_, f64>,
        desired: ArrayView2<'_, f64>,
    ) -> Vec<f64> {
        let limits = self.limits();
        (0..self.n_samples())
            .map(|i| {
                (0..self.decision_dim())
                    .map(|j| (responses[[j, i]] - limits.clamp(j, desired[[j, i]])).powi(2))
                    .sum()
            })
            .collect()
    }

    /// δ_i: each sample's share of the gap, times N. Nonnegative for feasible responses.
    pub fn gap_shares(
        &self,
        responses: ArrayView2<'_, f64>,
        desired: ArrayView2<'_, f64>,
    ) -> Vec<f64> {
        (0..self.n_samples())
            .map(|i| {
                (0..self.decision_dim())
                    .map(|j| self.gap_term(j, responses[[j, i]], desired[[j, i]]))
                    .sum()
            })
            .collect()
    }

    /// ‖x−g‖² − ‖y−g‖² with y = Π(g), as (x−y)² + 2(x−y)(y−g): no cancellation, and both terms are nonnegative.
    fn gap_term(&self, j: usize, x: f64, g: f64) -> f64 {
        let y = self.limits().clamp(j, g);
        (x - y) * (x - y) + 2.0 * (x - y) * (y - g)
    }

    /// (1/N) Σ δ_i.
    pub(crate) fn mean_gap(&self, responses: &Array2<f64>, desired: &Array2<f64>) -> f64 {
        let (x, g, n) = (slice(responses), slice(desired), self.n_samples());
        sum_over(x.len(), |at| self.gap_term(at / n, x[at], g[at])) / self.n_total as f64
    }

    /// P(α) for its desired decisions.
    pub(crate) fn primal(&self, coefficients: &Array2<f64>, desired: &Array2<f64>) -> f64 {
        let (u, g, n) = (slice(&self.decisions), slice(desired), self.n_samples());
        let limits = self.limits();
        let loss = sum_over(u.len(), |at| {
            let outside = g[at] - limits.clamp(at / n, g[at]);
            (u[at] - g[at]) * (u[at] - g[at]) - outside * outside
        });
        let norm = dot(slice(coefficients), g) - self.offset_product(coefficients);
        self.regularization * norm + loss / self.n_total as f64
    }

    /// gap / max(|P|, |D|, 1e-12 · mean‖û‖²).
    pub(crate) fn relative(&self, gap: f64, primal: f64, dual: f64) -> f64 {
        if gap == 0.0 { 0.0 } else { gap / self.scale(primal, dual) }
    }

    /// g = Kα, in a block with what the other samples add, by an exact product.
    pub(crate) fn desired(
        &self,
        operator: &dyn KernelOperator,
        coefficients: &Array2<f64>,
    ) -> Result<Array2<f64>, Error> {
        let mut desired = Array2::zeros(coefficients.dim());
        operator.exact().apply(coefficients.view(), desired.view_mut())?;
        if let Some(offset) = &self.offset {
            desired += offset;
        }
        Ok(desired)
    }

    /// Builds the coefficients of feasible `responses`, multiplies them with the f64 kernel and measures the gap, all
    /// from the definitions. Cost: one exact product.
    pub fn certify(
        &self,
        operator: &dyn KernelOperator,
        responses: Array2<f64>,
    ) -> Result<Certified, Error> {
        let coefficients = self.coefficients(responses.view());
        let desired = self.desired(operator, &coefficients)?;
        let certificate = self.certificate(&responses, &coefficients, &desired);
        if !(certificate.gap.is_finite() && certificate.primal.is_finite()) {
            return Err(Error::Numerical {
                what: format!(
                    "the objective overflowed (primal {}, gap {})",
                    certificate.primal, certificate.gap
                ),
            });
        }
        Ok(Certified { responses, coefficients, desired, certificate })
    }

    /// As [`certify`](Self::certify), for `coefficients` beside the responses of `certified`, by the full gap identity
    /// k‖α − (û−x)/λ‖²_K + (1/N)Σδ_i. Cost: two exact products. Of use where α is better than that of the nearest feasible
    /// responses, whose gap can be larger by ‖K‖/λ: for small k, and where a solver stops early.
    pub(crate) fn certify_pair(
        &self,
        operator: &dyn KernelOperator,
        coefficients: Array2<f64>,
        certified: &Certified,
    ) -> Result<Certified, Error> {
        let responses = certified.responses.clone();
        let desired = self.desired(operator, &coefficients)?;
        let difference = &coefficients - &self.coefficients(responses.view());
        let mut image = Array2::zeros(difference.dim());
        operator.exact().apply(difference.view(), image.view_mut())?;
        // (Q) and D belong to the responses, P to the coefficients.
        let Certificate { objective, dual, .. } = certified.certificate;
        let primal = self.primal(&coefficients, &desired);
        let distance = dot(slice(&difference), slice(&image)).max(0.0);
        let gap = self.regularization * distance + self.mean_gap(&responses, &desired);
        let relative_gap = self.relative(gap, primal, dual);
        let certificate = Certificate { objective, primal, dual, gap, relative_gap };
        Ok(Certified { responses, coefficients, desired, certificate })
    }

    /// The certificate of a feasible point with its own coefficients α = (û − x)/λ and desired decisions g = Kα.
    pub(crate) fn certificate(
        &self,
        responses: &Array2<f64>,
        coefficients: &Array2<f64>,
        desired: &Array2<f64>,
    ) -> Certificate {
        let x = slice(responses);
        let n = self.n_total as f64;
        // λ²/(kN²) = k turns the second term of (Q) into k‖α‖²_K, in a block k(‖α‖²_K + 2⟨α, c⟩).
        let norm = dot(slice(coefficients), slice(desired)) + self.offset_product(coefficients);
        let objective = dot(x, x) / n + self.regularization * norm;
        let primal = self.primal(coefficients, desired);
        let dual = self.mean_square - objective;
        let gap = self.mean_gap(responses, desired);
        Certificate { objective, primal, dual, gap, relative_gap: self.relative(gap, primal, dual) }
    }

    /// mean‖û‖².
    pub fn mean_square(&self) -> f64 {
        self.mean_square
    }
}

impl Certificate {
    /// A bound on ‖u(s) − u*(s)‖, the distance of any prediction from that of the exact optimum, for a signal with
    /// κ(s, s) = `kernel_value`: √(κ(s, s)·gap/k).
    pub fn prediction_bound(&self, kernel_value: f64, regularization: f64) -> f64 {
        (kernel_value * self.gap / regularization).sqrt()
    }
}

/// The values of an array this crate made itself.
pub(crate) fn slice(array: &Array2<f64>) -> &[f64] {
    array.as_slice().expect("arrays of the solvers are in standard layout")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;
    use crate::operator::{HostOperator, OperatorKind, Precision};
    use proptest::prelude::*;

    fn setup(n: usize, dim: usize, k: f64, seed: f64) -> (Problem, HostOperator) {
        let wave = |rows, columns, phase: f64| {
            Array2::from_shape_fn((rows, columns), |(i, j)| {
                ((i * 5 + j * 11) as f64 * 0.77 + phase).sin()
            })
        };
        let set = DecisionSet::bounds(dim, -0.5, 0.8).unwrap();
        let decisions = wave(n, dim, seed).mapv(|u: f64| u.clamp(-0.5, 0.8));
        let operator = HostOperator::new(
            wave(n, 3, 2.0 * seed).view(),
            Kernel::Rbf { gamma: 0.4 },
            Precision::F64,
            OperatorKind::Stored,
        )
        .unwrap();
        (Problem::new(decisions.view(), set, k).unwrap(), operator)
    }

    proptest! {
        /// Weak duality at any point, and the identity that makes the gap a sum of squares.
        #[test]
        fn the_gap_is_primal_minus_dual_and_never_negative(
            n in 1_usize..40, dim in 1_usize..4, k in 1e-4..1.0_f64, seed in 0.0..6.0_f64
        ) {
            let (problem, operator) = setup(n, dim, k, seed);
            let any = Array2::from_shape_fn((dim, n), |(j, i)| (i as f64 * 1.3 + j as f64 + seed).cos());
            let responses = problem.responses(any.view());
            let certified = problem.certify(&operator, responses).unwrap();
            let c = certified.certificate;
            prop_assert!(c.gap >= 0.0);
            let scale = c.primal.abs().max(c.dual.abs()).max(c.objective.abs());
            prop_assert!((c.primal - c.dual - c.gap).abs() <= 1e-13 * scale, "{c:?}");
            // The pair identity, at coefficients that are not those of the responses.
            let other = any.mapv(|a: f64| 0.3 * a);
            let pair = problem.certify_pair(&operator, other, &certified).unwrap();
            let p = pair.certificate;
            let scale = p.primal.abs().max(p.dual.abs()).max(p.objective.abs());
            prop_assert!(p.gap >= 0.0);
            prop_assert!((p.primal - p.dual - p.gap).abs() <= 1e-12 * scale, "{p:?}");
            prop_assert!((p.objective - c.objective).abs() <= 1e-12 * scale);
            let shares = problem.gap_shares(certified.responses.view(), certified.desired.view());
            let mean = shares.iter().sum::<f64>() / n as f64;
            prop_assert!((mean - c.gap).abs() <= 1e-12 * c.gap.max(1e-300));
        }
    }

    #[test]
    fn refuses_a_regularization_that_is_not_positive() {
        let set = DecisionSet::unbounded(1);
        for k in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let decisions = Array2::zeros((2, 1));
            assert!(matches!(
                Problem::new(decisions.view(), set.clone(), k),
                Err(Error::Setting { name: "regularization", .. })
            ));
        }
    }
}
