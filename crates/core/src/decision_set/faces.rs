//! On which face of its set each decision lies, and which directions that leaves free.
//!
//! The derivative of X(g) in g is D = RRᵀ with RᵀΘR = I, R spanning the directions along the face.
//! For a box R selects the dimensions strictly inside. Newton's method works in the coordinates c
//! of those directions, v = Rc: for every sample as many numbers as there are decision dimensions,
//! those beyond the free ones zero.

use crate::error::Error;
use crate::linalg::entries::filled;
use crate::qp::{ActiveSet, Metric};
use ndarray::{Array2, ArrayView2, Axis, Zip};
use rayon::prelude::*;
use std::borrow::Cow;

/// The faces of all samples.
#[derive(Clone, Debug)]
pub(crate) enum Faces {
    /// Whether each coordinate lies strictly inside its limits, n × n_samples.
    Box(Array2<bool>),
    /// One face a sample.
    Polyhedral(Vec<Face>),
}

/// One sample's face of a polyhedron.
#[derive(Clone, Debug)]
pub(crate) struct Face {
    /// Independent rows that hold the decision.
    pub(crate) working: Vec<u32>,
    /// R, n × free, column-major.
    pub(crate) basis: Vec<f64>,
    /// Whether the interior-point method had to help.
    pub(crate) rescued: bool,
    /// What the program that found the decision leaves open.
    pub(crate) doubt: Doubt,
}

/// What a small program leaves open about its decision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Doubt {
    /// How far the decision's objective can be above the least, by rounding.
    pub(crate) value: f64,
    /// Σ|ν| of the rows that hold it: what a unit beyond them would be worth at most.
    pub(crate) price: f64,
}

impl Doubt {
    /// How far the objective of a decision can be off that is so far beyond its rows.
    pub(crate) fn at(self, beyond: f64) -> f64 {
        self.value + self.price * beyond
    }
}

impl Face {
    /// Bytes of one at most.
    pub(crate) fn bytes(n: usize) -> u64 {
        // Two lists of their own, each with what the allocator adds.
        (size_of::<Self>() + n * size_of::<u32>() + n * n * size_of::<f64>() + 32) as u64
    }

    pub(super) fn of(solver: &ActiveSet, doubt: f64) -> Self {
        Self {
            working: solver.working_set().to_vec(),
            basis: solver.basis().to_vec(),
            rescued: solver.used_fallback(),
            doubt: Doubt {
                value: doubt,
                price: solver.multipliers().iter().map(|nu| nu.abs()).sum(),
            },
        }
    }

    /// D = RRᵀ, n × n.
    pub(crate) fn derivative(&self, n: usize) -> Vec<f64> {
        let mut d = vec![0.0; n * n];
        for column in self.basis.chunks(n) {
            for (row, a) in d.chunks_mut(n).zip(column) {
                for (d, b) in row.iter_mut().zip(column) {
                    *d += a * b;
                }
            }
        }
        d
    }
}

/// A residual taken apart: r = R·inside + bound.
pub(crate) struct Split {
    /// In the coordinates of the free directions.
    pub(crate) inside: Array2<f64>,
    /// What no free direction reaches.
    pub(crate) bound: Array2<f64>,
}

impl Faces {
    /// Systems of Newton's method, and the dimensions of each.
    pub(crate) fn systems(&self, decision_dim: usize) -> (usize, usize) {
        match self {
            Self::Box(_) => (decision_dim, 1),
            Self::Polyhedral(_) => (1, decision_dim),
        }
    }

    /// Rows that held sample `i`'s decision.
    pub(crate) fn working(&self, i: usize) -> &[u32] {
        match self {
            Self::Box(_) => &[],
            Self::Polyhedral(faces) => &faces[i].working,
        }
    }

    /// What a preconditioner of single dimensions works on.
    pub(crate) fn mask(&self) -> Result<ArrayView2<'_, bool>, Error> {
        match self {
            Self::Box(free) => Ok(free.view()),
            Self::Polyhedral(_) => Err(other_kind("polyhedra", "boxes")),
        }
    }

    /// What a preconditioner of dimensions tied together works on.
    pub(crate) fn of_polyhedra(&self) -> Result<&[Face], Error> {
        match self {
            Self::Box(_) => Err(other_kind("boxes", "polyhedra")),
            Self::Polyhedral(faces) => Ok(faces),
        }
    }

    /// What the small programs behind the decisions leave open; none for boxes, whose decisions are
    /// exact.
    pub(crate) fn doubts(&self) -> Option<Vec<Doubt>> {
        match self {
            Self::Box(_) => None,
            Self::Polyhedral(faces) => Some(faces.iter().map(|face| face.doubt).collect()),
        }
    }

    /// Directions that are free in each system.
    pub(crate) fn n_free(&self, decision_dim: usize) -> Vec<usize> {
        match self {
            Self::Box(free) => {
                free.rows().into_iter().map(|free| free.iter().filter(|f| **f).count()).collect()
            }
            Self::Polyhedral(faces) => {
                vec![faces.iter().map(|f| f.basis.len() / decision_dim).sum()]
            }
        }
    }

    /// Share of directions that are free.
    pub(crate) fn free_share(&self, decision_dim: usize) -> f64 {
        let n_samples = match self {
            Self::Box(free) => free.ncols(),
            Self::Polyhedral(faces) => faces.len(),
        };
        let free: usize = self.n_free(decision_dim).iter().sum();
        free as f64 / (n_samples * decision_dim) as f64
    }

    /// Decisions that the interior-point method had to find.
    pub(crate) fn rescued(&self) -> usize {
        match self {
            Self::Box(_) => 0,
            Self::Polyhedral(faces) => faces.iter().filter(|f| f.rescued).count(),
        }
    }

    /// r = R·inside + bound with inside = RᵀΘr.
    pub(crate) fn split(&self, metric: &Metric, residual: &Array2<f64>) -> Split {
        match self {
            Self::Box(free) => {
                let part = |keep: bool| {
                    let of = |j: usize, i: usize| free[[j, i]] == keep;
                    filled(residual.dim(), |j, i| if of(j, i) { residual[[j, i]] } else { 0.0 })
                };
                Split { inside: part(true), bound: part(false) }
            }
            Self::Polyhedral(faces) => {
                let n = residual.nrows();
                let mut inside = residual.clone();
                in_place(&mut inside, n, faces, |face, v, out| {
                    let mut weighted = vec![0.0; n];
                    metric.apply(v, &mut weighted);
                    transposed(face, n, &weighted, out);
                });
                let bound = residual - &*self.expand(1, &inside);
                Split { inside, bound }
            }
        }
    }

    /// v ← Rᵀv, for the listed systems: dimensions of boxes, or for polyhedra as many vectors over
    /// all dimensions, one below the other.
    pub(crate) fn reduce(&self, systems: &[usize], v: &mut Array2<f64>) {
        match self {
            Self::Box(free) => {
                for (mut v, &j) in v.rows_mut().into_iter().zip(systems) {
                    let free = free.index_axis(Axis(0), j);
                    Zip::from(&mut v).and(&free).for_each(|v, f| *v = if *f { *v } else { 0.0 });
                }
            }
            Self::Polyhedral(faces) => {
                let n = v.nrows() / systems.len();
                in_place(v, n, faces, |face, v, out| transposed(face, n, v, out));
            }
        }
    }

    /// R c, for `n_systems` vectors one below the other.
    pub(crate) fn expand<'a>(&self, n_systems: usize, c: &'a Array2<f64>) -> Cow<'a, Array2<f64>> {
        match self {
            Self::Box(_) => Cow::Borrowed(c),
            Self::Polyhedral(faces) => {
                let n = c.nrows() / n_systems;
                let mut v = c.clone();
                in_place(&mut v, n, faces, |face, c, out| {
                    out.fill(0.0);
                    for (column, c) in face.basis.chunks(n).zip(c) {
                        out.iter_mut().zip(column).for_each(|(out, b)| *out += b * c);
                    }
                });
                Cow::Owned(v)
            }
        }
    }
}

/// A preconditioner is chosen by the problem's sets once, and faces come from the same sets.
fn other_kind(faces: &str, preconditioner: &str) -> Error {
    let what = format!("faces of {faces} were handed to a preconditioner of {preconditioner}");
    Error::Numerical { what }
}

/// out = Rᵀv, zeros beyond.
fn transposed(face: &Face, n: usize, v: &[f64], out: &mut [f64]) {
    out.fill(0.0);
    for (out, column) in out.iter_mut().zip(face.basis.chunks(n)) {
        *out = column.iter().zip(v).map(|(b, v)| b * v).sum();
    }
}

/// Samples one task turns.
const TASK: usize = 512;

/// Replaces each sample's columns of `v`, `n` numbers each, by what `turn` makes of them.
fn in_place(
    v: &mut Array2<f64>,
    n: usize,
    faces: &[Face],
    turn: impl Fn(&Face, &[f64], &mut [f64]) + Sync,
) {
    let parts: Vec<_> = v.axis_chunks_iter_mut(Axis(1), TASK).zip(faces.chunks(TASK)).collect();
    parts.into_par_iter().for_each(|(mut part, faces)| {
        let (mut old, mut new) = (vec![0.0; n], vec![0.0; n]);
        for mut group in part.axis_chunks_iter_mut(Axis(0), n) {
            for (mut column, face) in group.columns_mut().into_iter().zip(faces) {
                old.iter_mut().zip(&column).for_each(|(old, v)| *old = *v);
                turn(face, &old, &mut new);
                column.iter_mut().zip(&new).for_each(|(v, new)| *v = *new);
            }
        }
    });
}
