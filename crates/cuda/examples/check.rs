//! Checks products on the GPU against the kernel's definition on the host, then times them.
//!
//!     cargo run --release -p argwhy-cuda --example check            errors at N = 3000
//!     cargo run --release -p argwhy-cuda --example check -- 100000  and times at N = 100,000
//!
//! Each further number is a size to time at; `78x3` before it changes features and columns. Data
//! are random: samples around 50 centres, as states visited by a policy are, with a few far
//! outside.
#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

use argwhy_core::Kernel;
use argwhy_core::operator::KernelOperator;
use argwhy_cuda::{CudaOperator, Device, Precision, Products};
use ndarray::{Array2, ArrayView2};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::time::Instant;

fn main() {
    let device = match Device::new(0) {
        Ok(device) => device,
        Err(error) => return println!("{error}"),
    };
    println!("{}", device.probe().unwrap());
    check(&device);
    let (mut n_features, mut n_columns) = (78, 3);
    for argument in std::env::args().skip(1) {
        match argument.split_once('x') {
            Some((d, n)) => (n_features, n_columns) = (d.parse().unwrap(), n.parse().unwrap()),
            None => time(&device, argument.parse().unwrap(), n_features, n_columns),
        }
    }
}

fn check(device: &Device) {
    let gamma = 1.0 / 78.0;
    let sum = |terms| Kernel::Sum { terms };
    let half = |kernel| Kernel::Scaled { weight: 0.5, kernel: Box::new(kernel) };
    let kernels = [
        ("rbf", Kernel::Rbf { gamma }),
        ("laplace", Kernel::Laplace { gamma }),
        ("matern32", Kernel::Matern32 { gamma }),
        ("matern52", Kernel::Matern52 { gamma }),
        ("linear", Kernel::Linear),
        ("matern52 + linear / 2", sum(vec![Kernel::Matern52 { gamma }, half(Kernel::Linear)])),
        ("rbf / 2 + laplace", sum(vec![half(Kernel::Rbf { gamma }), Kernel::Laplace { gamma }])),
    ];
    println!("errors relative to the largest entry of K·V in f64 on the host, by definition");
    for (n_samples, n_features, n_columns) in
        [(3000, 78, 3), (1000, 171, 6), (129, 5, 1), (2100, 600, 9)]
    {
        println!("N = {n_samples}, d = {n_features}, n = {n_columns}");
        let features = samples(n_samples, n_features, 7);
        let v = uniform(n_samples, n_columns, 8);
        for (name, kernel) in &kernels {
            check_kernel(device, name, kernel, features.view(), v.view());
        }
    }
}

fn check_kernel(
    device: &Device,
    name: &str,
    kernel: &Kernel,
    features: ArrayView2<'_, f64>,
    v: ArrayView2<'_, f64>,
) {
    let n_samples = features.nrows();
    let matrix = Array2::from_shape_fn((n_samples, n_samples), |(i, j)| {
        kernel.evaluate(features.row(i).as_slice().unwrap(), features.row(j).as_slice().unwrap())
    });
    let expected = matrix.dot(&v);
    let largest = |array: &Array2<f64>| array.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
    let products = Products::new(device, features, kernel).unwrap();
    let error = |found: Array2<f64>| {
        assert!(found.iter().all(|x| x.is_finite()), "{name}: not finite");
        largest(&(found - &expected)) / largest(&expected)
    };
    let fast = products.apply(v, Precision::Fast).unwrap();
    assert_eq!(fast, products.apply(v, Precision::Fast).unwrap(), "{name}: other bits");
    let fine = products.apply(v, Precision::Fine).unwrap();
    assert_eq!(fine, products.apply(v, Precision::Fine).unwrap(), "{name}: other bits");
    let exact = products.apply_exact(v).unwrap();
    let rows = [0, n_samples - 1, n_samples / 2];
    let panel = products.rows::<f64>(&rows).unwrap();
    let rounded = products.rows::<f32>(&rows).unwrap();
    let (mut off, scale) = (0.0_f64, largest(&matrix));
    for (r, row) in rows.iter().enumerate() {
        for j in 0..n_samples {
            off = off.max((panel[[r, j]] - matrix[[*row, j]]).abs() / scale);
            assert_eq!(rounded[[r, j]], panel[[r, j]] as f32);
        }
    }
    let (fast, fine, exact) = (error(fast), error(fine), error(exact));
    println!("  {name:24} fast {fast:.1e}  fine {fine:.1e}  exact {exact:.1e}  rows {off:.1e}");
}

fn time(device: &Device, n_samples: usize, n_features: usize, n_columns: usize) {
    println!(
        "N = {n_samples}, d = {n_features}, n = {n_columns}: seconds a product (median), TFLOP/s"
    );
    let features = samples(n_samples, n_features, 9);
    let v = uniform(n_samples, n_columns, 10);
    let gamma = 1.0 / n_features as f64;
    let rbf = Kernel::Rbf { gamma };
    let products = Products::new(device, features.view(), &rbf).unwrap();
    let start = Instant::now();
    let columns = products.upload(v.view()).unwrap();
    device.synchronize().unwrap();
    println!("  upload of v {:.4} s", start.elapsed().as_secs_f64());
    // What the definition takes, without symmetry: d multiplications and additions, and n more, an
    // entry.
    let flops = 2.0 * (n_samples as f64).powi(2) * (n_features + n_columns) as f64;
    let repeats = if n_samples > 300_000 { 3 } else { 11 };
    let measure = |name: &str, precision: Precision, products: &Products| {
        let seconds = median(repeats, || {
            products.apply_columns(&columns, precision).unwrap();
            device.synchronize().unwrap();
        });
        println!("  {name:14} {seconds:.5} s  {:.0} TFLOP/s", flops / seconds / 1e12);
    };
    measure("rbf fast", Precision::Fast, &products);
    measure("rbf fine", Precision::Fine, &products);
    let exact = || {
        products.apply_exact_columns(&columns).unwrap();
        device.synchronize().unwrap();
    };
    let seconds = median(if n_samples > 300_000 { 1 } else { 3 }, exact);
    println!("  rbf exact      {seconds:.5} s  {:.1} TFLOP/s", flops / seconds / 1e12);
    let rows: Vec<usize> = (0..256).map(|i| i * (n_samples / 256)).collect();
    let seconds = median(3, || drop(products.rows::<f32>(&rows).unwrap()));
    println!("  256 rows       {seconds:.5} s with their copy to the host");
    spot_check(&products, &rbf, features.view(), v.view());
    let expected = [products.apply(v.view(), Precision::Fine), products.apply_exact(v.view())];
    drop(products);
    if n_samples >= 20_000 {
        let streamed = Products::streamed(device, features.view(), &rbf, true, 65_536).unwrap();
        measure("fine streamed", Precision::Fine, &streamed);
        let start = Instant::now();
        let found = [streamed.apply(v.view(), Precision::Fine), streamed.apply_exact(v.view())];
        println!("  both streamed  {:.5} s", start.elapsed().as_secs_f64());
        assert!(found == expected, "streamed products have other bits");
        let seconds = median(3, || drop(streamed.rows::<f32>(&rows).unwrap()));
        println!("  256 rows so    {seconds:.5} s with their copy to the host");
    }
    time_operator(device, &rbf, features.view(), n_columns);
    for (name, kernel) in
        [("matern52", Kernel::Matern52 { gamma }), ("laplace", Kernel::Laplace { gamma })]
    {
        let products = Products::new(device, features.view(), &kernel).unwrap();
        measure(&format!("{name} fine"), Precision::Fine, &products);
    }
    println!("  {}", device.probe().unwrap());
}

/// What a fit does beside products: vectors over the bus, and the preconditioner.
fn time_operator(device: &Device, kernel: &Kernel, features: ArrayView2<'_, f64>, dim: usize) {
    let n = features.nrows();
    let clock = |name: &str, start: Instant| {
        device.synchronize().unwrap();
        println!("  {name:14} {:.5} s", start.elapsed().as_secs_f64());
    };
    let start = Instant::now();
    let operator = CudaOperator::new(device, features, kernel, true, 2e-11).unwrap();
    clock("operator", start);
    let v = uniform(dim, n, 11);
    let mut out = Array2::zeros(v.dim());
    operator.apply(v.view(), out.view_mut()).unwrap();
    let start = Instant::now();
    operator.apply(v.view(), out.view_mut()).unwrap();
    clock("host to host", start);
    let (rank, round) = (2560, 128);
    let mut factor = operator.remote_factor(rank, dim, None).unwrap().unwrap();
    let mut diagonal = operator.diagonal().unwrap();
    let floor = vec![0.0; n];
    // Any triangle takes as long as the right one.
    let triangle: Vec<f64> =
        (0..round * round).map(|at| if at % (round + 1) == 0 { 10.0 } else { 0.0 }).collect();
    let start = Instant::now();
    for first in (0..rank).step_by(round) {
        let pivots: Vec<usize> = (first..first + round).map(|i| i * (n / rank)).collect();
        factor.gather(&pivots).unwrap();
        factor.append(&pivots, &triangle, &mut diagonal, &floor).unwrap();
    }
    clock("2560 rows of B", start);
    for (name, step) in [("all free", n + 1), ("a third bound", 3), ("and two of 97", 97)] {
        let free = Array2::from_shape_fn((dim, n), |(j, i)| {
            step > n || ((i + j) % 3 > 0 && (step == 3 || (i + j) % 97 > 1))
        });
        let start = Instant::now();
        factor.update(free.view(), 0.1).unwrap();
        clock(name, start);
    }
    let dimensions: Vec<usize> = (0..dim).collect();
    let start = Instant::now();
    for _ in 0..10 {
        factor.apply(&dimensions, v.view(), out.view_mut()).unwrap();
    }
    clock("10 applications", start);
}

/// A few rows of the product against the definition, at full size.
fn spot_check(
    products: &Products,
    kernel: &Kernel,
    features: ArrayView2<'_, f64>,
    v: ArrayView2<'_, f64>,
) {
    let n_samples = v.nrows();
    let fast = products.apply(v, Precision::Fast).unwrap();
    let fine = products.apply(v, Precision::Fine).unwrap();
    let exact = products.apply_exact(v).unwrap();
    let largest = exact.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
    let mut errors = [0.0_f64; 3];
    for i in (0..16).map(|i| i * (n_samples - 1) / 15) {
        let a = features.row(i);
        let mut expected = vec![0.0; v.ncols()];
        for j in 0..n_samples {
            let k = kernel.evaluate(a.as_slice().unwrap(), features.row(j).as_slice().unwrap());
            expected.iter_mut().zip(v.row(j)).for_each(|(sum, v)| *sum += k * v);
        }
        for (error, found) in errors.iter_mut().zip([&fast, &fine, &exact]) {
            for (c, expected) in expected.iter().enumerate() {
                *error = error.max((found[[i, c]] - expected).abs() / largest);
            }
        }
    }
    let norm = |x: &Array2<f64>| x.iter().map(|x| x * x).sum::<f64>().sqrt();
    let of_all = |x: &Array2<f64>| norm(&(x - &exact)) / norm(&exact);
    let [e_fast, e_fine, e_exact] = errors;
    println!("  16 rows by definition: fast {e_fast:.1e}  fine {e_fine:.1e}  exact {e_exact:.1e}");
    println!(
        "  all rows, ‖· − exact‖/‖exact‖: fast {:.1e}  fine {:.1e}",
        of_all(&fast),
        of_all(&fine)
    );
}

/// Median seconds of `work` after one run to warm up.
fn median(repeats: usize, mut work: impl FnMut()) -> f64 {
    if repeats > 1 {
        work();
    }
    let mut seconds: Vec<f64> = (0..repeats)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed().as_secs_f64()
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    seconds[repeats / 2]
}

/// Samples around 50 centres, one in a thousand thirty times as far away.
fn samples(n_samples: usize, n_features: usize, seed: u64) -> Array2<f64> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let centres = uniform(50, n_features, seed + 100);
    let mut features = Array2::zeros((n_samples, n_features));
    for (i, mut row) in features.rows_mut().into_iter().enumerate() {
        let centre = centres.row(random.random_range(0..50));
        let factor = if i % 1000 == 999 { 30.0 } else { 1.0 };
        for (z, c) in row.iter_mut().zip(centre) {
            *z = 3.0 + factor * (1.5 * c + random.random_range(-0.5..0.5));
        }
    }
    features
}

fn uniform(rows: usize, columns: usize, seed: u64) -> Array2<f64> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    Array2::from_shape_simple_fn((rows, columns), || random.random_range(-1.0..1.0))
}
