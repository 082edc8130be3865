//! How decisions give way to each other: θ_uu in words.
//!
//! The learned cost is uᵀΘu − 2gᵀu. A deviation x of one decision costs Θ_aa·x²; and where one is
//! held away from what is wanted by a unit, another moves by −Θ_ab/Θ_bb.

use super::Explainer;
use crate::error::Error;
use serde::Serialize;

/// Two decisions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TradeOff {
    /// Names of the two.
    pub decisions: [String; 2],
    /// A deviation of one unit of the first costs as much as one of so many units of the second.
    pub worth: f64,
    /// Where the first is held one unit below what is wanted, the second moves by this much.
    pub moves: f64,
}

impl Explainer<'_> {
    /// Every pair where θ_uu was learned; nothing where it is the identity.
    pub(super) fn trade_offs(&self) -> Result<Vec<TradeOff>, Error> {
        if self.model.theta.is_none() {
            return Ok(Vec::new());
        }
        let metric = self.model.metric()?;
        let theta = metric.theta();
        let name = |j: usize| self.model.names.decision(j);
        let mut all = Vec::new();
        for a in 0..theta.nrows() {
            for b in (0..theta.nrows()).filter(|&b| b != a) {
                all.push(TradeOff {
                    decisions: [name(a), name(b)],
                    worth: (theta[[a, a]] / theta[[b, b]]).sqrt(),
                    moves: theta[[a, b]] / theta[[b, b]],
                });
            }
        }
        Ok(all)
    }
}
