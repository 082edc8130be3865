//! What signals, decisions and limits are called, where the data says so.
//!
//! Data with names is matched by them; data without is matched by position.

use crate::error::Error;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// Names, each list in the order of what it names, and empty where there are none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Names {
    /// Of the entries of a signal.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub signals: Vec<String>,
    /// Of the dimensions of a decision.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<String>,
    /// Of the rows of M.
    #[serde(rename = "M", skip_serializing_if = "Vec::is_empty")]
    pub inequalities: Vec<String>,
    /// Of the rows of M_eq.
    #[serde(rename = "M_eq", skip_serializing_if = "Vec::is_empty")]
    pub equalities: Vec<String>,
    /// Columns that the lower limits come from, one a dimension.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lower: Vec<String>,
    /// Columns that the upper limits come from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub upper: Vec<String>,
}

impl Names {
    /// Whether nothing has a name.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Entry `j` of a signal: its name, else `s3`.
    pub fn signal(&self, j: usize) -> String {
        self.signals.get(j).cloned().unwrap_or_else(|| format!("s{j}"))
    }

    /// Dimension `j` of a decision: its name, else `u3`.
    pub fn decision(&self, j: usize) -> String {
        self.decisions.get(j).cloned().unwrap_or_else(|| format!("u{j}"))
    }

    /// Every list is empty or has one name for each of what it names, all of them different. How
    /// many rows M and M_eq have, only the data knows.
    pub fn check(&self, signal_dim: usize, decision_dim: usize) -> Result<(), Error> {
        let lists = [
            ("signal names", &self.signals, Some(signal_dim)),
            ("decision names", &self.decisions, Some(decision_dim)),
            ("names of M", &self.inequalities, None),
            ("names of M_eq", &self.equalities, None),
            ("columns of lower", &self.lower, Some(decision_dim)),
            ("columns of upper", &self.upper, Some(decision_dim)),
        ];
        for (what, names, length) in lists {
            if let Some(expected) = length.filter(|n| !names.is_empty() && names.len() != *n) {
                let (owner, found) = ("the data", names.len());
                return Err(Error::Width { what, owner, expected, found });
            }
            let mut seen = HashSet::new();
            // Two dimensions may share the column of a limit.
            let may_repeat = what.starts_with("columns");
            for name in names {
                if name.is_empty() || !(seen.insert(name) || may_repeat) {
                    let found = if name.is_empty() { "an empty name" } else { name };
                    let allowed = "different names, none of them empty";
                    return Err(Error::Setting { name: what, found: found.to_owned(), allowed });
                }
            }
        }
        Ok(())
    }

    /// Where each of `wanted` stands among `found`, or those that do not.
    pub fn places(wanted: &[String], found: &[String]) -> Result<Vec<usize>, Vec<String>> {
        let place = |name: &String| found.iter().position(|other| other == name);
        let places: Vec<usize> = wanted.iter().filter_map(place).collect();
        if places.len() == wanted.len() {
            return Ok(places);
        }
        Err(wanted.iter().filter(|name| place(name).is_none()).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn names_are_one_each_and_different() {
        let signals = |names: &[&str]| Names { signals: list(names), ..Names::default() };
        signals(&["price", "load"]).check(2, 1).unwrap();
        Names::default().check(2, 1).unwrap();
        assert!(signals(&["price"]).check(2, 1).is_err());
        assert!(signals(&["price", "price"]).check(2, 1).is_err());
        assert!(signals(&["price", ""]).check(2, 1).is_err());
        let shared = Names { lower: list(&["p_min", "p_min"]), ..Names::default() };
        shared.check(1, 2).unwrap();
    }

    #[test]
    fn places_or_what_is_missing() {
        let found = list(&["load", "x", "price"]);
        assert_eq!(Names::places(&list(&["price", "load"]), &found), Ok(vec![2, 0]));
        assert_eq!(Names::places(&list(&["price", "wind"]), &found), Err(list(&["wind"])));
    }
}
