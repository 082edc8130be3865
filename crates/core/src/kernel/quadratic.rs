//! Kernel values of degree-2 features, straight from signals.
//!
//! With z the z-scored monomials up to degree two, z(s)ᵀz(s') is for fixed s a quadratic polynomial
//! in s'. In the centred signal t' of a support point it reads B + Σ_i t'_i (B_i + Σ_{j≥i} A_ij
//! t'_j): as many multiplications as the inner product of the features has, and p numbers to load
//! for a support point instead of (p+1)(p+2)/2. At 5000 points and 11 signals that is 0.4 MB
//! instead of 3.1, inside the second-level cache, where a single decision is bound by what it
//! loads. Holds as long as no feature is clipped; centring keeps the polynomial's terms no larger
//! than the features they stand for.
#![allow(unsafe_code)]

use super::Kernel;
use super::finish::Finish;
use super::layout::{BLOCK, STRIP};
use super::recipe::simple;
use super::rounding::distance_units;
use super::tile::Pairing;
use crate::features::{Expansion, FeatureMap};
use crate::linalg::aligned::Aligned;
use crate::linalg::simd::{Arch, Element, Isa, Lanes, Task};
use ndarray::ArrayView2;

const PANEL: usize = <f64 as Element>::PANEL;

/// Support points by their centred signals.
pub(crate) struct QuadraticSupport {
    /// Weight of zᵀz'.
    weight: f64,
    is_distance: bool,
    finish: Finish,
    centre: Vec<f64>,
    /// m_k(centre) − mean_k for every feature.
    centred_monomials: Vec<f64>,
    /// panel · p · PANEL + signal · PANEL + lane.
    panels: Aligned<f64>,
    /// ½ weight ‖z'‖², zero for kernels of the inner product.
    halves: Aligned<f64>,
}

/// Polynomials of up to eight signals: coefficient k of row r at `data[k·STRIP + r]`.
pub(crate) struct QuadraticRows {
    data: Aligned<f64>,
    halves: [f64; STRIP],
    /// Room for one row's: weighted features, linear coefficients.
    scaled: Vec<f64>,
    linear: Vec<f64>,
}

impl QuadraticRows {
    pub(crate) fn new(signal_dim: usize, n_features: usize) -> Self {
        Self {
            data: Aligned::zeros(n_features * STRIP),
            halves: [0.0; STRIP],
            scaled: vec![0.0; n_features],
            linear: vec![0.0; signal_dim],
        }
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Σ aᵢ bᵢ in four running sums.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut lanes = [0.0; 4];
    let (a, b) = (a.chunks(4), b.chunks(4));
    for (a, b) in a.zip(b) {
        for ((sum, a), b) in lanes.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])
}

impl QuadraticSupport {
    /// None where the kernel, the features or a clipped support point does not allow it.
    pub(crate) fn new(
        kernel: &Kernel,
        map: &FeatureMap,
        signals: ArrayView2<'_, f64>,
        features: ArrayView2<'_, f64>,
    ) -> Option<Self> {
        let (pairing, finish, weight) = simple(kernel)?;
        let is_distance = match pairing {
            Pairing::Squared => true,
            Pairing::Inner => false,
            Pairing::Absolute | Pairing::ScaledSquared | Pairing::ScaledAbsolute => return None,
        };
        let n = signals.nrows();
        let clipped = features.rows().into_iter().any(|z| map.is_clipped(z.iter()));
        if map.settings().expansion != Expansion::Poly2 || n == 0 || clipped {
            return None;
        }
        let p = signals.ncols();
        let centre: Vec<f64> = (0..p).map(|j| signals.column(j).sum() / n as f64).collect();
        let n_panels = n.div_ceil(PANEL);
        let mut panels = Aligned::zeros(n_panels * p * PANEL);
        let mut halves = Aligned::zeros(n_panels * PANEL);
        for (i, (signal, z)) in signals.rows().into_iter().zip(features.rows()).enumerate() {
            for (j, (s, c)) in signal.iter().zip(&centre).enumerate() {
                panels[(i / PANEL * p + j) * PANEL + i % PANEL] = s - c;
            }
            if is_distance {
                halves[i] = 0.5 * weight * z.dot(&z);
            }
        }
        let centred_monomials = map.centred_monomials(&centre);
        Some(Self { weight, is_distance, finish, centre, centred_monomials, panels, halves })
    }

    /// What a kernel value is off by on average, as in `rounding`: features are not centred here.
    /// Inner products are as right as those of features.
    pub(crate) fn rounding(&self) -> f64 {
        if !self.is_distance {
            return 0.0;
        }
        distance_units(self.finish, self.centred_monomials.len(), mean(&self.halves))
    }

    /// Writes the polynomial of the signal with features `z` (none of them clipped) as row `r`.
    pub(crate) fn write_row(
        &self,
        map: &FeatureMap,
        z: &[f64],
        rows: &mut QuadraticRows,
        r: usize,
    ) {
        let QuadraticRows { data, halves, scaled, linear } = rows;
        for ((a, z), scale) in scaled.iter_mut().zip(z).zip(map.inverse_scale()) {
            *a = self.weight * z * scale;
        }
        let (own, mut quadratic) = scaled[1..].split_at(self.centre.len());
        linear.copy_from_slice(own);
        for (i, c) in self.centre.iter().enumerate() {
            let (row, rest) = quadratic.split_at(self.centre.len() - i);
            quadratic = rest;
            linear[i] += dot(row, &self.centre[i..]);
            linear[i..].iter_mut().zip(row).for_each(|(sum, a)| *sum += a * c);
        }
        // Coefficients in their order: the constant, and for each signal the linear one and its
        // quadratic ones.
        let mut out = data[r..].iter_mut().step_by(STRIP);
        let mut write = |value: f64| {
            if let Some(out) = out.next() {
                *out = value;
            }
        };
        write(dot(scaled, &self.centred_monomials));
        let mut quadratic = &scaled[1 + linear.len()..];
        for (i, b) in linear.iter().enumerate() {
            write(*b);
            let (row, rest) = quadratic.split_at(linear.len() - i);
            quadratic = rest;
            row.iter().for_each(|a| write(*a));
        }
        halves[r] = if self.is_distance { 0.5 * self.weight * dot(z, z) } else { 0.0 };
    }

    /// out\[r·BLOCK + j\] = κ(row r, support point j of `block`) for the first `n_rows` rows. Each
    /// value has the same bits whatever stands beside it.
    pub(crate) fn compute_strip(
        &self,
        isa: Isa,
        rows: &QuadraticRows,
        n_rows: usize,
        block: usize,
        out: &mut [f64],
    ) {
        let p = self.centre.len();
        let n_features = (p + 1) * (p + 2) / 2;
        let first = block * BLOCK;
        let len = (self.halves.len() - first).min(BLOCK);
        assert!((1..=STRIP).contains(&n_rows) && out.len() >= (STRIP - 1) * BLOCK + len);
        assert!(rows.data.len() == n_features * STRIP);
        let strip = QuadraticTask {
            p,
            n_rows,
            n_panels: len / PANEL,
            is_distance: self.is_distance,
            coefficients: rows.data.as_ptr(),
            row_halves: rows.halves.as_ptr(),
            panels: self.panels[first * p..(first + len) * p].as_ptr(),
            halves: self.halves[first..first + len].as_ptr(),
            out: out.as_mut_ptr(),
        };
        // SAFETY: `isa` was detected on this machine; the assertions and the slices above bound
        // every access.
        unsafe { isa.run(strip) }
        self.finish.run(isa, out, n_rows, len);
    }
}

struct QuadraticTask {
    p: usize,
    n_rows: usize,
    n_panels: usize,
    is_distance: bool,
    coefficients: *const f64,
    row_halves: *const f64,
    panels: *const f64,
    halves: *const f64,
    out: *mut f64,
}

impl Task for QuadraticTask {
    type Out = ();

    #[inline(always)]
    unsafe fn run<A: Arch>(self) {
        // SAFETY: rows r..r + R ≤ STRIP (rows beyond n_rows exist and are ignored) and panels below
        // n_panels.
        unsafe {
            if A::WIDE && self.n_rows > 2 {
                for panel in 0..self.n_panels {
                    for r in (0..self.n_rows).step_by(STRIP / 2) {
                        self.micro::<A, { STRIP / 2 }, 1, 3>(r, panel);
                    }
                }
                return;
            }
            for r in 0..self.n_rows {
                let mut panel = 0;
                while panel < self.n_panels {
                    // As many side by side as hide the time a multiplication takes, and nothing
                    // left over that would not.
                    panel += match (A::WIDE, self.n_panels - panel) {
                        (false, _) => self.micro::<A, 1, 1, 6>(r, panel),
                        (true, 1) => self.micro::<A, 1, 1, 3>(r, panel),
                        (true, 2) => self.micro::<A, 1, 2, 3>(r, panel),
                        (true, 3 | 6) => self.micro::<A, 1, 3, 3>(r, panel),
                        (true, 4 | 7..=9) => self.micro::<A, 1, 4, 3>(r, panel),
                        (true, _) => self.micro::<A, 1, 5, 3>(r, panel),
                    };
                }
            }
        }
    }
}

impl QuadraticTask {
    /// R rows × P panels × V vectors, a polynomial each. Returns P.
    #[inline(always)]
    unsafe fn micro<A: Arch, const R: usize, const P: usize, const V: usize>(
        &self,
        row: usize,
        panel: usize,
    ) -> usize {
        // SAFETY: the caller's bounds.
        unsafe {
            let lanes = A::F64::LANES;
            let columns = self.panels.add(panel * self.p * PANEL);
            let at = |q: usize, j: usize, v: usize| {
                A::F64::load(columns.add((q * self.p + j) * PANEL + v * lanes))
            };
            let coefficient =
                |k: usize, r: usize| A::F64::splat(*self.coefficients.add(k * STRIP + row + r));
            let mut acc = [[[A::F64::splat(0.0); V]; P]; R];
            for (r, acc) in acc.iter_mut().enumerate() {
                *acc = [[coefficient(0, r); V]; P];
            }
            let mut k = 1;
            for i in 0..self.p {
                let mut inner = [[[A::F64::splat(0.0); V]; P]; R];
                for (r, inner) in inner.iter_mut().enumerate() {
                    *inner = [[coefficient(k, r); V]; P];
                }
                k += 1;
                for j in i..self.p {
                    let t: [[_; V]; P] =
                        std::array::from_fn(|q| std::array::from_fn(|v| at(q, j, v)));
                    for (r, inner) in inner.iter_mut().enumerate() {
                        let a = coefficient(k, r);
                        for (inner, t) in inner.as_flattened_mut().iter_mut().zip(t.as_flattened())
                        {
                            *inner = A::F64::fma(a, *t, *inner);
                        }
                    }
                    k += 1;
                }
                for (acc, inner) in acc.iter_mut().zip(&inner) {
                    for q in 0..P {
                        for v in 0..V {
                            acc[q][v] = A::F64::fma(at(q, i, v), inner[q][v], acc[q][v]);
                        }
                    }
                }
            }
            for (q, panel) in (panel..panel + P).enumerate() {
                self.store::<A, R, V>(row, panel, std::array::from_fn(|r| acc[r][q]));
            }
        }
        P
    }

    /// Stores what the kernel is a function of, for R rows × one panel.
    #[inline(always)]
    unsafe fn store<A: Arch, const R: usize, const V: usize>(
        &self,
        row: usize,
        panel: usize,
        acc: [[<A::F64 as Lanes<f64>>::V; V]; R],
    ) {
        // SAFETY: the caller's bounds.
        unsafe {
            for (r, acc) in acc.into_iter().enumerate() {
                let row_half = A::F64::splat(*self.row_halves.add(row + r));
                for (v, acc) in acc.into_iter().enumerate() {
                    let column = panel * PANEL + v * A::F64::LANES;
                    let value = if self.is_distance {
                        let half = A::F64::add(row_half, A::F64::load(self.halves.add(column)));
                        A::F64::min(A::F64::sub(acc, half), A::F64::splat(0.0))
                    } else {
                        acc
                    };
                    A::F64::store(self.out.add((row + r) * BLOCK + column), value);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::FeatureSettings;
    use ndarray::Array2;

    #[test]
    fn agrees_with_the_kernel_on_features_for_every_row_count_and_instruction_set() {
        // The second signal has a mean a million times its spread.
        let signals = Array2::from_shape_fn((260, 5), |(i, j)| {
            let wave = ((i * (j + 3)) as f64 * 0.37).sin();
            if j == 1 { 1e6 + wave } else { wave + j as f64 }
        });
        let map = FeatureMap::fit(
            FeatureSettings { expansion: Expansion::Poly2, ..FeatureSettings::default() },
            signals.view(),
        )
        .unwrap();
        let features = map.transform(signals.view()).unwrap();
        for kernel in [
            Kernel::Rbf { gamma: 0.05 },
            Kernel::Linear,
            Kernel::Matern32 { gamma: 0.02 },
            Kernel::Matern52 { gamma: 0.02 },
            Kernel::Polynomial { degree: 3, gamma: 0.05, offset: 1.0 },
        ] {
            let support =
                QuadraticSupport::new(&kernel, &map, signals.view(), features.view()).unwrap();
            for isa in Isa::available() {
                for n_rows in 1..=STRIP {
                    let mut rows = QuadraticRows::new(map.signal_dim(), map.n_features());
                    for r in 0..n_rows {
                        let z = features.row(r * 7).to_vec();
                        support.write_row(&map, &z, &mut rows, r);
                    }
                    let mut out = vec![0.0; STRIP * BLOCK];
                    support.compute_strip(isa, &rows, n_rows, 1, &mut out);
                    // One of them alone.
                    let mut single = QuadraticRows::new(map.signal_dim(), map.n_features());
                    let last = n_rows - 1;
                    support.write_row(&map, &features.row(last * 7).to_vec(), &mut single, 0);
                    let mut alone = vec![0.0; STRIP * BLOCK];
                    support.compute_strip(isa, &single, 1, 1, &mut alone);
                    assert_eq!(out[last * BLOCK..last * BLOCK + 20], alone[..20], "{isa:?}");
                    for r in 0..n_rows {
                        for j in 0..20 {
                            let expected = kernel.evaluate(
                                &features.row(r * 7).to_vec(),
                                &features.row(BLOCK + j).to_vec(),
                            );
                            let error = (out[r * BLOCK + j] - expected).abs();
                            assert!(error < 1e-8 * expected.abs().max(1.0), "{isa:?} {error:e}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn clipped_and_other_features_are_left_to_the_general_way() {
        let signals = Array2::from_shape_fn((30, 2), |(i, j)| (i + j) as f64);
        for (settings, kernel) in [
            (
                FeatureSettings {
                    expansion: Expansion::Poly2,
                    clip: 1.0,
                    ..FeatureSettings::default()
                },
                Kernel::Linear,
            ),
            (
                FeatureSettings { expansion: Expansion::Raw, ..FeatureSettings::default() },
                Kernel::Linear,
            ),
            (
                FeatureSettings { expansion: Expansion::Poly2, ..FeatureSettings::default() },
                Kernel::Laplace { gamma: 1.0 },
            ),
        ] {
            let map = FeatureMap::fit(settings, signals.view()).unwrap();
            let features = map.transform(signals.view()).unwrap();
            let support = QuadraticSupport::new(&kernel, &map, signals.view(), features.view());
            assert!(support.is_none());
        }
    }
}
