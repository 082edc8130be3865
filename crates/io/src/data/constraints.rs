//! Constraints as files hold them → [`Constraints`], checked against the samples they belong to.
//!
//! `M`, `W`: M·u ≤ W; `M_eq`, `W_eq`: M_eq·u = W_eq; `lower`, `upper`. Each is for all samples or
//! has one entry a sample along its first axis. Everything that can be wrong with a value or a
//! shape is found here, where file, key and row are known.

use std::path::{Path, PathBuf};

use argwhy_core::Constraints;
use argwhy_core::dataset::{ConstraintArrays, Names, Relation};
use ndarray::{ArrayD, Axis, Dimension};

use super::DataRequest;
use super::array::{Tensor, axes_of_one, wrong_samples};
use super::kept::Kept;
use super::matrix::SharedMatrix;
use crate::budget::Meter;
use crate::error::DataError;

/// Puts the arrays found in the data and the matrices of files of their own together.
///
/// `kept` are the rows the tensors hold, `decision_dim` the length of a decision where it is known.
pub(super) fn assemble(
    path: &Path,
    tensors: Vec<Tensor>,
    keys: Vec<String>,
    request: &DataRequest,
    (kept, decision_dim): (&Kept, Option<usize>),
    (meter, names): (&Meter, &mut Names),
) -> Result<Constraints, DataError> {
    let mut parts = Parts { path, tensors, kept, places: kept.places(), decision_dim };
    for (relation, file) in Relation::ALL.into_iter().zip([&request.matrix, &request.matrix_eq]) {
        if let Some(file) = file {
            // Decisions that are not read have the names that the model knows.
            let decisions = Some(&names.decisions).filter(|own| !own.is_empty());
            let shared = SharedMatrix::load_within(file, relation, meter)?
                .ordered_by(decisions.unwrap_or(&request.decision_names))?;
            match relation {
                Relation::AtMost => names.inequalities.clone_from(&shared.names),
                Relation::Equal => names.equalities.clone_from(&shared.names),
            }
            parts.share(shared, relation)?;
        }
    }
    if parts.tensors.is_empty() {
        return Err(DataError::ConstraintsAbsent { path: path.to_path_buf(), found: keys });
    }
    let (matrix, bound) = parts.rows(Relation::AtMost)?.unzip();
    let (equal_matrix, equal_bound) = parts.rows(Relation::Equal)?.unzip();
    let (lower, upper) = (parts.side("lower")?, parts.side("upper")?);
    let arrays = ConstraintArrays { matrix, bound, equal_matrix, equal_bound, lower, upper };
    Constraints::from_arrays(arrays)
        .map_err(|source| DataError::Constraints { path: path.to_path_buf(), source })
}

/// A matrix with its bound.
type MatrixAndBound = (ArrayD<f64>, ArrayD<f64>);

struct Parts<'a> {
    path: &'a Path,
    tensors: Vec<Tensor>,
    /// The rows of the file that are samples.
    kept: &'a Kept,
    /// Where they stood in the file; none where they are all of its rows.
    places: Option<Vec<usize>>,
    /// Length of a decision, where it is known.
    decision_dim: Option<usize>,
}

impl Parts<'_> {
    fn take(&mut self, key: &str) -> Option<Tensor> {
        let at = self.tensors.iter().position(|tensor| tensor.key == key)?;
        Some(self.tensors.swap_remove(at))
    }

    /// Adds a matrix of a file of its own, with its bound where the data has none.
    fn share(&mut self, shared: SharedMatrix, relation: Relation) -> Result<(), DataError> {
        let (key, beside) = (relation.matrix(), relation.bound());
        if self.tensors.iter().any(|tensor| tensor.key == key) {
            let (path, file) = (self.path.to_path_buf(), shared.path);
            return Err(DataError::MatrixTwice { path, file, key });
        }
        let has_bound = self.tensors.iter().any(|tensor| tensor.key == beside);
        if !has_bound {
            let Some(bound) = shared.bound else {
                let (path, file) = (self.path.to_path_buf(), shared.path);
                return Err(DataError::BoundAbsent { path, file, key, bound: beside });
            };
            let values = bound.into_dyn();
            self.tensors.push(Tensor { path: shared.path.clone(), key: beside, values });
        }
        let values = shared.matrix.into_dyn();
        self.tensors.push(Tensor { path: shared.path, key, values });
        Ok(())
    }

    /// A matrix with its bound.
    fn rows(&mut self, relation: Relation) -> Result<Option<MatrixAndBound>, DataError> {
        let pair = relation.pair(self.take(relation.matrix()), self.take(relation.bound()));
        let pair = pair.map_err(|half| DataError::Half { path: self.path.to_path_buf(), half })?;
        let Some((matrix, mut bound)) = pair else { return Ok(None) };
        let (n_samples, decision_dim) = (self.kept.len(), self.decision_dim);
        if !(2..=3).contains(&matrix.values.ndim()) {
            return Err(
                matrix.wrong_shape("rows × decision dimensions, or one such matrix a sample")
            );
        }
        let &[.., n_rows, width] = matrix.values.shape() else { unreachable!("at least two axes") };
        // One row and one bound a sample, written as a list.
        if bound.values.ndim() == 1 && n_rows == 1 && bound.values.len() == self.kept.n_rows() {
            self.split(&mut bound);
        }
        if !(1..=2).contains(&bound.values.ndim()) {
            return Err(bound.wrong_shape("one number a row, or one such list a sample"));
        }
        let n_bounds = bound.values.shape().last().copied().unwrap_or(0);
        if n_rows != n_bounds || n_rows == 0 {
            return Err(DataError::ConstraintRows {
                path: self.path.to_path_buf(),
                matrix: relation.matrix(),
                rows: n_rows,
                bound: relation.bound(),
                bounds: n_bounds,
            });
        }
        matrix.check_samples(2, n_samples)?;
        bound.check_samples(1, n_samples)?;
        matrix.check_width(width, decision_dim)?;
        let places = self.places.as_deref();
        matrix.check_values(
            places,
            f64::is_finite,
            "every entry of a matrix is a finite number",
        )?;
        bound.check_values(
            places,
            |v| relation.allows(v),
            match relation {
                Relation::Equal => "an equality needs a finite number",
                Relation::AtMost => "a bound is a number, or inf for no limit",
            },
        )?;
        Ok(Some((matrix.values, bound.values)))
    }

    /// A list of one number for each row of the file becomes one number a sample.
    fn split(&self, list: &mut Tensor) {
        if let Some(places) = &self.places {
            list.values = list.values.select(Axis(0), places);
        }
        list.values.insert_axis_inplace(Axis(1));
    }

    /// One side of the limits, dimension by dimension.
    fn side(&mut self, key: &'static str) -> Result<Option<ArrayD<f64>>, DataError> {
        let Some(mut side) = self.take(key) else { return Ok(None) };
        let (n_samples, decision_dim) = (self.kept.len(), self.decision_dim);
        // One dimension and one limit a sample, written as a list.
        let is_list = side.values.ndim() == 1 && decision_dim == Some(1);
        if is_list && side.values.len() == self.kept.n_rows() {
            self.split(&mut side);
        }
        if !(1..=2).contains(&side.values.ndim()) {
            return Err(side.wrong_shape("one number a dimension, or one such list a sample"));
        }
        side.check_samples(1, n_samples)?;
        side.check_width(side.values.shape().last().copied().unwrap_or(0), decision_dim)?;
        let (none, allowed) = if key == "lower" {
            (f64::NEG_INFINITY, "a lower limit is a number, or -inf for none")
        } else {
            (f64::INFINITY, "an upper limit is a number, or inf for none")
        };
        let places = self.places.as_deref();
        side.check_values(places, |v| v.is_finite() || v == none, allowed)?;
        Ok(Some(side.values))
    }
}

impl Tensor {
    fn owner(&self) -> (PathBuf, String) {
        (self.path.clone(), self.key.to_owned())
    }

    fn shape(&self) -> Vec<u64> {
        self.values.shape().iter().map(|&size| size as u64).collect()
    }

    fn wrong_shape(&self, expected: &str) -> DataError {
        let ((path, key), shape) = (self.owner(), self.shape());
        DataError::ConstraintShape { path, key, shape, expected: expected.to_owned() }
    }

    /// With one axis more than a set needs, the first must count the samples (or be one, for all).
    fn check_samples(&self, axes_of_one: usize, n_samples: usize) -> Result<(), DataError> {
        if self.values.ndim() > axes_of_one && ![1, n_samples].contains(&self.values.shape()[0]) {
            return Err(wrong_samples(self.path.clone(), self.key, &self.shape(), n_samples));
        }
        Ok(())
    }

    fn check_width(&self, width: usize, decision_dim: Option<usize>) -> Result<(), DataError> {
        match decision_dim {
            Some(decision_dim) if decision_dim != width => {
                let (path, key) = self.owner();
                Err(DataError::ConstraintWidth { path, key, width, decision_dim })
            }
            _ => Ok(()),
        }
    }

    fn check_values(
        &self,
        places: Option<&[usize]>,
        fine: impl Fn(f64) -> bool,
        why: &'static str,
    ) -> Result<(), DataError> {
        let Some((place, &value)) = self.values.indexed_iter().find(|(_, value)| !fine(**value))
        else {
            return Ok(());
        };
        let (path, key) = self.owner();
        let axes_of_one = axes_of_one(self.key);
        let place = place.slice();
        let (row, inner) = if place.len() > axes_of_one && self.values.shape()[0] > 1 {
            (Some(places.map_or(place[0], |places| places[place[0]])), &place[1..])
        } else {
            (None, &place[place.len() - axes_of_one..])
        };
        let entry = inner.iter().fold(String::new(), |entry, index| entry + &format!("[{index}]"));
        Err(DataError::ConstraintValue { path, key, entry, row, value, why })
    }
}
