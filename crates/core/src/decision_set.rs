//! What the expert is allowed to do.
//!
//! Enters: limits. Leaves: the projection on the set of allowed decisions, and whether observed decisions lie in it.

use crate::error::Error;
use ndarray::ArrayViewMut2;
use serde::{Deserialize, Serialize};

/// The set U of allowed decisions, the same for every sample.
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
        Self::Box(BoxLimits {
            lower: vec![f64::NEG_INFINITY; decision_dim],
            upper: vec![f64::INFINITY; decision_dim],
        })
    }

    /// The same two limits in each of `decision_dim` dimensions.
    pub fn bounds(decision_dim: usize, lower: f64, upper: f64) -> Result<Self, Error> {
        Ok(Self::Box(BoxLimits::new(vec![lower; decision_dim], vec![upper; decision_dim])?))
    }

    /// Length of a decision.
    pub fn decision_dim(&self) -> usize {
        let Self::Box(limits) = self;
        limits.lower.len()
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
        decision.iter().enumerate().all(|(j, &u)| limits.lower[j] <= u && u <= limits.upper[j])
    }

    /// Whether nothing limits a decision.
    pub fn is_unbounded(&self) -> bool {
        let Self::Box(limits) = self;
        limits.lower.iter().all(|l| *l == f64::NEG_INFINITY)
            && limits.upper.iter().all(|u| *u == f64::INFINITY)
    }

    /// Limits as the solvers use them.
    pub fn limits(&self) -> &BoxLimits {
        let Self::Box(limits) = self;
        limits
    }
}

/// Lower and upper limits, infinite ones included; lower ≤ upper, none NaN.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "RawLimits", into = "RawLimits")]
pub struct BoxLimits {
    lower: Vec<f64>,
    upper: Vec<f64>,
}

/// Limits as JSON can say them: null is infinite.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLimits {
    lower: Vec<Option<f64>>,
    upper: Vec<Option<f64>>,
}

impl From<BoxLimits> for RawLimits {
    fn from(limits: BoxLimits) -> Self {
        let finite = |v: Vec<f64>| v.into_iter().map(|x| x.is_finite().then_some(x)).collect();
        Self { lower: finite(limits.lower), upper: finite(limits.upper) }
    }
}

impl TryFrom<RawLimits> for BoxLimits {
    type Error = Error;
    fn try_from(raw: RawLimits) -> Result<Self, Error> {
        let fill = |v: Vec<Option<f64>>, infinite: f64| {
            v.into_iter().map(|x| x.unwrap_or(infinite)).collect()
        };
        Self::new(fill(raw.lower, f64::NEG_INFINITY), fill(raw.upper, f64::INFINITY))
    }
}

impl BoxLimits {
    /// One lower and one upper limit for each dimension.
    pub fn new(lower: Vec<f64>, upper: Vec<f64>) -> Result<Self, Error> {
        if lower.len() != upper.len() {
            return Err(Error::Width {
                what: "upper",
                owner: "the list of lower limits",
                expected: lower.len(),
                found: upper.len(),
            });
        }
        for (dimension, (&lower, &upper)) in lower.iter().zip(&upper).enumerate() {
            let nowhere = lower == f64::INFINITY || upper == f64::NEG_INFINITY;
            if lower.is_nan() || upper.is_nan() || lower > upper || nowhere {
                return Err(Error::EmptyBox { dimension, lower, upper });
            }
        }
        Ok(Self { lower, upper })
    }

    /// Lower limits, one a dimension.
    pub fn lower(&self) -> &[f64] {
        &self.lower
    }

    /// Upper limits, one a dimension.
    pub fn upper(&self) -> &[f64] {
        &self.upper
    }

    /// Nearest allowed value in dimension `j`.
    #[inline]
    pub fn clamp(&self, j: usize, value: f64) -> f64 {
        value.clamp(self.lower[j], self.upper[j])
    }

    /// What "a millionth" refers to in dimension `j`: its larger finite limit, or one.
    fn scale(&self, j: usize) -> f64 {
        let finite = |x: f64| if x.is_finite() { x.abs() } else { 0.0 };
        let largest = finite(self.lower[j]).max(finite(self.upper[j]));
        if largest > 0.0 { largest } else { 1.0 }
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

/// Applies `policy` to the rows of `decisions` outside `set`. `rows` names a row to the user (its place in the file).
pub fn admit(
    mut decisions: ArrayViewMut2<'_, f64>,
    set: &DecisionSet,
    policy: Infeasible,
    rows: impl Fn(usize) -> usize,
) -> Result<Outside, Error> {
    let limits = set.limits();
    if decisions.ncols() != set.decision_dim() {
        return Err(Error::Width {
            what: "decisions",
            owner: "the list of limits",
            expected: set.decision_dim(),
            found: decisions.ncols(),
        });
    }
    let total = decisions.nrows();
    let mut outside = Outside::default();
    let mut first = None;
    let mut named = Vec::new();
    for (i, mut decision) in decisions.rows_mut().into_iter().enumerate() {
        let mut worst = 0.0_f64;
        for (j, value) in decision.iter_mut().enumerate() {
            let projected = limits.clamp(j, *value);
            let distance = (*value - projected).abs() / limits.scale(j);
            if distance > FEASIBILITY_TOLERANCE && first.is_none() {
                first = Some((rows(i), j, *value));
            }
            worst = worst.max(distance);
            if policy != Infeasible::Keep {
                *value = projected;
            }
        }
        if worst > FEASIBILITY_TOLERANCE {
            outside.beyond += 1;
            if named.len() < 5 {
                named.push(rows(i).to_string());
            }
        } else if worst > 0.0 {
            outside.rounding += 1;
        }
    }
    match first {
        Some((first_row, dimension, value)) if policy == Infeasible::Error => {
            Err(Error::Infeasible {
                count: outside.beyond,
                total,
                tolerance: FEASIBILITY_TOLERANCE,
                rows: named.join(", "),
                first_row,
                dimension,
                value,
                lower: limits.lower[dimension],
                upper: limits.upper[dimension],
            })
        }
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
