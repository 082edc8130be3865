//! `argwhy ablate`: what each part of SSO is worth, against the exact optimum.

use super::{print, resolve};
use crate::args::AblateArgs;
use crate::error::CliError;
use crate::progress::say;
use crate::{End, interrupt, pages};
use argwhy::core::solver::sso::{Initialization, Selection};
use argwhy::core::solver::{Iteration, Observer, Status};
use argwhy::io::{DataRequest, write_whole};
use argwhy::settings::{Numbers, SolverKind};
use argwhy::{Dataset, FitSettings, Pipeline, Progress};
use std::fmt::Write;
use std::fs;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::time::Instant;

/// The paper reports 200 times (Q).
pub const PAPER_SCALE: f64 = 200.0;

/// Relative gaps whose costs are compared.
pub const GAPS: [f64; 2] = [1e-3, 1e-6];

/// What reaching a gap takes: seconds from the start of the fit, and kernel products.
#[derive(Clone, Copy)]
pub struct Cost {
    /// Seconds.
    pub seconds: f64,
    /// Products with the whole kernel matrix.
    pub products: f64,
}

/// One way to run SSO.
pub struct Variant {
    /// Name in tables and legends.
    pub name: &'static str,
    selection: Selection,
    init: Initialization,
    /// Whether it belongs to the paper's Figure 2.
    pub of_paper: bool,
}

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

/// All runs on one data set.
pub struct Ablation {
    /// The file's name.
    pub name: String,
    /// k.
    pub regularization: f64,
    /// Training samples.
    pub n_samples: usize,
    /// The exact optimum, by Newton.
    pub optimum: f64,
    /// The relative gap that Newton proved for it.
    pub proven: f64,
    /// What Newton takes when asked for each of [`GAPS`], where it got there.
    pub newton: [Option<Cost>; 2],
    /// Each variant with its runs, one a seed.
    pub variants: Vec<(&'static Variant, Vec<Vec<Iteration>>)>,
}

impl Ablation {
    /// Median over seeds of the error in the paper's scaling after each block.
    pub fn errors(&self, runs: &[Vec<Iteration>]) -> Vec<(f64, f64)> {
        let longest = runs.iter().map(Vec::len).max().unwrap_or(0);
        (0..longest)
            .map(|t| {
                let at: Vec<f64> = runs
                    .iter()
                    .filter_map(|run| run.get(t).or(run.last()))
                    .map(|i| PAPER_SCALE * (i.objective - self.optimum))
                    .collect();
                (t as f64, median(at))
            })
            .collect()
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// What it took until a relative gap was first reached, medians over runs; none unless all reached it.
pub fn reached(runs: &[Vec<Iteration>], gap: f64) -> Option<Cost> {
    let firsts: Option<Vec<&Iteration>> =
        runs.iter().map(|run| run.iter().find(|i| i.relative_gap <= gap)).collect();
    let firsts = firsts?;
    Some(Cost {
        seconds: median(firsts.iter().map(|i| i.seconds).collect()),
        products: median(firsts.iter().map(|i| i.kernel_products as f64).collect()),
    })
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
    fs::create_dir_all(&args.output)
        .map_err(|source| CliError::Write { path: args.output.clone(), source })?;
    interrupt::listen();
    let mut ablations = Vec::new();
    for (path, &k) in args.data.iter().zip(&regularizations) {
        if interrupt::asked() {
            break;
        }
        ablations.extend(ablate(args, path, k, &variants)?);
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

fn regularizations(args: &AblateArgs) -> Result<Vec<f64>, CliError> {
    let n = args.data.len();
    let default = Numbers(vec![FitSettings::default().regularization]);
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
    path: &Path,
    regularization: f64,
    variants: &[&'static Variant],
) -> Result<Option<Ablation>, CliError> {
    let request = DataRequest {
        signals: args.rows.signals.clone(),
        decisions: args.decisions.clone(),
        ..DataRequest::default()
    };
    let default = FitSettings::default();
    let base = FitSettings {
        bounds: args.bounds.clone(),
        unbounded: args.bounds.is_none(),
        regularization,
        threads: args.rows.threads,
        memory: args.memory.unwrap_or(default.memory),
        block: args.block.unwrap_or(default.block),
        ..default
    };
    let loaded = argwhy::load_for_fit(path, &request, &base, args.rows.rows.as_ref())?;
    let rows = resolve(args.rows.rows.as_ref(), loaded.signals.nrows())?;
    let data = Dataset::new(loaded.signals, loaded.decisions.unwrap_or_default())?;
    let name =
        path.file_stem().map_or_else(|| "data".to_owned(), |s| s.to_string_lossy().into_owned());
    say(args.quiet, format_args!("{name}: the exact optimum …"));
    let newton = |tol| steps(FitSettings { tol, ..base.clone() }, &data, &rows);
    let (_, fit) = newton(1e-12)?;
    let mut costs = [None; 2];
    for (cost, gap) in costs.iter_mut().zip(GAPS) {
        let (_, fit) = newton(gap)?;
        let outcome = &fit.outcome;
        if outcome.status == Status::Solved {
            let products = outcome.kernel_products as f64;
            *cost = Some(Cost { seconds: outcome.seconds, products });
        }
    }
    if interrupt::asked() {
        // Errors against an unfinished optimum would mean nothing.
        return Ok(None);
    }
    let mut ablation = Ablation {
        name,
        regularization,
        n_samples: fit.rows.len(),
        optimum: fit.model.record.certificate.objective,
        proven: fit.model.record.certificate.relative_gap,
        newton: costs,
        variants: Vec::new(),
    };
    for &variant in variants {
        let mut runs = Vec::new();
        for seed in 0..args.seeds {
            if interrupt::asked() {
                break;
            }
            let settings = FitSettings {
                solver: SolverKind::Sso,
                selection: variant.selection,
                init: variant.init,
                tol: args.tol,
                time_limit: args.time_limit,
                max_iterations: Some(args.iterations),
                seed,
                ..base.clone()
            };
            let (run, _) = steps(settings, &data, &rows)?;
            if interrupt::asked() {
                break;
            }
            trace(args, &ablation.name, variant, seed, &run)?;
            runs.push(run);
        }
        if runs.is_empty() {
            break;
        }
        let last = ablation.errors(&runs).last().map_or(f64::NAN, |e| e.1);
        say(args.quiet, format_args!("{}: {}, error {last:.1e}", ablation.name, variant.name));
        ablation.variants.push((variant, runs));
    }
    Ok(Some(ablation))
}

fn steps(
    settings: FitSettings,
    data: &Dataset,
    rows: &[Range<usize>],
) -> Result<(Vec<Iteration>, argwhy::Fit), CliError> {
    let mut record = Record { start: Instant::now(), steps: Vec::new() };
    let fit = Pipeline::new(settings)?.fit_rows(data, rows, &mut record)?;
    Ok((record.steps, fit))
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
    let plain: String =
        variant.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    write(&args.output.join(format!("{data}.{plain}.seed{seed}.jsonl")), &text)
}

fn write(path: &Path, text: &str) -> Result<(), CliError> {
    write_whole(path, text.as_bytes())
        .map_err(|source| CliError::Write { path: path.to_path_buf(), source })
}

/// Markdown: the error after some blocks, and what it takes to reach two gaps.
fn table(ablations: &[Ablation]) -> String {
    let mut text = String::from(
        "| data | N | variant | error at start | after 10 | after 20 | at the end | blocks | to gap 1e-3: s, products | to 1e-6: s, products |\n\
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
