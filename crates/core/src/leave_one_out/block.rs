//! Dimensions that share one free system.

use super::Gram;
use crate::linalg::dense::{
    cholesky, cholesky_on_all_cores, cholesky_solve, forward_substitute_on_all_cores,
};
use crate::linalg::sums::dot;
use crate::qp::Metric;
use ndarray::{Array2, Axis};
use rayon::prelude::*;

/// Columns that are solved for together.
pub(super) const BATCH: usize = 256;

/// Samples with their faces, in `n` dimensions at a time.
pub(super) struct Block {
    n: usize,
    /// R_l of every sample, n × free, column-major.
    bases: Vec<Vec<f64>>,
    /// Where each sample's coordinates begin among all; one more for their number.
    starts: Vec<usize>,
    /// Which dimensions of the problem; each list is one case of the same system.
    cases: Vec<Vec<usize>>,
}

impl Block {
    pub fn new(n: usize, bases: Vec<Vec<f64>>, cases: Vec<Vec<usize>>) -> Self {
        let mut starts = vec![0];
        for basis in &bases {
            starts.push(starts[starts.len() - 1] + basis.len() / n);
        }
        Self { n, bases, starts, cases }
    }

    /// Free coordinates of all samples.
    fn size(&self) -> usize {
        self.starts[self.bases.len()]
    }

    /// Operations, about: a factor, columns of its inverse, and solutions for those that are not
    /// wholly free.
    pub fn work(&self) -> f64 {
        let (f, partly) = (self.size() as f64, self.bases.iter().filter(|b| !self.is_whole(b)));
        f.powi(3) + f * f * (partly.count() * self.n) as f64
    }

    fn is_whole(&self, basis: &[f64]) -> bool {
        basis.len() == self.n * self.n
    }

    /// Replaces what is desired for each sample by what a model without it would desire. False
    /// where the free system is not positive definite.
    pub fn leave_out(
        &self,
        gram: &Gram,
        metric: &Metric,
        ridge: f64,
        alpha: &Array2<f64>,
        desired: &mut Array2<f64>,
    ) -> bool {
        let without_one = ridge * (gram.n - 1) as f64 / gram.n as f64;
        let system = System { block: self, gram, metric, ridge: without_one };
        let Some(factor) = system.factor() else { return false };
        let cases: Vec<Array2<f64>> = (self.cases.iter())
            .map(|dimensions| {
                let alpha = alpha.select(Axis(0), dimensions);
                let step = system.towards(&factor, &alpha, ridge);
                let moved = gram.times(&step);
                for (at, &j) in dimensions.iter().enumerate() {
                    let mut row = desired.row_mut(j);
                    row += &moved.row(at);
                }
                alpha + step
            })
            .collect();
        let carries = |i: &usize| cases.iter().any(|a| a.column(*i).iter().any(|a| *a != 0.0));
        let samples: Vec<usize> = (0..gram.n).filter(carries).collect();
        for batch in samples.chunks((BATCH / self.n).max(1)) {
            for (i, own) in system.own_shares(&factor, batch, &cases) {
                for (dimensions, own) in self.cases.iter().zip(own) {
                    for (&j, own) in dimensions.iter().zip(own) {
                        desired[[j, i]] -= own;
                    }
                }
            }
        }
        true
    }
}

/// aᵀb of a few numbers.
fn inner(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// λI + RᵀKR with λ of one sample less.
struct System<'a> {
    block: &'a Block,
    gram: &'a Gram,
    metric: &'a Metric,
    ridge: f64,
}

impl System<'_> {
    /// Its Cholesky factor, column-major.
    fn factor(&self) -> Option<Vec<f64>> {
        let (f, n) = (self.block.size(), self.block.n);
        let mut matrix = vec![0.0; f * f];
        let mut columns: Vec<(usize, &[f64], &mut [f64])> = Vec::with_capacity(f);
        let owners = self.block.bases.iter().enumerate();
        let owned = owners.flat_map(|(l, basis)| basis.chunks(n).map(move |column| (l, column)));
        for ((l, direction), column) in owned.zip(matrix.chunks_mut(f.max(1))) {
            columns.push((l, direction, column));
        }
        columns.into_par_iter().enumerate().for_each(|(at, (l, direction, column))| {
            self.image(l, direction, column);
            column[at] += self.ridge;
        });
        cholesky_on_all_cores(&mut matrix, f).then_some(matrix)
    }

    /// RᵀK_{:l}v.
    fn image(&self, l: usize, v: &[f64], out: &mut [f64]) {
        let n = self.block.n;
        let mut out = out.iter_mut();
        for (kappa, basis) in self.gram.row(l).iter().zip(&self.block.bases) {
            for direction in basis.chunks(n) {
                if let Some(out) = out.next() {
                    *out = kappa * inner(direction, v);
                }
            }
        }
    }

    /// What the coefficients move by from λ to the λ of one sample less, on the same faces:
    /// (λ'I + DK)d = (λ − λ')α.
    fn towards(&self, factor: &[f64], alpha: &Array2<f64>, ridge: f64) -> Array2<f64> {
        let Block { n, bases, starts, .. } = self.block;
        let (mut inside, mut bound) = (vec![0.0; self.block.size()], Array2::zeros(alpha.dim()));
        for (l, basis) in bases.iter().enumerate() {
            let residual: Vec<f64> =
                alpha.column(l).iter().map(|a| (ridge - self.ridge) * a).collect();
            let own = &mut inside[starts[l]..starts[l + 1]];
            let weighted = self.weighted(&residual);
            basis.chunks(*n).zip(own.iter_mut()).for_each(|(r, y)| *y = inner(r, &weighted));
            for (j, value) in residual.iter().enumerate() {
                let free: f64 = basis.chunks(*n).zip(own.iter()).map(|(r, y)| r[j] * y).sum();
                bound[[j, l]] = (value - free) / self.ridge;
            }
        }
        let beyond = self.gram.times(&bound);
        for (l, basis) in bases.iter().enumerate() {
            let own = &mut inside[starts[l]..starts[l + 1]];
            let beyond = beyond.column(l).to_vec();
            basis.chunks(*n).zip(own).for_each(|(r, y)| *y -= inner(r, &beyond));
        }
        cholesky_solve(factor, self.block.size(), &mut inside);
        for (l, basis) in bases.iter().enumerate() {
            for (r, c) in basis.chunks(*n).zip(&inside[starts[l]..starts[l + 1]]) {
                r.iter().enumerate().for_each(|(j, r)| bound[[j, l]] += r * c);
            }
        }
        bound
    }

    /// Θv.
    fn weighted(&self, v: &[f64]) -> Vec<f64> {
        let mut out = v.to_vec();
        if v.len() == self.metric.dim() {
            self.metric.apply(v, &mut out);
        }
        out
    }

    /// S_i α_i of the listed samples, case by case.
    fn own_shares(
        &self,
        factor: &[f64],
        samples: &[usize],
        cases: &[Array2<f64>],
    ) -> Vec<(usize, Vec<Vec<f64>>)> {
        let (n, f, starts) = (self.block.n, self.block.size(), &self.block.starts);
        // C = L⁻¹E of their own coordinates, and U = L⁻¹RᵀK_{:i} of those not wholly free.
        let own: Vec<usize> = samples.iter().flat_map(|&i| starts[i]..starts[i + 1]).collect();
        let mut columns = vec![0.0; f * own.len()];
        for (column, &at) in columns.chunks_mut(f.max(1)).zip(&own) {
            column[at] = 1.0;
        }
        forward_substitute_on_all_cores(factor, f, &mut columns, &own);
        let partly: Vec<usize> = samples
            .iter()
            .copied()
            .filter(|&i| !self.block.is_whole(&self.block.bases[i]))
            .collect();
        let mut images = vec![0.0; f * n * partly.len()];
        for (image, &i) in images.chunks_mut((f * n).max(1)).zip(&partly) {
            for (j, column) in image.chunks_mut(f.max(1)).enumerate() {
                let unit: Vec<f64> = (0..n).map(|k| f64::from(u8::from(k == j))).collect();
                self.image(i, &unit, column);
            }
        }
        forward_substitute_on_all_cores(factor, f, &mut images, &vec![0; n * partly.len()]);
        let place = |i: usize| partly.binary_search(&i).ok();
        let first = |i: usize| own.partition_point(|&at| at < starts[i]);
        let share = |&i: &usize| {
            let inverse = &columns[f * first(i)..f * (first(i) + starts[i + 1] - starts[i])];
            let image = place(i).map(|at| &images[at * f * n..(at + 1) * f * n]);
            let share = |alpha: &Array2<f64>| {
                let alpha = alpha.column(i).to_vec();
                match image {
                    None => self.of_whole(i, inverse, &alpha),
                    Some(image) => self.of_partly(i, inverse, image, &alpha),
                }
            };
            (i, cases.iter().map(share).collect())
        };
        samples.par_iter().map(share).collect()
    }

    /// S α of a sample with every direction free: RᵀSR is the inverse of its block of the
    /// inverse, less λ, and R⁻¹ = RᵀΘ.
    fn of_whole(&self, i: usize, inverse: &[f64], alpha: &[f64]) -> Vec<f64> {
        let (n, basis) = (self.block.n, &self.block.bases[i]);
        let weighted = self.weighted(alpha);
        let y: Vec<f64> = basis.chunks(n).map(|r| inner(r, &weighted)).collect();
        let mut z = self.solved(inverse, y.clone());
        z.iter_mut().zip(&y).for_each(|(z, y)| *z -= self.ridge * y);
        let mut out = vec![0.0; n];
        for (r, z) in basis.chunks(n).zip(&z) {
            out.iter_mut().zip(r).for_each(|(out, r)| *out += r * z);
        }
        self.weighted(&out)
    }

    /// S α of any sample: κα − Uᵀu + UᵀC (CᵀC)⁻¹ Cᵀu with u = Uα, which takes out what the
    /// sample's own coordinates explain.
    fn of_partly(&self, i: usize, inverse: &[f64], image: &[f64], alpha: &[f64]) -> Vec<f64> {
        let f = self.block.size();
        let mut u = vec![0.0; f];
        for (column, a) in image.chunks(f.max(1)).zip(alpha) {
            u.iter_mut().zip(column).for_each(|(u, value)| *u += value * a);
        }
        let own = inverse.chunks(f.max(1)).map(|c| dot(c, &u)).collect();
        for (c, z) in inverse.chunks(f.max(1)).zip(self.solved(inverse, own)) {
            u.iter_mut().zip(c).for_each(|(u, c)| *u -= c * z);
        }
        let kappa = self.gram.row(i)[i];
        let explained = image.chunks(f.max(1)).map(|column| dot(column, &u));
        let own = alpha.iter().map(|a| kappa * a);
        // Without any free coordinate nothing is explained.
        let explained = explained.chain(std::iter::repeat(0.0));
        own.zip(explained).map(|(own, explained)| own - explained).collect()
    }

    /// (CᵀC)⁻¹ b for the few columns of one sample.
    fn solved(&self, columns: &[f64], mut b: Vec<f64>) -> Vec<f64> {
        let (f, m) = (self.block.size(), b.len());
        if m == 0 {
            return b;
        }
        let column = |a: usize| &columns[a * f..(a + 1) * f];
        let mut products: Vec<f64> =
            (0..m * m).map(|at| dot(column(at / m), column(at % m))).collect();
        if cholesky(&mut products, m) {
            cholesky_solve(&products, m, &mut b);
        } else {
            b.fill(0.0);
        }
        b
    }
}
