//! Every kernel the whole way: fit, save, load, decide; and those of one's own, which stay in
//! memory.

#![allow(clippy::unwrap_used, reason = "tests")]

use argwhy::core::features::{Expansion, Normalization};
use argwhy::core::kernel::CustomKernel;
use argwhy::core::solver::Status;
use argwhy::settings::{Gamma, KernelChoice, Numbers, SolverKind, TrendChoice};
use argwhy::{Dataset, Error, Fit, FitSettings, Kernel, Pipeline, Predictor, load_model};
use ndarray::Array2;

fn data(n: usize) -> Dataset {
    let signals = Array2::from_shape_fn((n, 2), |(i, j)| ((i * (3 + j)) as f64 * 0.37).sin() * 1.5);
    let decisions = Array2::from_shape_fn((n, 2), |(i, j)| {
        let s = signals.row(i);
        (s[0] * s[1] + 1.4 * (2.0 * s[j]).sin()).clamp(-1.0, 1.0)
    });
    Dataset::new(signals, decisions).unwrap()
}

/// Six features: poly2 of two signals.
fn with(kernel: &str) -> FitSettings {
    FitSettings {
        kernel: kernel.parse().unwrap(),
        bounds: Some(Numbers(vec![-1.0, 1.0])),
        regularization: 1e-4.into(),
        features: Expansion::Poly2,
        trend: TrendChoice::None,
        threads: Some(1),
        ..FitSettings::default()
    }
}

fn fit(settings: FitSettings, data: &Dataset) -> Fit {
    Pipeline::new(settings).unwrap().fit(data).unwrap()
}

fn decide(fit: &Fit, data: &Dataset) -> Array2<f64> {
    Predictor::new(&fit.model).unwrap().predict(data.signals()).unwrap()
}

#[test]
fn every_kernel_is_fitted_saved_loaded_and_decides() {
    let data = data(90);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.argwhy");
    for kernel in [
        "rbf",
        "laplace",
        "linear",
        "polynomial",
        "polynomial(degree=2, gamma=0.5, offset=0)",
        "matern32",
        "matern52(gamma=0.3)",
        "rbf + 0.5*linear",
        "rbf*polynomial",
        "2*(matern32 + laplace(gamma=0.1))*rbf",
    ] {
        for length_scales in [None, Some(Numbers(vec![1.0, 0.5, 2.0, 1.5, 0.7, 3.0]))] {
            for solver in [SolverKind::Newton, SolverKind::Sso] {
                let settings =
                    FitSettings { length_scales: length_scales.clone(), solver, ..with(kernel) };
                let fit = fit(settings, &data);
                assert_eq!(fit.outcome.status, Status::Solved, "{kernel} {solver:?}");
                fit.save(&path).unwrap();
                let stored = load_model(&path).unwrap();
                assert_eq!(stored.model, fit.model, "{kernel}");
                let (again, _) = argwhy::sources::from_stored(&stored.settings).unwrap();
                assert_eq!(&again, fit.settings(), "{kernel}");
                let decided = decide(&fit, &data);
                let loaded = Predictor::new(&stored.model).unwrap();
                assert_eq!(decided, loaded.predict(data.signals()).unwrap(), "{kernel}");
                // Certified responses are what the model decides at the optimum.
                let responses = fit.outcome.certified.responses.t();
                let off = (&decided - &responses).iter().fold(0.0_f64, |m, d| m.max(d.abs()));
                assert!(off < 0.05, "{kernel} {solver:?}: {off}");
            }
        }
    }
}

#[test]
fn length_scales_are_what_features_are_divided_by() {
    let data = data(60);
    let raw = |settings| FitSettings {
        features: Expansion::Raw,
        normalize: Normalization::None,
        gamma: Gamma::Value(0.4),
        ..settings
    };
    let divided = {
        let scaled = data.signals().to_owned() / &ndarray::array![0.5, 2.0];
        Dataset::new(scaled, data.decisions().to_owned()).unwrap()
    };
    let length_scales = Some(Numbers(vec![0.5, 2.0]));
    let scaled = fit(FitSettings { length_scales, ..raw(with("rbf + matern32")) }, &data);
    let plain = fit(raw(with("rbf + matern32")), &divided);
    let [a, b] = [&scaled, &plain].map(|fit| fit.model.record.certificate.objective);
    assert!((a / b - 1.0).abs() < 1e-9, "{a} {b}");
    let off = (&decide(&scaled, &data) - &decide(&plain, &divided))
        .iter()
        .fold(0.0_f64, |m, d| m.max(d.abs()));
    assert!(off < 1e-4, "{off}");
}

#[test]
fn a_wrong_number_of_length_scales_names_both_numbers() {
    let settings = FitSettings { length_scales: Some(Numbers(vec![1.0; 4])), ..with("rbf") };
    let message = Pipeline::new(settings).unwrap().fit(&data(20)).unwrap_err().to_string();
    assert!(message.contains("4 length scales") && message.contains("6 features"), "{message}");
}

/// Products of periods.
struct Waves;

impl CustomKernel for Waves {
    fn name(&self) -> &'static str {
        "waves"
    }
    fn evaluate(&self, a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(a, b)| 1.0 + 0.5 * (a - b).cos()).product()
    }
}

struct Rbf(f64);

impl CustomKernel for Rbf {
    fn name(&self) -> &'static str {
        "own rbf"
    }
    fn evaluate(&self, a: &[f64], b: &[f64]) -> f64 {
        Kernel::Rbf { gamma: self.0 }.evaluate(a, b)
    }
}

#[test]
fn a_kernel_of_ones_own_is_fitted_and_decides_in_memory_but_is_not_saved() {
    let data = data(90);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.argwhy");
    for kernel in
        [Kernel::custom(Waves), Kernel::Sum { terms: vec![Kernel::custom(Waves), Kernel::Linear] }]
    {
        let settings = FitSettings { kernel: kernel.into(), ..with("rbf") };
        let fit = fit(settings, &data);
        assert_eq!(fit.outcome.status, Status::Solved);
        let decided = decide(&fit, &data);
        let off = (&decided - &data.decisions()).iter().map(|d| d * d).sum::<f64>() / 180.0;
        assert!(off.sqrt() < 0.2, "{off}");
        let message = fit.save(&path).unwrap_err();
        assert!(matches!(&message, Error::CustomKernel { name } if name == "waves"), "{message}");
        let message = argwhy::io::save_model(&path, &fit.model, &serde_json::Value::Null);
        assert!(message.unwrap_err().to_string().contains("waves"));
        assert!(!path.exists());
    }
    let own = fit(FitSettings { kernel: Kernel::custom(Rbf(0.2)).into(), ..with("rbf") }, &data);
    let named = fit(with("rbf(gamma=0.2)"), &data);
    let [a, b] = [&own, &named].map(|fit| fit.model.record.certificate.objective);
    assert!((a / b - 1.0).abs() < 1e-9, "{a} {b}");
}

#[test]
fn a_kernel_made_in_rust_is_the_kernel_of_the_same_words() {
    let data = data(50);
    let kernel = Kernel::Sum { terms: vec![Kernel::Rbf { gamma: 0.5 }, Kernel::Linear] };
    let given = fit(FitSettings { kernel: kernel.into(), ..with("rbf") }, &data);
    let words = fit(with("rbf(gamma=0.5) + linear"), &data);
    assert_eq!(given.outcome.certified.coefficients, words.outcome.certified.coefficients);
    let folder = tempfile::tempdir().unwrap();
    given.save(folder.path().join("m.argwhy")).unwrap();
    let stored = load_model(&folder.path().join("m.argwhy")).unwrap();
    let (settings, _) = argwhy::sources::from_stored(&stored.settings).unwrap();
    assert!(matches!(settings.kernel, KernelChoice::Given(_)));
}

struct Distance;

impl CustomKernel for Distance {
    fn name(&self) -> &'static str {
        "distance"
    }
    fn evaluate(&self, a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum()
    }
}

#[test]
fn what_is_no_kernel_is_said_before_the_fit() {
    let settings = FitSettings { kernel: Kernel::custom(Distance).into(), ..with("rbf") };
    let message = Pipeline::new(settings).unwrap().fit(&data(30)).unwrap_err().to_string();
    assert!(message.contains("not positive semidefinite: for samples"), "{message}");
    assert!(message.contains("exceeds κ_ii·κ_jj = 0"), "{message}");
}

struct Written(Kernel);

impl CustomKernel for Written {
    fn name(&self) -> &'static str {
        "written out"
    }
    fn evaluate(&self, a: &[f64], b: &[f64]) -> f64 {
        self.0.evaluate(a, b)
    }
}

/// The trend is part of the kernel, however it is computed: the same optimum as pair by pair, by
/// every solver, and decisions to rounding.
#[test]
fn a_trend_is_the_kernel_with_two_terms_more() {
    let data = data(120);
    for trend in [TrendChoice::Constant, TrendChoice::Linear] {
        for scales in [None, Some(Numbers(vec![1.0, 0.5, 2.0, 1.5, 0.7, 3.0]))] {
            for solver in [SolverKind::Newton, SolverKind::Sso] {
                let length_scales = scales.clone();
                let base = FitSettings { trend, solver, length_scales, ..with("matern52") };
                let written = Kernel::custom(Written(base.kernel_for(6).unwrap()));
                let pairs = FitSettings {
                    kernel: written.into(),
                    trend: TrendChoice::None,
                    length_scales: None,
                    ..base.clone()
                };
                let [own, pairs] = [base, pairs].map(|settings| fit(settings, &data));
                assert_eq!(own.outcome.status, Status::Solved);
                let [a, b] = [&own, &pairs].map(|fit| fit.model.record.certificate);
                let tol = a.gap + b.gap + 1e-9 * b.primal;
                assert!((a.primal - b.primal).abs() <= tol, "{trend:?} {a:?} {b:?}");
                let apart = (&decide(&own, &data) - &decide(&pairs, &data))
                    .iter()
                    .fold(0.0, |m: f64, d| m.max(d.abs()));
                assert!(apart < 2e-2, "{trend:?} {solver:?} {apart}");
                // What is stored is the whole kernel, and decides the same once read back.
                let folder = tempfile::tempdir().unwrap();
                own.save(folder.path().join("m.argwhy")).unwrap();
                let stored = load_model(&folder.path().join("m.argwhy")).unwrap().model;
                let again = Predictor::new(&stored).unwrap().predict(data.signals()).unwrap();
                assert_eq!(again, decide(&own, &data));
            }
        }
    }
}

/// An expert that rises with its signal: off the data a kernel of distances decides zero, and a
/// trend goes on as the expert would.
#[test]
fn a_trend_goes_on_where_there_is_no_data() {
    let signals = Array2::from_shape_fn((80, 1), |(i, _)| i as f64 / 40.0 - 1.0);
    let decisions = signals.mapv(|s| 3.0 + 0.5 * s);
    let data = Dataset::new(signals, decisions).unwrap();
    let far = ndarray::array![[-40.0], [40.0]];
    let decided = |trend| {
        let settings = FitSettings {
            trend,
            features: Expansion::Raw,
            regularization: 1e-6.into(),
            unbounded: true,
            bounds: None,
            ..with("rbf")
        };
        let fit = fit(settings, &data);
        assert_eq!(fit.outcome.status, Status::Solved);
        Predictor::new(&fit.model).unwrap().predict(far.view()).unwrap()
    };
    let none = decided(TrendChoice::None);
    assert!(none.iter().all(|u| u.abs() < 1e-6), "{none}");
    let constant = decided(TrendChoice::Constant);
    assert!(constant.iter().all(|u| (u - 3.0).abs() < 1.0), "{constant}");
    let linear = decided(TrendChoice::Linear);
    assert!(linear[[0, 0]] < 0.0 && linear[[1, 0]] > 6.0, "{linear}");
}
