//! Parameters of the estimator as settings of a fit, through the tables of the config file and the
//! command line.
//!
//! Python says `max_iterations`, the config file `max-iterations`; nothing else differs. `None` is
//! a setting that is not mentioned.

use argwhy::FitSettings;
use argwhy::settings::{MemorySize, Numbers, Preset, Table, TableError, Value, merge};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString, PyTuple};

/// Lists inside lists nobody means; a list that contains itself has no end.
const MAX_DEPTH: usize = 8;

/// Every parameter with its default, in the order of [`FitSettings`].
#[pyfunction]
pub fn defaults(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    parameters(py, &FitSettings::default())
}

/// What a preset says, by the names of the parameters, under those that are given.
#[pyfunction]
pub fn preset<'py>(
    py: Python<'py>,
    name: &str,
    given: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    let preset = Preset::named(name).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let (table, _) = merge(preset.table(), &table(given)?);
    let all = parameters(py, &settings_of(&table)?)?;
    let said = PyDict::new(py);
    for name in table.keys() {
        let name = python_name(name);
        said.set_item(&name, all.get_item(&name)?)?;
    }
    Ok(said)
}

/// Every parameter as a fit would take it: what is given, defaults for the rest.
#[pyfunction]
pub fn resolved<'py>(
    py: Python<'py>,
    parameters: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    self::parameters(py, &settings(parameters)?)
}

/// Settings as parameters.
pub fn parameters<'py>(py: Python<'py>, settings: &FitSettings) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    // toml leaves out what is none; JSON says null.
    let stored =
        serde_json::to_value(settings).map_err(|e| PyRuntimeError::new_err(e.to_string()))?;
    let serde_json::Value::Object(stored) = stored else { return Ok(out) };
    let lists = [
        ("bounds", &settings.bounds),
        ("lower", &settings.lower),
        ("upper", &settings.upper),
        ("length-scales", &settings.length_scales),
    ];
    for (name, value) in &stored {
        let list =
            lists.iter().find(|(list, _)| list == name).and_then(|(_, value)| value.as_ref());
        let value = match (list, name.as_str()) {
            (Some(Numbers(numbers)), _) => PyTuple::new(py, numbers)?.into_any(),
            // Written out only where that loses nothing.
            (None, "memory") if in_words(settings.memory).is_some() => {
                in_words(settings.memory).into_bound_py_any(py)?
            }
            (None, "device-memory") if settings.device_memory.and_then(in_words).is_some() => {
                settings.device_memory.and_then(in_words).into_bound_py_any(py)?
            }
            _ => python_value(py, value)?,
        };
        out.set_item(name.replace('-', "_"), value)?;
    }
    Ok(out)
}

fn in_words(memory: MemorySize) -> Option<String> {
    let text = memory.to_string();
    (text.parse() == Ok(memory)).then_some(text)
}

fn python_value<'py>(py: Python<'py>, value: &serde_json::Value) -> PyResult<Bound<'py, PyAny>> {
    use serde_json::Value as Json;
    match value {
        Json::Null => Ok(py.None().into_bound(py)),
        Json::Bool(value) => value.into_bound_py_any(py),
        Json::Number(value) => match (value.as_u64(), value.as_i64(), value.as_f64()) {
            (Some(value), _, _) => value.into_bound_py_any(py),
            (_, Some(value), _) => value.into_bound_py_any(py),
            (_, _, value) => value.into_bound_py_any(py),
        },
        Json::String(value) => value.into_bound_py_any(py),
        Json::Array(values) => {
            let values: Vec<_> =
                values.iter().map(|value| python_value(py, value)).collect::<PyResult<_>>()?;
            values.into_bound_py_any(py)
        }
        Json::Object(entries) => {
            let out = PyDict::new(py);
            for (name, value) in entries {
                out.set_item(name, python_value(py, value)?)?;
            }
            Ok(out.into_any())
        }
    }
}

/// JSON for Python: what a model stores beside its arrays.
pub fn json<'py>(py: Python<'py>, value: &impl serde::Serialize) -> PyResult<Bound<'py, PyAny>> {
    let value = serde_json::to_value(value).map_err(|e| PyRuntimeError::new_err(e.to_string()))?;
    python_value(py, &value)
}

/// The settings that parameters describe.
pub fn settings(given: &Bound<'_, PyDict>) -> PyResult<FitSettings> {
    settings_of(&table(given)?)
}

/// The same of a table by the names of a config file.
pub fn settings_of(table: &Table) -> PyResult<FitSettings> {
    FitSettings::from_table(table).map_err(|error| {
        let (name, known) = (python_name(&error.name), error.known.iter());
        PyValueError::new_err(if let Some(why) = &error.why {
            format!("{name}: {why}")
        } else {
            let known: Vec<String> = known.map(|name| python_name(name)).collect();
            TableError { name, known, ..error }.to_string()
        })
    })
}

/// What is mentioned, by the names of a config file.
pub fn table(given: &Bound<'_, PyDict>) -> PyResult<Table> {
    let mut table = Table::new();
    for (name, value) in given {
        let name: String = name.extract()?;
        if !value.is_none() {
            let value = toml_value(&name, &value, 0)?;
            table.insert(name.replace('_', "-"), value);
        }
    }
    Ok(table)
}

fn python_name(name: &str) -> String {
    name.replace('-', "_")
}

fn toml_value(name: &str, given: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    if depth > MAX_DEPTH {
        return Err(PyValueError::new_err(format!(
            "{name} is a list of lists of lists without end"
        )));
    }
    // NumPy's scalars and arrays know their Python value.
    if let Ok(plain) = given.getattr("tolist") {
        return toml_value(name, &plain.call0()?, depth + 1);
    }
    if let Ok(value) = given.cast::<PyBool>() {
        return Ok(Value::Boolean(value.is_true()));
    }
    if given.cast::<PyInt>().is_ok() {
        return match given.extract::<i64>() {
            Ok(value) => Ok(Value::Integer(value)),
            Err(_) => Err(PyValueError::new_err(format!(
                "{name} is {}; whole numbers go up to {}",
                given.str()?,
                i64::MAX
            ))),
        };
    }
    if let Ok(value) = given.cast::<PyFloat>() {
        return Ok(Value::Float(value.value()));
    }
    if let Ok(value) = given.cast::<PyString>() {
        return Ok(Value::String(value.to_str()?.to_owned()));
    }
    if let Ok(entries) = given.cast::<PyDict>() {
        let mut table = Table::new();
        for (key, value) in entries {
            table.insert(key.extract()?, toml_value(name, &value, depth + 1)?);
        }
        return Ok(Value::Table(table));
    }
    let is_list = given.cast::<PyTuple>().is_ok() || given.cast::<pyo3::types::PyList>().is_ok();
    if is_list {
        let values = given.try_iter()?.map(|value| toml_value(name, &value?, depth + 1));
        return Ok(Value::Array(values.collect::<PyResult<_>>()?));
    }
    let kind = given.get_type().fully_qualified_name()?;
    Err(PyTypeError::new_err(format!(
        "{name} is a {kind}; expected a number, text, a list of numbers or None"
    )))
}
