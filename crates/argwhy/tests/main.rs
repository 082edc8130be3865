//! The whole way from outside. One test binary: each more would link everything again.
//! A file that is not named below would never run; `.ci/modules.py` finds it.

#![allow(clippy::unwrap_used, reason = "tests")]

mod backend;
mod edges;
mod explain;
mod explain_experts;
mod familiarity;
mod kernels;
mod known_curves;
mod properties;
mod ranges;
mod tuning;
