//! What `argwhy demo quadrotor` found: decisions, flights and their true costs.

use argwhy::Fit;
use argwhy::core::solver::Iteration;
use argwhy_experts::{Demonstrations, Trajectory};
use ndarray::Array2;

/// Everything the report tells.
pub struct Story {
    pub seed: u64,
    pub dt: f64,
    pub demos: Demonstrations,
    pub held_out: Demonstrations,
    pub fit: Fit,
    pub history: Vec<Iteration>,
    pub predicted: Array2<f64>,
    pub ridge: Array2<f64>,
    pub rmse_model: f64,
    pub rmse_ridge: f64,
    pub best_ridge: BestRidge,
    pub flights: Flights,
    pub drawn: Vec<Flown>,
}

/// Clipped kernel ridge regression with the regularization under which its flights cost least.
pub struct BestRidge {
    pub regularization: f64,
    pub rmse: f64,
    pub costs: Vec<f64>,
    pub crashes: usize,
}

impl BestRidge {
    pub fn new(regularization: f64, rmse: f64, flown: &[Trajectory]) -> Self {
        let costs = flown.iter().map(|f| f.total_cost).collect();
        let crashes = flown.iter().filter(|f| f.crashed).count();
        Self { regularization, rmse, costs, crashes }
    }

    /// Keeps the one whose flights from the same starts cost less.
    pub fn improve(&mut self, other: Self) {
        if other.costs.iter().sum::<f64>() < self.costs.iter().sum::<f64>() {
            *self = other;
        }
    }
}

/// One start, flown three times.
pub struct Flown {
    pub expert: Trajectory,
    pub model: Trajectory,
    pub ridge: Trajectory,
}

/// True costs of all held-out flights.
pub struct Flights {
    pub expert_costs: Vec<f64>,
    pub model_costs: Vec<f64>,
    pub ridge_costs: Vec<f64>,
    pub expert_crashes: usize,
    pub model_crashes: usize,
    pub ridge_crashes: usize,
}

impl Flights {
    pub fn new(flown: &[Flown]) -> Self {
        type Part = fn(&Flown) -> &Trajectory;
        let parts: [Part; 3] = [|f| &f.expert, |f| &f.model, |f| &f.ridge];
        let costs = parts.map(|part| flown.iter().map(|f| part(f).total_cost).collect::<Vec<_>>());
        let crashes = parts.map(|part| flown.iter().filter(|f| part(f).crashed).count());
        let [expert_costs, model_costs, ridge_costs] = costs;
        let [expert_crashes, model_crashes, ridge_crashes] = crashes;
        Self {
            expert_costs,
            model_costs,
            ridge_costs,
            expert_crashes,
            model_crashes,
            ridge_crashes,
        }
    }

    /// Mean cost of the model's flights relative to the expert's, minus one.
    pub fn excess_model(&self) -> f64 {
        self.excess(&self.model_costs)
    }

    /// The same for clipped kernel ridge regression.
    pub fn excess_ridge(&self) -> f64 {
        self.excess(&self.ridge_costs)
    }

    /// The same for any flights from these starts.
    pub fn excess(&self, costs: &[f64]) -> f64 {
        costs.iter().sum::<f64>() / self.expert_costs.iter().sum::<f64>() - 1.0
    }
}
