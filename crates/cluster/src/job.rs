//! What a worker needs to know to hold a kernel matrix, beside the data.

use argwhy_core::Kernel;
use argwhy_core::backend::{Origin, Storage};
use argwhy_core::features::FeatureMap;
use argwhy_core::operator::Precision;
use ndarray::ArrayView2;
use serde::{Deserialize, Serialize};

/// A kernel matrix in words, sent to workers as JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// The kernel, without a trend.
    pub kernel: Kernel,
    /// Of kernel values while iterating.
    pub precision: Precision,
    /// What kernel values of exact products may be off by.
    pub accuracy: f64,
    /// What makes features of signals.
    pub map: FeatureMap,
    /// Whether it lies on the workers' GPUs.
    pub on_gpu: bool,
    /// Samples of the matrix.
    pub n_samples: usize,
    /// The driver's features in a number: a worker that read other data has another.
    pub fingerprint: u64,
}

impl Job {
    /// Of a fit on this machine's features, on the workers' cores.
    pub fn new(
        origin: Origin<'_>,
        features: ArrayView2<'_, f64>,
        kernel: &Kernel,
        storage: Storage,
    ) -> Self {
        Self {
            kernel: kernel.clone(),
            precision: storage.precision,
            accuracy: storage.accuracy,
            map: origin.map.clone(),
            on_gpu: false,
            n_samples: features.nrows(),
            fingerprint: fingerprint(features),
        }
    }
}

/// Numbers as one: different data is found, nobody is kept from deceiving.
pub(crate) fn fingerprint(features: ArrayView2<'_, f64>) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let start = (features.nrows() as u64).wrapping_mul(FACTOR) ^ features.ncols() as u64;
    features
        .iter()
        .fold(start, |hash, value| (hash.rotate_left(29) ^ value.to_bits()).wrapping_mul(FACTOR))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn other_features_have_another_fingerprint() {
        let features = array![[1.0, 2.0], [3.0, 4.0]];
        let own = fingerprint(features.view());
        assert_eq!(own, fingerprint(features.clone().view()));
        let swapped = array![[3.0, 4.0], [1.0, 2.0]];
        let moved = array![[1.0, 2.0], [3.0, 4.0 + 1e-15]];
        let flat = array![[1.0, 2.0, 3.0, 4.0]];
        for other in [swapped.view(), moved.view(), flat.view()] {
            assert_ne!(own, fingerprint(other));
        }
    }
}
