//! 2ˣ of vectors: x = n + r, |r| ≤ ½, a polynomial in r, and n into the exponent field.
//!
//! No branches, no tables, about one unit in the last place. The base is two because x = n + r then
//! takes no multiplication and no second word of ln 2: kernels scale their features by log₂ e once
//! instead.
#![allow(unsafe_code)]

use super::simd::{Arch, Lanes, Vectors};

pub(crate) struct Exp2Constants<T: 'static> {
    /// Below, 2ˣ would leave the normal numbers.
    lowest: T,
    /// 1.5·2^(mantissa bits): what is added to it is rounded to an integer, which sits in the low
    /// bits.
    bias: T,
    /// (2ʳ − 1)/r, highest degree first.
    polynomial: &'static [T],
    one: T,
}

/// Interpolated at six Chebyshev points: 2ʳ to 9e-9.
pub(super) const SINGLE: Exp2Constants<f32> = Exp2Constants {
    lowest: -125.0,
    bias: 12_582_912.0,
    polynomial: &[
        1.545_316_3e-4,
        1.339_086_3e-3,
        9.618_083e-3,
        5.550_357e-2,
        2.402_265e-1,
        std::f32::consts::LN_2,
    ],
    one: 1.0,
};

/// Interpolated at eleven Chebyshev points: 2ʳ to 2e-17.
pub(super) const DOUBLE: Exp2Constants<f64> = Exp2Constants {
    lowest: -1021.0,
    bias: 6_755_399_441_055_744.0,
    polynomial: &[
        4.454_960_598_186_518_6e-10,
        7.072_585_949_269_223e-9,
        1.017_806_244_584_577_4e-7,
        1.321_544_258_792_169e-6,
        1.525_273_382_983_612e-5,
        1.540_353_044_173_605e-4,
        1.333_355_814_641_693_6e-3,
        9.618_129_107_606_888e-3,
        5.550_410_866_482_16e-2,
        2.402_265_069_591_009_7e-1,
        std::f64::consts::LN_2,
    ],
    one: 1.0,
};

/// 2ˣ in every lane of several vectors, for x ≤ 126 (f32) or 1022 (f64); below the range of normal
/// numbers the smallest one but one. Side by side, because each is one long chain of dependent
/// operations.
///
/// # Safety
/// The processor must support `A`.
#[inline(always)]
pub(crate) unsafe fn exp2_of<A: Arch, T: Vectors, const V: usize>(
    x: [<T::On<A> as Lanes<T>>::V; V],
) -> [<T::On<A> as Lanes<T>>::V; V] {
    // SAFETY: arithmetic on vectors of the instruction set the caller vouches for.
    unsafe {
        let c = &T::EXP2;
        let splat = |value: T| T::On::<A>::splat(value);
        let bias = splat(c.bias);
        let x = x.map(|x| T::On::<A>::max(x, splat(c.lowest)));
        let biased = x.map(|x| T::On::<A>::add(x, bias));
        let mut r = x;
        for (r, &biased) in r.iter_mut().zip(&biased) {
            *r = T::On::<A>::sub(*r, T::On::<A>::sub(biased, bias));
        }
        let mut p = [splat(c.polynomial[0]); V];
        for &coefficient in c.polynomial[1..].iter().chain([&c.one]) {
            let coefficient = splat(coefficient);
            for (p, &r) in p.iter_mut().zip(&r) {
                *p = T::On::<A>::fma(*p, r, coefficient);
            }
        }
        for (p, &biased) in p.iter_mut().zip(&biased) {
            *p = T::On::<A>::scale_by_power(*p, biased);
        }
        p
    }
}

/// 2ˣ of `len` numbers, in place.
///
/// # Safety
/// The processor must support `A`; `len` numbers from `values` on are valid, and a multiple of a
/// vector's.
#[inline(always)]
pub(crate) unsafe fn exp2_in_place<A: Arch, T: Vectors>(values: *mut T, len: usize) {
    // A whole row of a strip is a multiple of five vectors on every instruction set.
    const TOGETHER: usize = 5;
    let lanes = T::On::<A>::LANES;
    let mut at = 0;
    // SAFETY: at + vectors · lanes ≤ len throughout.
    unsafe {
        while at + TOGETHER * lanes <= len {
            let x: [_; TOGETHER] =
                std::array::from_fn(|v| T::On::<A>::load(values.add(at + v * lanes)));
            for (v, value) in exp2_of::<A, T, TOGETHER>(x).into_iter().enumerate() {
                T::On::<A>::store(values.add(at + v * lanes), value);
            }
            at += TOGETHER * lanes;
        }
        while at < len {
            let [value] = exp2_of::<A, T, 1>([T::On::<A>::load(values.add(at))]);
            T::On::<A>::store(values.add(at), value);
            at += lanes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::simd::{Isa, Task};

    struct Exp2<'a, T>(&'a mut [T]);

    impl<T: Vectors> Task for Exp2<'_, T> {
        type Out = ();
        unsafe fn run<A: Arch>(self) {
            assert!(self.0.len().is_multiple_of(T::On::<A>::LANES));
            // SAFETY: the slice's own numbers.
            unsafe { exp2_in_place::<A, T>(self.0.as_mut_ptr(), self.0.len()) }
        }
    }

    fn worst_relative_error<T: Vectors>(isa: Isa, lowest: f64) -> f64 {
        let x: Vec<T> = (0..16_000).map(|i| T::from_f64(lowest * i as f64 / 15_999.0)).collect();
        let mut y = x.clone();
        // SAFETY: `isa` comes from `available`.
        unsafe { isa.run(Exp2(&mut y)) };
        x.iter()
            .zip(&y)
            .map(|(x, y)| (y.to_f64() / x.to_f64().exp2() - 1.0).abs())
            .fold(0.0, f64::max)
    }

    #[test]
    fn is_accurate_on_every_instruction_set() {
        for isa in Isa::available() {
            let single = worst_relative_error::<f32>(isa, -125.0);
            let double = worst_relative_error::<f64>(isa, -1021.0);
            assert!(single < 1.3e-7, "{isa:?} f32: {single:e}");
            assert!(double < 2.5e-16, "{isa:?} f64: {double:e}");
        }
    }

    #[test]
    fn of_zero_is_one_and_of_minus_infinity_vanishes() {
        for isa in Isa::available() {
            let mut x = [f64::NEG_INFINITY; 16];
            x[0] = 0.0;
            let mut single = [f32::NEG_INFINITY; 16];
            single[0] = 0.0;
            // SAFETY: `isa` comes from `available`.
            unsafe {
                isa.run(Exp2(&mut x));
                isa.run(Exp2(&mut single));
            }
            assert_eq!((x[0], single[0]), (1.0, 1.0));
            assert!(x[1..].iter().all(|&v| (0.0..1e-300).contains(&v)), "{x:?}");
            assert!(single[1..].iter().all(|&v| (0.0..1e-37).contains(&v)), "{single:?}");
        }
    }
}
