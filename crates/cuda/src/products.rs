//! The kernel matrix of some samples as something to multiply with. K itself is never stored.

use crate::device::Device;
use crate::error::Error;
use crate::exact::{Centred, Entry, Exact};
use crate::fused::{self, LARGEST_FEATURE, Packed, Precision, Scratch, feature_scale};
use crate::linear;
use crate::plan::GROUP_COLUMNS;
use crate::recipe::{Kind, Recipe};
use argwhy_core::Kernel;
use cudarc::driver::CudaSlice;
use ndarray::{Array2, ArrayView2, Axis};
use std::sync::{Mutex, PoisonError};

/// Columns of V that share one computation of the kernel values.
const PASS_COLUMNS: usize = 2 * GROUP_COLUMNS;

/// A matrix of n_samples rows on the GPU, in f64.
#[derive(Debug)]
#[allow(clippy::struct_field_names)] // as everywhere: n_samples, n_columns
pub struct Columns {
    pub(crate) data: CudaSlice<f64>,
    pub(crate) n_samples: usize,
    pub(crate) n_columns: usize,
}

impl Columns {
    pub(crate) fn zeros(
        device: &Device,
        n_samples: usize,
        n_columns: usize,
    ) -> Result<Self, Error> {
        let data = device.zeros("vectors", n_samples * n_columns)?;
        Ok(Self { data, n_samples, n_columns })
    }
}

/// K for given samples and kernel, on a GPU.
#[derive(Debug)]
pub struct Products {
    device: Device,
    recipe: Recipe,
    n_samples: usize,
    n_features: usize,
    features: CudaSlice<f64>,
    centred: Option<Centred>,
    packed: Vec<Packed>,
    scratch: Mutex<Scratch>,
}

impl Products {
    /// Copies features (n_samples × n_features, finite) to the GPU and prepares them for each term
    /// of the kernel. Memory there: 8 bytes a feature and sample, 8 more for exact products with
    /// kernels of the Euclidean distance, and 4 for each term.
    pub fn new(
        device: &Device,
        features: ArrayView2<'_, f64>,
        kernel: &Kernel,
    ) -> Result<Self, Error> {
        let recipe = Recipe::new(kernel)?;
        let features = recipe.scaled(features)?;
        let (n_samples, n_features) = features.dim();
        if n_samples == 0 || n_features == 0 {
            let expected = "at least one row and column".to_owned();
            return Err(Error::Shape { what: "features", found: features.dim(), expected });
        }
        check_finite("features", features.view())?;
        // Distances do not change, and ‖a‖² + ‖b‖² − 2aᵀb cancels least around the mean.
        let means = features.mean_axis(Axis(0)).expect("there are rows").to_vec();
        for term in recipe.terms.iter().filter(|term| term.kind != Kind::Laplace) {
            check_range(features.view(), &means, feature_scale(term))?;
        }
        let on_device = device.upload("the features", features.as_slice().expect("row by row"))?;
        let means = device.upload("the features' means", &means)?;
        let packed = recipe
            .terms
            .iter()
            .map(|term| Packed::new(device, *term, &on_device, &means, n_samples))
            .collect::<Result<_, _>>()?;
        let centred = if recipe.distances() == 1 {
            Some(Centred::new(device, &on_device, &means, n_samples)?)
        } else {
            None
        };
        let device = device.clone();
        let scratch = Mutex::default();
        Ok(Self {
            device,
            recipe,
            n_samples,
            n_features,
            features: on_device,
            centred,
            packed,
            scratch,
        })
    }

    /// K·v: n_samples × any number of columns. Kernel values are computed once for up to 8 columns.
    pub fn apply(
        &self,
        v: ArrayView2<'_, f64>,
        precision: Precision,
    ) -> Result<Array2<f64>, Error> {
        self.download(&self.apply_columns(&self.upload(v)?, precision)?)
    }

    /// K·v in f64: what certificates are evaluated with. By differences where the kernel has a term
    /// of the 1-norm, else from inner products of centred features.
    pub fn apply_exact(&self, v: ArrayView2<'_, f64>) -> Result<Array2<f64>, Error> {
        self.download(&self.apply_exact_columns(&self.upload(v)?)?)
    }

    /// As [`apply`](Self::apply), from and to the GPU.
    pub fn apply_columns(&self, v: &Columns, precision: Precision) -> Result<Columns, Error> {
        let mut out = Columns::zeros(&self.device, v.n_samples, v.n_columns)?;
        let largest = fused::largest_entries(&self.device, v)?;
        let mut scratch = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        for packed in &self.packed {
            for first in (0..v.n_columns).step_by(PASS_COLUMNS) {
                let pass = (first, (v.n_columns - first).min(PASS_COLUMNS));
                let (device, scratch) = (&self.device, &mut scratch);
                packed.add_product(device, precision, v, &largest, &mut out, pass, scratch)?;
            }
        }
        if self.recipe.has_linear() {
            let d = self.n_features;
            linear::add_product(&self.device, &self.features, d, &self.recipe, v, &mut out)?;
        }
        Ok(out)
    }

    /// As [`apply_exact`](Self::apply_exact), from and to the GPU.
    pub fn apply_exact_columns(&self, v: &Columns) -> Result<Columns, Error> {
        self.exact().product(v)
    }

    /// K[rows, :], computed in f64 by differences and rounded to `T`, f32 or f64: one row for each
    /// number, in order.
    pub fn rows<T: Entry>(&self, rows: &[usize]) -> Result<Array2<T>, Error> {
        let n_samples = self.n_samples;
        if let Some(&row) = rows.iter().find(|row| **row >= n_samples) {
            return Err(Error::Row { row, n_samples });
        }
        let shape = (rows.len(), n_samples);
        if rows.is_empty() {
            return Ok(Array2::from_shape_simple_fn(shape, T::default));
        }
        let numbers: Vec<u64> = rows.iter().map(|row| *row as u64).collect();
        let values = self.device.download(&self.exact().rows(&numbers)?)?;
        Ok(Array2::from_shape_vec(shape, values).expect("one value a row and sample"))
    }

    /// A copy of v (n_samples × at least one column, finite) on the GPU.
    pub fn upload(&self, v: ArrayView2<'_, f64>) -> Result<Columns, Error> {
        let (n_samples, n_columns) = v.dim();
        if n_samples != self.n_samples || n_columns == 0 {
            let expected = format!("({}, one or more)", self.n_samples);
            return Err(Error::Shape { what: "v", found: v.dim(), expected });
        }
        check_finite("v", v)?;
        let v = v.as_standard_layout();
        let data = self.device.upload("vectors", v.as_slice().expect("row by row"))?;
        Ok(Columns { data, n_samples, n_columns })
    }

    /// A copy on the host.
    pub fn download(&self, columns: &Columns) -> Result<Array2<f64>, Error> {
        let data = self.device.download(&columns.data)?;
        let shape = (columns.n_samples, columns.n_columns);
        Ok(Array2::from_shape_vec(shape, data).expect("as many as were computed"))
    }

    fn exact(&self) -> Exact<'_> {
        Exact {
            device: &self.device,
            features: &self.features,
            n_samples: self.n_samples,
            n_features: self.n_features,
            recipe: &self.recipe,
            centred: self.centred.as_ref(),
        }
    }
}

fn check_finite(what: &'static str, array: ArrayView2<'_, f64>) -> Result<(), Error> {
    match array.indexed_iter().find(|(_, value)| !value.is_finite()) {
        None => Ok(()),
        Some(((row, column), value)) => Err(Error::NotFinite { what, row, column, value: *value }),
    }
}

fn check_range(features: ArrayView2<'_, f64>, means: &[f64], scale: f64) -> Result<(), Error> {
    let distance = |column: usize, z: f64| ((z - means[column]) * scale).abs();
    let beyond =
        |((_, column), z): &((usize, usize), &f64)| distance(*column, **z) > LARGEST_FEATURE;
    match features.indexed_iter().find(beyond) {
        None => Ok(()),
        Some(((row, column), z)) => {
            Err(Error::Range { row, column, distance: distance(column, *z) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn features_that_f16_cannot_hold_are_named() {
        let features = array![[0.0, 1.0], [0.0, 2e5]];
        let message = check_range(features.view(), &[0.0, 1.0], 1.0).unwrap_err().to_string();
        assert!(message.starts_with("feature 1 lies 1.99999e5 length scales"), "{message}");
        assert!(check_range(features.view(), &[0.0, 1.0], 0.1).is_ok());
    }

    #[test]
    fn values_that_are_not_finite_are_named() {
        let message = check_finite("v", array![[0.0], [f64::NAN]].view()).unwrap_err().to_string();
        assert_eq!(message, "v has the value NaN at row 1, column 0; every value must be finite");
    }
}
