//! What each decision costs in a typical situation: the learned objective along one dimension.

use super::{Explainer, Typical};
use crate::error::Error;
use argwhy_core::qp::Metric;
use serde::Serialize;

/// Points of a curve.
const POINTS: usize = 61;
/// A decision this far outside, in units of the curve's range, is outside.
const OUTSIDE: f64 = 1e-9;

/// uᵀΘu − 2gᵀu along one dimension, all others as decided, above its value at the decision.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CostCurve {
    /// The decision's name.
    pub name: String,
    /// Where it is looked at.
    pub at: Vec<f64>,
    /// What it costs more than what was decided.
    pub cost: Vec<f64>,
    /// The same in money, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub money: Option<Vec<f64>>,
    /// Whether the limits allow it.
    pub allowed: Vec<bool>,
    /// What is decided.
    pub decision: f64,
    /// What would be without limits, the others as they are.
    pub wanted: f64,
    /// The decision's own limits, where it has any that are finite.
    pub limits: [Option<f64>; 2],
}

impl Explainer<'_> {
    /// A curve a decision; none where the typical situation's limits are not known.
    pub(super) fn costs(&self, typical: &Typical) -> Result<Vec<CostCurve>, Error> {
        let (Some(sets), Some(decision)) = (&self.situations.sets, &typical.decision) else {
            return Ok(Vec::new());
        };
        let metric = self.model.metric()?;
        let theta = metric.theta();
        let every: Vec<usize> = (0..self.situations.signals.nrows()).collect();
        let desired = self.desired(&self.situations.signals)?;
        let decided = self.decided(&desired, &every)?.unwrap_or(desired);
        let lowest = cost(&metric, decision, &typical.desired);
        let own = self.model.set.limits();
        let mut curves = Vec::new();
        for j in 0..decision.len() {
            // Θu = g along this dimension.
            let rest: f64 =
                (0..decision.len()).filter(|&k| k != j).map(|k| theta[[j, k]] * decision[k]).sum();
            let wanted = (typical.desired[j] - rest) / theta[[j, j]];
            let seen = decided.column(j);
            let (mut low, mut high) = seen
                .iter()
                .chain([&wanted])
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(*v), h.max(*v)));
            let room = if high > low { 0.15 * (high - low) } else { low.abs().max(1.0) };
            (low, high) = (low - room, high + room);
            let mut at: Vec<f64> = (0..POINTS)
                .map(|i| low + (high - low) * i as f64 / (POINTS - 1) as f64)
                .chain([own.lower()[j], own.upper()[j], decision[j]])
                .filter(|value| (low..=high).contains(value))
                .collect();
            at.sort_unstable_by(f64::total_cmp);
            at.dedup();
            let with = |value: f64| {
                let mut moved = decision.clone();
                moved[j] = value;
                moved
            };
            let is_inside = |v: f64| sets.excess(typical.index, &with(v)) <= OUTSIDE * (high - low);
            let costs: Vec<f64> =
                at.iter().map(|&v| cost(&metric, &with(v), &typical.desired) - lowest).collect();
            curves.push(CostCurve {
                name: self.model.names.decision(j),
                money: costs.iter().map(|&cost| self.paid(cost)).collect(),
                cost: costs,
                allowed: at.iter().map(|&v| is_inside(v)).collect(),
                decision: decision[j],
                wanted,
                limits: [own.lower()[j], own.upper()[j]].map(|v| Some(v).filter(|v| v.is_finite())),
                at,
            });
        }
        Ok(curves)
    }
}

fn cost(metric: &Metric, decision: &[f64], desired: &[f64]) -> f64 {
    let mut weighted = vec![0.0; decision.len()];
    metric.apply(decision, &mut weighted);
    (0..decision.len()).map(|j| (weighted[j] - 2.0 * desired[j]) * decision[j]).sum()
}
