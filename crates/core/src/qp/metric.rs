//! The metric Θ of the objective uᵀΘu − 2gᵀu, factorised once for all problems that share it.

use crate::error::Error;
use crate::linalg::dense;
use ndarray::ArrayView2;
use std::sync::Arc;

/// Θ, symmetric and positive definite, with the inverse of its factor: Θ = LLᵀ and L⁻ᵀ. Cloning
/// shares both.
#[derive(Clone, Debug)]
pub struct Metric {
    n: usize,
    theta: Arc<[f64]>,
    /// L⁻ᵀ column-major; `None` for the identity, whose problems are plain projections.
    inverse_factor: Option<Arc<[f64]>>,
    /// Length of the longest column of L⁻ᵀ.
    reach: f64,
}

impl Metric {
    /// Θ = I: problems are projections.
    pub fn identity(n: usize) -> Self {
        Self { n, theta: identity(n).into(), inverse_factor: None, reach: 1.0 }
    }

    /// Factorises Θ. Refuses what is not square, finite, symmetric (to rounding) and positive
    /// definite.
    pub fn new(theta: ArrayView2<'_, f64>) -> Result<Self, Error> {
        let n = theta.nrows();
        if theta.ncols() != n {
            return Err(Error::Width {
                what: "theta_uu",
                owner: "a square matrix with as many rows",
                expected: n,
                found: theta.ncols(),
            });
        }
        if let Some(((row, column), &value)) = theta.indexed_iter().find(|(_, x)| !x.is_finite()) {
            return Err(Error::NotFinite { what: "theta_uu", row, column, value });
        }
        let refuse = |found: String| Error::Setting {
            name: "theta_uu",
            found,
            allowed: "a symmetric positive definite matrix",
        };
        let largest = theta.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
        for ((i, j), x) in theta.indexed_iter() {
            if (x - theta[[j, i]]).abs() > 1e-12 * largest {
                return Err(refuse(format!(
                    "not symmetric: entry ({i}, {j}) is {x} and entry ({j}, {i}) is {}",
                    theta[[j, i]]
                )));
            }
        }
        // One triangle decides, so that Θu and the factor speak of the same matrix.
        let symmetric: Vec<f64> =
            (0..n * n).map(|at| theta[[(at % n).max(at / n), (at % n).min(at / n)]]).collect();
        if symmetric == identity(n) {
            return Ok(Self::identity(n));
        }
        let mut factor = symmetric.clone();
        if !dense::cholesky(&mut factor, n) {
            return Err(refuse("not positive definite".to_owned()));
        }
        let mut inverse = identity(n);
        dense::back_substitute(&factor, n, &mut inverse, n);
        let lengths = inverse.chunks_exact(n).map(|column| super::dim::dot(column, column));
        let reach = lengths.fold(0.0, f64::max).sqrt();
        Ok(Self { n, theta: symmetric.into(), inverse_factor: Some(inverse.into()), reach })
    }

    /// Whether Θ is the identity.
    pub fn is_identity(&self) -> bool {
        self.inverse_factor.is_none()
    }

    /// Length of a decision.
    pub fn dim(&self) -> usize {
        self.n
    }

    /// Θ, n × n.
    pub fn theta(&self) -> ArrayView2<'_, f64> {
        ArrayView2::from_shape((self.n, self.n), &self.theta).expect("theta holds n × n numbers")
    }

    /// Writes Θu to `out`.
    pub fn apply(&self, u: &[f64], out: &mut [f64]) {
        if self.is_identity() {
            out.copy_from_slice(u);
            return;
        }
        // Symmetric, so its columns are its rows.
        for (out, column) in out.iter_mut().zip(self.theta.chunks_exact(self.n)) {
            *out = super::dim::dot(column, u);
        }
    }

    /// How long a row of length one can be in coordinates u = L⁻ᵀy, about: what its rounding there
    /// is relative to.
    pub(super) fn reach(&self) -> f64 {
        self.reach
    }

    /// L⁻ᵀ column-major, where it is not the identity.
    pub(super) fn inverse_factor(&self) -> Option<&[f64]> {
        self.inverse_factor.as_deref()
    }
}

fn identity(n: usize) -> Vec<f64> {
    let mut eye = vec![0.0; n * n];
    eye.iter_mut().step_by(n + 1).for_each(|x| *x = 1.0);
    eye
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array2, array};

    #[test]
    fn factor_inverts_theta() {
        let theta = array![[4.0, 2.0, 0.5], [2.0, 3.0, 0.0], [0.5, 0.0, 1.5]];
        let metric = Metric::new(theta.view()).unwrap();
        let inverse = Array2::from_shape_vec((3, 3), metric.inverse_factor().unwrap().to_vec());
        let l_inv = inverse.unwrap();
        let eye = l_inv.dot(&theta).dot(&l_inv.t());
        assert!((eye - Array2::<f64>::eye(3)).iter().all(|x| x.abs() < 1e-15));
        let mut out = [0.0; 3];
        metric.apply(&[1.0, -1.0, 2.0], &mut out);
        assert_eq!(out, [3.0, -1.0, 3.5]);
        assert_eq!(metric.theta(), theta);
    }

    #[test]
    fn the_identity_is_recognised() {
        assert!(Metric::new(Array2::eye(4).view()).unwrap().is_identity());
        assert!(!Metric::new((Array2::eye(4) * 2.0).view()).unwrap().is_identity());
    }

    #[test]
    fn refuses_what_is_no_metric() {
        let refused = |theta: Array2<f64>| Metric::new(theta.view()).unwrap_err();
        assert!(matches!(refused(Array2::ones((2, 3))), Error::Width { found: 3, .. }));
        assert!(matches!(refused(array![[1.0, f64::NAN], [0.0, 1.0]]), Error::NotFinite { .. }));
        assert!(refused(array![[1.0, 0.5], [0.0, 1.0]]).to_string().contains("not symmetric"));
        assert!(refused(array![[1.0, 2.0], [2.0, 1.0]]).to_string().contains("not positive"));
    }
}
