//! `argwhy fit --tune`: settings chosen before the fit.

use crate::commands::ray::{Cluster, RayCrew};
use crate::error::CliError;
use crate::findings::tuning::Search;
use crate::interrupt;
use crate::progress::{moving_line, say};
use crate::report::number;
use argwhy::judging::Division;
use argwhy::settings::{Table, Value};
use argwhy::tuning::{
    BUDGET, Crew, Judge, N_PARTS, Space, Trial, Tuning, Watch, scales_asked_for, tune_with,
};
use argwhy::{Dataset, FitSettings};
use indicatif::ProgressBar;
use std::ops::Range;

/// The settings that decide best on rows kept aside, of those that `given` leaves open.
pub fn chosen(
    (data, rows): (&Dataset, &[Range<usize>]),
    given: &Table,
    division: &Division,
    cluster: Option<&Cluster>,
    quiet: bool,
) -> Result<FitSettings, CliError> {
    let said = given;
    let n_rows = rows.iter().map(ExactSizeIterator::len).sum();
    let space = Space::usual(given, (n_rows, data.signals().ncols()))?;
    let mut given = given.clone();
    scales_asked_for(&mut given);
    let given = &given;
    let base = FitSettings::from_table(given).map_err(|e| CliError::Usage(e.to_string()))?;
    let counts = |row: &usize| data.weights().is_none_or(|weights| weights[*row] > 0.0);
    let rows: Vec<usize> = rows.iter().cloned().flatten().filter(counts).collect();
    let tuning = Tuning {
        division: division.clone(),
        n_parts: N_PARTS,
        judge: Judge::default(),
        budget: Some(BUDGET),
        seed: base.seed,
    };
    let mut follow = Follow(moving_line(quiet, "choosing settings"));
    let crew = |cluster| RayCrew::new(cluster, (data, &rows), (said, None), &tuning);
    let mut crew = cluster.map(crew).transpose()?;
    let crew = crew.as_mut().map(|crew| crew as &mut dyn Crew);
    let tuned = tune_with(data, &rows, &space, &tuning, &[], &mut follow, crew);
    drop(follow);
    let by = division.name();
    let search = Search { tuned: tuned?, judge: tuning.judge, source: String::new(), by, base };
    let best = &search.tuned.best;
    say(
        quiet,
        format_args!(
            "chosen among {} trials: {}, k {} (error {} on rows kept aside by {by})",
            search.tuned.trials.len(),
            search.name(best),
            search.setting(best, "regularization"),
            number(best.error.unwrap_or(f64::NAN))
        ),
    );
    let mut table = given.clone();
    for (name, value) in &best.settings {
        let value = Value::try_from(value).map_err(|e| CliError::Usage(e.to_string()))?;
        table.insert(name.clone(), value);
    }
    FitSettings::from_table(&table).map_err(|e| CliError::Usage(e.to_string()))
}

/// A line that moves, and Ctrl-C.
struct Follow(Option<ProgressBar>);

impl Watch for Follow {
    fn on_trial(&mut self, trial: &Trial, best: Option<&Trial>, left: usize) {
        if let (Some(bar), Some(best)) = (&self.0, best) {
            let (round, error) = (trial.round + 1, number(best.error.unwrap_or(f64::NAN)));
            bar.set_message(format!("round {round}, {left} settings left; best error {error}"));
        }
    }

    fn on_attempt(&mut self, done: usize, of: usize) {
        if let Some(bar) = &self.0 {
            bar.set_message(format!("{done} of {of} settings tried by the workers"));
        }
    }

    fn stops(&mut self) -> bool {
        interrupt::asked()
    }
}

impl Drop for Follow {
    fn drop(&mut self) {
        if let Some(bar) = self.0.take() {
            bar.finish_and_clear();
        }
    }
}
