//! The dual active-set method of Goldfarb and Idnani, warm-started.
//!
//! Enters: a set, g, rows that were active before. Leaves: the solution with its working rows and
//! multipliers.

mod exchange;
mod polish;

pub(crate) use polish::residual;

use super::dim::{Dim, Dynamic, Fixed, dot};
use super::factor::Factor;
use super::{Constraints, Metric, QpError, fallback};

/// How far a row may be exceeded, relative to the size of the point and of the row's limit. Less
/// leaves problems unsolved whose rows are nearly dependent; [`ActiveSet::polish`] takes off what
/// remains.
const VIOLATION: f64 = 1e-13;

/// [`VIOLATION`] after the interior-point method has been asked: better a point this close than
/// none.
const VIOLATION_AFTER_FALLBACK: f64 = 1e-11;

/// Distance from the span of the working rows, in the metric's coordinates and relative to its
/// reach, below which a row counts as lying in it.
const DEPENDENT: f64 = 1e-12;

/// The same for rows of a warm start: one that is doubtful is left out, to be added again if it is
/// violated.
const DEPENDENT_WARM: f64 = 1e-6;

/// A final multiplier this negative, relative to the largest and to g, is zero; one below must
/// leave.
const NO_MULTIPLIER: f64 = 1e-13;

/// Workspace for problems with one metric, and the answer to the last of them.
///
/// ```
/// use argwhy_core::qp::{ActiveSet, Constraints, Metric};
/// // The nearest point to (2, 1) with u₀ ≤ 1.
/// let set = Constraints { rows: &[1.0, 0.0], limits: &[1.0], equalities: 0 };
/// let mut solver = ActiveSet::new(&Metric::identity(2));
/// solver.solve(set, &[2.0, 1.0], &[])?;
/// assert_eq!(solver.solution(), [1.0, 1.0]);
/// assert_eq!((solver.working_set(), solver.multipliers()), (&[0][..], &[2.0][..]));
/// # Ok::<(), argwhy_core::qp::QpError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ActiveSet {
    metric: Metric,
    factor: Factor,
    solution: Vec<f64>,
    /// Working rows in the order of the factor's columns; equalities first.
    working: Vec<u32>,
    multipliers: Vec<f64>,
    /// How many of the working rows are equalities; they come first and stay.
    held: usize,
    /// How the entering row is made of the working rows.
    shares: Vec<f64>,
    /// Rows in the span of working rows that are met as well as rounding allows.
    settled: Vec<u32>,
    used_fallback: bool,
}

/// Why an attempt ended without an answer.
enum Stop {
    /// Proven to have none.
    Empty(Vec<u32>),
    /// Rounding got in the way.
    Stuck,
}

/// The tolerance and warm start of one attempt.
#[derive(Clone, Copy)]
struct Attempt<'a> {
    set: Constraints<'a>,
    g: &'a [f64],
    warm: &'a [u32],
    violation: f64,
}

impl ActiveSet {
    /// A workspace for problems in `metric`.
    pub fn new(metric: &Metric) -> Self {
        let n = metric.dim();
        Self {
            metric: metric.clone(),
            factor: Factor::new(n),
            solution: vec![0.0; n],
            working: Vec::with_capacity(n),
            multipliers: Vec::with_capacity(n),
            held: 0,
            shares: Vec::with_capacity(n),
            settled: Vec::new(),
            used_fallback: false,
        }
    }

    /// Solves one problem. `warm` names rows that may be active: any rows in any order, none for a
    /// cold start.
    ///
    /// `g`: n numbers. Costs O(n²) for each row that enters or leaves and O(mn) for each look at
    /// all rows; no memory is taken unless the interior-point method has to help. After an error
    /// the other methods tell nothing.
    pub fn solve(&mut self, set: Constraints<'_>, g: &[f64], warm: &[u32]) -> Result<(), QpError> {
        let n = self.metric.dim();
        assert!(g.len() == n, "g must have as many numbers as the metric");
        assert!(set.rows.len() == n * set.limits.len(), "rows must be n × limits");
        assert!(set.equalities <= set.limits.len(), "more equalities than rows");
        self.used_fallback = false;
        let attempt = Attempt { set, g, warm, violation: VIOLATION };
        let stop = match self.attempt(attempt) {
            Ok(()) => return Ok(()),
            Err(stop) => stop,
        };
        self.recover(attempt, stop)
    }

    /// What is left when the first attempt ended without an answer.
    #[cold]
    fn recover(&mut self, failed: Attempt<'_>, mut stop: Stop) -> Result<(), QpError> {
        let unusable = |limit: &f64| limit.is_nan() || *limit == f64::NEG_INFINITY;
        if failed.g.iter().any(|g| !g.is_finite()) || failed.set.limits.iter().any(unusable) {
            return Err(QpError::Unsolved);
        }
        if matches!(stop, Stop::Stuck) && !failed.warm.is_empty() {
            match self.attempt(Attempt { warm: &[], ..failed }) {
                Ok(()) => return Ok(()),
                Err(second) => stop = second,
            }
        }
        if let Stop::Empty(rows) = stop {
            return Err(QpError::Empty { rows });
        }
        self.used_fallback = true;
        let warm = fallback::active_rows(&self.metric, failed.set, failed.g)?;
        let attempt = Attempt { warm: &warm, violation: VIOLATION_AFTER_FALLBACK, ..failed };
        self.attempt(attempt).map_err(|stop| match stop {
            Stop::Empty(rows) => QpError::Empty { rows },
            Stop::Stuck => QpError::Unsolved,
        })
    }

    /// The solution u.
    pub fn solution(&self) -> &[f64] {
        &self.solution
    }

    /// Independent rows that hold the solution in place, equalities among them.
    pub fn working_set(&self) -> &[u32] {
        &self.working
    }

    /// ν of each row of the working set, ≥ 0 except for equalities: 2(g − Θu) = Σ ν_i row_i.
    pub fn multipliers(&self) -> &[f64] {
        &self.multipliers
    }

    /// Dimensions the working set leaves free.
    pub fn free_dim(&self) -> usize {
        self.metric.dim() - self.factor.rank()
    }

    /// R, n × `free_dim`, column by column: what [`write_basis`](Self::write_basis) writes.
    pub fn basis(&self) -> &[f64] {
        self.factor.free_basis()
    }

    /// Writes R to the first n·`free_dim` numbers of `out`, column by column: RᵀΘR = I, and the
    /// working rows vanish on R.
    ///
    /// RRᵀ is the derivative of the solution in g.
    pub fn write_basis(&self, out: &mut [f64]) {
        let basis = self.factor.free_basis();
        out[..basis.len()].copy_from_slice(basis);
    }

    /// Whether the last solution was found with the help of the interior-point method.
    pub fn used_fallback(&self) -> bool {
        self.used_fallback
    }

    fn attempt(&mut self, attempt: Attempt<'_>) -> Result<(), Stop> {
        match self.metric.dim() {
            // Nothing to decide, and nothing to divide rows into.
            0 => Ok(()),
            1 => self.search(Fixed::<1>, attempt),
            2 => self.search(Fixed::<2>, attempt),
            3 => self.search(Fixed::<3>, attempt),
            4 => self.search(Fixed::<4>, attempt),
            5 => self.search(Fixed::<5>, attempt),
            6 => self.search(Fixed::<6>, attempt),
            7 => self.search(Fixed::<7>, attempt),
            8 => self.search(Fixed::<8>, attempt),
            n => self.search(Dynamic(n), attempt),
        }
    }

    /// From the warm rows to the solution: look for the row exceeded most, add it, until none is.
    fn search(&mut self, dim: impl Dim, attempt: Attempt<'_>) -> Result<(), Stop> {
        let set = attempt.set;
        self.begin(dim, attempt)?;
        let mut exact = true;
        // The awkward problems of tests/small_qp stay below m + n: what needs four times that is
        // going in circles.
        let patience = 20 + 4 * (set.limits.len() + dim.get());
        let mut corrections = 0;
        for _ in 0..patience {
            self.factor.point_into(dim, &mut self.solution);
            match self.most_exceeded(dim, set, attempt.violation) {
                Some(row) if self.working.contains(&(row as u32)) => {
                    corrections += 1;
                    if corrections > 2 {
                        return Err(Stop::Stuck);
                    }
                    self.correct(dim, set);
                }
                Some(row) => {
                    self.enter(dim, set, row)?;
                    exact = false;
                }
                None if exact => return self.finish(),
                None => {
                    // Multipliers were carried along; here they are read off, and may show a row
                    // that should leave.
                    self.factor.multipliers_into(dim, &mut self.multipliers);
                    let size = self.multipliers.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
                    let floor = -NO_MULTIPLIER * size.max(self.factor.pull_size());
                    exact = true;
                    if !self.release(dim, floor) {
                        return self.finish();
                    }
                }
            }
        }
        Err(Stop::Stuck)
    }

    /// Takes the equalities and what is independent of the warm rows, then lets rows with negative
    /// multipliers go.
    #[inline(always)]
    fn begin(&mut self, dim: impl Dim, attempt: Attempt<'_>) -> Result<(), Stop> {
        let (set, n) = (attempt.set, dim.get());
        self.factor.start(dim, &self.metric, attempt.g);
        self.working.clear();
        self.settled.clear();
        self.multipliers.clear();
        for row in 0..set.equalities {
            self.take_equality(dim, set, row)?;
        }
        self.held = self.working.len();
        let doubtful = DEPENDENT_WARM * self.metric.reach();
        for &row in attempt.warm {
            let at = row as usize;
            if at < set.equalities || at >= set.limits.len() || set.limits[at] == f64::INFINITY {
                continue;
            }
            if self.factor.rank() == n {
                break;
            }
            let free = self.factor.measure(dim, set.row(at, n));
            if free > doubtful * doubtful {
                self.factor.push(dim, free, set.limits[at]);
                self.working.push(row);
            }
        }
        self.factor.multipliers_into(dim, &mut self.multipliers);
        self.release(dim, 0.0);
        Ok(())
    }

    fn take_equality(
        &mut self,
        dim: impl Dim,
        set: Constraints<'_>,
        row: usize,
    ) -> Result<(), Stop> {
        let limit = set.limits[row];
        let free = self.factor.measure(dim, set.row(row, dim.get()));
        if self.independent(dim, free) {
            self.factor.push(dim, free, limit);
            self.working.push(row as u32);
            return Ok(());
        }
        self.factor.shares_into(dim, &mut self.shares);
        self.contradiction(dim, set, row)
    }

    /// Whether a row with this free length, squared, is independent of the working rows.
    #[inline(always)]
    fn independent(&self, dim: impl Dim, free: f64) -> bool {
        let least = DEPENDENT * self.metric.reach();
        self.factor.rank() < dim.get() && free > least * least
    }

    /// Lets rows go whose multiplier lies below `floor`, the worst first, until none does; the
    /// others become ≥ 0. Whether any went.
    #[inline(always)]
    fn release(&mut self, dim: impl Dim, floor: f64) -> bool {
        let mut released = false;
        loop {
            let (mut worst, mut at) = (floor, None);
            for (k, nu) in self.multipliers.iter().enumerate().skip(self.held) {
                if *nu < worst {
                    (worst, at) = (*nu, Some(k));
                }
            }
            let Some(k) = at else { break };
            self.factor.remove(dim, k);
            self.working.remove(k);
            self.factor.multipliers_into(dim, &mut self.multipliers);
            released = true;
        }
        for nu in &mut self.multipliers[self.held..] {
            *nu = nu.max(0.0);
        }
        released
    }

    /// The inequality exceeded most by the point, if any is by more than rounding.
    #[inline(always)]
    fn most_exceeded(&self, dim: impl Dim, set: Constraints<'_>, violation: f64) -> Option<usize> {
        let n = dim.get();
        let point = &self.solution[..n];
        let size: f64 = point.iter().map(|u| u.abs()).sum();
        let excess = |row: &[f64], limit: f64| dot(row, point) - limit - violation * limit.abs();
        let rows = set.rows.chunks_exact(n).zip(set.limits).enumerate().skip(set.equalities);
        // Selected by moves, not branches: which row is worst is not for a branch predictor to
        // know.
        let (mut worst, mut at) = (violation * size, usize::MAX);
        if self.settled.is_empty() {
            for (i, (row, &limit)) in rows {
                let over = excess(row, limit);
                at = if over > worst { i } else { at };
                worst = if over > worst { over } else { worst };
            }
        } else {
            for (i, (row, &limit)) in rows {
                let over = excess(row, limit);
                if over > worst && !self.settled.contains(&(i as u32)) {
                    (worst, at) = (over, i);
                }
            }
        }
        (at != usize::MAX).then_some(at)
    }

    /// Moves the point back to the working rows where rounding took it off them.
    #[cold]
    fn correct(&mut self, dim: impl Dim, set: Constraints<'_>) {
        self.shares.clear();
        for &i in &self.working {
            let level = dot(set.row(i as usize, dim.get()), &self.solution);
            self.shares.push(set.limits[i as usize] - level);
        }
        self.factor.correct(dim, &mut self.shares);
    }

    #[inline(always)]
    fn finish(&self) -> Result<(), Stop> {
        // One sum tells: what is infinite or no number stays so when added to.
        let sum = self.solution.iter().sum::<f64>() + self.multipliers.iter().sum::<f64>();
        if sum.is_finite() { Ok(()) } else { Err(Stop::Stuck) }
    }
}

#[cfg(test)]
mod tests;
