//! Bundled experts whose true objective is known, for demonstrations that can be checked.
//!
//! In: a seed. Out: signals (what the expert saw), decisions (what it did), the limits it kept, and
//! a simulator in which an imitation can be flown and charged by the expert's own cost. Two experts
//! are here: a model-predictive pilot of a planar quadrotor, and in [`charging`] the dispatcher of
//! a depot of electric vans, whose limits change every night.
//!
//! ```text
//! Quadrotor ──► Expert (objective, decide) ──► demonstrations ──► your model ──► fly ──► cost
//! ```

pub mod charging;
mod flight;
mod mpc;
mod program;
mod quadrotor;

pub use flight::{ARENA, CRASH_PENALTY, Demonstrations, EPISODE_STEPS, START_SPREAD, Trajectory};
pub use mpc::{Expert, ExpertSettings, Objective, Plan};
pub use quadrotor::{
    Decision, GRAVITY, INPUT_DIM, INPUT_NAMES, Quadrotor, STATE_DIM, STATE_NAMES, State, Thrusts,
};

use argwhy_core::qp::QpError;
use thiserror::Error;

/// Why an expert could not be made or could not decide.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum ExpertError {
    /// A setting has no meaning; all must be positive, state weights may be zero.
    #[error("expert setting {name} is {value}; it must be positive and finite")]
    BadSetting {
        /// Which one.
        name: &'static str,
        /// What was given.
        value: f64,
    },
    /// The Riccati iteration did not settle: the weights leave a motion uncharged.
    #[error(
        "the expert's Riccati equation did not settle in {steps} steps; \
         give every state a positive weight"
    )]
    Riccati {
        /// Steps taken.
        steps: usize,
    },
    /// In double precision the plan's cost is not strictly convex.
    #[error(
        "the expert's quadratic program is not strictly convex in double precision; \
         give the inputs larger weights, or look less far ahead"
    )]
    NotConvex,
    /// The plan's quadratic program has no answer.
    #[error("the expert's quadratic program: {0}")]
    Program(QpError),
    /// The answer is further from optimal than it may be.
    #[error(
        "the expert's quadratic program stopped at residual {residual:e}; {:e} is required",
        program::TOL_RESIDUAL
    )]
    NotSolved {
        /// Optimality residual reached.
        residual: f64,
    },
    /// A state contains NaN or an infinity.
    #[error("the state contains NaN or an infinity")]
    NotFinite,
    /// A decision to be judged is not one the rotor can carry out.
    #[error("thrust {decision} N above hover is outside the limits of rotor {rotor}")]
    OutsideLimits {
        /// Which rotor.
        rotor: usize,
        /// Its thrust above hover in N.
        decision: f64,
    },
    /// A controller answered with something other than two numbers.
    #[error("the controller gave {found} numbers; a decision is {INPUT_DIM} thrusts")]
    DecisionShape {
        /// How many numbers it gave.
        found: usize,
    },
}
