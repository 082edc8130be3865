//! Whether a kernel is one: finite, symmetric, positive semidefinite.
//!
//! The kernels of this crate are, by their formulas. Of a user's own kernel the diagonal is checked
//! for every sample, and on a seeded sample of the data symmetry, 2 × 2 minors and the eigenvalues
//! of a small matrix. What the sample misses the solvers meet as a direction of negative curvature.
//! Singular matrices are fine: all tolerances are far above rounding.

use super::Kernel;
use crate::error::{Error, KernelFault};
use crate::linalg::dense::smallest_eigenvalue;
use crate::random::stream;
use ndarray::ArrayView2;
use rand::RngExt;
use rayon::prelude::*;

/// Samples whose matrix has its eigenvalues computed.
const EIGENVALUES: usize = 64;
/// Pairs of samples beyond these.
const PAIRS: usize = 2000;
/// What rounding can do to a kernel value, relative to √(κ(a, a) κ(b, b)); a user may compute in
/// f32.
const ROUNDING: f64 = 1e-6;
/// What rounding can do to a value that should be zero, relative to the largest κ(a, a).
const ZERO: f64 = 1e-12;
/// Negative curvature that no rounding explains, relative to the trace.
const CLEARLY: f64 = 1e-7;

/// κ(z, z) of every row, having checked a kernel with a part of the user's own. Overflow is found
/// for every kernel.
pub(crate) fn check(kernel: &Kernel, features: ArrayView2<'_, f64>) -> Result<Vec<f64>, Error> {
    let rows: Vec<Vec<f64>> = match kernel.custom_part() {
        Some(_) => features.rows().into_iter().map(|z| z.to_vec()).collect(),
        None => Vec::new(),
    };
    let mut buffer = vec![0.0; features.ncols()];
    let mut diagonal: Vec<f64> = features
        .rows()
        .into_iter()
        .map(|z| {
            buffer.iter_mut().zip(z).for_each(|(to, z)| *to = *z);
            kernel.evaluate(&buffer, &buffer)
        })
        .collect();
    let infinite = diagonal.iter().position(|d| !d.is_finite());
    if kernel.custom_part().is_none() {
        return match infinite {
            None => Ok(diagonal),
            Some(i) => Err(Error::Numerical {
                what: format!(
                    "the kernel {kernel} overflows: of sample {i} with itself it is {}",
                    diagonal[i]
                ),
            }),
        };
    }
    let fault = |fault| Err(Error::NotPositiveSemidefinite(fault));
    if let Some(i) = infinite {
        return fault(KernelFault::NotFinite { samples: [i; 2], value: diagonal[i] });
    }
    let zero = ZERO * diagonal.iter().fold(f64::MIN_POSITIVE, |m, d| m.max(d.abs()));
    if let Some(sample) = diagonal.iter().position(|d| *d < -zero) {
        return fault(KernelFault::NegativeDiagonal { sample, value: diagonal[sample] });
    }
    diagonal.iter_mut().for_each(|d| *d = d.max(0.0));
    let n = rows.len();
    let mut rng = stream(0, "kernel check");
    let mut picked: Vec<usize> = if n <= EIGENVALUES {
        (0..n).collect()
    } else {
        (0..EIGENVALUES).map(|_| rng.random_range(0..n)).collect()
    };
    picked.sort_unstable();
    picked.dedup();
    let inside = picked.iter().flat_map(|&i| picked.iter().map(move |&j| (i, j)));
    let mut pairs: Vec<(usize, usize)> = inside.filter(|(i, j)| i < j).collect();
    pairs.extend((0..PAIRS).map(|_| (rng.random_range(0..n), rng.random_range(0..n))));
    let found = pairs
        .par_iter()
        .map(|&(i, j)| {
            let product = diagonal[i] * diagonal[j];
            pair_fault(kernel, [i, j], [&rows[i], &rows[j]], product, zero)
        })
        .find_first(Option::is_some)
        .flatten();
    if let Some(found) = found {
        return fault(found);
    }
    let m = picked.len();
    let matrix: Vec<f64> =
        picked
            .iter()
            .flat_map(|&i| picked.iter().map(move |&j| (i, j)))
            .map(|(i, j)| {
                if i == j { diagonal[i] } else { kernel.evaluate(&rows[i.max(j)], &rows[i.min(j)]) }
            })
            .collect();
    let value = smallest_eigenvalue(&matrix, m);
    let trace: f64 = picked.iter().map(|&i| diagonal[i]).sum();
    match clearly_negative(value, trace, m) {
        Some(found) => fault(found),
        None => Ok(diagonal),
    }
}

fn pair_fault(
    kernel: &Kernel,
    samples: [usize; 2],
    [a, b]: [&[f64]; 2],
    product: f64,
    zero: f64,
) -> Option<KernelFault> {
    let values = [kernel.evaluate(a, b), kernel.evaluate(b, a)];
    if let Some(&value) = values.iter().find(|v| !v.is_finite()) {
        return Some(KernelFault::NotFinite { samples, value });
    }
    let scale = product.sqrt();
    if (values[0] - values[1]).abs() > ROUNDING * scale + zero {
        return Some(KernelFault::Asymmetric { samples, values });
    }
    if values[0].abs() > (1.0 + ROUNDING) * scale + zero {
        return Some(KernelFault::Minor { samples, square: values[0] * values[0], product });
    }
    None
}

/// The fault, where `curvature` = vᵀKv for a v of length one is further below zero than rounding
/// takes it.
pub(crate) fn clearly_negative(
    curvature: f64,
    trace: f64,
    n_samples: usize,
) -> Option<KernelFault> {
    let relative = curvature / trace.max(f64::MIN_POSITIVE);
    (relative < -CLEARLY).then_some(KernelFault::Curvature {
        n_samples,
        value: curvature,
        relative,
    })
}
