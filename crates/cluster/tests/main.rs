//! Workers of this process. One test binary: each more would link everything again.

#![allow(clippy::unwrap_used, reason = "tests")]

mod in_process;
mod panels;
