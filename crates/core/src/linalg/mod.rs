//! The arithmetic underneath: aligned memory, vector instructions, sums with a fixed order, dense factorisations.

pub(crate) mod aligned;
pub(crate) mod dense;
pub mod simd;
pub(crate) mod sums;
