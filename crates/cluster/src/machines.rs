//! Whoever carries messages to workers and brings back answers.

use crate::job::Job;
use crate::panels::PanelKeeper;
use ndarray::{ArrayView2, ArrayViewMut2};
use std::fmt::Debug;
use std::ops::Range;

/// A kernel matrix that workers are to hold.
pub struct Opening<'a> {
    /// What it is made of.
    pub job: &'a Job,
    /// Rows of the data that the samples are.
    pub rows: &'a [usize],
    /// The samples' features, for workers that cannot read the data themselves.
    pub features: ArrayView2<'a, f64>,
}

/// Workers that multiply with kernel matrices. One call is one message to each of them at most;
/// errors are sentences that name the worker.
pub trait Machines: Debug + Send + Sync {
    /// As messages name them.
    fn name(&self) -> &'static str;

    /// Cores of all of them, for estimates of time.
    fn n_cores(&self) -> usize;

    /// Whether each of them has a GPU.
    fn have_gpus(&self) -> bool {
        false
    }

    /// Makes workers hold a matrix; its number for the calls below.
    fn open(&self, opening: Opening<'_>) -> Result<u64, String>;

    /// out = v·K; `exact` in f64, otherwise in the job's precision.
    fn product(
        &self,
        matrix: u64,
        exact: bool,
        v: ArrayView2<'_, f64>,
        out: ArrayViewMut2<'_, f64>,
    ) -> Result<(), String>;

    /// out[r · columns.len() + j] = κ(samples\[r\], columns.start + j), in the job's precision.
    fn rows(
        &self,
        matrix: u64,
        samples: &[usize],
        columns: Range<usize>,
        out: &mut [f64],
    ) -> Result<(), String>;

    /// out += v·K\[samples, :\].
    fn add_columns(
        &self,
        matrix: u64,
        exact: bool,
        samples: &[usize],
        v: ArrayView2<'_, f64>,
        out: ArrayViewMut2<'_, f64>,
    ) -> Result<(), String>;

    /// Whether they solve blocks of samples.
    fn solve_blocks(&self) -> bool {
        false
    }

    /// The answers to tasks ([`Shard::block`](crate::Shard::block)), each of one worker, in their
    /// order; none where `stops`, asked several times a second, ended it.
    fn blocks(
        &self,
        _matrix: u64,
        _tasks: Vec<Vec<u8>>,
        _stops: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Vec<Vec<u8>>>, String> {
        Err(format!("{} solves no blocks", self.name()))
    }

    /// Those of them that keep low-rank factors; none where these are the driver's.
    fn panels(&self) -> Option<&dyn PanelKeeper> {
        None
    }

    /// Nobody will ask for the matrix again.
    fn close(&self, matrix: u64);
}
