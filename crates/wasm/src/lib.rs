//! Decisions in a browser: what the pages of `argwhy explore` run.
//!
//! Enters: a model, limits, past situations and signals, as numbers in a buffer that
//! the page writes. Leaves: what is desired, what is decided, prices, familiarity, pushes and the
//! nearest past situations, in the same buffer. [`Explorer`] does it; `exports` is what JavaScript
//! sees of it.
//!
//! The command carries this crate as a compressed file of WebAssembly, which `crates/wasm/build`
//! makes: whoever builds the command needs no such compiler.

mod explorer;
mod exports;
mod wire;

pub use explorer::{Answer, Explorer};
