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
mod groups;
mod hdf5;
mod kept;
mod keys;
mod matrix;
mod npy;
mod npz;
mod origin;
mod rows;
mod sink;
mod survey;
mod write;

use std::path::{Path, PathBuf};

use argwhy_core::Constraints;
use argwhy_core::dataset::Names;
use ndarray::Array2;

use crate::budget::{Budget, Meter};
use crate::error::DataError;
use array::{Arrays, Found, Listing, RowsOf};
use format::Format;
use kept::Kept;
use origin::Origin;

pub use format::data_endings;
pub use groups::{GroupKind, Groups};
pub use matrix::SharedMatrix;
pub use rows::RowRanges;
pub use survey::Survey;
pub use write::{
    Beside, check_decisions_ending, check_prices_ending, check_regular, check_writable,
    write_decisions, write_decisions_beside, write_onward, write_prices, write_whole,
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
    /// Whether to load the arrays `M`, `W`, `M_eq`, `W_eq`, `lower` and `upper`, whichever are
    /// there.
    pub constraints: bool,
    /// A file with the `M` of all samples (csv or npy: rows × decision_dim), in place of one in the
    /// data. Implies `constraints`.
    pub matrix: Option<PathBuf>,
    /// The same for `M_eq`.
    pub matrix_eq: Option<PathBuf>,
    /// Key of the samples' weights; none are loaded if there is none. Beside an npy file, the path
    /// of another one.
    pub weights: Option<String>,
    /// Key of what makes rows belong together; in csv files the cells may be text. Beside an npy
    /// file, the path of another one.
    pub groups: Option<String>,
    /// Whether to find the episodes of the rows, where the file has any and `groups` is not given.
    pub episodes: bool,
    /// What the signals are called, where a model says so: columns of these names, in this order,
    /// where the data has names. Data without is taken as it stands.
    pub signal_names: Vec<String>,
    /// The same of decisions, and of the columns of a matrix.
    pub decision_names: Vec<String>,
    /// Columns of a csv file with each row's lower limits, one a dimension.
    pub lower: Vec<String>,
    /// The same of upper limits.
    pub upper: Vec<String>,
    /// The rows to keep, in this order; all if there are none. What is left out takes no memory,
    /// and its values are not looked at.
    pub rows: Option<RowRanges>,
    /// The memory that reading may take.
    pub budget: Budget,
}

impl DataRequest {
    /// Signals alone, under the usual keys.
    pub fn signals_only() -> Self {
        Self { want_decisions: false, ..Self::default() }
    }

    /// Whether constraints are asked for in any way.
    pub fn wants_constraints(&self) -> bool {
        self.wants_arrays() || self.wants_columns()
    }

    /// Whether the arrays of constraints are asked for.
    fn wants_arrays(&self) -> bool {
        self.constraints || self.matrix.is_some() || self.matrix_eq.is_some()
    }

    /// Whether limits are asked for by the names of their columns.
    fn wants_columns(&self) -> bool {
        !(self.lower.is_empty() && self.upper.is_empty())
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
            groups: None,
            episodes: false,
            signal_names: Vec::new(),
            decision_names: Vec::new(),
            lower: Vec::new(),
            upper: Vec::new(),
            rows: None,
            budget: Budget::default(),
        }
    }
}

/// The arrays of a file, checked: finite, at least one row and column, rows paired.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// n_samples × signal_dim, row-major.
    pub signals: Array2<f64>,
    /// Where each row stood in the file; `None` when they are all of its rows.
    pub places: Option<Vec<usize>>,
    /// n_samples × decision_dim, row-major; `None` when none were wanted.
    pub decisions: Option<Array2<f64>>,
    /// What limited the decisions, for all samples or one set a sample; `None` when not wanted.
    pub constraints: Option<Constraints>,
    /// One weight a sample; `None` when not wanted.
    pub weights: Option<Vec<f64>>,
    /// Which rows belong together; `None` when not wanted, or when the file has no episodes.
    pub groups: Option<Groups>,
    /// The key the signals were found under.
    pub signals_key: String,
    /// The key (for npy, the path) the decisions were found under.
    pub decisions_key: Option<String>,
    /// Constraints that the file has and nobody asked for.
    pub unread: Vec<&'static str>,
    /// What signals, decisions and limits are called, where the file says so.
    pub names: Names,
}

/// Loads signals and whatever else is wanted from a file or folder.
///
/// Only the arrays asked for are read, and they are converted straight into their f64 result.
/// Fails on anything that is not exactly what was asked for: see [`DataError`].
pub fn load(path: &Path, request: &DataRequest) -> Result<Loaded, DataError> {
    load_if(path, request, |_| Ok(()))
}

/// As [`load`], where `accept` sees the sizes first and may refuse before any number is read.
///
/// Lines of a csv file are counted roughly at first, and exactly where `accept` refuses: it may
/// then be asked a second time.
pub fn load_if<E: From<DataError>>(
    path: &Path,
    request: &DataRequest,
    accept: impl Fn(&Survey) -> Result<(), E>,
) -> Result<Loaded, E> {
    let meter = Meter::new(request.budget);
    let main = if path.is_dir() { folder::minari(path) } else { None };
    let path = main.as_deref().unwrap_or(path);
    let source = Source::open(path, request, &meter)?;
    let rows = request.rows.as_ref();
    if let Err(refusal) = accept(&source.survey(rows)?) {
        match source.recount(rows)? {
            Some(survey) => accept(&survey)?,
            None => return Err(refusal),
        }
    }
    Ok(assemble(path, request, source.read(rows)?, &meter)?)
}

/// A file that is open, with its headers read.
enum Source<'a> {
    Arrays(Listing<'a>),
    Table(csv::Table<'a>),
}

impl<'a> Source<'a> {
    fn open(path: &'a Path, request: &DataRequest, meter: &'a Meter) -> Result<Self, DataError> {
        let origin = |format| Origin { path, format, meter };
        let format = format::detect(path)?;
        if request.wants_columns() && !matches!(format, Format::Csv | Format::Tsv) {
            return Err(DataError::Unsupported {
                path: path.to_path_buf(),
                detail: "it has no named columns that limits could come from; give {lower} and \
                         {upper} as numbers, or put arrays `lower` and `upper` beside the signals \
                         and use {constraints}"
                    .to_owned(),
            });
        }
        Ok(match format {
            Format::Npz => Self::Arrays(npz::open(origin("npz"), request)?),
            Format::Npy => Self::Arrays(npy::open(origin("npy"), request)?),
            Format::Hdf5 => Self::Arrays(hdf5::open(origin("hdf5"), request)?),
            Format::Folder => Self::Arrays(folder::open(origin("npy"), request)?),
            Format::Csv => Self::Table(csv::Table::open(origin("csv"), request, b',')?),
            Format::Tsv => Self::Table(csv::Table::open(origin("csv"), request, b'\t')?),
        })
    }

    fn survey(&self, rows: Option<&RowRanges>) -> Result<Survey, DataError> {
        match self {
            Self::Arrays(listing) => listing.survey(rows),
            Self::Table(table) => Ok(table.survey(rows, table.n_lines())),
        }
    }

    /// The survey again where the first was only nearly right.
    fn recount(&self, rows: Option<&RowRanges>) -> Result<Option<Survey>, DataError> {
        match self {
            Self::Arrays(_) => Ok(None),
            Self::Table(table) => Ok(Some(table.survey(rows, table.count_rows()?))),
        }
    }

    fn read(self, rows: Option<&RowRanges>) -> Result<Arrays, DataError> {
        match self {
            Self::Arrays(listing) => listing.read(rows),
            Self::Table(table) => table.read(rows),
        }
    }
}

/// Checks what was read, and puts constraints together.
fn assemble(
    path: &Path,
    request: &DataRequest,
    arrays: Arrays,
    meter: &Meter,
) -> Result<Loaded, DataError> {
    let Arrays { signals, decisions, weights, groups, tensors, kept, keys, unread, mut names } =
        arrays;
    let places = kept.places();
    let place = |row: usize| places.as_ref().map_or(row, |places| places[row]);
    signals.check(place)?;
    decisions.as_ref().map(|decisions| decisions.check(place)).transpose()?;
    let weights = weights.map(|(found, of)| weights_of(path, found, of, &kept)).transpose()?;
    let groups = groups.map(|(groups, of)| match &places {
        Some(places) if of == RowsOf::File => {
            let of_rows = places.iter().map(|&row| groups.of_rows[row]).collect();
            Groups { of_rows, ..groups }
        }
        _ => groups,
    });
    let constraints = if request.wants_constraints() {
        let decision_dim = decisions.as_ref().map(|found| found.values.ncols());
        let sizes = (&kept, decision_dim.or(request.decision_dim));
        Some(constraints::assemble(path, tensors, keys, request, sizes, (meter, &mut names))?)
    } else {
        None
    };
    let (decisions, decisions_key) = decisions.map(|found| (found.values, found.key)).unzip();
    Ok(Loaded {
        signals: signals.values,
        places,
        decisions,
        constraints,
        weights,
        groups,
        signals_key: signals.key,
        decisions_key,
        unread,
        names,
    })
}

/// One weight a sample, finite and not negative, of the rows that are kept.
fn weights_of(path: &Path, found: Found, of: RowsOf, kept: &Kept) -> Result<Vec<f64>, DataError> {
    let places = kept.places();
    let is_kept = of == RowsOf::Kept;
    let place = |row: usize| places.as_ref().filter(|_| is_kept).map_or(row, |places| places[row]);
    found.check(place)?;
    let shape = found.values.dim();
    let values = found.values.into_raw_vec_and_offset().0;
    let n_samples = if is_kept { kept.len() } else { kept.n_rows() };
    let (path, key) = (path.to_path_buf(), found.key);
    if shape != (n_samples, 1) && shape != (1, n_samples) {
        let shape = vec![shape.0 as u64, shape.1 as u64];
        return Err(DataError::WeightCount { path, key, shape, n_samples });
    }
    if let Some(row) = values.iter().position(|weight| *weight < 0.0) {
        return Err(DataError::Weight { path, key, row: place(row), value: values[row] });
    }
    Ok(match places {
        Some(places) if !is_kept => places.into_iter().map(|row| values[row]).collect(),
        _ => values,
    })
}
