//! A block: (Q) in the responses of some samples while all others stay as they are, solved here or
//! wherever the matrix is.
//!
//! What a block's responses are depends on the block and the matrix alone, so that it does not
//! matter who solves it.

use super::super::newton::{self, Answer, NewtonSettings};
use super::super::observer::{Ignore, Observer};
use super::super::outcome::Status;
use crate::error::Error;
use crate::operator::{BlockTask, InParts, KernelOperator, unreadable};
use crate::problem::{BlockProblem, Values};
use ndarray::Array2;
use serde::{Deserialize, Serialize};

/// Share of the tolerance, and of the gap there is, that a block's own gap may keep: blocks are
/// exact for all purposes.
const BLOCK_TOL: f64 = 1e-4;
/// Relative gaps below this are beyond f64.
const LEAST_TOL: f64 = 1e-18;

/// A block and where its responses start.
#[derive(Serialize, Deserialize)]
pub(super) struct Block {
    pub(super) problem: BlockProblem,
    /// α of the block's samples.
    #[serde(with = "crate::linalg::rows")]
    pub(super) coefficients: Array2<f64>,
    /// g of the block's samples.
    #[serde(with = "crate::linalg::rows")]
    pub(super) desired: Array2<f64>,
    /// Relative gap that the whole problem is to reach.
    pub(super) tol: f64,
    pub(super) max_rank: Option<usize>,
    pub(super) seed: u64,
}

/// What came of a block.
#[derive(Serialize, Deserialize)]
pub(super) struct Solved {
    /// Its optimal responses.
    #[serde(with = "crate::linalg::rows")]
    pub(super) responses: Array2<f64>,
    /// Products with K_SS.
    pub(super) products: usize,
}

impl Block {
    /// With K_SS, which has no weights; none where it was interrupted.
    pub(super) fn solve(
        self,
        unweighted: &dyn KernelOperator,
        observer: &mut dyn Observer,
    ) -> Result<Option<Solved>, Error> {
        let Self { problem, coefficients, desired, tol, max_rank, seed } = self;
        let mut products = 0;
        let mut inner = Array2::zeros(coefficients.dim());
        let problem = problem.alone()?;
        let operator = problem.weigh(unweighted)?;
        if coefficients.iter().any(|a| *a != 0.0) {
            operator.exact().apply(coefficients.view(), inner.view_mut())?;
            products += 1;
        }
        let problem = problem.with_offset(&desired - &inner);
        // The gap of the block alone, before: the target must lie below it and below the tolerance.
        let responses = problem.responses(coefficients.view())?;
        let decided = problem.decide(&desired, None)?.decisions;
        let primal = problem.primals(&coefficients, &desired, &decided);
        let before = Values::below(primal, problem.gaps(&responses, &desired, &decided));
        let relative = problem.relative_gap(&before)?;
        let settings = NewtonSettings {
            tol: (BLOCK_TOL * relative.min(tol)).max(LEAST_TOL),
            max_iterations: 60,
            time_limit: None,
            max_rank,
            spare_bytes: 0,
        };
        let (start, answer) = ((coefficients, desired), Answer::Responses);
        let outcome =
            newton::solve_from(&problem, &operator, &settings, seed, start, answer, observer)?;
        products += outcome.kernel_products;
        if matches!(outcome.status, Status::Interrupted) {
            return Ok(None);
        }
        // A block that stalls at the limit of f64 is as exact as it gets; it may only not make
        // things worse.
        let c = outcome.certified.certificate;
        let worse = c.gap - c.rounding > before.total_gap();
        let responses = if worse { responses } else { outcome.certified.responses };
        Ok(Some(Solved { responses, products }))
    }

    /// For machines that have the whole matrix.
    pub(super) fn task(&self, samples: &[usize]) -> BlockTask {
        let work = postcard::to_allocvec(self).expect("numbers and lists of them can be written");
        BlockTask::new(samples, work)
    }
}

impl Solved {
    /// What [`answer`] wrote, of a block whose responses have this shape.
    pub(super) fn from_bytes(bytes: &[u8], shape: (usize, usize)) -> Result<Self, Error> {
        let solved: Self = postcard::from_bytes(bytes).map_err(|why| unreadable(&why))?;
        if solved.responses.dim() == shape {
            return Ok(solved);
        }
        Err(unreadable(&format!("{:?} responses instead of {shape:?}", solved.responses.dim())))
    }
}

/// Does what a solver asked for, with the matrix that `whole` holds.
pub fn answer(whole: &dyn InParts, task: &BlockTask) -> Result<Vec<u8>, Error> {
    let block: Block = postcard::from_bytes(task.work()).map_err(|why| unreadable(&why))?;
    let shape = (block.problem.decisions().nrows(), task.samples().len());
    let shapes = [block.problem.decisions().dim(), block.coefficients.dim(), block.desired.dim()];
    if shapes.iter().any(|found| *found != shape) {
        return Err(unreadable(&format!("shapes {shapes:?} instead of {shape:?}")));
    }
    let Some(operator) = task.operator(whole)? else {
        return Err(unreadable(&"a block for a matrix that has no parts"));
    };
    let solved = block.solve(operator.as_ref(), &mut Ignore)?;
    let solved = solved.ok_or_else(|| unreadable(&"it ended before it was solved"))?;
    Ok(postcard::to_allocvec(&solved).expect("numbers and lists of them can be written"))
}
