//! Settings as tables: what a config file, a command line or Python's keywords say, by name.
//!
//! In: tables that mention some settings, the stronger on top of the weaker. Out: [`FitSettings`]
//! with a default for everything that nobody mentions. No setting is listed here: a field of
//! [`FitSettings`] is a name of every table.

use super::{FitSettings, KernelChoice, KernelKind, Numbers};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::fmt;

pub use toml::{Table, Value};

/// Why a table is not one of settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableError {
    /// The name that was used.
    pub name: String,
    /// What is wrong with its value; none where the name itself is not known.
    pub why: Option<String>,
    /// Where the name is not known, the names that could be meant.
    pub known: Vec<String>,
}

impl TableError {
    /// For a name that is none of `known`: the one that is nearest, else all of them.
    pub fn unknown(name: &str, known: &[String]) -> Self {
        let near = near_miss(name, known).map(|near| vec![near.to_owned()]);
        let known = near.unwrap_or_else(|| known.to_vec());
        Self { name: name.to_owned(), why: None, known }
    }
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, why, known } = self;
        match (why, known.as_slice()) {
            (Some(why), _) => f.write_str(why),
            (None, [near]) => {
                write!(f, "`{name}` is not a setting; did you mean `{near}`?")
            }
            (None, all) => {
                write!(f, "`{name}` is not a setting; there are `{}`", all.join("`, `"))
            }
        }
    }
}

impl std::error::Error for TableError {}

impl FitSettings {
    /// Every setting by its name in tables, in alphabetical order.
    pub fn names() -> Vec<String> {
        match serde_json::to_value(Self::default()) {
            Ok(serde_json::Value::Object(all)) => all.keys().cloned().collect(),
            _ => Vec::new(),
        }
    }

    /// Whether a setting is a switch, given by its name alone.
    pub fn is_switch(name: &str) -> bool {
        let all = serde_json::to_value(Self::default()).unwrap_or_default();
        all.get(name).is_some_and(serde_json::Value::is_boolean)
    }

    /// The settings a table describes, defaults for what it does not mention. Ranges are left to
    /// [`FitSettings::validate`].
    pub fn from_table(table: &Table) -> Result<Self, TableError> {
        read_table(table, &Self::names())
    }

    /// Whether the setting `name` can have this value, as far as that can be said without the
    /// others.
    pub fn check(name: &str, value: &Value) -> Result<(), TableError> {
        let mut alone = Table::new();
        alone.insert(name.to_owned(), value.clone());
        Self::from_table(&alone).map(|_| ())
    }
}

/// Anything that has the names `known` from a table; the first entry that is wrong is named.
pub fn read_table<T: DeserializeOwned>(table: &Table, known: &[String]) -> Result<T, TableError> {
    let whole = |table: Table| {
        let read = Value::Table(table).try_into::<T>();
        read.map_err(|e: toml::de::Error| for_people(e.message()))
    };
    for (name, value) in table {
        if !known.contains(name) {
            return Err(TableError::unknown(name, known));
        }
        let mut alone = Table::new();
        alone.insert(name.clone(), value.clone());
        if let Err(why) = whole(alone) {
            return Err(TableError { name: name.clone(), why: Some(why), known: Vec::new() });
        }
    }
    whole(table.clone()).map_err(|why| TableError {
        name: String::new(),
        why: Some(why),
        known: Vec::new(),
    })
}

/// What a reader expected, in words that are not Rust's.
fn for_people(message: &str) -> String {
    let mut message = message.to_owned();
    for (of_rust, plain) in [
        ("expected usize", "expected a whole number, zero or more"),
        ("expected u64", "expected a whole number, zero or more"),
        ("expected u32", "expected a whole number, zero or more"),
        ("expected f64", "expected a number"),
        ("expected a boolean", "expected true or false"),
    ] {
        message = message.replace(of_rust, plain);
    }
    message
}

/// A value from the command line: a number where the text is one, else the text itself.
pub fn value_of(text: &str) -> Value {
    if let Ok(whole) = text.parse::<i64>() {
        return Value::Integer(whole);
    }
    // Whole numbers beyond what a table holds stay text, or they would lose digits.
    let is_whole = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match text.parse::<f64>() {
        Ok(number) if !is_whole => Value::Float(number),
        _ => Value::String(text.to_owned()),
    }
}

/// A setting of the weaker table that has no meaning under the stronger one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// What is left out.
    pub name: &'static str,
    /// The setting that makes it so.
    pub because: &'static str,
}

/// `over` on top of `under`, setting by setting, and what of `under` had to go.
///
/// Two things belong together. Limits: `bounds` and `unbounded` replace every limit below them,
/// while `lower` or `upper` replaces that side alone, whichever way the other was given. The
/// kernel: a new one has no use for some parameters of the old one.
pub fn merge(mut under: Table, over: &Table) -> (Table, Vec<LeftOut>) {
    merge_limits(&mut under, over);
    let left_out = merge_kernel(&mut under, over);
    under.extend(over.iter().map(|(name, value)| (name.clone(), value.clone())));
    (under, left_out)
}

fn merge_limits(under: &mut Table, over: &Table) {
    if over.contains_key("bounds") || over.contains_key("unbounded") {
        for name in ["bounds", "lower", "upper", "unbounded"] {
            under.remove(name);
        }
        return;
    }
    for (given, kept, side) in [("lower", "upper", 1), ("upper", "lower", 0)] {
        let Some(given) = over.get(given) else { continue };
        under.remove("unbounded");
        let bounds = under.get("bounds").cloned().and_then(numbers);
        if let (Some(bounds), Some(given)) = (bounds, numbers(given.clone()))
            && bounds.0.len() == 2
        {
            under.remove("bounds");
            let rest = vec![Value::Float(bounds.0[side]); given.0.len()];
            under.entry(kept).or_insert(Value::Array(rest));
        }
    }
}

fn numbers(value: Value) -> Option<Numbers> {
    Numbers::deserialize(value).ok()
}

fn merge_kernel(under: &mut Table, over: &Table) -> Vec<LeftOut> {
    let kernel = over.get("kernel").and_then(|value| KernelChoice::deserialize(value.clone()).ok());
    let Some(kernel) = kernel else { return Vec::new() };
    let linear = kernel == KernelKind::Linear.into();
    let mut left_out = Vec::new();
    for (name, useful, nothing) in [
        ("gamma", kernel.takes("gamma"), Value::from("auto")),
        ("degree", kernel.takes("degree"), Value::from(false)),
        ("offset", kernel.takes("offset"), Value::from(false)),
        ("intercept", linear, Value::from(false)),
        ("primal", linear, Value::from(false)),
    ] {
        if !useful && under.remove(name).is_some_and(|value| value != nothing) {
            left_out.push(LeftOut { name, because: "kernel" });
        }
    }
    left_out
}

/// The name that `name` is most likely a misspelling of.
pub fn near_miss<'a>(name: &str, known: &'a [String]) -> Option<&'a str> {
    let plain = |text: &str| text.to_lowercase().replace('_', "-");
    let name = plain(name);
    let same_start = |other: &&String| {
        let other = plain(other);
        let (short, long) =
            if name.len() < other.len() { (&name, &other) } else { (&other, &name) };
        short.len() >= 3 && long.starts_with(short.as_str())
    };
    if let Some(near) = known.iter().find(same_start) {
        return Some(near);
    }
    let (near, steps) =
        known.iter().map(|other| (other, distance(&name, &plain(other)))).min_by_key(|d| d.1)?;
    (steps <= 1.max(name.chars().count() / 3)).then_some(near)
}

/// Letters to change, add, leave out or swap with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let changed = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = changed.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Gamma;

    fn table(text: &str) -> Table {
        text.parse().unwrap()
    }

    fn merged(under: &str, over: &str) -> FitSettings {
        FitSettings::from_table(&merge(table(under), &table(over)).0).unwrap()
    }

    #[test]
    fn an_empty_table_means_the_defaults() {
        assert_eq!(FitSettings::from_table(&Table::new()).unwrap(), FitSettings::default());
    }

    #[test]
    fn the_stronger_table_wins_and_the_weaker_is_kept_elsewhere() {
        let settings = merged("tol = 1e-3\nseed = 7", "tol = 1e-9");
        assert_eq!((settings.tol, settings.seed), (1e-9, 7));
    }

    /// Issue 21, fault 19: `--upper` dropped the config file's `lower`.
    #[test]
    fn one_side_of_the_limits_replaces_that_side_alone() {
        let sides = |settings: FitSettings| {
            (settings.lower.map(|l| l.0), settings.upper.map(|u| u.0), settings.bounds)
        };
        let (low, high) = (Some(vec![-1.0, -2.0]), Some(vec![3.0, 4.0]));
        let kept = (low.clone(), high.clone(), None);
        assert_eq!(sides(merged("lower = [-1, -2]\nupper = [0, 0]", "upper = \"3,4\"")), kept);
        assert_eq!(sides(merged("upper = [3, 4]\nlower = [0, 0]", "lower = [-1, -2]")), kept);
        let one = sides(merged("bounds = [-1, 1]", "upper = [3, 4]"));
        assert_eq!(one, (Some(vec![-1.0, -1.0]), high, None));
        let other = sides(merged("bounds = [-1, 1]", "lower = [-1, -2]"));
        assert_eq!(other, (low, Some(vec![1.0, 1.0]), None));
        let both = sides(merged("bounds = [-1, 1]", "lower = [0]\nupper = [2]"));
        assert_eq!(both, (Some(vec![0.0]), Some(vec![2.0]), None));
        assert!(!merged("unbounded = true", "upper = [1]").unbounded);
        let all = merged("lower = [0]\nupper = [2]", "bounds = [-1, 1]");
        assert_eq!((all.lower, all.upper, all.bounds.unwrap().0), (None, None, vec![-1.0, 1.0]));
        let none = merged("bounds = [0, 2]", "unbounded = true");
        assert!(none.unbounded && none.bounds.is_none());
    }

    #[test]
    fn another_kernel_leaves_out_what_it_has_no_use_for_and_says_so() {
        let old = "kernel = \"polynomial\"\ndegree = 2\ngamma = 0.5\nlength-scales = [1, 2]";
        let names = |over: &str| -> Vec<&str> {
            merge(table(old), &table(over)).1.iter().map(|left| left.name).collect()
        };
        assert_eq!(names("kernel = \"rbf\""), ["degree"]);
        assert_eq!(names("kernel = \"linear\""), ["gamma", "degree"]);
        assert!(names("kernel = \"rbf + polynomial\"").is_empty() && names("tol = 1.0").is_empty());
        let rbf = merged(old, "kernel = \"rbf\"");
        assert_eq!((rbf.degree, rbf.gamma), (None, Gamma::Value(0.5)));
        assert_eq!(rbf.length_scales.unwrap().0, [1.0, 2.0]);
        let plain = "kernel = \"linear\"\nprimal = true\nintercept = true";
        let kept = merged(plain, "kernel = \"linear\"");
        let gone = merged(plain, "kernel = \"rbf\"");
        assert!(kept.primal && kept.intercept && !gone.primal && !gone.intercept);
    }

    #[test]
    fn unknown_names_are_refused_with_the_nearest() {
        for (wrong, near) in [
            ("regularisation", "regularization"),
            ("max_iterations", "max-iterations"),
            ("maxiterations", "max-iterations"),
            ("krenel", "kernel"),
            ("tolerance", "tol"),
            ("x", ""),
        ] {
            let mut table = Table::new();
            table.insert(wrong.to_owned(), Value::Integer(1));
            let told = FitSettings::from_table(&table).unwrap_err().to_string();
            assert!(told.contains(&format!("`{wrong}`")), "{told}");
            if near.is_empty() {
                assert!(told.contains("there are `block`") && told.contains("`warm-up`"), "{told}");
            } else {
                assert!(told.ends_with(&format!("did you mean `{near}`?")), "{told}");
            }
        }
    }

    #[test]
    fn words_of_the_command_line_are_the_values_they_look_like() {
        assert_eq!(value_of("3"), Value::Integer(3));
        assert_eq!(value_of("1.0"), Value::Float(1.0));
        assert_eq!(value_of("-inf"), Value::Float(f64::NEG_INFINITY));
        for text in ["-1,1", "2GiB", "auto", "", "18446744073709551615", "0x10"] {
            assert_eq!(value_of(text), Value::String(text.to_owned()));
        }
        let seeded = |text: &str| {
            let mut table = Table::new();
            table.insert("seed".to_owned(), value_of(text));
            FitSettings::from_table(&table).map(|settings| settings.seed)
        };
        assert_eq!(seeded("18446744073709551615"), Ok(u64::MAX));
        for text in ["18446744073709551616", "-1", "1.5", "many"] {
            assert!(seeded(text).unwrap_err().to_string().contains(text), "{text}");
        }
    }

    /// Every field, found in the serialized defaults, is read from a table and by nobody's list.
    #[test]
    fn every_setting_can_be_said_in_a_table() {
        let stored = serde_json::to_value(FitSettings::default()).unwrap();
        assert_eq!(FitSettings::names().len(), stored.as_object().unwrap().len());
        let text = toml::to_string(&FitSettings::default()).unwrap();
        assert_eq!(FitSettings::from_table(&table(&text)).unwrap(), FitSettings::default());
    }
}
