//! The part of a kernel that is an inner product of few numbers: w aᵀb + c beside a kernel of
//! distances.
//!
//! In a sum such a part is not computed pair by pair: its matrix is w ZZᵀ + c 11ᵀ, of rank d + 1,
//! and what it adds to a product or to a decision costs d numbers a sample instead of N.

use super::Kernel;
use ndarray::{Array2, ArrayView2};
use serde::{Deserialize, Serialize};

/// w aᵀb + c, of features divided by length scales where there are any.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Trend {
    /// w.
    pub(crate) slope: f64,
    /// c.
    pub(crate) level: f64,
    length_scales: Option<Vec<f64>>,
}

impl Trend {
    /// The features whose inner products count.
    pub(crate) fn features(&self, features: ArrayView2<'_, f64>) -> Array2<f64> {
        let mut scaled = features.as_standard_layout().into_owned();
        if let Some(length_scales) = &self.length_scales {
            for mut row in scaled.rows_mut() {
                row.iter_mut().zip(length_scales).for_each(|(z, l)| *z /= l);
            }
        }
        scaled
    }

    /// The rank of its matrix, for so many features.
    pub(crate) fn n_rows(&self, n_features: usize) -> usize {
        let slopes = if self.slope > 0.0 { n_features } else { 0 };
        slopes + usize::from(self.level > 0.0)
    }

    /// The law that coefficients (n × decision_dim) of samples with these features stand for: a row
    /// a feature, and a last one for the level.
    pub(crate) fn law(&self, features: ArrayView2<'_, f64>, alpha: &Array2<f64>) -> Array2<f64> {
        let d = features.ncols();
        let mut law = Array2::zeros((d + 1, alpha.ncols()));
        for (z, a) in features.rows().into_iter().zip(alpha.rows()) {
            for (k, z) in z.iter().chain([&1.0]).enumerate() {
                law.row_mut(k).scaled_add(*z, &a);
            }
        }
        for k in 0..d {
            let scale = self.length_scales.as_ref().map_or(1.0, |scales| scales[k] * scales[k]);
            law.row_mut(k).mapv_inplace(|v| v * self.slope / scale);
        }
        law.row_mut(d).mapv_inplace(|v| v * self.level);
        law
    }

    fn add(&mut self, kernel: &Kernel, weight: f64) -> bool {
        match kernel {
            Kernel::Linear => self.slope += weight,
            Kernel::Constant => self.level += weight,
            Kernel::Polynomial { degree: 1, gamma, offset } => {
                self.slope += weight * gamma;
                self.level += weight * offset;
            }
            Kernel::Scaled { weight: own, kernel } => return self.add(kernel, weight * own),
            _ => return false,
        }
        true
    }
}

impl Kernel {
    /// What is left of a sum without its constant and linear terms, which no product computes pair
    /// by pair; itself where there are none, or nothing else.
    #[must_use]
    pub fn without_trend(&self) -> Self {
        self.split_trend().map_or_else(|| self.clone(), |(rest, _)| rest)
    }

    /// A sum taken apart into its trend and the rest; none where it has no such parts, or no
    /// others.
    pub(crate) fn split_trend(&self) -> Option<(Self, Trend)> {
        match self {
            Self::Sum { terms } => {
                let mut trend = Trend { slope: 0.0, level: 0.0, length_scales: None };
                let mut rest = Vec::new();
                for term in terms {
                    // A sum within a sum is left as it is: nobody writes one.
                    if !trend.add(term, 1.0) {
                        rest.push(term.clone());
                    }
                }
                let found = rest.len() < terms.len() && !rest.is_empty();
                let rest = match <[Self; 1]>::try_from(rest) {
                    Ok([one]) => one,
                    Err(terms) => Self::Sum { terms },
                };
                found.then_some((rest, trend))
            }
            Self::Anisotropic { length_scales, kernel } => {
                let (rest, trend) = kernel.split_trend()?;
                let length_scales = length_scales.clone();
                let rest = Self::Anisotropic {
                    length_scales: length_scales.clone(),
                    kernel: Box::new(rest),
                };
                Some((rest, Trend { length_scales: Some(length_scales), ..trend }))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaled(weight: f64, kernel: Kernel) -> Kernel {
        Kernel::Scaled { weight, kernel: Box::new(kernel) }
    }

    /// The parts add up to the whole, whatever is in it.
    #[test]
    fn a_sum_is_its_trend_and_the_rest() {
        let rbf = Kernel::Rbf { gamma: 0.3 };
        let affine = Kernel::Polynomial { degree: 1, gamma: 0.5, offset: 2.0 };
        let sum = |terms: Vec<Kernel>| Kernel::Sum { terms };
        let scales = vec![2.0, 0.5, 3.0];
        let cases = [
            sum(vec![rbf.clone(), Kernel::Linear]),
            sum(vec![Kernel::Constant, rbf.clone(), scaled(0.2, Kernel::Constant)]),
            sum(vec![scaled(0.1, affine.clone()), rbf.clone(), scaled(0.3, Kernel::Linear)]),
            sum(vec![rbf.clone(), Kernel::Laplace { gamma: 0.2 }, affine.clone()]),
            Kernel::Anisotropic {
                length_scales: scales,
                kernel: Box::new(sum(vec![affine.clone(), rbf.clone()])),
            },
        ];
        let (a, b) = ([1.0, -2.0, 0.5], [0.3, 0.7, -1.1]);
        for kernel in cases {
            let (rest, trend) = kernel.split_trend().expect("it has both");
            let z = trend.features(ndarray::array![[1.0, -2.0, 0.5], [0.3, 0.7, -1.1]].view());
            let own = trend.slope * z.row(0).dot(&z.row(1)) + trend.level;
            assert!((rest.evaluate(&a, &b) + own - kernel.evaluate(&a, &b)).abs() < 1e-14);
        }
        for whole in [rbf.clone(), affine.clone(), sum(vec![rbf.clone(), rbf]), sum(vec![affine])] {
            assert_eq!(whole.split_trend(), None);
        }
    }
}
