//! Errors and panics of Rust as exceptions of Python, with their words.
//!
//! The classes are defined in `argwhy/errors.py`, where people look for them.

use argwhy::core::Error as CoreError;
use argwhy::io::{DataError, ModelFileError};
use argwhy_experts::ExpertError;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// An exception of the class `name` in `argwhy.errors`.
fn raise(name: &str, message: String) -> PyErr {
    Python::attach(|py| {
        let class = py.import("argwhy.errors").and_then(|module| module.getattr(name));
        match class.and_then(|class| class.call1((message,))) {
            Ok(exception) => PyErr::from_value(exception),
            Err(error) => error,
        }
    })
}

/// What is wrong with arrays.
pub fn data_error(message: impl Into<String>) -> PyErr {
    raise("DataError", message.into())
}

/// An error of any stage.
pub fn exception(error: impl Into<argwhy::Error>) -> PyErr {
    let error = error.into();
    let message = error.to_string();
    let is_setting = |error: &CoreError| {
        matches!(
            error,
            CoreError::Setting { .. }
                | CoreError::LengthScales { .. }
                | CoreError::Memory { .. }
                | CoreError::ThetaPrecision { .. }
                | CoreError::EmptyBox { .. }
        )
    };
    if error.core().is_some_and(is_setting) {
        return PyValueError::new_err(message);
    }
    match error {
        argwhy::Error::Threads { .. }
        | argwhy::Error::Machine { .. }
        | argwhy::Error::Settings { .. } => PyValueError::new_err(message),
        argwhy::Error::Core(CoreError::Backend { .. }) => raise("BackendError", message),
        argwhy::Error::Data(DataError::NotFound { .. }) => raise("DataNotFoundError", message),
        argwhy::Error::Model(ModelFileError::NotFound { .. }) => {
            raise("ModelNotFoundError", message)
        }
        argwhy::Error::Model(_) => raise("ModelFileError", message),
        _ => data_error(message),
    }
}

/// An error of a bundled expert.
pub fn expert_error(error: ExpertError) -> PyErr {
    PyRuntimeError::new_err(format!("the bundled expert failed: {error}"))
}

/// A panic is a mistake of ours. It becomes an `InternalError`, so that a session with other work
/// in it survives.
pub fn panicked(payload: Box<dyn Any + Send>) -> PyErr {
    let what = payload
        .downcast_ref::<&str>()
        .map(ToString::to_string)
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned());
    raise("InternalError", format!("argwhy has a bug, please report it: {what}"))
}

/// Runs `work`; a panic becomes an exception.
pub fn guarded<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| Err(panicked(payload)))
}

/// Runs `work` with the interpreter free for others; a panic becomes an exception.
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> PyResult<T> + Send) -> PyResult<T> {
    py.detach(|| guarded(work))
}

/// Panics, for the test that an interpreter survives it.
#[pyfunction]
pub fn panic(py: Python<'_>, message: String) -> PyResult<()> {
    detached(py, || std::panic::panic_any(message))
}
