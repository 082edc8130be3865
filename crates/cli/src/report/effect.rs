//! Charts of effects: a curve with its spread over the data it rests on, and two signals at once.

use super::ReportError;
use super::axis::{Axis, extent};
use super::canvas::{
    self, Canvas, Frame, HEIGHT, LESS, LegendEntry, MORE, MUTED, SPREAD, Shape, Swatch, color,
};
use plotters::style::RGBColor;

const X_TICKS: usize = 6;
const Y_TICKS: usize = 6;
/// Height of the data's density under the curve, in pixels.
const DENSITY: f64 = 34.0;

/// What a signal does: curves, a spread around the first, and where the data lies.
#[derive(Debug, Clone)]
pub struct EffectChart {
    x_label: String,
    y_label: String,
    curves: Vec<(String, Vec<(f64, f64)>)>,
    /// Where the first curve goes on as a guess.
    guess: Option<(String, Vec<(f64, f64)>)>,
    /// x with the lower and upper edge.
    spread: Vec<(f64, f64, f64)>,
    /// Left, right and how many.
    bins: Vec<(f64, f64, usize)>,
    marks: Vec<(f64, String)>,
}

impl EffectChart {
    /// An empty chart with its axis titles (with units).
    pub fn new(x_label: impl Into<String>, y_label: impl Into<String>) -> Self {
        let (x_label, y_label) = (x_label.into(), y_label.into());
        let (curves, spread, bins, marks) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { x_label, y_label, curves, guess: None, spread, bins, marks }
    }

    /// Adds a curve.
    #[must_use]
    pub fn curve(
        mut self,
        name: impl Into<String>,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Self {
        self.curves.push((name.into(), points.into_iter().collect()));
        self
    }

    /// How the first curve goes on where it is only guessed, in dashes; points that are not finite
    /// interrupt.
    #[must_use]
    pub fn guess(
        mut self,
        name: impl Into<String>,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Self {
        self.guess = Some((name.into(), points.into_iter().collect()));
        self
    }

    /// A band from the lower to the upper edge.
    #[must_use]
    pub fn spread(mut self, edges: impl IntoIterator<Item = (f64, f64, f64)>) -> Self {
        self.spread = edges.into_iter().collect();
        self
    }

    /// How many rows lie between each two values, drawn above the axis.
    #[must_use]
    pub fn density(mut self, bins: impl IntoIterator<Item = (f64, f64, usize)>) -> Self {
        self.bins = bins.into_iter().collect();
        self
    }

    /// A named vertical line, such as a limit.
    #[must_use]
    pub fn mark(mut self, at: f64, name: impl Into<String>) -> Self {
        self.marks.push((at, name.into()));
        self
    }

    /// The chart as SVG.
    pub fn render(&self) -> Result<String, ReportError> {
        let all = || self.curves.iter().chain(&self.guess);
        let points = || all().flat_map(|(_, points)| points.iter().copied());
        let xs = points().map(|p| p.0).chain(self.marks.iter().map(|mark| mark.0));
        let (lo, hi) = extent(xs).unwrap_or((0.0, 1.0));
        let edges = self.spread.iter().flat_map(|(_, low, high)| [*low, *high]);
        let y = Axis::linear(points().map(|p| p.1).chain(edges), Y_TICKS);
        // Room below for the density.
        let y = if self.bins.is_empty() {
            y
        } else {
            Axis::between(y.lo - 0.12 * (y.hi - y.lo), y.hi, Y_TICKS)
        };
        let mut entries: Vec<LegendEntry<'_>> = self
            .curves
            .iter()
            .enumerate()
            .map(|(i, (name, _))| LegendEntry { name, color: color(name, i), swatch: Swatch::Line })
            .collect();
        if let Some((name, _)) = &self.guess {
            entries.push(LegendEntry { name, color: self.guessed(), swatch: Swatch::Dashes });
        }
        if !self.spread.is_empty() {
            let swatch = Swatch::Block;
            entries.push(LegendEntry { name: "differs by situation", color: SPREAD, swatch });
        }
        let description = format!("Effect chart: {} over {}", self.y_label, self.x_label);
        canvas::draw(HEIGHT, &description, |canvas| {
            let labels = (self.x_label.as_str(), self.y_label.as_str());
            let x = Axis::over(&points().map(|p| p.0).collect::<Vec<_>>(), (lo, hi), X_TICKS);
            let frame = Frame::new(canvas, (x, y), labels, &entries, Shape::Fill)?;
            self.draw_density(canvas, &frame)?;
            let upper = self.spread.iter().filter_map(|(x, _, high)| frame.at((*x, *high)));
            let lower = self.spread.iter().rev().filter_map(|(x, low, _)| frame.at((*x, *low)));
            let band: Vec<_> = upper.chain(lower).collect();
            if band.len() > 2 {
                canvas.area(&band, SPREAD, 0.25)?;
            }
            if let Some((_, points)) = &self.guess {
                for line in pieces(&frame, points) {
                    canvas.dashes(&line, self.guessed(), 2.25)?;
                }
            }
            for (i, (name, points)) in self.curves.iter().enumerate() {
                for line in pieces(&frame, points) {
                    canvas.line(&line, color(name, i), 2.25)?;
                }
            }
            for (at, name) in &self.marks {
                frame.mark(canvas, *at, name)?;
            }
            if points().next().is_none() { frame.nothing_to_show(canvas) } else { Ok(()) }
        })
    }

    /// The colour of the first curve, which the guess continues.
    fn guessed(&self) -> RGBColor {
        color(self.curves.first().map_or("", |(name, _)| name), 0)
    }

    /// Blocks on the axis, as high as rows lie densely.
    fn draw_density(&self, canvas: &Canvas, frame: &Frame) -> Result<(), ReportError> {
        let dense = |(left, right, rows): &(f64, f64, usize)| *rows as f64 / (right - left);
        let most = self.bins.iter().map(dense).fold(0.0, f64::max);
        for bin in &self.bins {
            let ends = (frame.at((bin.0, frame.y.lo)), frame.at((bin.1, frame.y.lo)));
            let (Some(from), Some(to)) = ends else { continue };
            let height = DENSITY * dense(bin) / most;
            canvas.block((from.0, from.1 - height), to, MUTED, 0.3)?;
        }
        Ok(())
    }
}

/// The lines between points that have no place on the axes.
fn pieces(frame: &Frame, points: &[(f64, f64)]) -> Vec<Vec<(f64, f64)>> {
    let placed: Vec<_> = points.iter().map(|point| frame.at(*point)).collect();
    let pieces = placed.split(Option::is_none);
    pieces
        .map(|piece| piece.iter().flatten().copied().collect())
        .filter(|p: &Vec<_>| p.len() > 1)
        .collect()
}

/// A quantity over two signals at once, a colour a cell.
#[derive(Debug, Clone)]
pub struct HeatMap {
    x_label: String,
    y_label: String,
    x: Vec<f64>,
    y: Vec<f64>,
    cells: Vec<Vec<Option<f64>>>,
}

impl HeatMap {
    /// Cells between the edges `x` and `y`, a list for each step along x; none is left empty.
    pub fn new(
        (x_label, y_label): (impl Into<String>, impl Into<String>),
        (x, y): (Vec<f64>, Vec<f64>),
        cells: Vec<Vec<Option<f64>>>,
    ) -> Self {
        Self { x_label: x_label.into(), y_label: y_label.into(), x, y, cells }
    }

    /// The chart as SVG: a colour above, another below the mean.
    pub fn render(&self) -> Result<String, ReportError> {
        let ends = |edges: &[f64]| extent(edges.iter().copied()).unwrap_or((0.0, 1.0));
        let ((x_lo, x_hi), (y_lo, y_hi)) = (ends(&self.x), ends(&self.y));
        let values = self.cells.iter().flatten().flatten();
        let most = values.fold(0.0_f64, |most, value| most.max(value.abs()));
        let description = format!("Map over {} and {}", self.x_label, self.y_label);
        let (above, below) = (
            format!("up to {} more", super::number(most)),
            format!("up to {} less", super::number(most)),
        );
        let entries = [
            LegendEntry { name: &above, color: MORE, swatch: Swatch::Block },
            LegendEntry { name: &below, color: LESS, swatch: Swatch::Block },
        ];
        canvas::draw(HEIGHT, &description, |canvas| {
            let axes = (
                Axis::over(&self.x, (x_lo, x_hi), X_TICKS),
                Axis::over(&self.y, (y_lo, y_hi), Y_TICKS),
            );
            let labels = (self.x_label.as_str(), self.y_label.as_str());
            let frame = Frame::new(canvas, axes, labels, &entries, Shape::Fill)?;
            let mut n_drawn = 0;
            for (a, column) in self.cells.iter().enumerate() {
                for (b, value) in column.iter().enumerate() {
                    let Some(value) = value else { continue };
                    let corner = |a: usize, b: usize| frame.at((self.x[a], self.y[b]));
                    let (Some(from), Some(to)) = (corner(a, b), corner(a + 1, b + 1)) else {
                        continue;
                    };
                    let shade = if most > 0.0 { value.abs() / most } else { 0.0 };
                    let tone = if *value > 0.0 { MORE } else { LESS };
                    canvas.block((from.0, to.1), (to.0, from.1), tone, 0.06 + 0.9 * shade)?;
                    n_drawn += 1;
                }
            }
            if n_drawn == 0 { frame.nothing_to_show(canvas) } else { Ok(()) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_effect_has_its_curves_its_band_and_its_data() {
        let svg = EffectChart::new("price", "power")
            .curve("desired", [(0.0, 1.0), (1.0, -1.0)])
            .curve("decision", [(0.0, 0.5), (1.0, -0.5)])
            .spread([(0.0, 0.8, 1.2), (1.0, -1.1, -0.9)])
            .density([(0.0, 0.5, 10), (0.5, 1.0, 30)])
            .guess(
                "guessed",
                [(0.0, 1.0), (-1.0, 2.0), (f64::NAN, f64::NAN), (1.0, -1.0), (2.0, -2.0)],
            )
            .mark(0.3, "limit")
            .render()
            .unwrap();
        let parts = ["price", "desired", "decision", "guessed", "differs by situation", "limit"];
        for part in parts.into_iter().chain(["<polygon"]) {
            assert!(svg.contains(part), "{part}");
        }
        assert!(EffectChart::new("x", "y").render().unwrap().contains("no data"));
    }

    #[test]
    fn a_curve_is_interrupted_where_it_has_no_value() {
        let lines = |middle: f64| {
            let points = [(0.0, 0.0), (1.0, 1.0), (2.0, middle), (3.0, 1.0), (4.0, 0.0)];
            let svg = EffectChart::new("x", "y").curve("c", points).render().unwrap();
            svg.matches("<polyline").count()
        };
        assert_eq!(lines(f64::NAN), lines(0.5) + 1);
    }

    #[test]
    fn a_map_leaves_out_what_has_no_data() {
        let cells = vec![vec![Some(1.0), None], vec![Some(-0.5), Some(0.0)]];
        let edges = || (vec![0.0, 1.0, 2.0], vec![0.0, 1.0, 2.0]);
        let blocks = |cells| {
            let svg = HeatMap::new(("a", "b"), edges(), cells).render().unwrap();
            svg.matches("<rect").count()
        };
        assert_eq!(blocks(cells.clone()) + 1, blocks(vec![vec![Some(1.0); 2]; 2]));
        assert!(HeatMap::new(("a", "b"), edges(), vec![]).render().unwrap().contains("no data"));
    }
}
