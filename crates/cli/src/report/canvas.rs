//! The drawing surface: shapes in CSS pixels, out comes SVG with real text.

use super::ReportError;
use super::axis::Axis;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Drawing units per CSS pixel: plotters rounds to whole units, so these are quarter pixels.
const SCALE: f64 = 4.0;
const FONT: &str = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif";
/// plotters' SVG backend divides font sizes by this.
const FONT_RATIO: f64 = 1.24;
/// Mean width of a letter as a share of the font size, for layout only.
const LETTER: f64 = 0.55;

/// Width of every chart in CSS pixels.
pub(super) const WIDTH: f64 = 560.0;
/// Height of charts with two axes in CSS pixels, one for all so that neighbours align.
pub(super) const HEIGHT: f64 = 390.0;
/// Font size of tick labels and legends.
pub(super) const SMALL: f64 = 14.0;
const AXIS_TITLE: f64 = 15.5;

pub(super) const INK: RGBColor = RGBColor(0x22, 0x26, 0x2B);
pub(super) const MUTED: RGBColor = RGBColor(0x5C, 0x64, 0x6E);
const GRID: RGBColor = RGBColor(0xE4, 0xE7, 0xEB);
const EDGE: RGBColor = RGBColor(0xA9, 0xB0, 0xB9);

// Okabe and Ito's colours, told apart with every kind of colour vision; the yellow, too faint on
// white, is left out.
const BLUE: RGBColor = RGBColor(0x00, 0x72, 0xB2);
const ORANGE: RGBColor = RGBColor(0xD5, 0x5E, 0x00);
const GREEN: RGBColor = RGBColor(0x00, 0x9E, 0x73);
const PINK: RGBColor = RGBColor(0xCC, 0x79, 0xA7);
const AMBER: RGBColor = RGBColor(0xE6, 0x9F, 0x00);
const SKY: RGBColor = RGBColor(0x56, 0xB4, 0xE9);
const BLACK: RGBColor = RGBColor(0x00, 0x00, 0x00);

/// What differs from situation to situation.
pub(super) const SPREAD: RGBColor = SKY;
/// More than the mean, and less.
pub(super) const MORE: RGBColor = GREEN;
pub(super) const LESS: RGBColor = PINK;
/// What is only counted or compared.
pub(super) const PLAIN: RGBColor = RGBColor(0x44, 0x61, 0x7F);

/// The colour of a series among others.
pub(super) fn color(name: &str, index: usize) -> RGBColor {
    own_color(name).unwrap_or([BLUE, ORANGE, GREEN, PINK, AMBER, SKY, BLACK][index % 7])
}

/// The colour of what stands alone.
pub(super) fn lone_color(name: &str) -> RGBColor {
    own_color(name).unwrap_or(PLAIN)
}

/// One colour is one thing on every chart and page: what the model desires, what it decides, what
/// the expert does, the truth, rivals, limits.
fn own_color(name: &str) -> Option<RGBColor> {
    Some(match name {
        "desired" => BLUE,
        "argwhy" | "this model" | "learned" | "decided, within the limits" => ORANGE,
        "expert" | "dispatcher" => GREEN,
        "true" | "best plan" | "allowed" => INK,
        "clipped ridge" | "kernel ridge" => PINK,
        "most allowed" | "beyond a limit" => MUTED,
        "relative gap" => SKY,
        "largest violation" => AMBER,
        _ => return None,
    })
}

/// About how wide a text will be, in CSS pixels.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * LETTER
}

/// A small shape that marks a point; shape and colour both tell series apart.
#[derive(Debug, Clone, Copy)]
pub(super) enum Marker {
    Disc,
    Square,
    Triangle,
    Diamond,
    Ring,
    Cross,
}

impl Marker {
    /// The marker of the i-th series.
    pub fn of_series(index: usize) -> Self {
        [Self::Disc, Self::Square, Self::Triangle, Self::Diamond][index % 4]
    }
}

/// How a legend shows an entry.
#[derive(Debug, Clone, Copy)]
pub(super) enum Swatch {
    Line,
    Dashes,
    LineWithMarker(Marker),
    Marker(Marker),
    Block,
}

/// One entry of a legend.
pub(super) struct LegendEntry<'a> {
    pub name: &'a str,
    pub color: RGBColor,
    pub swatch: Swatch,
}

pub(super) struct Canvas<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
}

type Drawn = Result<(), ReportError>;

/// An SVG of `WIDTH` × `height` CSS pixels, white, with `description` for those who cannot see it.
pub(super) fn draw(
    height: f64,
    description: &str,
    paint: impl FnOnce(&Canvas) -> Drawn,
) -> Result<String, ReportError> {
    let mut svg = String::new();
    {
        let size = ((WIDTH * SCALE) as u32, (height * SCALE) as u32);
        let canvas = Canvas { area: SVGBackend::with_string(&mut svg, size).into_drawing_area() };
        canvas.area.fill(&WHITE).map_err(refused)?;
        paint(&canvas)?;
        canvas.area.present().map_err(refused)?;
    }
    // The page sizes the chart, so the fixed size goes; so do defaults and the font on every shape.
    let body = svg
        .split_once("viewBox")
        .map_or(svg.as_str(), |(_, rest)| rest)
        .replace(" stroke=\"none\" stroke-width=\"1\"", "")
        .replace(" opacity=\"1\"", "")
        .replace(&format!(" font-family=\"{}\"", escaped(FONT)), "");
    let (font, label) = (escaped(FONT), escaped(description));
    Ok(format!("<svg role=\"img\" aria-label=\"{label}\" font-family=\"{font}\" viewBox{body}"))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&apos;")
}

fn refused(error: impl std::fmt::Display) -> ReportError {
    ReportError::Draw(error.to_string())
}

fn units((x, y): (f64, f64)) -> (i32, i32) {
    ((x * SCALE).round() as i32, (y * SCALE).round() as i32)
}

fn stroke(color: RGBColor, width: f64) -> ShapeStyle {
    ShapeStyle::from(color).stroke_width((width * SCALE).round() as u32)
}

impl Canvas<'_> {
    pub fn line(&self, points: &[(f64, f64)], color: RGBColor, width: f64) -> Drawn {
        let path: Vec<_> = points.iter().map(|p| units(*p)).collect();
        self.area.draw(&PathElement::new(path, stroke(color, width))).map_err(refused)
    }

    /// A line in dashes.
    pub fn dashes(&self, points: &[(f64, f64)], color: RGBColor, width: f64) -> Drawn {
        let mut begun = 0.0;
        for ends in points.windows(2) {
            let (dx, dy) = (ends[1].0 - ends[0].0, ends[1].1 - ends[0].1);
            let length = dx.hypot(dy);
            if length <= 0.0 {
                continue;
            }
            let at = |along: f64| {
                let share = (along / length).clamp(0.0, 1.0);
                (ends[0].0 + share * dx, ends[0].1 + share * dy)
            };
            // Dashes go on from segment to segment: short ones would else be drawn whole.
            let mut from = -begun;
            while from < length {
                if from + DASH > 0.0 {
                    self.line(&[at(from), at(from + DASH)], color, width)?;
                }
                from += 2.0 * DASH;
            }
            begun = 2.0 * DASH - (from - length);
        }
        Ok(())
    }

    pub fn block(&self, from: (f64, f64), to: (f64, f64), color: RGBColor, alpha: f64) -> Drawn {
        let corners = [units(from), units(to)];
        self.area.draw(&Rectangle::new(corners, color.mix(alpha).filled())).map_err(refused)
    }

    /// The inside of a polygon.
    pub fn area(&self, points: &[(f64, f64)], color: RGBColor, alpha: f64) -> Drawn {
        let points: Vec<_> = points.iter().map(|p| units(*p)).collect();
        self.area.draw(&Polygon::new(points, color.mix(alpha).filled())).map_err(refused)
    }

    /// A marker `radius` CSS pixels in size.
    pub fn marker(
        &self,
        kind: Marker,
        (x, y): (f64, f64),
        radius: f64,
        color: RGBColor,
        alpha: f64,
    ) -> Drawn {
        let r = radius;
        let fill = color.mix(alpha).filled();
        let polygon = |points: &[(f64, f64)]| {
            let points: Vec<_> = points.iter().map(|(dx, dy)| units((x + dx, y + dy))).collect();
            self.area.draw(&Polygon::new(points, fill)).map_err(refused)
        };
        let disc = (r * SCALE).round() as i32;
        match kind {
            Marker::Disc => {
                self.area.draw(&Circle::new(units((x, y)), disc, fill)).map_err(refused)
            }
            Marker::Ring => self
                .area
                .draw(&Circle::new(units((x, y)), disc, stroke(color, 1.75)))
                .map_err(refused),
            Marker::Square => {
                self.block((x - r * 0.9, y - r * 0.9), (x + r * 0.9, y + r * 0.9), color, alpha)
            }
            Marker::Triangle => {
                polygon(&[(0.0, -r * 1.2), (r * 1.1, r * 0.8), (-r * 1.1, r * 0.8)])
            }
            Marker::Diamond => {
                polygon(&[(0.0, -r * 1.3), (r * 1.3, 0.0), (0.0, r * 1.3), (-r * 1.3, 0.0)])
            }
            Marker::Cross => {
                self.line(&[(x - r, y - r), (x + r, y + r)], color, 2.25)?;
                self.line(&[(x - r, y + r), (x + r, y - r)], color, 2.25)
            }
        }
    }

    pub fn text(
        &self,
        text: &str,
        at: (f64, f64),
        size: f64,
        color: RGBColor,
        (horizontal, vertical): (HPos, VPos),
    ) -> Drawn {
        let style = text_style(size, color).pos(Pos::new(horizontal, vertical));
        self.area.draw(&Text::new(text.to_owned(), units(at), style)).map_err(refused)
    }

    /// Text that reads upwards, centred on a point.
    fn upward_text(&self, text: &str, at: (f64, f64), size: f64) -> Drawn {
        let style = text_style(size, INK)
            .pos(Pos::new(HPos::Center, VPos::Center))
            .transform(FontTransform::Rotate270);
        self.area.draw(&Text::new(text.to_owned(), units(at), style)).map_err(refused)
    }

    /// A legend from (`left`, `top`) on, as many rows as it takes; see [`legend_rows`].
    pub fn legend(&self, entries: &[LegendEntry], left: f64, top: f64) -> Drawn {
        for (entry, (x, row)) in entries.iter().zip(legend_places(entries, left)) {
            let y = top + LEGEND_ROW * (row as f64 + 0.5);
            let middle = (x + SWATCH / 2.0, y);
            match entry.swatch {
                Swatch::Line => self.line(&[(x, y), (x + SWATCH, y)], entry.color, 2.5)?,
                Swatch::Dashes => self.dashes(&[(x, y), (x + SWATCH, y)], entry.color, 2.5)?,
                Swatch::LineWithMarker(kind) => {
                    self.line(&[(x, y), (x + SWATCH, y)], entry.color, 2.0)?;
                    self.marker(kind, middle, 3.75, entry.color, 1.0)?;
                }
                Swatch::Marker(kind) => self.marker(kind, middle, 4.5, entry.color, 1.0)?,
                Swatch::Block => {
                    self.block((x + 4.0, y - 5.5), (x + SWATCH - 4.0, y + 5.5), entry.color, 0.75)?;
                }
            }
            let at = (x + SWATCH + 6.0, y);
            self.text(entry.name, at, SMALL, INK, (HPos::Left, VPos::Center))?;
        }
        Ok(())
    }
}

fn text_style(size: f64, color: RGBColor) -> TextStyle<'static> {
    let mut style = TextStyle::from((FONT, size * SCALE * FONT_RATIO).into_font());
    style.color = color.to_backend_color();
    style
}

/// Length of a dash, and of the gap after it, in CSS pixels.
const DASH: f64 = 5.0;
const LEGEND_ROW: f64 = 22.0;
const SWATCH: f64 = 24.0;

fn legend_places(entries: &[LegendEntry], left: f64) -> Vec<(f64, usize)> {
    let (mut x, mut row) = (left, 0);
    entries
        .iter()
        .map(|entry| {
            let width = SWATCH + 6.0 + text_width(entry.name, SMALL) + 16.0;
            if x > left && x + width > WIDTH {
                (x, row) = (left, row + 1);
            }
            let place = (x, row);
            x += width;
            place
        })
        .collect()
}

/// Height a legend takes, zero without entries.
fn legend_height(entries: &[LegendEntry], left: f64) -> f64 {
    legend_places(entries, left)
        .last()
        .map_or(0.0, |(_, row)| LEGEND_ROW * (*row as f64 + 1.0) + 4.0)
}

/// How the plotting area of a chart relates its two axes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Shape {
    /// As large as the chart allows.
    Fill,
    /// Square.
    Square,
    /// The same scale along x and y, by widening one of the ranges.
    SameScale,
}

/// The plotting area with its axes, placed so that labels and legend have room.
pub(super) struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    pub x: Axis,
    pub y: Axis,
}

impl Frame {
    /// Axes, grid and legend, drawn; the data may follow.
    pub fn new(
        canvas: &Canvas,
        (x, y): (Axis, Axis),
        (x_label, y_label): (&str, &str),
        entries: &[LegendEntry],
        shape: Shape,
    ) -> Result<Self, ReportError> {
        let widest = y.ticks.iter().map(|(_, label)| text_width(label, SMALL)).fold(18.0, f64::max);
        let left = 34.0 + widest;
        let top = 12.0 + legend_height(entries, left);
        let mut frame = Self { left, right: WIDTH - 18.0, top, bottom: HEIGHT - 50.0, x, y };
        match shape {
            Shape::Fill => {}
            Shape::Square => {
                let side = (frame.bottom - frame.top).min(frame.right - frame.left);
                let spare = frame.right - frame.left - side;
                frame.left += spare / 2.0;
                frame.right -= spare / 2.0;
            }
            Shape::SameScale => frame.match_scales(),
        }
        canvas.legend(entries, frame.left, 8.0)?;
        frame.draw_axes(canvas, x_label, y_label)?;
        Ok(frame)
    }

    fn match_scales(&mut self) {
        let (width, height) = (self.right - self.left, self.bottom - self.top);
        let (dx, dy) = (self.x.hi - self.x.lo, self.y.hi - self.y.lo);
        let per_pixel = (dx / width).max(dy / height);
        let grown = |axis: &Axis, length: f64, n_ticks: usize| {
            let (middle, half) = (f64::midpoint(axis.lo, axis.hi), per_pixel * length / 2.0);
            Axis::between(middle - half, middle + half, n_ticks)
        };
        self.x = grown(&self.x, width, 8);
        self.y = grown(&self.y, height, 6);
    }

    fn draw_axes(&self, canvas: &Canvas, x_label: &str, y_label: &str) -> Drawn {
        let Self { left, right, top, bottom, .. } = *self;
        for (value, label) in &self.x.ticks {
            let Some(fraction) = self.x.fraction(*value) else { continue };
            let x = left + fraction * (right - left);
            canvas.line(&[(x, top), (x, bottom)], GRID, 1.0)?;
            canvas.text(label, (x, bottom + 7.0), SMALL, MUTED, (HPos::Center, VPos::Top))?;
        }
        for (value, label) in &self.y.ticks {
            let Some(fraction) = self.y.fraction(*value) else { continue };
            let y = bottom - fraction * (bottom - top);
            canvas.line(&[(left, y), (right, y)], GRID, 1.0)?;
            canvas.text(label, (left - 7.0, y), SMALL, MUTED, (HPos::Right, VPos::Center))?;
        }
        canvas.line(&[(left, top), (left, bottom), (right, bottom)], EDGE, 1.25)?;
        let middle = f64::midpoint(left, right);
        canvas.text(
            x_label,
            (middle, bottom + 29.0),
            AXIS_TITLE,
            INK,
            (HPos::Center, VPos::Top),
        )?;
        let widest = self.y.ticks.iter().map(|(_, l)| text_width(l, SMALL)).fold(18.0, f64::max);
        let title = (left - widest - 20.0, f64::midpoint(top, bottom));
        canvas.upward_text(y_label, title, AXIS_TITLE)
    }

    /// Where a point goes, in CSS pixels; none if it has no place on the axes.
    pub fn at(&self, (x, y): (f64, f64)) -> Option<(f64, f64)> {
        let (fx, fy) = (self.x.fraction(x)?, self.y.fraction(y)?);
        Some((
            self.left + fx * (self.right - self.left),
            self.bottom - fy * (self.bottom - self.top),
        ))
    }

    /// A value across the whole height with its name beside the upper end.
    pub fn mark(&self, canvas: &Canvas, value: f64, name: &str) -> Drawn {
        let Some((x, _)) = self.at((value, self.y.lo)) else { return Ok(()) };
        canvas.line(&[(x, self.top), (x, self.bottom)], MUTED, 1.25)?;
        let (at, side) = if x > f64::midpoint(self.left, self.right) {
            (x - 5.0, HPos::Right)
        } else {
            (x + 5.0, HPos::Left)
        };
        canvas.text(name, (at, self.top + 2.0), SMALL, MUTED, (side, VPos::Top))
    }

    /// A level across the whole area with its name above the right end.
    pub fn level(&self, canvas: &Canvas, value: f64, name: &str) -> Drawn {
        let Some((_, y)) = self.at((self.x.lo, value)) else { return Ok(()) };
        canvas.line(&[(self.left, y), (self.right, y)], MUTED, 1.25)?;
        canvas.text(name, (self.right - 4.0, y - 3.0), SMALL, MUTED, (HPos::Right, VPos::Bottom))
    }

    /// Words instead of data.
    pub fn nothing_to_show(&self, canvas: &Canvas) -> Drawn {
        let at = (f64::midpoint(self.left, self.right), f64::midpoint(self.top, self.bottom));
        canvas.text("no data", at, AXIS_TITLE, MUTED, (HPos::Center, VPos::Center))
    }
}
