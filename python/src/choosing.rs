//! Judging fits on rows kept aside.

use crate::error::{exception, guarded, panicked};
use crate::fit::dataset;
use crate::model::Model;
use crate::settings::{json, settings};
use argwhy::core::Model as Core;
use argwhy::core::solver::{Iteration, Observer};
use argwhy::io::{GroupKind, Groups};
use argwhy::judging::{Division, HOLDOUT};
use argwhy::tuning::{Trial, Watch};
use argwhy::{Dataset, Judging, Pipeline, Progress, Verdict};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// How often the caller looks for Ctrl-C.
const BEAT: Duration = Duration::from_millis(20);

/// Scores on rows kept aside, as `fit --json` prints them, and `model` with what follows from them:
/// ranges, and rows that do not fit. An error with the reason where there are none.
#[pyfunction]
#[pyo3(signature = (
    signals, decisions, parameters, *, weights=None, limits=None, groups=None, in_time=false,
    holdout=None, model=None
))]
#[allow(clippy::too_many_arguments, reason = "the arguments of the estimator's judge")]
pub fn judge<'py>(
    py: Python<'py>,
    signals: &Bound<'py, PyAny>,
    decisions: &Bound<'py, PyAny>,
    parameters: &Bound<'py, PyDict>,
    weights: Option<&Bound<'py, PyAny>>,
    limits: Option<&Bound<'py, PyDict>>,
    groups: Option<Vec<u32>>,
    in_time: bool,
    holdout: Option<f64>,
    model: Option<&Model>,
) -> PyResult<(Bound<'py, PyAny>, Option<Model>)> {
    let pipeline = Pipeline::new(settings(parameters)?).map_err(exception)?;
    let (data, _) = guarded(|| dataset([signals, decisions], weights, limits, None))?;
    let division = division(groups, in_time, data.n_samples())?;
    let judging = Judging { division, holdout: holdout.unwrap_or(HOLDOUT) };
    let fitted = model.map(|model| model.core().clone());
    let (verdict, misfits) = apart(py, move |stop| {
        let rows = counted(&data);
        let mut follow = Stoppable(stop);
        let verdict = pipeline.judge_rows(&data, &rows, &judging, None, &mut follow)?;
        let of = |model| pipeline.misfits(&data, &rows, &model, verdict.judgement());
        let misfits = fitted.filter(|model| fits(model, &data)).and_then(of);
        Ok((verdict, misfits))
    })?;
    match verdict {
        Verdict::Judged(judgement) => {
            let known = model.map(|model| model.learned(judgement.calibration.as_ref(), misfits));
            Ok((json(py, &judgement)?, known))
        }
        Verdict::None { why } => Err(PyValueError::new_err(format!("not judged: {why}"))),
    }
}

/// Whether the data can be what a model was fitted to.
fn fits(model: &Core, data: &Dataset) -> bool {
    model.record.n_samples <= data.n_samples()
        && model.features.signal_dim() == data.signals().ncols()
        && model.decision_dim() == data.decisions().ncols()
}

/// What is kept aside together.
pub fn division(groups: Option<Vec<u32>>, in_time: bool, n_rows: usize) -> PyResult<Division> {
    if let Some(groups) = &groups
        && groups.len() != n_rows
    {
        return Err(PyValueError::new_err(format!(
            "groups has {} entries for {n_rows} rows; expected one a row",
            groups.len()
        )));
    }
    let groups = groups.map(|of_rows| Groups { of_rows, kind: GroupKind::Column });
    Division::of(groups, in_time).map_err(exception)
}

/// The rows that count.
pub fn counted(data: &Dataset) -> Vec<usize> {
    let counts = |row: &usize| data.weights().is_none_or(|weights| weights[*row] > 0.0);
    (0..data.n_samples()).filter(counts).collect()
}

/// Runs `work` on a thread of its own, and passes Ctrl-C on to it.
pub fn apart<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(Arc<AtomicBool>) -> Result<T, argwhy::Error> + Send + 'static,
) -> PyResult<T> {
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    let worker = thread::Builder::new()
        .name("argwhy-choosing".to_owned())
        .spawn(move || work(asked))
        .map_err(|e| PyRuntimeError::new_err(format!("cannot start a thread: {e}")))?;
    let mut interruption = None;
    while !worker.is_finished() {
        py.detach(|| thread::sleep(BEAT));
        if let Err(error) = py.check_signals() {
            stop.store(true, Ordering::Relaxed);
            interruption.get_or_insert(error);
        }
    }
    let done = py.detach(|| worker.join());
    match (interruption, done) {
        (Some(stopped), _) => Err(stopped),
        (None, Ok(done)) => done.map_err(exception),
        (None, Err(payload)) => Err(panicked(payload)),
    }
}

/// Whatever is done stops where this says so.
pub struct Stoppable(pub Arc<AtomicBool>);

impl Observer for Stoppable {
    fn on_iteration(&mut self, _: &Iteration) -> ControlFlow<()> {
        self.poll()
    }

    fn poll(&mut self) -> ControlFlow<()> {
        if self.stops() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl Progress for Stoppable {}

impl Watch for Stoppable {
    fn on_trial(&mut self, _: &Trial, _: Option<&Trial>, _: usize) {}

    fn stops(&mut self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
