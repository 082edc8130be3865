//! The solver's side: pivots, the small matrices, and what is asked of the panels.

use super::{PanelKeeper, Round};
use crate::operator::Held;
use argwhy_core::Error;
use argwhy_core::operator::{KernelOperator, RemoteFactor};
use argwhy_core::precond::{FactorPanel, GramSystems, clear, transpose};
use ndarray::{Array2, ArrayView1, ArrayView2, ArrayViewMut2};
use std::sync::Arc;

/// Pivots of a round: a message to every worker each.
const PROPOSALS: usize = 128;

/// Samples, of the rank, up to which those that changed sides come to the driver: fewer bytes than
/// a matrix from each of several workers, and less work than reading and writing one a panel.
const FEW: usize = 8;

/// A factor whose panels workers keep.
pub(crate) struct ClusterFactor {
    held: Arc<Held>,
    n_samples: usize,
    /// Its number, once workers know of it.
    number: Option<u64>,
    /// √w of a weighted problem.
    roots: Option<Vec<f64>>,
    /// Rows that no pivot brings, row-major.
    given: Vec<f32>,
    rounds: Vec<Round>,
    rank: usize,
    systems: Option<GramSystems>,
    n_dimensions: usize,
}

impl ClusterFactor {
    pub(crate) fn new(held: &Arc<Held>, n_dimensions: usize, roots: Option<&[f64]>) -> Self {
        Self {
            held: Arc::clone(held),
            n_samples: held.local.n_samples(),
            number: None,
            roots: roots.map(<[f64]>::to_vec),
            given: Vec::new(),
            rounds: Vec::new(),
            rank: 0,
            systems: None,
            n_dimensions,
        }
    }

    /// Bytes of this process: the small matrices and what has come of them, rounds, rows given.
    pub(crate) fn bytes(n_samples: usize, (rank, n_given): (usize, usize), dim: usize) -> u64 {
        let rank = rank + n_given;
        let packed = 2 * dim * rank * (rank + 1) / 2 * size_of::<f64>();
        let rounds = rank * rank / 2 * size_of::<f32>() + PROPOSALS * rank * size_of::<f64>();
        let given = n_given * n_samples * size_of::<f32>();
        let signs = dim * n_samples;
        // Columns of samples that changed sides: as they come, as a panel, and some widened.
        let few = FEW * rank * rank * 3 * size_of::<f32>();
        GramSystems::bytes(n_samples, rank, dim) + (packed + rounds + given + signs + few) as u64
    }

    fn keeper(&self) -> Result<&dyn PanelKeeper, Error> {
        let none = || self.failed("it keeps no panels of the preconditioner".to_owned());
        self.held.machines.panels().ok_or_else(none)
    }

    fn failed(&self, what: String) -> Error {
        Error::Backend { backend: self.held.machines.name().to_owned(), what }
    }

    /// Asks the workers, who are told of the factor first.
    fn ask<T>(
        &self,
        question: impl FnOnce(&dyn PanelKeeper, u64) -> Result<T, String>,
    ) -> Result<T, Error> {
        let number = self.number.ok_or_else(|| self.failed("no factor was begun".to_owned()))?;
        question(self.keeper()?, number).map_err(|what| self.failed(what))
    }

    fn begin_there(&mut self) -> Result<(), Error> {
        if self.number.is_none() {
            let begun = self.keeper()?.begin(self.held.matrix, self.roots.as_deref(), self.given());
            self.number = Some(begun.map_err(|what| self.failed(what))?);
        }
        Ok(())
    }

    fn n_given(&self) -> usize {
        self.given.len() / self.n_samples.max(1)
    }

    fn given(&self) -> ArrayView2<'_, f32> {
        let shape = (self.n_given(), self.n_samples);
        ArrayView2::from_shape(shape, &self.given).expect("whole rows")
    }

    fn root(&self, sample: usize) -> f64 {
        self.roots.as_ref().map_or(1.0, |roots| roots[sample])
    }

    /// B at a few samples, computed here, the way a panel is.
    fn columns(&self, samples: &[usize]) -> Result<FactorPanel, Error> {
        let n = samples.len();
        let mut panel = FactorPanel::new(n);
        panel.give(self.given().select(ndarray::Axis(1), samples).view());
        let mut diagonal = vec![0.0; n];
        for round in &self.rounds {
            let m = round.pivots.len();
            let both: Vec<usize> = round.pivots.iter().chain(samples).copied().collect();
            let mut block = vec![0.0; both.len() * both.len()];
            self.held.local.block_into(&both, &mut block)?;
            let mut rows = Vec::with_capacity(m * n);
            for (i, row) in block.chunks(both.len()).take(m).enumerate() {
                let root = |sample: &usize| self.root(round.pivots[i]) * self.root(*sample);
                rows.extend(row[m..].iter().zip(samples).map(|(v, sample)| v * root(sample)));
            }
            let weights: Vec<f64> = round.weights.iter().map(|v| f64::from(*v)).collect();
            panel.append(&rows, &weights, &round.triangle, &mut diagonal);
        }
        Ok(panel)
    }

    /// Lower triangles of Σ s_i b_i b_iᵀ, added to those of `grams`.
    fn add_grams(&self, grams: &mut [&mut [f64]], signs: ArrayView2<'_, i8>) -> Result<(), Error> {
        let mark = |column: ArrayView1<'_, i8>| i8::from(column.iter().any(|sign| *sign != 0));
        let marks: Vec<i8> = signs.columns().into_iter().map(mark).collect();
        let n_marked = marks.iter().filter(|mark| **mark != 0).count();
        if n_marked <= FEW * self.rank {
            return self.add_few(grams, signs, &marks, n_marked);
        }
        let packed = self.ask(|keeper, number| keeper.gram(number, signs))?;
        let rank = self.rank;
        for (gram, packed) in grams.iter_mut().zip(packed.rows()) {
            let lower = (0..rank).flat_map(|c| c * rank + c..(c + 1) * rank);
            lower.zip(packed).for_each(|(at, value)| gram[at] += value);
        }
        Ok(())
    }

    /// The same where few samples count: their columns come here, not a matrix from everyone.
    fn add_few(
        &self,
        grams: &mut [&mut [f64]],
        signs: ArrayView2<'_, i8>,
        marks: &[i8],
        n_marked: usize,
    ) -> Result<(), Error> {
        let view = ArrayView2::from_shape((1, marks.len()), marks).expect("one row");
        let columns = self.ask(|keeper, number| keeper.gather(number, view))?;
        if columns.dim() != (self.rank, n_marked) {
            let what = format!("columns of the preconditioner: {:?} came", columns.dim());
            return Err(self.failed(what));
        }
        let mut panel = FactorPanel::new(n_marked);
        panel.give(columns.view());
        for (gram, signs) in grams.iter_mut().zip(signs.rows()) {
            let own = signs.iter().zip(marks).filter(|(_, mark)| **mark != 0);
            panel.add_signed_gram(gram, &own.map(|(sign, _)| *sign).collect::<Vec<i8>>());
        }
        Ok(())
    }

    fn first_systems(&self, ridge: f64) -> Result<GramSystems, Error> {
        let mut full = vec![0.0; self.rank * self.rank];
        if self.rank > 0 {
            let all = Array2::from_elem((1, self.n_samples), 1);
            self.add_grams(&mut [&mut full], all.view())?;
        }
        Ok(GramSystems::new(full, self.n_samples, ridge, self.n_dimensions))
    }
}

impl Drop for ClusterFactor {
    fn drop(&mut self) {
        if let (Some(number), Ok(keeper)) = (self.number, self.keeper()) {
            keeper.end(number);
        }
    }
}

impl RemoteFactor for ClusterFactor {
    fn rank(&self) -> usize {
        self.rank
    }

    fn n_proposals(&self) -> usize {
        PROPOSALS
    }

    fn gather(&self, samples: &[usize]) -> Result<Vec<f64>, Error> {
        let all: Vec<usize> = (0..samples.len()).collect();
        Ok(self.columns(samples)?.gather(&all))
    }

    fn append(
        &mut self,
        pivots: &[usize],
        triangle: &[f64],
        diagonal: &mut [f64],
        floor: &[f64],
    ) -> Result<(), Error> {
        self.begin_there()?;
        let (m, given) = (pivots.len(), self.n_given());
        let known = self.gather(pivots)?;
        let weights = transpose(&known[given * m..], self.rank - given, m);
        // What B holds is in single precision.
        let weights = weights.into_iter().map(|v| v as f32).collect();
        let roots = self
            .roots
            .as_ref()
            .map_or_else(Vec::new, |roots| pivots.iter().map(|&i| roots[i]).collect());
        let round = Round {
            pivots: pivots.to_vec(),
            roots,
            weights: Array2::from_shape_vec((m, self.rank - given), weights)
                .expect("as many as the shape says"),
            triangle: triangle.to_vec(),
        };
        self.ask(|keeper, number| keeper.append(number, &round, diagonal))?;
        clear(diagonal, pivots, floor);
        self.rounds.push(round);
        self.rank += m;
        Ok(())
    }

    fn append_row(&mut self, row: &[f64]) -> Result<(), Error> {
        self.given.extend(row.iter().map(|v| *v as f32));
        self.rank += 1;
        Ok(())
    }

    fn update(&mut self, free: ArrayView2<'_, bool>, ridge: f64) -> Result<(), Error> {
        self.begin_there()?;
        let mut systems = match self.systems.take() {
            Some(systems) => systems,
            None => self.first_systems(ridge)?,
        };
        systems.set_ridge(ridge);
        systems.follow(free, |mut changes| {
            let (n_sets, n_samples) = (changes.len(), self.n_samples);
            let signs = changes.iter_mut().flat_map(|change| std::mem::take(&mut change.signs));
            let signs =
                Array2::from_shape_vec((n_sets, n_samples), signs.collect()).expect("a sign each");
            let mut grams: Vec<&mut [f64]> =
                changes.iter_mut().map(|change| &mut *change.gram).collect();
            self.add_grams(&mut grams, signs.view())
        })?;
        self.systems = Some(systems);
        Ok(())
    }

    fn apply(
        &self,
        dimensions: &[usize],
        v: ArrayView2<'_, f64>,
        mut out: ArrayViewMut2<'_, f64>,
    ) -> Result<(), Error> {
        let none = || self.failed("a preconditioner was applied before its update".to_owned());
        let systems = self.systems.as_ref().ok_or_else(none)?;
        let known = if self.rank == 0 {
            Array2::zeros(v.dim())
        } else {
            let mut t = self.ask(|keeper, number| keeper.project(number, v))?;
            systems.solve(dimensions, &mut t);
            self.ask(|keeper, number| keeper.expand(number, t.view()))?
        };
        for (c, mut row) in out.rows_mut().into_iter().enumerate() {
            let free = systems.free(dimensions[c]);
            for (i, value) in row.iter_mut().enumerate() {
                let rest = (v[[c, i]] - known[[c, i]]) / systems.ridge();
                *value = if free[i] { rest } else { 0.0 };
            }
        }
        Ok(())
    }

    fn product(&self, v: ArrayView2<'_, f64>) -> Result<Option<Array2<f64>>, Error> {
        if self.rank == 0 {
            return Ok(Some(Array2::zeros(v.dim())));
        }
        let t = self.ask(|keeper, number| keeper.project(number, v))?;
        self.ask(|keeper, number| keeper.expand(number, t.view())).map(Some)
    }
}
