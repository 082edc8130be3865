//! How well a situation is covered by what was seen.
//!
//! A situation s is familiar where κ(s, ·) is nearly a combination of those of training situations:
//! what is left of κ(s, s) beside them, κ(s, s) − kᵀ(K + σ²I)⁻¹k, is small. Some situations, chosen
//! by pivoted Cholesky, stand for all of them. What is left is told as a percentile of what is left
//! of the training situations, each without itself: 0 is stranger than any of them.

use crate::error::Error;
use crate::features::FeatureMap;
use crate::kernel::Kernel;
use crate::linalg::dense::cholesky;
use crate::linalg::shifted::{Growth, cholesky_shifted};
use crate::model::{LEVELS, Model, Seen};
use ndarray::{Array2, ArrayView1, ArrayView2, Axis};
use rayon::prelude::*;
use std::convert::Infallible;

/// Training situations looked at, and those of them that stand for all.
const LOOKED_AT: usize = 2048;
const PIVOTS: usize = 128;
/// σ² as a share of the mean of κ(s, s): kernels of few dimensions leave nothing without it.
const NOISE: f64 = 1e-4;
/// More of it where rounding asks for more, and never so much that nothing is told apart.
const MORE_NOISE: Growth = Growth { times: 10.0, least: 0.0, most: 1.0 };
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

/// What a model remembers of the situations it was trained on: those rows of `signals`.
pub fn seen(
    map: &FeatureMap,
    kernel: &Kernel,
    signals: ArrayView2<'_, f64>,
    training: &[usize],
) -> Result<Seen, Error> {
    let (n, taken) = (training.len(), training.len().min(LOOKED_AT));
    let picked: Vec<usize> = (0..taken).map(|i| training[i * n / taken]).collect();
    let looked_at = signals.select(Axis(0), &picked);
    let features = map.transform(looked_at.view())?;
    let rows: Vec<&[f64]> =
        features.rows().into_iter().map(|r| r.to_slice().unwrap_or(&[])).collect();
    let pivots = choose(kernel, &rows);
    let Some(span) = Span::new(kernel, pivots.iter().map(|&i| rows[i].to_vec()).collect()) else {
        return Ok(ranges_alone(signals, training));
    };
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
        pivots: looked_at.select(Axis(0), &pivots),
        left: LEVELS.iter().map(quantile).collect(),
        ..ranges_alone(signals, training)
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
    /// Lower triangle, column by column.
    factor: Vec<f64>,
    noise: f64,
    /// The mean of κ(s, s) over the pivots.
    typical: f64,
}

impl Span {
    /// None where kernel values are too large to be factorised.
    fn new(kernel: &Kernel, pivots: Vec<Vec<f64>>) -> Option<Self> {
        let n = pivots.len();
        let mean = pivots.iter().map(|p| kernel.evaluate(p, p)).sum::<f64>() / n.max(1) as f64;
        let mut factor = vec![0.0; n * n];
        let fill = |matrix: &mut [f64]| {
            for (column, b) in matrix.chunks_mut(n.max(1)).zip(&pivots) {
                column.iter_mut().zip(&pivots).for_each(|(k, a)| *k = kernel.evaluate(a, b));
            }
            Ok::<(), Infallible>(())
        };
        let Ok(shift) = cholesky_shifted((&mut factor, n), noise(mean), MORE_NOISE, cholesky, fill);
        let typical = mean.max(f64::MIN_POSITIVE);
        shift.map(|noise| Self { kernel: kernel.clone(), pivots, factor, noise, typical })
    }

    /// What is left of κ(z, z).
    fn left(&self, features: &[f64]) -> f64 {
        let k = self.pivots.iter().map(|pivot| self.kernel.evaluate(features, pivot)).collect();
        let explained: f64 = self.solved(k, 0).iter().map(|value| value * value).sum();
        (self.kernel.evaluate(features, features) - explained).max(0.0)
    }

    /// What is left of each pivot beside the others: 1/((K + σ²I)⁻¹)_ii − σ².
    fn without_themselves(&self) -> Vec<f64> {
        let n = self.pivots.len();
        let left = |i: usize| {
            let mut unit = vec![0.0; n];
            unit[i] = 1.0;
            let of_inverse: f64 = self.solved(unit, i).iter().map(|value| value * value).sum();
            (1.0 / of_inverse - self.noise).max(0.0)
        };
        (0..n).map(left).collect()
    }

    /// L⁻¹b for b that is zero before its entry `first`.
    fn solved(&self, mut b: Vec<f64>, first: usize) -> Vec<f64> {
        let n = b.len();
        for j in first..n {
            let column = &self.factor[j * n + j..(j + 1) * n];
            b[j] /= column[0];
            let (value, below) = (b[j], &mut b[j + 1..]);
            below.iter_mut().zip(&column[1..]).for_each(|(b, l)| *b -= l * value);
        }
        b
    }
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
        let span = Span::new(&model.kernel(), pivots).ok_or_else(|| Error::Numerical {
            what: "the situations that the model remembers have too large kernel values".to_owned(),
        })?;
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

    /// What the situations seen leave of each row, as a share of κ(s, s) of a typical one of them;
    /// of a plain model how far its signals are outside their ranges, as a share of these, squared.
    pub fn left(&self, signals: ArrayView2<'_, f64>) -> Result<Vec<f64>, Error> {
        if signals.nrows() == 0 {
            return Ok(Vec::new());
        }
        if self.seen.pivots.nrows() == 0 {
            let beyond = |row: ArrayView1<'_, f64>| self.beyond(&row.to_vec()).powi(2);
            return Ok(signals.rows().into_iter().map(beyond).collect());
        }
        let features = self.map.transform(signals)?;
        let rows: Vec<Vec<f64>> = features.rows().into_iter().map(|row| row.to_vec()).collect();
        Ok(rows.par_iter().map(|row| self.span.left(row) / self.span.typical).collect())
    }

    /// How far one row's signals are outside their ranges at most, in widths of these.
    fn beyond(&self, signal: &[f64]) -> f64 {
        let Seen { lowest, highest, .. } = &self.seen;
        let of_one = |j: usize| {
            let outside = (lowest[j] - signal[j]).max(signal[j] - highest[j]).max(0.0);
            let width = highest[j] - lowest[j];
            // What never changed has no width to compare with.
            if width > 0.0 { outside / width } else { f64::from(u8::from(outside > 0.0)) }
        };
        (0..signal.len()).map(of_one).fold(0.0, f64::max)
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
