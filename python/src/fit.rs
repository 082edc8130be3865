//! `fit`: arrays and settings to a model, stoppable at any step.

use crate::array::{matrix, vector};
use crate::cluster::PyMachines;
use crate::constraints::constraints;
use crate::error::{exception, guarded, panicked};
use crate::model::Model;
use crate::progress::{Follow, Iteration, Message};
use crate::record::history;
use crate::settings::{json, settings};
use argwhy::core::dataset::{Names, Units};
use argwhy::core::precond::KeptFactor;
use argwhy::core::wording::Worded;
use argwhy::io::{RowRanges, load_checkpoint};
use argwhy::notes::cautions;
use argwhy::{Checkpoints, Dataset, Pipeline, Start};
use argwhy_cluster::ClusterBackend;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How often the caller looks for Ctrl-C while nothing else happens.
const BEAT: Duration = Duration::from_millis(20);

/// A model and how it came about.
#[pyclass(frozen, get_all, module = "argwhy._argwhy")]
pub struct Fit {
    model: Py<Model>,
    history: Py<PyDict>,
    plan: Py<PyAny>,
    outside: Py<PyAny>,
    verdict: Py<PyString>,
    /// What may not have been meant.
    cautions: Vec<String>,
    /// What stopped the fit from outside: a KeyboardInterrupt, or what a callback raised.
    interruption: Option<Py<PyAny>>,
    /// For a fit of more rows, where this one was to leave it.
    left: Option<Py<Left>>,
}

/// What a fit has left of its preconditioner.
#[pyclass(frozen, module = "argwhy._argwhy")]
pub struct Left(Arc<KeptFactor>);

#[pymethods]
impl Left {
    /// The samples it is made of.
    #[getter]
    fn pivots(&self) -> Vec<usize> {
        self.0.pivots.clone()
    }
}

/// Fits. `follow` has `on_plan(lines)` and `on_iteration(iteration) -> bool`; true stops.
#[pyfunction]
#[pyo3(signature = (
    signals, decisions, parameters, *, weights=None, limits=None, rows=None, follow=None,
    names=None, units=None, more=None, start=None, left=None, leave=false, checkpoint=None,
    resume=None, backend=None
))]
#[allow(clippy::too_many_arguments, reason = "the arguments of the estimator's fit, one by one")]
pub fn fit(
    py: Python<'_>,
    signals: &Bound<'_, PyAny>,
    decisions: &Bound<'_, PyAny>,
    parameters: &Bound<'_, PyDict>,
    weights: Option<&Bound<'_, PyAny>>,
    limits: Option<&Bound<'_, PyDict>>,
    rows: Option<&str>,
    follow: Option<&Bound<'_, PyAny>>,
    names: Option<BTreeMap<String, Vec<String>>>,
    units: Option<BTreeMap<String, String>>,
    more: Option<Vec<MoreRows<'_>>>,
    start: Option<&Bound<'_, Model>>,
    left: Option<&Bound<'_, Left>>,
    leave: bool,
    checkpoint: Option<(PathBuf, f64)>,
    resume: Option<PathBuf>,
    backend: Option<&Bound<'_, PyAny>>,
) -> PyResult<Fit> {
    let settings = settings(parameters)?;
    let mut pipeline = Pipeline::new(settings.clone()).map_err(exception)?;
    if let Some(object) = backend {
        let machines = Arc::new(PyMachines::new(object)?);
        pipeline = pipeline.with_backend(Arc::new(ClusterBackend::new(machines)));
    }
    if let Some(model) = start {
        let core = model.get().core();
        pipeline = if more.is_some() {
            let factor = left.map(|left| Arc::clone(&left.get().0));
            pipeline.growing_from(core, factor).map_err(exception)?
        } else {
            pipeline.starting_from(Start::Model(Box::new(core.clone())))
        };
    }
    if leave {
        pipeline = pipeline.leaving_factor();
    }
    if let Some((path, every)) = checkpoint {
        let every = Duration::try_from_secs_f64(every).map_err(|error| {
            PyValueError::new_err(format!("checkpoint_every is {every} seconds: {error}"))
        })?;
        pipeline = pipeline.with_checkpoints(Checkpoints::new(path, Some(every)));
    }
    if let Some(path) = resume {
        let checkpoint = load_checkpoint(&path).map_err(exception)?;
        pipeline = pipeline.starting_from(Start::Checkpoint(Box::new(checkpoint)));
    }
    let (data, mut ranges) = guarded(|| dataset([signals, decisions], weights, limits, rows))?;
    let names = Names { units: Units(units.unwrap_or_default()), ..named(names) };
    let mut data = data.with_names(names).map_err(exception)?;
    for MoreRows { signals, decisions, weights, limits } in more.unwrap_or_default() {
        let parts = [&signals, &decisions];
        let (behind, _) = guarded(|| dataset(parts, weights.as_ref(), limits.as_ref(), None))?;
        let before = data.n_samples();
        data = data.joined(&behind).map_err(exception)?;
        ranges.push(before..data.n_samples());
    }
    let constrained = data.constraints().is_some();
    let (solved, interruption) = run(py, pipeline, (data, ranges), follow, backend)?;
    // Without a fit nothing was reached that could be used, and what stopped it is what there is to
    // say.
    let ((fit, steps), interruption) = match (solved, interruption) {
        (Ok(solved), interruption) => (solved, interruption),
        (Err(_), Some(stopped)) => return Err(stopped),
        (Err(error), None) => return Err(error),
    };
    let verdict = PyString::new(py, &fit.verdict().to_string()).unbind();
    let plan = json(py, &fit.plan)?.unbind();
    let outside = json(py, &fit.outside)?.unbind();
    let settings = fit.settings().clone();
    let cautions = cautions(&settings, constrained, &fit.outside);
    let left = fit.outcome.factor.map(|factor| Py::new(py, Left(factor))).transpose()?;
    let mut sources = fit.sources;
    let (python, own) = (py.version_info(), &mut sources.provenance);
    own.versions.insert("python".to_owned(), format!("{}.{}", python.major, python.minor));
    Ok(Fit {
        cautions: cautions.iter().map(|note| Worded(note).to_string()).collect(),
        history: history(py, &steps)?.unbind(),
        plan,
        outside,
        verdict,
        interruption: interruption.map(|error| error.into_value(py).into_any()),
        left,
        model: Py::new(py, Model::new((&settings, &sources), fit.model)?)?,
    })
}

/// Rows behind others, as their keys say.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct MoreRows<'py> {
    signals: Bound<'py, PyAny>,
    decisions: Bound<'py, PyAny>,
    weights: Option<Bound<'py, PyAny>>,
    limits: Option<Bound<'py, PyDict>>,
}

/// Names by what they name: `signals`, `decisions`, `M`, `M_eq`.
fn named(lists: Option<BTreeMap<String, Vec<String>>>) -> Names {
    let mut lists = lists.unwrap_or_default();
    let mut take = |what: &str| lists.remove(what).unwrap_or_default();
    Names {
        signals: take("signals"),
        decisions: take("decisions"),
        inequalities: take("M"),
        equalities: take("M_eq"),
        ..Names::default()
    }
}

/// What there is to learn from, and the rows to train on.
pub fn dataset(
    [signals, decisions]: [&Bound<'_, PyAny>; 2],
    weights: Option<&Bound<'_, PyAny>>,
    limits: Option<&Bound<'_, PyDict>>,
    rows: Option<&str>,
) -> PyResult<(Dataset, Vec<Range<usize>>)> {
    let signals = matrix("signals", signals)?.values;
    let n_rows = signals.nrows();
    let mut data =
        Dataset::new(signals, matrix("decisions", decisions)?.values).map_err(exception)?;
    if let Some(limits) = limits {
        data = data.with_constraints(constraints(limits)?).map_err(exception)?;
    }
    if let Some(weights) = weights {
        data = data.with_weights(vector("weights", weights)?.to_vec()).map_err(exception)?;
    }
    let ranges = match rows {
        Some(rows) => {
            rows.parse::<RowRanges>().and_then(|rows| rows.resolve(n_rows)).map_err(exception)?
        }
        None => vec![0..n_rows; 1],
    };
    Ok((data, ranges))
}

type Solved = (argwhy::Fit, Vec<argwhy::core::solver::Iteration>);

/// Runs the pipeline on a thread of its own. Its result, and what stopped it from outside.
fn run(
    py: Python<'_>,
    pipeline: Pipeline,
    (data, ranges): (Dataset, Vec<Range<usize>>),
    follow: Option<&Bound<'_, PyAny>>,
    backend: Option<&Bound<'_, PyAny>>,
) -> PyResult<(PyResult<Solved>, Option<PyErr>)> {
    let stop = Arc::new(AtomicBool::new(false));
    let (sender, receiver) = mpsc::channel();
    let (go, wait) = mpsc::channel();
    let mut solver =
        Follow { stop: Arc::clone(&stop), caller: None, notes: Vec::new(), history: Vec::new() };
    let (listened, unheard) =
        if follow.is_some() { (Some(sender), None) } else { (None, Some(sender)) };
    solver.caller = listened.map(|sender| (sender, wait));
    let worker = thread::Builder::new()
        .name("argwhy-fit".to_owned())
        .spawn(move || {
            // Held to the end, whoever listens: the caller waits until it is dropped.
            let _open = unheard;
            let fit = pipeline.fit_rows(&data, &ranges, &mut solver).map_err(exception)?;
            Ok((fit, solver.history))
        })
        .map_err(|e| PyRuntimeError::new_err(format!("cannot start a thread: {e}")))?;
    let interruption = watch(py, receiver, &go, (follow, backend), &stop);
    let solved = py.detach(|| worker.join()).unwrap_or_else(|payload| Err(panicked(payload)));
    Ok((solved, interruption))
}

/// Serves the solver's messages until it ends.
fn watch(
    py: Python<'_>,
    receiver: Receiver<Message>,
    go: &Sender<()>,
    (follow, backend): (Option<&Bound<'_, PyAny>>, Option<&Bound<'_, PyAny>>),
    stop: &AtomicBool,
) -> Option<PyErr> {
    let receiver = Mutex::new(receiver);
    let mut interruption = None;
    loop {
        let message = py
            .detach(|| receiver.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(BEAT));
        let heard = match (&message, follow) {
            (Err(RecvTimeoutError::Disconnected), _) => return interruption,
            // Once it is to stop, the user is left alone.
            (Ok(message), Some(follow)) if !stop.load(Ordering::Relaxed) => serve(message, follow),
            _ => Ok(false),
        };
        match heard.and_then(|stop| py.check_signals().map(|()| stop)) {
            Ok(true) => stop.store(true, Ordering::Relaxed),
            Ok(false) => {}
            Err(error) => {
                if let (Some(_), Some(backend)) = (&interruption, backend) {
                    // Asked twice: not even what workers are at is waited for. Objects of a user's
                    // own need not have heard of this.
                    let _ = backend.call_method0("abandon");
                }
                stop.store(true, Ordering::Relaxed);
                interruption.get_or_insert(error);
            }
        }
        if matches!(message, Ok(Message::Step(_))) {
            // A solver that is gone needs no word.
            let _ = go.send(());
        }
    }
}

/// Whether the fit should stop.
fn serve(message: &Message, follow: &Bound<'_, PyAny>) -> PyResult<bool> {
    match message {
        Message::Plan(lines) => {
            follow.call_method1("on_plan", (lines.clone(),))?;
            Ok(false)
        }
        Message::Step(step) => {
            follow.call_method1("on_iteration", (Iteration::from(step),))?.is_truthy()
        }
    }
}
