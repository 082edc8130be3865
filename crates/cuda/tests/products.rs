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

/// Panels that divide the samples and that do not, passes of one width and of two.
#[test]
fn samples_in_panels_have_the_bits_that_all_of_them_have() {
    let Some(device) = device() else { return };
    let n = 20_000;
    let features = 2.0 + uniform(n, 11, 4);
    let gamma = 0.1;
    let terms = vec![Kernel::Rbf { gamma }, Kernel::Matern32 { gamma }];
    for kernel in [Kernel::Matern52 { gamma }, Kernel::Rbf { gamma }, Kernel::Sum { terms }] {
        let all = Products::new(&device, features.view(), &kernel).unwrap();
        for panel_rows in [1024, 5 * 1024, 20 * 1024] {
            let part =
                Products::streamed(&device, features.view(), &kernel, true, panel_rows).unwrap();
            assert_eq!(part.what(), all.what());
            for n_columns in [3, 6, 9] {
                let v = uniform(n, n_columns, 5);
                for precision in [Precision::Fast, Precision::Fine] {
                    let found = part.apply(v.view(), precision).unwrap();
                    let expected = all.apply(v.view(), precision).unwrap();
                    assert!(found == expected, "{kernel:?} {panel_rows} {n_columns} {precision:?}");
                }
                let [found, expected] = [&part, &all].map(|p| p.apply_exact(v.view()).unwrap());
                assert!(found == expected, "{kernel:?} {panel_rows} {n_columns} exact");
            }
            let few = [19_999, 3, 7000];
            assert!(part.rows::<f64>(&few).unwrap() == all.rows::<f64>(&few).unwrap());
            assert!(part.block::<f64>(&few).unwrap() == all.block::<f64>(&few).unwrap());
            let v = uniform(2, 3, 6);
            let [found, expected] = [&part, &all].map(|p| p.apply_some(&few, v.view()).unwrap());
            assert!(found == expected);
            let [found, expected] = [&part, &all].map(|p| {
                let some = p.restrict(&few).unwrap();
                some.apply_exact(uniform(3, 1, 7).view()).unwrap()
            });
            assert!(found == expected);
        }
    }
}

#[test]
fn what_cannot_be_streamed_says_so() {
    let Some(device) = device() else { return };
    let features = uniform(500, 3, 8);
    let kernel = Kernel::Rbf { gamma: 0.1 };
    let error = Products::streamed(&device, features.view(), &kernel, true, 1024).unwrap_err();
    assert!(error.to_string().contains("16384 rows or more"), "{error}");
}
