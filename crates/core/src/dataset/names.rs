//! What signals, decisions and limits are called, where the data says so.
//!
//! Data with names is matched by them; data without is matched by position.

use crate::error::Error;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};

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
    /// Units of signals, decisions and rows of M and M_eq, where they were said.
    #[serde(skip_serializing_if = "Units::is_empty")]
    pub units: Units,
}

/// Units by the names of what is measured in them. A name that ends in brackets, `power [kW]`, says
/// its unit itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Units(pub BTreeMap<String, String>);

impl Units {
    /// Whether none was said.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The unit of what is called so, where it has one.
    pub fn of<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        let said = self.0.get(name).map(String::as_str);
        said.or_else(|| bracketed(name).map(|(_, unit)| unit))
    }

    /// The name without its unit.
    pub fn bare(name: &str) -> &str {
        bracketed(name).map_or(name, |(bare, _)| bare)
    }

    /// The name with its unit behind it, as a title: `power [kW]`.
    pub fn titled(&self, name: &str) -> String {
        match self.of(name) {
            Some(unit) => format!("{} [{unit}]", Self::bare(name)),
            None => name.to_owned(),
        }
    }
}

/// `power [kW]` in its two parts.
fn bracketed(name: &str) -> Option<(&str, &str)> {
    // With a space: `M[3]` and `upper[power]` are numbered and named, not measured.
    let (bare, unit) = name.strip_suffix(']')?.rsplit_once(" [")?;
    let (bare, unit) = (bare.trim(), unit.trim());
    (!bare.is_empty() && !unit.is_empty()).then_some((bare, unit))
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

    /// Everything that can have a unit: signals, decisions and named rows of M and M_eq.
    fn measured(&self, signal_dim: usize, decision_dim: usize) -> Vec<String> {
        let signals = (0..signal_dim).map(|j| self.signal(j));
        let decisions = (0..decision_dim).map(|j| self.decision(j));
        let limits = self.inequalities.iter().chain(&self.equalities).cloned();
        signals.chain(decisions).chain(limits).collect()
    }

    /// The units there are, said or written behind a name.
    pub fn every_unit(&self, signal_dim: usize, decision_dim: usize) -> Units {
        let all = self.measured(signal_dim, decision_dim).into_iter();
        let with = |name: String| {
            let unit = self.units.of(&name)?.to_owned();
            Some((name, unit))
        };
        Units(all.filter_map(with).collect())
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
            // Two dimensions may share the column of a limit, and others have none.
            let may_repeat = what.starts_with("columns");
            for name in names {
                if !may_repeat && (name.is_empty() || !seen.insert(name)) {
                    let found = if name.is_empty() { "an empty name" } else { name };
                    let allowed = "different names, none of them empty";
                    return Err(Error::Setting { name: what, found: found.to_owned(), allowed });
                }
            }
        }
        let known = self.measured(signal_dim, decision_dim);
        let wrong = self
            .units
            .0
            .iter()
            .find(|(name, unit)| unit.trim().is_empty() || !known.contains(name));
        let Some((name, unit)) = wrong else { return Ok(()) };
        let found = if unit.trim().is_empty() {
            format!("no unit for `{name}`")
        } else {
            format!("one of `{name}`, where there are {}", known.join(", "))
        };
        let allowed = "units of signals, decisions and named limits";
        Err(Error::Setting { name: "units", found, allowed })
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
    fn units_stand_behind_names_or_are_said() {
        let said = |name: &str, unit: &str| Names {
            signals: list(&["price", "wind [m/s]"]),
            units: Units([(name.to_owned(), unit.to_owned())].into()),
            ..Names::default()
        };
        let names = said("price", "EUR");
        names.check(2, 1).unwrap();
        assert_eq!((names.units.of("price"), names.units.of("u0")), (Some("EUR"), None));
        assert_eq!(names.units.of("wind [m/s]"), Some("m/s"));
        assert_eq!(names.units.titled("price"), "price [EUR]");
        assert_eq!((Units::bare("wind [m/s]"), Units::bare("M[3]")), ("wind", "M[3]"));
        assert_eq!(names.every_unit(2, 1).0.len(), 2);
        said("u0", "kW").check(2, 1).unwrap();
        let unknown = said("load", "kW").check(2, 1).unwrap_err().to_string();
        assert!(unknown.contains("`load`, where there are price, wind [m/s], u0"), "{unknown}");
        assert!(said("price", " ").check(2, 1).is_err());
    }

    #[test]
    fn places_or_what_is_missing() {
        let found = list(&["load", "x", "price"]);
        assert_eq!(Names::places(&list(&["price", "load"]), &found), Ok(vec![2, 0]));
        assert_eq!(Names::places(&list(&["price", "wind"]), &found), Err(list(&["wind"])));
    }
}
