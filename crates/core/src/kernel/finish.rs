//! From what a pair of samples sums up to, an inner product or a distance, to the kernel's value:
//! in place, a vector at a time.
//!
//! Matérn kernels take the root of a squared distance, and near zero a root magnifies rounding:
//! 1e-7 in t² is 3e-4 in t. Their values do not show it, because both are flat there: dκ/d(t²) is
//! −exp(−t)/2 and −(1 + t) exp(−t)/6, at most 1/2 and 1/6. An error in the distance squared enters
//! κ no larger than it is.
#![allow(unsafe_code)]

use super::layout::BLOCK;
use crate::linalg::exp2::{exp2_in_place, exp2_of};
use crate::linalg::simd::{Arch, Isa, Lanes, Task, Vectors};
use std::f64::consts::{LN_2, LOG2_E};

/// The last step of a simple kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Finish {
    /// x itself.
    Identity,
    /// 2ˣ.
    Exp2,
    /// (1 + t) exp(−t), t² = −6x.
    Matern32,
    /// (1 + t + t²/3) exp(−t), t² = −10x.
    Matern52,
    /// (x + offset)^degree.
    Power { degree: u32, offset: f64 },
}

type Vector<A, T> = <<T as Vectors>::On<A> as Lanes<T>>::V;

/// Vectors finished side by side: exponential and root are long chains of dependent operations.
const TOGETHER: usize = 6;

impl Finish {
    /// dκ/dx at most, and |x| dκ/dx at most: what rounding before this step is worth after it.
    pub(super) fn steepness(self) -> (f64, f64) {
        match self {
            Self::Exp2 => (LN_2, 0.37),
            Self::Matern32 => (3.0, 0.3),
            Self::Matern52 => (10.0 / 6.0, 0.3),
            Self::Identity | Self::Power { .. } => (1.0, 1.0),
        }
    }

    /// Finishes the first `len` values, a multiple of a panel, of `n_rows` rows of a strip.
    ///
    /// Each way is a task of its own: a function with all of them in it is too large for the
    /// compiler to inline its vector code, and takes twice the time.
    pub(crate) fn run<T: Vectors>(self, isa: Isa, values: &mut [T], n_rows: usize, len: usize) {
        assert!(n_rows > 0 && len <= BLOCK && len.is_multiple_of(T::PANEL));
        assert!(values.len() >= (n_rows - 1) * BLOCK + len);
        let strip = ValueRows { values: values.as_mut_ptr(), n_rows, len };
        // SAFETY: `isa` was detected on this machine; the assertions bound every access, and a
        // panel is a multiple of every vector.
        unsafe {
            match self {
                Self::Identity => {}
                Self::Exp2 => isa.run(Exp2(strip)),
                Self::Matern32 => isa.run(Matern::<T, false>(strip)),
                Self::Matern52 => isa.run(Matern::<T, true>(strip)),
                Self::Power { degree, offset } => {
                    isa.run(Power { strip, degree, offset: T::from_f64(offset) });
                }
            }
        }
    }
}

/// Rows of kernel values.
struct ValueRows<T> {
    values: *mut T,
    n_rows: usize,
    len: usize,
}

impl<T> ValueRows<T> {
    fn starts(&self) -> impl Iterator<Item = *mut T> {
        let values = self.values;
        (0..self.n_rows).map(move |r| values.wrapping_add(r * BLOCK))
    }
}

struct Exp2<T>(ValueRows<T>);
/// 5/2 where SMOOTH, else 3/2.
struct Matern<T, const SMOOTH: bool>(ValueRows<T>);
struct Power<T> {
    strip: ValueRows<T>,
    degree: u32,
    offset: T,
}

impl<T: Vectors> Task for Exp2<T> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<A: Arch>(self) {
        for row in self.0.starts() {
            // SAFETY: a row of the strip, as `Finish::run` asserted.
            unsafe { exp2_in_place::<A, T>(row, self.0.len) }
        }
    }
}

impl<T: Vectors, const SMOOTH: bool> Task for Matern<T, SMOOTH> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<A: Arch>(self) {
        for row in self.0.starts() {
            // SAFETY: as above.
            unsafe { matern_in_place::<A, T, SMOOTH>(row, self.0.len) }
        }
    }
}

impl<T: Vectors> Task for Power<T> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<A: Arch>(self) {
        for row in self.strip.starts() {
            for at in (0..self.strip.len).step_by(T::On::<A>::LANES) {
                // SAFETY: as above.
                unsafe {
                    let offset = T::On::<A>::splat(self.offset);
                    let x = T::On::<A>::add(T::On::<A>::load(row.add(at)), offset);
                    T::On::<A>::store(row.add(at), power::<A, T>(x, self.degree));
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn matern_in_place<A: Arch, T: Vectors, const SMOOTH: bool>(values: *mut T, len: usize) {
    let lanes = T::On::<A>::LANES;
    let mut at = 0;
    // SAFETY: at + vectors · lanes ≤ len throughout.
    unsafe {
        while at + TOGETHER * lanes <= len {
            matern::<A, T, SMOOTH, TOGETHER>(values.add(at));
            at += TOGETHER * lanes;
        }
        while at < len {
            matern::<A, T, SMOOTH, 1>(values.add(at));
            at += lanes;
        }
    }
}

/// SMOOTH: 5/2 instead of 3/2. What comes in is −γr² ≤ 0.
#[inline(always)]
unsafe fn matern<A: Arch, T: Vectors, const SMOOTH: bool, const V: usize>(values: *mut T) {
    let lanes = T::On::<A>::LANES;
    // SAFETY: V vectors from `values` on, by the caller.
    unsafe {
        let splat = |x: f64| T::On::<A>::splat(T::from_f64(x));
        let factor = splat(if SMOOTH { -10.0 } else { -6.0 });
        // Further away 2ˣ is the smallest there is, and the polynomial must not lift it.
        let far = splat(1e6);
        let squared: [Vector<A, T>; V] = std::array::from_fn(|v| {
            let squared = T::On::<A>::mul(T::On::<A>::load(values.add(v * lanes)), factor);
            T::On::<A>::min(squared, far)
        });
        let t = squared.map(|x| T::On::<A>::sqrt(x));
        let decay = exp2_of::<A, T, V>(t.map(|t| T::On::<A>::mul(t, splat(-LOG2_E))));
        for (v, ((decay, t), squared)) in decay.into_iter().zip(t).zip(squared).enumerate() {
            let mut growth = T::On::<A>::add(t, splat(1.0));
            if SMOOTH {
                growth = T::On::<A>::fma(squared, splat(1.0 / 3.0), growth);
            }
            T::On::<A>::store(values.add(v * lanes), T::On::<A>::mul(growth, decay));
        }
    }
}

/// xⁿ, n ≥ 1, by squaring.
#[inline(always)]
unsafe fn power<A: Arch, T: Vectors>(mut x: Vector<A, T>, mut n: u32) -> Vector<A, T> {
    // SAFETY: arithmetic on vectors of the instruction set the caller vouches for.
    unsafe {
        while n & 1 == 0 {
            x = T::On::<A>::mul(x, x);
            n >>= 1;
        }
        let mut result = x;
        n >>= 1;
        while n > 0 {
            x = T::On::<A>::mul(x, x);
            if n & 1 == 1 {
                result = T::On::<A>::mul(result, x);
            }
            n >>= 1;
        }
        result
    }
}
