//! Where kernel values are computed: the one place that knows which machines there are.
//!
//! Enters: the settings and the size of a fit, or a model. Leaves: a backend, with a sentence where
//! it is not the one that was to be used.

use crate::error::Error;
use crate::plan::Sizes;
use crate::settings::{DeviceChoice, FitSettings, OperatorChoice};
use argwhy_core::backend::{Backend, Host};
use argwhy_core::operator::KernelOperator;
use argwhy_core::predict::BatchPredictor;
use argwhy_core::{Error as CoreError, Kernel, Model};
use argwhy_cuda::{CudaBackend, CudaOperator, Device, Error as CudaError};
use ndarray::Array2;
use std::sync::Arc;

/// Samples from which on `auto` takes a GPU: with fewer, opening it takes longer than the fit.
pub const AUTO_SAMPLES: usize = 10_000;

/// A backend, and what is to be said about the choice.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// Where the fit runs.
    pub backend: Arc<dyn Backend>,
    /// Why it is not the GPU, where one was to be expected.
    pub note: Option<String>,
}

impl Chosen {
    fn host(note: Option<String>) -> Self {
        Self { backend: Arc::new(Host), note }
    }
}

/// The backend for a fit with kernel values. Fails where a GPU is asked for by name and can't be
/// used; kernels that it has no form for, and values that are to be stored, are the host's either
/// way.
pub fn choose(settings: &FitSettings, sizes: Sizes) -> Result<Chosen, Error> {
    let ordinal = match settings.device {
        DeviceChoice::Cpu => return Ok(Chosen::host(None)),
        DeviceChoice::Auto if sizes.n_samples < AUTO_SAMPLES => return Ok(Chosen::host(None)),
        DeviceChoice::Auto => 0,
        DeviceChoice::Cuda(ordinal) => ordinal,
    };
    if matches!(settings.operator, OperatorChoice::Stored | OperatorChoice::Compact) {
        let asked = settings.device != DeviceChoice::Auto;
        let note = "kernel values are stored on the CPU only, so the GPU is not used";
        return Ok(Chosen::host(asked.then(|| note.to_owned())));
    }
    let kernel = settings.kernel_for(sizes.n_features)?;
    let limit = settings.device_memory.map(|memory| memory.0);
    let found = CudaBackend::new(ordinal, limit).and_then(|backend| {
        backend.check(&kernel, sizes.n_samples, sizes.n_features)?;
        Ok(backend)
    });
    match (found, settings.device) {
        (Ok(backend), _) => Ok(Chosen { backend: Arc::new(backend), note: None }),
        // What was not asked for by name and isn't there is not worth a word.
        (Err(CudaError::NoDriver | CudaError::NoDevice { .. }), DeviceChoice::Auto) => {
            Ok(Chosen::host(None))
        }
        (Err(error @ CudaError::Kernel { .. }), _) | (Err(error), DeviceChoice::Auto) => {
            Ok(Chosen::host(Some(format!("not on the GPU: {error}"))))
        }
        (Err(error), _) => Err(failed(&error)),
    }
}

/// What decides on batches for `model`; none where that is the host. Only a GPU that is asked for
/// by name is used: the host gives each decision the same bits alone and in any batch.
pub fn batches(
    device: DeviceChoice,
    model: &Model,
) -> Result<Option<Box<dyn BatchPredictor>>, Error> {
    let DeviceChoice::Cuda(ordinal) = device else { return Ok(None) };
    let backend = CudaBackend::new(ordinal, None).map_err(|error| failed(&error))?;
    Ok(backend.batch_predictor(model)?)
}

fn failed(error: &CudaError) -> Error {
    let (backend, what) = ("cuda".to_owned(), error.to_string());
    Error::Core(CoreError::Backend { backend, what })
}

/// A GPU that was made to compute.
#[derive(Clone, Debug)]
pub struct Examined {
    /// What it is, in a sentence.
    pub what: String,
    /// The largest difference of a product while iterating, and of an exact one, from this
    /// machine's, as a share of the largest entry.
    pub off: [f64; 2],
}

/// Runs a kernel on the first GPU and compares it with the definition. Where there is none, why.
pub fn examine() -> Result<Examined, String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(n_samples: usize) -> Sizes {
        Sizes {
            n_loaded: n_samples,
            n_samples,
            signal_dim: 11,
            decision_dim: 3,
            n_features: 78,
            set_numbers: 6,
            coupled: false,
            learns_theta: false,
        }
    }

    fn with(device: DeviceChoice) -> FitSettings {
        FitSettings { device, ..FitSettings::default() }
    }

    #[test]
    fn the_cpu_and_small_fits_ask_for_no_gpu() {
        for (device, n) in [(DeviceChoice::Cpu, 1_000_000), (DeviceChoice::Auto, 9_999)] {
            let chosen = choose(&with(device), sizes(n)).unwrap();
            assert_eq!((chosen.backend.name(), chosen.note), ("host", None));
        }
    }

    /// By default a machine without a GPU says nothing new, whatever the size.
    #[test]
    fn auto_without_a_gpu_is_the_cpu_without_a_word() {
        if argwhy_cuda::probe(0).is_ok() {
            return;
        }
        let chosen = choose(&FitSettings::default(), sizes(1_000_000)).unwrap();
        assert_eq!((chosen.backend.name(), chosen.note), ("host", None));
    }

    #[test]
    fn a_gpu_asked_for_by_name_that_is_not_there_is_an_error_in_one_sentence() {
        let error = choose(&with(DeviceChoice::Cuda(99)), sizes(100)).unwrap_err().to_string();
        assert!(error.starts_with("the cuda backend failed: there is no "), "{error}");
        assert!(error.contains("use the CPU") && !error.contains('\n'), "{error}");
    }

    #[test]
    fn values_to_be_stored_stay_on_the_cpu_and_that_is_said_where_a_gpu_was_asked_for() {
        for (device, said) in [(DeviceChoice::Cuda(0), true), (DeviceChoice::Auto, false)] {
            let settings = FitSettings { operator: OperatorChoice::Stored, ..with(device) };
            let chosen = choose(&settings, sizes(20_000)).unwrap();
            assert_eq!((chosen.backend.name(), chosen.note.is_some()), ("host", said));
        }
    }

    #[test]
    fn an_examination_says_what_there_is_or_why_there_is_nothing() {
        match examine() {
            Ok(found) => assert!(found.off[0] < 1e-3 && found.off[1] < 1e-11, "{found:?}"),
            Err(why) => assert!(why.contains("use the CPU") && !why.contains('\n'), "{why}"),
        }
    }
}
