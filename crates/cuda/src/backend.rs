//! One GPU as a machine that argwhy fits and predicts on.

use crate::device::{Device, Probe};
use crate::error::Error;
use crate::factor::Factor;
use crate::fused;
use crate::operator::{CudaOperator, NAME, failed};
use crate::predict::CudaPredictor;
use crate::products::Products;
use crate::recipe::Recipe;
use argwhy_core::backend::{Backend, Storage};
use argwhy_core::model::Law;
use argwhy_core::operator::{KernelOperator, OperatorKind, Precision};
use argwhy_core::predict::BatchPredictor;
use argwhy_core::solver::NewtonSettings;
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
/// Panels of samples have no more than this part of the memory.
const PANELS_SHARE: u64 = 8;
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

    fn room(&self, recipe: &Recipe, n_samples: usize, n_features: usize) -> Option<Room> {
        Room::of(self.memory, recipe, n_samples, n_features)
    }
}

/// What samples take on a GPU.
#[derive(Clone, Copy, Debug)]
struct Room {
    n_samples: usize,
    /// Samples of a panel; none where all are there.
    panel_rows: Option<usize>,
    bytes: u64,
}

impl Room {
    /// How samples are held in so much memory: on the GPU, or in panels where that leaves more to
    /// the preconditioner, which comes first: a copied panel costs an eighth of a product, a weak
    /// preconditioner several times as many (ADR 0016).
    fn of(memory: u64, recipe: &Recipe, n_samples: usize, n_features: usize) -> Option<Self> {
        let bytes = Products::held_bytes(recipe, n_samples, n_features);
        let all = Self { n_samples, panel_rows: None, bytes };
        let fits = bytes + Products::buffer_bytes(n_samples) <= memory;
        let rank = all.rank(memory, 1).unwrap_or(0);
        if rank >= NewtonSettings::partial_rank_for(n_samples) {
            return Some(all);
        }
        let most = memory / PANELS_SHARE;
        let in_panels = Products::panel_rows(recipe, n_samples, n_features, most).map(|rows| {
            let bytes = Products::streamed_bytes(recipe, (n_samples, n_features), rows);
            Self { n_samples, panel_rows: Some(rows), bytes }
        });
        let is_better = |room: &Self| {
            let in_panels = room.rank(memory, 1).unwrap_or(0);
            in_panels >= LEAST_RANK && in_panels >= rank + rank / 4
        };
        // Few samples are on the GPU whole, and have the preconditioner that is left room for.
        in_panels.filter(is_better).or_else(|| fits.then_some(all))
    }

    /// Bytes of a fit with a preconditioner of this rank: what else is there while that grows, and
    /// then while it is used, is not there at once.
    fn fit_bytes(&self, rank: usize, decision_dim: usize) -> u64 {
        let n = self.n_samples;
        let growing = Factor::growing_bytes(n) + fused::SCRATCH_BYTES;
        let used = Factor::used_bytes(n, rank, decision_dim) + Products::buffer_bytes(n);
        self.bytes + Factor::row_bytes(n, rank) + growing.max(used)
    }

    /// The largest rank for which there is memory.
    fn rank(&self, memory: u64, decision_dim: usize) -> Option<usize> {
        let fits = |rank: &usize| self.fit_bytes(*rank, decision_dim) <= memory;
        // Memory grows with the rank, a little faster than in proportion.
        (1..=self.n_samples / 64 + 1).map(|tiles| tiles * 64).take_while(fits).last()
    }
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
        self.room(&recipe, n_samples, n_features)?.rank(self.memory, decision_dim)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn room(memory: u64, n_samples: usize, n_features: usize) -> Option<Room> {
        let recipe = Recipe::new(&Kernel::Rbf { gamma: 0.1 }).unwrap();
        Room::of(memory, &recipe, n_samples, n_features)
    }

    #[test]
    fn samples_are_on_the_gpu_where_they_leave_room_for_the_preconditioner() {
        for (memory, n, d) in [(40 << 10, 1_000_000, 78), (6 << 10, 100_000, 171)] {
            let found = room(memory * MIB, n, d).unwrap();
            assert_eq!(found.panel_rows, None);
            assert!(found.rank(memory * MIB, 6).unwrap() >= 2500);
        }
        // Too few for panels.
        assert_eq!(room(2048 * MIB, 10_000, 78).unwrap().panel_rows, None);
        assert!(room(100 * MIB, 10_000, 78).is_none());
    }

    /// A million samples in 6500 MiB had panels, and a preconditioner of rank 512 for what was
    /// left.
    #[test]
    fn panels_leave_most_of_the_memory_to_the_preconditioner() {
        let memory = 6500 * MIB;
        let found = room(memory, 1_000_000, 78).unwrap();
        assert_eq!(found.panel_rows, Some(65_536));
        let rank = found.rank(memory, 3).unwrap();
        assert!(rank >= 800, "{rank}");
        assert!(found.fit_bytes(rank, 3) <= memory && found.fit_bytes(rank + 64, 3) > memory);
        assert!(room(3000 * MIB, 1_000_000, 78).is_none(), "no room for a preconditioner");
    }
}
