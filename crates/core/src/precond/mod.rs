//! Preconditioners for K_FF + λI and, where decision sets are polyhedra, RᵀKR + λI: exact ones
//! where K can be factorised, and beyond that low-rank factors of K by random pivoting, inverted by
//! Woodbury's identity.

mod coupled;
mod coupled_direct;
mod direct;
mod grown;
mod kept;
mod low_rank;
mod panel;
mod remote;
mod systems;
mod woodbury;

pub(crate) use coupled::Coupled;
pub(crate) use coupled_direct::CoupledDirect;
pub(crate) use direct::Direct;
pub(crate) use grown::Grown;
pub use kept::{KeptFactor, KeptGram, Triangle};
pub use low_rank::{LowRank, RankLimits, clear, transpose};
pub use panel::FactorPanel;
pub(crate) use remote::Remote;
pub use systems::{GramChange, GramSystems};
pub(crate) use woodbury::Woodbury;

use crate::decision_set::Faces;
use crate::error::Error;
use crate::linalg::entries::filled;
use crate::linalg::shifted::Growth;
use crate::operator::Descent;
use ndarray::{Array2, ArrayView2, ArrayViewMut2};

/// How λ grows where rounding hides it in a low-rank factor's Gram matrix: until it no longer does.
const LOW_RANK_GROWTH: Growth = Growth { times: 10.0, least: 0.0, most: f64::INFINITY };

/// No shift of a matrix of kernel values is large enough.
fn values_too_large() -> Error {
    Error::Numerical { what: "kernel values are too large".to_owned() }
}

/// d of [`Preconditioner::model_step`] from its image.
fn change(
    residual: &Array2<f64>,
    image: &Array2<f64>,
    ridge: f64,
    free: impl Fn(usize, usize) -> bool + Sync,
) -> Array2<f64> {
    filled(residual.dim(), |j, i| {
        let known = if free(j, i) { image[[j, i]] } else { 0.0 };
        (residual[[j, i]] - known) / ridge
    })
}

/// No preconditioner at all.
pub(crate) struct Identity;

impl Preconditioner for Identity {
    fn update(&mut self, _: &Faces) -> Result<(), Error> {
        Ok(())
    }

    fn apply(
        &self,
        _: &[usize],
        v: ArrayView2<'_, f64>,
        mut out: ArrayViewMut2<'_, f64>,
    ) -> Result<(), Error> {
        out.assign(&v);
        Ok(())
    }
}

impl<P: Preconditioner + ?Sized> Preconditioner for &mut P {
    fn update(&mut self, faces: &Faces) -> Result<(), Error> {
        (**self).update(faces)
    }

    fn apply(
        &self,
        systems: &[usize],
        v: ArrayView2<'_, f64>,
        out: ArrayViewMut2<'_, f64>,
    ) -> Result<(), Error> {
        (**self).apply(systems, v, out)
    }

    fn set_ridge(&mut self, ridge: f64) -> bool {
        (**self).set_ridge(ridge)
    }

    fn solve(&self, ridge: f64, v: &Array2<f64>) -> Option<(Array2<f64>, Array2<f64>)> {
        (**self).solve(ridge, v)
    }

    fn descent(
        &self,
        rhs: ArrayView2<'_, f64>,
        ridge: f64,
        exact: bool,
    ) -> Result<Option<Box<dyn Descent + '_>>, Error> {
        (**self).descent(rhs, ridge, exact)
    }

    fn model_product(&self, v: ArrayView2<'_, f64>) -> Option<Array2<f64>> {
        (**self).model_product(v)
    }

    fn model_energies(&self, v: ArrayView2<'_, f64>) -> Option<Vec<f64>> {
        (**self).model_energies(v)
    }

    fn model_step(&self, residual: &Array2<f64>) -> Option<(Array2<f64>, Array2<f64>)> {
        (**self).model_step(residual)
    }

    fn keep(&self) -> Option<KeptFactor> {
        (**self).keep()
    }
}

/// An approximation of (RᵀKR + λI)⁻¹, symmetric and positive definite, in the free directions of
/// every sample's face.
pub(crate) trait Preconditioner {
    /// Follows new faces.
    fn update(&mut self, faces: &Faces) -> Result<(), Error>;

    /// Applies it for the listed systems: of boxes the dimensions, each a row of v and out, of
    /// polyhedra vectors over all dimensions, one below the other. Both are in the coordinates of
    /// the faces, zero beyond the free ones.
    fn apply(
        &self,
        systems: &[usize],
        v: ArrayView2<'_, f64>,
        out: ArrayViewMut2<'_, f64>,
    ) -> Result<(), Error>;

    /// Takes another λ from the next [`update`](Self::update) on. False where that means making it
    /// anew.
    fn set_ridge(&mut self, _ridge: f64) -> bool {
        false
    }

    /// c and K R c over all samples with (RᵀKR + λI) c = v in every system, where it can say so
    /// without a product.
    fn solve(&self, _ridge: f64, _v: &Array2<f64>) -> Option<(Array2<f64>, Array2<f64>)> {
        None
    }

    /// Conjugate gradients on the machine that has the operator and this, with products in working
    /// precision or exact ones; none where their vectors are the host's.
    fn descent(
        &self,
        _rhs: ArrayView2<'_, f64>,
        _ridge: f64,
        _exact: bool,
    ) -> Result<Option<Box<dyn Descent + '_>>, Error> {
        Ok(None)
    }

    /// v·K̃ over all samples for the K̃ ≈ K whose RᵀK̃R + λI it inverts, where that takes no
    /// product with K.
    fn model_product(&self, _v: ArrayView2<'_, f64>) -> Option<Array2<f64>> {
        None
    }

    /// vᵀK̃v of each row, where that is known.
    fn model_energies(&self, v: ArrayView2<'_, f64>) -> Option<Vec<f64>> {
        let image = self.model_product(v)?;
        Some(v.rows().into_iter().zip(image.rows()).map(|(v, image)| v.dot(&image)).collect())
    }

    /// d and K̃d with λd + K̃d = r at the free directions and λd = r at the others, dimension by
    /// dimension of boxes; none where [`apply`](Self::apply) and
    /// [`model_product`](Self::model_product) are the way to it.
    fn model_step(&self, _residual: &Array2<f64>) -> Option<(Array2<f64>, Array2<f64>)> {
        None
    }

    /// What a later fit of most of these samples can go on from, where there is something.
    fn keep(&self) -> Option<KeptFactor> {
        None
    }
}
