//! Reports: one HTML page with its charts and styles inside, readable anywhere, fetching nothing.
//!
//! In: numbers and words. Out: an HTML string. Charts become SVG ([`LineChart`], [`ScatterChart`],
//! [`PathChart`], [`BarChart`], [`Histogram`]), and a [`Page`] puts them between text and tables:
//!
//! ```text
//! Series ──► LineChart … ──► SVG ──► Figure ──► Section ──► Page ──► HTML
//! ```
//!
//! All text is escaped; a chart never fails on its data: what cannot be drawn (NaN, infinities,
//! zero on a logarithmic axis) is left out.

mod axis;
mod bars;
mod canvas;
mod chart;
mod effect;
mod landscape;
mod page;

pub use axis::number;
pub use bars::{BarChart, Histogram};
pub use chart::{LineChart, PathChart, ScatterChart, Series};
pub use effect::{EffectChart, HeatMap};
pub use landscape::{RangeChart, SquareMap};
pub use page::{Details, Figure, Page, STYLE, Section, Table, Tone};

/// Why a report could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The drawing library refused a shape.
    #[error("a chart could not be drawn: {0}")]
    Draw(String),
    /// The page template could not be filled.
    #[error("the report page could not be filled: {0}")]
    Template(#[from] minijinja::Error),
}
