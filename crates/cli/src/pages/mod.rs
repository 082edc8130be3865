//! What a report says: results → [`Page`](crate::report::Page)s. How it is drawn is `report`'s concern.

pub mod demo;
pub mod fit;
mod sections;
