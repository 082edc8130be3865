//! What the dispatcher did: nights to learn from, nights kept back, and the night after the last.

use super::tables;
use crate::commands::demo::write;
use crate::error::CliError;
use crate::findings::charging::rmse;
use argwhy_experts::charging::{self, Depot, Night, WhatIf};
use ndarray::{Array2, Axis, s};
use std::path::Path;

/// Nights kept back.
pub const HELD_OUT: usize = 200;
/// Nights after the last among which tomorrow is looked for.
const AHEAD: usize = 60;
/// Root mean squared difference of powers in kW from which a plan counts as another one.
const ANOTHER: f64 = 1.0;

/// Nights with decisions, and tomorrow without.
pub struct History {
    pub depot: Depot,
    pub shown: Vec<Night>,
    pub shown_decisions: Array2<f64>,
    pub held_out: Vec<Night>,
    pub held_out_decisions: Array2<f64>,
    pub tomorrow: Vec<Version>,
}

/// A night under limits that may be changed.
#[derive(Clone, Copy)]
pub struct Version {
    pub what_if: WhatIf,
    pub night: Night,
}

impl History {
    /// `n` nights shown.
    pub fn new(n: usize, seed: u64) -> Result<Self, CliError> {
        let depot = Depot::default();
        let nights = charging::nights(n + HELD_OUT + AHEAD, seed);
        let decisions = depot.decisions(&nights[..n + HELD_OUT], seed)?;
        let (shown_decisions, held_out_decisions) = decisions.view().split_at(Axis(0), n);
        Ok(Self {
            depot,
            shown: nights[..n].to_vec(),
            shown_decisions: shown_decisions.to_owned(),
            held_out: nights[n..n + HELD_OUT].to_vec(),
            held_out_decisions: held_out_decisions.to_owned(),
            tomorrow: tomorrow(&depot, &nights[n + HELD_OUT..])?,
        })
    }

    /// The nights of tomorrow's versions.
    pub fn tomorrow_nights(&self) -> Vec<Night> {
        self.tomorrow.iter().map(|version| version.night).collect()
    }

    /// What the same nights would have shown had the dispatcher never erred.
    pub fn errorless_decisions(&self, seed: u64) -> Result<Array2<f64>, CliError> {
        Ok(Depot { noise: 0.0, ..self.depot }.decisions(&self.shown, seed)?)
    }

    /// As tables in `folder`.
    pub fn write(&self, folder: &Path) -> Result<(), CliError> {
        let (shown, held_out) = (&self.shown, &self.held_out);
        let decided = [self.shown_decisions.view(), self.held_out_decisions.view()];
        for (name, table) in [
            ("history.csv", tables::nights(shown, Some(decided[0]))),
            ("held-out.csv", tables::nights(held_out, Some(decided[1]))),
            ("tomorrow.csv", tables::nights(&self.tomorrow_nights(), None)),
            ("matrix.csv", tables::matrix()),
        ] {
            write(&folder.join(name), table.as_bytes())?;
        }
        Ok(())
    }
}

/// The first night ahead on which every changed limit can be kept and changes the best plan, once
/// for each; the first night of all where there is none.
fn tomorrow(depot: &Depot, ahead: &[Night]) -> Result<Vec<Version>, CliError> {
    for night in ahead {
        let changed = versions(night);
        let nights: Vec<Night> = changed.iter().map(|version| version.night).collect();
        let plans = depot.best_plans(&nights)?;
        let as_planned = plans.slice(s![..1, ..]);
        let differs = |i: usize| rmse(plans.row(i).insert_axis(Axis(0)), as_planned) > ANOTHER;
        if changed.len() == WhatIf::ALL.len() && (1..changed.len()).all(differs) {
            return Ok(changed);
        }
    }
    Ok(versions(&ahead[0]))
}

fn versions(night: &Night) -> Vec<Version> {
    let apply = |what_if: WhatIf| Some(Version { what_if, night: what_if.apply(night)? });
    WhatIf::ALL.into_iter().filter_map(apply).collect()
}
