//! The demo's figures, for machines and for people.

use crate::findings::charging::{Outcome, Planner, Planners, Story, Worth, by_hand};
use crate::findings::{correlation, mean};
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::path::Path;

/// What `--json` prints.
pub fn figures(story: &Story) -> Value {
    let (best, record) = (&story.planners.best, &story.fit.model.record);
    json!({
        "demo": "charging",
        "seed": story.seed,
        "status": record.status,
        "relative_gap": record.certificate.relative_gap,
        "n_samples": record.n_samples,
        "held_out": story.held_out.len(),
        "regularization": record.regularization,
        "kernel_ridge": {
            "regularization": story.ridge.regularization,
            "sees_limits": story.ridge.sees_limits,
        },
        "best_mean_cost": mean(&best.costs),
        "planners": planners(&story.planners),
        "wear": {
            "true": story.wear.truth,
            "learned": story.wear.learned,
            "learned_without_errors": story.wear.exact,
        },
        "what_ifs": story.what_ifs.iter().map(what_if).collect::<Vec<_>>(),
        "limits": story.worth.iter().map(worth).collect::<Vec<_>>(),
        "seconds": story.seconds,
    })
}

fn planners(planners: &Planners) -> Map<String, Value> {
    let keys = ["argwhy", "dispatcher", "kernel_ridge", "cheapest_hours"];
    let figures = |planner: &Planner| {
        json!({
            "mean_cost": mean(&planner.costs),
            "excess": planner.excess(&planners.best),
            "mean_relative_excess": planner.mean_relative_excess(&planners.best),
            "rmse": planner.rmse(&planners.best),
        })
    };
    keys.into_iter().zip(planners.others()).map(|(key, p)| (key.to_owned(), figures(p))).collect()
}

fn what_if(outcome: &Outcome) -> Value {
    json!({
        "what_if": outcome.what_if.name(),
        "nights": outcome.n_nights,
        "best_cost": outcome.best_cost,
        "excess": outcome.excess(),
        "true_change": outcome.true_change,
        "learned_change": outcome.learned_change,
    })
}

fn worth(worth: &Worth) -> Value {
    json!({
        "limit": worth.name,
        "per": worth.unit,
        "true": mean(&worth.truth),
        "learned": mean(&worth.learned),
        "learned_without_errors": mean(&worth.exact),
        "correlation": correlation(&worth.truth, &worth.learned),
    })
}

/// What is printed without `--json`.
pub fn text(story: &Story, folder: &Path) -> String {
    let record = &story.fit.model.record;
    let mut text = format!(
        "\nrelative gap {:.1e} (proven), k = {} of {} tried\n\n",
        record.certificate.relative_gap,
        record.regularization,
        story.choices.len(),
    );
    tell_planners(&mut text, story);
    tell_what_ifs(&mut text, story);
    let _ = writeln!(text);
    for (file, what) in [
        ("report.html", "open this in a browser"),
        ("depot.argwhy", "the model"),
        ("history.csv", "the data; README.txt explains every column"),
        ("decisions.csv", "plans for the lines of tomorrow.csv"),
    ] {
        let _ = writeln!(text, "{}  {what}", folder.join(file).display());
    }
    let commands = by_hand(record.regularization);
    let _ = write!(text, "\nthe same by hand, in that folder:\n{commands}\n");
    text
}

// Writing to a string cannot fail.
fn tell_planners(text: &mut String, story: &Story) {
    let best = &story.planners.best;
    let nights = format!("true cost on {} nights", story.held_out.len());
    let mut line = |name: &str, cost: &str, excess: &str, error: &str| {
        let _ = writeln!(text, "{name:<36} {cost:>14} {excess:>12} {error:>10}");
    };
    line(&nights, "EUR a night", "above best", "error, kW");
    line(best.name, &format!("{:.2}", mean(&best.costs)), "–", "–");
    for planner in story.planners.others() {
        line(
            planner.name,
            &format!("{:.2}", mean(&planner.costs)),
            &format!("{:.2} %", 100.0 * planner.excess(best)),
            &format!("{:.2}", planner.rmse(best)),
        );
    }
}

fn tell_what_ifs(text: &mut String, story: &Story) {
    let _ = writeln!(
        text,
        "\n{:<36} {:>14} {:>12} {:>21}",
        "limits nobody has kept", "nights", "above best", "cost change, EUR"
    );
    for o in &story.what_ifs {
        let _ = writeln!(
            text,
            "{:<36} {:>14} {:>10.2} % {:>+9.2} (true {:>+.2})",
            o.what_if.name(),
            o.n_nights,
            100.0 * o.excess(),
            o.learned_change,
            o.true_change
        );
    }
}
