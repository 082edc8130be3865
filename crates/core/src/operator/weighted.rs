//! The kernel matrix of a problem whose samples have weights: √w_i κ_ij √w_j, whatever machine κ
//! lives on.
//!
//! Enters: an operator and √w. Leaves: the operator that the problem of these weights is solved
//! with. Solvers make it at their door, from the problem
//! ([`Problem::weigh`](crate::problem::Problem::weigh)), so that weights are given once, to the
//! problem, and no operator knows of them.

use super::{BlockMachines, KernelOperator, RemoteFactor};
use crate::error::Error;
use ndarray::{Array2, ArrayView2, ArrayViewMut2};
use std::ops::Range;
use std::sync::Arc;

/// An operator seen through the weights of a problem; the operator itself where there are none.
pub(crate) struct Weighted<'a> {
    inner: Inner<'a>,
    /// Whether this is the exact product of `inner`.
    exact: bool,
    weights: Option<Weights<'a>>,
}

struct Weights<'a> {
    /// √w.
    roots: Arc<[f64]>,
    /// The same with the exact product; none where this is exact already.
    exact: Option<Box<Weighted<'a>>>,
}

#[derive(Clone)]
enum Inner<'a> {
    Borrowed(&'a dyn KernelOperator),
    Shared(Arc<dyn KernelOperator>),
}

impl<'a> Weighted<'a> {
    /// `operator` with the weights whose roots are given, one a sample.
    pub(crate) fn new(operator: &'a dyn KernelOperator, roots: Option<&[f64]>) -> Self {
        Self::of(Inner::Borrowed(operator), roots.map(Arc::from))
    }

    fn of(inner: Inner<'a>, roots: Option<Arc<[f64]>>) -> Self {
        let weights = roots.map(|roots| {
            let exact = (!inner.operator().is_exact()).then(|| {
                let weights = Weights { roots: Arc::clone(&roots), exact: None };
                Box::new(Self { inner: inner.clone(), exact: true, weights: Some(weights) })
            });
            Weights { roots, exact }
        });
        Self { inner, exact: false, weights }
    }

    fn operator(&self) -> &dyn KernelOperator {
        let inner = self.inner.operator();
        if self.exact { inner.exact() } else { inner }
    }
}

impl Inner<'_> {
    fn operator(&self) -> &dyn KernelOperator {
        match self {
            Self::Borrowed(operator) => *operator,
            Self::Shared(operator) => operator.as_ref(),
        }
    }
}

/// rows ← rows·diag(factors).
fn scale(mut rows: ArrayViewMut2<'_, f64>, factors: &[f64]) {
    for mut row in rows.rows_mut() {
        row.iter_mut().zip(factors).for_each(|(v, factor)| *v *= factor);
    }
}

impl KernelOperator for Weighted<'_> {
    fn n_samples(&self) -> usize {
        self.operator().n_samples()
    }

    fn diagonal(&self) -> Result<Vec<f64>, Error> {
        let mut diagonal = self.operator().diagonal()?;
        if let Some(Weights { roots, .. }) = &self.weights {
            diagonal.iter_mut().zip(&**roots).for_each(|(d, root)| *d *= root * root);
        }
        Ok(diagonal)
    }

    fn rounding(&self) -> Result<Vec<f64>, Error> {
        let mut rounding = self.operator().rounding()?;
        if let Some(Weights { roots, .. }) = &self.weights {
            // Factors before and after, and four units more for multiplying with them, of at least
            // thirty.
            rounding.iter_mut().zip(&**roots).for_each(|(r, root)| *r *= 1.1 * root);
        }
        Ok(rounding)
    }

    fn apply(&self, v: ArrayView2<'_, f64>, mut out: ArrayViewMut2<'_, f64>) -> Result<(), Error> {
        let Some(Weights { roots, .. }) = &self.weights else {
            return self.operator().apply(v, out);
        };
        let mut scaled = v.to_owned();
        scale(scaled.view_mut(), roots);
        self.operator().apply(scaled.view(), out.view_mut())?;
        scale(out, roots);
        Ok(())
    }

    fn exact(&self) -> &dyn KernelOperator {
        match &self.weights {
            None => self.operator().exact(),
            Some(Weights { exact, .. }) => exact.as_deref().map_or(self, |exact| exact),
        }
    }

    fn is_exact(&self) -> bool {
        self.operator().is_exact()
    }

    fn rows_into(
        &self,
        samples: &[usize],
        columns: Range<usize>,
        out: &mut [f64],
    ) -> Result<(), Error> {
        self.operator().rows_into(samples, columns.clone(), out)?;
        if let Some(Weights { roots, .. }) = &self.weights {
            for (row, &i) in out.chunks_mut(columns.len().max(1)).zip(samples) {
                let others = &roots[columns.clone()];
                row.iter_mut().zip(others).for_each(|(v, other)| *v *= roots[i] * other);
            }
        }
        Ok(())
    }

    fn block_into(&self, samples: &[usize], out: &mut [f64]) -> Result<(), Error> {
        self.operator().block_into(samples, out)?;
        if let Some(Weights { roots, .. }) = &self.weights {
            for (row, &i) in out.chunks_mut(samples.len().max(1)).zip(samples) {
                row.iter_mut().zip(samples).for_each(|(v, &j)| *v *= roots[i] * roots[j]);
            }
        }
        Ok(())
    }

    fn add_columns(
        &self,
        samples: &[usize],
        v: ArrayView2<'_, f64>,
        mut out: ArrayViewMut2<'_, f64>,
    ) -> Result<(), Error> {
        let Some(Weights { roots, .. }) = &self.weights else {
            return self.operator().add_columns(samples, v, out);
        };
        let own: Vec<f64> = samples.iter().map(|&i| roots[i]).collect();
        let mut scaled = v.to_owned();
        scale(scaled.view_mut(), &own);
        let mut added = Array2::zeros(out.dim());
        self.operator().add_columns(samples, scaled.view(), added.view_mut())?;
        scale(added.view_mut(), roots);
        out += &added;
        Ok(())
    }

    fn apply_at(
        &self,
        columns: Range<usize>,
        v: ArrayView2<'_, f64>,
        mut out: ArrayViewMut2<'_, f64>,
    ) -> Result<(), Error> {
        let Some(Weights { roots, .. }) = &self.weights else {
            return self.operator().apply_at(columns, v, out);
        };
        let mut scaled = v.to_owned();
        scale(scaled.view_mut(), roots);
        self.operator().apply_at(columns.clone(), scaled.view(), out.view_mut())?;
        scale(out, &roots[columns]);
        Ok(())
    }

    fn restrict(&self, samples: &[usize]) -> Result<Box<dyn KernelOperator>, Error> {
        let part = self.operator().restrict(samples)?;
        let Some(Weights { roots, .. }) = &self.weights else { return Ok(part) };
        let roots = samples.iter().map(|&i| roots[i]).collect();
        Ok(Box::new(Weighted::of(Inner::Shared(Arc::from(part)), Some(roots))))
    }

    /// Without the weights: a block's problem has them.
    fn block_machines(&self) -> Option<Box<dyn BlockMachines + '_>> {
        self.operator().block_machines()
    }

    fn remote_factor(
        &self,
        max_rank: usize,
        decision_dim: usize,
        roots: Option<&[f64]>,
    ) -> Result<Option<Box<dyn RemoteFactor>>, Error> {
        let own = self.weights.as_ref().map(|weights| &*weights.roots);
        self.operator().remote_factor(max_rank, decision_dim, roots.or(own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;
    use crate::operator::{HostOperator, OperatorKind, Precision};
    use ndarray::s;

    fn wave(rows: usize, columns: usize, phase: f64) -> Array2<f64> {
        Array2::from_shape_fn((rows, columns), |(i, j)| ((i * 7 + j * 3) as f64 + phase).sin())
    }

    fn worst(a: &Array2<f64>, b: &Array2<f64>) -> f64 {
        (a - b).iter().fold(0.0, |m: f64, x| m.max(x.abs()))
    }

    /// Every way through the operator carries √w_i κ_ij √w_j.
    #[test]
    fn weights_scale_rows_and_columns() {
        let (n, kernel) = (130, Kernel::Rbf { gamma: 0.07 });
        let features = wave(n, 5, 0.3);
        let weights: Vec<f64> = (0..n).map(|i| 0.3 + (i % 7) as f64).collect();
        let row = |i: usize| features.row(i).to_vec();
        let entry = |i: usize, j: usize| {
            (weights[i] * weights[j]).sqrt() * kernel.evaluate(&row(i), &row(j))
        };
        let roots: Vec<f64> = weights.iter().map(|w| w.sqrt()).collect();
        for (precision, tol) in [(Precision::F64, 1e-13), (Precision::F32, 1e-5)] {
            let kind = OperatorKind::Stored;
            let host = HostOperator::new(features.view(), kernel.clone(), precision, kind).unwrap();
            let operator = Weighted::new(&host, Some(&roots));
            assert_eq!(operator.is_exact(), precision == Precision::F64);
            let gram = Array2::from_shape_fn((n, n), |(i, j)| entry(i, j));
            let v = wave(2, n, 1.0);
            let mut out = Array2::zeros(v.dim());
            operator.exact().apply(v.view(), out.view_mut()).unwrap();
            assert!(worst(&out, &v.dot(&gram)) < 1e-11);
            assert!(operator.exact().is_exact() && operator.exact().exact().is_exact());
            operator.apply(v.view(), out.view_mut()).unwrap();
            assert!(worst(&out, &v.dot(&gram)) < 100.0 * tol);
            let (first, few) = (v.slice(s![.., ..90]), gram.slice(s![..90, 95..130]));
            let mut at = Array2::zeros((2, 35));
            operator.apply_at(95..130, first, at.view_mut()).unwrap();
            assert!(worst(&at, &first.dot(&few)) < 100.0 * tol);
            let samples = [7, 100, 3];
            let mut rows = vec![0.0; 3 * 30];
            operator.rows_into(&samples, 20..50, &mut rows).unwrap();
            let mut block = vec![0.0; 9];
            operator.block_into(&samples, &mut block).unwrap();
            for (a, &i) in samples.iter().enumerate() {
                assert!((0..30).all(|c| (rows[a * 30 + c] - entry(i, 20 + c)).abs() < tol));
                assert!((0..3).all(|b| (block[a * 3 + b] - entry(i, samples[b])).abs() < tol));
                assert!((operator.diagonal().unwrap()[i] - entry(i, i)).abs() < tol);
            }
            let part = v.select(ndarray::Axis(1), &samples);
            let expected = part.dot(&gram.select(ndarray::Axis(0), &samples)) + &out;
            operator.add_columns(&samples, part.view(), out.view_mut()).unwrap();
            assert!(worst(&out, &expected) < 100.0 * tol);
            let restricted = operator.restrict(&samples).unwrap();
            let mut small = Array2::zeros((2, 3));
            restricted.exact().apply(part.view(), small.view_mut()).unwrap();
            let inner = gram.select(ndarray::Axis(0), &samples).select(ndarray::Axis(1), &samples);
            assert!(worst(&small, &part.dot(&inner)) < 1e-12);
        }
    }
}
