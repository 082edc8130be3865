//! The experts of the command's demos, whose true objective is known.

use crate::constraints::arrays;
use crate::error::{data_error, detached, exception, expert_error};
use argwhy_experts::charging::{self as depot, Depot};
use argwhy_experts::{Expert, ExpertSettings, Quadrotor};
use numpy::{PyArray1, PyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// More would only fill the memory.
const MAX_ROWS: usize = 10_000_000;

fn check_rows(n: usize) -> PyResult<()> {
    if (1..=MAX_ROWS).contains(&n) {
        return Ok(());
    }
    Err(data_error(format!("n is {n}; allowed: 1 to {MAX_ROWS} rows")))
}

/// `n` decisions of the pilot of a planar quadrotor.
#[pyfunction]
pub fn quadrotor(py: Python<'_>, n: usize, seed: u64) -> PyResult<Bound<'_, PyDict>> {
    check_rows(n)?;
    let demos = detached(py, || {
        let pilot = Expert::new(Quadrotor::default(), ExpertSettings::default());
        pilot.and_then(|pilot| pilot.demonstrations(n, seed)).map_err(expert_error)
    })?;
    let out = PyDict::new(py);
    out.set_item("signals", PyArray2::from_owned_array(py, demos.signals))?;
    out.set_item("decisions", PyArray2::from_owned_array(py, demos.decisions))?;
    out.set_item("lower", PyArray1::from_slice(py, &demos.lower))?;
    out.set_item("upper", PyArray1::from_slice(py, &demos.upper))?;
    Ok(out)
}

/// `n` nights of a depot's charging plans, each with its own limits.
#[pyfunction]
pub fn charging(py: Python<'_>, n: usize, seed: u64) -> PyResult<Bound<'_, PyDict>> {
    check_rows(n)?;
    let (signals, decisions, limits) = detached(py, || {
        let nights = depot::nights(n, seed);
        let decisions = Depot::default().decisions(&nights, seed).map_err(exception)?;
        let limits = depot::constraints(&nights).map_err(exception)?;
        Ok((depot::signals(&nights), decisions, limits))
    })?;
    let out = PyDict::new(py);
    out.set_item("signals", PyArray2::from_owned_array(py, signals))?;
    out.set_item("decisions", PyArray2::from_owned_array(py, decisions))?;
    out.set_item("constraints", arrays(py, &limits)?)?;
    out.set_item("signal_names", depot::SIGNAL_NAMES.to_vec())?;
    Ok(out)
}
