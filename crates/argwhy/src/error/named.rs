//! Messages of the mathematics with names in place of numbers.
//!
//! Core knows a dimension as `dimension 0` and a limit as `upper[0]` or `M[3]`. Where the data has
//! names, people are told those.

use argwhy_core::Error;
use argwhy_core::dataset::Names;
use argwhy_core::decision_set::RowLabel;

/// What a number in a message stands for.
type Naming = fn(&Names, usize) -> Option<String>;

/// What stands before a number, what behind it, and what is said instead of all three.
const PATTERNS: [(&str, &str, Naming); 5] = [
    ("dimension ", "", |names, j| names.decisions.get(j).map(|name| format!("`{name}`"))),
    ("lower[", "]", |names, j| changed(RowLabel::Lower(j as u32), names)),
    ("upper[", "]", |names, j| changed(RowLabel::Upper(j as u32), names)),
    ("M_eq[", "]", |names, i| changed(RowLabel::Equality(i as u32), names)),
    ("M[", "]", |names, i| changed(RowLabel::Inequality(i as u32), names)),
];

/// The limit's name, where it has one.
fn changed(limit: RowLabel, names: &Names) -> Option<String> {
    let (named, numbered) = (limit.named(names), limit.to_string());
    (named != numbered).then(|| format!("`{named}`"))
}

/// The column that a value stands in, where it is a signal or a decision with a name.
pub(super) fn column(error: &Error, names: &Names) -> Option<String> {
    let Error::NotFinite { what, column, .. } = error else { return None };
    let list = match *what {
        "signal" | "signals" => &names.signals,
        "decisions" => &names.decisions,
        _ => return None,
    };
    Some(format!(" (column {column} is `{}`)", list.get(*column)?))
}

/// `text` with names for what has some.
pub(super) fn translated(text: &str, names: &Names) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let is_word = out.chars().last().is_some_and(|c| c.is_alphanumeric() || c == '_');
        let found = PATTERNS.iter().filter(|_| !is_word).find_map(|(before, behind, name)| {
            let from = rest.strip_prefix(before)?;
            let digits = from.len() - from.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let after = from[digits..].strip_prefix(behind)?;
            Some((name(names, from[..digits].parse().ok()?)?, after))
        });
        let (said, after) = found.unwrap_or_else(|| {
            let first = rest.chars().next().map_or(0, char::len_utf8);
            (rest[..first].to_owned(), &rest[first..])
        });
        out.push_str(&said);
        rest = after;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_no_number_is_in_a_column_with_a_name() {
        let names = Names { signals: vec!["a".to_owned(), "price".to_owned()], ..Names::default() };
        let error = Error::NotFinite { what: "signals", row: 3, column: 1, value: f64::NAN };
        let said = crate::Error::from(error).named(&names).to_string();
        assert!(said.ends_with("(column 1 is `price`)"), "{said}");
    }

    #[test]
    fn numbers_become_names_where_there_are_some() {
        let list = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let names = Names {
            decisions: list(&["power", "heat"]),
            inequalities: list(&["grid connection"]),
            ..Names::default()
        };
        let said = |text: &str| translated(text, &names);
        assert_eq!(said("dimension 1 has 3 outside [0, 1]"), "`heat` has 3 outside [0, 1]");
        assert_eq!(said("decisions of dimension 0 reach 1"), "decisions of `power` reach 1");
        assert_eq!(
            said("lower[1], M[0] contradict"),
            "`lower[heat]`, `grid connection` contradict"
        );
        for same in ["dimension 2", "M_eq[0]", "dimension ", "xM[0]", "κ ≥ M["] {
            assert_eq!(said(same), same);
        }
        assert_eq!(translated("dimension 0, upper[0]", &Names::default()), "dimension 0, upper[0]");
    }
}
