//! What is worth knowing about the limits of a fit, in the same words for every front end.
//!
//! Settings are marked, `{bounds}`; [`Worded`](argwhy_core::wording::Worded) spells them.

use crate::pipeline::Progress;
use crate::settings::FitSettings;
use argwhy_core::Dataset;
use argwhy_core::decision_set::{Infeasible, Outside};
use argwhy_core::familiarity::ranges;
use argwhy_core::features::Normalization;

/// Width below which normalising a signal makes it visibly less than others.
const FAINT: f64 = 1e-6;
/// Signals that are named in a note.
const MOST_NAMED: usize = 5;

/// What may not have been meant: no limits at all, and decisions that were outside theirs.
/// `constrained` where limits came with the data.
pub fn cautions(settings: &FitSettings, constrained: bool, outside: &Outside) -> Vec<String> {
    let mut notes = Vec::new();
    if settings.limits_unsaid(constrained) {
        notes.push(
            "no limits given, so decisions are unbounded (see {bounds}, {lower}, {upper})"
                .to_owned(),
        );
    }
    let count = outside.beyond;
    if count > 0 {
        notes.push(match settings.infeasible {
            Infeasible::Keep => format!(
                "{count} decisions lie outside their limits and are fitted as they are \
                 ({{infeasible keep}})"
            ),
            _ => format!(
                "{count} decisions lie outside their limits and are moved to the nearest limit \
                 ({{infeasible clip}})"
            ),
        });
    }
    notes
}

/// Says the cautions, and what rounding did.
pub(crate) fn tell(
    settings: &FitSettings,
    constrained: bool,
    outside: &Outside,
    progress: &mut (dyn Progress + Send),
) {
    for note in cautions(settings, constrained, outside) {
        progress.on_note(&note);
    }
    let count = outside.rounding;
    if count > 0 {
        progress.on_note(&format!("{count} decisions lie outside their limits by rounding"));
    }
}

/// Which signals never change in some rows, in words: no data can tell what they do.
pub fn constant_note(data: &Dataset, rows: &[usize]) -> Option<String> {
    let (lowest, highest) = ranges(data.signals(), rows);
    let constant: Vec<String> = (0..lowest.len())
        .filter(|&j| rows.len() > 1 && lowest[j] == highest[j])
        .map(|j| format!("{} is always {}", data.names().signal(j), lowest[j]))
        .collect();
    let named = constant[..constant.len().min(MOST_NAMED)].join(", ");
    let more = match constant.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let note = format!("{named}{more}: what a signal does that never changes cannot be learned");
    (!constant.is_empty()).then_some(note)
}

/// Which signals vary so little in some rows that normalising them leaves next to nothing: the
/// deviation that they are divided by has 1e-7 added to it.
pub fn faint_note(settings: &FitSettings, data: &Dataset, rows: &[usize]) -> Option<String> {
    if settings.normalize != Normalization::Zscore {
        return None;
    }
    let (lowest, highest) = ranges(data.signals(), rows);
    let width = |j: usize| highest[j] - lowest[j];
    let faint: Vec<usize> =
        (0..lowest.len()).filter(|&j| width(j) > 0.0 && width(j) < FAINT).collect();
    let named: Vec<String> = faint
        .iter()
        .take(MOST_NAMED)
        .map(|&j| format!("{} by {:.1e}", data.names().signal(j), width(j)))
        .collect();
    let more = match faint.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let note = format!(
        "signals vary by next to nothing ({}{more}), and normalised ones by less: multiply them by \
         a constant that makes their width about one",
        named.join(", ")
    );
    (!faint.is_empty()).then_some(note)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clipping_and_keeping_are_told_apart() {
        let outside = Outside { beyond: 3, rounding: 0 };
        let told = |infeasible| {
            let settings = FitSettings { infeasible, unbounded: true, ..FitSettings::default() };
            cautions(&settings, false, &outside).concat()
        };
        assert!(
            told(Infeasible::Clip).contains("3 decisions lie outside their limits and are moved")
        );
        assert!(told(Infeasible::Keep).contains("fitted as they are"));
    }

    #[test]
    fn no_limits_are_said_unless_they_were_meant_or_came_with_the_data() {
        let inside = Outside::default();
        let default = FitSettings::default();
        assert_eq!(cautions(&default, false, &inside).len(), 1);
        assert!(cautions(&default, true, &inside).is_empty());
        let meant = FitSettings { unbounded: true, ..default };
        assert!(cautions(&meant, false, &inside).is_empty());
    }
}
