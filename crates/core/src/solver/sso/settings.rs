//! What SSO can be told.

use super::Checked;
use crate::error::Error;
use serde::{Deserialize, Serialize};

/// Samples of a block: a share of all, or a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BlockSize {
    /// Share of all samples, above 0 and at most 1.
    Share(f64),
    /// So many samples.
    Count(usize),
}

/// How blocks are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Selection {
    /// A quarter by the largest share of the gap δ_i, the rest uniformly at random.
    #[default]
    Violation,
    /// The paper's: at random among samples strictly inside their set [KIO 10] whose violation [KIO
    /// 12] exceeds a tenth of the largest, filled up with the rest at random.
    Paper,
    /// One block after the other.
    Cyclic,
    /// Uniformly at random.
    Random,
}

/// Where the responses start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Initialization {
    /// Parts of the data solved one after the other from the expert's decisions, each seeing those
    /// before.
    #[default]
    WarmUp,
    /// Parts solved independently and put together, as in the paper.
    PaperWarmUp,
    /// The expert's decisions.
    Expert,
    /// Zero, moved into the set.
    Zero,
}

/// Parts of a warm-up where nobody says.
const USUAL_PARTS: usize = 2;

/// How SSO runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SsoSettings {
    /// Relative duality gap to reach; positive.
    pub tol: f64,
    /// Blocks at most, not counting the warm-up.
    pub max_iterations: usize,
    /// Seconds at most.
    pub time_limit: Option<f64>,
    /// Size of a block.
    pub block: BlockSize,
    /// Blocks that are solved at once, from the same responses; they share no sample.
    pub concurrent_blocks: usize,
    /// How blocks are chosen.
    pub selection: Selection,
    /// Where to start.
    pub init: Initialization,
    /// Parts of a warm-up; none means two, or one where there is a single sample.
    pub warm_up: Option<usize>,
    /// Rank of a block's preconditioner at most.
    pub max_rank: Option<usize>,
}

impl Default for SsoSettings {
    fn default() -> Self {
        Self {
            tol: 1e-6,
            max_iterations: 1000,
            time_limit: None,
            block: BlockSize::Share(0.5),
            concurrent_blocks: 1,
            selection: Selection::default(),
            init: Initialization::default(),
            warm_up: None,
            max_rank: None,
        }
    }
}

impl BlockSize {
    /// Samples of a block out of `n_samples`.
    pub fn count(self, n_samples: usize) -> Result<usize, Error> {
        let wrong = |found: String| Error::Setting {
            name: "block",
            found: format!("{found} for {n_samples} samples"),
            allowed: "a share above 0 and up to 1 with a decimal point (0.5), or a number of \
                      samples from 1 to all of them",
        };
        match self {
            Self::Share(share) if share > 0.0 && share <= 1.0 => {
                Ok(((share * n_samples as f64).round() as usize).clamp(1, n_samples))
            }
            Self::Count(count) if (1..=n_samples).contains(&count) => Ok(count),
            Self::Share(share) => Err(wrong(format!("{share:?}"))),
            Self::Count(count) => Err(wrong(count.to_string())),
        }
    }
}

impl SsoSettings {
    /// Fails where a setting makes no sense for so many samples.
    pub fn validate(&self, n_samples: usize) -> Result<(), Error> {
        self.check(n_samples).map(|_| ())
    }

    /// Checks every range against the number of samples.
    pub(crate) fn check(&self, n_samples: usize) -> Result<Checked, Error> {
        let setting = |name, found: String, allowed| Err(Error::Setting { name, found, allowed });
        if !(self.tol > 0.0 && self.tol.is_finite()) {
            return setting("tol", self.tol.to_string(), "a positive finite number");
        }
        if let Some(parts) = self.warm_up
            && !(1..=n_samples).contains(&parts)
        {
            return setting(
                "warm-up",
                format!("{parts} for {n_samples} samples"),
                "1 part or more, no more parts than samples",
            );
        }
        let (block, at_once) = (self.block.count(n_samples)?, self.concurrent_blocks);
        if at_once == 0 || block.saturating_mul(at_once) > n_samples {
            return setting(
                "concurrent-blocks",
                format!("{at_once} of {block} samples, and there are {n_samples}"),
                "1 or more, as many as leave each block samples of its own; smaller blocks leave \
                 room for more of them",
            );
        }
        Ok(Checked { block, at_once, parts: self.parts(n_samples) })
    }

    /// Parts of a warm-up of `n_samples`, one or more.
    pub fn parts(&self, n_samples: usize) -> usize {
        self.warm_up.unwrap_or(USUAL_PARTS).clamp(1, n_samples.max(1))
    }
}
