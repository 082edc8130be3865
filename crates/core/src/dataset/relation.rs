//! What a matrix and its bound say together: which two arrays belong together, and how they are
//! named.

use crate::error::Error;

/// M·u ≤ W, or M_eq·u = W_eq.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// M·u ≤ W.
    AtMost,
    /// M_eq·u = W_eq.
    Equal,
}

/// A matrix without its bound, or the other way round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Half {
    /// The array there is.
    pub has: &'static str,
    /// The array there is not.
    pub lacks: &'static str,
    /// What the two say together.
    pub rule: &'static str,
}

impl From<Half> for Error {
    fn from(Half { has, lacks, rule }: Half) -> Self {
        Self::HalfConstraint { has, lacks, rule }
    }
}

impl Relation {
    /// Both, in the order in which rows are counted.
    pub const ALL: [Self; 2] = [Self::AtMost, Self::Equal];

    /// Name of the matrix.
    pub fn matrix(self) -> &'static str {
        match self {
            Self::AtMost => "M",
            Self::Equal => "M_eq",
        }
    }

    /// Name of its bound.
    pub fn bound(self) -> &'static str {
        match self {
            Self::AtMost => "W",
            Self::Equal => "W_eq",
        }
    }

    /// What the two say together.
    pub fn rule(self) -> &'static str {
        match self {
            Self::AtMost => "M·u ≤ W",
            Self::Equal => "M_eq·u = W_eq",
        }
    }

    /// Whether `bound` means something: +∞ on the right is no limit; −∞ no decision can meet, and
    /// an equality needs a number.
    pub fn allows(self, bound: f64) -> bool {
        bound.is_finite() || (self == Self::AtMost && bound == f64::INFINITY)
    }

    /// Both of the two arrays, which say something only together, or neither.
    pub fn pair<M, B>(self, matrix: Option<M>, bound: Option<B>) -> Result<Option<(M, B)>, Half> {
        let half = |has, lacks| Err(Half { has, lacks, rule: self.rule() });
        match (matrix, bound) {
            (Some(matrix), Some(bound)) => Ok(Some((matrix, bound))),
            (None, None) => Ok(None),
            (Some(_), None) => half(self.matrix(), self.bound()),
            (None, Some(_)) => half(self.bound(), self.matrix()),
        }
    }
}
