//! What makes a kernel a kernel: its diagonal, symmetry, no negative eigenvalues; and what is said
//! of those that are none.

#![allow(clippy::unwrap_used, reason = "tests")]

use argwhy_core::error::KernelFault;
use argwhy_core::kernel::CustomKernel;
use argwhy_core::operator::{HostOperator, KernelOperator, OperatorKind, Precision};
use argwhy_core::problem::Problem;
use argwhy_core::solver::{Ignore, NewtonSettings, Status, newton};
use argwhy_core::{DecisionSet, Error, Kernel};
use ndarray::Array2;
use proptest::prelude::*;

/// A user's kernel from a closure.
struct Own<F>(F);

impl<F: Fn(&[f64], &[f64]) -> f64 + Send + Sync> CustomKernel for Own<F> {
    fn name(&self) -> &'static str {
        "own"
    }
    fn evaluate(&self, a: &[f64], b: &[f64]) -> f64 {
        (self.0)(a, b)
    }
}

fn own(f: impl Fn(&[f64], &[f64]) -> f64 + Send + Sync + 'static) -> Kernel {
    Kernel::custom(Own(f))
}

fn simple() -> impl Strategy<Value = Kernel> {
    let gamma = || 0.01..3.0_f64;
    prop_oneof![
        gamma().prop_map(|gamma| Kernel::Rbf { gamma }),
        gamma().prop_map(|gamma| Kernel::Laplace { gamma }),
        Just(Kernel::Linear),
        gamma().prop_map(|gamma| Kernel::Matern32 { gamma }),
        gamma().prop_map(|gamma| Kernel::Matern52 { gamma }),
        (1_u32..6, gamma(), 0.0..2.0_f64).prop_map(|(degree, gamma, offset)| Kernel::Polynomial {
            degree,
            gamma,
            offset
        }),
        Just(own(|a, b| a.iter().zip(b).map(|(a, b)| (a - b).cos()).sum())),
    ]
}

/// Kernels of every kind on `n_features` features.
fn kernels(n_features: usize) -> impl Strategy<Value = Kernel> {
    simple().prop_recursive(3, 8, 3, move |inner| {
        let some = || prop::collection::vec(inner.clone(), 1..4);
        prop_oneof![
            some().prop_map(|terms| Kernel::Sum { terms }),
            some().prop_map(|factors| Kernel::Product { factors }),
            (0.01..5.0_f64, inner.clone())
                .prop_map(|(weight, kernel)| Kernel::Scaled { weight, kernel: Box::new(kernel) }),
            (prop::collection::vec(0.1..5.0_f64, n_features), inner.clone()).prop_map(
                |(length_scales, kernel)| Kernel::Anisotropic {
                    length_scales,
                    kernel: Box::new(kernel)
                }
            ),
        ]
    })
}

fn features(n: usize, n_features: usize, spread: f64, phase: f64) -> Array2<f64> {
    Array2::from_shape_fn((n, n_features), |(i, k)| {
        spread * ((i * 29 + k * 17) as f64 * 0.618 + phase * (1 + k) as f64).sin()
    })
}

fn smallest_eigenvalue(gram: &Array2<f64>) -> f64 {
    let n = gram.nrows();
    let matrix = faer::Mat::from_fn(n, n, |i, j| gram[[i, j]]);
    matrix.self_adjoint_eigenvalues(faer::Side::Lower).unwrap()[0]
}

proptest! {
    #[test]
    fn kernels_are_symmetric_and_positive_semidefinite_and_know_their_diagonal(
        kernel in kernels(3), n in 1_usize..40, spread in 0.1..3.0_f64, phase in 0.0..6.0_f64
    ) {
        let z = features(n, 3, spread, phase);
        let row = |i: usize| z.row(i).to_vec();
        let gram = Array2::from_shape_fn((n, n), |(i, j)| kernel.evaluate(&row(i), &row(j)));
        prop_assert_eq!(&gram, &gram.t());
        let trace: f64 = gram.diag().sum();
        prop_assert!(smallest_eigenvalue(&gram) >= -1e-12 * trace, "{}", kernel);
        let operator =
            HostOperator::new(z.view(), kernel.clone(), Precision::F64, OperatorKind::Tiled)
                .unwrap();
        prop_assert_eq!(operator.diagonal().unwrap(), gram.diag().to_vec());
        if let Some(bound) = kernel.bound() {
            for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
                prop_assert!(gram[[i, j]] <= bound * (1.0 + 1e-14));
            }
            prop_assert!((gram[[0, 0]] / bound - 1.0).abs() < 1e-14);
        }
        // The matrix products are made of is the same.
        let mut product = Array2::zeros((n, n));
        operator.apply(Array2::eye(n).view(), product.view_mut()).unwrap();
        for ((i, j), value) in product.indexed_iter() {
            let scale = (gram[[i, i]] * gram[[j, j]]).sqrt();
            prop_assert!((value - gram[[i, j]]).abs() <= 1e-12 * scale, "{}", kernel);
        }
    }

    #[test]
    fn a_kernel_survives_json(kernel in kernels(3)) {
        let text = serde_json::to_string(&kernel);
        if kernel.custom_part().is_some() {
            prop_assert!(text.is_err());
        } else {
            prop_assert_eq!(serde_json::from_str::<Kernel>(&text.unwrap()).unwrap(), kernel);
        }
    }
}

#[test]
fn matern_kernels_approach_the_rbf_kernel_of_the_same_gamma_as_they_get_smoother() {
    let off = |kernel: &Kernel| {
        (1..40)
            .map(|i| {
                let (a, b) = ([0.0], [0.1 * f64::from(i)]);
                (kernel.evaluate(&a, &b) - Kernel::Rbf { gamma: 0.5 }.evaluate(&a, &b)).abs()
            })
            .fold(0.0, f64::max)
    };
    let [rough, smooth] =
        [Kernel::Matern32 { gamma: 0.5 }, Kernel::Matern52 { gamma: 0.5 }].map(|k| off(&k));
    assert!(smooth < 0.7 * rough && rough < 0.15, "{rough} {smooth}");
}

#[test]
fn a_sum_with_weights_of_one_in_all_is_stored_in_16_bits() {
    let scaled = |weight, kernel| Kernel::Scaled { weight, kernel: Box::new(kernel) };
    let sum = |weights: [f64; 3]| Kernel::Sum {
        terms: vec![
            scaled(weights[0], Kernel::Rbf { gamma: 0.5 }),
            scaled(weights[1], Kernel::Matern52 { gamma: 0.5 }),
            scaled(weights[2], Kernel::Laplace { gamma: 0.1 }),
        ],
    };
    let z = features(300, 3, 1.0, 0.2);
    let compact =
        |kernel: Kernel| HostOperator::new(z.view(), kernel, Precision::F32, OperatorKind::Compact);
    // The second adds up to 1.0000000000000002.
    for weights in [[0.5, 0.25, 0.25], [0.7, 0.1, 0.2], [0.3, 0.3, 0.1]] {
        let kernel = sum(weights);
        let operator = compact(kernel.clone()).unwrap();
        let (mut got, unit) = (
            Array2::zeros((1, 300)),
            Array2::from_shape_fn((1, 300), |(_, i)| f64::from(u8::from(i == 7))),
        );
        operator.apply(unit.view(), got.view_mut()).unwrap();
        for (i, got) in got.iter().enumerate() {
            let expected = kernel.evaluate(&z.row(7).to_vec(), &z.row(i).to_vec());
            assert!((got - expected).abs() < 0.6 / f64::from(u16::MAX), "{i}: {got} {expected}");
        }
    }
    for beyond in [sum([0.5, 0.5, 0.1]), Kernel::Sum { terms: vec![Kernel::Linear] }] {
        assert!(matches!(compact(beyond), Err(Error::Setting { name: "operator", .. })));
    }
    let half = scaled(0.5, Kernel::Rbf { gamma: 1.0 });
    let twice = scaled(2.0, Kernel::Matern32 { gamma: 1.0 });
    assert!(Kernel::Product { factors: vec![half, twice] }.is_fraction());
}

#[test]
fn parameters_out_of_range_are_refused_by_name() {
    let scaled = |weight| Kernel::Scaled { weight, kernel: Box::new(Kernel::Linear) };
    let stretched = |length_scales: &[f64]| Kernel::Anisotropic {
        length_scales: length_scales.to_vec(),
        kernel: Box::new(Kernel::Linear),
    };
    for (kernel, name) in [
        (Kernel::Matern32 { gamma: 0.0 }, "gamma"),
        (Kernel::Matern52 { gamma: f64::NAN }, "gamma"),
        (Kernel::Polynomial { degree: 0, gamma: 1.0, offset: 1.0 }, "degree"),
        (Kernel::Polynomial { degree: 33, gamma: 1.0, offset: 1.0 }, "degree"),
        (Kernel::Polynomial { degree: 3, gamma: -1.0, offset: 1.0 }, "gamma"),
        (Kernel::Polynomial { degree: 3, gamma: 1.0, offset: -0.5 }, "offset"),
        (scaled(-1.0), "weight"),
        (scaled(0.0), "weight"),
        (Kernel::Sum { terms: vec![] }, "kernel"),
        (Kernel::Product { factors: vec![Kernel::Linear, scaled(f64::INFINITY)] }, "weight"),
        (Kernel::Sum { terms: vec![Kernel::Linear; 65] }, "65 kernels"),
        (stretched(&[1.0, 0.0]), "length_scales"),
        (stretched(&[]), "length_scales"),
        (stretched(&[1.0, f64::INFINITY]), "length_scales"),
    ] {
        let message = kernel.validate().unwrap_err().to_string();
        assert!(message.contains(name), "{message}");
    }
    let z = features(5, 3, 1.0, 0.0);
    let found =
        HostOperator::new(z.view(), stretched(&[1.0; 4]), Precision::F64, OperatorKind::Tiled);
    assert_eq!(found.err(), Some(Error::LengthScales { found: 4, n_features: 3 }));
}

fn fault_of(kernel: Kernel, z: &Array2<f64>) -> Option<KernelFault> {
    match HostOperator::new(z.view(), kernel, Precision::F64, OperatorKind::Tiled) {
        Ok(_) => None,
        Err(Error::NotPositiveSemidefinite(fault)) => Some(fault),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn what_is_no_kernel_is_refused_with_what_was_seen() {
    let z = features(200, 2, 2.0, 0.3);
    let rbf = |a: &[f64], b: &[f64]| Kernel::Rbf { gamma: 0.5 }.evaluate(a, b);
    let marked = z.row(3).to_vec();
    let is_marked = move |a: &[f64]| a == marked.as_slice();
    let mark = is_marked.clone();
    let negative = own(move |a, b| if mark(a) && mark(b) { -0.2 } else { rbf(a, b) });
    assert_eq!(
        fault_of(negative, &z),
        Some(KernelFault::NegativeDiagonal { sample: 3, value: -0.2 })
    );
    let infinite = own(move |a, b| if is_marked(a) { f64::INFINITY } else { rbf(a, b) });
    let found = fault_of(infinite, &z).unwrap();
    assert!(matches!(found, KernelFault::NotFinite { samples: [3, 3], .. }), "{found}");
    let nan = own(move |a, b| if a == b { 1.0 } else { (a[0] - b[0]).ln() });
    assert!(matches!(fault_of(nan, &z), Some(KernelFault::NotFinite { .. })));
    let asymmetric = own(move |a, b| rbf(a, b) * (1.0 + 0.01 * (a[0] - b[0])));
    assert!(matches!(fault_of(asymmetric, &z), Some(KernelFault::Asymmetric { .. })));
    let growing = own(|a, b| (a[0] - b[0]).abs() + 0.1);
    assert!(matches!(fault_of(growing, &z), Some(KernelFault::Minor { .. })));
    // Near or not near: 1 everywhere on the diagonal and never above it, but not positive
    // semidefinite.
    let indicator = own(|a, b| f64::from(u8::from((a[0] - b[0]).abs() <= 1.0)));
    let found = fault_of(indicator.clone(), &z).unwrap();
    assert!(
        matches!(found, KernelFault::Curvature { relative, .. } if relative < -1e-3),
        "{found}"
    );
    let inside = Kernel::Sum { terms: vec![indicator, Kernel::Rbf { gamma: 100.0 }] };
    let error = HostOperator::new(z.view(), inside, Precision::F32, OperatorKind::Stored).err();
    let message = error.unwrap().to_string();
    assert!(
        message.contains("not positive semidefinite") && message.contains("vᵀKv = -"),
        "{message}"
    );
}

#[test]
fn singular_kernels_and_those_computed_in_single_precision_are_none_of_that() {
    let mut z = features(300, 2, 2.0, 0.3);
    for i in 100..200 {
        let copy = z.row(i - 100).to_owned();
        z.row_mut(i).assign(&copy);
    }
    z.row_mut(5).fill(0.0);
    let single = |a: &[f64], b: &[f64]| {
        let square: f32 = a.iter().zip(b).map(|(a, b)| ((a - b) as f32).powi(2)).sum();
        f64::from((-0.5 * square).exp())
    };
    let kernels = [
        own(|a, b| a[0] * b[0]),
        own(|_, _| 1.0),
        own(|_, _| 0.0),
        own(single),
        own(|a, b| a.iter().zip(b).map(|(a, b)| a * b).sum()),
        // Centred at the first sample: zero there but for rounding.
        own(|a, b| {
            let at = |a: &[f64], b: &[f64]| Kernel::Rbf { gamma: 0.1 }.evaluate(a, b);
            let c = [0.3, -0.7];
            at(a, b) - at(a, &c) - at(&c, b) + at(&c, &c)
        }),
    ];
    for (which, kernel) in kernels.into_iter().enumerate() {
        assert_eq!(fault_of(kernel.clone(), &z), None, "{which}");
        // And they can be solved with, factorised or not.
        let u = Array2::from_shape_fn((300, 1), |(i, _)| z[[i, 0]].clamp(-1.0, 1.0));
        let set = DecisionSet::bounds(1, -1.0, 1.0).unwrap();
        let problem = Problem::new(u.view(), set, 1e-3).unwrap();
        for max_rank in [None, Some(40)] {
            let operator =
                HostOperator::new(z.view(), kernel.clone(), Precision::F64, OperatorKind::Stored)
                    .unwrap();
            let settings = NewtonSettings { max_rank, ..NewtonSettings::default() };
            let outcome = newton::solve(&problem, &operator, &settings, 0, &mut Ignore).unwrap();
            assert_eq!(outcome.status, Status::Solved, "{which} {max_rank:?}");
        }
    }
}

/// All 2 × 2 minors are fine and the smallest eigenvalue is −0.005 among 296 near zero: slow to
/// find, and found.
#[test]
fn a_small_negative_eigenvalue_among_many_zeros_is_reported() {
    let mut z = features(300, 2, 2.0, 0.3);
    z.row_mut(17).fill(1000.0);
    z.row_mut(203).fill(2000.0);
    let kernel = own(|a, b| match (a[0] > 500.0, b[0] > 500.0) {
        (false, false) => a[0] * b[0] + 1.0,
        (true, true) if a[0] == b[0] => 1.0,
        (true, true) => 1.0 - 1e-9,
        // Two samples that are one to each other, and not to the rest.
        _ if (a[0] - b[0]).abs() > 1900.0 => 0.0,
        _ => 0.1,
    });
    let u = Array2::from_shape_fn((300, 1), |(i, _)| 0.3 * (i as f64).sin());
    let set = DecisionSet::bounds(1, -1.0, 1.0).unwrap();
    let problem = Problem::new(u.view(), set, 1e-7).unwrap();
    let operator = HostOperator::new(z.view(), kernel, Precision::F64, OperatorKind::Stored);
    // Found before the fit or during it, but found.
    let found = match &operator {
        Err(error) => Some(error.clone()),
        Ok(operator) => {
            newton::solve(&problem, operator, &NewtonSettings::default(), 0, &mut Ignore).err()
        }
    };
    assert!(
        matches!(&found, Some(Error::NotPositiveSemidefinite(KernelFault::Curvature { .. }))),
        "{found:?}"
    );
}

/// Three samples of 900 that no sample of pairs is likely to show: the solver meets them.
#[test]
fn what_the_check_misses_the_solver_reports() {
    let mut z = features(900, 2, 2.0, 0.3);
    for (i, at) in [(100, 100.0), (450, 101.0), (800, 102.0)] {
        z.row_mut(i).fill(at);
    }
    let kernel = own(|a, b| {
        if a[0] > 50.0 && b[0] > 50.0 {
            f64::from(u8::from((a[0] - b[0]).abs() <= 1.0))
        } else {
            Kernel::Rbf { gamma: 0.5 }.evaluate(a, b)
        }
    });
    assert_eq!(fault_of(kernel.clone(), &z), None);
    // What those three decide points along the eigenvector of their negative eigenvalue.
    let u = Array2::from_shape_fn((900, 1), |(i, _)| match i {
        450 => -0.9,
        100 | 800 => 0.6,
        _ => 0.5 * z[[i, 0]].sin(),
    });
    let set = DecisionSet::bounds(1, -1.0, 1.0).unwrap();
    let problem = Problem::new(u.view(), set, 1e-5).unwrap();
    for max_rank in [None, Some(100)] {
        for precision in [Precision::F64, Precision::F32] {
            let operator =
                HostOperator::new(z.view(), kernel.clone(), precision, OperatorKind::Stored)
                    .unwrap();
            let settings = NewtonSettings { max_rank, ..NewtonSettings::default() };
            let found = newton::solve(&problem, &operator, &settings, 0, &mut Ignore);
            assert!(
                matches!(found, Err(Error::NotPositiveSemidefinite(KernelFault::Curvature { .. }))),
                "{max_rank:?} {precision:?} {found:?}"
            );
        }
    }
}
