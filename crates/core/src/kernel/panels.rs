//! Samples packed for the tile: panels of `PANEL` samples, feature by feature, scaled so that what
//! a simple kernel is a function of needs no multiplication beyond the inner product.
//!
//! Matérn: z ← √(2γ)(z − centre), h = ½‖z‖², and −γr² = zᵀz' − h − h'. RBF the same and Laplacian z
//! ← γ(z − centre), both with γ log₂ e for γ, because their exponential has the base two.
//! Polynomial: z ← √γ z. Length scales divide. Centring changes no distance and saves digits where
//! the features sit far from zero.

use super::finish::Finish;
use super::layout::{BLOCK, Columns, Rows, STRIP};
use super::tile::{Pairing, pair_strip};
use crate::linalg::aligned::Aligned;
use crate::linalg::simd::{Element, Isa, Vectors};
use ndarray::{ArrayView1, ArrayView2};
use rayon::prelude::*;
use std::f64::consts::LOG2_E;

/// In f32, γ‖z‖² above which a pair of samples is compared by differences: h + h' − zᵀz' would lose
/// too many digits.
const HEAVY: f64 = 8.0;

/// A simple kernel, and how features become packed numbers for it.
#[derive(Clone, Debug)]
pub(crate) struct Packing {
    pairing: Pairing,
    finish: Finish,
    centre: Vec<f64>,
    /// One factor a feature.
    scale: Vec<f64>,
}

impl Packing {
    /// `centre` is the features' mean, used where the kernel is one of differences.
    pub(crate) fn new(
        (pairing, finish): (Pairing, Finish),
        scale: Vec<f64>,
        centre: &[f64],
    ) -> Self {
        let centre = match pairing {
            Pairing::Squared | Pairing::Absolute => centre.to_vec(),
            Pairing::Inner | Pairing::ScaledSquared | Pairing::ScaledAbsolute => {
                vec![0.0; centre.len()]
            }
        };
        Self { pairing, finish, centre, scale }
    }

    /// The same kernel with differences of features taken before anything is rounded: twice the
    /// work, and right wherever the samples lie.
    pub(super) fn by_differences(&self) -> Self {
        let pairing = match self.pairing {
            Pairing::Squared => Pairing::ScaledSquared,
            Pairing::Absolute => Pairing::ScaledAbsolute,
            other => other,
        };
        Self::new((pairing, self.finish), self.scale.clone(), &self.centre)
    }

    pub(super) fn pairing(&self) -> Pairing {
        self.pairing
    }

    pub(super) fn finish(&self) -> Finish {
        self.finish
    }

    /// What the packed numbers of a sample would be before they are rounded to a precision.
    pub(super) fn packed<'a>(&'a self, features: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
        let affine = self.centre.iter().zip(&self.scale);
        features.iter().zip(affine).map(|(z, (c, scale))| (z - c) * scale)
    }

    fn n_features(&self) -> usize {
        self.centre.len()
    }

    /// Whether features are packed as they are, to be scaled when a difference has been taken.
    fn scales_differences(&self) -> bool {
        matches!(self.pairing, Pairing::ScaledSquared | Pairing::ScaledAbsolute)
    }

    /// Whether a sample of this ½‖z‖² has a large norm.
    fn is_heavy<T: Element>(&self, half_norm: T) -> bool {
        let unit = if self.finish == Finish::Exp2 { LOG2_E } else { 1.0 };
        half_norm.to_f64() > HEAVY * unit
    }

    /// The kernel values of the first `n_rows` rows against all columns.
    pub(crate) fn compute<T: Vectors>(
        &self,
        isa: Isa,
        rows: Rows<'_, T>,
        n_rows: usize,
        columns: Columns<'_, T>,
        out: &mut [T],
    ) {
        let len = columns.half_norms.len();
        pair_strip(isa, self.pairing, rows, n_rows, columns, out);
        self.finish.run(isa, out, n_rows, len);
    }

    /// Writes one sample at `out[k·stride]` and returns its ½‖z‖².
    pub(crate) fn write<T: Element>(
        &self,
        features: ArrayView1<'_, f64>,
        stride: usize,
        out: &mut [T],
    ) -> T {
        if self.scales_differences() {
            for (k, z) in features.iter().enumerate() {
                out[k * stride] = T::from_f64(*z);
            }
            return T::default();
        }
        let mut half_norm = 0.0;
        let affine = self.centre.iter().zip(&self.scale);
        for (k, (z, (c, scale))) in features.iter().zip(affine).enumerate() {
            let packed = T::from_f64((z - c) * scale);
            half_norm += 0.5 * packed.to_f64() * packed.to_f64();
            out[k * stride] = packed;
        }
        T::from_f64(half_norm)
    }
}

/// All samples of a data set, packed; the last panel is filled up with samples at the centre that
/// callers mask.
pub(crate) struct Panels<T> {
    pub(crate) packing: Packing,
    /// panel · n_features · PANEL + feature · PANEL + lane.
    data: Aligned<T>,
    half_norms: Aligned<T>,
    /// Whether a panel holds a sample with a large norm.
    heavy: Vec<bool>,
    /// The packing's factors.
    scale: Vec<T>,
}

impl<T: Element> Panels<T> {
    /// Packs the rows of `features`. Cost: one pass, `bytes` of memory.
    pub(crate) fn new(packing: Packing, features: ArrayView2<'_, f64>) -> Self {
        let (n_samples, n_features) = features.dim();
        let n_panels = n_samples.div_ceil(T::PANEL);
        let mut data = Aligned::zeros(n_panels * n_features * T::PANEL);
        let mut half_norms = Aligned::zeros(n_panels * T::PANEL);
        data.par_chunks_mut((n_features * T::PANEL).max(1))
            .zip(half_norms.par_chunks_mut(T::PANEL))
            .enumerate()
            .with_min_len(4)
            .for_each(|(panel, (data, half_norms))| {
                let rows = panel * T::PANEL..n_samples.min((panel + 1) * T::PANEL);
                for (lane, (i, half_norm)) in rows.zip(half_norms).enumerate() {
                    *half_norm = packing.write(features.row(i), T::PANEL, &mut data[lane..]);
                }
            });
        let heavy = heavy_panels(&packing, &half_norms);
        let scale = packing.scale.iter().map(|s| T::from_f64(*s)).collect();
        Self { packing, data, half_norms, heavy, scale }
    }

    /// The listed samples, packed anew.
    pub(crate) fn select(&self, samples: &[usize]) -> Self {
        let n_features = self.packing.n_features();
        let n_panels = samples.len().div_ceil(T::PANEL);
        let mut data = Aligned::zeros(n_panels * n_features * T::PANEL);
        let mut half_norms = Aligned::zeros(n_panels * T::PANEL);
        for (to, &from) in samples.iter().enumerate() {
            let from_at = from / T::PANEL * n_features * T::PANEL + from % T::PANEL;
            let to_at = to / T::PANEL * n_features * T::PANEL + to % T::PANEL;
            for k in 0..n_features {
                data[to_at + k * T::PANEL] = self.data[from_at + k * T::PANEL];
            }
            half_norms[to] = self.half_norms[from];
        }
        let heavy = heavy_panels(&self.packing, &half_norms);
        let (packing, scale) = (self.packing.clone(), self.scale.clone());
        Self { packing, data, half_norms, heavy, scale }
    }

    /// Bytes the panels of `n_samples` samples take.
    pub(crate) fn bytes(n_samples: usize, n_features: usize) -> u64 {
        (n_samples.next_multiple_of(T::PANEL) * (n_features + 1) * size_of::<T>()) as u64
    }

    /// Samples in `block`, filling included: a multiple of the panel width.
    fn block_len(&self, block: usize) -> usize {
        (self.half_norms.len() - block * BLOCK).min(BLOCK)
    }

    /// The panels of `block`.
    pub(crate) fn block(&self, block: usize) -> Columns<'_, T> {
        let len = self.block_len(block);
        let (first, n_panels) = (block * BLOCK / T::PANEL, len / T::PANEL);
        let size = self.packing.n_features() * T::PANEL;
        Columns {
            panels: &self.data[first * size..(first + n_panels) * size],
            half_norms: &self.half_norms[block * BLOCK..block * BLOCK + len],
            heavy: &self.heavy[first..first + n_panels],
            scale: &self.scale,
        }
    }

    /// Eight rows of `block` from `row` on (a multiple of eight), as they stand in their panel.
    pub(crate) fn strip(&self, block: usize, row: usize) -> Rows<'_, T> {
        let sample = block * BLOCK + row;
        let panel = sample / T::PANEL;
        Rows {
            data: &self.data[panel * self.packing.n_features() * T::PANEL + sample % T::PANEL..],
            stride: T::PANEL,
            half_norms: &self.half_norms[sample..sample + STRIP],
            heavy: self.heavy[panel],
        }
    }

    /// Whether the sample's panel holds one with a large norm: what decides how its kernel values
    /// are computed.
    pub(crate) fn is_heavy(&self, sample: usize) -> bool {
        self.heavy[sample / T::PANEL]
    }

    /// Copies up to eight samples, wherever they stand, into `rows`. For the same bits as from
    /// their panels they must be all heavy or all not.
    pub(crate) fn gather(&self, samples: &[usize], rows: &mut RowPack<T>) {
        let n_features = self.packing.n_features();
        rows.clear();
        for (r, &i) in samples.iter().enumerate() {
            let at = i / T::PANEL * n_features * T::PANEL + i % T::PANEL;
            for k in 0..n_features {
                rows.data[k * STRIP + r] = self.data[at + k * T::PANEL];
            }
            rows.half_norms[r] = self.half_norms[i];
            rows.heavy |= self.is_heavy(i);
        }
    }
}

fn heavy_panels<T: Element>(packing: &Packing, half_norms: &[T]) -> Vec<bool> {
    half_norms.chunks(T::PANEL).map(|panel| panel.iter().any(|&h| packing.is_heavy(h))).collect()
}

/// Room for eight rows that come from anywhere.
pub(crate) struct RowPack<T> {
    data: Aligned<T>,
    half_norms: [T; STRIP],
    heavy: bool,
}

impl<T: Element> RowPack<T> {
    pub(crate) fn new(n_features: usize) -> Self {
        Self {
            data: Aligned::zeros(n_features * STRIP),
            half_norms: [T::default(); STRIP],
            heavy: false,
        }
    }

    fn clear(&mut self) {
        self.data.fill(T::default());
        self.half_norms = [T::default(); STRIP];
        self.heavy = false;
    }

    /// Packs up to eight rows of features.
    pub(crate) fn pack(&mut self, packing: &Packing, features: ArrayView2<'_, f64>) {
        self.clear();
        for (r, row) in features.rows().into_iter().enumerate() {
            self.half_norms[r] = packing.write(row, STRIP, &mut self.data[r..]);
            self.heavy |= packing.is_heavy(self.half_norms[r]);
        }
    }

    pub(crate) fn rows(&self) -> Rows<'_, T> {
        Rows { data: &self.data, stride: STRIP, half_norms: &self.half_norms, heavy: self.heavy }
    }
}
