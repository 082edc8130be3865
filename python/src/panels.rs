//! Panels of a preconditioner: asked for by the solver of the object that has workers, and held by
//! one of these.

use crate::array::matrix;
use crate::cluster::{PyMachines, Shard, checked, words};
use crate::error::{detached, exception};
use argwhy::core::Error;
use argwhy_cluster::{Branch, PanelKeeper, PanelLayout, Round, SPREAD_FROM};
use ndarray::{Array2, ArrayView1, ArrayView2};
use numpy::{PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2, ToPyArray};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::{Mutex, PoisonError};

impl PyMachines {
    /// Calls a method of the object's `panels`.
    fn panels_do<'py, A>(
        &self,
        py: Python<'py>,
        method: &str,
        arguments: A,
    ) -> Result<Bound<'py, PyAny>, String>
    where
        A: IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>,
    {
        let panels = self.object().bind(py).getattr("panels");
        let answer =
            panels.and_then(|panels| panels.call_method1(method, arguments.into_pyobject(py)?));
        answer.map_err(|error| words(py, &error))
    }

    /// The same, where the answer is a matrix.
    fn panels_give<'py, A>(
        &self,
        py: Python<'py>,
        method: &str,
        arguments: A,
    ) -> Result<Array2<f64>, String>
    where
        A: IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>,
    {
        let answer = self.panels_do(py, method, arguments)?;
        let found = matrix("what the cluster answered", &answer);
        Ok(found.map_err(|error| words(py, &error))?.values)
    }
}

impl PanelKeeper for PyMachines {
    fn spread_from(&self) -> usize {
        self.spread_from()
    }

    fn begin(
        &self,
        matrix: u64,
        roots: Option<&[f64]>,
        given: ArrayView2<'_, f32>,
    ) -> Result<u64, String> {
        Python::attach(|py| {
            let roots = roots.map(|roots| roots.to_pyarray(py));
            let begun = self.panels_do(py, "begin", (matrix, roots, given.to_pyarray(py)))?;
            begun.extract().map_err(|error| words(py, &error))
        })
    }

    fn append(&self, factor: u64, round: &Round, diagonal: &mut [f64]) -> Result<(), String> {
        let found = Python::attach(|py| {
            let pivots = PyArray1::from_iter(py, round.pivots.iter().map(|&i| i as u64));
            let roots = round.roots.to_pyarray(py);
            let weights = round.weights.to_pyarray(py);
            let own = ArrayView2::from_shape((1, diagonal.len()), diagonal).expect("one row");
            let triangle = round.triangle.to_pyarray(py);
            let round = (pivots, roots, weights, triangle);
            self.panels_give(py, "append", (factor, round, own.to_pyarray(py)))
        })?;
        let found = checked(found, (1, diagonal.len()))?;
        diagonal.iter_mut().zip(&found).for_each(|(out, value)| *out = *value);
        Ok(())
    }

    fn gram(&self, factor: u64, signs: ArrayView2<'_, i8>) -> Result<Array2<f64>, String> {
        Python::attach(|py| self.panels_give(py, "gram", (factor, signs.to_pyarray(py))))
    }

    fn gather(&self, factor: u64, marks: ArrayView2<'_, i8>) -> Result<Array2<f32>, String> {
        Python::attach(|py| {
            let answer = self.panels_do(py, "gather", (factor, marks.to_pyarray(py)))?;
            let found: PyResult<PyReadonlyArray2<'_, f32>> = answer.extract();
            Ok(found.map_err(|error| words(py, &error))?.as_array().to_owned())
        })
    }

    fn project(&self, factor: u64, v: ArrayView2<'_, f64>) -> Result<Array2<f64>, String> {
        Python::attach(|py| self.panels_give(py, "project", (factor, v.to_pyarray(py))))
    }

    fn expand(&self, factor: u64, w: ArrayView2<'_, f64>) -> Result<Array2<f64>, String> {
        Python::attach(|py| self.panels_give(py, "expand", (factor, w.to_pyarray(py))))
    }

    fn end(&self, factor: u64) {
        // What cannot be forgotten goes with its worker.
        Python::attach(|py| {
            let _ = self.panels_do(py, "end", (factor,));
        });
    }
}

/// Where each panel of `n_samples` begins, and where the last one ends.
#[pyfunction]
pub fn panel_starts(n_samples: usize) -> Vec<usize> {
    let layout = PanelLayout::new(n_samples);
    let starts = (0..layout.n_panels()).map(|panel| layout.columns(panel).start);
    starts.chain([n_samples]).collect()
}

/// Samples from which on workers keep the preconditioner, unless they are told otherwise.
#[pyfunction]
pub fn spread_from() -> usize {
    SPREAD_FROM
}

/// One worker's panels of a factor.
#[pyclass(frozen, module = "argwhy._argwhy")]
pub struct Panels {
    shard: Py<Shard>,
    inner: Mutex<argwhy_cluster::Panels>,
}

type Sums<'py> = Vec<(u32, usize, Bound<'py, PyArray2<f64>>)>;

impl Panels {
    /// Computes on the shard's threads while the interpreter is free.
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut argwhy_cluster::Panels, &Shard) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let shard = self.shard.get();
        detached(py, || {
            let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            let panels = &mut *inner;
            shard.install(|| work(panels, shard)).map_err(exception)
        })
    }
}

fn sums(py: Python<'_>, branches: Vec<Branch>) -> Sums<'_> {
    let sum =
        |Branch { level, index, values }| (level, index, PyArray2::from_owned_array(py, values));
    branches.into_iter().map(sum).collect()
}

#[pymethods]
impl Panels {
    #[new]
    fn new(shard: Py<Shard>) -> Self {
        let n_samples = shard.get().inner().n_samples();
        Self { shard, inner: Mutex::new(argwhy_cluster::Panels::new(n_samples)) }
    }

    /// Rounds that a panel has behind it; none where it is not here.
    fn n_rounds(&self, panel: usize) -> Option<usize> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).n_rounds(panel)
    }

    /// Forgets all but these.
    #[allow(clippy::needless_pass_by_value)]
    fn retain(&self, panels: Vec<usize>) {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).retain(&panels);
    }

    /// Begins a panel, with rows and √w of its samples.
    fn begin(
        &self,
        py: Python<'_>,
        panel: usize,
        roots: PyReadonlyArray1<'_, f64>,
        given: PyReadonlyArray2<'_, f32>,
    ) -> PyResult<()> {
        let (roots, given) = (roots.as_array().to_vec(), given.as_array());
        self.run(py, |panels, _| panels.begin(panel, &roots, given))
    }

    /// A round more of a panel; the residual diagonal of its samples afterwards.
    fn append<'py>(
        &self,
        py: Python<'py>,
        panel: usize,
        round: (
            PyReadonlyArray1<'py, u64>,
            PyReadonlyArray1<'py, f64>,
            PyReadonlyArray2<'py, f32>,
            PyReadonlyArray1<'py, f64>,
        ),
        diagonal: PyReadonlyArray1<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let (pivots, roots, weights, triangle) = round;
        let round = Round {
            pivots: self.shard.get().samples(&pivots)?,
            roots: roots.as_array().to_vec(),
            weights: weights.as_array().to_owned(),
            triangle: triangle.as_array().to_vec(),
        };
        let mut diagonal = diagonal.as_array().to_vec();
        self.run(py, |panels, shard| panels.append(shard.inner(), panel, &round, &mut diagonal))?;
        Ok(ArrayView1::from(&diagonal).to_pyarray(py))
    }

    /// Σ s_i b_i b_iᵀ for every row of signs: branches of the sum over all panels.
    #[allow(clippy::needless_pass_by_value)]
    fn gram<'py>(
        &self,
        py: Python<'py>,
        panels: Vec<usize>,
        signs: PyReadonlyArray2<'py, i8>,
    ) -> PyResult<Sums<'py>> {
        let signs = signs.as_array();
        Ok(sums(py, self.run(py, |own, _| own.gram(&panels, signs))?))
    }

    /// B at the panels' samples that are marked.
    #[allow(clippy::needless_pass_by_value)]
    fn gather<'py>(
        &self,
        py: Python<'py>,
        panels: Vec<usize>,
        marks: PyReadonlyArray2<'py, i8>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let marks = marks.as_array();
        Ok(PyArray2::from_owned_array(py, self.run(py, |own, _| own.gather(&panels, marks))?))
    }

    /// B v: branches of the sum over all panels.
    #[allow(clippy::needless_pass_by_value)]
    fn project<'py>(
        &self,
        py: Python<'py>,
        panels: Vec<usize>,
        v: PyReadonlyArray2<'py, f64>,
    ) -> PyResult<Sums<'py>> {
        let v = v.as_array();
        Ok(sums(py, self.run(py, |own, _| own.project(&panels, v))?))
    }

    /// Bᵀw over the panels' samples.
    #[allow(clippy::needless_pass_by_value)]
    fn expand<'py>(
        &self,
        py: Python<'py>,
        panels: Vec<usize>,
        w: PyReadonlyArray2<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let w = w.as_array();
        Ok(PyArray2::from_owned_array(py, self.run(py, |own, _| own.expand(&panels, w))?))
    }
}
