//! What held-out rows say, in numbers and in a word.

use super::baselines::{Baseline, Baselines};
use super::scores::{Scores, Tally};
use argwhy_core::model::{Calibration, Misfits};
use serde::Serialize;

/// What is known of a model on rows it has not seen.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Scores.
    Judged(Box<Judgement>),
    /// Nothing.
    None {
        /// The reason.
        why: String,
    },
}

impl Verdict {
    /// The scores, where there are any.
    pub fn judgement(&self) -> Option<&Judgement> {
        match self {
            Self::Judged(judgement) => Some(judgement),
            Self::None { .. } => None,
        }
    }
}

/// Scores on rows kept aside, beside those of the baselines on the same rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judgement {
    /// What was kept aside together: `rows`, `time`, `episodes` or `groups`; `data` where the
    /// model was there before the rows.
    pub by: &'static str,
    /// Rows that were kept aside and judged on.
    pub n_judged: usize,
    /// Rows that the models which were judged had learned from.
    pub n_learned: usize,
    /// Whether that is a sample of the rows there were: the model itself has learned from more, and
    /// is likely better.
    pub sampled: bool,
    /// The model's.
    #[serde(flatten)]
    pub scores: Scores,
    /// The baselines'.
    pub baselines: Baselines<Scores>,
    /// What ranges of the model are made of; none where it remembers no situations.
    #[serde(skip)]
    pub calibration: Option<Calibration>,
    /// The rows kept aside that fit worst.
    #[serde(skip)]
    pub misfits: Option<Misfits>,
}

/// How a model's error compares with that of the best baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Smaller, by more than chance.
    Better,
    /// The same, by all that these rows can tell: within one standard error.
    Level,
    /// Larger.
    Worse,
}

impl Judgement {
    pub(crate) fn new(by: &'static str, learned: usize, sampled: bool, tally: &Tally) -> Self {
        Self {
            by,
            n_judged: tally.n_rows(),
            n_learned: learned,
            sampled,
            scores: tally.scores(),
            baselines: tally.baseline_scores(),
            calibration: tally.calibration(),
            misfits: tally.misfits(),
        }
    }

    /// The baseline with the smallest error.
    pub fn best_baseline(&self) -> (Baseline, &Scores) {
        let mut best = (Baseline::Mean, &self.baselines.mean);
        for (baseline, scores) in self.baselines.named() {
            if scores.rmse < best.1.rmse {
                best = (baseline, scores);
            }
        }
        best
    }

    /// Row by row against the best baseline.
    pub fn standing(&self) -> Standing {
        let theirs = &self.best_baseline().1.squares;
        let ahead: Vec<f64> =
            theirs.iter().zip(&self.scores.squares).map(|(theirs, own)| theirs - own).collect();
        let n = ahead.len().max(1) as f64;
        let mean = ahead.iter().sum::<f64>() / n;
        let spread = ahead.iter().map(|a| (a - mean) * (a - mean)).sum::<f64>() / n;
        let chance = (spread / n).sqrt();
        if mean > chance {
            Standing::Better
        } else if mean < -chance {
            Standing::Worse
        } else {
            Standing::Level
        }
    }

    /// `500 rows kept aside (whole episodes)`.
    pub fn rows_in_words(&self) -> String {
        let how = match self.by {
            "episodes" => "whole episodes",
            "groups" => "whole groups",
            "time" => "the last in time",
            "data" => return format!("{} rows", self.n_judged),
            "new" => {
                return format!("{} new rows (before it learned from them)", self.n_judged);
            }
            _ => "at random",
        };
        format!("{} rows kept aside ({how})", self.n_judged)
    }
}
