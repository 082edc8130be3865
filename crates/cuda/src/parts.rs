//! What one of several machines computes of a product, on its GPU.

use crate::device::Device;
use crate::fused::Precision;
use crate::operator::{CudaOperator, failed};
use crate::recipe::Recipe;
use crate::rounding::Rounded;
use argwhy_core::operator::{InParts, PartialProduct};
use argwhy_core::{Error as CoreError, Kernel};
use ndarray::{Array2, ArrayView2, s};
use std::ops::Range;

/// One of the parts that a product is cut into: pairs (a, b) of groups of samples, a ≤ b, of some
/// groups a that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    number: usize,
    n_parts: usize,
}

impl Part {
    /// All of it.
    pub(crate) const WHOLE: Self = Self { number: 0, n_parts: 1 };

    /// Whether what belongs to no pair is in it.
    pub(crate) fn is_first(self) -> bool {
        self.number == 0
    }

    /// Its groups a. Parts have about as many pairs each.
    pub(crate) fn groups(self, n_groups: usize) -> Range<usize> {
        // Groups a < g have g·n − g(g − 1)/2 pairs.
        let end = |part: usize| {
            let wanted = (n_groups * (n_groups + 1) / 2) as u128 * part as u128;
            let has = |g: usize| ((g * (2 * n_groups + 1 - g)) / 2) as u128;
            (0..=n_groups).find(|g| has(*g) * self.n_parts as u128 >= wanted).unwrap_or(n_groups)
        };
        end(self.number)..end(self.number + 1)
    }
}

/// The kernel matrix of all samples on the GPU of one of several machines.
pub struct CudaParts {
    operator: CudaOperator,
    n_parts: usize,
    single: bool,
}

impl CudaParts {
    /// Samples with `features`, of products in so many parts; `single`: whether values while
    /// iterating are in single precision. Fails where the kernel or the GPU has no products by
    /// pairs: see [`offers`](Self::offers).
    pub fn new(
        device: &Device,
        features: ArrayView2<'_, f64>,
        kernel: &Kernel,
        (single, accuracy): (bool, f64),
        n_parts: usize,
    ) -> Result<Self, CoreError> {
        let operator = CudaOperator::new(device, features, kernel, single, accuracy)?;
        Ok(Self { operator, n_parts, single })
    }

    /// Whether products with so many samples go in parts.
    pub fn offers(kernel: &Kernel, n_samples: usize) -> bool {
        let recipe = Recipe::new(kernel);
        recipe.is_ok_and(|recipe| recipe.distances() == 1 && n_samples >= crate::exact::PAIRS_FROM)
    }

    /// What exact products of so many parts may be off by
    /// ([`KernelOperator::rounding`](argwhy_core::operator::KernelOperator::rounding)), as any
    /// machine computes it. Fails where only differences, which have no parts, would be as accurate
    /// as is asked for.
    pub fn rounding(
        features: ArrayView2<'_, f64>,
        kernel: &Kernel,
        accuracy: f64,
        n_parts: usize,
    ) -> Result<Vec<f64>, CoreError> {
        let recipe = Recipe::new(kernel).map_err(failed)?;
        let scaled = recipe.scaled(features).map_err(failed)?;
        let rounded = Rounded::new(&recipe, scaled.view(), accuracy);
        if rounded.centred {
            return Ok(rounded.envelope_of(n_parts));
        }
        let kernel = "a kernel this narrow, on the GPUs of several machines,".to_owned();
        Err(failed(crate::Error::Kernel { kernel }))
    }
}

impl InParts for CudaParts {
    fn n_samples(&self) -> usize {
        self.operator.products().n_samples()
    }

    fn is_single(&self) -> bool {
        self.single
    }

    fn part(
        &self,
        part: usize,
        exact: bool,
        v: ArrayView2<'_, f64>,
    ) -> Result<PartialProduct, CoreError> {
        let precision = (!exact && self.operator.is_working()).then_some(Precision::Fine);
        let part = Part { number: part, n_parts: self.n_parts };
        let found = self.operator.products().apply_part(v, precision, part).map_err(failed)?;
        // Samples before the first group get nothing, whatever the size of groups.
        let first = found
            .columns()
            .into_iter()
            .position(|column| column.iter().any(|value| *value != 0.0))
            .unwrap_or(found.ncols());
        Ok(PartialProduct { first, values: found.slice(s![.., first..]).to_owned() })
    }

    fn rows(&self, samples: &[usize], columns: Range<usize>) -> Result<Array2<f64>, CoreError> {
        let products = self.operator.products();
        if self.single {
            let found = products.between::<f32>(samples, columns).map_err(failed)?;
            return Ok(found.mapv(f64::from));
        }
        products.between::<f64>(samples, columns).map_err(failed)
    }

    fn columns(
        &self,
        samples: &[usize],
        _: bool,
        v: ArrayView2<'_, f64>,
        columns: Range<usize>,
    ) -> Result<Array2<f64>, CoreError> {
        if samples.is_empty() || columns.is_empty() {
            return Ok(Array2::zeros((v.nrows(), columns.len())));
        }
        self.operator.products().apply_some_between(samples, v, columns).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_all_groups_once_with_about_as_many_pairs() {
        for (n_groups, n_parts) in [(1, 1), (33, 16), (200, 32), (1954, 128), (7, 16)] {
            let parts = (0..n_parts).map(|number| Part { number, n_parts }.groups(n_groups));
            let parts: Vec<Range<usize>> = parts.collect();
            assert_eq!(parts[0].start, 0);
            assert_eq!(parts[n_parts - 1].end, n_groups);
            assert!(parts.windows(2).all(|pair| pair[0].end == pair[1].start));
            let pairs = |part: &Range<usize>| part.clone().map(|a| n_groups - a).sum::<usize>();
            let most = parts.iter().map(pairs).max().unwrap_or(0);
            assert!(most <= n_groups * (n_groups + 1) / 2 / n_parts + 2 * n_groups, "{n_groups}");
        }
        assert_eq!(Part::WHOLE.groups(77), 0..77);
    }

    #[test]
    fn kernels_of_the_one_norm_and_few_samples_have_no_parts() {
        let rbf = Kernel::Rbf { gamma: 0.1 };
        assert!(CudaParts::offers(&rbf, 20_000));
        assert!(!CudaParts::offers(&rbf, 10_000));
        assert!(!CudaParts::offers(&Kernel::Laplace { gamma: 0.1 }, 20_000));
        let features = Array2::from_shape_fn((40, 3), |(i, j)| (i * 7 + j) as f64);
        let envelope = |n| CudaParts::rounding(features.view(), &rbf, 1e-9, n).unwrap();
        assert!(envelope(128).iter().zip(envelope(1)).all(|(more, less)| *more > less));
        let narrow = Kernel::Rbf { gamma: 1e6 };
        let error = CudaParts::rounding(features.view(), &narrow, 1e-15, 16).unwrap_err();
        assert!(error.to_string().contains("narrow"), "{error}");
    }
}
