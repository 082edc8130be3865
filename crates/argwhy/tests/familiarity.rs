//! Familiarity: what is far is strange, what is like the training data is not.

use argwhy::core::random;
use argwhy::familiarity::{Familiarity, STRANGE};
use argwhy::{Dataset, FitSettings, Pipeline};
use argwhy_experts::{Expert, ExpertSettings, Quadrotor};
use ndarray::{Array2, s};
use rand::RngExt;

/// Bell-shaped, deviation one.
fn bell(draw: &mut rand_chacha::ChaCha8Rng) -> f64 {
    (0..6).map(|_| draw.random::<f64>() - 0.5).sum::<f64>() * 2_f64.sqrt()
}

/// The share of rows below the first percentile.
fn flagged(familiarity: &Familiarity, signals: &Array2<f64>) -> f64 {
    let percentiles = familiarity.percentiles(signals.view()).unwrap();
    percentiles.iter().filter(|p| **p < STRANGE).count() as f64 / percentiles.len() as f64
}

fn check(what: &str, train: &Array2<f64>, fresh: &Array2<f64>, settings: FitSettings) {
    let decisions = train.slice(s![.., ..1]).mapv(f64::sin);
    let data = Dataset::new(train.clone(), decisions).unwrap();
    let model = Pipeline::new(settings).unwrap().fit(&data).unwrap().model;
    let familiarity = Familiarity::new(&model).unwrap().unwrap();
    let same = flagged(&familiarity, fresh);
    assert!(same <= 0.02, "{what}: {same} of fresh situations");
    // Five widths away from the middle of one signal, in turn.
    let widths = train.std_axis(ndarray::Axis(0), 0.0);
    let middles = train.mean_axis(ndarray::Axis(0)).unwrap();
    let mut far = fresh.clone();
    for (i, mut row) in far.rows_mut().into_iter().enumerate() {
        let j = i % train.ncols();
        row[j] = middles[j] + if i % 2 == 0 { 5.0 } else { -5.0 } * widths[j];
    }
    let away = flagged(&familiarity, &far);
    assert!(away >= 0.99, "{what}: {away} of situations five widths away");
}

#[test]
fn far_situations_are_strange_and_fresh_ones_are_not() {
    let mut draw = random::stream(3, "situations");
    for (n, d) in [(400, 3), (1500, 6)] {
        let mut situations = |n: usize| Array2::from_shape_simple_fn((n, d), || bell(&mut draw));
        let (train, fresh) = (situations(n), situations(2000));
        for kernel in ["rbf", "matern52", "rbf + 0.1*linear", "linear"] {
            let settings = FitSettings {
                kernel: kernel.parse().unwrap(),
                regularization: 1e-2.into(),
                tol: 1e-2,
                ..FitSettings::default()
            };
            check(&format!("{kernel}, {n} × {d}"), &train, &fresh, settings);
        }
    }
}

#[test]
fn the_pilots_own_flights_are_familiar() {
    let pilot = Expert::new(Quadrotor::default(), ExpertSettings::default()).unwrap();
    let demos = pilot.demonstrations(2400, 0).unwrap().signals;
    let (train, fresh) = (demos.slice(s![..1200, ..]), demos.slice(s![1200.., ..]));
    let settings = FitSettings { regularization: 1e-4.into(), tol: 1e-3, ..FitSettings::default() };
    check("the pilot", &train.to_owned(), &fresh.to_owned(), settings);
}

#[test]
fn plain_models_remember_too() {
    let mut draw = random::stream(4, "situations");
    let mut situations = |n: usize| Array2::from_shape_simple_fn((n, 3), || bell(&mut draw));
    let (train, fresh) = (situations(500), situations(2000));
    let settings =
        FitSettings { kernel: "linear".parse().unwrap(), primal: true, ..FitSettings::default() };
    check("plain", &train, &fresh, settings);
}
