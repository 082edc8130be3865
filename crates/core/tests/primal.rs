//! Plain inverse optimization in the primal, against the dual with the linear kernel.

#![allow(clippy::unwrap_used, reason = "tests")]

use argwhy_core::dataset::Constraints;
use argwhy_core::decision_set::{BoxLimits, SampleSets};
use argwhy_core::features::{Design, Expansion, FeatureMap, FeatureSettings, Normalization};
use argwhy_core::operator::{HostOperator, OperatorKind, Precision};
use argwhy_core::problem::Problem;
use argwhy_core::qp::Metric;
use argwhy_core::solver::{
    Ignore, Iteration, NewtonSettings, Observer, Outcome, PrimalSettings, Status, newton, primal,
};
use argwhy_core::{DecisionSet, Error, Kernel};
use ndarray::{Array1, Array2, Array3, Axis, array};
use std::ops::ControlFlow;

/// A number in [-1, 1) that follows from its place.
fn noise(i: usize, j: usize) -> f64 {
    let mut x = (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ (j as u64 + 1).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ (x >> 31)) as f64 / 2_f64.powi(63) - 1.0
}

fn signals(n: usize, dim: usize) -> Array2<f64> {
    Array2::from_shape_fn((n, dim), |(i, j)| 2.0 * noise(i, j))
}

/// What a noisy linear expert wants, n × 3.
fn wanted(signals: &Array2<f64>, gain: f64) -> Array2<f64> {
    let law = Array2::from_shape_fn((signals.ncols(), 3), |(k, j)| gain * noise(k + 900, j + 50));
    let noise = Array2::from_shape_fn((signals.nrows(), 3), |(i, j)| 0.3 * noise(i, 20 + j));
    signals.dot(&law) + noise
}

/// The sets of N samples in three dimensions.
#[derive(Clone, Copy, Debug)]
enum Kind {
    None,
    Box,
    OwnBoxes,
    Simplex,
    OwnPolyhedra,
}

const KINDS: [Kind; 5] = [Kind::None, Kind::Box, Kind::OwnBoxes, Kind::Simplex, Kind::OwnPolyhedra];

fn sets(kind: Kind, n: usize) -> SampleSets {
    let none = BoxLimits::new(vec![f64::NEG_INFINITY; 3], vec![f64::INFINITY; 3]).unwrap();
    let own = BoxLimits::new(vec![-0.5, -1.0, f64::NEG_INFINITY], vec![0.5, 0.7, 0.9]).unwrap();
    let new =
        |own: &BoxLimits, given: Constraints| SampleSets::new(own, Some(&given), n, |i| i).unwrap();
    match kind {
        Kind::None => SampleSets::shared(&none),
        Kind::Box => SampleSets::shared(&own),
        Kind::OwnBoxes => {
            let upper = Array2::from_shape_fn((n, 3), |(i, j)| 0.2 + noise(i, 70 + j).abs());
            new(&own, Constraints::new().with_upper(upper).unwrap())
        }
        Kind::Simplex => new(&none, Constraints::simplex(3, 1.0).unwrap()),
        Kind::OwnPolyhedra => {
            let rows = Array3::from_shape_fn((n, 4, 3), |(i, r, j)| noise(7 * i + r, 30 + j));
            let bound = Array2::from_shape_fn((n, 4), |(i, r)| 0.1 + noise(i, 40 + r).abs());
            let given = Constraints::new().with_inequalities(rows, bound).unwrap();
            new(&own, given)
        }
    }
}

/// A problem whose decisions are in their sets.
fn problem(kind: Kind, wanted: &Array2<f64>, k: f64) -> Problem {
    let mut decisions = wanted.clone();
    let sets = sets(kind, wanted.nrows());
    for (i, mut row) in decisions.rows_mut().into_iter().enumerate() {
        sets.project(i, row.as_slice_mut().unwrap()).unwrap();
    }
    Problem::new(decisions.view(), sets, k).unwrap()
}

fn tight() -> PrimalSettings {
    PrimalSettings { tol: 1e-12, ..PrimalSettings::default() }
}

/// Φ written out, with a column of ones where there is an intercept.
fn written_out(map: &FeatureMap, signals: &Array2<f64>, intercept: bool) -> Array2<f64> {
    let mut phi = map.transform(signals.view()).unwrap();
    if intercept {
        phi.push_column(Array1::ones(phi.nrows()).view()).unwrap();
    }
    phi
}

fn dual(problem: &Problem, phi: &Array2<f64>) -> Outcome {
    let operator =
        HostOperator::new(phi.view(), Kernel::Linear, Precision::F64, OperatorKind::Stored)
            .unwrap();
    let settings = NewtonSettings { tol: 1e-11, ..NewtonSettings::default() };
    newton::solve(problem, &operator, &settings, 0, &mut Ignore).unwrap()
}

#[test]
fn primal_and_dual_have_the_same_optimum() {
    for kind in KINDS {
        for (n, k, gain, intercept, weighted) in [
            (120, 1e-3, 1.0, false, false),
            (120, 1e-6, 1.0, true, true),
            (60, 1e-2, 4.0, false, true),
            (12, 1e-4, 1.0, false, false),
        ] {
            let signals = signals(n, 3);
            let map = FeatureMap::fit(
                FeatureSettings { expansion: Expansion::Poly2, ..FeatureSettings::default() },
                signals.view(),
            )
            .unwrap();
            let mut problem = problem(kind, &(wanted(&signals, gain) + 0.2), k);
            let weights: Vec<f64> = (0..n).map(|i| 0.25 + (i % 4) as f64).collect();
            let weights = weighted.then_some(weights.as_slice());
            if let Some(weights) = weights {
                problem = problem.with_weights(weights).unwrap();
            }
            let design = Design::new(&map, signals.view()).unwrap().with_intercept(intercept);
            let outcome = primal::solve(&problem, &design, &tight(), &mut Ignore).unwrap();
            let c = outcome.certified.certificate;
            let case = format!("{kind:?} {n} {k} {weighted}: {c:?}");
            assert_eq!(outcome.status, Status::Solved, "{case}");
            assert!(outcome.iterations <= 20, "{case}: {} steps", outcome.iterations);
            let apart = c.primal - c.dual - c.gap;
            assert!(apart.abs() <= 1e-12 * problem.mean_square(), "{case}: {apart:e}");
            let phi = written_out(&map, &signals, intercept);
            let other = dual(&problem, &phi);
            let expected = other.certified.certificate;
            assert!((c.objective / expected.objective - 1.0).abs() < 1e-9, "{case} {expected:?}");
            // Where sums may be rounded visibly, bounds are wider by that on both sides.
            let wider = (expected.primal - expected.dual - expected.gap).max(0.0) / 2.0;
            let off = (c.primal - expected.primal).abs();
            assert!(off < 1e-9 * problem.mean_square() + wider, "{case}");
            assert!(wider < 1e-6 * expected.primal, "{case} {expected:?}");
            // V = Φᵀα.
            let v = outcome.feature_weights.as_ref().unwrap();
            let from_samples = other.certified.coefficients.dot(&phi);
            let scale = v.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
            for (a, b) in v.iter().zip(&from_samples) {
                assert!((a - b).abs() < 1e-4 * scale, "{case}: {a} {b}");
            }
            for (a, b) in outcome.certified.responses.iter().zip(&other.certified.responses) {
                assert!((a - b).abs() < 1e-4, "{case}: {a} {b}");
            }
            // What is reported is what the definitions say.
            let desired = v.dot(&phi.t());
            for (a, b) in outcome.certified.desired.iter().zip(&desired) {
                assert!((a - b).abs() < 1e-10 * scale.max(1.0), "{case}");
            }
        }
    }
}

#[test]
fn another_theta_is_solved_too() {
    let signals = signals(80, 3);
    let map = FeatureMap::fit(
        FeatureSettings { expansion: Expansion::Poly2, ..FeatureSettings::default() },
        signals.view(),
    )
    .unwrap();
    let theta = Metric::new(array![[2.0, 0.5, 0.0], [0.5, 1.5, 0.2], [0.0, 0.2, 1.1]].view());
    for kind in [Kind::Box, Kind::OwnPolyhedra] {
        let problem =
            problem(kind, &wanted(&signals, 1.0), 1e-3).with_theta(theta.clone().unwrap());
        let design = Design::new(&map, signals.view()).unwrap();
        let outcome = primal::solve(&problem, &design, &tight(), &mut Ignore).unwrap();
        let other = dual(&problem, &written_out(&map, &signals, false));
        let (found, expected) =
            (outcome.certified.certificate.objective, other.certified.certificate.objective);
        assert_eq!(outcome.status, Status::Solved);
        assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
    }
}

#[test]
fn bits_do_not_depend_on_threads() {
    let signals = signals(20_000, 4);
    let map = FeatureMap::fit(
        FeatureSettings { expansion: Expansion::Poly2, ..FeatureSettings::default() },
        signals.view(),
    )
    .unwrap();
    for (kind, n) in [(Kind::Box, 20_000), (Kind::OwnPolyhedra, 3000)] {
        let signals = signals.slice(ndarray::s![..n, ..]).to_owned();
        let problem = problem(kind, &wanted(&signals, 1.0), 1e-6);
        let with = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let design = Design::new(&map, signals.view()).unwrap();
                primal::solve(&problem, &design, &PrimalSettings::default(), &mut Ignore).unwrap()
            })
        };
        let (one, two) = (with(1), with(2));
        assert_eq!(one.status, Status::Solved);
        assert_eq!(one.certified.certificate, two.certified.certificate);
        assert_eq!(one.feature_weights, two.feature_weights);
    }
}

/// Without limits P is quadratic: one step, ridge regression.
#[test]
fn without_limits_it_is_ridge_regression() {
    let signals = signals(50, 2);
    let settings = FeatureSettings {
        expansion: Expansion::Raw,
        normalization: Normalization::None,
        ..FeatureSettings::default()
    };
    let map = FeatureMap::fit(settings, signals.view()).unwrap();
    let (wanted, k) = (wanted(&signals, 1.0), 0.01);
    let problem = problem(Kind::None, &wanted, k);
    let design = Design::new(&map, signals.view()).unwrap();
    let outcome = primal::solve(&problem, &design, &tight(), &mut Ignore).unwrap();
    assert_eq!((outcome.status, outcome.iterations), (Status::Solved, 1));
    let v = outcome.feature_weights.unwrap();
    // (ΦᵀΦ + λI)V = Φᵀû.
    let left = signals.t().dot(&signals).dot(&v.t()) + v.t().mapv(|v| v * k * 50.0);
    let right = signals.t().dot(&wanted);
    assert!(left.iter().zip(&right).all(|(a, b)| (a - b).abs() < 1e-11));
}

/// Half of all decisions at a limit, without noise: the line search has to work.
#[test]
fn saturated_noiseless_experts_are_solved() {
    let signals = signals(2000, 4);
    let map = FeatureMap::fit(
        FeatureSettings { expansion: Expansion::Poly2, ..FeatureSettings::default() },
        signals.view(),
    )
    .unwrap();
    let law = Array2::from_shape_fn((4, 1), |(k, _)| 1.0 + k as f64);
    for k in [1e-4, 1e-7, 1e-10] {
        let wanted = signals.dot(&law).mapv(|u: f64| u.clamp(-1.0, 1.0));
        let set = DecisionSet::bounds(1, -1.0, 1.0).unwrap();
        let problem = Problem::new(wanted.view(), set, k).unwrap();
        let design = Design::new(&map, signals.view()).unwrap();
        let outcome =
            primal::solve(&problem, &design, &PrimalSettings::default(), &mut Ignore).unwrap();
        let c = outcome.certified.certificate;
        assert_eq!(outcome.status, Status::Solved, "{k}: {c:?} in {}", outcome.iterations);
        assert!(outcome.iterations < 40, "{k}: {} steps", outcome.iterations);
    }
}

#[test]
fn unused_and_repeated_features_do_no_harm() {
    // The constant's z-score is zero, and the second signal repeats the first.
    let one = signals(300, 1);
    let signals = ndarray::concatenate![Axis(1), one, one];
    let map = FeatureMap::fit(
        FeatureSettings { expansion: Expansion::Poly2, ..FeatureSettings::default() },
        signals.view(),
    )
    .unwrap();
    for k in [1e-3, 1e-12, 1e-18] {
        let problem = problem(Kind::Box, &wanted(&signals, 1.0), k);
        let design = Design::new(&map, signals.view()).unwrap();
        let outcome =
            primal::solve(&problem, &design, &PrimalSettings::default(), &mut Ignore).unwrap();
        let v = outcome.feature_weights.unwrap();
        assert!(v.column(0).iter().all(|v| *v == 0.0));
        if k > 1e-15 {
            let gap = outcome.certified.certificate.relative_gap;
            assert_eq!(outcome.status, Status::Solved, "{k}: {gap}");
            assert!(v.rows().into_iter().all(|v| (v[1] - v[2]).abs() < 1e-3 * v[1].abs()));
        }
    }
}

/// Stops after some steps.
struct Stop(usize);

impl Observer for Stop {
    fn on_iteration(&mut self, iteration: &Iteration) -> ControlFlow<()> {
        assert!(iteration.gap >= 0.0 && iteration.exact);
        if iteration.iteration >= self.0 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

#[test]
fn stopping_short_leaves_a_valid_certificate() {
    let signals = signals(400, 3);
    let map = FeatureMap::fit(
        FeatureSettings { expansion: Expansion::Poly2, ..FeatureSettings::default() },
        signals.view(),
    )
    .unwrap();
    let problem = problem(Kind::Box, &wanted(&signals, 3.0), 1e-6);
    let design = Design::new(&map, signals.view()).unwrap();
    let solve = |settings: PrimalSettings, stop: &mut dyn Observer| {
        primal::solve(&problem, &design, &settings, stop).unwrap()
    };
    let optimum = solve(tight(), &mut Ignore).certified.certificate.primal;
    let stopped = solve(tight(), &mut Stop(1));
    let limited = solve(PrimalSettings { max_iterations: 1, ..tight() }, &mut Ignore);
    let late = solve(PrimalSettings { time_limit: Some(1e-9), ..tight() }, &mut Ignore);
    for (outcome, status) in [
        (stopped, Status::Interrupted),
        (limited, Status::MaxIterations),
        (late, Status::TimeLimit),
    ] {
        let c = outcome.certified.certificate;
        assert_eq!(outcome.status, status);
        assert!(c.relative_gap > 1e-9, "{c:?}");
        assert!(c.dual <= optimum && optimum <= c.primal, "{c:?} {optimum}");
        assert!((c.primal - c.dual - c.gap).abs() <= 1e-12 * c.gap.max(1.0));
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let signals = signals(10, 2);
    let map = FeatureMap::fit(
        FeatureSettings { expansion: Expansion::Poly2, ..FeatureSettings::default() },
        signals.view(),
    )
    .unwrap();
    let problem = problem(Kind::Box, &wanted(&signals, 1.0), 1e-3);
    let few = signals.slice(ndarray::s![..9, ..]);
    let design = Design::new(&map, few).unwrap();
    let solve = |design, settings| primal::solve(&problem, design, &settings, &mut Ignore);
    assert!(matches!(
        solve(&design, PrimalSettings::default()),
        Err(Error::RowCount { left_rows: 9, right_rows: 10, .. })
    ));
    let design = Design::new(&map, signals.view()).unwrap();
    let zero = PrimalSettings { tol: 0.0, ..PrimalSettings::default() };
    assert!(matches!(solve(&design, zero), Err(Error::Setting { name: "tol", .. })));
    assert!(Design::new(&map, signals.slice(ndarray::s![.., ..1])).is_err());
}
