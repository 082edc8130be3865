//! The command as people meet it. One test binary: each more would link everything again.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;
mod constraints;

mod attacks;
mod charging;
mod checkpoints;
mod contract;
mod data;
mod determinism;
mod device;
mod explain;
mod explore;
#[cfg(target_os = "linux")]
mod full_disk;
#[cfg(unix)]
mod hostile;
#[cfg(unix)]
mod interrupt;
mod judged;
mod names;
#[cfg(unix)]
mod outputs;
mod paperwork;
mod path;
mod primal;
mod ranges;
mod ray;
mod refusals;
mod sso;
mod theta;
mod tune;
mod update;
