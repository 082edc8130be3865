//! The arrays of a model file.

use super::Problem;
use argwhy_core::Model;
use argwhy_core::decision_set::{Prices, RowLabel};
use argwhy_core::model::Support;
use ndarray::{Array2, ArrayViewD};
use safetensors::tensor::{Dtype, TensorView};

/// One array of a file.
pub(crate) struct Tensor {
    pub(super) name: &'static str,
    pub(super) dtype: Dtype,
    pub(super) shape: Vec<usize>,
    pub(super) bytes: Vec<u8>,
}

impl Tensor {
    pub(crate) fn matrix(name: &'static str, values: &Array2<f64>) -> Self {
        let bytes = little_endian(values.iter().map(|v| v.to_le_bytes()));
        Self { name, dtype: Dtype::F64, shape: values.shape().to_vec(), bytes }
    }

    /// An array whose bytes are there already.
    pub(crate) fn of_bytes(
        name: &'static str,
        dtype: Dtype,
        shape: Vec<usize>,
        bytes: Vec<u8>,
    ) -> Self {
        Self { name, dtype, shape, bytes }
    }

    pub(crate) fn list<const N: usize>(
        name: &'static str,
        dtype: Dtype,
        values: impl ExactSizeIterator<Item = [u8; N]>,
    ) -> Self {
        Self { name, dtype, shape: vec![values.len()], bytes: little_endian(values) }
    }

    /// As f32 where that loses nothing, as with most recorded data; half the size then.
    pub(crate) fn numbers(name: &'static str, values: &ArrayViewD<'_, f64>) -> Self {
        let shape = values.shape().to_vec();
        if values.iter().all(|v| f64::from(*v as f32).to_bits() == v.to_bits()) {
            let bytes = little_endian(values.iter().map(|v| (*v as f32).to_le_bytes()));
            return Self { name, dtype: Dtype::F32, shape, bytes };
        }
        let bytes = little_endian(values.iter().map(|v| v.to_le_bytes()));
        Self { name, dtype: Dtype::F64, shape, bytes }
    }
}

/// The arrays of a model, in the order of their names. The lists of samples are there, empty, with
/// weights of features too: readers of format 2 ask for them.
pub(super) fn tensors_of(model: &Model) -> Vec<Tensor> {
    let none = Support {
        kernel: model.kernel(),
        signals: Array2::zeros((0, model.features.signal_dim())),
        coefficients: Array2::zeros((0, model.decision_dim())),
        rows: Vec::new(),
        prices: Prices::default(),
    };
    let Support { signals, coefficients, rows, prices, .. } = model.support().unwrap_or(&none);
    let codes = prices.limits.iter().map(|v| v.code().to_le_bytes());
    let mut tensors = vec![
        Tensor::matrix("coefficients", coefficients),
        Tensor::list("price_limits", Dtype::U32, codes),
        Tensor::list("price_rows", Dtype::U64, prices.samples.iter().map(|v| v.to_le_bytes())),
        Tensor::list("price_values", Dtype::F64, prices.values.iter().map(|v| v.to_le_bytes())),
        Tensor::list("support_rows", Dtype::U64, rows.iter().map(|v| v.to_le_bytes())),
        Tensor::numbers("support_signals", &signals.view().into_dyn()),
    ];
    if let Some(calibration) = &model.calibration {
        tensors.push(Tensor::matrix("range_scores", &calibration.scores));
    }
    if let Some(seen) = &model.seen {
        tensors.push(Tensor::numbers("seen_signals", &seen.pivots.view().into_dyn()));
    }
    if let Some(theta) = &model.theta {
        tensors.push(Tensor::matrix("theta_multiplier", &theta.multiplier));
        tensors.push(Tensor::matrix("theta_uu", &theta.theta_uu));
    }
    if let Some(weights) = model.feature_weights() {
        tensors.push(Tensor::matrix("weights", &weights.values));
    }
    tensors
}

fn little_endian<const N: usize>(values: impl Iterator<Item = [u8; N]>) -> Vec<u8> {
    values.flatten().collect()
}

pub(crate) fn matrix(tensor: &TensorView<'_>) -> Result<Array2<f64>, Problem> {
    let wrong = |what: String| Problem::Damaged(what);
    let &[rows, columns] = tensor.shape() else {
        return Err(wrong(format!("an array has shape {:?}", tensor.shape())));
    };
    Array2::from_shape_vec((rows, columns), numbers(tensor)?).map_err(|e| wrong(e.to_string()))
}

/// The numbers of an array of any shape.
pub(crate) fn numbers(tensor: &TensorView<'_>) -> Result<Vec<f64>, Problem> {
    let data = tensor.data();
    match tensor.dtype() {
        Dtype::F32 => {
            Ok(data.as_chunks().0.iter().map(|b| f64::from(f32::from_le_bytes(*b))).collect())
        }
        Dtype::F64 => Ok(data.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)).collect()),
        other => Err(Problem::Damaged(format!("an array has type {other:?}"))),
    }
}

pub(super) fn prices(
    rows: &TensorView<'_>,
    limits: &TensorView<'_>,
    values: &TensorView<'_>,
) -> Result<Prices, Problem> {
    let samples = row_numbers(rows)?;
    let right = limits.dtype() == Dtype::U32 && values.dtype() == Dtype::F64;
    if !right || limits.shape() != rows.shape() || values.shape() != rows.shape() {
        return Err(Problem::Damaged("the prices have the wrong type or length".into()));
    }
    let codes = limits.data().as_chunks().0.iter().map(|b| u32::from_le_bytes(*b));
    let values = values.data().as_chunks().0.iter().map(|b| f64::from_le_bytes(*b));
    Ok(Prices {
        samples,
        limits: codes.map(RowLabel::from_code).collect(),
        values: values.collect(),
    })
}

/// A list of short integers.
pub(crate) fn integers(tensor: &TensorView<'_>) -> Result<Vec<u32>, Problem> {
    if tensor.dtype() != Dtype::U32 || tensor.shape().len() != 1 {
        return Err(Problem::Damaged("a list of integers has the wrong type".into()));
    }
    Ok(tensor.data().as_chunks().0.iter().map(|b| u32::from_le_bytes(*b)).collect())
}

pub(crate) fn row_numbers(tensor: &TensorView<'_>) -> Result<Vec<u64>, Problem> {
    if tensor.dtype() != Dtype::U64 || tensor.shape().len() != 1 {
        return Err(Problem::Damaged("the list of support rows has the wrong type".into()));
    }
    Ok(tensor.data().as_chunks().0.iter().map(|b| u64::from_le_bytes(*b)).collect())
}
