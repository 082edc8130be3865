//! About how long a fit will take.

use super::{KernelPlan, Method, Plan, Sizes};
use argwhy_core::backend::{Backend, Storage};
use argwhy_core::operator::OperatorKind;
use argwhy_core::precond::{LowRank, RankLimits};
use argwhy_core::random::stream;
use argwhy_core::solver::NewtonSettings;
use argwhy_core::{Error, Kernel};
use ndarray::ArrayView2;

/// Products with the kernel matrix that a fit usually takes with a preconditioner of rank 1000, or
/// of the best for constraints.
const USUAL_PRODUCTS: f64 = 80.0;
/// Those it takes at least, with a preconditioner of which nothing is missing.
const LEAST_PRODUCTS: f64 = 40.0;
/// trace(K − BᵀB)/λ up to which more rank would save no products.
const ENOUGH_TRACE: f64 = 200.0;
/// Ranks up to which it is worth trying, on a few rows, how good a preconditioner of that rank will
/// be.
const TRIED_RANK: usize = 400;
/// Multiply-adds a second and core of products of matrices in f64, where vectors have 256 bits.
const CORE_RATE: f64 = 1.2e10;
/// Passes over all features that a fit in the primal usually takes.
const USUAL_PASSES: f64 = 14.0;

impl Plan {
    /// Fills in the expected time of Newton's method by trying a small product, and where the limit
    /// leaves only a small preconditioner, how good one of that rank is, on `features`' first rows.
    pub fn estimate(
        &mut self,
        kernel: &Kernel,
        features: ArrayView2<'_, f64>,
        ridge: f64,
        backend: &dyn Backend,
    ) -> Result<(), Error> {
        let Method::Kernel(plan) = self.method else { return Ok(()) };
        let (sizes, cores) = (self.sizes, rayon::current_num_threads() as f64);
        if !sizes.coupled && plan.max_rank == plan.n_together {
            // One factorisation and some substitutions: not worth measuring.
            self.seconds = (plan.n_together as f64).powi(3) / (2e10 * cores);
            return Ok(());
        }
        let shape = (plan.n_together, sizes.decision_dim);
        let time = |kind| {
            let storage = Storage::new(kind, plan.precision);
            backend.product_seconds(features, kernel, storage, shape)
        };
        let product = time(plan.operator)?;
        let build = time(OperatorKind::Tiled)?;
        // The preconditioner: N·r² multiply-adds to build, 2N·r a product and dimension.
        let n = plan.n_together as f64;
        let mut rank = plan.max_rank as f64;
        let (mut products, systems) = if sizes.coupled {
            let best = sizes.rank_for(&NewtonSettings::default(), plan.n_together) as f64;
            let pairs = sizes.decision_dim * (sizes.decision_dim + 1) / 2;
            (USUAL_PRODUCTS * (best / rank).max(1.0), pairs as f64)
        } else {
            (USUAL_PRODUCTS * 1000.0 / rank, 1.0)
        };
        if plan.quick_bytes.is_some() && plan.max_rank <= TRIED_RANK {
            let storage = Storage::new(OperatorKind::Tiled, plan.precision);
            let operator = backend.operator(features, kernel, storage)?;
            let share = features.nrows() as f64 / n;
            // Eigenvalues of K grow with N: those of a few rows, by their share.
            let enough_trace = ENOUGH_TRACE * ridge * share;
            let limits = RankLimits { max_rank: plan.max_rank, enough_trace };
            let factor = LowRank::build(&*operator, limits, &mut stream(0, "plan"), || true)?;
            // Conjugate gradients take the root of what the preconditioner leaves.
            let left = (factor.trace_left() / enough_trace).max(1.0).sqrt();
            products = products.min(LEAST_PRODUCTS * left);
            rank = factor.rank() as f64;
            if products <= USUAL_PRODUCTS {
                // Small, and good enough all the same.
                self.method = Method::Kernel(KernelPlan { quick_bytes: None, ..plan });
            }
        }
        let dim = sizes.decision_dim as f64;
        let flops = n * rank * rank * 1.5 * systems + products * 2.0 * n * rank * dim;
        let rate = if plan.remote_factor { backend.factor_rate() } else { CORE_RATE * cores };
        self.seconds = build + products * product + flops / rate;
        Ok(())
    }
}

/// Of a fit in the primal, for `n_weights` weights a dimension.
pub(super) fn plain_seconds(sizes: Sizes, n_weights: usize) -> f64 {
    let (n, d, m) = (sizes.n_samples as f64, n_weights as f64, sizes.decision_dim as f64);
    let blocks = if sizes.coupled { m * (m + 1.0) / 2.0 } else { m };
    let flops = n * d * (USUAL_PASSES * (3.0 + m) + (1.0 + blocks) * d / 4.0);
    flops / (2e9 * rayon::current_num_threads() as f64)
}
