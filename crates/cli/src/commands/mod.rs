//! One file a command.

pub mod ablate;
pub mod bench;
pub mod completions;
pub mod convert;
pub mod demo;
pub mod describe;
pub mod doctor;
pub mod evaluate;
pub mod explain;
pub mod explore;
pub mod fit;
pub mod inspect;
pub mod man;
pub mod names;
pub mod predict;
mod ray;
pub mod schema;
mod strange;
pub mod targets;
pub mod tune;
pub mod update;

use crate::args::{DataOptions, SetOptions};
use crate::error::CliError;
use crate::progress::say;
use argwhy::core::Constraints;
use argwhy::core::dataset::Names;
use argwhy::core::decision_set::SampleSets;
use argwhy::io::{Budget, DataError, DataRequest, RowRanges};
use argwhy::{Predictor, StoredModel};
use ndarray::Array2;
use serde::Serialize;
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;

/// Prints one JSON object on a line of its own.
fn print_json(value: &impl Serialize) -> Result<(), CliError> {
    let mut text = serde_json::to_string_pretty(value).map_err(|e| CliError::Stdout(e.into()))?;
    text.push('\n');
    print(&text)
}

fn print(text: &str) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(CliError::Stdout)
}

/// The ranges asked for, or all rows.
fn resolve(rows: Option<&RowRanges>, n_rows: usize) -> Result<Vec<Range<usize>>, CliError> {
    match rows {
        Some(rows) => Ok(rows.resolve(n_rows)?),
        None => Ok(vec![0..n_rows; 1]),
    }
}

/// The rows of a file that a model is asked about.
struct Rows {
    signals: Array2<f64>,
    decisions: Option<Array2<f64>>,
    constraints: Option<Constraints>,
    weights: Option<Vec<f64>>,
    /// Their places in the file; none where they are all of its rows.
    places: Option<Vec<usize>>,
    /// What limits are called.
    names: Names,
}

impl Rows {
    /// Where row `i` stood in the file.
    fn place(&self, i: usize) -> usize {
        self.places.as_ref().map_or(i, |places| places[i])
    }

    /// Their decision sets.
    fn sets(&self, predictor: &Predictor) -> Result<SampleSets, CliError> {
        let (given, n) = (self.constraints.as_ref(), self.signals.nrows());
        Ok(predictor.sets_named(given, n, |i| self.place(i))?)
    }
}

/// What a command wants of a file for a model.
struct Wanted<'a> {
    request: DataRequest,
    decisions: Option<&'a String>,
    want_decisions: bool,
    weights: Option<&'a String>,
    sets: &'a SetOptions,
    budget: Budget,
}

impl<'a> Wanted<'a> {
    fn new(options: &'a DataOptions, sets: &'a SetOptions) -> Self {
        Self::of(options.choice.request(), sets)
    }

    fn of(request: DataRequest, sets: &'a SetOptions) -> Self {
        let budget = whole_machine();
        Self { request, decisions: None, want_decisions: false, weights: None, sets, budget }
    }
}

/// Signals of the rows asked for, their decisions where those are wanted, and their constraints
/// where the model needs them.
fn load_rows(
    path: &Path,
    wanted: &Wanted<'_>,
    (stored, predictor): (&StoredModel, &Predictor),
    quiet: bool,
) -> Result<Rows, CliError> {
    let request = DataRequest {
        decisions: wanted.decisions.cloned(),
        want_decisions: wanted.want_decisions,
        weights: wanted.weights.cloned(),
        decision_dim: Some(predictor.decision_dim()),
        constraints: predictor.is_constrained(),
        matrix: wanted.sets.matrix.clone(),
        matrix_eq: wanted.sets.matrix_eq.clone(),
        budget: wanted.budget,
        ..wanted.request.clone()
    };
    let request = names::by_name(request, stored);
    let loaded = argwhy::load(path, &request).map_err(|error| match error {
        DataError::ConstraintsAbsent { .. } => CliError::NeedsConstraints(error),
        other => match other.missing_in_words() {
            // A decision belongs to each row, so none is left out here.
            Some(what) => CliError::Usage(format!(
                "{what}; repair them, or write a file without those rows with `argwhy convert {} \
                 OUTPUT --missing drop`",
                path.display()
            )),
            None => other.into(),
        },
    })?;
    if !loaded.unread.is_empty() {
        say(
            quiet,
            format_args!(
                "note: the data has {}, which this model was fitted without and does not use",
                listed(&loaded.unread)
            ),
        );
    }
    names::tell(path, &loaded, &stored.model.names, quiet);
    Ok(Rows {
        names: names::limits(&stored.model.names, &loaded.names),
        signals: loaded.signals,
        decisions: loaded.decisions,
        constraints: loaded.constraints,
        weights: loaded.weights,
        places: loaded.places,
    })
}

/// What this machine could give at most: a file that unpacks to more is refused, not begun.
fn whole_machine() -> Budget {
    argwhy::machine::reachable_memory_bytes()
        .map_or_else(Budget::default, |reachable| Budget::within(reachable, 0))
}

/// `M`, `W` and `upper`.
fn listed(keys: &[&str]) -> String {
    match keys {
        [first @ .., last] if !first.is_empty() => format!("`{}` and `{last}`", first.join("`, `")),
        _ => format!("`{}`", keys.concat()),
    }
}

/// Runs `work` on as many threads as asked for.
fn on_threads<T: Send>(
    threads: Option<usize>,
    work: impl FnOnce() -> T + Send,
) -> Result<T, CliError> {
    Ok(argwhy::machine::thread_pool(threads)?.install(work))
}
