//! `argwhy demo quadrotor`: a pilot, its demonstrations, a fit, flights, a report.

use super::{stopped, write};
use crate::End;
use crate::args::DemoArgs;
use crate::commands::{print, print_json};
use crate::error::CliError;
use crate::findings::mean;
use crate::findings::quadrotor::{BestRidge, Flights, Flown, Story};
use crate::progress::{Follow, say};
use crate::{interrupt, pages};
use argwhy::core::decision_set::SampleSets;
use argwhy::core::metrics;
use argwhy::core::solver::Status;
use argwhy::settings::Numbers;
use argwhy::{Dataset, Fit, FitSettings, Model, Pipeline, Predictor};
use argwhy_experts::{Demonstrations, Expert, ExpertSettings, Quadrotor, State, Trajectory};
use rayon::prelude::*;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Decisions shown to the learners, decisions kept back, and flights.
const SHOWN: usize = 3000;
const HELD_OUT: usize = 2000;
const FLIGHTS: usize = 60;
/// Steps of a flight: six seconds.
const STEPS: usize = 120;
/// Regularization of both learners.
const REGULARIZATION: f64 = 1e-6;
/// Kernel ridge regression may also choose one of these instead, by the flights it is judged on.
const RIDGE_CHOICES: [f64; 5] = [1e-7, 1e-5, 1e-4, 1e-3, 1e-2];

pub fn run(args: &DemoArgs) -> Result<End, CliError> {
    let quiet = args.quiet;
    fs::create_dir_all(&args.output)
        .map_err(|source| CliError::Write { path: args.output.clone(), source })?;
    interrupt::listen();
    say(quiet, format_args!("1/4 a pilot flies {SHOWN} + {HELD_OUT} decisions …"));
    let expert = Expert::new(Quadrotor::default(), ExpertSettings::default())?;
    let demos = expert.demonstrations(SHOWN, args.seed)?;
    let held_out = expert.demonstrations(HELD_OUT, args.seed.wrapping_add(1))?;
    write(&args.output.join("demonstrations.csv"), csv(&demos).as_bytes())?;

    say(quiet, format_args!("2/4 argwhy learns what it wanted …"));
    let data = Dataset::new(demos.signals.clone(), demos.decisions.clone())?;
    let mut follow = Follow::new(quiet, None)?;
    let all_rows = 0..data.n_samples();
    let pipeline = Pipeline::new(settings(&demos))?;
    let fitted = pipeline.fit_rows(&data, std::slice::from_ref(&all_rows), &mut follow);
    follow.finish()?;
    let fit = fitted?;
    let model_path = args.output.join("pilot.argwhy");
    fit.save(&model_path)?;

    say(quiet, format_args!("3/4 kernel ridge regression learns to copy it …"));
    let ridge = Learned::new(copy(&data, &fit, REGULARIZATION)?)?;
    if interrupt::asked() {
        return Ok(stopped(quiet, &model_path));
    }

    say(quiet, format_args!("4/4 {FLIGHTS} flights from new starts, three controllers …"));
    let own = Learned::new(fit.model.clone())?;
    let starts = expert.scenarios(args.seed, FLIGHTS);
    let flown = fly_each(&expert, &own.predictor, &ridge.predictor, &starts)?;
    let flights = Flights::new(&flown);
    let rmse_ridge = ridge.error(&held_out)?;
    let mut best_ridge = BestRidge {
        regularization: REGULARIZATION,
        rmse: rmse_ridge,
        costs: flights.ridge_costs.clone(),
        crashes: flights.ridge_crashes,
    };
    for regularization in RIDGE_CHOICES {
        if interrupt::asked() {
            return Ok(stopped(quiet, &model_path));
        }
        let other = Learned::new(copy(&data, &fit, regularization)?)?;
        let flown = fly_all(&expert, &other.predictor, &starts)?;
        best_ridge.improve(BestRidge::new(regularization, other.error(&held_out)?, &flown));
    }
    let story = Story {
        best_ridge,
        seed: args.seed,
        dt: expert.settings().dt,
        rmse_model: own.error(&held_out)?,
        rmse_ridge,
        predicted: own.predictor.predict(held_out.signals.view())?,
        ridge: ridge.predictor.predict(held_out.signals.view())?,
        flights,
        history: follow.history,
        drawn: most_different(flown),
        demos,
        held_out,
        fit,
    };
    report(&story, args)
}

/// What argwhy is asked to fit: the pilot's decisions within the rotors' limits.
fn settings(demos: &Demonstrations) -> FitSettings {
    FitSettings {
        lower: Some(Numbers(demos.lower.to_vec())),
        upper: Some(Numbers(demos.upper.to_vec())),
        regularization: REGULARIZATION.into(),
        ..FitSettings::default()
    }
}

/// Without limits the same program is kernel ridge regression; what it wants is then cut to the
/// limits.
fn copy(data: &Dataset, fit: &Fit, regularization: f64) -> Result<Model, CliError> {
    let unlimited = FitSettings {
        unbounded: true,
        regularization: regularization.into(),
        ..FitSettings::default()
    };
    let mut model = Pipeline::new(unlimited)?.fit(data)?.model;
    model.set = fit.model.set.clone();
    Ok(model)
}

/// A model, ready to decide.
struct Learned {
    model: Model,
    predictor: Predictor,
}

impl Learned {
    fn new(model: Model) -> Result<Self, CliError> {
        let predictor = Predictor::new(&model)?;
        Ok(Self { model, predictor })
    }

    /// Root mean squared error of decisions, N.
    fn error(&self, held_out: &Demonstrations) -> Result<f64, CliError> {
        let desired = self.predictor.desired(held_out.signals.view())?;
        let (metric, sets) = (self.model.metric()?, SampleSets::from(self.model.set.clone()));
        Ok(metrics::evaluate(desired.view(), held_out.decisions.view(), &metric, &sets)?.rmse)
    }
}

/// From each start the pilot and both learned controllers.
fn fly_each(
    expert: &Expert,
    model: &Predictor,
    ridge: &Predictor,
    starts: &[State],
) -> Result<Vec<Flown>, CliError> {
    let each = |start: &State| -> Result<Flown, CliError> {
        Ok(Flown {
            expert: expert.fly_expert(start, STEPS)?,
            model: fly(expert, model, start)?,
            ridge: fly(expert, ridge, start)?,
        })
    };
    starts.par_iter().map(each).collect()
}

/// Writes the page, prints the figures.
fn report(story: &Story, args: &DemoArgs) -> Result<End, CliError> {
    write(&args.output.join("report.html"), pages::quadrotor::page(story)?.as_bytes())?;
    if args.json {
        print_json(&figures(story))?;
    } else {
        tell(story, &args.output)?;
    }
    Ok(if story.fit.outcome.status == Status::Solved { End::Done } else { End::Short })
}

fn fly(expert: &Expert, predictor: &Predictor, start: &State) -> Result<Trajectory, CliError> {
    let mut scratch = predictor.scratch();
    expert.try_fly(
        |signal| {
            let mut decision = vec![0.0; predictor.decision_dim()];
            predictor.decide_one(signal, None, &mut scratch, &mut decision)?;
            Ok::<_, CliError>(decision)
        },
        start,
        STEPS,
    )
}

fn fly_all(
    expert: &Expert,
    predictor: &Predictor,
    starts: &[State],
) -> Result<Vec<Trajectory>, CliError> {
    starts.par_iter().map(|start| fly(expert, predictor, start)).collect()
}

/// The flights on which the two learned controllers differ most come first.
fn most_different(mut flown: Vec<Flown>) -> Vec<Flown> {
    let difference = |f: &Flown| {
        ((f.ridge.total_cost - f.model.total_cost) / f.expert.total_cost.max(f64::MIN_POSITIVE))
            .abs()
    };
    flown.sort_by(|a, b| difference(b).total_cmp(&difference(a)));
    flown
}

fn figures(story: &Story) -> serde_json::Value {
    let (f, record) = (&story.flights, &story.fit.model.record);
    let best = &story.best_ridge;
    serde_json::json!({
        "demo": "quadrotor",
        "status": record.status,
        "relative_gap": record.certificate.relative_gap,
        "n_samples": record.n_samples,
        "flights": f.expert_costs.len(),
        "excess": {
            "argwhy": f.excess_model(),
            "kernel_ridge": f.excess_ridge(),
            "kernel_ridge_best": f.excess(&best.costs),
        },
        "rmse": {
            "argwhy": story.rmse_model,
            "kernel_ridge": story.rmse_ridge,
            "kernel_ridge_best": best.rmse,
        },
        "crashes": {
            "argwhy": f.model_crashes,
            "kernel_ridge": f.ridge_crashes,
            "kernel_ridge_best": best.crashes,
        },
    })
}

fn tell(story: &Story, folder: &Path) -> Result<(), CliError> {
    let (f, c) = (&story.flights, story.fit.model.record.certificate);
    print(&format!(
        "\n\
         relative gap {:.1e} (proven), {} of {} samples carry weight\n\n\
         controller               decision error   true cost of a flight   above the expert   \
         crashes\n\
         expert                                –   {:>21.2}                  –   {:>7}\n\
         argwhy                   {:>14.4}   {:>21.2}   {:>14.2} %   {:>7}\n\
         kernel ridge, clipped    {:>14.4}   {:>21.2}   {:>14.2} %   {:>7}\n\
         the same, k = {:<8.0e}   {:>14.4}   {:>21.2}   {:>14.2} %   {:>7}\n\n\
         (the last row's k is the best of six for the very flights it is judged on)\n\n\
         {}  open this in a browser\n\
         {}  the model\n\
         {}  the data, for `argwhy fit`\n",
        c.relative_gap,
        story.fit.model.n_support(),
        story.fit.model.record.n_samples,
        mean(&f.expert_costs),
        f.expert_crashes,
        story.rmse_model,
        mean(&f.model_costs),
        100.0 * f.excess_model(),
        f.model_crashes,
        story.rmse_ridge,
        mean(&f.ridge_costs),
        100.0 * f.excess_ridge(),
        f.ridge_crashes,
        story.best_ridge.regularization,
        story.best_ridge.rmse,
        mean(&story.best_ridge.costs),
        100.0 * f.excess(&story.best_ridge.costs),
        story.best_ridge.crashes,
        folder.join("report.html").display(),
        folder.join("pilot.argwhy").display(),
        folder.join("demonstrations.csv").display(),
    ))
}

/// The demonstrations as a table that `argwhy fit` reads.
fn csv(demos: &Demonstrations) -> String {
    let names = |prefix: &str, n: usize| -> Vec<String> {
        (0..n).map(|i| format!("{prefix}_{i}")).collect()
    };
    let header =
        [names("signals", demos.signals.ncols()), names("decisions", demos.decisions.ncols())]
            .concat();
    let mut text = header.join(",");
    for (signal, decision) in demos.signals.rows().into_iter().zip(demos.decisions.rows()) {
        text.push('\n');
        for (i, value) in signal.iter().chain(decision).enumerate() {
            // Writing to a string cannot fail.
            let _ = write!(text, "{}{value}", if i > 0 { "," } else { "" });
        }
    }
    text.push('\n');
    text
}
