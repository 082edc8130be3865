//! What can go wrong with a GPU, each in one sentence that says what to do.

use cudarc::driver::DriverError;
use cudarc::driver::sys::CUresult;
use thiserror::Error;

/// Why the GPU cannot be used, or stopped being of use. The host can always take over.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// libcuda is not installed.
    #[error("there is no NVIDIA driver on this machine (libcuda was not found); use the CPU")]
    NoDriver,
    /// The driver is older than the embedded kernels.
    #[error(
        "the NVIDIA driver supports CUDA {found} and {needed} is needed; update the driver or use \
         the CPU"
    )]
    OldDriver {
        /// CUDA version of the driver.
        found: String,
        /// The oldest that will do.
        needed: String,
    },
    /// No GPU has this number.
    #[error(
        "there is no GPU number {ordinal}: the driver sees {count}; choose another or use the CPU"
    )]
    NoDevice {
        /// Number asked for, from 0.
        ordinal: usize,
        /// GPUs there are.
        count: usize,
    },
    /// The GPU lacks instructions that the kernels need.
    #[error(
        "{name} has compute capability {found} and 8.0 (Ampere) or later is needed; choose another \
         GPU or use the CPU"
    )]
    OldDevice {
        /// Name of the GPU.
        name: String,
        /// Its compute capability.
        found: String,
    },
    /// An allocation does not fit.
    #[error(
        "{what} needs {needed} bytes on the GPU and {free} are free; free memory there, use fewer \
         samples or the CPU"
    )]
    NoMemory {
        /// What was to be stored.
        what: &'static str,
        /// Its size.
        needed: usize,
        /// What was free.
        free: usize,
    },
    /// The GPU does not answer any more.
    #[error(
        "the GPU stopped working while {doing} ({code}); what it held is lost, start again or use \
         the CPU"
    )]
    Lost {
        /// What it was doing.
        doing: &'static str,
        /// The driver's code.
        code: String,
    },
    /// The driver refused a call.
    #[error("the NVIDIA driver failed while {doing} ({code}); use the CPU and report this")]
    Driver {
        /// What was to be done.
        doing: &'static str,
        /// The driver's code.
        code: String,
    },
    /// The kernel has parts without a GPU form.
    #[error("{kernel} cannot be computed on the GPU; use the CPU for it")]
    Kernel {
        /// The part in question.
        kernel: String,
    },
    /// An array does not fit the samples.
    #[error("{what} has shape {found:?} and {expected} is needed")]
    Shape {
        /// Name of the array.
        what: &'static str,
        /// Rows and columns found.
        found: (usize, usize),
        /// What fits, in words.
        expected: String,
    },
    /// A row was asked for that does not exist.
    #[error("row {row} was asked for and there are {n_samples} samples")]
    Row {
        /// Row, from 0.
        row: usize,
        /// Samples there are.
        n_samples: usize,
    },
    /// A value is NaN or infinite.
    #[error(
        "{what} has the value {value} at row {row}, column {column}; every value must be finite"
    )]
    NotFinite {
        /// Name of the array.
        what: &'static str,
        /// Row, from 0.
        row: usize,
        /// Column, from 0.
        column: usize,
        /// The value.
        value: f64,
    },
    /// Nothing is positive definite any more.
    #[error("kernel values are too large for the GPU's preconditioner; scale them or use the CPU")]
    Overflow,
    /// Features too far apart for f16.
    #[error(
        "feature {column} lies {distance:e} length scales from its mean at row {row}, beyond the \
         GPU's 6e4; scale or clip it, or use the CPU"
    )]
    Range {
        /// Row, from 0.
        row: usize,
        /// Column, from 0.
        column: usize,
        /// In units in which the kernel's exponent is a plain inner product.
        distance: f64,
    },
}

impl Error {
    /// The driver's answer to something other than an allocation.
    pub(crate) fn from_driver(doing: &'static str, error: DriverError) -> Self {
        let code = format!("{:?}", error.0);
        if is_lost(error.0) { Self::Lost { doing, code } } else { Self::Driver { doing, code } }
    }
}

/// After these the context is of no use any more.
fn is_lost(code: CUresult) -> bool {
    matches!(
        code,
        CUresult::CUDA_ERROR_DEVICE_UNAVAILABLE
            | CUresult::CUDA_ERROR_ECC_UNCORRECTABLE
            | CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
            | CUresult::CUDA_ERROR_LAUNCH_FAILED
            | CUresult::CUDA_ERROR_LAUNCH_TIMEOUT
            | CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR
            | CUresult::CUDA_ERROR_UNKNOWN
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_that_disappears_is_told_from_a_call_that_is_refused() {
        let error = |code| Error::from_driver("multiplying", DriverError(code)).to_string();
        let lost = error(CUresult::CUDA_ERROR_ECC_UNCORRECTABLE);
        assert!(lost.starts_with("the GPU stopped working while multiplying"), "{lost}");
        let refused = error(CUresult::CUDA_ERROR_INVALID_VALUE);
        assert!(
            refused.contains("failed while multiplying (CUDA_ERROR_INVALID_VALUE)"),
            "{refused}"
        );
    }
}
