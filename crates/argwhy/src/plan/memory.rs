//! Bytes of the whole process at its peak, counted from sizes alone.

use super::{Sizes, block_rank};
use crate::settings::{FitSettings, SolverKind};
use argwhy_core::Kernel;
use argwhy_core::backend::{Backend, Host, Storage};
use argwhy_core::operator::{OperatorKind, Precision};
use argwhy_core::precond::{KeptFactor, LowRank};
use argwhy_core::solver::sso::Initialization;
use argwhy_core::solver::{NewtonSettings, newton, primal, theta};

/// The program itself, its first threads, and what the allocator keeps.
const PROCESS_BYTES: u64 = 28 << 20;
/// Threads that are counted in that.
const FIRST_THREADS: usize = 16;
/// A further thread: what it touches of its stack, its queue of tasks, the buffers of a tile, and
/// what products of matrices copy of their factors and keep.
pub(super) const THREAD_BYTES: u64 = 512 << 10;
/// Rows of features that a thread holds while Gram matrices are summed: picked, weighted and as
/// they are, 256 each.
const GRAM_ROWS: usize = 3 * 256;
/// Threads that sum them at most.
const MOST_GRAM_TASKS: usize = 64;

/// Arrays of decision_dim × n_samples numbers that a checkpoint takes: what is kept, and while it
/// is written its bytes and the file's.
const CHECKPOINT_ARRAYS: usize = 3;

/// Arrays of decision_dim × samples numbers that blocks solved at once have beside their own.
const FOUND_ARRAYS: usize = 5;
/// Copies of a message to workers until it is on its way.
const MESSAGE_COPIES: usize = 3;

/// What a plan of a kernel fit is chosen among.
pub(super) struct Choices<'a> {
    pub(super) settings: &'a FitSettings,
    pub(super) sizes: Sizes,
    pub(super) backend: &'a dyn Backend,
    pub(super) kernel: Kernel,
    /// Samples of a block of SSO, and of a part of its warm-up.
    pub(super) blocks: [usize; 2],
    pub(super) n_together: usize,
    /// The largest rank that the backend itself has room for; none where the host keeps it.
    pub(super) remote_rank: Option<usize>,
}

impl Choices<'_> {
    /// What a fit takes with these choices.
    pub(super) fn memory(&self, precision: Precision, kind: OperatorKind, rank: usize) -> u64 {
        let (sizes, process) = (self.sizes, process_bytes(self.settings));
        match self.settings.solver {
            SolverKind::Newton => process + self.memory_of(sizes, precision, kind, rank),
            SolverKind::Sso => {
                // The whole with nothing but packed samples, iterates and a product's room, and the
                // larger of a block and a part of the warm-up beside it.
                let beside = self.blocks.map(|n_samples| {
                    // A part of the sets at most.
                    let block = Sizes { n_loaded: 0, n_samples, n_factors: 0, ..sizes };
                    let own = NewtonSettings {
                        max_rank: block_rank(sizes, rank, self.n_together),
                        ..self.settings.newton()
                    };
                    self.memory_of(block, precision, kind, sizes.rank_for(&own, n_samples))
                });
                process
                    + self.memory_of(sizes, precision, OperatorKind::Tiled, 0)
                    + beside[0].max(beside[1])
                    + self.together()
            }
        }
    }

    /// What blocks that are solved at once take beside each other: what they found, what becomes
    /// of it for all samples, and, where they are solved elsewhere, messages.
    fn together(&self) -> u64 {
        let Sizes { n_samples, decision_dim, n_features, set_numbers, .. } = self.sizes;
        let at_once = self.settings.concurrent_blocks;
        let samples = if at_once > 1 { at_once.saturating_mul(self.blocks[0]) } else { 0 };
        let samples = samples.min(n_samples);
        let steps = if at_once > 1 { 2 * decision_dim * n_samples } else { 0 };
        let sent =
            if self.settings.init == Initialization::PaperWarmUp { n_samples } else { samples };
        let messages = if self.backend.name() == Host.name() || sent == 0 {
            0
        } else {
            MESSAGE_COPIES * (sent * (4 * decision_dim + n_features) + set_numbers)
        };
        ((steps + FOUND_ARRAYS * decision_dim * samples + messages) * size_of::<f64>()) as u64
    }

    fn memory_of(
        &self,
        sizes: Sizes,
        precision: Precision,
        kind: OperatorKind,
        rank: usize,
    ) -> u64 {
        let Sizes { n_loaded, n_samples, signal_dim, decision_dim, n_features, .. } = sizes;
        let numbers = n_loaded * (signal_dim + decision_dim)
            + n_samples * (signal_dim + decision_dim)
            + n_samples * n_features
            + CHECKPOINT_ARRAYS * n_samples * decision_dim
            + sizes.set_numbers;
        // The gap of a point takes its product together with the next step's.
        let (vectors, learning) = if sizes.learns_theta {
            let vectors = theta::vectors(decision_dim).max(2 * decision_dim);
            (vectors, theta::bytes(n_samples, decision_dim))
        } else {
            (2 * decision_dim, 0)
        };
        let solver = if sizes.coupled { newton::coupled_bytes } else { newton::bytes };
        let storage = Storage::new(kind, precision);
        // The preconditioner is built before the first product.
        let product = self.backend.product_bytes(n_samples, vectors);
        // What the backend keeps is not this process's, but for what goes with it.
        let is_remote = self.remote_rank.is_some() && rank < n_samples;
        let beside = if is_remote {
            let shape = (n_samples, n_features);
            self.backend.factor_bytes(&self.kernel, shape, (rank, 0), decision_dim)
        } else {
            0
        };
        let rank = if is_remote { 0 } else { rank };
        let building = if rank < n_samples { LowRank::building_bytes(n_samples, rank) } else { 0 };
        (numbers * size_of::<f64>()) as u64
            + self.backend.operator_bytes(&self.kernel, n_samples, n_features, storage)
            + product.max(building)
            + solver(n_samples, decision_dim, rank)
            + sizes.n_factors as u64 * KeptFactor::bytes(n_samples, rank, decision_dim)
            + beside
            + learning
    }
}

/// What a fit in the primal takes, for `n_weights` weights a dimension.
pub(super) fn plain_bytes(settings: &FitSettings, sizes: Sizes, n_weights: usize) -> u64 {
    let Sizes { n_loaded, n_samples, signal_dim, decision_dim, .. } = sizes;
    // Signals stay where they were loaded; samples are known by their row.
    let numbers =
        n_loaded * (signal_dim + decision_dim) + n_samples * (decision_dim + 1) + sizes.set_numbers;
    // Each thread multiplies out some rows of features at a time.
    let n_threads = n_threads(settings).min(MOST_GRAM_TASKS) as u64;
    process_bytes(settings)
        + n_threads * (GRAM_ROWS * n_weights * size_of::<f64>()) as u64
        + (numbers * size_of::<f64>()) as u64
        + primal::bytes(n_samples, decision_dim, n_weights, sizes.coupled)
}

/// Threads that will work.
fn n_threads(settings: &FitSettings) -> usize {
    settings.threads.unwrap_or_else(crate::machine::n_cores)
}

/// What the process takes before it has read or computed anything.
pub(crate) fn process_bytes(settings: &FitSettings) -> u64 {
    let n_threads = n_threads(settings);
    PROCESS_BYTES + n_threads.saturating_sub(FIRST_THREADS) as u64 * THREAD_BYTES
}
