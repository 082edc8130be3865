//! Means and mean squares of the features over all rows, by their weights.
#![allow(unsafe_code)]

use super::Expansion;
use crate::linalg::simd::{Arch, Isa, Lanes, Task, sum_lanes};
use ndarray::{ArrayView2, s};
use rayon::prelude::*;

/// Rows whose moments are one task's.
pub(super) const ROWS: usize = 512;

/// Some rows, evenly spread.
pub(super) fn spread(signals: ArrayView2<'_, f64>) -> ArrayView2<'_, f64> {
    let step = stride(signals.nrows());
    signals.slice_move(s![..;step, ..])
}

/// Of how many rows those have one.
pub(super) fn stride(n_rows: usize) -> usize {
    n_rows.div_ceil(ROWS).max(1)
}

/// What the number of rows a task sums is filled up to: a multiple of every instruction set's
/// vectors, two at a time.
const LANES: usize = 16;

/// Sums over some rows, as [`moments`] needs them, feature by feature.
struct Sums<'a> {
    /// What each feature is the product of: two columns.
    factors: &'a [(usize, usize)],
    /// One of `weights.len()`, a multiple of [`LANES`], after the other.
    columns: &'a [f64],
    weights: &'a [f64],
    about: &'a [f64],
    /// For each feature the sums of m − about and of its square.
    out: &'a mut [(f64, f64)],
}

impl Task for Sums<'_> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<A: Arch>(self) {
        let len = self.weights.len();
        assert!(len.is_multiple_of(LANES));
        let column = |c: usize| &self.columns[c * len..(c + 1) * len];
        for ((&(a, b), &about), out) in self.factors.iter().zip(self.about).zip(self.out) {
            let (a, b) = (column(a), column(b));
            // SAFETY: the caller vouches for the instruction set; two vectors from `at` on are
            // inside all three columns.
            unsafe {
                let about = A::F64::splat(about);
                let (mut first, mut second) = ([A::F64::splat(0.0); 2], [A::F64::splat(0.0); 2]);
                for at in (0..len).step_by(2 * A::F64::LANES) {
                    for v in 0..2 {
                        let load =
                            |from: &[f64]| A::F64::load(from.as_ptr().add(at + v * A::F64::LANES));
                        let off = A::F64::sub(A::F64::mul(load(a), load(b)), about);
                        let weighted = A::F64::mul(load(self.weights), off);
                        first[v] = A::F64::add(first[v], weighted);
                        second[v] = A::F64::fma(weighted, off, second[v]);
                    }
                }
                let total = |[a, b]: [_; 2]| sum_lanes::<A::F64>(A::F64::add(a, b));
                *out = (total(first), total(second));
            }
        }
    }
}

/// Means over all rows, by their weights, of (m − about) and of (m − about)², feature by feature.
pub(super) fn moments(
    expansion: Expansion,
    signals: ArrayView2<'_, f64>,
    weights: Option<&[f64]>,
    about: &[f64],
) -> (Vec<f64>, Vec<f64>) {
    let n = weights.map_or(signals.nrows() as f64, |weights| weights.iter().sum());
    let mut means = Means::new(expansion, signals.ncols(), n, about);
    means.add(signals, weights);
    means.finish()
}

/// The same of rows that come in pieces: the bits are those of all rows at once where every piece
/// but the last has a multiple of [`ROWS`].
pub(super) struct Means<'a> {
    factors: Vec<(usize, usize)>,
    /// What all rows weigh.
    n: f64,
    about: &'a [f64],
    both: Vec<(f64, f64)>,
}

impl<'a> Means<'a> {
    pub fn new(expansion: Expansion, signal_dim: usize, n: f64, about: &'a [f64]) -> Self {
        let factors = expansion.factors(signal_dim);
        let both = vec![(0.0, 0.0); factors.len()];
        Self { factors, n, about, both }
    }

    /// Adds rows that follow those added before.
    pub fn add(&mut self, signals: ArrayView2<'_, f64>, weights: Option<&[f64]>) {
        let n_rows = signals.nrows();
        let partial: Vec<Vec<(f64, f64)>> = (0..n_rows.div_ceil(ROWS))
            .into_par_iter()
            .map(|task| {
                let rows = task * ROWS..((task + 1) * ROWS).min(n_rows);
                let weights = weights.map(|weights| &weights[rows.clone()]);
                self.sums(signals.slice(s![rows, ..]), weights)
            })
            .collect();
        for part in partial {
            for ((first, second), (own, squares)) in self.both.iter_mut().zip(part) {
                *first += own / self.n;
                *second += squares / self.n;
            }
        }
    }

    fn sums(&self, rows: ArrayView2<'_, f64>, weights: Option<&[f64]>) -> Vec<(f64, f64)> {
        let len = rows.nrows().next_multiple_of(LANES);
        // Ones, then the signals. What fills up has no weight.
        let mut columns = vec![0.0; (1 + rows.ncols()) * len];
        columns[..len].fill(1.0);
        for (column, signal) in columns[len..].chunks_mut(len).zip(rows.columns()) {
            column.iter_mut().zip(signal).for_each(|(to, s)| *to = *s);
        }
        let mut own = vec![0.0; len];
        match weights {
            Some(weights) => own[..rows.nrows()].copy_from_slice(weights),
            None => own[..rows.nrows()].fill(1.0),
        }
        let mut out = vec![(0.0, 0.0); self.factors.len()];
        let (factors, about) = (&self.factors, self.about);
        let sums = Sums { factors, columns: &columns, weights: &own, about, out: &mut out };
        // SAFETY: the instruction set was detected on this machine, and the task has no contract of
        // its own.
        unsafe { Isa::detect().run(sums) }
        out
    }

    pub fn finish(self) -> (Vec<f64>, Vec<f64>) {
        self.both.into_iter().unzip()
    }
}
