//! Data files to arrays, by the command's readers.

use crate::constraints::arrays;
use crate::error::{detached, exception};
use argwhy::io::{Budget, DataRequest, RowRanges};
use argwhy::settings::MemorySize;
use numpy::{PyArray1, PyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;

/// Signals, decisions and whatever else is asked for, of all rows or those listed.
///
/// `memory` is what reading may take, as `2GiB`; without it, all there is.
#[pyfunction]
#[pyo3(signature = (
    path, *, signals, decisions, rows, constraints, matrix, matrix_eq, weights, memory=None
))]
#[allow(clippy::too_many_arguments, reason = "the command's data options, one by one")]
pub fn load(
    py: Python<'_>,
    path: PathBuf,
    signals: Option<String>,
    decisions: Option<String>,
    rows: Option<String>,
    constraints: bool,
    matrix: Option<PathBuf>,
    matrix_eq: Option<PathBuf>,
    weights: Option<String>,
    memory: Option<String>,
) -> PyResult<Bound<'_, PyDict>> {
    let memory = memory
        .map(|memory| {
            memory
                .parse::<MemorySize>()
                .map_err(|why| PyValueError::new_err(format!("memory is {memory}; {why}")))
        })
        .transpose()?;
    let request = DataRequest {
        signals,
        decisions,
        constraints,
        matrix,
        matrix_eq,
        weights,
        rows: rows.map(|rows| rows.parse::<RowRanges>().map_err(exception)).transpose()?,
        budget: memory.map_or_else(Budget::default, |memory| Budget::within(memory.0, 0)),
        ..DataRequest::default()
    };
    let loaded = detached(py, || argwhy::load(&path, &request).map_err(exception))?;
    let out = PyDict::new(py);
    out.set_item("signals", PyArray2::from_owned_array(py, loaded.signals))?;
    if let Some(decisions) = loaded.decisions {
        out.set_item("decisions", PyArray2::from_owned_array(py, decisions))?;
    }
    if let Some(given) = loaded.constraints {
        out.set_item("constraints", arrays(py, &given)?)?;
    }
    if let Some(weights) = loaded.weights {
        out.set_item("weights", PyArray1::from_vec(py, weights))?;
    }
    out.set_item("unread", loaded.unread)?;
    Ok(out)
}
