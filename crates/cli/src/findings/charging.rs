//! What `argwhy demo charging` found: plans, their true costs, what the learned cost foretells.

use super::mean;
use crate::error::CliError;
use argwhy::core::solver::Iteration;
use argwhy::{Fit, Predictor};
use argwhy_experts::charging::{
    self, Depot, HOURS, LIMIT_ROWS, Night, PERIODS, SIGNAL_NAMES, WhatIf,
};
use ndarray::{Array2, ArrayView2};

/// The kernel of both learners: mostly straight lines (a price is a price), bent where the data ask
/// for it.
pub const KERNEL: &str = "linear + 0.3*rbf";

/// Everything the report tells.
pub struct Story {
    pub seed: u64,
    pub depot: Depot,
    pub fit: Fit,
    pub history: Vec<Iteration>,
    /// What k was chosen from.
    pub choices: Vec<Choice>,
    pub ridge: Ridge,
    pub shown: Vec<Night>,
    pub held_out: Vec<Night>,
    /// Who plans on the held-out nights.
    pub planners: Planners,
    /// g on the held-out nights.
    pub desired: Desired,
    pub wear: Wear,
    pub what_ifs: Vec<Outcome>,
    /// The night after the last, once for each `WhatIf`.
    pub tomorrow: Vec<Tomorrow>,
    /// Euros that limits cost on each held-out night.
    pub worth: Vec<Worth>,
    pub seconds: f64,
    pub predictor: Predictor,
}

/// A k, and how far the decisions that came of it were off on the nights it was judged by.
#[derive(Clone, Copy)]
pub struct Choice {
    pub regularization: f64,
    /// Root mean squared error of powers, kW.
    pub error: f64,
}

/// Kernel ridge regression as it was chosen.
#[derive(Clone, Copy)]
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

/// Everybody who plans on the same nights.
pub struct Planners {
    /// The best plans by the true cost.
    pub best: Planner,
    pub argwhy: Planner,
    pub dispatcher: Planner,
    pub ridge: Planner,
    pub cheapest_hours: Planner,
}

/// The power wanted without limits, n_nights × 8.
pub struct Desired {
    pub truth: Array2<f64>,
    pub learned: Array2<f64>,
}

/// w, euros for a kW² in a period.
pub struct Wear {
    pub truth: f64,
    /// By the learned slope against the price.
    pub learned: f64,
    /// The same, learned from the same nights had the dispatcher never erred.
    pub exact: f64,
}

/// The learned cost under limits nobody has kept; means a night, in euros.
pub struct Outcome {
    pub what_if: WhatIf,
    /// Held-out nights on which all of the changed limits can be kept.
    pub n_nights: usize,
    /// True cost of the best plans.
    pub best_cost: f64,
    /// True cost of the learned plans.
    pub learned_cost: f64,
    /// By how much the best plans cost more than under limits as planned, same nights.
    pub true_change: f64,
    /// What the model says about that in advance.
    pub learned_change: f64,
}

/// The next night under one of the limits.
pub struct Tomorrow {
    pub what_if: WhatIf,
    pub night: Night,
    pub best_plan: Vec<f64>,
    pub learned_plan: Vec<f64>,
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

impl Planner {
    pub fn new(name: &'static str, depot: &Depot, nights: &[Night], plans: Array2<f64>) -> Self {
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

impl Planners {
    /// All but the best, in the order of tables.
    pub fn others(&self) -> [&Planner; 4] {
        [&self.argwhy, &self.dispatcher, &self.ridge, &self.cheapest_hours]
    }
}

impl Outcome {
    /// True cost of the learned plans over that of the best, minus one.
    pub fn excess(&self) -> f64 {
        self.learned_cost / self.best_cost - 1.0
    }
}

impl Story {
    /// The learned price of the first kWh in each period, EUR/kWh, one row a night.
    pub fn learned_first_kwh(&self, nights: &[Night]) -> Result<Array2<f64>, CliError> {
        let g = self.predictor.desired(charging::signals(nights).view())?;
        Ok(g * (-2.0 * self.wear.learned / HOURS))
    }
}

/// True costs of plans, one row a night.
pub fn costs(depot: &Depot, nights: &[Night], plans: &Array2<f64>) -> Vec<f64> {
    nights.iter().zip(plans.rows()).map(|(night, u)| depot.cost(night, &u.to_vec())).collect()
}

/// Root mean squared difference.
pub fn rmse(a: ArrayView2<'_, f64>, b: ArrayView2<'_, f64>) -> f64 {
    let squares: f64 = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum();
    (squares / a.len().max(1) as f64).sqrt()
}

/// The three commands that do the same by hand, in the folder.
pub fn by_hand(regularization: f64) -> String {
    format!(
        "argwhy fit history.csv --constraints --matrix matrix.csv --features poly2 \
         --kernel \"{KERNEL}\" -k {regularization} -o depot.argwhy\n\
         argwhy predict depot.argwhy tomorrow.csv --matrix matrix.csv -o decisions.csv \
         --prices prices.csv\n\
         argwhy evaluate depot.argwhy held-out.csv --matrix matrix.csv"
    )
}

/// A column of the tables.
pub struct Column {
    pub name: String,
    pub meaning: String,
}

/// What every column means.
pub fn columns() -> Vec<Column> {
    let column = |name: String, meaning: &str| Column { name, meaning: meaning.to_owned() };
    let last = PERIODS - 1;
    let signals = SIGNAL_NAMES.iter().enumerate();
    let mut columns: Vec<Column> =
        signals.map(|(i, name)| column(format!("signals_{i}"), name)).collect();
    columns.push(column(
        format!("decisions_0 to _{last}"),
        "charging power of the depot in the eight periods of two hours from 16:00, kW",
    ));
    columns.push(column(format!("lower_0 to _{last}"), "least power, kW"));
    columns.push(column(format!("upper_0 to _{last}"), "power of the chargers with a van, kW"));
    columns
        .extend((0..LIMIT_ROWS).map(|row| column(format!("W_{row}"), &charging::limit_name(row))));
    columns
}
