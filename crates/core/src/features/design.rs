//! The matrix Φ of all samples' features, never held: rows are computed anew, some hundred at a
//! time, in every product.
//!
//! Enters: a feature map and signals. Leaves: ΦV, ΦᵀE and Gram matrices Φᵀdiag(ω)Φ. Signals of p
//! numbers become (p+1)(p+2)/2 features, so what is kept is a seventh of Φ at p = 11, and writing a
//! row costs less than reading it back would. Tasks have a fixed number of rows and their sums are
//! added first to last: the bits do not depend on the number of threads.

use super::FeatureMap;
use crate::error::Error;
use crate::linalg::dense::{add_product_rows, add_symmetric_product, add_transposed_product_rows};
use ndarray::{Array2, ArrayView2, Axis, s};
use rayon::prelude::*;
use std::ops::Range;

/// Φ, n_samples × n_features: the features of some rows of `signals`, with a column of ones where
/// there is an intercept.
#[derive(Clone, Copy, Debug)]
pub struct Design<'a> {
    map: &'a FeatureMap,
    signals: ArrayView2<'a, f64>,
    /// Rows of `signals` that are the samples; all where none are named.
    rows: Option<&'a [usize]>,
    intercept: bool,
    /// What each sample's row is multiplied with: √w in weighted problems.
    factors: Option<&'a [f64]>,
}

/// Rows of Φ that are there at once, in one task.
const CHUNK: usize = 256;
/// Rows whose part of ΦᵀE is one task's.
const TASK: usize = 64 * CHUNK;
/// Tasks that Gram matrices are cut into, at most and at least, and the bytes of their parts
/// together in between.
const GRAM_TASKS: Range<usize> = 8..64;
const GRAM_BYTES: usize = 64 << 20;

impl<'a> Design<'a> {
    /// Φ of all rows of `signals`. Fails where they have another width than the map expects.
    pub fn new(map: &'a FeatureMap, signals: ArrayView2<'a, f64>) -> Result<Self, Error> {
        if signals.ncols() != map.signal_dim() {
            return Err(Error::Width {
                what: "signals",
                owner: "the feature map",
                expected: map.signal_dim(),
                found: signals.ncols(),
            });
        }
        Ok(Self { map, signals, rows: None, intercept: false, factors: None })
    }

    /// Of these rows only, in their order.
    #[must_use]
    pub fn with_rows(self, rows: &'a [usize]) -> Self {
        Self { rows: Some(rows), ..self }
    }

    /// With a last column of ones.
    #[must_use]
    pub fn with_intercept(self, intercept: bool) -> Self {
        Self { intercept, ..self }
    }

    /// With every row times its factor.
    pub(crate) fn with_factors<'b>(&'b self, factors: Option<&'b [f64]>) -> Design<'b> {
        let Self { map, rows, intercept, .. } = *self;
        Design { map, signals: self.signals.view(), rows, intercept, factors }
    }

    /// Rows of Φ.
    pub fn n_samples(&self) -> usize {
        self.rows.map_or(self.signals.nrows(), <[usize]>::len)
    }

    /// Columns of Φ, that of the intercept included.
    pub fn n_features(&self) -> usize {
        self.map.n_features() + usize::from(self.intercept)
    }

    /// Bytes that Gram matrices of `n_blocks` weights take while they are summed.
    pub fn gram_bytes(n_features: usize, n_blocks: usize) -> u64 {
        let part = n_blocks * n_features * n_features * size_of::<f64>();
        (part * gram_tasks(part)) as u64
    }

    /// Row `i` of Φ.
    fn write(&self, i: usize, out: &mut [f64]) {
        let row = self.rows.map_or(i, |rows| rows[i]);
        let (features, one) = out.split_at_mut(self.map.n_features());
        self.map.write(self.signals.row(row), features);
        one.fill(1.0);
        if let Some(factors) = self.factors {
            out.iter_mut().for_each(|z| *z *= factors[i]);
        }
    }

    fn write_all(&self, samples: Range<usize>, out: &mut [f64]) {
        for (i, row) in samples.zip(out.chunks_exact_mut(self.n_features())) {
            self.write(i, row);
        }
    }

    /// VΦᵀ, m × n_samples, for `weights` m × n_features. Cost: a pass.
    pub fn images(&self, weights: &Array2<f64>) -> Array2<f64> {
        let (d, m) = (self.n_features(), weights.nrows());
        let transposed: Vec<f64> = weights.t().iter().copied().collect();
        let mut out = Array2::zeros((m, self.n_samples()));
        let parts: Vec<_> = out.axis_chunks_iter_mut(Axis(1), CHUNK).enumerate().collect();
        parts.into_par_iter().for_each_init(
            || (vec![0.0; CHUNK * d], vec![0.0; CHUNK * m]),
            |(features, products), (chunk, mut part)| {
                let (first, len) = (chunk * CHUNK, part.ncols());
                self.write_all(first..first + len, features);
                let products = &mut products[..len * m];
                products.fill(0.0);
                add_product_rows(products, 1.0, &features[..len * d], &transposed, (len, m, d));
                for ((j, i), out) in part.indexed_iter_mut() {
                    *out = products[i * m + j];
                }
            },
        );
        out
    }

    /// ‖φ_i‖ of every row. Cost: a pass.
    pub(crate) fn lengths(&self) -> Vec<f64> {
        let d = self.n_features();
        let mut out = vec![0.0; self.n_samples()];
        out.par_iter_mut().enumerate().with_min_len(CHUNK).for_each_init(
            || vec![0.0; d],
            |features, (i, length)| {
                self.write(i, features);
                *length = features.iter().map(|z| z * z).sum::<f64>().sqrt();
            },
        );
        out
    }

    /// Additions behind an entry of [`transposed`](Self::transposed) at most.
    pub(crate) fn chain(&self) -> usize {
        let n = self.n_samples();
        n.min(CHUNK) + TASK / CHUNK + n.div_ceil(TASK)
    }

    /// EΦ, m × n_features, for `values` m × n_samples. Cost: a pass.
    pub fn transposed(&self, values: &Array2<f64>) -> Array2<f64> {
        let (d, m) = (self.n_features(), values.nrows());
        let n = self.n_samples();
        let parts: Vec<Vec<f64>> = (0..n.div_ceil(TASK))
            .into_par_iter()
            .map(|task| {
                let mut sum = vec![0.0; m * d];
                let (mut features, mut turned) = (vec![0.0; CHUNK * d], vec![0.0; CHUNK * m]);
                let samples = task * TASK..((task + 1) * TASK).min(n);
                for chunk in chunks(samples) {
                    let len = chunk.len();
                    self.write_all(chunk.clone(), &mut features);
                    for ((j, i), value) in values.slice(s![.., chunk]).indexed_iter() {
                        turned[i * m + j] = *value;
                    }
                    let (features, turned) = (&features[..len * d], &turned[..len * m]);
                    add_transposed_product_rows(&mut sum, turned, features, (m, d, len));
                }
                sum
            })
            .collect();
        let mut out = Array2::zeros((m, d));
        for part in parts {
            out.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
        }
        out
    }

    /// Adds Σ_i ω_ib φ_iφ_iᵀ to the lower triangle of each of `grams` (column-major). `weigh`
    /// writes the ω of a sample, one a Gram matrix. Cost: n_features² for each weight that is not
    /// zero; rows without any are not computed.
    pub(crate) fn add_grams(
        &self,
        grams: &mut [Vec<f64>],
        weigh: impl Fn(usize, &mut [f64]) + Sync,
    ) {
        let (n, d, n_blocks) = (self.n_samples(), self.n_features(), grams.len());
        let n_tasks = gram_tasks(n_blocks * d * d * size_of::<f64>());
        let per_task = n.div_ceil(n_tasks).next_multiple_of(CHUNK);
        let parts: Vec<Option<Vec<f64>>> = (0..n.div_ceil(per_task))
            .into_par_iter()
            .map(|task| {
                let mut picked = Picked::new(d, n_blocks);
                for i in task * per_task..((task + 1) * per_task).min(n) {
                    let weights = picked.room();
                    weigh(i, weights);
                    if weights.iter().any(|w| *w != 0.0) {
                        self.write(i, picked.take());
                    }
                }
                picked.finish()
            })
            .collect();
        for part in parts.into_iter().flatten() {
            for (gram, part) in grams.iter_mut().zip(part.chunks_exact(d * d)) {
                gram.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
            }
        }
    }
}

/// Rows of Φ picked for Gram matrices, with their weights; multiplied out when there are enough.
struct Picked {
    d: usize,
    n_blocks: usize,
    len: usize,
    features: Vec<f64>,
    weights: Vec<f64>,
    /// The rows of one Gram matrix, weighted and as they are.
    own: [Vec<f64>; 2],
    sums: Option<Vec<f64>>,
}

impl Picked {
    fn new(d: usize, n_blocks: usize) -> Self {
        Self {
            d,
            n_blocks,
            len: 0,
            features: vec![0.0; CHUNK * d],
            weights: vec![0.0; CHUNK * n_blocks],
            own: [(); 2].map(|()| Vec::with_capacity(CHUNK * d)),
            sums: None,
        }
    }

    /// Where the next row's weights go.
    fn room(&mut self) -> &mut [f64] {
        if self.len == CHUNK {
            self.multiply();
        }
        &mut self.weights[self.len * self.n_blocks..(self.len + 1) * self.n_blocks]
    }

    /// Keeps the row whose weights were written; its features go here.
    fn take(&mut self) -> &mut [f64] {
        self.len += 1;
        &mut self.features[(self.len - 1) * self.d..self.len * self.d]
    }

    fn multiply(&mut self) {
        let (d, n_blocks) = (self.d, self.n_blocks);
        let sums = self.sums.get_or_insert_with(|| vec![0.0; n_blocks * d * d]);
        for (block, sum) in sums.chunks_exact_mut(d * d).enumerate() {
            let [weighted, plain] = &mut self.own;
            weighted.clear();
            plain.clear();
            let weights = self.weights.chunks_exact(n_blocks).map(|weights| weights[block]);
            for (w, row) in weights.zip(self.features.chunks_exact(d)).take(self.len) {
                if w != 0.0 {
                    weighted.extend(row.iter().map(|z| w * z));
                    plain.extend_from_slice(row);
                }
            }
            add_symmetric_product(sum, weighted, plain, (d, plain.len() / d));
        }
        self.len = 0;
    }

    /// One sum a Gram matrix; none where no row was picked.
    fn finish(mut self) -> Option<Vec<f64>> {
        if self.len > 0 {
            self.multiply();
        }
        self.sums
    }
}

fn gram_tasks(bytes: usize) -> usize {
    (GRAM_BYTES / bytes.max(1)).clamp(GRAM_TASKS.start, GRAM_TASKS.end)
}

fn chunks(samples: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let end = samples.end;
    samples.step_by(CHUNK).map(move |first| first..(first + CHUNK).min(end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::{Expansion, FeatureSettings};

    /// Against Φ written out, for sizes around a chunk and a task, with and without rows, intercept
    /// and factors.
    #[test]
    fn products_are_those_of_the_whole_matrix() {
        for n in [1, 3, CHUNK, CHUNK + 1, TASK + 5] {
            let signals =
                Array2::from_shape_fn((n + 2, 2), |(i, j)| ((i * (j + 2)) as f64 * 0.7).sin());
            let map = FeatureMap::fit(
                FeatureSettings { expansion: Expansion::Poly2, ..FeatureSettings::default() },
                signals.view(),
            )
            .unwrap();
            let rows: Vec<usize> = (0..n).rev().collect();
            let factors: Vec<f64> = (0..n).map(|i| 1.0 + (i % 3) as f64).collect();
            let plain = Design::new(&map, signals.slice(s![..n, ..])).unwrap();
            let all = Design::new(&map, signals.view()).unwrap();
            let other = all.with_rows(&rows).with_intercept(true);
            let other = other.with_factors(Some(&factors));
            for design in [plain, other] {
                let d = design.n_features();
                let mut phi = Array2::zeros((n, d));
                for (i, mut row) in phi.rows_mut().into_iter().enumerate() {
                    let source = if d > 6 { n - 1 - i } else { i };
                    let features = map.transform(signals.slice(s![source..=source, ..])).unwrap();
                    row.slice_mut(s![..6]).assign(&features.row(0));
                    if d > 6 {
                        row[6] = 1.0;
                        row *= factors[i];
                    }
                }
                let weights = Array2::from_shape_fn((2, d), |(j, k)| (j + k) as f64 - 2.5);
                let values = Array2::from_shape_fn((2, n), |(j, i)| ((i + j) as f64).cos());
                let close = |a: &Array2<f64>, b: &Array2<f64>| {
                    let scale = n as f64;
                    assert_eq!(a.dim(), b.dim());
                    assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12 * scale));
                };
                close(&design.images(&weights), &weights.dot(&phi.t()));
                close(&design.transposed(&values), &values.dot(&phi));
                let omega = |i: usize, b: usize| {
                    if (i + b).is_multiple_of(3) { 0.0 } else { b as f64 - 0.5 }
                };
                let mut grams = vec![vec![1.0; d * d]; 2];
                design.add_grams(&mut grams, |i, weights| {
                    weights.iter_mut().enumerate().for_each(|(b, w)| *w = omega(i, b));
                });
                for (b, gram) in grams.iter().enumerate() {
                    let mut weighted = phi.clone();
                    for (i, mut row) in weighted.rows_mut().into_iter().enumerate() {
                        row *= omega(i, b);
                    }
                    let expected = weighted.t().dot(&phi);
                    for k in 0..d {
                        for l in 0..=k {
                            let found = gram[l * d + k] - 1.0;
                            assert!((found - expected[[k, l]]).abs() < 1e-11 * n as f64);
                        }
                    }
                }
            }
        }
    }
}
