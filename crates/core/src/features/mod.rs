//! Signals to features: monomials, z-score, clip.
//!
//! Enters: signals (n_samples × signal_dim). Leaves: features (n_samples × n_features). The
//! statistics are fitted on all loaded rows, in f64, before the training rows are cut out, as the
//! paper's experiments do it: z = clip((m − mean)/(std + 1e-7), ±c), with m all monomials up to
//! degree two, the constant included.
#![allow(unsafe_code)]

mod design;

pub use design::Design;

use crate::dataset::check_finite;
use crate::error::Error;
use crate::linalg::simd::{Arch, Isa, Lanes, Task, sum_lanes};
use ndarray::{Array2, ArrayView1, ArrayView2, s};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Which functions of the signal are features.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Expansion {
    /// 1, every s_i, every s_i·s_j with i ≤ j: (p+1)(p+2)/2 features.
    #[default]
    Poly2,
    /// The signal itself.
    Raw,
}

impl Expansion {
    /// Features made of a signal with `signal_dim` entries.
    pub fn n_features(self, signal_dim: usize) -> usize {
        match self {
            Self::Poly2 => (signal_dim + 1) * (signal_dim + 2) / 2,
            Self::Raw => signal_dim,
        }
    }

    /// What each feature is, in order: `1`, `s0`, `s0*s1`.
    pub fn names(self, signal_dim: usize) -> Vec<String> {
        let linear = (0..signal_dim).map(|i| format!("s{i}"));
        match self {
            Self::Raw => linear.collect(),
            Self::Poly2 => {
                let pairs = (0..signal_dim).flat_map(|i| (i..signal_dim).map(move |j| (i, j)));
                let products = pairs.map(|(i, j)| format!("s{i}*s{j}"));
                std::iter::once("1".to_owned()).chain(linear).chain(products).collect()
            }
        }
    }

    /// Each feature as a product of two of 1, s_0, s_1, …, by their numbers in this order.
    fn factors(self, signal_dim: usize) -> Vec<(usize, usize)> {
        match self {
            Self::Raw => (1..=signal_dim).map(|i| (0, i)).collect(),
            Self::Poly2 => {
                (0..=signal_dim).flat_map(|i| (i..=signal_dim).map(move |j| (i, j))).collect()
            }
        }
    }

    fn write(self, signal: ArrayView1<'_, f64>, out: &mut [f64]) {
        match self {
            Self::Raw => out.iter_mut().zip(signal).for_each(|(o, s)| *o = *s),
            Self::Poly2 => {
                let (constant, rest) = out.split_at_mut(1);
                let (linear, mut quadratic) = rest.split_at_mut(signal.len());
                constant[0] = 1.0;
                linear.iter_mut().zip(signal).for_each(|(o, s)| *o = *s);
                for i in 0..linear.len() {
                    let (products, rest) = quadratic.split_at_mut(linear.len() - i);
                    quadratic = rest;
                    let a = linear[i];
                    products.iter_mut().zip(&linear[i..]).for_each(|(o, b)| *o = a * b);
                }
            }
        }
    }
}

/// How features are brought to one scale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Normalization {
    /// Mean 0 and standard deviation 1 over the loaded rows.
    #[default]
    Zscore,
    /// As they are.
    None,
}

/// The choices behind a [`FeatureMap`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeatureSettings {
    /// Monomials or the raw signal.
    pub expansion: Expansion,
    /// Scaling.
    pub normalization: Normalization,
    /// Features are cut to ±clip; positive.
    pub clip: f64,
}

impl Default for FeatureSettings {
    fn default() -> Self {
        Self {
            expansion: Expansion::default(),
            normalization: Normalization::default(),
            clip: 1000.0,
        }
    }
}

/// A feature map with the statistics it was fitted with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeatureMap {
    settings: FeatureSettings,
    signal_dim: usize,
    mean: Vec<f64>,
    /// 1 / (std + 1e-7).
    inverse_scale: Vec<f64>,
}

/// Keeps constant columns finite: they become zero columns.
const STD_FLOOR: f64 = 1e-7;

impl FeatureMap {
    /// Fits the statistics on all rows of `signals`. Cost: a pass over the expanded features, one
    /// row at a time; more where rows spread over the data say nothing about the rest.
    pub fn fit(settings: FeatureSettings, signals: ArrayView2<'_, f64>) -> Result<Self, Error> {
        Self::fit_weighted(settings, signals, None)
    }

    /// As [`fit`](Self::fit), with row i counting as `weights[i]` rows; not all of them zero.
    pub fn fit_weighted(
        settings: FeatureSettings,
        signals: ArrayView2<'_, f64>,
        weights: Option<&[f64]>,
    ) -> Result<Self, Error> {
        check_clip(settings.clip)?;
        check_finite("signals", signals)?;
        let signal_dim = signals.ncols();
        let n_features = settings.expansion.n_features(signal_dim);
        let mut map = Self {
            settings,
            signal_dim,
            mean: vec![0.0; n_features],
            inverse_scale: vec![1.0; n_features],
        };
        if settings.normalization == Normalization::None {
            return Ok(map);
        }
        // Near the mean is near enough to start from: from some rows spread over all of them.
        let (mut mean, _) =
            moments(settings.expansion, spread(signals), None, &vec![0.0; n_features]);
        let mut variance = Vec::new();
        for _ in 0..PASSES {
            let (correction, second) = moments(settings.expansion, signals, weights, &mean);
            variance = second;
            let mut far = false;
            for ((m, v), c) in mean.iter_mut().zip(&mut variance).zip(&correction) {
                // What is left of the mean square is the variance; where that is little, digits are
                // lost.
                far |= c * c > FAR * (*v - c * c) && c.abs() > f64::EPSILON * m.abs();
                *m += c;
                *v -= c * c;
            }
            if !far {
                break;
            }
        }
        for (k, (v, m)) in variance.iter().zip(&mean).enumerate() {
            if !(v.is_finite() && m.is_finite()) {
                return Err(Error::Numerical {
                    what: format!("feature {k} overflows: the signals are too large to be squared"),
                });
            }
        }
        map.mean = mean;
        map.inverse_scale =
            variance.iter().map(|v| 1.0 / (v.max(0.0).sqrt() + STD_FLOOR)).collect();
        Ok(map)
    }

    /// Features of every row. Fails where the signals have another width or a value that is not
    /// finite.
    pub fn transform(&self, signals: ArrayView2<'_, f64>) -> Result<Array2<f64>, Error> {
        if signals.ncols() != self.signal_dim {
            return Err(Error::Width {
                what: "signals",
                owner: "the model",
                expected: self.signal_dim,
                found: signals.ncols(),
            });
        }
        check_finite("signals", signals)?;
        let n_features = self.n_features();
        let mut out = Array2::zeros((signals.nrows(), n_features));
        let all = out.as_slice_mut().expect("a fresh array is in standard layout");
        all.par_chunks_mut(n_features).with_min_len(ROWS / 4).enumerate().for_each(|(i, row)| {
            self.write(signals.row(i), row);
        });
        Ok(out)
    }

    /// Features of one signal into `out` (n_features), without allocating. The signal's width is
    /// the caller's concern.
    pub fn write(&self, signal: ArrayView1<'_, f64>, out: &mut [f64]) {
        self.settings.expansion.write(signal, out);
        let clip = self.settings.clip;
        for ((z, m), s) in out.iter_mut().zip(&self.mean).zip(&self.inverse_scale) {
            *z = ((*z - m) * s).clamp(-clip, clip);
        }
    }

    /// Whether clipping may have changed one of these features.
    pub(crate) fn is_clipped<'a>(&self, mut features: impl Iterator<Item = &'a f64>) -> bool {
        features.any(|z| z.abs() >= self.settings.clip)
    }

    /// 1 / (std + 1e-7), feature by feature.
    pub(crate) fn inverse_scale(&self) -> &[f64] {
        &self.inverse_scale
    }

    /// Monomials of `signal` minus their means, before scaling.
    pub(crate) fn centred_monomials(&self, signal: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.n_features()];
        self.settings.expansion.write(ArrayView1::from(signal), &mut out);
        out.iter_mut().zip(&self.mean).for_each(|(z, m)| *z -= m);
        out
    }

    /// Entries of a signal.
    pub fn signal_dim(&self) -> usize {
        self.signal_dim
    }

    /// Features made of a signal.
    pub fn n_features(&self) -> usize {
        self.mean.len()
    }

    /// What each feature is, in order: `1`, `s0`, `s0*s1`.
    pub fn names(&self) -> Vec<String> {
        self.settings.expansion.names(self.signal_dim)
    }

    /// The choices it was fitted with.
    pub fn settings(&self) -> FeatureSettings {
        self.settings
    }

    /// Whether its parts fit together; a map read from a file is checked by this before use.
    pub fn validate(&self) -> Result<(), Error> {
        check_clip(self.settings.clip)?;
        // Every entry of a signal is a feature; a larger number would overflow in squares of it.
        if self.signal_dim == 0 || self.signal_dim > self.mean.len() {
            let (expected, found) = (self.mean.len(), self.signal_dim);
            let what = "entries of a signal";
            return Err(Error::Width { what, owner: "the feature map", expected, found });
        }
        if let Some(scale) = self.inverse_scale.iter().find(|scale| **scale <= 0.0) {
            let (found, allowed) = (scale.to_string(), "positive numbers");
            return Err(Error::Setting { name: "inverse_scale", found, allowed });
        }
        let n_features = self.settings.expansion.n_features(self.signal_dim);
        for (what, values) in
            [("feature means", &self.mean), ("feature scales", &self.inverse_scale)]
        {
            if values.len() != n_features {
                return Err(Error::Width {
                    what,
                    owner: "the feature map",
                    expected: n_features,
                    found: values.len(),
                });
            }
            if let Some(column) = values.iter().position(|v| !v.is_finite()) {
                return Err(Error::NotFinite { what, row: 0, column, value: values[column] });
            }
        }
        Ok(())
    }
}

/// Clipping to ±clip needs a positive finite number.
fn check_clip(clip: f64) -> Result<(), Error> {
    if clip > 0.0 && clip.is_finite() {
        return Ok(());
    }
    let (found, allowed) = (clip.to_string(), "a positive finite number");
    Err(Error::Setting { name: "clip", found, allowed })
}

/// Rows whose moments are one task's.
const ROWS: usize = 512;
/// Passes over all rows at most; nearly always one is enough.
const PASSES: usize = 3;
/// Square of the distance from the mean, in variances, from which moments are taken anew about the
/// mean found.
const FAR: f64 = 1e4;

/// Some rows, evenly spread.
fn spread(signals: ArrayView2<'_, f64>) -> ArrayView2<'_, f64> {
    let step = signals.nrows().div_ceil(ROWS).max(1);
    signals.slice_move(s![..;step, ..])
}

/// What the number of rows a task sums is filled up to: a multiple of every instruction set's
/// vectors, two at a time.
const LANES: usize = 16;

/// Sums over some rows, as [`moments`] needs them, feature by feature.
struct Sums<'a> {
    /// What each feature is the product of: two columns.
    factors: &'a [(usize, usize)],
    /// One of `weights.len()`, a multiple of [`LANES`], after the other.
    columns: &'a [f64],
    weights: &'a [f64],
    about: &'a [f64],
    /// For each feature the sums of m − about and of its square.
    out: &'a mut [(f64, f64)],
}

impl Task for Sums<'_> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<A: Arch>(self) {
        let len = self.weights.len();
        assert!(len.is_multiple_of(LANES));
        let column = |c: usize| &self.columns[c * len..(c + 1) * len];
        for ((&(a, b), &about), out) in self.factors.iter().zip(self.about).zip(self.out) {
            let (a, b) = (column(a), column(b));
            // SAFETY: the caller vouches for the instruction set; two vectors from `at` on are
            // inside all three columns.
            unsafe {
                let about = A::F64::splat(about);
                let (mut first, mut second) = ([A::F64::splat(0.0); 2], [A::F64::splat(0.0); 2]);
                for at in (0..len).step_by(2 * A::F64::LANES) {
                    for v in 0..2 {
                        let load =
                            |from: &[f64]| A::F64::load(from.as_ptr().add(at + v * A::F64::LANES));
                        let off = A::F64::sub(A::F64::mul(load(a), load(b)), about);
                        let weighted = A::F64::mul(load(self.weights), off);
                        first[v] = A::F64::add(first[v], weighted);
                        second[v] = A::F64::fma(weighted, off, second[v]);
                    }
                }
                let total = |[a, b]: [_; 2]| sum_lanes::<A::F64>(A::F64::add(a, b));
                *out = (total(first), total(second));
            }
        }
    }
}

/// Means over all rows, by their weights, of (m − about) and of (m − about)², feature by feature.
fn moments(
    expansion: Expansion,
    signals: ArrayView2<'_, f64>,
    weights: Option<&[f64]>,
    about: &[f64],
) -> (Vec<f64>, Vec<f64>) {
    let (n_rows, signal_dim) = signals.dim();
    let factors = expansion.factors(signal_dim);
    let partial: Vec<Vec<(f64, f64)>> = (0..n_rows.div_ceil(ROWS))
        .into_par_iter()
        .map(|task| {
            let rows = signals.slice(s![task * ROWS..((task + 1) * ROWS).min(n_rows), ..]);
            let len = rows.nrows().next_multiple_of(LANES);
            // Ones, then the signals. What fills up has no weight.
            let mut columns = vec![0.0; (1 + signal_dim) * len];
            columns[..len].fill(1.0);
            for (column, signal) in columns[len..].chunks_mut(len).zip(rows.columns()) {
                column.iter_mut().zip(signal).for_each(|(to, s)| *to = *s);
            }
            let mut own = vec![0.0; len];
            match weights {
                Some(weights) => {
                    own[..rows.nrows()].copy_from_slice(&weights[task * ROWS..][..rows.nrows()]);
                }
                None => own[..rows.nrows()].fill(1.0),
            }
            let mut out = vec![(0.0, 0.0); factors.len()];
            let sums =
                Sums { factors: &factors, columns: &columns, weights: &own, about, out: &mut out };
            // SAFETY: the instruction set was detected on this machine, and the task has no
            // contract of its own.
            unsafe { Isa::detect().run(sums) }
            out
        })
        .collect();
    let n = weights.map_or(n_rows as f64, |weights| weights.iter().sum());
    let mut means = vec![(0.0, 0.0); factors.len()];
    for part in partial {
        for ((first, second), (own, squares)) in means.iter_mut().zip(part) {
            *first += own / n;
            *second += squares / n;
        }
    }
    means.into_iter().unzip()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn weights_count_rows() {
        let signals = array![[1.0, 2.0], [3.0, -1.0], [0.5, 9.0]];
        let repeated = signals.select(ndarray::Axis(0), &[1, 2, 1, 1]);
        let settings = FeatureSettings::default();
        let weighted =
            FeatureMap::fit_weighted(settings, signals.view(), Some(&[0.0, 3.0, 1.0])).unwrap();
        let plain = FeatureMap::fit(settings, repeated.view()).unwrap();
        for (a, b) in weighted.mean.iter().zip(&plain.mean) {
            assert!((a - b).abs() < 1e-13 * b.abs().max(1.0), "{a} {b}");
        }
        for (a, b) in weighted.inverse_scale.iter().zip(&plain.inverse_scale) {
            assert!((a - b).abs() < 1e-13 * b.abs(), "{a} {b}");
        }
    }

    #[test]
    fn expands_in_the_order_constant_linear_quadratic() {
        let settings =
            FeatureSettings { normalization: Normalization::None, ..FeatureSettings::default() };
        let map = FeatureMap::fit(settings, array![[2.0, 3.0]].view()).unwrap();
        let z = map.transform(array![[2.0, 3.0]].view()).unwrap();
        assert_eq!(z, array![[1.0, 2.0, 3.0, 4.0, 6.0, 9.0]]);
        assert_eq!(map.names(), ["1", "s0", "s1", "s0*s0", "s0*s1", "s1*s1"]);
        assert_eq!(Expansion::Raw.names(2), ["s0", "s1"]);
    }

    #[test]
    fn scores_have_mean_zero_and_deviation_one_and_constants_vanish() {
        let signals =
            Array2::from_shape_fn(
                (50, 3),
                |(i, j)| if j == 2 { 7.0 } else { (i * (j + 1)) as f64 },
            );
        let map = FeatureMap::fit(FeatureSettings::default(), signals.view()).unwrap();
        let z = map.transform(signals.view()).unwrap();
        for (k, column) in z.columns().into_iter().enumerate() {
            let mean = column.sum() / 50.0;
            let variance = column.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / 50.0;
            assert!(mean.abs() < 1e-12);
            let constant = [0, 3, 9].contains(&k);
            assert!(if constant { variance < 1e-12 } else { (variance - 1.0).abs() < 1e-6 });
        }
    }

    #[test]
    fn statistics_are_right_where_the_rows_looked_at_first_say_nothing() {
        // Every fourth row, all that is looked at first, is 0; the others are a million and hardly
        // vary.
        let n = 4 * ROWS;
        let signals = Array2::from_shape_fn((n, 1), |(i, _)| {
            if i % 4 == 0 { 0.0 } else { 1e6 + (i as f64 * 0.7).sin() }
        });
        for signals in [signals.view(), signals.slice(s![1..;2, ..])] {
            let raw = FeatureSettings { expansion: Expansion::Raw, ..FeatureSettings::default() };
            let map = FeatureMap::fit(raw, signals).unwrap();
            let n = signals.nrows() as f64;
            let mean = signals.sum() / n;
            let deviation = (signals.mapv(|s| (s - mean) * (s - mean)).sum() / n).sqrt();
            assert!((map.mean[0] / mean - 1.0).abs() < 1e-14);
            assert!((map.inverse_scale[0] * (deviation + STD_FLOOR) - 1.0).abs() < 1e-9);
        }
        // A constant becomes exactly zero.
        let constant = Array2::from_elem((n, 1), 0.1);
        let map = FeatureMap::fit(FeatureSettings::default(), constant.view()).unwrap();
        assert!(map.transform(constant.view()).unwrap().iter().all(|z| z.abs() < 1e-8));
    }

    #[test]
    fn clips_and_refuses_bad_input() {
        let settings = FeatureSettings { clip: 1.5, ..FeatureSettings::default() };
        let signals = array![[0.0], [0.0], [0.0], [0.0], [0.0], [0.0], [100.0]];
        let map = FeatureMap::fit(settings, signals.view()).unwrap();
        assert_eq!(map.transform(signals.view()).unwrap()[[6, 1]], 1.5);
        assert!(matches!(
            map.transform(array![[1.0, 2.0]].view()),
            Err(Error::Width { expected: 1, found: 2, .. })
        ));
        assert!(
            FeatureMap::fit(FeatureSettings { clip: 0.0, ..settings }, signals.view()).is_err()
        );
        assert!(FeatureMap::fit(settings, array![[1e300]].view()).is_err());
    }
}
