//! A low-rank factor B on workers, cut by columns into panels.
//!
//! A panel is a pure function of the samples' features and of the rounds that B grew by, which the
//! driver keeps: r² numbers. Whoever has lost it, or never had it, makes it again and has the same
//! bits. What is summed over panels is summed along a binary tree over all of them, of which a
//! worker may sum whole branches, so that sums do not depend on who has which panel.
//!
//! `layout` cuts, `tree` sums, `worker` is what one worker holds, `driver` what the solver is
//! given, `keeper` what carries messages between the two.

mod driver;
mod keeper;
mod layout;
mod tree;
mod worker;

pub(crate) use driver::ClusterFactor;
pub use keeper::{PanelKeeper, Round, SPREAD_FROM};
pub use layout::PanelLayout;
pub use tree::{Branch, Branches};
pub use worker::Panels;
