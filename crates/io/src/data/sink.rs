//! An array being filled, piece by piece, with the rows that are kept.

use super::dtype::Dtype;
use super::kept::Kept;
use super::origin::Origin;
use crate::error::DataError;

/// Room for the kept rows of an array, charged to the budget. Pieces may come in any order.
pub(super) struct Sink<'a> {
    kept: &'a Kept,
    columns: usize,
    values: Vec<f64>,
}

impl<'a> Sink<'a> {
    /// `shape` is the array's in the file, of rows that hold `columns` numbers each.
    pub fn new(
        key: &str,
        shape: &[u64],
        columns: usize,
        kept: &'a Kept,
        origin: &Origin<'_>,
    ) -> Result<Self, DataError> {
        let values = origin.room(key, shape, kept.len() * columns)?;
        Ok(Self { kept, columns, values })
    }

    /// Takes a piece: stored numbers from place `start` of the whole array on, row after row.
    pub fn put(&mut self, start: usize, dtype: Dtype, bytes: &[u8]) {
        let (columns, size) = (self.columns, dtype.size());
        let end = start + bytes.len() / size;
        if columns == 0 || start == end {
            return;
        }
        for (rows, first) in self.kept.parts(start / columns..end.div_ceil(columns)) {
            // The piece may begin and end inside a row.
            let from = start.max(rows.start * columns);
            let to = end.min(rows.end * columns);
            let target = first * columns + (from - rows.start * columns);
            let part = &bytes[(from - start) * size..(to - start) * size];
            dtype.decode_into(part, &mut self.values[target..target + (to - from)]);
        }
    }

    /// Takes a piece of one column, from row `start` on.
    pub fn put_down(&mut self, column: usize, start: usize, dtype: Dtype, bytes: &[u8]) {
        let size = dtype.size();
        for (rows, first) in self.kept.parts(start..start + bytes.len() / size) {
            let mut target = first * self.columns + column;
            dtype.decode(&bytes[(rows.start - start) * size..(rows.end - start) * size], |value| {
                self.values[target] = value;
                target += self.columns;
            });
        }
    }

    pub fn into_values(self) -> Vec<f64> {
        self.values
    }
}
