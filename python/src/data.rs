//! Data files to arrays, by the command's readers.

use crate::constraints::arrays;
use crate::error::{apart, told};
use argwhy::io::{DataRequest, RowRanges};
use ndarray::{Array2, Axis};
use numpy::{PyArray1, PyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;

/// Signals, decisions and whatever else is asked for, of all rows or those listed.
#[pyfunction]
#[pyo3(signature = (path, *, signals, decisions, rows, constraints, matrix, matrix_eq, weights))]
#[allow(clippy::too_many_arguments, reason = "the command's data options, one by one")]
pub fn load<'py>(
    py: Python<'py>,
    path: PathBuf,
    signals: Option<String>,
    decisions: Option<String>,
    rows: Option<String>,
    constraints: bool,
    matrix: Option<PathBuf>,
    matrix_eq: Option<PathBuf>,
    weights: Option<String>,
) -> PyResult<Bound<'py, PyDict>> {
    let request = DataRequest {
        signals,
        decisions,
        constraints,
        matrix,
        matrix_eq,
        weights,
        ..DataRequest::default()
    };
    let rows = rows.map(|rows| rows.parse::<RowRanges>().map_err(told)).transpose()?;
    let (loaded, places) = apart(py, || {
        let loaded = argwhy::load(&path, &request).map_err(told)?;
        let places = match &rows {
            None => None,
            Some(rows) => {
                let ranges = rows.resolve(loaded.signals.nrows()).map_err(told)?;
                Some(ranges.into_iter().flatten().collect::<Vec<usize>>())
            }
        };
        Ok((loaded, places))
    })?;
    let pick = |values: Array2<f64>| match &places {
        None => values,
        Some(places) => values.select(Axis(0), places),
    };
    let out = PyDict::new(py);
    out.set_item("signals", PyArray2::from_owned_array(py, pick(loaded.signals)))?;
    if let Some(decisions) = loaded.decisions {
        out.set_item("decisions", PyArray2::from_owned_array(py, pick(decisions)))?;
    }
    if let Some(given) = loaded.constraints {
        let given = places.as_ref().map_or_else(|| given.clone(), |places| given.select(places));
        out.set_item("constraints", arrays(py, &given)?)?;
    }
    if let Some(weights) = loaded.weights {
        let weights = match &places {
            None => weights,
            Some(places) => places.iter().map(|&i| weights[i]).collect(),
        };
        out.set_item("weights", PyArray1::from_vec(py, weights))?;
    }
    out.set_item("unread", loaded.unread)?;
    Ok(out)
}
