//! What a solver returns.

use crate::decision_set::Prices;
use crate::error::Error;
use crate::precond::KeptFactor;
use crate::problem::{Certified, Problem};
use ndarray::Array2;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Why a solver stopped. Only the certificate says how good the point is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The certificate reached the tolerance.
    Solved,
    /// As many steps as allowed.
    MaxIterations,
    /// As much time as allowed.
    TimeLimit,
    /// The observer said stop.
    Interrupted,
    /// Steps no longer close the gap: the tolerance is below what the precision can show.
    Stalled,
}

impl Status {
    /// The name used in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Solved => "solved",
            Self::MaxIterations => "max_iterations",
            Self::TimeLimit => "time_limit",
            Self::Interrupted => "interrupted",
            Self::Stalled => "stalled",
        }
    }
}

/// θ_uu as learned.
#[derive(Clone, Debug, PartialEq)]
pub struct LearnedTheta {
    /// Θ ⪰ I, decision_dim × decision_dim.
    pub theta_uu: Array2<f64>,
    /// The multiplier P ⪰ 0 of Θ ⪰ I in [KIO 6], of the same size.
    pub multiplier: Array2<f64>,
}

/// A certified point and how it was reached.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Responses, coefficients, desired decisions and their certificate, recomputed by the problem.
    pub certified: Certified,
    /// V, decision_dim × n_features, where the solver worked on features: the certificate's upper
    /// bound is P(V) then, and the coefficients are those of the responses.
    pub feature_weights: Option<Array2<f64>>,
    /// θ_uu, where it was learned.
    pub theta: Option<LearnedTheta>,
    /// What the limits of the samples cost.
    pub prices: Prices,
    /// What a fit of more rows can start from, where it was asked for and there is something.
    pub factor: Option<Arc<KeptFactor>>,
    /// Why the solver stopped.
    pub status: Status,
    /// Steps taken.
    pub iterations: usize,
    /// Products with the kernel matrix, exact ones included.
    pub kernel_products: usize,
    /// Small quadratic programs that the active-set method handed to an interior-point solver.
    pub rescued_decisions: usize,
    /// Seconds spent in the solver.
    pub seconds: f64,
}

/// What a solver took.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Effort {
    pub(crate) iterations: usize,
    pub(crate) kernel_products: usize,
    pub(crate) rescued_decisions: usize,
    pub(crate) seconds: f64,
}

impl Outcome {
    /// Without weights, θ_uu and prices, which some solvers add.
    pub(crate) fn new(certified: Certified, status: Status, effort: Effort) -> Self {
        let Effort { iterations, kernel_products, rescued_decisions, seconds } = effort;
        Self {
            certified,
            feature_weights: None,
            theta: None,
            prices: Prices::default(),
            factor: None,
            status,
            iterations,
            kernel_products,
            rescued_decisions,
            seconds,
        }
    }

    /// The outcome in the units of the data, with the prices of its limits.
    pub(crate) fn finished(mut self, problem: &Problem) -> Result<Self, Error> {
        self.prices = problem.prices(&self.certified)?;
        self.certified = problem.without_weights(self.certified);
        Ok(self)
    }
}
