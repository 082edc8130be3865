//! How kernel values are computed and held.

use serde::{Deserialize, Serialize};

/// The precision kernel values are computed in while iterating. Sums, iterates and certificates are
/// f64 always.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// Single precision: half the memory, twice the speed; residuals are corrected with the f64
    /// kernel.
    #[default]
    F32,
    /// Double precision throughout.
    F64,
}

/// Whether kernel values are kept or computed anew for each product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OperatorKind {
    /// The tiles of K's triangle stay in memory: N²/2 numbers.
    Stored,
    /// They stay in memory as 16-bit fixed point, for kernels with values in [0, 1]: N² bytes. The
    /// working product is then that of a matrix which differs from K by
    /// [`OperatorKind::compact_error`], whatever the precision.
    Compact,
    /// Tiles are recomputed in cache: N·d numbers.
    Tiled,
}

impl OperatorKind {
    /// The norm by which 16-bit rounding moves the kernel matrix of `n_samples`: 2√N standard
    /// deviations, as for independent entries (N = 4000: 5.6e-4, measured 5e-4). It has to stay
    /// below λ for K + λI to remain positive definite.
    pub fn compact_error(n_samples: usize) -> f64 {
        2.0 * (n_samples as f64).sqrt() / 12.0_f64.sqrt() / f64::from(u16::MAX)
    }
}
