//! Files from outside. One test binary: each more would link everything again.
//! A file that is not named below would never run; `.ci/modules.py` finds it.

#![allow(clippy::unwrap_used, reason = "tests")]

mod files;

mod budget;
mod changing;
mod constraints;
mod formats;
mod groups;
mod hostile;
mod model_file;
mod mutations;
mod names;
mod preparing;
mod refusals;
mod tables;
