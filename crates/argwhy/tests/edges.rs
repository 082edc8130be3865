//! Numbers at the edge: an answer with its certificate, or a status or an error that says what to
//! change; never a NaN in a model.

use argwhy::core::features::{Expansion, Normalization};
use argwhy::core::solver::{Observer, Status};
use argwhy::settings::{KernelKind, Numbers, SolverKind, ThetaChoice};
use argwhy::{Dataset, Error, Fit, FitSettings, Pipeline, Predictor, Progress};
use ndarray::Array2;
use std::slice;

/// Signals in [-1, 1] and what an expert with limits -0.6 and 0.5 decides on them.
fn rows(n_samples: usize, signal_dim: usize, decision_dim: usize) -> (Array2<f64>, Array2<f64>) {
    let wave = |i: usize, j: usize| ((i * i + 3) as f64 * (j as f64 + 1.7) * 0.618).sin();
    let signals = Array2::from_shape_fn((n_samples, signal_dim), |(i, j)| wave(i, j));
    let decisions = Array2::from_shape_fn((n_samples, decision_dim), |(i, j)| {
        let noise = 0.1 * ((i * 7 + j * 13) as f64).cos();
        (signals[[i, j % signal_dim]] + noise).clamp(-0.6, 0.5)
    });
    (signals, decisions)
}

fn settings() -> FitSettings {
    FitSettings {
        bounds: Some(Numbers(vec![-0.6, 0.5])),
        threads: Some(1),
        max_iterations: Some(60),
        ..FitSettings::default()
    }
}

fn fit(
    settings: FitSettings,
    signals: &Array2<f64>,
    decisions: &Array2<f64>,
) -> Result<Fit, Error> {
    Pipeline::new(settings)?.fit(&Dataset::new(signals.clone(), decisions.clone())?)
}

/// Every number of the model is one, its decisions keep their limits, and its status is backed by
/// a certificate or says what to change. The decisions.
fn sound(case: &str, fit: &Fit, signals: &Array2<f64>) -> Array2<f64> {
    let certificate = fit.model.record.certificate;
    let numbers = [certificate.primal, certificate.dual, certificate.gap, certificate.objective];
    assert!(numbers.iter().all(|v| v.is_finite()), "{case}: {certificate:?}");
    assert!(certificate.dual <= certificate.primal, "{case}: {certificate:?}");
    if fit.outcome.status == Status::Solved {
        assert!(certificate.relative_gap <= 1e-6, "{case}: {certificate:?}");
    } else {
        let said = format!("{:#}", fit.verdict());
        let helps = ["(try", "(raise", "(norm"].iter().any(|remedy| said.contains(remedy));
        assert!(helps, "{case}: {said}");
    }
    if let Some(support) = fit.model.support() {
        assert!(support.coefficients.iter().all(|a| a.is_finite()), "{case}");
    }
    fit.model.validate().unwrap_or_else(|error| panic!("{case}: {error}"));
    let predictor = Predictor::new(&fit.model).unwrap();
    let sets = predictor.sets(None, signals.nrows()).unwrap();
    let decided = predictor.decide(predictor.desired(signals.view()).unwrap().view(), &sets);
    let decided = decided.unwrap();
    assert!(decided.iter().all(|u| (-0.6..=0.5).contains(u)), "{case}");
    decided
}

#[test]
fn signals_of_any_size_are_learned_alike_or_refused_with_the_remedy() {
    let (signals, decisions) = rows(60, 2, 1);
    let raw = || FitSettings { features: Expansion::Raw, ..settings() };
    let usual = sound("1", &fit(raw(), &signals, &decisions).unwrap(), &signals);
    for scale in [1e150, 1e80, 1e20] {
        let scaled = &signals * scale;
        let case = format!("{scale:e}");
        let found = sound(&case, &fit(raw(), &scaled, &decisions).unwrap(), &scaled);
        let off = (&found - &usual).iter().fold(0.0, |m: f64, d| m.max(d.abs()));
        assert!(off < 1e-4, "{case}: {off}");
    }
    for scale in [1e150, 1e80] {
        let squares = FitSettings { features: Expansion::Poly2, ..settings() };
        let error = fit(squares, &(&signals * scale), &decisions).unwrap_err();
        let said = format!("{error:#}");
        for part in ["too large to be squared", "divide them", "--features raw"] {
            assert!(said.contains(part), "{said}");
        }
    }
    let all = 0..60;
    for scale in [1e-80, 1e-150, 1e-310] {
        let mut notes = Notes::default();
        let scaled = &signals * scale;
        let data = Dataset::new(scaled.clone(), decisions.clone()).unwrap();
        let found =
            Pipeline::new(settings()).unwrap().fit_rows(&data, slice::from_ref(&all), &mut notes);
        sound(&format!("{scale:e}"), &found.unwrap(), &scaled);
        let told = notes.0.join("\n");
        assert!(told.contains("next to nothing") && told.contains("multiply"), "{told}");
    }
}

/// Keeps what was noted.
#[derive(Default)]
struct Notes(Vec<String>);

impl Observer for Notes {}
impl Progress for Notes {
    fn on_note(&mut self, note: &str) {
        self.0.push(note.to_owned());
    }
}

#[test]
fn the_smallest_and_the_widest_data_are_fitted() {
    let shapes = [(1, 1, 1), (1, 3, 2), (2, 1, 1), (30, 1, 1), (40, 3, 50), (24, 2000, 1)];
    for (n_samples, signal_dim, decision_dim) in shapes {
        let (signals, decisions) = rows(n_samples, signal_dim, decision_dim);
        let wide = signal_dim > 100;
        let features = if wide { Expansion::Raw } else { Expansion::Poly2 };
        let kernel = FitSettings { features, ..settings() };
        let plain =
            FitSettings { primal: true, kernel: KernelKind::Linear.into(), ..kernel.clone() };
        let theta = FitSettings { theta: ThetaChoice::Learn, ..kernel.clone() };
        let sso = FitSettings { solver: SolverKind::Sso, ..kernel.clone() };
        for (name, own) in [("newton", kernel), ("plain", plain), ("theta", theta), ("sso", sso)] {
            if name == "theta" && decision_dim > 10 {
                continue;
            }
            let case = format!("{name}, N = {n_samples}, d = {signal_dim}, n = {decision_dim}");
            let found = fit(own, &signals, &decisions).unwrap_or_else(|e| panic!("{case}: {e}"));
            sound(&case, &found, &signals);
            let exact = name == "newton" || name == "plain";
            assert!(!exact || found.outcome.status == Status::Solved, "{case}");
        }
    }
}

#[test]
fn any_regularization_has_an_answer_or_says_what_to_change() {
    let (signals, noisy) = rows(90, 2, 1);
    let clean = signals.column(0).mapv(|s| s.clamp(-0.6, 0.5)).insert_axis(ndarray::Axis(1));
    for decisions in [&noisy, &clean] {
        for k in [1e-14, 1e-12, 1e-10, 1e-8, 1e-4, 1.0, 1e3, 1e6] {
            for normalize in [Normalization::Zscore, Normalization::None] {
                let own = FitSettings { regularization: k.into(), normalize, ..settings() };
                let case = format!("k = {k:e}, {normalize:?}, clean {}", *decisions == clean);
                let found = fit(own.clone(), &signals, decisions).unwrap();
                sound(&case, &found, &signals);
                assert!(k < 1e-8 || found.outcome.status == Status::Solved, "{case}");
                let theta = FitSettings { theta: ThetaChoice::Learn, ..own };
                match fit(theta, &signals, decisions) {
                    Ok(found) => drop(sound(&case, &found, &signals)),
                    Err(error) => assert!(error.to_string().contains("use at least"), "{error}"),
                }
            }
        }
    }
}
