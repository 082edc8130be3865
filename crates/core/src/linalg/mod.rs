//! The arithmetic underneath: aligned memory, vector instructions and their exponential, sums with
//! a fixed order, dense factorisations.

pub(crate) mod aligned;
pub(crate) mod dense;
pub(crate) mod entries;
pub(crate) mod exp2;
pub(crate) mod rows;
pub(crate) mod shifted;
pub mod simd;
pub(crate) mod sums;
