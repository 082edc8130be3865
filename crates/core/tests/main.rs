//! The mathematics from outside. One test binary: each more would link everything again.
//! A file that is not named below would never run; `.ci/modules.py` finds it.

#![allow(clippy::unwrap_used, reason = "tests")]

mod known;

mod dependencies;
mod elsewhere;
mod kernels;
mod known_optimum;
mod known_sets;
mod known_theta;
mod leave_one_out;
mod newton;
mod plain_io;
mod primal;
mod sets_properties;
mod small_qp;
mod sso;
mod starts;
mod weights;
