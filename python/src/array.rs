//! NumPy arrays to arrays of our own and back.
//!
//! Everything is copied on the way in: while a solver runs, the interpreter is free and may change
//! what it gave us. Allocations may fail, as they do in NumPy: a broadcast array can be larger than
//! any memory, and Rust would abort.

use crate::error::data_error;
use ndarray::{Array, Array1, Array2, ArrayD, ArrayView, Dimension};
use numpy::{
    Element, PyArray, PyArray1, PyArray2, PyArrayDyn, PyArrayMethods, PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyMemoryError, PyTypeError};
use pyo3::prelude::*;

/// A matrix as it came: its numbers, and whether they were single precision.
pub struct Matrix {
    /// In double precision, which holds every single exactly.
    pub values: Array2<f64>,
    /// Whether the answer should be single precision.
    pub single: bool,
}

/// A two-dimensional f64 or f32 array; none where NumPy has to convert it first.
pub fn plain_matrix(given: &Bound<'_, PyAny>) -> PyResult<Option<Matrix>> {
    if let Ok(array) = given.cast::<PyArray2<f64>>() {
        return Ok(copied(array, |v| v)?.map(|values| Matrix { values, single: false }));
    }
    if let Ok(array) = given.cast::<PyArray2<f32>>() {
        return Ok(copied(array, f64::from)?.map(|values| Matrix { values, single: true }));
    }
    Ok(None)
}

/// As [`plain_matrix`], for arrays that `argwhy._arrays` has converted.
pub fn matrix(what: &str, given: &Bound<'_, PyAny>) -> PyResult<Matrix> {
    plain_matrix(given)?.ok_or_else(|| unexpected(what, given))
}

/// One number a row.
pub fn vector(what: &str, given: &Bound<'_, PyAny>) -> PyResult<Array1<f64>> {
    let Ok(array) = given.cast::<PyArray1<f64>>() else { return Err(unexpected(what, given)) };
    copied(array, |v| v)?.ok_or_else(|| unexpected(what, given))
}

/// An array of doubles with any number of axes.
pub fn tensor(what: &str, given: &Bound<'_, PyAny>) -> PyResult<ArrayD<f64>> {
    let Ok(array) = given.cast::<PyArrayDyn<f64>>() else { return Err(unexpected(what, given)) };
    copied(array, |v| v)?.ok_or_else(|| unexpected(what, given))
}

fn unexpected(what: &str, given: &Bound<'_, PyAny>) -> PyErr {
    match given.get_type().fully_qualified_name() {
        Ok(name) => {
            PyTypeError::new_err(format!("{what} is a {name}; expected an array of floats"))
        }
        Err(error) => error,
    }
}

/// The array's numbers; none where they do not lie in memory as Rust needs them.
fn copied<T: Element + Copy, D: Dimension>(
    array: &Bound<'_, PyArray<T, D>>,
    convert: impl Fn(T) -> f64,
) -> PyResult<Option<Array<f64, D>>> {
    let whole = |stride: &isize| stride.unsigned_abs().is_multiple_of(size_of::<T>());
    if !array.data().is_aligned() || !array.strides().iter().all(whole) {
        return Ok(None);
    }
    let borrowed = array
        .try_readonly()
        .map_err(|error| data_error(format!("an array cannot be read: {error}")))?;
    collect(borrowed.as_array(), convert).map(Some)
}

fn collect<T: Copy, D: Dimension>(
    view: ArrayView<'_, T, D>,
    convert: impl Fn(T) -> f64,
) -> PyResult<Array<f64, D>> {
    let mut values = Vec::new();
    values.try_reserve_exact(view.len()).map_err(|_| {
        PyMemoryError::new_err(format!("no memory for an array of shape {:?}", view.shape()))
    })?;
    values.extend(view.iter().map(|v| convert(*v)));
    Ok(Array::from_shape_vec(view.raw_dim(), values).expect("as many values as the shape says"))
}

/// Decisions for Python: one column flat where asked for, in the precision asked for.
pub fn answer<'py>(
    py: Python<'py>,
    values: Array2<f64>,
    flat: bool,
    single: Option<&dyn Fn(usize, f64) -> f32>,
) -> Bound<'py, PyAny> {
    match single {
        None => shaped(py, values, flat),
        Some(round) => {
            let rounded = Array2::from_shape_fn(values.dim(), |(i, j)| round(j, values[[i, j]]));
            shaped(py, rounded, flat)
        }
    }
}

fn shaped<T: Element>(py: Python<'_>, values: Array2<T>, flat: bool) -> Bound<'_, PyAny> {
    if flat && values.ncols() == 1 {
        let (values, _) = values.into_raw_vec_and_offset();
        PyArray1::from_vec(py, values).into_any()
    } else {
        PyArray2::from_owned_array(py, values).into_any()
    }
}

/// A count or row number as NumPy's usual integer.
pub fn integer(n: impl TryInto<i64>) -> i64 {
    n.try_into().unwrap_or(i64::MAX)
}
