//! Plain Rust: what any processor can do.

use super::{Arch, Lanes};

/// Arrays of eight (f32) or four (f64) numbers.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

impl Arch for Portable {
    type F32 = Portable;
    type F64 = Portable;
    const WIDE: bool = false;
    #[inline(always)]
    unsafe fn widen(p: *const f32) -> [f64; 4] {
        // SAFETY: four readable elements, by the caller.
        unsafe { std::array::from_fn(|i| f64::from(*p.add(i))) }
    }
    #[inline(always)]
    unsafe fn widen_u16(p: *const u16) -> [f64; 4] {
        // SAFETY: as above.
        unsafe { std::array::from_fn(|i| f64::from(*p.add(i))) }
    }
}

macro_rules! portable_lanes {
    ($t:ty, $lanes:literal, $shift:literal) => {
        impl Lanes<$t> for Portable {
            type V = [$t; $lanes];
            const LANES: usize = $lanes;
            #[inline(always)]
            unsafe fn splat(x: $t) -> Self::V {
                [x; $lanes]
            }
            #[inline(always)]
            unsafe fn load(p: *const $t) -> Self::V {
                // SAFETY: LANES readable elements, by the caller; arrays need no more alignment
                // than elements.
                unsafe { *p.cast::<Self::V>() }
            }
            #[inline(always)]
            unsafe fn store(p: *mut $t, v: Self::V) {
                // SAFETY: LANES writable elements, by the caller.
                unsafe { *p.cast::<Self::V>() = v }
            }
            #[inline(always)]
            unsafe fn add(a: Self::V, b: Self::V) -> Self::V {
                std::array::from_fn(|i| a[i] + b[i])
            }
            #[inline(always)]
            unsafe fn sub(a: Self::V, b: Self::V) -> Self::V {
                std::array::from_fn(|i| a[i] - b[i])
            }
            #[inline(always)]
            unsafe fn mul(a: Self::V, b: Self::V) -> Self::V {
                std::array::from_fn(|i| a[i] * b[i])
            }
            #[inline(always)]
            unsafe fn fma(a: Self::V, b: Self::V, c: Self::V) -> Self::V {
                std::array::from_fn(|i| a[i] * b[i] + c[i])
            }
            #[inline(always)]
            unsafe fn min(a: Self::V, b: Self::V) -> Self::V {
                std::array::from_fn(|i| if a[i] < b[i] { a[i] } else { b[i] })
            }
            #[inline(always)]
            unsafe fn max(a: Self::V, b: Self::V) -> Self::V {
                std::array::from_fn(|i| if a[i] > b[i] { a[i] } else { b[i] })
            }
            #[inline(always)]
            unsafe fn abs(a: Self::V) -> Self::V {
                std::array::from_fn(|i| a[i].abs())
            }
            #[inline(always)]
            unsafe fn sqrt(a: Self::V) -> Self::V {
                std::array::from_fn(|i| a[i].sqrt())
            }
            #[inline(always)]
            unsafe fn scale_by_power(a: Self::V, biased: Self::V) -> Self::V {
                std::array::from_fn(|i| {
                    <$t>::from_bits(a[i].to_bits().wrapping_add(biased[i].to_bits() << $shift))
                })
            }
        }
    };
}
portable_lanes!(f32, 8, 23);
portable_lanes!(f64, 4, 52);
