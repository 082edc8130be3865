//! The report of `argwhy demo quadrotor`.

use super::sections;
use crate::error::CliError;
use crate::findings::mean;
use crate::findings::quadrotor::Story;
use crate::report::{
    Figure, Histogram, LineChart, PathChart, ReportError, Section, Series, Table, number,
};

/// Flights drawn as paths.
const DRAWN: usize = 4;

/// One page about the whole way from demonstrations to flights.
pub fn page(story: &Story) -> Result<String, CliError> {
    draw(story).map_err(|e| CliError::Report(e.to_string()))
}

fn draw(story: &Story) -> Result<String, ReportError> {
    let subtitle = format!(
        "{} decisions of a model-predictive pilot of a planar quadrotor, two rotors, each between \
         {} and {} N of hover",
        story.demos.signals.nrows(),
        number(story.demos.lower[0]),
        number(story.demos.upper[0]),
    );
    let page = sections::header("Learning a pilot's objective", &subtitle, &story.fit)
        .tile(
            "Cost above the expert's",
            format!("{:.2} %", 100.0 * story.flights.excess_model()),
            format!(
                "clipped kernel ridge {:.2} %, with its best k {:.2} %",
                100.0 * story.flights.excess_ridge(),
                100.0 * story.flights.excess(&story.best_ridge.costs)
            ),
        )
        .section(comparison(story)?)
        .section(flights(story)?)
        .section(
            sections::decisions(
                "Decisions on states nobody has shown",
                "Held-out states: the expert's thrust against the model's, beside plain kernel \
                 ridge regression cut to the limits.",
                story.held_out.decisions.view(),
                &[("argwhy", story.predicted.view()), ("clipped ridge", story.ridge.view())],
                &story.fit.model.names,
            )?
            .table(sections::limits(&story.fit.model, story.demos.decisions.view())),
        )
        .section(sections::convergence(&story.history, &story.fit)?)
        .section(sections::certificate(&story.fit))
        .section(sections::weights(&story.fit)?)
        .section(sections::settings(&story.fit));
    let page = page.section(
        Section::new("Do it yourself")
            .text(
                "The demonstrations are beside this page as a table. The same fit from the \
                   command line:",
            )
            .code(format!(
                "argwhy fit demonstrations.csv --lower={lower} --upper={upper} -k {k} -o \
                 pilot.argwhy --report fit.html",
                lower = argwhy::settings::Numbers(story.demos.lower.to_vec()),
                upper = argwhy::settings::Numbers(story.demos.upper.to_vec()),
                k = story.fit.model.record.regularization,
            )),
    );
    page.footer(format!(
        "argwhy {} · argwhy demo quadrotor --seed {}",
        env!("CARGO_PKG_VERSION"),
        story.seed
    ))
    .render()
}

fn comparison(story: &Story) -> Result<Section, ReportError> {
    let best = &story.best_ridge;
    let f = &story.flights;
    let row =
        |name: &str, rmse: Option<f64>, costs: &[f64], crashed: usize, excess: Option<f64>| {
            [
                name.to_owned(),
                rmse.map_or("–".to_owned(), |v| format!("{v:.4}")),
                format!("{:.2}", mean(costs)),
                excess.map_or("–".to_owned(), |v| format!("{:.2} %", 100.0 * v)),
                crashed.to_string(),
            ]
        };
    let table = Table::new([
        "controller",
        "decision error (rmse, N)",
        "mean true cost of a flight",
        "above the expert",
        "crashes",
    ])
    .row(row("expert (model-predictive)", None, &f.expert_costs, f.expert_crashes, None))
    .row(row(
        "argwhy",
        Some(story.rmse_model),
        &f.model_costs,
        f.model_crashes,
        Some(f.excess_model()),
    ))
    .row(row(
        "kernel ridge, clipped",
        Some(story.rmse_ridge),
        &f.ridge_costs,
        f.ridge_crashes,
        Some(f.excess_ridge()),
    ))
    .row(row(
        &format!("kernel ridge, clipped, k = {:e}", best.regularization),
        Some(best.rmse),
        &best.costs,
        best.crashes,
        Some(f.excess(&best.costs)),
    ))
    .caption(format!(
        "{} held-out flights, charged by the expert's own objective. The k of the last row is the \
         best of six for these very flights.",
        f.expert_costs.len()
    ));
    let excess = |costs: &[f64]| -> Vec<f64> {
        costs
            .iter()
            .zip(&f.expert_costs)
            .map(|(c, e)| 100.0 * (c / e - 1.0))
            .filter(|v| *v < 100.0)
            .collect()
    };
    let histogram = Histogram::new("cost above the expert's, %")
        .series("argwhy", excess(&f.model_costs))
        .series("clipped ridge", excess(&f.ridge_costs))
        .series("clipped ridge, best k", excess(&best.costs))
        .render()?;
    Ok(Section::new("What knowing the limits is worth")
        .text(
            "The expert's true objective is known here, so every flight can be charged by it. \
             Kernel ridge regression has the same kernel, the same data and the same \
             regularization; it takes decisions at a limit at face value and has to bend its \
             function to them; more regularization helps it with that. Inverse optimization knows \
             that a limit was in the way and asks what was wanted.",
        )
        .table(table)
        .figure(
            Figure::new(
                histogram,
                "Extra cost of each held-out flight (flights at twice the \
                                        expert's cost or more are left out).",
            )
            .wide(),
        ))
}

fn flights(story: &Story) -> Result<Section, ReportError> {
    let mut section = Section::new("Flights from starts nobody has shown").text(
        "The learned controller in closed loop with the nonlinear plant, against the expert, each \
         from the same start to the target at the origin: the flights on which the two learned \
         controllers differ most, whoever is better.",
    );
    for (i, drawn) in story.drawn.iter().take(DRAWN).enumerate() {
        let path = |states: &ndarray::Array2<f64>| -> Vec<(f64, f64)> {
            states.rows().into_iter().map(|s| (s[0], s[1])).collect()
        };
        let chart = PathChart::new("x, m", "z, m")
            .series(Series::new("expert", path(&drawn.expert.states)))
            .series(Series::new("argwhy", path(&drawn.model.states)))
            .series(Series::new("clipped ridge", path(&drawn.ridge.states)))
            .target(0.0, 0.0)
            .render()?;
        let caption = format!(
            "Flight {}: true cost {:.1} (expert), {:.1} (argwhy), {:.1} (clipped ridge).",
            i + 1,
            drawn.expert.total_cost,
            drawn.model.total_cost,
            drawn.ridge.total_cost
        );
        section = section.figure(Figure::new(chart, caption));
    }
    if let Some(first) = story.drawn.first() {
        for rotor in 0..2 {
            let thrust = |inputs: &ndarray::Array2<f64>| -> Vec<(f64, f64)> {
                inputs
                    .column(rotor)
                    .iter()
                    .enumerate()
                    .map(|(t, u)| (t as f64 * story.dt, *u))
                    .collect()
            };
            let chart = LineChart::new("time, s", "thrust above hover, N")
                .series(Series::new("expert", thrust(&first.expert.inputs)))
                .series(Series::new("argwhy", thrust(&first.model.inputs)))
                .series(Series::new("clipped ridge", thrust(&first.ridge.inputs)))
                .level(story.demos.upper[rotor], "upper limit")
                .level(story.demos.lower[rotor], "lower limit")
                .render()?;
            section = section.figure(Figure::new(chart, format!("Flight 1, rotor {rotor}.")));
        }
    }
    Ok(section)
}
