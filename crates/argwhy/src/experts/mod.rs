//! Bundled experts whose true objective is known, for demonstrations that can be checked.
//!
//! In: a seed. Out: signals (what the expert saw), decisions (what it did), the limits it kept, and a
//! simulator in which an imitation can be flown and charged by the expert's own cost. Two experts are
//! here: a model-predictive pilot of a planar quadrotor, and in [`charging`] the dispatcher of a depot of
//! electric vans, whose limits change every night.
//!
//! ```text
//! Quadrotor ──► Expert (objective, decide) ──► demonstrations ──► your model ──► fly ──► cost
//! ```

mod box_qp;
pub mod charging;
mod flight;
mod mpc;
mod quadrotor;

pub use box_qp::{BoxQp, BoxQpSolution, TOL_RESIDUAL};
pub use flight::{ARENA, CRASH_PENALTY, Demonstrations, EPISODE_STEPS, START_SPREAD, Trajectory};
pub use mpc::{Expert, ExpertSettings, Objective, Plan};
pub use quadrotor::{
    Decision, GRAVITY, INPUT_DIM, INPUT_NAMES, Quadrotor, STATE_DIM, STATE_NAMES, State, Thrusts,
};

/// Why an expert could not be made or could not decide.
#[derive(Debug, Clone, PartialEq)]
pub enum ExpertError {
    /// A setting has no meaning; all must be positive, state weights may be zero.
    BadSetting {
        /// Which one.
        name: &'static str,
        /// What was given.
        value: f64,
    },
    /// The Riccati iteration did not settle: the weights leave a motion uncharged.
    Riccati {
        /// Steps taken.
        steps: usize,
    },
    /// A quadratic program is not strictly convex.
    NotPositiveDefinite {
        /// Row of the failing pivot.
        row: usize,
        /// Its value.
        pivot: f64,
    },
    /// A quadratic program stopped short of its tolerance.
    NotSolved {
        /// Optimality residual reached.
        residual: f64,
        /// Newton steps taken.
        iterations: usize,
    },
    /// A state contains NaN or an infinity.
    NotFinite,
    /// A decision to be judged is not one the rotor can carry out.
    OutsideLimits {
        /// Which rotor.
        rotor: usize,
        /// Its thrust above hover in N.
        decision: f64,
    },
    /// A controller answered with something other than two numbers.
    DecisionShape {
        /// How many numbers it gave.
        found: usize,
    },
}

impl std::fmt::Display for ExpertError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::BadSetting { name, value } => {
                write!(f, "expert setting {name} is {value}; it must be positive and finite")
            }
            Self::Riccati { steps } => write!(
                f,
                "the expert's Riccati equation did not settle in {steps} steps; \
                 give every state a positive weight"
            ),
            Self::NotPositiveDefinite { row, pivot } => write!(
                f,
                "the expert's quadratic program is not strictly convex (pivot {pivot} in row {row})"
            ),
            Self::NotSolved { residual, iterations } => write!(
                f,
                "the expert's quadratic program stopped at residual {residual:e} after \
                 {iterations} steps; {TOL_RESIDUAL:e} is required"
            ),
            Self::NotFinite => write!(f, "the state contains NaN or an infinity"),
            Self::OutsideLimits { rotor, decision } => {
                write!(f, "thrust {decision} N above hover is outside the limits of rotor {rotor}")
            }
            Self::DecisionShape { found } => {
                write!(f, "the controller gave {found} numbers; a decision is {INPUT_DIM} thrusts")
            }
        }
    }
}

impl std::error::Error for ExpertError {}
