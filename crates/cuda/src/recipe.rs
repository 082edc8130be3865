//! A kernel as the GPU computes it: Σ wᵢ κᵢ(a, b) + w aᵀb + c, with κᵢ functions of a distance.

use crate::error::Error;
use argwhy_core::Kernel;
use ndarray::{ArrayView2, CowArray, Ix2};

/// As `KIND` in `kernels/fused.cu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Rbf = 0,
    Laplace = 1,
    Matern32 = 2,
    Matern52 = 3,
}

impl Kind {
    /// What multiplies γ to give the exponent (rbf, laplace) or the square under the root (Matérn).
    pub(crate) fn rate(self, gamma: f64) -> f64 {
        match self {
            Self::Rbf | Self::Laplace => gamma,
            Self::Matern32 => 6.0 * gamma,
            Self::Matern52 => 10.0 * gamma,
        }
    }
}

/// w κ(a, b).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Term {
    pub(crate) kind: Kind,
    pub(crate) weight: f64,
    pub(crate) gamma: f64,
}

/// Most terms of one kernel, `MAX_TERMS` in `kernels/exact.cu`.
pub(crate) const MAX_TERMS: usize = 8;

/// A kernel taken apart for the GPU.
#[derive(Clone, Debug, PartialEq)]
pub struct Recipe {
    pub(crate) terms: Vec<Term>,
    pub(crate) linear: f64,
    pub(crate) constant: f64,
    length_scales: Option<Vec<f64>>,
}

impl Recipe {
    /// Fails for kernels that the GPU has no form for: products, polynomials of degree 2 and more,
    /// kernels of the user's own, and length scales that only a part of a sum has.
    pub fn new(kernel: &Kernel) -> Result<Self, Error> {
        let (length_scales, inner) = match kernel {
            Kernel::Anisotropic { length_scales, kernel } => {
                (Some(length_scales.clone()), &**kernel)
            }
            _ => (None, kernel),
        };
        let mut recipe = Self { terms: Vec::new(), linear: 0.0, constant: 0.0, length_scales };
        recipe.add(inner, 1.0)?;
        if recipe.terms.len() > MAX_TERMS {
            let kernel = format!("a sum of {} kernels", recipe.terms.len());
            return Err(Error::Kernel { kernel });
        }
        Ok(recipe)
    }

    fn add(&mut self, kernel: &Kernel, weight: f64) -> Result<(), Error> {
        let term = |kind, gamma| Term { kind, weight, gamma };
        match kernel {
            Kernel::Rbf { gamma } => self.terms.push(term(Kind::Rbf, *gamma)),
            Kernel::Laplace { gamma } => self.terms.push(term(Kind::Laplace, *gamma)),
            Kernel::Matern32 { gamma } => self.terms.push(term(Kind::Matern32, *gamma)),
            Kernel::Matern52 { gamma } => self.terms.push(term(Kind::Matern52, *gamma)),
            Kernel::Linear => self.linear += weight,
            Kernel::Constant => self.constant += weight,
            Kernel::Polynomial { degree: 1, gamma, offset } => {
                self.linear += weight * gamma;
                self.constant += weight * offset;
            }
            Kernel::Scaled { weight: w, kernel } => self.add(kernel, weight * w)?,
            Kernel::Sum { terms } => {
                terms.iter().try_for_each(|kernel| self.add(kernel, weight))?;
            }
            other => return Err(Error::Kernel { kernel: format!("the kernel {other:?}") }),
        }
        Ok(())
    }

    /// Which distances the terms are functions of, as `DISTANCES` in `kernels/exact.cu`.
    pub(crate) fn distances(&self) -> usize {
        let bit = |term: &Term| if term.kind == Kind::Laplace { 2 } else { 1 };
        self.terms.iter().fold(0, |bits, term| bits | bit(term))
    }

    /// Whether there is a part w aᵀb + c.
    pub(crate) fn has_linear(&self) -> bool {
        self.linear != 0.0 || self.constant != 0.0
    }

    /// Whether features are divided by length scales.
    pub(crate) fn has_scales(&self) -> bool {
        self.length_scales.is_some()
    }

    /// Features divided by their length scales, row by row in memory; those given, uncopied, where
    /// that is what they are: a batch of signals has tens of megabytes of them.
    pub(crate) fn scaled<'a>(
        &self,
        features: ArrayView2<'a, f64>,
    ) -> Result<CowArray<'a, f64, Ix2>, Error> {
        let Some(scales) = &self.length_scales else {
            let in_order = features.is_standard_layout();
            let copy = || CowArray::from(features.as_standard_layout().into_owned());
            return Ok(if in_order { CowArray::from(features) } else { copy() });
        };
        if scales.len() != features.ncols() {
            let expected = format!("{} columns, one a length scale,", scales.len());
            return Err(Error::Shape { what: "features", found: features.dim(), expected });
        }
        let mut scaled = features.as_standard_layout().into_owned();
        for mut row in scaled.rows_mut() {
            row.iter_mut().zip(scales).for_each(|(z, scale)| *z /= scale);
        }
        Ok(CowArray::from(scaled))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaled(weight: f64, kernel: Kernel) -> Kernel {
        Kernel::Scaled { weight, kernel: Box::new(kernel) }
    }

    #[test]
    fn sums_are_taken_apart_with_their_weights() {
        let inner = Kernel::Sum {
            terms: vec![Kernel::Matern52 { gamma: 0.1 }, Kernel::linear_with_intercept()],
        };
        let kernel = Kernel::Sum { terms: vec![Kernel::Rbf { gamma: 0.5 }, scaled(2.0, inner)] };
        let recipe = Recipe::new(&kernel).unwrap();
        let term = |kind, weight, gamma| Term { kind, weight, gamma };
        let expected = [term(Kind::Rbf, 1.0, 0.5), term(Kind::Matern52, 2.0, 0.1)];
        assert_eq!(recipe.terms, expected);
        assert_eq!((recipe.linear, recipe.constant, recipe.distances()), (2.0, 2.0, 1));
    }

    #[test]
    fn kernels_without_a_gpu_form_are_named() {
        let product = Kernel::Product { factors: vec![Kernel::Linear, Kernel::Linear] };
        let squared = Kernel::Polynomial { degree: 2, gamma: 1.0, offset: 0.0 };
        for kernel in [product, squared] {
            let message = Recipe::new(&kernel).unwrap_err().to_string();
            assert!(message.contains("cannot be computed on the GPU; use the CPU"), "{message}");
        }
        let many = Kernel::Sum { terms: vec![Kernel::Rbf { gamma: 1.0 }; 9] };
        assert!(Recipe::new(&many).unwrap_err().to_string().contains("a sum of 9 kernels"));
    }

    #[test]
    fn length_scales_divide_the_features() {
        let kernel = Box::new(Kernel::Rbf { gamma: 1.0 });
        let kernel = Kernel::Anisotropic { length_scales: vec![2.0, 0.5], kernel };
        let recipe = Recipe::new(&kernel).unwrap();
        let features = ndarray::array![[2.0, 2.0], [4.0, 1.0]];
        let expected = ndarray::array![[1.0, 4.0], [2.0, 2.0]];
        assert_eq!(recipe.scaled(features.view()).unwrap(), expected);
        assert!(recipe.scaled(ndarray::array![[1.0]].view()).is_err());
    }

    #[test]
    fn features_in_order_are_not_copied_and_others_are_put_in_order() {
        let recipe = Recipe::new(&Kernel::Rbf { gamma: 1.0 }).unwrap();
        let features = ndarray::array![[1.0, 2.0], [3.0, 4.0]];
        assert!(recipe.scaled(features.view()).unwrap().is_view());
        let turned = recipe.scaled(features.t()).unwrap();
        assert_eq!(turned, ndarray::array![[1.0, 3.0], [2.0, 4.0]]);
        assert!(turned.is_standard_layout());
    }
}
