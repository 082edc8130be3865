//! The two signals that matter most together: accumulated local effects of second order.
//!
//! Every row is moved to the four corners of its own cell of a grid. What a corner has beyond the
//! sum of the two sides, accumulated over cells, is what the two do together.

use super::Explainer;
use super::effects::{Bins, SignalEffect};
use crate::error::Error;
use ndarray::{Array2, ArrayView2, Axis, s};
use serde::Serialize;

/// Signals that are tried with each other: the most important ones.
const TRIED: usize = 6;
/// Cells along each side of the grid at most.
const CELLS: usize = 10;
/// Rows that are moved at most.
const ROWS: usize = 600;

/// Two signals and what is desired over both.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pair {
    /// Names of the two.
    pub names: [String; 2],
    /// The decision they act on most, as a number.
    pub decision: usize,
    /// Share of that decision's variation that they make together, beyond what each makes alone.
    pub share: f64,
    /// Edges of the cells along the first and the second.
    pub at: [Vec<f64>; 2],
    /// Effect on g in each cell, its mean over the situations at zero: rows along the first signal.
    /// None where there is no data.
    pub desired: Vec<Vec<Option<f64>>>,
}

struct Grid {
    bins: [Bins; 2],
    counts: Array2<f64>,
}

/// What two signals do together.
struct Together {
    pair: (usize, usize),
    grid: Grid,
    /// A surface over the corners for each decision, and its variance.
    surfaces: Vec<(Array2<f64>, f64)>,
}

impl Explainer<'_> {
    /// The strongest pair among the most important signals, where there are two.
    pub(super) fn pair(&self, signals: &[SignalEffect]) -> Result<Option<Pair>, Error> {
        let moving: Vec<&SignalEffect> = signals
            .iter()
            .filter(|s| s.effect.is_some() && s.importance > 0.0)
            .take(TRIED)
            .collect();
        let n = self.situations.signals.nrows();
        let used = n.min(ROWS);
        let picked: Vec<usize> = (0..used).map(|i| i * n / used).collect();
        let rows = self.situations.signals.select(Axis(0), &picked);
        let variances = self.desired(&rows)?.var_axis(Axis(0), 0.0);
        let mut strongest: Option<(f64, usize, Together)> = None;
        for (at, a) in moving.iter().enumerate() {
            for b in &moving[at + 1..] {
                let Some(together) = self.together(&rows, (a.number, b.number))? else { continue };
                let share =
                    |m: &usize| together.surfaces[*m].1 / variances[*m].max(f64::MIN_POSITIVE);
                let most =
                    (0..variances.len()).max_by(|m, other| share(m).total_cmp(&share(other)));
                let Some(m) = most else { continue };
                let share = share(&m);
                if strongest.as_ref().is_none_or(|(most, ..)| share > *most) {
                    strongest = Some((share, m, together));
                }
            }
        }
        Ok(strongest.map(|(share, m, together)| self.drawn(share, m, together, signals)))
    }

    fn together(
        &self,
        rows: &Array2<f64>,
        pair: (usize, usize),
    ) -> Result<Option<Together>, Error> {
        let bins = [pair.0, pair.1].map(|j| Bins::new(&rows.column(j).to_vec(), CELLS));
        if bins.iter().any(|bins| bins.edges.len() < 2) {
            return Ok(None);
        }
        let n = rows.nrows();
        let mut corners = Array2::zeros((4 * n, rows.ncols()));
        for corner in 0..4 {
            let mut part = corners.slice_mut(s![corner * n..(corner + 1) * n, ..]);
            part.assign(rows);
            for i in 0..n {
                part[[i, pair.0]] = bins[0].edges[bins[0].of[i] + corner / 2];
                part[[i, pair.1]] = bins[1].edges[bins[1].of[i] + corner % 2];
            }
        }
        let desired = self.desired(&corners)?;
        let mut counts = Array2::zeros((bins[0].len(), bins[1].len()));
        (0..n).for_each(|i| counts[[bins[0].of[i], bins[1].of[i]]] += 1.0);
        let grid = Grid { bins, counts };
        let surfaces = (0..desired.ncols())
            .map(|m| {
                let g = |corner: usize, i: usize| desired[[corner * n + i, m]];
                let mixed = |i: usize| g(3, i) - g(2, i) - g(1, i) + g(0, i);
                grid.surface(&(0..n).map(mixed).collect::<Vec<f64>>())
            })
            .collect();
        Ok(Some(Together { pair, grid, surfaces }))
    }

    /// The picture: both alone and together, in the cells that have rows.
    fn drawn(
        &self,
        share: f64,
        decision: usize,
        together: Together,
        signals: &[SignalEffect],
    ) -> Pair {
        let Together { pair, grid, surfaces } = together;
        let alone = |j: usize, at: f64| {
            let effect = signals.iter().find(|s| s.number == j).and_then(|s| s.effect.as_ref());
            effect.map_or(0.0, |effect| interpolated(&effect.at, &effect.desired[decision], at))
        };
        let middle = |edges: &[f64], k: usize| 0.5 * (edges[k] + edges[k + 1]);
        let [first, second] = &grid.bins;
        let surface = surfaces[decision].0.view();
        let cell = |a: usize, b: usize| {
            (grid.counts[[a, b]] > 0.0).then(|| {
                alone(pair.0, middle(&first.edges, a))
                    + alone(pair.1, middle(&second.edges, b))
                    + mean_of_corners(surface, a, b)
            })
        };
        let desired =
            (0..first.len()).map(|a| (0..second.len()).map(|b| cell(a, b)).collect()).collect();
        let [first, second] = grid.bins;
        Pair {
            names: [self.model.names.signal(pair.0), self.model.names.signal(pair.1)],
            decision,
            share: share.min(1.0),
            at: [first.edges, second.edges],
            desired,
        }
    }
}

impl Grid {
    /// Mixed differences of the rows, accumulated, without what either signal does alone; and the
    /// variance of that over the rows.
    fn surface(&self, mixed: &[f64]) -> (Array2<f64>, f64) {
        let (a, b) = self.counts.dim();
        let mut cells = Array2::<f64>::zeros((a, b));
        for (i, value) in mixed.iter().enumerate() {
            let at = [self.bins[0].of[i], self.bins[1].of[i]];
            cells[at] += value / self.counts[at];
        }
        let mut surface = Array2::<f64>::zeros((a + 1, b + 1));
        for k in 0..a {
            for l in 0..b {
                surface[[k + 1, l + 1]] =
                    surface[[k, l + 1]] + surface[[k + 1, l]] - surface[[k, l]] + cells[[k, l]];
            }
        }
        let alone = [self.side(&surface, 0), self.side(&surface, 1)];
        for ((k, l), value) in surface.indexed_iter_mut() {
            *value -= alone[0][k] + alone[1][l];
        }
        let n = self.counts.sum().max(1.0);
        let at = |k: usize, l: usize| mean_of_corners(surface.view(), k, l);
        let each = || self.counts.indexed_iter().map(|((k, l), count)| (at(k, l), count / n));
        let mean: f64 = each().map(|(value, share)| value * share).sum();
        let variance = each().map(|(value, share)| share * (value - mean).powi(2)).sum();
        surface.mapv_inplace(|value| value - mean);
        (surface, variance)
    }

    /// What the surface does along one signal on average: the mean step from edge to edge, over the
    /// rows of the cells between them, accumulated.
    fn side(&self, surface: &Array2<f64>, side: usize) -> Vec<f64> {
        let (counts, surface) = match side {
            0 => (self.counts.view(), surface.view()),
            _ => (self.counts.t(), surface.t()),
        };
        let mut along = vec![0.0];
        for (k, counts) in counts.rows().into_iter().enumerate() {
            let step = |l: usize| surface[[k + 1, l]] - surface[[k, l]];
            let steps = counts.iter().enumerate().map(|(l, n)| n * 0.5 * (step(l) + step(l + 1)));
            along.push(along[k] + steps.sum::<f64>() / counts.sum().max(1.0));
        }
        along
    }
}

/// The middle of a cell, from its corners.
fn mean_of_corners(surface: ArrayView2<'_, f64>, k: usize, l: usize) -> f64 {
    surface.slice(s![k..k + 2, l..l + 2]).sum() / 4.0
}

/// A curve between its edges.
fn interpolated(edges: &[f64], curve: &[f64], at: f64) -> f64 {
    let k = edges.partition_point(|e| *e < at).clamp(1, edges.len() - 1);
    let share = ((at - edges[k - 1]) / (edges[k] - edges[k - 1])).clamp(0.0, 1.0);
    curve[k - 1] + share * (curve[k] - curve[k - 1])
}
