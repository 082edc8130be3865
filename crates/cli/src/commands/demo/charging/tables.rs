//! The demo's folder: nights, matrix and prices as tables that `argwhy` reads, and a README.txt
//! about them.

use crate::findings::charging::{Column, by_hand, columns};
use argwhy::core::dataset::Names;
use argwhy_experts::charging::{self, LIMIT_ROWS, Night, PERIODS, SIGNAL_NAMES};
use ndarray::ArrayView2;
use std::fmt::Write;

pub fn readme(regularization: f64) -> String {
    let mut text = "A depot of electric vans, night by night: made by `argwhy demo charging`.\n\n\
        history.csv    nights shown: what the dispatcher saw, decided and was allowed\n\
        held-out.csv   nights kept back, the same columns\n\
        tomorrow.csv   the next night, no decisions yet, once with its limits and once under \
        each changed limit\n\
        matrix.csv     M, the same every night: a plan u is allowed if M u <= W and \
        lower <= u <= upper\n\
        depot.argwhy   the learned model\n\
        decisions.csv  its plan for each line of tomorrow.csv\n\
        prices.csv     what each limit costs there, in units of the learned objective\n\
        report.html    everything in words and pictures\n\nColumns\n"
        .to_owned();
    for Column { name, meaning } in columns() {
        let _ = writeln!(text, "  {name:<17} {meaning}");
    }
    let _ = write!(text, "\nThe same by hand, in this folder:\n{}\n", by_hand(regularization));
    text
}

/// Nights as a table that `argwhy` reads.
pub fn nights(nights: &[Night], decisions: Option<ArrayView2<'_, f64>>) -> String {
    let names = |prefix: &str, n: usize| (0..n).map(|i| format!("{prefix}_{i}")).collect();
    let header: [Vec<String>; 5] = [
        names("signals", SIGNAL_NAMES.len()),
        names("decisions", if decisions.is_some() { PERIODS } else { 0 }),
        names("lower", PERIODS),
        names("upper", PERIODS),
        names("W", LIMIT_ROWS),
    ];
    let mut text = header.concat().join(",");
    text.push('\n');
    for (i, night) in nights.iter().enumerate() {
        let decided = decisions.map(|d| d.row(i).to_vec()).unwrap_or_default();
        let limits = &night.limits;
        let parts = [&decided[..], &[0.0; PERIODS], &limits.chargers, &limits.bounds()].concat();
        let cells: Vec<String> =
            night.signal().iter().chain(&parts).map(|value| format!("{value}")).collect();
        text.push_str(&cells.join(","));
        text.push('\n');
    }
    text
}

pub fn matrix() -> String {
    let header: Vec<String> = (0..PERIODS).map(|j| format!("M_{j}")).collect();
    let mut text = format!("limit,{}\n", header.join(","));
    for (row, values) in charging::limit_matrix().rows().into_iter().enumerate() {
        let cells: Vec<String> = values.iter().map(|value| format!("{value}")).collect();
        let _ = writeln!(text, "\"{}\",{}", charging::limit_name(row), cells.join(","));
    }
    text
}

/// What limits are called.
pub fn names() -> Names {
    let inequalities = (0..LIMIT_ROWS).map(charging::limit_name).collect();
    Names { inequalities, ..Names::default() }
}
