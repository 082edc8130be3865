//! Several machines as one that argwhy fits on.

use crate::job::Job;
use crate::machines::{Machines, Opening};
use crate::operator::ClusterOperator;
use crate::panels::{ClusterFactor, PanelKeeper};
use argwhy_core::backend::{Backend, Host, Origin, Storage};
use argwhy_core::operator::{HostOperator, KernelOperator, OperatorKind};
use argwhy_core::{Error, Kernel};
use argwhy_cuda::CudaParts;
use ndarray::ArrayView2;
use std::sync::Arc;

/// Seconds that a product takes beside computing: messages to workers and back.
const LATENCY: f64 = 0.01;

/// Multiply-adds a second of a core, in a preconditioner.
const CORE_RATE: f64 = 1.2e10;

/// Workers somewhere else; this process solves and keeps the samples' features too. The
/// preconditioner is the workers' where there are many samples, otherwise this process's.
#[derive(Clone, Debug)]
pub struct ClusterBackend {
    machines: Arc<dyn Machines>,
}

impl ClusterBackend {
    /// On these machines.
    pub fn new(machines: Arc<dyn Machines>) -> Self {
        Self { machines }
    }
}

impl ClusterBackend {
    /// What exact products on the workers' GPUs may be off by; none where they are to compute on
    /// their cores: they have no GPUs, or these no parts of such products.
    fn rounding_on_gpus(
        &self,
        features: ArrayView2<'_, f64>,
        kernel: &Kernel,
        accuracy: f64,
    ) -> Option<Vec<f64>> {
        let n_samples = features.nrows();
        if !self.machines.have_gpus() || !CudaParts::offers(kernel, n_samples) {
            return None;
        }
        CudaParts::rounding(features, kernel, accuracy, HostOperator::n_parts(n_samples)).ok()
    }
}

impl Backend for ClusterBackend {
    fn name(&self) -> &'static str {
        self.machines.name()
    }

    fn offers(&self, kernel: &Kernel, _: usize, _: usize, storage: Storage) -> bool {
        // A kernel of one's own is code, which no message carries; values are not kept anywhere.
        let tiled = OperatorKind::Tiled;
        storage.kind == tiled && storage.blocks == tiled && kernel.custom_part().is_none()
    }

    fn operator_bytes(
        &self,
        kernel: &Kernel,
        n_samples: usize,
        n_features: usize,
        storage: Storage,
    ) -> u64 {
        Host.operator_bytes(kernel, n_samples, n_features, storage)
    }

    // As on one machine, though less is needed: the same limit then leads to the same
    // preconditioner, and to the same bits.
    fn product_bytes(&self, n_samples: usize, n_vectors: usize) -> u64 {
        Host.product_bytes(n_samples, n_vectors)
    }

    /// A few samples to try something on: not worth a message.
    fn operator(
        &self,
        features: ArrayView2<'_, f64>,
        kernel: &Kernel,
        storage: Storage,
    ) -> Result<Box<dyn KernelOperator>, Error> {
        Host.operator(features, kernel, storage)
    }

    fn operator_from(
        &self,
        origin: Origin<'_>,
        features: ArrayView2<'_, f64>,
        kernel: &Kernel,
        storage: Storage,
    ) -> Result<Box<dyn KernelOperator>, Error> {
        let Storage { kind, precision, accuracy, .. } = storage;
        // What is asked for once, or of few samples, is answered here.
        let local =
            HostOperator::with_accuracy(features, kernel.clone(), precision, kind, accuracy)?;
        let on_gpus = self.rounding_on_gpus(features, kernel, accuracy);
        let job = Job { on_gpu: on_gpus.is_some(), ..Job::new(origin, features, kernel, storage) };
        let opening = Opening { job: &job, rows: origin.rows, features };
        let machines = Arc::clone(&self.machines);
        Ok(Box::new(ClusterOperator::open(machines, opening, local, on_gpus)?))
    }

    /// Whatever is asked for: what workers have room for is theirs to say.
    fn factor_rank(&self, _: &Kernel, n_samples: usize, _: usize, _: usize) -> Option<usize> {
        let spreads = |keeper: &dyn PanelKeeper| n_samples >= keeper.spread_from();
        self.machines.panels().is_some_and(spreads).then_some(n_samples)
    }

    fn factor_bytes(
        &self,
        _: &Kernel,
        shape: (usize, usize),
        rows: (usize, usize),
        decision_dim: usize,
    ) -> u64 {
        ClusterFactor::bytes(shape.0, rows, decision_dim)
    }

    fn factor_rate(&self) -> f64 {
        CORE_RATE * self.machines.n_cores() as f64
    }

    /// SSO's are the driver's.
    fn keeps_blocks(&self) -> bool {
        false
    }

    fn product_seconds(
        &self,
        features: ArrayView2<'_, f64>,
        kernel: &Kernel,
        storage: Storage,
        shape: (usize, usize),
    ) -> Result<f64, Error> {
        let here = Host.product_seconds(features, kernel, storage, shape)?;
        let share = own_cores() / self.machines.n_cores().max(1) as f64;
        Ok(LATENCY + here * share)
    }
}

fn own_cores() -> f64 {
    std::thread::available_parallelism().map_or(1.0, |n| n.get() as f64)
}
