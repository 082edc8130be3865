//! Preconditioners for K_FF + λI: exact ones where K can be factorised, and beyond that low-rank factors of K by random
//! pivoting, inverted by Woodbury's identity.

mod direct;
mod low_rank;
mod woodbury;

pub(crate) use direct::Direct;
pub use low_rank::{LowRank, RankLimits};
pub(crate) use woodbury::Woodbury;

use crate::error::Error;
use ndarray::{ArrayView2, ArrayViewMut2};

/// No preconditioner at all.
pub(crate) struct Identity;

impl Preconditioner for Identity {
    fn update(&mut self, _: ArrayView2<'_, bool>) -> Result<(), Error> {
        Ok(())
    }

    fn apply(&self, _: &[usize], v: ArrayView2<'_, f64>, mut out: ArrayViewMut2<'_, f64>) {
        out.assign(&v);
    }
}

/// An approximation of (K_FF + λI)⁻¹, symmetric and positive definite, for the free samples F of each dimension.
pub(crate) trait Preconditioner {
    /// Follows new sets of free samples, one a dimension (n_dimensions × n_samples).
    fn update(&mut self, free: ArrayView2<'_, bool>) -> Result<(), Error>;

    /// Applies it for the listed dimensions; v and out are dimensions.len() × n_samples and v is zero outside F, as
    /// out will be.
    fn apply(&self, dimensions: &[usize], v: ArrayView2<'_, f64>, out: ArrayViewMut2<'_, f64>);
}
