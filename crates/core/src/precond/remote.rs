//! Woodbury's identity with everything on the operator's own machine.

use super::Preconditioner;
use crate::decision_set::Faces;
use crate::error::Error;
use crate::operator::{Descent, RemoteFactor};
use ndarray::{Array2, ArrayView2, ArrayViewMut2};

/// (λI + B_FᵀB_F)⁻¹, as [`Woodbury`](super::Woodbury) has it here.
pub(crate) struct Remote {
    factor: Box<dyn RemoteFactor>,
    ridge: f64,
}

impl Remote {
    /// Of a factor that was built there.
    pub(crate) fn new(factor: Box<dyn RemoteFactor>, ridge: f64) -> Self {
        Self { factor, ridge }
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

    fn model_product(&self, v: ArrayView2<'_, f64>) -> Option<Array2<f64>> {
        // What fails here will fail again, where it can be said.
        self.factor.product(v).ok().flatten()
    }
}
