//! Panels that one worker holds, on its cores.

use super::{Branch, Branches, PanelLayout, Round};
use crate::shard::Shard;
use argwhy_core::Error;
use argwhy_core::precond::FactorPanel;
use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis, concatenate, s};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// A worker's panels of one factor.
pub struct Panels {
    layout: PanelLayout,
    held: BTreeMap<usize, Panel>,
}

struct Panel {
    factor: FactorPanel,
    /// √w of its samples, or nothing.
    roots: Vec<f64>,
    n_rounds: usize,
}

/// A panel, its number, and what is its own of some columns.
type Share<'a, T> = (usize, &'a Panel, ArrayView2<'a, T>);

impl Panels {
    /// None of them yet.
    pub fn new(n_samples: usize) -> Self {
        Self { layout: PanelLayout::new(n_samples), held: BTreeMap::new() }
    }

    /// Rounds that a panel has behind it; none where it is not here.
    pub fn n_rounds(&self, panel: usize) -> Option<usize> {
        self.held.get(&panel).map(|held| held.n_rounds)
    }

    /// Begins a panel, with the rows and the √w of its samples.
    pub fn begin(
        &mut self,
        panel: usize,
        roots: &[f64],
        given: ArrayView2<'_, f32>,
    ) -> Result<(), Error> {
        let columns = self.columns(panel)?;
        let fits = roots.is_empty() || roots.len() == columns.len();
        if !fits || given.ncols() != columns.len() {
            return Err(misfit("what begins a panel", given.ncols(), columns.len()));
        }
        let mut factor = FactorPanel::new(columns.len());
        factor.give(given);
        self.held.insert(panel, Panel { factor, roots: roots.to_vec(), n_rounds: 0 });
        Ok(())
    }

    /// Forgets all but the panels listed: others have them now.
    pub fn retain(&mut self, panels: &[usize]) {
        self.held.retain(|panel, _| panels.contains(panel));
    }

    /// A round more of a panel, which lowers the residual diagonal of its samples.
    pub fn append(
        &mut self,
        shard: &Shard,
        panel: usize,
        round: &Round,
        diagonal: &mut [f64],
    ) -> Result<(), Error> {
        let columns = self.columns(panel)?;
        let (m, n_rows) = (round.pivots.len(), columns.len());
        let held = self.held.get_mut(&panel).ok_or_else(|| missing(panel))?;
        let fits = round.weights.nrows() == m && round.triangle.len() == m * m;
        if m == 0 || !fits || diagonal.len() != n_rows {
            return Err(misfit("a round", diagonal.len(), n_rows));
        }
        let mut rows = shard.rows(&round.pivots, columns)?;
        for (mut row, root) in rows.rows_mut().into_iter().zip(&round.roots) {
            row.iter_mut().zip(&held.roots).for_each(|(v, other)| *v *= root * other);
        }
        let rows = rows.as_slice().expect("in standard layout");
        let weights: Vec<f64> = round.weights.iter().map(|v| f64::from(*v)).collect();
        held.factor.append(rows, &weights, &round.triangle, diagonal);
        held.n_rounds += 1;
        Ok(())
    }

    /// Σ s_i b_i b_iᵀ over the panels listed, for every row of `signs`, which has their samples one
    /// panel after the other: packed lower triangles, a row each.
    pub fn gram(&self, panels: &[usize], signs: ArrayView2<'_, i8>) -> Result<Vec<Branch>, Error> {
        let mut branches = Branches::default();
        for (panel, own, signs) in self.cut(panels, signs)? {
            let rank = own.factor.rank();
            let mut packed = Array2::zeros((signs.nrows(), rank * (rank + 1) / 2));
            let mut gram = vec![0.0; rank * rank];
            for (signs, mut row) in signs.rows().into_iter().zip(packed.rows_mut()) {
                gram.fill(0.0);
                own.factor.add_signed_gram(&mut gram, &signs.to_vec());
                let mut packed = row.as_slice_mut().expect("in standard layout");
                for (c, column) in gram.chunks(rank.max(1)).enumerate() {
                    let (own, rest) = packed.split_at_mut(rank - c);
                    own.copy_from_slice(&column[c..]);
                    packed = rest;
                }
            }
            branches.add_panel(panel, packed);
        }
        Ok(branches.into_vec())
    }

    /// B at the samples of the panels listed that `marks`, one row, has other than zero for.
    pub fn gather(
        &self,
        panels: &[usize],
        marks: ArrayView2<'_, i8>,
    ) -> Result<Array2<f32>, Error> {
        let columns = self.cut(panels, marks)?.into_iter().map(|(_, own, marks)| {
            let marked: Vec<usize> = (0..marks.ncols()).filter(|&i| marks[[0, i]] != 0).collect();
            let found = own.factor.gather(&marked).into_iter().map(|v| v as f32).collect();
            let shape = (own.factor.rank(), marked.len());
            Array2::from_shape_vec(shape, found).expect("as many as the shape says")
        });
        let columns: Vec<Array2<f32>> = columns.collect();
        let views: Vec<ArrayView2<'_, f32>> = columns.iter().map(|array| array.view()).collect();
        Ok(concatenate(Axis(1), &views).expect("as many rows each"))
    }

    /// B v over the panels listed, `v` having their samples one panel after the other.
    pub fn project(&self, panels: &[usize], v: ArrayView2<'_, f64>) -> Result<Vec<Branch>, Error> {
        let cut = self.cut(panels, v)?;
        let found = cut.into_par_iter().map(|(panel, own, v)| (panel, own.factor.project(v)));
        let mut branches = Branches::default();
        let found: Vec<(usize, Array2<f64>)> = found.collect();
        found.into_iter().for_each(|(panel, values)| branches.add_panel(panel, values));
        Ok(branches.into_vec())
    }

    /// Bᵀw over the samples of the panels listed, one panel after the other.
    pub fn expand(&self, panels: &[usize], w: ArrayView2<'_, f64>) -> Result<Array2<f64>, Error> {
        let expand = |panel: &usize| {
            let own = self.held.get(panel).ok_or_else(|| missing(*panel))?;
            if w.ncols() != own.factor.rank() {
                return Err(misfit("weights of rows", w.ncols(), own.factor.rank()));
            }
            Ok(own.factor.expand(w))
        };
        let found: Result<Vec<Array2<f64>>, Error> = panels.par_iter().map(expand).collect();
        let found = found?;
        let views: Vec<ArrayView2<'_, f64>> = found.iter().map(|array| array.view()).collect();
        Ok(concatenate(Axis(1), &views).expect("as many vectors each"))
    }

    /// The panels listed, each with its own of some columns.
    fn cut<'a, T>(
        &'a self,
        panels: &[usize],
        columns: ArrayView2<'a, T>,
    ) -> Result<Vec<Share<'a, T>>, Error> {
        let (mut first, mut found) = (0, Vec::with_capacity(panels.len()));
        for &panel in panels {
            let own = self.held.get(&panel).ok_or_else(|| missing(panel))?;
            let end = first + own.factor.n_samples();
            if end > columns.ncols() {
                return Err(misfit("columns of panels", columns.ncols(), end));
            }
            found.push((panel, own, columns.slice_move(s![.., first..end])));
            first = end;
        }
        Ok(found)
    }

    fn columns(&self, panel: usize) -> Result<std::ops::Range<usize>, Error> {
        if panel >= self.layout.n_panels() {
            return Err(misfit("panels", panel, self.layout.n_panels()));
        }
        Ok(self.layout.columns(panel))
    }
}

impl PanelLayout {
    /// The columns of some panels, one after the other.
    pub fn select<T: Clone>(self, panels: &[usize], whole: ArrayView2<'_, T>) -> Array2<T> {
        let views: Vec<ArrayView2<'_, T>> =
            panels.iter().map(|&panel| whole.slice_move(s![.., self.columns(panel)])).collect();
        concatenate(Axis(1), &views).expect("as many rows each")
    }

    /// Puts such columns back to where they belong.
    pub fn scatter<T: Clone>(
        self,
        panels: &[usize],
        columns: ArrayView2<'_, T>,
        mut whole: ArrayViewMut2<'_, T>,
    ) {
        let mut first = 0;
        for &panel in panels {
            let own = self.columns(panel);
            let end = first + own.len();
            whole.slice_mut(s![.., own]).assign(&columns.slice(s![.., first..end]));
            first = end;
        }
    }
}

fn missing(panel: usize) -> Error {
    failed(format!("panel {panel} of the preconditioner is not here; report this"))
}

fn misfit(what: &str, found: usize, expected: usize) -> Error {
    failed(format!("{what}: {found} instead of {expected}; report this"))
}

fn failed(what: String) -> Error {
    Error::Backend { backend: crate::shard::NAME.to_owned(), what }
}
