use super::*;
use crate::kernel::CustomKernel;
use ndarray::Array2;
use proptest::prelude::*;

fn wave(rows: usize, columns: usize, phase: f64) -> Array2<f64> {
    Array2::from_shape_fn((rows, columns), |(i, j)| {
        ((i * 7 + j * 3) as f64 * 0.618 + phase).sin() * (1.0 + (i % 5) as f64)
    })
}

/// v·K, and |v|·|K|: what rounding is relative to.
fn naive(features: &Array2<f64>, kernel: &Kernel, v: &Array2<f64>) -> (Array2<f64>, f64) {
    let rows: Vec<Vec<f64>> = features.rows().into_iter().map(|row| row.to_vec()).collect();
    let n = rows.len();
    let gram = Array2::from_shape_fn((n, n), |(i, j)| kernel.evaluate(&rows[i], &rows[j]));
    let scale = v.mapv(f64::abs).dot(&gram.mapv(f64::abs));
    (v.dot(&gram), scale.iter().fold(0.0, |m: f64, x| m.max(*x)))
}

fn worst(a: &Array2<f64>, b: &Array2<f64>) -> f64 {
    (a - b).iter().fold(0.0, |m: f64, x| m.max(x.abs()))
}

struct Cosine;

impl CustomKernel for Cosine {
    fn name(&self) -> &'static str {
        "cosine"
    }
    fn evaluate(&self, a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(a, b)| (0.3 * (a - b)).cos()).sum::<f64>() / a.len() as f64
    }
}

/// Every kind of kernel, on `n_features` features.
fn kernels(n_features: usize) -> Vec<Kernel> {
    let polynomial = Kernel::Polynomial { degree: 3, gamma: 0.02, offset: 1.0 };
    let length_scales = (0..n_features).map(|k| 0.5 + 0.25 * k as f64).collect();
    let weighted = |weight, kernel| Kernel::Scaled { weight, kernel: Box::new(kernel) };
    let sum = Kernel::Sum {
        terms: vec![
            Kernel::Rbf { gamma: 0.07 },
            weighted(0.5, Kernel::Linear),
            Kernel::Product {
                factors: vec![
                    Kernel::Laplace { gamma: 0.02 },
                    Kernel::Sum { terms: vec![Kernel::Linear, Kernel::Matern32 { gamma: 0.1 }] },
                ],
            },
        ],
    };
    vec![
        Kernel::Rbf { gamma: 0.07 },
        Kernel::Laplace { gamma: 0.05 },
        Kernel::Linear,
        polynomial.clone(),
        Kernel::Polynomial { degree: 2, gamma: 0.1, offset: 0.0 },
        Kernel::Matern32 { gamma: 0.07 },
        Kernel::Matern52 { gamma: 0.07 },
        weighted(3.0, Kernel::Matern52 { gamma: 0.01 }),
        sum.clone(),
        Kernel::Product { factors: vec![Kernel::Rbf { gamma: 0.01 }, polynomial] },
        Kernel::Anisotropic { length_scales, kernel: Box::new(sum) },
        Kernel::custom(Cosine),
        Kernel::Sum { terms: vec![Kernel::custom(Cosine), Kernel::Rbf { gamma: 0.1 }] },
    ]
}

#[test]
fn compact_values_are_those_of_the_kernel_to_16_bits() {
    for (n, n_vectors) in [(1, 1), (100, 3), (241, 5), (1000, 7)] {
        let (features, v) = (wave(n, 11, 0.3), wave(n_vectors, n, 1.1));
        let sum = v.rows().into_iter().map(|row| row.iter().map(|v| v.abs()).sum::<f64>());
        let allowed = 0.501 / f64::from(u16::MAX) * sum.fold(0.0, f64::max);
        for kernel in kernels(11) {
            let (expected, _) = naive(&features, &kernel, &v);
            for isa in Isa::available() {
                let made = HostOperator::with_isa(
                    features.view(),
                    kernel.clone(),
                    Precision::F32,
                    OperatorKind::Compact,
                    isa,
                );
                let Ok(operator) = made else {
                    assert!(!kernel.is_fraction(), "{kernel:?}");
                    continue;
                };
                assert!(kernel.is_fraction() && !operator.is_exact());
                let mut out = Array2::zeros(v.dim());
                operator.apply(v.view(), out.view_mut()).unwrap();
                let error = worst(&out, &expected);
                assert!(error < allowed, "{n} {kernel:?} {isa:?}: {error:e} {allowed:e}");
                operator.exact().apply(v.view(), out.view_mut()).unwrap();
                assert!(worst(&out, &expected) < 1e-9 * allowed);
            }
        }
    }
}

#[test]
fn agrees_with_the_naive_gram_matrix_on_every_path() {
    // 1, one panel, one block and several with a remainder; as many vectors as the groups have
    // sizes.
    for (n, n_vectors) in [(1, 1), (24, 2), (100, 3), (241, 5), (700, 4), (1000, 7)] {
        let (features, v) = (wave(n, 11, 0.3), wave(n_vectors, n, 1.1));
        for kernel in kernels(11) {
            let (expected, scale) = naive(&features, &kernel, &v);
            for isa in Isa::available() {
                for (precision, tol) in [(Precision::F32, 1e-6), (Precision::F64, 1e-14)] {
                    for kind in [OperatorKind::Stored, OperatorKind::Tiled] {
                        let operator = HostOperator::with_isa(
                            features.view(),
                            kernel.clone(),
                            precision,
                            kind,
                            isa,
                        )
                        .unwrap();
                        let mut out = Array2::zeros(v.dim());
                        operator.apply(v.view(), out.view_mut()).unwrap();
                        let error = worst(&out, &expected) / scale;
                        assert!(error < tol, "{n} {kernel:?} {isa:?} {precision:?}: {error:e}");
                        operator.exact().apply(v.view(), out.view_mut()).unwrap();
                        assert!(worst(&out, &expected) / scale < 1e-14);
                    }
                }
            }
        }
    }
}

#[test]
fn stored_and_tiled_and_any_number_of_threads_give_the_same_bits() {
    let (features, v) = (wave(1303, 9, 0.0), wave(3, 1303, 0.5));
    for kernel in kernels(9) {
        let product = |kind, threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let operator =
                    HostOperator::new(features.view(), kernel.clone(), Precision::F32, kind)
                        .unwrap();
                let mut out = Array2::zeros(v.dim());
                operator.apply(v.view(), out.view_mut()).unwrap();
                out
            })
        };
        let reference = product(OperatorKind::Stored, 1);
        assert_eq!(reference, product(OperatorKind::Stored, 4));
        assert_eq!(reference, product(OperatorKind::Tiled, 1));
        assert_eq!(reference, product(OperatorKind::Tiled, 3));
    }
}

#[test]
fn late_values_have_the_same_bits_before_they_are_stored_and_after() {
    let (features, v) = (wave(700, 9, 0.0), wave(3, 700, 0.5));
    let kernel = Kernel::Rbf { gamma: 0.07 };
    for precision in [Precision::F32, Precision::F64] {
        let (kind, accuracy) = (OperatorKind::Stored, ORDINARY_ACCURACY);
        let stored = HostOperator::new(features.view(), kernel.clone(), precision, kind).unwrap();
        let late =
            HostOperator::late(features.view(), kernel.clone(), precision, kind, accuracy).unwrap();
        let product = |operator: &HostOperator| {
            let mut out = Array2::zeros(v.dim());
            operator.apply(v.view(), out.view_mut()).unwrap();
            let mut rows = vec![0.0; 3 * 700];
            operator.rows_into(&[5, 650, 300], 0..700, &mut rows).unwrap();
            (out, rows)
        };
        let held = |operator: &HostOperator| with_tiles!(operator, tiles => tiles.holds_values());
        let reference = product(&stored);
        assert!(held(&stored) && !held(&late));
        let mut n_products = 0;
        while !held(&late) {
            assert_eq!(product(&late), reference);
            n_products += 1;
            assert!(n_products < 20);
        }
        assert!(n_products > 1);
        assert_eq!(product(&late), reference);
    }
}

#[test]
fn rows_have_the_same_bits_stored_and_tiled_whatever_stands_beside_them() {
    let mut features = wave(700, 12, 0.0);
    for i in [3, 250, 251, 600] {
        features.row_mut(i).mapv_inplace(|z| 40.0 + z);
    }
    for kernel in kernels(12) {
        let operator = |kind| {
            HostOperator::new(features.view(), kernel.clone(), Precision::F32, kind).unwrap()
        };
        let (stored, tiled) = (operator(OperatorKind::Stored), operator(OperatorKind::Tiled));
        let samples: Vec<usize> = (0..50).map(|i| (i * 97 + 3) % 700).collect();
        let rows = |operator: &HostOperator, samples: &[usize]| {
            let mut out = vec![0.0; samples.len() * 700];
            operator.rows_into(samples, 0..700, &mut out).unwrap();
            out
        };
        let together = rows(&tiled, &samples);
        assert_eq!(together, rows(&stored, &samples));
        for (r, &i) in samples.iter().enumerate() {
            assert_eq!(together[r * 700..(r + 1) * 700], rows(&tiled, &[i]), "{kernel}");
        }
    }
}

#[test]
fn samples_far_from_the_centre_keep_their_digits_in_single_precision() {
    // Clipping lets features reach 1000: two such neighbours differ by little, and h + h' −
    // zᵀz' would be noise.
    let mut features = wave(300, 40, 0.0);
    for i in 0..20 {
        features.row_mut(i * 13).mapv_inplace(|z| 1000.0 + 0.1 * z);
    }
    let gamma = 1.0 / 40.0;
    for kernel in [Kernel::Rbf { gamma }, Kernel::Matern32 { gamma }, Kernel::Matern52 { gamma }] {
        let v = wave(2, 300, 0.2);
        let operator =
            HostOperator::new(features.view(), kernel.clone(), Precision::F32, OperatorKind::Tiled)
                .unwrap();
        let mut out = Array2::zeros(v.dim());
        operator.apply(v.view(), out.view_mut()).unwrap();
        let error = worst(&out, &naive(&features, &kernel, &v).0);
        assert!(error < 1e-4, "{error:e}");
    }
}

proptest! {
    #[test]
    fn rows_are_rows_of_the_gram_matrix(
        n in 1_usize..600, start in 0.0..1.0_f64, len in 0.0..1.0_f64, seed in 0_usize..1000
    ) {
        let features = wave(n, 5, seed as f64);
        let from = (start * n as f64) as usize;
        let to = from + ((len * (n - from) as f64) as usize);
        let samples: Vec<usize> = (0..11).map(|i| (i * 31 + seed) % n).collect();
        for kernel in kernels(5) {
            let operator = HostOperator::new(
                features.view(), kernel.clone(), Precision::F64, OperatorKind::Tiled,
            ).unwrap().with_blocks(OperatorKind::Stored);
            let mut out = vec![0.0; samples.len() * (to - from)];
            operator.rows_into(&samples, from..to, &mut out).unwrap();
            for (r, &i) in samples.iter().enumerate() {
                for j in from..to {
                    let expected = kernel.evaluate(
                        features.row(i).as_slice().unwrap(),
                        features.row(j).as_slice().unwrap(),
                    );
                    let found = out[r * (to - from) + j - from];
                    prop_assert!((found - expected).abs() <= 1e-12 * (1.0 + expected.abs()));
                }
            }
            let weights = wave(2, samples.len(), 0.4);
            let mut sums = Array2::from_elem((2, n), 1.0);
            operator.add_columns(&samples, weights.view(), sums.view_mut()).unwrap();
            for ((c, j), found) in sums.indexed_iter() {
                let expected: f64 = 1.0 + samples.iter().enumerate().map(|(r, &i)| {
                    weights[[c, r]] * kernel.evaluate(
                        features.row(i).as_slice().unwrap(),
                        features.row(j).as_slice().unwrap(),
                    )
                }).sum::<f64>();
                prop_assert!((found - expected).abs() <= 1e-11 * (1.0 + expected.abs()));
            }
            let part = operator.restrict(&samples).unwrap();
            let mut product = Array2::zeros((2, samples.len()));
            part.apply(weights.view(), product.view_mut()).unwrap();
            for ((c, b), found) in product.indexed_iter() {
                let expected = sums[[c, samples[b]]] - 1.0;
                prop_assert!((found - expected).abs() <= 1e-11 * (1.0 + found.abs()));
            }
            let mut block = vec![0.0; samples.len() * samples.len()];
            operator.block_into(&samples, &mut block).unwrap();
            for (a, &i) in samples.iter().enumerate() {
                for (b, &j) in samples.iter().enumerate() {
                    let expected = kernel.evaluate(
                        features.row(i).as_slice().unwrap(),
                        features.row(j).as_slice().unwrap(),
                    );
                    let found = block[a * samples.len() + b];
                    prop_assert!((found - expected).abs() <= 1e-12 * (1.0 + expected.abs()));
                }
            }
        }
    }
}

/// Whoever computes which part, on however many threads: added in order they are the product.
#[test]
fn parts_added_in_order_have_the_bits_of_the_product() {
    for (n, n_vectors) in [(1, 1), (239, 2), (500, 3), (2000, 4), (16_000, 1)] {
        let (features, v) = (wave(n, 5, 0.3), wave(n_vectors, n, 1.1));
        for precision in [Precision::F32, Precision::F64] {
            let (kernel, kind) = (Kernel::Matern32 { gamma: 0.07 }, OperatorKind::Tiled);
            let made = HostOperator::new(features.view(), kernel, precision, kind).unwrap();
            for operator in [&made, made.exact_host()] {
                let mut expected = Array2::zeros(v.dim());
                operator.apply(v.view(), expected.view_mut()).unwrap();
                for threads in [1, 3] {
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
                    let pool = pool.unwrap();
                    let mut sum = Array2::<f64>::zeros(v.dim());
                    for part in 0..HostOperator::n_parts(n) {
                        let share = pool.install(|| operator.part(part, v.view()));
                        let mut to = sum.slice_mut(ndarray::s![.., share.first..]);
                        to += &share.values;
                    }
                    assert!(sum == expected, "{n} samples, {threads} threads, {precision:?}");
                }
            }
        }
    }
}

#[test]
fn columns_from_a_block_on_are_those_of_the_whole() {
    let (features, samples) = (wave(1000, 4, 0.2), [3, 999, 240, 17, 18, 500, 501, 502, 640]);
    let v = wave(2, samples.len(), 0.9);
    let (kernel, kind) = (Kernel::Rbf { gamma: 0.07 }, OperatorKind::Tiled);
    let operator = HostOperator::new(features.view(), kernel, Precision::F32, kind).unwrap();
    let mut whole = wave(2, 1000, 0.5);
    let mut parts = whole.clone();
    operator.add_columns(&samples, v.view(), whole.view_mut()).unwrap();
    for columns in [0..240, 240..720, 720..1000] {
        let to = parts.slice_mut(ndarray::s![.., columns.clone()]);
        operator.add_columns_from(columns.start, &samples, v.view(), to);
    }
    assert_eq!(whole, parts);
}
