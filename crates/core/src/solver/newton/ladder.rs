//! Down to a small λ from larger ones, where Newton's steps from nothing would be many.
//!
//! With a small λ the desired decisions of a start from nothing change sides sample by sample, and
//! the line search stops at each. The optimum of ten times the λ is near in what matters, on which
//! face each decision lies, and so on up to a λ whose problem is solved in a few steps (ADR 0018).

use super::{Answer, Assembled, Newton, NewtonSettings, Point};
use crate::error::Error;
use crate::problem::Problem;
use crate::solver::clock::{Clock, Within};
use crate::solver::outcome::Effort;
use ndarray::Array2;

/// trace(K − BᵀB)/λ from which the way leads over larger λ, and up to which a problem is easy to
/// solve from nothing.
const HARD: f64 = 1e6;
const EASY: f64 = 1e3;
/// From one λ to the next.
const RUNG: f64 = 10.0;
/// Relative gap to be reached before the next: with 1e-3 the last takes twice the products.
const RUNG_TOL: f64 = 1e-6;

/// Coefficients with their desired decisions.
type Start = (Array2<f64>, Array2<f64>);

/// Where to start from in place of nothing, and what it took to get there. Interrupted, as far as
/// it came.
pub(super) fn come_down(
    problem: &Problem,
    parts: &mut Assembled<'_>,
    settings: &NewtonSettings,
    mut start: Start,
    clock: &mut Clock<'_>,
) -> Result<(Start, Effort), Error> {
    let mut spent = Effort::default();
    for factor in rungs(parts.trace_left / problem.ridge()) {
        let eased = problem.clone().with_regularization(factor * problem.regularization())?;
        let left = settings.max_iterations.saturating_sub(spent.iterations);
        if left == 0 || clock.poll() || !parts.preconditioner.set_ridge(eased.ridge()) {
            break;
        }
        let own = NewtonSettings {
            tol: RUNG_TOL.max(settings.tol),
            max_iterations: left,
            time_limit: None,
            ..*settings
        };
        let mut within = Within(&mut *clock);
        let mut inner = Clock::new(None, &mut within);
        let point = Point::new(&eased, start.0, start.1)?;
        let newton = Newton::new(&eased, parts.lend(), &own, Answer::Coefficients);
        let outcome = newton.run(point, &mut inner)?;
        spent.iterations += outcome.iterations;
        spent.kernel_products += outcome.kernel_products;
        spent.rescued_decisions += outcome.rescued_decisions;
        start = (outcome.certified.coefficients, outcome.certified.desired);
    }
    parts.preconditioner.set_ridge(problem.ridge());
    Ok((start, spent))
}

/// Factors on λ, largest first; none for problems that are not hard.
fn rungs(hardness: f64) -> Vec<f64> {
    if hardness <= HARD || !hardness.is_finite() {
        return Vec::new();
    }
    let mut factors = vec![RUNG];
    while hardness / factors[0] > EASY {
        factors.insert(0, RUNG * factors[0]);
    }
    factors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hard_problems_are_come_upon_from_easy_ones() {
        assert!(rungs(0.0).is_empty() && rungs(HARD).is_empty());
        assert!(rungs(f64::INFINITY).is_empty());
        assert_eq!(rungs(4.8e6), [1e4, 1e3, 1e2, 1e1]);
        assert_eq!(rungs(2e7), [1e5, 1e4, 1e3, 1e2, 1e1]);
    }
}
