//! A worker's side: the samples, packed, and parts of products with their kernel matrix.

use crate::job::{Job, fingerprint};
use argwhy_core::Error;
use argwhy_core::operator::{HostOperator, KernelOperator, OperatorKind, PartialProduct};
use ndarray::{Array2, ArrayView2, Axis};
use std::ops::Range;

const NAME: &str = "ray";

/// The kernel matrix of all samples as one worker holds it: N·d numbers, no kernel values.
pub struct Shard {
    operator: HostOperator,
}

impl Shard {
    /// From the features themselves. Fails where they are not the driver's.
    pub fn new(job: &Job, features: ArrayView2<'_, f64>) -> Result<Self, Error> {
        if features.nrows() != job.n_samples || fingerprint(features) != job.fingerprint {
            let what = format!(
                "{} samples were read here that are not the {} of the driver; give every worker \
                 the file that the driver reads, and read it the same way",
                features.nrows(),
                job.n_samples
            );
            return Err(Error::Backend { backend: NAME.to_owned(), what });
        }
        let kind = OperatorKind::Tiled;
        let operator = HostOperator::with_accuracy(
            features,
            job.kernel.clone(),
            job.precision,
            kind,
            job.accuracy,
        )?;
        Ok(Self { operator })
    }

    /// From the data's signals, of which `rows` are the samples.
    pub fn from_signals(
        job: &Job,
        signals: ArrayView2<'_, f64>,
        rows: &[usize],
    ) -> Result<Self, Error> {
        if let Some(row) = rows.iter().find(|&&row| row >= signals.nrows()) {
            let what = format!(
                "the data here has {} rows, and the driver asks for row {row}; give every worker \
                 the file that the driver reads",
                signals.nrows()
            );
            return Err(Error::Backend { backend: NAME.to_owned(), what });
        }
        let features = job.map.transform(signals.select(Axis(0), rows).view())?;
        Self::new(job, features.view())
    }

    /// Samples of the matrix.
    pub fn n_samples(&self) -> usize {
        self.operator.n_samples()
    }

    /// Parts of a product.
    pub fn n_parts(&self) -> usize {
        HostOperator::n_parts(self.n_samples())
    }

    /// Whether values in the job's precision are single.
    pub fn is_single(&self) -> bool {
        self.operator.is_single()
    }

    /// One part of v·K.
    pub fn part(&self, part: usize, exact: bool, v: ArrayView2<'_, f64>) -> PartialProduct {
        self.operator(exact).part(part, v)
    }

    /// κ between samples and columns, samples.len() × columns.len().
    pub fn rows(&self, samples: &[usize], columns: Range<usize>) -> Result<Array2<f64>, Error> {
        let shape = (samples.len(), columns.len());
        let mut out = vec![0.0; shape.0 * shape.1];
        self.operator.rows_into(samples, columns, &mut out)?;
        Ok(Array2::from_shape_vec(shape, out).expect("as many values as the shape says"))
    }

    /// v·K\[samples, columns\], columns from a multiple of [`COLUMNS`](Self::COLUMNS) on.
    pub fn columns(
        &self,
        samples: &[usize],
        exact: bool,
        v: ArrayView2<'_, f64>,
        columns: Range<usize>,
    ) -> Array2<f64> {
        let mut out = Array2::zeros((v.nrows(), columns.len()));
        let operator = self.operator(exact);
        operator.add_columns_from(columns.start, samples, v, out.view_mut());
        out
    }

    /// Columns that are computed together.
    pub const COLUMNS: usize = HostOperator::COLUMNS;

    fn operator(&self, exact: bool) -> &HostOperator {
        if exact { self.operator.exact_host() } else { &self.operator }
    }
}
