//! Data files to arrays, by the command's readers.

use crate::constraints::arrays;
use crate::error::{detached, exception};
use argwhy::io::{Budget, DataRequest, Encoding, OneHot, RowRanges, Thinning};
use argwhy::settings::MemorySize;
use numpy::{PyArray1, PyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::str::FromStr;

/// Signals, decisions and whatever else is asked for, of all rows or those listed.
///
/// `memory` is what reading may take, as `2GiB`; without it, all there is. `encoding` is what an
/// earlier call answered, as JSON.
#[pyfunction]
#[pyo3(signature = (
    path, *, signals, decisions, rows, constraints, matrix, matrix_eq, weights, memory=None,
    episodes=None, every=None, sample=None, seed=0, missing=None, one_hot=None, cyclic=None,
    encoding=None, sheet=None, decimal=None, want_decisions=true
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
    episodes: Option<String>,
    every: Option<usize>,
    sample: Option<usize>,
    seed: u64,
    missing: Option<String>,
    one_hot: Option<Vec<String>>,
    cyclic: Option<Vec<String>>,
    encoding: Option<String>,
    sheet: Option<String>,
    decimal: Option<String>,
    want_decisions: bool,
) -> PyResult<Bound<'_, PyDict>> {
    let encoding: Encoding = match encoding {
        Some(text) => serde_json::from_str(&text)
            .map_err(|why| PyValueError::new_err(format!("encoding: {why}")))?,
        None => Encoding {
            one_hot: one_hot.into_iter().flatten().map(OneHot::new).collect(),
            cyclic: cyclic
                .into_iter()
                .flatten()
                .map(|text| text.parse().map_err(PyValueError::new_err))
                .collect::<PyResult<_>>()?,
        },
    };
    let request = DataRequest {
        signals,
        decisions,
        want_decisions,
        constraints,
        matrix,
        matrix_eq,
        weights,
        rows: ranges(rows)?,
        thinning: Thinning { episodes: ranges(episodes)?, every, sample, seed },
        encoding,
        missing: parsed("missing", missing)?.unwrap_or_default(),
        sheet,
        decimal: parsed("decimal", decimal)?.unwrap_or_default(),
        budget: parsed("memory", memory)?
            .map_or_else(Budget::default, |memory: MemorySize| Budget::within(memory.0, 0)),
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
    if let Some(limits) = loaded.limits {
        let (lower, upper) = (limits.lower, limits.upper);
        let limits = (PyArray1::from_vec(py, lower), PyArray1::from_vec(py, upper));
        out.set_item("bounds", limits)?;
    }
    if !loaded.encoding.is_empty() {
        let text = serde_json::to_string(&loaded.encoding)
            .map_err(|why| PyValueError::new_err(why.to_string()))?;
        out.set_item("encoding", text)?;
    }
    out.set_item("signal_names", loaded.names.signals)?;
    out.set_item("decision_names", loaded.names.decisions)?;
    out.set_item("unread", loaded.unread)?;
    Ok(out)
}

fn ranges(text: Option<String>) -> PyResult<Option<RowRanges>> {
    text.map(|text| text.parse::<RowRanges>().map_err(exception)).transpose()
}

fn parsed<T: FromStr<Err = String>>(name: &str, text: Option<String>) -> PyResult<Option<T>> {
    let wrong = |text: &str, why: String| PyValueError::new_err(format!("{name} is {text}; {why}"));
    text.map(|text| text.parse().map_err(|why| wrong(&text, why))).transpose()
}

/// What the data at `path` is like, as JSON.
#[pyfunction]
#[pyo3(signature = (path, *, signals=None, decisions=None, sheet=None, decimal=None))]
pub fn describe(
    py: Python<'_>,
    path: PathBuf,
    signals: Option<String>,
    decisions: Option<String>,
    sheet: Option<String>,
    decimal: Option<String>,
) -> PyResult<String> {
    let decimal = parsed("decimal", decimal)?.unwrap_or_default();
    let request = DataRequest { signals, decisions, sheet, decimal, ..DataRequest::default() };
    let found = detached(py, || argwhy::describe::describe(&path, &request).map_err(exception))?;
    serde_json::to_string(&found).map_err(|why| PyValueError::new_err(why.to_string()))
}
