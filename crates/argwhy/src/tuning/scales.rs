//! One length scale a signal, found by coordinate search around the best settings without them.
//!
//! Signal after signal is stretched or shrunk and the change kept where held-out rows like it; the
//! second time around by less. A signal that does not matter ends with a long scale, one that
//! decides with a short one.

use super::space::{Candidate, settings_of};
use super::trial::Trial;
use super::{MORE, Search};
use crate::error::Error;
use crate::settings::{Table, Value, two_digits};

/// What scales are multiplied or divided by, sweep by sweep.
const FACTORS: [f64; 2] = [3.0, 1.7];
/// Steps that one signal may go in one direction in a sweep.
const STRIDES: usize = 2;
/// A change must be worth this share of the score, or the search follows chance.
const WORTH: f64 = 1e-3;
/// Parts kept aside while scales are compared.
const PARTS: usize = 3;
/// Signals beyond which a coordinate search would take too long.
const MOST_SIGNALS: usize = 40;

/// Whether `--length-scales auto` was said; it is taken out, since a fit has numbers or none.
pub fn asked_for(given: &mut Table) -> bool {
    let asked = given.get(NAME).and_then(Value::as_str) == Some("auto");
    if asked {
        given.remove(NAME);
    }
    asked
}

const NAME: &str = "length-scales";

impl Search<'_> {
    /// Tries length scales beside the best of the last round; false where time or patience ended
    /// first.
    pub(super) fn scales(&mut self, last: usize, available: usize) -> Result<bool, Error> {
        let Some(base) = self.base(last) else { return Ok(true) };
        let n_signals = self.ground.data.signals().ncols();
        let (k, sizes) =
            (base.regularization(), (available.min(MORE), PARTS.min(self.ground.parts.len())));
        let mut scales = vec![1.0; n_signals];
        let Some(mut best) = self.scaled(&base, &scales, k, sizes)? else { return Ok(false) };
        for factor in FACTORS {
            let before = scales.clone();
            for j in 0..n_signals {
                for factor in [factor, 1.0 / factor] {
                    let mut improved = false;
                    for _ in 0..STRIDES {
                        let mut other = scales.clone();
                        other[j] = two_digits(other[j] * factor);
                        let Some(score) = self.scaled(&base, &other, k, sizes)? else {
                            return Ok(false);
                        };
                        if score >= best * (1.0 - WORTH) {
                            break;
                        }
                        (scales, best, improved) = (other, score, true);
                    }
                    if improved {
                        break;
                    }
                }
            }
            if before == scales {
                break;
            }
        }
        if scales.iter().all(|scale| *scale == 1.0) {
            return Ok(true);
        }
        let candidate = self.with_scales(&base, &scales);
        let entry = (candidate, self.near(k, true));
        self.round(last, available, self.ground.parts.len(), &vec![entry])
    }

    /// The best of the last round that has a length to scale a signal by: raw features, and a
    /// kernel with a width.
    fn base(&self, last: usize) -> Option<Trial> {
        let wanted = self.space.scales && self.ground.data.signals().ncols() <= MOST_SIGNALS;
        let one_a_signal = |trial: &&Trial| {
            let settings = self.candidates[trial.candidate].settings.as_ref();
            settings.is_ok_and(|settings| {
                settings.features == argwhy_core::features::Expansion::Raw
                    && settings.kernel.takes("gamma")
                    && settings.length_scales.is_none()
            })
        };
        let judge = self.tuning.judge;
        let of_last = self.trials.iter().filter(|trial| trial.round == last && wanted);
        let fine = of_last.filter(|trial| trial.score(judge).is_finite()).filter(one_a_signal);
        fine.min_by(|a, b| a.compare(b, judge)).cloned()
    }

    /// The score of the base with these scales on fewer rows; none where it was stopped. One that
    /// fails is infinitely bad.
    fn scaled(
        &mut self,
        base: &Trial,
        scales: &[f64],
        k: f64,
        (n_rows, n_parts): (usize, usize),
    ) -> Result<Option<f64>, Error> {
        let candidate = self.with_scales(base, scales);
        let round = base.round.saturating_sub(1);
        let done = self.round(round, n_rows, n_parts, &vec![(candidate, vec![k])])?;
        let own = self.trials.iter().rev().find(|trial| trial.candidate == candidate);
        let score = own.map_or(f64::INFINITY, |trial| trial.score(self.tuning.judge));
        Ok(done.then_some(score))
    }

    /// A new candidate: the base with these scales.
    fn with_scales(&mut self, base: &Trial, scales: &[f64]) -> usize {
        let mut chosen = self.candidates[base.candidate].chosen.clone();
        let numbers = scales.iter().map(|scale| Value::from(*scale)).collect();
        chosen.insert(NAME.to_owned(), Value::Array(numbers));
        let settings = settings_of(&self.space.given, &chosen);
        self.candidates.push(Candidate { chosen, settings });
        self.candidates.len() - 1
    }
}
