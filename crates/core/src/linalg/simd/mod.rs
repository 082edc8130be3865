//! Vector instructions behind one small trait, chosen once at start.
//!
//! Enters: an operation written once against `Arch`. Leaves: the same operation compiled for
//! AVX-512, for AVX2 with FMA and for any other processor, with `Isa::run` picking one. The
//! portable path uses separate multiply and add: `mul_add` without the instruction is a library
//! call and a hundred times slower.
#![allow(unsafe_code)]

mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

use super::exp2::{self, Exp2Constants};
use portable::Portable;
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
