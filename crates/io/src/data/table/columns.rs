//! The header of a csv file, and which columns a key stands for.

use std::collections::BTreeMap;

use ::csv::ByteRecord;

use super::pattern;
use crate::data::origin::Origin;
use crate::error::{DataError, shortened};

/// The column names, in file order.
pub(in crate::data) struct Columns {
    names: Vec<String>,
}

impl Columns {
    pub fn from_header(record: &ByteRecord, origin: &Origin<'_>) -> Result<Self, DataError> {
        if record.get(0).is_some_and(|c| c.starts_with(b"\xff\xfe") || c.starts_with(b"\xfe\xff")) {
            return Err(wrong(origin, "the text is UTF-16; save it as UTF-8"));
        }
        let names: Vec<String> =
            record.iter().map(|name| String::from_utf8_lossy(name).trim().to_owned()).collect();
        if names.iter().all(String::is_empty) {
            return Err(wrong(origin, "no line of column names was found; add one as first line"));
        }
        if names.iter().all(|name| name.parse::<f64>().is_ok()) {
            return Err(DataError::NoHeader { path: origin.path.to_path_buf() });
        }
        Ok(Self { names })
    }

    /// Columns of a format that always has names.
    pub fn named(names: Vec<String>) -> Self {
        Self { names }
    }

    pub fn len(&self) -> usize {
        self.names.len()
    }

    pub fn name(&self, column: usize) -> &str {
        self.names.get(column).map_or("", String::as_str)
    }

    /// Whether there is a column of exactly this name.
    pub fn contains(&self, name: &str) -> bool {
        self.names.iter().any(|own| own == name)
    }

    /// The families and single columns there are, in file order. Columns whose numbers do not begin
    /// at 0, or have gaps, are single ones: no key stands for all of them.
    pub fn keys(&self) -> Vec<String> {
        let mut numbers: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for (family, number) in self.names.iter().filter_map(|name| split_index(name)) {
            numbers.entry(family).or_default().push(number);
        }
        numbers.values_mut().for_each(|own| own.sort_unstable());
        numbers.retain(|_, own| own.iter().copied().eq(0..own.len() as u64));
        let mut keys: Vec<String> = Vec::new();
        for name in &self.names {
            let matrix = ["M", "M_eq"].into_iter().find(|key| matrix_index(name, key).is_some());
            let family = split_index(name).map(|(family, _)| family);
            let family = family.filter(|family| numbers.contains_key(family));
            let key = matrix.or(family).unwrap_or(name.as_str());
            if !keys.iter().any(|known| known == key) {
                keys.push(key.to_owned());
            }
        }
        keys
    }

    /// Whether `of` can be asked for the key.
    pub fn has(&self, key: &str) -> bool {
        self.names.iter().any(|name| name == key || family_index(name, key).is_some())
            || key.split(',').all(|one| pattern::has(&self.names, one.trim()))
    }

    /// The columns a key stands for, in order: an exact name, else a family, else a list of names,
    /// ranges and patterns.
    pub fn of(&self, key: &str, origin: &Origin<'_>) -> Result<Vec<usize>, DataError> {
        self.of_others(key, &[], origin)
    }

    /// The same, where patterns do not stand for columns that are `taken`: `*` is the rest.
    pub fn of_others(
        &self,
        key: &str,
        taken: &[usize],
        origin: &Origin<'_>,
    ) -> Result<Vec<usize>, DataError> {
        if self.names.iter().any(|name| name == key) {
            return Ok(vec![self.exact(key, origin)?]);
        }
        let family = self.family(key, origin)?;
        if !family.is_empty() {
            return Ok(family);
        }
        let mut columns: Vec<usize> = Vec::new();
        for one in key.split(',').map(str::trim) {
            let mut found = match pattern::of(&self.names, one) {
                Some(found) => found,
                None => vec![self.exact(one, origin)?],
            };
            if pattern::is_open(one) && !self.contains(one) {
                found.retain(|column| !taken.contains(column));
                if found.is_empty() {
                    let detail = format!(
                        "`{}` stands only for columns that have another role; leave it out",
                        shortened(one)
                    );
                    return Err(wrong(origin, detail));
                }
            }
            // A pattern may meet what was named before.
            columns.extend(
                found.iter().filter(|column| !columns.contains(column)).collect::<Vec<_>>(),
            );
        }
        Ok(columns)
    }

    /// The columns of a name, family or matrix, whichever there are.
    pub fn under(&self, key: &str) -> impl Iterator<Item = usize> {
        let belongs = move |name: &String| {
            name == key || family_index(name, key).is_some() || matrix_index(name, key).is_some()
        };
        self.names.iter().enumerate().filter(move |(_, name)| belongs(name)).map(|(at, _)| at)
    }

    /// Whether `matrix` can be asked for the key.
    pub fn has_matrix(&self, key: &str) -> bool {
        self.names.iter().any(|name| matrix_index(name, key).is_some())
    }

    /// Rows and dimensions of a matrix, and its columns row by row: `M_<row>_<dimension>`, or a
    /// plain family where it has one row.
    pub fn matrix(
        &self,
        key: &str,
        origin: &Origin<'_>,
    ) -> Result<([usize; 2], Vec<usize>), DataError> {
        let one_row = self.has(key);
        if !self.has_matrix(key) {
            let columns = self.of(key, origin)?;
            return Ok(([1, columns.len()], columns));
        }
        if one_row {
            let detail = format!(
                "`{key}` is both one row ({key}_<dimension>) and several \
                 ({key}_<row>_<dimension>); keep one of them"
            );
            return Err(wrong(origin, detail));
        }
        let mut places = BTreeMap::new();
        for (column, name) in self.names.iter().enumerate() {
            let Some(place) = matrix_index(name, key) else { continue };
            if let Some(earlier) = places.insert(place, column) {
                let earlier = self.name(earlier);
                let detail = format!(
                    "the columns `{earlier}` and `{name}` are both row {}, dimension {} of `{key}`",
                    place.0, place.1
                );
                return Err(wrong(origin, detail));
            }
        }
        let rows = places.keys().map(|place| place.0).max().map_or(0, |row| row as usize + 1);
        let width = places.keys().map(|place| place.1).max().map_or(0, |d| d as usize + 1);
        if rows.checked_mul(width) != Some(places.len()) {
            let lacks = (0..=u32::MAX)
                .flat_map(|row| (0..width as u32).map(move |d| (row, d)))
                .find(|place| !places.contains_key(place))
                .unwrap_or_default();
            let detail = format!(
                "`{key}` has {} columns but none for row {}, dimension {} ({key}_{}_{}); \
                 give every row and dimension, zeros included",
                places.len(),
                lacks.0,
                lacks.1,
                lacks.0,
                lacks.1
            );
            return Err(wrong(origin, detail));
        }
        Ok(([rows, width], places.into_values().collect()))
    }

    /// The column of exactly this name.
    pub fn exact(&self, name: &str, origin: &Origin<'_>) -> Result<usize, DataError> {
        let mut places = self.names.iter().enumerate().filter(|(_, n)| *n == name);
        match (places.next(), places.next()) {
            (Some((column, _)), None) => Ok(column),
            (Some(_), Some(_)) => Err(wrong(
                origin,
                format!("the column `{}` appears more than once", shortened(name)),
            )),
            (None, _) => Err(wrong(origin, format!("there is no column `{}`", shortened(name)))),
        }
    }

    /// The numbered columns of a family, in numeric order from 0 without gaps.
    fn family(&self, key: &str, origin: &Origin<'_>) -> Result<Vec<usize>, DataError> {
        let mut numbered = BTreeMap::new();
        for (column, name) in self.names.iter().enumerate() {
            let Some(index) = family_index(name, key) else { continue };
            if let Some(earlier) = numbered.insert(index, column) {
                return Err(wrong(
                    origin,
                    format!(
                        "the columns `{}` and `{name}` are both number {index} of `{key}`",
                        self.name(earlier)
                    ),
                ));
            }
        }
        if let Some((missing, _)) = (0u64..).zip(numbered.keys()).find(|(i, index)| i != *index) {
            return Err(wrong(
                origin,
                format!(
                    "`{key}` has {} numbered columns but no number {missing}; \
                     number them from 0 without gaps",
                    numbered.len()
                ),
            ));
        }
        Ok(numbered.into_values().collect())
    }
}

/// `signals_3`, `signals[3]`, `signals.3` and `signals3` are number 3 of `signals`.
fn family_index(name: &str, key: &str) -> Option<u64> {
    let rest = name.strip_prefix(key)?;
    let digits = rest
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .or_else(|| rest.strip_prefix(['_', '.']))
        .unwrap_or(rest);
    if digits.bytes().all(|b| b.is_ascii_digit()) { digits.parse().ok() } else { None }
}

/// `M_1_2`, `M[1][2]`, `M[1,2]` and `M.1.2` are row 1, dimension 2 of `M`.
fn matrix_index(name: &str, key: &str) -> Option<(u32, u32)> {
    let rest = name.strip_prefix(key)?;
    let (row, dimension) = if let Some(inner) = rest.strip_prefix('[') {
        let inner = inner.strip_suffix(']')?;
        inner.split_once("][").or_else(|| inner.split_once(','))?
    } else {
        rest.strip_prefix('_')
            .and_then(|rest| rest.split_once('_'))
            .or_else(|| rest.strip_prefix('.').and_then(|rest| rest.split_once('.')))?
    };
    let number = |digits: &str| {
        let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        if plain { digits.parse::<u32>().ok().filter(|n| *n < MAX_INDEX) } else { None }
    };
    Some((number(row)?, number(dimension.trim())?))
}

/// Rows and dimensions of a matrix in columns at most; a file has far fewer columns.
const MAX_INDEX: u32 = 1 << 20;

/// The family a column seems to belong to, and its number.
fn split_index(name: &str) -> Option<(&str, u64)> {
    let inner = name.strip_suffix(']').unwrap_or(name);
    let stem = inner.trim_end_matches(|c: char| c.is_ascii_digit());
    let family = stem.strip_suffix(['[', '_', '.']).unwrap_or(stem);
    Some((family, family_index(name, family)?)).filter(|(family, _)| !family.is_empty())
}

fn wrong(origin: &Origin<'_>, detail: impl Into<String>) -> DataError {
    DataError::Columns { path: origin.path.to_path_buf(), detail: detail.into() }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const ORIGIN: fn() -> Origin<'static> = || {
        let meter = Box::leak(Box::default());
        Origin { path: Path::new("f.csv"), format: "csv", meter }
    };

    fn columns(names: &[&str]) -> Columns {
        Columns::from_header(&ByteRecord::from(names.to_vec()), &ORIGIN()).unwrap()
    }

    fn of(names: &[&str], key: &str) -> Result<Vec<usize>, String> {
        columns(names).of(key, &ORIGIN()).map_err(|error| error.to_string())
    }

    #[test]
    fn families_are_ordered_by_number_whatever_their_spelling() {
        let names = ["signals_1", "u", "signals_0", "signals_10"];
        assert!(of(&names, "signals").unwrap_err().contains("no number 2"));
        assert_eq!(of(&["s_1", "u", "s_0"], "s"), Ok(vec![2, 0]));
        assert_eq!(of(&["s[1]", "s[0]"], "s"), Ok(vec![1, 0]));
        assert_eq!(of(&["s.1", "s.0"], "s"), Ok(vec![1, 0]));
        assert_eq!(of(&["s1", "s0", "t0"], "s"), Ok(vec![1, 0]));
        assert_eq!(of(&["s", "t"], "s"), Ok(vec![0]));
    }

    #[test]
    fn columns_that_one_key_cannot_ask_for_are_listed_one_by_one() {
        let keys = |names: &[&str]| columns(names).keys();
        assert_eq!(keys(&["s_1", "u", "s_0"]), ["s", "u"]);
        assert_eq!(keys(&["price", "s3"]), ["price", "s3"]);
        assert_eq!(keys(&["q1", "q2", "M_0_0", "M_1_0"]), ["q1", "q2", "M"]);
        assert_eq!(keys(&["s0", "s_0", "s1"]), ["s0", "s_0", "s1"]);
    }

    #[test]
    fn an_exact_name_wins_over_a_family() {
        let names = ["x0", "x1", "x10", "x11", "u"];
        assert_eq!(of(&names, "x1"), Ok(vec![1]));
        assert_eq!(of(&names, "x0, x10"), Ok(vec![0, 2]));
        assert_eq!(of(&["s", "s_0", "s_1"], "s"), Ok(vec![0]));
        assert_eq!(of(&["s10", "s11", "u"], "s1"), Ok(vec![0, 1]));
    }

    #[test]
    fn lists_keep_their_order() {
        assert_eq!(of(&["load", "price", "x"], "price, load"), Ok(vec![1, 0]));
        assert!(!columns(&["load", "price"]).has("price,wind"));
        // A quoted name may hold a comma itself.
        assert_eq!(of(&["a,b", "a", "b"], "a,b"), Ok(vec![0]));
    }

    #[test]
    fn doubts_are_errors() {
        assert!(of(&["s_1", "s_2"], "s").unwrap_err().contains("no number 0"));
        assert!(of(&["s_0", "s[0]"], "s").unwrap_err().contains("both number 0"));
        assert!(of(&["a", "a", "b"], "a").unwrap_err().contains("more than once"));
    }

    #[test]
    fn keys_are_families_and_single_columns() {
        let names = ["signals_0", "signals_1", "price", "u[0]", "x2", "3", "a_b"];
        assert_eq!(columns(&names).keys(), ["signals", "price", "u", "x2", "3", "a_b"]);
    }

    #[test]
    fn matrices_are_ordered_row_by_row_whatever_their_spelling() {
        let matrix = |names: &[&str]| {
            columns(names).matrix("M", &ORIGIN()).map_err(|error| error.to_string())
        };
        let expected = Ok(([2, 2], vec![3, 1, 0, 2]));
        assert_eq!(matrix(&["M_1_0", "M_0_1", "M_1_1", "M_0_0", "W_0"]), expected);
        assert_eq!(matrix(&["M[1][0]", "M[0][1]", "M[1,1]", "M.0.0"]), expected);
        assert_eq!(matrix(&["M_1", "x", "M_0"]), Ok(([1, 2], vec![2, 0])));
        assert!(matrix(&["M_0_0", "M_1_1", "M_0_1"]).unwrap_err().contains("(M_1_0)"));
        assert!(matrix(&["M_0_0", "M[0][0]"]).unwrap_err().contains("both row 0, dimension 0"));
        assert!(matrix(&["M_0_0", "M_0"]).unwrap_err().contains("keep one"));
        // M_eq is another matrix.
        assert!(!columns(&["M_eq_0_0", "M_eq_0"]).has_matrix("M"));
        assert_eq!(columns(&["M_eq_0_0"]).matrix("M_eq", &ORIGIN()).unwrap().0, [1, 1]);
        // A name cannot make room for numbers that are not there.
        assert!(matrix(&["M_0_0", "M_1048575_1048575"]).unwrap_err().contains("(M_0_1)"));
        assert!(!columns(&["M_0_4294967295"]).has_matrix("M"));
    }
}
