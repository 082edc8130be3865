//! Which rows belong together: episodes, or rows with the same value in a column.
//!
//! Episodes follow from what the file has anyway: marks on their last rows (`terminals`,
//! `timeouts`), or a group each. A file without them has none, and marks that cannot be read count
//! as none: nobody asked for them by name.

use std::collections::HashMap;
use std::hash::Hash;
use std::path::Path;

use super::array::Opened;
use super::kept::Kept;
use super::origin::Origin;
use crate::error::DataError;

/// Arrays that mark the last row of an episode.
pub(super) const ENDS: [&str; 4] = ["terminals", "timeouts", "terminations", "truncations"];

/// The group of every row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Groups {
    /// A number a row: rows with the same one belong together.
    pub of_rows: Vec<u32>,
    /// What makes them belong together.
    pub kind: GroupKind,
}

/// What makes rows belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupKind {
    /// They are one episode.
    Episodes,
    /// They have the same value under the key asked for.
    Column,
}

/// Where the groups of a file of arrays come from, before anything is read.
pub(super) enum Belonging<'a> {
    Column(Opened<'a>),
    Ends(Vec<Opened<'a>>),
    /// Rows of each episode, in order.
    Lengths(Vec<usize>),
}

impl Belonging<'_> {
    /// The groups of all rows of the file.
    pub fn read(&self, n_rows: usize, origin: &Origin<'_>) -> Result<Option<Groups>, DataError> {
        match self {
            Self::Column(column) => {
                if column.rows != n_rows || column.columns != 1 {
                    return Err(wrong_count(origin.path, column, n_rows));
                }
                let values = whole(column)?;
                let mut names = Names::default();
                let of_rows = values.iter().map(|value| names.of(value.to_bits())).collect();
                origin.meter.release(bytes_of(&values));
                Ok(Some(Groups { of_rows, kind: GroupKind::Column }))
            }
            Self::Ends(ends) => Ok(by_ends(ends, n_rows, origin)),
            Self::Lengths(lengths) => {
                let of_episode = |(at, rows): (usize, &usize)| vec![at as u32; *rows];
                let of_rows = lengths.iter().enumerate().flat_map(of_episode).collect();
                Ok(Some(Groups { of_rows, kind: GroupKind::Episodes }))
            }
        }
    }
}

fn whole(array: &Opened<'_>) -> Result<Vec<f64>, DataError> {
    array.stored.read(&Kept::all(array.rows))
}

fn bytes_of(values: &[f64]) -> u64 {
    values.len() as u64 * 8
}

fn wrong_count(path: &Path, column: &Opened<'_>, n_rows: usize) -> DataError {
    DataError::GroupCount {
        path: path.to_path_buf(),
        key: column.key.clone(),
        shape: column.shape.clone(),
        n_rows,
    }
}

/// Episodes by the marks on their last rows; none where no row has one.
fn by_ends(ends: &[Opened<'_>], n_rows: usize, origin: &Origin<'_>) -> Option<Groups> {
    let mut is_last = vec![false; n_rows];
    for end in ends.iter().filter(|end| end.rows == n_rows && end.columns == 1) {
        let Ok(marks) = whole(end) else { continue };
        is_last.iter_mut().zip(&marks).for_each(|(last, mark)| *last |= *mark != 0.0);
        origin.meter.release(bytes_of(&marks));
    }
    let mut episode = 0;
    let of_rows = is_last.iter().map(|last| {
        let own = episode;
        episode += u32::from(*last);
        own
    });
    let of_rows = of_rows.collect();
    is_last.contains(&true).then_some(Groups { of_rows, kind: GroupKind::Episodes })
}

/// Numbers for names, in the order in which they come.
pub(super) struct Names<T>(HashMap<T, u32>);

impl<T> Default for Names<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T: Eq + Hash> Names<T> {
    pub fn of(&mut self, name: T) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry(name).or_insert(next)
    }
}
