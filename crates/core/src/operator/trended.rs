//! The matrix of a kernel with a trend: what another operator multiplies with, and w ZZᵀ + c 11ᵀ
//! beside it, in f64 and from its d + 1 numbers a sample.
//!
//! Enters: an operator for the rest of the kernel, on whatever machine, and features. Leaves: an
//! operator for the sum. A product pays next to nothing for the trend, and the rest may be held in
//! sixteen bits or iterated in f32 as if it were alone; rows and blocks are longer by d numbers a
//! value, in f64, which is what a fit with a trend takes longer.

use super::{KernelOperator, RemoteFactor};
use crate::error::Error;
use crate::kernel::trend::Trend;
use crate::linalg::sums::UNIT;
use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// Samples whose part of a sum is formed by one thread: fixed, so that bits do not depend on how
/// many there are.
const CHUNK: usize = 512;

/// An operator with a trend beside it.
pub(crate) struct Trended {
    inner: Arc<dyn KernelOperator>,
    /// Whether this is the exact product of `inner`.
    is_exact: bool,
    /// The same with the exact product; none where this is exact already.
    exact: Option<Box<Trended>>,
    trend: Arc<Linear>,
}

/// The trend's own matrix.
struct Linear {
    trend: Trend,
    /// Z, n_samples × d.
    features: Array2<f64>,
}

impl Trended {
    /// `features`: those of all samples, as the kernel sees them.
    pub(crate) fn new(
        inner: Box<dyn KernelOperator>,
        trend: Trend,
        features: ArrayView2<'_, f64>,
    ) -> Self {
        let features = trend.features(features);
        Self::of(Arc::from(inner), Arc::new(Linear { trend, features }))
    }

    fn of(inner: Arc<dyn KernelOperator>, trend: Arc<Linear>) -> Self {
        let exact = (!inner.is_exact()).then(|| {
            let (inner, trend) = (Arc::clone(&inner), Arc::clone(&trend));
            Box::new(Self { inner, is_exact: true, exact: None, trend })
        });
        Self { inner, is_exact: false, exact, trend }
    }

    fn operator(&self) -> &dyn KernelOperator {
        if self.is_exact { self.inner.exact() } else { &*self.inner }
    }

    /// Bytes of Z.
    pub(crate) fn bytes(n_samples: usize, n_features: usize) -> u64 {
        (n_samples * n_features * size_of::<f64>()) as u64
    }
}

impl Linear {
    fn row(&self, i: usize) -> &[f64] {
        let d = self.features.ncols();
        &self.features.as_slice().expect("in standard layout")[i * d..(i + 1) * d]
    }

    /// w VZ and c V1 for the samples that columns of `v` stand for.
    fn moments(&self, samples: Option<&[usize]>, v: ArrayView2<'_, f64>) -> Moments {
        let (n_vectors, n, d) = (v.nrows(), v.ncols(), self.features.ncols());
        let parts: Vec<Moments> = (0..n.div_ceil(CHUNK))
            .into_par_iter()
            .map(|chunk| {
                let mut part = Moments::zeros(n_vectors, d);
                for at in chunk * CHUNK..n.min((chunk + 1) * CHUNK) {
                    let z = self.row(samples.map_or(at, |samples| samples[at]));
                    for c in 0..n_vectors {
                        part.add(c, v[[c, at]], z);
                    }
                }
                part
            })
            .collect();
        let mut sum = Moments::zeros(n_vectors, d);
        for part in parts {
            sum.slopes.iter_mut().zip(&part.slopes).for_each(|(a, b)| *a += b);
            sum.levels.iter_mut().zip(&part.levels).for_each(|(a, b)| *a += b);
        }
        sum.slopes.iter_mut().for_each(|s| *s *= self.trend.slope);
        sum.levels.iter_mut().for_each(|s| *s *= self.trend.level);
        sum
    }

    /// out += what the trend adds to a product with these moments.
    fn add(&self, moments: &Moments, mut out: ArrayViewMut2<'_, f64>) {
        let d = self.features.ncols();
        for (c, mut row) in out.rows_mut().into_iter().enumerate() {
            let (slope, level) = (&moments.slopes[c * d..(c + 1) * d], moments.levels[c]);
            let row = row.as_slice_mut().expect("in standard layout");
            row.par_iter_mut()
                .with_min_len(CHUNK)
                .enumerate()
                .for_each(|(i, out)| *out += inner(slope, self.row(i)) + level);
        }
    }

    /// Rows of T with w ZZᵀ + c 11ᵀ = TᵀT.
    fn n_rows(&self) -> usize {
        self.trend.n_rows(self.features.ncols())
    }

    /// T at row `r` and sample `i`.
    fn entry(&self, r: usize, i: usize) -> f64 {
        let level = self.n_rows() - 1;
        if self.trend.level > 0.0 && r == level {
            return self.trend.level.sqrt();
        }
        self.trend.slope.sqrt() * self.features[[i, r]]
    }

    fn value(&self, i: usize, j: usize) -> f64 {
        self.trend.slope * inner(self.row(i), self.row(j)) + self.trend.level
    }
}

/// aᵀb of two short rows, of which there are millions: eight running sums, in an order of their
/// own.
fn inner(a: &[f64], b: &[f64]) -> f64 {
    let ((heads, tail), (others, rest)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    let mut lanes = [0.0; 8];
    for (a, b) in heads.iter().zip(others) {
        lanes.iter_mut().zip(a.iter().zip(b)).for_each(|(sum, (a, b))| *sum += a * b);
    }
    let tail: f64 = tail.iter().zip(rest).map(|(a, b)| a * b).sum();
    lanes.iter().sum::<f64>() + tail
}

/// Σ v_i z_i and Σ v_i of every vector.
struct Moments {
    slopes: Vec<f64>,
    levels: Vec<f64>,
}

impl Moments {
    fn zeros(n_vectors: usize, d: usize) -> Self {
        Self { slopes: vec![0.0; n_vectors * d], levels: vec![0.0; n_vectors] }
    }

    fn add(&mut self, vector: usize, v: f64, z: &[f64]) {
        let own = &mut self.slopes[vector * z.len()..(vector + 1) * z.len()];
        own.iter_mut().zip(z).for_each(|(s, z)| *s += v * z);
        self.levels[vector] += v;
    }
}

impl KernelOperator for Trended {
    fn n_samples(&self) -> usize {
        self.operator().n_samples()
    }

    fn diagonal(&self) -> Result<Vec<f64>, Error> {
        let mut diagonal = self.operator().diagonal()?;
        diagonal.iter_mut().enumerate().for_each(|(i, d)| *d += self.trend.value(i, i));
        Ok(diagonal)
    }

    /// A product of inner products is off by units of w‖z_i‖‖z_j‖ + c for every addition on its
    /// way, and both bounds together are one of the same shape.
    fn rounding(&self) -> Result<Vec<f64>, Error> {
        let mut rounding = self.operator().rounding()?;
        let (n, d) = self.trend.features.dim();
        let units = UNIT * (CHUNK + n.div_ceil(CHUNK) + d + 8) as f64;
        for (i, r) in rounding.iter_mut().enumerate() {
            *r = (*r * *r + units * self.trend.value(i, i)).sqrt();
        }
        Ok(rounding)
    }

    fn apply(&self, v: ArrayView2<'_, f64>, mut out: ArrayViewMut2<'_, f64>) -> Result<(), Error> {
        self.operator().apply(v, out.view_mut())?;
        self.trend.add(&self.trend.moments(None, v), out);
        Ok(())
    }

    fn exact(&self) -> &dyn KernelOperator {
        self.exact.as_deref().map_or(self, |exact| exact)
    }

    fn is_exact(&self) -> bool {
        self.operator().is_exact()
    }

    fn rows_into(
        &self,
        samples: &[usize],
        columns: Range<usize>,
        out: &mut [f64],
    ) -> Result<(), Error> {
        self.operator().rows_into(samples, columns.clone(), out)?;
        out.par_chunks_mut(columns.len().max(1)).zip(samples).for_each(|(row, &i)| {
            row.iter_mut().zip(columns.clone()).for_each(|(v, j)| *v += self.trend.value(i, j));
        });
        Ok(())
    }

    fn block_into(&self, samples: &[usize], out: &mut [f64]) -> Result<(), Error> {
        self.operator().block_into(samples, out)?;
        out.par_chunks_mut(samples.len().max(1)).zip(samples).for_each(|(row, &i)| {
            row.iter_mut().zip(samples).for_each(|(v, &j)| *v += self.trend.value(i, j));
        });
        Ok(())
    }

    fn add_columns(
        &self,
        samples: &[usize],
        v: ArrayView2<'_, f64>,
        mut out: ArrayViewMut2<'_, f64>,
    ) -> Result<(), Error> {
        self.operator().add_columns(samples, v, out.view_mut())?;
        self.trend.add(&self.trend.moments(Some(samples), v), out);
        Ok(())
    }

    fn restrict(&self, samples: &[usize]) -> Result<Box<dyn KernelOperator>, Error> {
        let part = self.operator().restrict(samples)?;
        let Linear { trend, features } = &*self.trend;
        let features = features.select(Axis(0), samples);
        let trend = Arc::new(Linear { trend: trend.clone(), features });
        Ok(Box::new(Self::of(Arc::from(part), trend)))
    }

    fn remote_factor(
        &self,
        max_rank: usize,
        decision_dim: usize,
        roots: Option<&[f64]>,
    ) -> Result<Option<Box<dyn RemoteFactor>>, Error> {
        let (trend, roots) = (Arc::clone(&self.trend), roots.map(<[f64]>::to_vec));
        let room = max_rank + trend.n_rows();
        let of_rest = self.operator().remote_factor(room, decision_dim, roots.as_deref())?;
        Ok(of_rest.map(|inner| {
            let factor: Box<dyn RemoteFactor> =
                Box::new(TrendedFactor { inner, trend, roots, whole: false });
            factor
        }))
    }
}

/// A remote factor of the rest with the trend's own rows, √w zᵀ and √c, which are exact. While
/// pivots are chosen they are known here alone, so that what is left is the rest's; then the other
/// machine gets them too.
struct TrendedFactor {
    inner: Box<dyn RemoteFactor>,
    trend: Arc<Linear>,
    /// √w of a weighted problem.
    roots: Option<Vec<f64>>,
    /// Whether the other machine has them.
    whole: bool,
}

impl TrendedFactor {
    fn root(&self, i: usize) -> f64 {
        self.roots.as_ref().map_or(1.0, |roots| roots[i])
    }
}

impl RemoteFactor for TrendedFactor {
    fn rank(&self) -> usize {
        self.inner.rank() + if self.whole { 0 } else { self.trend.n_rows() }
    }

    fn n_proposals(&self) -> usize {
        self.inner.n_proposals()
    }

    fn gather(&self, samples: &[usize]) -> Result<Vec<f64>, Error> {
        let of_rest = self.inner.gather(samples)?;
        if self.whole {
            return Ok(of_rest);
        }
        let value = |r, i: usize| self.root(i) * self.trend.entry(r, i);
        let own = (0..self.trend.n_rows()).flat_map(|r| samples.iter().map(move |&i| value(r, i)));
        Ok(own.chain(of_rest).collect())
    }

    fn append(
        &mut self,
        pivots: &[usize],
        triangle: &[f64],
        diagonal: &mut [f64],
        floor: &[f64],
    ) -> Result<(), Error> {
        self.inner.append(pivots, triangle, diagonal, floor)
    }

    fn begin(&self, diagonal: &mut [f64]) {
        for (i, d) in diagonal.iter_mut().enumerate() {
            *d = (*d - self.root(i) * self.root(i) * self.trend.value(i, i)).max(0.0);
        }
    }

    fn append_row(&mut self, row: &[f64]) -> Result<(), Error> {
        self.inner.append_row(row)
    }

    fn update(&mut self, free: ArrayView2<'_, bool>, ridge: f64) -> Result<(), Error> {
        if !self.whole {
            let n = self.trend.features.nrows();
            for r in 0..self.trend.n_rows() {
                let row: Vec<f64> = (0..n).map(|i| self.root(i) * self.trend.entry(r, i)).collect();
                self.inner.append_row(&row)?;
            }
            self.whole = true;
        }
        self.inner.update(free, ridge)
    }

    fn apply(
        &self,
        dimensions: &[usize],
        v: ArrayView2<'_, f64>,
        out: ArrayViewMut2<'_, f64>,
    ) -> Result<(), Error> {
        self.inner.apply(dimensions, v, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;
    use crate::operator::{HostOperator, OperatorKind, Precision};

    fn wave(rows: usize, columns: usize, phase: f64) -> Array2<f64> {
        Array2::from_shape_fn((rows, columns), |(i, j)| ((i * 7 + j * 3) as f64 + phase).sin())
    }

    fn worst(a: &Array2<f64>, b: &Array2<f64>) -> f64 {
        (a - b).iter().fold(0.0, |m: f64, x| m.max(x.abs()))
    }

    /// Every way through the operator carries the whole kernel.
    #[test]
    fn a_trend_is_in_every_product_row_and_block() {
        let (n, d) = (700, 5);
        let features = wave(n, d, 0.3);
        let affine = Kernel::Polynomial { degree: 1, gamma: 0.4, offset: 1.5 };
        let kernel = Kernel::Sum { terms: vec![Kernel::Matern52 { gamma: 0.2 }, affine] };
        let row = |i: usize| features.row(i).to_vec();
        let gram = Array2::from_shape_fn((n, n), |(i, j)| kernel.evaluate(&row(i), &row(j)));
        let (rest, trend) = kernel.split_trend().unwrap();
        for (precision, tol) in [(Precision::F64, 1e-11), (Precision::F32, 1e-3)] {
            let kind = OperatorKind::Stored;
            let host = HostOperator::new(features.view(), rest.clone(), precision, kind).unwrap();
            let operator = Trended::new(Box::new(host), trend.clone(), features.view());
            assert_eq!(operator.is_exact(), precision == Precision::F64);
            let v = wave(2, n, 1.0);
            let expected = v.dot(&gram);
            let mut out = Array2::zeros(v.dim());
            operator.apply(v.view(), out.view_mut()).unwrap();
            assert!(worst(&out, &expected) < tol);
            operator.exact().apply(v.view(), out.view_mut()).unwrap();
            let r = operator.rounding().unwrap();
            for ((c, i), found) in out.indexed_iter() {
                let bound: f64 = (0..n).map(|j| r[i] * r[j] * v[[c, j]].abs()).sum();
                assert!((found - expected[[c, i]]).abs() <= bound && bound < 1e-9);
            }
            let samples = [7, 600, 3];
            let (mut rows, mut block) = (vec![0.0; 3 * 30], vec![0.0; 9]);
            operator.rows_into(&samples, 20..50, &mut rows).unwrap();
            operator.block_into(&samples, &mut block).unwrap();
            for (a, &i) in samples.iter().enumerate() {
                assert!((0..30).all(|c| (rows[a * 30 + c] - gram[[i, 20 + c]]).abs() < tol));
                assert!((0..3).all(|b| (block[a * 3 + b] - gram[[i, samples[b]]]).abs() < tol));
                assert!((operator.diagonal().unwrap()[i] - gram[[i, i]]).abs() < tol);
            }
            let part = v.select(Axis(1), &samples);
            let mut added = Array2::zeros((2, n));
            operator.add_columns(&samples, part.view(), added.view_mut()).unwrap();
            assert!(worst(&added, &part.dot(&gram.select(Axis(0), &samples))) < tol);
            let restricted = operator.restrict(&samples).unwrap();
            let mut small = Array2::zeros((2, 3));
            restricted.exact().apply(part.view(), small.view_mut()).unwrap();
            let inner = gram.select(Axis(0), &samples).select(Axis(1), &samples);
            assert!(worst(&small, &part.dot(&inner)) < 1e-12);
        }
    }

    /// Another machine's factor, of dense numbers here.
    struct Dense {
        rest: Array2<f64>,
        rows: Arc<std::sync::Mutex<Vec<Vec<f64>>>>,
    }

    impl RemoteFactor for Dense {
        fn rank(&self) -> usize {
            self.rows.lock().unwrap().len()
        }

        fn n_proposals(&self) -> usize {
            16
        }

        fn gather(&self, samples: &[usize]) -> Result<Vec<f64>, Error> {
            let rows = self.rows.lock().unwrap();
            Ok(rows.iter().flat_map(|row| samples.iter().map(|&i| row[i])).collect())
        }

        fn append(
            &mut self,
            pivots: &[usize],
            triangle: &[f64],
            diagonal: &mut [f64],
            floor: &[f64],
        ) -> Result<(), Error> {
            let (m, mut rows) = (pivots.len(), self.rows.lock().unwrap());
            let known = rows.len();
            for (a, &pivot) in pivots.iter().enumerate() {
                let mut row = self.rest.row(pivot).to_vec();
                for (r, old) in rows.iter().enumerate() {
                    let factor = if r < known { old[pivot] } else { triangle[(r - known) * m + a] };
                    row.iter_mut().zip(old).for_each(|(v, b)| *v -= factor * b);
                }
                row.iter_mut().for_each(|v| *v /= triangle[a * m + a]);
                diagonal.iter_mut().zip(&row).for_each(|(d, b)| *d = (*d - b * b).max(0.0));
                rows.push(row);
            }
            diagonal.iter_mut().zip(floor).for_each(|(d, f)| *d = if *d < *f { 0.0 } else { *d });
            pivots.iter().for_each(|&pivot| diagonal[pivot] = 0.0);
            Ok(())
        }

        fn append_row(&mut self, row: &[f64]) -> Result<(), Error> {
            self.rows.lock().unwrap().push(row.to_vec());
            Ok(())
        }

        fn update(&mut self, _: ArrayView2<'_, bool>, _: f64) -> Result<(), Error> {
            Ok(())
        }

        fn apply(
            &self,
            _: &[usize],
            _: ArrayView2<'_, f64>,
            _: ArrayViewMut2<'_, f64>,
        ) -> Result<(), Error> {
            Ok(())
        }
    }

    #[test]
    fn a_remote_factor_of_the_rest_becomes_one_of_the_sum() {
        use crate::precond::{LowRank, RankLimits};
        let (n, d) = (120, 3);
        let features = wave(n, d, 0.3) * 2.0;
        let affine = Kernel::Polynomial { degree: 1, gamma: 0.4, offset: 1.5 };
        let kernel = Kernel::Sum { terms: vec![Kernel::Rbf { gamma: 0.2 }, affine] };
        let row = |i: usize| features.row(i).to_vec();
        let roots: Vec<f64> = (0..n).map(|i| 1.0 + (i % 3) as f64).collect();
        let gram = |kernel: &Kernel| {
            let value = |i, j| kernel.evaluate(&row(i), &row(j)) * roots[i] * roots[j];
            Array2::from_shape_fn((n, n), |(i, j)| value(i, j))
        };
        let (rest, trend) = kernel.split_trend().unwrap();
        let exact = (Precision::F64, OperatorKind::Stored);
        let host = HostOperator::new(features.view(), rest.clone(), exact.0, exact.1).unwrap();
        let operator = Trended::new(Box::new(host), trend, features.view());
        let rows = Arc::new(std::sync::Mutex::new(Vec::new()));
        let inner = Box::new(Dense { rest: gram(&rest), rows: Arc::clone(&rows) });
        let (trend, whole) = (Arc::clone(&operator.trend), false);
        let place = TrendedFactor { inner, trend, roots: Some(roots.clone()), whole };
        let weighted = crate::operator::Weighted::new(&operator, Some(&roots));
        let limits = RankLimits { max_rank: n, enough_trace: 1e-6 };
        let mut rng = crate::random::stream(0, "pivots");
        let factor =
            LowRank::build_there(&weighted, Box::new(place), limits, &mut rng, || true).unwrap();
        let mut factor = factor.into_remote().ok().unwrap();
        let rank = factor.rank();
        assert!(rank < n, "{rank}");
        factor.update(Array2::from_elem((1, n), true).view(), 1.0).unwrap();
        assert_eq!((factor.rank(), rows.lock().unwrap().len()), (rank, rank));
        let mut product = Array2::<f64>::zeros((n, n));
        for b in rows.lock().unwrap().iter() {
            product += &Array2::from_shape_fn((n, n), |(i, j)| b[i] * b[j]);
        }
        assert!(worst(&product, &gram(&kernel)) < 1e-3);
        assert_eq!(factor.gather(&[3, 5]).unwrap().len(), 2 * rank);
    }
}
