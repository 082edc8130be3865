//! `argwhy fit`: data → model, with its certificate.

mod going_on;
mod path;
mod tune;

use super::names::{self, check_columns};
use super::ray;
use super::targets::check_targets;
use super::{listed, print_json};
use crate::args::{FitArgs, OutputOptions, SourceOptions};
use crate::config::{self, Options};
use crate::error::CliError;
use crate::judged::{self, Judged};
use crate::misfits;
use crate::progress::{Aside, Follow, say};
use crate::words::count;
use crate::{End, interrupt, pages, provenance};
use argwhy::core::dataset::Names;
use argwhy::core::model::PredictionBound;
use argwhy::core::solver::Status;
use argwhy::io::{DataRequest, Groups, Loaded, write_whole};
use argwhy::judging::{Division, HOLDOUT};
use argwhy::settings::MemorySize;
use argwhy::{DataSources, Dataset, Fit, Judging, Pipeline, Provenance, ToFit, Verdict};
use going_on::Way;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// What `fit --json` prints.
#[derive(Serialize)]
pub struct FitResult {
    status: Status,
    /// Why it stopped short, and what to change; none where it is solved.
    reason: Option<String>,
    n_samples: usize,
    decision_dim: usize,
    feature_dim: usize,
    objective: f64,
    primal: f64,
    dual: f64,
    gap: f64,
    relative_gap: f64,
    rounding: f64,
    regularization: f64,
    iterations: usize,
    kernel_products: usize,
    seconds: f64,
    peak_memory_bytes: Option<u64>,
    /// Where the model is; none where a fit that reached nothing left the file alone.
    model: Option<String>,
    n_support: usize,
}

impl FitResult {
    /// The same of a model that was not written.
    fn unwritten(self) -> Self {
        Self { model: None, ..self }
    }

    pub fn new(fit: &Fit, path: &Path) -> Self {
        Self::of(&fit.model, path)
    }

    /// The same fields, from a model read back.
    pub fn of(model: &argwhy::Model, path: &Path) -> Self {
        let (record, certificate) = (&model.record, model.record.certificate);
        Self {
            status: record.status,
            reason: (record.status != Status::Solved).then(|| format!("{:#}", record.verdict())),
            n_samples: record.n_samples,
            decision_dim: model.decision_dim(),
            feature_dim: model.features.n_features(),
            objective: certificate.objective,
            primal: certificate.primal,
            dual: certificate.dual,
            gap: certificate.gap,
            relative_gap: certificate.relative_gap,
            rounding: certificate.rounding,
            regularization: record.regularization,
            iterations: record.iterations,
            kernel_products: record.kernel_products,
            seconds: record.seconds,
            peak_memory_bytes: record.peak_memory_bytes,
            model: Some(path.display().to_string()),
            n_support: model.n_support(),
        }
    }
}

pub fn run(args: FitArgs) -> Result<End, CliError> {
    let options = config::options(&args)?;
    let Options { settings, source, outputs, .. } = &options;
    let models = path::models(&args.output, outputs.path.as_ref());
    check_files(&args, &options, &models)?;
    interrupt::listen();
    let way = Way::new(&args.output, outputs)?;
    if !outputs.tune {
        way.hurry();
    }
    let episodes = (judges(outputs) || outputs.tune) && source.order.is_none();
    let request = DataRequest { episodes, ..config::request(source, settings.seed) };
    check_columns(&request.lower, &request.upper, settings.unbounded)?;
    let cluster = ray::cluster(&outputs.ray, settings, (&args.data, source))?;
    let pipeline = ray::pipeline(settings, cluster.as_ref())?;
    let training_rows = config::training_rows(source);
    let to_fit = if outputs.tune {
        // What is tuned may have other features.
        pipeline.load_all_to_fit(&args.data, &request, training_rows)?
    } else {
        pipeline.load_to_fit(&args.data, &request, training_rows)?
    };
    let numbers = to_fit.numbers();
    let ToFit { mut loaded, rows, features } = to_fit;
    let (options, limits) = options.clone().with_limits_of(&loaded)?;
    let Options { settings, outputs, notes, given, .. } = &options;
    let limited = limits.is_some().then(|| ray::pipeline(settings, cluster.as_ref()));
    let mut pipeline = limited.transpose()?.unwrap_or(pipeline);
    if let Some(features) = features {
        pipeline = pipeline.with_features(features);
    }
    let told = [limits, names::prepared(&loaded, &request)];
    let sources = DataSources {
        provenance: provenance::of(&args.data),
        ..names::with_preparation(options.sources(), &loaded)
    };
    let judging = judging(&options, loaded.groups.take())?;
    let unread = std::mem::take(&mut loaded.unread);
    let data = dataset(loaded, numbers, source)?;
    let mut follow = Follow::new(outputs.quiet, outputs.trace.as_deref())?;
    if let Some(cluster) = &cluster {
        follow.tells(cluster.words());
    }
    let unread = (!unread.is_empty())
        .then(|| format!("the data has {}, not used without --constraints", listed(&unread)));
    let notes = unread.iter().chain(notes).chain(told.iter().flatten());
    notes.chain(&way.note()).for_each(|note| follow.note(note));
    if let Some(path) = &outputs.path {
        let fitted =
            path::run(&pipeline, (&data, &rows), (&path.0, &models), &sources, &mut follow);
        interrupt::ended();
        let traced = follow.finish();
        let (results, trouble) = fitted?;
        let end = path::tell(&results, outputs.quiet, outputs.json)?;
        return trouble.map_or_else(|| traced.map(|()| end), Err);
    }
    let pipeline = if outputs.tune {
        let (division, quiet) = (&judging.division, outputs.quiet);
        let chosen = tune::chosen((&data, &rows), given, division, cluster.as_ref(), quiet)?;
        ray::pipeline(&chosen, cluster.as_ref())?
    } else {
        pipeline
    };
    let pipeline =
        if outputs.keep_data && !outputs.no_factor { pipeline.leaving_factor() } else { pipeline };
    way.hurry();
    let started = way.start.is_some();
    let fitted = way.go(&pipeline).fit_rows(&data, &rows, &mut follow);
    interrupt::ended();
    let traced = follow.finish();
    let mut fit = with_sources(fitted?, &sources);
    let kept = !started && nothing_reached(&fit) && args.output.exists();
    if !kept {
        save(&fit, &args.output, outputs.keep_data.then_some(&data))?;
    }
    summarise(&fit, (&args.output, kept), outputs.quiet);
    if !kept {
        tell_kept(&fit, outputs.quiet);
    }
    let mut aside = Aside::new(outputs.quiet, "judging it on rows kept aside");
    let verdict = pipeline.judge(&data, &fit, &judging, &mut aside);
    drop(aside);
    if judges(outputs) {
        learn_aside(&mut fit, &verdict, &pipeline, &data);
        if !kept {
            save(&fit, &args.output, outputs.keep_data.then_some(&data))?;
        }
        tell(&fit, &verdict, outputs.quiet);
    }
    if let Some(path) = &outputs.report {
        let source = args.data.display().to_string();
        let page = pages::fit::page((&fit, &verdict), &data, &follow.history, &source)?;
        write_whole(path, page.as_bytes())
            .map_err(|source| CliError::Write { path: path.clone(), source })?;
    }
    if outputs.json {
        let result = FitResult::new(&fit, &args.output);
        print_result(if kept { result.unwritten() } else { result }, &fit, &verdict)?;
    }
    traced?;
    Ok(if fit.outcome.status == Status::Solved { End::Done } else { End::Short })
}

/// What was read, put together.
fn dataset(
    loaded: Loaded,
    numbers: Option<Vec<usize>>,
    source: &SourceOptions,
) -> Result<Dataset, CliError> {
    let decisions = loaded.decisions.unwrap_or_default();
    let units = names::units(source.units.as_deref().unwrap_or_default())?;
    let names = Names { units, ..loaded.names };
    let mut data = Dataset::new(loaded.signals, decisions)?.with_names(names)?;
    if let Some(numbers) = numbers {
        data = data.with_numbers(numbers)?;
    }
    if let Some(constraints) = loaded.constraints {
        let named = data.names().clone();
        let with = data.with_constraints(constraints);
        data = with.map_err(|error| argwhy::Error::from(error).named(&named))?;
    }
    if let Some(weights) = loaded.weights {
        data = data.with_weights(weights)?;
    }
    Ok(data)
}

/// Refuses files that cannot be written, now and not after hours of work.
fn check_files(args: &FitArgs, options: &Options, models: &[PathBuf]) -> Result<(), CliError> {
    let Options { source, outputs, .. } = options;
    let file =
        |name: &'_ Option<String>| name.as_ref().map(PathBuf::from).filter(|path| path.is_file());
    let beside = [file(&source.decisions), file(&source.weights)];
    let (matrix, matrix_eq) = (source.matrix.as_deref(), source.matrix_eq.as_deref());
    let from = outputs.from.as_deref();
    let inputs = [Some(args.data.as_path()), args.config.as_deref(), matrix, matrix_eq, from];
    let inputs = inputs.into_iter().chain(beside.iter().map(Option::as_deref)).flatten();
    let wholes = models.iter().map(PathBuf::as_path).chain(outputs.report.as_deref());
    let wholes = wholes.chain(outputs.checkpoint.as_deref());
    if outputs.path.is_some() && outputs.report.is_some() {
        return Err(CliError::Usage(
            "--report is about one fit; leave it out with --path, and fit the regularization you \
             choose with -k and --report"
                .to_owned(),
        ));
    }
    check_targets(
        &inputs.collect::<Vec<_>>(),
        &wholes.collect::<Vec<_>>(),
        outputs.trace.as_deref().as_slice(),
    )
}

/// What `fit --json` prints of a fit that was judged.
#[derive(Serialize)]
struct WithVerdict<'a> {
    #[serde(flatten)]
    result: FitResult,
    #[serde(flatten)]
    verdict: Judged<'a>,
    /// Rows that fit worst; none where that was not looked for.
    misfits: Option<misfits::Listed>,
}

/// One JSON object about a fit that was judged.
pub fn print_result(result: FitResult, fit: &Fit, verdict: &Verdict) -> Result<(), CliError> {
    let misfits = misfits::listed(fit.model.misfits.as_ref(), &fit.model.names);
    print_json(&WithVerdict { result, verdict: Judged::from(verdict), misfits })
}

/// Writes the model, with its rows where these are kept. Where that fails, hours of work are not
/// lost: the model goes to the folder for temporary files, and the error says so.
pub fn save(fit: &Fit, path: &Path, data: Option<&Dataset>) -> Result<(), CliError> {
    match save_somewhere(fit, path, data)? {
        Saved::There => Ok(()),
        Saved::Elsewhere { source, path } => {
            Err(CliError::Elsewhere { source: Box::new(source), path })
        }
    }
}

/// Where a model was written.
enum Saved {
    There,
    /// In the folder for temporary files.
    Elsewhere {
        /// Why not where it should be.
        source: argwhy::Error,
        path: PathBuf,
    },
}

fn save_somewhere(fit: &Fit, path: &Path, data: Option<&Dataset>) -> Result<Saved, argwhy::Error> {
    let write = |path: &Path| match data {
        Some(data) => fit.save_with_data(path, data),
        None => fit.save(path),
    };
    let Err(source) = write(path) else { return Ok(Saved::There) };
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = format!("{stem}-{}.argwhy", std::process::id());
    let elsewhere = std::env::temp_dir().join(name);
    match write(&elsewhere) {
        Ok(()) => Ok(Saved::Elsewhere { source, path: elsewhere }),
        Err(_) => Err(source),
    }
}

/// What rows kept aside, or left out, say goes into the model: ranges, and rows that do not fit.
pub fn learn_aside(fit: &mut Fit, verdict: &Verdict, pipeline: &Pipeline, data: &Dataset) {
    let judged = verdict.judgement();
    fit.model.calibration = judged.and_then(|judged| judged.calibration.clone());
    if fit.outcome.status == Status::Solved {
        fit.model.misfits = pipeline.misfits(data, &fit.rows, &fit.model, judged);
    }
}

fn judges(outputs: &OutputOptions) -> bool {
    outputs.holdout.unwrap_or(HOLDOUT) > 0.0
}

/// How the fit is to be judged, refused before it starts where it cannot be.
fn judging(options: &Options, groups: Option<Groups>) -> Result<Judging, CliError> {
    let in_time = config::in_time(&options.source)?;
    let divides = judges(&options.outputs) || options.outputs.tune;
    let division = if divides { Division::of(groups, in_time)? } else { Division::Rows };
    let holdout = options.outputs.holdout.unwrap_or(HOLDOUT);
    let judging = Judging { division, holdout };
    judging.validate()?;
    Ok(judging)
}

/// What the model's file has that may be a surprise.
pub fn tell_kept(fit: &Fit, quiet: bool) {
    if let Some(factor) = &fit.outcome.factor {
        let size = MemorySize(factor.stored_bytes());
        say(
            quiet,
            format_args!("{size} of it make the next update quicker; --no-factor leaves them out"),
        );
    }
}

/// The verdict on stderr, and rows that do not fit.
pub fn tell(fit: &Fit, verdict: &Verdict, quiet: bool) {
    let table = |judgement| judged::table(judgement, &fit.model.names);
    for line in verdict.judgement().map(table).unwrap_or_default() {
        say(quiet, format_args!("{line}"));
    }
    say(quiet, format_args!("verdict: {}", judged::told(fit.outcome.status, verdict).sentence));
    for line in misfits::told(&fit.model) {
        say(quiet, format_args!("{line}"));
    }
}

/// The fit with where its data came from, as far as only the loader knows.
fn with_sources(mut fit: Fit, sources: &DataSources) -> Fit {
    // Limits from named columns alone are no arrays of constraints.
    let names = &fit.model.names;
    let by_column = !(names.lower.is_empty() && names.upper.is_empty());
    let constraints = sources.constraints || (fit.sources.constraints && !by_column);
    let own = fit.sources.provenance;
    let told = sources.provenance.clone();
    let provenance = Provenance { rows: own.rows, versions: own.versions, ..told };
    fit.sources = DataSources { constraints, provenance, ..sources.clone() };
    fit
}

/// Whether it was stopped before its first step: such a model decides nothing, and what is there
/// already is better.
fn nothing_reached(fit: &Fit) -> bool {
    fit.outcome.status != Status::Solved && fit.model.record.iterations == 0
}

/// What came of it. `kept` where the file holds what it held before.
pub fn summarise(fit: &Fit, (path, kept): (&Path, bool), quiet: bool) {
    let (record, certificate) = (&fit.model.record, fit.model.record.certificate);
    let products = match fit.model.feature_weights() {
        Some(_) => String::new(),
        None => format!(", {}", count(record.kernel_products, "kernel product")),
    };
    say(
        quiet,
        format_args!(
            "{:#}: objective {:.8}, relative gap {:.1e}, {}{products}, {:.2} s",
            fit.verdict(),
            certificate.objective,
            certificate.relative_gap,
            count(record.iterations, "step"),
            record.seconds,
        ),
    );
    if let Some(PredictionBound { distance, everywhere }) = fit.model.prediction_bound() {
        let which = if everywhere {
            "every decision, seen or not, is"
        } else {
            "decisions in situations it learned from are"
        };
        say(
            quiet,
            format_args!(
                "solver error: {which} within {distance:.1e} of what the exact minimiser would \
                 decide (not a distance from the expert)"
            ),
        );
    }
    if let (Some(theta), Some(bound)) = (&fit.model.theta, fit.model.theta_bound()) {
        let largest = theta.theta_uu.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        say(
            quiet,
            format_args!(
                "solver error: theta_uu is within {bound:.1e} of the exact minimiser's (largest \
                 entry {largest:.3}; not a distance from the expert's)"
            ),
        );
        if bound > 0.1 * largest {
            say(
                quiet,
                format_args!(
                    "note: that is coarse, because k = {:e} is small for this gap; for a sharper \
                     theta_uu lower --tol or raise -k",
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
    let size = match fit.model.feature_weights() {
        Some(weights) => format!("{} × {} weights", weights.values.nrows(), weights.values.ncols()),
        None => format!("{} of {} samples carry weight", fit.model.n_support(), record.n_samples),
    };
    let path = path.display();
    if kept {
        say(
            quiet,
            format_args!("{size}: stopped before the first step, so {path} stays as it was"),
        );
    } else {
        say(quiet, format_args!("{size}; model saved to {path}"));
    }
}
