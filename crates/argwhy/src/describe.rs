//! What data is like, before anything is learned from it.
//!
//! In: a file. Out: what it has, and of each column of signals and decisions the range, how it is
//! spread, and what may go wrong: values that are missing, columns that say nothing or the same as
//! others, situations in which the expert decided differently, decisions that lie on a limit.

use crate::error::Error;
use argwhy_io::{
    Contents, DataError, DataRequest, Entry, GroupKind, Loaded, Missing, Spooled, contents, load,
    standard_input,
};
use ndarray::{Array2, ArrayView1, ArrayView2, Axis};
use serde::Serialize;
use std::collections::HashMap;
use std::path::Path;

/// Parts that a histogram divides the range into.
pub const BINS: usize = 24;
/// Columns whose correlations are compared; more take too long to be told apart in pairs.
const MOST_COMPARED: usize = 400;
/// Correlation from which columns are nearly dependent.
const NEARLY: f64 = 0.999;
/// The share of decisions at a column's extreme from which that is likely to be a limit.
const AT_LIMIT: f64 = 0.01;

/// What data is like.
#[derive(Debug, Clone, Serialize)]
pub struct Description {
    /// Arrays or columns that the file has.
    pub contents: Contents,
    /// Rows that were read.
    pub n_rows: usize,
    /// The key of the signals; none where none was found, and all numbers are described.
    pub signals: Option<String>,
    /// The key of the decisions.
    pub decisions: Option<String>,
    /// Rows of each episode, where the data has any.
    pub episodes: Option<Episodes>,
    /// Columns of signals, then of decisions.
    pub columns: Vec<Column>,
    /// Pairs of columns with the same values.
    pub duplicates: Vec<[String; 2]>,
    /// Pairs of signals that are nearly the same but for scale and offset, with their correlation.
    pub nearly_dependent: Vec<(String, String, f64)>,
    /// Rows whose signals are those of an earlier row.
    pub repeated_rows: usize,
    /// Those among them with another decision.
    pub conflicting_rows: usize,
    /// Rows that lack a value.
    pub rows_with_gaps: usize,
    /// Limits that the data tells, or that decisions seem to have, one a dimension.
    pub suggested_bounds: Option<Bounds>,
}

/// Limits of decisions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bounds {
    /// The least of each dimension.
    pub lower: Vec<f64>,
    /// The greatest.
    pub upper: Vec<f64>,
    /// How they are known.
    pub why: String,
}

/// How long episodes are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Episodes {
    /// How many there are.
    pub count: usize,
    /// Rows of the shortest.
    pub shortest: usize,
    /// Rows of the one in the middle.
    pub median: usize,
    /// Rows of the longest.
    pub longest: usize,
}

/// One column.
#[derive(Debug, Clone, Serialize)]
pub struct Column {
    /// What it is called.
    pub name: String,
    /// `signal` or `decision`.
    pub role: &'static str,
    /// Values that are missing.
    pub missing: usize,
    /// Values that are infinite.
    pub infinite: usize,
    /// The least value.
    pub least: f64,
    /// The greatest.
    pub greatest: f64,
    /// The mean.
    pub mean: f64,
    /// The standard deviation.
    pub deviation: f64,
    /// Whether all values are the same.
    pub constant: bool,
    /// Whether all values are whole numbers.
    pub whole: bool,
    /// The share of values at the lower limit, or at the least value where none is known.
    pub at_lower: f64,
    /// The same of the upper.
    pub at_upper: f64,
    /// Values in each of [`BINS`] equal parts of the range.
    pub histogram: Vec<usize>,
}

/// Describes the data at `path`.
///
/// Where the request names no signals and there are none under the usual names, all columns of
/// numbers are described.
pub fn describe(path: &Path, request: &DataRequest) -> Result<Description, Error> {
    // Standard input can be read only once.
    let spooled = standard_input(path)?;
    let path = spooled.as_ref().map_or(path, Spooled::path);
    let contents = contents(path, request)?;
    let asked = DataRequest { missing: Missing::Keep, episodes: true, ..request.clone() };
    let unnamed = request.signals.is_none() && request.decisions.is_none();
    let (loaded, chosen) = match load(path, &asked) {
        Ok(loaded) => (loaded, true),
        Err(DataError::NoDecisions { .. }) => {
            (load(path, &DataRequest { want_decisions: false, ..asked })?, true)
        }
        Err(DataError::KeysAbsent { .. }) if unnamed && contents.is_table => {
            let numbers = contents.entries.iter().filter(|entry| entry.is_numbers());
            let signal_names: Vec<String> = numbers.map(|entry| entry.name.clone()).collect();
            if signal_names.is_empty() {
                let kind = |entry: &Entry| format!("`{}`: {}", entry.name, entry.kind);
                let kinds: Vec<String> = contents.entries.iter().map(kind).collect();
                let what = format!(
                    "`{}` has no column of numbers ({}); where numbers have decimal commas, give \
                     {{decimal ,}}",
                    path.display(),
                    kinds.join(", ")
                );
                return Err(Error::NoNumbers { what });
            }
            let all = DataRequest { want_decisions: false, signal_names, ..asked };
            (load(path, &all)?, false)
        }
        Err(error) => return Err(of_words(path, error)),
    };
    Ok(Description::of(contents, loaded, chosen))
}

/// Nothing makes numbers of words here, as options of a fit do.
fn of_words(path: &Path, error: DataError) -> Error {
    let Some((column, text)) = error.words_of_column() else { return error.into() };
    let what = format!(
        "`{}`: the column `{column}` holds `{text}` and no numbers, which are all that is \
         described; leave it out. Without {{signals}} and {{decisions}} each column is listed with \
         what it holds",
        path.display()
    );
    Error::NoNumbers { what }
}

impl Description {
    fn of(contents: Contents, loaded: Loaded, chosen: bool) -> Self {
        let signals = loaded.signals.view();
        let none = Array2::zeros((signals.nrows(), 0));
        let decisions = loaded.decisions.as_ref().map_or(none.view(), |found| found.view());
        let signal = |at: usize| named(&loaded.names.signals, "signals", at);
        let decision = |at: usize| named(&loaded.names.decisions, "decisions", at);
        let limits = loaded.limits.as_ref();
        let mut columns = Vec::new();
        for (at, column) in signals.axis_iter(Axis(1)).enumerate() {
            columns.push(Column::of(signal(at), "signal", column, None));
        }
        for (at, column) in decisions.axis_iter(Axis(1)).enumerate() {
            let own = limits.map(|limits| (limits.lower[at], limits.upper[at]));
            columns.push(Column::of(decision(at), "decision", column, own));
        }
        let (duplicates, nearly_dependent) = alike(signals, &columns);
        let (repeated_rows, conflicting_rows) = conflicts(signals, decisions);
        let of_decisions = &columns[signals.ncols()..];
        let suggested_bounds = match limits {
            Some(limits) => Some(Bounds {
                lower: limits.lower.clone(),
                upper: limits.upper.clone(),
                why: limits.found_in.clone(),
            }),
            None => suggested(of_decisions),
        };
        let has_gap = |row: usize| {
            let mut both = signals.row(row).into_iter().chain(decisions.row(row));
            both.any(|value| value.is_nan())
        };
        Self {
            n_rows: signals.nrows(),
            signals: chosen.then(|| loaded.signals_key.clone()),
            decisions: loaded.decisions_key.clone(),
            episodes: episodes(&loaded),
            duplicates,
            nearly_dependent,
            repeated_rows,
            conflicting_rows,
            rows_with_gaps: (0..signals.nrows()).filter(|row| has_gap(*row)).count(),
            suggested_bounds,
            contents,
            columns,
        }
    }
}

fn named(names: &[String], key: &str, at: usize) -> String {
    names.get(at).cloned().unwrap_or_else(|| format!("{key}_{at}"))
}

impl Column {
    fn of(
        name: String,
        role: &'static str,
        values: ArrayView1<'_, f64>,
        limits: Option<(f64, f64)>,
    ) -> Self {
        let missing = values.iter().filter(|value| value.is_nan()).count();
        let there = || values.iter().copied().filter(|value| value.is_finite());
        let count = there().count();
        let share = |n: usize| n as f64 / count.max(1) as f64;
        let least = there().fold(f64::INFINITY, f64::min);
        let greatest = there().fold(f64::NEG_INFINITY, f64::max);
        // Scaled: squares of large numbers would overflow.
        let scale = least.abs().max(greatest.abs()).max(f64::MIN_POSITIVE);
        let mean = there().map(|value| value / scale).sum::<f64>() / count.max(1) as f64;
        let spread = there().map(|value| (value / scale - mean).powi(2)).sum::<f64>();
        let (lower, upper) = limits.unwrap_or((least, greatest));
        // Simulators write limits in single precision.
        let near = |value: f64, limit: f64| (value - limit).abs() <= 1e-6 * limit.abs().max(1e-6);
        let at = |limit: f64| share(there().filter(|value| near(*value, limit)).count());
        let is_empty = count == 0;
        Self {
            name,
            role,
            missing,
            infinite: values.len() - missing - count,
            least: if is_empty { f64::NAN } else { least },
            greatest: if is_empty { f64::NAN } else { greatest },
            mean: if is_empty { f64::NAN } else { mean * scale },
            deviation: scale * (spread / count.max(1) as f64).sqrt(),
            constant: !is_empty && least == greatest,
            whole: !is_empty && there().all(|value| value.fract() == 0.0),
            at_lower: at(lower),
            at_upper: at(upper),
            histogram: histogram(there(), least, greatest),
        }
    }
}

fn histogram(values: impl Iterator<Item = f64>, least: f64, greatest: f64) -> Vec<usize> {
    let mut bins = vec![0; BINS];
    // Halves first: the difference of extremes may be infinite.
    let width = greatest / 2.0 - least / 2.0;
    for value in values {
        let share = if width > 0.0 { (value / 2.0 - least / 2.0) / width } else { 0.0 };
        bins[((share * BINS as f64) as usize).min(BINS - 1)] += 1;
    }
    bins
}

/// Pairs of columns that are the same, and pairs that are nearly so but for scale and offset.
#[allow(clippy::type_complexity, reason = "two lists of pairs")]
fn alike(
    signals: ArrayView2<'_, f64>,
    columns: &[Column],
) -> (Vec<[String; 2]>, Vec<(String, String, f64)>) {
    let (mut same, mut near) = (Vec::new(), Vec::new());
    let compared: Vec<usize> = (0..signals.ncols())
        .filter(|&at| columns[at].deviation > 0.0 && !columns[at].constant)
        .take(MOST_COMPARED)
        .collect();
    // Columns of mean zero and length one: their products are correlations.
    let unit = |at: usize| -> Vec<f64> {
        let Column { mean, deviation, .. } = columns[at];
        let one = |value: &f64| if value.is_finite() { (value - mean) / deviation } else { 0.0 };
        let values: Vec<f64> = signals.column(at).iter().map(one).collect();
        let length = values.iter().map(|value| value * value).sum::<f64>().sqrt();
        values.into_iter().map(|value| value / length.max(f64::MIN_POSITIVE)).collect()
    };
    let units: Vec<Vec<f64>> = compared.iter().map(|&at| unit(at)).collect();
    for (i, &first) in compared.iter().enumerate() {
        for (j, &second) in compared.iter().enumerate().skip(i + 1) {
            let product: f64 = units[i].iter().zip(&units[j]).map(|(a, b)| a * b).sum();
            if product.abs() < NEARLY {
                continue;
            }
            let pair = [columns[first].name.clone(), columns[second].name.clone()];
            let mut both = signals.column(first).into_iter().zip(signals.column(second));
            if both.all(|(a, b)| a.to_bits() == b.to_bits()) {
                same.push(pair);
            } else {
                let [first, second] = pair;
                near.push((first, second, product));
            }
        }
    }
    (same, near)
}

/// Rows with signals that came before, and those among them with another decision.
fn conflicts(signals: ArrayView2<'_, f64>, decisions: ArrayView2<'_, f64>) -> (usize, usize) {
    let bits = |row: ArrayView1<'_, f64>| -> Vec<u64> {
        // Zero has two signs.
        row.iter().map(|value| (value + 0.0).to_bits()).collect()
    };
    let mut seen: HashMap<Vec<u64>, usize> = HashMap::new();
    let (mut repeated, mut conflicting) = (0, 0);
    for (at, row) in signals.rows().into_iter().enumerate() {
        if let Some(&first) = seen.get(&bits(row)) {
            repeated += 1;
            conflicting += usize::from(bits(decisions.row(first)) != bits(decisions.row(at)));
        } else {
            seen.insert(bits(row), at);
        }
    }
    (repeated, conflicting)
}

fn episodes(loaded: &Loaded) -> Option<Episodes> {
    let groups = loaded.groups.as_ref().filter(|groups| groups.kind == GroupKind::Episodes)?;
    let mut lengths: HashMap<u32, usize> = HashMap::new();
    groups.of_rows.iter().for_each(|episode| *lengths.entry(*episode).or_default() += 1);
    let mut lengths: Vec<usize> = lengths.into_values().collect();
    lengths.sort_unstable();
    Some(Episodes {
        count: lengths.len(),
        shortest: *lengths.first()?,
        median: lengths[lengths.len() / 2],
        longest: *lengths.last()?,
    })
}

/// Limits where many decisions lie on their extremes.
fn suggested(decisions: &[Column]) -> Option<Bounds> {
    // One row is always at the extreme, and two may be by chance.
    let is_limit = |share: f64, column: &Column| {
        let there: usize = column.histogram.iter().sum();
        share >= AT_LIMIT && share * there as f64 > 2.5 && !column.constant
    };
    let lower = |column: &Column| {
        if is_limit(column.at_lower, column) { column.least } else { f64::NEG_INFINITY }
    };
    let upper = |column: &Column| {
        if is_limit(column.at_upper, column) { column.greatest } else { f64::INFINITY }
    };
    let bounds = Bounds {
        lower: decisions.iter().map(lower).collect(),
        upper: decisions.iter().map(upper).collect(),
        why: "one decision in a hundred or more lies exactly there".to_owned(),
    };
    let says = bounds.lower.iter().chain(&bounds.upper).any(|limit| limit.is_finite());
    says.then_some(bounds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;

    fn described(text: &str) -> Description {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        std::fs::write(&path, text).unwrap();
        describe(&path, &DataRequest::default()).unwrap()
    }

    #[test]
    fn what_may_go_wrong_is_found() {
        let mut text = "signals_0,signals_1,signals_2,signals_3,decisions,day\n".to_owned();
        for i in 0..200 {
            let u = (f64::from(i) / 100.0 - 1.0).clamp(-0.5, 0.75);
            writeln!(text, "{i},{i},{},7,{u},Mon", 3 * i + i % 2).unwrap();
        }
        text += "5,5,16,7,0.25,Tue\n5,5,16,7,,Tue\n";
        let found = described(&text);
        assert_eq!(found.n_rows, 202);
        assert_eq!(found.duplicates, [["signals_0", "signals_1"]]);
        assert_eq!(found.nearly_dependent.len(), 2);
        assert!(found.columns[3].constant && !found.columns[2].constant);
        assert_eq!((found.repeated_rows, found.conflicting_rows), (2, 2));
        assert_eq!((found.rows_with_gaps, found.columns[4].missing), (1, 1));
        let bounds = found.suggested_bounds.unwrap();
        assert_eq!((bounds.lower, bounds.upper), (vec![-0.5], vec![0.75]));
        assert!((found.columns[4].at_lower - 51.0 / 201.0).abs() < 1e-12);
        assert_eq!(found.columns[0].histogram.iter().sum::<usize>(), 202);
        assert_eq!(found.contents.entries[5].kind, "text");
        assert_eq!(found.contents.entries[5].distinct, Some(2));
    }

    #[test]
    fn a_table_without_known_columns_is_described_whole() {
        let found = described("time,load,who\n2024-01-01,1,a\n2024-01-02,3,b\n");
        assert_eq!((found.signals, found.columns.len()), (None, 1));
        assert_eq!((found.columns[0].mean, found.columns[0].deviation), (2.0, 1.0));
        let kinds: Vec<_> = found.contents.entries.iter().map(|e| e.kind.as_str()).collect();
        assert_eq!(kinds, ["dates", "numbers", "text"]);
    }

    #[test]
    fn numbers_at_the_edge_are_described_without_overflow() {
        let found = described("signals,decisions\n1e308,0\n-1e308,1\n1e308,inf\n");
        let column = &found.columns[0];
        assert!(column.deviation.is_finite() && column.mean.is_finite(), "{column:?}");
        assert_eq!((column.histogram[0], column.histogram[BINS - 1]), (1, 2));
        assert_eq!(found.columns[1].infinite, 1);
    }
}
