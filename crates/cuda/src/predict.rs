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
        let mut out: Vec<_> = out.axis_chunks_iter_mut(Axis(0), BATCH).collect();
        let features = |batch: usize| self.features.transform(batches[batch]);
        one_ahead(batches.len(), features, |batch, features| {
            let found = self.products.apply_between(features.view(), &self.coefficients);
            out[batch].assign(&found.map_err(failed)?);
            Ok(())
        })
    }
}

/// Uses what is prepared for each of `count` batches, in order. While one is used, by the GPU, the
/// host's cores prepare the next.
fn one_ahead<T: Send, E: Send>(
    count: usize,
    prepare: impl Fn(usize) -> Result<T, E> + Sync,
    mut apply: impl FnMut(usize, T) -> Result<(), E> + Send,
) -> Result<(), E> {
    let at = |batch: usize| (batch < count).then(|| prepare(batch)).transpose();
    let mut ready = at(0)?;
    for batch in 0..count {
        let Some(prepared) = ready else { break };
        let (done, next) = rayon::join(|| apply(batch, prepared), || at(batch + 1));
        done?;
        ready = next?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::sync::mpsc::{RecvTimeoutError, channel};
    use std::time::Duration;

    #[test]
    fn the_next_batch_is_prepared_while_one_is_applied_and_their_order_is_kept() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let (began, begins) = channel();
        let begins = Mutex::new(begins);
        let mut applied = Vec::new();
        let done: Result<(), RecvTimeoutError> = pool.install(|| {
            let prepare = |batch: usize| {
                began.send(batch).expect("somebody listens");
                Ok(10 * batch)
            };
            one_ahead(4, prepare, |batch, prepared| {
                // It waits for the next to begin: one after the other, that never would.
                let begins = begins.lock().expect("nobody else listens");
                while batch < 3 && begins.recv_timeout(Duration::from_secs(20))? <= batch {}
                applied.push((batch, prepared));
                Ok(())
            })
        });
        assert_eq!(done, Ok(()));
        assert_eq!(applied, [(0, 0), (1, 10), (2, 20), (3, 30)]);
    }

    #[test]
    fn the_first_failure_ends_it() {
        let mut applied = 0;
        let prepare = |batch: usize| if batch == 2 { Err("features") } else { Ok(()) };
        let done = one_ahead(5, prepare, |_, ()| {
            applied += 1;
            Ok(())
        });
        assert_eq!((done, applied), (Err("features"), 2));
        assert_eq!(one_ahead(0, prepare, |_, ()| Ok(())), Ok(()));
        assert_eq!(one_ahead(1, |_| Ok(()), |_, ()| Err("lost")), Err("lost"));
    }
}
