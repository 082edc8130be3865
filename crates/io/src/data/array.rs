//! Arrays of a file: opened, with shapes known and nothing read, and as they were found.

use std::path::{Path, PathBuf};

use argwhy_core::dataset::Names;
use ndarray::{Array2, ArrayD, IxDyn};

use super::encoding::Encoding;
use super::groups::{Belonging, GroupKind, Groups};
use super::kept::Kept;
use super::keys::Keys;
use super::origin::Origin;
use super::space::Limits;
use super::survey::Survey;
use super::thinning::Selection;
use super::walk::Take;
use crate::error::DataError;

/// An array with the file and key it came from.
#[derive(Debug)]
pub(super) struct Found {
    pub path: PathBuf,
    pub key: String,
    pub values: Array2<f64>,
}

impl Found {
    /// Every value is finite, or missing where there may be `gaps`. `place` tells where a row stood
    /// in the file, `names` what columns are called, where they have names.
    pub fn check(
        &self,
        gaps: bool,
        names: &[String],
        place: impl Fn(usize) -> usize,
    ) -> Result<(), DataError> {
        check_size(&self.path, &self.key, self.values.dim())?;
        let mut bad = self
            .values
            .indexed_iter()
            .filter(|(_, value)| !(value.is_finite() || gaps && value.is_nan()));
        let Some(((row, column), &value)) = bad.next() else { return Ok(()) };
        Err(DataError::NotFinite {
            path: self.path.clone(),
            key: self.key.clone(),
            row: place(row),
            column,
            name: names.get(column).cloned(),
            value,
            count: 1 + bad.count(),
        })
    }
}

/// At least one row and one column.
fn check_size(path: &Path, key: &str, (rows, columns): (usize, usize)) -> Result<(), DataError> {
    if rows > 0 && columns > 0 {
        return Ok(());
    }
    let (path, key) = (path.to_path_buf(), key.to_owned());
    Err(DataError::NoValues { path, key, rows, columns })
}

/// An array of up to three axes, its values unchecked: a part of the constraints.
#[derive(Debug)]
pub(super) struct Tensor {
    pub path: PathBuf,
    pub key: &'static str,
    pub values: ArrayD<f64>,
}

/// Everything a reader found, of what was asked for.
#[derive(Debug)]
pub(super) struct Arrays {
    pub signals: Found,
    pub decisions: Option<Found>,
    /// Of all rows of the file, or of those kept alone.
    pub weights: Option<(Found, RowsOf)>,
    pub groups: Option<(Groups, RowsOf)>,
    pub tensors: Vec<Tensor>,
    /// The rows of the file that signals, decisions and the tensors' own rows are.
    pub kept: Kept,
    /// Every key of the file.
    pub keys: Vec<String>,
    /// Keys of constraints that nobody asked for.
    pub unread: Vec<&'static str>,
    /// What is called what, in formats that have names.
    pub names: Names,
    /// Limits of all decisions, where the file says so.
    pub limits: Option<Limits>,
    /// How columns became numbers.
    pub encoding: Encoding,
}

/// Which rows an array has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum RowsOf {
    File,
    Kept,
}

/// An array in a file, ready to be read.
pub(super) trait Stored {
    /// The kept rows, row after row, as f64.
    fn read(&self, kept: &Kept) -> Result<Vec<f64>, DataError>;

    /// Hands all rows to `take`, so many at a time, from beginning to end: whether it took them
    /// all. None where the array does not lie row after row.
    fn walk(&self, _piece_rows: usize, _take: &mut Take<'_>) -> Result<Option<bool>, DataError> {
        Ok(None)
    }
}

/// An array whose shape is known and checked, and whose values are still in the file.
pub(super) struct Opened<'a> {
    pub path: PathBuf,
    pub key: String,
    /// As the file has it.
    pub shape: Vec<u64>,
    pub rows: usize,
    /// Numbers that a row holds.
    pub columns: usize,
    pub stored: Box<dyn Stored + 'a>,
}

/// Arrays whose rows are joined.
struct SideBySide<'a> {
    parts: Vec<Opened<'a>>,
    origin: Origin<'a>,
}

impl Stored for SideBySide<'_> {
    fn read(&self, kept: &Kept) -> Result<Vec<f64>, DataError> {
        let columns: usize = self.parts.iter().map(|part| part.columns).sum();
        let shape = [kept.len() as u64, columns as u64];
        let mut values = self.origin.room("the joined arrays", &shape, kept.len() * columns)?;
        let mut first = 0;
        for part in &self.parts {
            let own = part.stored.read(kept)?;
            for (to, from) in values.chunks_mut(columns).zip(own.chunks(part.columns.max(1))) {
                to[first..first + part.columns].copy_from_slice(&from[..part.columns]);
            }
            first += part.columns;
            self.origin.meter.release(own.len() as u64 * 8);
        }
        Ok(values)
    }
}

impl<'a> Opened<'a> {
    /// Arrays of as many rows each, as one.
    pub fn side_by_side(
        key: String,
        parts: Vec<Self>,
        origin: Origin<'a>,
    ) -> Result<Self, DataError> {
        let rows = parts.first().map_or(0, |part| part.rows);
        if let Some(other) = parts.iter().find(|part| part.rows != rows) {
            let first = parts.first().map_or("", |part| &part.key);
            return Err(origin.corrupt(format!(
                "`{}` has {} rows where `{first}` has {rows}; they cannot stand side by side",
                other.key, other.rows
            )));
        }
        let columns = parts.iter().map(|part| part.columns).sum();
        let shape = vec![rows as u64, columns as u64];
        origin.matrix_shape(&key, &shape)?;
        let path = origin.path.to_path_buf();
        Ok(Self { path, key, shape, rows, columns, stored: Box::new(SideBySide { parts, origin }) })
    }
}

impl Opened<'_> {
    pub fn read(&self, kept: &Kept, origin: &Origin<'_>) -> Result<Found, DataError> {
        let values = self.stored.read(kept)?;
        let values = Array2::from_shape_vec((kept.len(), self.columns), values)
            .map_err(|error| origin.corrupt(error))?;
        Ok(Found { path: self.path.clone(), key: self.key.clone(), values })
    }

    pub fn read_all(&self, origin: &Origin<'_>) -> Result<Found, DataError> {
        self.read(&Kept::all(self.rows), origin)
    }

    /// Reads a part of the constraints: the kept rows where it has one a sample, else all of it.
    pub fn read_tensor(
        &self,
        key: &'static str,
        kept: &Kept,
        origin: &Origin<'_>,
    ) -> Result<Tensor, DataError> {
        let mut shape: Vec<usize> = self.shape.iter().map(|&size| size as usize).collect();
        let own = has_sample_axis(key, &shape);
        if own && ![1, kept.n_rows()].contains(&shape[0]) {
            return Err(wrong_samples(self.path.clone(), key, &self.shape, kept.n_rows()));
        }
        let all = Kept::all(self.rows);
        let kept = if own && shape[0] == kept.n_rows() { kept } else { &all };
        let values = self.stored.read(kept)?;
        shape[0] = kept.len();
        let values =
            ArrayD::from_shape_vec(IxDyn(&shape), values).map_err(|error| origin.corrupt(error))?;
        Ok(Tensor { path: self.path.clone(), key, values })
    }
}

/// Axes of one sample's part of the constraints.
pub(super) fn axes_of_one(key: &str) -> usize {
    if ["M", "M_eq"].contains(&key) { 2 } else { 1 }
}

/// Whether the first axis is that of the samples.
fn has_sample_axis(key: &str, shape: &[usize]) -> bool {
    shape.len() == axes_of_one(key) + 1
}

/// The error for constraints of another number of samples.
pub(super) fn wrong_samples(
    path: PathBuf,
    key: &str,
    shape: &[u64],
    n_samples: usize,
) -> DataError {
    let expected = format!("one entry for each of {n_samples} samples along the first axis");
    DataError::ConstraintShape { path, key: key.to_owned(), shape: shape.to_vec(), expected }
}

/// The arrays of a file that are asked for, opened.
pub(super) struct Listing<'a> {
    pub origin: Origin<'a>,
    pub signals: Opened<'a>,
    pub decisions: Option<Opened<'a>>,
    pub weights: Option<Opened<'a>>,
    pub groups: Option<Belonging<'a>>,
    pub tensors: Vec<(&'static str, Opened<'a>)>,
    pub keys: Vec<String>,
    pub unread: Vec<&'static str>,
    /// Limits of all decisions, where the file says so.
    pub limits: Option<Limits>,
}

impl<'a> Listing<'a> {
    /// Opens what was chosen: `open` an array of rows, `open_tensor` one of the constraints'.
    pub fn open(
        origin: Origin<'a>,
        chosen: Keys,
        keys: Vec<String>,
        open: impl Fn(String) -> Result<Opened<'a>, DataError>,
        open_tensor: impl Fn(&'static str) -> Result<Opened<'a>, DataError>,
    ) -> Result<Self, DataError> {
        let open_all = |key: String| {
            if keys.contains(&key) || !key.contains(',') {
                return open(key);
            }
            let parts = key.split(',').map(|one| open(one.trim().to_owned()));
            Opened::side_by_side(key.clone(), parts.collect::<Result<_, _>>()?, origin)
        };
        let signals = open_all(chosen.signals)?;
        let decisions = chosen.decisions.map(open_all).transpose()?;
        let weights = chosen.weights.map(&open).transpose()?;
        let groups = if let Some(key) = chosen.groups {
            Some(Belonging::Column(open(key)?))
        } else {
            let ends: Vec<_> = chosen.ends.into_iter().filter_map(|key| open(key).ok()).collect();
            (!ends.is_empty()).then_some(Belonging::Ends(ends))
        };
        let mut tensors = Vec::new();
        for key in chosen.constraints {
            tensors.push((key, open_tensor(key)?));
        }
        let unread = chosen.unread;
        let limits = None;
        Ok(Self { origin, signals, decisions, weights, groups, tensors, keys, unread, limits })
    }

    /// What the shapes say. Fails where signals and decisions do not pair up.
    pub fn survey(&self, selection: &Selection<'_>) -> Result<Survey, DataError> {
        let kept = self.kept(selection)?;
        let shape = |opened: &Opened<'_>| opened.shape.iter().map(|&size| size as usize).collect();
        Ok(Survey {
            n_rows: kept.n_rows(),
            n_kept: kept.len(),
            signal_dim: self.signals.columns,
            decision_dim: self.decisions.as_ref().map(|decisions| decisions.columns),
            weighted: self.weights.is_some(),
            constraints: self.tensors.iter().map(|(key, opened)| (*key, shape(opened))).collect(),
        })
    }

    pub fn read(self, selection: &Selection<'_>) -> Result<Arrays, DataError> {
        let (kept, origin) = (self.kept(selection)?, &self.origin);
        let signals = self.signals.read(&kept, origin)?;
        let decisions =
            self.decisions.as_ref().map(|opened| opened.read(&kept, origin)).transpose()?;
        let weights = self.weights.as_ref().map(|opened| opened.read_all(origin)).transpose()?;
        let mut tensors = Vec::new();
        for (key, opened) in &self.tensors {
            tensors.push(opened.read_tensor(key, &kept, origin)?);
        }
        let (keys, unread) = (self.keys, self.unread);
        let weights = weights.map(|found| (found, RowsOf::File));
        let groups = match &self.groups {
            Some(groups) => groups.read(kept.n_rows(), origin)?,
            None => None,
        };
        let groups = groups.map(|found| (found, RowsOf::File));
        let (names, limits) = (Names::default(), self.limits);
        Ok(Arrays {
            signals,
            decisions,
            weights,
            groups,
            tensors,
            kept,
            keys,
            unread,
            names,
            limits,
            encoding: Encoding::default(),
        })
    }

    fn kept(&self, selection: &Selection<'_>) -> Result<Kept, DataError> {
        let signals = &self.signals;
        check_size(&signals.path, &signals.key, (signals.rows, signals.columns))?;
        if let Some(decisions) = &self.decisions {
            check_size(&decisions.path, &decisions.key, (decisions.rows, decisions.columns))?;
            if signals.rows != decisions.rows {
                return Err(DataError::RowCounts {
                    path: self.origin.path.to_path_buf(),
                    signals_key: signals.key.clone(),
                    signals_rows: signals.rows,
                    decisions_key: decisions.key.clone(),
                    decisions_rows: decisions.rows,
                });
            }
        }
        let episodes = || {
            let Some(groups) = &self.groups else { return Ok(None) };
            let groups = groups.read(signals.rows, &self.origin)?;
            let groups = groups.filter(|groups| groups.kind == GroupKind::Episodes);
            Ok(groups.map(|groups| groups.of_rows))
        };
        selection.kept(signals.rows, episodes, &self.origin)
    }
}
