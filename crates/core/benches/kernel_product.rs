//! A product with the kernel matrix beside what it cannot do without: gemm and exp on as many
//! entries.
//!
//! `cargo bench -p argwhy-core --bench kernel_product [-- --quick] [-- --json]`. The product is
//! `KernelOperator::apply` with recomputed tiles and three vectors: inner products, distances,
//! exponentials and both accumulations (a tile serves two blocks). Beside it, in the same process
//! and turn by turn: faer's gemm for the inner products of the same triangle of samples, with the
//! block size and layout that suit it best; a vectorised exp that never leaves the first cache; and
//! one after the other, exp on the tile that gemm has just written. Whoever writes K·v with a
//! library has these to pay, and the accumulation as well, which is left out.

#![allow(clippy::print_stdout, reason = "the figures are what a benchmark is for")]
#![allow(
    unsafe_code,
    reason = "the exponential is compiled for instruction sets found at run time"
)]

use argwhy_core::Kernel;
use argwhy_core::linalg::simd::Isa;
use argwhy_core::operator::{HostOperator, KernelOperator, OperatorKind, Precision};
use argwhy_core::random::stream;
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use ndarray::Array2;
use rand::RngExt;
use rayon::prelude::*;
use std::hint::black_box;
use std::time::Instant;

const DIMENSIONS: [usize; 8] = [8, 11, 16, 32, 63, 64, 78, 171];
/// Vectors multiplied at once, as for three dimensions of a decision.
const VECTORS: usize = 3;
/// The operator's own tiles; the diagonal ones are computed whole.
const TILE: usize = 240;
/// Blocks gemm is tried with.
const BLOCKS: [usize; 3] = [240, 480, 960];
/// Exponentials at a time: what enters and what leaves fit into 32 KiB even in f64.
const CHUNK: usize = 1920;

/// Numbers of one precision: gemm comes from faer, exp from below.
trait Number: Copy + Send + Sync + Default + 'static {
    const PRECISION: Precision;
    const NAME: &'static str;
    fn from_f64(x: f64) -> Self;
    /// C = A B / columns of A, which keeps the entries small.
    fn gemm(c: MatMut<'_, Self>, a: MatRef<'_, Self>, b: MatRef<'_, Self>);
    fn exp(isa: Isa, x: &mut [Self]);
}

/// eˣ for −80 ≤ x ≤ 80: x = n ln 2 + r, a Taylor polynomial in r, n into the exponent. A plain loop
/// that the compiler turns into vectors of whatever the function around it may use; `FUSED` where
/// that has a fused multiply-add.
macro_rules! number {
    ($t:ty, $precision:expr, $name:literal, $bias:literal, $shift:literal, $one:expr, $ln2:expr,
     $polynomial:expr, $avx512:ident, $avx2:ident, $plain:ident) => {
        #[inline(always)]
        fn $plain<const FUSED: bool>(values: &mut [$t]) {
            let fma = |a: $t, b: $t, c: $t| if FUSED { a.mul_add(b, c) } else { a * b + c };
            for value in values {
                let x = *value;
                let biased = fma(x, std::f64::consts::LOG2_E as $t, $bias);
                let n = biased - $bias;
                let r = fma(-n, $ln2[1], fma(-n, $ln2[0], x));
                let mut p: $t = $polynomial[0];
                for &coefficient in &$polynomial[1..] {
                    p = fma(p, r, coefficient);
                }
                *value = p * <$t>::from_bits((biased.to_bits() << $shift).wrapping_add($one));
            }
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma")]
        fn $avx512(values: &mut [$t]) {
            $plain::<true>(values);
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        fn $avx2(values: &mut [$t]) {
            $plain::<true>(values);
        }

        impl Number for $t {
            const PRECISION: Precision = $precision;
            const NAME: &'static str = $name;
            fn from_f64(x: f64) -> Self {
                x as $t
            }
            fn gemm(c: MatMut<'_, Self>, a: MatRef<'_, Self>, b: MatRef<'_, Self>) {
                matmul(c, Accum::Replace, a, b, 1.0 / a.ncols() as $t, Par::Seq);
            }
            fn exp(isa: Isa, values: &mut [Self]) {
                match isa {
                    // SAFETY: `isa` was detected on this machine.
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx512 => unsafe { $avx512(values) },
                    // SAFETY: as above.
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx2 => unsafe { $avx2(values) },
                    _ => $plain::<false>(values),
                }
            }
        }
    };
}

number!(
    f32,
    Precision::F32,
    "f32",
    12_582_912.0,
    23,
    127 << 23,
    [0.693_359_4, -2.121_944_4e-4],
    [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0],
    exp_f32_avx512,
    exp_f32_avx2,
    exp_f32
);
number!(
    f64,
    Precision::F64,
    "f64",
    6_755_399_441_055_744.0,
    52,
    1023 << 52,
    [6.931_471_803_691_238e-1, 1.908_214_929_270_587_7e-10],
    [
        1.0 / 479_001_600.0,
        1.0 / 39_916_800.0,
        1.0 / 3_628_800.0,
        1.0 / 362_880.0,
        1.0 / 40_320.0,
        1.0 / 5040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0
    ],
    exp_f64_avx512,
    exp_f64_avx2,
    exp_f64
);

/// Features of one precision, by rows and by columns.
struct Features<T> {
    rows: Vec<T>,
    columns: Vec<T>,
    n: usize,
    d: usize,
}

impl<T: Number> Features<T> {
    fn new(features: &Array2<f64>) -> Self {
        let (n, d) = features.dim();
        let rows = features.iter().map(|&x| T::from_f64(x)).collect();
        let columns = features.t().iter().map(|&x| T::from_f64(x)).collect();
        Self { rows, columns, n, d }
    }

    fn matrix(&self, by_rows: bool) -> MatRef<'_, T> {
        if by_rows {
            MatRef::from_row_major_slice(&self.rows, self.n, self.d)
        } else {
            MatRef::from_column_major_slice(&self.columns, self.n, self.d)
        }
    }

    /// X_I X_Jᵀ for all blocks I ≤ J of `block` samples, and the exponential of it where `exp` says
    /// with what: seconds and entries.
    fn gemm(&self, (block, by_rows): (usize, bool), exp: Option<Isa>) -> (f64, usize) {
        let n_blocks = self.n / block;
        let tiles: Vec<(usize, usize)> =
            (0..n_blocks).flat_map(|i| (i..n_blocks).map(move |j| (i, j))).collect();
        let x = self.matrix(by_rows);
        let begun = Instant::now();
        tiles.par_iter().with_min_len(1).for_each_init(
            || vec![T::default(); block * block],
            |tile, &(i, j)| {
                let (a, b) = (x.subrows(i * block, block), x.subrows(j * block, block));
                let out = MatMut::from_column_major_slice_mut(tile, block, block);
                T::gemm(out, a, b.transpose());
                if let Some(isa) = exp {
                    T::exp(isa, tile);
                }
                black_box(&tile);
            },
        );
        (begun.elapsed().as_secs_f64(), tiles.len() * block * block)
    }
}

/// Seconds that `entries` exponentials take.
fn exponentials<T: Number>(isa: Isa, entries: usize) -> f64 {
    let x: Vec<T> = (0..CHUNK).map(|i| T::from_f64(-10.0 * i as f64 / CHUNK as f64)).collect();
    let tasks = 8 * rayon::current_num_threads();
    let begun = Instant::now();
    (0..tasks).into_par_iter().for_each_init(
        || vec![T::default(); CHUNK],
        |values, _| {
            for _ in 0..entries / tasks / CHUNK {
                values.copy_from_slice(black_box(&x));
                T::exp(isa, values);
                black_box(&values);
            }
        },
    );
    begun.elapsed().as_secs_f64() * entries as f64
        / (entries / tasks / CHUNK * tasks * CHUNK) as f64
}

/// Core nanoseconds an entry: the least and the median of all turns.
struct Times(Vec<f64>);

impl Times {
    fn add(&mut self, seconds: f64, entries: usize, threads: usize) {
        self.0.push(seconds * 1e9 * threads as f64 / entries as f64);
    }

    fn least(&self) -> f64 {
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }

    fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    }
}

struct Row {
    precision: &'static str,
    d: usize,
    threads: usize,
    product: Times,
    gemm: Times,
    exp: Times,
    both: Times,
}

impl Row {
    fn ratio(&self) -> f64 {
        self.product.least() / (self.gemm.least() + self.exp.least())
    }

    fn median_ratio(&self) -> f64 {
        self.product.median() / (self.gemm.median() + self.exp.median())
    }

    fn ratio_both(&self) -> f64 {
        self.product.least() / self.both.least()
    }

    fn json(&self) -> String {
        format!(
            "{{\"precision\": \"{}\", \"d\": {}, \"threads\": {}, \"product_ns\": \
             {:.4}, \"gemm_ns\": {:.4}, \"exp_ns\": {:.4}, \"both_ns\": {:.4}, \"ratio\": \
             {:.4}, \"median_ratio\": {:.4}, \"ratio_both\": {:.4}}}",
            self.precision,
            self.d,
            self.threads,
            self.product.least(),
            self.gemm.least(),
            self.exp.least(),
            self.both.least(),
            self.ratio(),
            self.median_ratio(),
            self.ratio_both(),
        )
    }
}

fn measure<T: Number>(n: usize, turns: usize, threads: usize, features: &Array2<f64>) -> Row {
    let d = features.ncols();
    let isa = Isa::detect();
    let kernel = Kernel::Rbf { gamma: 1.0 / d as f64 };
    let operator = HostOperator::new(features.view(), kernel, T::PRECISION, OperatorKind::Tiled)
        .expect("features are finite");
    let plain = Features::<T>::new(features);
    let v = Array2::from_shape_fn((VECTORS, n), |(c, i)| ((i * 7 + c) as f64).sin());
    let mut out = Array2::zeros((VECTORS, n));
    let n_tiles = (n / TILE) * (n / TILE + 1) / 2;
    let entries = n_tiles * TILE * TILE;

    // The first turn warms up and finds the way that suits gemm best.
    let (mut best, mut fastest) = ((BLOCKS[0], true), f64::INFINITY);
    for block in BLOCKS {
        for by_rows in [true, false] {
            for _ in 0..3 {
                let (seconds, entries) = plain.gemm((block, by_rows), None);
                if seconds / (entries as f64) < fastest {
                    (best, fastest) = ((block, by_rows), seconds / entries as f64);
                }
            }
        }
    }
    operator.apply(v.view(), out.view_mut()).expect("shapes agree");
    exponentials::<T>(isa, entries);

    let [mut product, mut gemm, mut exp, mut both] = [const { Times(Vec::new()) }; 4];
    for _ in 0..turns {
        let begun = Instant::now();
        operator.apply(v.view(), out.view_mut()).expect("shapes agree");
        product.add(begun.elapsed().as_secs_f64(), entries, threads);
        let (seconds, gemm_entries) = plain.gemm(best, None);
        gemm.add(seconds, gemm_entries, threads);
        exp.add(exponentials::<T>(isa, entries), entries, threads);
        let (seconds, gemm_entries) = plain.gemm(best, Some(isa));
        both.add(seconds, gemm_entries, threads);
    }
    black_box(&out);
    Row { precision: T::NAME, d, threads, product, gemm, exp, both }
}

/// A baseline that computes something else would be no baseline.
fn check_exponential<T: Number + Into<f64>>(tolerance: f64) {
    let x: Vec<T> = (0..CHUNK).map(|i| T::from_f64(-20.0 * i as f64 / CHUNK as f64)).collect();
    let mut out = x.clone();
    T::exp(Isa::detect(), &mut out);
    for (&x, &out) in x.iter().zip(&out) {
        let (x, out): (f64, f64) = (x.into(), out.into());
        assert!((out / x.exp() - 1.0).abs() < tolerance, "exp({x}) is not {out}");
    }
}

fn main() {
    let asked = |option: &str| std::env::args().any(|argument| argument == option);
    let (quick, json) = (asked("--quick"), asked("--json"));
    // A multiple of every block, and turns of a few milliseconds: the least of many short ones is
    // what a busy machine can do.
    let (n, turns) = (1920, if quick { 11 } else { 151 });
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    check_exponential::<f32>(1e-5);
    check_exponential::<f64>(1e-14);

    if !json {
        println!("{} samples, {VECTORS} vectors, {}; core-ns an entry", n, Isa::detect().name());
        println!(
            "{:>4} {:>4} {:>7} {:>8} {:>8} {:>8} {:>8} {:>6} {:>10} {:>7}",
            "", "d", "threads", "product", "gemm", "exp", "tile", "ratio", "of medians", "to tile"
        );
    }
    let mut rows = Vec::new();
    for threads in if cores > 1 { vec![1, cores] } else { vec![1] } {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.expect("threads can be started");
        for d in DIMENSIONS {
            let mut rng = stream(5, "kernel_product");
            let features = Array2::from_shape_fn((n, d), |_| rng.random::<f64>() * 4.0 - 2.0);
            for row in [
                pool.install(|| measure::<f32>(n, turns, threads, &features)),
                pool.install(|| measure::<f64>(n, turns, threads, &features)),
            ] {
                if !json {
                    println!(
                        "{:>4} {:>4} {:>7} {:>8.3} {:>8.3} {:>8.3} {:>8.3} {:>6.3} {:>10.3} \
                         {:>7.3}",
                        row.precision,
                        row.d,
                        row.threads,
                        row.product.least(),
                        row.gemm.least(),
                        row.exp.least(),
                        row.both.least(),
                        row.ratio(),
                        row.median_ratio(),
                        row.ratio_both()
                    );
                }
                rows.push(row.json());
            }
        }
    }
    if json {
        println!(
            "{{\"n_samples\": {n}, \"vectors\": {VECTORS}, \"turns\": \
             {turns}, \"isa\": \"{}\", \"rows\": [{}]}}",
            Isa::detect().name(),
            rows.join(", ")
        );
    }
}
