//! A matrix that all samples share, in a file of its own.
//!
//! In: a csv file with a header, or an npy file: rows × decision_dim. Out: the matrix and, where a
//! csv file has a column `W` (for equalities `W_eq`), its bound, and where it has a column `limit`,
//! what each row is called.

use std::path::{Path, PathBuf};

use argwhy_core::dataset::{Names, Relation};
use ndarray::{Array1, Array2, Axis, Ix1, Ix2};

use super::array::Found;
use super::format::{self, Format};
use super::kept::Kept;
use super::npy;
use super::origin::Origin;
use super::table;
use crate::budget::Meter;
use crate::error::DataError;

/// M with its bound where the file has one, or M_eq.
#[derive(Debug, Clone, PartialEq)]
pub struct SharedMatrix {
    /// The file.
    pub path: PathBuf,
    /// rows × decision_dim, finite.
    pub matrix: Array2<f64>,
    /// rows; infinite where there is no limit.
    pub bound: Option<Array1<f64>>,
    /// What each row is called; empty where the file does not say.
    pub names: Vec<String>,
    /// The header above the matrix; empty where there is none.
    pub columns: Vec<String>,
}

impl SharedMatrix {
    /// Reads `M` with `W`, or `M_eq` with `W_eq`.
    pub fn load(path: &Path, relation: Relation) -> Result<Self, DataError> {
        Self::load_within(path, relation, &Meter::default())
    }

    pub(super) fn load_within(
        path: &Path,
        relation: Relation,
        meter: &Meter,
    ) -> Result<Self, DataError> {
        let (key, beside) = (relation.matrix(), relation.bound());
        let MatrixTable { matrix, bound, names, columns } = match format::detect(path)? {
            Format::Csv => table::load_matrix(path, None, (key, beside), meter)?,
            Format::Tsv => table::load_matrix(path, Some(b'\t'), (key, beside), meter)?,
            Format::Npy => MatrixTable {
                matrix: from_npy(path, key, meter)?,
                bound: None,
                names: Vec::new(),
                columns: Vec::new(),
            },
            _ => {
                return Err(DataError::Unsupported {
                    path: path.to_path_buf(),
                    detail: format!(
                        "a matrix for all rows is a csv file with a header or an npy file; give \
                         one of these, or put `{key}` beside the signals and use {{constraints}}"
                    ),
                });
            }
        };
        matrix.check(false, &[], |row| row)?;
        let bound = bound
            .map(|bound| {
                if bound.values.ncols() == 1 {
                    return Ok(bound.values.index_axis_move(Axis(1), 0));
                }
                Err(DataError::Columns {
                    path: path.to_path_buf(),
                    detail: format!("`{beside}` has several columns; one bound a row is needed"),
                })
            })
            .transpose()?;
        Ok(Self { path: path.to_path_buf(), matrix: matrix.values, bound, names, columns })
    }

    /// The same with its columns in the order of the decisions' names, where its header has these;
    /// one that has none of them is taken as it stands.
    pub fn ordered_by(mut self, decisions: &[String]) -> Result<Self, DataError> {
        if !self.columns.iter().any(|name| decisions.contains(name)) {
            return Ok(self);
        }
        match Names::places(decisions, &self.columns) {
            Ok(order) => {
                self.matrix = self.matrix.select(Axis(1), &order);
                self.columns = decisions.to_vec();
                Ok(self)
            }
            Err(missing) => {
                let (path, decisions) = (self.path, decisions.to_vec());
                Err(DataError::MatrixColumns { path, missing, decisions })
            }
        }
    }
}

/// A table with a matrix in it.
pub(super) struct MatrixTable {
    pub matrix: Found,
    pub bound: Option<Found>,
    pub names: Vec<String>,
    pub columns: Vec<String>,
}

/// rows × decision_dim, or a list of decision_dim numbers: one row.
fn from_npy(path: &Path, key: &'static str, meter: &Meter) -> Result<Found, DataError> {
    let origin = Origin { path, format: "npy", meter };
    let opened = npy::open_tensor(origin, key)?;
    let tensor = opened.read_tensor(key, &Kept::all(opened.rows), &origin)?;
    let shape: Vec<u64> = tensor.values.shape().iter().map(|&size| size as u64).collect();
    let values = match tensor.values.ndim() {
        1 => tensor.values.into_dimensionality::<Ix1>().map(|row| row.insert_axis(Axis(0))),
        _ => tensor.values.into_dimensionality::<Ix2>(),
    };
    let values = values.map_err(|_| DataError::ConstraintShape {
        path: path.to_path_buf(),
        key: key.to_owned(),
        shape,
        expected: "rows × decision dimensions, the same for all samples".to_owned(),
    })?;
    Ok(Found { path: path.to_path_buf(), key: key.to_owned(), values })
}
