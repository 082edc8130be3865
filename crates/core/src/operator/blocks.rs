//! Work on the matrices of some of the samples, done where the whole matrix is.

use super::trended::Linear;
use super::{InParts, KernelOperator, Trended};
use crate::error::Error;
use serde::{Deserialize, Serialize};

/// Something to be computed with K_SS for some samples S, complete in itself: whoever has K can do
/// it. What it is, and what its answer means, is the solver's that asks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BlockTask {
    /// S.
    samples: Vec<usize>,
    /// What K_SS has beside the matrix of whoever computes.
    trend: Option<Linear>,
    /// What to do, in the solver's own words.
    work: Vec<u8>,
}

/// Machines that each hold the whole matrix, and compute with parts of it side by side.
pub trait BlockMachines {
    /// The answer to each task, in their order; none where `stops`, asked several times a second,
    /// ended it.
    fn solve(
        &self,
        tasks: Vec<BlockTask>,
        stops: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Vec<Vec<u8>>>, Error>;
}

impl BlockTask {
    pub(crate) fn new(samples: &[usize], work: Vec<u8>) -> Self {
        Self { samples: samples.to_vec(), trend: None, work }
    }

    /// The same with a trend beside the matrix, of which `all` has every sample's features.
    pub(super) fn with_trend(self, all: &Linear) -> Self {
        let trend = Some(all.restrict(&self.samples));
        Self { trend, ..self }
    }

    /// S.
    pub fn samples(&self) -> &[usize] {
        &self.samples
    }

    pub(crate) fn work(&self) -> &[u8] {
        &self.work
    }

    /// As a message has it. For the same version of this crate alone.
    pub fn to_bytes(&self) -> Vec<u8> {
        postcard::to_allocvec(self).expect("numbers and lists of them can be written")
    }

    /// What [`to_bytes`](Self::to_bytes) wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        postcard::from_bytes(bytes).map_err(|why| unreadable(&why))
    }

    /// K_SS, of the K that `whole` has; none where it has no matrices of some samples alone.
    pub(crate) fn operator(
        &self,
        whole: &dyn InParts,
    ) -> Result<Option<Box<dyn KernelOperator>>, Error> {
        let n = whole.n_samples();
        let fits = self.trend.as_ref().is_none_or(|trend| trend.n_samples() == self.samples.len());
        if !fits || self.samples.iter().any(|&i| i >= n) {
            return Err(unreadable(&format!("{} of {n} samples", self.samples.len())));
        }
        let Some(part) = whole.part_of(&self.samples)? else { return Ok(None) };
        Ok(Some(match &self.trend {
            None => part,
            Some(trend) => Box::new(Trended::beside(part, trend.clone())),
        }))
    }
}

/// A task, or an answer, that is none.
pub(crate) fn unreadable(why: &dyn std::fmt::Display) -> Error {
    Error::Backend {
        backend: "blocks".to_owned(),
        what: format!("a message makes no sense: {why}"),
    }
}
