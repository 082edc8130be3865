//! What a report says: results → [`Page`](crate::report::Page)s. How it is drawn is `report`'s
//! concern.

pub mod ablate;
pub mod charging;
pub mod explore;
pub mod fit;
mod judged;
pub mod quadrotor;
mod sections;
pub mod tune;
pub mod why;
