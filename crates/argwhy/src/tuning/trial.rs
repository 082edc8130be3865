//! What was tried, and what came of it.

use crate::judging::Scores;
use crate::settings::Table;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::cmp::Ordering;

/// What a model is judged by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Judge {
    /// How far decisions are from the expert's.
    #[default]
    Error,
    /// The suboptimality loss, which is what inverse optimization minimises.
    Regret,
}

/// One combination of settings, tried on rows that it had not learned from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// What was chosen for it, by the settings' names.
    pub settings: Map<String, Value>,
    /// Which candidate of the space it is, and in which round it was tried.
    pub candidate: usize,
    /// Rounds have more rows and fewer candidates each.
    pub round: usize,
    /// Rows that were learned from, of the largest part.
    pub n_learned: usize,
    /// Rows that were judged on.
    pub n_judged: usize,
    /// Root of the mean squared error; none where it failed.
    pub error: Option<f64>,
    /// Its standard error, from part to part; none for one part.
    pub error_spread: Option<f64>,
    /// R², averaged over the dimensions; none where it is undefined.
    pub r2: Option<f64>,
    /// Mean regret.
    pub regret: Option<f64>,
    /// Its standard error, from part to part; none for one part.
    pub regret_spread: Option<f64>,
    /// Seconds that it took.
    pub seconds: f64,
    /// Why it failed, where it did.
    pub failed: Option<String>,
}

impl Trial {
    /// One that is about to be tried.
    pub(crate) fn new(
        chosen: &Table,
        regularization: f64,
        (candidate, round): (usize, usize),
        n_learned: usize,
    ) -> Self {
        let json = |value| serde_json::to_value(value).unwrap_or_default();
        let mut settings: Map<String, Value> =
            chosen.iter().map(|(name, value)| (name.clone(), json(value))).collect();
        settings.insert("regularization".to_owned(), regularization.into());
        Self {
            settings,
            candidate,
            round,
            n_learned,
            n_judged: 0,
            error: None,
            error_spread: None,
            r2: None,
            regret: None,
            regret_spread: None,
            seconds: 0.0,
            failed: None,
        }
    }

    /// With the scores on all parts together and on each of them.
    pub(crate) fn scored(mut self, all: &Scores, parts: &[Scores]) -> Self {
        let spread = |of: fn(&Scores) -> f64| {
            let n = parts.len() as f64;
            let mean = parts.iter().map(of).sum::<f64>() / n;
            let squares: f64 = parts.iter().map(|part| (of(part) - mean).powi(2)).sum();
            (parts.len() > 1).then(|| (squares / (n - 1.0) / n).sqrt())
        };
        (self.error, self.r2, self.regret) = (Some(all.rmse), all.r2, Some(all.regret));
        self.error_spread = spread(|scores| scores.rmse);
        self.regret_spread = spread(|scores| scores.regret);
        self.n_judged = all.squares.len();
        self
    }

    /// What it is judged by; infinite where it failed.
    pub fn score(&self, judge: Judge) -> f64 {
        let score = match judge {
            Judge::Error => self.error,
            Judge::Regret => self.regret,
        };
        score.filter(|score| score.is_finite()).unwrap_or(f64::INFINITY)
    }

    /// The better of two first: one of a later round, which is known better, then by the score.
    pub fn compare(&self, other: &Self, judge: Judge) -> Ordering {
        let of_round = other.round.cmp(&self.round);
        of_round.then(self.score(judge).total_cmp(&other.score(judge)))
    }

    /// The regularization it was tried with.
    pub fn regularization(&self) -> f64 {
        self.settings.get("regularization").and_then(Value::as_f64).unwrap_or(f64::NAN)
    }
}
