//! Names of limits.

use crate::dataset::Names;
use crate::error::Error;
use serde::{Deserialize, Serialize};

/// Where a row of a polyhedron comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
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
    /// What people call it, where the data says so: the name of a row of M, the column a limit
    /// comes from, `upper[power]`; else as it is displayed.
    pub fn named(self, names: &Names) -> String {
        let row = |rows: &[String], i: u32| rows.get(i as usize).cloned();
        let side = |columns: &[String], side: &str, j: u32| {
            let decision = names.decisions.get(j as usize);
            let column = columns.get(j as usize).filter(|column| !column.is_empty());
            match (column, decision) {
                // A column that limits several dimensions does not say which.
                (Some(column), Some(decision))
                    if columns.iter().filter(|other| *other == column).count() > 1 =>
                {
                    Some(format!("{column}[{decision}]"))
                }
                (Some(column), _) => Some(column.clone()),
                (None, decision) => decision.map(|decision| format!("{side}[{decision}]")),
            }
        };
        let named = match self {
            Self::Equality(i) => row(&names.equalities, i),
            Self::Inequality(i) => row(&names.inequalities, i),
            Self::Lower(j) => side(&names.lower, "lower", j),
            Self::Upper(j) => side(&names.upper, "upper", j),
        };
        named.unwrap_or_else(|| self.to_string())
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_have_the_names_that_the_data_gives() {
        let list = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let mut names = Names { decisions: list(&["power", "heat"]), ..Names::default() };
        names.inequalities = list(&["grid connection"]);
        names.upper = list(&["p_max", "q_max"]);
        names.lower = list(&["zero", "zero"]);
        assert_eq!(RowLabel::Inequality(0).named(&names), "grid connection");
        assert_eq!(RowLabel::Inequality(1).named(&names), "M[1]");
        assert_eq!(RowLabel::Equality(0).named(&names), "M_eq[0]");
        assert_eq!(RowLabel::Upper(1).named(&names), "q_max");
        assert_eq!(RowLabel::Lower(1).named(&names), "zero[heat]");
        names.lower.clear();
        assert_eq!(RowLabel::Lower(0).named(&names), "lower[power]");
        assert_eq!(RowLabel::Lower(0).named(&Names::default()), "lower[0]");
    }
}
