//! The problem itself: objective, certificate and violations as pure functions of a point. Nothing
//! here iterates.
//!
//! Enters: the expert's decisions û_i, their sets U_i, the regularization k and θ_uu = Θ. With Θ
//! fixed the semidefinite program [KIO 6], for Θ = I [KIO 9], is, exactly (book, chapter "One
//! projection"),
//!
//! ```text
//! (Q)  min over x_i ∈ U_i of  (1/N) Σ x_iᵀΘx_i + (1/(kN²)) Σ κ_ij (û_i − x_i)ᵀ(û_j − x_j),
//!      α_i = (û_i − x_i)/λ,  λ = kN
//! ```
//!
//! with g = Kα the desired decisions and x_i = X_i(g_i) at the optimum, where X_i(g) minimises uᵀΘu
//! − 2gᵀu over U_i: the projection Π_i(g) for Θ = I. A response x_i ∈ U_i is a point of (Q), its α
//! a point of the primal [KIO 3], and the two values enclose the optimum. With y_i = X_i(g_i):
//!
//! ```text
//! P(α) = k‖α‖²_K + (1/N) Σ ℓ_i,   ℓ_i = û_iᵀΘû_i − 2g_iᵀû_i − y_iᵀΘy_i + 2g_iᵀy_i,
//! D(x) = (1/N) Σ û_iᵀΘû_i − (Q)(x),
//! P(α) − D(x) = k‖α − (û−x)/λ‖²_K + (1/N) Σ δ_i,
//! δ_i = (x_i−y_i)ᵀΘ(x_i−y_i) + 2(x_i−y_i)ᵀ(Θy_i − g_i) ≥ 0.
//! ```
//!
//! Weights w_i stand for rows that occur w_i times. With λ = kΣw they are the plain problem of the
//! decisions √w_i û_i, the sets √w_i U_i and the kernel √(w_i w_j) κ_ij, which is how they are
//! solved; solvers put the factors on the operator they are handed.
//!
//! All arrays here are decision_dim × n_samples: a dimension is a contiguous vector.

mod certificate;
mod groups;
mod measure;
mod theta;

pub use certificate::{Certificate, Certified};
pub(crate) use measure::Values;
pub(crate) use theta::{ThetaBound, at_least_identity, square};

use crate::decision_set::{DecisionSet, Faces, Prices, SampleSets};
use crate::error::Error;
use crate::linalg::sums::{dot, sum_over};
use crate::operator::{KernelOperator, Weighted};
use crate::qp::Metric;
use groups::Groups;
use ndarray::{Array2, ArrayView1, ArrayView2, Axis};
use std::borrow::Cow;
use std::sync::Arc;

/// Decisions whose squares, and what is multiplied with them, stay inside the range of f64.
const SMALLEST: f64 = 1e-75;
const LARGEST: f64 = 1e75;

/// Decisions to explain, the sets they were taken from, and how much simplicity is worth.
#[derive(Clone, Debug)]
pub struct Problem {
    /// Shared with copies that differ in Θ or k alone.
    decisions: Arc<Array2<f64>>,
    sets: Arc<SampleSets>,
    metric: Metric,
    regularization: f64,
    /// Dimensions that limits or Θ tie together: their values are separate sums, and judged each.
    groups: Groups,
    mean_square: f64,
    /// max |û| of each dimension's group.
    largest: Vec<f64>,
    /// What means are taken over: N or Σw, also in the problem of a block.
    total: f64,
    /// √w, where samples have weights.
    roots: Option<Vec<f64>>,
    /// What the samples outside a block add to its desired decisions; none for a whole problem.
    offset: Option<Array2<f64>>,
    /// What relative gaps of a block refer to: the whole problem's bounds, group by group.
    scales: Option<Vec<f64>>,
}

/// Relative to the largest decision of a dimension, a step below this may be rounding.
const ROUNDING: f64 = 1e-12;
/// λ from which on a coefficient of a last place over λ is none.
const HARMLESS: f64 = 1e-6;

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
            decisions: Arc::new(decisions.t().as_standard_layout().into_owned()),
            sets: Arc::new(sets),
            regularization,
            groups: Groups::default(),
            mean_square: 0.0,
            largest: Vec::new(),
            roots: None,
            offset: None,
            scales: None,
        };
        problem.check_range()?;
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
        for mut row in Arc::make_mut(&mut self.decisions).rows_mut() {
            row.iter_mut().zip(&roots).for_each(|(u, root)| *u *= root);
        }
        self.sets = Arc::new(self.sets.scaled(&roots));
        self.total = sum_over(n_samples, |i| weights[i]);
        self.roots = Some(roots);
        Ok(self.measured())
    }

    /// The same with θ_uu = Θ.
    #[must_use]
    pub fn with_theta(mut self, metric: Metric) -> Self {
        // Unless Θ = I the dimensions of a box are coupled.
        if !metric.is_identity() {
            self = self.coupled();
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

    /// The same with its dimensions as one system even where boxes would let them apart: what a
    /// changing Θ needs.
    #[must_use]
    pub(crate) fn coupled(mut self) -> Self {
        if self.sets.is_separate() {
            let sets = Arc::unwrap_or_clone(self.sets);
            self.sets = Arc::new(SampleSets::Polyhedra(sets.into_polyhedra()));
        }
        self
    }

    fn measured(mut self) -> Self {
        self.groups = Groups::new(&self.sets, &self.metric);
        let flat = slice(&self.decisions);
        self.mean_square = dot(flat, slice(&self.theta_times(&self.decisions))) / self.total;
        let largest = |row: ArrayView1<'_, f64>| row.iter().fold(0.0, |m: f64, u| m.max(u.abs()));
        let rows: Vec<f64> = self.decisions.rows().into_iter().map(largest).collect();
        self.largest = self.groups.spread(&self.groups.largest(&rows));
        self
    }

    /// Squares of decisions must be numbers: dimensions that leave the range of f64 are told, not
    /// rounded to nothing.
    fn check_range(&self) -> Result<(), Error> {
        for (dimension, row) in self.decisions.rows().into_iter().enumerate() {
            let largest = row.iter().fold(0.0, |m: f64, u| m.max(u.abs()));
            if largest != 0.0 && !(SMALLEST..=LARGEST).contains(&largest) {
                return Err(Error::DecisionRange { dimension, largest });
            }
        }
        Ok(())
    }

    /// The problem of the samples of a block while all others stay as they are.
    ///
    /// It has the form of the whole one, with the same λ = kN, except that the desired decisions
    /// are g_S = K_SSα_S + c: `offset` is c = g_S − K_SSα_S. Its gap is the block's share (1/N)Σδ_i
    /// of the whole gap, and relative gaps refer to `scales`, one a group of dimensions.
    #[must_use]
    pub(crate) fn block(&self, samples: &[usize], offset: Array2<f64>, scales: Vec<f64>) -> Self {
        let decisions = self.decisions.select(Axis(1), samples).as_standard_layout().into_owned();
        let block = Self {
            decisions: Arc::new(decisions),
            sets: Arc::new(self.sets.select(samples)),
            metric: self.metric.clone(),
            groups: Groups::default(),
            largest: Vec::new(),
            roots: self.roots.as_ref().map(|roots| samples.iter().map(|&i| roots[i]).collect()),
            offset: Some(offset),
            scales: Some(scales),
            ..*self
        };
        // The rows of a block may leave dimensions apart that others tie together.
        let (groups, largest) = (self.groups.clone(), self.largest.clone());
        Self { groups, largest, ..block.measured() }
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

    /// `operator` with this problem's weights: what it is solved with. Fails where they are not
    /// about as many samples.
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

    /// What the samples outside a block add to its desired decisions.
    pub(crate) fn offset(&self) -> Option<&Array2<f64>> {
        self.offset.as_ref()
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

    /// Π(û − λα): the feasible responses nearest to what the coefficients stand for. A sample that
    /// its limit explains has the decision itself, and a coefficient of exactly zero.
    pub(crate) fn responses(
        &self,
        coefficients: ArrayView2<'_, f64>,
    ) -> Result<Array2<f64>, Error> {
        let ridge = self.ridge();
        let mut points = Array2::from_shape_fn(coefficients.dim(), |(j, i)| {
            let decision = self.decisions[[j, i]];
            let step = ridge * coefficients[[j, i]];
            if self.is_negligible(j, i, step) { decision } else { decision - step }
        });
        self.sets.project_all(&mut points)?;
        if !self.sets.is_separate() {
            // A projection on general rows has rounding of its own.
            for (i, mut x) in points.columns_mut().into_iter().enumerate() {
                let u = self.decisions.column(i);
                let steps = x.iter().zip(u).map(|(x, u)| x - u);
                if steps.enumerate().all(|(j, step)| self.is_negligible(j, i, step)) {
                    x.assign(&u);
                }
            }
        }
        Ok(points)
    }

    /// Whether a response `step` away from sample `i`'s decision is that decision up to rounding,
    /// which counts where a limit holds it. Inside the limits a coefficient is as good as it is
    /// small: with a tiny λ all of them stand for tiny steps.
    fn is_negligible(&self, j: usize, i: usize, step: f64) -> bool {
        let decision = self.decisions.column(i);
        step.abs() <= ROUNDING * self.largest[j]
            && self.sets.is_on_limit(j, i, decision, ROUNDING * self.largest[j])
            // A decision that was kept beyond its limits, if by a last place, costs its distance
            // over λ.
            && (self.ridge() >= HARMLESS || self.sets.beyond(i, decision) == 0.0)
    }

    /// Coefficients whose effect on a response is rounding become zero, as those of
    /// [`responses`](Self::responses) are.
    pub(crate) fn without_rounding(&self, mut coefficients: Array2<f64>) -> Array2<f64> {
        let ridge = self.ridge();
        for ((j, i), a) in coefficients.indexed_iter_mut() {
            if self.is_negligible(j, i, ridge * *a) {
                *a = 0.0;
            }
        }
        coefficients
    }

    /// α = (û − x)/λ.
    pub fn coefficients(&self, responses: ArrayView2<'_, f64>) -> Array2<f64> {
        (&*self.decisions - &responses) / self.ridge()
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

    /// The point in the units of the data: without the factors √w that weighted problems are solved
    /// with.
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

    /// What the samples' limits cost at the point: the multipliers [KIO 4] has for them, a sample's
    /// own whatever its weight.
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

    /// The same, group by group.
    pub(crate) fn mean_squares(&self) -> Vec<f64> {
        let theta_u = self.theta_times(&self.decisions);
        self.means(|at| slice(&self.decisions)[at] * slice(&theta_u)[at])
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
            let any = |(j, i)| (i as f64 * 1.3 + j as f64 + seed).cos();
            let any = Array2::from_shape_fn((dim, n), any);
            let responses = problem.responses(any.view()).unwrap();
            let certified = problem.certify(&operator, responses).unwrap();
            let c = certified.certificate;
            prop_assert!(c.gap >= 0.0);
            let scale = c.primal.abs().max(c.dual.abs()).max(c.objective.abs());
            // The bounds are rounded up and down by what sums may be off.
            let rounded = |c: Certificate| c.primal - c.dual - c.gap;
            prop_assert!(rounded(c).abs() <= 1e-11 * scale, "{c:?}");
            // The pair identity, at coefficients that are not those of the responses.
            let other = any.mapv(|a: f64| 0.3 * a);
            let pair = problem.certify_pair(&operator, other, &certified).unwrap();
            let p = pair.certificate;
            let scale = p.primal.abs().max(p.dual.abs()).max(p.objective.abs());
            prop_assert!(p.gap >= 0.0);
            prop_assert!(rounded(p).abs() <= 1e-11 * scale, "{p:?}");
            prop_assert!((p.objective - c.objective).abs() <= 1e-12 * scale);
            let decided = problem.decide(&certified.desired, None).unwrap().decisions;
            let shares = problem.gap_shares(&certified.responses, &certified.desired, &decided);
            let mean = shares.iter().sum::<f64>() / n as f64;
            prop_assert!((mean + c.rounding - c.gap).abs() <= 2e-12 * c.gap.max(1e-300));
            // What rounding may hide is counted, and little.
            prop_assert!((0.0..1e-9 * scale).contains(&c.rounding), "{c:?}");
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
