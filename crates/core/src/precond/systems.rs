//! λI + B_FB_Fᵀ for the free samples F of each dimension, whoever has B.
//!
//! Enters: which samples are free, and whoever adds b_i b_iᵀ for samples that changed sides.
//! Leaves: solutions with these matrices, rank × rank. They follow F by the samples that switched,
//! a few per cent of all from the third Newton step on; dimensions with the same free samples share
//! one.

use super::{LOW_RANK_GROWTH, values_too_large};
use crate::error::Error;
use crate::linalg::dense::{cholesky, cholesky_solve};
use crate::linalg::shifted::cholesky_shifted;
use ndarray::{Array2, ArrayView1, ArrayView2};
use rayon::prelude::*;

/// The matrices in the middle of Woodbury's identity.
pub struct GramSystems {
    rank: usize,
    ridge: f64,
    /// BBᵀ over all samples, lower triangle.
    full: Vec<f64>,
    dimensions: Vec<Dimension>,
}

struct Dimension {
    free: Vec<bool>,
    /// B_FB_Fᵀ and the Cholesky factor of λI + B_FB_Fᵀ; empty where an earlier dimension has the
    /// same free samples.
    gram: Vec<f64>,
    cholesky: Vec<f64>,
    same_as: usize,
}

/// What a Gram matrix is to become.
pub struct GramChange<'a> {
    /// Lower triangle, column-major, rank × rank.
    pub gram: &'a mut [f64],
    /// One a sample: 1 adds b_i b_iᵀ, −1 takes it away, 0 leaves it.
    pub signs: Vec<i8>,
}

impl GramSystems {
    /// `full` is BBᵀ over all samples, which are all free at first.
    pub fn new(full: Vec<f64>, n_samples: usize, ridge: f64, n_dimensions: usize) -> Self {
        let dimension = |same_as| Dimension {
            free: vec![true; n_samples],
            gram: Vec::new(),
            cholesky: Vec::new(),
            same_as,
        };
        let dimensions = (0..n_dimensions).map(dimension).collect();
        Self { rank: full.len().isqrt(), ridge, full, dimensions }
    }

    /// Bytes of the matrices and of what is known of each sample.
    pub fn bytes(n_samples: usize, rank: usize, n_dimensions: usize) -> u64 {
        let matrices = (1 + 2 * n_dimensions) * rank * rank * size_of::<f64>();
        (matrices + 2 * n_dimensions * n_samples) as u64
    }

    /// λ, as it was last set.
    pub fn ridge(&self) -> f64 {
        self.ridge
    }

    /// Takes another λ from the next [`follow`](Self::follow) on.
    pub fn set_ridge(&mut self, ridge: f64) {
        if ridge != self.ridge {
            self.ridge = ridge;
            self.dimensions.iter_mut().for_each(|d| d.cholesky.clear());
        }
    }

    /// The free samples of a dimension.
    pub fn free(&self, dimension: usize) -> &[bool] {
        &self.dimensions[dimension].free
    }

    /// The dimension whose matrix each has.
    pub(super) fn owners(&self) -> impl Iterator<Item = usize> {
        self.dimensions.iter().map(|d| d.same_as)
    }

    /// The matrix of a dimension that has its own, lower triangle; none before it was made.
    pub(super) fn gram(&self, dimension: usize) -> Option<&[f64]> {
        Some(&self.dimensions[dimension].gram[..]).filter(|gram| !gram.is_empty())
    }

    /// Follows other free samples, n_dimensions × n_samples: `add` makes all changes at once.
    pub fn follow(
        &mut self,
        free: ArrayView2<'_, bool>,
        add: impl FnOnce(Vec<GramChange<'_>>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let n_dimensions = self.dimensions.len();
        let signs: Vec<Option<Vec<i8>>> = (0..n_dimensions).map(|j| self.begin(j, free)).collect();
        let changes = self.dimensions.iter_mut().zip(signs);
        let changes = changes
            .filter_map(|(d, signs)| signs.map(|signs| GramChange { gram: &mut d.gram, signs }));
        let changes: Vec<GramChange<'_>> = changes.collect();
        if !changes.is_empty() {
            add(changes)?;
        }
        self.factorise()
    }

    /// Gives dimension j its free samples and the nearest of three starting points for their
    /// matrix: its last one, the full one, zero. What is left to be added to that; none where
    /// nothing is.
    fn begin(&mut self, j: usize, free: ArrayView2<'_, bool>) -> Option<Vec<i8>> {
        let now = free.row(j).to_vec();
        let twin = (0..j).find(|&i| self.dimensions[i].same_as == i && free.row(i) == free.row(j));
        let dimension = &mut self.dimensions[j];
        if let Some(same_as) = twin {
            *dimension = Dimension { free: now, gram: Vec::new(), cholesky: Vec::new(), same_as };
            return None;
        }
        let was_here = dimension.same_as == j && !dimension.gram.is_empty();
        if was_here && dimension.free == now && !dimension.cholesky.is_empty() {
            return None;
        }
        let last = std::mem::replace(&mut dimension.free, now);
        let now = ArrayView1::from(&dimension.free);
        let n_free = now.iter().filter(|free| **free).count();
        let n_bound = now.len() - n_free;
        let switched = last.iter().zip(now).filter(|(was, is)| was != is).count();
        let n_switched = if was_here { switched } else { n_bound };
        dimension.same_as = j;
        // Marks the factor as out of date.
        dimension.cholesky.clear();
        let signs: Vec<i8> = if n_free < n_switched && n_free < n_bound {
            dimension.gram.clear();
            dimension.gram.resize(self.full.len(), 0.0);
            now.iter().map(|is| i8::from(*is)).collect()
        } else if n_bound < n_switched || !was_here {
            dimension.gram.clone_from(&self.full);
            now.iter().map(|is| i8::from(*is) - 1).collect()
        } else {
            last.iter().zip(now).map(|(was, is)| i8::from(*is) - i8::from(*was)).collect()
        };
        (self.rank > 0 && signs.iter().any(|sign| *sign != 0)).then_some(signs)
    }

    fn factorise(&mut self) -> Result<(), Error> {
        let (rank, ridge) = (self.rank, self.ridge);
        self.dimensions
            .par_iter_mut()
            .enumerate()
            .filter(|(j, d)| d.same_as == *j && d.cholesky.is_empty())
            .try_for_each(|(_, d)| {
                // Rounding in the updates is far below λ unless k is extreme.
                d.cholesky.resize(rank * rank, 0.0);
                let gram = &d.gram;
                let fill = |matrix: &mut [f64]| {
                    matrix.copy_from_slice(gram);
                    Ok::<(), Error>(())
                };
                let room = (&mut d.cholesky[..], rank);
                let found = cholesky_shifted(room, ridge, LOW_RANK_GROWTH, cholesky, fill)?;
                found.map(|_| ()).ok_or_else(values_too_large)
            })
    }

    /// t ← (λI + B_FB_Fᵀ)⁻¹t with the matrix of each dimension listed, a row of `t` each.
    pub fn solve(&self, dimensions: &[usize], t: &mut Array2<f64>) {
        let rows = t.as_slice_mut().expect("in standard layout");
        rows.par_chunks_mut(self.rank.max(1)).zip(dimensions).for_each(|(t, &j)| {
            let owner = self.dimensions[j].same_as;
            cholesky_solve(&self.dimensions[owner].cholesky, self.rank, t);
        });
    }
}
