//! What the expert is allowed to do.
//!
//! Enters: limits of the model ([`DecisionSet`]) and those that come with data
//! ([`Constraints`](crate::dataset::Constraints)). Leaves: a set for every sample ([`SampleSets`]),
//! the decisions nearest to what is desired, and whether observed decisions lie in their sets.

mod boxes;
mod extents;
mod faces;
mod label;
mod limits;
mod polyhedra;
mod prices;
mod samples;

pub use boxes::Boxes;
pub(crate) use faces::{Face, Faces};
pub use label::RowLabel;
pub use limits::BoxLimits;
pub use polyhedra::Polyhedra;
pub use prices::Prices;
pub use samples::SampleSets;

use crate::error::Error;
use ndarray::ArrayViewMut2;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// The limits U that belong to a model, the same for every sample; what data brings along restricts
/// them further.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
#[non_exhaustive]
pub enum DecisionSet {
    /// lower ≤ u ≤ upper, dimension by dimension.
    Box(BoxLimits),
}

impl DecisionSet {
    /// No limits in any of `decision_dim` dimensions.
    pub fn unbounded(decision_dim: usize) -> Self {
        Self::Box(BoxLimits::none(decision_dim))
    }

    /// The same two limits in each of `decision_dim` dimensions.
    pub fn bounds(decision_dim: usize, lower: f64, upper: f64) -> Result<Self, Error> {
        Ok(Self::Box(BoxLimits::new(vec![lower; decision_dim], vec![upper; decision_dim])?))
    }

    /// Length of a decision.
    pub fn decision_dim(&self) -> usize {
        let Self::Box(limits) = self;
        limits.lower().len()
    }

    /// Moves `decision` to the nearest point of the set.
    pub fn project(&self, decision: &mut [f64]) {
        let Self::Box(limits) = self;
        for (j, u) in decision.iter_mut().enumerate() {
            *u = limits.clamp(j, *u);
        }
    }

    /// Whether `decision` lies in the set, exactly.
    pub fn contains(&self, decision: &[f64]) -> bool {
        let Self::Box(limits) = self;
        decision.iter().enumerate().all(|(j, &u)| limits.lower()[j] <= u && u <= limits.upper()[j])
    }

    /// Whether nothing limits a decision.
    pub fn is_unbounded(&self) -> bool {
        let Self::Box(limits) = self;
        limits.lower().iter().all(|l| *l == f64::NEG_INFINITY)
            && limits.upper().iter().all(|u| *u == f64::INFINITY)
    }

    /// Limits as the solvers use them.
    pub fn limits(&self) -> &BoxLimits {
        let Self::Box(limits) = self;
        limits
    }
}

/// What to do with an expert's decisions outside the set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Infeasible {
    /// Refuse them, naming the first.
    #[default]
    Error,
    /// Move them to the nearest allowed decision.
    Clip,
    /// Fit them as they are; the objective tends to −∞ as the regularization shrinks.
    Keep,
}

/// Decisions found outside their set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outside {
    /// Beyond the tolerance.
    pub beyond: usize,
    /// By no more than rounding (1e-6 of the limits' scale); moved to the limit unless kept.
    pub rounding: usize,
}

/// Relative distance up to which a decision outside its limits counts as rounding.
pub const FEASIBILITY_TOLERANCE: f64 = 1e-6;

/// The largest distance of a decision from its set in units of the limits' scale, the dimension it
/// is seen in, and the decision.
type Distance = (f64, usize, Vec<f64>);

/// Applies `policy` to the rows of `decisions` outside their sets. `rows` names a row to the user
/// (its place in the file).
pub fn admit(
    mut decisions: ArrayViewMut2<'_, f64>,
    sets: &SampleSets,
    policy: Infeasible,
    rows: impl Fn(usize) -> usize,
) -> Result<Outside, Error> {
    if decisions.ncols() != sets.decision_dim() {
        return Err(Error::Width {
            what: "decisions",
            owner: "the list of limits",
            expected: sets.decision_dim(),
            found: decisions.ncols(),
        });
    }
    let mut all: Vec<_> = decisions.rows_mut().into_iter().collect();
    let distances: Vec<Result<Distance, Error>> = all
        .par_iter_mut()
        .enumerate()
        .map(|(i, decision)| {
            let observed = decision.to_vec();
            let mut nearest = observed.clone();
            sets.project(i, &mut nearest)?;
            let mut worst = (0.0, 0);
            for (j, (u, x)) in observed.iter().zip(&nearest).enumerate() {
                let distance = (u - x).abs() / sets.scale(j, i);
                if distance > worst.0 {
                    worst = (distance, j);
                }
            }
            if policy != Infeasible::Keep {
                decision.iter_mut().zip(nearest).for_each(|(u, x)| *u = x);
            }
            Ok((worst.0, worst.1, observed))
        })
        .collect();
    let total = distances.len();
    let mut outside = Outside::default();
    let (mut first, mut named) = (None, Vec::new());
    for (i, distance) in distances.into_iter().enumerate() {
        let (distance, dimension, decision) = distance?;
        if distance > FEASIBILITY_TOLERANCE {
            first = first.or_else(|| Some((i, sets.explain(i, dimension, &decision))));
            outside.beyond += 1;
            if named.len() < 5 {
                named.push(rows(i).to_string());
            }
        } else if distance > 0.0 {
            outside.rounding += 1;
        }
    }
    match first {
        Some((i, seen)) if policy == Infeasible::Error => Err(Error::Infeasible {
            count: outside.beyond,
            total,
            tolerance: FEASIBILITY_TOLERANCE,
            rows: named.join(", "),
            first_row: rows(i),
            seen,
        }),
        _ => Ok(outside),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn projects_and_contains() {
        let set = DecisionSet::Box(
            BoxLimits::new(vec![-1.0, f64::NEG_INFINITY], vec![2.0, 0.0]).unwrap(),
        );
        let mut u = [3.0, -50.0];
        assert!(!set.contains(&u));
        set.project(&mut u);
        assert_eq!(u, [2.0, -50.0]);
        assert!(set.contains(&u));
    }

    #[test]
    fn refuses_empty_boxes() {
        for (l, u) in [(1.0, 0.0), (f64::NAN, 1.0), (f64::INFINITY, f64::INFINITY)] {
            assert!(matches!(
                DecisionSet::bounds(2, l, u),
                Err(Error::EmptyBox { dimension: 0, .. })
            ));
        }
        assert!(BoxLimits::new(vec![0.0], vec![1.0, 1.0]).is_err());
    }

    #[test]
    fn admits_by_policy() {
        let set = DecisionSet::bounds(1, -1.0, 1.0).unwrap();
        let original = array![[0.5], [1.0 + 1e-8], [1.5], [-3.0]];
        let mut refused = original.clone();
        let set = SampleSets::new(set.limits(), None, 4, |i| i).unwrap();
        match admit(refused.view_mut(), &set, Infeasible::Error, |i| i + 100) {
            Err(Error::Infeasible { count: 2, total: 4, first_row: 102, rows, .. }) => {
                assert_eq!(rows, "102, 103");
            }
            other => panic!("{other:?}"),
        }
        let mut clipped = original.clone();
        let outside = admit(clipped.view_mut(), &set, Infeasible::Clip, |i| i).unwrap();
        assert_eq!((outside.beyond, outside.rounding), (2, 1));
        assert_eq!(clipped, array![[0.5], [1.0], [1.0], [-1.0]]);
        let mut kept = original.clone();
        admit(kept.view_mut(), &set, Infeasible::Keep, |i| i).unwrap();
        assert_eq!(kept, original);
    }
}
