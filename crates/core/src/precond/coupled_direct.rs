//! (RᵀKR + λI)⁻¹ itself, for polyhedra whose free directions are few enough to factorise.
//!
//! Sample i has as many rows as its face has free directions, and the block of two samples is
//! κ_ij R_iᵀR_j. The matrix follows the faces: each change of them is another factorisation. That
//! is dear beside a low-rank preconditioner and worth it where K has more directions above λ than
//! that has rows, so that conjugate gradients would not end.

use super::direct::GROWTH;
use super::{Preconditioner, values_too_large};
use crate::decision_set::{Face, Faces};
use crate::error::Error;
use crate::linalg::aligned::prefer_large_pages;
use crate::linalg::dense::{
    back_substitute_on_all_cores, cholesky_on_all_cores, cholesky_room,
    forward_substitute_on_all_cores,
};
use crate::linalg::shifted::cholesky_shifted;
use crate::operator::KernelOperator;
use ndarray::{ArrayView2, ArrayViewMut2};
use rayon::prelude::*;

/// Samples whose rows of K are asked for in one call.
const PANEL: usize = 240;

pub(crate) struct CoupledDirect<'a> {
    operator: &'a dyn KernelOperator,
    ridge: f64,
    dim: usize,
    /// R of every sample, n × free, column-major; empty before the first update.
    bases: Vec<Vec<f64>>,
    /// Where each sample's rows begin, and where the last one's end.
    starts: Vec<usize>,
    /// The Cholesky factor, column-major.
    factor: Vec<f64>,
}

impl<'a> CoupledDirect<'a> {
    /// With nothing factorised before there are faces.
    pub(crate) fn new(operator: &'a dyn KernelOperator, ridge: f64, dim: usize) -> Self {
        let (bases, starts, factor) = (Vec::new(), vec![0], Vec::new());
        Self { operator, ridge, dim, bases, starts, factor }
    }

    /// Bytes held at most where `n_free` directions of `n_samples` samples are free.
    pub(crate) fn bytes(n_samples: usize, n_free: usize, dim: usize) -> u64 {
        let numbers = n_free * n_free
            + cholesky_room(n_free)
            + PANEL.min(n_samples) * n_samples
            + n_samples * (dim * dim + 5);
        (numbers * size_of::<f64>()) as u64
    }

    fn n_rows(&self) -> usize {
        self.starts[self.starts.len() - 1]
    }

    fn factorise(&mut self) -> Result<(), Error> {
        let n = self.n_rows();
        // In the room of the last factor, or after it has gone.
        let mut matrix = std::mem::take(&mut self.factor);
        matrix.truncate(n * n);
        if matrix.len() < n * n {
            drop(matrix);
            matrix = vec![0.0; n * n];
            prefer_large_pages(&matrix);
        }
        let fill = |matrix: &mut [f64]| self.fill(matrix);
        let (room, cholesky) = ((&mut matrix[..], n), cholesky_on_all_cores);
        let found = cholesky_shifted(room, self.ridge, GROWTH, cholesky, fill)?;
        self.factor = matrix;
        found.map(|_| ()).ok_or_else(values_too_large)
    }

    /// Writes RᵀKR below the diagonal, column by column.
    fn fill(&self, matrix: &mut [f64]) -> Result<(), Error> {
        let (n_samples, n) = (self.bases.len(), self.n_rows());
        let mut values = vec![0.0; PANEL.min(n_samples) * n_samples];
        let mut rest = matrix;
        for first in (0..n_samples).step_by(PANEL) {
            let samples: Vec<usize> = (first..n_samples.min(first + PANEL)).collect();
            let width = n_samples - first;
            let values = &mut values[..samples.len() * width];
            self.operator.rows_into(&samples, first..n_samples, values)?;
            let mut parts = Vec::with_capacity(samples.len());
            for &i in &samples {
                let (own, later) = rest.split_at_mut((self.starts[i + 1] - self.starts[i]) * n);
                parts.push((i, own));
                rest = later;
            }
            parts.into_par_iter().zip(values.par_chunks(width)).for_each(|((i, own), row)| {
                self.fill_columns(i, own, |j| row[j - first]);
            });
        }
        Ok(())
    }

    /// The columns of sample `i`, from its own rows on; `kernel` has κ_ij.
    fn fill_columns(&self, i: usize, columns: &mut [f64], kernel: impl Fn(usize) -> f64) {
        let (dim, n) = (self.dim, self.n_rows());
        for (column, a) in columns.chunks_mut(n.max(1)).zip(self.bases[i].chunks(dim)) {
            let mut at = self.starts[i];
            for (j, basis) in self.bases.iter().enumerate().skip(i) {
                let value = kernel(j);
                for b in basis.chunks(dim) {
                    column[at] = value * a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
                    at += 1;
                }
            }
        }
    }
}

impl Preconditioner for CoupledDirect<'_> {
    fn update(&mut self, faces: &Faces) -> Result<(), Error> {
        let faces = faces.of_polyhedra()?;
        let same = |(basis, face): (&Vec<f64>, &Face)| *basis == face.basis;
        if self.bases.len() == faces.len() && self.bases.iter().zip(faces).all(same) {
            return Ok(());
        }
        self.bases = faces.iter().map(|face| face.basis.clone()).collect();
        self.starts = vec![0];
        for (i, basis) in self.bases.iter().enumerate() {
            self.starts.push(self.starts[i] + basis.len() / self.dim);
        }
        self.factorise()
    }

    fn apply(
        &self,
        systems: &[usize],
        v: ArrayView2<'_, f64>,
        mut out: ArrayViewMut2<'_, f64>,
    ) -> Result<(), Error> {
        let (n, dim) = (self.n_rows(), self.dim);
        out.fill(0.0);
        if n == 0 {
            return Ok(());
        }
        let places = |system: usize| {
            let of_sample = move |(i, ends): (usize, &[usize])| {
                (0..ends[1] - ends[0]).map(move |a| [system * dim + a, i])
            };
            self.starts.windows(2).enumerate().flat_map(of_sample)
        };
        let all = || (0..systems.len()).flat_map(places);
        let mut found: Vec<f64> = all().map(|at| v[at]).collect();
        forward_substitute_on_all_cores(&self.factor, n, &mut found, &vec![0; systems.len()]);
        back_substitute_on_all_cores(&self.factor, n, &mut found, systems.len());
        all().zip(found).for_each(|(at, value)| out[at] = value);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::Constraints;
    use crate::decision_set::{BoxLimits, SampleSets};
    use crate::kernel::Kernel;
    use crate::operator::{HostOperator, OperatorKind, Precision};
    use crate::qp::Metric;
    use ndarray::Array2;

    /// For faces with all, some and none of their directions free, two right-hand sides at once.
    #[test]
    fn inverts_the_matrix_of_the_free_directions_as_faces_change() {
        let (n, dim, ridge) = (300, 3, 1e-6);
        let features = Array2::from_shape_fn((n, 2), |(i, j)| ((i * (j + 2)) as f64 * 0.37).sin());
        let kernel = Kernel::Rbf { gamma: 6.0 };
        let operator =
            HostOperator::new(features.view(), kernel, Precision::F64, OperatorKind::Stored)
                .unwrap();
        let given = Constraints::simplex(dim, 1.0).unwrap();
        let sets = SampleSets::new(&BoxLimits::none(dim), Some(&given), n, |i| i).unwrap();
        let theta = ndarray::array![[2.0, 0.3, 0.0], [0.3, 1.5, 0.1], [0.0, 0.1, 1.1]];
        let metric = Metric::new(theta.view()).unwrap();
        let mut direct = CoupledDirect::new(&operator, ridge, dim);
        let mut last = None;
        for round in 0..3 {
            let desired = Array2::from_shape_fn((dim, n), |(j, i)| {
                ((i * 3 + j * 7 + round * (i % 4)) as f64 * 0.9).sin()
            });
            let (_, faces) = sets.decide(&metric, &desired, last.as_ref()).unwrap();
            direct.update(&faces).unwrap();
            assert_eq!(vec![direct.n_rows()], faces.n_free(dim));
            let systems = [0, 1];
            let mut c =
                Array2::from_shape_fn((2 * dim, n), |(j, i)| ((i + 2 * j) as f64 * 0.7).cos());
            faces.reduce(&systems, &mut c);
            let mut image = Array2::zeros(c.dim());
            operator.apply(faces.expand(2, &c).view(), image.view_mut()).unwrap();
            faces.reduce(&systems, &mut image);
            image.scaled_add(ridge, &c);
            let mut found = Array2::zeros(c.dim());
            direct.apply(&systems, image.view(), found.view_mut()).unwrap();
            let worst = (&found - &c).iter().fold(0.0, |m: f64, x| m.max(x.abs()));
            assert!(worst < 1e-6, "{worst:e}");
            last = Some(faces);
        }
    }
}
