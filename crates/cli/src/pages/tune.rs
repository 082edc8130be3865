//! The report of `argwhy tune`.

use crate::findings::tuning::Search;
use crate::report::{
    Details, Figure, Page, RangeChart, ReportError, Section, SquareMap, Table, Tone, number,
};
use argwhy::tuning::{Judge, Trial};

/// Trials of the last round that are drawn.
const SHOWN: usize = 12;

/// One page about one search.
pub fn page(search: &Search, best: &str) -> Result<String, ReportError> {
    let tuned = &search.tuned;
    let winner = &tuned.best;
    let error = winner.error.unwrap_or(f64::NAN);
    let (tone, badge) =
        if tuned.finished { (Tone::Good, "chosen") } else { (Tone::Caution, "stopped early") };
    let sentence = format!(
        "{} with k = {}: an error of {}{} and an R² of {} on rows that were not learned from.",
        search.name(winner),
        search.setting(winner, "regularization"),
        number(error),
        winner.error_spread.map_or_else(String::new, |s| format!(" ± {}", number(s))),
        determination(winner),
    );
    Page::new("Settings, chosen by rows kept aside")
        .subtitle(&search.source)
        .verdict(tone, badge, sentence)
        .tile("Error", number(error), "root mean square, on rows kept aside")
        .tile("R²", determination(winner), "1 is perfect, 0 the mean decision")
        .tile("Regret", number(winner.regret.unwrap_or(f64::NAN)), "mean suboptimality loss")
        .tile("Trials", tuned.trials.len().to_string(), format!("kept aside by {}", search.by))
        .section(landscape(search)?)
        .section(finalists(search)?)
        .section(
            Section::new("Use them")
                .text("The settings as a config file: argwhy fit DATA --config best.toml -o MODEL.")
                .code(best),
        )
        .section(everything(search))
        .footer(format!("argwhy {}", env!("CARGO_PKG_VERSION")))
        .render()
}

fn determination(trial: &Trial) -> String {
    trial.r2.map_or_else(|| "undefined".to_owned(), |r2| format!("{r2:.3}").replace('-', "−"))
}

fn what(judge: Judge) -> &'static str {
    match judge {
        Judge::Error => "error",
        Judge::Regret => "regret",
    }
}

/// k × γ in the first round, for the kernel, features and trend that won.
fn landscape(search: &Search) -> Result<Section, ReportError> {
    let same = ["kernel", "features", "trend"];
    let winner = same.map(|name| search.setting(&search.tuned.best, name));
    let family: Vec<&Trial> = search
        .tuned
        .trials
        .iter()
        .filter(|t| t.round == 0 && same.map(|name| search.setting(t, name)) == winner)
        .collect();
    let list = |name: &str| {
        let mut values: Vec<String> = Vec::new();
        for trial in &family {
            let value = search.setting(trial, name);
            if !values.contains(&value) {
                values.push(value);
            }
        }
        values
    };
    let (columns, rows) = (list("regularization"), list("gamma"));
    let mut map =
        SquareMap::new(["k, from simple to detailed", "γ"], columns.clone(), rows.clone());
    for trial in &family {
        let place = |list: &[String], name: &str| {
            let value = search.setting(trial, name);
            list.iter().position(|other| *other == value)
        };
        if let (Some(i), Some(j)) = (place(&rows, "gamma"), place(&columns, "regularization")) {
            map = map.cell((i, j), trial.score(search.judge));
        }
    }
    let [kernel, features, trend] = winner;
    Ok(Section::new("The landscape")
        .text(format!(
            "The {} on rows kept aside in the first round, on few rows: kernel {kernel}, features \
             {features}, trend {trend}. Dark is good; a flat landscape means that the choice \
             hardly matters.",
            what(search.judge)
        ))
        .figure(Figure::new(map.render()?, "Each square is a pair of settings.").wide()))
}

fn finalists(search: &Search) -> Result<Section, ReportError> {
    let of_last = search.finalists();
    let mut chart = RangeChart::new(format!("{} on rows kept aside", what(search.judge)));
    for trial in of_last.iter().take(SHOWN) {
        let spread = match search.judge {
            Judge::Error => trial.error_spread,
            Judge::Regret => trial.regret_spread,
        };
        let k = search.setting(trial, "regularization");
        let name = format!("{}, k {k}", search.name(trial));
        chart = chart.entry(name, trial.score(search.judge), spread.unwrap_or(0.0));
    }
    let untuned = search.untuned().map_or_else(String::new, |trial| {
        format!(
            " The settings that hold without tuning, at their best k of those tried in the last \
             round, have an error of {}.",
            number(trial.error.unwrap_or(f64::NAN))
        )
    });
    Ok(Section::new("The last round")
        .text(format!(
            "The best on up to {} rows, each part of them kept aside once. Bars are one standard \
             error, from part to part: where they overlap, the order is chance.{untuned}",
            of_last.first().map_or(0, |trial| trial.n_learned)
        ))
        .figure(Figure::new(chart.render()?, "Best first.").wide()))
}

fn everything(search: &Search) -> Section {
    let heads = ["round", "settings", "k", "rows", "error", "R²", "regret", "seconds"];
    let mut table = Table::new(heads);
    for trial in &search.tuned.trials {
        let score = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), number);
        let name = match &trial.failed {
            Some(why) => format!("{}: {why}", search.name(trial)),
            None => search.name(trial),
        };
        table = table.row([
            (trial.round + 1).to_string(),
            name,
            search.setting(trial, "regularization"),
            trial.n_learned.to_string(),
            score(trial.error),
            determination(trial),
            score(trial.regret),
            format!("{:.2}", trial.seconds),
        ]);
    }
    Section::new("Everything that was tried").details(Details::new("Every trial").table(table))
}
