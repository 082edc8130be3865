//! Products with the kernel matrix K, without saying how K is held.
//!
//! Enters: features and a kernel. Leaves: `K·v` for several vectors at once. [`KernelOperator`] is
//! the seam where other machines plug in; [`HostOperator`] is the one for this machine's cores,
//! with K stored as tiles, whole or in 16 bits, or with tiles recomputed for every product. All use
//! symmetry (each tile serves two blocks), all cores, and a schedule that fixes the order of every
//! sum, so that the result has the same bits for any number of threads, and whether whole tiles are
//! stored or recomputed.
//!
//! Weights belong to the problem. No operator can be given any, so none can be forgotten:
//!
//! ```compile_fail,E0599
//! # use argwhy_core::{Kernel, operator::{HostOperator, OperatorKind, Precision}};
//! # let features = ndarray::Array2::zeros((2, 1));
//! # let (precision, kind) = (Precision::F64, OperatorKind::Tiled);
//! let operator = HostOperator::new(features.view(), Kernel::Linear, precision, kind).unwrap();
//! operator.with_weights(&[1.0, 2.0]);
//! ```

mod accumulate;
mod blocks;
mod descent;
mod factor;
mod host;
mod kind;
mod parts;
mod schedule;
mod tiles;
mod trended;
mod weighted;

pub(crate) use accumulate::{accumulate_columns, accumulate_rows};
pub(crate) use blocks::unreadable;
pub use blocks::{BlockMachines, BlockTask};
pub use descent::{Descent, Step};
pub use factor::RemoteFactor;
pub use host::HostOperator;
pub use kind::{OperatorKind, Precision};
pub use parts::InParts;
pub use tiles::PartialProduct;
pub(crate) use trended::Trended;
pub(crate) use weighted::Weighted;

use crate::error::Error;
use ndarray::{ArrayView1, ArrayView2, ArrayViewMut2, Axis};
use std::ops::Range;

/// Rows of K that are there at once where nobody has a better way.
const AT_ONCE: usize = 96;

/// A symmetric kernel matrix that can be multiplied with.
///
/// Whatever computes may fail, with [`Error::Backend`] where the machine did; solvers pass that on
/// and a fit ends with it. Calls are few and large: a product a step of conjugate gradients, a
/// panel of rows a round of the preconditioner.
///
/// Vectors are rows: `v` is n_vectors × n_samples in standard layout. The working product may use a
/// kernel rounded to a lower precision as long as it is the same symmetric matrix every time; sums
/// are in f64 either way.
pub trait KernelOperator: Send + Sync {
    /// Rows and columns of K.
    fn n_samples(&self) -> usize;

    /// κ(z_i, z_i) for every sample.
    fn diagonal(&self) -> Result<Vec<f64>, Error>;

    /// How far an exact product can be off: entry i of v·K by r_i Σ_j r_j |v_j| at most, for the r
    /// returned.
    fn rounding(&self) -> Result<Vec<f64>, Error>;

    /// out = v·K with the kernel in working precision.
    fn apply(&self, v: ArrayView2<'_, f64>, out: ArrayViewMut2<'_, f64>) -> Result<(), Error>;

    /// The same matrix with its working product in f64, itself where that is so already: what
    /// residuals and certificates are computed with.
    fn exact(&self) -> &dyn KernelOperator;

    /// Whether the working product is exact already.
    fn is_exact(&self) -> bool;

    /// out[r · columns.len() + j] = κ(samples\[r\], columns.start + j), in working precision: many
    /// rows a call, as many as the caller has room for, so that a launch or a message is paid for
    /// once a panel.
    fn rows_into(
        &self,
        samples: &[usize],
        columns: Range<usize>,
        out: &mut [f64],
    ) -> Result<(), Error>;

    /// out[a · samples.len() + b] = κ(samples\[a\], samples\[b\]), in working precision.
    fn block_into(&self, samples: &[usize], out: &mut [f64]) -> Result<(), Error>;

    /// out += v·K\[samples, :\] in working precision: `v` is n_vectors × samples.len(), `out`
    /// n_vectors × n_samples.
    fn add_columns(
        &self,
        samples: &[usize],
        v: ArrayView2<'_, f64>,
        out: ArrayViewMut2<'_, f64>,
    ) -> Result<(), Error>;

    /// out = v·K\[..v.ncols(), columns\] in working precision: what vectors of the first samples
    /// come to at a few others.
    fn apply_at(
        &self,
        columns: Range<usize>,
        v: ArrayView2<'_, f64>,
        mut out: ArrayViewMut2<'_, f64>,
    ) -> Result<(), Error> {
        let n = v.ncols();
        let mut rows = vec![0.0; AT_ONCE.min(columns.len()) * n];
        for (first, mut out) in
            columns.clone().step_by(AT_ONCE).zip(out.axis_chunks_iter_mut(Axis(1), AT_ONCE))
        {
            let samples: Vec<usize> = (first..columns.end.min(first + AT_ONCE)).collect();
            let rows = &mut rows[..samples.len() * n];
            self.rows_into(&samples, 0..n, rows)?;
            for (mut out, row) in out.columns_mut().into_iter().zip(rows.chunks(n.max(1))) {
                let row = ArrayView1::from(row);
                out.iter_mut().zip(v.rows()).for_each(|(out, v)| *out = v.dot(&row));
            }
        }
        Ok(())
    }

    /// The matrix of the listed samples alone, held as was planned when this one was made.
    fn restrict(&self, samples: &[usize]) -> Result<Box<dyn KernelOperator>, Error>;

    /// Whoever computes with the matrices of several parts of the samples at once; none where that
    /// is this process, one after the other.
    fn block_machines(&self) -> Option<Box<dyn BlockMachines + '_>> {
        None
    }

    /// Room on the operator's own machine for a low-rank factor of up to `max_rank` rows of K, or
    /// of diag(roots)·K·diag(roots), with systems of `decision_dim` dimensions; none where the host
    /// keeps it.
    fn remote_factor(
        &self,
        _max_rank: usize,
        _decision_dim: usize,
        _roots: Option<&[f64]>,
    ) -> Result<Option<Box<dyn RemoteFactor>>, Error> {
        Ok(None)
    }
}

/// What [`accuracy_for`] says of k = 1e-6 and a tolerance of 1e-6.
pub const ORDINARY_ACCURACY: f64 = 2e-11;

/// What a kernel value may be off by on average for a certificate of relative gap `tol` to hold
/// with `regularization` k, with room to spare.
///
/// Values off by ε move g by about E = ε N|α| = (ε/k)·|û − x|, and a gap by 2E|x − y| + 2E², where
/// |x − y|² is no more than the gap: all of it stays below a tenth of tol·|û − x|², which is below
/// tol·P, for ε/k ≤ √tol/50.
pub fn accuracy_for(regularization: f64, tol: f64) -> f64 {
    0.02 * regularization * tol.sqrt().min(1.0)
}
