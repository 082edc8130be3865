//! The mathematics of argwhy: kernel inverse optimization, solved exactly and certified.
//!
//! An expert decides by minimising an unknown objective inside known limits. From its signals and
//! decisions this crate recovers the objective as a kernel model, proves how close to optimal the
//! model is, and decides like the expert. The modules stand in the order data passes through them,
//! and each imports only from those above it:
//!
//! [`wording`] → [`error`] → [`random`] → [`linalg`] → [`dataset`] → [`features`] → [`kernel`] →
//! [`operator`] → [`qp`] → [`decision_set`] → [`precond`] → [`problem`] → [`solver`] →
//! [`leave_one_out`] → [`model`] → [`predict`] → [`familiarity`] → [`ranges`] → [`pushes`] →
//! [`backend`] → [`metrics`]
//!
//! No files, no printing, no environment. `[KIO n]` in comments is equation n of "Scalable Kernel
//! Inverse Optimization" (NeurIPS 2024); what was derived for this project is in `docs/book`.

pub mod wording;

pub mod error;
pub mod random;

pub mod linalg;

pub mod dataset;

pub mod features;

pub mod kernel;

pub mod operator;

pub mod qp;

pub mod decision_set;

pub mod precond;

pub mod problem;

pub mod solver;

pub mod leave_one_out;

pub mod model;

pub mod predict;

pub mod familiarity;

pub mod ranges;

pub mod pushes;

pub mod backend;

pub mod metrics;

pub use backend::Backend;
pub use dataset::{Constraints, Dataset};
pub use decision_set::DecisionSet;
pub use error::Error;
pub use kernel::Kernel;
pub use model::Model;
pub use predict::Predictor;
