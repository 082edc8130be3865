//! **From argmin to why.** An expert decides by minimising something nobody wrote down, inside
//! limits that everybody knows. From what it saw (signals) and what it decided (decisions) this
//! crate recovers that objective as a kernel model, with a duality-gap certificate, and then
//! decides like the expert in new situations, always inside the limits.
//!
//! ```
//! use argwhy::{Dataset, FitSettings, Pipeline, Predictor};
//! use argwhy_experts::{Expert, ExpertSettings, Quadrotor};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let pilot = Expert::new(Quadrotor::default(), ExpertSettings::default())?;
//! // What it saw, and how much thrust above hover it chose.
//! let demos = pilot.demonstrations(400, 0)?;
//! let bounds = Some(format!("{},{}", demos.lower[0], demos.upper[0]).parse()?);
//! let data = Dataset::new(demos.signals, demos.decisions)?;
//! let fit = Pipeline::new(FitSettings { bounds, ..FitSettings::default() })?.fit(&data)?;
//! assert!(fit.model.record.certificate.relative_gap <= 1e-6); // proven, not hoped
//! fit.save("pilot.argwhy")?;
//! let decisions = Predictor::new(&fit.model)?.predict(data.signals())?;
//! assert!(decisions.rows().into_iter().all(|u| fit.model.set.contains(&u.to_vec())));
//! # std::fs::remove_file("pilot.argwhy")?;
//! # Ok(())
//! # }
//! ```
//!
//! A kernel of your own:
//!
//! ```
//! use argwhy::{CustomKernel, FitSettings, Kernel, Pipeline, Predictor};
//!
//! struct Angles;
//!
//! impl CustomKernel for Angles {
//!     fn name(&self) -> &str {
//!         "angles"
//!     }
//!     fn evaluate(&self, a: &[f64], b: &[f64]) -> f64 {
//!         a.iter().zip(b).map(|(a, b)| 1.0 + (a - b).cos()).product()
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let signals = ndarray::Array2::from_shape_fn((40, 1), |(i, _)| i as f64 / 6.0);
//! # let data = argwhy::Dataset::new(signals.clone(), signals.mapv(f64::sin))?;
//! # let new_signals = signals.view();
//! let settings = FitSettings { kernel: Kernel::custom(Angles).into(), ..FitSettings::default() };
//! let fit = Pipeline::new(settings)?.fit(&data)?;
//! let decisions = Predictor::new(&fit.model)?.predict(new_signals)?;
//! # assert_eq!(decisions.dim(), (40, 1));
//! # Ok(())
//! # }
//! ```
//!
//! [`FitSettings`] has every option with its default. [`load`] reads npz, npy, csv and HDF5 files
//! into arrays; [`load_model`] and [`Fit::save`] keep models. The mathematics is in
//! [`argwhy_core`], layer by layer.

pub mod checkpoint;
pub mod describe;
pub mod device;
pub mod error;
pub mod explain;
pub mod judging;
pub mod machine;
pub mod notes;
pub mod pipeline;
pub mod plan;
pub mod reading;
pub mod settings;
pub mod sources;
pub mod tuning;
pub mod update;

pub use argwhy_core::kernel::CustomKernel;
pub use argwhy_core::{self as core, Backend, Dataset, DecisionSet, Kernel, Model, Predictor};
pub use argwhy_core::{familiarity, ranges};
pub use argwhy_io::{self as io, StoredModel, load, load_model};
pub use checkpoint::{Checkpoints, Start};
pub use error::Error;
pub use judging::{Judgement, Judging, Verdict};
pub use pipeline::{Fit, Pipeline, Progress, Silent};
pub use plan::Plan;
pub use reading::{ToFit, load_for_fit};
pub use settings::FitSettings;
pub use sources::{DataSources, Provenance};
pub use update::{Changes, Updated};
