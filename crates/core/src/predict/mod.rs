//! Decisions: features, kernel values against the support, a weighted sum, a projection.
//!
//! Enters: a model, signals and, where the model's sets come with the data, their constraints.
//! Leaves: u(s) = X(g(s)) with g(s) = Σ κ(s, ŝ_i) α_i ([KIO 8]), X the projection on U(s) for θ_uu
//! = I, everything in f64. A decision has the same bits alone, in any batch and on any number of
//! threads. It lies in a box exactly, and beyond no row of a polyhedron by more than rounding.

mod sum;
#[cfg(test)]
mod tests;

use crate::dataset::Constraints;
use crate::decision_set::{DecisionSet, Prices, SampleSets};
use crate::error::Error;
use crate::features::FeatureMap;
use crate::model::{Law, Model};
use crate::qp::{ActiveSet, Metric};
use ndarray::{Array2, ArrayView1, ArrayView2, ArrayViewMut2, Axis};
use rayon::prelude::*;
use sum::{SumScratch, SupportSum};

/// Signals that are decided together: enough to reuse a block of support points while it is in
/// cache.
const BATCH: usize = 256;
/// What computes desired decisions for many signals at once: the host, or a machine that a backend
/// stands for.
pub trait BatchPredictor: Send + Sync {
    /// out = g(s) for every row of `signals`, which are finite and as wide as the model's: n ×
    /// signal_dim to n × decision_dim, in f64.
    fn desired_into(
        &self,
        signals: ArrayView2<'_, f64>,
        out: ArrayViewMut2<'_, f64>,
    ) -> Result<(), Error>;
}

/// A model made ready to decide: g(s) from its support, then the best decision in the signal's
/// set.
///
/// [`desired`](Self::desired) is g, [`sets`](Self::sets) the sets, [`decide`](Self::decide) the
/// decisions on both and [`prices`](Self::prices) what the limits cost; [`predict`](Self::predict)
/// and [`predict_within`](Self::predict_within) are these in one call,
/// [`decide_one`](Self::decide_one) is a control loop's.
pub struct Predictor {
    features: FeatureMap,
    set: DecisionSet,
    constrained: bool,
    metric: Metric,
    /// Where batches are computed on another machine.
    elsewhere: Option<Box<dyn BatchPredictor>>,
    law: PreparedLaw,
}

/// The model's law, made ready.
enum PreparedLaw {
    Kernel(Box<SupportSum>),
    /// V row by row; the last row is an intercept's where there is one more than features.
    Primal(Array2<f64>),
}

/// Room for one decision, so that deciding allocates nothing.
pub struct Scratch {
    features: Vec<f64>,
    sum: Option<SumScratch>,
    solver: ActiveSet,
}

impl Predictor {
    /// Computes the support's features and packs them. Cost: n_support × n_features × 8 bytes.
    pub fn new(model: &Model) -> Result<Self, Error> {
        model.validate()?;
        let law = match &model.law {
            Law::Primal(weights) => PreparedLaw::Primal(weights.values.clone()),
            Law::Kernel(support) => {
                let regularization = model.record.regularization;
                let sum = SupportSum::new(&model.features, support, regularization)?;
                PreparedLaw::Kernel(Box::new(sum))
            }
        };
        Ok(Self {
            features: model.features.clone(),
            set: model.set.clone(),
            constrained: model.constrained,
            metric: model.metric()?,
            elsewhere: None,
            law,
        })
    }

    /// The same with the desired decisions of batches from `batches`, as a backend made it of the
    /// same model. Single decisions stay here: a control loop can't wait for another machine. Other
    /// machines may round differently, within what the certificate allows.
    #[must_use]
    pub fn with_batches(mut self, batches: Option<Box<dyn BatchPredictor>>) -> Self {
        self.elsewhere = batches;
        self
    }

    /// Length of a decision.
    pub fn decision_dim(&self) -> usize {
        self.set.decision_dim()
    }

    /// Entries of a signal.
    pub fn signal_dim(&self) -> usize {
        self.features.signal_dim()
    }

    /// Room for [`decide_one`](Self::decide_one), to be made once.
    pub fn scratch(&self) -> Scratch {
        Scratch {
            features: vec![0.0; self.features.n_features()],
            sum: match &self.law {
                PreparedLaw::Kernel(sum) => Some(sum.scratch()),
                PreparedLaw::Primal(_) => None,
            },
            solver: ActiveSet::new(&self.metric),
        }
    }

    /// The sets of `n_signals` signals: the model's own limits and the constraints that come with
    /// them.
    ///
    /// Fails where a model that was fitted with constraints gets none, and on empty sets. A model
    /// that was fitted without may decide within constraints all the same.
    pub fn sets(
        &self,
        constraints: Option<&Constraints>,
        n_signals: usize,
    ) -> Result<SampleSets, Error> {
        self.sets_named(constraints, n_signals, |i| i)
    }

    /// As [`sets`](Self::sets); `name` tells the user which row a signal is.
    pub fn sets_named(
        &self,
        constraints: Option<&Constraints>,
        n_signals: usize,
        name: impl Fn(usize) -> usize,
    ) -> Result<SampleSets, Error> {
        let what = "none were given";
        if self.constrained && constraints.is_none_or(Constraints::is_empty) {
            return Err(Error::ConstraintsMissing { what });
        }
        let sets = SampleSets::new(self.set.limits(), constraints, n_signals, name)?;
        Ok(if self.metric.is_identity() {
            sets
        } else {
            // Unless Θ = I the dimensions of a box are coupled.
            sets.coupled()
        })
    }

    /// Decides on one signal: `out` (decision_dim) becomes the decision, in set number i of those
    /// that [`sets`](Self::sets) made, or in the model's own where none are given. Allocates
    /// nothing, except for a model with a learned θ_uu that is given no set.
    pub fn decide_one(
        &self,
        signal: &[f64],
        set: Option<(&SampleSets, usize)>,
        scratch: &mut Scratch,
        out: &mut [f64],
    ) -> Result<(), Error> {
        if set.is_none() && (self.constrained || !self.metric.is_identity()) {
            let sets = self.sets(None, 1)?;
            return self.decide_one(signal, Some((&sets, 0)), scratch, out);
        }
        self.desired_one(signal, scratch, out)?;
        if let Some((sets, i)) = set {
            sets.decide_one(i, &mut scratch.solver, out)
        } else {
            self.set.project(out);
            Ok(())
        }
    }

    /// g(s) of one signal.
    fn desired_one(
        &self,
        signal: &[f64],
        scratch: &mut Scratch,
        out: &mut [f64],
    ) -> Result<(), Error> {
        self.check_width("signal", signal.len())?;
        if out.len() != self.decision_dim() {
            return Err(Error::Width {
                what: "the room for a decision",
                owner: "the model",
                expected: self.decision_dim(),
                found: out.len(),
            });
        }
        if let Some(column) = signal.iter().position(|s| !s.is_finite()) {
            let value = signal[column];
            return Err(Error::NotFinite { what: "signal", row: 0, column, value });
        }
        let Scratch { features, sum: room, .. } = scratch;
        self.features.write(ArrayView1::from(signal), features);
        match (&self.law, room) {
            (PreparedLaw::Primal(weights), _) => combine(weights, features, out),
            (PreparedLaw::Kernel(sum), Some(room)) => sum.one(features, room, out),
            (PreparedLaw::Kernel(sum), none) => {
                // Room that another model's predictor made.
                sum.one(features, none.insert(sum.scratch()), out);
            }
        }
        if out.iter().all(|g| g.is_finite()) { Ok(()) } else { Err(overflow(0)) }
    }

    /// Decisions for every row of `signals` (n × signal_dim), on all cores.
    pub fn predict(&self, signals: ArrayView2<'_, f64>) -> Result<Array2<f64>, Error> {
        let sets = self.sets(None, signals.nrows())?;
        self.decide(self.desired(signals)?.view(), &sets)
    }

    /// As [`predict`](Self::predict), under the constraints that come with the signals.
    pub fn predict_within(
        &self,
        signals: ArrayView2<'_, f64>,
        constraints: &Constraints,
    ) -> Result<Array2<f64>, Error> {
        let sets = self.sets(Some(constraints), signals.nrows())?;
        self.decide(self.desired(signals)?.view(), &sets)
    }

    /// X(g) for every row of `desired` (n × decision_dim), each in its own of `sets`, which
    /// [`sets`](Self::sets) made.
    pub fn decide(
        &self,
        desired: ArrayView2<'_, f64>,
        sets: &SampleSets,
    ) -> Result<Array2<f64>, Error> {
        let desired = desired.t().as_standard_layout().into_owned();
        let (decisions, _) = sets.decide(&self.metric, &desired, None)?;
        match decisions.indexed_iter().find(|(_, u)| u.is_nan()) {
            None => Ok(decisions.t().as_standard_layout().into_owned()),
            Some(((_, row), _)) => Err(overflow(row)),
        }
    }

    /// What the limits cost that hold the decisions on `desired` (n × decision_dim).
    pub fn prices(&self, desired: ArrayView2<'_, f64>, sets: &SampleSets) -> Result<Prices, Error> {
        sets.prices(&self.metric, &desired.t().as_standard_layout().into_owned())
    }

    /// θ_uu.
    pub fn metric(&self) -> &Metric {
        &self.metric
    }

    /// Whether decisions need constraints that come with their signals.
    pub fn is_constrained(&self) -> bool {
        self.constrained
    }

    /// g(s) for every row: what the expert would do without limits.
    pub fn desired(&self, signals: ArrayView2<'_, f64>) -> Result<Array2<f64>, Error> {
        self.check_width("signals", signals.ncols())?;
        let mut out = Array2::zeros((signals.nrows(), self.decision_dim()));
        if signals.nrows() == 0 {
            return Ok(out);
        }
        crate::dataset::check_finite("signals", signals)?;
        if let Some(elsewhere) = &self.elsewhere {
            elsewhere.desired_into(signals, out.view_mut())?;
            return Ok(out);
        }
        let batches: Vec<_> = out
            .axis_chunks_iter_mut(Axis(0), BATCH)
            .zip(signals.axis_chunks_iter(Axis(0), BATCH))
            .collect();
        batches.into_par_iter().for_each(|(out, signals)| self.desired_batch(signals, out));
        match out.indexed_iter().find(|(_, g)| !g.is_finite()) {
            None => Ok(out),
            Some(((row, _), _)) => Err(overflow(row)),
        }
    }

    /// The learned objective F(s, u) = uᵀΘu − 2g(s)ᵀu of every row of `decisions`, each on its own
    /// signal or all on one.
    pub fn objective(
        &self,
        signals: ArrayView2<'_, f64>,
        decisions: ArrayView2<'_, f64>,
    ) -> Result<Vec<f64>, Error> {
        if decisions.ncols() != self.decision_dim() {
            let (expected, found) = (self.decision_dim(), decisions.ncols());
            return Err(Error::Width { what: "decisions", owner: "the model", expected, found });
        }
        if signals.nrows() != 1 && signals.nrows() != decisions.nrows() {
            return Err(Error::RowCount {
                left: "signals",
                left_rows: signals.nrows(),
                right: "decisions",
                right_rows: decisions.nrows(),
            });
        }
        crate::dataset::check_finite("decisions", decisions)?;
        let desired = self.desired(signals)?;
        let value = |(i, u): (usize, ArrayView1<'_, f64>)| {
            let row = if desired.nrows() == 1 { 0 } else { i };
            objective(&self.metric, &u.to_vec(), &desired.row(row).to_vec())
        };
        Ok(decisions.rows().into_iter().enumerate().map(value).collect())
    }

    fn check_width(&self, what: &'static str, found: usize) -> Result<(), Error> {
        let expected = self.signal_dim();
        if found == expected {
            Ok(())
        } else {
            Err(Error::Width { what, owner: "the model", expected, found })
        }
    }

    fn desired_batch(&self, signals: ArrayView2<'_, f64>, mut out: ArrayViewMut2<'_, f64>) {
        let mut features = Array2::zeros((signals.nrows(), self.features.n_features()));
        for (signal, mut row) in signals.rows().into_iter().zip(features.rows_mut()) {
            self.features.write(signal, row.as_slice_mut().expect("a row is contiguous"));
        }
        match &self.law {
            PreparedLaw::Kernel(sum) => sum.many(features.view(), out),
            PreparedLaw::Primal(weights) => {
                for (z, mut out) in features.rows().into_iter().zip(out.rows_mut()) {
                    let z = z.to_slice().expect("a row is contiguous");
                    combine(weights, z, out.as_slice_mut().expect("a row is contiguous"));
                }
            }
        }
    }
}

/// F = uᵀΘu − 2gᵀu of one decision u where g is desired.
pub(crate) fn objective(metric: &Metric, decision: &[f64], desired: &[f64]) -> f64 {
    let mut weighted = vec![0.0; decision.len()];
    metric.apply(decision, &mut weighted);
    (0..decision.len()).map(|j| (weighted[j] - 2.0 * desired[j]) * decision[j]).sum()
}

/// A desired decision is no number.
fn overflow(row: usize) -> Error {
    let what =
        format!("the decision on signal {row} overflowed: a number of the model is too large");
    Error::Numerical { what }
}

/// g = Vᵀφ, feature by feature.
fn combine(weights: &Array2<f64>, features: &[f64], out: &mut [f64]) {
    out.fill(0.0);
    for (weights, z) in weights.rows().into_iter().zip(features.iter().chain(&[1.0])) {
        out.iter_mut().zip(weights).for_each(|(g, w)| *g += w * z);
    }
}
