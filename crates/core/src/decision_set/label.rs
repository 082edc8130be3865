//! Names of limits.

use crate::error::Error;

/// Where a row of a polyhedron comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RowLabel {
    /// A row of M_eq.
    Equality(u32),
    /// A row of M.
    Inequality(u32),
    /// A lower limit.
    Lower(u32),
    /// An upper limit.
    Upper(u32),
}

impl std::fmt::Display for RowLabel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Equality(i) => write!(f, "M_eq[{i}]"),
            Self::Inequality(i) => write!(f, "M[{i}]"),
            Self::Lower(j) => write!(f, "lower[{j}]"),
            Self::Upper(j) => write!(f, "upper[{j}]"),
        }
    }
}

impl RowLabel {
    /// A number that stands for it in files: the kind in the two highest bits, the index below.
    pub fn code(self) -> u32 {
        let (kind, index) = match self {
            Self::Equality(i) => (0, i),
            Self::Inequality(i) => (1, i),
            Self::Lower(j) => (2, j),
            Self::Upper(j) => (3, j),
        };
        kind << 30 | index
    }

    /// What a number of [`code`](Self::code) stands for.
    pub fn from_code(code: u32) -> Self {
        let index = code & ((1 << 30) - 1);
        match code >> 30 {
            0 => Self::Equality(index),
            1 => Self::Inequality(index),
            2 => Self::Lower(index),
            _ => Self::Upper(index),
        }
    }
}

/// A set that nothing lies in, and the limits that contradict each other.
pub(super) fn empty(shared: bool, row: usize, labels: &[RowLabel]) -> Error {
    let labels: Vec<String> = labels.iter().map(RowLabel::to_string).collect();
    Error::EmptySet { row: (!shared).then_some(row), labels: labels.join(", ") }
}
