//! `argwhy demo charging`: a dispatcher's nights, a fit with the limits of each, and what the learned cost is worth in euros.
//!
//! In: a seed. Out: tables as `fit`, `predict` and `evaluate` read them, the model, decisions, a report. Everything is judged by the
//! dispatcher's true cost, which no learner sees.

use super::{stopped, write};
use crate::End;
use crate::args::DemoArgs;
use crate::commands::{print, print_json};
use crate::error::CliError;
use crate::progress::{Follow, say};
use crate::{interrupt, pages};
use argwhy::core::decision_set::{Prices, RowLabel, SampleSets};
use argwhy::core::solver::{Iteration, Status};
use argwhy::experts::charging::{
    self, Depot, GRID_ROW, HOURS, LIMIT_ROWS, Night, PERIODS, ROOM_ROW, SIGNAL_NAMES, WhatIf,
};
use argwhy::io::write_decisions;
use argwhy::{Dataset, Fit, FitSettings, Pipeline, Predictor};
use ndarray::{Array2, ArrayView2, Axis, concatenate};
use serde_json::json;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::Instant;

/// Nights shown to the learners, and nights kept back.
const SHOWN: usize = 1000;
const HELD_OUT: usize = 200;
/// Both learners choose k by the last fifth of the nights shown.
const VALIDATED: usize = 5;
/// The kernel of both learners: mostly straight lines (a price is a price), bent where the data ask for it.
const KERNEL: &str = "linear + 0.3*rbf";
/// What argwhy may choose k from.
const CHOICES: [f64; 5] = [1e-2, 3e-3, 1e-3, 3e-4, 1e-4];
/// The largest k whose error is within this share of the least: the simplest model that is not noticeably worse.
const AS_GOOD: f64 = 0.01;
/// Nights after the last among which tomorrow is looked for.
const AHEAD: usize = 60;
/// What kernel ridge regression may choose k from.
const RIDGE_CHOICES: [f64; 6] = [1e-1, 1e-2, 3e-3, 1e-3, 1e-4, 1e-5];
/// A change of price, in EUR/kWh, over which the learned slope is taken.
const PRICE_STEP: f64 = 0.01;
/// kW below which a power counts as at its limit.
const AT_LIMIT: f64 = 1e-6;

/// Everything the report tells.
pub struct Story {
    pub seed: u64,
    pub depot: Depot,
    pub fit: Fit,
    pub history: Vec<Iteration>,
    /// k and the error of decisions on the nights it was chosen by.
    pub choices: Vec<(f64, f64)>,
    pub ridge: Ridge,
    pub shown: Vec<Night>,
    pub held_out: Vec<Night>,
    /// Planners on the held-out nights: the best plan first.
    pub planners: Vec<Planner>,
    /// g on the held-out nights: true and learned.
    pub desired: [Array2<f64>; 2],
    /// w, true, by the learned slope against the price, and by that learned from decisions without errors; euros for a kW² in a period.
    pub wear: [f64; 3],
    pub what_ifs: Vec<Outcome>,
    /// The night after the last, by `WhatIf`: the night, the best plan, the learned plan.
    pub tomorrow: Vec<(WhatIf, Night, Vec<f64>, Vec<f64>)>,
    /// Euros that limits cost on each held-out night, true and learned.
    pub worth: Vec<Worth>,
    pub seconds: f64,
    predictor: Predictor,
}

/// Kernel ridge regression as it was chosen.
pub struct Ridge {
    pub regularization: f64,
    /// Whether it sees the limits beside the signals.
    pub sees_limits: bool,
}

/// Somebody's plans and their true costs in euros.
pub struct Planner {
    pub name: &'static str,
    pub plans: Array2<f64>,
    pub costs: Vec<f64>,
}

/// The learned cost under limits nobody has kept.
pub struct Outcome {
    pub what_if: WhatIf,
    /// Held-out nights on which the limits can be kept at all.
    pub n_nights: usize,
    /// Mean true cost in euros: of the best plan, of the learned plan.
    pub costs: [f64; 2],
    /// Mean change of the cost against limits as planned, same nights: true best plans, and what the model says in advance.
    pub changes: [f64; 2],
}

/// What a kind of limit costs.
pub struct Worth {
    pub name: &'static str,
    pub unit: &'static str,
    /// Euros for a unit, night by night.
    pub truth: Vec<f64>,
    pub learned: Vec<f64>,
    /// Learned from the same nights had the dispatcher never erred.
    pub exact: Vec<f64>,
}

pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Pearson's correlation; zero where one side is constant.
pub fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let (ma, mb) = (mean(a), mean(b));
    let sum = |f: &dyn Fn(f64, f64) -> f64| -> f64 {
        a.iter().zip(b).map(|(a, b)| f(a - ma, b - mb)).sum()
    };
    let size = (sum(&|a, _| a * a) * sum(&|_, b| b * b)).sqrt();
    if size > 0.0 { sum(&|a, b| a * b) / size } else { 0.0 }
}

impl Planner {
    fn new(name: &'static str, depot: &Depot, nights: &[Night], plans: Array2<f64>) -> Self {
        let costs = costs(depot, nights, &plans);
        Self { name, plans, costs }
    }

    /// Mean cost over that of the best plans, minus one.
    pub fn excess(&self, best: &Self) -> f64 {
        mean(&self.costs) / mean(&best.costs) - 1.0
    }

    /// Mean over the nights of cost over that of the best plan, minus one.
    pub fn mean_relative_excess(&self, best: &Self) -> f64 {
        let each: Vec<f64> = self.costs.iter().zip(&best.costs).map(|(c, b)| c / b - 1.0).collect();
        mean(&each)
    }

    /// Root mean squared difference of powers, kW.
    pub fn rmse(&self, best: &Self) -> f64 {
        rmse(self.plans.view(), best.plans.view())
    }
}

impl Story {
    pub fn best(&self) -> &Planner {
        &self.planners[0]
    }

    pub fn argwhy(&self) -> &Planner {
        &self.planners[1]
    }

    pub fn dispatcher(&self) -> &Planner {
        &self.planners[2]
    }

    /// The learned price of the first kWh in each period, EUR/kWh, one row a night.
    pub fn learned_first_kwh(&self, nights: &[Night]) -> Result<Array2<f64>, CliError> {
        let g = self.predictor.desired(charging::signals(nights).view())?;
        Ok(g * (-2.0 * self.wear[1] / HOURS))
    }
}

pub fn run(args: &DemoArgs) -> Result<End, CliError> {
    let (start, quiet, folder) = (Instant::now(), args.quiet, args.output.as_path());
    fs::create_dir_all(folder)
        .map_err(|source| CliError::Write { path: folder.to_path_buf(), source })?;
    interrupt::listen();
    let n = args.nights.map_or(SHOWN, |n| n as usize);
    say(quiet, format_args!("1/4 a dispatcher charges vans on {n} + {HELD_OUT} nights …"));
    let depot = Depot::default();
    let nights = charging::nights(n + HELD_OUT + AHEAD, args.seed);
    let decisions = depot.decisions(&nights[..n + HELD_OUT], args.seed)?;
    let (shown, held_out) = (&nights[..n], &nights[n..n + HELD_OUT]);
    let (shown_decisions, held_decisions) = decisions.view().split_at(Axis(0), n);
    let tomorrow = tomorrow(&depot, &nights[n + HELD_OUT..])?;
    let tomorrow_nights: Vec<Night> = tomorrow.iter().map(|(_, night)| *night).collect();
    write(&folder.join("history.csv"), table(shown, Some(shown_decisions)).as_bytes())?;
    write(&folder.join("held-out.csv"), table(held_out, Some(held_decisions)).as_bytes())?;
    write(&folder.join("tomorrow.csv"), table(&tomorrow_nights, None).as_bytes())?;
    write(&folder.join("matrix.csv"), matrix().as_bytes())?;

    say(quiet, format_args!("2/4 argwhy learns what the dispatcher minimises …"));
    let n_train = n - n / VALIDATED;
    let tried = errors((shown, shown_decisions), n_train)?;
    if interrupt::asked() {
        say(quiet, format_args!("stopped before the fit"));
        return Ok(End::Short);
    }
    let (regularization, ()) = simplest(&tried);
    let data = dataset(shown, shown_decisions)?;
    let mut follow = Follow::new(quiet, None)?;
    let all_rows = 0..n;
    let fitted = Pipeline::new(settings(regularization)?)?.fit_rows(
        &data,
        std::slice::from_ref(&all_rows),
        &mut follow,
    );
    follow.finish()?;
    let fit = fitted?;
    let model_path = folder.join("depot.argwhy");
    fit.save(&model_path)?;
    let predictor = Predictor::new(&fit.model)?;
    write(&folder.join("README.txt"), readme(regularization).as_bytes())?;

    say(quiet, format_args!("3/4 kernel ridge regression learns to copy the dispatcher …"));
    let (ridge, ridge_plans) = copy((shown, shown_decisions), n_train, held_out)?;
    if interrupt::asked() {
        return Ok(stopped(quiet, &model_path));
    }

    say(quiet, format_args!("4/4 {HELD_OUT} nights nobody has shown, by the true cost …"));
    let greedy: Vec<f64> = held_out.iter().flat_map(charging::cheapest_hours).collect();
    let greedy = Array2::from_shape_vec((HELD_OUT, PERIODS), greedy)
        .map_err(|e| CliError::Usage(e.to_string()))?;
    let planner = |name, plans| Planner::new(name, &depot, held_out, plans);
    let planners = vec![
        planner("best plan (true cost)", depot.best_plans(held_out)?),
        planner("argwhy", plan(&predictor, held_out)?),
        planner("dispatcher", held_decisions.to_owned()),
        planner("kernel ridge, moved into the limits", ridge_plans),
        planner("cheapest hours first", greedy),
    ];
    let sets = predictor.sets(Some(&charging::constraints(&tomorrow_nights)?), tomorrow.len())?;
    let wanted = predictor.desired(charging::signals(&tomorrow_nights).view())?;
    let learned_plans = predictor.decide(wanted.view(), &sets)?;
    let best_plans = depot.best_plans(&tomorrow_nights)?;
    write_decisions(&folder.join("decisions.csv"), learned_plans.view())?;
    let prices = predictor.prices(wanted.view(), &sets)?;
    write(&folder.join("prices.csv"), prices_table(&prices).as_bytes())?;
    let wear = learned_wear(&predictor, shown)?;
    // What the same nights teach without the dispatcher's errors: how much of a difference is theirs.
    let errorless = Depot { noise: 0.0, ..depot }.decisions(shown, args.seed)?;
    let exact =
        Pipeline::new(settings(regularization)?)?.fit(&dataset(shown, errorless.view())?)?;
    let exact = Predictor::new(&exact.model)?;
    let exact_wear = learned_wear(&exact, shown)?;
    let story = Story {
        seed: args.seed,
        depot,
        history: follow.history,
        choices: tried.into_iter().map(|((k, ()), error)| (k, error)).collect(),
        ridge,
        shown: shown.to_vec(),
        held_out: held_out.to_vec(),
        planners,
        desired: [
            depot.all_desired(held_out),
            predictor.desired(charging::signals(held_out).view())?,
        ],
        wear: [depot.wear, wear, exact_wear],
        what_ifs: WhatIf::ALL
            .into_iter()
            .map(|what_if| under(what_if, &depot, &predictor, wear, held_out))
            .collect::<Result<_, _>>()?,
        tomorrow: tomorrow
            .into_iter()
            .enumerate()
            .map(|(i, (what_if, night))| {
                (what_if, night, best_plans.row(i).to_vec(), learned_plans.row(i).to_vec())
            })
            .collect(),
        worth: worth(&depot, [(&predictor, wear), (&exact, exact_wear)], held_out)?,
        seconds: start.elapsed().as_secs_f64(),
        predictor,
        fit,
    };
    report(&story, args)
}

/// Writes the page, prints the figures.
fn report(story: &Story, args: &DemoArgs) -> Result<End, CliError> {
    let folder = args.output.as_path();
    write(&folder.join("report.html"), pages::charging::page(story)?.as_bytes())?;
    if args.json {
        print_json(&figures(story))?;
    } else {
        tell(story, folder)?;
    }
    Ok(if story.fit.outcome.status == Status::Solved { End::Done } else { End::Short })
}

fn settings(regularization: f64) -> Result<FitSettings, CliError> {
    let kernel = KERNEL.parse().map_err(CliError::Usage)?;
    Ok(FitSettings { kernel, regularization, ..FitSettings::default() })
}

fn dataset(nights: &[Night], decisions: ArrayView2<'_, f64>) -> Result<Dataset, CliError> {
    let data = Dataset::new(charging::signals(nights), decisions.to_owned())?;
    Ok(data.with_constraints(charging::constraints(nights)?)?)
}

fn plan(predictor: &Predictor, nights: &[Night]) -> Result<Array2<f64>, CliError> {
    let constraints = charging::constraints(nights)?;
    Ok(predictor.predict_within(charging::signals(nights).view(), &constraints)?)
}

fn costs(depot: &Depot, nights: &[Night], plans: &Array2<f64>) -> Vec<f64> {
    nights.iter().zip(plans.rows()).map(|(night, u)| depot.cost(night, &u.to_vec())).collect()
}

fn rmse(a: ArrayView2<'_, f64>, b: ArrayView2<'_, f64>) -> f64 {
    let squares: f64 = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum();
    (squares / a.len().max(1) as f64).sqrt()
}

/// k and anything else that was chosen with it, and the error of decisions that came of it.
type Tried<T> = ((f64, T), f64);

/// How far the decisions on the last nights are off, for each k that argwhy may choose, learned from the first `n_train`.
fn errors(
    (shown, decisions): (&[Night], ArrayView2<'_, f64>),
    n_train: usize,
) -> Result<Vec<Tried<()>>, CliError> {
    let (given, kept) = decisions.split_at(Axis(0), n_train);
    let data = dataset(&shown[..n_train], given)?;
    let mut errors = Vec::new();
    for regularization in CHOICES {
        let fit = Pipeline::new(settings(regularization)?)?.fit(&data)?;
        let plans = plan(&Predictor::new(&fit.model)?, &shown[n_train..])?;
        errors.push(((regularization, ()), rmse(plans.view(), kept)));
        if interrupt::asked() {
            break;
        }
    }
    Ok(errors)
}

/// Of choices (k, anything else) with their errors the one with the largest k that is as good as the best.
fn simplest<T: Copy>(choices: &[Tried<T>]) -> (f64, T) {
    let least = choices.iter().fold(f64::INFINITY, |least, choice| least.min(choice.1));
    let good = choices.iter().filter(|choice| choice.1 <= (1.0 + AS_GOOD) * least);
    // Of two with the same k the better one.
    let order = |a: &&Tried<T>, b: &&Tried<T>| a.0.0.total_cmp(&b.0.0).then(b.1.total_cmp(&a.1));
    good.max_by(order).map(|choice| choice.0).expect("there is something to choose from")
}

/// Kernel ridge regression with the same kernel, its plans moved to the nearest ones allowed. It chooses k, and whether to see the
/// limits beside the signals, by the same nights as argwhy chooses k.
fn copy(
    (shown, decisions): (&[Night], ArrayView2<'_, f64>),
    n_train: usize,
    held_out: &[Night],
) -> Result<(Ridge, Array2<f64>), CliError> {
    let inputs = |nights: &[Night], sees_limits: bool| -> Array2<f64> {
        let signals = charging::signals(nights);
        if !sees_limits {
            return signals;
        }
        let limits = Array2::from_shape_fn((nights.len(), PERIODS + LIMIT_ROWS), |(i, c)| {
            let limits = &nights[i].limits;
            if c < PERIODS { limits.chargers[c] } else { limits.bounds()[c - PERIODS] }
        });
        concatenate(Axis(1), &[signals.view(), limits.view()]).expect("a row a night on both sides")
    };
    let plans = |n: usize, nights: &[Night], (regularization, sees_limits): (f64, bool)| {
        let unlimited = FitSettings { unbounded: true, ..settings(regularization)? };
        let given = decisions.slice(ndarray::s![..n, ..]).to_owned();
        let data = Dataset::new(inputs(&shown[..n], sees_limits), given)?;
        let model = Pipeline::new(unlimited)?.fit(&data)?.model;
        let wanted = Predictor::new(&model)?.desired(inputs(nights, sees_limits).view())?;
        Ok::<_, CliError>(charging::nearest(&charging::sets(nights)?, wanted)?)
    };
    let mut choices = Vec::new();
    for choice in RIDGE_CHOICES.into_iter().flat_map(|k| [(k, false), (k, true)]) {
        let tried = plans(n_train, &shown[n_train..], choice)?;
        choices.push((choice, rmse(tried.view(), decisions.slice(ndarray::s![n_train.., ..]))));
        if interrupt::asked() {
            break;
        }
    }
    let (regularization, sees_limits) = simplest(&choices);
    let chosen = plans(shown.len(), held_out, (regularization, sees_limits))?;
    Ok((Ridge { regularization, sees_limits }, chosen))
}

/// w by the one thing known in euros: a kWh at price p costs p, so −∂g_j/∂p_j = h/(2w). The mean slope over the powers that no limit of
/// their period holds, on the nights shown.
fn learned_wear(predictor: &Predictor, shown: &[Night]) -> Result<f64, CliError> {
    let plans = plan(predictor, shown)?;
    let signals = charging::signals(shown);
    let (mut fall, mut count) = (0.0, 0.0);
    for j in 0..PERIODS {
        let at = |step: f64| {
            let mut moved = signals.clone();
            moved.column_mut(j).iter_mut().for_each(|price| *price += step);
            predictor.desired(moved.view())
        };
        let (dearer, cheaper) = (at(PRICE_STEP)?, at(-PRICE_STEP)?);
        for (i, night) in shown.iter().enumerate() {
            let limits = &night.limits;
            let most = limits.chargers[j].min(limits.grid - limits.building[j]);
            if plans[[i, j]] > AT_LIMIT && plans[[i, j]] < most - AT_LIMIT {
                fall += (cheaper[[i, j]] - dearer[[i, j]]) / (2.0 * PRICE_STEP);
                count += 1.0;
            }
        }
    }
    Ok(HOURS * count / (2.0 * fall))
}

/// The learned cost of `plan` up to what does not depend on it: w·(‖u‖² − 2gᵀu), with the need paid as the true cost has it.
fn learned_cost(wear: f64, night: &Night, g: &[f64], plan: &[f64]) -> f64 {
    let value: f64 = plan.iter().zip(g).map(|(u, g)| u * u - 2.0 * g * u).sum();
    wear * value + night.day_tariff * night.limits.need()
}

/// The held-out nights on which `what_if` can be kept.
fn under(
    what_if: WhatIf,
    depot: &Depot,
    predictor: &Predictor,
    wear: f64,
    held_out: &[Night],
) -> Result<Outcome, CliError> {
    let (before, after): (Vec<Night>, Vec<Night>) =
        held_out.iter().filter_map(|night| Some((*night, what_if.apply(night)?))).unzip();
    let g = predictor.desired(charging::signals(&before).view())?;
    // Mean true cost of best and learned plans, and mean learned cost of learned plans.
    let account = |nights: &[Night]| -> Result<[f64; 3], CliError> {
        let sets: SampleSets = charging::sets(nights)?;
        let learned = predictor.decide(g.view(), &sets)?;
        let own: Vec<f64> = (0..nights.len())
            .map(|i| learned_cost(wear, &nights[i], &g.row(i).to_vec(), &learned.row(i).to_vec()))
            .collect();
        let best = depot.best_plans(nights)?;
        let true_costs = [&best, &learned].map(|plans| mean(&costs(depot, nights, plans)));
        Ok([true_costs[0], true_costs[1], mean(&own)])
    };
    let ([best_before, _, own_before], [best, learned, own]) =
        (account(&before)?, account(&after)?);
    Ok(Outcome {
        what_if,
        n_nights: after.len(),
        costs: [best, learned],
        changes: [best - best_before, own - own_before],
    })
}

/// A kind of limits: its name, what one more of it is, which limits belong to it.
type Kind<'a> = (&'static str, &'static str, &'a dyn Fn(RowLabel) -> bool);

/// What limits cost on the held-out nights, by kind.
fn worth(
    depot: &Depot,
    learners: [(&Predictor, f64); 2],
    held_out: &[Night],
) -> Result<Vec<Worth>, CliError> {
    let sets = charging::sets(held_out)?;
    let prices = |(predictor, wear): (&Predictor, f64)| -> Result<Prices, CliError> {
        let g = predictor.desired(charging::signals(held_out).view())?;
        let mut prices = predictor.prices(g.view(), &sets)?;
        prices.values.iter_mut().for_each(|value| *value *= wear);
        Ok(prices)
    };
    let (learned, exact) = (prices(learners[0])?, prices(learners[1])?);
    let truth = depot.prices(held_out)?;
    let row = |label: RowLabel| match label {
        RowLabel::Inequality(row) => Some(row as usize),
        _ => None,
    };
    let kinds: [Kind<'_>; 4] = [
        ("grid connection", "kW more", &|l| row(l).is_some_and(|row| row >= GRID_ROW)),
        ("chargers", "kW more in every period", &|l| matches!(l, RowLabel::Upper(_))),
        ("energy needed", "kWh less", &|l| row(l).is_some_and(|row| row < ROOM_ROW)),
        ("battery room", "kWh more", &|l| row(l) == Some(ROOM_ROW)),
    ];
    let by_night = |prices: &Prices, belongs: &dyn Fn(RowLabel) -> bool| -> Vec<f64> {
        let mut sums = vec![0.0; held_out.len()];
        for (k, &label) in prices.limits.iter().enumerate() {
            if belongs(label) {
                sums[prices.samples[k] as usize] += prices.values[k];
            }
        }
        sums
    };
    Ok(kinds
        .into_iter()
        .map(|(name, unit, belongs)| Worth {
            name,
            unit,
            truth: by_night(&truth, belongs),
            learned: by_night(&learned, belongs),
            exact: by_night(&exact, belongs),
        })
        .collect())
}

/// The first night ahead on which every changed limit can be kept and changes the best plan, once for each; the first night of all
/// where there is none.
fn tomorrow(depot: &Depot, ahead: &[Night]) -> Result<Vec<(WhatIf, Night)>, CliError> {
    let versions = |night: &Night| -> Vec<(WhatIf, Night)> {
        let apply = |what_if: WhatIf| Some((what_if, what_if.apply(night)?));
        WhatIf::ALL.into_iter().filter_map(apply).collect()
    };
    for night in ahead {
        let changed = versions(night);
        let nights: Vec<Night> = changed.iter().map(|(_, night)| *night).collect();
        let plans = depot.best_plans(&nights)?;
        let differs = |i: usize| {
            rmse(plans.row(i).insert_axis(Axis(0)), plans.slice(ndarray::s![..1, ..])) > 1.0
        };
        if changed.len() == WhatIf::ALL.len() && (1..changed.len()).all(differs) {
            return Ok(changed);
        }
    }
    Ok(versions(&ahead[0]))
}

/// The three commands that do the same by hand, in the folder.
pub fn by_hand(regularization: f64) -> String {
    format!(
        "argwhy fit history.csv --constraints --matrix matrix.csv --kernel \"{KERNEL}\" -k {regularization} -o depot.argwhy\n\
         argwhy predict depot.argwhy tomorrow.csv --matrix matrix.csv -o decisions.csv --prices prices.csv\n\
         argwhy evaluate depot.argwhy held-out.csv --matrix matrix.csv"
    )
}

/// What every column means.
pub fn columns() -> Vec<(String, String)> {
    let mut columns: Vec<(String, String)> = SIGNAL_NAMES
        .iter()
        .enumerate()
        .map(|(i, name)| (format!("signals_{i}"), (*name).to_owned()))
        .collect();
    let last = PERIODS - 1;
    columns.push((
        format!("decisions_0 to _{last}"),
        "charging power of the depot in the eight periods of two hours from 16:00, kW".to_owned(),
    ));
    columns.push((format!("lower_0 to _{last}"), "least power, kW".to_owned()));
    columns
        .push((format!("upper_0 to _{last}"), "power of the chargers with a van, kW".to_owned()));
    columns.extend((0..LIMIT_ROWS).map(|row| (format!("W_{row}"), charging::limit_name(row))));
    columns
}

fn readme(regularization: f64) -> String {
    let mut text = "A depot of electric vans, night by night: made by `argwhy demo charging`.\n\n\
        history.csv    nights shown: what the dispatcher saw, decided and was allowed\n\
        held-out.csv   nights kept back, the same columns\n\
        tomorrow.csv   the next night, no decisions yet, once with its limits and once under each changed limit\n\
        matrix.csv     M, the same every night: a plan u is allowed if M u <= W and lower <= u <= upper\n\
        depot.argwhy   the learned model\n\
        decisions.csv  its plan for each line of tomorrow.csv\n\
        prices.csv     what each limit costs there, in units of the learned objective\n\
        report.html    everything in words and pictures\n\nColumns\n"
        .to_owned();
    for (name, meaning) in columns() {
        let _ = writeln!(text, "  {name:<17} {meaning}");
    }
    let _ = write!(text, "\nThe same by hand, in this folder:\n{}\n", by_hand(regularization));
    text
}

/// Nights as a table that `argwhy` reads.
fn table(nights: &[Night], decisions: Option<ArrayView2<'_, f64>>) -> String {
    let names = |prefix: &str, n: usize| (0..n).map(|i| format!("{prefix}_{i}")).collect();
    let header: [Vec<String>; 5] = [
        names("signals", SIGNAL_NAMES.len()),
        names("decisions", if decisions.is_some() { PERIODS } else { 0 }),
        names("lower", PERIODS),
        names("upper", PERIODS),
        names("W", LIMIT_ROWS),
    ];
    let mut text = header.concat().join(",");
    text.push('\n');
    for (i, night) in nights.iter().enumerate() {
        let decided = decisions.map(|d| d.row(i).to_vec()).unwrap_or_default();
        let limits = &night.limits;
        let parts = [&decided[..], &[0.0; PERIODS], &limits.chargers, &limits.bounds()].concat();
        let cells: Vec<String> =
            night.signal().iter().chain(&parts).map(|value| format!("{value}")).collect();
        text.push_str(&cells.join(","));
        text.push('\n');
    }
    text
}

fn matrix() -> String {
    let header: Vec<String> = (0..PERIODS).map(|j| format!("M_{j}")).collect();
    let mut text = format!("limit,{}\n", header.join(","));
    for (row, values) in charging::limit_matrix().rows().into_iter().enumerate() {
        let cells: Vec<String> = values.iter().map(|value| format!("{value}")).collect();
        let _ = writeln!(text, "\"{}\",{}", charging::limit_name(row), cells.join(","));
    }
    text
}

fn prices_table(prices: &Prices) -> String {
    let mut text = "row,limit,price\n".to_owned();
    for ((row, limit), price) in prices.samples.iter().zip(&prices.limits).zip(&prices.values) {
        let _ = writeln!(text, "{row},{limit},{price:?}");
    }
    text
}

/// What `--json` prints.
fn figures(story: &Story) -> serde_json::Value {
    let (best, record) = (story.best(), &story.fit.model.record);
    let planners: serde_json::Map<String, serde_json::Value> = story.planners[1..]
        .iter()
        .zip(["argwhy", "dispatcher", "kernel_ridge", "cheapest_hours"])
        .map(|(planner, key)| {
            let figures = json!({
                "mean_cost": mean(&planner.costs),
                "excess": planner.excess(best),
                "mean_relative_excess": planner.mean_relative_excess(best),
                "rmse": planner.rmse(best),
            });
            (key.to_owned(), figures)
        })
        .collect();
    let what_ifs: Vec<_> = story
        .what_ifs
        .iter()
        .map(|o| {
            json!({
                "what_if": o.what_if.name(),
                "nights": o.n_nights,
                "best_cost": o.costs[0],
                "excess": o.costs[1] / o.costs[0] - 1.0,
                "true_change": o.changes[0],
                "learned_change": o.changes[1],
            })
        })
        .collect();
    let worth: Vec<_> = story
        .worth
        .iter()
        .map(|w| {
            json!({
                "limit": w.name,
                "per": w.unit,
                "true": mean(&w.truth),
                "learned": mean(&w.learned),
                "learned_without_errors": mean(&w.exact),
                "correlation": correlation(&w.truth, &w.learned),
            })
        })
        .collect();
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
        "planners": planners,
        "wear": { "true": story.wear[0], "learned": story.wear[1], "learned_without_errors": story.wear[2] },
        "what_ifs": what_ifs,
        "limits": worth,
        "seconds": story.seconds,
    })
}

fn tell(story: &Story, folder: &Path) -> Result<(), CliError> {
    let (best, record) = (story.best(), &story.fit.model.record);
    let mut text = format!(
        "\nrelative gap {:.1e} (proven), k = {} of {} tried\n\n\
         {:<36} {:>14} {:>12} {:>10}\n",
        record.certificate.relative_gap,
        record.regularization,
        story.choices.len(),
        format!("true cost on {} nights", story.held_out.len()),
        "EUR a night",
        "above best",
        "error, kW"
    );
    for planner in &story.planners {
        let own = planner.name == best.name;
        let (excess, error) = if own {
            ("–".to_owned(), "–".to_owned())
        } else {
            (format!("{:.2} %", 100.0 * planner.excess(best)), format!("{:.2}", planner.rmse(best)))
        };
        let _ = writeln!(
            text,
            "{:<36} {:>14.2} {excess:>12} {error:>10}",
            planner.name,
            mean(&planner.costs)
        );
    }
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
            100.0 * (o.costs[1] / o.costs[0] - 1.0),
            o.changes[1],
            o.changes[0]
        );
    }
    let _ = writeln!(text);
    for (file, what) in [
        ("report.html", "open this in a browser"),
        ("depot.argwhy", "the model"),
        ("history.csv", "the data; README.txt explains every column"),
        ("decisions.csv", "plans for the lines of tomorrow.csv"),
    ] {
        let _ = writeln!(text, "{}  {what}", folder.join(file).display());
    }
    let _ =
        write!(text, "\nthe same by hand, in that folder:\n{}\n", by_hand(record.regularization));
    print(&text)
}
