//! (K_FF + λI)⁻¹ itself, for matrices small enough to factorise.
//!
//! K + λI = LLᵀ is factorised once, for all dimensions and all steps. With A the bound samples of a
//! dimension and S = (K + λI)⁻¹, the inverse on the free ones is S_FF − S_FA S_AA⁻¹ S_AF: with w =
//! L⁻¹v and C_A = L⁻¹E_A, the columns of L⁻¹ that belong to A, it is L⁻ᵀ(w − C_A (C_AᵀC_A)⁻¹
//! C_Aᵀw). Columns and their inner products stay once they are known, so that a step costs the
//! Cholesky factor of a matrix as large as A. What is taken off in A, t = (C_AᵀC_A)⁻¹ C_Aᵀw, is
//! also all that is to know about K c there: (K + λI)c = v − E_A t, so that (K c)_A = −t and (K
//! c)_F = v − λc, without a product. Where many samples are bound, K_FF + λI is factorised instead.

use super::{Preconditioner, values_too_large};
use crate::decision_set::Faces;
use crate::error::{Error, KernelFault};
use crate::kernel::clearly_negative;
use crate::linalg::aligned::prefer_large_pages;
use crate::linalg::dense::{
    back_substitute_on_all_cores, cholesky, cholesky_on_all_cores, cholesky_room, cholesky_solve,
    forward_substitute_on_all_cores, inner_products,
};
use crate::linalg::shifted::{Growth, cholesky_shifted};
use crate::linalg::sums::dot;
use crate::operator::KernelOperator;
use ndarray::{Array2, ArrayView1, ArrayView2, ArrayViewMut2};
use rayon::prelude::*;

/// Columns of L⁻¹ whose inner products are one task's.
const GROUP: usize = 20;
/// Rows of K that are asked for in one call. A multiple of the operator's blocks, so that stored
/// kernel values can be copied.
const PANEL: usize = 240;
/// A dimension with more than 1/BORDERED of its samples bound is factorised on its own.
const BORDERED: usize = 4;
/// λ, as a share of K's trace, from which the errors of a solution, about machine precision over
/// this, do not matter to a step.
const TRUSTED: f64 = 1e-9;
/// How the shift grows where rounding has made K + λI indefinite.
pub(super) const GROWTH: Growth =
    Growth { times: 10.0, least: f64::EPSILON, most: 1.0 / f64::EPSILON };
/// Steps of inverse iteration. The shift is up to ten times the eigenvalue looked for, so that a
/// step gains a factor of 10/9 on the eigenvalues near zero; this many gain 1e9.
const INVERSE_ITERATIONS: usize = 200;

pub(crate) struct Direct<'a> {
    operator: &'a dyn KernelOperator,
    n: usize,
    /// L, column-major.
    factor: Vec<f64>,
    ridge: f64,
    known: Known,
    dimensions: Vec<Dimension>,
    /// What was added to K's diagonal: λ, or more where that did not suffice.
    shift: f64,
    /// Whether λ is far enough from rounding for solutions to be taken without looking at their
    /// residual.
    trusted: bool,
}

/// Columns of L⁻¹ computed so far.
#[derive(Default)]
struct Known {
    /// Place of each sample among the columns.
    place: Vec<Option<usize>>,
    /// One of n after the other.
    columns: Vec<f64>,
    /// Inner products of each column with those before it and itself.
    products: Vec<Vec<f64>>,
}

struct Dimension {
    free: Vec<bool>,
    system: FreeSystem,
}

enum FreeSystem {
    /// No sample is bound.
    All,
    /// The bound samples, their places among the known columns, and the Cholesky factor of S_AA.
    Bordered { bound: Vec<usize>, places: Vec<usize>, factor: Vec<f64> },
    /// The free samples and the Cholesky factor of K_FF + λI.
    Own { free: Vec<usize>, factor: Vec<f64> },
}

impl<'a> Direct<'a> {
    /// Factorises K + λI, its kernel values in the operator's working precision.
    pub(crate) fn new(
        operator: &'a dyn KernelOperator,
        ridge: f64,
        n_dimensions: usize,
    ) -> Result<Self, Error> {
        let n = operator.n_samples();
        let (factor, shift) =
            factorise(n, ridge, |matrix| fill(operator, matrix), cholesky_on_all_cores)?;
        let known = Known { place: vec![None; n], ..Known::default() };
        let dimensions = (0..n_dimensions)
            .map(|_| Dimension { free: vec![true; n], system: FreeSystem::All })
            .collect();
        let trace: f64 = operator.diagonal()?.iter().sum();
        let trusted = shift == ridge && ridge >= TRUSTED * trace;
        Ok(Self { operator, n, factor, ridge, known, dimensions, shift, trusted })
    }

    /// Whether rounding has made K + λI indefinite.
    pub(crate) fn indefinite(&self) -> bool {
        self.shift > self.ridge
    }

    /// What shows that K itself is indefinite by more than rounding: inverse iteration with the
    /// shifted factor finds the direction of K's smallest eigenvalue, and an exact product its
    /// curvature.
    pub(crate) fn fault(&self) -> Result<Option<KernelFault>, Error> {
        let n = self.n;
        let exact = self.operator.exact();
        let trace = exact.diagonal()?.iter().sum();
        // No eigenvalue of K is below −shift.
        if clearly_negative(-self.shift, trace, n).is_none() {
            return Ok(None);
        }
        let mut v: Vec<f64> = (0..n).map(|i| 1.0 + 0.5 * (i as f64).sin()).collect();
        for _ in 0..INVERSE_ITERATIONS {
            cholesky_solve(&self.factor, n, &mut v);
            let norm = dot(&v, &v).sqrt();
            if !(norm > 0.0 && norm.is_finite()) {
                return Ok(None);
            }
            v.iter_mut().for_each(|v| *v /= norm);
        }
        let mut image = Array2::zeros((1, n));
        let row = Array2::from_shape_fn((1, n), |(_, i)| v[i]);
        exact.apply(row.view(), image.view_mut())?;
        let curvature = v.iter().zip(&image).map(|(v, image)| v * image).sum();
        Ok(clearly_negative(curvature, trace, n))
    }

    /// Bytes held at most.
    pub(crate) fn bytes(n_samples: usize, n_dimensions: usize) -> u64 {
        let n = n_samples;
        // L, at most all columns of L⁻¹ with their products, a factor of K_FF a dimension.
        let own = n_dimensions * (n - n / BORDERED).pow(2);
        ((n * n + n * n + n * n / 2 + own + cholesky_room(n)) * size_of::<f64>()) as u64
    }

    fn factor_free(&self, free: Vec<usize>) -> Result<FreeSystem, Error> {
        let fill = |matrix: &mut [f64]| self.operator.block_into(&free, matrix);
        let (factor, _) = factorise(free.len(), self.ridge, fill, cholesky)?;
        Ok(FreeSystem::Own { free, factor })
    }

    fn border(&self, bound: Vec<usize>) -> Result<FreeSystem, Error> {
        let m = bound.len();
        let learned = |&i: &usize| self.known.place[i].expect("a sample is learned, then bordered");
        let places: Vec<usize> = bound.iter().map(learned).collect();
        let fill = |matrix: &mut [f64]| {
            for (column, &a) in matrix.chunks_mut(m).zip(&places) {
                for (value, &b) in column.iter_mut().zip(&places) {
                    *value = self.known.products[a.max(b)][a.min(b)];
                }
            }
            Ok(())
        };
        let (factor, _) = factorise(m, 0.0, fill, cholesky)?;
        Ok(FreeSystem::Bordered { bound, places, factor })
    }

    /// Computes the columns of L⁻¹ that belong to `samples` and are not known yet.
    fn learn(&mut self, mut samples: Vec<usize>) {
        samples.sort_unstable();
        samples.dedup();
        samples.retain(|&i| self.known.place[i].is_none());
        let (n, before) = (self.n, self.known.products.len());
        let known = &mut self.known;
        for (at, &i) in samples.iter().enumerate() {
            known.place[i] = Some(before + at);
        }
        known.columns.resize((before + samples.len()) * n, 0.0);
        let (old, new) = known.columns.split_at_mut(before * n);
        for (column, &i) in new.chunks_mut(n).zip(&samples) {
            column[i] = 1.0;
        }
        forward_substitute_on_all_cores(&self.factor, n, new, &samples);
        let new = &*new;
        let rows: Vec<Vec<f64>> = new
            .par_chunks(GROUP * n)
            .enumerate()
            .flat_map_iter(|(group, columns)| {
                let m = columns.len() / n;
                let upto = group * GROUP + m;
                let mut products = vec![0.0; (before + upto) * m];
                let mut with_old = vec![0.0; before * m];
                let mut with_new = vec![0.0; upto * m];
                inner_products(&mut with_old, old, columns, (before, m, n));
                inner_products(&mut with_new, &new[..upto * n], columns, (upto, m, n));
                for (c, row) in products.chunks_mut(before + upto).enumerate() {
                    row[..before].copy_from_slice(&with_old[c * before..(c + 1) * before]);
                    row[before..].copy_from_slice(&with_new[c * upto..(c + 1) * upto]);
                }
                (0..m).map(move |c| {
                    let row = &products[c * (before + upto)..(c + 1) * (before + upto)];
                    row[..=before + group * GROUP + c].to_vec()
                })
            })
            .collect();
        known.products.extend(rows);
    }
}

impl Direct<'_> {
    /// c and t for each dimension that shares L and its right-hand side.
    fn solve_shared(&self, systems: &[(usize, ArrayView1<'_, f64>)]) -> Vec<(Vec<f64>, Vec<f64>)> {
        let n = self.n;
        if systems.is_empty() {
            return Vec::new();
        }
        let mut w: Vec<f64> = systems.iter().flat_map(|(_, v)| v.iter().copied()).collect();
        forward_substitute_on_all_cores(&self.factor, n, &mut w, &vec![0; systems.len()]);
        let taken: Vec<Vec<f64>> = w
            .par_chunks_mut(n)
            .zip(systems)
            .map(|(w, (j, _))| {
                let FreeSystem::Bordered { bound, places, factor } = &self.dimensions[*j].system
                else {
                    return Vec::new();
                };
                // A column is zero above its own sample.
                let columns = || {
                    let from = bound.iter().zip(places);
                    from.map(|(&i, place)| (i, &self.known.columns[place * n + i..(place + 1) * n]))
                };
                let mut t: Vec<f64> = columns().map(|(i, column)| dot(column, &w[i..])).collect();
                cholesky_solve(factor, bound.len(), &mut t);
                for ((i, column), t) in columns().zip(&t) {
                    w[i..].iter_mut().zip(column).for_each(|(w, c)| *w -= t * c);
                }
                t
            })
            .collect();
        back_substitute_on_all_cores(&self.factor, n, &mut w, systems.len());
        let masked = w.chunks(n).zip(systems).map(|(w, (j, _))| {
            let free = &self.dimensions[*j].free;
            w.iter().zip(free).map(|(w, free)| if *free { *w } else { 0.0 }).collect()
        });
        masked.zip(taken).collect()
    }
}

impl Preconditioner for Direct<'_> {
    fn solve(&self, ridge: f64, v: &Array2<f64>) -> Option<(Array2<f64>, Array2<f64>)> {
        let own = |d: &Dimension| matches!(d.system, FreeSystem::Own { .. });
        if !self.trusted || ridge != self.ridge || self.dimensions.iter().any(own) {
            return None;
        }
        let systems: Vec<_> = v.rows().into_iter().enumerate().collect();
        let (mut found, mut image) = (Array2::zeros(v.dim()), v.clone());
        for (j, (c, t)) in self.solve_shared(&systems).into_iter().enumerate() {
            let c = ArrayView1::from(&c);
            found.row_mut(j).assign(&c);
            image.row_mut(j).scaled_add(-ridge, &c);
            if let FreeSystem::Bordered { bound, .. } = &self.dimensions[j].system {
                bound.iter().zip(t).for_each(|(&i, t)| image[[j, i]] = -t);
            }
        }
        Some((found, image))
    }

    fn update(&mut self, faces: &Faces) -> Result<(), Error> {
        let free = faces.mask()?;
        let n = self.n;
        let stale: Vec<usize> = (0..self.dimensions.len())
            .filter(|&j| !free.row(j).iter().eq(&self.dimensions[j].free))
            .collect();
        let bound_of = |j: usize| -> Vec<usize> { (0..n).filter(|&i| !free[[j, i]]).collect() };
        let bordered = |bound: &[usize]| bound.len() <= n / BORDERED;
        let bound: Vec<Vec<usize>> = stale.iter().map(|&j| bound_of(j)).collect();
        self.learn(bound.iter().filter(|b| bordered(b)).flatten().copied().collect());
        // What is stale goes before what replaces it comes.
        stale.iter().for_each(|&j| self.dimensions[j].system = FreeSystem::All);
        let this = &*self;
        let systems: Vec<Result<FreeSystem, Error>> = stale
            .par_iter()
            .zip(bound)
            .map(|(&j, bound)| {
                if bound.is_empty() {
                    Ok(FreeSystem::All)
                } else if bordered(&bound) {
                    this.border(bound)
                } else {
                    this.factor_free((0..n).filter(|&i| free[[j, i]]).collect())
                }
            })
            .collect();
        for (&j, way) in stale.iter().zip(systems) {
            self.dimensions[j] = Dimension { free: free.row(j).to_vec(), system: way? };
        }
        Ok(())
    }

    fn apply(
        &self,
        dimensions: &[usize],
        v: ArrayView2<'_, f64>,
        mut out: ArrayViewMut2<'_, f64>,
    ) -> Result<(), Error> {
        // Those that share L go through it together.
        let shares =
            |c: &usize| !matches!(self.dimensions[dimensions[*c]].system, FreeSystem::Own { .. });
        let (shared, own): (Vec<usize>, Vec<usize>) = (0..dimensions.len()).partition(shares);
        let rows = shared.iter().map(|&c| (dimensions[c], v.row(c))).collect::<Vec<_>>();
        for (&c, (found, _)) in shared.iter().zip(self.solve_shared(&rows)) {
            out.row_mut(c).assign(&ArrayView1::from(&found));
        }
        let solved: Vec<Vec<f64>> = own
            .par_iter()
            .map(|&c| match &self.dimensions[dimensions[c]].system {
                FreeSystem::Own { free, factor } => {
                    let mut t: Vec<f64> = free.iter().map(|&i| v[[c, i]]).collect();
                    cholesky_solve(factor, free.len(), &mut t);
                    t
                }
                FreeSystem::All | FreeSystem::Bordered { .. } => Vec::new(),
            })
            .collect();
        for (&c, solved) in own.iter().zip(solved) {
            out.row_mut(c).fill(0.0);
            if let FreeSystem::Own { free, .. } = &self.dimensions[dimensions[c]].system {
                for (&i, value) in free.iter().zip(solved) {
                    out[[c, i]] = value;
                }
            }
        }
        Ok(())
    }
}

/// Writes K below the diagonal, column by column.
fn fill(operator: &dyn KernelOperator, matrix: &mut [f64]) -> Result<(), Error> {
    let n = operator.n_samples();
    let mut values = vec![0.0; PANEL.min(n) * n];
    for (panel, columns) in matrix.chunks_mut(PANEL * n).enumerate() {
        let first = panel * PANEL;
        let samples: Vec<usize> = (first..first + columns.len() / n).collect();
        let values = &mut values[..samples.len() * (n - first)];
        operator.rows_into(&samples, first..n, values)?;
        for (column, values) in columns.chunks_mut(n).zip(values.chunks(n - first)) {
            column[first..].copy_from_slice(values);
        }
    }
    Ok(())
}

/// Cholesky factor of the matrix that `fill` writes, plus a shift of its diagonal, and the shift: a
/// larger one than asked for still gives a valid, if weaker, preconditioner.
fn factorise(
    n: usize,
    shift: f64,
    fill: impl Fn(&mut [f64]) -> Result<(), Error>,
    cholesky: impl Fn(&mut [f64], usize) -> bool,
) -> Result<(Vec<f64>, f64), Error> {
    let mut matrix = vec![0.0; n * n];
    prefer_large_pages(&matrix);
    let mut is_first = true;
    let fill_again = |matrix: &mut [f64]| {
        fill(matrix)?;
        // Why there was no factor the last time.
        if std::mem::take(&mut is_first) { Ok(()) } else { check_finite(matrix, n) }
    };
    let found = cholesky_shifted((&mut matrix, n), shift, GROWTH, cholesky, fill_again)?;
    if let Some(shift) = found {
        return Ok((matrix, shift));
    }
    fill(&mut matrix)?;
    check_finite(&matrix, n)?;
    Err(values_too_large())
}

/// A lower triangle with a value that is not finite is no kernel's.
fn check_finite(matrix: &[f64], n: usize) -> Result<(), Error> {
    let wrong = (0..n * n).find(|at| at / n <= at % n && !matrix[*at].is_finite());
    wrong.map_or(Ok(()), |at| {
        let (samples, value) = ([at % n, at / n], matrix[at]);
        Err(Error::NotPositiveSemidefinite(KernelFault::NotFinite { samples, value }))
    })
}

#[cfg(test)]
mod tests;
