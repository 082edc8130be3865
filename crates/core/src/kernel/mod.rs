//! Kernels κ(a, b) on feature vectors: what they are, and how a tile of them is computed fast.
//!
//! Enters: feature rows. Leaves: kernel values, either one at a time from the definition ([`Kernel::evaluate`], the
//! oracle of every test) or a strip of eight rows against a block of samples (`tile`), from samples packed in `panels`. `quadratic` is the
//! faster way for decisions on degree-2 features.

pub(crate) mod panels;
pub(crate) mod quadratic;
pub(crate) mod tile;

use crate::error::Error;
use serde::{Deserialize, Serialize};

/// A positive semidefinite kernel with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Kernel {
    /// exp(−γ‖a − b‖²).
    Rbf {
        /// Inverse squared width γ > 0.
        gamma: f64,
    },
    /// exp(−γ‖a − b‖₁).
    Laplace {
        /// Inverse width γ > 0.
        gamma: f64,
    },
    /// aᵀb, without an intercept.
    Linear,
}

impl Kernel {
    /// Checks the parameters.
    pub fn validate(&self) -> Result<(), Error> {
        match *self {
            Self::Rbf { gamma } | Self::Laplace { gamma }
                if !(gamma > 0.0 && gamma.is_finite()) =>
            {
                Err(Error::Setting {
                    name: "gamma",
                    found: gamma.to_string(),
                    allowed: "a positive finite number, or auto",
                })
            }
            _ => Ok(()),
        }
    }

    /// κ(a, b) from the definition.
    ///
    /// # Panics
    /// If the two have different lengths.
    pub fn evaluate(&self, a: &[f64], b: &[f64]) -> f64 {
        assert_eq!(a.len(), b.len(), "a kernel compares features of one length");
        let pairs = a.iter().zip(b);
        match *self {
            Self::Rbf { gamma } => {
                (-gamma * pairs.map(|(a, b)| (a - b) * (a - b)).sum::<f64>()).exp()
            }
            Self::Laplace { gamma } => {
                (-gamma * pairs.map(|(a, b)| (a - b).abs()).sum::<f64>()).exp()
            }
            Self::Linear => pairs.map(|(a, b)| a * b).sum(),
        }
    }

    /// Whether κ(a, b) depends on a − b alone.
    pub fn is_shift_invariant(&self) -> bool {
        !matches!(self, Self::Linear)
    }

    /// The kernel's name in settings, files and help.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Rbf { .. } => "rbf",
            Self::Laplace { .. } => "laplace",
            Self::Linear => "linear",
        }
    }
}
