//! Whether a model's parts fit together: one read from a file may be anything.

use super::{FeatureWeights, Law, Model, Support};
use crate::decision_set::{Prices, RowLabel};
use crate::error::Error;
use ndarray::Array2;

impl Model {
    /// Whether the parts fit together; a model read from a file is checked by this before use.
    pub fn validate(&self) -> Result<(), Error> {
        self.features.validate()?;
        self.validate_record()?;
        self.names.check(self.features.signal_dim(), self.decision_dim())?;
        if let Some(seen) = &self.seen {
            seen.validate(self.features.signal_dim())?;
        }
        if let Some(calibration) = &self.calibration {
            calibration.validate(self.decision_dim())?;
        }
        if let Some(misfits) = &self.misfits {
            misfits.validate(self.decision_dim())?;
        }
        self.kernel().validate_for(self.features.n_features())?;
        match &self.law {
            Law::Kernel(support) => self.validate_support(support)?,
            Law::Primal(weights) => self.validate_weights(weights)?,
        }
        if let Some(theta) = &self.theta {
            for (what, part) in
                [("theta_uu", &theta.theta_uu), ("its multiplier", &theta.multiplier)]
            {
                if part.dim() != (self.decision_dim(), self.decision_dim()) {
                    let (expected, found) = (self.decision_dim(), part.nrows().min(part.ncols()));
                    return Err(Error::Width { what, owner: "the model", expected, found });
                }
                finite(what, part)?;
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

    /// Whether the sum over samples has the same samples in all its parts.
    fn validate_support(&self, support: &Support) -> Result<(), Error> {
        self.validate_prices(&support.prices)?;
        let parts = [
            ("support signals", &support.signals, self.features.signal_dim()),
            ("coefficients", &support.coefficients, self.decision_dim()),
        ];
        for (what, values, width) in parts {
            if values.ncols() != width {
                let found = values.ncols();
                return Err(Error::Width { what, owner: "the model", expected: width, found });
            }
            if values.nrows() != support.rows.len() {
                return Err(Error::RowCount {
                    left: what,
                    left_rows: values.nrows(),
                    right: "the list of support rows",
                    right_rows: support.rows.len(),
                });
            }
            finite(what, values)?;
        }
        Ok(())
    }

    /// Whether the prices are of limits there can be.
    fn validate_prices(&self, prices: &Prices) -> Result<(), Error> {
        let Prices { samples, limits, values } = prices;
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

    /// Whether the weights fit the features.
    fn validate_weights(&self, weights: &FeatureWeights) -> Result<(), Error> {
        let FeatureWeights { values, intercept } = weights;
        let right_rows = self.features.n_features() + usize::from(*intercept);
        if values.nrows() != right_rows {
            let (left, left_rows) = ("weights", values.nrows());
            return Err(Error::RowCount { left, left_rows, right: "the feature map", right_rows });
        }
        if values.ncols() != self.decision_dim() {
            let (expected, found) = (self.decision_dim(), values.ncols());
            return Err(Error::Width { what: "weights", owner: "the model", expected, found });
        }
        finite("weights", values)
    }
}

fn finite(what: &'static str, values: &Array2<f64>) -> Result<(), Error> {
    match values.indexed_iter().find(|(_, v)| !v.is_finite()) {
        Some(((row, column), &value)) => Err(Error::NotFinite { what, row, column, value }),
        None => Ok(()),
    }
}
