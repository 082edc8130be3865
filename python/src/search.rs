//! Choosing settings, here or by others who have the same data.

use crate::choosing::{Stoppable, apart, counted, division};
use crate::cluster::words;
use crate::error::{detached, exception, guarded};
use crate::fit::dataset;
use crate::settings::{json, settings_of, table};
use argwhy::core::Error as CoreError;
use argwhy::tuning::{
    Attempt, BUDGET, Crew, Ground, Judge, N_PARTS, Space, Trial, Tuning, scales_asked_for,
    tune_with,
};
use argwhy::{Dataset, Error, Pipeline, Silent};
use numpy::PyReadonlyArray1;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A search that is about to begin: the data, what is tried, and how.
#[pyclass(frozen, module = "argwhy._argwhy")]
pub struct Search {
    data: Arc<Dataset>,
    /// Those that count, or those that were named.
    rows: Arc<Vec<usize>>,
    space: Arc<Space>,
    tuning: Arc<Tuning>,
}

#[pymethods]
impl Search {
    #[new]
    #[pyo3(signature = (
        signals, decisions, given, *, weights=None, limits=None, groups=None, in_time=false,
        folds=None, judge=None, budget=None, grid=None, rows=None
    ))]
    #[allow(clippy::too_many_arguments, reason = "the arguments of the estimator's fit")]
    fn new(
        signals: &Bound<'_, PyAny>,
        decisions: &Bound<'_, PyAny>,
        given: &Bound<'_, PyDict>,
        weights: Option<&Bound<'_, PyAny>>,
        limits: Option<&Bound<'_, PyDict>>,
        groups: Option<Vec<u32>>,
        in_time: bool,
        folds: Option<usize>,
        judge: Option<&str>,
        budget: Option<f64>,
        grid: Option<&Bound<'_, PyDict>>,
        rows: Option<PyReadonlyArray1<'_, u64>>,
    ) -> PyResult<Self> {
        let given = table(given)?;
        let mut said = given.clone();
        scales_asked_for(&mut said);
        let base = settings_of(&said)?;
        Pipeline::new(base.clone()).map_err(exception)?;
        let (data, _) = guarded(|| dataset([signals, decisions], weights, limits, None))?;
        let space = match grid {
            Some(grid) => Space::grid(&given, &table(grid)?, data.n_samples()),
            None => Space::usual(&given, data.signals().dim()),
        };
        let space = space.map_err(exception)?;
        let budget = match budget.map(Duration::try_from_secs_f64) {
            None => BUDGET,
            Some(Ok(budget)) if !budget.is_zero() => budget,
            Some(_) => return Err(PyValueError::new_err("budget: expected seconds above zero")),
        };
        let tuning = Tuning {
            division: division(groups, in_time, data.n_samples())?,
            n_parts: folds.unwrap_or(N_PARTS),
            judge: judged_by(judge)?,
            budget: Some(budget),
            seed: base.seed,
        };
        let rows = match rows {
            Some(rows) => rows.as_array().iter().map(|&row| row as usize).collect(),
            None => counted(&data),
        };
        if let Some(row) = rows.iter().find(|row| **row >= data.n_samples()) {
            let n_rows = data.n_samples();
            return Err(PyValueError::new_err(format!("rows: {row} of {n_rows}")));
        }
        let (data, rows) = (Arc::new(data), Arc::new(rows));
        Ok(Self { data, rows, space: Arc::new(space), tuning: Arc::new(tuning) })
    }

    /// The best settings and every trial, as `tune --json` prints them. A `crew` is called with the
    /// attempts of a round and something that says whether to stop, and answers with pairs: which
    /// attempt, and what came of it.
    #[pyo3(signature = (crew=None))]
    fn run<'py>(&self, py: Python<'py>, crew: Option<Py<PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        let (data, rows) = (Arc::clone(&self.data), Arc::clone(&self.rows));
        let (space, tuning) = (Arc::clone(&self.space), Arc::clone(&self.tuning));
        let tuned = apart(py, move |stop| {
            let end = tuning.budget.map(|budget| Instant::now() + budget);
            let patience = Patience { stop: Arc::clone(&stop), end };
            let mut crew = crew.map(|object| PyCrew { object, patience });
            let crew = crew.as_mut().map(|crew| crew as &mut dyn Crew);
            tune_with(&data, &rows, &space, &tuning, &[], &mut Stoppable(stop), crew)
        })?;
        let out = PyDict::new(py);
        out.set_item("best", json(py, &tuned.best)?)?;
        out.set_item("trials", json(py, &tuned.trials)?)?;
        out.set_item("finished", tuned.finished)?;
        Ok(out.into_any())
    }

    /// Makes one attempt of somebody else's search on the same data.
    fn attempt(&self, py: Python<'_>, attempt: &str) -> PyResult<String> {
        let wrong = |why: serde_json::Error| PyValueError::new_err(format!("an attempt: {why}"));
        let attempt: Attempt = serde_json::from_str(attempt).map_err(wrong)?;
        detached(py, || {
            let ground = Ground::new(&self.data, &self.rows, &self.space, &self.tuning);
            let trials = ground.map_err(exception)?.attempt(&attempt, &mut Silent);
            serde_json::to_string(&trials.unwrap_or_default())
                .map_err(|why| PyRuntimeError::new_err(why.to_string()))
        })
    }
}

fn judged_by(judge: Option<&str>) -> PyResult<Judge> {
    match judge {
        None => Ok(Judge::default()),
        Some("error") => Ok(Judge::Error),
        Some("regret") => Ok(Judge::Regret),
        Some(other) => Err(PyValueError::new_err(format!(
            "judge is {other:?}; expected \"error\" or \"regret\""
        ))),
    }
}

/// Whether those who work for a solver or a search should stop.
#[pyclass(frozen, module = "argwhy._argwhy")]
pub struct Patience {
    pub stop: Arc<AtomicBool>,
    pub end: Option<Instant>,
}

#[pymethods]
impl Patience {
    fn __call__(&self) -> bool {
        let late = self.end.is_some_and(|end| Instant::now() >= end);
        late || self.stop.load(Ordering::Relaxed)
    }
}

/// Something of Python's that makes attempts.
struct PyCrew {
    object: Py<PyAny>,
    patience: Patience,
}

impl Crew for PyCrew {
    fn attempt_all(
        &mut self,
        attempts: &[Attempt],
        _: &mut dyn FnMut() -> bool,
        done: &mut dyn FnMut(usize, Vec<Trial>),
    ) -> Result<(), Error> {
        let Patience { stop, end } = &self.patience;
        let stopped = Patience { stop: Arc::clone(stop), end: *end };
        let failed = |what: String| CoreError::Backend { backend: "ray".to_owned(), what };
        let texts: Result<Vec<String>, _> = attempts.iter().map(serde_json::to_string).collect();
        let texts = texts.map_err(|why| failed(why.to_string()))?;
        let answers = Python::attach(|py| {
            let answers = self.object.bind(py).call1((texts, stopped));
            let answers = answers.and_then(|found| found.extract::<Vec<(usize, String)>>());
            answers.map_err(|error| failed(words(py, &error)))
        })?;
        for (at, text) in answers {
            let trials: Vec<Trial> =
                serde_json::from_str(&text).map_err(|why| failed(why.to_string()))?;
            // Stopped in the middle, or not what was asked for.
            if attempts.get(at).is_some_and(|own| own.regularizations.len() == trials.len()) {
                done(at, trials);
            }
        }
        Ok(())
    }
}
