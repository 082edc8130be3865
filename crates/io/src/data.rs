//! One call from a path to checked arrays.
//!
//! In: a path and a [`DataRequest`]. Out: [`Loaded`], whose arrays are finite, non-empty, in
//! standard (row-major) layout and have one decision per signal, with the constraints and weights
//! that were asked for. The format follows from the ending, or from the first bytes where the
//! ending is unknown.

mod array;
mod constraints;
mod csv;
mod dtype;
mod folder;
mod format;
mod hdf5;
mod keys;
mod matrix;
mod npy;
mod npz;
mod origin;
mod rows;
mod write;

use std::path::{Path, PathBuf};

use argwhy_core::Constraints;
use ndarray::Array2;

use crate::error::DataError;
use array::{Arrays, Found};
use format::Format;

pub use matrix::SharedMatrix;
pub use rows::RowRanges;
pub use write::{
    check_decisions_ending, check_prices_ending, check_regular, check_writable, write_decisions,
    write_onward, write_prices, write_whole,
};

/// Which arrays of a file to load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataRequest {
    /// Key of the signals; by default `signals`, else `observations`. In csv files also a
    /// comma-separated list of column names.
    pub signals: Option<String>,
    /// Key of the decisions; by default `decisions`, else `actions`. In csv files also a
    /// comma-separated list of column names; beside an npy file, the path of a second one.
    pub decisions: Option<String>,
    /// Whether decisions are needed at all; `false` loads the signals alone.
    pub want_decisions: bool,
    /// Length of a decision, where none are loaded to tell.
    pub decision_dim: Option<usize>,
    /// Whether to load the arrays `M`, `W`, `M_eq`, `W_eq`, `lower` and `upper`, whichever are there.
    pub constraints: bool,
    /// A file with the `M` of all samples (csv or npy: rows × decision_dim), in place of one in the
    /// data. Implies `constraints`.
    pub matrix: Option<PathBuf>,
    /// The same for `M_eq`.
    pub matrix_eq: Option<PathBuf>,
    /// Key of the samples' weights; none are loaded if there is none. Beside an npy file, the path
    /// of another one.
    pub weights: Option<String>,
}

impl DataRequest {
    /// Signals alone, under the usual keys.
    pub fn signals_only() -> Self {
        Self { want_decisions: false, ..Self::default() }
    }

    /// Whether constraints are asked for in any way.
    pub fn wants_constraints(&self) -> bool {
        self.constraints || self.matrix.is_some() || self.matrix_eq.is_some()
    }
}

impl Default for DataRequest {
    fn default() -> Self {
        Self {
            signals: None,
            decisions: None,
            want_decisions: true,
            decision_dim: None,
            constraints: false,
            matrix: None,
            matrix_eq: None,
            weights: None,
        }
    }
}

/// The arrays of a file, checked: finite, at least one row and column, rows paired.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// n_samples × signal_dim, row-major.
    pub signals: Array2<f64>,
    /// n_samples × decision_dim, row-major; `None` when none were wanted.
    pub decisions: Option<Array2<f64>>,
    /// What limited the decisions, for all samples or one set a sample; `None` when not wanted.
    pub constraints: Option<Constraints>,
    /// One weight a sample; `None` when not wanted.
    pub weights: Option<Vec<f64>>,
    /// The key the signals were found under.
    pub signals_key: String,
    /// The key (for npy, the path) the decisions were found under.
    pub decisions_key: Option<String>,
    /// Constraints that the file has and nobody asked for.
    pub unread: Vec<&'static str>,
}

/// Loads signals and whatever else is wanted from a file or folder.
///
/// Only the arrays asked for are read, and they are converted straight into their f64 result.
/// Fails on anything that is not exactly what was asked for: see [`DataError`].
pub fn load(path: &Path, request: &DataRequest) -> Result<Loaded, DataError> {
    let arrays = match format::detect(path)? {
        Format::Npz => npz::load(path, request),
        Format::Npy => npy::load(path, request),
        Format::Csv => csv::load(path, request, b','),
        Format::Tsv => csv::load(path, request, b'\t'),
        Format::Hdf5 => hdf5::load(path, request),
        Format::Folder => folder::load(path, request),
    }?;
    let Arrays { signals, decisions, weights, tensors, keys, unread } = arrays;
    check(path, &signals, decisions.as_ref())?;
    let n_samples = signals.values.nrows();
    let weights = weights.map(|weights| weights_of(path, weights, n_samples)).transpose()?;
    let constraints = if request.wants_constraints() {
        let decision_dim = decisions.as_ref().map(|found| found.values.ncols());
        let sizes = (n_samples, decision_dim.or(request.decision_dim));
        Some(constraints::assemble(path, tensors, keys, request, sizes)?)
    } else {
        None
    };
    let (decisions, decisions_key) = decisions.map(|found| (found.values, found.key)).unzip();
    Ok(Loaded {
        signals: signals.values,
        decisions,
        constraints,
        weights,
        signals_key: signals.key,
        decisions_key,
        unread,
    })
}

/// One weight a sample, finite and not negative.
fn weights_of(path: &Path, found: Found, n_samples: usize) -> Result<Vec<f64>, DataError> {
    found.check()?;
    let shape = found.values.dim();
    let values = found.values.into_raw_vec_and_offset().0;
    let (path, key) = (path.to_path_buf(), found.key);
    if shape != (n_samples, 1) && shape != (1, n_samples) {
        let shape = vec![shape.0 as u64, shape.1 as u64];
        return Err(DataError::WeightCount { path, key, shape, n_samples });
    }
    match values.iter().position(|weight| *weight < 0.0) {
        Some(row) => Err(DataError::Weight { path, key, row, value: values[row] }),
        None => Ok(values),
    }
}

fn check(path: &Path, signals: &Found, decisions: Option<&Found>) -> Result<(), DataError> {
    signals.check()?;
    let Some(decisions) = decisions else { return Ok(()) };
    decisions.check()?;
    if signals.values.nrows() != decisions.values.nrows() {
        return Err(DataError::RowCounts {
            path: path.to_path_buf(),
            signals_key: signals.key.clone(),
            signals_rows: signals.values.nrows(),
            decisions_key: decisions.key.clone(),
            decisions_rows: decisions.values.nrows(),
        });
    }
    Ok(())
}
