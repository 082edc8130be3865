//! `argwhy tune`: settings chosen by what they do on rows that were not learned from.

mod record;

use super::names::{self, check_columns};
use super::ray::{self, Cluster, RayCrew};
use super::targets::check_folder;
use super::{print_json, resolve};
use crate::args::TuneArgs;
use crate::config;
use crate::error::CliError;
use crate::findings::tuning::Search;
use crate::progress::{moving_line, say};
use crate::report::number;
use crate::words::count;
use crate::{End, interrupt, pages};
use argwhy::core::dataset::Names;
use argwhy::io::{DataRequest, write_whole};
use argwhy::judging::Division;
use argwhy::settings::{Table, Value};
use argwhy::tuning::{Crew, Space, Trial, Tuning, Watch, tune_with};
use argwhy::{Dataset, Pipeline};
use indicatif::ProgressBar;
use record::{Header, Record};
use serde::Serialize;
use std::fs;
use std::path::Path;

/// Lines of the table on a terminal.
const SHOWN: usize = 8;

pub const BEST: &str = "best.toml";
const TRIALS: &str = "trials.jsonl";
const REPORT: &str = "report.html";

pub fn run(args: &TuneArgs) -> Result<End, CliError> {
    let told = config::for_tuning(args)?;
    let grid = args.grid.as_deref().map(grid).transpose()?;
    let inputs = [Some(args.data.as_path()), args.config.as_deref(), args.grid.as_deref()];
    let inputs: Vec<&Path> = inputs.into_iter().flatten().collect();
    let _folder = check_folder(&args.output, &[BEST, TRIALS, REPORT], &inputs)?;
    interrupt::listen();
    let source = &told.options.source;
    let seed = told.options.settings.seed;
    let request = DataRequest { episodes: source.order.is_none(), ..config::request(source, seed) };
    check_columns(&request.lower, &request.upper, told.options.settings.unbounded)?;
    let pipeline = Pipeline::new(told.options.settings.clone())?;
    let training_rows = config::training_rows(source);
    let loaded = pipeline.load(&args.data, &request, training_rows)?;
    let rows: Vec<usize> =
        resolve(training_rows, loaded.signals.nrows())?.into_iter().flatten().collect();
    let (options, limits) = told.options.clone().with_limits_of(&loaded)?;
    for note in [limits, names::prepared(&loaded, &request)].into_iter().flatten() {
        say(args.quiet, format_args!("note: {note}"));
    }
    let division = Division::of(loaded.groups, config::in_time(source)?)?;
    let decisions = loaded.decisions.unwrap_or_default();
    let units = names::units(source.units.as_deref().unwrap_or_default())?;
    let names = Names { units, ..loaded.names };
    let mut data = Dataset::new(loaded.signals, decisions)?.with_names(names)?;
    if let Some(constraints) = loaded.constraints {
        data = data.with_constraints(constraints)?;
    }
    let rows = match &loaded.weights {
        Some(weights) => rows.into_iter().filter(|&row| weights[row] > 0.0).collect(),
        None => rows,
    };
    if let Some(weights) = loaded.weights {
        data = data.with_weights(weights)?;
    }
    let space = match &grid {
        Some(grid) => Space::grid(&options.given, grid, rows.len())?,
        None => Space::usual(&options.given, (rows.len(), data.signals().ncols()))?,
    };
    let tuning = Tuning {
        division,
        n_parts: args.folds,
        judge: args.judge.into(),
        budget: Some(args.budget.0),
        seed: told.options.settings.seed,
    };
    let cluster = ray::for_search(&args.ray, &options.settings)?;
    let header = Header::new(&args.data, &rows, &space, &tuning);
    let path = args.output.join(TRIALS);
    let known = if args.resume { record::read(&path, &header)? } else { Vec::new() };
    let record = Record::new(path, &header, known.clone())?;
    let mut follow = Follow::new(args.quiet, record, cluster.as_ref());
    let by = tuning.division.name();
    say(
        args.quiet,
        format_args!(
            "trying {} with {} on {}, kept aside by {by} in {} parts",
            count(space.candidates.len(), "setting"),
            count(space.regularizations.len(), "regularization"),
            count(rows.len(), "row"),
            args.folds
        ),
    );
    let crew =
        |cluster| RayCrew::new(cluster, (&data, &rows), (&options.given, grid.as_ref()), &tuning);
    let mut crew = cluster.as_ref().map(crew).transpose()?;
    let crew = crew.as_mut().map(|crew| crew as &mut dyn Crew);
    let tuned = tune_with(&data, &rows, &space, &tuning, &known, &mut follow, crew)?;
    follow.finish()?;
    let search = Search {
        tuned,
        judge: tuning.judge,
        source: args.data.display().to_string(),
        by,
        base: options.settings.clone(),
    };
    let best = best_toml(&search, &told.said);
    let page = pages::tune::page(&search, &best).map_err(|e| CliError::Report(e.to_string()))?;
    write(&args.output.join(BEST), &best)?;
    write(&args.output.join(REPORT), &page)?;
    tell(&search, args);
    if args.json {
        print_json(&Found::new(&search))?;
    }
    Ok(if search.tuned.finished { End::Done } else { End::Short })
}

fn write(path: &Path, text: &str) -> Result<(), CliError> {
    write_whole(path, text.as_bytes())
        .map_err(|source| CliError::Write { path: path.to_path_buf(), source })
}

/// The table of a file of one's own.
fn grid(path: &Path) -> Result<Table, CliError> {
    let wrong = |why: String| CliError::Config { path: path.to_path_buf(), why };
    let text = fs::read_to_string(path).map_err(|e| wrong(format!("cannot read it: {e}")))?;
    text.parse().map_err(|e: toml::de::Error| wrong(e.to_string().trim_end().to_owned()))
}

/// What was said and what was chosen, as `fit --config` takes it.
fn best_toml(search: &Search, said: &Table) -> String {
    let best = &search.tuned.best;
    let mut table = said.clone();
    for (name, value) in &best.settings {
        if let Ok(value) = Value::try_from(value) {
            table.insert(name.clone(), value);
        }
    }
    format!(
        "# chosen by `argwhy tune {}`: error {}, R² {}, regret {} on rows kept aside\n{table}",
        search.source.replace('\n', " "),
        number(best.error.unwrap_or(f64::NAN)),
        best.r2.map_or_else(|| "undefined".to_owned(), |r2| format!("{r2:.4}")),
        number(best.regret.unwrap_or(f64::NAN)),
    )
}

/// The end of the search on stderr.
fn tell(search: &Search, args: &TuneArgs) {
    let say = |text: &str| say(args.quiet, format_args!("{text}"));
    say("     error        ±        R²    regret         k  settings");
    let line = |trial: &Trial, mark: &str| {
        let score = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), number);
        let r2 = trial.r2.map_or_else(|| "–".to_owned(), |r2| format!("{r2:.3}"));
        format!(
            "{:>10} {:>8} {r2:>9} {:>9} {:>9}  {}{mark}",
            score(trial.error),
            score(trial.error_spread),
            score(trial.regret),
            search.setting(trial, "regularization"),
            search.name(trial)
        )
    };
    for trial in search.finalists().into_iter().take(SHOWN) {
        say(&line(trial, ""));
    }
    if let Some(untuned) = search.untuned() {
        say(&line(untuned, " (without tuning)"));
    }
    if !search.tuned.finished {
        say("stopped before the end; the best so far is kept, and --resume goes on from here");
    }
    let best = args.output.join(BEST);
    say(&format!(
        "written to {}; next: argwhy fit {} --config {} -o MODEL",
        args.output.display(),
        args.data.display(),
        best.display()
    ));
}

/// What `tune --json` prints.
#[derive(Serialize)]
struct Found<'a> {
    best: serde_json::Map<String, serde_json::Value>,
    finished: bool,
    by: &'static str,
    trials: &'a [Trial],
}

impl<'a> Found<'a> {
    fn new(search: &'a Search) -> Self {
        let trial = &search.tuned.best;
        let mut best = trial.settings.clone();
        for (name, value) in [("error", trial.error), ("r2", trial.r2), ("regret", trial.regret)] {
            best.insert(name.to_owned(), value.into());
        }
        let Search { tuned, by, .. } = search;
        Self { best, finished: tuned.finished, by, trials: &tuned.trials }
    }
}

/// Shows the best so far, keeps every trial, and listens for Ctrl-C.
struct Follow {
    bar: Option<ProgressBar>,
    record: Record,
    /// Says how workers do, where there are any.
    workers: Option<Box<dyn Fn() -> String + Send>>,
}

impl Follow {
    fn new(quiet: bool, record: Record, cluster: Option<&Cluster>) -> Self {
        let workers = cluster.map(|cluster| Box::new(cluster.words()) as Box<_>);
        Self { bar: moving_line(quiet, "the first trials"), record, workers }
    }

    fn finish(self) -> Result<(), CliError> {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
        self.record.finish()
    }
}

impl Watch for Follow {
    fn on_trial(&mut self, trial: &Trial, best: Option<&Trial>, left: usize) {
        self.record.add(trial);
        if let (Some(bar), Some(best)) = (&self.bar, best) {
            let chosen: Vec<String> = best
                .settings
                .iter()
                .map(|(name, value)| format!("{name} {}", value.to_string().replace('"', "")))
                .collect();
            bar.set_message(format!(
                "round {}, {left} settings left; best error {} with {}",
                trial.round + 1,
                number(best.error.unwrap_or(f64::NAN)),
                chosen.join(", ")
            ));
        }
    }

    fn on_attempt(&mut self, done: usize, of: usize) {
        if let Some(bar) = &self.bar {
            let workers = self.workers.as_ref().map_or_else(String::new, |words| words());
            bar.set_message(format!("{done} of {of} settings tried; {workers}"));
        }
    }

    fn stops(&mut self) -> bool {
        interrupt::asked()
    }
}
