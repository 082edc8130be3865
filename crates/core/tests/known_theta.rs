//! Learned θ_uu against the full semidefinite program [KIO 6], solved by CVXPY.
//!
//! The folders beside this file hold data and answer; `known_theta/generate_theta.py` made them.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::known::{self, Known, array2};
use argwhy_core::decision_set::{BoxLimits, SampleSets};
use argwhy_core::operator::{HostOperator, OperatorKind, Precision};
use argwhy_core::problem::Problem;
use argwhy_core::solver::{Ignore, NewtonSettings, Status, theta};
use argwhy_core::{Error, Kernel};
use ndarray::Array2;
use serde::Deserialize;

#[derive(Deserialize)]
struct Answer {
    objective: f64,
    accuracy: f64,
    theta_uu: Vec<Vec<f64>>,
    theta_accuracy: Option<f64>,
}

#[test]
fn theta_is_that_of_the_semidefinite_program() {
    let mut n_learned = 0;
    for Known { given, answer } in known::load::<Answer>("known_theta", 15) {
        let (name, k) = (&given.name, given.regularization);
        let theta_uu = array2(&answer.theta_uu);
        let problem = given.problem();
        for precision in [Precision::F64, Precision::F32] {
            let operator = given.operator(precision, OperatorKind::Tiled);
            let settings = NewtonSettings { tol: 1e-9, ..NewtonSettings::default() };
            let outcome = theta::solve(&problem, &operator, &settings, 0, &mut Ignore).unwrap();
            let c = outcome.certified.certificate;
            let what = format!("{name} {precision:?}: {} steps, {c:?}", outcome.iterations);
            assert_eq!(outcome.status, Status::Solved, "{what}");
            assert!(outcome.iterations <= 15, "{what}");
            let expected = answer.objective;
            let allowed = (1e-8_f64).max(4.0 * answer.accuracy) * expected.abs().max(1e-9) + c.gap;
            assert!((c.objective - expected).abs() <= allowed, "{what} is not {expected}");
            let size = c.primal.abs() + c.dual.abs();
            assert!(
                c.gap >= 0.0 && (c.primal + c.objective - c.gap).abs() <= 1e-10 * size,
                "{what}"
            );
            let learned = outcome.theta.unwrap();
            let off = (&learned.theta_uu - &theta_uu).iter().map(|d| d * d).sum::<f64>().sqrt();
            let scale = theta_uu.iter().map(|v| v * v).sum::<f64>().sqrt();
            let known = answer.theta_accuracy.unwrap_or(1e-4);
            let bound = (c.gap / k).sqrt() + 4.0 * known.max(1e-7) * scale;
            assert!(off <= bound, "{what}: theta is off by {off:e}, allowed {bound:e}");
            let eye = Array2::<f64>::eye(theta_uu.nrows());
            n_learned += usize::from((&theta_uu - &eye).iter().any(|d| d.abs() > 1e-2));
        }
    }
    assert!(n_learned >= 10, "theta differs from the identity in {n_learned} cases only");
}

#[test]
fn a_regularization_below_the_precision_is_refused() {
    let decisions = Array2::from_shape_fn((20, 2), |(i, j)| ((i + 3 * j) as f64).sin());
    let features = Array2::from_shape_fn((20, 1), |(i, _)| i as f64 * 0.1);
    let sets = SampleSets::shared(&BoxLimits::none(2));
    let problem = Problem::new(decisions.view(), sets, 1e-14).unwrap();
    let kernel = Kernel::Rbf { gamma: 1.0 };
    let operator =
        HostOperator::new(features.view(), kernel, Precision::F64, OperatorKind::Tiled).unwrap();
    let outcome = theta::solve(&problem, &operator, &NewtonSettings::default(), 0, &mut Ignore);
    assert!(matches!(outcome, Err(Error::ThetaPrecision { .. })));
}
