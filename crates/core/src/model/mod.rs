//! What is learned: everything a decision needs, and the proof that came with it.

mod calibration;
mod misfits;
mod seen;
mod validate;

pub use calibration::Calibration;
pub use misfits::{KeptOut, Misfit, Misfits};
pub use seen::{LEVELS, Seen};

use crate::dataset::Names;
use crate::decision_set::{DecisionSet, Prices, RowLabel};
use crate::error::Error;
use crate::features::FeatureMap;
use crate::kernel::Kernel;
use crate::problem::{Certificate, Problem};
use crate::qp::Metric;
pub use crate::solver::LearnedTheta;
use crate::solver::{Outcome, Status};
use crate::wording::Worded;
use ndarray::{Array2, ArrayView2, Axis};
use serde::{Deserialize, Serialize};

/// A fitted model and the set decisions are taken from.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Signals to features, with the statistics of the training data.
    pub features: FeatureMap,
    /// g(s), what would be decided if nothing were in the way.
    pub law: Law,
    /// The model's own limits U.
    pub set: DecisionSet,
    /// Whether decisions are also limited by constraints that come with their signals, as those of
    /// training were.
    pub constrained: bool,
    /// θ_uu, where it is not the identity.
    pub theta: Option<LearnedTheta>,
    /// What signals, decisions and limits are called.
    pub names: Names,
    /// What it remembers of the situations it was trained on; nothing in older models.
    pub seen: Option<Seen>,
    /// How far it was from the expert on rows kept aside; nothing where none were.
    pub calibration: Option<Calibration>,
    /// Rows that it explains worst; nothing where that was not looked for.
    pub misfits: Option<Misfits>,
    /// How the model came about.
    pub record: FitRecord,
}

/// How g(s) follows from the features of a signal.
#[derive(Clone, Debug, PartialEq)]
pub enum Law {
    /// A sum over samples.
    Kernel(Support),
    /// A sum over features.
    Primal(FeatureWeights),
}

/// g(s) = Σ κ(s, ŝ_i) α_i over the samples that carry weight.
#[derive(Clone, Debug, PartialEq)]
pub struct Support {
    /// κ.
    pub kernel: Kernel,
    /// Signals of the samples with a coefficient that is not zero, n_support × signal_dim.
    pub signals: Array2<f64>,
    /// Their α, n_support × decision_dim.
    pub coefficients: Array2<f64>,
    /// Where they stood in the data, increasing in the order of training.
    pub rows: Vec<u64>,
    /// What the limits of the training samples cost, by their place in the data.
    pub prices: Prices,
}

/// How far decisions can be from those of the exact optimum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PredictionBound {
    /// In the units of decisions.
    pub distance: f64,
    /// Whether it holds in any situation; else in those that were learned from.
    pub everywhere: bool,
}

/// g(s) = Vᵀφ(s): inverse optimization without a kernel, solved for V itself. No samples are kept,
/// nor the prices of their limits, which would outweigh the model: they follow from V and the data.
#[derive(Clone, Debug, PartialEq)]
pub struct FeatureWeights {
    /// V, n_features × decision_dim, and one row more for the intercept where there is one.
    pub values: Array2<f64>,
    /// Whether a constant counts as the last feature.
    pub intercept: bool,
}

impl FeatureWeights {
    /// The kernel that these weights would be an support of.
    pub fn kernel(&self) -> Kernel {
        if self.intercept { Kernel::linear_with_intercept() } else { Kernel::Linear }
    }
}

/// What a model is made of beside the solver's outcome.
pub struct Parts<'a> {
    /// Signals to features.
    pub features: FeatureMap,
    /// κ.
    pub kernel: Kernel,
    /// The model's own limits.
    pub set: DecisionSet,
    /// Whether constraints came with the data.
    pub constrained: bool,
    /// Training signals, n_samples × signal_dim.
    pub signals: ArrayView2<'a, f64>,
    /// Each sample's place in the data.
    pub rows: &'a [u64],
    /// What everything is called.
    pub names: Names,
}

/// How a fit went; stored with the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FitRecord {
    /// Why the solver stopped.
    pub status: Status,
    /// Training samples N.
    pub n_samples: usize,
    /// k.
    pub regularization: f64,
    /// The proof, about exactly the coefficients stored.
    pub certificate: Certificate,
    /// Solver steps.
    pub iterations: usize,
    /// Products with the kernel matrix.
    pub kernel_products: usize,
    /// Seconds from features to certificate.
    pub seconds: f64,
    /// Highest resident memory of the process that fitted, where the system tells.
    pub peak_memory_bytes: Option<u64>,
}

impl FitRecord {
    /// Why the solver stopped, in words, with what to change where it stopped short; `{:#}` names
    /// it as the command's flags.
    pub fn verdict(&self) -> Worded<'static> {
        let certificate = self.certificate;
        Worded(match self.status {
            // Half of the gap or more is what rounding may hide.
            Status::Stalled if 2.0 * certificate.rounding >= certificate.gap => {
                "stalled: rounding in double precision may hide a gap of this size (normalise the \
                 signals, or try a smaller {gamma}, a larger {regularization} or {tol})"
            }
            Status::Solved => "solved",
            Status::MaxIterations => "stopped at the step limit (raise {max_iterations})",
            Status::TimeLimit => "stopped at the time limit (raise {time_limit})",
            Status::Interrupted => "interrupted",
            Status::Stalled => {
                "stalled: no step closes the gap further (try a larger {tol} or {regularization})"
            }
        })
    }
}

impl Model {
    /// What deciding needs: no names, θ_uu = I, and no memory of training beside the record.
    pub fn bare(
        features: FeatureMap,
        law: Law,
        set: DecisionSet,
        constrained: bool,
        record: FitRecord,
    ) -> Self {
        Self {
            features,
            law,
            set,
            constrained,
            theta: None,
            names: Names::default(),
            seen: None,
            calibration: None,
            misfits: None,
            record,
        }
    }

    /// Cuts the samples without weight and keeps the rest; of an outcome with weights of features,
    /// those alone.
    pub fn from_outcome(problem: &Problem, outcome: &Outcome, parts: Parts<'_>) -> Self {
        let Parts { features, kernel, set, constrained, signals, rows, names } = parts;
        let law = match &outcome.feature_weights {
            Some(v) => Law::Primal(FeatureWeights {
                values: v.t().as_standard_layout().into_owned(),
                intercept: v.ncols() > features.n_features(),
            }),
            None => Law::Kernel(Support::from_outcome(outcome, kernel, signals, rows)),
        };
        Self {
            features,
            law,
            set,
            constrained,
            theta: outcome.theta.clone(),
            names,
            seen: None,
            calibration: None,
            misfits: None,
            record: FitRecord {
                status: outcome.status,
                n_samples: problem.n_samples(),
                regularization: problem.regularization(),
                certificate: outcome.certified.certificate,
                iterations: outcome.iterations,
                kernel_products: outcome.kernel_products,
                seconds: outcome.seconds,
                peak_memory_bytes: None,
            },
        }
    }

    /// κ; of a model that is solved for its weights, the kernel that they would be an support of.
    pub fn kernel(&self) -> Kernel {
        match &self.law {
            Law::Kernel(support) => support.kernel.clone(),
            Law::Primal(weights) => weights.kernel(),
        }
    }

    /// The sum over samples, where g is one.
    pub fn support(&self) -> Option<&Support> {
        match &self.law {
            Law::Kernel(support) => Some(support),
            Law::Primal(_) => None,
        }
    }

    /// The weights of features, where g is a sum over these.
    pub fn feature_weights(&self) -> Option<&FeatureWeights> {
        match &self.law {
            Law::Kernel(_) => None,
            Law::Primal(weights) => Some(weights),
        }
    }

    /// Samples that carry weight.
    pub fn n_support(&self) -> usize {
        self.support().map_or(0, |support| support.rows.len())
    }

    /// Length of a decision.
    pub fn decision_dim(&self) -> usize {
        self.set.decision_dim()
    }

    /// θ_uu with its factor.
    pub fn metric(&self) -> Result<Metric, Error> {
        match &self.theta {
            None => Ok(Metric::identity(self.decision_dim())),
            Some(theta) => Metric::new(theta.theta_uu.view()),
        }
    }

    /// How far a learned θ_uu can be from the optimal one, in the Frobenius norm.
    pub fn theta_bound(&self) -> Option<f64> {
        self.theta.as_ref().map(|_| self.record.certificate.theta_bound(self.record.regularization))
    }

    /// How far decisions of the model can be from the exact optimum's, where the certificate says
    /// more than the limits do: any decision for a kernel with a bound, those in the situations it
    /// was learned from for others, such as one with a slope.
    pub fn prediction_bound(&self) -> Option<PredictionBound> {
        // The bound is about coefficients alone; a learned θ_uu has its own.
        if self.theta.is_some() {
            return None;
        }
        let everywhere = self.kernel().bound();
        let largest = everywhere.or_else(|| self.largest_kernel_value())?;
        let bound = self.record.certificate.prediction_bound(largest, self.record.regularization);
        let limits = self.set.limits();
        let square: f64 =
            limits.upper().iter().zip(limits.lower()).map(|(u, l)| (u - l) * (u - l)).sum();
        (bound < square.sqrt())
            .then_some(PredictionBound { distance: bound, everywhere: everywhere.is_some() })
    }

    /// The largest κ(s, s) of the situations that carry weight.
    fn largest_kernel_value(&self) -> Option<f64> {
        let support = self.support()?;
        let mut largest = None;
        // One by one: all their features might not fit.
        for signal in support.signals.axis_chunks_iter(Axis(0), 1) {
            let features = self.features.transform(signal).ok()?.into_raw_vec_and_offset().0;
            let own = support.kernel.evaluate(&features, &features);
            largest = Some(largest.map_or(own, |so_far: f64| so_far.max(own)));
        }
        largest
    }

    /// What a limit is called.
    pub fn limit_name(&self, limit: RowLabel) -> String {
        limit.named(&self.names)
    }

    /// What each weight of a feature belongs to: `1`, `price`, `price*load` (`s0`, `s0*s1` where
    /// signals have no names), and `intercept` where there is one.
    pub fn weight_names(&self) -> Vec<String> {
        let signals: Vec<String> =
            (0..self.features.signal_dim()).map(|j| self.names.signal(j)).collect();
        let mut names = self.features.settings().expansion.names_of(&signals);
        if self.feature_weights().is_some_and(|weights| weights.intercept) {
            names.push("intercept".to_owned());
        }
        names
    }
}

impl Support {
    fn from_outcome(
        outcome: &Outcome,
        kernel: Kernel,
        signals: ArrayView2<'_, f64>,
        rows: &[u64],
    ) -> Self {
        let coefficients = outcome.certified.coefficients.t();
        let support: Vec<usize> = coefficients
            .rows()
            .into_iter()
            .enumerate()
            .filter(|(_, row)| row.iter().any(|a| *a != 0.0))
            .map(|(i, _)| i)
            .collect();
        Self {
            kernel,
            signals: signals.select(Axis(0), &support),
            coefficients: coefficients.select(Axis(0), &support).as_standard_layout().into_owned(),
            rows: support.iter().map(|&i| rows[i]).collect(),
            prices: Prices {
                samples: outcome.prices.samples.iter().map(|&i| rows[i as usize]).collect(),
                ..outcome.prices.clone()
            },
        }
    }
}
