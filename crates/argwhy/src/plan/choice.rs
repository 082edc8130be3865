//! Which plan: the fastest way that keeps the memory limit, or a refusal that names one that would.

use super::memory::{Choices, plain_bytes};
use super::time::plain_seconds;
use super::{KernelPlan, Method, Plan, Sizes};
use crate::settings::{FitSettings, MemorySize, OperatorChoice, SolverKind};
use argwhy_core::backend::{Backend, Host, Storage};
use argwhy_core::operator::{OperatorKind, Precision};
use argwhy_core::solver::NewtonSettings;
use argwhy_core::solver::sso::Initialization;
use argwhy_core::{Error, Kernel};

/// Where `--operator compact` works.
const COMPACT_NEEDS: &str = "stored, tiled or auto: 16 bits hold rbf, laplace, matern kernels, \
                             their products, and sums with weights of at most 1 in all, in f32, \
                             where rounding is small beside regularization times samples (1e-6 \
                             from 1300 samples on)";
/// Ranks below this help no more than they cost.
pub(super) const LEAST_RANK: usize = 32;

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
        let of_blocks = settings.solver == SolverKind::Sso;
        let remote_rank = if coupled || (of_blocks && !backend.keeps_blocks()) {
            None
        } else {
            backend.factor_rank(&kernel, n_together, n_features, decision_dim)
        };
        let choices = Choices { settings, sizes, backend, kernel, blocks, n_together, remote_rank };
        let kinds = choices.kinds()?;
        if let Some(plan) = choices.factorised(&kinds) {
            return Ok(plan);
        }
        let precision = settings.working_precision(sizes.n_samples);
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

    /// The plan of a fit in the primal. Fails where it does not keep the memory limit.
    pub fn primal(settings: &FitSettings, sizes: Sizes) -> Result<Self, Error> {
        let n_weights = sizes.n_features + usize::from(settings.intercept);
        let memory_bytes = plain_bytes(settings, sizes, n_weights);
        let limit_bytes = settings.memory.0;
        if memory_bytes > limit_bytes {
            return Err(Error::Memory {
                limit: settings.memory.to_string(),
                least: MemorySize(memory_bytes.next_multiple_of(1 << 20)).to_string(),
                speed: String::new(),
                n_samples: sizes.n_samples,
                n_features: sizes.n_features,
            });
        }
        let seconds = plain_seconds(sizes, n_weights);
        Ok(Self { sizes, method: Method::Primal, memory_bytes, limit_bytes, seconds })
    }
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
                    found: format!(
                        "compact, at regularization {:e}",
                        settings.regularization.value(self.sizes.n_samples)
                    ),
                    allowed: COMPACT_NEEDS,
                });
            }
        };
        let precision = settings.working_precision(self.sizes.n_samples);
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
}

/// Whether 16-bit rounding leaves K + λI well positive definite, so that a few corrections with
/// exact values are enough.
fn compact_resolves(settings: &FitSettings, kernel: &Kernel, n_samples: usize) -> bool {
    let ridge = settings.regularization.value(n_samples) * n_samples as f64;
    kernel.without_trend().is_fraction()
        && settings.working_precision(n_samples) == Precision::F32
        && 4.0 * OperatorKind::compact_error(n_samples) <= ridge
}

/// What SSO solves for at once: samples of a block, samples of a part of the warm-up.
fn blocks(settings: &FitSettings, n_samples: usize) -> Result<[usize; 2], Error> {
    let sso = settings.sso();
    sso.validate(n_samples)?;
    let block = sso.block.count(n_samples)?;
    let part = match sso.init {
        Initialization::WarmUp | Initialization::PaperWarmUp => {
            n_samples.div_ceil(sso.parts(n_samples))
        }
        Initialization::Expert | Initialization::Zero => 1,
    };
    Ok([block, part])
}
