//! Where kernel values are computed: the one place that knows which machines there are.
//!
//! Enters: the settings and the size of a fit, or a model. Leaves: a backend, with a sentence where
//! it is not the one that was to be used.

use crate::error::Error;
use crate::plan::Sizes;
use crate::settings::{DeviceChoice, FitSettings, OperatorChoice};
use argwhy_core::backend::{Backend, Host};
use argwhy_core::predict::BatchPredictor;
use argwhy_core::{Error as CoreError, Model};
use std::sync::Arc;

// A driver is a shared library, which a static program can't load: there its programs would be a
// megabyte of ballast.
#[cfg(not(target_env = "musl"))]
mod cuda;
#[cfg(target_env = "musl")]
mod no_gpu;
#[cfg(not(target_env = "musl"))]
use cuda as gpu;
#[cfg(target_env = "musl")]
use no_gpu as gpu;

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
    let found = gpu::open_for(ordinal, limit, &kernel, [sizes.n_samples, sizes.n_features]);
    match (found, settings.device) {
        (Ok(backend), _) => Ok(Chosen { backend, note: None }),
        // What was not asked for by name and isn't there is not worth a word.
        (Err(Unusable::Absent(_)), DeviceChoice::Auto) => Ok(Chosen::host(None)),
        (Err(Unusable::Kernel(what)), _) | (Err(Unusable::Failed(what)), DeviceChoice::Auto) => {
            Ok(Chosen::host(Some(format!("not on the GPU: {what}"))))
        }
        (Err(unusable), _) => Err(failed(unusable)),
    }
}

/// What decides on batches for `model`; none where that is the host. Only a GPU that is asked for
/// by name is used: the host gives each decision the same bits alone and in any batch.
pub fn batches(
    device: DeviceChoice,
    model: &Model,
) -> Result<Option<Box<dyn BatchPredictor>>, Error> {
    let DeviceChoice::Cuda(ordinal) = device else { return Ok(None) };
    let backend = gpu::open(ordinal, None).map_err(failed)?;
    Ok(backend.batch_predictor(model)?)
}

fn failed(unusable: Unusable) -> Error {
    let (backend, what) = ("cuda".to_owned(), unusable.into_words());
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
    gpu::examine()
}

/// Why a GPU is not used.
#[cfg_attr(target_env = "musl", allow(dead_code, reason = "a static build knows one answer"))]
enum Unusable {
    /// There is none.
    Absent(String),
    /// It has no form for the kernel.
    Kernel(String),
    /// It is there and does not work.
    Failed(String),
}

impl Unusable {
    fn into_words(self) -> String {
        match self {
            Self::Absent(what) | Self::Kernel(what) | Self::Failed(what) => what,
        }
    }
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
            n_factors: 0,
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
