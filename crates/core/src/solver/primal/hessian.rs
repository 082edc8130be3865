//! λI + Σ D_i ⊗ φ_iφ_iᵀ, kept up to date by the samples that changed their face, and its inverse.
//!
//! A block is the Gram matrix Σ_i ω_i φ_iφ_iᵀ of one entry of D: for boxes the n diagonal ones,
//! each a system of its own, with ω one for samples strictly inside; for polyhedra all pairs of
//! dimensions j ≥ l. ΦᵀΦ, of which all blocks are multiples while D_i = Θ⁻¹ for all samples, is
//! formed once. From there, from the last step or from zero, a block is reached by adding and
//! taking away rows; the fewest win.

use crate::decision_set::{Face, Faces};
use crate::error::Error;
use crate::features::Design;
use crate::linalg::dense::{cholesky, cholesky_on_all_cores, cholesky_solve};
use crate::linalg::shifted::{Growth, cholesky_shifted};
use crate::problem::Problem;
use crate::qp::Metric;
use ndarray::Array2;
use rayon::prelude::*;

pub(super) struct Hessian {
    ridge: f64,
    decision_dim: usize,
    /// Dimensions that make up one system.
    each: usize,
    n_features: usize,
    /// ΦᵀΦ, lower triangle.
    whole: Vec<f64>,
    /// Θ⁻¹: D of a sample that no limit holds.
    interior: Vec<f64>,
    blocks: Vec<Vec<f64>>,
    /// What the blocks stand for; none where no limit holds any sample.
    faces: Option<Faces>,
}

/// Where a block's rows are counted from.
#[derive(Clone, Copy, PartialEq)]
enum From {
    Last,
    /// ΦᵀΦ and its multiples.
    Whole,
    Zero,
}

/// How the ridge grows where rounding has made the matrix indefinite.
const GROWTH: Growth = Growth { times: 100.0, least: f64::EPSILON, most: 1e-3 };

impl Hessian {
    pub(super) fn new(design: &Design<'_>, problem: &Problem) -> Self {
        let (n, d) = (problem.decision_dim(), design.n_features());
        let each = problem.sets().dims_per_system();
        let mut whole = [vec![0.0; d * d]];
        design.add_grams(&mut whole, |_, weights| weights[0] = 1.0);
        let [whole] = whole;
        let interior = inverse(problem.metric());
        let times = |(j, l)| whole.iter().map(|v| interior[j * n + l] * v).collect();
        let first = (0..n / each).map(|system| system * each);
        let blocks = first.flat_map(|j| pairs(each).map(move |(a, b)| (j + a, j + b))).map(times);
        let (ridge, decision_dim, n_features, blocks) = (problem.ridge(), n, d, blocks.collect());
        Self { ridge, decision_dim, each, n_features, whole, interior, blocks, faces: None }
    }

    /// Bytes of the matrices, of their factor and of the sums on the way to them, for so many
    /// systems of `each` dimensions.
    pub(super) fn bytes((n_systems, each): (usize, usize), n_features: usize) -> u64 {
        let square = |n: usize| (n * n * size_of::<f64>()) as u64;
        let n_blocks = n_systems * pairs(each).count();
        (1 + n_blocks as u64) * square(n_features)
            + n_systems as u64 * square(each * n_features)
            + Design::gram_bytes(n_features, n_blocks)
    }

    /// To the faces of the current point.
    pub(super) fn update(&mut self, design: &Design<'_>, faces: &Faces) {
        match faces {
            Faces::Box(free) => self.update_boxes(design, free),
            Faces::Polyhedral(faces) => self.update_polyhedra(design, faces),
        }
        self.faces = Some(faces.clone());
    }

    fn update_boxes(&mut self, design: &Design<'_>, free: &Array2<bool>) {
        let last = match &self.faces {
            Some(Faces::Box(last)) => Some(last),
            _ => None,
        };
        let froms: Vec<From> = (0..self.decision_dim)
            .map(|j| {
                let n_free = free.row(j).iter().filter(|f| **f).count();
                let switched = last.map_or(usize::MAX, |last| {
                    last.row(j).iter().zip(free.row(j)).filter(|(a, b)| a != b).count()
                });
                fewest(switched, free.ncols() - n_free, n_free)
            })
            .collect();
        for (block, from) in self.blocks.iter_mut().zip(&froms) {
            restart(block, *from, 1.0, &self.whole);
        }
        let one = |b: bool| f64::from(u8::from(b));
        design.add_grams(&mut self.blocks, |i, weights| {
            for (j, (w, from)) in weights.iter_mut().zip(&froms).enumerate() {
                let before = match from {
                    From::Last => last.is_none_or(|last| last[[j, i]]),
                    From::Whole => true,
                    From::Zero => false,
                };
                *w = one(free[[j, i]]) - one(before);
            }
        });
    }

    fn update_polyhedra(&mut self, design: &Design<'_>, faces: &[Face]) {
        let n = self.decision_dim;
        let last = match &self.faces {
            Some(Faces::Polyhedral(last)) => Some(last),
            _ => None,
        };
        let held = |face: &Face| face.basis.len() < n * n;
        let n_held = faces.iter().filter(|face| held(face)).count();
        let n_switched = last.map_or(usize::MAX, |last| {
            faces.iter().zip(last).filter(|(a, b)| switched(a, b)).count()
        });
        let n_moving = faces.iter().filter(|face| !face.basis.is_empty()).count();
        let from = fewest(n_switched, n_held, n_moving);
        for (block, (j, l)) in self.blocks.iter_mut().zip(pairs(n)) {
            restart(block, from, self.interior[j * n + l], &self.whole);
        }
        let interior = &self.interior;
        design.add_grams(&mut self.blocks, |i, weights| {
            let before = match (from, last) {
                (From::Last, Some(last)) => Some(&last[i]),
                _ => None,
            };
            let same = match (from, before) {
                (From::Last, Some(before)) => !switched(&faces[i], before),
                (From::Whole, _) => !held(&faces[i]),
                _ => false,
            };
            weights.fill(0.0);
            if same {
                return;
            }
            let now = faces[i].derivative(n);
            let before = before.map(|face| face.derivative(n));
            for (w, (j, l)) in weights.iter_mut().zip(pairs(n)) {
                let before = match (&before, from) {
                    (Some(before), _) => before[j * n + l],
                    (None, From::Whole) => interior[j * n + l],
                    (None, _) => 0.0,
                };
                *w = now[j * n + l] - before;
            }
        });
    }

    /// Solves for a right-hand side of decision_dim × n_features.
    pub(super) fn solve(&self, rhs: Array2<f64>) -> Result<Array2<f64>, Error> {
        let (d, each) = (self.n_features, self.each);
        let size = d * each;
        // Several systems are solved at once, a single one by all cores.
        let cholesky = if each == self.decision_dim { cholesky_on_all_cores } else { cholesky };
        let mut flat: Vec<f64> = rhs.iter().copied().collect();
        let blocks = self.blocks.par_chunks(pairs(each).count());
        flat.par_chunks_mut(size).zip(blocks).try_for_each(|(rhs, blocks)| {
            let fill = |matrix: &mut [f64]| {
                for (block, (j, l)) in blocks.iter().zip(pairs(each)) {
                    for column in 0..d {
                        for row in 0..d {
                            // Of a block only the lower triangle is kept.
                            let (low, high) = (row.min(column), row.max(column));
                            matrix[(l * d + column) * size + j * d + row] = block[low * d + high];
                        }
                    }
                }
            };
            self.factorise(size, rhs, cholesky, fill)
        })?;
        Ok(Array2::from_shape_vec(rhs.raw_dim(), flat).expect("as many numbers as before"))
    }

    /// Solves with λI + the matrix that `fill` writes. A larger ridge where rounding hides a tiny
    /// one still gives a direction that descends, for the gradient is exact.
    fn factorise(
        &self,
        size: usize,
        rhs: &mut [f64],
        cholesky: impl Fn(&mut [f64], usize) -> bool,
        fill: impl Fn(&mut [f64]),
    ) -> Result<(), Error> {
        let mut matrix = vec![0.0; size * size];
        let fill = |matrix: &mut [f64]| {
            fill(matrix);
            Ok::<(), Error>(())
        };
        let room = (&mut matrix[..], size);
        if cholesky_shifted(room, self.ridge, GROWTH, cholesky, fill)?.is_none() {
            let what = format!("a Newton system of {size} features cannot be factorised");
            return Err(Error::Numerical { what });
        }
        cholesky_solve(&matrix, size, rhs);
        Ok(())
    }
}

/// Pairs of dimensions j ≥ l.
fn pairs(n: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..n).flat_map(|j| (0..=j).map(move |l| (j, l)))
}

fn fewest(switched: usize, held: usize, free: usize) -> From {
    if switched <= held.min(free) {
        From::Last
    } else if held <= free {
        From::Whole
    } else {
        From::Zero
    }
}

/// A block at its start; where no limit holds any sample it is `times` the whole.
fn restart(block: &mut [f64], from: From, times: f64, whole: &[f64]) {
    match from {
        From::Last => {}
        From::Whole => block.iter_mut().zip(whole).for_each(|(b, v)| *b = times * v),
        From::Zero => block.fill(0.0),
    }
}

/// Θ⁻¹.
fn inverse(metric: &Metric) -> Vec<f64> {
    let n = metric.dim();
    let mut factor: Vec<f64> = metric.theta().iter().copied().collect();
    let positive = cholesky(&mut factor, n);
    assert!(positive, "a metric was factorised when it was made");
    let mut columns: Vec<f64> = Array2::eye(n).into_raw_vec_and_offset().0;
    columns.chunks_mut(n.max(1)).for_each(|column| cholesky_solve(&factor, n, column));
    columns
}

/// Whether two faces of a set are different ones. Bases of the same face may differ by rounding.
fn switched(a: &Face, b: &Face) -> bool {
    let same_rows =
        a.working.len() == b.working.len() && a.working.iter().all(|row| b.working.contains(row));
    !same_rows || a.basis.len() != b.basis.len()
}
