//! Models that grow: new rows behind those that a model learned from, others taken away.
//!
//! In: a model with its rows, and what changes. Out: a fit to all rows that are left, by the
//! model's settings, from its coefficients, certified like any other: the optimum is that of a
//! fresh fit with the same features. Their statistics stay those of the model.

use crate::checkpoint::{Start, state_at};
use crate::error::Error;
use crate::pipeline::{Fit, Pipeline, Progress};
use crate::sources::{DataSources, Provenance, from_stored};
use argwhy_core::solver::State;
use argwhy_core::{Dataset, Model};
use argwhy_io::{Kept, StoredModel};
use ndarray::ArrayView1;
use std::collections::{HashMap, HashSet};

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
}

/// A model of all rows that are left, and these.
#[derive(Clone, Debug)]
pub struct Updated {
    /// The fit.
    pub fit: Fit,
    /// Its rows: old ones in their order, then new ones.
    pub data: Dataset,
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
        let (data, start) = joined(&stored.model, old, changes)?;
        if let Some(note) = changes.new.as_ref().and_then(|new| drift(&old.data, new)) {
            progress.on_note(&note);
        }
        let pipeline = Self::new(settings)?
            .with_features(stored.model.features.clone())
            .starting_from(Start::State(start));
        let all = 0..data.n_samples();
        let mut fit = pipeline.fit_rows(&data, std::slice::from_ref(&all), progress)?;
        // The rows are others now; where the first of them came from is still so.
        let source = sources.provenance.source.clone();
        let provenance = Provenance { source, ..fit.sources.provenance };
        fit.sources = DataSources { provenance, ..sources };
        Ok(Updated { fit, data })
    }
}

/// All rows that are left, and the model's coefficients for them.
fn joined(model: &Model, old: &Kept, changes: &Changes) -> Result<(Dataset, State), Error> {
    let wrong = |what: String| Error::Start { what };
    let Some(support) = model.support() else {
        return Err(wrong(
            "a plain model has weights of features instead of coefficients; fit it again, which \
             takes a few passes over the data"
                .to_owned(),
        ));
    };
    let known: HashSet<u64> = old.rows.iter().copied().collect();
    if let Some(row) = changes.drop.iter().find(|row| !known.contains(row)) {
        return Err(wrong(format!("row {row} is to be dropped, but the model has no such row")));
    }
    let dropped: HashSet<u64> = changes.drop.iter().copied().collect();
    let stay: Vec<usize> =
        (0..old.rows.len()).filter(|&i| !dropped.contains(&old.rows[i])).collect();
    let place: HashMap<u64, usize> =
        stay.iter().enumerate().map(|(at, &i)| (old.rows[i], at)).collect();
    let left = old.data.select(&stay);
    let data = match &changes.new {
        Some(new) if stay.is_empty() => new.clone(),
        Some(new) => left.joined(new)?,
        None => left,
    };
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

/// Which signals of new rows are not what they were, in words.
fn drift(old: &Dataset, new: &Dataset) -> Option<String> {
    if new.n_samples() < ENOUGH || new.signals().ncols() != old.signals().ncols() {
        return None;
    }
    let drifted: Vec<String> = (0..old.signals().ncols())
        .filter_map(|j| {
            let (mean, width) = spread(old.signals().column(j));
            let (now, now_width) = spread(new.signals().column(j));
            let moved = (now - mean).abs() > MOVED * width;
            let other = now_width > WIDER * width || WIDER * now_width < width;
            (width > 0.0 && (moved || other)).then(|| {
                let name = old.names().signal(j);
                format!("{name} is {now:.4} ± {now_width:.4} where it was {mean:.4} ± {width:.4}")
            })
        })
        .collect();
    let told = drifted.join(", ");
    (!drifted.is_empty()).then(|| {
        format!(
            "signals have drifted: {told}; features keep the means and widths of the old rows, a \
             fit from nothing would use those of all rows"
        )
    })
}

fn spread(values: ArrayView1<'_, f64>) -> (f64, f64) {
    (values.mean().unwrap_or(0.0), values.std(0.0))
}
