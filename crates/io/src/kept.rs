//! The rows a model learned from, kept in its file: what an update needs beside the model. With
//! them what the fit left of its preconditioner, which makes the update quicker.

mod factor;

use crate::model::{Problem, Tensor, numbers, row_numbers};
use argwhy_core::Dataset;
use argwhy_core::dataset::{ConstraintArrays, Constraints, Names};
use argwhy_core::precond::KeptFactor;
use ndarray::{ArrayBase, ArrayD, ArrayViewD, Ix1, Ix2};
use safetensors::tensor::{Dtype, SafeTensors};
use std::sync::Arc;

/// What a model learned from.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// The rows, in the order of training.
    pub data: Dataset,
    /// The number that each had in the data it came from.
    pub rows: Vec<u64>,
    /// What the fit left of its preconditioner, where that is kept.
    pub factor: Option<Arc<KeptFactor>>,
}

/// No data has as many rows; those that come with an update are numbered on from the largest.
const LARGEST_NUMBER: u64 = 1 << 53;
const ROWS: &str = "kept_rows";
const SIGNALS: &str = "kept_signals";
const DECISIONS: &str = "kept_decisions";
const WEIGHTS: &str = "kept_weights";
const MATRIX: &str = "kept_matrix";
const BOUND: &str = "kept_bound";
const EQUAL_MATRIX: &str = "kept_equal_matrix";
const EQUAL_BOUND: &str = "kept_equal_bound";
const LOWER: &str = "kept_lower";
const UPPER: &str = "kept_upper";

/// The arrays of a file.
pub(crate) fn tensors(kept: &Kept) -> Vec<Tensor> {
    let data = &kept.data;
    let mut tensors = vec![
        Tensor::list(ROWS, Dtype::U64, kept.rows.iter().map(|row| row.to_le_bytes())),
        Tensor::numbers(SIGNALS, &data.signals().into_dyn()),
        Tensor::numbers(DECISIONS, &data.decisions().into_dyn()),
    ];
    let mut add = |name, values: Option<ArrayViewD<'_, f64>>| {
        tensors.extend(values.map(|values| Tensor::numbers(name, &values)));
    };
    add(WEIGHTS, data.weights().map(|weights| ndarray::aview1(weights).into_dyn()));
    if let Some(given) = data.constraints() {
        let (matrix, bound) = given.inequalities().unzip();
        let (equal_matrix, equal_bound) = given.equalities().unzip();
        add(MATRIX, matrix.map(ArrayBase::into_dyn));
        add(BOUND, bound.map(ArrayBase::into_dyn));
        add(EQUAL_MATRIX, equal_matrix.map(ArrayBase::into_dyn));
        add(EQUAL_BOUND, equal_bound.map(ArrayBase::into_dyn));
        add(LOWER, given.lower().map(ArrayBase::into_dyn));
        add(UPPER, given.upper().map(ArrayBase::into_dyn));
    }
    tensors.extend(kept.factor.as_deref().map(factor::tensors).unwrap_or_default());
    tensors
}

/// The rows of a file that has some.
pub(crate) fn read(file: &SafeTensors<'_>, names: &Names) -> Result<Option<Kept>, Problem> {
    let wrong = |what: String| Problem::Damaged(format!("the rows it keeps: {what}"));
    let optional = |name: &str| -> Result<Option<ArrayD<f64>>, Problem> {
        let Ok(tensor) = file.tensor(name) else { return Ok(None) };
        let array = ArrayD::from_shape_vec(tensor.shape(), numbers(&tensor)?);
        array.map(Some).map_err(|e| wrong(format!("`{name}`: {e}")))
    };
    let Ok(rows) = file.tensor(ROWS) else { return Ok(None) };
    let rows = row_numbers(&rows)?;
    let matrix = |name: &str| {
        let array = optional(name)?.ok_or_else(|| wrong(format!("`{name}` is missing")))?;
        array.into_dimensionality::<Ix2>().map_err(|e| wrong(format!("`{name}`: {e}")))
    };
    let told = |e: argwhy_core::Error| wrong(e.to_string());
    let mut data = Dataset::new(matrix(SIGNALS)?, matrix(DECISIONS)?).map_err(told)?;
    if rows.len() != data.n_samples() {
        return Err(wrong(format!("{} numbers for {} rows", rows.len(), data.n_samples())));
    }
    if let Some(row) = rows.iter().find(|row| **row > LARGEST_NUMBER) {
        return Err(wrong(format!("a row with the number {row}")));
    }
    if let Some(weights) = optional(WEIGHTS)? {
        let weights = weights.into_dimensionality::<Ix1>().map_err(|e| wrong(e.to_string()))?;
        data = data.with_weights(weights.to_vec()).map_err(told)?;
    }
    let given = Constraints::from_arrays(ConstraintArrays {
        matrix: optional(MATRIX)?,
        bound: optional(BOUND)?,
        equal_matrix: optional(EQUAL_MATRIX)?,
        equal_bound: optional(EQUAL_BOUND)?,
        lower: optional(LOWER)?,
        upper: optional(UPPER)?,
    });
    let given = given.map_err(told)?;
    if !given.is_empty() {
        data = data.with_constraints(given).map_err(told)?;
    }
    let factor = factor::read(file, data.n_samples(), data.decisions().ncols())?;
    Ok(Some(Kept { data: data.with_names(names.clone()).map_err(told)?, rows, factor }))
}
