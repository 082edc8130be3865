//! AVX-512, and AVX2 with FMA.
#![allow(clippy::wildcard_imports, reason = "intrinsics are named by their instruction")]

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
    ($arch:ty, $t:ty, $v:ty, $lanes:literal, $splat:ident, $load:ident, $store:ident,
     $add:ident, $sub:ident, $mul:ident, $fma:ident, $min:ident, $max:ident, $sqrt:ident,
     |$a:ident| $abs:expr, |$p:ident, $b:ident| $scaled:expr) => {
        // SAFETY (all): the instruction set and the pointers are the caller's promise, see
        // `Lanes`.
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
            unsafe fn scale_by_power($p: $v, $b: $v) -> $v {
                unsafe { $scaled }
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
    |p, b| _mm512_castsi512_ps(_mm512_add_epi32(
        _mm512_castps_si512(p),
        _mm512_slli_epi32::<23>(_mm512_castps_si512(b))
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
    |p, b| _mm512_castsi512_pd(_mm512_add_epi64(
        _mm512_castpd_si512(p),
        _mm512_slli_epi64::<52>(_mm512_castpd_si512(b))
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
    |p, b| _mm256_castsi256_ps(_mm256_add_epi32(
        _mm256_castps_si256(p),
        _mm256_slli_epi32::<23>(_mm256_castps_si256(b))
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
    |p, b| _mm256_castsi256_pd(_mm256_add_epi64(
        _mm256_castpd_si256(p),
        _mm256_slli_epi64::<52>(_mm256_castpd_si256(b))
    ))
);
