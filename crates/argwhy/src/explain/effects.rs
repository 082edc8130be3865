//! What each signal does: accumulated local effects.
//!
//! Along a signal, cut into bins of as many rows each, every row is moved to both edges of its own
//! bin and no further, so that nothing is asked where there is no data. The mean step of a bin,
//! summed over bins, is the effect; how much the steps differ from row to row is its spread, which
//! is zero where a signal acts alone, and the whole effect where it acts only together with others.
//!
//! A decision that a limit holds does not show what is desired beyond the limit, so the steps of g
//! are those of the rows that nothing holds, where a bin has some: the others are guesses.

use super::Explainer;
use crate::error::Error;
use ndarray::{Array2, ArrayView1};
use serde::Serialize;

/// Bins at most, and rows that a bin should have.
const MOST_BINS: usize = 32;
const ROWS_A_BIN: usize = 10;

/// Share of the rows at each end that curves do not reach out to; they count in the outermost bins.
const OUTERMOST: f64 = 0.02;

/// Rows that nothing holds from which on a bin's step is theirs alone.
const LEAST_FREE: usize = 2;

/// One signal.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SignalEffect {
    /// Its name.
    pub name: String,
    /// Its number in the model.
    pub number: usize,
    /// Its share of the variation of g, the mean over decisions.
    pub importance: f64,
    /// The same, decision by decision.
    pub importances: Vec<f64>,
    /// Its effect; none where it never changes.
    pub effect: Option<Effect>,
}

/// Curves over a signal, each with its mean at zero: over the situations it rests on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Effect {
    /// Values of the signal: the edges of the bins.
    pub at: Vec<f64>,
    /// Rows between each two edges; those beyond the first and the last are not counted.
    pub rows: Vec<usize>,
    /// Effect on g, a list a decision.
    pub desired: Vec<Vec<f64>>,
    /// How far the effect on g differs from situation to situation, a list a decision.
    pub spread: Vec<Vec<f64>>,
    /// Rows of each bin in which no limit holds the decision, a list a decision: the effect on g
    /// rests on them, and is a guess where there is less than two. None where limits are not known.
    pub free: Option<Vec<Vec<usize>>>,
    /// Effect on the decision, a list a decision; none where limits are not known.
    pub decision: Option<Vec<Vec<f64>>>,
}

impl Effect {
    /// Whether the effect on the desired decision `m` rests on decisions that nothing holds, in a
    /// bin.
    pub fn is_known(&self, m: usize, bin: usize) -> bool {
        self.free.as_ref().is_none_or(|free| free[m][bin] >= LEAST_FREE)
    }

    /// The first and the last edge between which that is so; none where it is nowhere.
    pub fn known(&self, m: usize) -> Option<(usize, usize)> {
        let mut known = (0..self.at.len() - 1).filter(|&bin| self.is_known(m, bin));
        let first = known.next()?;
        Some((first, known.next_back().unwrap_or(first) + 1))
    }
}

/// The bins of one signal.
pub(super) struct Bins {
    pub edges: Vec<f64>,
    /// The bin of every row.
    pub of: Vec<usize>,
}

impl Bins {
    /// At most so many bins of as many rows each; fewer where values repeat, none where there is
    /// one value.
    pub fn new(values: &[f64], most: usize) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let n = sorted.len();
        let bins = (n / ROWS_A_BIN).clamp(2, most);
        // The outermost rows lie alone: what a signal does between them rests on nothing.
        let cut = (n as f64 * OUTERMOST) as usize;
        let mut edges: Vec<f64> =
            (0..=bins).map(|k| sorted[cut + k * (n - 1 - 2 * cut) / bins]).collect();
        edges.dedup();
        let last = edges.len().saturating_sub(2);
        // (lower edge, upper edge], the lowest value in the first.
        let bin = |value: &f64| edges.partition_point(|e| e < value).saturating_sub(1).min(last);
        Self { of: values.iter().map(bin).collect(), edges }
    }

    pub fn len(&self) -> usize {
        self.edges.len() - 1
    }

    /// Rows in each bin that lie between the edges themselves.
    fn rows_between(&self, values: &[f64]) -> Vec<usize> {
        let mut rows = vec![0; self.len()];
        let within = self.edges[0]..=self.edges[self.len()];
        let inside = self.of.iter().zip(values).filter(|(_, value)| within.contains(value));
        inside.for_each(|(&bin, _)| rows[bin] += 1);
        rows
    }

    /// Rows in each bin, of those that count.
    fn rows(&self, counts: impl Fn(usize) -> bool) -> Vec<usize> {
        let mut rows = vec![0; self.len()];
        let counted = self.of.iter().enumerate().filter(|(i, _)| counts(*i));
        counted.for_each(|(_, &bin)| rows[bin] += 1);
        rows
    }
}

/// A curve over edges and how much of the variation it makes.
struct Curve {
    at_edges: Vec<f64>,
    variance: f64,
}

impl Curve {
    /// Steps from edge to edge, summed; centred over the rows of the bins that they rest on.
    fn accumulated(steps: &[f64], rows: &[usize], rests_on: &[usize]) -> Self {
        let mut at_edges = vec![0.0];
        for step in steps {
            at_edges.push(at_edges[at_edges.len() - 1] + step);
        }
        let middle = |k: usize| 0.5 * (at_edges[k] + at_edges[k + 1]);
        let mean = |rows: &[usize]| -> f64 {
            let n: usize = rows.iter().sum();
            (0..steps.len()).map(|k| rows[k] as f64 / n.max(1) as f64 * middle(k)).sum()
        };
        let (n, all) = (rows.iter().sum::<usize>(), mean(rows));
        // Along a bin the curve is a line: its own variance there is step²/12.
        let variance = (0..steps.len())
            .map(|k| {
                let share = rows[k] as f64 / n.max(1) as f64;
                share * ((middle(k) - all).powi(2) + steps[k] * steps[k] / 12.0)
            })
            .sum();
        let level = if rests_on.iter().any(|rows| *rows > 0) { mean(rests_on) } else { all };
        at_edges.iter_mut().for_each(|value| *value -= level);
        Self { at_edges, variance }
    }
}

/// Mean and deviation of the steps in each bin, over the rows that count.
fn steps(
    (low, high): (ArrayView1<'_, f64>, ArrayView1<'_, f64>),
    bins: &Bins,
    counts: impl Fn(usize) -> bool,
) -> [Vec<f64>; 2] {
    let rows = bins.rows(&counts);
    let (mut mean, mut square) = (vec![0.0; rows.len()], vec![0.0; rows.len()]);
    let counted = || bins.of.iter().enumerate().filter(|(i, _)| counts(*i));
    let step = |i: usize| high[i] - low[i];
    for (i, &bin) in counted() {
        mean[bin] += step(i) / rows[bin] as f64;
    }
    for (i, &bin) in counted() {
        square[bin] += (step(i) - mean[bin]).powi(2) / rows[bin] as f64;
    }
    square.iter_mut().for_each(|value| *value = value.sqrt());
    [mean, square]
}

/// What is desired and decided with every row at one side of its bin.
struct Side {
    desired: Array2<f64>,
    decided: Option<Array2<f64>>,
    /// Where no limit holds the decision.
    free: Option<Array2<bool>>,
}

impl Explainer<'_> {
    /// Every signal, the most important first.
    pub(super) fn effects(&self) -> Result<Vec<SignalEffect>, Error> {
        let signal_dim = self.situations.signals.ncols();
        let mut all = Vec::new();
        for j in 0..signal_dim {
            let (effect, variances) = self.effect(j)?;
            all.push((j, effect, variances));
        }
        let dim = self.model.decision_dim();
        let totals: Vec<f64> =
            (0..dim).map(|m| all.iter().map(|(_, _, variances)| variances[m]).sum()).collect();
        // Decisions that never change have no share to give.
        let moved = totals.iter().filter(|total| **total > 0.0).count();
        let mut effects: Vec<SignalEffect> = all
            .into_iter()
            .map(|(number, effect, variances)| {
                let share = |m: usize| if totals[m] > 0.0 { variances[m] / totals[m] } else { 0.0 };
                let importances: Vec<f64> = (0..dim).map(share).collect();
                let importance = importances.iter().sum::<f64>() / moved.max(1) as f64;
                let name = self.model.names.signal(number);
                SignalEffect { name, number, importance, importances, effect }
            })
            .collect();
        effects.sort_by(|a, b| b.importance.total_cmp(&a.importance));
        Ok(effects)
    }

    /// One signal, and how much it makes of each decision's variation.
    fn effect(&self, j: usize) -> Result<(Option<Effect>, Vec<f64>), Error> {
        let signals = &self.situations.signals;
        let dim = self.model.decision_dim();
        let bins = Bins::new(&signals.column(j).to_vec(), MOST_BINS);
        if bins.edges.len() < 2 {
            return Ok((None, vec![0.0; dim]));
        }
        let [low, high] = [self.side(j, &bins, 0)?, self.side(j, &bins, 1)?];
        let rows = bins.rows(|_| true);
        let both = low.free.as_ref().zip(high.free.as_ref());
        let is_free =
            |i: usize, m: usize| both.is_none_or(|(low, high)| low[[i, m]] && high[[i, m]]);
        let (mut desired, mut spread, mut variances) = (Vec::new(), Vec::new(), Vec::new());
        let mut free = Vec::new();
        for m in 0..dim {
            let own = bins.rows(|i| is_free(i, m));
            let is_known = |bin: usize| own[bin] >= LEAST_FREE;
            let counts = |i: usize| !is_known(bins.of[i]) || is_free(i, m);
            let ends = (low.desired.column(m), high.desired.column(m));
            let [mean, deviation] = steps(ends, &bins, counts);
            let known: Vec<usize> =
                (0..own.len()).map(|bin| if is_known(bin) { own[bin] } else { 0 }).collect();
            let curve = Curve::accumulated(&mean, &rows, &known);
            let apart = Curve::accumulated(&deviation, &rows, &rows);
            variances.push(curve.variance + apart.variance);
            desired.push(curve.at_edges);
            spread.push(apart.at_edges.iter().map(|value| value.abs()).collect());
            free.push(own);
        }
        let free = both.is_some().then_some(free);
        let decision = low.decided.as_ref().zip(high.decided.as_ref()).map(|(low, high)| {
            let curve = |m| {
                let [mean, _] = steps((low.column(m), high.column(m)), &bins, |_| true);
                Curve::accumulated(&mean, &rows, &rows).at_edges
            };
            (0..dim).map(curve).collect()
        });
        let rows = bins.rows_between(&signals.column(j).to_vec());
        Ok((Some(Effect { at: bins.edges, rows, desired, spread, free, decision }), variances))
    }

    /// Every row moved to one edge of its bin along a signal.
    fn side(&self, j: usize, bins: &Bins, side: usize) -> Result<Side, Error> {
        let mut moved = self.situations.signals.clone();
        for (value, bin) in moved.column_mut(j).iter_mut().zip(&bins.of) {
            *value = bins.edges[bin + side];
        }
        let every: Vec<usize> = (0..moved.nrows()).collect();
        let desired = self.desired(&moved)?;
        let decided = self.decided(&desired, &every)?;
        let free = decided.as_ref().map(|decided| self.free(&desired, decided));
        Ok(Side { desired, decided, free })
    }
}
