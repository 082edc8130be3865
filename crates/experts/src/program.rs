//! The pilot's plan as a program: `min ½ xᵀHx + cᵀx` with `lower ≤ x ≤ upper`, solved by core's
//! small QP.
//!
//! In: H once; then c, limits and a guess of which of them hold. Out: the minimiser, with variables
//! at a limit there to the bit, and how far it is from satisfying the optimality conditions, `‖x −
//! Π(x − ∇)‖∞`, judged afresh on the point that is handed out.

use super::ExpertError;
use argwhy_core::qp::{ActiveSet, Constraints, Metric};
use ndarray::{Array1, Array2};

/// The largest optimality residual a solution may have.
pub(crate) const TOL_RESIDUAL: f64 = 1e-9;

/// A box-constrained quadratic program without its linear term.
#[derive(Clone, Debug)]
pub(crate) struct BoxProgram {
    hessian: Array2<f64>,
    metric: Metric,
    /// x_j ≤ …, then −x_j ≤ …, as core wants them.
    rows: Vec<f64>,
}

/// Least and greatest value of each variable; equal ones fix it.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    pub(crate) lower: Array1<f64>,
    pub(crate) upper: Array1<f64>,
}

/// A minimiser and its proof.
#[derive(Clone, Debug)]
pub(crate) struct Minimiser {
    pub(crate) point: Array1<f64>,
    /// `‖x − Π(x − Hx − c)‖∞`, at most [`TOL_RESIDUAL`].
    pub(crate) residual: f64,
}

impl Limits {
    fn clamp(&self, j: usize, x: f64) -> f64 {
        x.max(self.lower[j]).min(self.upper[j])
    }

    /// Rows of the program that hold `point`.
    fn rows_at(&self, point: &Array1<f64>) -> Vec<u32> {
        let n = point.len();
        let row = |(j, x): (usize, &f64)| {
            let at_lower = (*x <= self.lower[j]).then_some((n + j) as u32);
            (*x >= self.upper[j]).then_some(j as u32).or(at_lower)
        };
        point.iter().enumerate().filter_map(row).collect()
    }
}

impl BoxProgram {
    /// H symmetric positive definite.
    pub(crate) fn new(hessian: Array2<f64>) -> Result<Self, ExpertError> {
        let n = hessian.nrows();
        let metric = Metric::new(hessian.view()).map_err(|_| ExpertError::NotConvex)?;
        let mut rows = vec![0.0; 2 * n * n];
        for j in 0..n {
            rows[j * n + j] = 1.0;
            rows[(n + j) * n + j] = -1.0;
        }
        Ok(Self { hessian, metric, rows })
    }

    /// `½ xᵀHx + cᵀx`.
    pub(crate) fn value(&self, linear: &Array1<f64>, point: &Array1<f64>) -> f64 {
        0.5 * point.dot(&self.hessian.dot(point)) + linear.dot(point)
    }

    /// The minimiser for linear term c = `linear`. Limits that hold `guess` are tried first.
    pub(crate) fn solve(
        &self,
        linear: &Array1<f64>,
        limits: &Limits,
        guess: &Array1<f64>,
    ) -> Result<Minimiser, ExpertError> {
        let bounds: Vec<f64> =
            limits.upper.iter().copied().chain(limits.lower.iter().map(|l| -l)).collect();
        let set = Constraints { rows: &self.rows, limits: &bounds, equalities: 0 };
        // Core minimises xᵀΘx − 2gᵀx: the same with Θ = H and g = −c.
        let pull: Vec<f64> = linear.iter().map(|c| -c).collect();
        let mut solver = ActiveSet::new(&self.metric);
        solver.solve(set, &pull, &limits.rows_at(guess)).map_err(ExpertError::Program)?;
        let point = snapped(&solver, limits);
        let residual = self.residual(linear, limits, &point);
        if residual.is_nan() || residual > TOL_RESIDUAL {
            return Err(ExpertError::NotSolved { residual });
        }
        Ok(Minimiser { point, residual })
    }

    /// `‖x − Π(x − Hx − c)‖∞`, zero exactly at the minimiser.
    fn residual(&self, linear: &Array1<f64>, limits: &Limits, point: &Array1<f64>) -> f64 {
        let gradient = self.hessian.dot(point) + linear;
        let off = |j: usize| (point[j] - limits.clamp(j, point[j] - gradient[j])).abs();
        let worse = |worst: f64, r: f64| if r.is_nan() { r } else { worst.max(r) };
        (0..point.len()).map(off).fold(0.0, worse)
    }
}

/// The solver's point, with rounding taken off the variables that a limit holds.
fn snapped(solver: &ActiveSet, limits: &Limits) -> Array1<f64> {
    let n = limits.lower.len();
    let mut point: Array1<f64> =
        solver.solution().iter().enumerate().map(|(j, x)| limits.clamp(j, *x)).collect();
    for &row in solver.working_set() {
        let row = row as usize;
        point[row % n] = if row < n { limits.upper[row] } else { limits.lower[row - n] };
    }
    point
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Axis;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    struct Problem {
        program: BoxProgram,
        limits: Limits,
        linear: Array1<f64>,
    }

    impl Problem {
        fn random(rng: &mut ChaCha8Rng, n: usize, ridge: f64) -> Self {
            let root = Array2::from_shape_fn((n, n), |_| rng.random_range(-1.0..1.0));
            let hessian = root.t().dot(&root) + Array2::<f64>::eye(n) * ridge;
            let lower = Array1::from_shape_fn(n, |_| rng.random_range(-1.0..0.0));
            let upper = Array1::from_shape_fn(n, |i| lower[i] + rng.random_range(0.0..1.5));
            let linear = Array1::from_shape_fn(n, |_| rng.random_range(-4.0..4.0));
            let program = BoxProgram::new((&hessian + &hessian.t()) * 0.5).unwrap();
            Self { program, limits: Limits { lower, upper }, linear }
        }

        fn solve(&self, guess: &Array1<f64>) -> Minimiser {
            self.program.solve(&self.linear, &self.limits, guess).unwrap()
        }

        fn value(&self, point: &Array1<f64>) -> f64 {
            self.program.value(&self.linear, point)
        }

        /// The minimiser over the variables that `state` leaves free (0), the others at a limit (1,
        /// 2).
        fn stationary(&self, state: &[usize]) -> Array1<f64> {
            let choice = |i: usize| [0.0, self.limits.lower[i], self.limits.upper[i]][state[i]];
            let mut x = Array1::from_shape_fn(state.len(), choice);
            let gradient = self.program.hessian.dot(&x) + &self.linear;
            let free: Vec<usize> = (0..state.len()).filter(|&i| state[i] == 0).collect();
            let block = self.program.hessian.select(Axis(0), &free).select(Axis(1), &free);
            let step = eliminated(block, gradient.select(Axis(0), &free));
            free.iter().zip(step).for_each(|(&i, d)| x[i] -= d);
            x
        }
    }

    /// `matrix⁻¹ rhs` by elimination; positive definite matrices need no pivoting.
    fn eliminated(mut matrix: Array2<f64>, mut rhs: Array1<f64>) -> Array1<f64> {
        for j in 0..rhs.len() {
            for i in (0..rhs.len()).filter(|&i| i != j) {
                let factor = matrix[[i, j]] / matrix[[j, j]];
                let row = matrix.row(j).to_owned();
                matrix.row_mut(i).scaled_add(-factor, &row);
                rhs[i] -= factor * rhs[j];
            }
        }
        rhs / matrix.diag()
    }

    #[test]
    fn agrees_with_enumeration_of_every_active_set() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for _ in 0..40 {
            let problem = Problem::random(&mut rng, 4, 1e-2);
            let limits = &problem.limits;
            let mut best = f64::INFINITY;
            for code in 0..3_usize.pow(4) {
                let state: Vec<usize> = (0..4).map(|i| code / 3_usize.pow(i) % 3).collect();
                let x = problem.stationary(&state);
                if (0..4).all(|i| x[i] >= limits.lower[i] && x[i] <= limits.upper[i]) {
                    best = best.min(problem.value(&x));
                }
            }
            let got = problem.solve(&Array1::zeros(4));
            assert!((problem.value(&got.point) - best).abs() < 1e-10);
        }
    }

    #[test]
    fn ill_conditioned_problems_reach_the_tolerance_from_any_guess() {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        for case in 0..200 {
            let problem = Problem::random(&mut rng, 30, 1e-6);
            let limits = &problem.limits;
            let guesses = [limits.lower.clone(), limits.upper.clone(), Array1::zeros(30)];
            let values = guesses.map(|guess| {
                let got = problem.solve(&guess);
                assert!(got.residual <= TOL_RESIDUAL, "{case}");
                problem.value(&got.point)
            });
            for other in &values[1..] {
                assert!((values[0] - other).abs() <= 1e-9 * values[0].abs().max(1.0));
            }
        }
    }

    #[test]
    fn fixed_variables_stay_and_bad_matrices_are_refused() {
        let program = BoxProgram::new(Array2::eye(2)).unwrap();
        let limits =
            Limits { lower: Array1::from(vec![0.3, -1.0]), upper: Array1::from(vec![0.3, 1.0]) };
        let linear = Array1::from(vec![5.0, -0.5]);
        let got = program.solve(&linear, &limits, &Array1::zeros(2)).unwrap();
        assert_eq!(got.point.to_vec(), vec![0.3, 0.5]);

        let error = BoxProgram::new(-Array2::<f64>::eye(2)).unwrap_err();
        assert_eq!(error, ExpertError::NotConvex);

        let nan = Array1::from(vec![f64::NAN, 0.0]);
        let limits = Limits { lower: -Array1::<f64>::ones(2), upper: Array1::ones(2) };
        assert!(matches!(
            program.solve(&nan, &limits, &Array1::zeros(2)),
            Err(ExpertError::Program(_) | ExpertError::NotSolved { .. })
        ));
    }
}
