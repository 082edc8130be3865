//! Woodbury's identity with everything on the operator's own machine.

use super::{LowRank, Preconditioner};
use crate::decision_set::Faces;
use crate::error::Error;
use crate::operator::{Descent, RemoteFactor};
use ndarray::{ArrayView2, ArrayViewMut2};

/// (λI + B_FᵀB_F)⁻¹, as [`Woodbury`](super::Woodbury) has it here.
pub(crate) struct Remote {
    factor: Box<dyn RemoteFactor>,
    ridge: f64,
}

impl Remote {
    /// Of a factor that was built there; none where it is the host's.
    pub(crate) fn new(factor: LowRank, ridge: f64) -> Result<Self, LowRank> {
        factor.into_remote().map(|factor| Self { factor, ridge })
    }
}

impl Preconditioner for Remote {
    fn set_ridge(&mut self, ridge: f64) -> bool {
        self.ridge = ridge;
        true
    }

    fn update(&mut self, faces: &Faces) -> Result<(), Error> {
        self.factor.update(faces.mask()?, self.ridge)
    }

    fn apply(
        &self,
        dimensions: &[usize],
        v: ArrayView2<'_, f64>,
        out: ArrayViewMut2<'_, f64>,
    ) -> Result<(), Error> {
        self.factor.apply(dimensions, v, out)
    }

    fn descent(
        &self,
        rhs: ArrayView2<'_, f64>,
        ridge: f64,
        exact: bool,
    ) -> Result<Option<Box<dyn Descent + '_>>, Error> {
        self.factor.descent(rhs, ridge, exact)
    }
}
