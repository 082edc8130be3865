//! Models that grow: new rows behind those that a model learned from, others taken away.
//!
//! In: a model with its rows, and what changes. Out: a fit to all rows that are left, by the
//! model's settings, from its coefficients, certified like any other: the optimum is that of a
//! fresh fit with the same features. Their statistics stay those of the model, and rows keep the
//! numbers they had.

use crate::checkpoint::{Start, state_at};
use crate::error::Error;
use crate::pipeline::{Fit, Pipeline, Progress};
use crate::plan::process_bytes;
use crate::settings::MemorySize;
use crate::sources::{DataSources, Provenance, from_stored};
use argwhy_core::backend::{Backend, Host, Origin, Storage, WithTrends};
use argwhy_core::operator::{OperatorKind, Precision};
use argwhy_core::precond::KeptFactor;
use argwhy_core::solver::State;
use argwhy_core::{Constraints, Dataset, Model};
use argwhy_io::{Budget, Kept, StoredModel};
use ndarray::{ArrayView1, Axis};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Widths of the old rows by which the mean of new ones has to be off to be told, and how many
/// times as wide or narrow they have to be.
const MOVED: f64 = 1.0;
const WIDER: f64 = 2.0;
/// New rows from which on they say something about means and widths.
const ENOUGH: usize = 20;

/// What changes.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Rows to add.
    pub new: Option<Dataset>,
    /// Rows to take away, by the numbers they had.
    pub drop: Vec<u64>,
    /// Whether the fit leaves what the next update starts from.
    pub leave_factor: bool,
    /// Threads; none means one a core: those that the model was fitted with were another machine's.
    pub threads: Option<usize>,
    /// Memory the whole process may take; none means as much as the model was fitted with.
    pub memory: Option<MemorySize>,
}

impl Changes {
    /// What reading the new rows may take, within the limit of the update and beside the old ones.
    pub fn budget(&self, stored: &StoredModel, old: Option<&Kept>) -> Result<Budget, Error> {
        let (mut settings, _) = from_stored(&stored.settings)?;
        settings.threads = self.threads;
        let limit = self.memory.unwrap_or(settings.memory);
        let numbers = old.map_or(0, |old| {
            let constraints = old.data.constraints().map_or(0, Constraints::n_numbers);
            old.data.signals().len() + old.data.decisions().len() + constraints
        });
        let held = (numbers * size_of::<f64>()) as u64;
        Ok(Budget::within(limit.0, process_bytes(&settings) + held))
    }
}

/// A model of all rows that are left, and these.
#[derive(Clone, Debug)]
pub struct Updated {
    /// The fit.
    pub fit: Fit,
    /// Its rows: old ones in their order, by the numbers they had, then new ones.
    pub data: Dataset,
    /// How many of them are old ones.
    pub n_old: usize,
    /// Whether signals of new rows lie elsewhere than those of the old ones, or further apart.
    pub drifted: bool,
}

impl Pipeline {
    /// Fits anew to what a model learned from and what changes, starting from the model.
    pub fn update(
        stored: &StoredModel,
        old: &Kept,
        changes: &Changes,
        progress: &mut (dyn Progress + Send),
    ) -> Result<Updated, Error> {
        let (mut settings, sources) = from_stored(&stored.settings)?;
        // That of the model: more rows alone are no reason for another one.
        settings.regularization = stored.model.record.regularization.into();
        settings.threads = changes.threads;
        settings.memory = changes.memory.unwrap_or(settings.memory);
        let pipeline = Self::new(settings)?;
        let stay = staying(old, changes)?;
        let (data, start) = joined(&stored.model, old, &stay, changes)?;
        let drift = changes.new.as_ref().and_then(|new| drift(&old.data, new));
        drift.iter().for_each(|(note, _)| progress.on_note(note));
        let factor = pipeline.with_threads(|| factor_of(&stored.model, old, &stay))?;
        let mut pipeline =
            pipeline.growing_from(&stored.model, factor)?.starting_from(Start::State(start));
        if changes.leave_factor {
            pipeline = pipeline.leaving_factor();
        }
        let all = 0..data.n_samples();
        let mut fit = pipeline.fit_rows(&data, std::slice::from_ref(&all), progress)?;
        // The rows are others now; where the first of them came from is still so.
        let source = sources.provenance.source.clone();
        let provenance = Provenance { source, ..fit.sources.provenance };
        fit.sources = DataSources { provenance, ..sources };
        Ok(Updated { fit, data, n_old: stay.len(), drifted: drift.is_some_and(|(_, left)| left) })
    }
}

/// Rows that are samples: one that counts zero times is none.
fn counting(data: &Dataset) -> Vec<usize> {
    let weights = data.weights();
    (0..data.n_samples()).filter(|&i| weights.is_none_or(|w| w[i] > 0.0)).collect()
}

/// Old rows that stay, counted as they stand.
fn staying(old: &Kept, changes: &Changes) -> Result<Vec<usize>, Error> {
    let known: HashSet<u64> = old.rows.iter().copied().collect();
    if let Some(row) = changes.drop.iter().find(|row| !known.contains(row)) {
        let (first, last) = (old.rows.iter().min(), old.rows.iter().max());
        let (first, last) = (first.copied().unwrap_or(0), last.copied().unwrap_or(0));
        let what = format!(
            "row {row} is to be dropped, but the model has no such row; the numbers of its {} rows \
             lie between {first} and {last}",
            old.rows.len()
        );
        return Err(Error::Start { what });
    }
    let dropped: HashSet<u64> = changes.drop.iter().copied().collect();
    Ok(counting(&old.data).into_iter().filter(|&i| !dropped.contains(&old.rows[i])).collect())
}

/// What the fit of the model left of its preconditioner, for the rows that stay. None where it left
/// nothing, or rows have weights, by which kernel values would be others.
fn factor_of(model: &Model, old: &Kept, stay: &[usize]) -> Result<Option<Arc<KeptFactor>>, Error> {
    let Some(factor) = old.factor.as_ref().filter(|_| old.data.weights().is_none()) else {
        return Ok(None);
    };
    if factor.n_samples() != old.rows.len() {
        return Ok(None);
    }
    if stay.len() == old.rows.len() {
        return Ok(Some(Arc::clone(factor)));
    }
    let mut place = vec![None; old.rows.len()];
    stay.iter().enumerate().for_each(|(at, &i)| place[i] = Some(at));
    let kernel_of = |rows: &[usize]| {
        let signals = old.data.signals().select(Axis(0), rows);
        let features = model.features.transform(signals.view())?;
        let storage = Storage::new(OperatorKind::Tiled, Precision::F64);
        let origin = Origin { map: &model.features, rows };
        WithTrends(&Host).operator_from(origin, features.view(), &model.kernel(), storage)
    };
    Ok(KeptFactor::clone(factor).without(&place, kernel_of)?.map(Arc::new))
}

/// All rows that are left, and the model's coefficients for them. Old ones keep their numbers, so
/// that the next update can speak of them; those of new ones follow the largest.
fn joined(
    model: &Model,
    old: &Kept,
    stay: &[usize],
    changes: &Changes,
) -> Result<(Dataset, State), Error> {
    let wrong = |what: String| Error::Start { what };
    let Some(support) = model.support() else {
        return Err(wrong(
            "a plain model has weights of features instead of coefficients; fit it again, which \
             takes a few passes over the data"
                .to_owned(),
        ));
    };
    let known: HashSet<u64> = old.rows.iter().copied().collect();
    let place: HashMap<u64, usize> =
        stay.iter().enumerate().map(|(at, &i)| (old.rows[i], at)).collect();
    let left = old.data.select(stay);
    let new_rows = changes.new.as_ref().map(counting).unwrap_or_default();
    let data = match &changes.new {
        Some(_) if new_rows.is_empty() && !stay.is_empty() => left,
        Some(new) if stay.is_empty() => new.select(&new_rows),
        Some(new) if new_rows.len() < new.n_samples() => left.joined(&new.select(&new_rows))?,
        Some(new) => left.joined(new)?,
        None => left,
    };
    let next = old.rows.iter().max().map_or(0, |last| last + 1);
    let own = stay.iter().map(|&i| old.rows[i] as usize);
    let numbers = own.chain(new_rows.iter().map(|&i| next as usize + i)).collect();
    let data = data.with_numbers(numbers)?;
    if let Some(row) = support.rows.iter().find(|row| !known.contains(row)) {
        return Err(wrong(format!(
            "the model learned from row {row}, which the old data does not have; give the data and \
             rows that it was fitted to"
        )));
    }
    let signals = |at: usize| data.signals().row(at).to_vec();
    let state = state_at(model, support, &place, data.n_samples(), signals).map_err(|row| {
        wrong(format!(
            "row {row} of the old data has other signals than the one the model learned from; give \
             the data and rows that it was fitted to"
        ))
    })?;
    Ok((data, state))
}

/// Which signals of new rows are not what they were, in words, and whether some have left the old
/// ones behind: a narrower range is no news to the model.
fn drift(old: &Dataset, new: &Dataset) -> Option<(String, bool)> {
    if new.n_samples() < ENOUGH || new.signals().ncols() != old.signals().ncols() {
        return None;
    }
    let mut left = false;
    let drifted: Vec<String> = (0..old.signals().ncols())
        .filter_map(|j| {
            let (mean, width) = spread(old.signals().column(j));
            let (now, now_width) = spread(new.signals().column(j));
            let moved = (now - mean).abs() > MOVED * width;
            let (wider, narrower) = (now_width > WIDER * width, WIDER * now_width < width);
            left |= width > 0.0 && (moved || wider);
            (width > 0.0 && (moved || wider || narrower)).then(|| {
                let name = old.names().signal(j);
                format!("{name} is {now:.4} ± {now_width:.4} where it was {mean:.4} ± {width:.4}")
            })
        })
        .collect();
    let told = drifted.join(", ");
    (!drifted.is_empty()).then(|| {
        let note = format!(
            "signals have drifted: {told}; features keep the means and widths of the old rows, a \
             fit from nothing would use those of all rows"
        );
        (note, left)
    })
}

fn spread(values: ArrayView1<'_, f64>) -> (f64, f64) {
    (values.mean().unwrap_or(0.0), values.std(0.0))
}
