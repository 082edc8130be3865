//! Kernel values of degree-2 features, straight from signals.
//!
//! With z the z-scored monomials up to degree two, z(s)ᵀz(s') is for fixed s a quadratic polynomial in s'. In the centred signal t' of
//! a support point it reads B + Σ_i B_i t'_i + Σ_{i≤j} A_ij t'_i t'_j: the inner product of the features with monomials made on the fly,
//! and p numbers to load for a support point instead of (p+1)(p+2)/2. At 5000 points and 11 signals that is 0.4 MB instead of 3.1,
//! inside the second-level cache, where a single decision is bound by what it loads. Holds as long as no feature is clipped; centring keeps the
//! polynomial's terms no larger than the features they stand for.
#![allow(unsafe_code)]

use super::Kernel;
use super::panels::{BLOCK, STRIP};
use crate::features::{Expansion, FeatureMap};
use crate::linalg::simd::{Arch, Element, Isa, Lanes, Task, exp};
use ndarray::ArrayView2;

const PANEL: usize = <f64 as Element>::PANEL;

/// Support points by their centred signals.
pub(crate) struct QuadraticSupport {
    /// Weight of zᵀz' in the exponent: 2γ, or 1 for the linear kernel.
    weight: f64,
    is_gaussian: bool,
    centre: Vec<f64>,
    /// m_k(centre) − mean_k for every feature.
    centred_monomials: Vec<f64>,
    /// panel · p · PANEL + signal · PANEL + lane.
    panels: Vec<f64>,
    /// γ‖z'‖², zero for the linear kernel.
    halves: Vec<f64>,
}

/// Polynomials of up to eight signals: coefficient k of row r at `data[k·STRIP + r]`.
pub(crate) struct QuadraticRows {
    data: Vec<f64>,
    halves: [f64; STRIP],
}

impl QuadraticRows {
    pub(crate) fn new(n_features: usize) -> Self {
        Self { data: vec![0.0; n_features * STRIP], halves: [0.0; STRIP] }
    }
}

impl QuadraticSupport {
    /// None where the kernel, the features or a clipped support point does not allow it.
    pub(crate) fn new(
        kernel: Kernel,
        map: &FeatureMap,
        signals: ArrayView2<'_, f64>,
        features: ArrayView2<'_, f64>,
    ) -> Option<Self> {
        let (weight, is_gaussian) = match kernel {
            Kernel::Rbf { gamma } => (2.0 * gamma, true),
            Kernel::Linear => (1.0, false),
            Kernel::Laplace { .. } => return None,
        };
        let n = signals.nrows();
        let clipped = features.rows().into_iter().any(|z| map.is_clipped(z.iter()));
        if map.settings().expansion != Expansion::Poly2 || n == 0 || clipped {
            return None;
        }
        let p = signals.ncols();
        let centre: Vec<f64> = (0..p).map(|j| signals.column(j).sum() / n as f64).collect();
        let n_panels = n.div_ceil(PANEL);
        let mut panels = vec![0.0; n_panels * p * PANEL];
        let mut halves = vec![0.0; n_panels * PANEL];
        for (i, (signal, z)) in signals.rows().into_iter().zip(features.rows()).enumerate() {
            for (j, (s, c)) in signal.iter().zip(&centre).enumerate() {
                panels[(i / PANEL * p + j) * PANEL + i % PANEL] = s - c;
            }
            if is_gaussian {
                halves[i] = 0.5 * weight * z.dot(&z);
            }
        }
        let centred_monomials = map.centred_monomials(&centre);
        Some(Self { weight, is_gaussian, centre, centred_monomials, panels, halves })
    }

    /// Writes the polynomial of the signal with features `z` (none of them clipped) as row `r`.
    pub(crate) fn write_row(
        &self,
        map: &FeatureMap,
        z: &[f64],
        rows: &mut QuadraticRows,
        r: usize,
    ) {
        let p = self.centre.len();
        let scale = map.inverse_scale();
        let a = |k: usize| self.weight * z[k] * scale[k];
        let mut constant = 0.0;
        for (k, m) in self.centred_monomials.iter().enumerate() {
            constant += a(k) * m;
        }
        let data = &mut rows.data;
        data[r] = constant;
        // Where the linear coefficient of signal i stands: behind those of the signals before it.
        let linear = |i: usize| 1 + i * (p + 1) - i * i.saturating_sub(1) / 2;
        for i in 0..p {
            data[linear(i) * STRIP + r] = a(1 + i);
        }
        let mut k = 1 + p;
        for i in 0..p {
            for j in i..p {
                let quadratic = a(k);
                data[(linear(i) + 1 + j - i) * STRIP + r] = quadratic;
                data[linear(i) * STRIP + r] += quadratic * self.centre[j];
                data[linear(j) * STRIP + r] += quadratic * self.centre[i];
                k += 1;
            }
        }
        let square: f64 = z.iter().map(|z| z * z).sum();
        rows.halves[r] = if self.is_gaussian { 0.5 * self.weight * square } else { 0.0 };
    }

    /// out\[r·BLOCK + j\] = κ(row r, support point j of `block`) for the first `n_rows` rows.
    pub(crate) fn compute_strip(
        &self,
        isa: Isa,
        rows: &QuadraticRows,
        n_rows: usize,
        block: usize,
        out: &mut [f64],
    ) {
        let p = self.centre.len();
        let first = block * BLOCK;
        let len = (self.halves.len() - first).min(BLOCK);
        assert!((1..=STRIP).contains(&n_rows) && out.len() >= (STRIP - 1) * BLOCK + len);
        assert!(rows.data.len() == (p + 1) * (p + 2) / 2 * STRIP);
        let strip = Strip {
            p,
            n_rows,
            n_panels: len / PANEL,
            is_gaussian: self.is_gaussian,
            coefficients: rows.data.as_ptr(),
            row_halves: rows.halves.as_ptr(),
            panels: self.panels[first * p..(first + len) * p].as_ptr(),
            halves: self.halves[first..first + len].as_ptr(),
            out: out.as_mut_ptr(),
        };
        // SAFETY: `isa` was detected on this machine; the assertions and the slices above bound every access.
        unsafe { isa.run(strip) }
    }
}

struct Strip {
    p: usize,
    n_rows: usize,
    n_panels: usize,
    is_gaussian: bool,
    coefficients: *const f64,
    row_halves: *const f64,
    panels: *const f64,
    halves: *const f64,
    out: *mut f64,
}

impl Task for Strip {
    type Out = ();

    #[inline(always)]
    unsafe fn run<A: Arch>(self) {
        let mut r = 0;
        // SAFETY: rows r..r + R ≤ STRIP (rows beyond n_rows exist and are ignored) and panels below n_panels.
        unsafe {
            if A::WIDE {
                if self.n_rows > 2 {
                    for panel in 0..self.n_panels {
                        self.micro::<A, STRIP, 1, 3>(0, panel);
                    }
                    r = self.n_rows;
                }
                while r < self.n_rows {
                    let mut panel = 0;
                    while panel + 4 <= self.n_panels {
                        self.micro::<A, 1, 4, 3>(r, panel);
                        panel += 4;
                    }
                    while panel < self.n_panels {
                        self.micro::<A, 1, 1, 3>(r, panel);
                        panel += 1;
                    }
                    r += 1;
                }
            } else {
                while r < self.n_rows {
                    for panel in 0..self.n_panels {
                        self.micro::<A, 1, 1, 6>(r, panel);
                    }
                    r += 1;
                }
            }
        }
    }
}

impl Strip {
    /// R rows × P panels × V vectors, a polynomial each.
    #[inline(always)]
    unsafe fn micro<A: Arch, const R: usize, const P: usize, const V: usize>(
        &self,
        row: usize,
        panel: usize,
    ) {
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
                let t: [[_; V]; P] = std::array::from_fn(|q| std::array::from_fn(|v| at(q, i, v)));
                for (r, acc) in acc.iter_mut().enumerate() {
                    let a = coefficient(k, r);
                    for q in 0..P {
                        for v in 0..V {
                            acc[q][v] = A::F64::fma(a, t[q][v], acc[q][v]);
                        }
                    }
                }
                k += 1;
                for j in i..self.p {
                    // The monomials of a panel, made once for all rows.
                    let monomials: [[_; V]; P] = std::array::from_fn(|q| {
                        std::array::from_fn(|v| A::F64::mul(t[q][v], at(q, j, v)))
                    });
                    for (r, acc) in acc.iter_mut().enumerate() {
                        let a = coefficient(k, r);
                        for q in 0..P {
                            for v in 0..V {
                                acc[q][v] = A::F64::fma(a, monomials[q][v], acc[q][v]);
                            }
                        }
                    }
                    k += 1;
                }
            }
            for (r, acc) in acc.iter().enumerate() {
                let row_half = A::F64::splat(*self.row_halves.add(row + r));
                for (q, acc) in acc.iter().enumerate() {
                    for (v, &acc) in acc.iter().enumerate() {
                        let column = (panel + q) * PANEL + v * lanes;
                        let value = if self.is_gaussian {
                            let half = A::F64::add(row_half, A::F64::load(self.halves.add(column)));
                            let exponent = A::F64::sub(acc, half);
                            exp::<A, f64>(A::F64::min(exponent, A::F64::splat(0.0)))
                        } else {
                            acc
                        };
                        A::F64::store(self.out.add((row + r) * BLOCK + column), value);
                    }
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
        let map = FeatureMap::fit(FeatureSettings::default(), signals.view()).unwrap();
        let features = map.transform(signals.view()).unwrap();
        for kernel in [Kernel::Rbf { gamma: 0.05 }, Kernel::Linear] {
            let support =
                QuadraticSupport::new(kernel, &map, signals.view(), features.view()).unwrap();
            for isa in Isa::available() {
                for n_rows in 1..=STRIP {
                    let mut rows = QuadraticRows::new(map.n_features());
                    for r in 0..n_rows {
                        let z = features.row(r * 7).to_vec();
                        support.write_row(&map, &z, &mut rows, r);
                    }
                    let mut out = vec![0.0; STRIP * BLOCK];
                    support.compute_strip(isa, &rows, n_rows, 1, &mut out);
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
            (FeatureSettings { clip: 1.0, ..FeatureSettings::default() }, Kernel::Linear),
            (
                FeatureSettings { expansion: Expansion::Raw, ..FeatureSettings::default() },
                Kernel::Linear,
            ),
            (FeatureSettings::default(), Kernel::Laplace { gamma: 1.0 }),
        ] {
            let map = FeatureMap::fit(settings, signals.view()).unwrap();
            let features = map.transform(signals.view()).unwrap();
            let support = QuadraticSupport::new(kernel, &map, signals.view(), features.view());
            assert!(support.is_none());
        }
    }
}
