//! Nanoseconds a small quadratic program takes, cold and from the working set of a neighbouring g.
//!
//! `cargo bench -p argwhy-core --bench small_qp`. Every problem is another one, as in training: a
//! loop over a single problem would measure a branch predictor that knows the answer.

#![allow(clippy::print_stdout, reason = "the figures are what a benchmark is for")]

use argwhy_core::qp::{ActiveSet, Constraints, Metric};
use argwhy_core::random::stream;
use ndarray::Array2;
use rand::{Rng, RngExt};
use std::hint::black_box;
use std::time::Instant;

const PROBLEMS: usize = 20_000;
const REPEATS: usize = 25;

struct Problem {
    rows: Vec<f64>,
    limits: Vec<f64>,
    g: Vec<f64>,
    warm: Vec<u32>,
}

fn normal(rng: &mut impl Rng) -> f64 {
    // Twelve uniforms: near enough to normal, and no dependency.
    (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0
}

fn metric(n: usize, plain: bool, rng: &mut impl Rng) -> Metric {
    if plain {
        return Metric::identity(n);
    }
    let a = Array2::from_shape_fn((n, n), |_| normal(rng));
    Metric::new((a.dot(&a.t()) / n as f64 + Array2::<f64>::eye(n)).view()).expect("I + AAᵀ is one")
}

fn problem(n: usize, m: usize, solver: &mut ActiveSet, rng: &mut impl Rng) -> Problem {
    let mut rows: Vec<f64> = (0..m * n).map(|_| normal(rng)).collect();
    for row in rows.chunks_exact_mut(n) {
        let length = row.iter().map(|a| a * a).sum::<f64>().sqrt();
        row.iter_mut().for_each(|a| *a /= length);
    }
    let limits: Vec<f64> = (0..m).map(|_| 0.2 + rng.random::<f64>()).collect();
    let g: Vec<f64> = (0..n).map(|_| 1.5 * normal(rng)).collect();
    let near: Vec<f64> = g.iter().map(|g| g + 0.05 * normal(rng)).collect();
    let set = Constraints { rows: &rows, limits: &limits, equalities: 0 };
    solver.solve(set, &near, &[]).expect("zero lies in the set");
    let warm = solver.working_set().to_vec();
    Problem { rows, limits, g, warm }
}

/// Mean nanoseconds a problem, the best of a few passes over all of them.
fn time(problems: &[Problem], solver: &mut ActiveSet, warm: bool) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..REPEATS {
        let begun = Instant::now();
        for problem in problems {
            let set = Constraints { rows: &problem.rows, limits: &problem.limits, equalities: 0 };
            let start: &[u32] = if warm { &problem.warm } else { &[] };
            solver.solve(set, black_box(&problem.g), start).expect("zero lies in the set");
            black_box(solver.solution());
        }
        best = best.min(begun.elapsed().as_secs_f64() * 1e9 / problems.len() as f64);
    }
    best
}

fn main() {
    println!(
        "{:>4} {:>4} {:>6} {:>9} {:>9} {:>8} {:>7}",
        "n", "m", "Θ", "cold ns", "warm ns", "active", "right"
    );
    for (n, m) in [(6, 12), (3, 13), (20, 60)] {
        for plain in [true, false] {
            let mut rng = stream(11, "small_qp");
            let mut solver = ActiveSet::new(&metric(n, plain, &mut rng));
            let problems: Vec<Problem> =
                (0..PROBLEMS).map(|_| problem(n, m, &mut solver, &mut rng)).collect();
            let (mut active, mut right) = (0, 0);
            for p in &problems {
                let set = Constraints { rows: &p.rows, limits: &p.limits, equalities: 0 };
                solver.solve(set, &p.g, &[]).expect("zero lies in the set");
                let (mut found, mut guess) = (solver.working_set().to_vec(), p.warm.clone());
                found.sort_unstable();
                guess.sort_unstable();
                active += found.len();
                right += usize::from(found == guess);
            }
            let cold = time(&problems, &mut solver, false);
            let warm = time(&problems, &mut solver, true);
            let share = |count: usize| count as f64 / PROBLEMS as f64;
            let name = if plain { "I" } else { "full" };
            println!(
                "{n:>4} {m:>4} {name:>6} {cold:>9.0} {warm:>9.0} {:>8.2} {:>6.1}%",
                share(active),
                100.0 * share(right)
            );
        }
    }
}
