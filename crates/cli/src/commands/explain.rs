//! `argwhy explain`: what a model weighs, and why one decision is what it is.

use super::names::encoding;
use super::predict::Question;
use super::targets::check_targets;
use super::{Rows, Wanted, load_rows, on_threads, print, print_json};
use crate::args::ExplainArgs;
use crate::error::CliError;
use crate::progress::say;
use crate::report::number;
use crate::{End, pages, words};
use argwhy::core::decision_set::SampleSets;
use argwhy::explain::{Explainer, Explanation, OneDecision, OneSettings, Situations};
use argwhy::io::write_whole;
use argwhy::{Predictor, StoredModel};
use serde::Serialize;
use std::fmt::Write;
use std::io::BufRead;

pub fn run(args: &ExplainArgs) -> Result<End, CliError> {
    let sets = &args.sets;
    let (matrix, matrix_eq) = (sets.matrix.as_deref(), sets.matrix_eq.as_deref());
    let inputs = [Some(args.model.as_path()), args.data.as_deref(), matrix, matrix_eq];
    let outputs: Vec<_> = args.output.as_deref().into_iter().collect();
    check_targets(&inputs.into_iter().flatten().collect::<Vec<_>>(), &outputs, &[])?;
    if args.by.is_some_and(|by| !(by > 0.0 && by.is_finite())) {
        return Err(CliError::Usage("--by is an amount above zero".to_owned()));
    }
    let stored = argwhy::load_model(&args.model)?;
    let predictor = Predictor::new(&stored.model)?;
    let rows = match &args.data {
        Some(data) => {
            let wanted = Wanted::new(&args.rows, sets);
            Some(load_rows(data, &wanted, (&stored, &predictor), args.quiet)?)
        }
        None => None,
    };
    on_threads(args.rows.threads, || {
        let situations = match &rows {
            Some(rows) => {
                Situations::of_data(&predictor, rows.signals.view(), rows.constraints.as_ref())?
            }
            None => Situations::of_support(&stored.model, &predictor)?,
        };
        let explainer = Explainer::new(&stored.model, &predictor, situations);
        let explainer = match &args.numeraire {
            Some(numeraire) => explainer.in_money(&numeraire.decision, &numeraire.signal)?,
            None => explainer,
        };
        match asked(args, &stored, &predictor, rows.as_ref())? {
            Some(asked) => tell_one(args, &stored, &explainer, &asked),
            None => tell_all(args, &explainer),
        }
    })?
}

/// One situation that is asked about.
struct Asked {
    signal: Vec<f64>,
    set: Option<SampleSets>,
    row: Option<usize>,
}

/// The situation of `--row` or of a line on stdin.
fn asked(
    args: &ExplainArgs,
    stored: &StoredModel,
    predictor: &Predictor,
    rows: Option<&Rows>,
) -> Result<Option<Asked>, CliError> {
    if args.jsonl {
        return line(stored, predictor).map(Some);
    }
    let Some(row) = args.row else { return Ok(None) };
    if let Some(rows) = rows {
        let n_rows = rows.signals.nrows();
        let Some(at) = (0..n_rows).find(|&i| rows.place(i) == row) else {
            return Err(argwhy::Error::Row { row, n_rows }.into());
        };
        let given = rows.constraints.as_ref().map(|given| given.select(&[at]));
        let unknown = predictor.is_constrained() && given.is_none();
        let set = if unknown { None } else { Some(predictor.sets(given.as_ref(), 1)?) };
        return Ok(Some(Asked { signal: rows.signals.row(at).to_vec(), set, row: Some(row) }));
    }
    let support = stored.model.support();
    let at = support.and_then(|s| s.rows.iter().position(|&own| own == row as u64));
    match (support, at) {
        (Some(support), Some(at)) => {
            let signal = support.signals.row(at).to_vec();
            Ok(Some(Asked { signal, set: None, row: Some(row) }))
        }
        _ => Err(CliError::Usage(format!(
            "the model does not keep row {row} (only samples that carry weight); give the data it \
             was fitted to: argwhy explain {} DATA --row {row}",
            args.model.display()
        ))),
    }
}

/// The situation on the first line of stdin that is not blank, as `predict --jsonl` takes it.
fn line(stored: &StoredModel, predictor: &Predictor) -> Result<Asked, CliError> {
    for (at, line) in std::io::stdin().lock().lines().enumerate() {
        let wrong = |why: String| CliError::Line { line: at + 1, why };
        let line = line.map_err(|e| wrong(e.to_string()))?;
        if line.trim().is_empty() {
            continue;
        }
        let question = Question::read(&line).map_err(wrong)?;
        let given = question.own_constraints().map_err(wrong)?;
        let signal =
            question.signal.in_order(&stored.model.names, &encoding(stored)).map_err(wrong)?;
        let given = Some(given).filter(|given| !given.is_empty());
        let unknown = predictor.is_constrained() && given.is_none();
        let set = if unknown { None } else { Some(predictor.sets(given.as_ref(), 1)?) };
        return Ok(Asked { signal, set, row: None });
    }
    Err(CliError::Usage("--jsonl needs a line such as {\"signal\": [..]} on stdin".to_owned()))
}

fn tell_all(args: &ExplainArgs, explainer: &Explainer<'_>) -> Result<End, CliError> {
    let explanation = explainer.explain()?;
    if let Some(path) = &args.output {
        let page = pages::why::page(&explanation, &args.model.display().to_string())?;
        write_page(args, path, &page)?;
    }
    if args.json {
        print_json(&explanation)?;
    } else if args.output.is_none() {
        print(&text(&explanation))?;
    }
    Ok(End::Done)
}

fn tell_one(
    args: &ExplainArgs,
    stored: &StoredModel,
    explainer: &Explainer<'_>,
    asked: &Asked,
) -> Result<End, CliError> {
    #[derive(Serialize)]
    struct Told<'a> {
        row: Option<usize>,
        signal: &'a [f64],
        #[serde(flatten)]
        one: &'a OneDecision,
    }
    let settings = OneSettings { by: args.by };
    let one = explainer.explain_one(&asked.signal, asked.set.as_ref(), settings)?;
    let title =
        asked.row.map_or("One decision".to_owned(), |row| format!("The decision of row {row}"));
    if let Some(path) = &args.output {
        let page = pages::why::page_of_one(&one, &title, &args.model.display().to_string())?;
        write_page(args, path, &page)?;
    }
    if args.json {
        print_json(&Told { row: asked.row, signal: &asked.signal, one: &one })?;
    } else if args.output.is_none() {
        print(&text_of_one(&one, &title, stored.model.n_support()))?;
    }
    Ok(End::Done)
}

fn write_page(args: &ExplainArgs, path: &std::path::Path, page: &str) -> Result<(), CliError> {
    write_whole(path, page.as_bytes())
        .map_err(|source| CliError::Write { path: path.to_path_buf(), source })?;
    say(args.quiet, format_args!("page written to {}", path.display()));
    Ok(())
}

/// How wide a column of names is: a gap behind the longest, and never narrow.
fn widest<'a>(names: impl Iterator<Item = &'a str>) -> usize {
    names.map(|name| name.chars().count()).max().unwrap_or(0).max(16) + 2
}

/// What a model weighs, for the terminal. Writing to a string cannot fail.
fn text(explanation: &Explanation) -> String {
    let mut text = format!("{}\n\n", words::situations(explanation));
    let names = explanation.signals.iter().map(|signal| signal.name.as_str());
    let width = widest(names);
    let _ = writeln!(text, "{:<width$}{:>8}  effect", "signal", "share");
    for signal in &explanation.signals {
        let _ = write!(text, "{:<width$}{:>6.1} %", signal.name, 100.0 * signal.importance);
        match &signal.effect {
            None => text.push_str("  never changes\n"),
            Some(effect) => {
                for (m, decision) in explanation.decisions.iter().enumerate() {
                    let indent = if m == 0 { 2 } else { width + 10 };
                    let along = (signal.name.as_str(), effect);
                    let said = words::effect(along, (decision, m), &explanation.units);
                    let _ = writeln!(text, "{:indent$}{said}", "");
                }
            }
        }
    }
    if let Some(pair) = &explanation.pair {
        let _ = writeln!(text, "\n{}", words::pair(pair, &explanation.decisions));
    }
    for trade in &explanation.trade_offs {
        let _ = writeln!(text, "{}", words::trade_off(trade, &explanation.units));
    }
    if let Some(money) = &explanation.money {
        let _ = writeln!(text, "\n{}", words::money(money));
    }
    text
}

/// One decision, for the terminal.
fn text_of_one(one: &OneDecision, title: &str, n_support: usize) -> String {
    let titles: Vec<String> = one.decisions.iter().map(|name| one.units.titled(name)).collect();
    // A column is as wide as its title, and numbers have room.
    let columns: Vec<usize> = titles.iter().map(|name| name.chars().count().max(12) + 2).collect();
    let row = |values: &[f64]| -> String {
        let each = values.iter().zip(&columns);
        each.map(|(value, &wide)| format!("{:>wide$}", number(*value))).collect::<Vec<_>>().concat()
    };
    let typical = format!("row {} (typical)", one.typical.row);
    let width = widest(one.pushes.iter().map(|push| push.name.as_str()).chain([typical.as_str()]));
    let mut text = format!("{title}\n\n{:width$}", "");
    titles.iter().zip(&columns).for_each(|(name, &wide)| {
        let _ = write!(text, "{name:>wide$}");
    });
    let _ = writeln!(text, "\n{:<width$}{}", "desired", row(&one.desired));
    if let Some(decision) = &one.decision {
        let _ = writeln!(text, "{:<width$}{}", "decided", row(decision));
    }
    let _ = writeln!(text, "{typical:<width$}{}", row(&one.typical.desired));
    for push in &one.pushes {
        let _ = write!(text, "{:<width$}{}", push.name, row(&push.push));
        let value = words::amount(push.value, &push.name, &one.units);
        let _ = writeln!(text, "   {value} instead of {}", number(push.typical));
    }
    let error = one.pushes.iter().flat_map(|p| &p.error).copied().fold(0.0, f64::max);
    if error > 0.0 {
        let _ = writeln!(text, "(pushes are sampled; standard error at most {})", number(error));
    }
    let _ = writeln!(text, "\n{}", words::held(one));
    one.frees.iter().for_each(|freed| {
        let _ = writeln!(text, "{}", words::freed(freed, &one.units));
    });
    let easiest = one.changes.iter().find_map(|change| words::change(change, one));
    if let Some(change) = easiest {
        let _ = writeln!(text, "It would change most easily {change}.");
    }
    if let Some(terms) = &one.rests_on {
        let _ = writeln!(
            text,
            "\n{:<width$}{:>8}{:>10}  of {n_support} samples",
            "rests on row", "share", "alike"
        );
        for term in terms {
            let _ = writeln!(
                text,
                "{:<width$}{:>6.1} %{:>10.3}  {}",
                term.row,
                100.0 * term.share,
                term.likeness,
                row(&term.term)
            );
        }
    }
    text
}
