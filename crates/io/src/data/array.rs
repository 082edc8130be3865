//! An array as it was found, and what must hold for it whatever the format.

use std::path::PathBuf;

use ndarray::Array2;

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
