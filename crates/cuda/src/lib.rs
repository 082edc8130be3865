//! Products with kernel matrices on an NVIDIA GPU: K·V without K, in two precisions for iterations
//! and in f64 for certificates, and rows of K.
//!
//! Enters: features (n_samples × n_features) and a kernel. Leaves: products, the same bits in each
//! run on one kind of GPU. The crate builds and its tests pass where there is no CUDA at all: the
//! driver is loaded when a [`Device`] is asked for, and [`probe`] says in a sentence why there is
//! none. The kernels are CUDA C++ (`kernels/`), compiled ahead to PTX (`ptx/`, by
//! `kernels/build.py`) and embedded; the driver alone suffices to run them. Why all of this is as
//! it is: `docs/adr/0016-gpu.md`.
//!
//! ```no_run
//! use argwhy_core::Kernel;
//! use argwhy_cuda::{Device, Precision, Products};
//! # fn main() -> Result<(), argwhy_cuda::Error> {
//! let features = ndarray::Array2::<f64>::zeros((1000, 78));
//! let products = Products::new(&Device::new(0)?, features.view(), &Kernel::Rbf { gamma: 0.01 })?;
//! let v = ndarray::Array2::<f64>::ones((1000, 3));
//! let fast = products.apply(v.view(), Precision::Fast)?;
//! let exact = products.apply_exact(v.view())?;
//! # Ok(()) }
//! ```

mod backend;
mod device;
mod error;
mod exact;
mod factor;
mod fused;
mod linear;
mod operator;
mod panels;
mod parts;
mod plan;
mod predict;
mod products;
mod programs;
mod recipe;
mod rounding;

pub use backend::CudaBackend;
pub use device::{Device, Probe, probe};
pub use error::Error;
pub use exact::Entry;
pub use fused::Precision;
pub use operator::CudaOperator;
pub use parts::CudaParts;
pub use predict::CudaPredictor;
pub use products::{Columns, Prepared, Products};
pub use recipe::Recipe;
