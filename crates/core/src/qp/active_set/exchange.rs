//! A row enters; those whose multipliers it takes to zero leave, or it contradicts them.

use super::{ActiveSet, Stop};
use crate::qp::dim::Dim;
use crate::qp::{Constraints, farkas};

/// How far off a row that lies in the span of working rows may be, relative to what it is made of.
const CONSISTENT: f64 = 1e-12;

/// Share of a working row in the entering row, relative to the largest, that is rounding.
const NO_SHARE: f64 = 1e-11;

impl ActiveSet {
    /// Makes an exceeded row a working row, letting go those whose multiplier reaches zero on the
    /// way.
    ///
    /// With the multiplier t of the row as parameter, the others move as ν − t·shares and the row's
    /// excess falls by t‖(Jᵀa)₂‖²/2.
    #[inline(always)]
    pub(super) fn enter(
        &mut self,
        dim: impl Dim,
        set: Constraints<'_>,
        row: usize,
    ) -> Result<(), Stop> {
        let limit = set.limits[row];
        let mut free = self.factor.measure(dim, set.row(row, dim.get()));
        let mut height = 0.0;
        loop {
            self.factor.shares_into(dim, &mut self.shares);
            let full = if self.independent(dim, free) {
                let level = self.factor.held_level() + self.factor.free_level(dim);
                (2.0 * (level - limit) / free - height).max(0.0)
            } else {
                f64::INFINITY
            };
            let (step, leaving) = self.longest_step(full);
            if step == f64::INFINITY {
                return self.contradiction(dim, set, row);
            }
            for (nu, share) in self.multipliers.iter_mut().zip(&self.shares) {
                *nu -= step * share;
            }
            height += step;
            let Some(k) = leaving else {
                self.factor.push(dim, free, limit);
                self.working.push(row as u32);
                self.multipliers.push(height);
                return Ok(());
            };
            self.factor.remove(dim, k);
            self.working.remove(k);
            self.multipliers.remove(k);
            free = self.factor.free_length(dim);
        }
    }

    /// How far the entering multiplier may grow, up to `full`, before one of the others turns
    /// negative, and which.
    #[inline(always)]
    fn longest_step(&self, full: f64) -> (f64, Option<usize>) {
        let largest = self.shares.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
        let rounding = NO_SHARE * largest;
        let (mut step, mut leaving) = (full, None);
        let rows = self.multipliers.iter().zip(&self.shares).enumerate().skip(self.held);
        for (k, (nu, share)) in rows {
            if *share > rounding && *nu < step * share {
                (step, leaving) = (nu.max(0.0) / share, Some(k));
            }
        }
        (step, leaving)
    }

    /// The row measured last is made of working rows (`shares`) and no exchange can help: it is met
    /// by them, or there is no solution.
    #[cold]
    pub(super) fn contradiction(
        &mut self,
        dim: impl Dim,
        set: Constraints<'_>,
        row: usize,
    ) -> Result<(), Stop> {
        let off = self.factor.held_level() - set.limits[row];
        let sizes = self.working.iter().zip(&self.shares);
        let size: f64 = sizes.map(|(i, share)| (share * set.limits[*i as usize]).abs()).sum();
        if off.abs() <= CONSISTENT * (size + set.limits[row].abs()) {
            self.settled.push(row as u32);
            return Ok(());
        }
        let sign = off.signum();
        let mut weights = vec![(row as u32, sign)];
        let largest = self.shares.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
        for (&i, share) in self.working.iter().zip(&self.shares) {
            let weight = -sign * share;
            let wrong_sign = i as usize >= set.equalities && weight < 0.0;
            if share.abs() > NO_SHARE * largest && !wrong_sign {
                weights.push((i, weight));
            }
        }
        if farkas::proves_empty(set, dim.get(), &weights) {
            return Err(Stop::Empty(weights.into_iter().map(|(i, _)| i).collect()));
        }
        Err(Stop::Stuck)
    }
}
