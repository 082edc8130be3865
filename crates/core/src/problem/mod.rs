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

mod block;
mod certificate;
mod groups;
mod measure;
mod point;
mod rounding;
mod theta;

pub(crate) use block::BlockProblem;
pub use certificate::{Certificate, Certified};
pub(crate) use measure::Values;
pub(crate) use theta::{ThetaBound, at_least_identity, square};

use crate::decision_set::{DecisionSet, Faces, SampleSets};
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
        self.sets = Arc::new(Arc::unwrap_or_clone(self.sets).coupled());
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

    /// The problem of a fit that never saw sample `i`.
    #[must_use]
    pub(crate) fn without(&self, i: usize) -> Self {
        let others: Vec<usize> = (0..self.n_samples()).filter(|&l| l != i).collect();
        let decisions = self.decisions.select(Axis(1), &others).as_standard_layout().into_owned();
        let weight = self.roots.as_ref().map_or(1.0, |roots| roots[i] * roots[i]);
        let rest = Self {
            decisions: Arc::new(decisions),
            sets: Arc::new(self.sets.select(&others)),
            metric: self.metric.clone(),
            groups: Groups::default(),
            largest: Vec::new(),
            total: self.total - weight,
            roots: self.roots.as_ref().map(|roots| others.iter().map(|&l| roots[l]).collect()),
            offset: None,
            scales: None,
            ..*self
        };
        rest.measured()
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
mod tests;
