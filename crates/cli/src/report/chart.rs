//! Charts of points: lines, scatters and paths in the plane.

use super::ReportError;
use super::axis::{Axis, extent, is_drawable};
use super::canvas::{
    self, Canvas, Frame, HEIGHT, INK, LegendEntry, MUTED, Marker, Shape, Swatch, color, lone_color,
};

/// Most points drawn of one chart; more are thinned evenly, always the same ones.
const MAX_POINTS: usize = 2000;
const X_TICKS: usize = 8;
const Y_TICKS: usize = 6;

/// Named points, in the order they are drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    name: String,
    points: Vec<(f64, f64)>,
}

impl Series {
    /// A series of (x, y) points.
    pub fn new(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self { name: name.into(), points: points.into_iter().collect() }
    }

    /// A series over 0, 1, 2 ….
    #[cfg(test)]
    pub fn counted(name: impl Into<String>, values: impl IntoIterator<Item = f64>) -> Self {
        Self::new(name, values.into_iter().enumerate().map(|(i, v)| (i as f64, v)))
    }

    /// At most `limit` of the points, evenly chosen, the first and the last among them.
    fn thinned(&self, limit: usize) -> impl Iterator<Item = (f64, f64)> + '_ {
        let n = self.points.len();
        let kept = n.min(limit.max(2));
        (0..kept).map(move |i| {
            let index = if kept < n { i * (n - 1) / (kept - 1) } else { i };
            self.points[index]
        })
    }
}

fn xs(series: &[Series]) -> impl Iterator<Item = f64> + '_ {
    series.iter().flat_map(|s| s.points.iter().map(|p| p.0))
}

fn ys(series: &[Series]) -> impl Iterator<Item = f64> + '_ {
    series.iter().flat_map(|s| s.points.iter().map(|p| p.1))
}

/// A legend where there is something to tell apart.
fn legend(series: &[Series], swatch: impl Fn(usize) -> Swatch) -> Vec<LegendEntry<'_>> {
    if series.len() < 2 {
        return Vec::new();
    }
    series
        .iter()
        .enumerate()
        .map(|(i, s)| LegendEntry { name: &s.name, color: color(&s.name, i), swatch: swatch(i) })
        .collect()
}

/// The points as unbroken runs: a point that cannot be drawn interrupts the line.
fn draw_lines(
    canvas: &Canvas,
    frame: &Frame,
    series: &Series,
    index: usize,
) -> Result<(), ReportError> {
    let places: Vec<_> = series.thinned(MAX_POINTS).map(|p| frame.at(p)).collect();
    for run in places.split(Option::is_none) {
        let run: Vec<_> = run.iter().flatten().copied().collect();
        if run.len() > 1 {
            canvas.line(&run, color(&series.name, index), 2.25)?;
        }
    }
    Ok(())
}

/// Quantities along a common axis, such as a gap over the iterations.
#[derive(Debug, Clone)]
pub struct LineChart {
    x_label: String,
    y_label: String,
    series: Vec<Series>,
    levels: Vec<(f64, String)>,
    is_log: bool,
    has_markers: bool,
    has_whole_x: bool,
}

impl LineChart {
    /// An empty chart with its axis titles (with units).
    pub fn new(x_label: impl Into<String>, y_label: impl Into<String>) -> Self {
        Self {
            x_label: x_label.into(),
            y_label: y_label.into(),
            series: Vec::new(),
            levels: Vec::new(),
            is_log: false,
            has_markers: false,
            has_whole_x: false,
        }
    }

    /// Adds a line. Where a point is not finite the line is interrupted.
    #[must_use]
    pub fn series(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// A logarithmic y axis; zero and negative values are left out.
    #[must_use]
    pub fn log_y(mut self) -> Self {
        self.is_log = true;
        self
    }

    /// No ticks between whole numbers, as of steps.
    #[must_use]
    pub fn whole_x(mut self) -> Self {
        self.has_whole_x = true;
        self
    }

    /// Marks every point, for short series.
    #[must_use]
    pub fn markers(mut self) -> Self {
        self.has_markers = true;
        self
    }

    /// A named horizontal line, such as a tolerance.
    #[must_use]
    pub fn level(mut self, value: f64, name: impl Into<String>) -> Self {
        self.levels.push((value, name.into()));
        self
    }

    /// The chart as SVG.
    pub fn render(&self) -> Result<String, ReportError> {
        let values = ys(&self.series).chain(self.levels.iter().map(|l| l.0));
        let y = if self.is_log { Axis::logarithmic(values) } else { Axis::linear(values, Y_TICKS) };
        let (lo, hi) = extent(xs(&self.series)).unwrap_or((0.0, 1.0));
        let mut x = Axis::between(lo, hi, X_TICKS);
        if self.has_whole_x {
            x.ticks.retain(|(value, _)| value.fract() == 0.0);
            x.ticks.iter_mut().for_each(|(value, label)| *label = super::number(*value));
        }
        let swatch = |i| {
            if self.has_markers {
                Swatch::LineWithMarker(Marker::of_series(i))
            } else {
                Swatch::Line
            }
        };
        let entries = legend(&self.series, swatch);
        let description = format!("Line chart: {} over {}", self.y_label, self.x_label);
        canvas::draw(HEIGHT, &description, |canvas| {
            let labels = (self.x_label.as_str(), self.y_label.as_str());
            let frame = Frame::new(canvas, (x, y), labels, &entries, Shape::Fill)?;
            for (value, name) in &self.levels {
                frame.level(canvas, *value, name)?;
            }
            let mut n_drawn = 0;
            for (i, series) in self.series.iter().enumerate() {
                draw_lines(canvas, &frame, series, i)?;
                // A lone point would be invisible as a line.
                let marked = self.has_markers || series.points.len() == 1;
                for at in series.thinned(MAX_POINTS).filter_map(|p| frame.at(p)) {
                    n_drawn += 1;
                    if marked {
                        canvas.marker(
                            Marker::of_series(i),
                            at,
                            4.0,
                            color(&series.name, i),
                            1.0,
                        )?;
                    }
                }
            }
            if n_drawn == 0 { frame.nothing_to_show(canvas) } else { Ok(()) }
        })
    }
}

/// One quantity against another, such as predicted decisions against the expert's.
#[derive(Debug, Clone)]
pub struct ScatterChart {
    x_label: String,
    y_label: String,
    series: Vec<Series>,
    has_equal_axes: bool,
    has_diagonal: bool,
}

impl ScatterChart {
    /// An empty chart with its axis titles (with units).
    pub fn new(x_label: impl Into<String>, y_label: impl Into<String>) -> Self {
        Self {
            x_label: x_label.into(),
            y_label: y_label.into(),
            series: Vec::new(),
            has_equal_axes: false,
            has_diagonal: false,
        }
    }

    /// Adds points. Above 2000 in the whole chart they are thinned evenly.
    #[must_use]
    pub fn series(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// The same range on both axes, in a square.
    #[must_use]
    pub fn equal_axes(mut self) -> Self {
        self.has_equal_axes = true;
        self
    }

    /// A guide where y = x.
    #[must_use]
    pub fn diagonal(mut self) -> Self {
        self.has_diagonal = true;
        self
    }

    /// The chart as SVG.
    pub fn render(&self) -> Result<String, ReportError> {
        let (x, y, shape) = if self.has_equal_axes {
            let both = Axis::linear(xs(&self.series).chain(ys(&self.series)), Y_TICKS);
            (both.clone(), both, Shape::Square)
        } else {
            let (x, y) =
                (Axis::linear(xs(&self.series), X_TICKS), Axis::linear(ys(&self.series), Y_TICKS));
            (x, y, Shape::Fill)
        };
        let entries = legend(&self.series, |i| Swatch::Marker(Marker::of_series(i)));
        let description = format!("Scatter chart: {} against {}", self.y_label, self.x_label);
        let limit = MAX_POINTS / self.series.len().max(1);
        canvas::draw(HEIGHT, &description, |canvas| {
            let labels = (self.x_label.as_str(), self.y_label.as_str());
            let frame = Frame::new(canvas, (x, y), labels, &entries, shape)?;
            if self.has_diagonal {
                let (lo, hi) = (frame.x.lo.max(frame.y.lo), frame.x.hi.min(frame.y.hi));
                if let (Some(from), Some(to)) = (frame.at((lo, lo)), frame.at((hi, hi))) {
                    canvas.line(&[from, to], MUTED, 1.25)?;
                }
            }
            let mut n_drawn = 0;
            for (i, series) in self.series.iter().enumerate() {
                // Many points: smaller and fainter, so that crowds can be seen.
                let alone = self.series.len() == 1;
                let tone = if alone { lone_color(&series.name) } else { color(&series.name, i) };
                let (radius, alpha) =
                    if series.points.len() > 300 { (2.25, 0.45) } else { (3.25, 0.7) };
                for at in series.thinned(limit).filter_map(|p| frame.at(p)) {
                    n_drawn += 1;
                    canvas.marker(Marker::of_series(i), at, radius, tone, alpha)?;
                }
            }
            if n_drawn == 0 { frame.nothing_to_show(canvas) } else { Ok(()) }
        })
    }
}

/// Ways through the plane on the same scale along both axes, such as flown trajectories.
#[derive(Debug, Clone)]
pub struct PathChart {
    x_label: String,
    y_label: String,
    series: Vec<Series>,
    target: Option<(f64, f64)>,
}

impl PathChart {
    /// An empty chart with its axis titles (with units).
    pub fn new(x_label: impl Into<String>, y_label: impl Into<String>) -> Self {
        Self { x_label: x_label.into(), y_label: y_label.into(), series: Vec::new(), target: None }
    }

    /// Adds a way; its first point is marked as the start. Series of the same name share a colour
    /// and one legend entry.
    #[must_use]
    pub fn series(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// Marks where the ways should lead.
    #[must_use]
    pub fn target(mut self, x: f64, y: f64) -> Self {
        self.target = Some((x, y));
        self
    }

    /// The chart as SVG.
    pub fn render(&self) -> Result<String, ReportError> {
        let target = self.target.filter(|(x, y)| is_drawable(*x) && is_drawable(*y));
        let x = Axis::linear(xs(&self.series).chain(target.map(|t| t.0)), X_TICKS);
        let y = Axis::linear(ys(&self.series).chain(target.map(|t| t.1)), Y_TICKS);
        let mut names: Vec<&str> = Vec::new();
        for series in &self.series {
            if !names.contains(&series.name.as_str()) {
                names.push(&series.name);
            }
        }
        let mut entries: Vec<_> = names
            .iter()
            .enumerate()
            .map(|(i, name)| LegendEntry { name, color: color(name, i), swatch: Swatch::Line })
            .collect();
        entries.push(LegendEntry {
            name: "start",
            color: INK,
            swatch: Swatch::Marker(Marker::Ring),
        });
        if target.is_some() {
            let swatch = Swatch::Marker(Marker::Cross);
            entries.push(LegendEntry { name: "target", color: INK, swatch });
        }
        let description = format!("Paths: {} against {}", self.y_label, self.x_label);
        canvas::draw(HEIGHT, &description, |canvas| {
            let labels = (self.x_label.as_str(), self.y_label.as_str());
            let frame = Frame::new(canvas, (x, y), labels, &entries, Shape::SameScale)?;
            let mut n_drawn = 0;
            for series in &self.series {
                let index = names.iter().position(|n| *n == series.name).unwrap_or(0);
                draw_lines(canvas, &frame, series, index)?;
                if let Some(start) = series.points.iter().find_map(|p| frame.at(*p)) {
                    n_drawn += 1;
                    canvas.marker(Marker::Ring, start, 4.0, INK, 1.0)?;
                }
            }
            if let Some(at) = target.and_then(|t| frame.at(t)) {
                canvas.marker(Marker::Cross, at, 6.0, INK, 1.0)?;
            }
            if n_drawn == 0 { frame.nothing_to_show(canvas) } else { Ok(()) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hard_series() -> Vec<Vec<(f64, f64)>> {
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        vec![
            vec![],
            vec![(1.0, 2.0)],
            vec![(0.0, 3.0), (1.0, 3.0), (2.0, 3.0)],
            vec![(nan, 1.0), (1.0, nan), (inf, 2.0), (2.0, -inf)],
            vec![(0.0, 0.0), (1.0, -1.0), (2.0, 0.0)],
            vec![(f64::MAX, f64::MIN), (f64::MIN, f64::MAX), (0.0, f64::MIN_POSITIVE)],
            vec![(5.0, 1.0), (5.0, 1.0)],
            vec![(0.0, 1.0), (1.0, nan), (2.0, 1e-9), (3.0, 0.0), (4.0, 2.0)],
        ]
    }

    fn check(svg: &str) {
        assert!(svg.starts_with("<svg role=\"img\"") && svg.trim_end().ends_with("</svg>"));
        assert_eq!(svg.matches("<svg").count(), 1);
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        // The only address is the name of the SVG language.
        assert_eq!(svg.matches("://").count(), 1);
    }

    #[test]
    fn every_chart_survives_every_series() {
        for points in hard_series() {
            {
                let series = || Series::new("a", points.clone());
                let other = || Series::new("b", [(0.0, 1.0), (1.0, 2.0)]);
                for log in [false, true] {
                    let mut chart = LineChart::new("x", "y").series(series()).markers();
                    chart.is_log = log;
                    check(&chart.render().unwrap());
                    check(&chart.series(other()).level(1e-3, "tolerance").render().unwrap());
                }
                let scatter = ScatterChart::new("x", "y").series(series()).diagonal();
                check(&scatter.render().unwrap());
                check(&scatter.equal_axes().series(other()).render().unwrap());
                let paths = PathChart::new("x", "z").series(series());
                check(&paths.render().unwrap());
                check(&paths.target(f64::NAN, 0.0).series(other()).render().unwrap());
            }
        }
        check(&LineChart::new("x", "y").log_y().level(0.0, "zero").render().unwrap());
        check(&ScatterChart::new("x", "y").equal_axes().render().unwrap());
    }

    #[test]
    fn nothing_drawable_says_so() {
        let chart = LineChart::new("x", "y").log_y().series(Series::counted("a", [0.0, -1.0]));
        assert!(chart.render().unwrap().contains("no data"));
        let chart = LineChart::new("x", "y").series(Series::counted("a", [0.0, -1.0]));
        assert!(!chart.render().unwrap().contains("no data"));
    }

    #[test]
    fn a_gap_in_the_data_is_a_gap_in_the_line() {
        let values = [1.0, 2.0, f64::NAN, 2.0, 1.0];
        let lines = |values: &[f64]| {
            let series = Series::counted("a", values.iter().copied());
            let svg = LineChart::new("x", "y").series(series).render().unwrap();
            svg.matches("stroke=\"#0072B2\"").count()
        };
        assert_eq!(lines(&values), 2);
        assert_eq!(lines(&[1.0, 2.0, 1.5, 2.0, 1.0]), 1);
    }

    #[test]
    fn steps_have_no_ticks_between_them() {
        let chart = LineChart::new("step", "gap").series(Series::counted("a", [1.0, 2.0, 3.0]));
        assert!(chart.render().unwrap().contains("\n0.5\n"));
        let whole = chart.whole_x().render().unwrap();
        assert!(!whole.contains("\n0.5\n") && whole.contains("\n2\n"), "{whole}");
    }

    #[test]
    fn names_are_escaped() {
        let svg = LineChart::new("a < b", "\"q\" & <script>")
            .series(Series::counted("<b>one</b>", [1.0, 2.0]))
            .series(Series::counted("two", [2.0, 1.0]))
            .render()
            .unwrap();
        assert!(!svg.contains("<b>") && !svg.contains("<script>"));
        assert!(svg.contains("&lt;b&gt;one"));
        assert!(svg.contains("aria-label=\"Line chart: &quot;q&quot; &amp; &lt;script&gt;"));
    }

    #[test]
    fn large_scatters_are_thinned_the_same_way_every_time() {
        let points = || (0..50_000).map(|i| (f64::from(i), f64::from(i * 7 % 1000)));
        let chart = || {
            ScatterChart::new("x", "y")
                .series(Series::new("a", points()))
                .series(Series::new("b", points()))
                .render()
                .unwrap()
        };
        let svg = chart();
        assert_eq!(svg, chart());
        assert!(svg.matches("<circle").count() <= 1001);
        let series = Series::new("a", points());
        let kept: Vec<_> = series.thinned(10).collect();
        assert_eq!((kept.len(), kept[0].0, kept[9].0), (10, 0.0, 49_999.0));
    }

    #[test]
    fn text_is_text() {
        let svg = LineChart::new("step", "gap").series(Series::counted("a", [1.0, 0.5])).render();
        let svg = svg.unwrap();
        assert!(svg.contains("<text") && svg.contains("system-ui") && svg.contains("step"));
    }
}
