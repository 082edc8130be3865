//! Charts of bars: named amounts, and how values are distributed.

use super::ReportError;
use super::axis::{Axis, extent, is_drawable, number};
use super::canvas::{
    self, Frame, HEIGHT, INK, LegendEntry, MUTED, SMALL, Shape, Swatch, WIDTH, color, lone_color,
    text_width,
};
use plotters::style::text_anchor::{HPos, VPos};

const MAX_BARS: usize = 40;
const MAX_LABEL: usize = 30;
const BAR_ROW: f64 = 28.0;

/// Named amounts, one bar below the other, each with its number.
#[derive(Debug, Clone)]
pub struct BarChart {
    label: String,
    bars: Vec<(String, f64)>,
}

impl BarChart {
    /// An empty chart; `label` says what the bars measure (with its unit).
    pub fn new(label: impl Into<String>) -> Self {
        Self { label: label.into(), bars: Vec::new() }
    }

    /// Adds a bar. The first 40 are drawn; one that is not finite has a number and no length.
    #[must_use]
    pub fn bar(mut self, name: impl Into<String>, value: f64) -> Self {
        self.bars.push((name.into(), value));
        self
    }

    /// The chart as SVG.
    pub fn render(&self) -> Result<String, ReportError> {
        let shown = &self.bars[..self.bars.len().min(MAX_BARS)];
        let names: Vec<String> = shown.iter().map(|(name, _)| shortened(name)).collect();
        let widest = |texts: &mut dyn Iterator<Item = String>| {
            texts.map(|t| text_width(&t, SMALL)).fold(0.0, f64::max)
        };
        let left = 12.0 + widest(&mut names.iter().cloned());
        let room = 12.0 + widest(&mut shown.iter().map(|(_, v)| number(*v)));
        let (lo, hi) = extent(shown.iter().map(|b| b.1).chain([0.0])).unwrap_or((0.0, 1.0));
        let has_negative = lo < 0.0;
        let start = left + 8.0 + if has_negative { room } else { 0.0 };
        let scale = (WIDTH - 16.0 - room - start) / if hi > lo { hi - lo } else { 1.0 };
        let place = |value: f64| start + (value - lo) * scale;
        let height = 48.0 + BAR_ROW * shown.len().max(1) as f64;
        let description = format!("Bar chart: {}", self.label);
        canvas::draw(height, &description, |canvas| {
            let middle = (HPos::Left, VPos::Center);
            canvas.text(&self.label, (8.0, 18.0), SMALL + 1.0, INK, middle)?;
            let top = 36.0;
            if shown.is_empty() {
                return canvas.text("no data", (8.0, top + BAR_ROW / 2.0), SMALL, MUTED, middle);
            }
            for (i, ((own, value), name)) in shown.iter().zip(&names).enumerate() {
                let y = top + BAR_ROW * (i as f64 + 0.5);
                canvas.text(name, (left, y), SMALL, INK, (HPos::Right, VPos::Center))?;
                let end = if is_drawable(*value) { place(*value) } else { place(0.0) };
                let (from, to) = (end.min(place(0.0)), end.max(place(0.0)));
                canvas.block((from, y - 9.0), (to, y + 9.0), lone_color(own), 1.0)?;
                let (at, side) =
                    if *value < 0.0 { (from - 6.0, HPos::Right) } else { (to + 6.0, HPos::Left) };
                canvas.text(&number(*value), (at, y), SMALL, MUTED, (side, VPos::Center))?;
            }
            let bottom = top + BAR_ROW * shown.len() as f64;
            canvas.line(&[(place(0.0), top), (place(0.0), bottom)], MUTED, 1.25)
        })
    }
}

/// Long names lose their ends; of `name = value` the value stays.
fn shortened(name: &str) -> String {
    if name.chars().count() <= MAX_LABEL {
        return name.to_owned();
    }
    let value = name.rfind(" = ").map_or("", |at| &name[at..]);
    let kept = MAX_LABEL.saturating_sub(1 + value.chars().count());
    if value.is_empty() || kept < MAX_LABEL / 3 {
        return name.chars().take(MAX_LABEL - 1).chain(['…']).collect();
    }
    name.chars().take(kept).chain(['…']).chain(value.chars()).collect()
}

/// How values are distributed: counts in bins of equal width.
#[derive(Debug, Clone)]
pub struct Histogram {
    label: String,
    n_bins: usize,
    series: Vec<(String, Vec<f64>)>,
}

impl Histogram {
    /// An empty chart; `label` says what is counted (with its unit). 30 bins.
    pub fn new(label: impl Into<String>) -> Self {
        Self { label: label.into(), n_bins: 30, series: Vec::new() }
    }

    /// Changes the number of bins, 1 to 200.
    #[must_use]
    pub fn bins(mut self, n_bins: usize) -> Self {
        self.n_bins = n_bins.clamp(1, 200);
        self
    }

    /// Adds values; those that are not finite are not counted. Several series share their bins.
    #[must_use]
    pub fn series(
        mut self,
        name: impl Into<String>,
        values: impl IntoIterator<Item = f64>,
    ) -> Self {
        let drawable = values.into_iter().filter(|v| is_drawable(*v)).collect();
        self.series.push((name.into(), drawable));
        self
    }

    /// The chart as SVG.
    pub fn render(&self) -> Result<String, ReportError> {
        let all: Vec<f64> =
            self.series.iter().flat_map(|(_, values)| values.iter().copied()).collect();
        let (lo, hi) = extent(all.iter().copied()).unwrap_or((0.0, 1.0));
        // A few whole numbers have a bin each, around them.
        let are_whole = hi > lo && all.iter().all(|value| value.fract() == 0.0);
        let (x, n_bins) = if are_whole && hi - lo < self.n_bins as f64 {
            (Axis::over(&all, (lo - 0.5, hi + 0.5), 8), (hi - lo) as usize + 1)
        } else {
            (Axis::between(lo, hi, 8), self.n_bins)
        };
        let (lo, hi) = (x.lo, x.hi);
        let counts: Vec<_> =
            self.series.iter().map(|(_, values)| counted(values, lo, hi, n_bins)).collect();
        let highest = counts.iter().flatten().copied().max().unwrap_or(0).max(1);
        let y = Axis::over(&[], (0.0, highest as f64 * 1.04), 6);
        let several = self.series.len() > 1;
        let entries: Vec<_> = self
            .series
            .iter()
            .enumerate()
            .filter(|_| several)
            .map(|(i, (name, _))| LegendEntry {
                name,
                color: color(name, i),
                swatch: Swatch::Block,
            })
            .collect();
        let description = format!("Histogram: {}", self.label);
        canvas::draw(HEIGHT, &description, |canvas| {
            let labels = (self.label.as_str(), "count");
            let frame = Frame::new(canvas, (x, y), labels, &entries, Shape::Fill)?;
            let edge = |bin: usize| lo + (hi - lo) * bin as f64 / n_bins as f64;
            for (i, (counts, (name, _))) in counts.iter().zip(&self.series).enumerate() {
                let tone = if several { color(name, i) } else { lone_color(name) };
                if several {
                    let steps: Vec<_> = outline(counts, edge).filter_map(|p| frame.at(p)).collect();
                    canvas.line(&steps, tone, 1.5)?;
                }
                for (bin, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
                    let from = frame.at((edge(bin), *count as f64));
                    let to = frame.at((edge(bin + 1), 0.0));
                    if let (Some(from), Some(to)) = (from, to) {
                        // A half-pixel seam tells neighbouring bins apart.
                        let to = (to.0 - 0.5, to.1);
                        canvas.block(from, to, tone, if several { 0.3 } else { 0.9 })?;
                    }
                }
            }
            let n_values: usize = self.series.iter().map(|(_, values)| values.len()).sum();
            if n_values == 0 { frame.nothing_to_show(canvas) } else { Ok(()) }
        })
    }
}

/// The upper edge of the bars from left to right.
fn outline<'a>(
    counts: &'a [usize],
    edge: impl Fn(usize) -> f64 + 'a,
) -> impl Iterator<Item = (f64, f64)> + 'a {
    let tops = counts.iter().enumerate();
    let steps = tops.map(move |(bin, c)| [(edge(bin), *c as f64), (edge(bin + 1), *c as f64)]);
    steps.flatten()
}

fn counted(values: &[f64], lo: f64, hi: f64, n_bins: usize) -> Vec<usize> {
    let mut counts = vec![0; n_bins];
    for value in values {
        let bin = ((value - lo) / (hi - lo) * n_bins as f64) as usize;
        counts[bin.min(n_bins - 1)] += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_survive_everything() {
        let empty = BarChart::new("weight").render().unwrap();
        assert!(empty.contains("no data"));
        let cases =
            [vec![0.0], vec![1.0, -2.0], vec![f64::NAN, f64::INFINITY, 3.0], vec![5.0; 100]];
        for values in cases {
            let chart = values.iter().fold(BarChart::new("w <&>"), |c, v| c.bar("<i>name</i>", *v));
            let svg = chart.render().unwrap();
            assert!(svg.trim_end().ends_with("</svg>") && !svg.contains("<i>"));
            assert!(svg.matches("<rect").count() <= MAX_BARS + 1);
            assert!(!svg.contains("x=\"NaN") && !svg.contains("width=\"-"));
        }
    }

    #[test]
    fn long_names_are_shortened_by_letters() {
        assert_eq!(shortened("short"), "short");
        assert_eq!(shortened(&"ä".repeat(50)).chars().count(), MAX_LABEL);
    }

    #[test]
    fn every_finite_value_is_counted_once() {
        let values = [0.0, 0.1, 0.5, 0.999, 1.0, 1.0];
        assert_eq!(counted(&values, 0.0, 1.0, 2), [2, 4]);
        assert_eq!(counted(&[3.0; 7], 2.7, 3.3, 5).iter().sum::<usize>(), 7);
    }

    #[test]
    fn whole_numbers_have_a_bin_each() {
        let values = [0.0, 0.0, 1.0, 3.0, 3.0, 3.0];
        let svg = Histogram::new("stage").series("a", values).render().unwrap();
        // The background and a block for each value there is.
        assert_eq!(svg.matches("<rect").count(), 4);
        let labels: Vec<&str> = svg.lines().map(str::trim).collect();
        assert!(labels.contains(&"1") && !labels.contains(&"0.5"), "{svg}");
    }

    #[test]
    fn of_a_name_with_its_value_the_value_stays() {
        let long = shortened("a signal with a very long name indeed = 25.82 EUR/MWh");
        assert_eq!(long.chars().count(), MAX_LABEL);
        assert!(long.ends_with("… = 25.82 EUR/MWh"), "{long}");
        assert!(shortened(&"x".repeat(99)).ends_with('…'));
    }

    #[test]
    fn histograms_survive_everything() {
        for values in [vec![], vec![2.0], vec![2.0; 9], vec![f64::NAN, 1.0, f64::INFINITY, -1e200]]
        {
            let one = Histogram::new("error").bins(0).series("a", values.clone());
            let two = one.clone().bins(12).series("b", [1.0, 2.0, 3.0]);
            for chart in [one, two] {
                let svg = chart.render().unwrap();
                assert!(svg.trim_end().ends_with("</svg>") && !svg.contains("NaN"));
            }
        }
        assert!(Histogram::new("error").render().unwrap().contains("no data"));
    }
}
