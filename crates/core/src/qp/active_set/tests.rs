//! The promises that need the solver's inside; `tests/small_qp` has the rest.

use super::*;
use crate::random::stream;
use ndarray::Array2;
use rand::{Rng, RngExt};

fn unit_rows(m: usize, n: usize, rng: &mut impl Rng) -> Vec<f64> {
    let mut rows: Vec<f64> = (0..m * n).map(|_| rng.random_range(-1.0..1.0)).collect();
    for row in rows.chunks_exact_mut(n) {
        let length = dot(row, row).sqrt();
        row.iter_mut().for_each(|a| *a /= length);
    }
    rows
}

#[test]
fn basis_is_the_derivative_of_the_solution() {
    let mut rng = stream(3, "derivative");
    let a = Array2::from_shape_fn((4, 4), |_| rng.random_range(-1.0..1.0));
    let metric = Metric::new((Array2::eye(4) + a.dot(&a.t())).view()).unwrap();
    let mut solver = ActiveSet::new(&metric);
    for _ in 0..20 {
        let rows = unit_rows(7, 4, &mut rng);
        let set = Constraints { rows: &rows, limits: &[0.3; 7], equalities: 1 };
        let g: Vec<f64> = (0..4).map(|_| rng.random_range(-3.0..3.0)).collect();
        solver.solve(set, &g, &[]).unwrap();
        let (before, warm) = (solver.solution().to_vec(), solver.working_set().to_vec());
        let mut r = [0.0; 16];
        solver.write_basis(&mut r);
        let free = solver.free_dim();
        for j in 0..4 {
            let mut near = g.clone();
            near[j] += 1e-7;
            solver.solve(set, &near, &warm).unwrap();
            if solver.working_set() != warm {
                continue;
            }
            for i in 0..4 {
                let slope = (solver.solution()[i] - before[i]) / 1e-7;
                let expected: f64 = (0..free).map(|k| r[k * 4 + i] * r[k * 4 + j]).sum();
                assert!((slope - expected).abs() < 1e-7, "{slope} {expected}");
            }
        }
    }
}

#[test]
fn the_fallback_gives_the_same_answer() {
    let mut rng = stream(5, "fallback");
    for round in 0..300 {
        let (n, m) = (rng.random_range(1..=9), rng.random_range(0..20));
        let metric = if round % 2 == 0 {
            Metric::identity(n)
        } else {
            let a = Array2::from_shape_fn((n, n), |_| rng.random_range(-1.0..1.0));
            Metric::new((Array2::eye(n) + a.dot(&a.t())).view()).unwrap()
        };
        let rows = unit_rows(m, n, &mut rng);
        // Zero lies in the set; a third of the rows pass through it.
        let limits: Vec<f64> =
            (0..m).map(|i| if i % 3 == 0 { 0.0 } else { rng.random_range(0.0..1.0) }).collect();
        let equalities = usize::from(m > 0 && round % 3 == 0);
        let set = Constraints { rows: &rows, limits: &limits, equalities };
        let g: Vec<f64> = (0..n).map(|_| rng.random_range(-3.0..3.0)).collect();
        let mut direct = ActiveSet::new(&metric);
        direct.solve(set, &g, &[]).unwrap();
        let mut solver = ActiveSet::new(&metric);
        let failed = Attempt { set, g: &g, warm: &[], violation: VIOLATION };
        solver.recover(failed, Stop::Stuck).unwrap();
        assert!(solver.used_fallback() && !direct.used_fallback());
        for (found, expected) in solver.solution().iter().zip(direct.solution()) {
            assert!((found - expected).abs() < 1e-12, "round {round}: {found} {expected}");
        }
    }
}

#[test]
fn the_fallback_proves_emptiness_too() {
    let set = Constraints { rows: &[0.6, 0.8, -0.6, -0.8], limits: &[1.0, -1.5], equalities: 0 };
    let mut solver = ActiveSet::new(&Metric::identity(2));
    let expected = Err(QpError::Empty { rows: vec![0, 1] });
    let sorted = |answer: Result<(), QpError>| {
        answer.map_err(|error| match error {
            QpError::Empty { mut rows } => {
                rows.sort_unstable();
                QpError::Empty { rows }
            }
            QpError::Unsolved => QpError::Unsolved,
        })
    };
    assert_eq!(sorted(solver.solve(set, &[1.0, 2.0], &[])), expected);
    let failed = Attempt { set, g: &[1.0, 2.0], warm: &[], violation: VIOLATION };
    assert_eq!(sorted(solver.recover(failed, Stop::Stuck)), expected);
}

#[test]
fn what_is_not_a_number_is_unsolved() {
    let set = Constraints { rows: &[1.0], limits: &[1.0], equalities: 0 };
    let mut solver = ActiveSet::new(&Metric::identity(1));
    assert_eq!(solver.solve(set, &[f64::NAN], &[]), Err(QpError::Unsolved));
    let set = Constraints { limits: &[f64::NAN], ..set };
    assert_eq!(solver.solve(set, &[2.0], &[0]), Err(QpError::Unsolved));
    solver.solve(Constraints { limits: &[1.0], ..set }, &[2.0], &[0]).unwrap();
    assert_eq!(solver.solution(), [1.0]);
}

#[test]
fn nothing_to_decide_is_decided() {
    let metric = Metric::new(Array2::zeros((0, 0)).view()).unwrap();
    let mut solver = ActiveSet::new(&metric);
    let set = Constraints { rows: &[], limits: &[1.0], equalities: 0 };
    solver.solve(set, &[], &[0]).unwrap();
    assert_eq!((solver.solution(), solver.free_dim()), (&[][..], 0));
}

/// Entries of 1e5 beside entries of 1e-5, and a row of the small ones: what rounds the large ones
/// is all there is to the row. Found by attack, seed 15846.
#[test]
fn a_row_of_small_entries_is_met_beside_large_ones() {
    let rows = [
        7.282_064_861_723_605e-6 / 16384.0,
        1.553_626_091_050_145_3e-2 / 16384.0,
        1.312_198_040_797_508_3e4 / 16384.0,
        -1.456_412_972_344_721e-5 / 16384.0,
        0.0,
        -1.312_198_040_797_508_3e4 / 16384.0,
    ];
    let limits = [0.524_838_989_967_505_9 / 16384.0, -0.419_065_421_950_618_74 / 16384.0];
    let set = Constraints { rows: &rows, limits: &limits, equalities: 0 };
    let g = [88_792.664_853_270_82, 48.427_012_441_475_476, -68.285_691_400_102_8];
    for g in [g, [g[0], g[1], 68.0], [-g[0], -g[1], -39.7], [9.2e4, -40.0, 124.7]] {
        let mut solver = ActiveSet::new(&Metric::identity(3));
        solver.solve(set, &g, &[]).unwrap();
        solver.polish(set, &[f64::NEG_INFINITY; 3], &[f64::INFINITY; 3]);
        let u = solver.solution();
        for (row, limit) in rows.chunks(3).zip(limits) {
            let terms: f64 = row.iter().zip(u).map(|(a, u)| (a * u).abs()).sum();
            let over = -residual(row, u, limit) / (terms + limit.abs());
            assert!(over <= 8.0 * f64::EPSILON, "{g:?}: {over:e} of its terms beyond {row:?}");
        }
    }
}
