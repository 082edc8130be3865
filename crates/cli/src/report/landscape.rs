//! Charts of a search: a map of squares, and values with their uncertainty.

use super::ReportError;
use super::axis::{extent, number};
use super::canvas::{self, INK, MUTED, Marker, PLAIN, SMALL, WIDTH, text_width};
use plotters::style::RGBColor;
use plotters::style::text_anchor::{HPos, VPos};

const CELL_ROW: f64 = 40.0;
const RANGE_ROW: f64 = 30.0;
const MOST_LETTERS: usize = 44;

/// Values over two lists, each in a square as dark as it is small; the smallest is framed.
#[derive(Debug, Clone)]
pub struct SquareMap {
    labels: [String; 2],
    columns: Vec<String>,
    rows: Vec<String>,
    values: Vec<Vec<Option<f64>>>,
}

impl SquareMap {
    /// What columns and rows are, and their names.
    pub fn new(labels: [&str; 2], columns: Vec<String>, rows: Vec<String>) -> Self {
        let values = vec![vec![None; columns.len()]; rows.len()];
        Self { labels: labels.map(ToOwned::to_owned), columns, rows, values }
    }

    /// Fills a square.
    #[must_use]
    pub fn cell(mut self, (row, column): (usize, usize), value: f64) -> Self {
        if let Some(cell) = self.values.get_mut(row).and_then(|row| row.get_mut(column)) {
            *cell = Some(value).filter(|value| value.is_finite());
        }
        self
    }

    /// The chart as SVG.
    pub fn render(&self) -> Result<String, ReportError> {
        let all = || self.values.iter().flatten().flatten().copied();
        let (lo, hi) = extent(all()).unwrap_or((0.0, 1.0));
        // By ranks: a few hopeless corners must not make all the rest look alike.
        let mut sorted: Vec<f64> = all().collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let rank = |value: f64| {
            let below = sorted.iter().filter(|other| **other < value).count();
            below as f64 / sorted.len().saturating_sub(1).max(1) as f64
        };
        let names = self.rows.iter().map(|name| text_width(name, SMALL));
        let left = 16.0 + names.fold(text_width(&self.labels[1], SMALL), f64::max);
        let top = 44.0;
        let width = (WIDTH - 8.0 - left) / self.columns.len().max(1) as f64;
        let height = top + CELL_ROW * self.rows.len().max(1) as f64 + 12.0;
        let description = format!("Map of {} to {} over two settings", number(lo), number(hi));
        canvas::draw(height, &description, |canvas| {
            let centre = (HPos::Center, VPos::Center);
            canvas.text(&self.labels[0], (left, 14.0), SMALL, MUTED, (HPos::Left, VPos::Center))?;
            canvas.text(&self.labels[1], (8.0, 34.0), SMALL, MUTED, (HPos::Left, VPos::Center))?;
            for (j, name) in self.columns.iter().enumerate() {
                canvas.text(name, (left + width * (j as f64 + 0.5), 34.0), SMALL, INK, centre)?;
            }
            for (i, (name, values)) in self.rows.iter().zip(&self.values).enumerate() {
                let y = top + CELL_ROW * i as f64;
                let at = (left - 8.0, y + CELL_ROW / 2.0);
                canvas.text(name, at, SMALL, INK, (HPos::Right, VPos::Center))?;
                for (j, value) in values.iter().enumerate() {
                    let Some(value) = *value else { continue };
                    let from = (left + width * j as f64 + 1.0, y + 1.0);
                    let to = (from.0 + width - 2.0, y + CELL_ROW - 1.0);
                    let share = rank(value);
                    canvas.block(from, to, PLAIN, 0.9 - 0.82 * share)?;
                    let ink = if share < 0.4 { WHITE } else { INK };
                    let middle = (f64::midpoint(from.0, to.0), f64::midpoint(from.1, to.1));
                    canvas.text(&short(value), middle, SMALL, ink, centre)?;
                    if value == lo {
                        let frame =
                            [from, (to.0, from.1), to, (from.0, to.1), (from.0, from.1 - 1.0)];
                        canvas.line(&frame, INK, 2.5)?;
                    }
                }
            }
            Ok(())
        })
    }
}

const WHITE: RGBColor = RGBColor(0xFF, 0xFF, 0xFF);

/// Three digits: a square has no room for more.
fn short(value: f64) -> String {
    let text = format!("{value:.2e}").parse::<f64>().map_or_else(|_| number(value), number);
    if text.chars().count() > 7 { format!("{value:.0e}") } else { text }
}

/// Named values, each with how uncertain it is.
#[derive(Debug, Clone)]
pub struct RangeChart {
    label: String,
    entries: Vec<(String, f64, f64)>,
}

impl RangeChart {
    /// An empty chart; `label` says what is measured.
    pub fn new(label: impl Into<String>) -> Self {
        Self { label: label.into(), entries: Vec::new() }
    }

    /// Adds a value with the half length of its bar.
    #[must_use]
    pub fn entry(mut self, name: impl Into<String>, value: f64, spread: f64) -> Self {
        let name: String = name.into();
        let name = if name.chars().count() > MOST_LETTERS {
            name.chars().take(MOST_LETTERS - 1).chain(['…']).collect()
        } else {
            name
        };
        if value.is_finite() {
            self.entries.push((name, value, spread));
        }
        self
    }

    /// The chart as SVG.
    pub fn render(&self) -> Result<String, ReportError> {
        let ends = self.entries.iter().flat_map(|(_, value, s)| [value - s, value + s]);
        let (lo, hi) = extent(ends).unwrap_or((0.0, 1.0));
        let names = self.entries.iter().map(|(name, ..)| text_width(name, SMALL));
        let left = 20.0 + names.fold(0.0, f64::max);
        let room = 90.0;
        let scale = (WIDTH - room - left) / if hi > lo { hi - lo } else { 1.0 };
        let place = |value: f64| left + (value - lo) * scale;
        let height = 44.0 + RANGE_ROW * self.entries.len().max(1) as f64;
        canvas::draw(height, &format!("Values with error bars: {}", self.label), |canvas| {
            let start = (HPos::Left, VPos::Center);
            canvas.text(&self.label, (8.0, 16.0), SMALL + 1.0, INK, start)?;
            for (i, (name, value, spread)) in self.entries.iter().enumerate() {
                let y = 38.0 + RANGE_ROW * (i as f64 + 0.5);
                let at = (left - 10.0, y);
                canvas.text(name, at, SMALL, INK, (HPos::Right, VPos::Center))?;
                let (from, to) = (place(value - spread), place(value + spread));
                canvas.line(&[(from, y), (to, y)], PLAIN, 1.5)?;
                for end in [from, to] {
                    canvas.line(&[(end, y - 5.0), (end, y + 5.0)], PLAIN, 1.5)?;
                }
                canvas.marker(Marker::Disc, (place(*value), y), 4.0, PLAIN, 1.0)?;
                canvas.text(&number(*value), (to + 8.0, y), SMALL, MUTED, start)?;
            }
            Ok(())
        })
    }
}
