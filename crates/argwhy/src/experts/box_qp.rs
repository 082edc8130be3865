//! `min ½ xᵀHx + cᵀx` with `lower ≤ x ≤ upper`, solved exactly.
//!
//! In: H symmetric positive definite, c, the limits, a first guess. Out: the minimiser and how far it
//! is from satisfying the optimality conditions, `‖x − Π(x − ∇)‖∞`. First projected Newton steps
//! (Bertsekas 1982), which change many limits at once; where those no longer pay, an active-set search,
//! which changes one limit at a time and ends after finitely many.

use super::ExpertError;
use ndarray::{Array1, Array2};

/// The largest optimality residual a solution may have.
pub const TOL_RESIDUAL: f64 = 1e-9;
/// Active-set steps allowed for each variable.
const MAX_SWEEPS: usize = 20;
/// Projected Newton steps before the active-set search takes over.
const MAX_LEAPS: usize = 30;
/// Share of the linear decrease a projected step must achieve.
const ARMIJO: f64 = 1e-2;

/// A box-constrained quadratic program without its linear term.
#[derive(Debug, Clone)]
pub struct BoxQp {
    /// H, symmetric positive definite.
    pub hessian: Array2<f64>,
    /// Least value of each variable.
    pub lower: Array1<f64>,
    /// Greatest value of each variable, not below `lower`; equal fixes the variable.
    pub upper: Array1<f64>,
}

/// A minimiser and its proof.
#[derive(Debug, Clone)]
pub struct BoxQpSolution {
    /// The minimiser; variables at a limit are there to the bit.
    pub point: Array1<f64>,
    /// `‖x − Π(x − Hx − c)‖∞`, at most [`TOL_RESIDUAL`].
    pub residual: f64,
    /// Newton steps taken.
    pub iterations: usize,
}

impl BoxQp {
    /// `½ xᵀHx + cᵀx`.
    pub fn value(&self, linear: &Array1<f64>, point: &Array1<f64>) -> f64 {
        0.5 * point.dot(&self.hessian.dot(point)) + linear.dot(point)
    }

    /// The minimiser for linear term c = `linear`, starting from `start` (projected first).
    ///
    /// Fails if the residual does not reach [`TOL_RESIDUAL`] or H is not positive definite.
    pub fn solve(
        &self,
        linear: &Array1<f64>,
        start: &Array1<f64>,
    ) -> Result<BoxQpSolution, ExpertError> {
        let mut point = self.projected(start);
        let mut gradient = self.hessian.dot(&point) + linear;
        let mut leaping = true;
        // Variables the active-set search may move; chosen when it takes over.
        let mut free: Vec<usize> = Vec::new();
        let max_iterations = MAX_LEAPS + MAX_SWEEPS * point.len();
        let mut iterations = 0;
        loop {
            let residual = self.residual(&point, &gradient);
            if residual <= TOL_RESIDUAL {
                return Ok(BoxQpSolution { point, residual, iterations });
            }
            if iterations >= max_iterations || !residual.is_finite() {
                return Err(ExpertError::NotSolved { residual, iterations });
            }
            let leap = if leaping && iterations < MAX_LEAPS {
                self.leap(&point, &gradient)?
            } else {
                None
            };
            if let Some(next) = leap {
                point = next;
            } else {
                if leaping {
                    leaping = false;
                    free = (0..point.len()).filter(|&i| self.is_inside(i, point[i])).collect();
                }
                self.exchange(&mut point, &gradient, &mut free)?;
            }
            // Afresh, not by update: the residual is judged on it.
            gradient = self.hessian.dot(&point) + linear;
            iterations += 1;
        }
    }

    /// `Π(x + d)`, d the Newton step of all variables the gradient does not hold at a limit; none if
    /// the value does not fall enough.
    fn leap(
        &self,
        point: &Array1<f64>,
        gradient: &Array1<f64>,
    ) -> Result<Option<Array1<f64>>, ExpertError> {
        let free: Vec<usize> =
            (0..point.len()).filter(|&i| !self.is_held(i, point[i], gradient[i])).collect();
        let direction = newton_direction(&self.hessian, gradient, &free)?;
        let next = self.projected(&(point + &direction));
        // The change itself, not a difference of two values: no digits lost near the optimum.
        let step = &next - point;
        let slope = gradient.dot(&step);
        let change = slope + 0.5 * step.dot(&self.hessian.dot(&step));
        Ok((slope < 0.0 && change <= ARMIJO * slope).then_some(next))
    }

    /// One active-set step: to the minimum over the free variables and, once there, free the variable
    /// that gains most; or up to the first limit in the way, which then holds its variable.
    fn exchange(
        &self,
        point: &mut Array1<f64>,
        gradient: &Array1<f64>,
        free: &mut Vec<usize>,
    ) -> Result<(), ExpertError> {
        let at_minimum = free.iter().all(|&i| gradient[i].abs() <= TOL_RESIDUAL / 2.0);
        if at_minimum {
            let worst = (0..point.len())
                .filter(|i| !free.contains(i) && !self.is_held(*i, point[*i], gradient[*i]))
                .max_by(|&i, &j| gradient[i].abs().total_cmp(&gradient[j].abs()));
            free.extend(worst);
        }
        let direction = newton_direction(&self.hessian, gradient, free)?;
        let mut length = 1.0;
        let mut blocking = None;
        for (slot, &i) in free.iter().enumerate() {
            let limit = if direction[i] < 0.0 { self.lower[i] } else { self.upper[i] };
            if (direction[i] < 0.0 && point[i] + length * direction[i] < limit)
                || (direction[i] > 0.0 && point[i] + length * direction[i] > limit)
            {
                length = (limit - point[i]) / direction[i];
                blocking = Some((slot, limit));
            }
        }
        point.scaled_add(length, &direction);
        if let Some((slot, limit)) = blocking {
            point[free.swap_remove(slot)] = limit;
        }
        *point = self.projected(point);
        Ok(())
    }

    /// `‖x − Π(x − gradient)‖∞`, zero exactly at the minimiser.
    fn residual(&self, point: &Array1<f64>, gradient: &Array1<f64>) -> f64 {
        let moved = self.projected(&(point - gradient));
        (point - &moved)
            .iter()
            .fold(0.0, |worst, r| if r.is_nan() { *r } else { r.abs().max(worst) })
    }

    fn projected(&self, point: &Array1<f64>) -> Array1<f64> {
        (0..point.len()).map(|i| point[i].max(self.lower[i]).min(self.upper[i])).collect()
    }

    fn is_held(&self, i: usize, x: f64, gradient: f64) -> bool {
        (x <= self.lower[i] && gradient > 0.0)
            || (x >= self.upper[i] && gradient < 0.0)
            || self.lower[i] == self.upper[i]
    }

    fn is_inside(&self, i: usize, x: f64) -> bool {
        x > self.lower[i] && x < self.upper[i]
    }
}

/// `−H_ff⁻¹ gradient_f` on the free variables, zero elsewhere.
fn newton_direction(
    hessian: &Array2<f64>,
    gradient: &Array1<f64>,
    free: &[usize],
) -> Result<Array1<f64>, ExpertError> {
    let block =
        Array2::from_shape_fn((free.len(), free.len()), |(a, b)| hessian[[free[a], free[b]]]);
    let mut solution: Vec<f64> = free.iter().map(|&i| -gradient[i]).collect();
    solve_spd(block, &mut solution)?;
    let mut direction = Array1::zeros(gradient.len());
    for (&i, value) in free.iter().zip(solution) {
        direction[i] = value;
    }
    Ok(direction)
}

/// Overwrites `rhs` with `matrix⁻¹ rhs` by Cholesky; the matrix is symmetric positive definite.
pub(super) fn solve_spd(mut matrix: Array2<f64>, rhs: &mut [f64]) -> Result<(), ExpertError> {
    let n = rhs.len();
    for j in 0..n {
        for i in j..n {
            let sum: f64 = (0..j).map(|k| matrix[[i, k]] * matrix[[j, k]]).sum();
            matrix[[i, j]] -= sum;
        }
        let pivot = matrix[[j, j]];
        if pivot.is_nan() || pivot <= 0.0 {
            return Err(ExpertError::NotPositiveDefinite { row: j, pivot });
        }
        let root = pivot.sqrt();
        for i in j..n {
            matrix[[i, j]] /= root;
        }
    }
    for i in 0..n {
        let sum: f64 = (0..i).map(|k| matrix[[i, k]] * rhs[k]).sum();
        rhs[i] = (rhs[i] - sum) / matrix[[i, i]];
    }
    for i in (0..n).rev() {
        let sum: f64 = (i + 1..n).map(|k| matrix[[k, i]] * rhs[k]).sum();
        rhs[i] = (rhs[i] - sum) / matrix[[i, i]];
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    fn random_problem(rng: &mut ChaCha8Rng, n: usize, ridge: f64) -> (BoxQp, Array1<f64>) {
        let root = Array2::from_shape_fn((n, n), |_| rng.random_range(-1.0..1.0));
        let hessian = root.t().dot(&root) + Array2::<f64>::eye(n) * ridge;
        let lower = Array1::from_shape_fn(n, |_| rng.random_range(-1.0..0.0));
        let upper = Array1::from_shape_fn(n, |i| lower[i] + rng.random_range(0.0..1.5));
        let linear = Array1::from_shape_fn(n, |_| rng.random_range(-4.0..4.0));
        (BoxQp { hessian, lower, upper }, linear)
    }

    #[test]
    fn agrees_with_enumeration_of_every_active_set() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for _ in 0..40 {
            let (qp, linear) = random_problem(&mut rng, 4, 1e-2);
            let got = qp.solve(&linear, &Array1::zeros(4)).unwrap();
            let mut best = f64::INFINITY;
            for code in 0..3_usize.pow(4) {
                let state = |i: usize| code / 3_usize.pow(i as u32) % 3;
                let mut x = Array1::zeros(4);
                for i in 0..4 {
                    x[i] = [0.0, qp.lower[i], qp.upper[i]][state(i)];
                }
                let free: Vec<usize> = (0..4).filter(|&i| state(i) == 0).collect();
                let gradient = qp.hessian.dot(&x) + &linear;
                x += &newton_direction(&qp.hessian, &gradient, &free).unwrap();
                let inside = (0..4).all(|i| x[i] >= qp.lower[i] && x[i] <= qp.upper[i]);
                if inside {
                    best = best.min(qp.value(&linear, &x));
                }
            }
            assert!((qp.value(&linear, &got.point) - best).abs() < 1e-10);
        }
    }

    #[test]
    fn ill_conditioned_problems_reach_the_tolerance_from_any_start() {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        for case in 0..200 {
            let (qp, linear) = random_problem(&mut rng, 30, 1e-6);
            let starts = [qp.lower.clone(), qp.upper.clone(), Array1::zeros(30)];
            let points: Vec<_> = starts
                .iter()
                .map(|start| qp.solve(&linear, start).unwrap())
                .inspect(|s| assert!(s.residual <= TOL_RESIDUAL && s.iterations < 100, "{case}"))
                .collect();
            for other in &points[1..] {
                let a = qp.value(&linear, &points[0].point);
                let b = qp.value(&linear, &other.point);
                assert!((a - b).abs() <= 1e-9 * a.abs().max(1.0));
            }
        }
    }

    #[test]
    fn fixed_variables_stay_and_bad_matrices_are_refused() {
        let qp = BoxQp {
            hessian: Array2::eye(2),
            lower: Array1::from(vec![0.3, -1.0]),
            upper: Array1::from(vec![0.3, 1.0]),
        };
        let linear = Array1::from(vec![5.0, -0.5]);
        let got = qp.solve(&linear, &Array1::zeros(2)).unwrap();
        assert_eq!(got.point.to_vec(), vec![0.3, 0.5]);

        let bad = BoxQp { hessian: -Array2::<f64>::eye(2), ..qp.clone() };
        let error = bad.solve(&linear, &Array1::zeros(2)).unwrap_err();
        assert!(matches!(error, ExpertError::NotPositiveDefinite { .. }));

        let nan = Array1::from(vec![f64::NAN, 0.0]);
        assert!(matches!(
            BoxQp { lower: -Array1::<f64>::ones(2), upper: Array1::ones(2), ..qp }
                .solve(&nan, &Array1::zeros(2)),
            Err(ExpertError::NotSolved { .. })
        ));
    }
}
