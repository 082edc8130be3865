//! (λI + RᵀBᵀBR)⁻¹ for polyhedra, where the dimensions are one system.
//!
//! K ≈ BᵀB acts on every dimension alike, so with D_i = R_iR_iᵀ Woodbury's identity reads (v − RᵀBᵀ
//! S⁻¹ B R v)/λ, S = λI + Σ_i D_i ⊗ b_ib_iᵀ, a matrix of rank · dimensions rows. Its blocks Σ_i
//! (D_i)_jl b_ib_iᵀ follow the faces by the samples whose D_i changed.

use super::low_rank::LowRank;
use super::{LOW_RANK_GROWTH, Preconditioner, values_too_large};
use crate::decision_set::{Face, Faces};
use crate::error::Error;
use crate::linalg::dense::{add_product_rows, cholesky_on_all_cores, cholesky_solve};
use crate::linalg::shifted::cholesky_shifted;
use ndarray::{Array2, ArrayView2, ArrayViewMut2, s};
use rayon::prelude::*;

/// Samples whose columns of B are gathered at a time.
const GATHERED: usize = 1024;
/// Samples of one task in products with B.
const TASK: usize = 512;
/// What a list of its own costs beside its numbers, in doubles: pointer, length, capacity and the
/// allocator's part.
const ALLOCATION: usize = 5;

pub(crate) struct Coupled {
    /// B, sample by sample: n_samples × rank.
    factor: Vec<f64>,
    rank: usize,
    n_samples: usize,
    dim: usize,
    ridge: f64,
    faces: Faces,
    /// D_i of every sample, n × n each; empty before the first update.
    derivatives: Vec<Vec<f64>>,
    /// Σ_i (D_i)_jl b_ib_iᵀ for j ≥ l, rank × rank each, in the order (0,0), (1,0), (1,1), (2,0) …
    blocks: Vec<Vec<f64>>,
    /// Cholesky factor of S, column-major.
    cholesky: Vec<f64>,
}

impl Coupled {
    pub(crate) fn new(factor: LowRank, ridge: f64, dim: usize) -> Result<Self, Error> {
        let (rank, n_samples) = (factor.rank(), factor.n_samples());
        let mut by_sample = vec![0.0; n_samples * rank];
        for first in (0..n_samples).step_by(GATHERED) {
            let samples: Vec<usize> = (first..(first + GATHERED).min(n_samples)).collect();
            let rows = factor.gather(&samples)?;
            for (at, &i) in samples.iter().enumerate() {
                for r in 0..rank {
                    by_sample[i * rank + r] = rows[r * samples.len() + at];
                }
            }
        }
        Ok(Self {
            factor: by_sample,
            rank,
            n_samples,
            dim,
            ridge,
            faces: Faces::Polyhedral(Vec::new()),
            derivatives: Vec::new(),
            blocks: vec![vec![0.0; rank * rank]; dim * (dim + 1) / 2],
            cholesky: Vec::new(),
        })
    }

    /// Bytes held at most: B in f64 and, while that is made, in f32; blocks and factor of S; D_i
    /// before and after an update; the columns of B that the tasks of an update gather.
    pub(crate) fn bytes(n_samples: usize, rank: usize, dim: usize) -> u64 {
        let pairs = dim * (dim + 1) / 2;
        let tasks = 1 + pairs.min(rayon::current_num_threads());
        let doubles = n_samples * rank
            + pairs * rank * rank
            + (rank * dim).pow(2)
            + tasks * GATHERED.min(n_samples) * rank
            + 2 * n_samples * (dim * dim + ALLOCATION);
        LowRank::bytes(n_samples, rank) + (doubles * size_of::<f64>()) as u64
    }

    /// Adds Σ (D_i − old D_i) ⊗ b_ib_iᵀ over the samples whose face is new.
    fn follow(&mut self, faces: &[Face]) -> bool {
        let (dim, rank) = (self.dim, self.rank);
        let new: Vec<Vec<f64>> = faces.par_iter().map(|face| face.derivative(dim)).collect();
        let old = std::mem::take(&mut self.derivatives);
        let changed: Vec<usize> =
            (0..new.len()).filter(|&i| old.get(i).is_none_or(|old| *old != new[i])).collect();
        let pairs: Vec<(usize, usize)> =
            (0..dim).flat_map(|j| (0..=j).map(move |l| (j, l))).collect();
        for samples in changed.chunks(GATHERED) {
            let m = samples.len();
            let gathered: Vec<f64> = samples
                .iter()
                .flat_map(|&i| self.factor[i * rank..(i + 1) * rank].to_vec())
                .collect();
            self.blocks.par_iter_mut().zip(&pairs).for_each(|(block, &(j, l))| {
                let at = j * dim + l;
                let weights: Vec<f64> = samples
                    .iter()
                    .map(|&i| new[i][at] - old.get(i).map_or(0.0, |old| old[at]))
                    .collect();
                if weights.iter().all(|w| *w == 0.0) {
                    return;
                }
                // (rank × m) · (m × rank), the left factor transposed and weighted.
                let mut left = vec![0.0; rank * m];
                for (s, (row, w)) in gathered.chunks(rank.max(1)).zip(&weights).enumerate() {
                    for (r, b) in row.iter().enumerate() {
                        left[r * m + s] = w * b;
                    }
                }
                add_product_rows(block, 1.0, &left, &gathered, (rank, rank, m));
            });
        }
        self.derivatives = new;
        !changed.is_empty()
    }

    fn factorise(&mut self) -> Result<(), Error> {
        let (rank, rows) = (self.rank, self.rank * self.dim);
        let fill = |matrix: &mut [f64]| {
            for j in 0..self.dim {
                for l in 0..=j {
                    let block = &self.blocks[j * (j + 1) / 2 + l];
                    for c in 0..rank {
                        for r in 0..rank {
                            // Column l·rank + c, row j·rank + r.
                            matrix[(l * rank + c) * rows + j * rank + r] = block[r * rank + c];
                        }
                    }
                }
            }
            Ok::<(), Error>(())
        };
        // In the room of the last factor.
        let mut matrix = std::mem::take(&mut self.cholesky);
        matrix.clear();
        matrix.resize(rows * rows, 0.0);
        let (room, cholesky) = ((&mut matrix[..], rows), cholesky_on_all_cores);
        let found = cholesky_shifted(room, self.ridge, LOW_RANK_GROWTH, cholesky, fill)?;
        self.cholesky = matrix;
        found.map(|_| ()).ok_or_else(values_too_large)
    }
}

impl Preconditioner for Coupled {
    fn set_ridge(&mut self, ridge: f64) -> bool {
        if ridge != self.ridge {
            self.ridge = ridge;
            self.cholesky.clear();
        }
        true
    }

    fn update(&mut self, faces: &Faces) -> Result<(), Error> {
        if self.follow(faces.of_polyhedra()?) || self.cholesky.is_empty() {
            self.factorise()?;
        }
        self.faces = faces.clone();
        Ok(())
    }

    fn apply(
        &self,
        systems: &[usize],
        v: ArrayView2<'_, f64>,
        mut out: ArrayViewMut2<'_, f64>,
    ) -> Result<(), Error> {
        let rank = self.rank;
        let coordinates = v.to_owned();
        let w = self.faces.expand(systems.len(), &coordinates);
        let dim = v.nrows();
        // B R v, dimension by dimension; tasks of fixed size, added first to last.
        let tasks: Vec<(usize, usize)> = (0..self.n_samples)
            .step_by(TASK)
            .map(|first| (first, TASK.min(self.n_samples - first)))
            .collect();
        let parts: Vec<Vec<f64>> = tasks
            .par_iter()
            .map(|&(first, m)| {
                let own: Vec<f64> = w.slice(s![.., first..first + m]).iter().copied().collect();
                let b = &self.factor[first * rank..(first + m) * rank];
                let mut sums = vec![0.0; dim * rank];
                add_product_rows(&mut sums, 1.0, &own, b, (dim, rank, m));
                sums
            })
            .collect();
        let mut t = vec![0.0; dim * rank];
        for part in parts {
            t.iter_mut().zip(part).for_each(|(t, p)| *t += p);
        }
        t.par_chunks_mut((self.dim * rank).max(1))
            .for_each(|t| cholesky_solve(&self.cholesky, self.dim * rank, t));
        // Bᵀt: rank × dimensions, as the product wants it.
        let mut columns = vec![0.0; rank * dim];
        for (j, t) in t.chunks(rank.max(1)).enumerate() {
            t.iter().enumerate().for_each(|(r, t)| columns[r * dim + j] = *t);
        }
        let parts: Vec<Vec<f64>> = tasks
            .par_iter()
            .map(|&(first, m)| {
                let b = &self.factor[first * rank..(first + m) * rank];
                let mut own = vec![0.0; m * dim];
                add_product_rows(&mut own, 1.0, b, &columns, (m, dim, rank));
                own
            })
            .collect();
        let mut back = Array2::zeros(v.dim());
        for (&(first, m), part) in tasks.iter().zip(parts) {
            let part = ArrayView2::from_shape((m, dim), &part).expect("m rows of dim numbers");
            back.slice_mut(s![.., first..first + m]).assign(&part.t());
        }
        self.faces.reduce(systems, &mut back);
        out.assign(&((&coordinates - &back) / self.ridge));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::RankLimits;
    use super::*;
    use crate::dataset::Constraints;
    use crate::decision_set::{BoxLimits, SampleSets};
    use crate::kernel::Kernel;
    use crate::operator::{HostOperator, KernelOperator, OperatorKind, Precision};
    use crate::qp::Metric;
    use crate::random::stream;

    /// With B of full rank it inverts RᵀKR + λI, as faces change.
    #[test]
    fn inverts_the_matrix_of_the_free_directions() {
        let (n, dim, ridge) = (90, 3, 0.05);
        let features = Array2::from_shape_fn((n, 2), |(i, j)| ((i * (j + 2)) as f64 * 0.37).sin());
        let kernel = Kernel::Rbf { gamma: 6.0 };
        let operator =
            HostOperator::new(features.view(), kernel, Precision::F64, OperatorKind::Stored)
                .unwrap();
        let limits = RankLimits { max_rank: n, enough_trace: 0.0 };
        let factor = LowRank::build(&operator, limits, &mut stream(3, "pivots"), || true).unwrap();
        let given = Constraints::simplex(dim, 1.0).unwrap();
        let sets = SampleSets::new(&BoxLimits::none(dim), Some(&given), n, |i| i).unwrap();
        let theta = ndarray::array![[2.0, 0.3, 0.0], [0.3, 1.5, 0.1], [0.0, 0.1, 1.1]];
        let metric = Metric::new(theta.view()).unwrap();
        let mut preconditioner = Coupled::new(factor, ridge, dim).unwrap();
        let mut last = None;
        for round in 0..3 {
            let desired = Array2::from_shape_fn((dim, n), |(j, i)| {
                ((i * 3 + j * 7 + round * (i % 4)) as f64 * 0.9).sin()
            });
            let (_, faces) = sets.decide(&metric, &desired, last.as_ref()).unwrap();
            preconditioner.update(&faces).unwrap();
            let mut c = Array2::from_shape_fn((dim, n), |(j, i)| ((i + 2 * j) as f64 * 0.7).cos());
            faces.reduce(&[0], &mut c);
            let mut image = Array2::zeros((dim, n));
            operator.apply(faces.expand(1, &c).view(), image.view_mut()).unwrap();
            faces.reduce(&[0], &mut image);
            image.scaled_add(ridge, &c);
            let mut found = Array2::zeros((dim, n));
            preconditioner.apply(&[0], image.view(), found.view_mut()).unwrap();
            let worst = (&found - &c).iter().fold(0.0, |m: f64, x| m.max(x.abs()));
            // B is rounded to f32.
            assert!(worst < 1e-4, "{worst:e}");
            last = Some(faces);
        }
    }
}
