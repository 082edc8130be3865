//! Settings chosen by what they do on rows that were not learned from.
//!
//! Enters: data, a [`Space`] of settings and how rows are kept aside. Leaves: [`Tuned`], every
//! [`Trial`] and the best. Rounds: first every candidate on a few hundred rows, whole paths of
//! regularizations from one factorisation; the better ones on more rows; the best few on all, with
//! regularizations in between; then length scales of single signals around the best. What no tuning
//! would do is tried to the end beside them.

mod attempt;
mod scales;
mod space;
mod trial;

pub use attempt::{Attempt, Crew, Ground};
pub use scales::asked_for as scales_asked_for;
pub use space::{Candidate, Space};
pub use trial::{Judge, Trial};

use crate::error::Error;
use crate::judging::{Division, MOST_LEARNED};
use crate::pipeline::Progress;
use crate::settings::two_digits;
use argwhy_core::Dataset;
use argwhy_core::solver::{Iteration, Observer};
use std::cell::RefCell;
use std::ops::ControlFlow;
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

    /// A crew has made so many of the attempts of a round.
    fn on_attempt(&mut self, _done: usize, _of: usize) {}

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
    tune_with(data, rows, space, tuning, known, watch, None)
}

/// As [`tune`], where a crew makes the attempts of a round, if there is one. What is found is the
/// same.
pub fn tune_with<'a>(
    data: &'a Dataset,
    rows: &'a [usize],
    space: &'a Space,
    tuning: &'a Tuning,
    known: &'a [Trial],
    watch: &'a mut dyn Watch,
    crew: Option<&'a mut dyn Crew>,
) -> Result<Tuned, Error> {
    let ground = Ground::new(data, rows, space, tuning)?;
    let end = tuning.budget.map(|budget| Instant::now() + budget);
    let (candidates, trials) = (space.candidates.clone(), Vec::new());
    let mut search = Search { ground, space, candidates, tuning, known, end, watch, crew, trials };
    let finished = search.run()?;
    let stopped = search.watch.stops();
    let trials = search.trials;
    let best = trials.iter().filter(|trial| trial.score(tuning.judge).is_finite());
    match best.min_by(|a, b| a.compare(b, tuning.judge)).cloned() {
        Some(best) => Ok(Tuned { best, trials, finished }),
        None => Err(nothing_worked(&trials, stopped)),
    }
}

/// Why there is no best.
fn nothing_worked(trials: &[Trial], stopped: bool) -> Error {
    let what = match trials.iter().find_map(|trial| trial.failed.as_ref()) {
        Some(why) => format!("none of the {} settings tried works; the first: {why}", trials.len()),
        None if stopped => "the search was stopped before its first trial was done".to_owned(),
        None => "there was no time for a single trial; raise {budget}".to_owned(),
    };
    Error::Tuning { what }
}

/// A search under way.
struct Search<'a> {
    ground: Ground<'a>,
    space: &'a Space,
    /// Those of the space, and those that grew out of them.
    candidates: Vec<Candidate>,
    tuning: &'a Tuning,
    known: &'a [Trial],
    end: Option<Instant>,
    watch: &'a mut dyn Watch,
    crew: Option<&'a mut dyn Crew>,
    trials: Vec<Trial>,
}

/// What one round tries: candidates with their regularizations, the most promising first.
type Entries = Vec<(usize, Vec<f64>)>;

impl Search<'_> {
    /// Whether it came to its end.
    fn run(&mut self) -> Result<bool, Error> {
        let least = self.ground.parts.iter().map(Vec::len).max().unwrap_or(0);
        let available = (self.ground.rows.len() - least).min(MOST_LEARNED);
        let all = self.space.regularizations.clone();
        let mut entries: Entries =
            (0..self.space.candidates.len()).map(|at| (at, all.clone())).collect();
        let early = if available >= 2 * MORE {
            vec![(FEW, TO_SECOND), (MORE, TO_LAST)]
        } else {
            vec![(FEW.min(available), AT_ONCE)]
        };
        for (round, &(n_rows, most)) in early.iter().enumerate() {
            if !self.round(round, n_rows, PARTS[round], &entries)? {
                return Ok(false);
            }
            entries = self.survivors(round, most, round + 1 == early.len());
        }
        let last = early.len();
        let n_parts = self.ground.parts.len();
        Ok(self.round(last, available, n_parts, &entries)? && self.scales(last, available)?)
    }

    /// Tries every entry; false where time or patience ended first.
    fn round(
        &mut self,
        round: usize,
        n_rows: usize,
        n_parts: usize,
        entries: &Entries,
    ) -> Result<bool, Error> {
        let attempts: Vec<Attempt> = entries
            .iter()
            .map(|(candidate, regularizations)| Attempt {
                candidate: *candidate,
                round,
                chosen: self.candidates[*candidate].chosen.clone(),
                regularizations: regularizations.clone(),
                n_rows,
                n_parts,
            })
            .collect();
        let mut by_others = self.by_others(&attempts)?;
        let mut complete = true;
        for (at, attempt) in attempts.iter().enumerate() {
            let known = self.known(attempt).or_else(|| by_others[at].take());
            let Some(trials) = known.or_else(|| self.tried(attempt)) else {
                // What others tried further on is kept.
                complete = false;
                continue;
            };
            for trial in trials {
                self.trials.push(trial);
                let judge = self.tuning.judge;
                let best = self.trials.iter().min_by(|a, b| a.compare(b, judge));
                let trial = self.trials.last().expect("pushed just now");
                self.watch.on_trial(trial, best, attempts.len() - at - 1);
            }
        }
        Ok(complete)
    }

    /// What comes of an attempt here; none where time or patience ended first.
    fn tried(&mut self, attempt: &Attempt) -> Option<Vec<Trial>> {
        if self.is_over() {
            return None;
        }
        let mut polite = Polite { watch: &mut *self.watch, end: self.end };
        self.ground.attempt(attempt, &mut polite)
    }

    /// What an earlier search made of it, if that was all.
    fn known(&self, attempt: &Attempt) -> Option<Vec<Trial>> {
        let done = |k: &f64| {
            let same = |t: &&Trial| {
                (t.candidate, t.round) == (attempt.candidate, attempt.round)
                    && t.regularization() == *k
            };
            self.known.iter().find(same).cloned()
        };
        attempt.regularizations.iter().map(done).collect()
    }

    /// What the crew makes of attempts that are not known; nothing of a single one, or where it
    /// stopped.
    fn by_others(&mut self, attempts: &[Attempt]) -> Result<Vec<Option<Vec<Trial>>>, Error> {
        let mut found = vec![None; attempts.len()];
        let open: Vec<usize> =
            (0..attempts.len()).filter(|at| self.known(&attempts[*at]).is_none()).collect();
        let Some(crew) = self.crew.as_mut().filter(|_| open.len() > 1) else { return Ok(found) };
        let theirs: Vec<Attempt> = open.iter().map(|at| attempts[*at].clone()).collect();
        // Both closures tell the watch.
        let (watch, end) = (RefCell::new(&mut *self.watch), self.end);
        let mut stops =
            || end.is_some_and(|end| Instant::now() >= end) || watch.borrow_mut().stops();
        let mut n_done = 0;
        let mut done = |at: usize, trials: Vec<Trial>| {
            if let Some(own) = open.get(at) {
                found[*own] = Some(trials);
                n_done += 1;
                watch.borrow_mut().on_attempt(n_done, open.len());
            }
        };
        crew.attempt_all(&theirs, &mut stops, &mut done)?;
        Ok(found)
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
