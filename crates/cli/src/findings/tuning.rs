//! What `argwhy tune` found, ready to be told.

use argwhy::FitSettings;
use argwhy::tuning::{Judge, Trial, Tuned};
use serde_json::Value;

/// A search with what is needed to tell of it.
pub struct Search {
    pub tuned: Tuned,
    pub judge: Judge,
    pub source: String,
    /// What was kept aside, in a word.
    pub by: &'static str,
    /// What was given and so not searched.
    pub base: FitSettings,
}

impl Search {
    /// A setting of a trial as people read it: what was chosen, else what was given.
    pub fn setting(&self, trial: &Trial, name: &str) -> String {
        let given = serde_json::to_value(&self.base).unwrap_or_default();
        match trial.settings.get(name).or_else(|| given.get(name)) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.as_f64().map_or_else(
                || number.to_string(),
                |value| match value.abs() {
                    1e-2..1e6 => value.to_string(),
                    _ => format!("{value:e}"),
                },
            ),
            Some(other) => other.to_string(),
            None => "–".to_owned(),
        }
    }

    /// `matern52, γ 0.02, raw, trend linear`.
    pub fn name(&self, trial: &Trial) -> String {
        let setting = |name: &str| self.setting(trial, name);
        let trend = match setting("trend").as_str() {
            "none" => String::new(),
            trend => format!(" + {trend}"),
        };
        let scales = match trial.settings.get("length-scales") {
            Some(_) => ", length scales",
            None => "",
        };
        let (kernel, gamma) = (setting("kernel"), setting("gamma"));
        format!("{kernel}{trend}, γ {gamma}, {}{scales}", setting("features"))
    }

    /// The trials of the last round, best first.
    pub fn finalists(&self) -> Vec<&Trial> {
        let last = self.tuned.trials.iter().map(|trial| trial.round).max().unwrap_or(0);
        let mut of_last: Vec<&Trial> =
            self.tuned.trials.iter().filter(|trial| trial.round == last).collect();
        of_last.sort_by(|a, b| a.compare(b, self.judge));
        of_last
    }

    /// The best finalist that is what no tuning would do, whatever its regularization.
    pub fn untuned(&self) -> Option<&Trial> {
        let own = |trial: &&&Trial| trial.candidate == 0 && trial.settings.len() == 1;
        self.finalists().iter().find(own).copied()
    }
}
