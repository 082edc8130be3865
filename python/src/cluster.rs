//! Fits on several machines: Python objects that have workers, and what a worker computes with.
//!
//! The solver calls a backend once a product; here that is one call of a Python method with arrays.
//! What it raises becomes the backend's error, in its words.

use crate::array::matrix;
use crate::error::{detached, exception};
use crate::search::Patience;
use argwhy::core::Kernel;
use argwhy::core::operator::{HostOperator, KernelOperator, OperatorKind, Precision};
use argwhy::machine::thread_pool;
use argwhy_cluster::{Job, Machines, Opening, PanelKeeper};
use ndarray::{Array2, ArrayView2, ArrayViewMut2};
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, ToPyArray};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyTuple};
use rayon::ThreadPool;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Between two times that whoever waits for blocks is asked whether to stop.
const BEAT: Duration = Duration::from_millis(100);

/// An object with `open`, `product`, `rows`, `columns`, `close` and maybe `blocks`:
/// `argwhy.ray.Cluster`, or one of a user's own.
pub struct PyMachines {
    object: Py<PyAny>,
    n_cores: usize,
    wants_features: bool,
    have_gpus: bool,
    /// Samples from which on its `panels` keep preconditioners; none where it has none.
    spread_from: Option<usize>,
}

impl PyMachines {
    /// Asks the object how large it is, which for a cluster means to connect.
    pub fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let n_cores = object.call_method0("connect")?.extract()?;
        let wants_features = object.getattr("wants_features")?.is_truthy()?;
        // Objects of a user's own need not have heard of GPUs.
        let gpus = object.getattr_opt("gpus")?;
        let have_gpus = gpus.map_or(Ok(false), |gpus| gpus.is_truthy())?;
        let keeps = object.getattr_opt("panels")?.is_some();
        let spread_from =
            if keeps { Some(object.getattr("spread_from")?.extract()?) } else { None };
        let object = object.clone().unbind();
        Ok(Self { object, n_cores, wants_features, have_gpus, spread_from })
    }

    pub fn object(&self) -> &Py<PyAny> {
        &self.object
    }

    pub fn spread_from(&self) -> usize {
        self.spread_from.unwrap_or(usize::MAX)
    }

    /// Calls a method that answers with a matrix.
    fn ask<'py, A>(&self, py: Python<'py>, method: &str, arguments: A) -> PyResult<Array2<f64>>
    where
        A: IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>,
    {
        let answer = self.object.bind(py).call_method1(method, arguments.into_pyobject(py)?)?;
        Ok(matrix("what the cluster answered", &answer)?.values)
    }
}

impl fmt::Debug for PyMachines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PyMachines").field("n_cores", &self.n_cores).finish_non_exhaustive()
    }
}

/// What an exception says, without its class where that is the cluster's own.
pub fn words(py: Python<'_>, error: &PyErr) -> String {
    let text = error.value(py).to_string();
    let name = error.get_type(py).name().map_or_else(|_| String::new(), |name| name.to_string());
    if name == "ClusterError" || name.is_empty() { text } else { format!("{name}: {text}") }
}

fn indices<'py>(py: Python<'py>, samples: &[usize]) -> Bound<'py, PyArray1<u64>> {
    PyArray1::from_iter(py, samples.iter().map(|&i| i as u64))
}

/// Fails where the answer has another shape than was asked for.
pub fn checked(found: Array2<f64>, shape: (usize, usize)) -> Result<Array2<f64>, String> {
    if found.dim() == shape {
        return Ok(found);
    }
    Err(format!("it answered with an array of shape {:?} instead of {shape:?}", found.dim()))
}

impl Machines for PyMachines {
    fn name(&self) -> &'static str {
        "ray"
    }

    fn n_cores(&self) -> usize {
        self.n_cores
    }

    fn have_gpus(&self) -> bool {
        self.have_gpus
    }

    fn open(&self, opening: Opening<'_>) -> Result<u64, String> {
        let job = serde_json::to_string(opening.job).map_err(|why| why.to_string())?;
        Python::attach(|py| {
            let features = self.wants_features.then(|| opening.features.to_pyarray(py));
            let arguments = (job, indices(py, opening.rows), features);
            let opened = self.object.bind(py).call_method1("open", arguments);
            opened.and_then(|matrix| matrix.extract()).map_err(|error| words(py, &error))
        })
    }

    fn product(
        &self,
        matrix: u64,
        exact: bool,
        v: ArrayView2<'_, f64>,
        mut out: ArrayViewMut2<'_, f64>,
    ) -> Result<(), String> {
        let answer = Python::attach(|py| {
            let arguments = (matrix, exact, v.to_pyarray(py));
            self.ask(py, "product", arguments).map_err(|error| words(py, &error))
        });
        let answer = checked(answer?, out.dim())?;
        out.assign(&answer);
        Ok(())
    }

    fn rows(
        &self,
        matrix: u64,
        samples: &[usize],
        columns: Range<usize>,
        out: &mut [f64],
    ) -> Result<(), String> {
        let answer = Python::attach(|py| {
            let arguments = (matrix, indices(py, samples), columns.start, columns.end);
            self.ask(py, "rows", arguments).map_err(|error| words(py, &error))
        });
        let answer = checked(answer?, (samples.len(), columns.len()))?;
        out.iter_mut().zip(&answer).for_each(|(out, value)| *out = *value);
        Ok(())
    }

    fn add_columns(
        &self,
        matrix: u64,
        exact: bool,
        samples: &[usize],
        v: ArrayView2<'_, f64>,
        mut out: ArrayViewMut2<'_, f64>,
    ) -> Result<(), String> {
        let answer = Python::attach(|py| {
            let arguments = (matrix, exact, indices(py, samples), v.to_pyarray(py));
            self.ask(py, "columns", arguments).map_err(|error| words(py, &error))
        });
        let answer = checked(answer?, out.dim())?;
        out += &answer;
        Ok(())
    }

    fn solve_blocks(&self) -> bool {
        // Objects of a user's own need not have heard of blocks.
        Python::attach(|py| self.object.bind(py).hasattr("blocks").unwrap_or(false))
    }

    fn blocks(
        &self,
        matrix: u64,
        tasks: Vec<Vec<u8>>,
        stops: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Vec<Vec<u8>>>, String> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Patience { stop: Arc::clone(&stop), end: None };
        let ask = move || {
            Python::attach(|py| {
                let tasks: Vec<_> = tasks.iter().map(|task| PyBytes::new(py, task)).collect();
                let answer = self.object.bind(py).call_method1("blocks", (matrix, tasks, stopped));
                let answers =
                    answer.and_then(|found| found.extract::<Option<Vec<PyBackedBytes>>>());
                let answers = answers.map_err(|error| words(py, &error))?;
                Ok(answers.map(|found| found.iter().map(|bytes| bytes.to_vec()).collect()))
            })
        };
        // Whoever asks whether to stop is this thread, which does not wait for the other one.
        std::thread::scope(|scope| {
            let (to, from) = mpsc::channel();
            scope.spawn(move || to.send(ask()));
            loop {
                match from.recv_timeout(BEAT) {
                    Ok(answer) => return answer,
                    Err(RecvTimeoutError::Timeout) => stop.store(stops(), Ordering::Relaxed),
                    Err(RecvTimeoutError::Disconnected) => {
                        return Err("the thread that waits for blocks ended".to_owned());
                    }
                }
            }
        })
    }

    fn panels(&self) -> Option<&dyn PanelKeeper> {
        self.spread_from.map(|_| self as &dyn PanelKeeper)
    }

    fn close(&self, matrix: u64) {
        // What cannot be closed is closed with its worker.
        Python::attach(|py| {
            let _ = self.object.bind(py).call_method1("close", (matrix,));
        });
    }
}

/// What one worker holds of a fit: all samples, packed, and threads of its own.
#[pyclass(frozen, module = "argwhy._argwhy")]
pub struct Shard {
    inner: argwhy_cluster::Shard,
    pool: ThreadPool,
}

impl Shard {
    /// Computes on this shard's threads while the interpreter is free.
    fn run<T: Send>(&self, py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
        detached(py, || Ok(self.pool.install(work)))
    }

    pub fn inner(&self) -> &argwhy_cluster::Shard {
        &self.inner
    }

    /// Computes on this shard's threads.
    pub fn install<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.pool.install(work)
    }

    pub fn samples(&self, samples: &PyReadonlyArray1<'_, u64>) -> PyResult<Vec<usize>> {
        let samples: Vec<usize> = samples.as_array().iter().map(|&i| i as usize).collect();
        let n_samples = self.inner.n_samples();
        match samples.iter().find(|&&i| i >= n_samples) {
            Some(i) => Err(PyValueError::new_err(format!("sample {i} of {n_samples}"))),
            None => Ok(samples),
        }
    }

    fn columns_checked(&self, start: usize, stop: usize) -> PyResult<Range<usize>> {
        let aligned = start.is_multiple_of(argwhy_cluster::Shard::COLUMNS);
        if aligned && start <= stop && stop <= self.inner.n_samples() {
            return Ok(start..stop);
        }
        Err(PyValueError::new_err(format!("columns {start}:{stop} of {}", self.inner.n_samples())))
    }
}

/// Vectors of so many numbers, at least one.
fn vectors(v: &Bound<'_, PyAny>, n_columns: usize) -> PyResult<Array2<f64>> {
    let v = matrix("v", v)?.values;
    if v.ncols() == n_columns && v.nrows() > 0 {
        return Ok(v);
    }
    Err(PyValueError::new_err(format!("vectors of {} numbers, not {n_columns}", v.ncols())))
}

#[pymethods]
impl Shard {
    /// `data` are signals, of which `rows` are the samples; or the features themselves without.
    #[new]
    #[pyo3(signature = (job, data, rows=None, threads=None))]
    fn new(
        py: Python<'_>,
        job: &str,
        data: &Bound<'_, PyAny>,
        rows: Option<PyReadonlyArray1<'_, u64>>,
        threads: Option<usize>,
    ) -> PyResult<Self> {
        let wrong = |why: serde_json::Error| PyValueError::new_err(format!("job: {why}"));
        let job: Job = serde_json::from_str(job).map_err(wrong)?;
        let data = matrix("data", data)?.values;
        let rows: Option<Vec<usize>> =
            rows.map(|rows| rows.as_array().iter().map(|&row| row as usize).collect());
        let pool = thread_pool(threads).map_err(exception)?;
        let inner = detached(py, || {
            let made = pool.install(|| match rows {
                Some(rows) => argwhy_cluster::Shard::from_signals(&job, data.view(), &rows),
                None => argwhy_cluster::Shard::new(&job, data.view()),
            });
            made.map_err(exception)
        })?;
        Ok(Self { inner, pool })
    }

    #[getter]
    fn n_samples(&self) -> usize {
        self.inner.n_samples()
    }

    #[getter]
    fn n_parts(&self) -> usize {
        self.inner.n_parts()
    }

    /// One part of v·K: the first sample it gives anything to, and what it gives to those from
    /// there on.
    fn part<'py>(
        &self,
        py: Python<'py>,
        part: usize,
        exact: bool,
        v: &Bound<'py, PyAny>,
    ) -> PyResult<(usize, Bound<'py, PyArray2<f64>>)> {
        if part >= self.inner.n_parts() {
            let why = format!("part {part} of {}", self.inner.n_parts());
            return Err(PyValueError::new_err(why));
        }
        let v = vectors(v, self.inner.n_samples())?;
        let share = self.run(py, || self.inner.part(part, exact, v.view()))?.map_err(exception)?;
        Ok((share.first, PyArray2::from_owned_array(py, share.values)))
    }

    /// κ between samples and the columns from `start` to `stop`, in the precision it is computed
    /// in.
    fn rows<'py>(
        &self,
        py: Python<'py>,
        samples: PyReadonlyArray1<'py, u64>,
        start: usize,
        stop: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (samples, columns) = (self.samples(&samples)?, self.columns_checked(start, stop)?);
        let found = self.run(py, || self.inner.rows(&samples, columns))?.map_err(exception)?;
        if self.inner.is_single() {
            // Nothing is lost: that is what they were before they were widened.
            let single = found.mapv(|value| value as f32);
            return Ok(PyArray2::from_owned_array(py, single).into_any());
        }
        Ok(PyArray2::from_owned_array(py, found).into_any())
    }

    /// v·K[samples, start:stop].
    fn columns<'py>(
        &self,
        py: Python<'py>,
        samples: PyReadonlyArray1<'py, u64>,
        exact: bool,
        v: &Bound<'py, PyAny>,
        start: usize,
        stop: usize,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let (samples, columns) = (self.samples(&samples)?, self.columns_checked(start, stop)?);
        let v = vectors(v, samples.len())?;
        let found = self.run(py, || self.inner.columns(&samples, exact, v.view(), columns))?;
        let found = found.map_err(exception)?;
        Ok(PyArray2::from_owned_array(py, found))
    }

    /// A block of samples, solved: the answer to what a solver asked, both in its own words.
    fn block<'py>(&self, py: Python<'py>, task: PyBackedBytes) -> PyResult<Bound<'py, PyBytes>> {
        let answer = self.run(py, || self.inner.block(&task))?.map_err(exception)?;
        Ok(PyBytes::new(py, &answer))
    }
}

/// Parts that workers share a product of `n_samples` in, and columns that are computed together.
#[pyfunction]
pub fn cluster_layout(n_samples: usize) -> (usize, usize) {
    let n_parts = HostOperator::n_parts(n_samples);
    (n_parts, argwhy_cluster::Shard::COLUMNS)
}

/// total[:, first:] += values.
#[pyfunction]
pub fn add_part(
    total: &Bound<'_, PyArray2<f64>>,
    first: usize,
    values: &Bound<'_, PyArray2<f64>>,
) -> PyResult<()> {
    let (values, mut total) = (values.try_readonly()?, total.try_readwrite()?);
    let (values, mut total) = (values.as_array(), total.as_array_mut());
    if first > total.ncols() || values.dim() != (total.nrows(), total.ncols() - first) {
        return Err(PyValueError::new_err("a part of another product"));
    }
    let mut to = total.slice_mut(ndarray::s![.., first..]);
    to += &values;
    Ok(())
}

/// Samples that the cost of a pair is measured on: so many that their features are in no core's own
/// cache, as those of a fit that needs a cluster are not.
const MEASURED: usize = 12_000;

/// Multiplies `times` times on one thread, for whoever looks at the clock; pairs of samples that a
/// product has.
#[pyfunction]
pub fn multiply_pairs(
    py: Python<'_>,
    n_features: usize,
    n_vectors: usize,
    exact: bool,
    times: usize,
) -> PyResult<usize> {
    let wave = |i: usize, j: usize| ((i * 7 + j * 13) as f64 * 0.618).sin();
    let features = Array2::from_shape_fn((MEASURED, n_features), |(i, j)| wave(i, j));
    let v = Array2::from_shape_fn((n_vectors, MEASURED), |(i, j)| wave(i, j));
    let kernel = Kernel::Rbf { gamma: 1.0 / n_features as f64 };
    let (precision, kind) = (Precision::F32, OperatorKind::Tiled);
    let pool = thread_pool(Some(1)).map_err(exception)?;
    detached(py, || {
        let operator =
            HostOperator::new(features.view(), kernel, precision, kind).map_err(exception)?;
        let operator = if exact { operator.exact_host() } else { &operator };
        let mut out = Array2::zeros(v.dim());
        for _ in 0..times {
            pool.install(|| operator.apply(v.view(), out.view_mut())).map_err(exception)?;
        }
        let blocks = MEASURED.div_ceil(HostOperator::COLUMNS);
        Ok(blocks * (blocks + 1) / 2 * HostOperator::COLUMNS.pow(2))
    })
}
