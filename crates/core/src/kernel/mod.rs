//! Kernels κ(a, b) on feature vectors: what they are, and how a tile of them is computed fast.
//!
//! Enters: feature rows. Leaves: kernel values, either one at a time from the definition
//! ([`Kernel::evaluate`], the oracle of every test) or a strip of eight rows against a block of
//! samples. For that a kernel is taken apart (`recipe`) into simple ones, each a function of an
//! inner product or a distance, whose samples are packed in `panels`, paired in `tile` and finished
//! in `finish`; `samples` puts the parts together again. `quadratic` is the faster way for
//! decisions on degree-2 features, `check` what a kernel of the user's own has to pass.

mod check;
mod custom;
pub(crate) mod finish;
pub(crate) mod layout;
pub(crate) mod panels;
pub(crate) mod quadratic;
pub(crate) mod recipe;
pub(crate) mod rounding;
pub(crate) mod samples;
pub(crate) mod tile;
pub(crate) mod trend;

pub(crate) use check::{check, clearly_negative};
pub use custom::CustomKernel;

use crate::error::Error;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// A positive semidefinite kernel with its parameters.
///
/// `gamma` means the same in all kernels of the Euclidean distance: a length ℓ = 1/√(2γ), so that
/// Matérn kernels turn into the RBF kernel of the same γ as they get smoother.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// 1 for any two: beside another kernel, a level that all decisions share.
    Constant,
    /// (γ aᵀb + c)^degree.
    Polynomial {
        /// Degree, 1 to [`Kernel::MAX_DEGREE`].
        degree: u32,
        /// Weight γ > 0 of the inner product.
        gamma: f64,
        /// c ≥ 0; zero leaves out all lower degrees.
        offset: f64,
    },
    /// (1 + t) exp(−t) with t = √(6γ)‖a − b‖: samples of it are once differentiable.
    Matern32 {
        /// Inverse squared width γ > 0.
        gamma: f64,
    },
    /// (1 + t + t²/3) exp(−t) with t = √(10γ)‖a − b‖: samples of it are twice differentiable.
    Matern52 {
        /// Inverse squared width γ > 0.
        gamma: f64,
    },
    /// w·κ(a, b).
    Scaled {
        /// w > 0.
        weight: f64,
        /// κ.
        kernel: Box<Kernel>,
    },
    /// Σ κ_i(a, b).
    Sum {
        /// One kernel or more.
        terms: Vec<Kernel>,
    },
    /// Π κ_i(a, b).
    Product {
        /// One kernel or more.
        factors: Vec<Kernel>,
    },
    /// κ(a/ℓ, b/ℓ), feature by feature.
    Anisotropic {
        /// ℓ > 0, one a feature.
        length_scales: Vec<f64>,
        /// κ.
        kernel: Box<Kernel>,
    },
    /// A kernel of the user's own; it lives in memory only, no model file can hold it.
    #[serde(skip)]
    Custom(Arc<dyn CustomKernel>),
}

/// Kernels by name, as settings and model files ask for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelKind {
    /// exp(−γ‖a − b‖²).
    Rbf,
    /// exp(−γ‖a − b‖₁).
    Laplace,
    /// aᵀb.
    Linear,
    /// 1.
    Constant,
    /// (γ aᵀb + offset)^degree.
    Polynomial,
    /// (1 + t) exp(−t), t = √(6γ)‖a − b‖.
    Matern32,
    /// (1 + t + t²/3) exp(−t), t = √(10γ)‖a − b‖.
    Matern52,
}

/// The parameters of kernels by name; each takes those that it knows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KernelParameters {
    /// γ.
    pub gamma: f64,
    /// Degree of a polynomial kernel.
    pub degree: u32,
    /// Offset of a polynomial kernel.
    pub offset: f64,
}

impl KernelKind {
    /// All of them, in the order in which people are told.
    pub const ALL: [Self; 7] = [
        Self::Rbf,
        Self::Laplace,
        Self::Linear,
        Self::Constant,
        Self::Polynomial,
        Self::Matern32,
        Self::Matern52,
    ];

    /// Its name in settings and model files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rbf => "rbf",
            Self::Laplace => "laplace",
            Self::Linear => "linear",
            Self::Constant => "constant",
            Self::Polynomial => "polynomial",
            Self::Matern32 => "matern32",
            Self::Matern52 => "matern52",
        }
    }

    /// The names of its parameters.
    pub fn parameters(self) -> &'static [&'static str] {
        match self {
            Self::Linear | Self::Constant => &[],
            Self::Polynomial => &["gamma", "degree", "offset"],
            _ => &["gamma"],
        }
    }

    /// The kernel itself.
    pub fn kernel(self, parameters: KernelParameters) -> Kernel {
        let KernelParameters { gamma, degree, offset } = parameters;
        match self {
            Self::Rbf => Kernel::Rbf { gamma },
            Self::Laplace => Kernel::Laplace { gamma },
            Self::Linear => Kernel::Linear,
            Self::Constant => Kernel::Constant,
            Self::Polynomial => Kernel::Polynomial { degree, gamma, offset },
            Self::Matern32 => Kernel::Matern32 { gamma },
            Self::Matern52 => Kernel::Matern52 { gamma },
        }
    }
}

/// Simple kernels that one kernel may consist of.
const MAX_PARTS: usize = 64;

impl Kernel {
    /// The largest degree of a polynomial kernel: beyond it values of ordinary features leave the
    /// range of f64.
    pub const MAX_DEGREE: u32 = 32;
    /// Kernels that have a name of their own in settings and files.
    pub const NAMES: [&'static str; KernelKind::ALL.len()] = {
        let mut names = [""; KernelKind::ALL.len()];
        let mut at = 0;
        while at < names.len() {
            names[at] = KernelKind::ALL[at].name();
            at += 1;
        }
        names
    };

    /// aᵀb + 1: the linear kernel on features with a column of ones.
    pub fn linear_with_intercept() -> Self {
        Self::Polynomial { degree: 1, gamma: 1.0, offset: 1.0 }
    }

    /// Whether its values lie between 0 and 1 whatever the features.
    pub fn is_fraction(&self) -> bool {
        // Those with a bound are sums and products of kernels of a distance, which are nowhere
        // negative. Weights that are 1 in all may add up to a little more in floating point.
        self.bound().is_some_and(|bound| bound <= 1.0 + 1e-12)
    }

    /// A kernel of the user's own.
    pub fn custom(kernel: impl CustomKernel + 'static) -> Self {
        Self::Custom(Arc::new(kernel))
    }

    /// Checks the parameters.
    pub fn validate(&self) -> Result<(), Error> {
        let setting = |name, found: &dyn ToString, allowed| {
            Err(Error::Setting { name, found: found.to_string(), allowed })
        };
        let positive = |x: f64| x > 0.0 && x.is_finite();
        if self.n_parts() > MAX_PARTS {
            return setting(
                "kernel",
                &format!("{} kernels", self.n_parts()),
                "64 kernels or fewer",
            );
        }
        match self {
            Self::Rbf { gamma }
            | Self::Laplace { gamma }
            | Self::Matern32 { gamma }
            | Self::Matern52 { gamma }
            | Self::Polynomial { gamma, .. }
                if !positive(*gamma) =>
            {
                setting("gamma", gamma, "a positive finite number, or auto")
            }
            Self::Polynomial { degree, .. } if !(1..=Self::MAX_DEGREE).contains(degree) => {
                setting("degree", degree, "a whole number from 1 to 32")
            }
            Self::Polynomial { offset, .. } if !(*offset >= 0.0 && offset.is_finite()) => {
                setting("offset", offset, "zero or a positive finite number")
            }
            Self::Scaled { weight, .. } if !positive(*weight) => setting(
                "the weight of a kernel",
                weight,
                "a positive finite number; with any other the kernel would not be positive \
                 semidefinite",
            ),
            Self::Anisotropic { length_scales, .. } if length_scales.is_empty() => {
                setting("length-scales", &"empty", "one number a feature")
            }
            Self::Anisotropic { length_scales, kernel } => {
                match length_scales.iter().find(|l| !positive(**l)) {
                    Some(found) => setting("length-scales", found, "positive finite numbers"),
                    None => kernel.validate(),
                }
            }
            Self::Sum { terms: parts } | Self::Product { factors: parts } if parts.is_empty() => {
                setting("kernel", &"a sum or product of nothing", "one kernel or more")
            }
            Self::Sum { terms: parts } | Self::Product { factors: parts } => {
                parts.iter().try_for_each(Self::validate)
            }
            Self::Scaled { kernel, .. } => kernel.validate(),
            _ => Ok(()),
        }
    }

    /// As [`validate`](Self::validate), and that length scales are as many as features.
    pub fn validate_for(&self, n_features: usize) -> Result<(), Error> {
        self.validate()?;
        let mut wrong = None;
        self.visit(&mut |kernel| match kernel {
            Self::Anisotropic { length_scales, .. } if length_scales.len() != n_features => {
                wrong = Some(length_scales.len());
            }
            _ => {}
        });
        match wrong {
            None => Ok(()),
            Some(found) => Err(Error::LengthScales { found, n_features }),
        }
    }

    /// κ(a, b) from the definition.
    ///
    /// # Panics
    /// If the two, or length scales, have different lengths.
    pub fn evaluate(&self, a: &[f64], b: &[f64]) -> f64 {
        assert_eq!(a.len(), b.len(), "a kernel compares features of one length");
        let pairs = || a.iter().zip(b);
        let inner = || pairs().map(|(a, b)| a * b).sum::<f64>();
        let squared = || pairs().map(|(a, b)| (a - b) * (a - b)).sum::<f64>();
        match self {
            Self::Rbf { gamma } => (-gamma * squared()).exp(),
            Self::Laplace { gamma } => {
                (-gamma * pairs().map(|(a, b)| (a - b).abs()).sum::<f64>()).exp()
            }
            Self::Linear => inner(),
            Self::Constant => 1.0,
            Self::Polynomial { degree, gamma, offset } => {
                // At most MAX_DEGREE, see `validate`.
                (gamma * inner() + offset).powi(degree.cast_signed())
            }
            Self::Matern32 { gamma } => {
                let t = (6.0 * gamma * squared()).sqrt();
                (1.0 + t) * (-t).exp()
            }
            Self::Matern52 { gamma } => {
                let t = (10.0 * gamma * squared()).sqrt();
                (1.0 + t + t * t / 3.0) * (-t).exp()
            }
            Self::Scaled { weight, kernel } => weight * kernel.evaluate(a, b),
            Self::Sum { terms } => terms.iter().map(|kernel| kernel.evaluate(a, b)).sum(),
            Self::Product { factors } => {
                factors.iter().map(|kernel| kernel.evaluate(a, b)).product()
            }
            Self::Anisotropic { length_scales, kernel } => {
                assert_eq!(a.len(), length_scales.len(), "one length scale a feature");
                let scaled = |z: &[f64]| -> Vec<f64> {
                    z.iter().zip(length_scales).map(|(z, l)| z / l).collect()
                };
                kernel.evaluate(&scaled(a), &scaled(b))
            }
            Self::Custom(kernel) => kernel.evaluate(a, b),
        }
    }

    /// κ(a, a) where it is the same for every a, which is then also the largest value: 1 for
    /// kernels of a distance. None for kernels that grow with their features, and for those of the
    /// user's own, of which nothing is known.
    pub fn bound(&self) -> Option<f64> {
        match self {
            Self::Rbf { .. }
            | Self::Laplace { .. }
            | Self::Matern32 { .. }
            | Self::Matern52 { .. }
            | Self::Constant => Some(1.0),
            Self::Linear | Self::Polynomial { .. } | Self::Custom(_) => None,
            Self::Scaled { weight, kernel } => Some(weight * kernel.bound()?),
            Self::Sum { terms } => terms.iter().map(Self::bound).sum(),
            Self::Product { factors } => factors.iter().map(Self::bound).product(),
            Self::Anisotropic { kernel, .. } => kernel.bound(),
        }
    }

    /// The user's own kernel that this one is or contains.
    pub fn custom_part(&self) -> Option<&Arc<dyn CustomKernel>> {
        match self {
            Self::Custom(kernel) => Some(kernel),
            Self::Scaled { kernel, .. } | Self::Anisotropic { kernel, .. } => kernel.custom_part(),
            Self::Sum { terms: parts } | Self::Product { factors: parts } => {
                parts.iter().find_map(Self::custom_part)
            }
            _ => None,
        }
    }

    /// Simple kernels this one consists of: 1, except for sums and products. Time and packed
    /// samples grow with it.
    pub fn n_parts(&self) -> usize {
        let mut n_parts = 0;
        self.visit(&mut |kernel| {
            let compound = matches!(
                kernel,
                Self::Scaled { .. }
                    | Self::Sum { .. }
                    | Self::Product { .. }
                    | Self::Anisotropic { .. }
            );
            n_parts += usize::from(!compound);
        });
        n_parts
    }

    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Self)) {
        visitor(self);
        match self {
            Self::Scaled { kernel, .. } | Self::Anisotropic { kernel, .. } => kernel.visit(visitor),
            Self::Sum { terms: parts } | Self::Product { factors: parts } => {
                parts.iter().for_each(|kernel| kernel.visit(visitor));
            }
            _ => {}
        }
    }
}

/// As in settings: `rbf(gamma=0.1) + 0.5*linear`. Length scales follow in words.
impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, parts: &[Self], between: &str| {
            for (i, part) in parts.iter().enumerate() {
                f.write_str(if i > 0 { between } else { "" })?;
                // A sum inside a product or under a weight keeps its own sign to itself.
                if between == "*" { part.fmt_factor(f)? } else { part.fmt(f)? }
            }
            Ok(())
        };
        match self {
            Self::Rbf { gamma } => write!(f, "rbf(gamma={gamma})"),
            Self::Laplace { gamma } => write!(f, "laplace(gamma={gamma})"),
            Self::Linear => f.write_str("linear"),
            Self::Constant => f.write_str("constant"),
            Self::Polynomial { degree, gamma, offset } => {
                write!(f, "polynomial(degree={degree}, gamma={gamma}, offset={offset})")
            }
            Self::Matern32 { gamma } => write!(f, "matern32(gamma={gamma})"),
            Self::Matern52 { gamma } => write!(f, "matern52(gamma={gamma})"),
            Self::Scaled { weight, kernel } => {
                write!(f, "{weight}*")?;
                kernel.fmt_factor(f)
            }
            Self::Sum { terms } => list(f, terms, " + "),
            Self::Product { factors } => list(f, factors, "*"),
            Self::Anisotropic { length_scales, kernel } => {
                kernel.fmt_factor(f)?;
                write!(f, " with {} length scales", length_scales.len())
            }
            Self::Custom(kernel) => write!(f, "{} (user-defined)", kernel.name()),
        }
    }
}

impl Kernel {
    fn fmt_factor(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if matches!(self, Self::Sum { .. } | Self::Anisotropic { .. }) {
            write!(f, "({self})")
        } else {
            write!(f, "{self}")
        }
    }
}
