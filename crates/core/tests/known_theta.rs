//! Learned θ_uu against the full semidefinite program [KIO 6], solved by CVXPY.
//!
//! The folders beside this file hold data and answer; `known_theta/generate_theta.py` made them.

#![allow(clippy::unwrap_used, reason = "tests")]

use argwhy_core::decision_set::{BoxLimits, SampleSets};
use argwhy_core::operator::{HostOperator, OperatorKind, Precision};
use argwhy_core::problem::Problem;
use argwhy_core::solver::{Ignore, NewtonSettings, Status, theta};
use argwhy_core::{Constraints, Error, Kernel};
use ndarray::{Array1, Array2, Array3};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// A number, or the infinity that null stands for.
fn number(value: &Value, null: f64) -> f64 {
    if value.is_null() { null } else { value.as_f64().unwrap() }
}

fn vector(value: &Value, null: f64) -> Array1<f64> {
    value.as_array().unwrap().iter().map(|v| number(v, null)).collect()
}

fn matrix(value: &Value, null: f64) -> Array2<f64> {
    let rows: Vec<Array1<f64>> =
        value.as_array().unwrap().iter().map(|row| vector(row, null)).collect();
    Array2::from_shape_fn((rows.len(), rows[0].len()), |(i, j)| rows[i][j])
}

/// One matrix for all, or one a sample.
fn stack(value: &Value) -> Array3<f64> {
    let first = &value[0][0];
    let samples: Vec<Array2<f64>> = if first.is_array() {
        value.as_array().unwrap().iter().map(|m| matrix(m, f64::NAN)).collect()
    } else {
        vec![matrix(value, f64::NAN)]
    };
    let (rows, columns) = samples[0].dim();
    Array3::from_shape_fn((samples.len(), rows, columns), |(i, r, c)| samples[i][[r, c]])
}

fn bounds(value: &Value, null: f64) -> Array2<f64> {
    if value[0].is_array() {
        matrix(value, null)
    } else {
        let one = vector(value, null);
        Array2::from_shape_fn((1, one.len()), |(_, j)| one[j])
    }
}

fn constraints(given: &Value) -> Constraints {
    let mut constraints = Constraints::new();
    let there = |key: &str| given.get(key).is_some_and(|v| !v.is_null());
    if there("matrix") {
        let (m, w) = (stack(&given["matrix"]), bounds(&given["bound"], f64::INFINITY));
        constraints = constraints.with_inequalities(m, w).unwrap();
    }
    if there("equal_matrix") {
        let (m, w) = (stack(&given["equal_matrix"]), bounds(&given["equal_bound"], f64::NAN));
        constraints = constraints.with_equalities(m, w).unwrap();
    }
    if there("lower") {
        constraints = constraints.with_lower(bounds(&given["lower"], f64::NEG_INFINITY)).unwrap();
    }
    if there("upper") {
        constraints = constraints.with_upper(bounds(&given["upper"], f64::INFINITY)).unwrap();
    }
    constraints
}

fn read(folder: &Path, name: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(folder.join(name)).unwrap()).unwrap()
}

#[test]
fn theta_is_that_of_the_semidefinite_program() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/known_theta");
    let mut n_learned = 0;
    let mut folders: Vec<_> = fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("problem.json").exists())
        .collect();
    folders.sort();
    assert!(folders.len() >= 15, "only {} problems", folders.len());
    for folder in folders {
        let (given, answer) = (read(&folder, "problem.json"), read(&folder, "answer.json"));
        let name = given["name"].as_str().unwrap();
        let kernel: Kernel = serde_json::from_value(given["kernel"].clone()).unwrap();
        let k = given["regularization"].as_f64().unwrap();
        let (features, decisions) =
            (matrix(&given["features"], f64::NAN), matrix(&given["decisions"], f64::NAN));
        let (n, dim) = decisions.dim();
        let given_sets = constraints(&given);
        let sets = SampleSets::new(&BoxLimits::none(dim), Some(&given_sets), n, |i| i).unwrap();
        let weights = given.get("weights").filter(|w| !w.is_null()).map(|w| vector(w, f64::NAN));
        for precision in [Precision::F64, Precision::F32] {
            let mut problem = Problem::new(decisions.view(), sets.clone(), k).unwrap();
            let operator =
                HostOperator::new(features.view(), kernel.clone(), precision, OperatorKind::Tiled)
                    .unwrap();
            if let Some(weights) = &weights {
                problem = problem.with_weights(weights.as_slice().unwrap()).unwrap();
            }
            let settings = NewtonSettings { tol: 1e-9, ..NewtonSettings::default() };
            let outcome = theta::solve(&problem, &operator, &settings, 0, &mut Ignore).unwrap();
            let c = outcome.certified.certificate;
            let what = format!("{name} {precision:?}: {} steps, {c:?}", outcome.iterations);
            assert_eq!(outcome.status, Status::Solved, "{what}");
            assert!(outcome.iterations <= 15, "{what}");
            let expected = answer["objective"].as_f64().unwrap();
            let accuracy = answer["accuracy"].as_f64().unwrap();
            let allowed = (1e-8_f64).max(4.0 * accuracy) * expected.abs().max(1e-9) + c.gap;
            assert!((c.objective - expected).abs() <= allowed, "{what} is not {expected}");
            let size = c.primal.abs() + c.dual.abs();
            assert!(
                c.gap >= 0.0 && (c.primal + c.objective - c.gap).abs() <= 1e-10 * size,
                "{what}"
            );
            let learned = outcome.theta.unwrap();
            let theta_uu = matrix(&answer["theta_uu"], f64::NAN);
            let off = (&learned.theta_uu - &theta_uu).iter().map(|d| d * d).sum::<f64>().sqrt();
            let scale = theta_uu.iter().map(|v| v * v).sum::<f64>().sqrt();
            let known = answer["theta_accuracy"].as_f64().unwrap_or(1e-4);
            let bound = (c.gap / k).sqrt() + 4.0 * known.max(1e-7) * scale;
            assert!(off <= bound, "{what}: theta is off by {off:e}, allowed {bound:e}");
            let eye = Array2::<f64>::eye(dim);
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
