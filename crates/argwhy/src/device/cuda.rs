//! NVIDIA's GPUs.

use super::{Examined, Unusable};
use argwhy_core::backend::Backend;
use argwhy_core::operator::KernelOperator;
use argwhy_core::{Error as CoreError, Kernel};
use argwhy_cuda::{CudaBackend, CudaOperator, Device, Error as CudaError};
use ndarray::Array2;
use std::sync::Arc;

/// A GPU as a backend.
pub(super) fn open(ordinal: usize, limit: Option<u64>) -> Result<Arc<dyn Backend>, Unusable> {
    Ok(Arc::new(CudaBackend::new(ordinal, limit).map_err(unusable)?))
}

/// The same for kernels it has a form for, and samples that fit.
pub(super) fn open_for(
    ordinal: usize,
    limit: Option<u64>,
    kernel: &Kernel,
    [n_samples, n_features]: [usize; 2],
) -> Result<Arc<dyn Backend>, Unusable> {
    let backend = CudaBackend::new(ordinal, limit).map_err(unusable)?;
    backend.check(kernel, n_samples, n_features).map_err(unusable)?;
    Ok(Arc::new(backend))
}

fn unusable(error: CudaError) -> Unusable {
    let what = error.to_string();
    match error {
        CudaError::NoDriver | CudaError::NoDevice { .. } => Unusable::Absent(what),
        CudaError::Kernel { .. } => Unusable::Kernel(what),
        _ => Unusable::Failed(what),
    }
}

/// Runs a kernel on the first GPU and compares it with the definition. Where there is none, why.
pub(super) fn examine() -> Result<Examined, String> {
    let in_words = |error: CudaError| error.to_string();
    let device = Device::new(0).map_err(in_words)?;
    let what = device.probe().map_err(in_words)?.to_string();
    let wave = |i: usize, j: usize| ((i * 7 + j * 13) as f64 * 0.618).sin() + 0.1 * j as f64;
    let features = Array2::from_shape_fn((300, 20), |(i, j)| wave(i, j));
    let v = Array2::from_shape_fn((2, 300), |(i, j)| wave(i, j));
    let kernel = Kernel::Rbf { gamma: 0.05 };
    let row = |i: usize| features.row(i).to_vec();
    let gram = Array2::from_shape_fn((300, 300), |(i, j)| kernel.evaluate(&row(i), &row(j)));
    let expected = v.dot(&gram);
    let largest = |a: &Array2<f64>| a.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    let run = || {
        let operator = CudaOperator::new(&device, features.view(), &kernel, true, 1e-11)?;
        let mut off = [0.0; 2];
        for (off, operator) in
            off.iter_mut().zip([&operator as &dyn KernelOperator, operator.exact()])
        {
            let mut out = Array2::zeros(v.dim());
            operator.apply(v.view(), out.view_mut())?;
            *off = largest(&(&out - &expected)) / largest(&expected);
        }
        Ok(off)
    };
    let off = run().map_err(|error: CoreError| error.to_string())?;
    Ok(Examined { what, off })
}
