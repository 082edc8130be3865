//! One GPU as a machine that argwhy fits and predicts on.

use crate::device::{Device, Probe};
use crate::error::Error;
use crate::factor::Factor;
use crate::operator::{CudaOperator, NAME, failed};
use crate::predict::CudaPredictor;
use crate::products::Products;
use crate::recipe::Recipe;
use argwhy_core::backend::{Backend, Storage};
use argwhy_core::model::Law;
use argwhy_core::operator::{KernelOperator, OperatorKind, Precision};
use argwhy_core::predict::BatchPredictor;
use argwhy_core::{Error as CoreError, Kernel, Model};
use ndarray::ArrayView2;

/// Share of the free memory that is used where nothing else is said: the driver needs some itself.
const SHARE: f64 = 0.9;
/// Multiply-adds a second and multiprocessor in a working product, counted without symmetry: half
/// of what an H200 was measured at (ADR 0016), for older GPUs.
const RATE: f64 = 3.5e11;
/// Bytes of this process that the driver and the kernels it compiles take, about.
const DRIVER_BYTES: u64 = 512 << 20;
/// Rank of a preconditioner that is worth streaming samples for.
const LEAST_RANK: usize = 512;
/// Seconds that a call takes before it computes.
const LATENCY: f64 = 2e-4;

/// A GPU and how much of its memory may be used.
#[derive(Clone, Debug)]
pub struct CudaBackend {
    device: Device,
    memory: u64,
    n_multiprocessors: usize,
}

impl CudaBackend {
    /// GPU number `ordinal`, of whose memory at most `memory` bytes are used; most of what is free
    /// if none are given.
    pub fn new(ordinal: usize, memory: Option<u64>) -> Result<Self, Error> {
        let device = Device::new(ordinal)?;
        device.trim()?;
        let free = device.probe()?.free_memory as f64 * SHARE;
        let n_multiprocessors = device.n_multiprocessors()?;
        let memory = memory.unwrap_or(u64::MAX).min(free as u64);
        Ok(Self { device, memory, n_multiprocessors })
    }

    /// What GPU this is.
    pub fn probe(&self) -> Result<Probe, Error> {
        self.device.probe()
    }

    /// Fails with why a fit of this size cannot be done on this GPU: its kernel has no form
    /// there, or it does not fit.
    pub fn check(&self, kernel: &Kernel, n_samples: usize, n_features: usize) -> Result<(), Error> {
        // A fit adds trends itself.
        let recipe = Recipe::new(&kernel.without_trend())?;
        let needed = Products::bytes(&recipe, n_samples, n_features);
        if self.room(&recipe, n_samples, n_features).is_some() {
            return Ok(());
        }
        let (needed, free) = (needed as usize, self.memory as usize);
        Err(Error::NoMemory { what: "the kernel matrix's samples", needed, free })
    }

    /// How samples are held: on the GPU, or where they do not fit beside a preconditioner that is
    /// of use, in panels.
    fn room(&self, recipe: &Recipe, n_samples: usize, n_features: usize) -> Option<Room> {
        let all = Room { panel_rows: None, bytes: Products::bytes(recipe, n_samples, n_features) };
        let beside = self.memory.saturating_sub(Factor::bytes(n_samples, LEAST_RANK, 1));
        if all.bytes <= beside {
            return Some(all);
        }
        let in_panels = Products::panel_rows(recipe, n_samples, n_features, beside).map(|rows| {
            let bytes = Products::streamed_bytes(recipe, (n_samples, n_features), rows);
            Room { panel_rows: Some(rows), bytes }
        });
        // Few samples are on the GPU whole, and have the preconditioner that is left room for.
        in_panels.or_else(|| (all.bytes <= self.memory).then_some(all))
    }
}

/// What samples take on a GPU.
struct Room {
    /// Samples of a panel; none where all are there.
    panel_rows: Option<usize>,
    bytes: u64,
}

impl Backend for CudaBackend {
    fn name(&self) -> &'static str {
        NAME
    }

    fn offers(
        &self,
        kernel: &Kernel,
        n_samples: usize,
        n_features: usize,
        storage: Storage,
    ) -> bool {
        let tiled = OperatorKind::Tiled;
        storage.kind == tiled
            && storage.blocks == tiled
            && n_features > 0
            && self.check(kernel, n_samples, n_features).is_ok()
    }

    fn operator_bytes(
        &self,
        kernel: &Kernel,
        n_samples: usize,
        n_features: usize,
        _: Storage,
    ) -> u64 {
        let pinned = || {
            let recipe = Recipe::new(kernel).ok()?;
            self.room(&recipe, n_samples, n_features)?.panel_rows?;
            Some(Products::host_bytes(&recipe, n_samples, n_features))
        };
        // The diagonal, the envelope of rounding, and a copy of the features on their way.
        let vectors = ((2 + n_features) * n_samples * size_of::<f64>()) as u64;
        DRIVER_BYTES + vectors + pinned().unwrap_or(0)
    }

    fn product_bytes(&self, n_samples: usize, n_vectors: usize) -> u64 {
        (2 * n_vectors * n_samples * size_of::<f64>()) as u64
    }

    fn operator(
        &self,
        features: ArrayView2<'_, f64>,
        kernel: &Kernel,
        storage: Storage,
    ) -> Result<Box<dyn KernelOperator>, CoreError> {
        let working = storage.precision == Precision::F32;
        let accuracy = storage.accuracy;
        let (n_samples, n_features) = features.dim();
        let room = Recipe::new(kernel).ok().and_then(|r| self.room(&r, n_samples, n_features));
        let panel_rows = room.and_then(|room| room.panel_rows);
        Ok(Box::new(match panel_rows {
            None => CudaOperator::new(&self.device, features, kernel, working, accuracy)?,
            Some(rows) => {
                let how = (working, accuracy);
                CudaOperator::streamed(&self.device, features, kernel, how, rows)?
            }
        }))
    }

    fn batch_predictor(&self, model: &Model) -> Result<Option<Box<dyn BatchPredictor>>, CoreError> {
        let Law::Kernel(support) = &model.law else { return Ok(None) };
        let (n_samples, n_features) = (support.signals.nrows(), model.features.n_features());
        // Signals pass through in batches; samples in panels would have to as well, for each.
        let fits = Recipe::new(&support.kernel)
            .is_ok_and(|recipe| Products::bytes(&recipe, n_samples, n_features) <= self.memory);
        if n_samples == 0 || !fits {
            return Ok(None);
        }
        let predictor = CudaPredictor::new(&self.device, model, support).map_err(failed)?;
        Ok(Some(Box::new(predictor)))
    }

    fn product_seconds(
        &self,
        features: ArrayView2<'_, f64>,
        _: &Kernel,
        storage: Storage,
        (n_samples, n_vectors): (usize, usize),
    ) -> Result<f64, CoreError> {
        let work = (n_samples as f64).powi(2) * (features.ncols() + n_vectors) as f64;
        let slower = if storage.precision == Precision::F64 { 15.0 } else { 1.0 };
        Ok(LATENCY + slower * work / (RATE * self.n_multiprocessors as f64))
    }

    fn factor_rank(
        &self,
        kernel: &Kernel,
        n_samples: usize,
        n_features: usize,
        decision_dim: usize,
    ) -> Option<usize> {
        let recipe = Recipe::new(kernel).ok()?;
        let left = self.memory.checked_sub(self.room(&recipe, n_samples, n_features)?.bytes)?;
        // Memory grows with the rank, a little faster than in proportion.
        let fits = |rank: &usize| Factor::bytes(n_samples, *rank, decision_dim) <= left;
        (1..=n_samples / 64 + 1).map(|tiles| tiles * 64).take_while(fits).last()
    }
}
