//! The report of `argwhy demo charging`: for a manager first, with the proof behind it.

use super::sections;
use crate::error::CliError;
use crate::findings::charging::{Column, Planner, Story, Tomorrow, Wear, by_hand, columns};
use crate::findings::{correlation, mean};
use crate::report::{
    BarChart, Details, Figure, Histogram, LineChart, Page, ReportError, ScatterChart, Section,
    Series, Table, Tone,
};
use argwhy::core::solver::Status;
use argwhy_experts::charging::{HOURS, Night, PERIOD_NAMES, WhatIf};

/// The goal: decisions that cost at most this much more than the best.
const GOAL: f64 = 0.02;
/// Euros above the best plan up to which nights are drawn.
const SHOWN: f64 = 5.0;
/// Points of a curve.
const POINTS: usize = 25;
/// Part of the nights cut off at each end of a curve's range.
const TAIL: f64 = 0.05;

/// One page about the whole way from nights to plans.
pub fn page(story: &Story) -> Result<String, CliError> {
    let curves = curves(story)?;
    draw(story, curves).map_err(|e| CliError::Report(e.to_string()))
}

fn draw(story: &Story, curves: Section) -> Result<String, ReportError> {
    header(story)
        .section(comparison(story)?)
        .section(tomorrow(story)?)
        .section(limits(story)?)
        .section(curves)
        .section(learned(story)?)
        .section(by_yourself(story))
        .section(sections::certificate(&story.fit))
        .section(sections::convergence(&story.history, &story.fit)?)
        .section(sections::weights(&story.fit)?)
        .section(sections::settings(&story.fit))
        .footer(format!(
            "argwhy {} · argwhy demo charging --seed {} --nights {} · {:.1} s",
            env!("CARGO_PKG_VERSION"),
            story.seed,
            story.shown.len(),
            story.seconds
        ))
        .render()
}

fn percent(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}

fn header(story: &Story) -> Page {
    let (best, own) = (&story.planners.best, &story.planners.argwhy);
    let dispatcher = &story.planners.dispatcher;
    let (excess, record) = (own.excess(best), &story.fit.model.record);
    let (badge, tone) = match (record.status, excess <= GOAL) {
        (Status::Solved, true) => ("goal reached", Tone::Good),
        (Status::Solved, false) => ("goal missed", Tone::Caution),
        (_, true) => ("stopped early", Tone::Caution),
        (_, false) => ("goal missed", Tone::Bad),
    };
    let extra = |planner: &Planner| mean(&planner.costs) - mean(&best.costs);
    let sentence = format!(
        "On {} nights kept back, plans made with the learned cost are {} above the best possible \
         ones: {:.2} euros on a night of {:.2}. The dispatcher's own decisions were {} above \
         ({:.2} euros). Every plan keeps the limits of its night.",
        story.held_out.len(),
        percent(excess),
        extra(own),
        mean(&best.costs),
        percent(dispatcher.excess(best)),
        extra(dispatcher),
    );
    let yearly = 365.0 * (mean(&dispatcher.costs) - mean(&own.costs));
    let van = story.what_ifs.iter().find(|o| o.what_if == WhatIf::OneMoreVan);
    let yearly_tile =
        if yearly >= 0.0 { "Saved against the dispatcher" } else { "Lost against the dispatcher" };
    Page::new("What a dispatcher's charging plans are after")
        .subtitle(format!(
            "A depot of twelve electric vans: {} nights of decisions, eight periods each, limits \
             that change every night. The true cost is known here, so everything can be checked.",
            story.shown.len()
        ))
        .verdict(tone, badge, sentence)
        .tile("Above the best plan", percent(excess), format!("goal: at most {}", percent(GOAL)))
        .tile(yearly_tile, format!("{:.0} €", yearly.abs()), "a year of such nights")
        .tile(
            "One more van",
            format!("{:+.2} €", van.map_or(0.0, |o| o.learned_change)),
            format!("a night, foretold; truth {:+.2} €", van.map_or(0.0, |o| o.true_change)),
        )
        .tile(
            "Relative gap",
            format!("{:.1e}", record.certificate.relative_gap),
            "proven, not estimated",
        )
        .tile(
            "Time to learn",
            format!("{:.1} s", record.seconds),
            format!("the whole demo {:.0} s", story.seconds),
        )
}

fn comparison(story: &Story) -> Result<Section, ReportError> {
    let best = &story.planners.best;
    let mut bars = BarChart::new("true cost above the best plan's, euros a night");
    let mut table = Table::new([
        "who plans",
        "euros a night",
        "above the best",
        "mean of nightly ratios",
        "error of powers, kW",
    ]);
    table = table.row([
        best.name.to_owned(),
        format!("{:.2}", mean(&best.costs)),
        "–".to_owned(),
        "–".to_owned(),
        "–".to_owned(),
    ]);
    for planner in story.planners.others() {
        table = table.row([
            planner.name.to_owned(),
            format!("{:.2}", mean(&planner.costs)),
            percent(planner.excess(best)),
            percent(planner.mean_relative_excess(best)),
            format!("{:.2}", planner.rmse(best)),
        ]);
        let name = planner.name.split(',').next().unwrap_or_default();
        let cents = 100.0 * (mean(&planner.costs) - mean(&best.costs));
        bars = bars.bar(name, cents.round() / 100.0);
    }
    let table = table.caption(format!(
        "{} nights that no learner saw, all charged by the dispatcher's true cost: energy, losses \
         and wear, worries about the building's peak, cold batteries and late charging, less the \
         value of energy left over. Errors are against the best plan.",
        story.held_out.len()
    ));
    let extra = |planner: &Planner| -> Vec<f64> {
        planner.costs.iter().zip(&best.costs).map(|(c, b)| c - b).filter(|e| *e < SHOWN).collect()
    };
    let histogram = Histogram::new("true cost above the best plan's, euros of a night")
        .series("argwhy", extra(&story.planners.argwhy))
        .series("dispatcher", extra(&story.planners.dispatcher))
        .series("kernel ridge", extra(&story.planners.ridge))
        .render()?;
    let seen = if story.ridge.sees_limits { "signals and limits" } else { "signals" };
    Ok(Section::new("What knowing the cost is worth")
        .figure(Figure::new(bars.render()?, "Mean over all nights kept back. Shorter is better."))
        .figure(Figure::new(
            histogram,
            format!(
                "The same night by night; nights more than {SHOWN} euros above are left \
                 out."
            ),
        ))
        .table(table)
        .text(format!(
            "The dispatcher errs by {} kW a period, at random; a model of what was wanted averages \
             that out, which is how it can do better than the one it learned from. Kernel ridge \
             regression copies decisions instead, and its plans are moved to the nearest ones \
             allowed. It has the same kernel; it chose its own k = {} and to see {seen}, by the \
             nights argwhy chose its k = {} by. \"Cheapest hours first\" has the price list alone \
             and pays for it in wear.",
            story.depot.noise, story.ridge.regularization, story.fit.model.record.regularization,
        )))
}

/// A plan as steps over the hours after 16:00.
fn steps(plan: &[f64]) -> Vec<(f64, f64)> {
    let edge = |j: usize| HOURS * j as f64;
    plan.iter().enumerate().flat_map(|(j, u)| [(edge(j), *u), (edge(j + 1), *u)]).collect()
}

fn tomorrow(story: &Story) -> Result<Section, ReportError> {
    let mut section = Section::new("Tomorrow, under limits nobody has kept").text(
        "The next night on which all of these matter, four times: as planned, and with limits that \
         no night of the history had. The learned cost needs no new data for that: it is minimised \
         inside the new limits.",
    );
    for version in &story.tomorrow {
        section = section.figure(tomorrow_figure(story, version)?);
    }
    let mut table = Table::new([
        "limits",
        "nights",
        "best plan, €",
        "learned plan, €",
        "above the best",
        "change foretold, €",
        "true change, €",
    ]);
    for o in &story.what_ifs {
        table = table.row([
            o.what_if.name().to_owned(),
            o.n_nights.to_string(),
            format!("{:.2}", o.best_cost),
            format!("{:.2}", o.learned_cost),
            percent(o.excess()),
            format!("{:+.2}", o.learned_change),
            format!("{:+.2}", o.true_change),
        ]);
    }
    Ok(section.table(table.caption(
        "The same nights in every row: those kept back on which all of these limits can be kept; \
         means a night. The change against limits as planned is foretold by the learned cost \
         alone, before anything is tried.",
    )))
}

fn tomorrow_figure(story: &Story, version: &Tomorrow) -> Result<Figure, ReportError> {
    let Tomorrow { what_if, night, best_plan, learned_plan } = version;
    let chart = LineChart::new("hours after 16:00", "charging power, kW")
        .series(Series::new("most allowed", steps(&night.limits.capacity())))
        .series(Series::new("best plan", steps(best_plan)))
        .series(Series::new("argwhy", steps(learned_plan)))
        .render()?;
    let (least, own) = (story.depot.cost(night, best_plan), story.depot.cost(night, learned_plan));
    let caption = format!(
        "{}: {:.2} € for the best plan, {own:.2} € for the learned one ({} more); {:.0} kWh \
         needed.",
        capitalised(what_if.name()),
        least,
        percent(own / least - 1.0),
        night.limits.need()
    );
    Ok(Figure::new(chart, caption))
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn limits(story: &Story) -> Result<Section, ReportError> {
    let mut table = Table::new([
        "limit",
        "worth of one",
        "learned, €",
        "true, €",
        "learned without errors, €",
        "correlation",
        "holds a plan",
    ]);
    for w in &story.worth {
        let holding = w.truth.iter().filter(|v| **v > 0.0).count() as f64;
        table = table.row([
            w.name.to_owned(),
            w.unit.to_owned(),
            format!("{:.3}", mean(&w.learned)),
            format!("{:.3}", mean(&w.truth)),
            format!("{:.3}", mean(&w.exact)),
            format!("{:.2}", correlation(&w.truth, &w.learned)),
            format!("{:.0} %", 100.0 * holding / w.truth.len().max(1) as f64),
        ]);
    }
    let scatter = |index: usize| -> Result<String, ReportError> {
        let w = &story.worth[index];
        let points = w.truth.iter().copied().zip(w.learned.iter().copied());
        ScatterChart::new("true, euros", "learned, euros")
            .equal_axes()
            .diagonal()
            .series(Series::new(w.name, points))
            .render()
    };
    let Wear { truth, learned, exact } = story.wear;
    let grid = &story.worth[0];
    Ok(Section::new("What the limits cost")
        .text(format!(
            "Every limit that holds a plan has a price: what one unit more would save. By the \
             learned cost one more kW of grid connection saves {:.2} euros a year, in truth {:.2}.",
            365.0 * mean(&grid.learned),
            365.0 * mean(&grid.truth)
        ))
        .table(table.caption(format!(
            "Euros a night, means over {} nights kept back; where a limit does not hold its price \
             is zero. \"Without errors\" is learned from the same nights had the dispatcher never \
             erred; the last column is the truth.",
            story.held_out.len()
        )))
        .figure(Figure::new(scatter(0)?, "One more kW of grid connection: a point is a night."))
        .figure(Figure::new(scatter(2)?, "One kWh less needed: a point is a night."))
        .text(format!(
            "Decisions alone fix a cost only up to a factor: twice the cost has the same best \
             plans. The factor comes from the one thing known in euros, the price: by how much a \
             power falls when its price rises. It gives {learned:.5} euros for a kW² of losses and \
             wear in a period ({exact:.5} without errors); the truth is {truth:.5}.",
        ))
        .text(
            "Use learned prices to rank limits and nights; read their size as an estimate. An \
             error moves a plan off its limit, and a plan off its limit says that the limit is not \
             worth much, so the dispatcher's errors push prices down; regularization, which keeps \
             g small, moves them as well. Plans suffer far less from both than prices do, as the \
             costs above show.",
        ))
}

/// The value below which `share` of the values lie.
fn quantile(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    values.get((share * last as f64).round() as usize).copied().unwrap_or(0.0)
}

/// How the cost of charging in one period depends on one thing the dispatcher saw.
struct Curve {
    /// The signal with its unit.
    signal: &'static str,
    period: usize,
    get: fn(&Night) -> f64,
    set: fn(&mut Night, f64),
    about: &'static str,
}

const CURVES: [Curve; 4] = [
    Curve {
        signal: "outside temperature at 16:00, °C",
        period: 5,
        get: |night| night.temperature,
        set: |night, value| night.temperature = value,
        about: "Cold batteries",
    },
    Curve {
        signal: "evening peak of the building, kW",
        period: 0,
        get: |night| night.building_peak,
        set: |night, value| night.building_peak = value,
        about: "Fear of the building's peak",
    },
    Curve {
        signal: "orders for tomorrow",
        period: 6,
        get: |night| night.orders,
        set: |night, value| night.orders = value,
        about: "Charging late before a busy day",
    },
    Curve {
        signal: "price from 00:00, €/kWh",
        period: 4,
        get: |night| night.prices[4],
        set: |night, value| night.prices[4] = value,
        about: "The price itself, which sets the scale",
    },
];

/// How the cost of charging depends on what the dispatcher saw.
fn curves(story: &Story) -> Result<Section, CliError> {
    let typical = typical_night(&story.shown);
    let mut section = Section::new("What nobody wrote down").text(
        "How the cost of a kWh in one period changes with what the dispatcher saw, all else as on \
         a typical night. The dispatcher's worries are in no table; they were read off the \
         decisions. Both curves are drawn relative to the typical night.",
    );
    for curve in &CURVES {
        section = section.figure(curve.draw(story, &typical)?);
    }
    Ok(section)
}

/// The median of everything the dispatcher saw.
fn typical_night(shown: &[Night]) -> Night {
    let median = |get: &dyn Fn(&Night) -> f64| quantile(shown.iter().map(get).collect(), 0.5);
    Night {
        prices: std::array::from_fn(|j| median(&|night| night.prices[j])),
        temperature: median(&|night| night.temperature),
        building_peak: median(&|night| night.building_peak),
        orders: median(&|night| night.orders),
        day_tariff: median(&|night| night.day_tariff),
        ..shown[0]
    }
}

impl Curve {
    fn draw(&self, story: &Story, typical: &Night) -> Result<Figure, CliError> {
        let values: Vec<f64> = story.shown.iter().map(self.get).collect();
        let (lo, hi) = (quantile(values.clone(), TAIL), quantile(values, 1.0 - TAIL));
        let at: Vec<f64> =
            (0..POINTS).map(|i| lo + (hi - lo) * i as f64 / (POINTS - 1) as f64).collect();
        let with = |&value: &f64| {
            let mut night = *typical;
            (self.set)(&mut night, value);
            night
        };
        // The typical night last: both curves are relative to it.
        let nights: Vec<Night> = at.iter().map(with).chain([*typical]).collect();
        let learned = story.learned_first_kwh(&nights)?.column(self.period).to_vec();
        let truth: Vec<f64> =
            nights.iter().map(|night| story.depot.first_kwh(night)[self.period]).collect();
        let relative = |curve: &[f64]| -> Vec<(f64, f64)> {
            at.iter().zip(curve).map(|(x, y)| (*x, y - curve[POINTS])).collect()
        };
        let chart = LineChart::new(self.signal, "change of cost, €/kWh")
            .series(Series::new("learned", relative(&learned)))
            .series(Series::new("true", relative(&truth)))
            .render()
            .map_err(|e| CliError::Report(e.to_string()))?;
        let from = PERIOD_NAMES[self.period];
        Ok(Figure::new(chart, format!("{}: the cost of charging from {from}.", self.about)))
    }
}

/// True and learned g side by side.
#[derive(Default)]
struct Pairs {
    truth: Vec<f64>,
    learned: Vec<f64>,
}

impl Pairs {
    fn push(&mut self, truth: f64, learned: f64) {
        self.truth.push(truth);
        self.learned.push(learned);
    }

    fn correlation(&self) -> String {
        format!("{:.2}", correlation(&self.truth, &self.learned))
    }
}

fn learned(story: &Story) -> Result<Section, ReportError> {
    let (desired, plans) = (&story.desired, &story.planners.argwhy.plans);
    // Powers that no limit of their period holds tell what was wanted; the rest only that it was
    // beyond.
    let (mut free_points, mut held_points) = (Vec::new(), Vec::new());
    let mut table = Table::new([
        "period from",
        "true mean, kW",
        "learned mean, kW",
        "correlation",
        "where free",
    ]);
    for (j, name) in PERIOD_NAMES.iter().enumerate() {
        let (mut all, mut free) = (Pairs::default(), Pairs::default());
        for (i, night) in story.held_out.iter().enumerate() {
            let most = night.limits.capacity()[j];
            let (truth, learned) = (desired.truth[[i, j]], desired.learned[[i, j]]);
            all.push(truth, learned);
            if plans[[i, j]] > 1e-6 && plans[[i, j]] < most - 1e-6 {
                free.push(truth, learned);
                free_points.push((truth, learned));
            } else {
                held_points.push((truth, learned));
            }
        }
        table = table.row([
            (*name).to_owned(),
            format!("{:.1}", mean(&all.truth)),
            format!("{:.1}", mean(&all.learned)),
            all.correlation(),
            free.correlation(),
        ]);
    }
    let chart = ScatterChart::new("true, kW", "learned, kW")
        .equal_axes()
        .diagonal()
        .series(Series::new("power is free", free_points))
        .series(Series::new("at a limit of its period", held_points))
        .render()?;
    Ok(Section::new("The learned cost against the true one")
        .text(
            "Both costs are ‖u‖² − 2gᵀu up to a factor, so all there is to compare is g: the power \
             that would be charged if nothing were limited. Where a power is at its limit the data \
             say only that g is beyond it, and the learned g stays as near to the limit as it can; \
             where the energy needed holds the whole plan, the level of g is open in the same way. \
             Plans hardly depend on either.",
        )
        .figure(
            Figure::new(
                chart,
                "The power wanted without limits, every period of every night \
                                    kept back.",
            )
            .wide(),
        )
        .details(Details::new("Period by period").table(table)))
}

fn by_yourself(story: &Story) -> Section {
    let mut table = Table::new(["column", "what it is"]);
    for Column { name, meaning } in columns() {
        table = table.row([name, meaning]);
    }
    let mut tried = Table::new(["k", "error on the nights it was chosen by, kW"]);
    for choice in &story.choices {
        let error = format!("{:.3}", choice.error);
        tried = tried.row([choice.regularization.to_string(), error]);
    }
    Section::new("Do it yourself")
        .text(
            "The tables are beside this page. Learn, decide for tomorrow with what the limits \
               cost, and compare with the nights kept back:",
        )
        .code(by_hand(story.fit.model.record.regularization))
        .details(Details::new("What the columns are").table(table))
        .details(Details::new("How k was chosen").table(tried))
}
