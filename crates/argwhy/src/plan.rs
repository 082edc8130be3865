//! What a fit will take, decided before it starts: how kernel values are held, the preconditioner's
//! rank, memory, time.

use crate::settings::{FitSettings, MemorySize, OperatorChoice, SolverKind};
use argwhy_core::backend::{Backend, Host, Storage};
use argwhy_core::operator::{OperatorKind, Precision};
use argwhy_core::precond::{LowRank, RankLimits};
use argwhy_core::random::stream;
use argwhy_core::solver::sso::Initialization;
use argwhy_core::solver::{NewtonSettings, newton, primal, theta};
use argwhy_core::{Error, Kernel};
use ndarray::ArrayView2;
use serde::Serialize;

/// Sizes a plan follows from.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Sizes {
    /// Rows loaded.
    pub n_loaded: usize,
    /// Rows trained on.
    pub n_samples: usize,
    /// Entries of a signal.
    pub signal_dim: usize,
    /// Entries of a decision.
    pub decision_dim: usize,
    /// Features of a signal.
    pub n_features: usize,
    /// Numbers that the constraints and the sets made of them hold.
    pub set_numbers: usize,
    /// Whether constraints, or a θ_uu that is learned, make one system of all dimensions.
    pub coupled: bool,
    /// Whether θ_uu is learned.
    pub learns_theta: bool,
}

impl Sizes {
    /// The largest rank worth its cost for a block of `n_samples` of these.
    fn rank_for(&self, own: &NewtonSettings, n_samples: usize) -> usize {
        if self.coupled {
            own.coupled_rank_for(n_samples, self.decision_dim)
        } else {
            own.rank_for(n_samples)
        }
    }
}

/// The plan of a fit.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Plan {
    /// What it follows from.
    #[serde(skip)]
    pub sizes: Sizes,
    /// What is solved for, and with what.
    #[serde(flatten)]
    pub method: Method,
    /// Peak memory expected of the whole process, in bytes.
    pub memory_bytes: u64,
    /// The limit it must stay under.
    pub limit_bytes: u64,
    /// Rough time expected, in seconds.
    pub seconds: f64,
}

/// What a fit solves for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "method", rename_all = "lowercase")]
pub enum Method {
    /// Coefficients of samples, with their kernel matrix.
    Kernel(KernelPlan),
    /// Weights of features: there are no kernel values, and no preconditioner.
    Plain,
}

/// How the kernel matrix is held and its systems are solved.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct KernelPlan {
    /// How kernel values are held: all of them, or with SSO those of a block.
    pub operator: OperatorKind,
    /// Samples that are solved for at once: all, or with SSO the largest block.
    pub n_together: usize,
    /// Their precision while iterating.
    pub precision: Precision,
    /// Largest rank of the preconditioner.
    pub max_rank: usize,
    /// The least limit that would not make it slow; none where this one does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quick_bytes: Option<u64>,
    /// The machine that multiplies, where it is not this one's cores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<&'static str>,
    /// Whether that machine keeps the preconditioner too.
    #[serde(skip)]
    pub remote_factor: bool,
}

impl KernelPlan {
    /// How the whole matrix is held, and a block of it.
    pub fn storage(&self, solver: SolverKind) -> Storage {
        let kind = match solver {
            SolverKind::Newton => self.operator,
            // SSO stores K_SS at most.
            SolverKind::Sso => OperatorKind::Tiled,
        };
        Storage { blocks: self.operator, ..Storage::new(kind, self.precision) }
    }
}

/// The program itself, its first threads, and what the allocator keeps.
const PROCESS_BYTES: u64 = 28 << 20;
/// Threads that are counted in that.
const FIRST_THREADS: usize = 16;
/// A further thread: what it touches of its stack, its queue of tasks, and the buffers of a tile.
const THREAD_BYTES: u64 = 256 << 10;
/// Rows of features that a thread holds while Gram matrices are summed: picked, weighted and as
/// they are, 256 each.
const GRAM_ROWS: usize = 3 * 256;
/// Threads that sum them at most.
const MOST_GRAM_TASKS: usize = 64;
/// Where `--operator compact` works.
const COMPACT_NEEDS: &str = "stored, tiled or auto: 16 bits hold rbf, laplace, matern kernels, \
                             their products, and sums with weights of at most 1 in all, in f32, \
                             where rounding is small beside regularization times samples (1e-6 \
                             from 1300 samples on)";
/// Ranks below this help no more than they cost.
const LEAST_RANK: usize = 32;
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
/// Multiply-adds a second of a preconditioner that a GPU keeps.
const REMOTE_RATE: f64 = 2e12;
/// Passes over all features that a fit in the primal usually takes.
const USUAL_PASSES: f64 = 14.0;

impl Plan {
    /// Chooses the fastest way that `backend` offers and that keeps the memory limit. Fails where
    /// none does, saying what would.
    pub fn new(settings: &FitSettings, sizes: Sizes, backend: &dyn Backend) -> Result<Self, Error> {
        let kernel = settings.kernel_for(sizes.n_features)?;
        let blocks = match settings.solver {
            SolverKind::Newton => [sizes.n_samples; 2],
            SolverKind::Sso => blocks(settings, sizes.n_samples)?,
        };
        let n_together = blocks[0].max(blocks[1]);
        let Sizes { n_features, decision_dim, coupled, .. } = sizes;
        let remote_rank = if coupled {
            None
        } else {
            backend.factor_rank(&kernel, n_together, n_features, decision_dim)
        };
        let choices = Choices { settings, sizes, backend, kernel, blocks, n_together, remote_rank };
        let kinds = choices.kinds()?;
        if let Some(plan) = choices.factorised(&kinds) {
            return Ok(plan);
        }
        let precision = settings.working_precision();
        let (full_rank, least_rank) = choices.ranks();
        let last = kinds[kinds.len() - 1];
        let quick = choices.memory(precision, last, full_rank);
        for &kind in &kinds {
            // A smaller preconditioner costs more products; half of what is best is still better
            // than recomputing.
            let lowest = if kind == last { least_rank } else { (full_rank / 2).max(least_rank) };
            let rank = choices.largest_rank(precision, kind, full_rank, lowest);
            if choices.memory(precision, kind, rank) <= settings.memory.0 {
                let slow = kind == last && 2 * rank < full_rank;
                return Ok(choices.plan(precision, kind, rank, slow.then_some(quick)));
            }
        }
        let slower = full_rank as f64 / least_rank as f64;
        let speed = if slower < 2.0 {
            String::new()
        } else {
            let quick = MemorySize(quick.next_multiple_of(1 << 20));
            format!(" (the least takes up to {slower:.0} times the products that {quick} does)")
        };
        Err(Error::Memory {
            limit: settings.memory.to_string(),
            // Rounded up so that the number given is one that works.
            least: MemorySize(
                choices.memory(precision, last, least_rank).next_multiple_of(1 << 20),
            )
            .to_string(),
            speed,
            n_samples: sizes.n_samples,
            n_features: sizes.n_features,
        })
    }

    /// The plan in one line, as people are told it before a fit.
    pub fn summary(&self) -> String {
        let sizes = &self.sizes;
        let (way, hint) = match &self.method {
            Method::Plain => ("weights of features, no kernel".to_owned(), String::new()),
            Method::Kernel(plan) => (plan.summary(), plan.hint()),
        };
        format!(
            "fitting {} samples, {} features, {} decision dimensions; {way}, {} of {} memory, \
             about {}{hint}",
            sizes.n_samples,
            sizes.n_features,
            sizes.decision_dim,
            MemorySize(self.memory_bytes),
            MemorySize(self.limit_bytes),
            in_words(self.seconds),
        )
    }

    /// How the kernel matrix is held; none for a plain fit.
    pub fn kernel(&self) -> Option<&KernelPlan> {
        match &self.method {
            Method::Kernel(plan) => Some(plan),
            Method::Plain => None,
        }
    }

    /// The plan of a fit in the primal. Fails where it does not keep the memory limit.
    pub fn primal(settings: &FitSettings, sizes: Sizes) -> Result<Self, Error> {
        let Sizes { n_loaded, n_samples, signal_dim, decision_dim, n_features, .. } = sizes;
        let n_weights = n_features + usize::from(settings.intercept);
        // Signals stay where they were loaded; samples are known by their row.
        let numbers = n_loaded * (signal_dim + decision_dim)
            + n_samples * (decision_dim + 1)
            + sizes.set_numbers;
        // Each thread multiplies out some rows of features at a time.
        let n_threads = n_threads(settings).min(MOST_GRAM_TASKS) as u64;
        let memory_bytes = process_bytes(settings)
            + n_threads * (GRAM_ROWS * n_weights * size_of::<f64>()) as u64
            + (numbers * size_of::<f64>()) as u64
            + primal::bytes(n_samples, decision_dim, n_weights, sizes.coupled);
        let limit_bytes = settings.memory.0;
        if memory_bytes > limit_bytes {
            return Err(Error::Memory {
                limit: settings.memory.to_string(),
                least: MemorySize(memory_bytes.next_multiple_of(1 << 20)).to_string(),
                speed: String::new(),
                n_samples,
                n_features,
            });
        }
        let (n, d, m) = (n_samples as f64, n_weights as f64, decision_dim as f64);
        let blocks = if sizes.coupled { m * (m + 1.0) / 2.0 } else { m };
        let flops = n * d * (USUAL_PASSES * (3.0 + m) + (1.0 + blocks) * d / 4.0);
        let seconds = flops / (2e9 * rayon::current_num_threads() as f64);
        Ok(Self { sizes, method: Method::Plain, memory_bytes, limit_bytes, seconds })
    }

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
        // The preconditioner: N·r² multiply-adds to build, 2N·r a product and dimension; about 5e9
        // a second and core.
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
        let rate = if plan.remote_factor { REMOTE_RATE } else { 5e9 * cores };
        self.seconds = build + products * product + flops / rate;
        Ok(())
    }
}

impl KernelPlan {
    fn summary(&self) -> String {
        let precision = match self.precision {
            Precision::F32 => "f32",
            Precision::F64 => "f64",
        };
        let place = self.device.map_or(String::new(), |device| format!(" on {device}"));
        match self.operator {
            OperatorKind::Stored => format!("kernel stored in {precision}{place}"),
            OperatorKind::Compact => format!("kernel stored in 16 bits{place}"),
            OperatorKind::Tiled => format!("kernel recomputed in {precision}{place}"),
        }
    }

    /// What would make it quicker, where the limit makes it slow.
    fn hint(&self) -> String {
        let quick = |bytes: u64| {
            format!(
                " (slow for want of memory; {} would do)",
                MemorySize(bytes.next_multiple_of(1 << 20))
            )
        };
        self.quick_bytes.map_or(String::new(), quick)
    }

    /// Largest rank for the blocks of SSO; none where each may have the best for its size.
    pub fn block_rank(&self, sizes: Sizes) -> Option<usize> {
        block_rank(sizes, self.max_rank, self.n_together)
    }
}

/// What a plan of a kernel fit is chosen among.
struct Choices<'a> {
    settings: &'a FitSettings,
    sizes: Sizes,
    backend: &'a dyn Backend,
    kernel: Kernel,
    /// Samples of a block of SSO, and of a part of its warm-up.
    blocks: [usize; 2],
    n_together: usize,
    /// The largest rank that the backend itself has room for; none where the host keeps it.
    remote_rank: Option<usize>,
}

impl Choices<'_> {
    /// The ways of holding kernel values that are asked for and can be had, fastest first.
    fn kinds(&self) -> Result<Vec<OperatorKind>, Error> {
        let settings = self.settings;
        let resolves = compact_resolves(settings, &self.kernel, self.sizes.n_samples);
        let asked: &[OperatorKind] = match settings.operator {
            OperatorChoice::Auto if resolves => {
                &[OperatorKind::Stored, OperatorKind::Compact, OperatorKind::Tiled]
            }
            OperatorChoice::Auto => &[OperatorKind::Stored, OperatorKind::Tiled],
            OperatorChoice::Stored => &[OperatorKind::Stored],
            OperatorChoice::Tiled => &[OperatorKind::Tiled],
            OperatorChoice::Compact if resolves => &[OperatorKind::Compact],
            OperatorChoice::Compact => {
                return Err(Error::Setting {
                    name: "operator",
                    found: format!("compact, at regularization {:e}", settings.regularization),
                    allowed: COMPACT_NEEDS,
                });
            }
        };
        let precision = settings.working_precision();
        let kinds: Vec<OperatorKind> =
            asked.iter().copied().filter(|&kind| self.offered(precision, kind)).collect();
        if kinds.is_empty() {
            let precision = match precision {
                Precision::F32 => "f32",
                Precision::F64 => "f64",
            };
            return Err(Error::Backend {
                backend: self.backend.name().to_owned(),
                what: format!(
                    "it can't hold the {} kernel of {} samples as asked for, in {precision}",
                    self.kernel, self.sizes.n_samples
                ),
            });
        }
        Ok(kinds)
    }

    fn offered(&self, precision: Precision, kind: OperatorKind) -> bool {
        let Sizes { n_samples, n_features, .. } = self.sizes;
        let storage = match self.settings.solver {
            SolverKind::Newton => Storage::new(kind, precision),
            SolverKind::Sso => {
                Storage { blocks: kind, ..Storage::new(OperatorKind::Tiled, precision) }
            }
        };
        self.backend.offers(&self.kernel, n_samples, n_features, storage)
    }

    /// Where K + λI is factorised there are few products to save on, and in f64 none needs
    /// correcting.
    fn factorised(&self, kinds: &[OperatorKind]) -> Option<Plan> {
        let full_rank = self.sizes.rank_for(&self.settings.newton(), self.n_together);
        let partial = self.sizes.coupled || full_rank < self.n_together;
        if partial || self.settings.operator == OperatorChoice::Compact {
            return None;
        }
        kinds
            .iter()
            .filter(|&&kind| self.offered(Precision::F64, kind))
            .map(|&kind| self.plan(Precision::F64, kind, full_rank, None))
            .find(|plan| plan.memory_bytes <= plan.limit_bytes)
    }

    /// The best rank where nothing is factorised outright, and the least.
    fn ranks(&self) -> (usize, usize) {
        let full = self.sizes.rank_for(&self.settings.newton(), self.n_together);
        let full = if self.sizes.coupled {
            full
        } else {
            full.min(NewtonSettings::partial_rank_for(self.n_together))
        };
        let full = full.min(self.remote_rank.unwrap_or(full));
        (full, full.min(LEAST_RANK))
    }

    /// The largest rank that keeps the limit, or `lowest`.
    fn largest_rank(
        &self,
        precision: Precision,
        kind: OperatorKind,
        full: usize,
        lowest: usize,
    ) -> usize {
        let mut rank = full;
        while rank > lowest && self.memory(precision, kind, rank) > self.settings.memory.0 {
            rank = (rank * 9 / 10).max(lowest);
        }
        rank
    }

    fn plan(
        &self,
        precision: Precision,
        operator: OperatorKind,
        max_rank: usize,
        quick_bytes: Option<u64>,
    ) -> Plan {
        let n_together = self.n_together;
        Plan {
            sizes: self.sizes,
            method: Method::Kernel(KernelPlan {
                operator,
                n_together,
                precision,
                max_rank,
                quick_bytes,
                device: Some(self.backend.name()).filter(|name| *name != Host.name()),
                remote_factor: self.remote_rank.is_some() && max_rank < n_together,
            }),
            memory_bytes: self.memory(precision, operator, max_rank),
            limit_bytes: self.settings.memory.0,
            seconds: 0.0,
        }
    }

    fn memory(&self, precision: Precision, kind: OperatorKind, rank: usize) -> u64 {
        let (sizes, process) = (self.sizes, process_bytes(self.settings));
        match self.settings.solver {
            SolverKind::Newton => process + self.memory_of(sizes, precision, kind, rank),
            SolverKind::Sso => {
                // The whole with nothing but packed samples, iterates and a product's room, and the
                // larger of a block and a part of the warm-up beside it.
                let beside = self.blocks.map(|n_samples| {
                    // A part of the sets at most.
                    let block = Sizes { n_loaded: 0, n_samples, ..sizes };
                    let own = NewtonSettings {
                        max_rank: block_rank(sizes, rank, self.n_together),
                        ..self.settings.newton()
                    };
                    self.memory_of(block, precision, kind, sizes.rank_for(&own, n_samples))
                });
                process
                    + self.memory_of(sizes, precision, OperatorKind::Tiled, 0)
                    + beside[0].max(beside[1])
            }
        }
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
        // What the backend keeps is not this process's.
        let rank = if self.remote_rank.is_some() && rank < n_samples { 0 } else { rank };
        let building = if rank < n_samples { LowRank::building_bytes(n_samples, rank) } else { 0 };
        (numbers * size_of::<f64>()) as u64
            + self.backend.operator_bytes(&self.kernel, n_samples, n_features, storage)
            + product.max(building)
            + solver(n_samples, decision_dim, rank)
            + learning
    }
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

/// A duration as people say it.
fn in_words(seconds: f64) -> String {
    match seconds {
        v if v < 0.95 => "a second".to_owned(),
        v if v < 90.0 => format!("{v:.0} s"),
        v if v < 5400.0 => format!("{:.0} min", v / 60.0),
        v => format!("{:.1} h", v / 3600.0),
    }
}

/// The limit on a block's rank: none where memory did not force one on the largest block.
fn block_rank(sizes: Sizes, rank: usize, n_together: usize) -> Option<usize> {
    (rank < sizes.rank_for(&NewtonSettings::default(), n_together)).then_some(rank)
}

/// Whether 16-bit rounding leaves K + λI well positive definite, so that a few corrections with
/// exact values are enough.
fn compact_resolves(settings: &FitSettings, kernel: &Kernel, n_samples: usize) -> bool {
    let ridge = settings.regularization * n_samples as f64;
    kernel.is_fraction()
        && settings.working_precision() == Precision::F32
        && 4.0 * OperatorKind::compact_error(n_samples) <= ridge
}

/// What SSO solves for at once: samples of a block, samples of a part of the warm-up.
fn blocks(settings: &FitSettings, n_samples: usize) -> Result<[usize; 2], Error> {
    let sso = settings.sso();
    let block = sso.block.count(n_samples)?;
    let part = match sso.init {
        Initialization::WarmUp | Initialization::PaperWarmUp => {
            n_samples.div_ceil(sso.parts(n_samples))
        }
        Initialization::Expert | Initialization::Zero => 1,
    };
    Ok([block, part])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(settings: &FitSettings, sizes: Sizes) -> Result<Plan, Error> {
        Plan::new(settings, sizes, &Host)
    }

    fn kernel_plan(settings: &FitSettings, sizes: Sizes) -> KernelPlan {
        *planned(settings, sizes).unwrap().kernel().unwrap()
    }

    fn sizes(n_samples: usize) -> Sizes {
        Sizes {
            n_loaded: n_samples,
            n_samples,
            signal_dim: 11,
            decision_dim: 3,
            n_features: 78,
            set_numbers: 6,
            coupled: false,
            learns_theta: false,
        }
    }

    fn with(memory: &str, operator: OperatorChoice) -> FitSettings {
        FitSettings { memory: memory.parse().unwrap(), operator, ..FitSettings::default() }
    }

    #[test]
    fn stores_what_fits_and_recomputes_what_does_not() {
        let settings = |memory| with(memory, OperatorChoice::Auto);
        let plan = |n, memory| kernel_plan(&settings(memory), sizes(n));
        assert_eq!(plan(5000, "2GiB").operator, OperatorKind::Stored);
        assert_eq!(plan(100_000, "2GiB").operator, OperatorKind::Tiled);
        for (n, memory) in [(5000, "2GiB"), (5000, "100MiB"), (100_000, "2GiB"), (20_000, "300MB")]
        {
            let plan = planned(&settings(memory), sizes(n)).unwrap();
            assert!(plan.memory_bytes <= plan.limit_bytes, "{plan:?}");
        }
    }

    #[test]
    fn sixteen_bits_come_between_stored_and_recomputed() {
        let auto = with("16GiB", OperatorChoice::Auto);
        assert_eq!(kernel_plan(&auto, sizes(100_000)).operator, OperatorKind::Compact);
        assert_eq!(kernel_plan(&auto, sizes(50_000)).operator, OperatorKind::Stored);
        // Not where rounding to 16 bits would drown λ, nor for kernels that leave [0, 1].
        let small = FitSettings { regularization: 3e-7, ..auto.clone() };
        let linear = FitSettings { kernel: "polynomial".parse().unwrap(), ..auto.clone() };
        assert_eq!(kernel_plan(&small, sizes(100_000)).operator, OperatorKind::Compact);
        let tiny = FitSettings { regularization: 2e-7, ..with("400MiB", OperatorChoice::Auto) };
        assert_eq!(kernel_plan(&tiny, sizes(13_000)).operator, OperatorKind::Tiled);
        assert_eq!(kernel_plan(&linear, sizes(100_000)).operator, OperatorKind::Tiled);
        for settings in [tiny, linear] {
            let asked = FitSettings { operator: OperatorChoice::Compact, ..settings };
            let refused = planned(&asked, sizes(13_000)).unwrap_err().to_string();
            assert!(refused.contains("compact"), "{refused}");
        }
    }

    #[test]
    fn factorises_what_is_small_unless_memory_forbids_it() {
        let plan = |n, memory| kernel_plan(&with(memory, OperatorChoice::Auto), sizes(n));
        let small = plan(2000, "2GiB");
        assert_eq!((small.max_rank, small.precision), (2000, Precision::F64));
        let tight = plan(2000, "100MB");
        assert!(tight.max_rank < 2000 && tight.precision == Precision::F32, "{tight:?}");
        assert!(plan(5000, "2GiB").max_rank < 5000);
    }

    #[test]
    fn every_part_of_a_kernel_keeps_samples_of_its_own() {
        let memory = |kernel: &str| {
            let settings =
                FitSettings { kernel: kernel.parse().unwrap(), ..FitSettings::default() };
            planned(&settings, sizes(20_000)).unwrap().memory_bytes
        };
        // 78 features in f32 for the iteration and in f64 for certificates, beside what both have.
        let packed = 20_000 * 78 * 12;
        let more = memory("rbf + matern32") - memory("rbf");
        assert!((packed..packed + packed / 50).contains(&more), "{more} {packed}");
        assert_eq!(memory("2*rbf"), memory("rbf"));
    }

    #[test]
    fn the_primal_grows_with_samples_not_with_their_square() {
        let settings = |memory: &str| FitSettings {
            kernel: "linear".parse().unwrap(),
            primal: true,
            ..with(memory, OperatorChoice::Auto)
        };
        let plan = Plan::primal(&settings("2GiB"), sizes(1_000_000)).unwrap();
        assert!(plan.method == Method::Plain && plan.memory_bytes < 1 << 30, "{plan:?}");
        let coupled = Sizes { coupled: true, ..sizes(20_000) };
        let Err(Error::Memory { least, .. }) = Plan::primal(&settings("1MiB"), coupled) else {
            panic!("1 MiB is not enough")
        };
        assert!(Plan::primal(&settings(&least), coupled).is_ok(), "{least}");
    }

    #[test]
    fn a_limit_too_small_names_one_that_works() {
        for operator in [OperatorChoice::Auto, OperatorChoice::Stored] {
            let Err(Error::Memory { least, .. }) = planned(&with("1MiB", operator), sizes(20_000))
            else {
                panic!("1 MiB is not enough")
            };
            assert!(planned(&with(&least, operator), sizes(20_000)).is_ok(), "{least}");
        }
    }

    /// A least limit that makes a fit slow says so, and names one that does not; so does a fit that
    /// is given it.
    #[test]
    fn the_least_limit_says_how_slow_it_is() {
        let auto = |memory: &str| with(memory, OperatorChoice::Auto);
        let error = planned(&auto("1MiB"), sizes(20_000)).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("(the least takes up to 62 times the products that "), "{text}");
        let Error::Memory { least, speed, .. } = error else { panic!("1 MiB is not enough") };
        let quick = speed.split("products that ").nth(1).unwrap().split(' ').next().unwrap();
        let slow = planned(&auto(&least), sizes(20_000)).unwrap();
        assert_eq!(slow.kernel().unwrap().max_rank, LEAST_RANK);
        assert!(slow.summary().ends_with(&format!("(slow for want of memory; {quick} would do)")));
        let plan = planned(&auto(quick), sizes(20_000)).unwrap();
        assert_eq!(plan.kernel().unwrap().max_rank, NewtonSettings::partial_rank_for(20_000));
        assert!(!plan.summary().contains("slow"), "{}", plan.summary());
    }

    /// What a plain fit does not have is not shown as zero.
    #[test]
    fn a_plain_plan_is_no_kernel_plan_with_zeros() {
        let settings = FitSettings {
            kernel: "linear".parse().unwrap(),
            primal: true,
            ..FitSettings::default()
        };
        let plain = serde_json::to_value(Plan::primal(&settings, sizes(1000)).unwrap()).unwrap();
        assert_eq!(plain["method"], "plain");
        assert!(plain.get("max_rank").is_none() && plain.get("operator").is_none(), "{plain}");
        let settings = FitSettings::default();
        let kernel = serde_json::to_value(planned(&settings, sizes(1000)).unwrap()).unwrap();
        assert_eq!((&kernel["method"], &kernel["max_rank"]), (&"kernel".into(), &1000.into()));
    }

    #[test]
    fn every_further_thread_is_counted() {
        let memory = |threads| {
            let settings = FitSettings { threads: Some(threads), ..FitSettings::default() };
            planned(&settings, sizes(1000)).unwrap().memory_bytes
        };
        assert_eq!(memory(1), memory(16));
        assert_eq!(memory(256) - memory(16), 240 * THREAD_BYTES);
    }

    #[test]
    fn constraints_have_their_own_preconditioner_and_count() {
        let settings = |memory: &str| with(memory, OperatorChoice::Auto);
        let constrained =
            |n, rows: usize| Sizes { coupled: true, set_numbers: 3 * n * rows * 4, ..sizes(n) };
        // Nothing is factorised outright, and the rank is that of one system of all dimensions.
        let whole = planned(&settings("2GiB"), constrained(2000, 5)).unwrap();
        let plan = whole.kernel().unwrap();
        let own = NewtonSettings::default();
        assert_eq!(plan.max_rank, own.coupled_rank_for(2000, 3));
        assert_eq!(plan.precision, Precision::F32);
        // Every row of every set is paid for.
        let more = planned(&settings("2GiB"), constrained(2000, 6)).unwrap();
        assert_eq!(more.memory_bytes - whole.memory_bytes, 3 * 2000 * 4 * 8);
        // A tight limit takes a smaller rank, and one too tight is refused with one that works.
        let tight = planned(&settings("100MiB"), constrained(5000, 5)).unwrap();
        assert!(tight.memory_bytes <= tight.limit_bytes, "{tight:?}");
        assert!(tight.kernel().unwrap().max_rank < 800, "{tight:?}");
        for solver in [SolverKind::Newton, SolverKind::Sso] {
            let with = |memory: &str| FitSettings { solver, ..settings(memory) };
            let Err(Error::Memory { least, .. }) = planned(&with("1MiB"), constrained(5000, 5))
            else {
                panic!("1 MiB is not enough")
            };
            assert!(planned(&with(&least), constrained(5000, 5)).is_ok(), "{least}");
        }
    }
}
