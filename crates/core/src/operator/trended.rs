//! The matrix of a kernel with a trend: what another operator multiplies with, and w ZZᵀ + c 11ᵀ
//! beside it, in f64 and from its d + 1 numbers a sample.
//!
//! Enters: an operator for the rest of the kernel, on whatever machine, and features. Leaves: an
//! operator for the sum. A product pays next to nothing for the trend, and the rest may be held in
//! sixteen bits or iterated in f32 as if it were alone; rows and blocks are longer by d numbers a
//! value, in f64, which is what a fit with a trend takes longer.

use super::{BlockMachines, BlockTask, Descent, KernelOperator, RemoteFactor};
use crate::error::Error;
use crate::kernel::trend::Trend;
use crate::linalg::sums::UNIT;
use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
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
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Linear {
    trend: Trend,
    /// Z, n_samples × d.
    #[serde(with = "crate::linalg::rows")]
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

    /// The trend of the very samples that `inner` has.
    pub(super) fn beside(inner: Box<dyn KernelOperator>, trend: Linear) -> Self {
        Self::of(Arc::from(inner), Arc::new(trend))
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
    pub(super) fn n_samples(&self) -> usize {
        self.features.nrows()
    }

    /// That of some samples alone.
    pub(super) fn restrict(&self, samples: &[usize]) -> Self {
        Self { trend: self.trend.clone(), features: self.features.select(Axis(0), samples) }
    }

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

    fn apply_at(
        &self,
        columns: Range<usize>,
        v: ArrayView2<'_, f64>,
        mut out: ArrayViewMut2<'_, f64>,
    ) -> Result<(), Error> {
        self.operator().apply_at(columns.clone(), v, out.view_mut())?;
        let d = self.trend.features.ncols();
        let moments = self.trend.moments(None, v);
        for (c, mut row) in out.rows_mut().into_iter().enumerate() {
            let slope = &moments.slopes[c * d..(c + 1) * d];
            row.iter_mut().zip(columns.clone()).for_each(|(out, i)| {
                *out += inner(slope, self.trend.row(i)) + moments.levels[c];
            });
        }
        Ok(())
    }

    fn restrict(&self, samples: &[usize]) -> Result<Box<dyn KernelOperator>, Error> {
        let part = self.operator().restrict(samples)?;
        Ok(Box::new(Self::beside(part, self.trend.restrict(samples))))
    }

    fn block_machines(&self) -> Option<Box<dyn BlockMachines + '_>> {
        let inner = self.operator().block_machines()?;
        Some(Box::new(TrendedMachines { inner, trend: &self.trend }))
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
        let Some(inner) = of_rest else { return Ok(None) };
        Ok(Some(Box::new(TrendedFactor::new(inner, trend, roots)?)))
    }
}

/// Machines that hold the matrix of the rest: the trend goes along with every task.
struct TrendedMachines<'a> {
    inner: Box<dyn BlockMachines + 'a>,
    trend: &'a Linear,
}

impl BlockMachines for TrendedMachines<'_> {
    fn solve(
        &self,
        tasks: Vec<BlockTask>,
        stops: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Vec<Vec<u8>>>, Error> {
        let tasks = tasks.into_iter().map(|task| task.with_trend(self.trend)).collect();
        self.inner.solve(tasks, stops)
    }
}

/// A remote factor of the rest with the trend's own rows, √w zᵀ and √c, which are exact, before
/// those of pivots: what is largest comes first, as pivots have it too, and matrices are eliminated
/// in an order that loses no digits.
struct TrendedFactor {
    inner: Box<dyn RemoteFactor>,
    trend: Arc<Linear>,
    /// √w of a weighted problem.
    roots: Option<Vec<f64>>,
}

impl TrendedFactor {
    fn new(
        inner: Box<dyn RemoteFactor>,
        trend: Arc<Linear>,
        roots: Option<Vec<f64>>,
    ) -> Result<Self, Error> {
        let mut factor = Self { inner, trend, roots };
        for r in 0..factor.trend.n_rows() {
            let n = factor.trend.features.nrows();
            let row: Vec<f64> = (0..n).map(|i| factor.entry(r, i)).collect();
            factor.inner.append_row(&row)?;
        }
        Ok(factor)
    }

    fn root(&self, i: usize) -> f64 {
        self.roots.as_ref().map_or(1.0, |roots| roots[i])
    }

    fn entry(&self, r: usize, i: usize) -> f64 {
        self.root(i) * self.trend.entry(r, i)
    }
}

impl RemoteFactor for TrendedFactor {
    fn rank(&self) -> usize {
        self.inner.rank()
    }

    fn n_proposals(&self) -> usize {
        self.inner.n_proposals()
    }

    fn gather(&self, samples: &[usize]) -> Result<Vec<f64>, Error> {
        let mut rows = self.inner.gather(samples)?;
        // The trend's own, without the other machine's rounding: pivots are judged by what they
        // leave.
        for (at, value) in rows.iter_mut().take(self.trend.n_rows() * samples.len()).enumerate() {
            *value = self.entry(at / samples.len(), samples[at % samples.len()]);
        }
        Ok(rows)
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

    fn product(&self, v: ArrayView2<'_, f64>) -> Result<Option<Array2<f64>>, Error> {
        self.inner.product(v)
    }

    fn descent(
        &self,
        rhs: ArrayView2<'_, f64>,
        ridge: f64,
        exact: bool,
    ) -> Result<Option<Box<dyn Descent + '_>>, Error> {
        self.inner.descent(rhs, ridge, exact)
    }
}

#[cfg(test)]
mod tests;
