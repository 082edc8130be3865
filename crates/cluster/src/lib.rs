//! Products with kernel matrices on several machines, one message a product.
//!
//! Enters, on the solver's side: features, a kernel, and [`Machines`] to send messages to. Leaves:
//! a [`ClusterBackend`] for fits. On a worker's side: a [`Job`], and features or the signals they
//! are made of, become a [`Shard`], which computes parts of products. Parts are cut by the number
//! of samples alone and added first to last, so that the answer has the same bits for any number of
//! workers, whichever of them are lost on the way; below a million samples, those of one process.
//! From there on workers also keep the preconditioner's low-rank factor, in [`Panels`].
//! How messages travel is not decided here: [`Bridge`] speaks to a Python process by pipes, and the
//! Python package calls its own objects. Why all of this is as it is: `docs/adr/0023-ray.md`.

mod backend;
mod bridge;
mod frame;
mod job;
mod machines;
mod operator;
mod panels;
mod shard;

pub use backend::ClusterBackend;
pub use bridge::{Bridge, BridgeError, Launch};
pub use frame::{Array, Frame};
pub use job::Job;
pub use machines::{Machines, Opening};
pub use panels::{Branch, Branches, PanelKeeper, PanelLayout, Panels, Round, SPREAD_FROM};
pub use shard::Shard;
