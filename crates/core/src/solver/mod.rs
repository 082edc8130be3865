//! Solvers: from a problem and an operator to certified coefficients.

mod clock;
mod conjugate_gradient;
mod line_search;
pub mod newton;
mod observer;
mod outcome;
pub mod path;
pub mod primal;
pub mod sso;
mod state;
pub mod theta;

pub use newton::NewtonSettings;
pub use observer::{BlockStep, Ignore, Iteration, Observer};
pub use outcome::{LearnedTheta, Outcome, Status};
pub use primal::PrimalSettings;
pub use sso::SsoSettings;
pub use state::State;
