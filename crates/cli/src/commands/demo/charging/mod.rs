//! `argwhy demo charging`: a dispatcher's nights, a fit with the limits of each, and what the
//! learned cost is worth in euros.
//!
//! In: a seed. Out: tables as `fit`, `predict` and `evaluate` read them, the model, decisions, a
//! report. Everything is judged by the dispatcher's true cost, which no learner sees. `history` is
//! what happened, `learn` what both learners make of it, `judge` what that is worth; `tables` and
//! `tell` write it down.

mod history;
mod judge;
mod learn;
mod tables;
mod tell;

use super::{stopped, write};
use crate::End;
use crate::args::DemoArgs;
use crate::commands::{print, print_json};
use crate::error::CliError;
use crate::findings::charging::{Choice, Desired, Story, Tomorrow, Wear};
use crate::progress::{Follow, say};
use crate::{interrupt, pages};
use argwhy::core::solver::{Iteration, Status};
use argwhy::io::{write_decisions, write_prices};
use argwhy::{Fit, Pipeline, Predictor};
use argwhy_experts::charging;
use history::{HELD_OUT, History};
use judge::Learned;
use std::fs;
use std::path::Path;
use std::time::Instant;

/// Nights shown to the learners.
const SHOWN: usize = 1000;

pub fn run(args: &DemoArgs) -> Result<End, CliError> {
    let (start, quiet, folder) = (Instant::now(), args.quiet, args.output.as_path());
    fs::create_dir_all(folder)
        .map_err(|source| CliError::Write { path: folder.to_path_buf(), source })?;
    interrupt::listen();
    let n = args.nights.map_or(SHOWN, |n| n as usize);
    say(quiet, format_args!("1/4 a dispatcher charges vans on {n} + {HELD_OUT} nights …"));
    let history = History::new(n, args.seed)?;
    history.write(folder)?;

    say(quiet, format_args!("2/4 argwhy learns what the dispatcher minimises …"));
    let choices = learn::tried(&history)?;
    if interrupt::asked() {
        say(quiet, format_args!("stopped before the fit"));
        return Ok(End::Short);
    }
    let fitted = Fitted::new(&history, choices, quiet)?;
    let model_path = folder.join("depot.argwhy");
    fitted.fit.save(&model_path)?;
    write(&folder.join("README.txt"), tables::readme(fitted.regularization).as_bytes())?;

    say(quiet, format_args!("3/4 kernel ridge regression learns to copy the dispatcher …"));
    let imitation = learn::Imitation::new(&history)?;
    if interrupt::asked() {
        return Ok(stopped(quiet, &model_path));
    }

    say(quiet, format_args!("4/4 {HELD_OUT} nights nobody has shown, by the true cost …"));
    let story = story(args, history, fitted, imitation, start)?;
    report(&story, args)
}

/// What argwhy learned from all nights shown.
struct Fitted {
    choices: Vec<Choice>,
    /// The k chosen.
    regularization: f64,
    fit: Fit,
    /// Steps of the solver.
    steps: Vec<Iteration>,
}

impl Fitted {
    fn new(history: &History, choices: Vec<Choice>, quiet: bool) -> Result<Self, CliError> {
        let regularization = choices[learn::simplest(&choices)].regularization;
        let data = learn::dataset(&history.shown, history.shown_decisions.view())?;
        let mut follow = Follow::new(quiet, None)?;
        let all_rows = 0..history.shown.len();
        let pipeline = Pipeline::new(learn::settings(regularization)?)?;
        let fit = pipeline.fit_rows(&data, std::slice::from_ref(&all_rows), &mut follow);
        follow.finish()?;
        Ok(Self { choices, regularization, fit: fit?, steps: follow.history })
    }
}

/// Judges plans and limits, and writes what the model decides for tomorrow.
fn story(
    args: &DemoArgs,
    history: History,
    fitted: Fitted,
    imitation: learn::Imitation,
    start: Instant,
) -> Result<Story, CliError> {
    let predictor = Predictor::new(&fitted.fit.model)?;
    let planners = judge::planners(&history, &predictor, imitation.plans)?;
    let tomorrow = tomorrow(&history, &predictor, &args.output)?;
    let learned = Learned::new(predictor, &history.shown)?;
    let exact = Learned::without_errors(&history, fitted.regularization, args.seed)?;
    let held_out_signals = charging::signals(&history.held_out);
    Ok(Story {
        seed: args.seed,
        depot: history.depot,
        history: fitted.steps,
        choices: fitted.choices,
        ridge: imitation.ridge,
        planners,
        desired: Desired {
            truth: history.depot.all_desired(&history.held_out),
            learned: learned.predictor.desired(held_out_signals.view())?,
        },
        wear: Wear { truth: history.depot.wear, learned: learned.wear, exact: exact.wear },
        what_ifs: judge::what_ifs(&history, &learned)?,
        tomorrow,
        worth: judge::worth(&history, &learned, &exact)?,
        seconds: start.elapsed().as_secs_f64(),
        predictor: learned.predictor,
        fit: fitted.fit,
        shown: history.shown,
        held_out: history.held_out,
    })
}

/// Plans for tomorrow's versions; the learned ones and their prices also go to `folder`.
fn tomorrow(
    history: &History,
    predictor: &Predictor,
    folder: &Path,
) -> Result<Vec<Tomorrow>, CliError> {
    let nights = history.tomorrow_nights();
    let sets = predictor.sets(Some(&charging::constraints(&nights)?), nights.len())?;
    let wanted = predictor.desired(charging::signals(&nights).view())?;
    let learned = predictor.decide(wanted.view(), &sets)?;
    write_decisions(&folder.join("decisions.csv"), learned.view(), &[])?;
    let prices = predictor.prices(wanted.view(), &sets)?;
    write_prices(&folder.join("prices.csv"), &prices, &tables::names())?;
    let best = history.depot.best_plans(&nights)?;
    let plans = best.rows().into_iter().zip(learned.rows());
    Ok(history
        .tomorrow
        .iter()
        .zip(plans)
        .map(|(version, (best, learned))| Tomorrow {
            what_if: version.what_if,
            night: version.night,
            best_plan: best.to_vec(),
            learned_plan: learned.to_vec(),
        })
        .collect())
}

/// Writes the page, prints the figures.
fn report(story: &Story, args: &DemoArgs) -> Result<End, CliError> {
    let folder = args.output.as_path();
    write(&folder.join("report.html"), pages::charging::page(story)?.as_bytes())?;
    if args.json {
        print_json(&tell::figures(story))?;
    } else {
        print(&tell::text(story, folder))?;
    }
    Ok(if story.fit.outcome.status == Status::Solved { End::Done } else { End::Short })
}
