//! `argwhy ablate`: what each part of SSO is worth, against the exact optimum.

use super::targets::check_folder;
use super::{print, resolve};
use crate::args::AblateArgs;
use crate::error::CliError;
use crate::findings::ablation::{Ablation, Cost, GAPS, Variant, reached};
use crate::progress::say;
use crate::{End, interrupt, pages};
use argwhy::core::features::Expansion;
use argwhy::core::solver::sso::{Initialization, Selection};
use argwhy::core::solver::{Iteration, Observer, Status};
use argwhy::io::{DataRequest, write_whole};
use argwhy::settings::{KernelKind, Numbers, SolverKind, TrendChoice};
use argwhy::{Dataset, FitSettings, Pipeline, Progress};
use std::ffi::OsStr;
use std::fmt::Write;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The paper's on most of its data, where none is given.
const REGULARIZATION: f64 = 1e-6;

const VARIANTS: [Variant; 9] = [
    variant("paper", Selection::Paper, Initialization::PaperWarmUp, true),
    variant("paper, no heuristic (cyclic)", Selection::Cyclic, Initialization::PaperWarmUp, true),
    variant("paper, no heuristic (random)", Selection::Random, Initialization::PaperWarmUp, true),
    variant("paper, no warm-up (expert)", Selection::Paper, Initialization::Expert, true),
    variant("paper, no warm-up (zero)", Selection::Paper, Initialization::Zero, true),
    variant("violation", Selection::Violation, Initialization::WarmUp, false),
    variant("violation, paper's warm-up", Selection::Violation, Initialization::PaperWarmUp, false),
    variant("violation, expert", Selection::Violation, Initialization::Expert, false),
    variant("violation, zero", Selection::Violation, Initialization::Zero, false),
];

const fn variant(
    name: &'static str,
    selection: Selection,
    init: Initialization,
    of_paper: bool,
) -> Variant {
    Variant { name, selection, init, of_paper }
}

/// Keeps every step, its time counted from before features and kernel values were computed.
struct Record {
    start: Instant,
    steps: Vec<Iteration>,
}

impl Observer for Record {
    fn on_iteration(&mut self, iteration: &Iteration) -> ControlFlow<()> {
        let seconds = self.start.elapsed().as_secs_f64();
        self.steps.push(Iteration { seconds, ..*iteration });
        self.poll()
    }
    fn poll(&mut self) -> ControlFlow<()> {
        if interrupt::asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl Progress for Record {}

pub fn run(args: &AblateArgs) -> Result<End, CliError> {
    let regularizations = regularizations(args)?;
    let variants: Vec<&'static Variant> = VARIANTS
        .iter()
        .filter(|v| args.only.as_ref().is_none_or(|text| v.name.contains(text.as_str())))
        .collect();
    if variants.is_empty() {
        let names: Vec<&str> = VARIANTS.iter().map(|v| v.name).collect();
        let found = args.only.as_deref().unwrap_or_default();
        return Err(CliError::Usage(format!(
            "no variant has '{found}' in its name; there are: {}",
            names.join("; ")
        )));
    }
    if args.seeds == 0 {
        return Err(CliError::Usage(
            "0 seeds leave nothing to run; 1 or more are needed".to_owned(),
        ));
    }
    let names = names(&args.data);
    let inputs: Vec<&Path> = args.data.iter().map(PathBuf::as_path).collect();
    let _folder = check_folder(&args.output, &outputs(&names, &variants, args.seeds), &inputs)?;
    interrupt::listen();
    let mut ablations = Vec::new();
    for ((path, name), &k) in args.data.iter().zip(&names).zip(&regularizations) {
        if interrupt::asked() {
            break;
        }
        ablations.extend(ablate(args, (path, name), k, &variants)?);
    }
    if ablations.is_empty() {
        return Ok(End::Short);
    }
    let table = table(&ablations);
    write(&args.output.join("table.md"), &table)?;
    write(&args.output.join("report.html"), &pages::ablate::page(&ablations, args)?)?;
    print(&table)?;
    say(
        args.quiet,
        format_args!("traces, table.md and report.html are in {}", args.output.display()),
    );
    Ok(if interrupt::asked() { End::Short } else { End::Done })
}

/// A name for each data set, no two alike: the file's, with its folder and its ending where those
/// are needed, at last a number.
fn names(data: &[PathBuf]) -> Vec<String> {
    let text = |part: Option<&OsStr>| part.map(|part| part.to_string_lossy().into_owned());
    let stem = |path: &Path| text(path.file_stem()).unwrap_or_else(|| "data".to_owned());
    let with_folder = |path: &Path| {
        let folder = path.parent().and_then(|folder| text(folder.file_name()));
        folder.map_or_else(|| stem(path), |folder| format!("{folder}-{}", stem(path)))
    };
    let with_ending = |path: &Path| {
        let ending = text(path.extension()).unwrap_or_default();
        format!("{}-{ending}", with_folder(path))
    };
    let ways: [&dyn Fn(&Path) -> String; 3] = [&stem, &with_folder, &with_ending];
    let mut names = Vec::new();
    for path in data {
        // Names that differ in case alone are one file on some systems.
        let alone = |way: &&&dyn Fn(&Path) -> String| {
            let own = way(path).to_lowercase();
            data.iter().filter(|other| way(other).to_lowercase() == own).count() == 1
        };
        let name = ways.iter().find(alone).map_or_else(|| stem(path), |way| way(path));
        names.push(name);
    }
    number_repeated(names)
}

/// The second of a name gets `-2`, or the next number that is free.
fn number_repeated(names: Vec<String>) -> Vec<String> {
    let mut told: Vec<String> = Vec::new();
    for name in &names {
        let free = |new: &String| {
            let same = |other: &String| other.to_lowercase() == new.to_lowercase();
            !told.iter().any(same) && (new == name || !names.iter().any(same))
        };
        let mut numbered = (2..).map(|n| format!("{name}-{n}"));
        let new = Some(name.clone()).filter(free).or_else(|| numbered.find(free));
        told.push(new.expect("numbers do not end"));
    }
    told
}

/// The files that will be written.
fn outputs(names: &[String], variants: &[&'static Variant], seeds: u64) -> Vec<String> {
    let mut all = vec!["table.md".to_owned(), "report.html".to_owned()];
    for name in names {
        for variant in variants {
            all.extend((0..seeds).map(|seed| trace_name(name, variant, seed)));
        }
    }
    all
}

fn trace_name(data: &str, variant: &Variant, seed: u64) -> String {
    let plain: String =
        variant.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    format!("{data}.{plain}.seed{seed}.jsonl")
}

fn regularizations(args: &AblateArgs) -> Result<Vec<f64>, CliError> {
    let n = args.data.len();
    let default = Numbers(vec![REGULARIZATION]);
    match args.regularization.as_ref().unwrap_or(&default).0.as_slice() {
        [one] => Ok(vec![*one; n]),
        list if list.len() == n => Ok(list.to_vec()),
        list => Err(CliError::Usage(format!(
            "{} regularizations for {n} data sets; give one for all or one for each",
            list.len()
        ))),
    }
}

fn ablate(
    args: &AblateArgs,
    (path, name): (&Path, &str),
    regularization: f64,
    variants: &[&'static Variant],
) -> Result<Option<Ablation>, CliError> {
    let request = DataRequest { decisions: args.decisions.clone(), ..args.rows.choice.request() };
    // As `fit` does: ranges are trained on, unless rows are left out while they are read.
    let training_rows = args.rows.choice.rows.as_ref().filter(|_| request.thinning.is_empty());
    let request_rows = if training_rows.is_some() { None } else { request.rows.clone() };
    let request = DataRequest { rows: request_rows, ..request };
    let settings = settings(args, regularization);
    let loaded = argwhy::load_for_fit(path, &request, &settings, training_rows)?;
    let rows = resolve(training_rows, loaded.signals.nrows())?;
    let data = Dataset::new(loaded.signals, loaded.decisions.unwrap_or_default())?;
    let task = Task { settings, data, rows };
    say(args.quiet, format_args!("{name}: the exact optimum …"));
    let mut ablation = task.optimum(name.to_owned())?;
    if interrupt::asked() {
        // Errors against an unfinished optimum would mean nothing.
        return Ok(None);
    }
    for &variant in variants {
        let runs = task.runs(args, &ablation.name, variant)?;
        if runs.is_empty() {
            break;
        }
        let last = ablation.errors(&runs).last().map_or(f64::NAN, |e| e.1);
        say(args.quiet, format_args!("{}: {}, error {last:.1e}", ablation.name, variant.name));
        ablation.variants.push((variant, runs));
    }
    Ok(Some(ablation))
}

/// What all fits on one data set share: the paper's model, which its algorithm was made for.
fn settings(args: &AblateArgs, regularization: f64) -> FitSettings {
    let default = FitSettings::default();
    FitSettings {
        features: Expansion::Poly2,
        kernel: KernelKind::Rbf.into(),
        trend: TrendChoice::None,
        bounds: args.bounds.clone(),
        unbounded: args.bounds.is_none(),
        regularization: regularization.into(),
        threads: args.rows.threads,
        memory: args.memory.unwrap_or(default.memory),
        block: args.block.unwrap_or(default.block),
        ..default
    }
}

/// One data set and what every fit on it has in common.
struct Task {
    settings: FitSettings,
    data: Dataset,
    rows: Vec<Range<usize>>,
}

impl Task {
    /// The exact optimum by Newton, what it takes, and no variants yet.
    fn optimum(&self, name: String) -> Result<Ablation, CliError> {
        let newton = |tol| self.fit(FitSettings { tol, ..self.settings.clone() });
        let (_, fit) = newton(1e-12)?;
        let mut costs = [None; 2];
        for (cost, gap) in costs.iter_mut().zip(GAPS) {
            let outcome = newton(gap)?.1.outcome;
            if outcome.status == Status::Solved {
                let products = outcome.kernel_products as f64;
                *cost = Some(Cost { seconds: outcome.seconds, products });
            }
        }
        let certificate = &fit.model.record.certificate;
        Ok(Ablation {
            name,
            regularization: fit.model.record.regularization,
            n_samples: fit.rows.len(),
            optimum: certificate.objective,
            proven: certificate.relative_gap,
            newton: costs,
            variants: Vec::new(),
        })
    }

    /// The steps of a variant, one run a seed; fewer where somebody asked to stop.
    fn runs(
        &self,
        args: &AblateArgs,
        name: &str,
        variant: &Variant,
    ) -> Result<Vec<Vec<Iteration>>, CliError> {
        let mut runs = Vec::new();
        for seed in 0..args.seeds {
            if interrupt::asked() {
                break;
            }
            let (run, _) = self.fit(FitSettings {
                solver: SolverKind::Sso,
                selection: variant.selection,
                init: variant.init,
                tol: args.tol,
                time_limit: args.time_limit,
                max_iterations: Some(args.iterations),
                seed,
                ..self.settings.clone()
            })?;
            if interrupt::asked() {
                break;
            }
            trace(args, name, variant, seed, &run)?;
            runs.push(run);
        }
        Ok(runs)
    }

    fn fit(&self, settings: FitSettings) -> Result<(Vec<Iteration>, argwhy::Fit), CliError> {
        let mut record = Record { start: Instant::now(), steps: Vec::new() };
        let fit = Pipeline::new(settings)?.fit_rows(&self.data, &self.rows, &mut record)?;
        Ok((record.steps, fit))
    }
}

fn trace(
    args: &AblateArgs,
    data: &str,
    variant: &Variant,
    seed: u64,
    run: &[Iteration],
) -> Result<(), CliError> {
    let mut text = String::new();
    for step in run {
        let line = serde_json::to_string(step).map_err(|e| CliError::Stdout(e.into()))?;
        text.push_str(&line);
        text.push('\n');
    }
    write(&args.output.join(trace_name(data, variant, seed)), &text)
}

fn write(path: &Path, text: &str) -> Result<(), CliError> {
    write_whole(path, text.as_bytes())
        .map_err(|source| CliError::Write { path: path.to_path_buf(), source })
}

/// Markdown: the error after some blocks, and what it takes to reach two gaps.
fn table(ablations: &[Ablation]) -> String {
    let mut text = String::from(
        "| data | N | variant | error at start | after 10 | after 20 | at the end | blocks | to \
         gap 1e-3: s, products | to 1e-6: s, products |\n\
         |---|---|---|---|---|---|---|---|---|---|\n",
    );
    let told = |cost: Option<Cost>| {
        cost.map_or("–".to_owned(), |c| format!("{:.2}, {:.0}", c.seconds, c.products))
    };
    for a in ablations {
        // Writing to a string cannot fail.
        let [loose, tight] = a.newton.map(told);
        let _ = writeln!(
            text,
            "| {} | {} | Newton | – | – | – | – | – | {loose} | {tight} |",
            a.name, a.n_samples,
        );
        for (variant, runs) in &a.variants {
            let errors = a.errors(runs);
            let at = |t: usize| errors.get(t).map_or("–".to_owned(), |e| format!("{:.1e}", e.1));
            let blocks = errors.len().saturating_sub(1);
            let [loose, tight] = GAPS.map(|gap| told(reached(runs, gap)));
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} | {} | {blocks} | {loose} | {tight} |",
                a.name,
                a.n_samples,
                variant.name,
                at(0),
                at(10),
                at(20),
                at(blocks),
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_sets_of_one_name_are_told_apart() {
        let named = |paths: &[&str]| names(&paths.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(named(&["a/hopper.npz", "walker.npz"]), ["hopper", "walker"]);
        assert_eq!(named(&["a/d.npz", "b/d.npz"]), ["a-d", "b-d"]);
        assert_eq!(named(&["a/d.npz", "a/d.csv"]), ["a-d-npz", "a-d-csv"]);
        assert_eq!(named(&["d.npz", "d.npz", "d-2.npz"]), ["d", "d-3", "d-2"]);
        assert_eq!(named(&["x/a/d.npz", "y/a/d.npz"]), ["d", "d-2"]);
        assert_eq!(named(&["a/d.npz", "b/D.npz"]), ["a-d", "b-D"]);
    }
}
