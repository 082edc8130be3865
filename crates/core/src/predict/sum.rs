//! g(s) = Σ κ(s, ŝ_i) α_i: kernel values of a few signals against a block of the support at a time,
//! summed with its coefficients.

use crate::error::Error;
use crate::features::FeatureMap;
use crate::kernel::layout::{BLOCK, STRIP};
use crate::kernel::quadratic::{QuadraticRows, QuadraticSupport};
use crate::kernel::recipe::Recipe;
use crate::kernel::rounding::{Accuracy, Rounded};
use crate::kernel::samples::{RowPack, Samples, StripRows};
use crate::linalg::aligned::Aligned;
use crate::linalg::simd::Isa;
use crate::model::Support;
use crate::operator::{accumulate_rows, accuracy_for};
use ndarray::{Array2, ArrayView1, ArrayView2, ArrayViewMut2, Axis};

/// Largest difference between the g of both ways, relative to Σ κ|α|, what g adds up: its rounding
/// is of that whichever way is taken.
const AGREEMENT: f64 = 1e-13;
/// The tolerance whose accuracy predictions have.
const ORDINARY_TOL: f64 = 1e-6;
/// What their kernel values may be off by, by a bound that is fifty times what is seen.
const ACCURACY: f64 = 1e-12;
/// From this many rows on, computing all eight of a strip costs less than one at a time.
const FEW: usize = 3;

/// A support made ready: its features, packed.
pub(super) struct SupportSum {
    features: FeatureMap,
    decision_dim: usize,
    support: Samples<f64>,
    /// The faster way for signals whose features are not clipped, where model and kernel allow it.
    quadratic: Option<QuadraticSupport>,
    /// coefficient (i, j) at i / BLOCK · dim · BLOCK + j · BLOCK + i % BLOCK; zero beyond the
    /// support.
    coefficients: Aligned<f64>,
    /// What the kernel's trend adds, where it has one: a row a feature, and the last for the level.
    trend: Option<Array2<f64>>,
    isa: Isa,
}

/// Up to eight signals made ready for one of the two ways.
#[derive(Clone, Copy)]
enum Group<'a> {
    Quadratic(&'a QuadraticSupport, &'a QuadraticRows),
    General(&'a RowPack<f64>),
}

/// Room for the sum of one signal.
pub(super) struct SumScratch {
    rows: RowPack<f64>,
    polynomials: QuadraticRows,
    strip: Aligned<f64>,
    sums: Aligned<f64>,
}

impl SupportSum {
    /// Computes the support's features and packs them. Cost: n_support × n_features × 8 bytes.
    pub(super) fn new(
        map: &FeatureMap,
        support: &Support,
        regularization: f64,
    ) -> Result<Self, Error> {
        let Support { kernel, signals, coefficients: alpha, .. } = support;
        let (n_support, decision_dim) = alpha.dim();
        let features = if n_support == 0 {
            Array2::zeros((0, map.n_features()))
        } else {
            map.transform(signals.view())?
        };
        let (rest, trend) = match kernel.split_trend() {
            Some((rest, trend)) => (Some(rest), Some(trend.law(features.view(), alpha))),
            None => (None, None),
        };
        let kernel = rest.as_ref().unwrap_or(kernel);
        // The kernel of the certificate: by differences wherever that was computed by differences.
        let accuracy = accuracy_for(regularization, ORDINARY_TOL).min(ACCURACY);
        let recipe = Recipe::new(kernel, features.view());
        let recipe = Rounded::new(&recipe, features.view(), Accuracy::Worst(accuracy)).recipe;
        let support = Samples::new(recipe, features.view());
        let quadratic = QuadraticSupport::new(kernel, map, signals.view(), features.view())
            .filter(|support| support.rounding() <= accuracy);
        let mut coefficients = Aligned::zeros(n_support.div_ceil(BLOCK) * decision_dim * BLOCK);
        for ((i, j), value) in alpha.indexed_iter() {
            coefficients[(i / BLOCK * decision_dim + j) * BLOCK + i % BLOCK] = *value;
        }
        let mut sum = Self {
            features: map.clone(),
            decision_dim,
            support,
            quadratic,
            coefficients,
            trend,
            isa: Isa::detect(),
        };
        if !sum.ways_agree(features.view()) {
            sum.quadratic = None;
        }
        Ok(sum)
    }

    /// Whether both ways want the same decisions at some support points. Far from zero the features
    /// themselves are rounded, and the certificate is about those; and where k is tiny, the sum of
    /// large coefficients magnifies what is rounded.
    fn ways_agree(&self, features: ArrayView2<'_, f64>) -> bool {
        let Some(support) = &self.quadratic else { return true };
        let n = features.nrows();
        let picked: Vec<usize> = (0..STRIP.min(n)).map(|r| r * n / STRIP.min(n)).collect();
        let mut rows = self.support.row_pack();
        self.support.pack(features.select(Axis(0), &picked).view(), &mut rows);
        let mut polynomials = self.polynomials();
        for (r, &i) in picked.iter().enumerate() {
            support.write_row(&self.features, &features.row(i).to_vec(), &mut polynomials, r);
        }
        let sizes: Vec<f64> = self.coefficients.iter().map(|a| a.abs()).collect();
        let (n, polynomials) = (picked.len(), Group::Quadratic(support, &polynomials));
        let fast = self.few(polynomials, n, &self.coefficients);
        let general = self.few(Group::General(&rows), n, &self.coefficients);
        let added = self.few(Group::General(&rows), n, &sizes);
        let pairs = fast.iter().zip(&general).zip(&added);
        pairs.into_iter().all(|((a, b), size)| (a - b).abs() <= AGREEMENT * size)
    }

    /// Σ κ c of up to eight signals made ready, dimension by dimension; `c` in the order of
    /// `coefficients`.
    fn few(&self, rows: Group<'_>, n_rows: usize, c: &[f64]) -> Vec<f64> {
        let width = self.decision_dim * BLOCK;
        let (mut strip, mut sums) = (self.strip(), Aligned::zeros(width));
        for block in 0..self.support.n_blocks() {
            self.compute(block, rows, n_rows, &mut strip);
            let (c, len) = (&c[block * width..(block + 1) * width], self.support.block_len(block));
            accumulate_rows(self.isa, &strip, n_rows, len, c, &mut sums, self.decision_dim);
        }
        // What is beyond the rows in a strip is not asked for.
        sums.chunks(BLOCK).flat_map(|g| g[..n_rows].to_vec()).collect()
    }

    /// Room for a strip of kernel values and for what they are combined from.
    fn strip(&self) -> Aligned<f64> {
        Aligned::zeros(STRIP * BLOCK + self.support.spare_len())
    }

    fn polynomials(&self) -> QuadraticRows {
        QuadraticRows::new(self.features.signal_dim(), self.features.n_features())
    }

    /// Room for [`one`](Self::one), to be made once.
    pub(super) fn scratch(&self) -> SumScratch {
        SumScratch {
            rows: self.support.row_pack(),
            polynomials: self.polynomials(),
            strip: self.strip(),
            sums: Aligned::zeros(self.decision_dim * BLOCK),
        }
    }

    /// g of one signal with these features.
    pub(super) fn one(&self, features: &[f64], scratch: &mut SumScratch, out: &mut [f64]) {
        let rows = match &self.quadratic {
            Some(support) if !self.features.is_clipped(features.iter()) => {
                support.write_row(&self.features, features, &mut scratch.polynomials, 0);
                Group::Quadratic(support, &scratch.polynomials)
            }
            _ => {
                let row = ArrayView1::from(features).insert_axis(Axis(0));
                self.support.pack(row, &mut scratch.rows);
                Group::General(&scratch.rows)
            }
        };
        scratch.sums.fill(0.0);
        for block in 0..self.support.n_blocks() {
            self.add_block(block, rows, 1, &mut scratch.strip, &mut scratch.sums);
        }
        for (j, u) in out.iter_mut().enumerate() {
            *u = scratch.sums[j * BLOCK];
        }
        self.add_trend(features, out);
    }

    /// out += what the trend says of these features.
    fn add_trend(&self, features: &[f64], out: &mut [f64]) {
        let Some(trend) = &self.trend else { return };
        for (row, z) in trend.rows().into_iter().zip(features.iter().chain(&[1.0])) {
            out.iter_mut().zip(row).for_each(|(g, b)| *g += b * z);
        }
    }

    /// g of many, features a row each.
    pub(super) fn many(&self, features: ArrayView2<'_, f64>, mut out: ArrayViewMut2<'_, f64>) {
        // Which way a row goes depends on the row alone, so its bits do not depend on its
        // neighbours.
        let (fast, slow): (Vec<usize>, Vec<usize>) = (0..features.nrows()).partition(|&i| {
            self.quadratic.is_some() && !self.features.is_clipped(features.row(i).iter())
        });
        let polynomials: Vec<(QuadraticRows, &[usize])> = fast
            .chunks(STRIP)
            .map(|members| {
                let mut rows = self.polynomials();
                for (r, &i) in members.iter().enumerate() {
                    let z = features.row(i).to_slice().expect("a row is contiguous");
                    if let Some(support) = &self.quadratic {
                        support.write_row(&self.features, z, &mut rows, r);
                    }
                }
                (rows, members)
            })
            .collect();
        let packs: Vec<(RowPack<f64>, &[usize])> = slow
            .chunks(STRIP)
            .map(|members| {
                let mut pack = self.support.row_pack();
                self.support.pack(features.select(Axis(0), members).view(), &mut pack);
                (pack, members)
            })
            .collect();
        let n_groups = polynomials.len() + packs.len();
        let mut sums = vec![0.0; n_groups * self.decision_dim * BLOCK];
        let mut strip = self.strip();
        let width = self.decision_dim * BLOCK;
        for block in 0..self.support.n_blocks() {
            let mut sums = sums.chunks_mut(width);
            if let Some(support) = self.quadratic.as_ref().filter(|_| !polynomials.is_empty()) {
                for ((rows, members), sums) in polynomials.iter().zip(&mut sums) {
                    let group = Group::Quadratic(support, rows);
                    self.add_block(block, group, members.len(), &mut strip, sums);
                }
            }
            for ((pack, members), sums) in packs.iter().zip(&mut sums) {
                self.add_block(block, Group::General(pack), members.len(), &mut strip, sums);
            }
        }
        let members = polynomials.iter().map(|(_, m)| *m).chain(packs.iter().map(|(_, m)| *m));
        for (members, sums) in members.zip(sums.chunks(width)) {
            for (r, &i) in members.iter().enumerate() {
                for j in 0..self.decision_dim {
                    out[[i, j]] = sums[j * BLOCK + r];
                }
                let z = features.row(i).to_slice().expect("a row is contiguous");
                let mut row = out.row_mut(i);
                self.add_trend(z, row.as_slice_mut().expect("a row is contiguous"));
            }
        }
    }

    /// Adds a block of support points to the sums of up to eight rows.
    fn add_block(
        &self,
        block: usize,
        rows: Group<'_>,
        n_rows: usize,
        strip: &mut [f64],
        sums: &mut [f64],
    ) {
        let dim = self.decision_dim;
        self.compute(block, rows, n_rows, strip);
        let coefficients = &self.coefficients[block * dim * BLOCK..(block + 1) * dim * BLOCK];
        let len = self.support.block_len(block);
        accumulate_rows(self.isa, strip, n_rows, len, coefficients, sums, dim);
    }

    /// Kernel values of up to eight rows against a block of support points.
    fn compute(&self, block: usize, rows: Group<'_>, n_rows: usize, strip: &mut [f64]) {
        match rows {
            Group::Quadratic(support, rows) => {
                support.compute_strip(self.isa, rows, n_rows, block, strip);
            }
            Group::General(rows) => {
                let computed = if n_rows < FEW { n_rows } else { STRIP };
                let rows = StripRows::Packed(rows);
                let (strip, spare) = strip.split_at_mut(STRIP * BLOCK);
                self.support.compute(self.isa, rows, computed, block, strip, spare);
            }
        }
    }
}
