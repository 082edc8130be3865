//! Decisions: features, kernel values against the support, a weighted sum, a projection.
//!
//! Enters: a model, signals and, where the model's sets come with the data, their constraints.
//! Leaves: u(s) = X(g(s)) with g(s) = Σ κ(s, ŝ_i) α_i ([KIO 8]), X the projection on U(s) for θ_uu
//! = I, everything in f64. A decision has the same bits alone, in any batch and on any number of
//! threads. It lies in a box exactly, and beyond no row of a polyhedron by more than rounding.

use crate::dataset::Constraints;
use crate::decision_set::{DecisionSet, Prices, SampleSets};
use crate::error::Error;
use crate::features::FeatureMap;
use crate::kernel::layout::{BLOCK, STRIP};
use crate::kernel::quadratic::{QuadraticRows, QuadraticSupport};
use crate::kernel::recipe::Recipe;
use crate::kernel::rounding::Rounded;
use crate::kernel::samples::{RowPack, Samples, StripRows};
use crate::linalg::aligned::Aligned;
use crate::linalg::simd::Isa;
use crate::model::Model;
use crate::operator::{accumulate_rows, accuracy_for};
use crate::qp::{ActiveSet, Metric};
use ndarray::{Array2, ArrayView1, ArrayView2, ArrayViewMut2, Axis};
use rayon::prelude::*;

/// Signals that are decided together: enough to reuse a block of support points while it is in
/// cache.
const BATCH: usize = 256;
/// Largest difference between the g of both ways, relative to the largest of them.
const AGREEMENT: f64 = 1e-11;
/// The tolerance whose accuracy predictions have.
const ORDINARY_TOL: f64 = 1e-6;
/// What their kernel values may be off by, by a bound that is fifty times what is seen.
const ACCURACY: f64 = 1e-12;
/// From this many rows on, computing all eight of a strip costs less than one at a time.
const FEW: usize = 3;

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

/// A model made ready to decide: g(s) from its expansion, then the best decision in the signal's
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
    support: Samples<f64>,
    /// The faster way for signals whose features are not clipped, where model and kernel allow it.
    quadratic: Option<QuadraticSupport>,
    /// V of a plain model, row by row; its last row is an intercept's where there is one more than
    /// features.
    weights: Option<Array2<f64>>,
    /// coefficient (i, j) at i / BLOCK · dim · BLOCK + j · BLOCK + i % BLOCK; zero beyond the
    /// support.
    coefficients: Aligned<f64>,
    isa: Isa,
}

/// Up to eight signals made ready for one of the two ways.
#[derive(Clone, Copy)]
enum Group<'a> {
    Quadratic(&'a QuadraticSupport, &'a QuadraticRows),
    General(&'a RowPack<f64>),
}

/// Room for one decision, so that deciding allocates nothing.
pub struct Scratch {
    features: Array2<f64>,
    rows: RowPack<f64>,
    polynomials: QuadraticRows,
    strip: Aligned<f64>,
    sums: Aligned<f64>,
    solver: ActiveSet,
}

impl Predictor {
    /// Computes the support's features and packs them. Cost: n_support × n_features × 8 bytes.
    pub fn new(model: &Model) -> Result<Self, Error> {
        model.validate()?;
        let n_support = model.n_support();
        let features = if n_support == 0 {
            Array2::zeros((0, model.features.n_features()))
        } else {
            model.features.transform(model.support_signals.view())?
        };
        // The kernel of the certificate: by differences wherever that was computed by differences.
        let accuracy = accuracy_for(model.record.regularization, ORDINARY_TOL).min(ACCURACY);
        let recipe = Recipe::new(&model.kernel, features.view());
        let recipe = Rounded::new(&recipe, features.view(), accuracy).recipe;
        let support = Samples::new(recipe, features.view());
        let signals = model.support_signals.view();
        let quadratic =
            QuadraticSupport::new(&model.kernel, &model.features, signals, features.view())
                .filter(|support| support.rounding() <= accuracy);
        let dim = model.decision_dim();
        let mut coefficients = Aligned::zeros(n_support.div_ceil(BLOCK) * dim * BLOCK);
        for ((i, j), value) in model.coefficients.indexed_iter() {
            coefficients[(i / BLOCK * dim + j) * BLOCK + i % BLOCK] = *value;
        }
        let mut predictor = Self {
            features: model.features.clone(),
            set: model.set.clone(),
            constrained: model.constrained,
            metric: model.metric()?,
            elsewhere: None,
            support,
            quadratic,
            weights: model.weights.clone(),
            coefficients,
            isa: Isa::detect(),
        };
        if !predictor.ways_agree(features.view()) {
            predictor.quadratic = None;
        }
        Ok(predictor)
    }

    /// The same with the desired decisions of batches from `batches`, as a backend made it of the
    /// same model. Single decisions stay here: a control loop can't wait for another machine. Other
    /// machines may round differently, within what the certificate allows.
    #[must_use]
    pub fn with_batches(mut self, batches: Option<Box<dyn BatchPredictor>>) -> Self {
        self.elsewhere = batches;
        self
    }

    /// Whether both ways want the same decisions at some support points. Far from zero the features
    /// themselves are rounded, and the certificate is about those; and where k is tiny, the sum of
    /// large coefficients magnifies what is rounded.
    fn ways_agree(&self, features: ArrayView2<'_, f64>) -> bool {
        let Some(support) = &self.quadratic else { return true };
        let n = features.nrows();
        let picked: Vec<usize> = (0..STRIP.min(n)).map(|r| r * n / STRIP.min(n)).collect();
        let mut general = self.support.row_pack();
        self.support.pack(features.select(Axis(0), &picked).view(), &mut general);
        let mut polynomials = QuadraticRows::new(self.signal_dim(), features.ncols());
        for (r, &i) in picked.iter().enumerate() {
            support.write_row(&self.features, &features.row(i).to_vec(), &mut polynomials, r);
        }
        let groups = [Group::Quadratic(support, &polynomials), Group::General(&general)];
        let mut sums = [(); 2].map(|()| Aligned::zeros(self.decision_dim() * BLOCK));
        let mut strip = self.strip();
        for (group, sums) in groups.into_iter().zip(&mut sums) {
            for block in 0..self.support.n_blocks() {
                self.add_block(block, group, picked.len(), &mut strip, sums);
            }
        }
        // g of the picked points; what is beyond them in a strip is not asked for.
        let desired = |sums: &Aligned<f64>| -> Vec<f64> {
            sums.chunks(BLOCK).flat_map(|g| g[..picked.len()].to_vec()).collect()
        };
        let (fast, general) = (desired(&sums[0]), desired(&sums[1]));
        let scale = general.iter().fold(0.0_f64, |m, g| m.max(g.abs()));
        let off = fast.iter().zip(&general).fold(0.0_f64, |m, (a, b)| m.max((a - b).abs()));
        off <= AGREEMENT * scale
    }

    /// Room for a strip of kernel values and for what they are combined from.
    fn strip(&self) -> Aligned<f64> {
        Aligned::zeros(STRIP * BLOCK + self.support.spare_len())
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
            features: Array2::zeros((STRIP, self.features.n_features())),
            rows: self.support.row_pack(),
            polynomials: QuadraticRows::new(self.signal_dim(), self.features.n_features()),
            strip: self.strip(),
            sums: Aligned::zeros(self.decision_dim() * BLOCK),
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
            SampleSets::Polyhedra(sets.into_polyhedra())
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
        let row = scratch.features.row_mut(0).into_slice().expect("a row is contiguous");
        self.features.write(ArrayView1::from(signal), row);
        if let Some(weights) = &self.weights {
            combine(weights, row, out);
            return Ok(());
        }
        let rows = match &self.quadratic {
            Some(support) if !self.features.is_clipped(row.iter()) => {
                support.write_row(&self.features, row, &mut scratch.polynomials, 0);
                Group::Quadratic(support, &scratch.polynomials)
            }
            _ => {
                let first = scratch.features.slice(ndarray::s![..1, ..]);
                self.support.pack(first, &mut scratch.rows);
                Group::General(&scratch.rows)
            }
        };
        scratch.sums.fill(0.0);
        for block in 0..self.support.n_blocks() {
            self.add_block(block, rows, 1, &mut scratch.strip, &mut scratch.sums);
        }
        for (j, u) in out.iter_mut().enumerate() {
            *u = scratch.sums[j * BLOCK];
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
        if let Some(weights) = &self.weights {
            for (z, mut out) in features.rows().into_iter().zip(out.rows_mut()) {
                let z = z.to_slice().expect("a row is contiguous");
                combine(weights, z, out.as_slice_mut().expect("a row is contiguous"));
            }
            return;
        }
        // Which way a row goes depends on the row alone, so its bits do not depend on its
        // neighbours.
        let (fast, slow): (Vec<usize>, Vec<usize>) = (0..signals.nrows()).partition(|&i| {
            self.quadratic.is_some() && !self.features.is_clipped(features.row(i).iter())
        });
        let n_features = self.features.n_features();
        let polynomials: Vec<(QuadraticRows, &[usize])> = fast
            .chunks(STRIP)
            .map(|members| {
                let mut rows = QuadraticRows::new(self.signal_dim(), n_features);
                for (r, &i) in members.iter().enumerate() {
                    let z = features.row(i).to_slice().expect("a row is contiguous");
                    if let Some(support) = &self.quadratic {
                        support.write_row(&self.features, z, &mut rows, r);
                    }
                }
                (rows, members)
            })
            .collect();
        let packs: Vec<(RowPack<f64>, &[usize])> = slow
            .chunks(STRIP)
            .map(|members| {
                let mut pack = self.support.row_pack();
                self.support.pack(features.select(Axis(0), members).view(), &mut pack);
                (pack, members)
            })
            .collect();
        let n_groups = polynomials.len() + packs.len();
        let mut sums = vec![0.0; n_groups * self.decision_dim() * BLOCK];
        let mut strip = self.strip();
        let width = self.decision_dim() * BLOCK;
        for block in 0..self.support.n_blocks() {
            let mut sums = sums.chunks_mut(width);
            if let Some(support) = self.quadratic.as_ref().filter(|_| !polynomials.is_empty()) {
                for ((rows, members), sums) in polynomials.iter().zip(&mut sums) {
                    let group = Group::Quadratic(support, rows);
                    self.add_block(block, group, members.len(), &mut strip, sums);
                }
            }
            for ((pack, members), sums) in packs.iter().zip(&mut sums) {
                self.add_block(block, Group::General(pack), members.len(), &mut strip, sums);
            }
        }
        let members = polynomials.iter().map(|(_, m)| *m).chain(packs.iter().map(|(_, m)| *m));
        for (members, sums) in members.zip(sums.chunks(width)) {
            for (r, &i) in members.iter().enumerate() {
                for j in 0..self.decision_dim() {
                    out[[i, j]] = sums[j * BLOCK + r];
                }
            }
        }
    }

    /// Adds a block of support points to the sums of up to eight rows.
    fn add_block(
        &self,
        block: usize,
        rows: Group<'_>,
        n_rows: usize,
        strip: &mut [f64],
        sums: &mut [f64],
    ) {
        let dim = self.decision_dim();
        self.compute(block, rows, n_rows, strip);
        let coefficients = &self.coefficients[block * dim * BLOCK..(block + 1) * dim * BLOCK];
        let len = self.support.block_len(block);
        accumulate_rows(self.isa, strip, n_rows, len, coefficients, sums, dim);
    }

    /// Kernel values of up to eight rows against a block of support points.
    fn compute(&self, block: usize, rows: Group<'_>, n_rows: usize, strip: &mut [f64]) {
        match rows {
            Group::Quadratic(support, rows) => {
                support.compute_strip(self.isa, rows, n_rows, block, strip);
            }
            Group::General(rows) => {
                let computed = if n_rows < FEW { n_rows } else { STRIP };
                let rows = StripRows::Packed(rows);
                let (strip, spare) = strip.split_at_mut(STRIP * BLOCK);
                self.support.compute(self.isa, rows, computed, block, strip, spare);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::FeatureSettings;
    use crate::kernel::{CustomKernel, Kernel};
    use crate::model::FitRecord;
    use crate::problem::Certificate;
    use crate::solver::Status;

    struct Cosine;

    impl CustomKernel for Cosine {
        fn name(&self) -> &'static str {
            "cosine"
        }
        fn evaluate(&self, a: &[f64], b: &[f64]) -> f64 {
            a.iter().zip(b).map(|(a, b)| (0.3 * (a - b)).cos()).sum()
        }
    }

    fn model(kernel: Kernel, clip: f64, n: usize) -> Model {
        let signals = Array2::from_shape_fn((n, 4), |(i, j)| {
            ((i * (j + 2)) as f64 * 0.7).sin() * (1.0 + j as f64)
        });
        let settings = FeatureSettings { clip, ..FeatureSettings::default() };
        let certificate = Certificate {
            objective: 0.0,
            primal: 0.0,
            dual: 0.0,
            gap: 0.0,
            relative_gap: 0.0,
            rounding: 0.0,
        };
        Model {
            features: FeatureMap::fit(settings, signals.view()).unwrap(),
            kernel,
            set: DecisionSet::bounds(2, -0.8, 0.9).unwrap(),
            constrained: false,
            theta: None,
            weights: None,
            prices: Prices::default(),
            coefficients: Array2::from_shape_fn((n, 2), |(i, j)| ((i + 3 * j) as f64).cos()),
            support_rows: (0..n as u64).collect(),
            support_signals: signals,
            record: FitRecord {
                status: Status::Solved,
                n_samples: n,
                regularization: 1.0,
                certificate,
                iterations: 0,
                kernel_products: 0,
                seconds: 0.0,
                peak_memory_bytes: None,
            },
        }
    }

    /// One at a time, in batches of any size, clipped or not: the same bits, right to rounding,
    /// inside the set.
    #[test]
    fn a_decision_does_not_depend_on_its_neighbours() {
        let gamma = 0.1;
        let scaled = Kernel::Scaled { weight: 0.2, kernel: Box::new(Kernel::Linear) };
        let sum = Kernel::Sum { terms: vec![Kernel::Rbf { gamma }, scaled] };
        let kernels = [
            Kernel::Rbf { gamma },
            Kernel::Laplace { gamma },
            Kernel::Linear,
            Kernel::Matern32 { gamma },
            Kernel::Matern52 { gamma },
            Kernel::Polynomial { degree: 2, gamma: 0.01, offset: 1.0 },
            sum.clone(),
            Kernel::Anisotropic {
                length_scales: (0..15).map(|k| 1.0 + 0.1 * f64::from(k)).collect(),
                kernel: Box::new(Kernel::Product { factors: vec![sum, Kernel::Rbf { gamma }] }),
            },
            Kernel::custom(Cosine),
        ];
        for (kernel, clip) in kernels.into_iter().flat_map(|k| [(k.clone(), 1000.0), (k, 6.0)]) {
            for n in [0, 1, 250, 700] {
                let model = model(kernel.clone(), clip, n.max(1));
                let mut model = model;
                if n == 0 {
                    model.support_rows.clear();
                    model.support_signals = Array2::zeros((0, 4));
                    model.coefficients = Array2::zeros((0, 2));
                }
                let predictor = Predictor::new(&model).unwrap();
                // Some signals are far out, so that their features are clipped.
                let signals = Array2::from_shape_fn((131, 4), |(i, j)| {
                    ((i * 5 + j) as f64 * 0.31).cos() * if i % 9 == 4 { 40.0 } else { 1.5 }
                });
                let together = predictor.predict(signals.view()).unwrap();
                let mut scratch = predictor.scratch();
                let support = model.features.transform(model.support_signals.view());
                for (i, signal) in signals.rows().into_iter().enumerate() {
                    let mut alone = [0.0; 2];
                    predictor.decide_one(&signal.to_vec(), None, &mut scratch, &mut alone).unwrap();
                    assert_eq!(together.row(i).to_vec(), alone, "{kernel:?} row {i}");
                    assert!(model.set.contains(&alone));
                    let three =
                        predictor.predict(signals.slice(ndarray::s![i..(i + 3).min(131), ..]));
                    assert_eq!(three.unwrap().row(0).to_vec(), alone);
                    let Ok(support) = &support else { continue };
                    let z =
                        model.features.transform(signals.slice(ndarray::s![i..=i, ..])).unwrap();
                    let mut expected = [0.0; 2];
                    for (zi, a) in support.rows().into_iter().zip(model.coefficients.rows()) {
                        let value = kernel.evaluate(&z.row(0).to_vec(), &zi.to_vec());
                        expected.iter_mut().zip(a).for_each(|(e, a)| *e += value * a);
                    }
                    model.set.project(&mut expected);
                    for (found, expected) in alone.iter().zip(expected) {
                        assert!((found - expected).abs() < 1e-9, "{kernel:?} {found} {expected}");
                    }
                }
            }
        }
    }

    /// Explicit weights V = Φᵀα decide as the samples they came from, alone and in batches to the
    /// same bits.
    #[test]
    fn weights_stand_for_samples() {
        for (kernel, intercept) in
            [(Kernel::Linear, false), (Kernel::linear_with_intercept(), true)]
        {
            let mut sampled = model(kernel, 3.0, 40);
            sampled.coefficients *= 1e-2;
            let mut phi = sampled.features.transform(sampled.support_signals.view()).unwrap();
            if intercept {
                phi.push_column(ndarray::Array1::ones(40).view()).unwrap();
            }
            let plain = Model {
                weights: Some(phi.t().dot(&sampled.coefficients).as_standard_layout().into_owned()),
                support_signals: Array2::zeros((0, 4)),
                coefficients: Array2::zeros((0, 2)),
                support_rows: Vec::new(),
                ..sampled.clone()
            };
            let signals = Array2::from_shape_fn((300, 4), |(i, j)| ((i * 5 + j) as f64).cos());
            let expected = Predictor::new(&sampled).unwrap().predict(signals.view()).unwrap();
            let predictor = Predictor::new(&plain).unwrap();
            let found = predictor.predict(signals.view()).unwrap();
            assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-12));
            assert!(found.iter().any(|u| *u != 0.9 && *u != -0.8));
            let mut scratch = predictor.scratch();
            for (signal, together) in signals.rows().into_iter().zip(found.rows()) {
                let mut alone = [0.0; 2];
                predictor.decide_one(&signal.to_vec(), None, &mut scratch, &mut alone).unwrap();
                assert_eq!(together.to_vec(), alone);
            }
            assert_eq!(plain.weight_names().len(), 15 + usize::from(intercept));
            let other = Model { kernel: Kernel::Rbf { gamma: 1.0 }, ..plain.clone() };
            assert!(matches!(Predictor::new(&other), Err(Error::Setting { name: "weights", .. })));
            let wide = plain.weights.as_ref().map(|w| Array2::zeros((w.nrows() + 1, 2)));
            let wide = Model { weights: wide, ..plain };
            assert!(matches!(Predictor::new(&wide), Err(Error::RowCount { left: "weights", .. })));
        }
    }
}
