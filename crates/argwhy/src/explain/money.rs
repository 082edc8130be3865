//! What the learned cost is worth in money.
//!
//! Decisions fix a cost up to a factor. Where a unit of one decision u_p is known to cost what a
//! signal c says, the true cost has the part c·u_p, and the learned one, uᵀΘu − 2gᵀu, has
//! −2 (∂g_p/∂c) c·u_p: a unit of it is worth −1/(2 ∂g_p/∂c).

use super::Explainer;
use crate::error::Error;
use ndarray::Axis;
use serde::Serialize;

/// Situations the slope is averaged over.
const ROWS: usize = 400;
/// Step of the signal, in units of its spread, over which a slope is taken.
const STEP: f64 = 0.25;

/// What a unit of the learned cost is worth.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Money {
    /// The decision whose unit cost is known.
    pub decision: String,
    /// The signal that says it; prices of limits are in its money.
    pub signal: String,
    /// Money for a unit of the learned cost.
    pub worth: f64,
    /// How much that differs from situation to situation: the deviation of the slope over its
    /// mean.
    pub varies: f64,
}

impl Explainer<'_> {
    /// The same with prices and costs in money too: a unit of `decision` costs what `signal` says.
    pub fn in_money(mut self, decision: &str, signal: &str) -> Result<Self, Error> {
        let names = &self.model.names;
        let find = |kind: &str, name: &str, all: Vec<String>| {
            all.iter().position(|known| known == name).ok_or_else(|| {
                let what = format!("there is no {kind} `{name}`; there are {}", all.join(", "));
                Error::Numeraire { what }
            })
        };
        let p = find("decision", decision, self.decision_names())?;
        let signals = (0..self.predictor.signal_dim()).map(|j| names.signal(j)).collect();
        let c = find("signal", signal, signals)?;
        self.money = Some(self.worth(p, c)?);
        Ok(self)
    }

    /// What a unit of the learned cost is worth.
    pub fn money(&self) -> Option<&Money> {
        self.money.as_ref()
    }

    /// An amount of learned cost in money, where that is known.
    pub(super) fn paid(&self, cost: f64) -> Option<f64> {
        self.money.as_ref().map(|money| money.worth * cost)
    }

    fn worth(&self, p: usize, c: usize) -> Result<Money, Error> {
        let names = (self.model.names.decision(p), self.model.names.signal(c));
        let (_, spread) = self.middle(c);
        if spread <= 0.0 {
            let what = format!("`{}` never changes, so nothing follows it", names.1);
            return Err(Error::Numeraire { what });
        }
        let n = self.situations.signals.nrows();
        let rows: Vec<usize> = (0..n.min(ROWS)).map(|i| i * n / n.min(ROWS)).collect();
        let signals = self.situations.signals.select(Axis(0), &rows);
        let moved = |by: f64| {
            let mut moved = signals.clone();
            moved.column_mut(c).iter_mut().for_each(|value| *value += by);
            self.desired(&moved)
        };
        let step = STEP * spread;
        let (dearer, cheaper) = (moved(step)?, moved(-step)?);
        let slope = |i: usize| (dearer[[i, p]] - cheaper[[i, p]]) / (2.0 * step);
        // Where a limit holds the decision, what is desired beyond it is hardly known.
        let desired = self.desired(&signals)?;
        let decided = self.decided(&desired, &rows)?;
        let free = decided.map(|decided| self.free(&desired, &decided));
        let free = |i: &usize| free.as_ref().is_none_or(|free| free[[*i, p]]);
        let mut slopes: Vec<f64> = (0..rows.len()).filter(free).map(slope).collect();
        if slopes.is_empty() {
            slopes = (0..rows.len()).map(slope).collect();
        }
        let mean = slopes.iter().sum::<f64>() / slopes.len() as f64;
        let square = slopes.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / slopes.len() as f64;
        let (decision, signal) = names;
        if mean < 0.0 {
            let (worth, varies) = (-0.5 / mean, square.sqrt() / -mean);
            return Ok(Money { decision, signal, worth, varies });
        }
        let what = format!(
            "`{decision}` does not fall as `{signal}` rises, so a unit of it cannot be what \
             `{signal}` pays for; name a decision and the signal that is its price"
        );
        Err(Error::Numeraire { what })
    }
}
