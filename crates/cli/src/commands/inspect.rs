//! `argwhy inspect`: what a model file holds.

use super::fit::FitResult;
use super::targets::check_targets;
use super::{print, print_json};
use crate::End;
use crate::args::InspectArgs;
use crate::error::CliError;
use crate::misfits;
use crate::prices::{Held, by_limit};
use crate::words::count;
use argwhy::core::dataset::Names;
use argwhy::core::model::{Calibration, Law};
use argwhy::io::{check_prices_ending, write_prices};
use argwhy::settings::MemorySize;
use argwhy::{Kernel, Model, Provenance, StoredModel, sources};
use ndarray::Array2;
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;

/// What `inspect --json` prints: the fields of `fit --json` and more.
#[derive(Serialize)]
struct Inspection {
    #[serde(flatten)]
    fit: FitResult,
    settings: serde_json::Value,
    /// How the model came about; empty in models of earlier versions.
    provenance: Provenance,
    /// What signals, decisions and limits are called.
    names: Names,
    theta_uu: Vec<Vec<f64>>,
    kernel: Kernel,
    signal_dim: usize,
    decision_set: argwhy::DecisionSet,
    support_rows: Vec<u64>,
    /// Whether decisions need constraints that come with their data.
    constrained: bool,
    /// Rows kept aside that ranges rest on; none where the model has no ranges.
    range_rows: Option<usize>,
    /// Rows that fit worst; none where that was not looked for.
    misfits: Option<misfits::Listed>,
    /// Limits that hold training decisions, the most frequent first.
    prices: Vec<Held>,
    /// Of a plain linear model: the weights of each feature, one a decision dimension.
    #[serde(skip_serializing_if = "Option::is_none")]
    weights: Option<Vec<Weights>>,
    version: String,
}

#[derive(Serialize)]
struct Weights {
    feature: String,
    values: Vec<f64>,
}

fn named(model: &Model, weights: &Array2<f64>) -> Vec<Weights> {
    let rows = weights.rows().into_iter().map(|row| row.to_vec());
    let named = model.weight_names().into_iter().zip(rows);
    named.map(|(feature, values)| Weights { feature, values }).collect()
}

fn samples(model: &Model) -> String {
    let n_samples = model.record.n_samples;
    match model.feature_weights() {
        Some(_) => n_samples.to_string(),
        None => format!("{n_samples}, {} carry weight", model.n_support()),
    }
}

/// What kind of function the model is.
fn kind(model: &Model) -> String {
    match &model.law {
        Law::Primal(weights) if weights.intercept => {
            "plain linear, weights of the normalised features and an intercept".to_owned()
        }
        Law::Primal(_) => "plain linear, weights of the normalised features".to_owned(),
        Law::Kernel(support) => support.kernel.to_string(),
    }
}

/// The features with the largest weights, a line each.
fn weights_table(model: &Model, weights: &Array2<f64>) -> String {
    let names = model.weight_names();
    let mut order: Vec<usize> = (0..names.len()).collect();
    let size = |k: usize| weights.row(k).dot(&weights.row(k));
    order.sort_by(|&a, &b| size(b).total_cmp(&size(a)));
    let mut text = format!("{:<18}{:<12}", "largest weights", "feature");
    // Writing to a string cannot fail.
    for j in 0..weights.ncols() {
        let _ = write!(text, " {:>11}", model.names.decision(j));
    }
    text.push('\n');
    for &k in order.iter().take(LISTED) {
        let _ = write!(text, "{:<18}{:<12}", "", names[k]);
        for value in weights.row(k) {
            let _ = write!(text, "{:>12}", format!("{value:.4e}"));
        }
        text.push('\n');
    }
    if order.len() > LISTED {
        let _ = writeln!(text, "{:<18}and {} more (--json has all)", "", order.len() - LISTED);
    }
    text
}

/// Limits, or weights, listed for people.
const LISTED: usize = 20;

/// Everything that `--json` prints.
fn inspection(path: &Path, stored: &StoredModel, held: Vec<Held>) -> Result<Inspection, CliError> {
    let model = &stored.model;
    let metric = model.metric()?;
    let theta_uu = metric.theta().rows().into_iter().map(|row| row.to_vec()).collect();
    Ok(Inspection {
        fit: FitResult::of(model, path),
        settings: settings_alone(stored),
        provenance: provenance(stored),
        names: model.names.clone(),
        theta_uu,
        kernel: model.kernel(),
        signal_dim: model.features.signal_dim(),
        decision_set: model.set.clone(),
        support_rows: model.support().map_or_else(Vec::new, |e| e.rows.clone()),
        weights: model.feature_weights().map(|weights| named(model, &weights.values)),
        constrained: model.constrained,
        misfits: misfits::listed(model.misfits.as_ref(), &model.names),
        range_rows: model.calibration.as_ref().map(Calibration::n_rows),
        prices: held,
        version: stored.version.clone(),
    })
}

pub fn run(args: &InspectArgs) -> Result<End, CliError> {
    if let Some(path) = &args.prices {
        check_prices_ending(path)?;
        check_targets(&[&args.model], &[path], &[])?;
    }
    let stored = argwhy::load_model(&args.model)?;
    let model = &stored.model;
    if let Some(path) = &args.prices {
        let Some(support) = model.support() else {
            return Err(CliError::Usage(format!(
                "a plain model keeps no prices of its training samples; `argwhy predict {} DATA \
                 --prices FILE` computes them",
                args.model.display()
            )));
        };
        write_prices(path, &support.prices, &model.names)?;
    }
    let held = model.support().map_or_else(Vec::new, |support| {
        by_limit(&support.prices, &model.names, model.record.n_samples)
    });
    if args.json {
        print_json(&inspection(&args.model, &stored, held)?)?;
        return Ok(End::Done);
    }
    let mut text = about(&stored);
    if let Some(weights) = model.feature_weights() {
        text.push_str(&weights_table(model, &weights.values));
    }
    text.push_str(&misfits_table(model));
    if !held.is_empty() {
        text.push_str(&table(&held));
    }
    print(&text)?;
    Ok(End::Done)
}

/// A model in lines of a name and a value.
fn about(stored: &StoredModel) -> String {
    let model = &stored.model;
    let (record, names) = (&model.record, &model.names);
    let c = record.certificate;
    let mut text = String::new();
    let mut line = |name: &str, value: &dyn std::fmt::Display| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name:<18}{value}");
    };
    line("status", &record.status.name());
    line("objective", &format!("{:.10}", c.objective));
    line("primal, dual", &format!("{:.10}, {:.10}", c.primal, c.dual));
    line("gap", &format!("{:.2e} (relative {:.2e})", c.gap, c.relative_gap));
    line("regularization", &record.regularization);
    line("samples", &samples(model));
    line(
        "signals",
        &format!("{} → {} features", model.features.signal_dim(), model.features.n_features()),
    );
    line(if model.feature_weights().is_some() { "model" } else { "kernel" }, &kind(model));
    if let Some(theta) = &model.theta {
        for (i, row) in theta.theta_uu.rows().into_iter().enumerate() {
            let entries: Vec<String> = row.iter().map(|v| format!("{v:10.5}")).collect();
            line(if i == 0 { "theta_uu" } else { "" }, &entries.join(" "));
        }
        let bound = model.theta_bound().unwrap_or(0.0);
        line("", &format!("learned to within {bound:.1e} of the exact minimiser's"));
    }
    let limits = model.set.limits();
    for j in 0..model.decision_dim() {
        line(
            if j == 0 { "decision limits" } else { "" },
            &format!(
                "{} ≤ {} ≤ {}",
                limits.lower()[j],
                names.units.titled(&names.decision(j)),
                limits.upper()[j]
            ),
        );
    }
    if model.constrained {
        line("constraints", &constraints(names));
    }
    let listed = [("signal names", &names.signals), ("decision names", &names.decisions)];
    for (role, listed) in listed.iter().filter(|(_, listed)| !listed.is_empty()) {
        let titled: Vec<String> = listed.iter().map(|name| names.units.titled(name)).collect();
        line(role, &titled.join(", "));
    }
    line(
        "fit",
        &format!(
            "{}{}, {:.2} s, peak memory {}",
            count(record.iterations, "step"),
            match model.feature_weights() {
                Some(_) => String::new(),
                None => format!(", {}", count(record.kernel_products, "kernel product")),
            },
            record.seconds,
            record.peak_memory_bytes.map_or("unknown".to_owned(), |b| MemorySize(b).to_string()),
        ),
    );
    line("ranges", &ranges(model));
    line("written by", &format!("argwhy {}", stored.version));
    if let Some(kept) = &stored.kept {
        line("keeps its data", &format!("{} (for `argwhy update`)", count(kept.rows.len(), "row")));
    }
    let provenance = provenance(stored);
    let (of, versions) = (|text: &Option<String>| text.clone(), &provenance.versions);
    let by = versions.iter().map(|(name, version)| format!("{name} {version}"));
    let by = Some(by.collect::<Vec<_>>().join(", ")).filter(|by| !by.is_empty());
    let known = [
        ("learned from", of(&provenance.source)),
        ("hash of its rows", of(&provenance.rows)),
        ("command", of(&provenance.command)),
        ("fitted by", by),
    ];
    known.iter().for_each(|(name, text)| text.iter().for_each(|text| line(name, text)));
    line("settings", &settings_alone(stored));
    text
}

/// How the model came about.
fn provenance(stored: &StoredModel) -> Provenance {
    sources::from_stored(&stored.settings).map(|(_, from)| from.provenance).unwrap_or_default()
}

/// What the file says of its settings, less how the model came about.
fn settings_alone(stored: &StoredModel) -> serde_json::Value {
    let mut settings = stored.settings.clone();
    if let Some(entries) = settings.as_object_mut() {
        entries.remove("provenance");
    }
    settings
}

/// Rows that fit worst, a line each.
fn misfits_table(model: &Model) -> String {
    let mut text = String::new();
    if let Some(found) = model.misfits.as_ref().filter(|found| !found.rows.is_empty()) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "\nrows that fit worst, {}", misfits::how(found.by));
        for misfit in &found.rows {
            let _ = writeln!(text, "  {}", misfits::line(misfit, &model.names));
        }
    }
    text
}

/// What ranges of decisions rest on.
fn ranges(model: &Model) -> String {
    match &model.calibration {
        Some(calibration) => format!("from {} kept aside", count(calibration.n_rows(), "row")),
        None => "none: no rows were kept aside (fit with --holdout)".to_owned(),
    }
}

/// Where the constraints of a row come from.
fn constraints(names: &Names) -> String {
    let columns: Vec<String> = [("lower", &names.lower), ("upper", &names.upper)]
        .into_iter()
        .filter(|(_, columns)| !columns.is_empty())
        .map(|(side, columns)| {
            let named: Vec<&str> =
                columns.iter().filter(|name| !name.is_empty()).map(String::as_str).collect();
            format!("{side} limits from the columns {}", named.join(", "))
        })
        .collect();
    if columns.is_empty() {
        return "come with the data (M, W, M_eq, W_eq, lower, upper)".to_owned();
    }
    format!("come with the data: {}", columns.join("; "))
}

/// Which limits hold training decisions, and at what price.
fn table(held: &[Held]) -> String {
    let mut text = format!(
        "\n{:<18}{:>9}{:>9}{:>14}{:>14}\n",
        "limit", "rows", "share", "mean price", "largest"
    );
    for h in held.iter().take(LISTED) {
        let _ = writeln!(
            text,
            "{:<18}{:>9}{:>7.1} %{:>14.6}{:>14.6}",
            h.limit,
            h.rows,
            100.0 * h.share,
            h.mean_price,
            h.largest_price
        );
    }
    if let Some(more) = held.len().checked_sub(LISTED).filter(|more| *more > 0) {
        let _ = writeln!(text, "and {more} more (--json has all)");
    }
    text.push_str(
        "Rows whose decision a limit holds; its price is what one more unit of it would be worth \
         to the expert.\n",
    );
    text
}
