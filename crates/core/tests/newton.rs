//! Newton's method where precision is scarce.

#![allow(clippy::unwrap_used, reason = "tests")]

use argwhy_core::decision_set::SampleSets;
use argwhy_core::operator::{HostOperator, OperatorKind, Precision};
use argwhy_core::problem::Problem;
use argwhy_core::solver::{Ignore, NewtonSettings, Outcome, Status, newton};
use argwhy_core::{DecisionSet, Kernel};
use ndarray::Array2;

/// A wide kernel: ‖K‖/λ is about 0.5/k, and rounding kernel values to f32 moves the optimum.
fn solve(gain: f64, n: usize, k: f64, precision: Precision, max_rank: Option<usize>) -> Outcome {
    let at = |i: usize, j: usize| ((i * (j + 3)) as f64 * 0.71).sin();
    let features = Array2::from_shape_fn((n, 4), |(i, j)| at(i, j) + 0.2 * at(i * i, j));
    let decisions = Array2::from_shape_fn((n, 2), |(i, j)| {
        let z = features.row(i);
        let smooth = gain * (z[0] * z[1] + z[j + 1]).sin() + 0.2 * at(7 * i + 1, j);
        smooth.clamp(-1.0, 1.0)
    });
    let set = DecisionSet::bounds(2, -1.0, 1.0).unwrap();
    let problem = Problem::new(decisions.view(), set, k).unwrap();
    let kernel = Kernel::Rbf { gamma: 0.1 };
    let operator =
        HostOperator::new(features.view(), kernel, precision, OperatorKind::Stored).unwrap();
    let settings = NewtonSettings { max_rank, ..NewtonSettings::default() };
    newton::solve(&problem, &operator, &settings, 0, &mut Ignore).unwrap()
}

#[test]
fn single_precision_reaches_the_tolerance_where_its_own_kernel_values_cannot() {
    for k in [1e-7, 1e-8, 1e-9] {
        for max_rank in [None, Some(150)] {
            let single = solve(1.4, 700, k, Precision::F32, max_rank);
            let double = solve(1.4, 700, k, Precision::F64, max_rank);
            for (precision, outcome) in [("f32", &single), ("f64", &double)] {
                let gap = outcome.certified.certificate.relative_gap;
                assert_eq!(
                    outcome.status,
                    Status::Solved,
                    "{precision} {k:e} {max_rank:?}: {gap:e}"
                );
            }
            let objectives = [single, double].map(|o| o.certified.certificate.objective);
            assert!(
                (objectives[0] / objectives[1] - 1.0).abs() < 2e-6,
                "{k:e} {max_rank:?}: {objectives:?}"
            );
        }
    }
}

#[test]
fn a_factorised_kernel_matrix_needs_one_product_a_system() {
    let outcome = solve(0.8, 500, 1e-6, Precision::F64, None);
    assert_eq!(outcome.status, Status::Solved);
    // Two a step, the system and one for both the bound samples' share and the gap, and the
    // certificate's.
    let (steps, products) = (outcome.iterations, outcome.kernel_products);
    assert!(products <= 2 * steps + 4, "{products} products in {steps} steps");
}

/// Centred features and constant decisions: Kû = 0, so that g = 0 whatever α is, and P is flat
/// where α has to go.
#[test]
fn decisions_in_the_null_space_of_the_kernel_are_solved() {
    let n = 200;
    let at = |i: usize, j: usize| ((i * (j + 3)) as f64 * 0.71).sin();
    let mut features = Array2::from_shape_fn((n, 3), |(i, j)| at(i, j));
    for mut column in features.columns_mut() {
        let mean = column.sum() / n as f64;
        column -= mean;
    }
    let constant = Array2::from_elem((n, 1), 0.5);
    let mixed = Array2::from_shape_fn((n, 1), |(i, _)| 0.5 + 0.1 * features[[i, 0]]);
    let boxes = SampleSets::from(DecisionSet::bounds(1, -1.0, 1.0).unwrap());
    let polyhedra = SampleSets::Polyhedra(boxes.clone().into_polyhedra());
    for (decisions, sets) in
        [&constant, &mixed].into_iter().flat_map(|u| [(u, &boxes), (u, &polyhedra)])
    {
        for (precision, max_rank) in
            [(Precision::F64, None), (Precision::F32, None), (Precision::F64, Some(20))]
        {
            let problem = Problem::new(decisions.view(), sets.clone(), 1e-3).unwrap();
            let operator =
                HostOperator::new(features.view(), Kernel::Linear, precision, OperatorKind::Stored)
                    .unwrap();
            let settings = NewtonSettings { max_rank, ..NewtonSettings::default() };
            let outcome = newton::solve(&problem, &operator, &settings, 0, &mut Ignore).unwrap();
            let c = outcome.certified.certificate;
            assert_eq!(outcome.status, Status::Solved, "{precision:?} {max_rank:?}: {c:?}");
        }
    }
}

/// The inner operator rounds kernel values to 16 bits; corrections with exact ones take the gap
/// where it was asked for.
#[test]
fn compact_kernel_values_are_corrected_to_the_tolerance() {
    let n = 3000;
    let features =
        Array2::from_shape_fn((n, 4), |(i, j)| ((i * (2 * j + 3)) as f64 * 0.37).sin() * 2.0);
    let decisions = Array2::from_shape_fn((n, 2), |(i, j)| {
        let wish = features[[i, j]] * features[[i, 2]] + 0.3 * ((i * 7 + j) as f64).sin();
        wish.clamp(-1.0, 1.0)
    });
    let set = DecisionSet::bounds(2, -1.0, 1.0).unwrap();
    let problem = Problem::new(decisions.view(), set, 1e-5).unwrap();
    let solve = |kind, tol| {
        let kernel = Kernel::Rbf { gamma: 0.25 };
        let operator = HostOperator::new(features.view(), kernel, Precision::F32, kind).unwrap();
        let settings = NewtonSettings { tol, max_rank: Some(400), ..NewtonSettings::default() };
        newton::solve(&problem, &operator, &settings, 0, &mut Ignore).unwrap()
    };
    let reference = solve(OperatorKind::Stored, 1e-10).certified.certificate;
    for tol in [1e-6, 1e-9] {
        let compact = solve(OperatorKind::Compact, tol);
        let c = compact.certified.certificate;
        assert_eq!(compact.status, Status::Solved, "{c:?}");
        assert!(c.relative_gap <= tol);
        assert!((c.objective - reference.objective).abs() <= 2.0 * c.gap + reference.gap, "{c:?}");
    }
}
