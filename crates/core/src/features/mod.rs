//! Signals to features: monomials, z-score, clip.
//!
//! Enters: signals (n_samples × signal_dim). Leaves: features (n_samples × n_features). The
//! statistics are fitted on all loaded rows, in f64, before the training rows are cut out, as the
//! paper's experiments do it: z = clip((m − mean)/(std + 1e-7), ±c), with m all monomials up to
//! degree two, the constant included.

mod design;
mod moments;

pub use design::Design;

use crate::dataset::check_finite;
use crate::error::Error;
use moments::{Means, ROWS, moments, spread, stride};
use ndarray::{Array2, ArrayView1, ArrayView2};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Which functions of the signal are features.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Expansion {
    /// 1, every s_i, every s_i·s_j with i ≤ j: (p+1)(p+2)/2 features.
    Poly2,
    /// The signal itself.
    #[default]
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
        let signals: Vec<String> = (0..signal_dim).map(|i| format!("s{i}")).collect();
        self.names_of(&signals)
    }

    /// What each feature is, in order, of signals with these names: `1`, `price`, `price*load`.
    pub fn names_of(self, signals: &[String]) -> Vec<String> {
        match self {
            Self::Raw => signals.to_vec(),
            Self::Poly2 => {
                let pairs =
                    (0..signals.len()).flat_map(|i| (i..signals.len()).map(move |j| (i, j)));
                let products = pairs.map(|(i, j)| format!("{}*{}", signals[i], signals[j]));
                let linear = signals.iter().cloned();
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
        check_finite("signals", signals)?;
        // Near the mean is near enough to start from: from some rows spread over all of them.
        Self::fit_about(settings, spread(signals), |about| {
            Ok((moments(settings.expansion, signals, weights, about), largest(signals)))
        })
    }

    /// As [`fit`](Self::fit), of `n_rows` that are never there at once, bit for bit the same:
    /// `some` are one row of every [`stride`](Self::stride), and `walk` hands all rows to what it
    /// is given, in order and in pieces of multiples of [`UNIT`](Self::UNIT) rows, the last one
    /// aside. Every value is finite. Rows are walked through once; more often where `some` say
    /// nothing about the rest.
    pub fn fit_walking<E: From<Error>>(
        settings: FeatureSettings,
        n_rows: usize,
        some: ArrayView2<'_, f64>,
        mut walk: impl FnMut(&mut dyn FnMut(ArrayView2<'_, f64>)) -> Result<(), E>,
    ) -> Result<Self, E> {
        let signal_dim = some.ncols();
        Self::fit_about(settings, some, |about| {
            let mut means = Means::new(settings.expansion, signal_dim, n_rows as f64, about);
            let mut most: f64 = 0.0;
            walk(&mut |rows| {
                means.add(rows, None);
                most = most.max(largest(rows));
            })?;
            Ok((means.finish(), most))
        })
    }

    /// Of how many rows [`fit_walking`](Self::fit_walking) wants to see one beforehand.
    pub fn stride(n_rows: usize) -> usize {
        stride(n_rows)
    }

    /// Pieces of rows have multiples of this.
    pub const UNIT: usize = ROWS;

    /// Statistics from means about a point near theirs, which `some` rows say. `moments_about`
    /// knows them of all rows, and the largest signal.
    fn fit_about<E: From<Error>>(
        settings: FeatureSettings,
        some: ArrayView2<'_, f64>,
        mut moments_about: impl FnMut(&[f64]) -> Result<((Vec<f64>, Vec<f64>), f64), E>,
    ) -> Result<Self, E> {
        check_clip(settings.clip)?;
        let signal_dim = some.ncols();
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
        let (mut mean, _) = moments(settings.expansion, some, None, &vec![0.0; n_features]);
        let (mut variance, mut largest) = (Vec::new(), 0.0);
        for _ in 0..PASSES {
            let ((correction, second), most) = moments_about(&mean)?;
            (variance, largest) = (second, most);
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
        let mut both = variance.iter().zip(&mean);
        if let Some(feature) = both.position(|(v, m)| !(v.is_finite() && m.is_finite())) {
            let products = settings.expansion == Expansion::Poly2;
            return Err(Error::SignalRange { feature, largest, products }.into());
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

fn largest(signals: ArrayView2<'_, f64>) -> f64 {
    signals.iter().fold(0.0, |m: f64, s| m.max(s.abs()))
}

/// Clipping to ±clip needs a positive finite number.
fn check_clip(clip: f64) -> Result<(), Error> {
    if clip > 0.0 && clip.is_finite() {
        return Ok(());
    }
    let (found, allowed) = (clip.to_string(), "a positive finite number");
    Err(Error::Setting { name: "clip", found, allowed })
}

/// Passes over all rows at most; nearly always one is enough.
const PASSES: usize = 3;
/// Square of the distance from the mean, in variances, from which moments are taken anew about the
/// mean found.
const FAR: f64 = 1e4;

#[cfg(test)]
mod tests;
