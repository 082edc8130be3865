//! What is left to rounding once the working rows are known: taken off, and bounded.

use super::{ActiveSet, NO_MULTIPLIER, VIOLATION};
use crate::qp::Constraints;
use crate::qp::dim::{Dynamic, dot};

/// Units in the last place, of a row's own terms, to which [`ActiveSet::polish`] meets it.
const LAST_BITS: f64 = 4.0 * f64::EPSILON;
/// Corrections of the working rows that it makes: each gains as many digits as the rows are well
/// conditioned.
const NUDGES: usize = 2;
/// Passes over all rows that it makes at most.
const POLISHES: usize = 8;
/// Rows it makes working rows at most, that the search took for met: beside entries of 1e5 those of
/// 1e-5 are rounding to it.
const LATE_ROWS: usize = 4;

impl ActiveSet {
    /// Moves the solution to where every row is met to a few units in the last place of its own
    /// terms, `low` ≤ u ≤ `high` exactly: read off from the factor, all entries are rounded as the
    /// largest of them is.
    pub(crate) fn polish(&mut self, set: Constraints<'_>, low: &[f64], high: &[f64]) {
        let n = self.metric.dim();
        self.nudge(set);
        for _ in 0..LATE_ROWS {
            let Some(row) = self.overlooked(set) else { break };
            if !self.enter_late(set, row) {
                break;
            }
            self.nudge(set);
        }
        let bounds = || low.iter().zip(high);
        let keep = |u: &mut [f64]| {
            u.iter_mut().zip(bounds()).for_each(|(u, (low, high))| *u = u.max(*low).min(*high));
        };
        keep(&mut self.solution);
        // What is still beyond a row is rounding: taken off along it, by the entries that their own
        // limits leave room.
        for _ in 0..POLISHES {
            let mut met = true;
            for (r, &limit) in set.limits.iter().enumerate() {
                let row = set.row(r, n);
                let over = dot(row, &self.solution) - limit;
                let over = if r < set.equalities { over } else { over.max(0.0) };
                let terms = row.iter().zip(&self.solution).map(|(a, u)| (a * u).abs());
                if over.abs() <= LAST_BITS * (terms.sum::<f64>() + limit.abs()) {
                    continue;
                }
                met = false;
                let room = |j: usize, u: f64| {
                    let step = -over * row[j];
                    if step > 0.0 { u < high[j] } else { u > low[j] }
                };
                let free = self.solution.iter().enumerate().filter(|(j, u)| room(*j, **u));
                let square: f64 = free.map(|(j, _)| row[j] * row[j]).sum();
                if square == 0.0 {
                    continue;
                }
                for (j, u) in self.solution.iter_mut().enumerate() {
                    if room(j, *u) {
                        *u -= over / square * row[j];
                    }
                }
                keep(&mut self.solution);
            }
            if met {
                break;
            }
        }
    }

    /// Moves the solution onto its working rows.
    fn nudge(&mut self, set: Constraints<'_>) {
        if self.factor.rank() == 0 {
            return;
        }
        for _ in 0..NUDGES {
            self.shares.clear();
            for &i in &self.working {
                let row = set.row(i as usize, self.metric.dim());
                self.shares.push(residual(row, &self.solution, set.limits[i as usize]));
            }
            self.factor.nudge(&mut self.shares, &mut self.solution);
        }
    }

    /// The row exceeded most relative to its own terms, if any is by more than rounding.
    fn overlooked(&self, set: Constraints<'_>) -> Option<usize> {
        let (n, mut worst, mut at) = (self.metric.dim(), VIOLATION, None);
        for (r, &limit) in set.limits.iter().enumerate().skip(set.equalities) {
            let row = set.row(r, n);
            let terms: f64 = row.iter().zip(&self.solution).map(|(a, u)| (a * u).abs()).sum();
            let size = terms + limit.abs();
            if dot(row, &self.solution) - limit <= worst * size {
                continue;
            }
            let over = -residual(row, &self.solution, limit) / size;
            let known = |rows: &[u32]| rows.contains(&(r as u32));
            if over > worst && !known(&self.working) && !known(&self.settled) {
                (worst, at) = (over, Some(r));
            }
        }
        at
    }

    /// Makes `row` a working row after the search, and lets those go that it made pointless.
    /// Whether it could.
    #[cold]
    fn enter_late(&mut self, set: Constraints<'_>, row: usize) -> bool {
        let dim = Dynamic(self.metric.dim());
        let before = self.clone();
        if self.enter(dim, set, row).is_err() {
            *self = before;
            return false;
        }
        self.factor.multipliers_into(dim, &mut self.multipliers);
        let size = self.multipliers.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
        self.release(dim, -NO_MULTIPLIER * size.max(self.factor.pull_size()));
        self.factor.point_into(dim, &mut self.solution);
        true
    }

    /// How far q(u) = uᵀΘu − 2gᵀu at the solution can be above its least value in `set`, proven
    /// from the multipliers: with s = 2(Θu − g) + Σ ν_i row_i, no more than Σ ν_i (limit_i − row_i
    /// u) + ‖s‖²/4 for Θ ⪰ I. Rows from `general` on are limits of single entries, which are met
    /// exactly or known to be met with room.
    pub(crate) fn doubt(&self, set: Constraints<'_>, g: &[f64], general: usize) -> f64 {
        let n = self.metric.dim();
        let mut slope = vec![0.0; n];
        self.metric.apply(&self.solution, &mut slope);
        let mut size: f64 = slope.iter().zip(g).map(|(t, g)| t.abs() + g.abs()).sum();
        slope.iter_mut().zip(g).for_each(|(s, g)| *s = 2.0 * (*s - g));
        let length: f64 = self.solution.iter().map(|u| u.abs()).sum();
        let mut slack = 0.0;
        let units = (n + 4) as f64 * f64::EPSILON;
        for (&at, nu) in self.working.iter().zip(&self.multipliers) {
            let (row, limit) = (set.row(at as usize, n), set.limits[at as usize]);
            slope.iter_mut().zip(row).for_each(|(s, a)| *s += nu * a);
            size += nu.abs();
            let slack_of = residual(row, &self.solution, limit).abs();
            // The residual itself is right to twice the digits.
            let unknown = if at as usize >= general { 0.0 } else { limit.abs() + length };
            slack += nu.abs() * (slack_of * (1.0 + units) + units * f64::EPSILON * unknown);
        }
        let off = slope.iter().map(|s| s * s).sum::<f64>().sqrt() + units * size;
        slack + off * off / 4.0
    }
}

/// limit − row·u, as if computed with twice the digits: where rows are nearly dependent what is
/// left of the sum is what counts.
pub(crate) fn residual(row: &[f64], u: &[f64], limit: f64) -> f64 {
    let (mut sum, mut rest) = (limit, 0.0);
    for (a, u) in row.iter().zip(u) {
        let (product, lost) = exact_product(-a, *u);
        let next = sum + product;
        let of_product = next - sum;
        rest += (sum - (next - of_product)) + (product - of_product) + lost;
        sum = next;
    }
    sum + rest
}

/// a·b and what its rounding lost (Dekker): without a fused multiplication in hardware that would
/// take a hundred times as long.
fn exact_product(a: f64, b: f64) -> (f64, f64) {
    let halves = |x: f64| {
        let scaled = 134_217_729.0 * x;
        let high = scaled - (scaled - x);
        (high, x - high)
    };
    let product = a * b;
    let ((a1, a2), (b1, b2)) = (halves(a), halves(b));
    (product, a2 * b2 - (((product - a1 * b1) - a2 * b1) - a1 * b2))
}
