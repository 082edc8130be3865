//! One candidate with a path of regularizations on rows that it does not learn from: tried here, or
//! by a [`Crew`] that has the same data.

use super::space::{Space, settings_of};
use super::trial::Trial;
use super::{JUDGED, Tuning};
use crate::error::Error;
use crate::judging::{LOOSE, Tally, ranges_of, some_of, without};
use crate::pipeline::{Fit, Pipeline, Progress};
use crate::settings::{FitSettings, SolverKind, Table, ThetaChoice};
use argwhy_core::solver::Status;
use argwhy_core::{Dataset, Predictor};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::time::Instant;

/// Something to try.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Which candidate it is, and in which round.
    pub candidate: usize,
    /// Rounds have more rows and fewer candidates each.
    pub round: usize,
    /// What was chosen for it, by the settings' names.
    pub chosen: Table,
    /// What it is tried with, from large to small.
    pub regularizations: Vec<f64>,
    /// Rows that are learned from at most.
    pub n_rows: usize,
    /// Parts that are kept aside, each once.
    pub n_parts: usize,
}

/// Others who try what a round has to try.
pub trait Crew: Send {
    /// Makes all attempts, in any order, and hands over what came of each; ends early where `stops`
    /// says so. What comes of an attempt is what [`Ground::attempt`] says on the same data.
    fn attempt_all(
        &mut self,
        attempts: &[Attempt],
        stops: &mut dyn FnMut() -> bool,
        done: &mut dyn FnMut(usize, Vec<Trial>),
    ) -> Result<(), Error>;
}

/// What attempts are made on: data, and its rows in parts.
pub struct Ground<'a> {
    pub(super) data: &'a Dataset,
    pub(super) rows: &'a [usize],
    pub(super) parts: Vec<Vec<usize>>,
    given: &'a Table,
    seed: u64,
}

impl<'a> Ground<'a> {
    /// `rows` of the data, divided as a search divides them.
    pub fn new(
        data: &'a Dataset,
        rows: &'a [usize],
        space: &'a Space,
        tuning: &Tuning,
    ) -> Result<Self, Error> {
        let parts = tuning.division.parts(rows, tuning.n_parts, tuning.seed)?;
        Ok(Self { data, rows, parts, given: &space.given, seed: tuning.seed })
    }

    /// Makes an attempt: a trial for each regularization; none where it was stopped.
    pub fn attempt(
        &self,
        attempt: &Attempt,
        progress: &mut (dyn Progress + Send),
    ) -> Option<Vec<Trial>> {
        let start = Instant::now();
        let Attempt { candidate, round, chosen, regularizations, n_rows, n_parts } = attempt;
        let trial = |k: &f64| Trial::new(chosen, *k, (*candidate, *round), *n_rows);
        let trials: Vec<Trial> = regularizations.iter().map(trial).collect();
        let failed = |why: &str| {
            let failed = Some(why.to_owned());
            trials.iter().cloned().map(|t| Trial { failed: failed.clone(), ..t }).collect()
        };
        let settings = match settings_of(self.given, chosen) {
            Ok(settings) => settings,
            Err(why) => return Some(failed(&why)),
        };
        let mut tallies = vec![(Tally::default(), Vec::new()); regularizations.len()];
        for part in self.parts.iter().take(*n_parts) {
            let rest = some_of(without(self.rows, part), *n_rows, self.seed);
            let part = some_of(part.clone(), JUDGED, self.seed);
            let mut take = |at: usize, fit: &Fit| -> Result<(), Error> {
                let mut own = Tally::default();
                let predictor = Predictor::new(&fit.model)?;
                own.take_model(self.data, &predictor, &part, fit.settings().infeasible)?;
                tallies[at].1.push(own.scores());
                tallies[at].0.append(own);
                Ok(())
            };
            let rest = ranges_of(&rest);
            match learn(self.data, &rest, &settings, regularizations, progress, &mut take) {
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
