//! One call from a path to checked arrays.
//!
//! In: a path and a [`DataRequest`]. Out: [`Loaded`], whose arrays are finite, non-empty, in
//! standard (row-major) layout and have one decision per signal. The format follows from the
//! ending, or from the first bytes where the ending is unknown.

mod array;
mod csv;
mod dtype;
mod folder;
mod format;
mod hdf5;
mod keys;
mod npy;
mod npz;
mod origin;
mod rows;
mod write;

use std::path::Path;

use ndarray::Array2;

use crate::error::DataError;
use array::Found;
use format::Format;

pub use rows::RowRanges;
pub use write::{check_regular, write_decisions, write_whole};

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
}

impl Default for DataRequest {
    fn default() -> Self {
        Self { signals: None, decisions: None, want_decisions: true }
    }
}

/// The arrays of a file, checked: finite, at least one row and column, rows paired.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// n_samples × signal_dim, row-major.
    pub signals: Array2<f64>,
    /// n_samples × decision_dim, row-major; `None` when none were wanted.
    pub decisions: Option<Array2<f64>>,
    /// The key the signals were found under.
    pub signals_key: String,
    /// The key (for npy, the path) the decisions were found under.
    pub decisions_key: Option<String>,
}

/// Loads signals, and decisions if wanted, from a file or folder.
///
/// Only the arrays asked for are read, and they are converted straight into their f64 result.
/// Fails on anything that is not exactly what was asked for: see [`DataError`].
pub fn load(path: &Path, request: &DataRequest) -> Result<Loaded, DataError> {
    let (signals, decisions) = match format::detect(path)? {
        Format::Npz => npz::load(path, request),
        Format::Npy => npy::load(path, request),
        Format::Csv => csv::load(path, request, b','),
        Format::Tsv => csv::load(path, request, b'\t'),
        Format::Hdf5 => hdf5::load(path, request),
        Format::Folder => folder::load(path, request),
    }?;
    check(path, &signals, decisions.as_ref())?;
    let (decisions, decisions_key) = decisions.map(|found| (found.values, found.key)).unzip();
    Ok(Loaded { signals: signals.values, decisions, signals_key: signals.key, decisions_key })
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
