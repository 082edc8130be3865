//! `argwhy describe`: what data is like, before anything is learned from it.

use super::targets::check_targets;
use super::{print, print_json, whole_machine};
use crate::End;
use crate::args::DescribeArgs;
use crate::error::CliError;
use crate::pages;
use crate::report::number;
use crate::words::count;
use argwhy::describe::{Bounds, Column, Description, describe};
use argwhy::io::{DataRequest, write_whole};
use std::fmt::Write;

/// Entries of a list on a terminal.
const SHOWN: usize = 40;

pub fn run(args: &DescribeArgs) -> Result<End, CliError> {
    let outputs: Vec<_> = args.output.as_deref().into_iter().collect();
    check_targets(&[&args.data], &outputs, &[])?;
    let request = DataRequest {
        decisions: args.decisions.clone(),
        budget: whole_machine(),
        ..args.rows.request()
    };
    let found = describe(&args.data, &request)?;
    if let Some(path) = &args.output {
        let source = args.data.display().to_string();
        let page = pages::describe::page(&found, &source);
        let page = page.map_err(|e| CliError::Report(e.to_string()))?;
        write_whole(path, page.as_bytes())
            .map_err(|source| CliError::Write { path: path.clone(), source })?;
    }
    if args.json {
        print_json(&found)?;
    } else if args.output.is_none() {
        print(&text(&found))?;
    }
    Ok(End::Done)
}

fn text(found: &Description) -> String {
    let mut out = String::new();
    let mut line = |text: String| {
        out.push_str(&text);
        out.push('\n');
    };
    let what = if found.contents.is_table { "column" } else { "array" };
    line(format!(
        "{}, {} read, {}",
        found.contents.format,
        count(found.n_rows, "row"),
        count(found.contents.entries.len(), what)
    ));
    for entry in found.contents.entries.iter().take(SHOWN) {
        let shape: Vec<String> = entry.shape.iter().map(u64::to_string).collect();
        let distinct = entry.distinct.map_or_else(String::new, |n| format!(", {n} different"));
        let missing = entry.missing.filter(|n| *n > 0);
        let missing = missing.map_or_else(String::new, |n| format!(", {n} missing"));
        line(format!(
            "  {}  ({})  {}{distinct}{missing}",
            entry.name,
            shape.join(", "),
            entry.kind
        ));
    }
    if found.contents.entries.len() > SHOWN {
        line(format!("  … and {} more", found.contents.entries.len() - SHOWN));
    }
    line(String::new());
    line(format!(
        "{:<24} {:>11} {:>11} {:>11} {:>11} {:>7}  spread",
        "", "least", "greatest", "mean", "deviation", "missing"
    ));
    for column in found.columns.iter().take(SHOWN) {
        line(format!(
            "{:<24} {:>11} {:>11} {:>11} {:>11} {:>7}  {}",
            format!("{} {}", &column.role[..1], column.name),
            number(column.least),
            number(column.greatest),
            number(column.mean),
            number(column.deviation),
            column.missing,
            sparkline(&column.histogram)
        ));
    }
    if found.columns.len() > SHOWN {
        line(format!("… and {} more; see --json or -o PAGE.html", found.columns.len() - SHOWN));
    }
    line(String::new());
    for sentence in remarks(found) {
        line(sentence);
    }
    out
}

/// A histogram in a line of text.
fn sparkline(histogram: &[usize]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = histogram.iter().copied().max().unwrap_or(0).max(1);
    let bar = |n: &usize| if *n == 0 { ' ' } else { BARS[(n * (BARS.len() - 1)).div_ceil(most)] };
    histogram.iter().map(bar).collect()
}

/// What a person should know, in sentences.
pub fn remarks(found: &Description) -> Vec<String> {
    let mut said = Vec::new();
    if found.signals.is_none() {
        said.push(
            "no signals and decisions under the usual names: all columns of numbers are described; \
             choose with --signals and --decisions"
                .to_owned(),
        );
    }
    if let Some(episodes) = &found.episodes {
        said.push(format!(
            "{}: {} to {} rows, {} in the middle",
            count(episodes.count, "episode"),
            episodes.shortest,
            episodes.longest,
            episodes.median
        ));
    }
    let share = |part: f64| format!("{:.1} %", 100.0 * part);
    for column in found.columns.iter().filter(|column| column.role == "decision").take(SHOWN) {
        said.push(format!(
            "{}: {} of decisions at {}, {} at {}",
            column.name,
            share(column.at_lower),
            number(lower_of(found, column)),
            share(column.at_upper),
            number(upper_of(found, column))
        ));
    }
    let listed = |names: Vec<String>| {
        let more = names.len().saturating_sub(8);
        let shown: Vec<String> = names.into_iter().take(8).collect();
        if more > 0 { format!("{} and {more} more", shown.join(", ")) } else { shown.join(", ") }
    };
    let names = |keep: &dyn Fn(&Column) -> bool| {
        let kept = found.columns.iter().filter(|column| keep(column));
        kept.map(|column| column.name.clone()).collect::<Vec<_>>()
    };
    let constant = names(&|column| column.constant);
    if !constant.is_empty() {
        said.push(format!("the same in every row: {}", listed(constant)));
    }
    let infinite = names(&|column| column.infinite > 0);
    if !infinite.is_empty() {
        said.push(format!("infinite values in {}", listed(infinite)));
    }
    if !found.duplicates.is_empty() {
        let pairs = found.duplicates.iter().map(|[a, b]| format!("{a} and {b}")).collect();
        said.push(format!("the same columns: {}", listed(pairs)));
    }
    if !found.nearly_dependent.is_empty() {
        let pair = |(a, b, r): &(String, String, f64)| format!("{a} and {b} ({r:.4})");
        let pairs = found.nearly_dependent.iter().map(pair).collect();
        said.push(format!("nearly dependent columns (correlation): {}", listed(pairs)));
    }
    if found.rows_with_gaps > 0 {
        said.push(format!(
            "{} of {} rows lack a value: --missing drop leaves them out, --missing mean fills in \
             signals",
            found.rows_with_gaps, found.n_rows
        ));
    }
    if found.repeated_rows > 0 {
        said.push(format!(
            "{} with the signals of an earlier row, {} of them with another decision",
            count(found.repeated_rows, "row"),
            found.conflicting_rows
        ));
    }
    if let Some(bounds) = &found.suggested_bounds {
        said.push(format!("suggested limits: {} ({})", flags(bounds), bounds.why));
    }
    said
}

fn lower_of(found: &Description, column: &Column) -> f64 {
    limit_of(found, column, |bounds| &bounds.lower).unwrap_or(column.least)
}

fn upper_of(found: &Description, column: &Column) -> f64 {
    limit_of(found, column, |bounds| &bounds.upper).unwrap_or(column.greatest)
}

fn limit_of(
    found: &Description,
    column: &Column,
    side: impl Fn(&Bounds) -> &Vec<f64>,
) -> Option<f64> {
    let mut decisions = found.columns.iter().filter(|other| other.role == "decision");
    let at = decisions.position(|other| other.name == column.name)?;
    side(found.suggested_bounds.as_ref()?).get(at).copied().filter(|limit| limit.is_finite())
}

/// Limits as `fit` takes them.
fn flags(bounds: &Bounds) -> String {
    let same = |numbers: &[f64]| numbers.windows(2).all(|pair| pair[0] == pair[1]);
    let (lower, upper) = (&bounds.lower, &bounds.upper);
    let whole = lower.iter().chain(upper).all(|limit| limit.is_finite());
    if whole && same(lower) && same(upper) {
        return format!("--bounds={},{}", lower[0], upper[0]);
    }
    let mut out = String::new();
    for (flag, numbers) in [("--lower", lower), ("--upper", upper)] {
        if numbers.iter().any(|limit| limit.is_finite()) {
            let list: Vec<String> = numbers.iter().map(f64::to_string).collect();
            // Writing to a string cannot fail.
            let _ =
                write!(out, "{}{flag}={}", if out.is_empty() { "" } else { " " }, list.join(","));
        }
    }
    out
}
