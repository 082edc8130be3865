//! What a fit will take, decided before it starts: how kernel values are held, the preconditioner's
//! rank, memory, time.
//!
//! Here is what a plan says; `choice` chooses it, by the bytes that `memory` counts, and
//! `time` fills in how long it takes.

mod choice;
mod memory;
mod time;

#[cfg(test)]
mod tests;

pub(crate) use memory::process_bytes;

use crate::settings::{MemorySize, SolverKind};
use argwhy_core::backend::Storage;
use argwhy_core::operator::{OperatorKind, Precision};
use argwhy_core::solver::NewtonSettings;
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
    /// What fits leave of their preconditioners: one that is there already, one that is to be.
    pub n_factors: usize,
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
    Primal,
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

impl Plan {
    /// The plan in one line, as people are told it before a fit.
    pub fn summary(&self) -> String {
        let sizes = &self.sizes;
        let (way, hint) = match &self.method {
            Method::Primal => ("weights of features, no kernel".to_owned(), String::new()),
            Method::Kernel(plan) => (plan.summary(), plan.hint()),
        };
        let counted = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        format!(
            "fitting {}, {}, {}; {way}, {} of {} memory, about {}{hint}",
            counted(sizes.n_samples, "sample"),
            counted(sizes.n_features, "feature"),
            counted(sizes.decision_dim, "decision dimension"),
            MemorySize(self.memory_bytes),
            MemorySize(self.limit_bytes),
            in_words(self.seconds),
        )
    }

    /// How the kernel matrix is held; none for a plain fit.
    pub fn kernel(&self) -> Option<&KernelPlan> {
        match &self.method {
            Method::Kernel(plan) => Some(plan),
            Method::Primal => None,
        }
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

/// The limit on a block's rank: none where memory did not force one on the largest block.
fn block_rank(sizes: Sizes, rank: usize, n_together: usize) -> Option<usize> {
    (rank < sizes.rank_for(&NewtonSettings::default(), n_together)).then_some(rank)
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
