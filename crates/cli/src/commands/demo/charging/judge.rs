//! What the learned cost is worth, in euros of the dispatcher's true cost.

use super::history::{HELD_OUT, History};
use super::learn::{self, plan};
use crate::error::CliError;
use crate::findings::charging::{Outcome, Planner, Planners, Worth, costs};
use crate::findings::mean;
use argwhy::core::decision_set::{Prices, RowLabel};
use argwhy::{Pipeline, Predictor};
use argwhy_experts::charging::{self, Depot, GRID_ROW, HOURS, Night, PERIODS, ROOM_ROW, WhatIf};
use ndarray::Array2;

/// A change of price, in EUR/kWh, over which the learned slope is taken.
const PRICE_STEP: f64 = 0.01;
/// kW below which a power counts as at its limit.
const AT_LIMIT: f64 = 1e-6;

/// A model whose unit is known in euros.
pub struct Learned {
    pub predictor: Predictor,
    /// w, euros for a kW² in a period.
    pub wear: f64,
}

impl Learned {
    pub fn new(predictor: Predictor, shown: &[Night]) -> Result<Self, CliError> {
        let wear = learned_wear(&predictor, shown)?;
        Ok(Self { predictor, wear })
    }

    /// What the same nights teach without the dispatcher's errors: how much of a difference is
    /// theirs.
    pub fn without_errors(
        history: &History,
        regularization: f64,
        seed: u64,
    ) -> Result<Self, CliError> {
        let errorless = history.errorless_decisions(seed)?;
        let data = learn::dataset(&history.shown, errorless.view())?;
        let fit = Pipeline::new(learn::settings(regularization)?)?.fit(&data)?;
        Self::new(Predictor::new(&fit.model)?, &history.shown)
    }

    /// The learned cost of a plan up to what does not depend on it: w·(‖u‖² − 2gᵀu), with the need
    /// paid as the true cost has it.
    fn cost(&self, night: &Night, g: &[f64], plan: &[f64]) -> f64 {
        let value: f64 = plan.iter().zip(g).map(|(u, g)| u * u - 2.0 * g * u).sum();
        self.wear * value + night.day_tariff * night.limits.need()
    }

    /// What each limit costs, in euros for a unit of the limit.
    fn prices(&self, nights: &[Night]) -> Result<Prices, CliError> {
        let g = self.predictor.desired(charging::signals(nights).view())?;
        let mut prices = self.predictor.prices(g.view(), &charging::sets(nights)?)?;
        prices.values.iter_mut().for_each(|value| *value *= self.wear);
        Ok(prices)
    }
}

/// w by the one thing known in euros: a kWh at price p costs p, so −∂g_j/∂p_j = h/(2w). The mean
/// slope over the powers that no limit of their period holds, on the nights shown.
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
            let most = night.limits.capacity()[j];
            if plans[[i, j]] > AT_LIMIT && plans[[i, j]] < most - AT_LIMIT {
                fall += (cheaper[[i, j]] - dearer[[i, j]]) / (2.0 * PRICE_STEP);
                count += 1.0;
            }
        }
    }
    Ok(HOURS * count / (2.0 * fall))
}

/// Everybody's plans for the nights kept back.
pub fn planners(
    history: &History,
    predictor: &Predictor,
    ridge_plans: Array2<f64>,
) -> Result<Planners, CliError> {
    let (depot, nights) = (&history.depot, &history.held_out);
    let cheapest: Vec<f64> = nights.iter().flat_map(charging::cheapest_hours).collect();
    let cheapest = Array2::from_shape_vec((HELD_OUT, PERIODS), cheapest)
        .map_err(|e| CliError::Usage(e.to_string()))?;
    let planner = |name, plans| Planner::new(name, depot, nights, plans);
    Ok(Planners {
        best: planner("best plan (true cost)", depot.best_plans(nights)?),
        argwhy: planner("argwhy", plan(predictor, nights)?),
        dispatcher: planner("dispatcher", history.held_out_decisions.clone()),
        ridge: planner("kernel ridge, moved into the limits", ridge_plans),
        cheapest_hours: planner("cheapest hours first", cheapest),
    })
}

/// The held-out nights under limits nobody has kept: those on which all of them can be kept, so
/// that costs stand side by side. Nights that cannot do with less are the dear ones; without them
/// anything looks cheaper.
pub fn what_ifs(history: &History, learned: &Learned) -> Result<Vec<Outcome>, CliError> {
    let can = |night: &Night| WhatIf::ALL.iter().all(|what_if| what_if.apply(night).is_some());
    let nights: Vec<Night> = history.held_out.iter().filter(|night| can(night)).copied().collect();
    let under = |what_if| under(what_if, &history.depot, &nights, learned);
    WhatIf::ALL.into_iter().map(under).collect()
}

/// Means a night, in euros.
struct Account {
    /// True cost of the best plans.
    best: f64,
    /// True cost of the learned plans.
    learned: f64,
    /// Learned cost of the learned plans.
    foretold: f64,
}

impl Account {
    /// `g`: what the model wants on these nights.
    fn new(
        depot: &Depot,
        nights: &[Night],
        model: &Learned,
        g: &Array2<f64>,
    ) -> Result<Self, CliError> {
        let plans = model.predictor.decide(g.view(), &charging::sets(nights)?)?;
        let own: Vec<f64> = (0..nights.len())
            .map(|i| model.cost(&nights[i], &g.row(i).to_vec(), &plans.row(i).to_vec()))
            .collect();
        Ok(Self {
            best: mean(&costs(depot, nights, &depot.best_plans(nights)?)),
            learned: mean(&costs(depot, nights, &plans)),
            foretold: mean(&own),
        })
    }
}

/// The same nights under `what_if`, which each of them can keep.
fn under(
    what_if: WhatIf,
    depot: &Depot,
    nights: &[Night],
    model: &Learned,
) -> Result<Outcome, CliError> {
    let after: Vec<Night> = nights.iter().filter_map(|night| what_if.apply(night)).collect();
    let g = model.predictor.desired(charging::signals(nights).view())?;
    let as_planned = Account::new(depot, nights, model, &g)?;
    let changed = Account::new(depot, &after, model, &g)?;
    Ok(Outcome {
        what_if,
        n_nights: after.len(),
        best_cost: changed.best,
        learned_cost: changed.learned,
        true_change: changed.best - as_planned.best,
        learned_change: changed.foretold - as_planned.foretold,
    })
}

/// A kind of limits.
struct Kind {
    name: &'static str,
    /// What one more of it is.
    unit: &'static str,
    belongs: fn(RowLabel) -> bool,
}

const KINDS: [Kind; 4] = [
    Kind {
        name: "grid connection",
        unit: "kW more",
        belongs: |label| row(label).is_some_and(|row| row >= GRID_ROW),
    },
    Kind {
        name: "chargers",
        unit: "kW more in every period",
        belongs: |label| matches!(label, RowLabel::Upper(_)),
    },
    Kind {
        name: "energy needed",
        unit: "kWh less",
        belongs: |label| row(label).is_some_and(|row| row < ROOM_ROW),
    },
    Kind { name: "battery room", unit: "kWh more", belongs: |label| row(label) == Some(ROOM_ROW) },
];

fn row(label: RowLabel) -> Option<usize> {
    match label {
        RowLabel::Inequality(row) => Some(row as usize),
        _ => None,
    }
}

/// What limits cost on the held-out nights, by kind.
pub fn worth(
    history: &History,
    learned: &Learned,
    exact: &Learned,
) -> Result<Vec<Worth>, CliError> {
    let nights = &history.held_out;
    let (truth, learned) = (history.depot.prices(nights)?, learned.prices(nights)?);
    let exact = exact.prices(nights)?;
    let by_night = |prices: &Prices, kind: &Kind| -> Vec<f64> {
        let mut sums = vec![0.0; nights.len()];
        for (k, &label) in prices.limits.iter().enumerate() {
            if (kind.belongs)(label) {
                sums[prices.samples[k] as usize] += prices.values[k];
            }
        }
        sums
    };
    let worth = |kind: &Kind| Worth {
        name: kind.name,
        unit: kind.unit,
        truth: by_night(&truth, kind),
        learned: by_night(&learned, kind),
        exact: by_night(&exact, kind),
    };
    Ok(KINDS.iter().map(worth).collect())
}
