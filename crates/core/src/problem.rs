//! The problem itself: objective, certificate and violations as pure functions of a point. Nothing here iterates.
//!
//! Enters: the expert's decisions û_i, their sets U_i, the regularization k and θ_uu = Θ. With Θ fixed the semidefinite program
//! [KIO 6], for Θ = I [KIO 9], is, exactly (book, chapter "One projection"),
//!
//! ```text
//! (Q)  min over x_i ∈ U_i of  (1/N) Σ x_iᵀΘx_i + (1/(kN²)) Σ κ_ij (û_i − x_i)ᵀ(û_j − x_j),     α_i = (û_i − x_i)/λ,  λ = kN
//! ```
//!
//! with g = Kα the desired decisions and x_i = X_i(g_i) at the optimum, where X_i(g) minimises uᵀΘu − 2gᵀu over U_i: the
//! projection Π_i(g) for Θ = I. A response x_i ∈ U_i is a point of (Q), its α a point of the primal [KIO 3], and the two values
//! enclose the optimum. With y_i = X_i(g_i):
//!
//! ```text
//! P(α) = k‖α‖²_K + (1/N) Σ ℓ_i,   ℓ_i = û_iᵀΘû_i − 2g_iᵀû_i − y_iᵀΘy_i + 2g_iᵀy_i,      D(x) = (1/N) Σ û_iᵀΘû_i − (Q)(x),
//! P(α) − D(x) = k‖α − (û−x)/λ‖²_K + (1/N) Σ δ_i,     δ_i = (x_i−y_i)ᵀΘ(x_i−y_i) + 2(x_i−y_i)ᵀ(Θy_i − g_i) ≥ 0.
//! ```
//!
//! Weights w_i stand for rows that occur w_i times. With λ = kΣw they are the plain problem of the decisions √w_i û_i, the sets √w_i U_i and
//! the kernel √(w_i w_j) κ_ij, which is how they are solved; solvers put the factors on the operator they are handed.
//!
//! All arrays here are decision_dim × n_samples: a dimension is a contiguous vector.

use crate::decision_set::{DecisionSet, Faces, Prices, SampleSets};
use crate::error::Error;
use crate::linalg::sums::{dot, sum_over};
use crate::operator::{KernelOperator, Weighted};
use crate::qp::Metric;
use ndarray::{Array2, ArrayView2, Axis};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Decisions to explain, the sets they were taken from, and how much simplicity is worth.
#[derive(Clone, Debug)]
pub struct Problem {
    decisions: Array2<f64>,
    sets: SampleSets,
    metric: Metric,
    regularization: f64,
    mean_square: f64,
    /// max |û|.
    largest: f64,
    /// What means are taken over: N or Σw, also in the problem of a block.
    total: f64,
    /// √w, where samples have weights.
    roots: Option<Vec<f64>>,
    /// What the samples outside a block add to its desired decisions; none for a whole problem.
    offset: Option<Array2<f64>>,
    /// What relative gaps of a block refer to: the whole problem's bounds.
    scale: Option<f64>,
}

/// Relative to the largest decision, a step below this is rounding.
const ROUNDING: f64 = 1e-12;
/// Relative to the largest decision, a difference up to this is none.
const LAST_BITS: f64 = 8.0 * f64::EPSILON;

/// Relative to the values, the disagreement of P − D with the gap that is plain rounding of sums.
const PAIR_ROUNDING: f64 = 1e-12;

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
    /// gap / max(|P|, |D|, 1e-12 · mean ûᵀΘû).
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

/// X(g) for every sample, and the faces of the sets it lies on.
#[derive(Clone, Debug)]
pub(crate) struct Decided {
    /// y = X(g), decision_dim × n_samples.
    pub(crate) decisions: Array2<f64>,
    pub(crate) faces: Faces,
}

fn check_regularization(regularization: f64) -> Result<(), Error> {
    if regularization > 0.0 && regularization.is_finite() {
        return Ok(());
    }
    Err(Error::Setting {
        name: "regularization",
        found: regularization.to_string(),
        allowed: "a positive finite number",
    })
}

impl From<DecisionSet> for SampleSets {
    fn from(set: DecisionSet) -> Self {
        Self::shared(set.limits())
    }
}

impl Problem {
    /// `decisions` is n_samples × decision_dim, as data comes; θ_uu = I, all weights one.
    pub fn new(
        decisions: ArrayView2<'_, f64>,
        sets: impl Into<SampleSets>,
        regularization: f64,
    ) -> Result<Self, Error> {
        let sets = sets.into();
        check_regularization(regularization)?;
        if decisions.nrows() == 0 {
            return Err(Error::NoSamples);
        }
        if decisions.ncols() != sets.decision_dim() {
            return Err(Error::Width {
                what: "decisions",
                owner: "the decision set",
                expected: sets.decision_dim(),
                found: decisions.ncols(),
            });
        }
        let problem = Self {
            metric: Metric::identity(decisions.ncols()),
            total: decisions.nrows() as f64,
            decisions: decisions.t().as_standard_layout().into_owned(),
            sets,
            regularization,
            mean_square: 0.0,
            largest: 0.0,
            roots: None,
            offset: None,
            scale: None,
        };
        Ok(problem.measured())
    }

    /// The same with sample i counting as `weights[i]` samples; all positive.
    pub fn with_weights(mut self, weights: &[f64]) -> Result<Self, Error> {
        let n_samples = self.n_samples();
        if weights.len() != n_samples {
            return Err(Error::RowCount {
                left: "weights",
                left_rows: weights.len(),
                right: "decisions",
                right_rows: n_samples,
            });
        }
        if let Some((i, w)) =
            weights.iter().enumerate().find(|(_, w)| !(**w > 0.0 && w.is_finite()))
        {
            return Err(Error::Weights {
                what: format!(
                    "the weight of sample {i} is {w}; it must be positive and finite here"
                ),
            });
        }
        let roots: Vec<f64> = weights.iter().map(|w| w.sqrt()).collect();
        for mut row in self.decisions.rows_mut() {
            row.iter_mut().zip(&roots).for_each(|(u, root)| *u *= root);
        }
        self.sets = self.sets.scaled(&roots);
        self.total = sum_over(n_samples, |i| weights[i]);
        self.roots = Some(roots);
        Ok(self.measured())
    }

    /// The same with θ_uu = Θ.
    #[must_use]
    pub fn with_theta(mut self, metric: Metric) -> Self {
        // Unless Θ = I the dimensions of a box are coupled.
        if !metric.is_identity() {
            self.sets = SampleSets::Polyhedra(self.sets.into_polyhedra());
        }
        self.metric = metric;
        self.measured()
    }

    /// The same with another regularization k.
    pub fn with_regularization(mut self, regularization: f64) -> Result<Self, Error> {
        check_regularization(regularization)?;
        self.regularization = regularization;
        Ok(self)
    }

    /// The same with its dimensions as one system even where boxes would let them apart: what a changing Θ needs.
    #[must_use]
    pub(crate) fn coupled(mut self) -> Self {
        self.sets = SampleSets::Polyhedra(self.sets.into_polyhedra());
        self
    }

    fn measured(mut self) -> Self {
        let flat = slice(&self.decisions);
        self.mean_square = dot(flat, slice(&self.theta_times(&self.decisions))) / self.total;
        self.largest = flat.iter().fold(0.0, |m: f64, u| m.max(u.abs()));
        self
    }

    /// The problem of the samples of a block while all others stay as they are.
    ///
    /// It has the form of the whole one, with the same λ = kN, except that the desired decisions are g_S = K_SSα_S + c:
    /// `offset` is c = g_S − K_SSα_S. Its gap is the block's share (1/N)Σδ_i of the whole gap, and relative gaps
    /// refer to `scale`.
    #[must_use]
    pub fn block(&self, samples: &[usize], offset: Array2<f64>, scale: f64) -> Self {
        let decisions = self.decisions.select(Axis(1), samples).as_standard_layout().into_owned();
        let block = Self {
            decisions,
            sets: self.sets.select(samples),
            metric: self.metric.clone(),
            roots: self.roots.as_ref().map(|roots| samples.iter().map(|&i| roots[i]).collect()),
            offset: Some(offset),
            scale: Some(scale),
            ..*self
        };
        Self { largest: self.largest, ..block.measured() }
    }

    /// Samples of this problem: N, or a block's p.
    pub fn n_samples(&self) -> usize {
        self.decisions.ncols()
    }

    /// n.
    pub fn decision_dim(&self) -> usize {
        self.decisions.nrows()
    }

    /// û, decision_dim × n_samples, times √w where there are weights.
    pub fn decisions(&self) -> ArrayView2<'_, f64> {
        self.decisions.view()
    }

    /// The samples' sets, blown up by √w where there are weights.
    pub fn sets(&self) -> &SampleSets {
        &self.sets
    }

    /// θ_uu.
    pub fn metric(&self) -> &Metric {
        &self.metric
    }

    /// k.
    pub fn regularization(&self) -> f64 {
        self.regularization
    }

    /// N or Σw: what means are taken over.
    pub fn total(&self) -> f64 {
        self.total
    }

    /// λ = kN.
    pub fn ridge(&self) -> f64 {
        self.regularization * self.total
    }

    /// √w, where samples have weights.
    pub(crate) fn roots(&self) -> Option<&[f64]> {
        self.roots.as_deref()
    }

    /// `operator` with this problem's weights: what it is solved with. Fails where they are not about as many samples.
    pub(crate) fn weigh<'a>(
        &self,
        operator: &'a dyn KernelOperator,
    ) -> Result<Weighted<'a>, Error> {
        if operator.n_samples() != self.n_samples() {
            return Err(Error::RowCount {
                left: "the kernel operator",
                left_rows: operator.n_samples(),
                right: "the problem",
                right_rows: self.n_samples(),
            });
        }
        Ok(Weighted::new(operator, self.roots()))
    }

    /// What relative gaps refer to at these bounds.
    pub(crate) fn scale(&self, primal: f64, dual: f64) -> f64 {
        self.scale.unwrap_or_else(|| primal.abs().max(dual.abs()).max(1e-12 * self.mean_square))
    }

    /// What the samples outside a block add to its desired decisions.
    pub(crate) fn offset(&self) -> Option<&Array2<f64>> {
        self.offset.as_ref()
    }

    /// ⟨α, c⟩: what the samples outside a block add to ‖α‖²_K, once.
    fn offset_product(&self, coefficients: &Array2<f64>) -> f64 {
        self.offset.as_ref().map_or(0.0, |offset| dot(slice(coefficients), slice(offset)))
    }

    /// Θv for every sample.
    pub(crate) fn theta_times<'a>(&self, v: &'a Array2<f64>) -> Cow<'a, Array2<f64>> {
        if self.metric.is_identity() {
            Cow::Borrowed(v)
        } else {
            Cow::Owned(self.metric.theta().dot(v))
        }
    }

    /// X(g) for every sample; `last` says where to look first.
    pub(crate) fn decide(
        &self,
        desired: &Array2<f64>,
        last: Option<&Faces>,
    ) -> Result<Decided, Error> {
        let (decisions, faces) = self.sets.decide(&self.metric, desired, last)?;
        Ok(Decided { decisions, faces })
    }

    /// Π(û − λα): the feasible responses nearest to what the coefficients stand for. Where that is the decision itself to
    /// rounding, it is the decision: a sample that its limit explains has a coefficient of exactly zero.
    pub(crate) fn responses(
        &self,
        coefficients: ArrayView2<'_, f64>,
    ) -> Result<Array2<f64>, Error> {
        let ridge = self.ridge();
        let rounding = ROUNDING * self.largest;
        let mut points = Array2::from_shape_fn(coefficients.dim(), |(j, i)| {
            let decision = self.decisions[[j, i]];
            let step = ridge * coefficients[[j, i]];
            if step.abs() <= rounding { decision } else { decision - step }
        });
        self.sets.project_all(&mut points)?;
        if matches!(self.sets, SampleSets::Polyhedra(_)) {
            // A projection on general rows has rounding of its own.
            for (mut x, u) in points.columns_mut().into_iter().zip(self.decisions.columns()) {
                if x.iter().zip(u).all(|(x, u)| (x - u).abs() <= rounding) {
                    x.assign(&u);
                }
            }
        }
        Ok(points)
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

    /// How far each response is from optimal: ‖x_i − X_i(g_i)‖², zero for every sample at the optimum.
    ///
    /// Completes [KIO 12], which covers only samples strictly inside their set. `decided` is X(g).
    pub(crate) fn violations(
        &self,
        responses: ArrayView2<'_, f64>,
        decided: ArrayView2<'_, f64>,
    ) -> Vec<f64> {
        (0..self.n_samples())
            .map(|i| {
                (0..self.decision_dim())
                    .map(|j| (responses[[j, i]] - decided[[j, i]]).powi(2))
                    .sum()
            })
            .collect()
    }

    /// δ_i: each sample's share of the gap, times N. Nonnegative for feasible responses. `decided` is X(g).
    pub(crate) fn gap_shares(
        &self,
        responses: &Array2<f64>,
        desired: &Array2<f64>,
        decided: &Array2<f64>,
    ) -> Vec<f64> {
        let terms = self.gap_terms(responses, desired, decided);
        (0..self.n_samples())
            .map(|i| (0..self.decision_dim()).map(|j| terms(j * self.n_samples() + i)).sum())
            .map(|share: f64| share.max(0.0))
            .collect()
    }

    /// q(x) − q(y) with q(u) = uᵀΘu − 2gᵀu and y = X(g), as (x−y)ᵀΘ(x−y) + 2(x−y)ᵀ(Θy−g), entry by entry: no cancellation, and both
    /// sums over a sample are nonnegative. On polyhedra x and y come from programs of their own: where they are the same point up to the last bits
    /// they are the same, or those bits times a large pull would be a gap of either sign.
    fn gap_terms<'a>(
        &self,
        responses: &'a Array2<f64>,
        desired: &'a Array2<f64>,
        decided: &'a Array2<f64>,
    ) -> impl Fn(usize) -> f64 + Sync + 'a {
        let (x, g, y) = (slice(responses), slice(desired), slice(decided));
        let same = match self.sets {
            SampleSets::Boxes(_) => 0.0,
            SampleSets::Polyhedra(_) => LAST_BITS * self.largest,
        };
        let apart = move |x: f64, y: f64| if (x - y).abs() <= same { 0.0 } else { x - y };
        let weighted = (!self.metric.is_identity()).then(|| {
            let mut difference = responses.clone();
            difference.zip_mut_with(decided, |x, y| *x = apart(*x, *y));
            (self.theta_times(&difference).into_owned(), self.theta_times(decided).into_owned())
        });
        move |at| {
            let difference = apart(x[at], y[at]);
            match &weighted {
                None => difference * difference + 2.0 * difference * (y[at] - g[at]),
                Some((td, ty)) => {
                    difference * slice(td)[at] + 2.0 * difference * (slice(ty)[at] - g[at])
                }
            }
        }
    }

    /// (1/N) Σ δ_i.
    pub(crate) fn mean_gap(
        &self,
        responses: &Array2<f64>,
        desired: &Array2<f64>,
        decided: &Array2<f64>,
    ) -> f64 {
        let terms = self.gap_terms(responses, desired, decided);
        let sum = match self.sets {
            SampleSets::Boxes(_) => sum_over(responses.len(), terms),
            SampleSets::Polyhedra(_) => {
                let (dim, n) = responses.dim();
                // On general rows a response may be outside by rounding, and its share negative: that much is not known, and counts.
                sum_over(n, |i| (0..dim).map(|j| terms(j * n + i)).sum::<f64>().abs())
            }
        };
        sum / self.total
    }

    /// P(α) for its desired decisions.
    pub(crate) fn primal(
        &self,
        coefficients: &Array2<f64>,
        desired: &Array2<f64>,
        decided: &Array2<f64>,
    ) -> f64 {
        let norm = dot(slice(coefficients), slice(desired)) - self.offset_product(coefficients);
        self.regularization * norm + self.mean_loss(desired, decided)
    }

    /// (1/N) Σ ℓ_i: how much better X(g_i) is than the expert's decision, by the objective of g.
    fn mean_loss(&self, desired: &Array2<f64>, decided: &Array2<f64>) -> f64 {
        let loss = if self.metric.is_identity() {
            let (u, g, y) = (slice(&self.decisions), slice(desired), slice(decided));
            sum_over(u.len(), |at| {
                let outside = g[at] - y[at];
                (u[at] - g[at]) * (u[at] - g[at]) - outside * outside
            })
        } else {
            sum_over(desired.len(), self.gap_terms(&self.decisions, desired, decided))
        };
        loss / self.total
    }

    /// gap / max(|P|, |D|, 1e-12 · mean ûᵀΘû).
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
    pub(crate) fn certify(
        &self,
        operator: &dyn KernelOperator,
        responses: Array2<f64>,
    ) -> Result<Certified, Error> {
        let coefficients = self.coefficients(responses.view());
        let desired = self.desired(operator, &coefficients)?;
        let decided = self.decide(&desired, None)?.decisions;
        let certificate = self.certificate(&responses, &coefficients, &desired, &decided);
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
        let decided = self.decide(&desired, None)?.decisions;
        let difference = &coefficients - &self.coefficients(responses.view());
        let mut image = Array2::zeros(difference.dim());
        operator.exact().apply(difference.view(), image.view_mut())?;
        // (Q) and D belong to the responses, P to the coefficients.
        let Certificate { objective, mut dual, .. } = certified.certificate;
        let primal = self.primal(&coefficients, &desired, &decided);
        let distance = dot(slice(&difference), slice(&image)).max(0.0);
        let mut gap =
            self.regularization * distance + self.mean_gap(&responses, &desired, &decided);
        // P and D come from two products. Where k is so small that these are rounded visibly, what they disagree by counts as gap.
        let rounding = (primal - dual - gap).abs();
        if rounding > PAIR_ROUNDING * (primal.abs() + dual.abs() + objective.abs()) {
            gap += rounding;
            dual = primal - gap;
        }
        let relative_gap = self.relative(gap, primal, dual);
        let certificate = Certificate { objective, primal, dual, gap, relative_gap };
        Ok(Certified { responses, coefficients, desired, certificate })
    }

    /// The certificate of a feasible point with its own coefficients α = (û − x)/λ, desired decisions g = Kα and X(g).
    pub(crate) fn certificate(
        &self,
        responses: &Array2<f64>,
        coefficients: &Array2<f64>,
        desired: &Array2<f64>,
        decided: &Array2<f64>,
    ) -> Certificate {
        // λ²/(kN²) = k turns the second term of (Q) into k‖α‖²_K, in a block k(‖α‖²_K + 2⟨α, c⟩).
        let norm = dot(slice(coefficients), slice(desired)) + self.offset_product(coefficients);
        let square = dot(slice(responses), slice(&self.theta_times(responses)));
        let objective = square / self.total + self.regularization * norm;
        let primal = self.primal(coefficients, desired, decided);
        let dual = self.mean_square - objective;
        let gap = self.mean_gap(responses, desired, decided);
        Certificate { objective, primal, dual, gap, relative_gap: self.relative(gap, primal, dual) }
    }

    /// The certificate of explicit weights V (decision_dim × n_features) with the responses x = X(g), g = VΦᵀ, from the definitions and
    /// without a kernel: ‖(û−x)/λ‖²_K is ‖V_x‖² for `own` V_x = (û−x)Φ/λ. Every δ_i is zero, and the gap is k‖V − V_x‖².
    pub(crate) fn certificate_of_weights(
        &self,
        weights: &Array2<f64>,
        own: &Array2<f64>,
        desired: &Array2<f64>,
        decided: &Array2<f64>,
    ) -> Certificate {
        let square = |v: &Array2<f64>| dot(slice(v), slice(v));
        let responses = dot(slice(decided), slice(&self.theta_times(decided)));
        let objective = responses / self.total + self.regularization * square(own);
        let primal = self.regularization * square(weights) + self.mean_loss(desired, decided);
        let dual = self.mean_square - objective;
        let gap = self.regularization * square(&(weights - own));
        Certificate { objective, primal, dual, gap, relative_gap: self.relative(gap, primal, dual) }
    }

    /// The point in the units of the data: without the factors √w that weighted problems are solved with.
    pub(crate) fn without_weights(&self, mut certified: Certified) -> Certified {
        if let Some(roots) = &self.roots {
            let scale = |array: &mut Array2<f64>, factor: &dyn Fn(f64) -> f64| {
                for mut row in array.rows_mut() {
                    row.iter_mut().zip(roots).for_each(|(v, root)| *v *= factor(*root));
                }
            };
            scale(&mut certified.responses, &|root| 1.0 / root);
            scale(&mut certified.desired, &|root| 1.0 / root);
            scale(&mut certified.coefficients, &|root| root);
        }
        certified
    }

    /// What the samples' limits cost at the point: the multipliers [KIO 4] has for them, a sample's own whatever its weight.
    pub(crate) fn prices(&self, certified: &Certified) -> Result<Prices, Error> {
        let mut prices = self.sets.prices(&self.metric, &certified.desired)?;
        if let Some(roots) = &self.roots {
            let samples = prices.samples.iter().map(|&i| roots[i as usize]);
            prices.values.iter_mut().zip(samples).for_each(|(value, root)| *value /= root);
        }
        Ok(prices)
    }

    /// mean ûᵀΘû.
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
            let responses = problem.responses(any.view()).unwrap();
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
            let decided = problem.decide(&certified.desired, None).unwrap().decisions;
            let shares = problem.gap_shares(&certified.responses, &certified.desired, &decided);
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
