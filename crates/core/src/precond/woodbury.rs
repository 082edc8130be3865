//! (λI + B_FᵀB_F)⁻¹ for the free samples F of each dimension.
//!
//! Woodbury: (v − B_Fᵀ(λI + B_FB_Fᵀ)⁻¹B_F v)/λ. The Gram matrices B_FB_Fᵀ follow F by the samples
//! that switched sides, a few per cent of all from the third Newton step on; dimensions with the
//! same free samples share one.

use super::low_rank::LowRank;
use super::{LOW_RANK_GROWTH, Preconditioner, values_too_large};
use crate::decision_set::Faces;
use crate::error::Error;
use crate::kernel::layout::{BLOCK, STRIP};
use crate::linalg::aligned::Aligned;
use crate::linalg::dense::{add_gram_columns, cholesky, cholesky_solve};
use crate::linalg::shifted::cholesky_shifted;
use crate::linalg::simd::Isa;
use crate::operator::{accumulate_columns, accumulate_rows};
use ndarray::{Array2, ArrayView2, ArrayViewMut2};
use rayon::prelude::*;

/// Samples whose columns of B are gathered at a time.
const GATHERED: usize = 1024;
/// Columns of a Gram matrix that are one task's.
const GRAM_COLUMNS: usize = 64;

pub(crate) struct Woodbury {
    factor: LowRank,
    ridge: f64,
    /// BBᵀ over all samples, lower triangle.
    full: Vec<f64>,
    dimensions: Vec<Dimension>,
    isa: Isa,
}

struct Dimension {
    free: Vec<bool>,
    /// B_FB_Fᵀ and the Cholesky factor of λI + B_FB_Fᵀ; empty where an earlier dimension has the
    /// same free samples.
    gram: Vec<f64>,
    cholesky: Vec<f64>,
    same_as: usize,
}

impl Woodbury {
    pub(crate) fn new(factor: LowRank, ridge: f64, n_dimensions: usize) -> Self {
        let mut full = vec![0.0; factor.rank() * factor.rank()];
        let all: Vec<usize> = (0..factor.n_samples()).collect();
        update_gram(&mut full, &factor, &all, 1.0);
        let dimensions = (0..n_dimensions)
            .map(|same_as| Dimension {
                free: vec![true; factor.n_samples()],
                gram: Vec::new(),
                cholesky: Vec::new(),
                same_as,
            })
            .collect();
        Self { factor, ridge, full, dimensions, isa: Isa::detect() }
    }

    /// B v, each factor block in its own task, its samples in order; [factor
    /// block][strip][c·BLOCK + r].
    fn rows_times(&self, blocked: &[f64], n_vectors: usize) -> Vec<Aligned<f64>> {
        let block_size = n_vectors * BLOCK;
        let blocks = self.factor.blocks().par_iter();
        blocks
            .map(|factor| {
                let n_strips = factor.n_rows.div_ceil(STRIP);
                let mut sums = Aligned::zeros(n_strips * block_size);
                for (block, v) in blocked.chunks(block_size).enumerate() {
                    for (strip, sums) in sums.chunks_mut(block_size).enumerate() {
                        let first = strip * STRIP;
                        let n_rows = STRIP.min(factor.n_rows - first);
                        let values = &factor.block(block)[first * BLOCK..];
                        accumulate_rows(self.isa, values, n_rows, BLOCK, v, sums, n_vectors);
                    }
                }
                sums
            })
            .collect()
    }

    /// blocked += Bᵀw, for w as [`Self::rows_times`] leaves it.
    fn add_columns_times(&self, w: &[Aligned<f64>], blocked: &mut [f64], n_vectors: usize) {
        let block_size = n_vectors * BLOCK;
        blocked.par_chunks_mut(block_size).enumerate().for_each(|(block, y)| {
            for (factor, strips) in self.factor.blocks().iter().zip(w) {
                for (strip, w) in strips.chunks(block_size).enumerate() {
                    let n_rows = STRIP.min(factor.n_rows - strip * STRIP);
                    let values = &factor.block(block)[strip * STRIP * BLOCK..];
                    accumulate_columns(self.isa, values, n_rows, BLOCK, w, y, n_vectors);
                }
            }
        });
    }

    /// Bytes for Gram matrices and factors, beside B itself.
    pub(crate) fn bytes(rank: usize, n_dimensions: usize) -> u64 {
        ((1 + 2 * n_dimensions) * rank * rank * size_of::<f64>()
            + 2 * rank * GATHERED * size_of::<f64>()) as u64
    }
}

impl Preconditioner for Woodbury {
    fn set_ridge(&mut self, ridge: f64) -> bool {
        if ridge != self.ridge {
            self.ridge = ridge;
            self.dimensions.iter_mut().for_each(|d| d.cholesky.clear());
        }
        true
    }

    fn update(&mut self, faces: &Faces) -> Result<(), Error> {
        let free = faces.mask()?;
        let rank = self.factor.rank();
        for j in 0..self.dimensions.len() {
            let now = free.row(j).to_vec();
            let twin =
                (0..j).find(|&i| self.dimensions[i].same_as == i && free.row(i) == free.row(j));
            let dimension = &mut self.dimensions[j];
            if let Some(twin) = twin {
                *dimension =
                    Dimension { free: now, gram: Vec::new(), cholesky: Vec::new(), same_as: twin };
                continue;
            }
            let was_here = dimension.same_as == j && !dimension.gram.is_empty();
            if was_here && dimension.free == now && !dimension.cholesky.is_empty() {
                continue;
            }
            let indices = |keep: &dyn Fn(usize) -> bool| -> Vec<usize> {
                (0..now.len()).filter(|&i| keep(i)).collect()
            };
            let bound = indices(&|i| !now[i]);
            // The nearest of three starting points: the last Gram matrix, the full one, zero.
            let (mut gram, joined, left) = if was_here {
                let joined = indices(&|i| now[i] && !dimension.free[i]);
                let left = indices(&|i| !now[i] && dimension.free[i]);
                (std::mem::take(&mut dimension.gram), joined, left)
            } else {
                (self.full.clone(), Vec::new(), bound.clone())
            };
            let n_free = now.len() - bound.len();
            let n_switched = joined.len() + left.len();
            if n_free < n_switched && n_free < bound.len() {
                gram.fill(0.0);
                update_gram(&mut gram, &self.factor, &indices(&|i| now[i]), 1.0);
            } else if bound.len() < n_switched {
                gram.copy_from_slice(&self.full);
                update_gram(&mut gram, &self.factor, &bound, -1.0);
            } else {
                update_gram(&mut gram, &self.factor, &joined, 1.0);
                update_gram(&mut gram, &self.factor, &left, -1.0);
            }
            dimension.free = now;
            dimension.gram = gram;
            dimension.same_as = j;
            // Marks the factor as out of date.
            dimension.cholesky.clear();
        }
        let ridge = self.ridge;
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

    fn apply(
        &self,
        dimensions: &[usize],
        v: ArrayView2<'_, f64>,
        mut out: ArrayViewMut2<'_, f64>,
    ) -> Result<(), Error> {
        let n_vectors = v.nrows();
        let block_size = n_vectors * BLOCK;
        let mut blocked = in_blocks(v);
        let sums = self.rows_times(&blocked, n_vectors);
        // (λI + B_FB_Fᵀ)⁻¹, dimension by dimension.
        let rank = self.factor.rank();
        let weights: Vec<Vec<f64>> = dimensions
            .par_iter()
            .enumerate()
            .map(|(c, &j)| {
                let mut t = Vec::with_capacity(rank);
                for (factor, sums) in self.factor.blocks().iter().zip(&sums) {
                    for r in 0..factor.n_rows {
                        t.push(sums[r / STRIP * block_size + c * BLOCK + r % STRIP]);
                    }
                }
                let owner = self.dimensions[j].same_as;
                cholesky_solve(&self.dimensions[owner].cholesky, rank, &mut t);
                t
            })
            .collect();
        let mut strips = sums;
        let mut first = 0;
        for (factor, strips) in self.factor.blocks().iter().zip(&mut strips) {
            for r in 0..factor.n_rows {
                for (c, w) in weights.iter().enumerate() {
                    strips[r / STRIP * block_size + c * BLOCK + r % STRIP] = -w[first + r];
                }
            }
            first += factor.n_rows;
        }
        self.add_columns_times(&strips, &mut blocked, n_vectors);
        for (c, mut row) in out.rows_mut().into_iter().enumerate() {
            let free = &self.dimensions[dimensions[c]].free;
            for (i, value) in row.iter_mut().enumerate() {
                let y = blocked[i / BLOCK * block_size + c * BLOCK + i % BLOCK];
                *value = if free[i] { y / self.ridge } else { 0.0 };
            }
        }
        Ok(())
    }

    fn model_product(&self, v: ArrayView2<'_, f64>) -> Option<Array2<f64>> {
        let n_vectors = v.nrows();
        let sums = self.rows_times(&in_blocks(v), n_vectors);
        let block_size = n_vectors * BLOCK;
        let mut blocked = Aligned::zeros(v.ncols().div_ceil(BLOCK) * block_size);
        self.add_columns_times(&sums, &mut blocked, n_vectors);
        Some(Array2::from_shape_fn(v.dim(), |(c, i)| {
            blocked[i / BLOCK * block_size + c * BLOCK + i % BLOCK]
        }))
    }
}

/// Vectors with the samples of a block side by side: value (c, i) at (i / BLOCK · n_vectors + c) ·
/// BLOCK + i % BLOCK.
fn in_blocks(v: ArrayView2<'_, f64>) -> Aligned<f64> {
    let (n_vectors, n_samples) = v.dim();
    let block_size = n_vectors * BLOCK;
    let mut blocked = Aligned::zeros(n_samples.div_ceil(BLOCK) * block_size);
    for (c, row) in v.rows().into_iter().enumerate() {
        for (i, value) in row.iter().enumerate() {
            blocked[i / BLOCK * block_size + c * BLOCK + i % BLOCK] = *value;
        }
    }
    blocked
}

/// gram += sign · B_S B_Sᵀ over `samples`, lower triangle.
fn update_gram(gram: &mut [f64], factor: &LowRank, samples: &[usize], sign: f64) {
    let rank = factor.rank();
    if rank == 0 {
        return;
    }
    for samples in samples.chunks(GATHERED) {
        let gathered = factor.gather(samples);
        gram.par_chunks_mut(rank * GRAM_COLUMNS).enumerate().for_each(|(at, columns)| {
            let from = at * GRAM_COLUMNS;
            let to = from + columns.len() / rank;
            add_gram_columns(columns, (from, to), sign, &gathered, (rank, samples.len()));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;
    use crate::operator::{HostOperator, KernelOperator, OperatorKind, Precision};
    use crate::precond::RankLimits;
    use crate::random::stream;

    type Rule = fn(usize) -> bool;

    #[test]
    fn inverts_the_low_rank_matrix_on_the_free_samples_as_they_change() {
        let n = 400;
        let features = Array2::from_shape_fn((n, 2), |(i, j)| ((i * (j + 2)) as f64 * 0.37).sin());
        let kernel = Kernel::Rbf { gamma: 2.0 };
        let operator =
            HostOperator::new(features.view(), kernel, Precision::F64, OperatorKind::Tiled)
                .unwrap();
        assert_eq!(operator.n_samples(), n);
        let limits = RankLimits { max_rank: 150, enough_trace: 0.0 };
        let factor = LowRank::build(&operator, limits, &mut stream(3, "t"), || true).unwrap();
        let all: Vec<usize> = (0..n).collect();
        let (b, rank, ridge) = (factor.gather(&all), factor.rank(), 0.01);
        let mut preconditioner = Woodbury::new(factor, ridge, 3);
        // Dimension 2 starts as a twin of 0 and leaves it; 1 loses many, then few, then gains.
        let rules: [[Rule; 3]; 4] = [
            [|_| true, |_| true, |_| true],
            [|i| i % 3 > 0, |i| i > 350, |i| i % 3 > 0],
            [|i| i % 3 > 0, |i| i > 340, |i| i % 4 > 0],
            [|_| false, |i| i > 10, |i| i % 4 > 0],
        ];
        for rule in rules {
            let free = Array2::from_shape_fn((3, n), |(j, i)| rule[j](i));
            preconditioner.update(&Faces::Box(free.clone())).unwrap();
            let w = Array2::from_shape_fn((3, n), |(j, i)| {
                if free[[j, i]] { ((i + j) as f64).sin() } else { 0.0 }
            });
            let mut v = Array2::zeros((3, n));
            for j in 0..3 {
                let t: Vec<f64> =
                    (0..rank).map(|r| (0..n).map(|i| b[r * n + i] * w[[j, i]]).sum()).collect();
                for i in (0..n).filter(|&i| free[[j, i]]) {
                    let low: f64 = (0..rank).map(|r| b[r * n + i] * t[r]).sum();
                    v[[j, i]] = ridge * w[[j, i]] + low;
                }
            }
            let mut out = Array2::zeros((3, n));
            preconditioner.apply(&[0, 1, 2], v.view(), out.view_mut()).unwrap();
            let worst = (&out - &w).iter().fold(0.0, |m: f64, x| m.max(x.abs()));
            assert!(worst < 1e-8, "{worst:e}");
        }
    }
}
