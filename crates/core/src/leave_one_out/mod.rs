//! What would have been decided on each sample by a model that had not learned from it.
//!
//! At the optimum λα_l = û_l − X_l(g_l) with g = Kα. Leave sample i out and let every other
//! decision stay on its face, where X_l moves by D_l = R_l R_lᵀ times what g_l moves by. The others
//! then change by R c with (λI + RᵀKR)c = RᵀK_{:i}α_i, all without i, and what is desired for i
//! becomes
//!
//! ```text
//! g_i − S_i α_i ,   S_i = κ_ii I − K_{i:}R (λI + RᵀKR)⁻¹ RᵀK_{:i} :
//! ```
//!
//! what is left of κ_ii beside the other samples, as far as they are free. This is exact while no
//! sample changes its face; without limits it is the leave-one-out of kernel ridge regression.
//! With one sample less λ = kN is smaller, too: the coefficients are moved to that λ first, on the
//! same faces. A learned θ_uu is taken as it is.
//!
//! Among few samples each weighs much, and leaving one out moves others to other faces; under
//! limits up to [`FEW`] are therefore left out by the solver itself.

mod block;

use crate::decision_set::Faces;
use crate::error::Error;
use crate::kernel::Kernel;
use crate::operator::{HostOperator, OperatorKind, Precision};
use crate::problem::Problem;
use crate::solver::{Ignore, NewtonSettings, newton};
use block::Block;
use ndarray::{Array1, Array2, ArrayView2, Axis};
use rayon::prelude::*;

/// Operations that the factorisations may take; a second or two on two cores.
const MOST_WORK: f64 = 2e10;
/// Samples whose kernel matrix is made at most.
const MOST_SAMPLES: usize = 4000;
/// Samples that are left out one fit after the other where they have limits.
pub const FEW: usize = 200;
/// Relative gap of these fits.
const TOLERANCE: f64 = 1e-8;

/// Bytes that leaving samples out may take.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Less than the free system takes, or one fit without a sample, and nothing is left out. What
    /// threads take is no part of it: their number changes no answer.
    pub whole: u64,
    /// How much fits beside each other may take; one at a time there may always be.
    pub beside: u64,
}

/// The decisions, decision_dim × n_samples, for a solved problem with these `coefficients` of the
/// same shape and features (n_samples × n_features). None where there are too many samples to
/// factorise their free system, where there is no room for it, or where rounding keeps it from
/// being positive definite.
pub fn leave_one_out(
    problem: &Problem,
    kernel: &Kernel,
    features: ArrayView2<'_, f64>,
    coefficients: ArrayView2<'_, f64>,
    room: Room,
) -> Result<Option<Array2<f64>>, Error> {
    let n_samples = problem.n_samples();
    if !(2..=MOST_SAMPLES).contains(&n_samples) {
        return Ok(None);
    }
    let few = n_samples <= FEW && problem.sets().has_limits();
    let each = if few {
        bytes_of_fit(problem, kernel, features.ncols())
    } else {
        bytes(n_samples, problem.decision_dim())
    };
    if Gram::bytes(n_samples) + each > room.whole {
        return Ok(None);
    }
    let gram = Gram::new(kernel, features, problem.roots());
    let mut alpha = coefficients.to_owned();
    scale(&mut alpha, problem, |root| 1.0 / root);
    let mut desired = gram.times(&alpha);
    let decided = problem.decide(&desired, None)?;
    if few {
        let at_once = usize::try_from(room.beside.saturating_sub(Gram::bytes(n_samples)) / each);
        let at_once = at_once.unwrap_or(usize::MAX).max(1);
        let desired = one_by_one(problem, kernel, features, &gram, at_once)?;
        return decisions(problem, &desired, &decided.faces).map(Some);
    }
    let blocks = blocks(&decided.faces, problem.decision_dim(), n_samples);
    if blocks.iter().map(Block::work).sum::<f64>() > MOST_WORK {
        return Ok(None);
    }
    let ridge = problem.ridge();
    for block in &blocks {
        if !block.leave_out(&gram, problem.metric(), ridge, &alpha, &mut desired) {
            return Ok(None);
        }
    }
    decisions(problem, &desired, &decided.faces).map(Some)
}

/// X(g) in the units of the data.
fn decisions(
    problem: &Problem,
    desired: &Array2<f64>,
    faces: &Faces,
) -> Result<Array2<f64>, Error> {
    let mut decisions = problem.decide(desired, Some(faces))?.decisions;
    scale(&mut decisions, problem, |root| 1.0 / root);
    Ok(decisions)
}

/// Bytes of the free system at most, with what goes through it at once.
fn bytes(n_samples: usize, decision_dim: usize) -> u64 {
    let coordinates = (n_samples * decision_dim).min(MOST_WORK.cbrt() as usize);
    (coordinates * (coordinates + 2 * block::BATCH) * size_of::<f64>()) as u64
}

/// Bytes of a fit without a sample.
fn bytes_of_fit(problem: &Problem, kernel: &Kernel, n_features: usize) -> u64 {
    let (n, dim, sets) = (problem.n_samples(), problem.decision_dim(), problem.sets());
    let solver = if sets.dims_per_system() > 1 { newton::coupled_bytes } else { newton::bytes };
    let held = HostOperator::bytes(kernel, n, n_features, Precision::F64, OperatorKind::Stored);
    // The others' features, decisions and sets are copies.
    let copies = (n * (n_features + dim) + sets.n_numbers()) * size_of::<f64>();
    solver(n, dim, n) + held + HostOperator::product_bytes(n, 2 * dim) + copies as u64
}

/// What is desired for each sample by a fit without it, so many `at_once`.
fn one_by_one(
    problem: &Problem,
    kernel: &Kernel,
    features: ArrayView2<'_, f64>,
    gram: &Gram,
    at_once: usize,
) -> Result<Array2<f64>, Error> {
    let settings = NewtonSettings { tol: TOLERANCE, ..NewtonSettings::default() };
    let desired_for = |i: usize| {
        let others: Vec<usize> = (0..gram.n).filter(|&l| l != i).collect();
        let (rest, values) = (problem.without(i), features.select(Axis(0), &others));
        let (precision, kind) = (Precision::F64, OperatorKind::Stored);
        let operator = HostOperator::new(values.view(), kernel.clone(), precision, kind)?;
        let mut alpha =
            newton::solve(&rest, &operator, &settings, 0, &mut Ignore)?.certified.coefficients;
        scale(&mut alpha, &rest, |root| 1.0 / root);
        let row: Array1<f64> = others.iter().map(|&l| gram.row(i)[l]).collect();
        Ok(alpha.dot(&row))
    };
    // As many chains as there is room for: whichever thread goes on with one, no other begins.
    let chains = at_once.min(gram.n);
    let chain = |first: usize| -> Result<Vec<Array1<f64>>, Error> {
        (first..gram.n).step_by(chains).map(desired_for).collect()
    };
    let found: Vec<Result<Vec<Array1<f64>>, Error>> =
        (0..chains).into_par_iter().map(chain).collect();
    let mut desired = Array2::zeros((problem.decision_dim(), gram.n));
    for (first, columns) in found.into_iter().enumerate() {
        for (at, column) in columns?.into_iter().enumerate() {
            desired.column_mut(first + at * chains).assign(&column);
        }
    }
    Ok(desired)
}

/// Dimensions that are one system, and those of boxes in which the same samples are free.
fn blocks(faces: &Faces, n: usize, n_samples: usize) -> Vec<Block> {
    match faces {
        Faces::Polyhedral(faces) => {
            let bases = faces.iter().map(|face| face.basis.clone()).collect();
            vec![Block::new(n, bases, vec![(0..n).collect()])]
        }
        Faces::Box(free) => {
            let mut blocks: Vec<(Vec<bool>, Vec<Vec<usize>>)> = Vec::new();
            for j in 0..n {
                let own = free.row(j).to_vec();
                match blocks.iter_mut().find(|(mask, _)| *mask == own) {
                    Some((_, dimensions)) => dimensions.push(vec![j]),
                    None => blocks.push((own, vec![vec![j]])),
                }
            }
            let basis = |free: &bool| if *free { vec![1.0] } else { Vec::new() };
            let block = |(mask, dimensions): (Vec<bool>, _)| {
                debug_assert_eq!(mask.len(), n_samples);
                Block::new(1, mask.iter().map(basis).collect(), dimensions)
            };
            blocks.into_iter().map(block).collect()
        }
    }
}

/// Multiplies each sample's column by a function of √w, where samples have weights.
fn scale(values: &mut Array2<f64>, problem: &Problem, factor: impl Fn(f64) -> f64) {
    let Some(roots) = problem.roots() else { return };
    for mut row in values.rows_mut() {
        row.iter_mut().zip(roots).for_each(|(value, root)| *value *= factor(*root));
    }
}

/// The kernel matrix, or √w_i κ_ij √w_j.
pub(crate) struct Gram {
    n: usize,
    values: Vec<f64>,
}

impl Gram {
    fn bytes(n_samples: usize) -> u64 {
        (n_samples * n_samples * size_of::<f64>()) as u64
    }

    fn new(kernel: &Kernel, features: ArrayView2<'_, f64>, roots: Option<&[f64]>) -> Self {
        let n = features.nrows();
        let rows: Vec<Vec<f64>> = features.rows().into_iter().map(|row| row.to_vec()).collect();
        let root = |i: usize| roots.map_or(1.0, |roots| roots[i]);
        let mut values = vec![0.0; n * n];
        values.par_chunks_mut(n).enumerate().for_each(|(i, row)| {
            for (j, value) in row.iter_mut().enumerate().take(i + 1) {
                *value = root(i) * root(j) * kernel.evaluate(&rows[i], &rows[j]);
            }
        });
        for i in 0..n {
            for j in i + 1..n {
                values[i * n + j] = values[j * n + i];
            }
        }
        Self { n, values }
    }

    fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.n..(i + 1) * self.n]
    }

    /// K v for every row v of an array.
    fn times(&self, v: &Array2<f64>) -> Array2<f64> {
        let matrix = ArrayView2::from_shape((self.n, self.n), &self.values)
            .expect("as many values as the matrix has");
        v.dot(&matrix)
    }
}
