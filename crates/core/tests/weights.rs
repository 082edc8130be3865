//! Weights are given to the problem alone: every solver puts them on whatever operator it is
//! handed.

use argwhy_core::decision_set::DecisionSet;
use argwhy_core::operator::{HostOperator, OperatorKind, Precision};
use argwhy_core::problem::Problem;
use argwhy_core::solver::{
    Ignore, NewtonSettings, Outcome, SsoSettings, Status, newton, path, sso, theta,
};
use argwhy_core::{Error, Kernel};
use ndarray::{Array2, Axis};

const WEIGHTS: [usize; 4] = [1, 3, 2, 5];

fn signals(n: usize) -> Array2<f64> {
    Array2::from_shape_fn((n, 2), |(i, j)| ((i * (2 * j + 3)) as f64 * 0.37).sin())
}

fn decisions(n: usize) -> Array2<f64> {
    Array2::from_shape_fn((n, 2), |(i, j)| {
        (1.3 * ((i + 5 * j) as f64 * 0.9).cos()).clamp(-1.0, 1.0)
    })
}

fn problem(decisions: &Array2<f64>) -> Problem {
    Problem::new(decisions.view(), DecisionSet::bounds(2, -1.0, 1.0).unwrap(), 1e-3).unwrap()
}

fn operator(features: &Array2<f64>, precision: Precision) -> HostOperator {
    let kernel = Kernel::Rbf { gamma: 0.8 };
    HostOperator::new(features.view(), kernel, precision, OperatorKind::Tiled)
        .unwrap()
        .with_blocks(OperatorKind::Stored)
}

/// What each solver makes of a problem and an operator that knows of no weights.
fn solved(problem: &Problem, operator: &HostOperator) -> Vec<Outcome> {
    let settings = NewtonSettings { tol: 1e-10, ..NewtonSettings::default() };
    let blocks = SsoSettings { tol: 1e-10, max_iterations: 400, ..SsoSettings::default() };
    let mut outcomes = vec![
        newton::solve(problem, operator, &settings, 0, &mut Ignore).unwrap(),
        newton::solve(
            problem,
            operator,
            &NewtonSettings { max_rank: Some(10), ..settings },
            0,
            &mut Ignore,
        )
        .unwrap(),
        theta::solve(problem, operator, &settings, 0, &mut Ignore).unwrap(),
        sso::solve(problem, operator, &blocks, 0, &mut Ignore).unwrap(),
    ];
    let path = [1e-2, problem.regularization()];
    let last = |_: &Problem, outcome| -> Result<(), Error> {
        outcomes.push(outcome);
        Ok(())
    };
    path::solve(problem.clone(), operator, &path, &settings, 0, None, &mut Ignore, last).unwrap();
    outcomes
}

/// The public API has no way to give weights to an operator, so there is nothing to forget: a
/// weighted problem has the optimum of the repeated rows with the operator of the rows as they are.
#[test]
fn weights_of_the_problem_alone_are_repetitions_for_every_solver() {
    let n = 60;
    let (features, decisions) = (signals(n), decisions(n));
    let weights: Vec<f64> = (0..n).map(|i| WEIGHTS[i % 4] as f64).collect();
    let rows: Vec<usize> = (0..n).flat_map(|i| vec![i; WEIGHTS[i % 4]]).collect();
    let repeated = (features.select(Axis(0), &rows), decisions.select(Axis(0), &rows));
    for precision in [Precision::F64, Precision::F32] {
        let weighted = problem(&decisions).with_weights(&weights).unwrap();
        let ours = solved(&weighted, &operator(&features, precision));
        let theirs = solved(&problem(&repeated.1), &operator(&repeated.0, precision));
        assert_eq!(ours.len(), theirs.len());
        for (at, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
            let (a, b) = (ours.certified.certificate, theirs.certified.certificate);
            assert_eq!([ours.status, theirs.status], [Status::Solved; 2], "{at} {precision:?}");
            assert!((a.primal - b.primal).abs() <= 2e-10 * b.primal, "{at}: {a:?} {b:?}");
            assert!((a.objective - b.objective).abs() <= 2e-10 * b.primal, "{at}");
        }
    }
}

#[test]
fn an_operator_of_other_samples_is_refused() {
    let problem = problem(&decisions(20));
    let operator = operator(&signals(21), Precision::F64);
    let refused = newton::solve(&problem, &operator, &NewtonSettings::default(), 0, &mut Ignore);
    assert!(matches!(refused, Err(Error::RowCount { left_rows: 21, right_rows: 20, .. })));
}
