//! Fits that go on from what others reached: checkpoints on the way, and where a fit starts.

use crate::error::Error;
use argwhy_core::model::Support;
use argwhy_core::solver::{Iteration, State};
use argwhy_core::{Dataset, Model};
use argwhy_io::{Checkpoint, CheckpointError, save_checkpoint};
use ndarray::Array2;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Where a fit keeps what it reaches. Clones share what is kept, so that another thread can write
/// it when the fit has no time left.
#[derive(Clone, Debug)]
pub struct Checkpoints {
    path: PathBuf,
    every: Option<Duration>,
    kept: Arc<Mutex<Kept>>,
}

#[derive(Debug)]
struct Kept {
    latest: Option<Checkpoint>,
    written: Instant,
}

impl Checkpoints {
    /// Written to `path` at the first step after each `every`; without one only by [`Self::write`].
    pub fn new(path: impl Into<PathBuf>, every: Option<Duration>) -> Self {
        let kept = Kept { latest: None, written: Instant::now() };
        Self { path: path.into(), every, kept: Arc::new(Mutex::new(kept)) }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes what was reached last, and says after how many steps; none where nothing was.
    pub fn write(&self) -> Result<Option<usize>, CheckpointError> {
        let kept = self.lock();
        let Some(latest) = &kept.latest else { return Ok(None) };
        save_checkpoint(&self.path, latest)?;
        Ok(Some(latest.iterations))
    }

    /// Keeps a state, and writes it where it is time. The error is worth a note, not the fit.
    pub(crate) fn keep(
        &self,
        rows: &str,
        seen: Option<&Iteration>,
        state: &dyn Fn() -> State,
    ) -> Result<(), CheckpointError> {
        let due = {
            let mut kept = self.lock();
            // One at a time: the old one goes before the new one comes.
            kept.latest = None;
            kept.latest = Some(Checkpoint {
                state: state(),
                rows: rows.to_owned(),
                iterations: seen.map_or(0, |seen| seen.iteration),
                relative_gap: seen.map_or(f64::MAX, |seen| seen.relative_gap).min(f64::MAX),
            });
            let due = self.every.is_some_and(|every| kept.written.elapsed() >= every);
            if due {
                // Also where it fails, so as not to try at every step.
                kept.written = Instant::now();
            }
            due
        };
        if due { self.write().map(|_| ()) } else { Ok(()) }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a fit starts from in place of zeros. The optimum does not depend on it.
#[derive(Clone, Debug)]
pub enum Start {
    /// Where a fit of the same rows was.
    Checkpoint(Box<Checkpoint>),
    /// A model that was fitted to rows with the same numbers; rows that it does not know start from
    /// zero.
    Model(Box<Model>),
    /// Coefficients for exactly the rows there will be.
    State(State),
}

impl Start {
    /// The state for these rows.
    pub(crate) fn state(
        &self,
        data: &Dataset,
        rows: &[usize],
        fingerprint: &str,
    ) -> Result<State, Error> {
        match self {
            Self::Checkpoint(checkpoint) if checkpoint.rows == fingerprint => {
                Ok(checkpoint.state.clone())
            }
            Self::Checkpoint(_) => Err(Error::Start {
                what: "the checkpoint belongs to other rows than these; give the data, rows, \
                       weights and limits that it was made with, or leave {resume} out"
                    .to_owned(),
            }),
            Self::Model(model) => of_model(model, data, rows),
            Self::State(state) => Ok(state.clone()),
        }
    }
}

/// A model's coefficients, row by row.
fn of_model(model: &Model, data: &Dataset, rows: &[usize]) -> Result<State, Error> {
    let other = |what: String| Error::Start { what };
    let Some(support) = model.support() else {
        return Err(other(
            "a plain model has weights of features instead of coefficients, so {from} cannot \
             start from it"
                .to_owned(),
        ));
    };
    let n = data.decisions().ncols();
    let (dims, wanted) = ((support.signals.ncols(), support.coefficients.ncols()), data.signals());
    if dims != (wanted.ncols(), n) {
        return Err(other(format!(
            "the model to start from has {} signals and {} decisions, the data {} and {n}",
            dims.0,
            dims.1,
            wanted.ncols()
        )));
    }
    let place = rows.iter().enumerate().map(|(i, row)| (data.number(*row) as u64, i));
    let place = place.collect();
    let signals = |i: usize| data.signals().row(rows[i]).to_vec();
    state_at(model, support, &place, rows.len(), signals).map_err(|row| {
        other(format!(
            "row {row} has other signals than the one that the model to start from learned from; \
             rows must have the numbers they had then"
        ))
    })
}

/// A model's coefficients for `n_samples` rows, by the place of each row's number among them; the
/// number of a row that has other signals there than the model learned from is the error.
pub(crate) fn state_at(
    model: &Model,
    support: &Support,
    place: &HashMap<u64, usize>,
    n_samples: usize,
    signals: impl Fn(usize) -> Vec<f64>,
) -> Result<State, u64> {
    let mut coefficients = Array2::zeros((model.decision_dim(), n_samples));
    let samples = support.rows.iter().zip(support.signals.rows());
    for ((row, signal), own) in samples.zip(support.coefficients.rows()) {
        let Some(&i) = place.get(row) else { continue };
        if signals(i) != signal.to_vec() {
            return Err(*row);
        }
        coefficients.column_mut(i).assign(&own);
    }
    let theta = model.theta.as_ref().map(|theta| theta.theta_uu.clone());
    Ok(State { coefficients, theta })
}

/// A hash of what some rows say, in their order, and of all constraints.
pub fn fingerprint(data: &Dataset, rows: &[usize]) -> String {
    let mut hash = Hash::default();
    for &row in rows {
        hash.add(data.signals().row(row).iter());
        hash.add(data.decisions().row(row).iter());
        hash.add(data.weights().map(|weights| &weights[row]));
    }
    if let Some(given) = data.constraints() {
        for (m, w) in [given.inequalities(), given.equalities()].into_iter().flatten() {
            hash.add(m);
            hash.add(w);
        }
        for limits in [given.lower(), given.upper()].into_iter().flatten() {
            hash.add(limits);
        }
    }
    hash.finish()
}

/// Hashes numbers, some of which it keeps until they are worth a call.
#[derive(Default)]
struct Hash {
    hasher: blake3::Hasher,
    waiting: Vec<u8>,
}

impl Hash {
    const ENOUGH: usize = 1 << 16;

    fn add<'a>(&mut self, values: impl IntoIterator<Item = &'a f64>) {
        for value in values {
            self.waiting.extend(value.to_le_bytes());
            if self.waiting.len() >= Self::ENOUGH {
                self.hasher.update(&self.waiting);
                self.waiting.clear();
            }
        }
    }

    fn finish(mut self) -> String {
        self.hasher.update(&self.waiting);
        self.hasher.finalize().to_hex().to_string()
    }
}
