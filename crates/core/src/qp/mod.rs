//! Small dense quadratic programs, thousands in a row: how a decision is found inside its set.
//!
//! Enters: a metric Θ, a pull g and the rows of one set. Leaves: the unique u of
//!
//! ```text
//! minimise  uᵀΘu − 2gᵀu   subject to  rows·u ≤ limits  (the first `equalities` rows: =)
//! ```
//!
//! together with the independent rows that hold it there, their multipliers, and a basis of the
//! directions left free, which is all a derivative of u in g needs. The method is the dual active
//! set of Goldfarb and Idnani (1983): it starts from the minimiser over a few rows, any few whose
//! multipliers have the right sign, and adds violated rows one at a time. So a working set from a
//! similar problem is a start, and a right one costs a factorisation and one look at every row.
//! What it cannot settle goes to an interior-point solver, whose guess of the active rows it then
//! takes as its start.

mod active_set;
mod dim;
mod factor;
#[cfg(not(target_family = "wasm"))]
mod fallback;
mod farkas;
mod metric;
#[cfg(target_family = "wasm")]
mod no_fallback;

#[cfg(target_family = "wasm")]
use no_fallback as fallback;

pub use active_set::ActiveSet;
pub(crate) use active_set::residual;
pub use metric::Metric;

use thiserror::Error;

/// One set, as the solver sees it: `rows·u ≤ limits`, the first `equalities` rows with equality.
///
/// Rows have length one (the owner normalises them, and tolerances rely on it) or are zero with a
/// limit ≥ 0. A limit of +∞ belongs to a row that never binds.
#[derive(Clone, Copy, Debug)]
pub struct Constraints<'a> {
    /// m × n, row-major.
    pub rows: &'a [f64],
    /// m.
    pub limits: &'a [f64],
    /// How many of the rows, from the first, hold with equality.
    pub equalities: usize,
}

impl Constraints<'_> {
    fn row(&self, i: usize, n: usize) -> &[f64] {
        &self.rows[i * n..(i + 1) * n]
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum QpError {
    /// No point satisfies all rows, by a certificate that was checked on the rows themselves.
    #[error("no point satisfies all limits; rows {rows:?} contradict each other")]
    Empty {
        /// Some rows that contradict each other.
        rows: Vec<u32>,
    },
    /// Neither the active-set nor the interior-point method found the answer.
    #[error(
        "the quadratic program was not solved; its rows may be contradictory by no more than \
         rounding"
    )]
    Unsolved,
}
