//! The situations a model is explained over, and the one that is like most.

use super::Explainer;
use crate::error::Error;
use argwhy_core::decision_set::SampleSets;
use argwhy_core::{Constraints, Model, Predictor};
use ndarray::{Array2, ArrayView2, Axis};
use serde::Serialize;

/// Situations taken at most: effects are means, and do not sharpen much with more.
const MOST: usize = 2000;

/// A decision this near to what is wanted, relative to the largest, is held by nothing.
const FREE: f64 = 1e-7;

/// Where situations came from.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Source {
    /// Rows there are.
    pub rows: usize,
    /// Rows the explanation is computed over, evenly among them.
    pub used: usize,
    /// Whether they are the model's own samples that carry weight, for want of data.
    pub support_only: bool,
    /// Whether decisions are explained too, or g alone, for want of the rows' constraints.
    pub with_decisions: bool,
}

/// Signals with their decision sets.
pub struct Situations {
    pub(super) signals: Array2<f64>,
    /// None where the rows' constraints are not known.
    pub(super) sets: Option<SampleSets>,
    /// Where each stood among all rows.
    pub(super) places: Vec<usize>,
    pub(super) source: Source,
}

impl Situations {
    /// Rows of data, with their constraints where the model needs any.
    pub fn of_data(
        predictor: &Predictor,
        signals: ArrayView2<'_, f64>,
        constraints: Option<&Constraints>,
    ) -> Result<Self, Error> {
        let n = signals.nrows();
        if n == 0 {
            return Err(Error::Core(argwhy_core::Error::NoSamples));
        }
        let used = n.min(MOST);
        let places: Vec<usize> = (0..used).map(|i| i * n / used).collect();
        let given = constraints.map(|given| given.select(&places));
        let unknown = predictor.is_constrained() && given.is_none();
        let sets = if unknown { None } else { Some(predictor.sets(given.as_ref(), used)?) };
        let with_decisions = sets.is_some();
        let source = Source { rows: n, used, support_only: false, with_decisions };
        Ok(Self { signals: signals.select(Axis(0), &places), sets, places, source })
    }

    /// The samples a model keeps: those that carry weight. A plain model keeps none.
    pub fn of_support(model: &Model, predictor: &Predictor) -> Result<Self, Error> {
        let support = model.support().filter(|support| support.signals.nrows() > 0);
        let Some(support) = support else {
            return Err(Error::NothingToExplain);
        };
        let own = Self::of_data(predictor, support.signals.view(), None)?;
        let places = own.places.iter().map(|&i| support.rows[i] as usize).collect();
        Ok(Self { places, source: Source { support_only: true, ..own.source }, ..own })
    }
}

/// A situation like most: the row nearest to the middle of every signal.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Typical {
    /// Its row.
    pub row: usize,
    /// Its signal.
    pub signal: Vec<f64>,
    /// What is desired there.
    pub desired: Vec<f64>,
    /// What is decided there, where its limits are known.
    pub decision: Option<Vec<f64>>,
    #[serde(skip)]
    pub(super) index: usize,
}

impl Explainer<'_> {
    /// g of every row.
    pub(super) fn desired(&self, signals: &Array2<f64>) -> Result<Array2<f64>, Error> {
        Ok(self.predictor.desired(signals.view())?)
    }

    /// Decisions on `desired`, row i in the set of situation `of[i]`; none where sets are unknown.
    pub(super) fn decided(
        &self,
        desired: &Array2<f64>,
        of: &[usize],
    ) -> Result<Option<Array2<f64>>, Error> {
        let Some(sets) = &self.situations.sets else { return Ok(None) };
        Ok(Some(self.predictor.decide(desired.view(), &sets.select(of))?))
    }

    /// Where no limit holds a decision: Θu = g, row by row and dimension by dimension.
    pub(super) fn free(&self, desired: &Array2<f64>, decided: &Array2<f64>) -> Array2<bool> {
        let metric = self.predictor.metric();
        let largest = desired.iter().fold(0.0_f64, |most, g| most.max(g.abs()));
        let mut free = Array2::from_elem(desired.raw_dim(), false);
        let mut weighted = vec![0.0; desired.ncols()];
        for (i, mut free) in free.rows_mut().into_iter().enumerate() {
            metric.apply(&decided.row(i).to_vec(), &mut weighted);
            for (m, free) in free.iter_mut().enumerate() {
                *free = (weighted[m] - desired[[i, m]]).abs() <= FREE * largest;
            }
        }
        free
    }

    /// Middle and spread (half the distance of the quantiles at 16 and 84 %, else the deviation)
    /// of a signal.
    pub(super) fn middle(&self, j: usize) -> (f64, f64) {
        let every = || (0..self.situations.signals.ncols()).map(|j| self.measured(j)).collect();
        self.middles.get_or_init(every)[j]
    }

    fn measured(&self, j: usize) -> (f64, f64) {
        let mut values = self.situations.signals.column(j).to_vec();
        values.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| values[((values.len() - 1) as f64 * share).round() as usize];
        let spread = 0.5 * (at(0.84) - at(0.16));
        if spread > 0.0 {
            return (at(0.5), spread);
        }
        (at(0.5), self.situations.signals.column(j).std(0.0))
    }

    /// The row nearest to the middle of every signal.
    pub(super) fn typical(&self) -> Result<Typical, Error> {
        let signals = &self.situations.signals;
        let middles: Vec<_> = (0..signals.ncols()).map(|j| self.middle(j)).collect();
        let distance = |i: usize| -> f64 {
            let entries = signals.row(i).into_iter().zip(&middles);
            let far = |(value, (middle, spread)): (&f64, &(f64, f64))| {
                if *spread > 0.0 { ((value - middle) / spread).powi(2) } else { 0.0 }
            };
            entries.map(far).sum()
        };
        let all: Vec<f64> = (0..signals.nrows()).map(distance).collect();
        let index = (0..all.len()).min_by(|&a, &b| all[a].total_cmp(&all[b])).unwrap_or(0);
        let signal = signals.select(Axis(0), &[index]);
        let desired = self.desired(&signal)?;
        let decision = self.decided(&desired, &[index])?;
        Ok(Typical {
            row: self.situations.places[index],
            signal: signal.row(0).to_vec(),
            desired: desired.row(0).to_vec(),
            decision: decision.map(|decision| decision.row(0).to_vec()),
            index,
        })
    }
}
