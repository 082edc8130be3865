//! What features and vectors must be.

use crate::error::Error;
use crate::fused::{LARGEST_FEATURE, feature_scale};
use crate::recipe::{Kind, Recipe};
use ndarray::{ArrayView2, Axis};
use rayon::prelude::*;

/// Numbers that one core checks at a time.
const CHECKED_TOGETHER: usize = 1 << 16;

/// Fails where features cannot be prepared; their means otherwise.
pub(super) fn check_features(
    recipe: &Recipe,
    features: ArrayView2<'_, f64>,
    working: bool,
) -> Result<Vec<f64>, Error> {
    if features.is_empty() {
        let expected = "at least one row and column".to_owned();
        return Err(Error::Shape { what: "features", found: features.dim(), expected });
    }
    check_finite("features", features)?;
    // Distances do not change, and ‖a‖² + ‖b‖² − 2aᵀb cancels least around the mean.
    let means = features.mean_axis(Axis(0)).expect("there are rows").to_vec();
    if working {
        for term in recipe.terms.iter().filter(|term| term.kind != Kind::Laplace) {
            check_range(features, &means, feature_scale(term))?;
        }
    }
    Ok(means)
}

pub(super) fn check_finite(what: &'static str, array: ArrayView2<'_, f64>) -> Result<(), Error> {
    let all_finite = |values: &[f64]| values.iter().all(|value| value.is_finite());
    let finite = match array.as_slice() {
        Some(values) => values.par_chunks(CHECKED_TOGETHER).all(all_finite),
        None => array.iter().all(|value| value.is_finite()),
    };
    if finite {
        return Ok(());
    }
    match array.indexed_iter().find(|(_, value)| !value.is_finite()) {
        None => Ok(()),
        Some(((row, column), value)) => Err(Error::NotFinite { what, row, column, value: *value }),
    }
}

/// Whether f16 holds features that are so far from their means.
pub(crate) fn check_range(
    features: ArrayView2<'_, f64>,
    means: &[f64],
    scale: f64,
) -> Result<(), Error> {
    let distance = |column: usize, z: f64| ((z - means[column]) * scale).abs();
    let beyond =
        |((_, column), z): &((usize, usize), &f64)| distance(*column, **z) > LARGEST_FEATURE;
    match features.indexed_iter().find(beyond) {
        None => Ok(()),
        Some(((row, column), z)) => {
            Err(Error::Range { row, column, distance: distance(column, *z) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn features_that_f16_cannot_hold_are_named() {
        let features = array![[0.0, 1.0], [0.0, 2e5]];
        let message = check_range(features.view(), &[0.0, 1.0], 1.0).unwrap_err().to_string();
        assert!(message.starts_with("feature 1 lies 1.99999e5 length scales"), "{message}");
        assert!(check_range(features.view(), &[0.0, 1.0], 0.1).is_ok());
    }

    #[test]
    fn values_that_are_not_finite_are_named() {
        let message = check_finite("v", array![[0.0], [f64::NAN]].view()).unwrap_err().to_string();
        assert_eq!(message, "v has the value NaN at row 1, column 0; every value must be finite");
    }
}
