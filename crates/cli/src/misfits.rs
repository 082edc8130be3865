//! Rows that do not fit, for terminals, JSON and pages alike.

use crate::report::{Section, Table, number};
use crate::words::amount;
use argwhy::Model;
use argwhy::core::dataset::{Names, Units};
use argwhy::core::model::{KeptOut, Misfit, Misfits};
use serde::Serialize;

/// Errors of this many times the usual size are told unasked.
const STRIKING: f64 = 4.0;
/// Where they are also at least this share of how much decisions differ from each other.
const SIZEABLE: f64 = 0.25;
/// Rows on a terminal at most.
const LISTED: usize = 3;

/// What they are in `--json`.
#[derive(Serialize)]
pub struct Listed {
    by: KeptOut,
    rows: Vec<Named>,
}

#[derive(Serialize)]
struct Named {
    /// What the dimension is called.
    name: String,
    #[serde(flatten)]
    misfit: Misfit,
}

/// As `--json` has them.
pub fn listed(misfits: Option<&Misfits>, names: &Names) -> Option<Listed> {
    let name = |misfit: &Misfit| Named { name: names.decision(misfit.dimension), misfit: *misfit };
    misfits.map(|found| Listed { by: found.by, rows: found.rows.iter().map(name).collect() })
}

/// `row 217: hours is 8 where 1.2 was to be expected, 5.1 times the usual error`.
pub fn line(misfit: &Misfit, names: &Names) -> String {
    let Misfit { row, dimension, decision, expected, times_usual } = misfit;
    let name = names.decision(*dimension);
    format!(
        "row {row}: {} is {} where {} was to be expected, {times_usual:.1} times the usual error",
        Units::bare(&name),
        amount(*decision, &name, &names.units),
        number(*expected)
    )
}

/// Those that are worth a look whoever asks: far off, and not only beside errors that are tiny.
pub fn told(model: &Model) -> Vec<String> {
    let names = &model.names;
    let all = model.misfits.as_ref().map_or(&[][..], |found| &found.rows);
    let is_striking = |misfit: &&Misfit| {
        let spread = model.calibration.as_ref().map_or(0.0, |own| own.spread[misfit.dimension]);
        let off = (misfit.decision - misfit.expected).abs();
        misfit.times_usual >= STRIKING && off >= SIZEABLE * spread
    };
    let striking: Vec<&Misfit> = all.iter().filter(is_striking).collect();
    let mut lines: Vec<String> =
        striking.iter().take(LISTED).map(|misfit| format!("  {}", line(misfit, names))).collect();
    if !lines.is_empty() {
        let what = "rows that do not fit (errors in the data, or another expert?):";
        lines.insert(0, what.to_owned());
    }
    if striking.len() > LISTED {
        lines.push("  … and more (`argwhy inspect`)".to_owned());
    }
    lines
}

/// How the rows were kept out of the model.
pub fn how(by: KeptOut) -> &'static str {
    match by {
        KeptOut::LeaveOneOut => "of all rows, each left out in turn",
        KeptOut::HeldOut => "of the rows kept aside",
    }
}

/// What a page says of them; none where there are none.
pub fn section(misfits: Option<&Misfits>, names: &Names) -> Option<Section> {
    let found = misfits.filter(|found| !found.rows.is_empty())?;
    let mut table =
        Table::new(["row", "decision", "the expert's", "the model's", "times the usual error"]);
    for misfit in &found.rows {
        table = table.row([
            misfit.row.to_string(),
            names.decision(misfit.dimension),
            number(misfit.decision),
            number(misfit.expected),
            format!("{:.1}", misfit.times_usual),
        ]);
    }
    Some(
        Section::new("Which rows fit worst?")
            .text(format!(
                "The worst {}, beside what the model decides there without having learned from \
                 them. Far more than three times the usual error is seldom chance: look for an \
                 error in the data, or another expert.",
                how(found.by)
            ))
            .table(table),
    )
}
