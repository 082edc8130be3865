//! Products of which several machines compute a part each.

use super::{HostOperator, KernelOperator, PartialProduct};
use crate::error::Error;
use ndarray::{Array2, ArrayView2};
use std::ops::Range;

/// A kernel matrix as one of several machines holds it: all samples, no kernel values. Every answer
/// depends on the arguments alone, so that it does not matter which machine gives it.
pub trait InParts: Send + Sync {
    /// Samples of the matrix.
    fn n_samples(&self) -> usize;

    /// Whether [`rows`](Self::rows) are in single precision.
    fn is_single(&self) -> bool;

    /// One part of v·K, of those that [`HostOperator::n_parts`] counts: added first to last, they
    /// are all of it.
    fn part(
        &self,
        part: usize,
        exact: bool,
        v: ArrayView2<'_, f64>,
    ) -> Result<PartialProduct, Error>;

    /// κ between samples and columns, samples.len() × columns.len().
    fn rows(&self, samples: &[usize], columns: Range<usize>) -> Result<Array2<f64>, Error>;

    /// v·K\[samples, columns\], columns from a multiple of [`HostOperator::COLUMNS`] on.
    fn columns(
        &self,
        samples: &[usize],
        exact: bool,
        v: ArrayView2<'_, f64>,
        columns: Range<usize>,
    ) -> Result<Array2<f64>, Error>;

    /// The matrix of some of the samples alone; none where it has no such thing.
    fn part_of(&self, _samples: &[usize]) -> Result<Option<Box<dyn KernelOperator>>, Error> {
        Ok(None)
    }
}

impl InParts for HostOperator {
    fn n_samples(&self) -> usize {
        KernelOperator::n_samples(self)
    }

    fn is_single(&self) -> bool {
        Self::is_single(self)
    }

    fn part(
        &self,
        part: usize,
        exact: bool,
        v: ArrayView2<'_, f64>,
    ) -> Result<PartialProduct, Error> {
        Ok(Self::part(of(self, exact), part, v))
    }

    fn rows(&self, samples: &[usize], columns: Range<usize>) -> Result<Array2<f64>, Error> {
        let shape = (samples.len(), columns.len());
        let mut out = vec![0.0; shape.0 * shape.1];
        self.rows_into(samples, columns, &mut out)?;
        Ok(Array2::from_shape_vec(shape, out).expect("as many values as the shape says"))
    }

    fn columns(
        &self,
        samples: &[usize],
        exact: bool,
        v: ArrayView2<'_, f64>,
        columns: Range<usize>,
    ) -> Result<Array2<f64>, Error> {
        let mut out = Array2::zeros((v.nrows(), columns.len()));
        of(self, exact).add_columns_from(columns.start, samples, v, out.view_mut());
        Ok(out)
    }

    fn part_of(&self, samples: &[usize]) -> Result<Option<Box<dyn KernelOperator>>, Error> {
        self.restrict(samples).map(Some)
    }
}

fn of(operator: &HostOperator, exact: bool) -> &HostOperator {
    if exact { operator.exact_host() } else { operator }
}
