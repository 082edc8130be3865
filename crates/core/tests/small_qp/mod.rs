//! A hundred thousand small quadratic programs, each proven optimal from its own answer and
//! compared with Clarabel.

#![allow(clippy::unwrap_used, reason = "tests")]

mod oracle;
mod problems;

use argwhy_core::qp::{ActiveSet, QpError};
use argwhy_core::random::stream;
use clarabel::solver::SolverStatus;
use problems::{KINDS, Problem, normal};
use rand::RngExt;
use rayon::prelude::*;

const PROBLEMS: usize = 100_000;

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn length(a: &[f64]) -> f64 {
    dot(a, a).sqrt()
}

fn size(a: impl IntoIterator<Item = f64>) -> f64 {
    a.into_iter().fold(0.0, |m, x| m.max(x.abs()))
}

/// Relative errors of one answer, each a condition of optimality or of the promises about the
/// working set.
#[derive(Clone, Copy, Debug, Default)]
struct Errors {
    infeasible: f64,
    inactive: f64,
    negative: f64,
    stationary: f64,
    basis_length: f64,
    basis_rows: f64,
}

fn judge(problem: &Problem, solver: &ActiveSet) -> Errors {
    let (n, u) = (problem.n, solver.solution());
    let row = |i: usize| &problem.rows[i * n..(i + 1) * n];
    let finite = problem.limits.iter().copied().filter(|b| b.is_finite());
    let scale = size(finite.chain(u.iter().copied())).max(f64::MIN_POSITIVE);
    let mut errors = Errors::default();
    for (i, limit) in problem.limits.iter().enumerate() {
        let over = dot(row(i), u) - limit;
        let off = if i < problem.equalities { over.abs() } else { over };
        errors.infeasible = errors.infeasible.max(off / scale);
    }
    let mut theta_u = vec![0.0; n];
    problem.metric.apply(u, &mut theta_u);
    let mut rest: Vec<f64> = problem.g.iter().zip(&theta_u).map(|(g, t)| 2.0 * (g - t)).collect();
    // Rounding u to doubles alone costs ‖Θ‖‖u‖ times their precision.
    let theta = problem.metric.theta();
    let mut pull = length(&problem.g) + theta.iter().map(|x| x * x).sum::<f64>().sqrt() * length(u);
    let free = solver.free_dim();
    let mut basis = vec![0.0; n * n];
    solver.write_basis(&mut basis);
    assert_eq!(solver.working_set().len() + free, n);
    assert_eq!(solver.multipliers().len() + free, n);
    for (&i, &nu) in solver.working_set().iter().zip(solver.multipliers()) {
        let i = i as usize;
        if i >= problem.equalities {
            errors.negative = errors.negative.max(-nu);
        }
        rest.iter_mut().zip(row(i)).for_each(|(r, a)| *r -= nu * a);
        pull += nu.abs();
        errors.inactive = errors.inactive.max((dot(row(i), u) - problem.limits[i]).abs() / scale);
        for column in basis.chunks_exact(n).take(free) {
            errors.basis_rows = errors.basis_rows.max(dot(row(i), column).abs());
        }
    }
    errors.stationary = length(&rest) / pull.max(f64::MIN_POSITIVE);
    for (j, x) in basis.chunks_exact(n).take(free).enumerate() {
        let mut theta_x = vec![0.0; n];
        problem.metric.apply(x, &mut theta_x);
        for (k, y) in basis.chunks_exact(n).take(free).enumerate() {
            let expected = f64::from(u8::from(j == k));
            errors.basis_length = errors.basis_length.max((dot(&theta_x, y) - expected).abs());
        }
    }
    errors
}

/// Bounds on [`Errors`]: all are rounding, the basis' length times the condition of Θ (10⁶).
fn acceptable(errors: &Errors) -> bool {
    errors.infeasible <= 1e-12
        && errors.inactive <= 1e-12
        && errors.negative <= 0.0
        && errors.stationary <= 1e-12
        && errors.basis_length <= 1e-9
        && errors.basis_rows <= 1e-12
}

/// What the problems of one kind showed.
#[derive(Clone, Debug, Default)]
struct Tally {
    problems: usize,
    empty: usize,
    fallbacks: usize,
    /// Clarabel did not say whether it had solved the problem.
    unknown: usize,
    /// Answers further from Clarabel's than its accuracy explains.
    apart: Vec<(usize, [f64; 4])>,
    wrong: Vec<String>,
    worst: [f64; 6],
}

impl Tally {
    fn merge(mut self, other: Self) -> Self {
        self.problems += other.problems;
        self.empty += other.empty;
        self.fallbacks += other.fallbacks;
        self.unknown += other.unknown;
        self.apart.extend(other.apart);
        self.wrong.extend(other.wrong);
        for (x, y) in self.worst.iter_mut().zip(other.worst) {
            *x = x.max(y);
        }
        self
    }

    fn note(&mut self, index: usize, problem: &Problem, solver: &ActiveSet, start: &str) {
        let e = judge(problem, solver);
        let all =
            [e.infeasible, e.inactive, e.negative, e.stationary, e.basis_length, e.basis_rows];
        for (worst, error) in self.worst.iter_mut().zip(all) {
            *worst = worst.max(error);
        }
        self.fallbacks += usize::from(solver.used_fallback());
        if !acceptable(&e) {
            self.wrong.push(format!("{index} ({start}): {e:?}"));
        }
    }
}

/// Distance of two answers that rounding explains.
///
/// Nearly parallel rows meet in vertices that move far when a limit moves little; there the
/// multipliers say how far.
fn noise(problem: &Problem, solver: &ActiveSet) -> f64 {
    let finite = problem.limits.iter().copied().filter(|b| b.is_finite());
    let scale = size(finite.chain(solver.solution().iter().copied()));
    let plain = 1e-9 * scale + 1e-12 * length(&problem.g);
    let multipliers: f64 = solver.multipliers().iter().map(|nu| nu.abs()).sum();
    if KINDS[problem.kind] == "nearly parallel rows" {
        plain.max((1e-14 * multipliers * scale).sqrt())
    } else {
        plain
    }
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    length(&a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<_>>())
}

fn examine(index: usize) -> Tally {
    let problem = Problem::new(index);
    let mut tally = Tally { problems: 1, ..Tally::default() };
    let mut solver = ActiveSet::new(&problem.metric);
    match solver.solve(problem.set(), &problem.g, &[]) {
        // So far out that the rows contradict each other by less than rounding; nearer by they must
        // be caught.
        Ok(()) if problem.empty && size(solver.solution().iter().copied()) > 1e5 => {
            tally.note(index, &problem, &solver, "far out");
            let near = solver.solve(problem.set(), &vec![0.0; problem.n], &[]);
            tally.empty += usize::from(matches!(near, Err(QpError::Empty { .. })));
            if near.is_ok() {
                tally.wrong.push(format!("{index}: found a point near zero in an empty set"));
            }
        }
        Ok(()) if problem.empty => {
            tally.wrong.push(format!("{index}: found a point in an empty set"));
        }
        Ok(()) => {
            tally.note(index, &problem, &solver, "cold");
            compare(index, &problem, &solver, &mut tally);
            let cold = solver.solution().to_vec();
            warm_starts(index, &problem, &mut solver, &cold, &mut tally);
        }
        Err(QpError::Empty { rows }) if problem.empty => {
            tally.empty += 1;
            let mut rows: Vec<usize> = rows.into_iter().map(|i| i as usize).collect();
            rows.sort_unstable();
            // Only whether there is a point matters here, not which is best.
            let question = Problem { g: vec![0.0; problem.n], ..problem };
            let status = oracle::solve(&question, &rows, question.scale()).status;
            if status != SolverStatus::PrimalInfeasible {
                tally.wrong.push(format!("{index}: {rows:?} do not contradict, says {status:?}"));
            }
        }
        Err(error) => tally.wrong.push(format!("{index}: {error}")),
    }
    tally
}

/// The answer must not depend on where the search began.
fn warm_starts(
    index: usize,
    problem: &Problem,
    solver: &mut ActiveSet,
    cold: &[f64],
    tally: &mut Tally,
) {
    let mut rng = stream(index as u64, "warm starts");
    let near: Vec<f64> = problem.g.iter().map(|g| g * (1.0 + 0.1 * normal(&mut rng))).collect();
    if let Err(error) = solver.solve(problem.set(), &near, &[]) {
        tally.wrong.push(format!("{index} (near): {error}"));
        return;
    }
    let neighbour = solver.working_set().to_vec();
    // Any rows, some twice, some that don't exist.
    let any = (0..rng.random_range(0..2 * problem.n))
        .map(|_| rng.random_range(0..problem.limits.len() as u32 + 2))
        .collect();
    for (start, warm) in [("neighbour", neighbour), ("any rows", any)] {
        if let Err(error) = solver.solve(problem.set(), &problem.g, &warm) {
            tally.wrong.push(format!("{index} ({start}): {error}"));
            continue;
        }
        tally.note(index, problem, solver, start);
        let apart = distance(solver.solution(), cold);
        if apart > noise(problem, solver) {
            tally.wrong.push(format!("{index} ({start}): {apart:e} from the cold answer"));
        }
    }
}

/// Clarabel's point x must be as near as its own gap says: for the optimal u with multipliers ν,
/// q(x) − q(u) = ‖x − u‖²_Θ − Σ ν_i (row_iᵀx − limit_i).
fn compare(index: usize, problem: &Problem, solver: &ActiveSet, tally: &mut Tally) {
    let all: Vec<usize> = (0..problem.limits.len()).collect();
    let scale = problem.scale();
    let answer = oracle::solve(problem, &all, scale);
    if answer.status != SolverStatus::Solved {
        tally.unknown += 1;
        return;
    }
    let (n, u, x) = (problem.n, solver.solution(), &answer.solution);
    let mut excess = 0.0;
    for (&i, nu) in solver.working_set().iter().zip(solver.multipliers()) {
        let i = i as usize;
        let over = dot(&problem.rows[i * n..(i + 1) * n], x) - problem.limits[i];
        excess += if i < problem.equalities { (nu * over).abs() } else { nu * over.max(0.0) };
    }
    let apart: Vec<f64> = x.iter().zip(u).map(|(x, u)| x - u).collect();
    let apart = problem.form(&apart) / (scale * scale);
    let (value, other) = (problem.value(u) / (scale * scale), problem.value(x) / (scale * scale));
    let allowed = 10.0 * oracle::GAP * (1.0 + value.abs()) + excess / (scale * scale);
    if apart > allowed || (value - other).abs() > allowed {
        tally.apart.push((index, [apart, value, other, allowed]));
    }
}

#[test]
fn every_answer_is_optimal_and_agrees_with_clarabel() {
    let tallies: Vec<Tally> = (0..KINDS.len())
        .map(|kind| {
            (0..PROBLEMS / KINDS.len())
                .into_par_iter()
                .map(|i| examine(i * KINDS.len() + kind))
                .reduce(Tally::default, Tally::merge)
        })
        .collect();
    for (kind, tally) in KINDS.iter().zip(&tallies) {
        let worst = tally.worst.map(|x| format!("{x:.0e}")).join(" ");
        println!(
            "{kind:<28} {:>5} problems, {:>4} empty, {:>3} left open by Clarabel, worst errors \
             {worst}",
            tally.problems, tally.empty, tally.unknown
        );
    }
    let all = tallies.into_iter().fold(Tally::default(), Tally::merge);
    println!("{} fallbacks, {} left open by Clarabel", all.fallbacks, all.unknown);
    assert!(all.wrong.is_empty(), "{} wrong, first: {}", all.wrong.len(), all.wrong[0]);
    assert!(all.apart.is_empty(), "not where Clarabel is: {:?}", all.apart);
    assert!(all.fallbacks <= PROBLEMS / 10_000, "{} fallbacks", all.fallbacks);
    assert!(all.unknown <= PROBLEMS / 40, "Clarabel left {} open", all.unknown);
}
