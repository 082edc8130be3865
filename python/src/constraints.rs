//! Limits on decisions: a dictionary of arrays to [`Constraints`] and back.

use crate::array::tensor;
use crate::error::exception;
use argwhy::core::Constraints;
use argwhy::core::dataset::{ConstraintArrays, Relation};
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
    Constraints::from_arrays(ConstraintArrays {
        matrix: part("M")?,
        bound: part("W")?,
        equal_matrix: part("M_eq")?,
        equal_bound: part("W_eq")?,
        lower: part("lower")?,
        upper: part("upper")?,
    })
    .map_err(exception)
}

/// The arrays of constraints; parts that are for all samples have a first axis of length one.
pub fn arrays<'py>(py: Python<'py>, given: &Constraints) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    let pairs = Relation::ALL.into_iter().zip([given.inequalities(), given.equalities()]);
    for (relation, pair) in pairs {
        if let Some((matrix, bound)) = pair {
            let (name, bound_name) = (relation.matrix(), relation.bound());
            out.set_item(name, PyArray3::from_owned_array(py, matrix.to_owned()))?;
            out.set_item(bound_name, PyArray2::from_owned_array(py, bound.to_owned()))?;
        }
    }
    for (name, side) in [("lower", given.lower()), ("upper", given.upper())] {
        if let Some(side) = side {
            out.set_item(name, PyArray2::from_owned_array(py, side.to_owned()))?;
        }
    }
    Ok(out)
}
