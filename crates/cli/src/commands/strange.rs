//! Situations unlike anything a model has seen, said where they are decided on.

use super::Rows;
use crate::error::CliError;
use crate::progress::say;
use crate::report::number;
use crate::words::count;
use argwhy::Model;
use argwhy::familiarity::{Familiarity, STRANGE};
use ndarray::ArrayView2;
use std::path::Path;

/// Rows that are listed.
const LISTED: usize = 5;

/// What a model remembers, where familiarity is asked for: older models remember nothing.
pub fn asked_for(model: &Model, asked: bool) -> Result<Option<Familiarity>, CliError> {
    if !asked {
        return Ok(None);
    }
    let found = Familiarity::new(model)?;
    found.map(Some).ok_or_else(|| {
        CliError::Usage(
            "the model does not remember what it saw: an earlier version wrote it; fit it again \
             for --familiarity"
                .to_owned(),
        )
    })
}

/// Refuses a file that holds decisions alone where something is to stand beside them: an option.
pub fn check_room(output: &Path, option: &str, asked: bool) -> Result<(), CliError> {
    if asked && output.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("npy")) {
        return Err(CliError::Usage(format!(
            "{option} has no room in `{}`: an .npy holds decisions alone; use .npz or .csv",
            output.display()
        )));
    }
    Ok(())
}

/// The percentile of one situation.
pub fn of_one(familiarity: &Familiarity, signal: &[f64]) -> Result<f64, argwhy::Error> {
    let row = ArrayView2::from_shape((1, signal.len()), signal).expect("one row of its length");
    Ok(familiarity.percentiles(row)?[0])
}

/// The percentile of every row; what is strange is told. None where nobody asked and the model
/// remembers nothing, or nothing is to be told: percentiles take longer than decisions.
pub fn familiarity(
    model: &Model,
    rows: &Rows,
    asked: bool,
    quiet: bool,
) -> Result<Option<Vec<f64>>, CliError> {
    let familiarity = match asked_for(model, asked)? {
        Some(familiarity) => familiarity,
        None if quiet => return Ok(None),
        None => match Familiarity::new(model)? {
            Some(familiarity) => familiarity,
            None => return Ok(None),
        },
    };
    let percentiles = familiarity.percentiles(rows.signals.view())?;
    let strange: Vec<usize> =
        (0..percentiles.len()).filter(|&i| percentiles[i] < STRANGE).collect();
    if !strange.is_empty() {
        say(quiet, format_args!("{}", told(model, rows, &familiarity, &strange)));
    }
    for j in familiarity.constant() {
        let (always, _) = familiarity.range(j);
        let other = rows.signals.column(j).iter().filter(|value| **value != always).count();
        if other > 0 {
            say(
                quiet,
                format_args!(
                    "note: {} was always {} in training and is something else in {}: what it does \
                     there was never seen",
                    model.names.signal(j),
                    number(always),
                    count(other, "row")
                ),
            );
        }
    }
    Ok(Some(percentiles))
}

/// How many, which, and what is strange about the first.
fn told(model: &Model, rows: &Rows, familiarity: &Familiarity, strange: &[usize]) -> String {
    let listed: Vec<String> =
        strange.iter().take(LISTED).map(|&i| rows.place(i).to_string()).collect();
    let more = if strange.len() > LISTED { ", …" } else { "" };
    let first = strange[0];
    let signal = rows.signals.row(first).to_vec();
    let outside: Vec<String> = familiarity
        .outside(&signal)
        .into_iter()
        .take(LISTED)
        .map(|j| {
            let (low, high) = familiarity.range(j);
            let (name, value) = (model.names.signal(j), number(signal[j]));
            format!("{name} is {value} where {} to {} was seen", number(low), number(high))
        })
        .collect();
    let why = if outside.is_empty() {
        "every signal is within its seen range, but not together".to_owned()
    } else {
        outside.join(", ")
    };
    format!(
        "note: {} of {} unlike what the model has seen (familiarity below {STRANGE}): {}{more}; \
         row {}: {why}",
        strange.len(),
        match rows.signals.nrows() {
            1 => "1 row is".to_owned(),
            n => format!("{n} rows are"),
        },
        listed.join(", "),
        rows.place(first)
    )
}
