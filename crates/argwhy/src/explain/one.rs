//! One decision: what pushed it, which past decisions it rests on, what holds it, and what would
//! change it.

use super::{Explainer, Method, Money, Typical, Units};
use crate::error::Error;
use argwhy_core::decision_set::{RowLabel, SampleSets};
use argwhy_core::pushes::{Plan, is_additive};
use ndarray::{Array2, Axis};
use rayon::prelude::*;
use serde::Serialize;

/// Past decisions that are listed.
const LISTED: usize = 10;
/// Values of a signal that are tried, over its seen range, before the first that does is sharpened.
const TRIED: usize = 24;
/// Situations that say how far decisions are apart.
const FEW: usize = 200;
/// Times the distance to it is halved.
const HALVED: usize = 12;
/// Share of a decision's seen range that counts as a change where nobody says how much.
const CHANGE: f64 = 0.1;

/// What to look for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OneSettings {
    /// By how much a decision should change; a tenth of its seen range if none is given.
    pub by: Option<f64>,
}

/// One decision explained. Lists without names have one entry a decision.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OneDecision {
    /// What decisions are called.
    pub decisions: Vec<String>,
    /// What is desired.
    pub desired: Vec<f64>,
    /// What is decided, where the limits are known.
    pub decision: Option<Vec<f64>>,
    /// The situation it is compared with.
    pub typical: Typical,
    /// How much each signal pushed what is desired away from what is desired typically, the
    /// strongest first; they add up to the whole difference.
    pub pushes: Vec<Push>,
    /// How pushes were found.
    pub method: Method,
    /// Past decisions with the largest terms of g = Σ κ(s, ŝ_i) α_i; none in a plain model.
    pub rests_on: Option<Vec<Term>>,
    /// Limits that hold the decision.
    pub held_by: Vec<HeldBy>,
    /// For each signal the smallest change that changes a decision enough, the easiest first.
    pub changes: Vec<Change>,
    /// For each limit that holds the decision the smallest change of one signal that frees it.
    pub frees: Vec<Freed>,
    /// What a unit of cost is worth in money, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub money: Option<Money>,
    /// Units by the names of signals, decisions and limits, those that are known.
    pub units: Units,
}

/// One signal's push.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Push {
    /// The signal.
    pub name: String,
    /// What it is.
    pub value: f64,
    /// What it is typically.
    pub typical: f64,
    /// How far it pushed each desired decision.
    pub push: Vec<f64>,
    /// Standard error of that; zero where it is exact.
    pub error: Vec<f64>,
}

/// One past decision's part of g.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Term {
    /// Its row in the training data.
    pub row: u64,
    /// How alike the two situations are: κ(s, ŝ_i)/√(κ(s, s) κ(ŝ_i, ŝ_i)).
    pub likeness: f64,
    /// κ(s, ŝ_i) α_i.
    pub term: Vec<f64>,
    /// Its size among the sizes of all terms.
    pub share: f64,
}

/// A limit that holds a decision.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeldBy {
    /// Its name.
    pub limit: String,
    /// What one more unit of it would be worth.
    pub price: f64,
    /// The same in money, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub money: Option<f64>,
}

/// The smallest change of one signal that changes a decision.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// The signal.
    pub signal: String,
    /// What it would have to be; none where nothing in its seen range does.
    pub to: Option<f64>,
    /// The change in units of the signal's spread.
    pub spreads: Option<f64>,
    /// What would be decided then.
    pub decision: Option<Vec<f64>>,
}

/// The smallest change of one signal that frees a decision from a limit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Freed {
    /// The limit.
    pub limit: String,
    /// The signal; none where no single one does within its seen range.
    pub signal: Option<String>,
    /// What it would have to be.
    pub to: Option<f64>,
}

impl Explainer<'_> {
    /// Explains the decision on `signal`, in the one set of `set`; without, in the model's own
    /// limits where the model has no others. Cost: about two thousand desired decisions.
    pub fn explain_one(
        &self,
        signal: &[f64],
        set: Option<&SampleSets>,
        settings: OneSettings,
    ) -> Result<OneDecision, Error> {
        let typical = self.typical()?;
        let row = Array2::from_shape_vec((1, signal.len()), signal.to_vec())
            .expect("one row of its length");
        let desired = self.desired(&row)?;
        let own;
        let set = match set {
            Some(set) => Some(set),
            None if self.predictor.is_constrained() => None,
            None => {
                own = self.predictor.sets(None, 1)?;
                Some(&own)
            }
        };
        let plan = Plan::new(signal, &typical.signal, is_additive(self.model));
        let pushes = plan.pushes(self.predictor.desired(plan.rows())?.view());
        let method = pushes.method;
        let mut listed: Vec<Push> = (0..signal.len())
            .map(|j| Push {
                name: self.model.names.signal(j),
                value: signal[j],
                typical: typical.signal[j],
                push: pushes.values.row(j).to_vec(),
                error: pushes.errors.row(j).to_vec(),
            })
            .collect();
        let few = self.few()?;
        let scales = few.scales();
        let size = |push: &[f64]| -> f64 {
            push.iter().zip(&scales).map(|(p, scale)| (p / scale).powi(2)).sum()
        };
        listed.sort_by(|a, b| size(&b.push).total_cmp(&size(&a.push)));
        let mut explained = OneDecision {
            decisions: self.decision_names(),
            desired: desired.row(0).to_vec(),
            decision: None,
            rests_on: self.terms(signal, &scales),
            typical,
            pushes: listed,
            method,
            held_by: Vec::new(),
            changes: Vec::new(),
            frees: Vec::new(),
            money: self.money.clone(),
            units: self.units(),
        };
        if let Some(set) = set {
            let enough = self.enough(settings, few)?;
            self.decide((signal, set), &desired, &enough, &mut explained)?;
        }
        Ok(explained)
    }

    /// What is desired in some of the situations, evenly among them.
    fn few(&self) -> Result<Few, Error> {
        let n = self.situations.signals.nrows();
        let rows: Vec<usize> = (0..n.min(FEW)).map(|i| i * n / n.min(FEW)).collect();
        let desired = self.desired(&self.situations.signals.select(Axis(0), &rows))?;
        Ok(Few { rows, desired })
    }

    /// The largest terms of g.
    fn terms(&self, signal: &[f64], scales: &[f64]) -> Option<Vec<Term>> {
        let support = self.model.support()?;
        let map = &self.model.features;
        let features = |signal: &[f64]| {
            let mut out = vec![0.0; map.n_features()];
            map.write(signal.into(), &mut out);
            out
        };
        let (here, kernel) = (features(signal), &support.kernel);
        let sizes: Vec<f64> = (0..support.rows.len())
            .into_par_iter()
            .map(|i| {
                let there = features(&support.signals.row(i).to_vec());
                let parts = support.coefficients.row(i).into_iter().zip(scales);
                let size: f64 = parts.map(|(a, scale)| (a / scale).powi(2)).sum();
                (kernel.evaluate(&here, &there) * size.sqrt()).abs()
            })
            .collect();
        let whole: f64 = sizes.iter().sum();
        let mut order: Vec<usize> = (0..sizes.len()).collect();
        order.sort_by(|&a, &b| sizes[b].total_cmp(&sizes[a]));
        let own = kernel.evaluate(&here, &here);
        let term = |i: usize| {
            let there = features(&support.signals.row(i).to_vec());
            let value = kernel.evaluate(&here, &there);
            let both = (own * kernel.evaluate(&there, &there)).sqrt();
            Term {
                row: support.rows[i],
                likeness: if both > 0.0 { value / both } else { 0.0 },
                term: support.coefficients.row(i).iter().map(|a| value * a).collect(),
                share: sizes[i] / whole.max(f64::MIN_POSITIVE),
            }
        };
        Some(order.into_iter().take(LISTED).map(term).collect())
    }

    /// What is decided, what holds it and what would change it.
    fn decide(
        &self,
        (signal, set): (&[f64], &SampleSets),
        desired: &Array2<f64>,
        enough: &[f64],
        explained: &mut OneDecision,
    ) -> Result<(), Error> {
        let decision = self.predictor.decide(desired.view(), set)?.row(0).to_vec();
        let prices = self.predictor.prices(desired.view(), set)?;
        explained.held_by = prices
            .limits
            .iter()
            .zip(&prices.values)
            .map(|(limit, &price)| HeldBy {
                limit: self.model.limit_name(*limit),
                price,
                money: self.paid(price),
            })
            .collect();
        let tried = self.tried(signal);
        let flat: Vec<Vec<f64>> = tried.iter().flatten().map(|t| t.signal(signal)).collect();
        let rows = stacked(&flat, signal.len());
        let answers = self.answers(&rows, set, !prices.limits.is_empty())?;
        let per_signal = |j: usize| {
            let start: usize = tried[..j].iter().map(Vec::len).sum();
            start..start + tried[j].len()
        };
        let differs = |answer: &Answer| {
            answer.decision.iter().zip(&decision).zip(enough).any(|((a, b), e)| (a - b).abs() >= *e)
        };
        let first = |does: &dyn Fn(&Answer) -> bool| -> Vec<(usize, f64)> {
            let nearest = |j: usize| per_signal(j).find(|&at| does(&answers[at]));
            (0..signal.len()).filter_map(|j| Some((j, flat[nearest(j)?][j]))).collect()
        };
        let spreads = |j: usize, to: f64| {
            let (_, spread) = self.middle(j);
            (spread > 0.0).then(|| (to - signal[j]).abs() / spread)
        };
        let mut found: Vec<Option<(f64, Answer)>> = (0..signal.len()).map(|_| None).collect();
        for (j, to, answer) in self.sharpened((signal, set), first(&differs), false, &differs)? {
            found[j] = Some((to, answer));
        }
        for (j, found) in found.into_iter().enumerate() {
            let to = found.as_ref().map(|(to, _)| *to);
            explained.changes.push(Change {
                signal: self.model.names.signal(j),
                to,
                spreads: to.and_then(|to| spreads(j, to)),
                decision: found.map(|(_, answer)| answer.decision),
            });
        }
        explained.changes.sort_by(|a, b| {
            let far = |change: &Change| change.spreads.unwrap_or(f64::INFINITY);
            far(a).total_cmp(&far(b))
        });
        for &limit in &prices.limits {
            let frees = |answer: &Answer| !answer.held.contains(&limit);
            let freed = self.sharpened((signal, set), first(&frees), true, &frees)?;
            let far = |(j, to, _): &(usize, f64, Answer)| spreads(*j, *to).unwrap_or(f64::INFINITY);
            let nearest = freed.iter().min_by(|a, b| far(a).total_cmp(&far(b)));
            explained.frees.push(Freed {
                limit: self.model.limit_name(limit),
                signal: nearest.map(|(j, ..)| self.model.names.signal(*j)),
                to: nearest.map(|(_, to, _)| *to),
            });
        }
        explained.decision = Some(decision);
        Ok(())
    }

    /// What counts as a change of each decision.
    fn enough(&self, settings: OneSettings, few: Few) -> Result<Vec<f64>, Error> {
        if let Some(by) = settings.by {
            return Ok(vec![by; self.model.decision_dim()]);
        }
        let decided = self.decided(&few.desired, &few.rows)?.unwrap_or(few.desired);
        let range = |column: ndarray::ArrayView1<'_, f64>| {
            let (low, high) = column
                .iter()
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(*v), h.max(*v)));
            if high > low { CHANGE * (high - low) } else { f64::INFINITY }
        };
        Ok(decided.columns().into_iter().map(range).collect())
    }

    /// Values of each signal to try, the nearest first.
    fn tried(&self, signal: &[f64]) -> Vec<Vec<Moved>> {
        let values = |j: usize| {
            let (low, high) = self
                .situations
                .signals
                .column(j)
                .iter()
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(*v), h.max(*v)));
            let mut tried: Vec<Moved> = (0..=TRIED)
                .map(|k| low + (high - low) * k as f64 / TRIED as f64)
                .filter(|value| *value != signal[j])
                .map(|value| Moved { signal: j, value })
                .collect();
            let far = |moved: &Moved| (moved.value - signal[j]).abs();
            tried.sort_by(|a, b| far(a).total_cmp(&far(b)));
            tried.dedup_by(|a, b| a.value == b.value);
            tried
        };
        (0..signal.len()).map(values).collect()
    }

    /// For each of `far`, a signal's number and a value of it that does, the nearest value between
    /// here and there that still does, and what is decided there. All are halved together: a
    /// batch of desired decisions costs little more than one.
    fn sharpened(
        &self,
        (signal, set): (&[f64], &SampleSets),
        far: Vec<(usize, f64)>,
        with_limits: bool,
        does: &dyn Fn(&Answer) -> bool,
    ) -> Result<Vec<(usize, f64, Answer)>, Error> {
        if far.is_empty() {
            return Ok(Vec::new());
        }
        let ask = |values: &[(usize, f64)]| {
            let moved = values.iter().map(|&(j, value)| Moved { signal: j, value }.signal(signal));
            let rows = stacked(&moved.collect::<Vec<_>>(), signal.len());
            self.answers(&rows, set, with_limits)
        };
        let mut near: Vec<f64> = far.iter().map(|&(j, _)| signal[j]).collect();
        let answers = ask(&far)?;
        let mut best: Vec<(usize, f64, Answer)> =
            far.into_iter().zip(answers).map(|((j, far), answer)| (j, far, answer)).collect();
        for _ in 0..HALVED {
            let middles: Vec<(usize, f64)> = best
                .iter()
                .zip(&near)
                .map(|((j, far, _), near)| (*j, 0.5 * (near + far)))
                .collect();
            for (k, answer) in ask(&middles)?.into_iter().enumerate() {
                let (j, middle) = middles[k];
                if does(&answer) {
                    best[k] = (j, middle, answer);
                } else {
                    near[k] = middle;
                }
            }
        }
        Ok(best)
    }

    /// Decisions on several signals in one set, and the limits that hold them where asked for.
    fn answers(
        &self,
        rows: &Array2<f64>,
        set: &SampleSets,
        with_limits: bool,
    ) -> Result<Vec<Answer>, Error> {
        let desired = self.desired(rows)?;
        let sets = set.select(&vec![0; rows.nrows()]);
        let decided = self.predictor.decide(desired.view(), &sets)?;
        let mut answers: Vec<Answer> = decided
            .rows()
            .into_iter()
            .map(|row| Answer { decision: row.to_vec(), held: Vec::new() })
            .collect();
        if with_limits {
            let prices = self.predictor.prices(desired.view(), &sets)?;
            for (sample, limit) in prices.samples.iter().zip(&prices.limits) {
                answers[*sample as usize].held.push(*limit);
            }
        }
        Ok(answers)
    }
}

/// Some situations.
struct Few {
    rows: Vec<usize>,
    desired: Array2<f64>,
}

impl Few {
    /// Deviation of each desired decision over them; one where it never changes.
    fn scales(&self) -> Vec<f64> {
        let deviations = self.desired.std_axis(Axis(0), 0.0);
        deviations.iter().map(|&d| if d > 0.0 { d } else { 1.0 }).collect()
    }
}

/// A signal with one entry moved.
struct Moved {
    signal: usize,
    value: f64,
}

impl Moved {
    fn signal(&self, signal: &[f64]) -> Vec<f64> {
        let mut moved = signal.to_vec();
        moved[self.signal] = self.value;
        moved
    }
}

struct Answer {
    decision: Vec<f64>,
    held: Vec<RowLabel>,
}

fn stacked(rows: &[Vec<f64>], width: usize) -> Array2<f64> {
    Array2::from_shape_vec((rows.len(), width), rows.concat()).expect("rows of one length")
}
