//! Products on a GPU, against the definition. Where there is none, that it is said why.

use argwhy_core::Kernel;
use argwhy_cuda::{Device, Error, Precision, Products};
use ndarray::{Array2, ArrayView2};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The GPU, if there is one.
fn device() -> Option<Device> {
    match Device::new(0) {
        Ok(device) => Some(device),
        Err(error @ (Error::NoDriver | Error::NoDevice { .. } | Error::OldDriver { .. })) => {
            assert!(error.to_string().contains("use the CPU"), "{error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn uniform(rows: usize, columns: usize, seed: u64) -> Array2<f64> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    Array2::from_shape_simple_fn((rows, columns), || random.random_range(-1.0..1.0))
}

fn gram(kernel: &Kernel, features: ArrayView2<'_, f64>) -> Array2<f64> {
    let row = |i| features.row(i).to_vec();
    let n_samples = features.nrows();
    Array2::from_shape_fn((n_samples, n_samples), |(i, j)| kernel.evaluate(&row(i), &row(j)))
}

fn kernels() -> Vec<Kernel> {
    let gamma = 0.2;
    let half = Kernel::Scaled { weight: 0.5, kernel: Box::new(Kernel::linear_with_intercept()) };
    vec![
        Kernel::Rbf { gamma },
        Kernel::Laplace { gamma },
        Kernel::Matern32 { gamma },
        Kernel::Matern52 { gamma },
        Kernel::Linear,
        Kernel::Sum { terms: vec![Kernel::Matern52 { gamma }, Kernel::Laplace { gamma }, half] },
    ]
}

#[test]
fn products_agree_with_the_definition_and_with_themselves() {
    let Some(device) = device() else { return };
    // Tiles that are full and not, one chunk of features and several, one pass of columns and two.
    for (n_samples, n_features, n_columns) in [(1, 1, 1), (128, 5, 3), (300, 40, 9)] {
        let features = 5.0 + uniform(n_samples, n_features, 1);
        let v = uniform(n_samples, n_columns, 2);
        for kernel in kernels() {
            let expected = gram(&kernel, features.view()).dot(&v);
            let scale = expected.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
            let products = Products::new(&device, features.view(), &kernel).unwrap();
            let check = |found: Array2<f64>, tolerance: f64| {
                let off = (&found - &expected).iter().fold(0.0_f64, |m, x| m.max(x.abs()));
                assert!(off <= tolerance * scale, "{kernel:?}: {off:e} of {scale:e}");
            };
            for (precision, tolerance) in [(Precision::Fast, 5e-3), (Precision::Fine, 1e-5)] {
                let found = products.apply(v.view(), precision).unwrap();
                assert_eq!(found, products.apply(v.view(), precision).unwrap(), "other bits");
                check(found, tolerance);
            }
            check(products.apply_exact(v.view()).unwrap(), 1e-13);
        }
    }
}

#[test]
fn rows_agree_with_the_definition() {
    let Some(device) = device() else { return };
    let features = uniform(150, 20, 3);
    for kernel in kernels() {
        let expected = gram(&kernel, features.view());
        let products = Products::new(&device, features.view(), &kernel).unwrap();
        let rows = [149, 0, 70];
        let found = products.rows::<f64>(&rows).unwrap();
        let rounded = products.rows::<f32>(&rows).unwrap();
        for (r, row) in rows.into_iter().enumerate() {
            for j in 0..150 {
                assert!((found[[r, j]] - expected[[row, j]]).abs() <= 1e-14 * 20.0);
                assert_eq!(rounded[[r, j]], found[[r, j]] as f32);
            }
        }
        assert_eq!(products.rows::<f64>(&[150]), Err(Error::Row { row: 150, n_samples: 150 }));
    }
}
