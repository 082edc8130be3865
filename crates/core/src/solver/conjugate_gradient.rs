//! Preconditioned conjugate gradients for (K_FF + λI) d = b, all dimensions of a box side by side.
//!
//! Each dimension has its own free samples F and its own scalars; they share the products with K. The image K d over
//! *all* samples comes along for nothing, since every product computes it: the line search needs it.

use super::observer::Observer;
use crate::error::Error;
use crate::kernel::clearly_negative;
use crate::linalg::sums::dot;
use crate::operator::KernelOperator;
use crate::precond::Preconditioner;
use ndarray::{Array2, ArrayView2, Axis};

pub(crate) struct Solution {
    /// d, zero outside F.
    pub(crate) direction: Array2<f64>,
    /// K d over all samples.
    pub(crate) image: Array2<f64>,
    pub(crate) products: usize,
    /// False where the observer stopped it.
    pub(crate) finished: bool,
    /// Whether a direction was met along which K_FF + λI does not curve upwards.
    pub(crate) indefinite: bool,
}

#[allow(clippy::too_many_arguments, reason = "the parts of one linear system, named")]
/// Solves to ‖residual‖ ≤ `targets` in each dimension. `rhs` is zero outside `free`.
pub(crate) fn solve(
    operator: &dyn KernelOperator,
    preconditioner: &dyn Preconditioner,
    free: ArrayView2<'_, bool>,
    ridge: f64,
    rhs: Array2<f64>,
    targets: &[f64],
    max_products: usize,
    observer: &mut dyn Observer,
) -> Result<Solution, Error> {
    let shape = rhs.dim();
    let mut direction = Array2::zeros(shape);
    let mut image = Array2::zeros(shape);
    let row = |a: &Array2<f64>, j: usize| -> Vec<f64> { a.row(j).to_vec() };
    let mut active: Vec<usize> =
        (0..shape.0).filter(|&j| dot(&row(&rhs, j), &row(&rhs, j)).sqrt() > targets[j]).collect();
    if active.is_empty() {
        return Ok(Solution { direction, image, products: 0, finished: true, indefinite: false });
    }
    let mut residual = rhs.select(Axis(0), &active);
    let mut z = Array2::zeros(residual.dim());
    preconditioner.apply(&active, residual.view(), z.view_mut());
    let mut p = z.clone();
    let mut rho: Vec<f64> =
        (0..active.len()).map(|c| dot(&row(&residual, c), &row(&z, c))).collect();
    let (mut products, mut indefinite) = (0, false);
    while !active.is_empty() && products < max_products {
        if observer.poll().is_break() {
            return Ok(Solution { direction, image, products, finished: false, indefinite });
        }
        let mut q = Array2::zeros(p.dim());
        operator.apply(p.view(), q.view_mut())?;
        products += 1;
        let mut keep = Vec::new();
        for (c, &j) in active.iter().enumerate() {
            let inside = free.row(j);
            let (p, q) = (p.row(c), q.row(c));
            let curvature: f64 =
                (0..shape.1).filter(|&i| inside[i]).map(|i| p[i] * (q[i] + ridge * p[i])).sum();
            if curvature <= 0.0 || !curvature.is_finite() {
                // Rounding has made K indefinite. In f64 what is found so far is the answer; else f64 will find a better one.
                indefinite = true;
                if operator.is_exact() {
                    let trace = operator.diagonal().iter().sum();
                    let square: f64 =
                        (0..shape.1).filter(|&i| inside[i]).map(|i| p[i] * p[i]).sum();
                    // pᵀKp for a p of length one.
                    let own = curvature / square - ridge;
                    if let Some(fault) = clearly_negative(own, trace, shape.1) {
                        return Err(Error::NotPositiveSemidefinite(fault));
                    }
                    continue;
                }
                return Ok(Solution { direction, image, products, finished: true, indefinite });
            }
            let a = rho[c] / curvature;
            let mut norm = 0.0;
            for i in 0..shape.1 {
                image[[j, i]] += a * q[i];
                if inside[i] {
                    direction[[j, i]] += a * p[i];
                    let r = &mut residual[[c, i]];
                    *r -= a * (q[i] + ridge * p[i]);
                    norm += *r * *r;
                }
            }
            if norm.sqrt() > targets[j] {
                keep.push(c);
            }
        }
        if keep.len() < active.len() {
            active = keep.iter().map(|&c| active[c]).collect();
            residual = residual.select(Axis(0), &keep);
            p = p.select(Axis(0), &keep);
            rho = keep.iter().map(|&c| rho[c]).collect();
            z = Array2::zeros(residual.dim());
        }
        if active.is_empty() {
            break;
        }
        preconditioner.apply(&active, residual.view(), z.view_mut());
        for (c, rho) in rho.iter_mut().enumerate() {
            let next = dot(&row(&residual, c), &row(&z, c));
            let beta = next / *rho;
            *rho = next;
            let z = z.row(c);
            p.row_mut(c).zip_mut_with(&z, |p, z| *p = z + beta * *p);
        }
    }
    Ok(Solution { direction, image, products, finished: true, indefinite })
}
