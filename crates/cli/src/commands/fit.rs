//! `argwhy fit`: data → model, with its certificate.

mod path;

use super::{check_targets, names, print_json, resolve};
use crate::args::FitArgs;
use crate::error::CliError;
use crate::progress::{Follow, say};
use crate::{End, config, interrupt, pages};
use argwhy::core::solver::Status;
use argwhy::io::{DataRequest, write_whole};
use argwhy::{Dataset, Fit, Pipeline};
use serde::Serialize;
use std::path::{Path, PathBuf};

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
    regularization: f64,
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
            regularization: record.regularization,
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
    // Found out now, not after hours of work.
    let second = options.decisions.as_deref().map(Path::new).filter(|path| path.is_file());
    let (matrix, matrix_eq) = (options.matrix.as_deref(), options.matrix_eq.as_deref());
    let inputs = [Some(args.data.as_path()), args.config.as_deref(), second, matrix, matrix_eq];
    let models = path::models(&args.output, options.path.as_ref());
    let wholes = models.iter().map(PathBuf::as_path).chain(options.report.as_deref());
    if options.path.is_some() && options.report.is_some() {
        return Err(CliError::Usage(
            "--report is about one fit; leave it out with --path, and fit the regularization you choose with -k and --report"
                .to_owned(),
        ));
    }
    check_targets(
        &inputs.into_iter().flatten().collect::<Vec<_>>(),
        &wholes.collect::<Vec<_>>(),
        options.trace.as_deref().as_slice(),
    )?;
    interrupt::listen();
    let request = DataRequest {
        signals: options.signals.clone(),
        decisions: options.decisions.clone(),
        constraints: options.constraints,
        matrix: options.matrix.clone(),
        matrix_eq: options.matrix_eq.clone(),
        weights: options.weights.clone(),
        ..DataRequest::default()
    };
    let loaded = argwhy::load_for_fit(&args.data, &request, &settings, options.rows.as_ref())?;
    let rows = resolve(options.rows.as_ref(), loaded.signals.nrows())?;
    let decisions = loaded.decisions.unwrap_or_default();
    let mut data = Dataset::new(loaded.signals, decisions)?;
    if let Some(constraints) = loaded.constraints {
        data = data.with_constraints(constraints)?;
    }
    if let Some(weights) = loaded.weights {
        data = data.with_weights(weights)?;
    }
    let mut follow = Follow::new(options.quiet, options.trace.as_deref())?;
    if settings.limits_unsaid(data.constraints().is_some()) {
        follow.note("no limits given, so decisions are unbounded (see --bounds, --lower, --upper)");
    }
    if !loaded.unread.is_empty() {
        follow.note(&format!(
            "the data has {}, not used without --constraints",
            names(&loaded.unread)
        ));
    }
    let pipeline = Pipeline::new(settings)?;
    if let Some(path) = &options.path {
        let fitted = path::run(&pipeline, (&data, &rows), &path.0, &models, &mut follow);
        let traced = follow.finish();
        let end = path::tell(&fitted?, options.quiet, options.json)?;
        return traced.map(|()| end);
    }
    let fitted = pipeline.fit_rows(&data, &rows, &mut follow);
    let traced = follow.finish();
    let fit = fitted?;
    fit.save(&args.output)?;
    if let Some(path) = &options.report {
        let page =
            pages::fit::page(&fit, &data, &follow.history, &args.data.display().to_string())?;
        write_whole(path, page.as_bytes())
            .map_err(|source| CliError::Write { path: path.clone(), source })?;
    }
    summarise(&fit, &args.output, options.quiet);
    if options.json {
        print_json(&FitResult::new(&fit, &args.output))?;
    }
    traced?;
    Ok(if fit.outcome.status == Status::Solved { End::Done } else { End::Short })
}

fn summarise(fit: &Fit, path: &Path, quiet: bool) {
    let (record, certificate) = (&fit.model.record, fit.model.record.certificate);
    let products = match &fit.model.weights {
        Some(_) => String::new(),
        None => format!(", {} kernel products", record.kernel_products),
    };
    say(
        quiet,
        format_args!(
            "{}: objective {:.8}, relative gap {:.1e}, {} steps{products}, {:.2} s",
            fit.verdict(),
            certificate.objective,
            certificate.relative_gap,
            record.iterations,
            record.seconds,
        ),
    );
    if let Some(bound) = pages::prediction_bound(&fit.model) {
        say(
            quiet,
            format_args!(
                "every decision, seen or not, is within {bound:.1e} of the exact optimum's"
            ),
        );
    }
    if let (Some(theta), Some(bound)) = (&fit.model.theta, pages::theta_bound(&fit.model)) {
        let largest = theta.theta_uu.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        say(
            quiet,
            format_args!("theta_uu is learned to within {bound:.1e} (largest entry {largest:.3})"),
        );
        if bound > 0.1 * largest {
            say(
                quiet,
                format_args!(
                    "note: that is coarse, because k = {:e} is small for this gap; for a sharper theta_uu lower --tol or raise -k",
                    record.regularization
                ),
            );
        }
    }
    if fit.outcome.rescued_decisions > 0 {
        say(
            quiet,
            format_args!(
                "note: {} small quadratic programs were handed to the interior-point fallback",
                fit.outcome.rescued_decisions
            ),
        );
    }
    let size = match &fit.model.weights {
        Some(weights) => format!("{} × {} weights", weights.nrows(), weights.ncols()),
        None => format!("{} of {} samples carry weight", fit.model.n_support(), record.n_samples),
    };
    say(quiet, format_args!("{size}; model saved to {}", path.display()));
}
