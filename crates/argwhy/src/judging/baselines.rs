//! What anyone could do without argwhy: the least that a model must beat.

use crate::error::Error;
use crate::pipeline::Pipeline;
use crate::settings::{FitSettings, KernelKind};
use argwhy_core::features::{Expansion, FeatureMap, FeatureSettings, Normalization};
use argwhy_core::{Dataset, Predictor};
use ndarray::{Array1, Array2, ArrayView2, Axis, s};
use rayon::prelude::*;
use serde::Serialize;

/// One of the baselines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Baseline {
    /// The mean decision, whatever the situation.
    Mean,
    /// Ridge regression from signals to decisions, moved into the limits.
    Ridge,
    /// What was decided in the nearest situation seen.
    Nearest,
}

impl Baseline {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Mean => "the mean decision",
            Self::Ridge => "ridge regression cut to the limits",
            Self::Nearest => "the decision in the nearest situation seen",
        }
    }
}

/// Something for each of the baselines.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Baselines<T> {
    /// Of [`Baseline::Mean`].
    pub mean: T,
    /// Of [`Baseline::Ridge`].
    pub ridge: T,
    /// Of [`Baseline::Nearest`].
    pub nearest: T,
}

impl<T> Baselines<T> {
    /// All of them, with what they are of.
    pub fn named(&self) -> [(Baseline, &T); 3] {
        [
            (Baseline::Mean, &self.mean),
            (Baseline::Ridge, &self.ridge),
            (Baseline::Nearest, &self.nearest),
        ]
    }

    pub(crate) fn each(&self) -> [&T; 3] {
        [&self.mean, &self.ridge, &self.nearest]
    }

    pub(crate) fn each_mut(&mut self) -> [&mut T; 3] {
        [&mut self.mean, &mut self.ridge, &mut self.nearest]
    }

    pub(crate) fn map<U>(&self, mut of: impl FnMut(&T) -> U) -> Baselines<U> {
        Baselines { mean: of(&self.mean), ridge: of(&self.ridge), nearest: of(&self.nearest) }
    }
}

/// λ of the ridge regression, on z-scored signals: what people take who do not tune.
const RIDGE: f64 = 1.0;
/// Distances times signals that finding the nearest situations may take.
const MOST_WORK: f64 = 4e9;

/// The baselines, learned.
pub(crate) struct Learned {
    mean: Array1<f64>,
    /// Of what is left of decisions beyond their mean.
    ridge: Predictor,
    features: FeatureMap,
    /// Z-scored signals of the situations seen, and what was decided in them.
    seen: Array2<f64>,
    decisions: Array2<f64>,
}

/// Learns from `rows` of the data.
pub(crate) fn learn(
    data: &Dataset,
    rows: &[usize],
    settings: &FitSettings,
) -> Result<Learned, Error> {
    let signals = data.signals().select(Axis(0), rows);
    let decisions = data.decisions().select(Axis(0), rows);
    let weights = data.weights().map(|all| rows.iter().map(|&row| all[row]).collect::<Vec<_>>());
    let mean = match &weights {
        None => decisions.mean_axis(Axis(0)).unwrap_or_default(),
        Some(weights) => {
            let weights = Array1::from(weights.clone());
            decisions.t().dot(&weights) / weights.sum()
        }
    };
    let raw = FeatureSettings {
        expansion: Expansion::Raw,
        normalization: Normalization::Zscore,
        ..settings.feature_settings()
    };
    let features = FeatureMap::fit_weighted(raw, signals.view(), weights.as_deref())?;
    let seen = features.transform(signals.view())?;
    let beyond = Dataset::new(signals, &decisions - &mean)?;
    let (beyond, total) = match weights {
        Some(weights) => {
            let total = weights.iter().sum();
            (beyond.with_weights(weights)?, total)
        }
        None => (beyond, rows.len() as f64),
    };
    let ridge = ridge(&beyond, RIDGE / total, settings)?;
    Ok(Learned { mean, ridge, features, seen, decisions })
}

/// Ridge regression is inverse optimization with a linear kernel and no limits.
fn ridge(data: &Dataset, regularization: f64, settings: &FitSettings) -> Result<Predictor, Error> {
    let own = FitSettings {
        features: Expansion::Raw,
        normalize: Normalization::Zscore,
        clip: settings.clip,
        kernel: KernelKind::Linear.into(),
        primal: true,
        intercept: true,
        unbounded: true,
        regularization: regularization.into(),
        memory: settings.memory,
        threads: settings.threads,
        ..FitSettings::default()
    };
    Ok(Predictor::new(&Pipeline::new(own)?.fit(data)?.model)?)
}

impl Learned {
    /// What each baseline would decide without limits.
    pub fn desired(&self, signals: ArrayView2<'_, f64>) -> Result<Baselines<Array2<f64>>, Error> {
        let mean = self.mean.broadcast((signals.nrows(), self.mean.len()));
        let mean = mean.map(|mean| mean.to_owned()).unwrap_or_default();
        let ridge = self.ridge.desired(signals)? + &mean;
        Ok(Baselines { ridge, nearest: self.nearest(signals)?, mean })
    }

    fn nearest(&self, signals: ArrayView2<'_, f64>) -> Result<Array2<f64>, Error> {
        let here = self.features.transform(signals)?;
        let work = here.len() as f64 * self.seen.nrows() as f64;
        let every = (work / MOST_WORK).ceil().max(1.0) as usize;
        let mut found = nearest(self.seen.slice(s![..;every, ..]), here.view());
        found.iter_mut().for_each(|place| *place *= every);
        Ok(self.decisions.select(Axis(0), &found))
    }
}

/// Points whose distances are computed side by side.
const BLOCK: usize = 64;

/// The place of the point nearest to each of `here`, the first of those that are equally far.
fn nearest(points: ArrayView2<'_, f64>, here: ArrayView2<'_, f64>) -> Vec<usize> {
    let mut found = vec![(f64::INFINITY, 0); here.nrows()];
    found.par_chunks_mut(BLOCK).enumerate().for_each(|(part, found)| {
        let here = here.slice(s![part * BLOCK.., ..]);
        let mut block = vec![0.0; BLOCK * points.ncols()];
        for (b, rows) in points.axis_chunks_iter(Axis(0), BLOCK).enumerate() {
            // One coordinate after the other.
            for (to, column) in block.chunks_exact_mut(BLOCK).zip(rows.columns()) {
                to.iter_mut().zip(column).for_each(|(to, value)| *to = *value);
            }
            for (nearest, here) in found.iter_mut().zip(here.rows()) {
                let mut squares = [0.0; BLOCK];
                for (column, at) in block.chunks_exact(BLOCK).zip(here) {
                    for (square, value) in squares.iter_mut().zip(column) {
                        *square += (value - at) * (value - at);
                    }
                }
                // In a block that is not full the rest is left of the one before.
                for (i, &square) in squares[..rows.nrows()].iter().enumerate() {
                    if square < nearest.0 {
                        *nearest = (square, b * BLOCK + i);
                    }
                }
            }
        }
    });
    found.into_iter().map(|(_, place)| place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{array, concatenate};

    #[test]
    fn the_nearest_point_is_found_in_any_block_and_the_first_of_equals() {
        let points = Array2::from_shape_fn((3 * BLOCK + 5, 2), |(i, j)| {
            if j == 0 { (i % 100) as f64 } else { (i / 100) as f64 }
        });
        let here = &points + &array![0.2, -0.3];
        assert!(nearest(points.view(), here.view()).into_iter().eq(0..points.nrows()));
        let twice = concatenate![Axis(0), points, points];
        assert!(nearest(twice.view(), here.view()).into_iter().eq(0..points.nrows()));
        assert_eq!(nearest(array![[3.0]].view(), array![[-1e9]].view()), [0]);
    }
}
