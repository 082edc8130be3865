//! How well a situation is covered by what was seen.
//!
//! A situation s is familiar where κ(s, ·) is nearly a combination of those of training situations:
//! what is left of κ(s, s) beside them, κ(s, s) − kᵀ(K + σ²I)⁻¹k, is small. Some situations, chosen
//! by pivoted Cholesky, stand for all of them. What is left is told as a percentile of what is left
//! of the training situations, each without itself: 0 is stranger than any of them.

use crate::error::Error;
use argwhy_core::features::FeatureMap;
use argwhy_core::model::{LEVELS, Seen};
use argwhy_core::{Dataset, Kernel, Model};
use ndarray::{Array2, ArrayView1, ArrayView2, Axis};
use rayon::prelude::*;

/// Training situations looked at, and those of them that stand for all.
const LOOKED_AT: usize = 2048;
const PIVOTS: usize = 128;
/// σ² as a share of the mean of κ(s, s): kernels of few dimensions leave nothing without it.
const NOISE: f64 = 1e-4;
/// Below this percentile a situation is strange.
pub const STRANGE: f64 = 1.0;

/// Least and greatest value of each signal over some rows.
pub fn ranges(signals: ArrayView2<'_, f64>, rows: &[usize]) -> (Vec<f64>, Vec<f64>) {
    let mut lowest = vec![f64::INFINITY; signals.ncols()];
    let mut highest = vec![f64::NEG_INFINITY; signals.ncols()];
    for &row in rows {
        for (j, value) in signals.row(row).iter().enumerate() {
            lowest[j] = lowest[j].min(*value);
            highest[j] = highest[j].max(*value);
        }
    }
    (lowest, highest)
}

/// Which signals never change in some rows, in words: no data can tell what they do.
pub fn constant_note(data: &Dataset, rows: &[usize]) -> Option<String> {
    let (lowest, highest) = ranges(data.signals(), rows);
    let constant: Vec<String> = (0..lowest.len())
        .filter(|&j| rows.len() > 1 && lowest[j] == highest[j])
        .map(|j| format!("{} is always {}", data.names().signal(j), lowest[j]))
        .collect();
    let named = constant[..constant.len().min(MOST_NAMED)].join(", ");
    let more = match constant.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let note = format!("{named}{more}: what a signal does that never changes cannot be learned");
    (!constant.is_empty()).then_some(note)
}

/// Signals that are named in a note.
const MOST_NAMED: usize = 5;

/// What a model remembers of the situations it was trained on: those rows of `signals`.
pub fn seen(
    map: &FeatureMap,
    kernel: &Kernel,
    signals: ArrayView2<'_, f64>,
    rows: &[usize],
) -> Result<Seen, Error> {
    let (lowest, highest) = ranges(signals, rows);
    let (n, taken) = (rows.len(), rows.len().min(LOOKED_AT));
    let picked: Vec<usize> = (0..taken).map(|i| rows[i * n / taken]).collect();
    let looked_at = signals.select(Axis(0), &picked);
    let features = map.transform(looked_at.view())?;
    let rows: Vec<&[f64]> =
        features.rows().into_iter().map(|r| r.to_slice().unwrap_or(&[])).collect();
    let pivots = choose(kernel, &rows);
    let span = Span::new(kernel, pivots.iter().map(|&i| rows[i].to_vec()).collect());
    let own = span.without_themselves();
    let mut left: Vec<f64> = (0..rows.len())
        .into_par_iter()
        .map(|i| match pivots.iter().position(|&pivot| pivot == i) {
            Some(at) => own[at],
            None => span.left(rows[i]),
        })
        .collect();
    left.sort_unstable_by(f64::total_cmp);
    let quantile = |level: &f64| left[(level / 100.0 * (left.len() - 1) as f64).floor() as usize];
    Ok(Seen {
        lowest,
        highest,
        pivots: looked_at.select(Axis(0), &pivots),
        left: LEVELS.iter().map(quantile).collect(),
    })
}

/// What a model remembers that keeps no situations: the range of each signal.
pub fn ranges_alone(signals: ArrayView2<'_, f64>, rows: &[usize]) -> Seen {
    let (lowest, highest) = ranges(signals, rows);
    let pivots = Array2::zeros((0, signals.ncols()));
    Seen { lowest, highest, pivots, left: vec![0.0; LEVELS.len()] }
}

/// Rows that span the others best, one after the other the one of which most is left; where nothing
/// is left of any, some more of them, evenly, so that none stands alone for the others.
fn choose(kernel: &Kernel, rows: &[&[f64]]) -> Vec<usize> {
    let mut left: Vec<f64> = rows.iter().map(|row| kernel.evaluate(row, row)).collect();
    let noise = noise(left.iter().sum::<f64>() / rows.len().max(1) as f64);
    let mut columns: Vec<Vec<f64>> = Vec::new();
    let mut pivots = Vec::new();
    while pivots.len() < PIVOTS.min(rows.len()) {
        let most = (0..rows.len()).max_by(|&a, &b| left[a].total_cmp(&left[b]));
        let Some(pivot) = most.filter(|&at| left[at] > noise) else { break };
        let root = left[pivot].sqrt();
        let column: Vec<f64> = (0..rows.len())
            .into_par_iter()
            .map(|i| {
                let before: f64 = columns.iter().map(|c| c[i] * c[pivot]).sum();
                (kernel.evaluate(rows[i], rows[pivot]) - before) / root
            })
            .collect();
        left.iter_mut().zip(&column).for_each(|(left, c)| *left = (*left - c * c).max(0.0));
        left[pivot] = 0.0;
        columns.push(column);
        pivots.push(pivot);
    }
    let missing = PIVOTS.min(rows.len()) - pivots.len();
    let others: Vec<usize> = (0..rows.len()).filter(|row| !pivots.contains(row)).collect();
    pivots.extend((0..missing).map(|i| others[i * others.len() / missing]));
    pivots
}

/// σ² where κ(s, s) has this mean. A kernel that is zero everywhere leaves nothing to divide by.
fn noise(mean: f64) -> f64 {
    (NOISE * mean).max(f64::MIN_POSITIVE)
}

/// The pivots with the factor of K + σ²I.
struct Span {
    kernel: Kernel,
    pivots: Vec<Vec<f64>>,
    /// Lower triangle, row by row.
    factor: Array2<f64>,
    noise: f64,
}

impl Span {
    fn new(kernel: &Kernel, pivots: Vec<Vec<f64>>) -> Self {
        let n = pivots.len();
        let mut matrix =
            Array2::from_shape_fn((n, n), |(i, j)| kernel.evaluate(&pivots[i], &pivots[j]));
        let mean = matrix.diag().sum() / n.max(1) as f64;
        let noise = noise(mean);
        matrix.diag_mut().iter_mut().for_each(|value| *value += noise);
        Self { kernel: kernel.clone(), factor: cholesky(matrix), pivots, noise }
    }

    /// What is left of κ(z, z).
    fn left(&self, features: &[f64]) -> f64 {
        let mut k: Vec<f64> =
            self.pivots.iter().map(|pivot| self.kernel.evaluate(features, pivot)).collect();
        let mut explained = 0.0;
        for i in 0..k.len() {
            let before: f64 = (0..i).map(|j| self.factor[[i, j]] * k[j]).sum();
            k[i] = (k[i] - before) / self.factor[[i, i]];
            explained += k[i] * k[i];
        }
        (self.kernel.evaluate(features, features) - explained).max(0.0)
    }

    /// What is left of each pivot beside the others: 1/((K + σ²I)⁻¹)_ii − σ².
    fn without_themselves(&self) -> Vec<f64> {
        let n = self.pivots.len();
        let of_inverse = |column: usize| {
            // Column by column of the factor's inverse.
            let mut solved = vec![0.0; n];
            for i in column..n {
                let unit = f64::from(u8::from(i == column));
                let before: f64 = (column..i).map(|j| self.factor[[i, j]] * solved[j]).sum();
                solved[i] = (unit - before) / self.factor[[i, i]];
            }
            solved.iter().map(|value| value * value).sum::<f64>()
        };
        (0..n).map(|column| (1.0 / of_inverse(column) - self.noise).max(0.0)).collect()
    }
}

/// The lower factor of a positive definite matrix.
fn cholesky(mut matrix: Array2<f64>) -> Array2<f64> {
    let n = matrix.nrows();
    for i in 0..n {
        for j in 0..=i {
            let before: f64 = (0..j).map(|k| matrix[[i, k]] * matrix[[j, k]]).sum();
            let rest = matrix[[i, j]] - before;
            matrix[[i, j]] =
                if i == j { rest.max(f64::MIN_POSITIVE).sqrt() } else { rest / matrix[[j, j]] };
        }
    }
    matrix
}

/// A model ready to say how familiar situations are.
pub struct Familiarity {
    map: FeatureMap,
    span: Span,
    seen: Seen,
}

impl Familiarity {
    /// None for models of versions that did not remember what they saw.
    pub fn new(model: &Model) -> Result<Option<Self>, Error> {
        let Some(seen) = &model.seen else { return Ok(None) };
        let map = model.features.clone();
        let pivots = if seen.pivots.nrows() == 0 {
            Vec::new()
        } else {
            let features = map.transform(seen.pivots.view())?;
            features.rows().into_iter().map(|row| row.to_vec()).collect()
        };
        let span = Span::new(&model.kernel(), pivots);
        Ok(Some(Self { map, span, seen: seen.clone() }))
    }

    /// The percentile of each row, 0 to 100: the share of training situations that were stranger.
    /// Of a plain model, which remembers ranges alone: 0 where a signal is out of its range, else
    /// 100.
    pub fn percentiles(&self, signals: ArrayView2<'_, f64>) -> Result<Vec<f64>, Error> {
        if signals.nrows() == 0 {
            return Ok(Vec::new());
        }
        if self.seen.pivots.nrows() == 0 {
            let within = |row: ArrayView1<'_, f64>| self.outside(&row.to_vec()).is_empty();
            let rows = signals.rows().into_iter();
            return Ok(rows.map(|row| if within(row) { 100.0 } else { 0.0 }).collect());
        }
        let features = self.map.transform(signals)?;
        let rows: Vec<Vec<f64>> = features.rows().into_iter().map(|row| row.to_vec()).collect();
        Ok(rows.par_iter().map(|row| self.percentile(self.span.left(row))).collect())
    }

    fn percentile(&self, left: f64) -> f64 {
        let quantiles = &self.seen.left;
        let at = quantiles.partition_point(|q| *q < left);
        let below = match at {
            0 => 0.0,
            at if at == quantiles.len() => 100.0,
            at => {
                let share = (left - quantiles[at - 1]) / (quantiles[at] - quantiles[at - 1]);
                LEVELS[at - 1] + share * (LEVELS[at] - LEVELS[at - 1])
            }
        };
        100.0 - below
    }

    /// Signals of one row that are outside what was seen, by their numbers.
    pub fn outside(&self, signal: &[f64]) -> Vec<usize> {
        let Seen { lowest, highest, .. } = &self.seen;
        (0..signal.len()).filter(|&j| signal[j] < lowest[j] || signal[j] > highest[j]).collect()
    }

    /// Least and greatest value of a signal.
    pub fn range(&self, j: usize) -> (f64, f64) {
        (self.seen.lowest[j], self.seen.highest[j])
    }

    /// Signals that never changed, by their numbers.
    pub fn constant(&self) -> Vec<usize> {
        let Seen { lowest, highest, .. } = &self.seen;
        (0..lowest.len()).filter(|&j| lowest[j] == highest[j]).collect()
    }
}
