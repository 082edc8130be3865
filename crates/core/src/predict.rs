//! Decisions: features, kernel values against the support, a weighted sum, a projection.
//!
//! Enters: a model and signals. Leaves: u(s) = Π(g(s)) with g(s) = Σ κ(s, ŝ_i) α_i ([KIO 8] with θ_uu = I), everything in
//! f64. A decision has the same bits alone, in any batch and on any number of threads, and lies in its set exactly.

use crate::decision_set::DecisionSet;
use crate::error::Error;
use crate::features::FeatureMap;
use crate::kernel::panels::{BLOCK, Packing, Panels, RowPack, STRIP};
use crate::kernel::tile::compute_strip;
use crate::linalg::simd::Isa;
use crate::model::Model;
use crate::operator::accumulate_rows;
use ndarray::{Array2, ArrayView1, ArrayView2, ArrayViewMut2, Axis};
use rayon::prelude::*;

/// Signals that are decided together: enough to reuse a block of support points while it is in cache.
const BATCH: usize = 64;
/// From this many rows on, computing all eight of a strip costs less than one at a time.
const FEW: usize = 3;

/// A model made ready to decide.
pub struct Predictor {
    features: FeatureMap,
    set: DecisionSet,
    panels: Panels<f64>,
    /// coefficient (i, j) at i / BLOCK · dim · BLOCK + j · BLOCK + i % BLOCK; zero beyond the support.
    coefficients: Vec<f64>,
    isa: Isa,
}

/// Room for one decision, so that deciding allocates nothing.
pub struct Scratch {
    features: Array2<f64>,
    rows: RowPack<f64>,
    strip: Vec<f64>,
    sums: Vec<f64>,
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
        let panels = Panels::new(Packing::new(model.kernel, features.view()), features.view());
        let dim = model.decision_dim();
        let mut coefficients = vec![0.0; n_support.div_ceil(BLOCK) * dim * BLOCK];
        for ((i, j), value) in model.coefficients.indexed_iter() {
            coefficients[(i / BLOCK * dim + j) * BLOCK + i % BLOCK] = *value;
        }
        Ok(Self {
            features: model.features.clone(),
            set: model.set.clone(),
            panels,
            coefficients,
            isa: Isa::detect(),
        })
    }

    /// Length of a decision.
    pub fn decision_dim(&self) -> usize {
        self.set.decision_dim()
    }

    /// Entries of a signal.
    pub fn signal_dim(&self) -> usize {
        self.features.signal_dim()
    }

    /// Room for [`decide`](Self::decide), to be made once.
    pub fn scratch(&self) -> Scratch {
        Scratch {
            features: Array2::zeros((STRIP, self.features.n_features())),
            rows: RowPack::new(self.features.n_features()),
            strip: vec![0.0; STRIP * BLOCK],
            sums: vec![0.0; self.decision_dim() * BLOCK],
        }
    }

    /// Decides on one signal without allocating: `out` (decision_dim) becomes the decision.
    pub fn decide(
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
        scratch.rows.pack(&self.panels.packing, scratch.features.slice(ndarray::s![..1, ..]));
        scratch.sums.fill(0.0);
        for block in 0..self.panels.n_blocks() {
            self.add_block(block, &scratch.rows, 1, &mut scratch.strip, &mut scratch.sums);
        }
        for (j, u) in out.iter_mut().enumerate() {
            *u = scratch.sums[j * BLOCK];
        }
        self.set.project(out);
        Ok(())
    }

    /// Decisions for every row of `signals` (n × signal_dim), on all cores.
    pub fn predict(&self, signals: ArrayView2<'_, f64>) -> Result<Array2<f64>, Error> {
        let mut decisions = self.desired(signals)?;
        for mut row in decisions.rows_mut() {
            self.set.project(row.as_slice_mut().expect("a row is contiguous"));
        }
        Ok(decisions)
    }

    /// g(s) for every row: what the expert would do without limits.
    pub fn desired(&self, signals: ArrayView2<'_, f64>) -> Result<Array2<f64>, Error> {
        self.check_width("signals", signals.ncols())?;
        let mut out = Array2::zeros((signals.nrows(), self.decision_dim()));
        if signals.nrows() == 0 {
            return Ok(out);
        }
        crate::dataset::check_finite("signals", signals)?;
        let batches: Vec<_> = out
            .axis_chunks_iter_mut(Axis(0), BATCH)
            .zip(signals.axis_chunks_iter(Axis(0), BATCH))
            .collect();
        batches.into_par_iter().for_each(|(out, signals)| self.desired_batch(signals, out));
        Ok(out)
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
        let mut groups: Vec<(RowPack<f64>, usize, Vec<f64>)> = features
            .axis_chunks_iter(Axis(0), STRIP)
            .map(|rows| {
                let mut pack = RowPack::new(self.features.n_features());
                pack.pack(&self.panels.packing, rows);
                (pack, rows.nrows(), vec![0.0; self.decision_dim() * BLOCK])
            })
            .collect();
        let mut strip = vec![0.0; STRIP * BLOCK];
        for block in 0..self.panels.n_blocks() {
            for (pack, n_rows, sums) in &mut groups {
                self.add_block(block, pack, *n_rows, &mut strip, sums);
            }
        }
        for ((i, j), value) in out.indexed_iter_mut() {
            *value = groups[i / STRIP].2[j * BLOCK + i % STRIP];
        }
    }

    /// Adds a block of support points to the sums of up to eight rows.
    fn add_block(
        &self,
        block: usize,
        rows: &RowPack<f64>,
        n_rows: usize,
        strip: &mut [f64],
        sums: &mut [f64],
    ) {
        let dim = self.decision_dim();
        let packing = &self.panels.packing;
        compute_strip(
            self.isa,
            packing.kernel(),
            packing.n_features(),
            rows.rows(),
            if n_rows < FEW { n_rows } else { STRIP },
            self.panels.block(block),
            strip,
        );
        let coefficients = &self.coefficients[block * dim * BLOCK..(block + 1) * dim * BLOCK];
        let len = self.panels.block_len(block);
        accumulate_rows(self.isa, strip, n_rows, len, coefficients, sums, dim);
    }
}
