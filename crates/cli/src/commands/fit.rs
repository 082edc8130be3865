//! `argwhy fit`: data → model, with its certificate.

use super::{print_json, resolve};
use crate::args::FitArgs;
use crate::error::CliError;
use crate::progress::{Follow, say};
use crate::{End, config, interrupt, pages};
use argwhy::core::solver::Status;
use argwhy::io::{DataRequest, write_whole};
use argwhy::{Dataset, Fit, Pipeline};
use serde::Serialize;
use std::io;
use std::path::Path;

/// What `fit --json` prints.
#[derive(Serialize)]
pub struct FitResult {
    status: Status,
    n_samples: usize,
    decision_dim: usize,
    feature_dim: usize,
    objective: f64,
    primal: f64,
    dual: f64,
    gap: f64,
    relative_gap: f64,
    iterations: usize,
    kernel_products: usize,
    seconds: f64,
    peak_memory_bytes: Option<u64>,
    model: String,
    n_support: usize,
}

impl FitResult {
    fn new(fit: &Fit, path: &Path) -> Self {
        Self::of(&fit.model, path)
    }

    /// The same fields, from a model read back.
    pub fn of(model: &argwhy::Model, path: &Path) -> Self {
        let (record, certificate) = (&model.record, model.record.certificate);
        Self {
            status: record.status,
            n_samples: record.n_samples,
            decision_dim: model.decision_dim(),
            feature_dim: model.features.n_features(),
            objective: certificate.objective,
            primal: certificate.primal,
            dual: certificate.dual,
            gap: certificate.gap,
            relative_gap: certificate.relative_gap,
            iterations: record.iterations,
            kernel_products: record.kernel_products,
            seconds: record.seconds,
            peak_memory_bytes: record.peak_memory_bytes,
            model: path.display().to_string(),
            n_support: model.n_support(),
        }
    }
}

pub fn run(args: FitArgs) -> Result<End, CliError> {
    let options = config::options(&args)?;
    config::check_solver(&args.options, &options)?;
    let settings = config::settings(&options)?;
    for path in [Some(&args.output), options.report.as_ref()].into_iter().flatten() {
        check_target(path)?;
    }
    interrupt::listen();
    let request = DataRequest {
        signals: options.signals.clone(),
        decisions: options.decisions.clone(),
        want_decisions: true,
    };
    let loaded = argwhy::load(&args.data, &request)?;
    let rows = resolve(options.rows.as_ref(), loaded.signals.nrows())?;
    let decisions = loaded.decisions.unwrap_or_default();
    let data = Dataset::new(loaded.signals, decisions)?;
    let limits = [settings.bounds.is_some(), settings.lower.is_some(), settings.upper.is_some()];
    if !settings.unbounded && !limits.contains(&true) {
        say(
            options.quiet,
            format_args!(
                "note: no limits given, so decisions are unbounded (see --bounds, --lower, --upper)"
            ),
        );
    }

    let mut follow = Follow::new(options.quiet, options.trace.as_deref())?;
    let fitted = Pipeline::new(settings)?.fit_rows(&data, &rows, &mut follow);
    let traced = follow.finish();
    let fit = fitted?;
    fit.save(&args.output)?;
    if let Some(path) = &options.report {
        let page =
            pages::fit::page(&fit, &data, &follow.history, &args.data.display().to_string())?;
        write_whole(path, page.as_bytes())
            .map_err(|source| CliError::Write { path: path.clone(), source })?;
    }
    traced?;
    summarise(&fit, &args.output, options.quiet);
    if options.json {
        print_json(&FitResult::new(&fit, &args.output))?;
    }
    Ok(if fit.outcome.status == Status::Solved { End::Done } else { End::Short })
}

/// Finds out before hours of work whether the result has a place to go.
fn check_target(path: &Path) -> Result<(), CliError> {
    let wrong = |source: io::Error| CliError::Write { path: path.to_path_buf(), source };
    if path.is_dir() {
        return Err(wrong(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder")));
    }
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() && !folder.is_dir() => {
            let message = format!("there is no folder `{}`", folder.display());
            Err(wrong(io::Error::new(io::ErrorKind::NotFound, message)))
        }
        _ => Ok(()),
    }
}

fn summarise(fit: &Fit, path: &Path, quiet: bool) {
    let (record, certificate) = (&fit.model.record, fit.model.record.certificate);
    let verdict = match record.status {
        Status::Solved => "solved".to_owned(),
        Status::MaxIterations => "stopped at the step limit (raise --max-iterations)".to_owned(),
        Status::TimeLimit => "stopped at the time limit (raise --time-limit)".to_owned(),
        Status::Interrupted => "interrupted".to_owned(),
        Status::Stalled => {
            "stalled: no step closes the gap further (try --precision f64 or a larger --tol)"
                .to_owned()
        }
    };
    say(
        quiet,
        format_args!(
            "{verdict}: objective {:.8}, relative gap {:.1e}, {} steps, {} kernel products, {:.2} s",
            certificate.objective,
            certificate.relative_gap,
            record.iterations,
            record.kernel_products,
            record.seconds,
        ),
    );
    if fit.model.kernel.is_shift_invariant() {
        say(
            quiet,
            format_args!(
                "every decision, seen or not, is within {:.1e} of the exact optimum's",
                certificate.prediction_bound(1.0, record.regularization),
            ),
        );
    }
    say(
        quiet,
        format_args!(
            "{} of {} samples carry weight; model saved to {}",
            fit.model.n_support(),
            record.n_samples,
            path.display(),
        ),
    );
}
