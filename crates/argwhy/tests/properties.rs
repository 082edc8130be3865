//! What must hold for any data: certificates that are true, predictions inside their limits,
//! answers that follow the rows.

#![allow(clippy::unwrap_used, reason = "tests")]

use argwhy::core::decision_set::Infeasible;
use argwhy::core::features::{Expansion, Normalization};
use argwhy::core::operator::Precision;
use argwhy::core::solver::Status;
use argwhy::settings::{Gamma, KernelKind, Numbers, OperatorChoice, TrendChoice};
use argwhy::{Dataset, Fit, FitSettings, Pipeline, Predictor, load_model};
use ndarray::{Array2, Axis, concatenate, s};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// A number in [-1, 1) that follows from its place.
fn noise(seed: u64, i: usize, j: usize) -> f64 {
    let mut x = seed.wrapping_mul(0xd6e8_feb8_6659_fd93)
        ^ (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ (j as u64 + 1).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    for _ in 0..2 {
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    }
    (x ^ (x >> 31)) as f64 / 2_f64.powi(63) - 1.0
}

fn random(seed: u64, rows: usize, columns: usize) -> Array2<f64> {
    Array2::from_shape_fn((rows, columns), |(i, j)| noise(seed, i, j))
}

/// Smooth in the signals, with noise, times `gain`, cut to [-1, 1].
fn expert(signals: &Array2<f64>, dim: usize, gain: f64, seed: u64) -> Array2<f64> {
    Array2::from_shape_fn((signals.nrows(), dim), |(i, j)| {
        let angle: f64 =
            signals.row(i).iter().enumerate().map(|(c, s)| s * (c + j + 1) as f64).sum();
        (gain * (angle.sin() + 0.2 * noise(seed, i, 100 + j))).clamp(-1.0, 1.0)
    })
}

fn within(lower: f64, upper: f64) -> FitSettings {
    FitSettings {
        bounds: Some(Numbers(vec![lower, upper])),
        threads: Some(1),
        ..FitSettings::default()
    }
}

fn fit(settings: &FitSettings, signals: &Array2<f64>, decisions: &Array2<f64>) -> Fit {
    let data = Dataset::new(signals.clone(), decisions.clone()).unwrap();
    Pipeline::new(settings.clone()).unwrap().fit(&data).unwrap()
}

fn predict(fit: &Fit, signals: &Array2<f64>) -> Array2<f64> {
    Predictor::new(&fit.model).unwrap().predict(signals.view()).unwrap()
}

/// How far a prediction may be from that of the exact optimum, by the certificate (kernels with
/// κ(s, s) = 1).
fn bound(fit: &Fit) -> f64 {
    fit.model.record.certificate.prediction_bound(1.0, fit.model.record.regularization)
}

fn largest_difference(a: &Array2<f64>, b: &Array2<f64>) -> f64 {
    (a - b).iter().fold(0.0_f64, |m, e| m.max(e.abs()))
}

/// Doubt about P that is told with any number of samples, relative to P.
const CLEAR: f64 = 1e-6;

/// Everything a fit promises whatever its status. `data` is what it was fitted to.
fn honest(fit: &Fit, signals: &Array2<f64>, decisions: &Array2<f64>, what: &str) {
    let (record, c) = (&fit.model.record, fit.model.record.certificate);
    let size = c.objective.abs() + c.primal.abs() + c.dual.abs();
    assert!(c.gap >= 0.0 && c.gap.is_finite() && c.relative_gap >= 0.0, "{what}: {c:?}");
    // Where rounding is most of a gap that can be seen, or P itself may be off visibly, the bounds
    // are wider by that on both sides.
    let apart = c.primal - c.dual - c.gap;
    let rounded = (2.0 * c.rounding >= c.gap && c.relative_gap > 1e-9)
        || apart > CLEAR.min(1e-9 * signals.nrows() as f64) * c.primal;
    let rounding = 1e-9 * size.max(1e-300);
    assert!(apart >= -rounding && (rounded || apart <= rounding), "{what}: {c:?}");
    let solved = c.relative_gap <= fit.settings().tol;
    assert_eq!(record.status == Status::Solved, solved, "{what}: {record:?}");
    let support = fit.model.support().unwrap();
    assert!(support.coefficients.iter().all(|a| a.is_finite()), "{what}");

    // The primal value is that of the model as stored: k‖α‖²_K + mean(‖û − g‖² − dist²(g, U)), from
    // predictions alone.
    let predictor = Predictor::new(&fit.model).unwrap();
    let desired = predictor.desired(signals.view()).unwrap();
    let decided = predictor.predict(signals.view()).unwrap();
    let n = signals.nrows() as f64;
    let loss: f64 = desired
        .iter()
        .zip(&decided)
        .zip(decisions)
        .map(|((g, x), u)| (u - g) * (u - g) - (g - x) * (g - x))
        .sum();
    let norm: f64 = support
        .rows
        .iter()
        .zip(support.coefficients.rows())
        .map(|(&row, a)| a.dot(&desired.row(row as usize)))
        .sum();
    let primal = record.regularization * norm + loss / n;
    let scale = desired.iter().chain(decisions).fold(0.0_f64, |m, v| m.max(v * v));
    // g is a sum of terms as large as α, each rounded: no order of summation promises more than
    // eps·Σ|α|. That is nothing at k = 1e-6, and all there is at k = 1e-12, where Σ|α| reaches
    // 1e12.
    let weight: f64 = support.coefficients.iter().map(|a| a.abs()).sum();
    let off = desired.iter().zip(decisions).fold(0.0_f64, |m, (g, u)| m.max((g - u).abs()));
    let of_sums = 4.0 * f64::EPSILON * weight * (2.0 * off + record.regularization * weight);
    let rounding =
        1e-9 * scale + 1e-9 * size + 1e-12 * (record.regularization * norm).abs() + of_sums;
    let rounding = if rounded { rounding + apart } else { rounding };
    assert!((primal - c.primal).abs() <= rounding, "{what}: {primal} is not {}", c.primal);

    // Inside the limits exactly: on the data, far from it, and between.
    let width = signals.ncols();
    let far = random(99, 20, width).mapv(|v| v * 10_f64.powf(300.0 * v));
    for points in [signals, &random(98, 20, width), &far] {
        let decided = predictor.predict(points.view()).unwrap();
        for row in decided.rows() {
            assert!(fit.model.set.contains(&row.to_vec()), "{what}: {row}");
        }
    }

    // Save and load lose nothing.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.argwhy");
    fit.save(&path).unwrap();
    let stored = load_model(&path).unwrap();
    assert_eq!(stored.model, fit.model, "{what}");
    let (settings, _) = argwhy::sources::from_stored(&stored.settings).unwrap();
    assert_eq!(&settings, fit.settings(), "{what}");
    let again = Predictor::new(&stored.model).unwrap().predict(signals.view()).unwrap();
    assert_eq!(again, decided, "{what}");
}

/// A shape with what makes it hard in its name, and whether the defaults must solve it.
fn shapes() -> Vec<(&'static str, Array2<f64>, Array2<f64>)> {
    let s = random(1, 60, 3).mapv(|v| 2.0 * v);
    let u = expert(&s, 2, 1.0, 1);
    let constant = {
        let mut s = s.clone();
        s.column_mut(1).fill(7.25);
        s
    };
    let repeated = s.select(Axis(0), &(0..60).map(|i| i / 3).collect::<Vec<_>>());
    let one = |a: &Array2<f64>| a.slice(s![..1, ..]).to_owned();
    vec![
        ("plain", s.clone(), u.clone()),
        ("half at a limit", s.clone(), expert(&s, 2, 1.42, 1)),
        ("nearly all at a limit", s.clone(), expert(&s, 2, 50.0, 1)),
        ("all at one limit", s.clone(), Array2::ones((60, 2))),
        ("all zero", s.clone(), Array2::zeros((60, 2))),
        ("all equal", s.clone(), Array2::from_elem((60, 2), 0.3)),
        ("one row", one(&s), one(&u)),
        ("one row at a limit", one(&s), Array2::ones((1, 2))),
        ("two rows", s.slice(s![..2, ..]).to_owned(), u.slice(s![..2, ..]).to_owned()),
        (
            "one signal, one decision",
            s.slice(s![.., ..1]).to_owned(),
            u.slice(s![.., ..1]).to_owned(),
        ),
        ("identical signals", Array2::from_elem((60, 3), 0.5), u.clone()),
        (
            "identical signals and decisions",
            Array2::from_elem((60, 3), 0.5),
            Array2::from_elem((60, 2), 0.5),
        ),
        ("constant column", constant, u.clone()),
        ("repeated signals, other decisions", repeated, u.clone()),
        ("repeated rows", concatenate![Axis(0), s, s], concatenate![Axis(0), u, u]),
        ("tiny signals", s.mapv(|v| v * 1e-8), u.clone()),
        ("huge signals", s.mapv(|v| v * 1e8), u.clone()),
        ("far from zero", s.mapv(|v| v + 1e8), u.clone()),
        ("mixed scales", &s * &ndarray::array![1e-8, 1.0, 1e8], u.clone()),
        ("tiny decisions", s.clone(), u.mapv(|v| v * 1e-8)),
        ("more dimensions than rows", random(2, 5, 9), expert(&random(2, 5, 9), 7, 1.0, 2)),
    ]
}

#[test]
fn every_shape_is_answered_honestly_for_every_regularization() {
    let mut short = Vec::new();
    for (name, s, u) in shapes() {
        for exponent in [-12, -9, -6, -3, 0, 3] {
            let settings =
                FitSettings { regularization: 10_f64.powi(exponent).into(), ..within(-1.0, 1.0) };
            let what = format!("{name}, k = 1e{exponent}");
            let fit = fit(&settings, &s, &u);
            honest(&fit, &s, &u, &what);
            if fit.outcome.status != Status::Solved {
                short.push((exponent, format!("{what}: {:?}", fit.model.record)));
            }
        }
    }
    for (_, what) in &short {
        eprintln!("not solved: {what}");
    }
    // Below the default k, λ = kN can sink under what f64 resolves; at and above it everything is
    // solved.
    let failed: Vec<_> = short.iter().filter(|(exponent, _)| *exponent >= -6).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn every_kernel_feature_map_and_precision_is_answered_honestly() {
    let s = random(5, 50, 3);
    let u = expert(&s, 2, 1.3, 5);
    for kernel in [
        KernelKind::Rbf,
        KernelKind::Laplace,
        KernelKind::Linear,
        KernelKind::Polynomial,
        KernelKind::Matern32,
        KernelKind::Matern52,
    ] {
        for (features, normalize) in [
            (Expansion::Poly2, Normalization::Zscore),
            (Expansion::Poly2, Normalization::None),
            (Expansion::Raw, Normalization::Zscore),
            (Expansion::Raw, Normalization::None),
        ] {
            for precision in [Precision::F32, Precision::F64] {
                let settings = FitSettings {
                    kernel: kernel.into(),
                    features,
                    normalize,
                    precision,
                    ..within(-1.0, 1.0)
                };
                let fit = fit(&settings, &s, &u);
                let what = format!("{kernel:?} {features:?} {normalize:?} {precision:?}");
                honest(&fit, &s, &u, &what);
                assert_eq!(fit.outcome.status, Status::Solved, "{what}");
            }
        }
    }
}

#[test]
fn decisions_outside_their_limits_keep_their_certificate() {
    let s = random(6, 40, 2);
    let u = expert(&s, 2, 1.0, 6);
    for infeasible in [Infeasible::Clip, Infeasible::Keep] {
        let settings = FitSettings { infeasible, regularization: 1e-3.into(), ..within(-0.5, 0.5) };
        let fit = fit(&settings, &s, &u);
        assert!(fit.outside.beyond > 0);
        let admitted =
            if infeasible == Infeasible::Clip { u.mapv(|v| v.clamp(-0.5, 0.5)) } else { u.clone() };
        honest(&fit, &s, &admitted, &format!("{infeasible:?}"));
    }
}

/// What two exact solutions of the same problem may differ by, given their certificates.
fn agree(a: &Fit, b: &Fit, at: &Array2<f64>) {
    let (ca, cb) = (a.model.record.certificate, b.model.record.certificate);
    let room = 1e-9 * ca.objective.abs().max(cb.objective.abs()).max(1e-3);
    assert!((ca.objective - cb.objective).abs() <= room, "{ca:?}\n{cb:?}");
    let distance = largest_difference(&predict(a, at), &predict(b, at));
    assert!(distance <= bound(a) + bound(b) + 1e-9, "{distance}: {ca:?}\n{cb:?}");
}

fn exactly(k: f64) -> FitSettings {
    FitSettings {
        precision: Precision::F64,
        tol: 1e-11,
        regularization: k.into(),
        ..within(-1.0, 1.0)
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 48,
        rng_seed: RngSeed::Fixed(2),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn permuting_rows_permutes_the_answer(
        seed in 0_u64..1000,
        n in 2_usize..60,
        width in 1_usize..4,
        dim in 1_usize..4,
        gain in 0.3..3.0_f64,
        exponent in -4.0..1.0_f64,
    ) {
        let s = random(seed, n, width);
        let u = expert(&s, dim, gain, seed);
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|&a, &b| noise(seed, a, 50).total_cmp(&noise(seed, b, 50)));
        let settings = exactly(10_f64.powf(exponent));
        let straight = fit(&settings, &s, &u);
        let shuffled = fit(&settings, &s.select(Axis(0), &order), &u.select(Axis(0), &order));
        agree(&straight, &shuffled, &random(seed + 1, 20, width));
        agree(&straight, &shuffled, &s);
        let responses = |fit: &Fit| fit.outcome.certified.responses.t().to_owned();
        let moved = responses(&straight).select(Axis(0), &order);
        prop_assert!(largest_difference(&moved, &responses(&shuffled)) < 1e-4);
    }

    #[test]
    fn repeating_every_row_changes_nothing(
        seed in 0_u64..1000,
        n in 1_usize..30,
        times in 2_usize..4,
        gain in 0.3..3.0_f64,
        exponent in -4.0..1.0_f64,
    ) {
        let s = random(seed, n, 2);
        let u = expert(&s, 2, gain, seed);
        let rows: Vec<usize> = (0..n * times).map(|i| i % n).collect();
        let settings = exactly(10_f64.powf(exponent));
        let once = fit(&settings, &s, &u);
        let often = fit(&settings, &s.select(Axis(0), &rows), &u.select(Axis(0), &rows));
        agree(&once, &often, &random(seed + 1, 20, 2));
    }

    #[test]
    fn a_constant_signal_changes_nothing(
        seed in 0_u64..1000, n in 1_usize..40, value in -1e3..1e3_f64, exponent in -4.0..1.0_f64,
    ) {
        let s = random(seed, n, 2);
        let u = expert(&s, 1, 1.4, seed);
        let settings = FitSettings {
            gamma: Gamma::Value(0.5),
            trend: TrendChoice::Constant, // a slope is divided by the number of features
            ..exactly(10_f64.powf(exponent))
        };
        let column = Array2::from_elem((n, 1), value);
        let without = fit(&settings, &s, &u);
        let with = fit(&settings, &concatenate![Axis(1), s, column], &u);
        let at = random(seed + 1, 20, 2);
        let there = concatenate![Axis(1), at, Array2::from_elem((20, 1), value)];
        let distance = largest_difference(&predict(&without, &at), &predict(&with, &there));
        prop_assert!(distance <= bound(&without) + bound(&with) + 1e-6, "{}", distance);
        let objective = |fit: &Fit| fit.model.record.certificate.objective;
        prop_assert!((objective(&without) - objective(&with)).abs() < 1e-7);
    }

    #[test]
    fn the_bound_on_predictions_holds_however_early_the_fit_stops(
        seed in 0_u64..1000,
        n in 2_usize..60,
        steps in 0_usize..6,
        gain in 0.3..3.0_f64,
        exponent in -5.0..0.0_f64,
    ) {
        let s = random(seed, n, 2);
        let u = expert(&s, 2, gain, seed);
        let k = 10_f64.powf(exponent);
        let exact = fit(&exactly(k), &s, &u);
        let limited = within(-1.0, 1.0);
        let early = FitSettings {
            max_iterations: Some(steps), regularization: k.into(),
            ..limited
        };
        let early = fit(&early, &s, &u);
        honest(&early, &s, &u, "early");
        let at = random(seed + 1, 20, 2);
        let distance = largest_difference(&predict(&exact, &at), &predict(&early, &at));
        let allowed = bound(&exact) + bound(&early) + 1e-9;
        prop_assert!(distance <= allowed, "{distance} > {allowed}");
        // The optimum lies between the two values of either certificate.
        let (e, x) = (early.model.record.certificate, exact.model.record.certificate);
        prop_assert!(e.dual <= x.primal + 1e-9 && x.dual <= e.primal + 1e-9);
    }

    #[test]
    fn threads_operator_and_batch_leave_every_bit(
        seed in 0_u64..1000, n in 1_usize..200, dim in 1_usize..4, threads in 1_usize..4,
    ) {
        let s = random(seed, n, 3);
        let u = expert(&s, dim, 1.4, seed);
        let base = FitSettings { regularization: 1e-3.into(), ..within(-1.0, 1.0) };
        let reference = fit(&base, &s, &u);
        let other = FitSettings { threads: Some(threads), operator: OperatorChoice::Tiled, ..base };
        let other = fit(&other, &s, &u);
        prop_assert_eq!(&reference.model.law, &other.model.law);
        prop_assert_eq!(reference.model.record.certificate, other.model.record.certificate);
        let predictor = Predictor::new(&reference.model).unwrap();
        let whole = predictor.predict(s.view()).unwrap();
        let mut scratch = predictor.scratch();
        let mut decision = vec![0.0; dim];
        for (i, row) in s.rows().into_iter().enumerate() {
            predictor.decide_one(&row.to_vec(), None, &mut scratch, &mut decision).unwrap();
            prop_assert_eq!(&decision, &whole.row(i).to_vec());
            let one = predictor.predict(s.slice(s![i..=i, ..])).unwrap();
            prop_assert_eq!(one.row(0), whole.row(i));
        }
    }
}
