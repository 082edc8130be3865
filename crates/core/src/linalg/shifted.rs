//! Cholesky factors of matrices that rounding may have taken out of the positive definite ones.
//!
//! Enters: a matrix A ⪰ 0 up to rounding and a shift. Leaves: the factor of A + shift·I, the shift
//! grown until there is one.

/// How the shift grows.
#[derive(Clone, Copy)]
pub(crate) struct Growth {
    /// Times this, each time there is no factor.
    pub(crate) times: f64,
    /// Once it grows it is no less than this share of the largest entry of A's diagonal …
    pub(crate) least: f64,
    /// … and no more than this.
    pub(crate) most: f64,
}

/// Replaces the lower triangle of `matrix` (n × n) by the Cholesky factor of A + shift·I and
/// returns the shift; none where the largest that may be tried is too small. `fill` writes the
/// lower triangle of A, once for each shift that is tried.
pub(crate) fn cholesky_shifted<E>(
    (matrix, n): (&mut [f64], usize),
    mut shift: f64,
    growth: Growth,
    cholesky: impl Fn(&mut [f64], usize) -> bool,
    mut fill: impl FnMut(&mut [f64]) -> Result<(), E>,
) -> Result<Option<f64>, E> {
    loop {
        fill(matrix)?;
        let mut largest = f64::MIN_POSITIVE;
        for entry in matrix.iter_mut().step_by(n + 1) {
            largest = largest.max(entry.abs());
            *entry += shift;
        }
        if cholesky(matrix, n) {
            return Ok(Some(shift));
        }
        shift = (growth.times * shift).max(growth.least * largest);
        let is_hopeless = shift > growth.most * largest || !shift.is_finite();
        if is_hopeless || !largest.is_finite() {
            return Ok(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::dense::cholesky;
    use std::convert::Infallible;

    /// The shift that is found for a matrix, and how often that was written.
    fn shifted(a: [f64; 4], shift: f64, growth: Growth) -> (Option<f64>, usize) {
        let (mut matrix, mut tries) = (a, 0);
        let fill = |matrix: &mut [f64]| {
            matrix.copy_from_slice(&a);
            tries += 1;
            Ok::<(), Infallible>(())
        };
        let Ok(found) = cholesky_shifted((&mut matrix, 2), shift, growth, cholesky, fill);
        (found, tries)
    }

    #[test]
    fn the_shift_grows_until_there_is_a_factor() {
        let growth = Growth { times: 10.0, least: 1e-3, most: 1.0 };
        // Eigenvalues 3 and −1, the largest entry of the diagonal is one.
        let indefinite = [1.0, 2.0, 2.0, 1.0];
        assert_eq!(shifted([2.0, 0.0, 0.0, 1.0], 0.5, growth), (Some(0.5), 1));
        assert_eq!(shifted(indefinite, 0.2, Growth { most: 5.0, ..growth }), (Some(2.0), 2));
        assert_eq!(shifted(indefinite, 0.2, growth), (None, 1));
        // From nothing: 0, 0.002, 0.02, 0.2, 2.
        let (found, tries) = shifted(indefinite, 0.0, Growth { least: 2e-3, most: 5.0, ..growth });
        assert!(found.is_some_and(|shift| (shift - 2.0).abs() < 1e-12) && tries == 5);
        let (found, _) = shifted([f64::NAN, 0.0, 0.0, 1.0], 1.0, Growth { most: 1e9, ..growth });
        assert_eq!(found, None);
    }
}
