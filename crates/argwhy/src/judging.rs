//! How good a model is on rows it has not seen, beside what anyone could do without it.
//!
//! Enters: data, a fit on it and a [`Division`] of its rows. Leaves: a [`Verdict`]: error, R² and
//! regret per decision dimension on rows that were kept aside, for the model and for three
//! baselines. A certificate says how well the problem is solved; this says whether it was worth
//! solving.

mod baselines;
mod division;
mod misfits;
mod scores;
mod verdict;

pub use baselines::{Baseline, Baselines};
pub use division::Division;
pub use scores::{DimensionScores, Scores};
pub use verdict::{Judgement, Standing, Verdict};

pub(crate) use division::{ranges_of, some_of};
pub(crate) use scores::Tally;

use crate::error::Error;
use crate::machine::thread_pool;
use crate::pipeline::{Fit, Pipeline, Progress, counted};
use crate::settings::{FitSettings, MemorySize};
use argwhy_core::decision_set::{Infeasible, SampleSets, admit};
use argwhy_core::familiarity::Familiarity;
use argwhy_core::precond::KeptFactor;
use argwhy_core::solver::Status;
use argwhy_core::{Dataset, Model, Predictor};
use baselines::Learned;
use ndarray::{Array2, Axis};
use std::time::Instant;

/// Share of the rows that is kept aside where nobody says otherwise.
pub const HOLDOUT: f64 = 0.1;
/// Rows that are learned from and judged on at most: beyond, a verdict would cost as much as the
/// fit and hardly change.
pub(crate) const MOST_LEARNED: usize = 10_000;
const MOST_JUDGED: usize = 5_000;
/// With fewer rows every one of them is judged, part by part: a tenth of them says little.
const FEW: usize = 500;
/// Rows without which there is nothing to judge by.
const LEAST: usize = 10;
/// Relative gap of the fits that are judged: far below what held-out rows can tell apart.
pub(crate) const LOOSE: f64 = 1e-4;
/// Seconds that judging may take even where the fit took less.
const SECONDS: f64 = 5.0;
/// A fit that is further from its optimum is not the model that is to be judged.
const FAR: f64 = 0.1;

/// How a fit is to be judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Judging {
    /// What is kept aside together.
    pub division: Division,
    /// The share of the rows that is kept aside; zero for no verdict.
    pub holdout: f64,
}

impl Judging {
    /// Refuses a share that leaves nothing to learn from.
    pub fn validate(&self) -> Result<(), Error> {
        if (0.0..=0.5).contains(&self.holdout) {
            return Ok(());
        }
        Err(Error::Core(argwhy_core::Error::Setting {
            name: "holdout",
            found: self.holdout.to_string(),
            allowed: "a share of the rows from 0 (no verdict) to 0.5",
        }))
    }
}

impl Pipeline {
    /// Judges a fit of this pipeline by fitting again without some of its rows, to a looser
    /// tolerance, in no more than about the fit's own time. What goes wrong is a reason for having
    /// no verdict, never an error: the fit itself stands.
    pub fn judge(
        &self,
        data: &Dataset,
        fit: &Fit,
        judging: &Judging,
        progress: &mut (dyn Progress + Send),
    ) -> Verdict {
        let none = |why: String| Verdict::None { why };
        if fit.outcome.status == Status::Interrupted {
            return none("the fit was interrupted".to_owned());
        }
        let Some(seconds) = self.seconds_left(fit) else {
            return none("the fit took all of the time limit".to_owned());
        };
        let judged = self
            .beside(fit)
            .and_then(|own| own.judge_rows(data, &fit.rows, judging, Some(seconds), progress));
        judged.unwrap_or_else(|error| none(error.to_string()))
    }

    /// Judges fits of this pipeline on parts of `rows` that they have not seen, in about so many
    /// seconds.
    pub fn judge_rows(
        &self,
        data: &Dataset,
        rows: &[usize],
        judging: &Judging,
        seconds: Option<f64>,
        progress: &mut (dyn Progress + Send),
    ) -> Result<Verdict, Error> {
        judging.validate()?;
        let none = |why: &str| Ok(Verdict::None { why: why.to_owned() });
        if judging.holdout == 0.0 {
            return none("no rows were kept aside, as was asked for");
        }
        if rows.len() < LEAST {
            let n = rows.len();
            return none(&format!("{n} rows are too few to keep some aside; at least {LEAST}"));
        }
        let seconds = seconds.or(self.settings().time_limit);
        let (start, seed) = (Instant::now(), self.settings().seed);
        let mut tally = Tally::default();
        let (mut learned, mut sampled) = (0, false);
        for aside in parts(judging, rows, seed)? {
            let left = seconds.map(|seconds| seconds - start.elapsed().as_secs_f64());
            if left.is_some_and(|left| left <= 0.0) {
                break;
            }
            let rest = without(rows, &aside);
            sampled |= rest.len() > MOST_LEARNED;
            let rest = some_of(rest, MOST_LEARNED, seed);
            let aside = some_of(aside, MOST_JUDGED, seed);
            let settings = self.settings();
            let tol = settings.tol.max(LOOSE);
            // That of the model they are to judge.
            let weights: Option<Vec<f64>> =
                data.weights().map(|all| rows.iter().map(|&row| all[row]).collect());
            let n_counted = counted(rows.len(), weights.as_deref());
            let regularization = settings.regularization.value(n_counted).into();
            let own = FitSettings { tol, time_limit: left, regularization, ..settings.clone() };
            let again = self.with_settings(own)?.fit_rows(data, &ranges_of(&rest), progress)?;
            if again.outcome.status == Status::Interrupted {
                return none("judging was interrupted");
            }
            if again.model.record.certificate.relative_gap > FAR {
                return none("the fit without them came nowhere near its optimum in time");
            }
            learned = learned.max(again.rows.len());
            let own = baselines::learn(data, &again.rows, again.settings())?;
            let predictor = Predictor::new(&again.model)?;
            let infeasible = self.settings().infeasible;
            self.with_threads(|| {
                let signals = tally.take(data, (&predictor, &own), &aside, infeasible)?;
                tally.name(aside.iter().map(|&row| data.number(row)));
                if let Some(familiarity) = Familiarity::new(&again.model)? {
                    tally.left(familiarity.left(signals.view())?);
                }
                Ok(())
            })?;
        }
        if tally.is_empty() {
            return none("there was no time left for it");
        }
        let by = judging.division.name();
        Ok(Verdict::Judged(Box::new(Judgement::new(by, learned, sampled, &tally))))
    }

    /// Judges the model before an update on the rows that are new to it, those of `data` from
    /// `n_old` on: what an update of many rows need not fit again for. None where the new rows are
    /// too few to say something.
    pub fn judge_before(
        &self,
        data: &Dataset,
        n_old: usize,
        before: &Model,
        judging: &Judging,
    ) -> Option<Verdict> {
        let n_new = data.n_samples() - n_old;
        let near = before.record.certificate.relative_gap <= LOOSE;
        if judging.holdout == 0.0 || n_new < FEW || n_old < LEAST || !near {
            return None;
        }
        let judged = self.judge_new(data, n_old, before);
        Some(judged.unwrap_or_else(|error| Verdict::None { why: error.to_string() }))
    }

    fn judge_new(&self, data: &Dataset, n_old: usize, before: &Model) -> Result<Verdict, Error> {
        let settings = self.settings();
        let rest = some_of((0..n_old).collect(), MOST_LEARNED, settings.seed);
        let new = some_of((n_old..data.n_samples()).collect(), MOST_JUDGED, settings.seed);
        let own = baselines::learn(data, &rest, settings)?;
        let predictor = Predictor::new(before)?;
        let mut tally = Tally::default();
        self.with_threads(|| {
            let signals = tally.take(data, (&predictor, &own), &new, settings.infeasible)?;
            tally.name(new.iter().map(|&row| data.number(row)));
            if let Some(familiarity) = Familiarity::new(before)? {
                tally.left(familiarity.left(signals.view())?);
            }
            Ok(())
        })?;
        Ok(Verdict::Judged(Box::new(Judgement::new("new", n_old, false, &tally))))
    }

    /// Seconds for judging: about those of the fit, and no more than its time limit leaves.
    fn seconds_left(&self, fit: &Fit) -> Option<f64> {
        let own = fit.outcome.seconds.max(SECONDS);
        let left = self.settings().time_limit.map_or(own, |limit| limit - fit.outcome.seconds);
        (left > 0.0).then_some(own.min(left))
    }

    /// The same, beside a fit that is still in memory.
    fn beside(&self, fit: &Fit) -> Result<Self, Error> {
        let settings = self.settings();
        let (n, d) = (fit.model.record.n_samples, fit.model.features.signal_dim());
        // Signals and coefficients of the model; responses, coefficients, decisions and desired
        // decisions of its outcome.
        let held = 8 * n * (d + 6 * fit.model.decision_dim());
        let left = fit
            .outcome
            .factor
            .as_ref()
            .map_or(0, |factor| KeptFactor::bytes(n, factor.rank(), fit.model.decision_dim()));
        let own = FitSettings {
            memory: MemorySize(settings.memory.0.saturating_sub(held as u64 + left)),
            ..settings.clone()
        };
        self.with_settings(own)
    }
}

/// How a model decides on `data`, none of which it needs to have seen, beside baselines that learn
/// from the other rows of the same data: four fifths of it, a fifth at a time.
pub fn compare(model: &Model, data: &Dataset, settings: &FitSettings) -> Result<Verdict, Error> {
    let n_rows = data.n_samples();
    if n_rows < LEAST {
        let why = format!("{n_rows} rows are too few for baselines; at least {LEAST}");
        return Ok(Verdict::None { why });
    }
    let pool = thread_pool(settings.threads)?;
    let predictor = pool.install(|| Predictor::new(model))?;
    let rows = some_of((0..n_rows).collect(), MOST_LEARNED, settings.seed);
    let mut tally = Tally::default();
    let mut learned = 0;
    for part in Division::Rows.parts(&rows, 5, settings.seed)? {
        let rest = without(&rows, &part);
        learned = learned.max(rest.len());
        let own = baselines::learn(data, &rest, settings)?;
        pool.install(|| tally.take(data, (&predictor, &own), &part, Infeasible::Keep))?;
    }
    let sampled = rows.len() < n_rows;
    Ok(Verdict::Judged(Box::new(Judgement::new("data", learned, sampled, &tally))))
}

/// The rows kept aside: all of them, part after part, where there are few.
fn parts(judging: &Judging, rows: &[usize], seed: u64) -> Result<Vec<Vec<usize>>, Error> {
    let Judging { division, holdout } = judging;
    if rows.len() < FEW && *division != Division::Time {
        division.parts(rows, (1.0 / holdout).round() as usize, seed)
    } else {
        Ok(vec![division.aside(rows, *holdout, seed)?])
    }
}

/// `rows` less those `aside`, in their order.
pub(crate) fn without(rows: &[usize], aside: &[usize]) -> Vec<usize> {
    let aside: std::collections::HashSet<usize> = aside.iter().copied().collect();
    rows.iter().copied().filter(|row| !aside.contains(row)).collect()
}

impl Tally {
    /// Adds the rows `aside`, which neither model nor baselines have seen; gives their signals.
    fn take(
        &mut self,
        data: &Dataset,
        (predictor, baselines): (&Predictor, &Learned),
        aside: &[usize],
        infeasible: Infeasible,
    ) -> Result<Array2<f64>, Error> {
        let (signals, sets) = self.take_model(data, predictor, aside, infeasible)?;
        self.baselines(baselines, signals.view(), &sets)?;
        Ok(signals)
    }

    /// Adds the rows `aside`, which the model has not seen; gives their signals and sets.
    pub(crate) fn take_model(
        &mut self,
        data: &Dataset,
        predictor: &Predictor,
        aside: &[usize],
        infeasible: Infeasible,
    ) -> Result<(Array2<f64>, SampleSets), Error> {
        let given = data.constraints().map(|given| given.select(aside));
        let number = |i: usize| data.number(aside[i]);
        let sets = predictor.sets_named(given.as_ref(), aside.len(), number)?;
        let mut observed = data.decisions().select(Axis(0), aside);
        admit(observed.view_mut(), &sets, infeasible, number)?;
        let signals = data.signals().select(Axis(0), aside);
        let desired = predictor.desired(signals.view())?;
        let weights = data.weights().map(|all| aside.iter().map(|&row| all[row]).collect());
        self.start(observed, weights);
        let decided = predictor.decide(desired.view(), &sets)?;
        self.model(desired.view(), decided, predictor.metric());
        Ok((signals, sets))
    }
}
