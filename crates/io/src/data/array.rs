//! An array as it was found, and what must hold for it whatever the format.

use std::path::PathBuf;

use ndarray::{Array2, ArrayD};

use super::keys::Keys;
use crate::error::DataError;

/// An array with the file and key it came from.
#[derive(Debug)]
pub(super) struct Found {
    pub path: PathBuf,
    pub key: String,
    pub values: Array2<f64>,
}

impl Found {
    /// At least one row and one column, and every value finite.
    pub fn check(&self) -> Result<(), DataError> {
        let (rows, columns) = self.values.dim();
        if rows == 0 || columns == 0 {
            return Err(DataError::NoValues {
                path: self.path.clone(),
                key: self.key.clone(),
                rows,
                columns,
            });
        }
        let mut bad = self.values.indexed_iter().filter(|(_, value)| !value.is_finite());
        let Some(((row, column), &value)) = bad.next() else { return Ok(()) };
        Err(DataError::NotFinite {
            path: self.path.clone(),
            key: self.key.clone(),
            row,
            column,
            value,
            count: 1 + bad.count(),
        })
    }
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
    pub weights: Option<Found>,
    pub tensors: Vec<Tensor>,
    /// Every key of the file.
    pub keys: Vec<String>,
    /// Keys of constraints that nobody asked for.
    pub unread: Vec<&'static str>,
}

impl Arrays {
    /// Reads what was chosen: `read` an array of rows, `read_tensor` one of the constraints'.
    pub fn gather<R>(
        reader: &mut R,
        chosen: Keys,
        keys: Vec<String>,
        read: impl Fn(&mut R, String) -> Result<Found, DataError>,
        read_tensor: impl Fn(&mut R, &'static str) -> Result<Tensor, DataError>,
    ) -> Result<Self, DataError> {
        let signals = read(reader, chosen.signals)?;
        let decisions = chosen.decisions.map(|key| read(reader, key)).transpose()?;
        let weights = chosen.weights.map(|key| read(reader, key)).transpose()?;
        let mut tensors = Vec::new();
        for key in chosen.constraints {
            tensors.push(read_tensor(reader, key)?);
        }
        Ok(Self { signals, decisions, weights, tensors, keys, unread: chosen.unread })
    }
}
