//! Limits on decisions: a dictionary of arrays to [`Constraints`] and back.

use crate::array::tensor;
use crate::error::{data_error, told};
use argwhy::core::Constraints;
use numpy::{PyArray2, PyArray3};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Constraints of the arrays `M`, `W`, `M_eq`, `W_eq`, `lower` and `upper`, whichever are there.
pub fn constraints(given: &Bound<'_, PyDict>) -> PyResult<Constraints> {
    let part = |name: &str| {
        given
            .get_item(name)?
            .filter(|part| !part.is_none())
            .map(|part| tensor(name, &part))
            .transpose()
    };
    let pair = |names: [&'static str; 2], rule: &str| match (part(names[0])?, part(names[1])?) {
        (Some(matrix), Some(bound)) => Ok(Some((matrix, bound))),
        (None, None) => Ok(None),
        (matrix, _) => {
            let (has, lacks) = if matrix.is_some() { (0, 1) } else { (1, 0) };
            Err(data_error(format!(
                "constraints: `{}` is given but no `{}`; {rule} needs both",
                names[has], names[lacks]
            )))
        }
    };
    let mut all = Constraints::new();
    if let Some((matrix, bound)) = pair(["M", "W"], "M·u ≤ W")? {
        all = all.with_inequalities(matrix, bound).map_err(told)?;
    }
    if let Some((matrix, bound)) = pair(["M_eq", "W_eq"], "M_eq·u = W_eq")? {
        all = all.with_equalities(matrix, bound).map_err(told)?;
    }
    if let Some(lower) = part("lower")? {
        all = all.with_lower(lower).map_err(told)?;
    }
    if let Some(upper) = part("upper")? {
        all = all.with_upper(upper).map_err(told)?;
    }
    Ok(all)
}

/// The arrays of constraints; parts that are for all samples have a first axis of length one.
pub fn arrays<'py>(py: Python<'py>, given: &Constraints) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    let pairs = [(["M", "W"], given.inequalities()), (["M_eq", "W_eq"], given.equalities())];
    for (names, pair) in pairs {
        if let Some((matrix, bound)) = pair {
            out.set_item(names[0], PyArray3::from_owned_array(py, matrix.to_owned()))?;
            out.set_item(names[1], PyArray2::from_owned_array(py, bound.to_owned()))?;
        }
    }
    for (name, side) in [("lower", given.lower()), ("upper", given.upper())] {
        if let Some(side) = side {
            out.set_item(name, PyArray2::from_owned_array(py, side.to_owned()))?;
        }
    }
    Ok(out)
}
