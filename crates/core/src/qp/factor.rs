//! The working rows, factorised: coordinates in which the objective is a distance and the working
//! rows come first.
//!
//! J is square with JᵀΘJ = I, and the working rows A (one a line) read AJ = [Rᵀ 0] with R upper
//! triangular. In coordinates u = Jy the objective is ‖y − h‖² up to a constant, h = Jᵀg; the
//! working rows fix the first `rank` coordinates by Rᵀy₁ = limits and leave the others at h₂. So
//! the answer is never updated, always read off: its accuracy does not depend on how far away g
//! lies or which way the working set was reached.

use super::Metric;
use super::dim::{Dim, add_scaled, dot, rotate};

#[derive(Clone, Debug)]
pub(super) struct Factor {
    /// J, n × n column-major. From column `rank` on: the null space of the working rows.
    basis: Vec<f64>,
    /// R, upper triangle of a column-major matrix with n rows.
    triangle: Vec<f64>,
    /// 1/R_jj: a division takes three times as long as a product, and each waits for the one
    /// before.
    inverse_pivots: Vec<f64>,
    /// h = Jᵀg.
    pull: Vec<f64>,
    /// Limits of the working rows.
    limits: Vec<f64>,
    /// y₁; the entries from `rank` on mean nothing.
    place: Vec<f64>,
    /// Jᵀa of the row a measured last.
    entry: Vec<f64>,
    /// Room for one direction.
    direction: Vec<f64>,
    rank: usize,
}

impl Factor {
    pub(super) fn new(n: usize) -> Self {
        Self {
            basis: vec![0.0; n * n],
            triangle: vec![0.0; n * n],
            inverse_pivots: vec![0.0; n],
            pull: vec![0.0; n],
            limits: vec![0.0; n],
            place: vec![0.0; n],
            entry: vec![0.0; n],
            direction: vec![0.0; n],
            rank: 0,
        }
    }

    /// Begins with no working rows.
    #[inline(always)]
    pub(super) fn start(&mut self, dim: impl Dim, metric: &Metric, g: &[f64]) {
        let n = dim.get();
        self.rank = 0;
        if let Some(inverse_factor) = metric.inverse_factor() {
            self.basis[..n * n].copy_from_slice(inverse_factor);
            for (pull, column) in self.pull[..n].iter_mut().zip(self.basis.chunks_exact(n)) {
                *pull = dot(column, &g[..n]);
            }
        } else {
            let basis = &mut self.basis[..n * n];
            basis.fill(0.0);
            for j in 0..n {
                basis[j * n + j] = 1.0;
            }
            self.pull[..n].copy_from_slice(&g[..n]);
        }
    }

    pub(super) fn rank(&self) -> usize {
        self.rank
    }

    /// Columns of J that span the null space of the working rows, one after the other.
    pub(super) fn free_basis(&self) -> &[f64] {
        &self.basis[self.rank * self.pull.len()..]
    }

    /// What the coordinates of g are rounded to, at best: their largest.
    pub(super) fn pull_size(&self) -> f64 {
        self.pull.iter().fold(0.0, |m: f64, h| m.max(h.abs()))
    }

    /// Computes Jᵀa and the squared length of its free part, which is zero for rows made of working
    /// rows.
    #[inline(always)]
    pub(super) fn measure(&mut self, dim: impl Dim, row: &[f64]) -> f64 {
        let n = dim.get();
        let row = &row[..n];
        for (entry, column) in self.entry[..n].iter_mut().zip(self.basis.chunks_exact(n)) {
            *entry = dot(column, row);
        }
        self.free_length(dim)
    }

    /// Squared length of the free part of the row measured last, for the working rows of now.
    #[inline(always)]
    pub(super) fn free_length(&self, dim: impl Dim) -> f64 {
        let free = &self.entry[self.rank..dim.get()];
        dot(free, free)
    }

    /// How the measured row is made of the working rows, as far as it is: R r = (Jᵀa)₁.
    #[inline(always)]
    pub(super) fn shares_into(&self, dim: impl Dim, shares: &mut Vec<f64>) {
        shares.clear();
        shares.extend_from_slice(&self.entry[..self.rank]);
        self.solve_upper(dim, shares);
    }

    /// aᵀu for the measured row a as far as the working rows fix it: (Jᵀa)₁ᵀy₁.
    #[inline(always)]
    pub(super) fn held_level(&self) -> f64 {
        dot(&self.entry[..self.rank], &self.place[..self.rank])
    }

    /// The rest of aᵀu: (Jᵀa)₂ᵀh₂.
    #[inline(always)]
    pub(super) fn free_level(&self, dim: impl Dim) -> f64 {
        let free = self.rank..dim.get();
        dot(&self.entry[free.clone()], &self.pull[free])
    }

    /// Makes the row measured last, whose free part has the squared length `free` > 0, a working
    /// row.
    ///
    /// A reflection sends the free part of Jᵀa to one coordinate: J₂ ← J₂ − β(J₂w)wᵀ, and h₂
    /// likewise.
    #[inline(always)]
    pub(super) fn push(&mut self, dim: impl Dim, free: f64, limit: f64) {
        let (n, rank) = (dim.get(), self.rank);
        let known = self.held_level();
        let length = free.sqrt();
        let pivot = if self.entry[rank] > 0.0 { -length } else { length };
        let w = &mut self.entry[rank..n];
        let beta = 1.0 / (length * (length + w[0].abs()));
        w[0] -= pivot;
        let free_columns = &mut self.basis[rank * n..n * n];
        let direction = &mut self.direction[..n];
        direction.fill(0.0);
        for (w, column) in w.iter().zip(free_columns.chunks_exact(n)) {
            add_scaled(direction, *w, column);
        }
        for (w, column) in w.iter().zip(free_columns.chunks_exact_mut(n)) {
            add_scaled(column, -beta * w, direction);
        }
        let pull = &mut self.pull[rank..n];
        let along = beta * dot(w, pull);
        add_scaled(pull, -along, w);

        let column = &mut self.triangle[rank * n..=rank * n + rank];
        column[..rank].copy_from_slice(&self.entry[..rank]);
        column[rank] = pivot;
        self.limits[rank] = limit;
        self.inverse_pivots[rank] = 1.0 / pivot;
        self.place[rank] = (limit - known) * self.inverse_pivots[rank];
        self.rank += 1;
    }

    /// Working row number `k` stops being one. The measured row is kept up to date.
    ///
    /// R without its column k is triangular again after a rotation of each two neighbouring
    /// coordinates from k on. y₁ could be rotated too, but would keep the rounding of whatever far
    /// point it has been at.
    pub(super) fn remove(&mut self, dim: impl Dim, k: usize) {
        let (n, last) = (dim.get(), self.rank - 1);
        for j in k..last {
            let (to, from) = self.triangle[j * n..(j + 2) * n].split_at_mut(n);
            to[..j + 2].copy_from_slice(&from[..j + 2]);
        }
        for i in k..last {
            let (a, b) = (self.triangle[i * n + i], self.triangle[i * n + i + 1]);
            let length = (a * a + b * b).sqrt();
            let turn = (a / length, b / length);
            self.triangle[i * n + i] = length;
            self.inverse_pivots[i] = 1.0 / length;
            for column in self.triangle[(i + 1) * n..last * n].chunks_exact_mut(n) {
                turn_pair(column, i, turn);
            }
            let (x, y) = self.basis[i * n..(i + 2) * n].split_at_mut(n);
            rotate(x, y, turn);
            for coordinates in [&mut self.pull, &mut self.entry] {
                turn_pair(coordinates, i, turn);
            }
        }
        self.rank = last;
        self.limits.copy_within(k + 1..=last, k);
        for j in k..last {
            let column = &self.triangle[j * n..=j * n + j];
            let known = dot(&column[..j], &self.place[..j]);
            self.place[j] = (self.limits[j] - known) * self.inverse_pivots[j];
        }
    }

    /// u = Jy.
    #[inline(always)]
    pub(super) fn point_into(&self, dim: impl Dim, u: &mut [f64]) {
        let n = dim.get();
        let u = &mut u[..n];
        u.fill(0.0);
        let (held, free) = self.basis[..n * n].split_at(self.rank * n);
        for (column, y) in held.chunks_exact(n).zip(&self.place) {
            add_scaled(u, *y, column);
        }
        for (column, h) in free.chunks_exact(n).zip(&self.pull[self.rank..]) {
            add_scaled(u, *h, column);
        }
    }

    /// Multipliers of the working rows at the point: Rν = 2(h₁ − y₁), which is Aᵀν = 2(g − Θu).
    #[inline(always)]
    pub(super) fn multipliers_into(&self, dim: impl Dim, multipliers: &mut Vec<f64>) {
        multipliers.clear();
        let both = self.pull.iter().zip(&self.place).take(self.rank);
        multipliers.extend(both.map(|(h, y)| 2.0 * (h - y)));
        self.solve_upper(dim, multipliers);
    }

    /// Moves the point so that the working rows gain `residual`, which is overwritten: y₁ += R⁻ᵀ
    /// residual.
    pub(super) fn correct(&mut self, dim: impl Dim, residual: &mut [f64]) {
        let n = dim.get();
        for j in 0..self.rank {
            let column = &self.triangle[j * n..=j * n + j];
            let known = dot(&column[..j], &residual[..j]);
            residual[j] = (residual[j] - known) * self.inverse_pivots[j];
            self.place[j] += residual[j];
        }
    }

    /// Moves `u` itself, not where it is read off from, so that the working rows gain `residual`,
    /// which is overwritten: u += J₁R⁻ᵀ residual. What small entries of u lost beside large ones
    /// comes back.
    pub(super) fn nudge(&self, residual: &mut [f64], u: &mut [f64]) {
        let n = u.len();
        for j in 0..self.rank {
            let column = &self.triangle[j * n..=j * n + j];
            let known = dot(&column[..j], &residual[..j]);
            residual[j] = (residual[j] - known) * self.inverse_pivots[j];
        }
        for (column, y) in self.basis.chunks_exact(n).zip(&*residual) {
            add_scaled(u, *y, column);
        }
    }

    /// Solves Rx = b in place.
    #[inline(always)]
    fn solve_upper(&self, dim: impl Dim, x: &mut [f64]) {
        let n = dim.get();
        for j in (0..x.len()).rev() {
            let column = &self.triangle[j * n..j * n + j];
            let (above, at) = x.split_at_mut(j);
            at[0] *= self.inverse_pivots[j];
            add_scaled(above, -at[0], column);
        }
    }
}

#[inline(always)]
fn turn_pair(v: &mut [f64], i: usize, (c, s): (f64, f64)) {
    let (x, y) = (v[i], v[i + 1]);
    (v[i], v[i + 1]) = (c * x + s * y, c * y - s * x);
}
