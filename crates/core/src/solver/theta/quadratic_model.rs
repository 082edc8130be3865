//! The least of the quadratic model of Φ over Θ ⪰ I.

use crate::error::Error;
use crate::problem::{at_least_identity, square};
use ndarray::Array2;

/// How many products with ∇² are worth their price.
#[derive(Clone, Copy)]
pub(super) struct ModelSteps {
    /// Of the power method.
    power: usize,
    /// Of the accelerated projected gradient method.
    gradient: usize,
}

impl ModelSteps {
    /// Where a product is one with a small matrix.
    pub(super) const CHEAP: Self = Self { power: 50, gradient: 20_000 };
    /// Where it takes the solution of a system.
    pub(super) const COSTLY: Self = Self { power: 6, gradient: 60 };
}

/// argmin over T ⪰ I of ⟨∇, T − Θ⟩ + ½⟨T − Θ, ∇²(T − Θ)⟩, by accelerated projected gradients with
/// restarts. `curvature` multiplies with ∇²; none of it where it was interrupted.
pub(super) fn minimise(
    theta: &Array2<f64>,
    gradient: &Array2<f64>,
    steps: ModelSteps,
    mut curvature: impl FnMut(&Array2<f64>) -> Result<Option<Array2<f64>>, Error>,
) -> Result<Option<Array2<f64>>, Error> {
    let n = theta.nrows();
    // The largest eigenvalue of ∇², by the power method.
    let mut v = Array2::from_shape_fn((n, n), |(i, j)| {
        f64::from(u8::from(i == j)) + 0.1 * ((i + j) as f64).sin()
    });
    let mut largest = 0.0_f64;
    for _ in 0..steps.power {
        v /= square(&v).sqrt();
        let Some(image) = curvature(&v)? else { return Ok(None) };
        largest = largest.max(square(&image).sqrt());
        v = image;
    }
    if largest == 0.0 || !largest.is_finite() {
        return Ok(Some(theta.clone()));
    }
    let step = 1.0 / (1.05 * largest);
    let (mut t, mut y, mut momentum) = (theta.clone(), theta.clone(), 1.0_f64);
    for _ in 0..steps.gradient {
        let Some(image) = curvature(&(&y - theta))? else { return Ok(None) };
        let next = at_least_identity(&(&y - &((gradient + &image) * step)))?;
        let change = &next - &t;
        // A step uphill from where the momentum has led: start it anew.
        if ((&y - &next) * &change).sum() > 0.0 {
            momentum = 1.0;
        }
        let following = f64::midpoint(1.0, (1.0 + 4.0 * momentum * momentum).sqrt());
        y = &next + &(&change * ((momentum - 1.0) / following));
        momentum = following;
        let small = square(&change).sqrt() <= 1e-13 * square(&next).sqrt();
        t = next;
        if small {
            break;
        }
    }
    Ok(Some(t))
}
