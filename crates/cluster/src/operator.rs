//! A kernel matrix that workers multiply with.

use crate::machines::{Machines, Opening};
use crate::panels::ClusterFactor;
use argwhy_core::Error;
use argwhy_core::operator::{BlockMachines, BlockTask, HostOperator, KernelOperator, RemoteFactor};
use ndarray::{ArrayView2, ArrayViewMut2};
use std::ops::Range;
use std::sync::Arc;

/// K on workers, with the samples here too for what is not worth a message.
pub(crate) struct ClusterOperator {
    held: Arc<Held>,
    /// Whether its products are exact ones.
    is_exact_of: bool,
    exact: Option<Box<ClusterOperator>>,
}

/// A matrix that workers hold until this is dropped.
pub(crate) struct Held {
    pub(crate) machines: Arc<dyn Machines>,
    pub(crate) matrix: u64,
    pub(crate) local: HostOperator,
    /// What exact products may be off by, here and there.
    rounding: Vec<f64>,
    /// Workers' GPUs hold no matrices of some of the samples.
    on_gpus: bool,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.machines.close(self.matrix);
    }
}

impl ClusterOperator {
    pub(crate) fn open(
        machines: Arc<dyn Machines>,
        opening: Opening<'_>,
        local: HostOperator,
        on_gpus: Option<Vec<f64>>,
    ) -> Result<Self, Error> {
        let matrix = machines.open(opening).map_err(|what| failed(machines.as_ref(), what))?;
        let mut rounding = local.rounding()?;
        for (own, theirs) in rounding.iter_mut().zip(on_gpus.iter().flatten()) {
            *own = own.max(*theirs);
        }
        let on_gpus = on_gpus.is_some();
        let held = Arc::new(Held { machines, matrix, local, rounding, on_gpus });
        let twin = || Self { held: Arc::clone(&held), is_exact_of: true, exact: None };
        let exact = (!held.local.is_exact()).then(|| Box::new(twin()));
        Ok(Self { held, is_exact_of: false, exact })
    }

    fn local(&self) -> &HostOperator {
        if self.is_exact_of { self.held.local.exact_host() } else { &self.held.local }
    }

    fn machines(&self) -> &dyn Machines {
        self.held.machines.as_ref()
    }

    fn answered(&self, answer: Result<(), String>) -> Result<(), Error> {
        answer.map_err(|what| failed(self.machines(), what))
    }
}

fn failed(machines: &dyn Machines, what: String) -> Error {
    Error::Backend { backend: machines.name().to_owned(), what }
}

impl KernelOperator for ClusterOperator {
    fn n_samples(&self) -> usize {
        self.local().n_samples()
    }

    fn diagonal(&self) -> Result<Vec<f64>, Error> {
        self.local().diagonal()
    }

    fn rounding(&self) -> Result<Vec<f64>, Error> {
        Ok(self.held.rounding.clone())
    }

    fn apply(&self, v: ArrayView2<'_, f64>, out: ArrayViewMut2<'_, f64>) -> Result<(), Error> {
        self.answered(self.machines().product(self.held.matrix, self.is_exact_of, v, out))
    }

    fn exact(&self) -> &dyn KernelOperator {
        self.exact.as_deref().unwrap_or(self)
    }

    fn is_exact(&self) -> bool {
        self.exact.is_none()
    }

    fn rows_into(
        &self,
        samples: &[usize],
        columns: Range<usize>,
        out: &mut [f64],
    ) -> Result<(), Error> {
        if self.is_exact_of {
            return self.local().rows_into(samples, columns, out);
        }
        self.answered(self.machines().rows(self.held.matrix, samples, columns, out))
    }

    fn block_into(&self, samples: &[usize], out: &mut [f64]) -> Result<(), Error> {
        self.local().block_into(samples, out)
    }

    fn add_columns(
        &self,
        samples: &[usize],
        v: ArrayView2<'_, f64>,
        out: ArrayViewMut2<'_, f64>,
    ) -> Result<(), Error> {
        let (matrix, exact) = (self.held.matrix, self.is_exact_of);
        self.answered(self.machines().add_columns(matrix, exact, samples, v, out))
    }

    fn restrict(&self, samples: &[usize]) -> Result<Box<dyn KernelOperator>, Error> {
        self.local().restrict(samples)
    }

    fn block_machines(&self) -> Option<Box<dyn BlockMachines + '_>> {
        let offered = self.machines().solve_blocks() && !self.held.on_gpus;
        offered.then(|| Box::new(self.held.as_ref()) as Box<dyn BlockMachines>)
    }

    /// On the workers from as many samples on as they say; its rows are those of the working
    /// precision, of the exact matrix too.
    fn remote_factor(
        &self,
        _max_rank: usize,
        decision_dim: usize,
        roots: Option<&[f64]>,
    ) -> Result<Option<Box<dyn RemoteFactor>>, Error> {
        let n_samples = self.n_samples();
        let spread = self.machines().panels().is_some_and(|k| n_samples >= k.spread_from());
        Ok(spread.then(|| Box::new(ClusterFactor::new(&self.held, decision_dim, roots)) as _))
    }
}

impl BlockMachines for &Held {
    fn solve(
        &self,
        tasks: Vec<BlockTask>,
        stops: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Vec<Vec<u8>>>, Error> {
        let count = tasks.len();
        let tasks = tasks.iter().map(BlockTask::to_bytes).collect();
        let answers = self.machines.blocks(self.matrix, tasks, stops);
        let answers = answers.map_err(|what| failed(self.machines.as_ref(), what))?;
        match answers {
            Some(answers) if answers.len() != count => {
                let what = format!("{} answers came to {count} blocks", answers.len());
                Err(failed(self.machines.as_ref(), what))
            }
            other => Ok(other),
        }
    }
}
