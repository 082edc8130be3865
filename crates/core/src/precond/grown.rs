//! (λI + B_FᵀB_F)⁻¹ from what a fit of most of these samples has left.
//!
//! Enters: an operator, and pivots with Gram matrices of B over free samples. B is T⁻¹C with C the
//! pivots' rows of K and T the Cholesky factor of C at the pivots, so only kernel values are
//! computed, and the Gram matrices follow the samples that are new or have switched sides.
//!
//! They are not quite those of this B: they were rounded, and so was C, by which T⁻¹ magnifies. So
//! λI + BB_Fᵀ is inverted by conjugate gradients on rank numbers a dimension, which Gram matrices
//! precondition; a few passes over C in place of N·r² operations.

use super::kept::{KeptFactor, KeptGram, triangle_of};
use super::low_rank::RankLimits;
use super::{FactorPanel, LOW_RANK_GROWTH, Preconditioner, change, values_too_large};
use crate::decision_set::Faces;
use crate::error::Error;
use crate::linalg::dense::{
    add_gram_columns, cholesky, cholesky_solve, forward_substitute_rows, triangular_solve,
};
use crate::linalg::shifted::cholesky_shifted;
use crate::linalg::sums::{dot, sum_over};
use crate::operator::KernelOperator;
use ndarray::{Array2, ArrayView1, ArrayView2, ArrayViewMut2};
use rayon::prelude::*;
use std::borrow::Cow;

/// Samples whose columns of B are solved for together, and such groups that are there at once.
const PANEL: usize = 128;
const PANELS: usize = 8;
/// Columns of a Gram matrix that are one task's.
const GRAM_COLUMNS: usize = 64;
/// A Gram matrix is factorised anew where more samples have switched than this share of the rank: a
/// few take conjugate gradients a step or two, which cost as much.
const STALE: usize = 256;
/// Error of an inverse in the norm of λI + B_FᵀB_F, and the steps it may take. Right-hand sides can
/// be a thousand times what a Newton step is to remove: with a tenth, steps no longer paid.
const INNER_TOL: f64 = 1e-4;
const INNER_STEPS: usize = 20;
/// Share of the rank worth having below which, and growth of what the factor leaves of a sample on
/// average beyond which, a factor is better made anew.
const LEAST_RANK: f64 = 0.7;
const MOST_LEFT: f64 = 2.0;

pub(crate) struct Grown {
    /// C.
    rows: FactorPanel,
    pivots: Vec<usize>,
    trace_left: f64,
    /// T, column-major.
    triangle: Vec<f64>,
    ridge: f64,
    dimensions: Vec<Dimension>,
    /// The columns of B at the new samples, panel by panel, until they are in the Gram matrices;
    /// none where these are too many.
    fresh: Vec<(Vec<usize>, Vec<f64>)>,
}

struct Dimension {
    free: Vec<bool>,
    /// B_FB_Fᵀ, lower triangle, and the Cholesky factor of λI plus what it was; empty where an
    /// earlier dimension has the same free samples.
    gram: Vec<f64>,
    cholesky: Vec<f64>,
    /// Samples that have switched since.
    stale: usize,
    same_as: usize,
}

impl Grown {
    /// Of a factor of the first samples. None where another would be worth its cost: its rank is
    /// too small by now, or it leaves too much of the new ones.
    pub(crate) fn new(
        operator: &dyn KernelOperator,
        kept: KeptFactor,
        ridge: f64,
        limits: RankLimits,
    ) -> Result<Option<Self>, Error> {
        let (rank, n_samples) = (kept.rank(), operator.n_samples());
        let n_known = kept.n_samples();
        let short = (rank as f64) < LEAST_RANK * limits.max_rank as f64;
        let enough = kept.trace_left <= limits.enough_trace;
        if (short && !enough) || rank > limits.max_rank || n_known == 0 || n_known > n_samples {
            return Ok(None);
        }
        let mut block = vec![0.0; rank * rank];
        operator.block_into(&kept.pivots, &mut block)?;
        let Some(triangle) = triangle_of(block, rank) else { return Ok(None) };
        let KeptFactor { pivots, trace_left, owners, grams, .. } = kept;
        let rows = FactorPanel::of_kernel(operator, &pivots)?;
        let (dimensions, fresh) = (Vec::new(), Vec::new());
        let mut grown = Self { rows, pivots, trace_left, triangle, ridge, dimensions, fresh };

        let new: Vec<usize> = (n_known..n_samples).collect();
        let diagonal = operator.diagonal()?;
        let mut added = 0.0;
        for samples in new.chunks(PANEL * PANELS) {
            let panels: Vec<(Vec<usize>, Vec<f64>)> = (samples.par_chunks(PANEL))
                .map(|panel| (panel.to_vec(), grown.columns(panel)))
                .collect();
            for (panel, b) in &panels {
                let mut known = vec![0.0; panel.len()];
                for row in b.chunks(panel.len()) {
                    known.iter_mut().zip(row).for_each(|(known, b)| *known += b * b);
                }
                let left = panel.iter().zip(&known).map(|(&i, known)| diagonal[i] - known);
                added += left.map(|left| left.max(0.0)).sum::<f64>();
            }
            if new.len() <= PANEL * PANELS {
                grown.fresh = panels;
            }
        }
        let left = trace_left + added;
        let usual = trace_left / n_known as f64;
        if left > limits.enough_trace && left > MOST_LEFT * usual * n_samples as f64 {
            return Ok(None);
        }
        grown.trace_left = left;

        let first = |at: usize| owners.iter().position(|&of| of == at).unwrap_or(0);
        let firsts: Vec<usize> = (0..grams.len()).map(first).collect();
        let mut grams: Vec<Option<KeptGram>> = grams.into_iter().map(Some).collect();
        for (j, &at) in owners.iter().enumerate() {
            let same_as = firsts[at];
            let mut dimension = Dimension {
                free: Vec::new(),
                gram: Vec::new(),
                cholesky: Vec::new(),
                stale: 0,
                same_as,
            };
            if let Some(own) = grams[at].take() {
                dimension.gram = own.triangle.matrix(rank, false);
                dimension.free = own.free;
                dimension.free.resize(n_samples, false);
            } else {
                dimension.free.clone_from(&grown.dimensions[same_as].free);
            }
            debug_assert!(same_as <= j);
            grown.dimensions.push(dimension);
        }
        Ok(Some(grown))
    }

    /// trace(K − BᵀB).
    pub(crate) fn trace_left(&self) -> f64 {
        self.trace_left
    }

    /// The columns of B at these samples, rank × samples.len() row-major.
    fn columns(&self, samples: &[usize]) -> Vec<f64> {
        let mut columns = self.rows.gather(samples);
        forward_substitute_rows(&self.triangle, self.rows.rank(), &mut columns, samples.len());
        columns
    }

    /// B v.
    fn coordinates(&self, v: ArrayView2<'_, f64>) -> Array2<f64> {
        self.solved(self.rows.project(v), false)
    }

    /// Bᵀw.
    fn combined(&self, w: Array2<f64>) -> Array2<f64> {
        self.rows.expand(self.solved(w, true).view())
    }

    /// T⁻¹v, or T⁻ᵀv where `transposed`, for each row.
    fn solved(&self, mut vectors: Array2<f64>, transposed: bool) -> Array2<f64> {
        let rows = vectors.as_slice_mut().expect("in standard layout");
        triangular_solve(&self.triangle, self.rows.rank(), rows, transposed);
        vectors
    }

    /// Bᵀw with (λI + B_FB_Fᵀ)w = t for each row of `t`, by conjugate gradients. `enough` says
    /// whether a row's Bᵀw will do with a residual whose squared norm is this. What a step leaves
    /// takes a pass of its own to know; it is guessed where the step before has shown what one
    /// removes.
    fn combined_solution(
        &self,
        dimensions: &[usize],
        t: Array2<f64>,
        enough: impl Fn(usize, ArrayView1<'_, f64>, f64) -> bool,
    ) -> Array2<f64> {
        let (ridge, n_samples) = (self.ridge, self.rows.n_samples());
        let mut systems: Vec<System> = t.rows().into_iter().map(System::new).collect();
        let mut known = Array2::zeros((t.nrows(), n_samples));
        for _ in 0..INNER_STEPS {
            systems.par_iter_mut().zip(dimensions).for_each(|(system, &j)| {
                let owner = self.dimensions[j].same_as;
                system.turn(&self.dimensions[owner].cholesky);
            });
            let directions = Array2::from_shape_fn(t.dim(), |(c, r)| systems[c].direction[r]);
            let mut images = self.combined(directions);
            let mut done = true;
            for (c, system) in systems.iter_mut().enumerate() {
                let free = &self.dimensions[dimensions[c]].free;
                let mut image = images.row_mut(c);
                let inside = image.iter().zip(free).filter(|(_, free)| **free);
                let step = system.length(ridge, inside.map(|(value, _)| value * value).sum());
                known.row_mut(c).scaled_add(step, &image);
                let masked = image.iter_mut().zip(free).filter(|(_, free)| !**free);
                masked.for_each(|(value, _)| *value = 0.0);
                done &= enough(c, known.row(c), system.guess);
            }
            if done {
                break;
            }
            let own = self.coordinates(images.view());
            let mut done = true;
            for (c, (system, own)) in systems.iter_mut().zip(own.rows()).enumerate() {
                system.advance(ridge, own);
                done &= enough(c, known.row(c), system.left);
            }
            if done {
                break;
            }
        }
        known
    }

    /// Gives a dimension whose free samples are no longer those of another a matrix of its own.
    fn part(&mut self, free: ArrayView2<'_, bool>) {
        for j in 0..self.dimensions.len() {
            let owner = self.dimensions[j].same_as;
            if owner == j || free.row(j) == free.row(owner) {
                continue;
            }
            // The first to leave takes along those that are like it.
            let Dimension { free: was, gram, cholesky, stale, .. } = &self.dimensions[owner];
            let (was, gram, cholesky, stale) =
                (was.clone(), gram.clone(), cholesky.clone(), *stale);
            for other in j..self.dimensions.len() {
                let alike =
                    self.dimensions[other].same_as == owner && free.row(other) == free.row(j);
                if alike {
                    self.dimensions[other].same_as = j;
                }
            }
            let own = &mut self.dimensions[j];
            (own.free, own.gram, own.cholesky, own.stale) = (was, gram, cholesky, stale);
        }
    }

    /// Brings the Gram matrices up to date with the samples that switched.
    fn follow(&mut self, free: ArrayView2<'_, bool>) {
        let switches = |d: &Dimension, j: usize, i: usize| d.free[i] != free[[j, i]];
        let owners: Vec<usize> =
            (0..self.dimensions.len()).filter(|&j| self.dimensions[j].same_as == j).collect();
        let rank = self.rows.rank();
        let fresh = std::mem::take(&mut self.fresh);
        let first_fresh = fresh.first().map_or(usize::MAX, |(panel, _)| panel[0]);
        let switched: Vec<usize> = (0..self.rows.n_samples().min(first_fresh))
            .filter(|&i| owners.iter().any(|&j| switches(&self.dimensions[j], j, i)))
            .collect();
        let groups = switched.chunks(PANEL * PANELS).map(|samples| {
            let panels = samples.par_chunks(PANEL);
            panels.map(|panel| (panel.to_vec(), self.columns(panel))).collect()
        });
        let groups: Vec<Vec<(Vec<usize>, Vec<f64>)>> = if fresh.is_empty() {
            groups.collect()
        } else {
            std::iter::once(fresh).chain(groups).collect()
        };
        for panels in &groups {
            for &j in &owners {
                for sign in [1.0, -1.0] {
                    let wanted = sign > 0.0;
                    let d = &self.dimensions[j];
                    let picked = |i: &usize| switches(d, j, *i) && free[[j, *i]] == wanted;
                    let parts: Vec<(Cow<'_, [f64]>, usize)> = (panels.iter())
                        .map(|(panel, columns)| picked_columns(panel, columns, &picked))
                        .filter(|(_, n)| *n > 0)
                        .collect();
                    let gram = &mut self.dimensions[j].gram;
                    gram.par_chunks_mut(rank * GRAM_COLUMNS).enumerate().for_each(|(at, part)| {
                        let from = at * GRAM_COLUMNS;
                        let range = (from, from + part.len() / rank);
                        for (columns, n) in &parts {
                            add_gram_columns(part, range, sign, columns, (rank, *n));
                        }
                    });
                }
            }
        }
        for (j, d) in self.dimensions.iter_mut().enumerate() {
            let now = free.row(j);
            if d.same_as == j {
                d.stale += d.free.iter().zip(now).filter(|(was, now)| was != now).count();
            }
            d.free.iter_mut().zip(now).for_each(|(was, now)| *was = *now);
        }
    }
}

/// The columns of a panel's samples that are picked, and how many they are.
fn picked_columns<'a>(
    panel: &[usize],
    columns: &'a [f64],
    picked: &dyn Fn(&usize) -> bool,
) -> (Cow<'a, [f64]>, usize) {
    let at: Vec<usize> = (0..panel.len()).filter(|&at| picked(&panel[at])).collect();
    let rows = columns.chunks(panel.len());
    let values = if at.len() == panel.len() {
        Cow::Borrowed(columns)
    } else {
        let mut values = Vec::with_capacity(at.len() * columns.len() / panel.len().max(1));
        rows.for_each(|row| values.extend(at.iter().map(|&at| row[at])));
        Cow::Owned(values)
    };
    (values, at.len())
}

impl Preconditioner for Grown {
    fn set_ridge(&mut self, ridge: f64) -> bool {
        if ridge != self.ridge {
            self.ridge = ridge;
            self.dimensions.iter_mut().for_each(|d| d.cholesky.clear());
        }
        true
    }

    fn update(&mut self, faces: &Faces) -> Result<(), Error> {
        let free = faces.mask()?;
        self.part(free.view());
        self.follow(free.view());
        let (rank, ridge) = (self.rows.rank(), self.ridge);
        self.dimensions
            .par_iter_mut()
            .enumerate()
            .filter(|(j, d)| d.same_as == *j && (d.cholesky.is_empty() || d.stale * STALE > rank))
            .try_for_each(|(_, d)| {
                d.cholesky.resize(rank * rank, 0.0);
                d.stale = 0;
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

    /// (v − B_Fᵀw)/λ with (λI + B_FB_Fᵀ)w = B_F v. A residual ρ of w is an error of B_Fᵀδ/λ with
    /// (λI + B_FB_Fᵀ)δ = ρ, less than ‖ρ‖/λ in the norm of λI + B_FᵀB_F.
    fn apply(
        &self,
        dimensions: &[usize],
        v: ArrayView2<'_, f64>,
        mut out: ArrayViewMut2<'_, f64>,
    ) -> Result<(), Error> {
        let ridge = self.ridge;
        // ‖ρ‖² against λ² vᵀ(λI + B_FᵀB_F)⁻¹v.
        let enough = |c: usize, known: ArrayView1<'_, f64>, left: f64| {
            let product = v.row(c).dot(&(&v.row(c) - &known));
            left <= INNER_TOL * INNER_TOL * ridge * product.max(0.0)
        };
        let known = self.combined_solution(dimensions, self.coordinates(v), enough);
        for (c, mut row) in out.rows_mut().into_iter().enumerate() {
            let free = &self.dimensions[dimensions[c]].free;
            for (i, value) in row.iter_mut().enumerate() {
                let inside = (v[[c, i]] - known[[c, i]]) / ridge;
                *value = if free[i] { inside } else { 0.0 };
            }
        }
        Ok(())
    }

    fn model_product(&self, v: ArrayView2<'_, f64>) -> Option<Array2<f64>> {
        Some(self.combined(self.coordinates(v)))
    }

    fn model_energies(&self, v: ArrayView2<'_, f64>) -> Option<Vec<f64>> {
        let own = self.coordinates(v);
        Some(own.rows().into_iter().map(|row| row.dot(&row)).collect())
    }

    /// K̃d is Bᵀw with (λI + B_FB_Fᵀ)w = Br. A residual ρ of w is an error of d less than ‖ρ‖/λ in
    /// the norm of λI + B_FᵀB_F.
    fn model_step(&self, residual: &Array2<f64>) -> Option<(Array2<f64>, Array2<f64>)> {
        let ridge = self.ridge;
        let dimensions: Vec<usize> = (0..residual.nrows()).collect();
        let free = |j: usize, i: usize| self.dimensions[j].free[i];
        let enough = |j: usize, known: ArrayView1<'_, f64>, left: f64| {
            // λ² dᵀ(λI + K̃)d.
            let own = residual.row(j);
            let energy = sum_over(own.len(), |i| {
                let d = own[i] - if free(j, i) { known[i] } else { 0.0 };
                d * (d + known[i])
            });
            left <= INNER_TOL * INNER_TOL * ridge * energy.max(0.0)
        };
        let t = self.coordinates(residual.view());
        let image = self.combined_solution(&dimensions, t, enough);
        Some((change(residual, &image, ridge, free), image))
    }

    fn keep(&self) -> Option<KeptFactor> {
        let origin = (&self.pivots[..], self.trace_left);
        KeptFactor::of(origin, self.dimensions.iter().map(|d| d.same_as), |j| {
            let d = &self.dimensions[j];
            Some(KeptGram::new(d.free.clone(), &d.gram, self.ridge))
        })
    }
}

/// (λI + B_FB_Fᵀ)w = t by conjugate gradients.
struct System {
    residual: Vec<f64>,
    direction: Vec<f64>,
    /// ρᵀ(λI + G)⁻¹ρ.
    energy: f64,
    /// How far along the direction.
    step: f64,
    /// ‖ρ‖², and what it is thought to be after the next step: infinite before the first.
    left: f64,
    guess: f64,
}

impl System {
    fn new(t: ArrayView1<'_, f64>) -> Self {
        let residual = t.to_vec();
        let left = dot(&residual, &residual);
        let direction = vec![0.0; t.len()];
        Self { residual, direction, energy: 0.0, step: 0.0, left, guess: f64::INFINITY }
    }

    /// The next direction, by the factor of λI + G.
    fn turn(&mut self, cholesky: &[f64]) {
        let mut z = self.residual.clone();
        cholesky_solve(cholesky, z.len(), &mut z);
        let energy = dot(&z, &self.residual);
        let share = if self.energy > 0.0 { energy / self.energy } else { 0.0 };
        self.energy = energy;
        self.direction.iter_mut().zip(&z).for_each(|(p, z)| *p = z + share * *p);
    }

    /// How far along it, for ‖B_Fᵀp‖².
    fn length(&mut self, ridge: f64, squared: f64) -> f64 {
        let curvature = ridge * dot(&self.direction, &self.direction) + squared;
        self.step = if curvature > 0.0 { self.energy / curvature } else { 0.0 };
        self.step
    }

    /// Goes there, for B_FB_Fᵀp.
    fn advance(&mut self, ridge: f64, image: ArrayView1<'_, f64>) {
        let own = self.residual.iter_mut().zip(image).zip(&self.direction);
        own.for_each(|((r, q), p)| *r -= self.step * (q + ridge * p));
        let left = dot(&self.residual, &self.residual);
        self.guess = if self.left > 0.0 { left * (left / self.left).sqrt() } else { 0.0 };
        self.left = left;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;
    use crate::operator::{HostOperator, OperatorKind, Precision};
    use crate::precond::{LowRank, Woodbury};
    use crate::random::stream;

    type Rule = fn(usize) -> bool;

    /// From a factor of 350 of 400 samples, whose matrices were rounded.
    #[test]
    fn inverts_the_low_rank_matrix_of_more_samples_on_the_free_ones_as_they_change() {
        let (n, n_known, ridge) = (400, 350, 0.01);
        let all = Array2::from_shape_fn((n, 2), |(i, j)| ((i * i * (j + 2)) as f64 * 0.37).sin());
        let kernel = Kernel::Rbf { gamma: 2.0 };
        for precision in [Precision::F64, Precision::F32] {
            let kind = OperatorKind::Tiled;
            let known = all.slice(ndarray::s![..n_known, ..]);
            let of_known = HostOperator::new(known, kernel.clone(), precision, kind).unwrap();
            let limits = RankLimits { max_rank: 100, enough_trace: 1.0 };
            let rng = &mut stream(3, "t");
            let factor = LowRank::build(&of_known, limits, rng, || true).unwrap();
            let (pivots, left) = (factor.pivots().to_vec(), factor.trace_left());
            let panel = factor.into_rows().err().unwrap();
            let mut woodbury = Woodbury::new(panel, ridge, 3).of_pivots(pivots, left);
            let first: [Rule; 3] = [|i| i % 3 > 0, |i| i > 100, |i| i % 3 > 0];
            let free = Array2::from_shape_fn((3, n_known), |(j, i)| first[j](i));
            woodbury.update(&Faces::Box(free)).unwrap();
            let kept = woodbury.keep().unwrap();
            let operator = HostOperator::new(all.view(), kernel.clone(), precision, kind).unwrap();
            let mut grown = Grown::new(&operator, kept, ridge, limits).unwrap().unwrap();

            // B of the same pivots.
            let pivots = grown.pivots.clone();
            let (rank, everyone) = (pivots.len(), (0..n).collect::<Vec<usize>>());
            let b = grown.columns(&everyone);
            // Dimension 2 is 0's twin and leaves it, 0 and 1 gain and lose.
            let rules: [[Rule; 3]; 3] = [
                first,
                [|i| i % 3 > 0, |i| i > 90, |i| i % 4 > 0],
                [|i| i % 5 > 0, |i| i > 120, |i| i % 4 > 0],
            ];
            for rule in rules {
                let free = Array2::from_shape_fn((3, n), |(j, i)| rule[j](i));
                grown.update(&Faces::Box(free.clone())).unwrap();
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
                grown.apply(&[0, 1, 2], v.view(), out.view_mut()).unwrap();
                // In the norm of the matrix.
                for j in 0..3 {
                    let off = &out.row(j) - &w.row(j);
                    let energy = |a: ArrayView1<'_, f64>| -> f64 {
                        let t = (0..rank).map(|r| (0..n).map(|i| b[r * n + i] * a[i]).sum::<f64>());
                        ridge * a.dot(&a) + t.map(|t| t * t).sum::<f64>()
                    };
                    let share = (energy(off.view()) / energy(w.row(j))).sqrt();
                    assert!(share < INNER_TOL, "{precision:?}, {j}: {share:e}");
                }
                // λd + K̃d is the residual where samples are free, λd elsewhere.
                let residual = Array2::from_shape_fn((3, n), |(j, i)| ((i * 3 + j) as f64).cos());
                let (d, image) = grown.model_step(&residual).unwrap();
                let energies = grown.model_energies(d.view()).unwrap();
                for j in 0..3 {
                    let t: Vec<f64> =
                        (0..rank).map(|r| (0..n).map(|i| b[r * n + i] * d[[j, i]]).sum()).collect();
                    let energy = t.iter().map(|t| t * t).sum::<f64>();
                    assert!((energies[j] - energy).abs() < 1e-2 * energy);
                    let mut off = 0.0;
                    for i in 0..n {
                        let low: f64 = (0..rank).map(|r| b[r * n + i] * t[r]).sum();
                        let known = if free[[j, i]] { low } else { 0.0 };
                        off += (ridge * d[[j, i]] + known - residual[[j, i]]).powi(2);
                        off += (image[[j, i]] - low).powi(2);
                    }
                    let size = residual.row(j).dot(&residual.row(j));
                    assert!(off.sqrt() < 1e-2 * size.sqrt(), "{j}: {off:e} of {size:e}");
                }
            }
            let left = grown.keep().unwrap();
            left.validate(n, 3).unwrap();
            assert!(left.pivots == pivots && left.grams.len() == 3);
        }
    }
}
