//! What a fit leaves behind, as arrays.

use crate::array::integer;
use argwhy::core::dataset::Names;
use argwhy::core::decision_set::Prices;
use argwhy::core::solver::Iteration;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A column of the trace: its name, and where it stands in a step.
type Column<T> = (&'static str, fn(&Iteration) -> T);

/// One array a column of the trace.
pub fn history<'py>(py: Python<'py>, steps: &[Iteration]) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    let counts: [Column<usize>; 2] =
        [("iteration", |s| s.iteration), ("kernel_products", |s| s.kernel_products)];
    let numbers: [Column<f64>; 8] = [
        ("objective", |s| s.objective),
        ("primal", |s| s.primal),
        ("dual", |s| s.dual),
        ("gap", |s| s.gap),
        ("relative_gap", |s| s.relative_gap),
        ("violation", |s| s.violation),
        ("free", |s| s.free),
        ("seconds", |s| s.seconds),
    ];
    for (name, read) in counts {
        out.set_item(name, PyArray1::from_iter(py, steps.iter().map(|s| integer(read(s)))))?;
    }
    for (name, read) in numbers {
        out.set_item(name, PyArray1::from_iter(py, steps.iter().map(read)))?;
    }
    out.set_item("exact", PyArray1::from_iter(py, steps.iter().map(|s| s.exact)))?;
    Ok(out)
}

/// Row, limit and value of every price.
pub fn prices<'py>(
    py: Python<'py>,
    prices: &Prices,
    names: &Names,
) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    let limits: Vec<String> = prices.limits.iter().map(|limit| limit.named(names)).collect();
    let rows = prices.samples.iter().map(|&row| integer(row));
    out.set_item("row", PyArray1::from_iter(py, rows))?;
    out.set_item("limit", limits)?;
    out.set_item("price", PyArray1::from_slice(py, &prices.values))?;
    Ok(out)
}
