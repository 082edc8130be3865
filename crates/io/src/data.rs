//! One call from a path to checked arrays.
//!
//! In: a path and a [`DataRequest`]. Out: [`Loaded`], whose arrays are finite, non-empty, in
//! standard (row-major) layout and have one decision per signal, with the constraints and weights
//! that were asked for. The format follows from the ending, or from the first bytes where the
//! ending is unknown.

mod array;
#[cfg(feature = "arrow")]
mod arrow;
mod assembly;
#[cfg(any(feature = "arrow", feature = "parquet", feature = "zstd"))]
mod codec;
mod constraints;
mod contents;
mod csv;
mod dates;
mod decimal;
mod dtype;
mod encoding;
mod folder;
mod format;
mod groups;
mod hdf5;
mod kept;
mod keys;
mod matrix;
mod missing;
mod npy;
mod npz;
mod origin;
mod packed;
#[cfg(feature = "parquet")]
mod parquet;
mod rows;
#[cfg(feature = "sheets")]
mod sheet;
mod sink;
mod space;
mod spool;
mod survey;
mod table;
mod thinning;
mod walk;
mod write;

use std::path::{Path, PathBuf};

use argwhy_core::Constraints;
use argwhy_core::dataset::Names;
use ndarray::Array2;

use crate::budget::{Budget, Meter};
use crate::error::DataError;
use array::{Arrays, Listing};
use format::Format;
use origin::Origin;
use thinning::Selection;

pub use contents::{Contents, Entry, contents};
pub use decimal::Decimal;
pub use encoding::{Cyclic, Encoding, Given, OneHot, Period};
pub use format::data_endings;
pub use groups::{GroupKind, Groups};
pub use matrix::SharedMatrix;
pub use missing::{Gaps, Missing};
pub use rows::RowRanges;
pub use space::Limits;
pub use spool::{Spooled, standard_input};
pub use survey::Survey;
pub use thinning::Thinning;
pub use walk::{survey, walk_signals};
pub use write::{
    Beside, DataOut, check_data_ending, check_decisions_ending, check_prices_ending, check_regular,
    check_writable, write_data, write_decisions, write_decisions_beside, write_onward,
    write_prices, write_whole,
};

/// Which arrays of a file to load.
#[derive(Debug, Clone, PartialEq)]
pub struct DataRequest {
    /// Key of the signals; by default `signals`, else `observations`. In tables also a
    /// comma-separated list of column names, ranges (`first:last`) and patterns (`s*`).
    pub signals: Option<String>,
    /// Key of the decisions; by default `decisions`, else `actions`. In tables also a list
    /// as of signals; beside an npy file, the path of a second one.
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
    /// The sheet of a workbook, by name; the first one if not given.
    pub sheet: Option<String>,
    /// Rows to leave out beside those outside of `rows`.
    pub thinning: Thinning,
    /// Columns of signals that are no numbers yet, in tables.
    pub encoding: Encoding,
    /// What to do with values that are not there.
    pub missing: Missing,
    /// What to put where a signal is not there, one number a signal, as a model knows it.
    pub fill: Vec<f64>,
    /// What separates the fraction of numbers that are text.
    pub decimal: Decimal,
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
            sheet: None,
            thinning: Thinning::default(),
            encoding: Encoding::default(),
            missing: Missing::default(),
            fill: Vec::new(),
            decimal: Decimal::default(),
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
    /// Limits of all decisions that the data knows, as Minari's action space does.
    pub limits: Option<Limits>,
    /// How columns of signals became numbers, with the categories that were found.
    pub encoding: Encoding,
    /// What stands where a signal was not there; none where nothing was filled in.
    pub fill: Option<Vec<f64>>,
    /// Rows that were left out because they lacked a value.
    pub n_dropped: usize,
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
    let spooled = standard_input(path)?;
    let path = spooled.as_ref().map_or(path, Spooled::path);
    // Which rows make an episode must be known to keep some of them.
    let asked = DataRequest {
        episodes: request.episodes || request.thinning.episodes.is_some(),
        ..request.clone()
    };
    let request = &asked;
    let main = if path.is_dir() { folder::minari(path) } else { None };
    let path = main.as_deref().unwrap_or(path);
    let source = Source::open(path, request, &meter)?;
    let rows = &Selection { rows: request.rows.as_ref(), thinning: &request.thinning };
    if let Err(refusal) = accept(&source.survey(rows)?) {
        match source.recount(rows)? {
            Some(survey) => accept(&survey)?,
            None => return Err(refusal),
        }
    }
    Ok(assembly::assemble(path, request, source.read(rows)?, &meter)?)
}

/// A file that is open, with its headers read.
enum Source<'a> {
    Arrays(Listing<'a>),
    Table(table::Table<'a>),
}

impl<'a> Source<'a> {
    fn open(path: &'a Path, request: &DataRequest, meter: &'a Meter) -> Result<Self, DataError> {
        let origin = |format| Origin { path, format, meter };
        let format = format::detect(path)?;
        if !request.encoding.is_empty() && !format.is_table() {
            return Err(DataError::Unsupported {
                path: path.to_path_buf(),
                detail: "it has no named columns that could be encoded; leave out {one_hot} and \
                         {cyclic}, or give a table"
                    .to_owned(),
            });
        }
        if request.wants_columns() && !format.is_table() {
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
            #[cfg(feature = "parquet")]
            Format::Parquet => Self::Table(parquet::open(origin("parquet"), request)?),
            #[cfg(feature = "arrow")]
            Format::Arrow => Self::Table(arrow::open(origin("Arrow"), request)?),
            #[cfg(feature = "sheets")]
            Format::Xlsx => Self::Table(sheet::open_xlsx(origin("xlsx"), request)?),
            #[cfg(feature = "sheets")]
            Format::Ods => Self::Table(sheet::open_ods(origin("ods"), request)?),
            #[cfg(not(feature = "parquet"))]
            Format::Parquet => return Err(origin("parquet").not_built("parquet")),
            #[cfg(not(feature = "arrow"))]
            Format::Arrow => return Err(origin("Arrow").not_built("arrow")),
            #[cfg(not(feature = "sheets"))]
            Format::Xlsx | Format::Ods => return Err(origin("sheets").not_built("sheets")),
            Format::Csv => Self::Table(csv::open(origin("csv"), request, None)?),
            Format::Tsv => Self::Table(csv::open(origin("csv"), request, Some(b'\t'))?),
        })
    }

    fn survey(&self, rows: &Selection<'_>) -> Result<Survey, DataError> {
        match self {
            Self::Arrays(listing) => listing.survey(rows),
            Self::Table(table) => table.survey(rows, table.rough_rows()),
        }
    }

    /// The survey again where the first was only nearly right.
    fn recount(&self, rows: &Selection<'_>) -> Result<Option<Survey>, DataError> {
        match self {
            Self::Arrays(_) => Ok(None),
            Self::Table(table) => table.survey(rows, table.count_rows()?).map(Some),
        }
    }

    fn read(self, rows: &Selection<'_>) -> Result<Arrays, DataError> {
        match self {
            Self::Arrays(listing) => listing.read(rows),
            Self::Table(table) => table.read(rows),
        }
    }
}

/// Whether a text is a date.
pub(crate) fn is_date(text: &str) -> bool {
    dates::seconds(text.as_bytes()).is_some()
}
