//! What is learned: everything a decision needs, and the proof that came with it.

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

/// A fitted model and the set decisions are taken from: g(s) = Σ κ(s, ŝ_i) α_i over the samples
/// that carry weight, or, for plain inverse optimization, g(s) = Vᵀφ(s) with explicit weights and
/// no samples at all.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Signals to features, with the statistics of the training data.
    pub features: FeatureMap,
    /// κ.
    pub kernel: Kernel,
    /// The model's own limits U.
    pub set: DecisionSet,
    /// Whether decisions are also limited by constraints that come with their signals, as those of
    /// training were.
    pub constrained: bool,
    /// θ_uu, where it is not the identity.
    pub theta: Option<LearnedTheta>,
    /// V of a plain model, n_features × decision_dim, one row more where κ is aᵀb + 1: that of the
    /// intercept. Nothing is in the lists of support then, nor in that of prices, which would
    /// outweigh the model: they follow from V and the data.
    pub weights: Option<Array2<f64>>,
    /// Signals of the samples with a coefficient that is not zero, n_support × signal_dim.
    pub support_signals: Array2<f64>,
    /// Their α, n_support × decision_dim.
    pub coefficients: Array2<f64>,
    /// Where they stood in the data, increasing in the order of training.
    pub support_rows: Vec<u64>,
    /// What the limits of the training samples cost, by their place in the data.
    pub prices: Prices,
    /// How the model came about.
    pub record: FitRecord,
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
    /// Cuts the samples without weight and keeps the rest; of an outcome with explicit weights,
    /// those alone.
    pub fn from_outcome(problem: &Problem, outcome: &Outcome, parts: Parts<'_>) -> Self {
        let Parts { features, kernel, set, constrained, signals, rows } = parts;
        let coefficients = outcome.certified.coefficients.t();
        let plain = outcome.weights.is_some();
        let support: Vec<usize> = coefficients
            .rows()
            .into_iter()
            .enumerate()
            .filter(|(_, row)| !plain && row.iter().any(|a| *a != 0.0))
            .map(|(i, _)| i)
            .collect();
        let prices = if plain {
            Prices::default()
        } else {
            Prices {
                samples: outcome.prices.samples.iter().map(|&i| rows[i as usize]).collect(),
                ..outcome.prices.clone()
            }
        };
        Self {
            features,
            kernel,
            set,
            constrained,
            theta: outcome.theta.clone(),
            weights: outcome.weights.as_ref().map(|v| v.t().as_standard_layout().into_owned()),
            support_signals: signals.select(Axis(0), &support),
            coefficients: coefficients.select(Axis(0), &support).as_standard_layout().into_owned(),
            support_rows: support.iter().map(|&i| rows[i]).collect(),
            prices,
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

    /// Samples that carry weight.
    pub fn n_support(&self) -> usize {
        self.support_rows.len()
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

    /// Whether the parts fit together; a model read from a file is checked by this before use.
    pub fn validate(&self) -> Result<(), Error> {
        self.features.validate()?;
        self.validate_record()?;
        self.validate_prices()?;
        self.kernel.validate_for(self.features.n_features())?;
        let n_support = self.n_support();
        let parts = [
            ("support signals", &self.support_signals, self.features.signal_dim()),
            ("coefficients", &self.coefficients, self.decision_dim()),
        ];
        for (what, values, width) in parts {
            if values.ncols() != width {
                let found = values.ncols();
                return Err(Error::Width { what, owner: "the model", expected: width, found });
            }
            if values.nrows() != n_support {
                return Err(Error::RowCount {
                    left: what,
                    left_rows: values.nrows(),
                    right: "the list of support rows",
                    right_rows: n_support,
                });
            }
            if let Some(((row, column), value)) =
                values.indexed_iter().find(|(_, v)| !v.is_finite())
            {
                return Err(Error::NotFinite { what, row, column, value: *value });
            }
        }
        if let Some(weights) = &self.weights {
            self.validate_weights(weights)?;
        }
        if let Some(theta) = &self.theta {
            for (what, part) in
                [("theta_uu", &theta.theta_uu), ("its multiplier", &theta.multiplier)]
            {
                if part.dim() != (self.decision_dim(), self.decision_dim()) {
                    let (expected, found) = (self.decision_dim(), part.nrows().min(part.ncols()));
                    return Err(Error::Width { what, owner: "the model", expected, found });
                }
                if let Some(((row, column), &value)) =
                    part.indexed_iter().find(|(_, v)| !v.is_finite())
                {
                    return Err(Error::NotFinite { what, row, column, value });
                }
            }
        }
        self.metric().map(drop)
    }

    /// Whether the story of the fit can be true of this model.
    fn validate_record(&self) -> Result<(), Error> {
        let record = &self.record;
        let c = record.certificate;
        let refuse = |name, found: f64, allowed| {
            Err(Error::Setting { name, found: found.to_string(), allowed })
        };
        if self.decision_dim() == 0 {
            return refuse("decision dimensions", 0.0, "one or more");
        }
        if record.n_samples < self.n_support().max(1) {
            let found = record.n_samples as f64;
            return refuse("n_samples", found, "one or more, and no fewer than carry weight");
        }
        if !(record.regularization > 0.0 && record.regularization.is_finite()) {
            return refuse("regularization", record.regularization, "a positive finite number");
        }
        if !(record.seconds >= 0.0 && record.seconds.is_finite()) {
            return refuse("seconds", record.seconds, "a finite number, zero or more");
        }
        let proof = [c.objective, c.primal, c.dual, c.gap, c.relative_gap, c.rounding];
        match proof.into_iter().find(|value| !value.is_finite()) {
            Some(value) => refuse("certificate", value, "finite numbers"),
            None => Ok(()),
        }
    }

    /// Whether the prices are of limits there can be.
    fn validate_prices(&self) -> Result<(), Error> {
        let Prices { samples, limits, values } = &self.prices;
        for (left, left_rows) in [("price limits", limits.len()), ("price values", values.len())] {
            if left_rows != samples.len() {
                let (right, right_rows) = ("price rows", samples.len());
                return Err(Error::RowCount { left, left_rows, right, right_rows });
            }
        }
        let dimension = |limit: &RowLabel| match *limit {
            RowLabel::Lower(j) | RowLabel::Upper(j) => j as usize,
            RowLabel::Equality(_) | RowLabel::Inequality(_) => 0,
        };
        if let Some(found) = limits.iter().map(dimension).find(|j| *j >= self.decision_dim()) {
            let (what, owner, expected) = ("a price's limit", "the model", self.decision_dim());
            return Err(Error::Width { what, owner, expected, found });
        }
        match values.iter().enumerate().find(|(_, v)| !v.is_finite()) {
            Some((row, &value)) => Err(Error::NotFinite { what: "prices", row, column: 0, value }),
            None => Ok(()),
        }
    }

    /// Whether the weights fit the features and the kernel they stand for.
    fn validate_weights(&self, weights: &Array2<f64>) -> Result<(), Error> {
        let n_features = self.features.n_features();
        let expected = match self.kernel {
            Kernel::Linear => n_features,
            _ if self.kernel == Kernel::linear_with_intercept() => n_features + 1,
            _ => {
                return Err(Error::Setting {
                    name: "weights",
                    found: format!("given for the kernel {}", self.kernel),
                    allowed: "weights for the linear kernel only",
                });
            }
        };
        if weights.nrows() != expected {
            let (left, left_rows, right_rows) = ("weights", weights.nrows(), expected);
            return Err(Error::RowCount { left, left_rows, right: "the feature map", right_rows });
        }
        if weights.ncols() != self.decision_dim() {
            let (expected, found) = (self.decision_dim(), weights.ncols());
            return Err(Error::Width { what: "weights", owner: "the model", expected, found });
        }
        if self.n_support() > 0 {
            let (left, left_rows) = ("support rows of a model with weights", self.n_support());
            return Err(Error::RowCount { left, left_rows, right: "such a model", right_rows: 0 });
        }
        match weights.indexed_iter().find(|(_, v)| !v.is_finite()) {
            Some(((row, column), &value)) => {
                Err(Error::NotFinite { what: "weights", row, column, value })
            }
            None => Ok(()),
        }
    }

    /// What each weight of a plain model belongs to: `1`, `s0`, `s0*s1`, and `intercept` where
    /// there is one.
    pub fn weight_names(&self) -> Vec<String> {
        let mut names = self.features.names();
        if self.weights.as_ref().is_some_and(|weights| weights.nrows() > names.len()) {
            names.push("intercept".to_owned());
        }
        names
    }
}
