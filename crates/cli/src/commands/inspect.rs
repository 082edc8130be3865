//! `argwhy inspect`: what a model file holds.

use super::fit::FitResult;
use super::{print, print_json};
use crate::End;
use crate::args::InspectArgs;
use crate::error::CliError;
use argwhy::settings::MemorySize;
use argwhy::{Kernel, Model};
use ndarray::Array2;
use serde::Serialize;
use std::fmt::Write;

/// What `inspect --json` prints: the fields of `fit --json` and more.
#[derive(Serialize)]
struct Inspection {
    #[serde(flatten)]
    fit: FitResult,
    settings: serde_json::Value,
    theta_uu: Vec<Vec<f64>>,
    kernel: Kernel,
    signal_dim: usize,
    decision_set: argwhy::DecisionSet,
    support_rows: Vec<u64>,
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

/// Features of the table of weights.
const SHOWN: usize = 20;

/// The features with the largest weights, a line each.
fn table(model: &Model, weights: &Array2<f64>) -> String {
    let names = model.weight_names();
    let mut order: Vec<usize> = (0..names.len()).collect();
    let size = |k: usize| weights.row(k).dot(&weights.row(k));
    order.sort_by(|&a, &b| size(b).total_cmp(&size(a)));
    let mut text = format!("{:<18}{:<12}", "largest weights", "feature");
    // Writing to a string cannot fail.
    for j in 0..weights.ncols() {
        let _ = write!(text, "{:>12}", format!("u{j}"));
    }
    text.push('\n');
    for &k in order.iter().take(SHOWN) {
        let _ = write!(text, "{:<18}{:<12}", "", names[k]);
        for value in weights.row(k) {
            let _ = write!(text, "{:>12}", format!("{value:.4e}"));
        }
        text.push('\n');
    }
    if order.len() > SHOWN {
        let _ = writeln!(text, "{:<18}and {} more (--json has all)", "", order.len() - SHOWN);
    }
    text
}

pub fn run(args: &InspectArgs) -> Result<End, CliError> {
    let stored = argwhy::load_model(&args.model)?;
    let model = &stored.model;
    let dim = model.decision_dim();
    if args.json {
        let theta_uu =
            (0..dim).map(|i| (0..dim).map(|j| f64::from(u8::from(i == j))).collect()).collect();
        print_json(&Inspection {
            fit: FitResult::of(model, &args.model),
            settings: stored.settings,
            theta_uu,
            kernel: model.kernel.clone(),
            signal_dim: model.features.signal_dim(),
            decision_set: model.set.clone(),
            support_rows: model.support_rows.clone(),
            weights: model.weights.as_ref().map(|weights| {
                let rows = weights.rows().into_iter().map(|row| row.to_vec());
                let named = model.weight_names().into_iter().zip(rows);
                named.map(|(feature, values)| Weights { feature, values }).collect()
            }),
            version: stored.version,
        })?;
        return Ok(End::Done);
    }
    let record = &model.record;
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
    match &model.weights {
        Some(_) => line("samples", &record.n_samples),
        None => {
            line("samples", &format!("{}, {} carry weight", record.n_samples, model.n_support()));
        }
    }
    line(
        "signals",
        &format!("{} → {} features", model.features.signal_dim(), model.features.n_features()),
    );
    match &model.weights {
        Some(weights) => {
            let intercept = weights.nrows() > model.features.n_features();
            let with = if intercept { " and an intercept" } else { "" };
            let what = format!("plain linear, weights of the normalised features{with}");
            line("model", &what);
        }
        None => line("kernel", &model.kernel),
    }
    let limits = model.set.limits();
    for j in 0..dim {
        line(
            if j == 0 { "decision limits" } else { "" },
            &format!("{} ≤ u{j} ≤ {}", limits.lower()[j], limits.upper()[j]),
        );
    }
    line(
        "fit",
        &format!(
            "{} steps{}, {:.2} s, peak memory {}",
            record.iterations,
            match &model.weights {
                Some(_) => String::new(),
                None => format!(", {} kernel products", record.kernel_products),
            },
            record.seconds,
            record.peak_memory_bytes.map_or("unknown".to_owned(), |b| MemorySize(b).to_string()),
        ),
    );
    line("written by", &format!("argwhy {}", stored.version));
    line("settings", &stored.settings);
    if let Some(weights) = &model.weights {
        text.push_str(&table(model, weights));
    }
    print(&text)?;
    Ok(End::Done)
}
