//! A verdict in words, for terminals, JSON and pages alike.

use crate::report::{Tone, number};
use argwhy::core::dataset::Names;
use argwhy::core::solver::Status;
use argwhy::judging::{Judgement, Scores, Standing, Verdict};
use serde::Serialize;

/// Rows of the table on a terminal at most; JSON has them all.
const MOST_DIMENSIONS: usize = 12;

/// What to do about a model that is not worth its effort.
const ADVICE: &str = "try `argwhy tune`, which chooses kernel, gamma, features, trend and -k";

/// A verdict in a word and a sentence.
pub struct Told {
    pub tone: Tone,
    pub badge: &'static str,
    pub sentence: String,
}

/// What a verdict is in `--json`.
#[derive(Serialize)]
pub struct Judged<'a> {
    judged: Option<&'a Judgement>,
    /// Why there is no verdict.
    not_judged: Option<&'a str>,
}

impl<'a> From<&'a Verdict> for Judged<'a> {
    fn from(verdict: &'a Verdict) -> Self {
        match verdict {
            Verdict::Judged(judgement) => Self { judged: Some(judgement), not_judged: None },
            Verdict::None { why } => Self { judged: None, not_judged: Some(why) },
        }
    }
}

/// Whether a fit is optimal *and* good: two things, of which a certificate proves the first only.
pub fn told(status: Status, verdict: &Verdict) -> Told {
    let solved = status == Status::Solved;
    let optimal = if solved { "proven optimal" } else { "stopped short of its optimum" };
    let judgement = match verdict {
        Verdict::Judged(judgement) => judgement,
        Verdict::None { why } => {
            let tone = if solved { Tone::Neutral } else { Tone::Caution };
            let sentence = format!("{optimal}; how good its decisions are was not judged: {why}");
            return Told { tone, badge: "not judged", sentence };
        }
    };
    let (baseline, theirs) = judgement.best_baseline();
    let (own, theirs) = (number(judgement.scores.rmse), number(theirs.rmse));
    let rows = judgement.rows_in_words();
    let than = baseline.words();
    let (tone, badge, sentence) = match judgement.standing() {
        Standing::Better => (
            if solved { Tone::Good } else { Tone::Caution },
            "better than the baselines",
            format!(
                "{optimal}, and better than every baseline: on {rows} it errs by {own}, the best \
                 of them ({than}) by {theirs}"
            ),
        ),
        Standing::Level => (
            Tone::Caution,
            "no better than a baseline",
            format!(
                "{optimal}, but no better than {than}: on {rows} it errs by {own}, that by \
                 {theirs}; {ADVICE}"
            ),
        ),
        Standing::Worse => (
            Tone::Bad,
            "worse than a baseline",
            format!(
                "{optimal}, yet worse than {than}: on {rows} it errs by {own}, that by {theirs}; \
                 {ADVICE}"
            ),
        ),
    };
    Told { tone, badge, sentence }
}

/// Error, R² and regret by dimension, beside the errors of the baselines.
pub fn table(judgement: &Judgement, names: &Names) -> Vec<String> {
    let shown = Some(judgement.scores.dimensions.len()).filter(|n| *n > 1).unwrap_or(0);
    let titles = (0..shown.min(MOST_DIMENSIONS)).map(|j| names.decision(j).chars().count());
    let width = titles.max().unwrap_or(0).max(5);
    let line = |cells: [String; 7]| {
        let [name, rest @ ..] = cells;
        rest.iter().fold(format!("  {name:<width$}"), |line, cell| format!("{line} {cell:>9}"))
    };
    let heads = ["", "error", "R²", "regret", "mean", "ridge", "nearest"];
    let mut lines = vec![format!("{}   (errors of the baselines)", line(heads.map(str::to_owned)))];
    let scores = &judgement.scores;
    lines.extend((0..shown.min(MOST_DIMENSIONS)).map(|j| line(row(judgement, Some(j), names))));
    if shown > MOST_DIMENSIONS {
        lines.push(format!("  … and {} more (--json)", shown - MOST_DIMENSIONS));
    }
    lines.push(line(row(judgement, None, names)));
    if scores.r2.is_none() {
        lines.push("  R² is undefined: the decisions judged on are constant".to_owned());
    } else {
        let constant = (0..shown).filter(|j| scores.dimensions[*j].r2.is_none());
        let names: Vec<String> = constant.map(|j| names.decision(j)).collect();
        if !names.is_empty() {
            let never = if names.len() == 1 { "it never changes" } else { "they never change" };
            lines.push(format!("  R² of {} is undefined: {never}", names.join(", ")));
        }
    }
    if judgement.sampled {
        lines.push(format!(
            "  judged on a model of {} of the rows; one of all of them is likely better",
            judgement.n_learned
        ));
    }
    lines
}

/// Name, error, R², regret and the baselines' errors of one dimension, or of all.
pub fn row(judgement: &Judgement, dimension: Option<usize>, names: &Names) -> [String; 7] {
    let of = |scores: &Scores| match dimension {
        Some(j) => {
            let own = &scores.dimensions[j];
            (own.rmse, own.r2, own.regret)
        }
        None => (scores.rmse, scores.r2, scores.regret),
    };
    let (rmse, r2, regret) = of(&judgement.scores);
    let name = dimension.map_or_else(|| "all".to_owned(), |j| names.decision(j));
    let [mean, ridge, nearest] = judgement.baselines.named().map(|(_, s)| number(of(s).0));
    let r2 = r2.map_or_else(|| "–".to_owned(), |r2| format!("{r2:.3}").replace('-', "−"));
    [name, number(rmse), r2, number(regret), mean, ridge, nearest]
}
