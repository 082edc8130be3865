//! What rounding may have hidden: proven bounds on how far f64 can be off, group by group.
//!
//! Enters: a point with its products, its decisions and their faces. Leaves: what a certificate
//! adds to the gap, and how far P and D may be off.

use super::{Decided, Problem, slice};
use crate::error::Error;
use crate::linalg::sums::{UNIT, sum_over};
use crate::operator::KernelOperator;
use ndarray::Array2;

/// Relative error of a sum of terms of one sign, of the few operations in a term, and of
/// eigenvectors.
pub(super) const SUMS: f64 = 1e-12;

/// What rounding may have taken off the gap, and how far P and D may be off, group by group, beside
/// what small quadratic programs leave open in all; none where no program was solved.
pub(super) struct Rounding {
    pub gap: Vec<f64>,
    pub doubt: Vec<f64>,
    pub programs: Option<f64>,
}

impl Problem {
    /// What the last places of responses may be worth where general rows hold them: those that
    /// `differences` leaves out of x − y, and those of unrounded responses.
    pub(super) fn hidden(
        &self,
        responses: &Array2<f64>,
        differences: &Array2<f64>,
        desired: &Array2<f64>,
        decided: &Decided,
    ) -> Vec<f64> {
        let Some(doubts) = decided.faces.doubts() else {
            return vec![0.0; self.groups.count()];
        };
        let (n, y) = (self.n_samples(), &decided.decisions);
        let left_out = &(responses - y) - differences;
        let own = self.gaps_of_differences(&left_out, desired, y);
        let (d, left_out) = (slice(differences), slice(&left_out));
        let last = self.means(|at| {
            2.0 * (left_out[at] * d[at]).abs()
                + f64::EPSILON * doubts[at % n].price * slice(responses)[at].abs()
        });
        own.into_iter().zip(last).map(|(own, last)| own + last).collect()
    }

    /// How far each entry of an exact product with `v` can be off.
    pub(super) fn product_error(
        operator: &dyn KernelOperator,
        v: &Array2<f64>,
    ) -> Result<Array2<f64>, Error> {
        let r = operator.exact().rounding()?;
        let n = v.ncols();
        let mut off = Array2::zeros(v.dim());
        for (v, mut off) in v.rows().into_iter().zip(off.rows_mut()) {
            let sum = sum_over(n, |i| r[i] * v[i].abs());
            off.iter_mut().zip(&r).for_each(|(off, r)| *off = r * sum);
        }
        Ok(off)
    }

    /// What rounding may have hidden at coefficients with their desired decisions. `differences`: x
    /// − y as it was measured; `snapped`: what was left out of it.
    pub(super) fn rounding(
        &self,
        operator: &dyn KernelOperator,
        (coefficients, responses, desired): (&Array2<f64>, &Array2<f64>, &Array2<f64>),
        decided: &Decided,
        differences: &Array2<f64>,
        snapped: &Array2<f64>,
    ) -> Result<Rounding, Error> {
        let off = Self::product_error(operator, coefficients)?;
        let mut rounding =
            self.rounding_of(&off, (coefficients, responses), differences, (desired, decided));
        // α is (û − x)/λ up to a few units of its last place, and up to what was snapped: k‖·‖²_K
        // of that, by s_i ≤ r_i/√(3u).
        let r = operator.exact().rounding()?;
        let (n, ridge) = (self.n_samples(), self.ridge());
        let rows = coefficients.rows().into_iter().zip(snapped.rows()).map(|(a, snapped)| {
            let size = |i: usize| {
                // A response beyond a row by rounding stands for one inside, whose α differs by the
                // distance over λ.
                let moved = snapped[i].abs() + 2.0 * self.sets.beyond(i, responses.column(i));
                8.0 * UNIT * a[i].abs() + moved / ridge
            };
            let sum = sum_over(n, |i| r[i] * size(i));
            self.regularization * sum * sum / (3.0 * UNIT)
        });
        let own = self.groups.sum(rows);
        rounding.gap.iter_mut().zip(own).for_each(|(gap, own)| *gap += own);
        Ok(rounding)
    }

    /// The same for desired decisions that are off by `off`: 2E‖x − y‖ + 2E² for every sample, and
    /// the doubt of its quadratic program.
    pub(super) fn rounding_of(
        &self,
        off: &Array2<f64>,
        (coefficients, responses): (&Array2<f64>, &Array2<f64>),
        differences: &Array2<f64>,
        (desired, decided): (&Array2<f64>, &Decided),
    ) -> Rounding {
        let n = self.n_samples();
        let y = slice(&decided.decisions);
        let (off, a, d, g) = (slice(off), slice(coefficients), slice(differences), slice(desired));
        let u = slice(&self.decisions);
        let ridge = self.ridge();
        let doubts = decided.faces.doubts();
        let gap = if let Some(doubts) = &doubts {
            let groups = self.groups.members();
            let shares = groups.iter().map(|group| {
                let length = |v: &[f64], i: usize| {
                    group.iter().map(|j| v[j * n + i] * v[j * n + i]).sum::<f64>().sqrt()
                };
                let sum = sum_over(n, |i| {
                    let (off, differences) = (length(off, i), length(d, i));
                    let pull = length(g, i) + length(y, i);
                    // Responses beyond a row by rounding would be worth that much less inside.
                    2.0 * off * (differences + off)
                        + 16.0 * UNIT * differences * pull
                        + doubts[i].at(self.sets.beyond(i, responses.column(i)))
                });
                sum / self.total
            });
            shares.collect()
        } else {
            self.means(|at| 2.0 * off[at] * (d[at].abs() + off[at]))
        };
        let doubt = self.means(|at| {
            // The derivative of N·P in g_i, with α as it is.
            let size = (ridge * a[at] - 2.0 * (u[at] - y[at])).abs() + 2.0 * off[at];
            let sums =
                ridge * (a[at] * g[at]).abs() + (u[at] - y[at]).abs() * (u[at].abs() + g[at].abs());
            size * off[at] + SUMS * sums
        });
        // X(g) is where a small program stopped: its value is off by its doubt, and by what it is
        // beyond a row.
        let programs = doubts.map(|doubts| {
            let off = |i: usize| doubts[i].at(self.sets.beyond(i, decided.decisions.column(i)));
            sum_over(n, off) / self.total
        });
        Rounding { gap, doubt, programs }
    }
}
