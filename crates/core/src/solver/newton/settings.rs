//! What the Newton solver is told, and what it takes: tolerances, ranks, memory.

use crate::decision_set::Face;
use crate::error::Error;
use crate::precond::{Coupled, Direct, LowRank, Woodbury};
use serde::{Deserialize, Serialize};

/// How far and how long.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NewtonSettings {
    /// Relative duality gap to reach; positive.
    pub tol: f64,
    /// Newton steps at most.
    pub max_iterations: usize,
    /// Seconds at most; none by default.
    pub time_limit: Option<f64>,
    /// Rank of the preconditioner at most; chosen by the problem's size where none is given.
    pub max_rank: Option<usize>,
    /// Bytes that factors of the systems themselves may take beside all else; none by default. They
    /// are made where conjugate gradients take longer, and change how many steps a fit takes.
    pub spare_bytes: u64,
}

impl Default for NewtonSettings {
    fn default() -> Self {
        Self { tol: 1e-6, max_iterations: 100, time_limit: None, max_rank: None, spare_bytes: 0 }
    }
}

impl NewtonSettings {
    /// Checks every range.
    pub fn validate(&self) -> Result<(), Error> {
        let setting = |name, found: String, allowed| Err(Error::Setting { name, found, allowed });
        if !(self.tol > 0.0 && self.tol.is_finite()) {
            return setting("tol", self.tol.to_string(), "a positive finite number");
        }
        match self.time_limit {
            Some(limit) if !(limit > 0.0 && limit <= 1e9) => {
                setting("time-limit", limit.to_string(), "a positive number of seconds")
            }
            _ => Ok(()),
        }
    }

    /// The largest rank worth its cost for `n_samples`: all of them where K + λI can be factorised
    /// outright. Beyond, building takes N·r², each step r³/3 a dimension, and both are paid back by
    /// fewer products only up to a point.
    pub fn rank_for(&self, n_samples: usize) -> usize {
        let automatic =
            if n_samples <= FACTORISED { n_samples } else { Self::partial_rank_for(n_samples) };
        self.max_rank.unwrap_or(automatic).min(n_samples)
    }

    /// The largest rank worth its cost where all `decision_dim` dimensions are one system: its
    /// matrix has rank · dimensions rows.
    pub fn coupled_rank_for(&self, n_samples: usize, decision_dim: usize) -> usize {
        let automatic = n_samples.min((COUPLED_ROWS / decision_dim).max(20));
        self.max_rank.unwrap_or(automatic).min(automatic)
    }

    /// The largest rank worth its cost where K + λI is not factorised: products grow with N², what
    /// a rank costs with N. Where less will do, the factor stops by itself. ADR 0018 has what was
    /// measured.
    pub fn partial_rank_for(n_samples: usize) -> usize {
        let growing = (n_samples / 10).min(2500);
        (n_samples / 6).clamp(500, 1000).max(growing).min(n_samples / 2 + 1)
    }
}

/// Samples up to which factorising K + λI costs less than iterating (ADR 0018).
const FACTORISED: usize = 2800;
/// Rows of the coupled preconditioner's matrix at most.
const COUPLED_ROWS: usize = 2400;
/// Arrays of decision_dim × n_samples numbers that are there at once, at most: of the problem and
/// its sets, the point, the point tried, the direction and CG's vectors with their images, and the
/// responses, differences and errors of a certificate.
const ARRAYS: usize = 20;

/// Bytes of the iterates and of the preconditioner of `rank`, beside the operator.
pub fn bytes(n_samples: usize, decision_dim: usize, rank: usize) -> u64 {
    let arrays = ARRAYS * n_samples * decision_dim * size_of::<f64>();
    let preconditioner = if rank >= n_samples {
        Direct::bytes(n_samples, decision_dim)
    } else {
        LowRank::bytes(n_samples, rank) + Woodbury::bytes(rank, decision_dim)
    };
    arrays as u64 + preconditioner
}

/// The same where all dimensions are one system, as with constraints: [`bytes`] with the faces and
/// the preconditioner of polyhedra.
pub fn coupled_bytes(n_samples: usize, decision_dim: usize, rank: usize) -> u64 {
    let arrays = ARRAYS * n_samples * decision_dim * size_of::<f64>();
    // Of the point, of the point being made from what the tasks found, and of the preconditioner.
    let faces = 4 * n_samples as u64 * Face::bytes(decision_dim);
    arrays as u64 + faces + Coupled::bytes(n_samples, rank, decision_dim)
}
