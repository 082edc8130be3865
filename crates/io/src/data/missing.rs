//! Values that are not there: an error, or rows left out, or the mean of the others.

use std::str::FromStr;

use ndarray::{Array2, Axis};
use serde::{Deserialize, Serialize};

use super::array::Found;
use crate::error::DataError;

/// What to do with values that are not there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Missing {
    /// Say where they are.
    #[default]
    Error,
    /// Leave their rows out.
    Drop,
    /// In signals, put the mean of the column's other rows.
    Mean,
    /// Leave them as NaN, for who looks at data instead of learning from it.
    #[serde(skip)]
    Keep,
}

impl FromStr for Missing {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "error" => Ok(Self::Error),
            "drop" => Ok(Self::Drop),
            "mean" => Ok(Self::Mean),
            _ => Err("expected error, drop or mean".to_owned()),
        }
    }
}

/// Whether a cell says that it has no value.
pub(super) fn is_word(cell: &[u8]) -> bool {
    const WORDS: [&str; 8] = ["", "na", "n/a", "nan", "null", "none", "#n/a", "?"];
    cell.len() <= 4 && WORDS.iter().any(|word| cell.eq_ignore_ascii_case(word.as_bytes()))
}

/// Where one column lacks values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gaps {
    /// The column's name, or the array's with the column's number.
    pub column: String,
    /// The first rows, from 0.
    pub rows: Vec<usize>,
    /// How many in all.
    pub count: usize,
}

/// Rows that an error names of each column.
const NAMED: usize = 5;

/// The gaps of an array. `place` tells where a row stood in the file.
pub(super) fn gaps(found: &Found, names: &[String], place: impl Fn(usize) -> usize) -> Vec<Gaps> {
    let mut gaps = Vec::new();
    for (at, column) in found.values.axis_iter(Axis(1)).enumerate() {
        let rows = || column.iter().enumerate().filter(|(_, value)| value.is_nan());
        let count = rows().count();
        if count > 0 {
            let name = names.get(at).cloned();
            gaps.push(Gaps {
                column: name.unwrap_or_else(|| format!("{}[{at}]", found.key)),
                rows: rows().take(NAMED).map(|(row, _)| place(row)).collect(),
                count,
            });
        }
    }
    gaps
}

/// Rows without a gap.
pub(super) fn whole_rows<'a>(arrays: impl Iterator<Item = &'a Array2<f64>>) -> Option<Vec<usize>> {
    let mut whole: Vec<bool> = Vec::new();
    for array in arrays {
        whole.resize(array.nrows(), true);
        for (is_whole, row) in whole.iter_mut().zip(array.rows()) {
            *is_whole &= !row.iter().any(|value| value.is_nan());
        }
    }
    if whole.iter().all(|is_whole| *is_whole) {
        return None;
    }
    Some(whole.iter().enumerate().filter(|(_, is_whole)| **is_whole).map(|(row, _)| row).collect())
}

/// The mean of each column's values; an error where one has none.
pub(super) fn means(found: &Found, names: &[String]) -> Result<Vec<f64>, DataError> {
    let mut means = Vec::with_capacity(found.values.ncols());
    for (at, column) in found.values.axis_iter(Axis(1)).enumerate() {
        let there = || column.iter().filter(|value| !value.is_nan());
        let count = there().count();
        if count == 0 {
            let name = names.get(at).cloned().unwrap_or_else(|| format!("{}[{at}]", found.key));
            return Err(DataError::Columns {
                path: found.path.clone(),
                detail: format!("`{name}` has no value at all; leave that column out"),
            });
        }
        // Scaled first: sums of large numbers would overflow.
        means.push(there().map(|value| value / count as f64).sum());
    }
    Ok(means)
}

/// Puts `fill` where a value is not there.
pub(super) fn fill(values: &mut Array2<f64>, fill: &[f64]) {
    for mut row in values.rows_mut() {
        for (value, mean) in row.iter_mut().zip(fill) {
            if value.is_nan() {
                *value = *mean;
            }
        }
    }
}
