//! A low-rank factor of K on the operator's own machine.

use super::Descent;
use crate::error::Error;
use ndarray::{Array2, ArrayView2, ArrayViewMut2};

/// B with K ≈ BᵀB, and (λI + B_FᵀB_F)⁻¹ for the free samples F of each dimension, kept where an
/// operator keeps K: on a GPU, say. Pivots are chosen on the host.
pub trait RemoteFactor: Send + Sync {
    /// Rows of B.
    fn rank(&self) -> usize;

    /// Pivots that it takes in one round at most.
    fn n_proposals(&self) -> usize;

    /// B at `samples`, rank × samples.len() row-major.
    fn gather(&self, samples: &[usize]) -> Result<Vec<f64>, Error>;

    /// Appends L⁻¹(K_S: − B_SᵀB) for the pivots S, L the lower triangle of their residual block,
    /// column-major. `diagonal`, that of K − BᵀB, becomes that of the larger B: nowhere below zero,
    /// zero at pivots and where it was below its `floor`.
    fn append(
        &mut self,
        pivots: &[usize],
        triangle: &[f64],
        diagonal: &mut [f64],
        floor: &[f64],
    ) -> Result<(), Error>;

    /// Before the first pivots: `diagonal`, that of the operator, becomes that of K − BᵀB for the
    /// rows that are there already.
    fn begin(&self, _diagonal: &mut [f64]) {}

    /// Appends a row of what the matrix has beside the K of [`append`](Self::append), one number a
    /// sample; before the first pivots.
    fn append_row(&mut self, row: &[f64]) -> Result<(), Error>;

    /// Prepares (λI + B_FᵀB_F)⁻¹ for every dimension: `free` is decision_dim × n_samples. A larger
    /// shift than λ is allowed inside where rounding asks for it.
    fn update(&mut self, free: ArrayView2<'_, bool>, ridge: f64) -> Result<(), Error>;

    /// out = (λI + B_FᵀB_F)⁻¹ v for vectors of the dimensions listed, a row each, zero beyond F in
    /// both.
    fn apply(
        &self,
        dimensions: &[usize],
        v: ArrayView2<'_, f64>,
        out: ArrayViewMut2<'_, f64>,
    ) -> Result<(), Error>;

    /// v·BᵀB over all samples, where that takes far less than a product with K.
    fn product(&self, _v: ArrayView2<'_, f64>) -> Result<Option<Array2<f64>>, Error> {
        Ok(None)
    }

    /// Conjugate gradients for (K_FF + λI) c = b with vectors that stay there, preconditioned by
    /// what the last [`update`](Self::update) prepared: `rhs` is decision_dim × n_samples, zero
    /// beyond F, and λ may be another than it was prepared for. K is that of the operator which
    /// made the factor, in working precision or exact, and what [`append_row`](Self::append_row)
    /// brought is part of it. None where vectors are the host's.
    fn descent(
        &self,
        _rhs: ArrayView2<'_, f64>,
        _ridge: f64,
        _exact: bool,
    ) -> Result<Option<Box<dyn Descent + '_>>, Error> {
        Ok(None)
    }
}
