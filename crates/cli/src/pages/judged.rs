//! How good a model is on rows it has not seen: the first thing a page about a fit says.

use crate::judged::{row, told};
use crate::report::{BarChart, Figure, Page, ReportError, Section, Table, number};
use argwhy::Fit;
use argwhy::core::dataset::Names;
use argwhy::judging::{Baseline, Judgement, Verdict};

/// The page opens with the verdict, in one sentence and a colour.
pub fn opening(page: Page, fit: &Fit, verdict: &Verdict) -> Page {
    let told = told(fit.outcome.status, verdict);
    let page = page.verdict(told.tone, told.badge, capitalised(&told.sentence));
    let Some(judgement) = verdict.judgement() else { return page };
    let r2 = judgement.scores.r2.map_or_else(|| "undefined".to_owned(), |r2| format!("{r2:.3}"));
    page.tile("Error", number(judgement.scores.rmse), "on rows kept aside, root mean square").tile(
        "R²",
        r2.replace('-', "−"),
        "1 is perfect, 0 the mean decision",
    )
}

fn capitalised(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters
        .next()
        .map_or_else(String::new, |first| format!("{}{}.", first.to_uppercase(), letters.as_str()))
}

/// The scores, beside those of the baselines.
pub fn section(verdict: &Verdict, names: &Names) -> Result<Section, ReportError> {
    let section = Section::new("How good are its decisions?");
    match verdict {
        Verdict::None { why } => Ok(section.text(format!("They were not judged: {why}."))),
        Verdict::Judged(judgement) => scores(section, judgement, names),
    }
}

fn short(baseline: Baseline) -> &'static str {
    match baseline {
        Baseline::Mean => "mean decision",
        Baseline::Ridge => "ridge, cut to the limits",
        Baseline::Nearest => "nearest situation seen",
    }
}

fn scores(section: Section, judgement: &Judgement, names: &Names) -> Result<Section, ReportError> {
    let mut bars = BarChart::new("error (root mean square) on the rows kept aside")
        .bar("this model", judgement.scores.rmse);
    for (baseline, scores) in judgement.baselines.named() {
        bars = bars.bar(short(baseline), scores.rmse);
    }
    let heads = ["decision", "error", "R²", "regret", "mean", "ridge", "nearest"];
    let mut table = Table::new(heads);
    let n = judgement.scores.dimensions.len();
    for dimension in (0..n).filter(|_| n > 1).map(Some).chain([None]) {
        table = table.row(row(judgement, dimension, names));
    }
    let table = table.caption(
        "Regret is the suboptimality loss: what the expert would have lost by the learned \
         objective. The last three columns are errors of the baselines: the mean decision, ridge \
         regression cut to the limits, and what was decided in the nearest situation seen.",
    );
    let of_all = if judgement.sampled {
        "a sample of the others; the model itself has learned from all rows and is likely better"
    } else {
        "all others; the model itself has learned from all rows"
    };
    Ok(section
        .text(format!(
            "Judged on {}, by a fit on {} rows, {of_all}. The certificate below proves how well \
             the problem was solved; only rows that were not learned from show whether its \
             solution decides like the expert.",
            judgement.rows_in_words(),
            judgement.n_learned,
        ))
        .figure(Figure::new(bars.render()?, "The model beside what anyone could do without it."))
        .table(table))
}
