//! (λI + B_FᵀB_F)⁻¹ for the free samples F of each dimension.
//!
//! Woodbury: (v − B_Fᵀ(λI + B_FB_Fᵀ)⁻¹B_F v)/λ.

use super::kept::{KeptFactor, KeptGram};
use super::panel::{FactorPanel, GATHERED, from_blocks, in_blocks};
use super::{GramSystems, Preconditioner, change};
use crate::decision_set::Faces;
use crate::error::Error;
use crate::kernel::layout::BLOCK;
use crate::linalg::aligned::Aligned;
use ndarray::{Array2, ArrayView2, ArrayViewMut2};

pub(crate) struct Woodbury {
    factor: FactorPanel,
    systems: GramSystems,
    /// The samples that B was made of, and trace(K − BᵀB).
    pivots: Vec<usize>,
    trace_left: f64,
}

impl Woodbury {
    pub(crate) fn new(factor: FactorPanel, ridge: f64, n_dimensions: usize) -> Self {
        let (rank, n_samples) = (factor.rank(), factor.n_samples());
        let mut full = vec![0.0; rank * rank];
        let all: Vec<usize> = (0..n_samples).collect();
        factor.add_gram(&mut full, &all, 1.0);
        let systems = GramSystems::new(full, n_samples, ridge, n_dimensions);
        Self { factor, systems, pivots: Vec::new(), trace_left: 0.0 }
    }

    /// The same with the samples that B was made of, and what it leaves.
    pub(crate) fn of_pivots(self, pivots: Vec<usize>, trace_left: f64) -> Self {
        Self { pivots, trace_left, ..self }
    }

    /// Bytes for Gram matrices and factors, beside B itself.
    pub(crate) fn bytes(rank: usize, n_dimensions: usize) -> u64 {
        GramSystems::bytes(0, rank, n_dimensions) + (2 * rank * GATHERED * size_of::<f64>()) as u64
    }
}

impl Preconditioner for Woodbury {
    fn set_ridge(&mut self, ridge: f64) -> bool {
        self.systems.set_ridge(ridge);
        true
    }

    fn update(&mut self, faces: &Faces) -> Result<(), Error> {
        let factor = &self.factor;
        self.systems.follow(faces.mask()?, |changes| {
            for change in changes {
                factor.add_signed_gram(change.gram, &change.signs);
            }
            Ok(())
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
        let sums = self.factor.rows_times(&blocked, n_vectors);
        // (λI + B_FB_Fᵀ)⁻¹, dimension by dimension.
        let mut weights = self.factor.unstrip(&sums, n_vectors);
        self.systems.solve(dimensions, &mut weights);
        weights.mapv_inplace(|w| -w);
        let strips = self.factor.strip(weights.view());
        self.factor.add_columns_times(&strips, &mut blocked, n_vectors);
        let ridge = self.systems.ridge();
        for (c, mut row) in out.rows_mut().into_iter().enumerate() {
            let free = self.systems.free(dimensions[c]);
            for (i, value) in row.iter_mut().enumerate() {
                let y = blocked[i / BLOCK * block_size + c * BLOCK + i % BLOCK];
                *value = if free[i] { y / ridge } else { 0.0 };
            }
        }
        Ok(())
    }

    fn model_product(&self, v: ArrayView2<'_, f64>) -> Option<Array2<f64>> {
        let n_vectors = v.nrows();
        let sums = self.factor.rows_times(&in_blocks(v), n_vectors);
        let mut blocked = Aligned::zeros(v.ncols().div_ceil(BLOCK) * n_vectors * BLOCK);
        self.factor.add_columns_times(&sums, &mut blocked, n_vectors);
        Some(from_blocks(&blocked, v.dim()))
    }

    fn model_energies(&self, v: ArrayView2<'_, f64>) -> Option<Vec<f64>> {
        let own = self.factor.project(v);
        Some(own.rows().into_iter().map(|row| row.dot(&row)).collect())
    }

    /// K̃d is Bᵀw with (λI + B_FB_Fᵀ)w = Br.
    fn model_step(&self, residual: &Array2<f64>) -> Option<(Array2<f64>, Array2<f64>)> {
        let mut w = self.factor.project(residual.view());
        let dimensions: Vec<usize> = (0..residual.nrows()).collect();
        self.systems.solve(&dimensions, &mut w);
        let image = self.factor.expand(w.view());
        let free = |j: usize, i: usize| self.systems.free(j)[i];
        Some((change(residual, &image, self.systems.ridge(), free), image))
    }

    fn keep(&self) -> Option<KeptFactor> {
        let origin = (&self.pivots[..], self.trace_left);
        if self.pivots.len() != self.factor.rank() {
            return None;
        }
        KeptFactor::of(origin, self.systems.owners(), |j| {
            let gram = self.systems.gram(j)?;
            Some(KeptGram::new(self.systems.free(j).to_vec(), gram, self.systems.ridge()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;
    use crate::operator::{HostOperator, KernelOperator, OperatorKind, Precision};
    use crate::precond::{LowRank, RankLimits};
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
        let (b, rank, ridge) = (factor.gather(&all).unwrap(), factor.rank(), 0.01);
        let panel = factor.into_rows().err().unwrap();
        let mut preconditioner = Woodbury::new(panel, ridge, 3);
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
            // λd + K̃d is the residual where samples are free, λd elsewhere.
            let residual = Array2::from_shape_fn((3, n), |(j, i)| ((i * 3 + j) as f64).cos());
            let (d, image) = preconditioner.model_step(&residual).unwrap();
            let energies = preconditioner.model_energies(d.view()).unwrap();
            for j in 0..3 {
                let t: Vec<f64> =
                    (0..rank).map(|r| (0..n).map(|i| b[r * n + i] * d[[j, i]]).sum()).collect();
                let energy = t.iter().map(|t| t * t).sum::<f64>();
                assert!((energies[j] - energy).abs() < 1e-8 * energy);
                let mut off = 0.0;
                for i in 0..n {
                    let low: f64 = (0..rank).map(|r| b[r * n + i] * t[r]).sum();
                    let known = if free[[j, i]] { low } else { 0.0 };
                    off += (ridge * d[[j, i]] + known - residual[[j, i]]).powi(2);
                    off += (image[[j, i]] - low).powi(2);
                }
                let size = residual.row(j).dot(&residual.row(j));
                assert!(off.sqrt() < 1e-8 * size.sqrt(), "{j}: {off:e} of {size:e}");
            }
        }
    }
}
