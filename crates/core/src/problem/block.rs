//! The problem of a block, and the step that several blocks take together.

use super::groups::Groups;
use super::{Problem, slice};
use crate::decision_set::SampleSets;
use crate::error::Error;
use crate::qp::Metric;
use ndarray::{Array2, Axis};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A block's problem as a message has it: what [`Problem::block`] takes from the whole one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct BlockProblem {
    #[serde(with = "crate::linalg::rows")]
    decisions: Array2<f64>,
    sets: SampleSets,
    /// Θ; none for the identity.
    theta: Option<Theta>,
    regularization: f64,
    total: f64,
    roots: Option<Vec<f64>>,
    /// The rows of a block may leave dimensions apart that others tie together.
    groups: Groups,
    largest: Vec<f64>,
    scales: Vec<f64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Theta(#[serde(with = "crate::linalg::rows")] Array2<f64>);

impl BlockProblem {
    /// The problem, as if no sample outside the block added anything to its desired decisions.
    pub(crate) fn alone(self) -> Result<Problem, Error> {
        let Self { groups, largest, .. } = self;
        let block = Problem {
            metric: match self.theta {
                None => Metric::identity(self.decisions.nrows()),
                Some(Theta(theta)) => Metric::new(theta.view())?,
            },
            decisions: Arc::new(self.decisions),
            sets: Arc::new(self.sets),
            regularization: self.regularization,
            groups: Groups::default(),
            mean_square: 0.0,
            largest: Vec::new(),
            total: self.total,
            roots: self.roots,
            offset: None,
            scales: Some(self.scales),
        };
        Ok(Problem { groups, largest, ..block.measured() })
    }

    /// û of the block's samples, decision_dim × their number.
    pub(crate) fn decisions(&self) -> &Array2<f64> {
        &self.decisions
    }
}

impl Problem {
    /// The problem of the samples of a block while all others stay as they are.
    ///
    /// It has the form of the whole one, with the same λ = kN, except that the desired decisions
    /// are g_S = K_SSα_S + c, where c = g_S − K_SSα_S is its offset. Its gap is the block's share
    /// (1/N)Σδ_i of the whole gap, and relative gaps refer to `scales`, one a group of dimensions.
    #[must_use]
    pub(crate) fn block(&self, samples: &[usize], scales: Vec<f64>) -> BlockProblem {
        let theta = || Theta(self.metric.theta().to_owned());
        BlockProblem {
            decisions: self.decisions.select(Axis(1), samples).as_standard_layout().into_owned(),
            sets: self.sets.select(samples),
            theta: (!self.metric.is_identity()).then(theta),
            regularization: self.regularization,
            total: self.total,
            roots: self.roots.as_ref().map(|roots| samples.iter().map(|&i| roots[i]).collect()),
            groups: self.groups.clone(),
            largest: self.largest.clone(),
            scales,
        }
    }

    /// The same with what the samples outside the block add to its desired decisions.
    #[must_use]
    pub(crate) fn with_offset(self, offset: Array2<f64>) -> Self {
        Self { offset: Some(offset), ..self }
    }

    /// How far to go from x towards x + Δ, a share of the way for each dimension: (Q) along it is
    /// a parabola of its own for every group of dimensions,
    ///
    /// ```text
    /// N·(Q)(x + tΔ) = … + 2t Σ Δ_iᵀ(Θx_i − g_i) + t² Σ Δ_iᵀ(ΘΔ_i − g′_i),   g′ = −KΔ/λ
    /// ```
    ///
    /// and both ends are in U_i, so that what lies between is, too.
    pub(crate) fn step(
        &self,
        responses: &Array2<f64>,
        change: &Array2<f64>,
        desired: &Array2<f64>,
        desired_change: &Array2<f64>,
    ) -> Vec<f64> {
        let (pull, bend) = (self.theta_times(responses), self.theta_times(change));
        let (pull, bend, delta) = (slice(&pull), slice(&bend), slice(change));
        let slopes = self.means(|at| delta[at] * (pull[at] - slice(desired)[at]));
        let bends = self.means(|at| delta[at] * (bend[at] - slice(desired_change)[at]));
        let share = |(slope, bend): (f64, f64)| match slope < 0.0 {
            // A curvature of zero or less is rounding: Σ Δᵀ(Θ + K/λ)Δ is positive.
            true if bend > 0.0 => (-slope / bend).min(1.0),
            true => 1.0,
            false => 0.0,
        };
        let steps: Vec<f64> = slopes.into_iter().zip(bends).map(share).collect();
        self.groups.spread(&steps)
    }
}
