//! A strip of kernel values: up to eight rows against the panels of a block, computed in registers.
//!
//! Enters: [`Rows`] and [`Columns`]. Leaves: `out[r·BLOCK + j] = κ(row r, column j)`. The
//! accumulators of a panel (eight rows × three AVX-512 vectors, two rows × six AVX2 vectors) stay
//! in registers over all features; the kernel's last step (`finish`) follows when a strip is
//! complete, while it is in the first-level cache. Each value is the same chain of operations
//! whatever the number of rows computed beside it, so its bits do not depend on how work is cut up.
#![allow(unsafe_code)]

use super::layout::{BLOCK, Columns, Rows, STRIP};
use crate::linalg::simd::{Arch, Isa, Lanes, Task, Vectors};

/// What of two samples a simple kernel is a function of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pairing {
    /// aᵀb.
    Inner,
    /// −½‖a − b‖².
    Squared,
    /// −‖a − b‖₁.
    Absolute,
    /// −½‖s(a − b)‖², s one factor a feature. Nothing is rounded before the difference is taken, so
    /// that what comes out is right to some units of its own last place wherever the samples lie.
    ScaledSquared,
    /// −‖s(a − b)‖₁, likewise.
    ScaledAbsolute,
}

/// Features ahead that a single row asks the cache for: it reads every support point once and
/// computes little with it.
const AHEAD: usize = 8;

/// Pairs the first `n_rows` (1 to 8) rows with all columns.
pub(crate) fn pair_strip<T: Vectors>(
    isa: Isa,
    pairing: Pairing,
    rows: Rows<'_, T>,
    n_rows: usize,
    columns: Columns<'_, T>,
    out: &mut [T],
) {
    let n_panels = columns.heavy.len();
    let n_features = columns.scale.len();
    assert!((1..=STRIP).contains(&n_rows) && n_panels * T::PANEL <= BLOCK);
    assert!(rows.half_norms.len() == STRIP && columns.half_norms.len() == n_panels * T::PANEL);
    assert!(columns.panels.len() == n_panels * n_features * T::PANEL);
    assert!(n_features == 0 || rows.data.len() >= (n_features - 1) * rows.stride + STRIP);
    assert!(out.len() >= (STRIP - 1) * BLOCK + n_panels * T::PANEL);
    let strip = PairTask { pairing, rows, n_rows, columns, out: out.as_mut_ptr() };
    // SAFETY: `isa` was detected on this machine; the assertions above bound every access of
    // `micro`.
    unsafe { isa.run(strip) }
}

struct PairTask<'a, T> {
    pairing: Pairing,
    rows: Rows<'a, T>,
    n_rows: usize,
    columns: Columns<'a, T>,
    out: *mut T,
}

impl<T: Vectors> Task for PairTask<'_, T> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<A: Arch>(self) {
        // SAFETY: the caller's, see `pair_strip`.
        unsafe {
            match self.pairing {
                Pairing::Squared => self.with_form::<A, ExpandedSquare>(),
                Pairing::Absolute => self.with_form::<A, Absolute>(),
                Pairing::Inner => self.with_form::<A, Inner>(),
                Pairing::ScaledSquared => self.with_form::<A, ScaledSquared>(),
                Pairing::ScaledAbsolute => self.with_form::<A, ScaledAbsolute>(),
            }
        }
    }
}

impl<T: Vectors> PairTask<'_, T> {
    #[inline(always)]
    unsafe fn with_form<A: Arch, F: Form<T>>(self) {
        let n_panels = self.columns.heavy.len();
        let mut p = 0;
        while p < n_panels {
            // SAFETY: panels p..p + 4 lie inside `panels`, `half_norms` and each row of `out`
            // (asserted in `pair_strip`).
            unsafe {
                let panel = self.panel(p);
                let by_differences = F::LOSES_DIGITS && self.rows.heavy && self.columns.heavy[p];
                if by_differences {
                    panel.rows::<A, Differences>(self.n_rows);
                    p += 1;
                } else if self.n_rows == 1 && !F::LOSES_DIGITS && p + 4 <= n_panels {
                    panel.four::<A, F>();
                    p += 4;
                } else {
                    panel.rows::<A, F>(self.n_rows);
                    p += 1;
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn panel(&self, p: usize) -> Panel<T> {
        let size = self.columns.scale.len() * T::PANEL;
        // SAFETY: the caller's.
        unsafe {
            Panel {
                n_features: self.columns.scale.len(),
                scale: self.columns.scale.as_ptr(),
                rows: self.rows.data.as_ptr(),
                stride: self.rows.stride,
                columns: self.columns.panels.as_ptr().add(p * size),
                row_halves: self.rows.half_norms.as_ptr(),
                column_halves: self.columns.half_norms.as_ptr().add(p * T::PANEL),
                out: self.out.add(p * T::PANEL),
            }
        }
    }
}

/// Pointers into one panel's work.
struct Panel<T> {
    n_features: usize,
    scale: *const T,
    rows: *const T,
    stride: usize,
    columns: *const T,
    row_halves: *const T,
    column_halves: *const T,
    out: *mut T,
}

impl<T: Vectors> Panel<T> {
    /// Rows in the groups that fill the registers, and one at a time at the end.
    #[inline(always)]
    unsafe fn rows<A: Arch, F: Form<T>>(&self, n_rows: usize) {
        let mut r = 0;
        // SAFETY: r + group ≤ n_rows ≤ STRIP.
        unsafe {
            if A::WIDE {
                while r + 8 <= n_rows {
                    self.micro::<A, F, 8, 3>(r);
                    r += 8;
                }
                while r < n_rows {
                    self.micro::<A, F, 1, 3>(r);
                    r += 1;
                }
            } else {
                while r + 2 <= n_rows {
                    self.micro::<A, F, 2, 6>(r);
                    r += 2;
                }
                while r < n_rows {
                    self.micro::<A, F, 1, 6>(r);
                    r += 1;
                }
            }
        }
    }

    /// The first row against four panels at a time: alone it would leave the multipliers waiting
    /// for each other.
    #[inline(always)]
    unsafe fn four<A: Arch, F: Form<T>>(&self) {
        // SAFETY: the caller's.
        unsafe {
            if A::WIDE {
                self.single::<A, F, 4, 3>(0);
            } else {
                self.single::<A, F, 2, 6>(0);
                self.single::<A, F, 2, 6>(2);
            }
        }
    }

    /// One row × P panels from `first` on × V vectors.
    #[inline(always)]
    unsafe fn single<A: Arch, F: Form<T>, const P: usize, const V: usize>(&self, first: usize) {
        // SAFETY: the caller's bounds.
        unsafe {
            let lanes = T::On::<A>::LANES;
            let size = self.n_features * T::PANEL;
            let columns = self.columns.add(first * size);
            let mut acc = [[T::On::<A>::splat(T::default()); V]; P];
            for k in 0..self.n_features {
                let a = T::On::<A>::splat(*self.rows.add(k * self.stride));
                let scale = T::On::<A>::splat(*self.scale.add(k));
                for (p, acc) in acc.iter_mut().enumerate() {
                    let column = columns.add(p * size + k * T::PANEL);
                    for (v, acc) in acc.iter_mut().enumerate() {
                        A::prefetch(column.wrapping_add(AHEAD * T::PANEL + v * lanes));
                        let b = T::On::<A>::load(column.add(v * lanes));
                        *acc = F::step::<A>(*acc, a, b, scale);
                    }
                }
            }
            let row_half = T::On::<A>::splat(*self.row_halves);
            for (p, acc) in acc.iter().enumerate() {
                for (v, &acc) in acc.iter().enumerate() {
                    let at = (first + p) * T::PANEL + v * lanes;
                    let column_half = T::On::<A>::load(self.column_halves.add(at));
                    T::On::<A>::store(self.out.add(at), F::total::<A>(acc, row_half, column_half));
                }
            }
        }
    }

    /// R rows × V vectors; V·LANES is the panel's width.
    #[inline(always)]
    unsafe fn micro<A: Arch, F: Form<T>, const R: usize, const V: usize>(&self, first: usize) {
        // SAFETY: the caller's bounds.
        unsafe {
            let lanes = T::On::<A>::LANES;
            let mut acc = [[T::On::<A>::splat(T::default()); V]; R];
            for k in 0..self.n_features {
                let column = self.columns.add(k * T::PANEL);
                let b: [_; V] = std::array::from_fn(|v| T::On::<A>::load(column.add(v * lanes)));
                let row = self.rows.add(k * self.stride + first);
                let scale = T::On::<A>::splat(*self.scale.add(k));
                for (r, acc) in acc.iter_mut().enumerate() {
                    let a = T::On::<A>::splat(*row.add(r));
                    for (acc, &b) in acc.iter_mut().zip(&b) {
                        *acc = F::step::<A>(*acc, a, b, scale);
                    }
                }
            }
            for (r, acc) in acc.iter().enumerate() {
                let row_half = T::On::<A>::splat(*self.row_halves.add(first + r));
                for (v, &acc) in acc.iter().enumerate() {
                    let column_half = T::On::<A>::load(self.column_halves.add(v * lanes));
                    let value = F::total::<A>(acc, row_half, column_half);
                    T::On::<A>::store(self.out.add((first + r) * BLOCK + v * lanes), value);
                }
            }
        }
    }
}

type Vector<A, T> = <<T as Vectors>::On<A> as Lanes<T>>::V;

/// What a kernel does with a pair of features, and with their sum.
///
/// # Safety
/// Both functions need a processor with the instruction set.
trait Form<T: Vectors> {
    /// Whether samples with large norms need [`Differences`] instead.
    const LOSES_DIGITS: bool = false;
    unsafe fn step<A: Arch>(
        acc: Vector<A, T>,
        a: Vector<A, T>,
        b: Vector<A, T>,
        scale: Vector<A, T>,
    ) -> Vector<A, T>;
    #[inline(always)]
    unsafe fn total<A: Arch>(
        acc: Vector<A, T>,
        _row_half: Vector<A, T>,
        _column_half: Vector<A, T>,
    ) -> Vector<A, T> {
        acc
    }
}

/// min(aᵀb − h_a − h_b, 0).
struct ExpandedSquare;
/// −½Σ(a − b)²: twice the work of [`ExpandedSquare`], no cancellation.
struct Differences;
/// −Σ|a − b|.
struct Absolute;
/// −½Σ(s(a − b))².
struct ScaledSquared;
/// −Σ|s(a − b)|.
struct ScaledAbsolute;
/// aᵀb.
struct Inner;

// SAFETY (all implementations): vector arithmetic only; the instruction set is the caller's
// promise.
impl<T: Vectors> Form<T> for ExpandedSquare {
    const LOSES_DIGITS: bool = size_of::<T>() == 4;
    #[inline(always)]
    unsafe fn step<A: Arch>(
        acc: Vector<A, T>,
        a: Vector<A, T>,
        b: Vector<A, T>,
        _: Vector<A, T>,
    ) -> Vector<A, T> {
        unsafe { T::On::<A>::fma(a, b, acc) }
    }
    #[inline(always)]
    unsafe fn total<A: Arch>(
        acc: Vector<A, T>,
        row_half: Vector<A, T>,
        column_half: Vector<A, T>,
    ) -> Vector<A, T> {
        unsafe {
            let exponent = T::On::<A>::sub(acc, T::On::<A>::add(row_half, column_half));
            T::On::<A>::min(exponent, T::On::<A>::splat(T::default()))
        }
    }
}

impl<T: Vectors> Form<T> for Differences {
    #[inline(always)]
    unsafe fn step<A: Arch>(
        acc: Vector<A, T>,
        a: Vector<A, T>,
        b: Vector<A, T>,
        _: Vector<A, T>,
    ) -> Vector<A, T> {
        unsafe {
            let difference = T::On::<A>::sub(a, b);
            T::On::<A>::fma(difference, difference, acc)
        }
    }
    #[inline(always)]
    unsafe fn total<A: Arch>(acc: Vector<A, T>, _: Vector<A, T>, _: Vector<A, T>) -> Vector<A, T> {
        unsafe { T::On::<A>::mul(acc, T::On::<A>::splat(T::from_f64(-0.5))) }
    }
}

impl<T: Vectors> Form<T> for Absolute {
    #[inline(always)]
    unsafe fn step<A: Arch>(
        acc: Vector<A, T>,
        a: Vector<A, T>,
        b: Vector<A, T>,
        _: Vector<A, T>,
    ) -> Vector<A, T> {
        unsafe { T::On::<A>::sub(acc, T::On::<A>::abs(T::On::<A>::sub(a, b))) }
    }
}

impl<T: Vectors> Form<T> for Inner {
    #[inline(always)]
    unsafe fn step<A: Arch>(
        acc: Vector<A, T>,
        a: Vector<A, T>,
        b: Vector<A, T>,
        _: Vector<A, T>,
    ) -> Vector<A, T> {
        unsafe { T::On::<A>::fma(a, b, acc) }
    }
}

impl<T: Vectors> Form<T> for ScaledSquared {
    #[inline(always)]
    unsafe fn step<A: Arch>(
        acc: Vector<A, T>,
        a: Vector<A, T>,
        b: Vector<A, T>,
        scale: Vector<A, T>,
    ) -> Vector<A, T> {
        unsafe {
            let difference = T::On::<A>::mul(scale, T::On::<A>::sub(a, b));
            T::On::<A>::fma(difference, difference, acc)
        }
    }
    #[inline(always)]
    unsafe fn total<A: Arch>(acc: Vector<A, T>, _: Vector<A, T>, _: Vector<A, T>) -> Vector<A, T> {
        unsafe { T::On::<A>::mul(acc, T::On::<A>::splat(T::from_f64(-0.5))) }
    }
}

impl<T: Vectors> Form<T> for ScaledAbsolute {
    #[inline(always)]
    unsafe fn step<A: Arch>(
        acc: Vector<A, T>,
        a: Vector<A, T>,
        b: Vector<A, T>,
        scale: Vector<A, T>,
    ) -> Vector<A, T> {
        unsafe {
            let difference = T::On::<A>::mul(scale, T::On::<A>::sub(a, b));
            T::On::<A>::sub(acc, T::On::<A>::abs(difference))
        }
    }
}
