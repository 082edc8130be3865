//! Matrices in messages: rows, columns, and the entries row by row.

use ndarray::Array2;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// For `#[serde(with = "…")]`.
pub(crate) fn serialize<S: Serializer>(matrix: &Array2<f64>, to: S) -> Result<S::Ok, S::Error> {
    let values: Vec<f64> = matrix.iter().copied().collect();
    (matrix.nrows(), matrix.ncols(), values).serialize(to)
}

/// For `#[serde(with = "…")]`.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Array2<f64>, D::Error> {
    let (rows, columns, values) = <(usize, usize, Vec<f64>)>::deserialize(from)?;
    Array2::from_shape_vec((rows, columns), values).map_err(D::Error::custom)
}
