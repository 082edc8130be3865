//! Lower and upper limits, dimension by dimension.

use crate::error::Error;
use serde::{Deserialize, Serialize};

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

    /// None at all.
    pub fn none(decision_dim: usize) -> Self {
        let all = |value| vec![value; decision_dim];
        Self { lower: all(f64::NEG_INFINITY), upper: all(f64::INFINITY) }
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
}
