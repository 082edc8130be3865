//! A worker's side: the samples, packed, and parts of products with their kernel matrix.

use crate::job::{Job, fingerprint};
use argwhy_core::Error;
use argwhy_core::operator::{
    BlockTask, HostOperator, InParts, OperatorKind, PartialProduct, Precision,
};
use argwhy_core::solver::sso;
use argwhy_cuda::{CudaParts, Device};
use ndarray::{Array2, ArrayView2, Axis};
use std::ops::Range;

pub(crate) const NAME: &str = "ray";

/// The kernel matrix of all samples as one worker holds it: N·d numbers, no kernel values.
pub struct Shard {
    operator: Box<dyn InParts>,
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
        let operator = if job.on_gpu { on_gpu(job, features)? } else { on_cores(job, features)? };
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
    pub fn part(
        &self,
        part: usize,
        exact: bool,
        v: ArrayView2<'_, f64>,
    ) -> Result<PartialProduct, Error> {
        self.operator.part(part, exact, v)
    }

    /// κ between samples and columns, samples.len() × columns.len().
    pub fn rows(&self, samples: &[usize], columns: Range<usize>) -> Result<Array2<f64>, Error> {
        self.operator.rows(samples, columns)
    }

    /// v·K\[samples, columns\], columns from a multiple of [`COLUMNS`](Self::COLUMNS) on.
    pub fn columns(
        &self,
        samples: &[usize],
        exact: bool,
        v: ArrayView2<'_, f64>,
        columns: Range<usize>,
    ) -> Result<Array2<f64>, Error> {
        self.operator.columns(samples, exact, v, columns)
    }

    /// The answer to a task of [`Machines::blocks`](crate::Machines::blocks): a block of samples,
    /// solved.
    pub fn block(&self, task: &[u8]) -> Result<Vec<u8>, Error> {
        sso::answer(self.operator.as_ref(), &BlockTask::from_bytes(task)?)
    }

    /// Columns that are computed together.
    pub const COLUMNS: usize = HostOperator::COLUMNS;
}

fn on_cores(job: &Job, features: ArrayView2<'_, f64>) -> Result<Box<dyn InParts>, Error> {
    let Job { kernel, precision, accuracy, .. } = job;
    let kind = OperatorKind::Tiled;
    let operator =
        HostOperator::with_accuracy(features, kernel.clone(), *precision, kind, *accuracy)?;
    Ok(Box::new(operator))
}

/// The first GPU that this process sees: a cluster shows each worker its own.
fn on_gpu(job: &Job, features: ArrayView2<'_, f64>) -> Result<Box<dyn InParts>, Error> {
    let failed = |error: argwhy_cuda::Error| Error::Backend {
        backend: NAME.to_owned(),
        what: error.to_string(),
    };
    let device = Device::new(0).map_err(failed)?;
    let how = (job.precision == Precision::F32, job.accuracy);
    let n_parts = HostOperator::n_parts(job.n_samples);
    Ok(Box::new(CudaParts::new(&device, features, &job.kernel, how, n_parts)?))
}
