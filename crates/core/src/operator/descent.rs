//! Conjugate gradients whose vectors may be on the operator's own machine.

use crate::error::Error;
use ndarray::Array2;

/// Preconditioned conjugate gradients for (K_FF + λI) c = b, a system for each right-hand side.
/// Vectors stay where they are multiplied; numbers of each system say how far it has come, and the
/// caller decides by them which go on.
pub trait Descent {
    /// One step in each of the systems listed, with one product for all of them: what it came to in
    /// each, at least up to the first that is flat. What was left out once is never listed again.
    fn step(&mut self, systems: &[usize]) -> Result<Vec<Step>, Error>;

    /// c and its image c·K over all samples, a row each.
    fn finish(self: Box<Self>) -> Result<(Array2<f64>, Array2<f64>), Error>;
}

/// What a step came to in one system.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// It was taken.
    Taken {
        /// ‖b − (K_FF + λI)c‖ behind it.
        residual: f64,
    },
    /// It was not: the matrix does not curve upwards along the direction p, to rounding.
    Flat {
        /// pᵀ(K_FF + λI)p, not positive or not a number.
        curvature: f64,
        /// ‖p‖².
        square: f64,
    },
}
