//! `argwhy inspect`: what a model file holds.

use super::fit::FitResult;
use super::{print, print_json};
use crate::args::InspectArgs;
use crate::error::CliError;
use crate::{End, pages};
use argwhy::Kernel;
use argwhy::settings::MemorySize;
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
    version: String,
}

pub fn run(args: &InspectArgs) -> Result<End, CliError> {
    let stored = argwhy::load_model(&args.model)?;
    let model = &stored.model;
    let dim = model.decision_dim();
    if args.json {
        let metric = model.metric()?;
        let theta_uu = metric.theta().rows().into_iter().map(|row| row.to_vec()).collect();
        print_json(&Inspection {
            fit: FitResult::of(model, &args.model),
            settings: stored.settings,
            theta_uu,
            kernel: model.kernel.clone(),
            signal_dim: model.features.signal_dim(),
            decision_set: model.set.clone(),
            support_rows: model.support_rows.clone(),
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
    line("samples", &format!("{}, {} carry weight", record.n_samples, model.n_support()));
    line(
        "signals",
        &format!("{} → {} features", model.features.signal_dim(), model.features.n_features()),
    );
    line("kernel", &model.kernel);
    if let Some(theta) = &model.theta {
        for (i, row) in theta.theta_uu.rows().into_iter().enumerate() {
            let entries: Vec<String> = row.iter().map(|v| format!("{v:10.5}")).collect();
            line(if i == 0 { "theta_uu" } else { "" }, &entries.join(" "));
        }
        let bound = pages::theta_bound(model).unwrap_or(0.0);
        line("", &format!("learned to within {bound:.1e}"));
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
            "{} steps, {} kernel products, {:.2} s, peak memory {}",
            record.iterations,
            record.kernel_products,
            record.seconds,
            record.peak_memory_bytes.map_or("unknown".to_owned(), |b| MemorySize(b).to_string()),
        ),
    );
    line("written by", &format!("argwhy {}", stored.version));
    line("settings", &stored.settings);
    print(&text)?;
    Ok(End::Done)
}
