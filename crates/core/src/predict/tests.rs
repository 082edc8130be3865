//! Every way to a decision gives the same one.

use super::*;
use crate::features::{Expansion, FeatureSettings};
use crate::kernel::{CustomKernel, Kernel};
use crate::model::{FeatureWeights, FitRecord, Support};
use crate::problem::Certificate;
use crate::solver::Status;

struct Cosine;

impl CustomKernel for Cosine {
    fn name(&self) -> &'static str {
        "cosine"
    }
    fn evaluate(&self, a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(a, b)| (0.3 * (a - b)).cos()).sum()
    }
}

fn model(kernel: Kernel, clip: f64, n: usize) -> Model {
    let signals = Array2::from_shape_fn((n, 4), |(i, j)| {
        ((i * (j + 2)) as f64 * 0.7).sin() * (1.0 + j as f64)
    });
    let settings =
        FeatureSettings { expansion: Expansion::Poly2, clip, ..FeatureSettings::default() };
    let certificate = Certificate {
        objective: 0.0,
        primal: 0.0,
        dual: 0.0,
        gap: 0.0,
        relative_gap: 0.0,
        rounding: 0.0,
    };
    Model {
        features: FeatureMap::fit(settings, signals.view()).unwrap(),
        law: Law::Kernel(Support {
            kernel,
            prices: Prices::default(),
            coefficients: Array2::from_shape_fn((n, 2), |(i, j)| ((i + 3 * j) as f64).cos()),
            rows: (0..n as u64).collect(),
            signals,
        }),
        set: DecisionSet::bounds(2, -0.8, 0.9).unwrap(),
        constrained: false,
        theta: None,
        names: crate::dataset::Names::default(),
        seen: None,
        calibration: None,
        misfits: None,
        record: FitRecord {
            status: Status::Solved,
            n_samples: n,
            regularization: 1.0,
            certificate,
            iterations: 0,
            kernel_products: 0,
            seconds: 0.0,
            peak_memory_bytes: None,
        },
    }
}

/// One at a time, in batches of any size, clipped or not: the same bits, right to rounding,
/// inside the set.
#[test]
fn a_decision_does_not_depend_on_its_neighbours() {
    let gamma = 0.1;
    let scaled = Kernel::Scaled { weight: 0.2, kernel: Box::new(Kernel::Linear) };
    let sum = Kernel::Sum { terms: vec![Kernel::Rbf { gamma }, scaled] };
    let kernels = [
        Kernel::Rbf { gamma },
        Kernel::Laplace { gamma },
        Kernel::Linear,
        Kernel::Matern32 { gamma },
        Kernel::Matern52 { gamma },
        Kernel::Polynomial { degree: 2, gamma: 0.01, offset: 1.0 },
        sum.clone(),
        Kernel::Anisotropic {
            length_scales: (0..15).map(|k| 1.0 + 0.1 * f64::from(k)).collect(),
            kernel: Box::new(Kernel::Product { factors: vec![sum, Kernel::Rbf { gamma }] }),
        },
        Kernel::custom(Cosine),
    ];
    for (kernel, clip) in kernels.into_iter().flat_map(|k| [(k.clone(), 1000.0), (k, 6.0)]) {
        for n in [0, 1, 250, 700] {
            let mut model = model(kernel.clone(), clip, n.max(1));
            let mut support = model.support().unwrap().clone();
            if n == 0 {
                support.rows.clear();
                support.signals = Array2::zeros((0, 4));
                support.coefficients = Array2::zeros((0, 2));
            }
            model.law = Law::Kernel(support.clone());
            let predictor = Predictor::new(&model).unwrap();
            // Some signals are far out, so that their features are clipped.
            let signals = Array2::from_shape_fn((131, 4), |(i, j)| {
                ((i * 5 + j) as f64 * 0.31).cos() * if i % 9 == 4 { 40.0 } else { 1.5 }
            });
            let together = predictor.predict(signals.view()).unwrap();
            let mut scratch = predictor.scratch();
            let seen = model.features.transform(support.signals.view());
            for (i, signal) in signals.rows().into_iter().enumerate() {
                let mut alone = [0.0; 2];
                predictor.decide_one(&signal.to_vec(), None, &mut scratch, &mut alone).unwrap();
                assert_eq!(together.row(i).to_vec(), alone, "{kernel:?} row {i}");
                assert!(model.set.contains(&alone));
                let three = predictor.predict(signals.slice(ndarray::s![i..(i + 3).min(131), ..]));
                assert_eq!(three.unwrap().row(0).to_vec(), alone);
                let Ok(seen) = &seen else { continue };
                let z = model.features.transform(signals.slice(ndarray::s![i..=i, ..])).unwrap();
                let mut expected = [0.0; 2];
                for (zi, a) in seen.rows().into_iter().zip(support.coefficients.rows()) {
                    let value = kernel.evaluate(&z.row(0).to_vec(), &zi.to_vec());
                    expected.iter_mut().zip(a).for_each(|(e, a)| *e += value * a);
                }
                model.set.project(&mut expected);
                for (found, expected) in alone.iter().zip(expected) {
                    assert!((found - expected).abs() < 1e-9, "{kernel:?} {found} {expected}");
                }
            }
        }
    }
}

/// Explicit weights V = Φᵀα decide as the samples they came from, alone and in batches to the
/// same bits.
#[test]
fn weights_stand_for_samples() {
    for (kernel, intercept) in [(Kernel::Linear, false), (Kernel::linear_with_intercept(), true)] {
        let mut sampled = model(kernel, 3.0, 40);
        let Law::Kernel(support) = &mut sampled.law else { unreachable!() };
        support.coefficients *= 1e-2;
        let mut phi = sampled.features.transform(support.signals.view()).unwrap();
        if intercept {
            phi.push_column(ndarray::Array1::ones(40).view()).unwrap();
        }
        let values = phi.t().dot(&support.coefficients).as_standard_layout().into_owned();
        let law = Law::Primal(FeatureWeights { values, intercept });
        let primal = Model { law, ..sampled.clone() };
        let signals = Array2::from_shape_fn((300, 4), |(i, j)| ((i * 5 + j) as f64).cos());
        let expected = Predictor::new(&sampled).unwrap().predict(signals.view()).unwrap();
        let predictor = Predictor::new(&primal).unwrap();
        let found = predictor.predict(signals.view()).unwrap();
        assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-12));
        assert!(found.iter().any(|u| *u != 0.9 && *u != -0.8));
        let mut scratch = predictor.scratch();
        for (signal, together) in signals.rows().into_iter().zip(found.rows()) {
            let mut alone = [0.0; 2];
            predictor.decide_one(&signal.to_vec(), None, &mut scratch, &mut alone).unwrap();
            assert_eq!(together.to_vec(), alone);
        }
        assert_eq!(primal.weight_names().len(), 15 + usize::from(intercept));
        let values = Array2::zeros((17, 2));
        let wide = Model { law: Law::Primal(FeatureWeights { values, intercept }), ..primal };
        assert!(matches!(wide.validate(), Err(Error::RowCount { .. })));
    }
}
