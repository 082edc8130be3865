//! Desired decisions of batches on a GPU: features on the host's cores, the sum over the support
//! there, in f64.

use crate::device::Device;
use crate::error::Error;
use crate::operator::failed;
use crate::products::{Columns, Prepared, Products};
use crate::recipe::Recipe;
use crate::rounding::Rounded;
use argwhy_core::features::FeatureMap;
use argwhy_core::model::Support;
use argwhy_core::operator::accuracy_for;
use argwhy_core::predict::BatchPredictor;
use argwhy_core::{Error as CoreError, Model};
use ndarray::{ArrayView2, ArrayViewMut2, Axis};

/// Signals whose features are on the GPU at a time.
const BATCH: usize = 65_536;
/// The tolerance whose accuracy predictions have, and what values may be off by at most, as on the
/// host.
const ORDINARY_TOL: f64 = 1e-6;
const ACCURACY: f64 = 1e-12;

/// A model's support on a GPU.
pub struct CudaPredictor {
    features: FeatureMap,
    products: Products,
    coefficients: Columns,
}

impl CudaPredictor {
    /// Copies the features and coefficients of the support.
    pub(crate) fn new(device: &Device, model: &Model, support: &Support) -> Result<Self, Error> {
        let unusable = |error: CoreError| Error::Kernel { kernel: error.to_string() };
        let features = model.features.transform(support.signals.view()).map_err(unusable)?;
        let recipe = Recipe::new(&support.kernel)?;
        let accuracy = accuracy_for(model.record.regularization, ORDINARY_TOL).min(ACCURACY);
        let scaled = recipe.scaled(features.view())?;
        let centred = Rounded::new(&recipe, scaled.view(), accuracy).centred;
        let prepared = Prepared { working: false, centred };
        let products = Products::prepared(device, features.view(), &support.kernel, prepared)?;
        let coefficients = products.upload(support.coefficients.view())?;
        Ok(Self { features: model.features.clone(), products, coefficients })
    }
}

impl BatchPredictor for CudaPredictor {
    fn desired_into(
        &self,
        signals: ArrayView2<'_, f64>,
        mut out: ArrayViewMut2<'_, f64>,
    ) -> Result<(), CoreError> {
        let batches: Vec<_> = signals.axis_chunks_iter(Axis(0), BATCH).collect();
        let features_of = |batch: usize| {
            let signals = batches.get(batch)?;
            Some(self.features.transform(*signals))
        };
        let mut ready = features_of(0).transpose()?;
        for (batch, mut out) in out.axis_chunks_iter_mut(Axis(0), BATCH).enumerate() {
            let Some(features) = ready else { break };
            // While the GPU has this batch, the host's cores compute the features of the next.
            let (found, next) = rayon::join(
                || self.products.apply_between(features.view(), &self.coefficients),
                || features_of(batch + 1).transpose(),
            );
            out.assign(&found.map_err(failed)?);
            ready = next?;
        }
        Ok(())
    }
}
