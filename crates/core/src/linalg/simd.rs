//! Vector instructions behind one small trait, chosen once at start.
//!
//! Enters: an operation written once against `Arch`. Leaves: the same operation compiled for
//! AVX-512, for AVX2 with FMA and for any other processor, with `Isa::run` picking one. The
//! portable path uses separate multiply and add: `mul_add` without the instruction is a library
//! call and a hundred times slower.
#![allow(unsafe_code)]

use super::exp2::{self, Exp2Constants};
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
    /// The processor must have the instruction set (one of [`Isa::available`]) and the task's own
    /// contract must hold.
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
/// Every function needs a processor with the instruction set; loads and stores need `LANES` valid
/// elements.
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
    /// a·2ⁿ, a normal number, where `biased` = n + 1.5·2^(mantissa bits), so that n sits in the low
    /// bits of its representation.
    unsafe fn scale_by_power(a: Self::V, biased: Self::V) -> Self::V;
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
    /// The processor must support `A`; as many elements as its `f64` vectors have lanes must be
    /// readable.
    unsafe fn load_wide<A: Arch>(p: *const Self) -> <A::F64 as Lanes<f64>>::V;
}

/// The vectors of an element type on an instruction set.
pub(crate) trait Vectors: Element + Widen {
    type On<A: Arch>: Lanes<Self>;
    /// Coefficients of the exponential.
    const EXP2: Exp2Constants<Self>;
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
    const EXP2: Exp2Constants<f32> = exp2::SINGLE;
}

impl Vectors for f64 {
    type On<A: Arch> = A::F64;
    const EXP2: Exp2Constants<f64> = exp2::DOUBLE;
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
}

/// Sum of a vector's lanes: the halves are added until one is left.
///
/// # Safety
/// The processor must support the vector's instruction set.
#[inline(always)]
pub(crate) unsafe fn sum_lanes<L: Lanes<f64>>(v: L::V) -> f64 {
    let mut lanes = [0.0; 8];
    // SAFETY: no instruction set here has more than eight lanes of f64.
    unsafe { L::store(lanes.as_mut_ptr(), v) };
    let mut half = L::LANES / 2;
    while half > 0 {
        for i in 0..half {
            lanes[i] += lanes[i + half];
        }
        half /= 2;
    }
    lanes[0]
}
