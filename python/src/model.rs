//! A fitted model: decisions, what is inside, and its bytes.

use crate::array::{Matrix, answer, integer, matrix, plain_matrix, vector};
use crate::constraints::constraints as limits_of;
use crate::error::{data_error, detached, exception};
use crate::pool::pool;
use crate::record;
use crate::settings::{json, parameters};
use argwhy::core::Constraints;
use argwhy::core::decision_set::BoxLimits;
use argwhy::core::metrics;
use argwhy::core::model::{Calibration, Misfits, Model as Core, Support};
use argwhy::core::predict::Scratch;
use argwhy::io::{StoredModel, decode_model, encode_model, save_model};
use argwhy::ranges::Ranges;
use argwhy::sources::{from_stored, to_stored};
use argwhy::{DataSources, FitSettings, Predictor, device};
use ndarray::Array2;
use numpy::{PyArray1, PyArray2};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

/// A model with its settings, made ready to decide when it is first asked.
#[pyclass(frozen, module = "argwhy._argwhy")]
pub struct Model {
    core: Core,
    settings: FitSettings,
    /// As stored, for saving: a file keeps what an older version wrote.
    stored: serde_json::Value,
    /// Whether every side of the limits leaves room for a single-precision number.
    single: bool,
    predictor: OnceLock<Predictor>,
    /// Room for single decisions, one a thread that is deciding.
    scratch: Mutex<Vec<Scratch>>,
}

impl Model {
    /// From a fit.
    pub fn new((settings, sources): (&FitSettings, &DataSources), core: Core) -> PyResult<Self> {
        let stored = to_stored(settings, sources).map_err(exception)?;
        Ok(Self::with(core, settings.clone(), stored))
    }

    fn with(core: Core, settings: FitSettings, stored: serde_json::Value) -> Self {
        let single = fits_single(core.set.limits());
        let (predictor, scratch) = (OnceLock::new(), Mutex::new(Vec::new()));
        Self { core, settings, stored, single, predictor, scratch }
    }

    fn from_stored(stored: StoredModel) -> Result<Self, String> {
        let (settings, _) = from_stored(&stored.settings).map_err(|e| e.to_string())?;
        Ok(Self::with(stored.model, settings, stored.settings))
    }

    /// The model itself.
    pub fn core(&self) -> &Core {
        &self.core
    }

    /// The same, made ready.
    pub fn predictor(&self) -> PyResult<&Predictor> {
        if let Some(predictor) = self.predictor.get() {
            return Ok(predictor);
        }
        let made = pool(self.settings.threads)?
            .install(|| Predictor::new(&self.core))
            .map_err(exception)?;
        // A model decides wherever it is loaded, GPU or not.
        let batches = device::batches(self.settings.device, &self.core).unwrap_or_default();
        let made = made.with_batches(batches);
        Ok(self.predictor.get_or_init(|| made))
    }

    /// The same with what rows kept aside say, unless that is about other decisions.
    pub fn learned(&self, calibration: Option<&Calibration>, misfits: Option<Misfits>) -> Self {
        let n = self.core.decision_dim();
        let calibration = calibration.filter(|own| own.validate(n).is_ok()).cloned();
        let core = Core { calibration, misfits, ..self.core.clone() };
        Self::with(core, self.settings.clone(), self.stored.clone())
    }

    /// One decision, on this thread.
    fn decide_one(&self, signal: &[f64]) -> PyResult<Array2<f64>> {
        let predictor = self.predictor()?;
        let free = || self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        let mut scratch = free().pop().unwrap_or_else(|| predictor.scratch());
        let mut decision = Array2::zeros((1, predictor.decision_dim()));
        let out = decision.as_slice_mut().expect("a fresh array is in standard layout");
        let decided = predictor.decide_one(signal, None, &mut scratch, out).map_err(exception);
        free().push(scratch);
        decided.map(|()| decision)
    }

    /// Decisions of any number, with the bits each would have alone.
    fn decide_all(
        &self,
        signals: &Array2<f64>,
        given: Option<&Constraints>,
    ) -> PyResult<Array2<f64>> {
        if let (None, 1, Some(signal)) = (given, signals.nrows(), signals.as_slice())
            && !signal.is_empty()
        {
            return self.decide_one(signal);
        }
        let predictor = self.predictor()?;
        self.within(|| {
            let sets = predictor.sets(given, signals.nrows())?;
            predictor.decide(predictor.desired(signals.view())?.view(), &sets)
        })
    }

    /// Runs `work` of the whole way on the model's threads.
    pub fn on_threads<T: Send>(
        &self,
        work: impl FnOnce() -> Result<T, argwhy::Error> + Send,
    ) -> PyResult<T> {
        pool(self.settings.threads)?.install(work).map_err(exception)
    }

    /// Runs `work` on the model's threads.
    fn within<T: Send>(
        &self,
        work: impl FnOnce() -> Result<T, argwhy::core::Error> + Send,
    ) -> PyResult<T> {
        pool(self.settings.threads)?.install(work).map_err(exception)
    }

    /// Decisions as Python wants them: single precision for single precision, where every decision
    /// keeps its limits in it.
    fn answer<'py>(
        &self,
        py: Python<'py>,
        decisions: Array2<f64>,
        (flat, single): (bool, bool),
    ) -> Bound<'py, PyAny> {
        let limits = self.core.set.limits();
        let inward = |j: usize, u: f64| inward(u, limits.lower()[j], limits.upper()[j]);
        let round: Option<&dyn Fn(usize, f64) -> f32> =
            if single && self.single { Some(&inward) } else { None };
        answer(py, decisions, flat, round)
    }
}

/// `value` in single precision, moved by one unit in the last place where rounding would leave the
/// limits.
fn inward(value: f64, lower: f64, upper: f64) -> f32 {
    let near = value as f32;
    if f64::from(near) > upper {
        near.next_down()
    } else if f64::from(near) < lower {
        near.next_up()
    } else {
        near
    }
}

/// Whether a single-precision number lies between the limits of every dimension.
fn fits_single(limits: &BoxLimits) -> bool {
    let mut sides = limits.lower().iter().zip(limits.upper());
    sides.all(|(&lower, &upper)| {
        let least = inward(lower, lower, f64::INFINITY);
        (lower == f64::NEG_INFINITY || least.is_finite()) && f64::from(least) <= upper
    })
}

#[pymethods]
impl Model {
    /// Decisions for a plain float array, or None where NumPy has to convert it first.
    fn decide<'py>(
        &self,
        py: Python<'py>,
        signals: &Bound<'py, PyAny>,
        flat: bool,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(Matrix { values, single }) = plain_matrix(signals)? else { return Ok(None) };
        let decisions = detached(py, || self.decide_all(&values, None))?;
        Ok(Some(self.answer(py, decisions, (flat, single))))
    }

    /// Decisions within limits that come with the signals.
    fn predict<'py>(
        &self,
        py: Python<'py>,
        signals: &Bound<'py, PyAny>,
        limits: Option<&Bound<'py, PyDict>>,
        flat: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Matrix { values, single } = matrix("signals", signals)?;
        let given = limits.map(limits_of).transpose()?;
        let decisions = detached(py, || self.decide_all(&values, given.as_ref()))?;
        // No rounding of a point of a general polyhedron is safe.
        Ok(self.answer(py, decisions, (flat, single && given.is_none())))
    }

    /// Decisions, and between which two the expert's own lie with probability `level`.
    fn predict_range<'py>(
        &self,
        py: Python<'py>,
        signals: &Bound<'py, PyAny>,
        limits: Option<&Bound<'py, PyDict>>,
        level: f64,
        flat: bool,
    ) -> PyResult<[Bound<'py, PyAny>; 3]> {
        let signals = matrix("signals", signals)?.values;
        let given = limits.map(limits_of).transpose()?;
        let (decisions, low, high) = detached(py, || {
            let predictor = self.predictor()?;
            self.within(|| {
                let ranges = Ranges::new(&self.core, level)?;
                let sets = predictor.sets(given.as_ref(), signals.nrows())?;
                let desired = predictor.desired(signals.view())?;
                let decisions = predictor.decide(desired.view(), &sets)?;
                let (low, high) = ranges.around(signals.view(), decisions.view(), &sets)?;
                Ok((decisions, low, high))
            })
        })?;
        Ok([decisions, low, high].map(|part| answer(py, part, flat, None)))
    }

    /// Rows that fit worst; None where that was not looked for.
    #[getter]
    fn misfits<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.core.misfits.as_ref().map(|found| json(py, found)).transpose()
    }

    /// Rows kept aside that ranges rest on; None where the model has no ranges.
    #[getter]
    fn range_rows(&self) -> Option<usize> {
        self.core.calibration.as_ref().map(Calibration::n_rows)
    }

    /// g(s): what would be decided without limits.
    fn desired<'py>(
        &self,
        py: Python<'py>,
        signals: &Bound<'py, PyAny>,
        flat: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Matrix { values, single } = matrix("signals", signals)?;
        let desired = detached(py, || {
            let predictor = self.predictor()?;
            self.within(|| predictor.desired(values.view()))
        })?;
        let nearest = |_: usize, g: f64| g as f32;
        let round: Option<&dyn Fn(usize, f64) -> f32> = if single { Some(&nearest) } else { None };
        Ok(answer(py, desired, flat, round))
    }

    /// The learned objective of each decision, one row of `signals` each or one for all.
    fn objective<'py>(
        &self,
        py: Python<'py>,
        signals: &Bound<'py, PyAny>,
        decisions: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let signals = matrix("signals", signals)?.values;
        let decisions = matrix("decisions", decisions)?.values;
        let values = detached(py, || {
            let predictor = self.predictor()?;
            self.within(|| predictor.objective(signals.view(), decisions.view()))
        })?;
        Ok(PyArray1::from_vec(py, values).into_any())
    }

    /// What the limits cost that hold the decisions on `signals`.
    fn prices<'py>(
        &self,
        py: Python<'py>,
        signals: &Bound<'py, PyAny>,
        limits: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let signals = matrix("signals", signals)?.values;
        let given = limits.map(limits_of).transpose()?;
        let prices = detached(py, || {
            let predictor = self.predictor()?;
            self.within(|| {
                let sets = predictor.sets(given.as_ref(), signals.nrows())?;
                predictor.prices(predictor.desired(signals.view())?.view(), &sets)
            })
        })?;
        record::prices(py, &prices, &self.core.names)
    }

    /// Writes the file that the command reads.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        detached(py, || save_model(&path, &self.core, &self.stored).map_err(exception))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let bytes = encode_model(&self.core, &self.stored).map_err(PyRuntimeError::new_err)?;
        let read = py.import("argwhy._argwhy")?.getattr("model_from_bytes")?;
        PyTuple::new(py, [read, PyTuple::new(py, [PyBytes::new(py, &bytes)])?.into_any()])
    }

    /// The parameters it was fitted with.
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        parameters(py, &self.settings)
    }

    #[getter]
    fn status(&self) -> &'static str {
        self.core.record.status.name()
    }

    /// How it came about: source, rows, command, versions, as far as known.
    #[getter]
    fn provenance<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let from = from_stored(&self.stored).map(|(_, from)| from.provenance).unwrap_or_default();
        json(py, &from)
    }

    /// How the fit went: certificate, iterations, seconds and so on.
    #[getter]
    fn record<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json(py, &self.core.record)
    }

    #[getter]
    fn constrained(&self) -> bool {
        self.core.constrained
    }

    #[getter]
    fn signal_dim(&self) -> usize {
        self.core.features.signal_dim()
    }

    /// What signals are called; empty where they have no names.
    #[getter]
    fn signal_names(&self) -> Vec<String> {
        self.core.names.signals.clone()
    }

    /// What decisions are called; empty where they have no names.
    #[getter]
    fn decision_names(&self) -> Vec<String> {
        self.core.names.decisions.clone()
    }

    /// Units by the names of signals, decisions and limits, those that are known.
    #[getter]
    fn units(&self) -> BTreeMap<String, String> {
        let dims = (self.core.features.signal_dim(), self.core.decision_dim());
        self.core.names.every_unit(dims.0, dims.1).0
    }

    #[getter]
    fn decision_dim(&self) -> usize {
        self.core.decision_dim()
    }

    #[getter]
    fn n_support(&self) -> usize {
        self.core.n_support()
    }

    #[getter]
    fn coefficients<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray2<f64>>> {
        self.core.support().map(|support| PyArray2::from_array(py, &support.coefficients))
    }

    #[getter]
    fn support_signals<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray2<f64>>> {
        self.core.support().map(|support| PyArray2::from_array(py, &support.signals))
    }

    #[getter]
    fn support_rows<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<i64>>> {
        let rows = |support: &Support| {
            PyArray1::from_iter(py, support.rows.iter().map(|&row| integer(row)))
        };
        self.core.support().map(rows)
    }

    /// The weights of features, where the model was solved for these.
    #[getter]
    fn weights<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray2<f64>>> {
        self.core.feature_weights().map(|weights| PyArray2::from_array(py, &weights.values))
    }

    #[getter]
    fn weight_names(&self) -> Vec<String> {
        self.core.weight_names()
    }

    #[getter]
    fn feature_names(&self) -> Vec<String> {
        self.core.features.names()
    }

    #[getter]
    fn theta_uu<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let metric = self.core.metric().map_err(exception)?;
        Ok(PyArray2::from_owned_array(py, metric.theta().to_owned()))
    }

    #[getter]
    fn learned_theta(&self) -> bool {
        self.core.theta.is_some()
    }

    /// What the limits of the training samples cost.
    #[getter]
    fn training_prices<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let names = &self.core.names;
        let prices = |support: &Support| record::prices(py, &support.prices, names);
        self.core.support().map(prices).transpose()
    }

    #[getter]
    fn lower<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, self.core.set.limits().lower())
    }

    #[getter]
    fn upper<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, self.core.set.limits().upper())
    }

    /// The kernel with its parameters, as in the model file.
    #[getter]
    fn kernel<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json(py, &self.core.kernel())
    }

    /// The feature map with its statistics, as in the model file.
    #[getter]
    fn features<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json(py, &self.core.features)
    }

    /// Features of signals.
    fn transform<'py>(
        &self,
        py: Python<'py>,
        signals: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let signals = matrix("signals", signals)?.values;
        let features =
            detached(py, || self.core.features.transform(signals.view()).map_err(exception))?;
        Ok(PyArray2::from_owned_array(py, features))
    }
}

/// Reads a model that the command, Rust or Python has written.
#[pyfunction]
pub fn load_model(py: Python<'_>, path: PathBuf) -> PyResult<Model> {
    detached(py, || {
        let stored = argwhy::load_model(&path).map_err(exception)?;
        Model::from_stored(stored).map_err(|why| {
            exception(argwhy::io::ModelFileError::Damaged { path: path.clone(), why })
        })
    })
}

/// The inverse of pickling.
#[pyfunction]
pub fn model_from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Model> {
    let bytes = bytes.to_vec();
    detached(py, || {
        let stored = decode_model(&bytes).map_err(|problem| problem.to_string());
        stored.and_then(Model::from_stored).map_err(|why| {
            exception(argwhy::io::ModelFileError::Damaged {
                path: PathBuf::from("pickled model"),
                why,
            })
        })
    })
}

/// R² as scikit-learn defines it.
#[pyfunction]
#[pyo3(signature = (predicted, observed, weights=None))]
pub fn r2(
    predicted: &Bound<'_, PyAny>,
    observed: &Bound<'_, PyAny>,
    weights: Option<&Bound<'_, PyAny>>,
) -> PyResult<f64> {
    let predicted = matrix("predictions", predicted)?.values;
    let observed = matrix("decisions", observed)?.values;
    let weights = weights.map(|weights| vector("weights", weights)).transpose()?;
    if predicted.dim() != observed.dim() {
        return Err(data_error(format!(
            "the model decides {} rows × {} dimensions but decisions has {} × {}",
            predicted.nrows(),
            predicted.ncols(),
            observed.nrows(),
            observed.ncols()
        )));
    }
    if let Some(weights) = weights.as_ref().filter(|weights| weights.len() != observed.nrows()) {
        return Err(exception(argwhy::core::Error::RowCount {
            left: "weights",
            left_rows: weights.len(),
            right: "decisions",
            right_rows: observed.nrows(),
        }));
    }
    let weights = weights.as_ref().map(|weights| weights.view());
    Ok(metrics::r2(predicted.view(), observed.view(), weights))
}
