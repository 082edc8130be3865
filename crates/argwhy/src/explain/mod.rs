//! Why: what a model's expert weighs, in curves, and what pushed one decision.
//!
//! Enters: a model and situations it was, or could have been, asked about. Leaves: numbers with
//! names ([`Explanation`], [`OneDecision`]) that the command draws and Python plots. The function
//! explained is g(s), the desired decision, and where limits are known the decision itself.

mod cost;
mod effects;
mod explore;
mod money;
mod one;
mod pair;
mod situations;
mod tradeoffs;

pub use cost::CostCurve;
pub use effects::{Effect, SignalEffect};
pub use explore::{Cases, Exploration, explore};
pub use money::Money;
pub use one::{Change, Freed, HeldBy, OneDecision, OneSettings, Push, Term};
pub use pair::Pair;
pub use situations::{Situations, Source, Typical};
pub use tradeoffs::TradeOff;

use crate::error::Error;
pub use argwhy_core::dataset::Units;
pub use argwhy_core::pushes::Method;
use argwhy_core::{Model, Predictor};
use serde::Serialize;
use std::sync::OnceLock;

/// What a model weighs, over many situations.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// The situations it is told over.
    pub situations: Source,
    /// What decisions are called; lists with one entry a decision are in this order.
    pub decisions: Vec<String>,
    /// What each signal does, the most important first. Importances add up to one, unless nothing
    /// matters at all.
    pub signals: Vec<SignalEffect>,
    /// The two signals that matter most together, beyond what each does alone.
    pub pair: Option<Pair>,
    /// How decisions give way to each other.
    pub trade_offs: Vec<TradeOff>,
    /// A situation like most.
    pub typical: Typical,
    /// What each decision costs there.
    pub costs: Vec<CostCurve>,
    /// What a unit of cost is worth in money, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub money: Option<Money>,
    /// Units by the names of signals, decisions and limits, those that are known.
    pub units: Units,
}

/// A model with the situations it is explained over.
pub struct Explainer<'a> {
    model: &'a Model,
    predictor: &'a Predictor,
    situations: Situations,
    /// Middle and spread of each signal, once they were asked for.
    middles: OnceLock<Vec<(f64, f64)>>,
    money: Option<Money>,
}

impl<'a> Explainer<'a> {
    /// Over these situations, of which some thousand are taken, evenly.
    pub fn new(model: &'a Model, predictor: &'a Predictor, situations: Situations) -> Self {
        Self { model, predictor, situations, middles: OnceLock::new(), money: None }
    }

    /// Effects of all signals, the strongest pair, trade-offs and costs. Cost: some ten thousand
    /// desired decisions.
    pub fn explain(&self) -> Result<Explanation, Error> {
        let typical = self.typical()?;
        let signals = self.effects()?;
        let pair = self.pair(&signals)?;
        Ok(Explanation {
            situations: self.situations.source.clone(),
            decisions: self.decision_names(),
            pair,
            trade_offs: self.trade_offs()?,
            costs: self.costs(&typical)?,
            signals,
            typical,
            money: self.money.clone(),
            units: self.units(),
        })
    }

    fn units(&self) -> Units {
        self.model.names.every_unit(self.predictor.signal_dim(), self.model.decision_dim())
    }

    fn decision_names(&self) -> Vec<String> {
        (0..self.model.decision_dim()).map(|j| self.model.names.decision(j)).collect()
    }
}
