//! Settings chosen by what they do on rows that were not learned from.
//!
//! Enters: data, a [`Space`] of settings and how rows are kept aside. Leaves: [`Tuned`], every
//! [`Trial`] and the best. Rounds: first every candidate on a few hundred rows, whole paths of
//! regularizations from one factorisation; the better ones on more rows; the best few on all, with
//! regularizations in between; then length scales of single signals around the best. What no tuning
//! would do is tried to the end beside them.

mod scales;
mod space;
mod trial;

pub use scales::asked_for as scales_asked_for;
pub use space::{Candidate, Space};
pub use trial::{Judge, Trial};

use crate::error::Error;
use crate::judging::{Division, LOOSE, MOST_LEARNED, Tally, ranges_of, some_of, without};
use crate::pipeline::{Fit, Pipeline, Progress};
use crate::settings::{FitSettings, SolverKind, ThetaChoice, two_digits};
use argwhy_core::solver::{Iteration, Observer, Status};
use argwhy_core::{Dataset, Predictor};
use std::ops::{ControlFlow, Range};
use std::time::{Duration, Instant};

/// Parts that rows are divided into where nobody says otherwise.
pub const N_PARTS: usize = 5;
/// The time a search may take where nobody says otherwise.
pub const BUDGET: Duration = Duration::from_mins(5);

/// Rows learned from in rounds before the last, which has all.
const FEW: usize = 400;
const MORE: usize = 1600;
/// Candidates that go on: to a second round, from there to the last, and at once to the last.
const TO_SECOND: usize = 20;
const TO_LAST: usize = 4;
const AT_ONCE: usize = 8;
/// Parts kept aside in the first rounds; in the last each is, once.
const PARTS: [usize; 2] = [2, 3];
/// Rows of a part that are judged on at most.
const JUDGED: usize = 1000;

/// How a search goes.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuning {
    /// What is kept aside together.
    pub division: Division,
    /// Parts that rows are divided into, each kept aside once.
    pub n_parts: usize,
    /// What trials are compared by.
    pub judge: Judge,
    /// The time there is; none for as long as it takes.
    pub budget: Option<Duration>,
    /// Seed of the division.
    pub seed: u64,
}

/// Follows a search.
pub trait Watch: Send {
    /// A trial is done; the best so far, and how many candidates of this round are left.
    fn on_trial(&mut self, _trial: &Trial, _best: Option<&Trial>, _left: usize) {}

    /// Whether to stop with what is known.
    fn stops(&mut self) -> bool {
        false
    }
}

/// What a search found.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuned {
    /// The best.
    pub best: Trial,
    /// Everything that was tried.
    pub trials: Vec<Trial>,
    /// Whether every round was done.
    pub finished: bool,
}

/// Tries `space` on `rows` of the data; `known` are trials of an earlier search of the same kind,
/// which are not repeated.
pub fn tune(
    data: &Dataset,
    rows: &[usize],
    space: &Space,
    tuning: &Tuning,
    known: &[Trial],
    watch: &mut dyn Watch,
) -> Result<Tuned, Error> {
    let parts = tuning.division.parts(rows, tuning.n_parts, tuning.seed)?;
    let end = tuning.budget.map(|budget| Instant::now() + budget);
    let (candidates, trials) = (space.candidates.clone(), Vec::new());
    let mut search =
        Search { data, rows, space, candidates, tuning, parts, known, end, watch, trials };
    let finished = search.run();
    let trials = search.trials;
    let best = trials.iter().filter(|trial| trial.score(tuning.judge).is_finite());
    match best.min_by(|a, b| a.compare(b, tuning.judge)).cloned() {
        Some(best) => Ok(Tuned { best, trials, finished }),
        None => Err(nothing_worked(&trials)),
    }
}

/// Why there is no best.
fn nothing_worked(trials: &[Trial]) -> Error {
    let what = match trials.iter().find_map(|trial| trial.failed.as_ref()) {
        Some(why) => format!("none of the {} settings tried works; the first: {why}", trials.len()),
        None => "there was no time for a single trial; raise {budget}".to_owned(),
    };
    Error::Tuning { what }
}

/// A search under way.
struct Search<'a> {
    data: &'a Dataset,
    rows: &'a [usize],
    space: &'a Space,
    /// Those of the space, and those that grew out of them.
    candidates: Vec<Candidate>,
    tuning: &'a Tuning,
    parts: Vec<Vec<usize>>,
    known: &'a [Trial],
    end: Option<Instant>,
    watch: &'a mut dyn Watch,
    trials: Vec<Trial>,
}

/// What one round tries: candidates with their regularizations, the most promising first.
type Entries = Vec<(usize, Vec<f64>)>;

impl Search<'_> {
    /// Whether it came to its end.
    fn run(&mut self) -> bool {
        let least = self.parts.iter().map(Vec::len).max().unwrap_or(0);
        let available = (self.rows.len() - least).min(MOST_LEARNED);
        let all = self.space.regularizations.clone();
        let mut entries: Entries =
            (0..self.space.candidates.len()).map(|at| (at, all.clone())).collect();
        let early = if available >= 2 * MORE {
            vec![(FEW, TO_SECOND), (MORE, TO_LAST)]
        } else {
            vec![(FEW.min(available), AT_ONCE)]
        };
        for (round, &(n_rows, most)) in early.iter().enumerate() {
            if !self.round(round, n_rows, PARTS[round], &entries) {
                return false;
            }
            entries = self.survivors(round, most, round + 1 == early.len());
        }
        let last = early.len();
        self.round(last, available, self.parts.len(), &entries) && self.scales(last, available)
    }

    /// Tries every entry; false where time or patience ended first.
    fn round(&mut self, round: usize, n_rows: usize, n_parts: usize, entries: &Entries) -> bool {
        for (at, (candidate, regularizations)) in entries.iter().enumerate() {
            let done = |k: &f64| {
                let same = |t: &&Trial| {
                    (t.candidate, t.round) == (*candidate, round) && t.regularization() == *k
                };
                self.known.iter().find(same).cloned()
            };
            let known: Vec<Trial> = regularizations.iter().filter_map(done).collect();
            let trials = if known.len() == regularizations.len() {
                known
            } else if self.is_over() {
                return false;
            } else {
                let sizes = (n_rows, n_parts);
                let tried = self.attempt((*candidate, round), regularizations, sizes);
                let Some(tried) = tried else { return false };
                tried
            };
            for trial in trials {
                self.trials.push(trial);
                let judge = self.tuning.judge;
                let best = self.trials.iter().min_by(|a, b| a.compare(b, judge));
                let trial = self.trials.last().expect("pushed just now");
                self.watch.on_trial(trial, best, entries.len() - at - 1);
            }
        }
        true
    }

    fn is_over(&mut self) -> bool {
        self.end.is_some_and(|end| Instant::now() >= end) || self.watch.stops()
    }

    /// Who goes on, best first, and with which regularizations: those next to its best. What no
    /// tuning would do goes on whatever came of it.
    fn survivors(&self, round: usize, most: usize, last: bool) -> Entries {
        let judge = self.tuning.judge;
        let mut best: Vec<&Trial> = Vec::new();
        let mut of_round: Vec<&Trial> = self.trials.iter().filter(|t| t.round == round).collect();
        of_round.sort_by(|a, b| a.compare(b, judge));
        for trial in of_round {
            if !best.iter().any(|other| other.candidate == trial.candidate) {
                best.push(trial);
            }
        }
        let own = best.iter().position(|t| t.candidate == 0 && self.space.refines);
        let own = own.filter(|place| *place >= most).map(|place| best[place]);
        best.retain(|trial| trial.score(judge).is_finite());
        best.truncate(most);
        best.extend(own);
        let near = |trial: &Trial| (trial.candidate, self.near(trial.regularization(), last));
        best.into_iter().map(near).collect()
    }

    /// Regularizations to go on with after the best of a path, from large to small.
    fn near(&self, best: f64, last: bool) -> Vec<f64> {
        let all = &self.space.regularizations;
        if self.space.refines && last {
            let root = 10.0_f64.sqrt();
            return [best * root, best, best / root].map(two_digits).to_vec();
        }
        let place = all.iter().position(|k| *k == best).unwrap_or(0);
        all[place.saturating_sub(1)..(place + 2).min(all.len())].to_vec()
    }

    /// One candidate with a path of regularizations; none where it was stopped.
    fn attempt(
        &mut self,
        (candidate, round): (usize, usize),
        regularizations: &[f64],
        (n_rows, n_parts): (usize, usize),
    ) -> Option<Vec<Trial>> {
        let start = Instant::now();
        let Candidate { chosen, settings } = &self.candidates[candidate];
        let trial = |k: &f64| Trial::new(chosen, *k, (candidate, round), n_rows);
        let trials: Vec<Trial> = regularizations.iter().map(trial).collect();
        let failed = |why: &str| {
            let failed = Some(why.to_owned());
            trials.iter().cloned().map(|t| Trial { failed: failed.clone(), ..t }).collect()
        };
        let settings = match settings {
            Ok(settings) => settings,
            Err(why) => return Some(failed(why)),
        };
        let mut tallies = vec![(Tally::default(), Vec::new()); regularizations.len()];
        let (data, seed) = (self.data, self.tuning.seed);
        for part in self.parts.iter().take(n_parts) {
            let rest = some_of(without(self.rows, part), n_rows, seed);
            let part = some_of(part.clone(), JUDGED, seed);
            let mut take = |at: usize, fit: &Fit| -> Result<(), Error> {
                let mut own = Tally::default();
                let predictor = Predictor::new(&fit.model)?;
                own.take_model(data, &predictor, &part, fit.settings().infeasible)?;
                tallies[at].1.push(own.scores());
                tallies[at].0.append(own);
                Ok(())
            };
            let mut polite = Polite { watch: &mut *self.watch, end: self.end };
            let rest = ranges_of(&rest);
            match learn(data, &rest, settings, regularizations, &mut polite, &mut take) {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(failed(&format!("{error:#}"))),
            }
        }
        let seconds = start.elapsed().as_secs_f64() / regularizations.len().max(1) as f64;
        let scored = trials.into_iter().zip(&tallies).map(|(trial, (tally, parts))| {
            Trial { seconds, ..trial }.scored(&tally.scores(), parts)
        });
        Some(scored.collect())
    }
}

/// Fits each regularization on `rows`; false where it was stopped.
fn learn(
    data: &Dataset,
    ranges: &[Range<usize>],
    settings: &FitSettings,
    regularizations: &[f64],
    progress: &mut (dyn Progress + Send),
    take: &mut (dyn FnMut(usize, &Fit) -> Result<(), Error> + Send),
) -> Result<bool, Error> {
    let loose = FitSettings { tol: settings.tol.max(LOOSE), ..settings.clone() };
    let together =
        !loose.primal && loose.solver == SolverKind::Newton && loose.theta == ThetaChoice::Identity;
    let mut at = 0;
    let mut each = |fit: Fit| {
        if fit.outcome.status == Status::Interrupted {
            return Ok(());
        }
        at += 1;
        take(at - 1, &fit)
    };
    if together {
        let pipeline = Pipeline::new(loose)?;
        pipeline.fit_path(data, ranges, regularizations, progress, &mut each)?;
    } else {
        for &regularization in regularizations {
            let regularization = regularization.into();
            let pipeline = Pipeline::new(FitSettings { regularization, ..loose.clone() })?;
            each(pipeline.fit_rows(data, ranges, progress)?)?;
        }
    }
    Ok(at == regularizations.len())
}

/// A fit that stops when the search does.
struct Polite<'a> {
    watch: &'a mut dyn Watch,
    end: Option<Instant>,
}

impl Observer for Polite<'_> {
    fn on_iteration(&mut self, _: &Iteration) -> ControlFlow<()> {
        self.poll()
    }

    fn poll(&mut self) -> ControlFlow<()> {
        let over = self.end.is_some_and(|end| Instant::now() >= end) || self.watch.stops();
        if over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl Progress for Polite<'_> {}
