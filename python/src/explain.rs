//! Why, as the command tells it: numbers with names, as dictionaries.

use crate::array::matrix;
use crate::constraints::constraints as limits_of;
use crate::error::{detached, exception};
use crate::model::Model;
use crate::settings::json;
use argwhy::Predictor;
use argwhy::explain::{Explainer, Explanation, OneDecision, OneSettings, Situations};
use argwhy::familiarity::Familiarity;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// What a model weighs, over `signals`, or over the samples it keeps.
#[pyfunction]
#[pyo3(signature = (model, signals=None, limits=None, numeraire=None))]
pub fn explain<'py>(
    py: Python<'py>,
    model: &Model,
    signals: Option<&Bound<'py, PyAny>>,
    limits: Option<&Bound<'py, PyDict>>,
    numeraire: Option<(String, String)>,
) -> PyResult<Bound<'py, PyAny>> {
    let situations = situations(model, signals, limits)?;
    let explained: Explanation = detached(py, || {
        let predictor = model.predictor()?;
        model.on_threads(|| explainer(model, predictor, situations, numeraire.as_ref())?.explain())
    })?;
    json(py, &explained)
}

/// Why one decision is what it is.
#[pyfunction]
#[pyo3(signature = (
    model, signal, signals=None, limits=None, by=None, signal_limits=None, numeraire=None
))]
#[allow(clippy::too_many_arguments, reason = "the arguments of the estimator's, one by one")]
pub fn explain_one<'py>(
    py: Python<'py>,
    model: &Model,
    signal: &Bound<'py, PyAny>,
    signals: Option<&Bound<'py, PyAny>>,
    limits: Option<&Bound<'py, PyDict>>,
    by: Option<f64>,
    signal_limits: Option<&Bound<'py, PyDict>>,
    numeraire: Option<(String, String)>,
) -> PyResult<Bound<'py, PyAny>> {
    let situations = situations(model, signals, limits)?;
    let signal = matrix("signal", signal)?.values;
    let given = signal_limits.map(limits_of).transpose()?;
    let explained: OneDecision = detached(py, || {
        let predictor = model.predictor()?;
        let unknown = predictor.is_constrained() && given.is_none();
        let set = if unknown {
            None
        } else {
            Some(predictor.sets(given.as_ref(), 1).map_err(exception)?)
        };
        let signal = signal.row(0).to_vec();
        model.on_threads(|| {
            let explainer = explainer(model, predictor, situations, numeraire.as_ref())?;
            explainer.explain_one(&signal, set.as_ref(), OneSettings { by })
        })
    })?;
    json(py, &explained)
}

/// Over these situations; with a decision and the signal that is its price, in money too.
fn explainer<'a>(
    model: &'a Model,
    predictor: &'a Predictor,
    situations: Situations,
    numeraire: Option<&(String, String)>,
) -> Result<Explainer<'a>, argwhy::Error> {
    let explainer = Explainer::new(model.core(), predictor, situations);
    match numeraire {
        Some((decision, signal)) => explainer.in_money(decision, signal),
        None => Ok(explainer),
    }
}

fn situations(
    model: &Model,
    signals: Option<&Bound<'_, PyAny>>,
    limits: Option<&Bound<'_, PyDict>>,
) -> PyResult<Situations> {
    let predictor = model.predictor()?;
    let Some(signals) = signals else {
        return Situations::of_support(model.core(), predictor).map_err(exception);
    };
    let signals = matrix("signals", signals)?.values;
    let given = limits.map(limits_of).transpose()?;
    Situations::of_data(predictor, signals.view(), given.as_ref()).map_err(exception)
}

/// How familiar each row is, 0 to 100; None where the model does not remember what it saw.
#[pyfunction]
pub fn familiarity<'py>(
    py: Python<'py>,
    model: &Model,
    signals: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyArray1<f64>>>> {
    let signals = matrix("signals", signals)?.values;
    let found = detached(py, || {
        model.on_threads(|| {
            let Some(familiarity) = Familiarity::new(model.core())? else { return Ok(None) };
            Ok(Some(familiarity.percentiles(signals.view())?))
        })
    })?;
    Ok(found.map(|values| PyArray1::from_vec(py, values)))
}
