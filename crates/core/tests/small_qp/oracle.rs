//! The same problem by an interior-point method.

use super::problems::Problem;
use clarabel::algebra::CscMatrix;
use clarabel::solver::{
    DefaultSettings, DefaultSolver, IPSolver, SolverStatus, SupportedConeT::NonnegativeConeT,
    SupportedConeT::ZeroConeT,
};

pub struct Answer {
    pub status: SolverStatus,
    pub solution: Vec<f64>,
}

/// The gap, relative or absolute, at which Clarabel stops.
pub const GAP: f64 = 1e-10;

/// Clarabel's answer with only the rows `only`, which are in ascending order. Its tolerances are
/// absolute for small numbers, so lengths are measured in units of `scale`.
pub fn solve(problem: &Problem, only: &[usize], scale: f64) -> Answer {
    let n = problem.n;
    let kept: Vec<usize> =
        only.iter().copied().filter(|&i| problem.limits[i] < f64::INFINITY).collect();
    let equalities = kept.iter().filter(|&&i| i < problem.equalities).count();
    let theta = problem.metric.theta();
    let mut objective = CscMatrix::from(
        theta.rows().into_iter().map(|row| row.to_vec()).collect::<Vec<_>>().iter(),
    );
    objective.nzval.iter_mut().for_each(|x| *x *= 2.0);
    let rows = if kept.is_empty() {
        CscMatrix::zeros((0, n))
    } else {
        CscMatrix::from(kept.iter().map(|&i| &problem.rows[i * n..(i + 1) * n]))
    };
    let limits: Vec<f64> = kept.iter().map(|&i| problem.limits[i] / scale).collect();
    let linear: Vec<f64> = problem.g.iter().map(|g| -2.0 * g / scale).collect();
    let cones = [ZeroConeT(equalities), NonnegativeConeT(kept.len() - equalities)];
    let settings = DefaultSettings {
        verbose: false,
        max_threads: 1,
        tol_gap_abs: GAP,
        tol_gap_rel: GAP,
        tol_feas: 1e-10,
        ..DefaultSettings::default()
    };
    let objective = objective.to_triu();
    let mut solver =
        DefaultSolver::new(&objective, &linear, &rows, &limits, &cones, settings).unwrap();
    solver.solve();
    Answer {
        status: solver.solution.status,
        solution: solver.solution.x.iter().map(|x| x * scale).collect(),
    }
}
