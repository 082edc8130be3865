//! The kernel operator of a GPU: the samples stay there, vectors come and go.

use crate::device::Device;
use crate::error::Error;
use crate::factor::Factor;
use crate::fused::{Precision, feature_scale};
use crate::products::{Prepared, Products, check_range};
use crate::recipe::{Kind, Recipe};
use crate::rounding::Rounded;
use argwhy_core::operator::{KernelOperator, RemoteFactor};
use argwhy_core::{Error as CoreError, Kernel};
use ndarray::{ArrayView2, ArrayViewMut2, Axis};
use std::ops::Range;
use std::sync::Arc;

/// As messages name this backend.
pub(crate) const NAME: &str = "cuda";

/// What the GPU says, as a solver passes it on.
pub(crate) fn failed(error: Error) -> CoreError {
    CoreError::Backend { backend: NAME.to_owned(), what: error.to_string() }
}

/// Products with K on a GPU: in 22 bits while iterating, in f64 for certificates.
pub struct CudaOperator {
    samples: Arc<Samples>,
    /// The same in f64, where this is not.
    exact: Option<Box<CudaOperator>>,
}

struct Samples {
    products: Arc<Products>,
    diagonal: Vec<f64>,
    /// See [`KernelOperator::rounding`].
    rounding: Vec<f64>,
}

impl CudaOperator {
    /// Copies `features` (n_samples × n_features) to the GPU. `working`: whether products while
    /// iterating may be in 22 bits; they are in f64 all the same where that would not tell the
    /// samples apart. `accuracy`: what values of exact products may be off by on average.
    pub fn new(
        device: &Device,
        features: ArrayView2<'_, f64>,
        kernel: &Kernel,
        working: bool,
        accuracy: f64,
    ) -> Result<Self, CoreError> {
        Self::made(device, features, kernel, (working, accuracy), None)
    }

    /// The same with features on the host, of which panels of `panel_rows` samples pass through the
    /// GPU ([`Products::streamed`]).
    pub fn streamed(
        device: &Device,
        features: ArrayView2<'_, f64>,
        kernel: &Kernel,
        (working, accuracy): (bool, f64),
        panel_rows: usize,
    ) -> Result<Self, CoreError> {
        Self::made(device, features, kernel, (working, accuracy), Some(panel_rows))
    }

    fn made(
        device: &Device,
        features: ArrayView2<'_, f64>,
        kernel: &Kernel,
        (working, accuracy): (bool, f64),
        panel_rows: Option<usize>,
    ) -> Result<Self, CoreError> {
        kernel.validate_for(features.ncols())?;
        if features.nrows() == 0 {
            return Err(CoreError::NoSamples);
        }
        let diagonal = diagonal(kernel, features)?;
        let recipe = Recipe::new(kernel).map_err(failed)?;
        let scaled = recipe.scaled(features).map_err(failed)?;
        let rounded = Rounded::new(&recipe, scaled.view(), accuracy);
        let working = working && rounded.working && in_range(&recipe, scaled.view());
        let prepared = Prepared { working, centred: rounded.centred };
        let rounding = rounded.envelope();
        drop((scaled, rounded));
        let products = match panel_rows {
            None => Products::prepared(device, features, kernel, prepared),
            Some(_) if !prepared.centred => Err(by_differences()),
            Some(rows) => Products::streamed(device, features, kernel, working, rows),
        };
        let products = products.map_err(failed)?;
        let samples = Samples { products: Arc::new(products), diagonal, rounding };
        Ok(Self::of(Arc::new(samples), working))
    }

    pub(crate) fn products(&self) -> &Products {
        &self.samples.products
    }

    /// Whether products while iterating are in 22 bits.
    pub(crate) fn is_working(&self) -> bool {
        self.exact.is_some()
    }

    fn of(samples: Arc<Samples>, working: bool) -> Self {
        let exact = || Box::new(Self { samples: Arc::clone(&samples), exact: None });
        Self { exact: working.then(exact), samples }
    }
}

/// Only centred features pass in panels.
fn by_differences() -> Error {
    let kernel = "a kernel this narrow, of samples that do not fit there at once,";
    Error::Kernel { kernel: kernel.to_owned() }
}

/// κ(z, z) of every row. Fails where that overflows.
fn diagonal(kernel: &Kernel, features: ArrayView2<'_, f64>) -> Result<Vec<f64>, CoreError> {
    let mut buffer = vec![0.0; features.ncols()];
    let rows = features.rows().into_iter().enumerate();
    rows.map(|(i, row)| {
        buffer.iter_mut().zip(row).for_each(|(to, z)| *to = *z);
        let value = kernel.evaluate(&buffer, &buffer);
        if value.is_finite() {
            return Ok(value);
        }
        let what =
            format!("the kernel {kernel} overflows: of sample {i} with itself it is {value}");
        Err(CoreError::Numerical { what })
    })
    .collect()
}

/// Whether f16 holds the features of every term.
fn in_range(recipe: &Recipe, scaled: ArrayView2<'_, f64>) -> bool {
    let means = scaled.mean_axis(Axis(0)).unwrap_or_default().to_vec();
    let mut euclidean = recipe.terms.iter().filter(|term| term.kind != Kind::Laplace);
    euclidean.all(|term| check_range(scaled, &means, feature_scale(term)).is_ok())
}

impl KernelOperator for CudaOperator {
    fn n_samples(&self) -> usize {
        self.samples.diagonal.len()
    }

    fn diagonal(&self) -> Result<Vec<f64>, CoreError> {
        Ok(self.samples.diagonal.clone())
    }

    fn rounding(&self) -> Result<Vec<f64>, CoreError> {
        Ok(self.samples.rounding.clone())
    }

    fn apply(&self, v: ArrayView2<'_, f64>, out: ArrayViewMut2<'_, f64>) -> Result<(), CoreError> {
        if v.nrows() == 0 {
            return Ok(());
        }
        let precision = self.exact.as_ref().map(|_| Precision::Fine);
        self.samples.products.apply_rows(v, precision, out).map_err(failed)
    }

    fn exact(&self) -> &dyn KernelOperator {
        self.exact.as_deref().unwrap_or(self)
    }

    fn is_exact(&self) -> bool {
        self.exact.is_none()
    }

    fn rows_into(
        &self,
        samples: &[usize],
        columns: Range<usize>,
        out: &mut [f64],
    ) -> Result<(), CoreError> {
        if columns.is_empty() {
            return Ok(());
        }
        let found = self.samples.products.rows::<f64>(samples).map_err(failed)?;
        for (row, out) in found.rows().into_iter().zip(out.chunks_mut(columns.len())) {
            let row = row.to_slice().expect("a row is contiguous");
            out.copy_from_slice(&row[columns.clone()]);
        }
        Ok(())
    }

    fn block_into(&self, samples: &[usize], out: &mut [f64]) -> Result<(), CoreError> {
        let found = self.samples.products.block::<f64>(samples).map_err(failed)?;
        out.copy_from_slice(found.as_slice().expect("in standard layout"));
        Ok(())
    }

    fn add_columns(
        &self,
        samples: &[usize],
        v: ArrayView2<'_, f64>,
        mut out: ArrayViewMut2<'_, f64>,
    ) -> Result<(), CoreError> {
        if samples.is_empty() || v.nrows() == 0 {
            return Ok(());
        }
        out += &self.samples.products.apply_some(samples, v).map_err(failed)?;
        Ok(())
    }

    fn restrict(&self, samples: &[usize]) -> Result<Box<dyn KernelOperator>, CoreError> {
        if samples.is_empty() {
            return Err(CoreError::NoSamples);
        }
        let products = self.samples.products.restrict(samples).map_err(failed)?;
        let select = |of: &[f64]| samples.iter().map(|&i| of[i]).collect();
        let (diagonal, rounding) = (select(&self.samples.diagonal), select(&self.samples.rounding));
        let part = Samples { products: Arc::new(products), diagonal, rounding };
        Ok(Box::new(Self::of(Arc::new(part), self.exact.is_some())))
    }

    fn remote_factor(
        &self,
        max_rank: usize,
        decision_dim: usize,
        roots: Option<&[f64]>,
    ) -> Result<Option<Box<dyn RemoteFactor>>, CoreError> {
        let factor = Factor::new(&self.samples.products, max_rank, decision_dim, roots);
        Ok(Some(Box::new(factor.map_err(failed)?)))
    }
}
