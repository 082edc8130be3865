//! What a fit will take, decided before it starts: how kernel values are held, the preconditioner's rank, memory, time.

use crate::settings::{FitSettings, MemorySize, OperatorChoice, SolverKind};
use argwhy_core::operator::{HostOperator, KernelOperator, OperatorKind, Precision};
use argwhy_core::solver::sso::Initialization;
use argwhy_core::solver::{NewtonSettings, newton, primal, theta};
use argwhy_core::{Error, Kernel};
use ndarray::{Array2, ArrayView2};
use serde::Serialize;
use std::time::Instant;

/// Sizes a plan follows from.
#[derive(Clone, Copy, Debug)]
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
    /// How kernel values are held: all of them, or with SSO those of a block.
    pub operator: OperatorKind,
    /// Samples that are solved for at once: all, or with SSO the largest block.
    pub n_together: usize,
    /// Their precision while iterating.
    pub precision: Precision,
    /// Largest rank of the preconditioner.
    pub max_rank: usize,
    /// Peak memory expected of the whole process, in bytes.
    pub memory_bytes: u64,
    /// The limit it must stay under.
    pub limit_bytes: u64,
    /// Rough time expected, in seconds.
    pub seconds: f64,
    /// Whether weights of features are solved for: there are no kernel values then, and no preconditioner.
    pub primal: bool,
}

/// The program itself, its first threads, and what the allocator keeps.
const PROCESS_BYTES: u64 = 28 << 20;
/// Threads that are counted in that.
const FIRST_THREADS: usize = 16;
/// A further thread: what it touches of its stack, its queue of tasks, and the buffers of a tile.
const THREAD_BYTES: u64 = 256 << 10;
/// Rows of features that a thread holds while Gram matrices are summed: picked, weighted and as they are, 256 each.
const GRAM_ROWS: usize = 3 * 256;
/// Threads that sum them at most.
const MOST_GRAM_TASKS: usize = 64;
/// Where `--operator compact` works.
const COMPACT_NEEDS: &str = "stored, tiled or auto: 16 bits hold rbf, laplace, matern kernels and their products, in f32, where \
     rounding is small beside regularization times samples (1e-6 from 1300 samples on)";
/// Ranks below this help no more than they cost.
const LEAST_RANK: usize = 32;
/// Products with the kernel matrix that a fit usually takes with a preconditioner of rank 1000, or of the best for constraints.
const USUAL_PRODUCTS: f64 = 80.0;
/// Passes over all features that a fit in the primal usually takes.
const USUAL_PASSES: f64 = 14.0;

impl Plan {
    /// Chooses the fastest way that keeps the memory limit. Fails where none does, saying what would.
    pub fn new(settings: &FitSettings, sizes: Sizes) -> Result<Self, Error> {
        let limit = settings.memory.0;
        let kernel = settings.kernel_for(sizes.n_features)?;
        let blocks = match settings.solver {
            SolverKind::Newton => [sizes.n_samples; 2],
            SolverKind::Sso => blocks(settings, sizes.n_samples)?,
        };
        let n_together = blocks[0].max(blocks[1]);
        let memory = |precision, kind, rank| match settings.solver {
            SolverKind::Newton => {
                process_bytes(settings) + memory_bytes(&kernel, sizes, precision, kind, rank)
            }
            SolverKind::Sso => {
                // The whole with nothing but packed samples, iterates and a product's room, and the larger of a block and a part
                // of the warm-up beside it.
                let beside = blocks.map(|n_samples| {
                    // A part of the sets at most.
                    let block = Sizes { n_loaded: 0, n_samples, ..sizes };
                    let own = NewtonSettings {
                        max_rank: block_rank(sizes, rank, n_together),
                        ..settings.newton()
                    };
                    memory_bytes(&kernel, block, precision, kind, sizes.rank_for(&own, n_samples))
                });
                process_bytes(settings)
                    + memory_bytes(&kernel, sizes, precision, OperatorKind::Tiled, 0)
                    + beside[0].max(beside[1])
            }
        };
        let plan = |precision, kind, rank| Self {
            operator: kind,
            n_together,
            precision,
            max_rank: rank,
            memory_bytes: memory(precision, kind, rank),
            limit_bytes: limit,
            seconds: 0.0,
            primal: false,
        };
        let resolves = compact_resolves(settings, &kernel, sizes.n_samples);
        let kinds: &[OperatorKind] = match settings.operator {
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
        // Where K + λI is factorised there are few products to save on, and in f64 none needs correcting.
        let full_rank = sizes.rank_for(&settings.newton(), n_together);
        let mut factorised = kinds.iter().map(|&kind| plan(Precision::F64, kind, full_rank));
        if !sizes.coupled
            && settings.operator != OperatorChoice::Compact
            && full_rank == n_together
            && let Some(plan) = factorised.find(|plan| plan.memory_bytes <= limit)
        {
            return Ok(plan);
        }
        let precision = settings.working_precision();
        let full_rank = if sizes.coupled {
            full_rank
        } else {
            full_rank.min(NewtonSettings::partial_rank_for(n_together))
        };
        let least_rank = full_rank.min(LEAST_RANK);
        for &kind in kinds {
            // A smaller preconditioner costs more products; half of what is best is still better than recomputing.
            let last = kinds.last() == Some(&kind);
            let lowest = if last { least_rank } else { (full_rank / 2).max(least_rank) };
            let mut rank = full_rank;
            while rank > lowest && memory(precision, kind, rank) > limit {
                rank = (rank * 9 / 10).max(lowest);
            }
            if memory(precision, kind, rank) <= limit {
                return Ok(plan(precision, kind, rank));
            }
        }
        let kind = kinds[kinds.len() - 1];
        Err(Error::Memory {
            limit: settings.memory.to_string(),
            // Rounded up so that the number given is one that works.
            least: MemorySize(memory(precision, kind, least_rank).next_multiple_of(1 << 20))
                .to_string(),
            n_samples: sizes.n_samples,
            n_features: sizes.n_features,
        })
    }

    /// The plan in one line, as people are told it before a fit.
    pub fn summary(&self, sizes: &Sizes) -> String {
        let precision = match self.precision {
            Precision::F32 => "f32",
            Precision::F64 => "f64",
        };
        let kernel = match self.operator {
            OperatorKind::Stored => format!("stored in {precision}"),
            OperatorKind::Compact => "stored in 16 bits".to_owned(),
            OperatorKind::Tiled => format!("recomputed in {precision}"),
        };
        let way = if self.primal {
            "weights of features, no kernel".to_owned()
        } else {
            format!("kernel {kernel}")
        };
        format!(
            "fitting {} samples, {} features, {} decision dimensions; {way}, {} of {} memory, about {}",
            sizes.n_samples,
            sizes.n_features,
            sizes.decision_dim,
            MemorySize(self.memory_bytes),
            MemorySize(self.limit_bytes),
            in_words(self.seconds),
        )
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
                n_samples,
                n_features,
            });
        }
        let (n, d, m) = (n_samples as f64, n_weights as f64, decision_dim as f64);
        let blocks = if sizes.coupled { m * (m + 1.0) / 2.0 } else { m };
        let flops = n * d * (USUAL_PASSES * (3.0 + m) + (1.0 + blocks) * d / 4.0);
        Ok(Self {
            operator: OperatorKind::Tiled,
            n_together: n_samples,
            precision: Precision::F64,
            max_rank: 0,
            memory_bytes,
            limit_bytes,
            seconds: flops / (2e9 * rayon::current_num_threads() as f64),
            primal: true,
        })
    }

    /// Largest rank for the blocks of SSO; none where each may have the best for its size.
    pub fn block_rank(&self, sizes: Sizes) -> Option<usize> {
        block_rank(sizes, self.max_rank, self.n_together)
    }

    /// Fills in the expected time of Newton's method by timing a small product on `features`' first rows.
    pub fn estimate(&mut self, kernel: &Kernel, features: ArrayView2<'_, f64>, sizes: Sizes) {
        let cores = rayon::current_num_threads() as f64;
        if !sizes.coupled && self.max_rank == self.n_together {
            // One factorisation and some substitutions: not worth measuring.
            self.seconds = (self.n_together as f64).powi(3) / (2e10 * cores);
            return;
        }
        let n = features.nrows();
        let time = |kind: OperatorKind| -> f64 {
            let Ok(operator) = HostOperator::new(features, kernel.clone(), self.precision, kind)
            else {
                return 0.0;
            };
            let v = Array2::from_elem((sizes.decision_dim, n), 1.0);
            let mut out = Array2::zeros(v.dim());
            let start = Instant::now();
            if operator.apply(v.view(), out.view_mut()).is_err() {
                return 0.0;
            }
            start.elapsed().as_secs_f64()
        };
        let scale = (self.n_together as f64 / n as f64).powi(2);
        let product = scale * time(self.operator);
        let build = scale * time(OperatorKind::Tiled);
        // The preconditioner: N·r² multiply-adds to build, 2N·r a product and dimension; about 5e9 a second and core.
        let (n, r) = (self.n_together as f64, self.max_rank as f64);
        let (products, systems) = if sizes.coupled {
            let best = sizes.rank_for(&NewtonSettings::default(), self.n_together) as f64;
            let pairs = sizes.decision_dim * (sizes.decision_dim + 1) / 2;
            (USUAL_PRODUCTS * (best / r).max(1.0), pairs as f64)
        } else {
            (USUAL_PRODUCTS * 1000.0 / r, 1.0)
        };
        let flops = n * r * r * 1.5 * systems + products * 2.0 * n * r * sizes.decision_dim as f64;
        self.seconds = build + products * product + flops / (5e9 * cores);
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

/// Whether 16-bit rounding leaves K + λI well positive definite, so that a few corrections with exact values are enough.
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
            n_samples.div_ceil(sso.warm_up.clamp(1, n_samples))
        }
        Initialization::Expert | Initialization::Zero => 1,
    };
    Ok([block, part])
}

fn memory_bytes(
    kernel: &Kernel,
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
        (theta::vectors(decision_dim).max(2 * decision_dim), theta::bytes(n_samples, decision_dim))
    } else {
        (2 * decision_dim, 0)
    };
    let solver = if sizes.coupled { newton::coupled_bytes } else { newton::bytes };
    (numbers * size_of::<f64>()) as u64
        + HostOperator::bytes(kernel, n_samples, n_features, precision, kind)
        + HostOperator::product_bytes(n_samples, vectors)
        + solver(n_samples, decision_dim, rank)
        + learning
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let plan = |n, memory| Plan::new(&with(memory, OperatorChoice::Auto), sizes(n)).unwrap();
        assert_eq!(plan(5000, "2GiB").operator, OperatorKind::Stored);
        assert_eq!(plan(100_000, "2GiB").operator, OperatorKind::Tiled);
        for (n, memory) in [(5000, "2GiB"), (5000, "100MiB"), (100_000, "2GiB"), (20_000, "300MB")]
        {
            let plan = plan(n, memory);
            assert!(plan.memory_bytes <= plan.limit_bytes, "{plan:?}");
        }
    }

    #[test]
    fn sixteen_bits_come_between_stored_and_recomputed() {
        let auto = with("16GiB", OperatorChoice::Auto);
        assert_eq!(Plan::new(&auto, sizes(100_000)).unwrap().operator, OperatorKind::Compact);
        assert_eq!(Plan::new(&auto, sizes(50_000)).unwrap().operator, OperatorKind::Stored);
        // Not where rounding to 16 bits would drown λ, nor for kernels that leave [0, 1].
        let small = FitSettings { regularization: 3e-7, ..auto.clone() };
        let linear = FitSettings { kernel: "polynomial".parse().unwrap(), ..auto.clone() };
        assert_eq!(Plan::new(&small, sizes(100_000)).unwrap().operator, OperatorKind::Compact);
        let tiny = FitSettings { regularization: 2e-7, ..with("400MiB", OperatorChoice::Auto) };
        assert_eq!(Plan::new(&tiny, sizes(13_000)).unwrap().operator, OperatorKind::Tiled);
        assert_eq!(Plan::new(&linear, sizes(100_000)).unwrap().operator, OperatorKind::Tiled);
        for settings in [tiny, linear] {
            let asked = FitSettings { operator: OperatorChoice::Compact, ..settings };
            let refused = Plan::new(&asked, sizes(13_000)).unwrap_err().to_string();
            assert!(refused.contains("compact"), "{refused}");
        }
    }

    #[test]
    fn factorises_what_is_small_unless_memory_forbids_it() {
        let plan = |n, memory| Plan::new(&with(memory, OperatorChoice::Auto), sizes(n)).unwrap();
        let small = plan(2000, "2GiB");
        assert_eq!((small.max_rank, small.precision), (2000, Precision::F64));
        let tight = plan(2000, "100MB");
        assert!(tight.max_rank < 2000 && tight.precision == Precision::F32, "{tight:?}");
        assert!(tight.memory_bytes <= tight.limit_bytes);
        assert!(plan(5000, "2GiB").max_rank < 5000);
    }

    #[test]
    fn every_part_of_a_kernel_keeps_samples_of_its_own() {
        let memory = |kernel: &str| {
            let settings =
                FitSettings { kernel: kernel.parse().unwrap(), ..FitSettings::default() };
            Plan::new(&settings, sizes(20_000)).unwrap().memory_bytes
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
        assert!(plan.primal && plan.memory_bytes < 1 << 30, "{plan:?}");
        let coupled = Sizes { coupled: true, ..sizes(20_000) };
        let Err(Error::Memory { least, .. }) = Plan::primal(&settings("1MiB"), coupled) else {
            panic!("1 MiB is not enough")
        };
        assert!(Plan::primal(&settings(&least), coupled).is_ok(), "{least}");
    }

    #[test]
    fn a_limit_too_small_names_one_that_works() {
        for operator in [OperatorChoice::Auto, OperatorChoice::Stored] {
            let Err(Error::Memory { least, .. }) =
                Plan::new(&with("1MiB", operator), sizes(20_000))
            else {
                panic!("1 MiB is not enough")
            };
            assert!(Plan::new(&with(&least, operator), sizes(20_000)).is_ok(), "{least}");
        }
    }

    #[test]
    fn every_further_thread_is_counted() {
        let memory = |threads| {
            let settings = FitSettings { threads: Some(threads), ..FitSettings::default() };
            Plan::new(&settings, sizes(1000)).unwrap().memory_bytes
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
        let plan = Plan::new(&settings("2GiB"), constrained(2000, 5)).unwrap();
        let own = NewtonSettings::default();
        assert_eq!(plan.max_rank, own.coupled_rank_for(2000, 3));
        assert_eq!(plan.precision, Precision::F32);
        // Every row of every set is paid for.
        let more = Plan::new(&settings("2GiB"), constrained(2000, 6)).unwrap();
        assert_eq!(more.memory_bytes - plan.memory_bytes, 3 * 2000 * 4 * 8);
        // A tight limit takes a smaller rank, and one too tight is refused with one that works.
        let tight = Plan::new(&settings("100MiB"), constrained(5000, 5)).unwrap();
        assert!(tight.memory_bytes <= tight.limit_bytes && tight.max_rank < 800, "{tight:?}");
        for solver in [SolverKind::Newton, SolverKind::Sso] {
            let with = |memory: &str| FitSettings { solver, ..settings(memory) };
            let Err(Error::Memory { least, .. }) = Plan::new(&with("1MiB"), constrained(5000, 5))
            else {
                panic!("1 MiB is not enough")
            };
            assert!(Plan::new(&with(&least), constrained(5000, 5)).is_ok(), "{least}");
        }
    }
}
