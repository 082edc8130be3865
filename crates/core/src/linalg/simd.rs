//! Vector instructions behind one small trait, chosen once at start.
//!
//! Enters: an operation written once against `Arch`. Leaves: the same operation compiled for AVX-512, for AVX2 with
//! FMA and for any other processor, with `Isa::run` picking one. The portable path uses separate multiply and add:
//! `mul_add` without the instruction is a library call and a hundred times slower.
//!
//! The exponential is a range reduction x = n ln 2 + r, |r| ≤ ln 2 / 2, a polynomial in r and an addition to the
//! exponent field: no branches, no tables, about one unit in the last place.
#![allow(unsafe_code)]

use std::sync::OnceLock;

/// Instruction sets with a code path of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    /// 512-bit vectors.
    Avx512,
    /// 256-bit vectors with fused multiply-add.
    Avx2,
    /// Plain Rust, vectorised by the compiler as far as the target's baseline goes.
    Portable,
}

impl Isa {
    /// The best instruction set of this processor, detected on the first call.
    pub fn detect() -> Self {
        static DETECTED: OnceLock<Isa> = OnceLock::new();
        *DETECTED.get_or_init(|| Self::available()[0])
    }

    /// All instruction sets this processor can run, best first. Never empty.
    pub fn available() -> Vec<Self> {
        let mut found = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            if has!("avx512f") && has!("avx512dq") && has!("avx512vl") && has!("avx512bw") {
                found.push(Self::Avx512);
            }
            if has!("avx2") && has!("fma") {
                found.push(Self::Avx2);
            }
        }
        found.push(Self::Portable);
        found
    }

    /// A name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Avx512 => "AVX-512",
            Self::Avx2 => "AVX2+FMA",
            Self::Portable => "portable",
        }
    }

    /// Runs `task` with this instruction set.
    ///
    /// # Safety
    /// The processor must have the instruction set (one of [`Isa::available`]) and the task's own contract must hold.
    pub(crate) unsafe fn run<K: Task>(self, task: K) -> K::Out {
        // SAFETY: availability and the task's contract are the caller's promise.
        unsafe {
            match self {
                #[cfg(target_arch = "x86_64")]
                Self::Avx512 => x86::run_avx512(task),
                #[cfg(target_arch = "x86_64")]
                Self::Avx2 => x86::run_avx2(task),
                _ => task.run::<Portable>(),
            }
        }
    }
}

/// An operation written once for every instruction set.
pub(crate) trait Task {
    type Out;
    /// # Safety
    /// The processor must support `A`; implementations add what they need of their pointers.
    unsafe fn run<A: Arch>(self) -> Self::Out;
}

/// One instruction set: its vectors of both precisions.
pub(crate) trait Arch: Copy + 'static {
    type F32: Lanes<f32>;
    type F64: Lanes<f64>;
    /// Whether 24 accumulators fit into the register file.
    const WIDE: bool;
    /// Asks for the cache line at `p`, which need not be readable.
    #[inline(always)]
    fn prefetch<T>(_p: *const T) {}
    /// Loads as many `f32` as an `f64` vector has lanes, widened.
    unsafe fn widen(p: *const f32) -> <Self::F64 as Lanes<f64>>::V;
    /// Loads as many integers, converted.
    unsafe fn widen_u16(p: *const u16) -> <Self::F64 as Lanes<f64>>::V;
}

/// A vector of `T` and its arithmetic.
///
/// # Safety
/// Every function needs a processor with the instruction set; loads and stores need `LANES` valid elements.
pub(crate) trait Lanes<T>: Copy + 'static {
    type V: Copy;
    const LANES: usize;
    unsafe fn splat(x: T) -> Self::V;
    unsafe fn load(p: *const T) -> Self::V;
    unsafe fn store(p: *mut T, v: Self::V);
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn sub(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn mul(a: Self::V, b: Self::V) -> Self::V;
    /// a·b + c.
    unsafe fn fma(a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    unsafe fn min(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn max(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn abs(a: Self::V) -> Self::V;
    unsafe fn sqrt(a: Self::V) -> Self::V;
    /// 2ⁿ where `biased` = n + 1.5·2^(mantissa bits), so that n sits in the low bits of its representation.
    unsafe fn exp2_biased(biased: Self::V) -> Self::V;
}

/// Numbers the kernels are computed in.
pub trait Element:
    Copy + Send + Sync + PartialOrd + Default + std::fmt::Debug + Sealed + 'static
{
    /// Samples a panel holds: three AVX-512 vectors, six AVX2 vectors.
    const PANEL: usize;
    /// Nearest value of this type.
    fn from_f64(x: f64) -> Self;
    /// Exact widening.
    fn to_f64(self) -> f64;
}

/// Closes [`Element`].
pub trait Sealed: Sized {}

/// What can be loaded as a vector of `f64`.
pub(crate) trait Widen: Copy + Send + Sync + 'static {
    /// # Safety
    /// The processor must support `A`; as many elements as its `f64` vectors have lanes must be readable.
    unsafe fn load_wide<A: Arch>(p: *const Self) -> <A::F64 as Lanes<f64>>::V;
}

/// The vectors of an element type on an instruction set.
pub(crate) trait Vectors: Element + Widen {
    type On<A: Arch>: Lanes<Self>;
    /// Coefficients of the exponential.
    const EXP: ExpConstants<Self>;
}

pub(crate) struct ExpConstants<T: 'static> {
    lowest: T,
    log2_e: T,
    bias: T,
    ln2_hi: T,
    ln2_lo: T,
    /// Highest degree first, down to r².
    polynomial: &'static [T],
    one: T,
}

impl Sealed for f32 {}
impl Sealed for f64 {}

impl Element for f32 {
    const PANEL: usize = 48;
    fn from_f64(x: f64) -> Self {
        x as f32
    }
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
}

impl Element for f64 {
    const PANEL: usize = 24;
    fn from_f64(x: f64) -> Self {
        x
    }
    fn to_f64(self) -> f64 {
        self
    }
}

impl Widen for f32 {
    #[inline(always)]
    unsafe fn load_wide<A: Arch>(p: *const Self) -> <A::F64 as Lanes<f64>>::V {
        // SAFETY: the caller's.
        unsafe { A::widen(p) }
    }
}

impl Widen for f64 {
    #[inline(always)]
    unsafe fn load_wide<A: Arch>(p: *const Self) -> <A::F64 as Lanes<f64>>::V {
        // SAFETY: the caller's.
        unsafe { A::F64::load(p) }
    }
}

impl Widen for u16 {
    #[inline(always)]
    unsafe fn load_wide<A: Arch>(p: *const Self) -> <A::F64 as Lanes<f64>>::V {
        // SAFETY: the caller's.
        unsafe { A::widen_u16(p) }
    }
}

impl Vectors for f32 {
    type On<A: Arch> = A::F32;
    const EXP: ExpConstants<f32> = ExpConstants {
        lowest: -87.3,
        log2_e: std::f32::consts::LOG2_E,
        bias: 12_582_912.0,
        ln2_hi: 0.693_359_4,
        ln2_lo: -2.121_944_4e-4,
        // Minimax on |r| ≤ ln2/2 (the classical single-precision set).
        polynomial: &[
            1.987_569_1e-4,
            1.398_2e-3,
            8.333_452e-3,
            4.166_579_6e-2,
            1.666_666_5e-1,
            0.5,
        ],
        one: 1.0,
    };
}

impl Vectors for f64 {
    type On<A: Arch> = A::F64;
    const EXP: ExpConstants<f64> = ExpConstants {
        lowest: -708.3,
        log2_e: std::f64::consts::LOG2_E,
        bias: 6_755_399_441_055_744.0,
        ln2_hi: 6.931_471_803_691_238e-1,
        ln2_lo: 1.908_214_929_270_587_7e-10,
        // (eʳ − 1 − r)/r² interpolated at ten Chebyshev points: eʳ to 1.6e-17 for |r| ≤ ln2/2.
        polynomial: &[
            2.510_038_549_551_032e-8,
            2.762_008_844_540_974_6e-7,
            2.755_726_845_999_706_4e-6,
            2.480_152_129_595_437_6e-5,
            1.984_126_986_305_361_8e-4,
            1.388_888_891_721_371_7e-3,
            8.333_333_333_330_062e-3,
            4.166_666_666_662_413e-2,
            1.666_666_666_666_666_9e-1,
            5.000_000_000_000_001e-1,
        ],
        one: 1.0,
    };
}

/// eˣ in every lane of several vectors, for x ≤ 88 (f32) or 709 (f64); below the range of normal numbers the smallest one. Side by
/// side, because each is one long chain of dependent operations.
///
/// # Safety
/// The processor must support `A`.
#[inline(always)]
pub(crate) unsafe fn exp_of<A: Arch, T: Vectors, const V: usize>(
    x: [<T::On<A> as Lanes<T>>::V; V],
) -> [<T::On<A> as Lanes<T>>::V; V] {
    // SAFETY: arithmetic on vectors of the instruction set the caller vouches for.
    unsafe {
        let c = &T::EXP;
        let splat = |value: T| T::On::<A>::splat(value);
        let bias = splat(c.bias);
        let x = x.map(|x| T::On::<A>::max(x, splat(c.lowest)));
        let biased = x.map(|x| T::On::<A>::fma(x, splat(c.log2_e), bias));
        let mut r = x;
        for (r, &biased) in r.iter_mut().zip(&biased) {
            let minus_n = T::On::<A>::sub(bias, biased);
            *r = T::On::<A>::fma(minus_n, splat(c.ln2_hi), *r);
            *r = T::On::<A>::fma(minus_n, splat(c.ln2_lo), *r);
        }
        let mut p = [splat(c.polynomial[0]); V];
        for &coefficient in &c.polynomial[1..] {
            let coefficient = splat(coefficient);
            for (p, &r) in p.iter_mut().zip(&r) {
                *p = T::On::<A>::fma(*p, r, coefficient);
            }
        }
        for ((p, &r), &biased) in p.iter_mut().zip(&r).zip(&biased) {
            let upto_linear = T::On::<A>::add(r, splat(c.one));
            let value = T::On::<A>::fma(*p, T::On::<A>::mul(r, r), upto_linear);
            *p = T::On::<A>::mul(value, T::On::<A>::exp2_biased(biased));
        }
        p
    }
}

/// eˣ of `len` numbers, in place.
///
/// # Safety
/// The processor must support `A`; `len` numbers from `values` on are valid, and a multiple of a vector's.
#[inline(always)]
pub(crate) unsafe fn exp_in_place<A: Arch, T: Vectors>(values: *mut T, len: usize) {
    const TOGETHER: usize = 6;
    let lanes = T::On::<A>::LANES;
    let mut at = 0;
    // SAFETY: at + vectors · lanes ≤ len throughout.
    unsafe {
        while at + TOGETHER * lanes <= len {
            let x: [_; TOGETHER] =
                std::array::from_fn(|v| T::On::<A>::load(values.add(at + v * lanes)));
            for (v, value) in exp_of::<A, T, TOGETHER>(x).into_iter().enumerate() {
                T::On::<A>::store(values.add(at + v * lanes), value);
            }
            at += TOGETHER * lanes;
        }
        while at < len {
            let [value] = exp_of::<A, T, 1>([T::On::<A>::load(values.add(at))]);
            T::On::<A>::store(values.add(at), value);
            at += lanes;
        }
    }
}

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
    ($t:ty, $lanes:literal, $shift:literal, $one_bits:expr) => {
        impl Lanes<$t> for Portable {
            type V = [$t; $lanes];
            const LANES: usize = $lanes;
            #[inline(always)]
            unsafe fn splat(x: $t) -> Self::V {
                [x; $lanes]
            }
            #[inline(always)]
            unsafe fn load(p: *const $t) -> Self::V {
                // SAFETY: LANES readable elements, by the caller; arrays need no more alignment than elements.
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
            unsafe fn exp2_biased(biased: Self::V) -> Self::V {
                std::array::from_fn(|i| {
                    <$t>::from_bits((biased[i].to_bits() << $shift).wrapping_add($one_bits))
                })
            }
        }
    };
}
portable_lanes!(f32, 8, 23, 127 << 23);
portable_lanes!(f64, 4, 52, 1023 << 52);

#[cfg(target_arch = "x86_64")]
#[allow(clippy::wildcard_imports, reason = "intrinsics are named by their instruction")]
mod x86 {
    use super::{Arch, Lanes, Task};
    use std::arch::x86_64::*;

    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma")]
    pub(super) unsafe fn run_avx512<K: Task>(task: K) -> K::Out {
        // SAFETY: the features are enabled here; the task's contract is the caller's.
        unsafe { task.run::<Avx512>() }
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn run_avx2<K: Task>(task: K) -> K::Out {
        // SAFETY: as above.
        unsafe { task.run::<Avx2>() }
    }

    #[derive(Clone, Copy)]
    pub(crate) struct Avx512;
    #[derive(Clone, Copy)]
    pub(crate) struct Avx2;

    impl Arch for Avx512 {
        type F32 = Avx512;
        type F64 = Avx512;
        const WIDE: bool = true;
        #[inline(always)]
        unsafe fn widen(p: *const f32) -> __m512d {
            // SAFETY: eight readable elements and AVX-512, by the caller.
            unsafe { _mm512_cvtps_pd(_mm256_loadu_ps(p)) }
        }
        #[inline(always)]
        unsafe fn widen_u16(p: *const u16) -> __m512d {
            // SAFETY: as above.
            unsafe { _mm512_cvtepi32_pd(_mm256_cvtepu16_epi32(_mm_loadu_si128(p.cast()))) }
        }
        #[inline(always)]
        fn prefetch<T>(p: *const T) {
            // SAFETY: a hint; it never faults, and SSE is part of x86-64.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(p.cast()) }
        }
    }

    impl Arch for Avx2 {
        type F32 = Avx2;
        type F64 = Avx2;
        const WIDE: bool = false;
        #[inline(always)]
        unsafe fn widen(p: *const f32) -> __m256d {
            // SAFETY: four readable elements and AVX2, by the caller.
            unsafe { _mm256_cvtps_pd(_mm_loadu_ps(p)) }
        }
        #[inline(always)]
        unsafe fn widen_u16(p: *const u16) -> __m256d {
            // SAFETY: as above.
            unsafe { _mm256_cvtepi32_pd(_mm_cvtepu16_epi32(_mm_loadl_epi64(p.cast()))) }
        }
        #[inline(always)]
        fn prefetch<T>(p: *const T) {
            // SAFETY: as above.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(p.cast()) }
        }
    }

    macro_rules! x86_lanes {
        ($arch:ty, $t:ty, $v:ty, $lanes:literal, $splat:ident, $load:ident, $store:ident, $add:ident, $sub:ident,
         $mul:ident, $fma:ident, $min:ident, $max:ident, $sqrt:ident, |$a:ident| $abs:expr, |$b:ident| $exp2:expr) => {
            // SAFETY (all): the instruction set and the pointers are the caller's promise, see `Lanes`.
            impl Lanes<$t> for $arch {
                type V = $v;
                const LANES: usize = $lanes;
                #[inline(always)]
                unsafe fn splat(x: $t) -> $v {
                    unsafe { $splat(x) }
                }
                #[inline(always)]
                unsafe fn load(p: *const $t) -> $v {
                    unsafe { $load(p) }
                }
                #[inline(always)]
                unsafe fn store(p: *mut $t, v: $v) {
                    unsafe { $store(p, v) }
                }
                #[inline(always)]
                unsafe fn add(a: $v, b: $v) -> $v {
                    unsafe { $add(a, b) }
                }
                #[inline(always)]
                unsafe fn sub(a: $v, b: $v) -> $v {
                    unsafe { $sub(a, b) }
                }
                #[inline(always)]
                unsafe fn mul(a: $v, b: $v) -> $v {
                    unsafe { $mul(a, b) }
                }
                #[inline(always)]
                unsafe fn fma(a: $v, b: $v, c: $v) -> $v {
                    unsafe { $fma(a, b, c) }
                }
                #[inline(always)]
                unsafe fn min(a: $v, b: $v) -> $v {
                    unsafe { $min(a, b) }
                }
                #[inline(always)]
                unsafe fn max(a: $v, b: $v) -> $v {
                    unsafe { $max(a, b) }
                }
                #[inline(always)]
                unsafe fn abs($a: $v) -> $v {
                    unsafe { $abs }
                }
                #[inline(always)]
                unsafe fn sqrt(a: $v) -> $v {
                    unsafe { $sqrt(a) }
                }
                #[inline(always)]
                unsafe fn exp2_biased($b: $v) -> $v {
                    unsafe { $exp2 }
                }
            }
        };
    }

    x86_lanes!(
        Avx512,
        f32,
        __m512,
        16,
        _mm512_set1_ps,
        _mm512_loadu_ps,
        _mm512_storeu_ps,
        _mm512_add_ps,
        _mm512_sub_ps,
        _mm512_mul_ps,
        _mm512_fmadd_ps,
        _mm512_min_ps,
        _mm512_max_ps,
        _mm512_sqrt_ps,
        |a| _mm512_abs_ps(a),
        |b| _mm512_castsi512_ps(_mm512_add_epi32(
            _mm512_slli_epi32::<23>(_mm512_castps_si512(b)),
            _mm512_set1_epi32(127 << 23)
        ))
    );
    x86_lanes!(
        Avx512,
        f64,
        __m512d,
        8,
        _mm512_set1_pd,
        _mm512_loadu_pd,
        _mm512_storeu_pd,
        _mm512_add_pd,
        _mm512_sub_pd,
        _mm512_mul_pd,
        _mm512_fmadd_pd,
        _mm512_min_pd,
        _mm512_max_pd,
        _mm512_sqrt_pd,
        |a| _mm512_abs_pd(a),
        |b| _mm512_castsi512_pd(_mm512_add_epi64(
            _mm512_slli_epi64::<52>(_mm512_castpd_si512(b)),
            _mm512_set1_epi64(1023 << 52)
        ))
    );
    x86_lanes!(
        Avx2,
        f32,
        __m256,
        8,
        _mm256_set1_ps,
        _mm256_loadu_ps,
        _mm256_storeu_ps,
        _mm256_add_ps,
        _mm256_sub_ps,
        _mm256_mul_ps,
        _mm256_fmadd_ps,
        _mm256_min_ps,
        _mm256_max_ps,
        _mm256_sqrt_ps,
        |a| _mm256_andnot_ps(_mm256_set1_ps(-0.0), a),
        |b| _mm256_castsi256_ps(_mm256_add_epi32(
            _mm256_slli_epi32::<23>(_mm256_castps_si256(b)),
            _mm256_set1_epi32(127 << 23)
        ))
    );
    x86_lanes!(
        Avx2,
        f64,
        __m256d,
        4,
        _mm256_set1_pd,
        _mm256_loadu_pd,
        _mm256_storeu_pd,
        _mm256_add_pd,
        _mm256_sub_pd,
        _mm256_mul_pd,
        _mm256_fmadd_pd,
        _mm256_min_pd,
        _mm256_max_pd,
        _mm256_sqrt_pd,
        |a| _mm256_andnot_pd(_mm256_set1_pd(-0.0), a),
        |b| _mm256_castsi256_pd(_mm256_add_epi64(
            _mm256_slli_epi64::<52>(_mm256_castpd_si256(b)),
            _mm256_set1_epi64x(1023 << 52)
        ))
    );
}

/// Sum of a vector's lanes, first to last.
///
/// # Safety
/// The processor must support the vector's instruction set.
#[inline(always)]
pub(crate) unsafe fn sum_lanes<L: Lanes<f64>>(v: L::V) -> f64 {
    let mut lanes = [0.0; 8];
    // SAFETY: no instruction set here has more than eight lanes of f64.
    unsafe { L::store(lanes.as_mut_ptr(), v) };
    lanes[..L::LANES].iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Exp<'a, T>(&'a mut [T]);

    impl<T: Vectors> Task for Exp<'_, T> {
        type Out = ();
        unsafe fn run<A: Arch>(self) {
            assert!(self.0.len().is_multiple_of(T::On::<A>::LANES));
            // SAFETY: the slice's own numbers.
            unsafe { exp_in_place::<A, T>(self.0.as_mut_ptr(), self.0.len()) }
        }
    }

    fn worst_relative_error<T: Vectors>(isa: Isa, lowest: f64) -> f64 {
        let x: Vec<T> = (0..16_000).map(|i| T::from_f64(lowest * i as f64 / 15_999.0)).collect();
        let mut y = x.clone();
        // SAFETY: `isa` comes from `available`.
        unsafe { isa.run(Exp(&mut y)) };
        x.iter()
            .zip(&y)
            .map(|(x, y)| (y.to_f64() / x.to_f64().exp() - 1.0).abs())
            .fold(0.0, f64::max)
    }

    #[test]
    fn exponential_is_accurate_on_every_instruction_set() {
        for isa in Isa::available() {
            let single = worst_relative_error::<f32>(isa, -80.0);
            let double = worst_relative_error::<f64>(isa, -700.0);
            assert!(single < 2e-7, "{isa:?} f32: {single:e}");
            assert!(double < 5e-16, "{isa:?} f64: {double:e}");
        }
    }

    #[test]
    fn exponential_of_zero_is_one_and_of_minus_infinity_vanishes() {
        for isa in Isa::available() {
            let mut x = [f64::NEG_INFINITY; 16];
            x[0] = 0.0;
            // SAFETY: `isa` comes from `available`.
            unsafe { isa.run(Exp(&mut x)) };
            assert_eq!(x[0], 1.0);
            assert!(x[1..].iter().all(|&v| (0.0..1e-300).contains(&v)), "{x:?}");
        }
    }
}
