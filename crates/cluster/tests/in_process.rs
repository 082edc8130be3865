//! Workers of this process: what a backend asks of them has the bits of one machine.

use argwhy_cluster::{ClusterBackend, Job, Machines, Opening, Shard};
use argwhy_core::backend::{Backend, Host, Origin, Storage, WithTrends};
use argwhy_core::features::{FeatureMap, FeatureSettings};
use argwhy_core::operator::{KernelOperator, OperatorKind, Precision};
use argwhy_core::problem::Problem;
use argwhy_core::solver::sso::{self, BlockSize, Initialization};
use argwhy_core::solver::{Ignore, Observer, SsoSettings, Status};
use argwhy_core::{DecisionSet, Error, Kernel};
use ndarray::{Array2, ArrayView2, ArrayViewMut2, s};
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Workers that read the signals themselves, and are asked in turn.
#[derive(Debug)]
struct Workers {
    signals: Array2<f64>,
    count: usize,
    gpus: bool,
    open: Mutex<Vec<Opened>>,
    n_blocks: AtomicUsize,
}

#[derive(Debug, Default)]
struct Opened(Option<Vec<Held>>);

struct Held(Shard);

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Held")
    }
}

impl Workers {
    fn new(signals: &Array2<f64>, count: usize) -> Arc<Self> {
        Arc::new(Self::of(signals, count, false))
    }

    fn with_gpus(signals: &Array2<f64>, count: usize) -> Arc<Self> {
        Arc::new(Self::of(signals, count, true))
    }

    fn of(signals: &Array2<f64>, count: usize, gpus: bool) -> Self {
        let (open, n_blocks) = (Mutex::default(), AtomicUsize::new(0));
        Self { signals: signals.clone(), count, gpus, open, n_blocks }
    }

    fn n_open(&self) -> usize {
        self.open.lock().unwrap().iter().filter(|opened| opened.0.is_some()).count()
    }

    fn with<T>(&self, matrix: u64, call: usize, work: impl FnOnce(&Shard) -> T) -> T {
        let open = self.open.lock().unwrap();
        let shards = open[matrix as usize].0.as_ref().unwrap();
        work(&shards[call % self.count].0)
    }
}

impl Machines for Workers {
    fn name(&self) -> &'static str {
        "ray"
    }

    fn n_cores(&self) -> usize {
        self.count
    }

    fn have_gpus(&self) -> bool {
        self.gpus
    }

    fn open(&self, opening: Opening<'_>) -> Result<u64, String> {
        // As JSON, the way a message has it.
        let job = serde_json::to_string(opening.job).unwrap();
        let job: Job = serde_json::from_str(&job).unwrap();
        let shard = || Shard::from_signals(&job, self.signals.view(), opening.rows).map(Held);
        let shards: Result<Vec<Held>, Error> = (0..self.count).map(|_| shard()).collect();
        let mut open = self.open.lock().unwrap();
        open.push(Opened(Some(shards.map_err(|error| error.to_string())?)));
        Ok(open.len() as u64 - 1)
    }

    fn product(
        &self,
        matrix: u64,
        exact: bool,
        v: ArrayView2<'_, f64>,
        mut out: ArrayViewMut2<'_, f64>,
    ) -> Result<(), String> {
        out.fill(0.0);
        let n_parts = self.with(matrix, 0, Shard::n_parts);
        for part in 0..n_parts {
            let share = self.with(matrix, part, |shard| shard.part(part, exact, v).unwrap());
            let mut to = out.slice_mut(s![.., share.first..]);
            to += &share.values;
        }
        Ok(())
    }

    fn rows(
        &self,
        matrix: u64,
        samples: &[usize],
        columns: Range<usize>,
        out: &mut [f64],
    ) -> Result<(), String> {
        let found = self.with(matrix, 1, |shard| shard.rows(samples, columns).unwrap());
        out.iter_mut().zip(&found).for_each(|(out, value)| *out = *value);
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
        let n = out.ncols();
        for (call, from) in (0..n).step_by(2 * Shard::COLUMNS).enumerate() {
            let columns = from..(from + 2 * Shard::COLUMNS).min(n);
            let found = self.with(matrix, call, |shard| {
                shard.columns(samples, exact, v, columns.clone()).unwrap()
            });
            let mut to = out.slice_mut(s![.., columns]);
            to += &found;
        }
        Ok(())
    }

    fn solve_blocks(&self) -> bool {
        true
    }

    fn blocks(
        &self,
        matrix: u64,
        tasks: Vec<Vec<u8>>,
        stops: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Vec<Vec<u8>>>, String> {
        let mut answers = Vec::new();
        for (call, task) in tasks.iter().enumerate() {
            if stops() {
                return Ok(None);
            }
            self.n_blocks.fetch_add(1, Ordering::SeqCst);
            let answer = self.with(matrix, call, |shard| shard.block(task));
            answers.push(answer.map_err(|error| error.to_string())?);
        }
        Ok(Some(answers))
    }

    fn close(&self, matrix: u64) {
        self.open.lock().unwrap()[matrix as usize].0 = None;
    }
}

fn wave(rows: usize, columns: usize) -> Array2<f64> {
    Array2::from_shape_fn((rows, columns), |(i, j)| ((i * (2 * j + 3)) as f64 * 0.37).sin())
}

fn storage() -> Storage {
    Storage::new(OperatorKind::Tiled, Precision::F32)
}

#[test]
fn every_answer_has_the_bits_of_one_machine_for_any_number_of_workers() {
    let signals = wave(1500, 3);
    let map = FeatureMap::fit(FeatureSettings::default(), signals.view()).unwrap();
    let rows: Vec<usize> = (0..1500).filter(|row| row % 7 > 0).rev().collect();
    let features = map.transform(signals.select(ndarray::Axis(0), &rows).view()).unwrap();
    let (n, kernel) = (rows.len(), Kernel::Matern52 { gamma: 0.1 });
    let (v, some) = (wave(3, n), [5, 900, 17, 18, 19, 400, 401, 3, 1200]);
    let here = Host.operator(features.view(), &kernel, storage()).unwrap();
    // So few samples stay on cores, GPUs or not.
    for (n_workers, gpus) in [(1, false), (2, true), (5, false)] {
        let workers = if gpus { Workers::with_gpus } else { Workers::new };
        let workers = workers(&signals, n_workers);
        let backend = ClusterBackend::new(workers.clone());
        let origin = Origin { map: &map, rows: &rows };
        let there = backend.operator_from(origin, features.view(), &kernel, storage()).unwrap();
        assert_eq!(workers.n_open(), 1);
        let pairs: [[&dyn KernelOperator; 2]; 2] =
            [[here.as_ref(), there.as_ref()], [here.exact(), there.exact()]];
        for both in pairs {
            assert_eq!(both[0].is_exact(), both[1].is_exact());
            let answers = both.map(|operator| {
                let mut product = Array2::zeros(v.dim());
                operator.apply(v.view(), product.view_mut()).unwrap();
                let mut panel = vec![0.0; some.len() * n];
                operator.rows_into(&some, 0..n, &mut panel).unwrap();
                let mut block = vec![0.0; some.len() * some.len()];
                operator.block_into(&some, &mut block).unwrap();
                let mut columns = v.clone();
                let few = v.slice(s![.., ..some.len()]);
                operator.add_columns(&some, few.to_owned().view(), columns.view_mut()).unwrap();
                (product, panel, block, columns, operator.diagonal().unwrap())
            });
            assert!(answers[0] == answers[1], "{n_workers} workers");
        }
        drop(there);
        assert_eq!(workers.n_open(), 0, "what is dropped is closed");
    }
}

/// With a trend, which the workers' matrix has not.
#[test]
fn blocks_that_workers_solve_have_the_bits_of_one_machine() {
    let signals = wave(300, 3);
    let map = FeatureMap::fit(FeatureSettings::default(), signals.view()).unwrap();
    let rows: Vec<usize> = (0..300).collect();
    let features = map.transform(signals.view()).unwrap();
    let decisions = wave(300, 2).mapv(|u| u.clamp(-0.5, 0.5));
    let set = DecisionSet::bounds(2, -0.5, 0.5).unwrap();
    let problem = Problem::new(decisions.view(), set, 1e-4).unwrap();
    let settings = SsoSettings {
        block: BlockSize::Count(40),
        concurrent_blocks: 4,
        init: Initialization::PaperWarmUp,
        max_iterations: 5,
        ..SsoSettings::default()
    };
    let affine = Kernel::Polynomial { degree: 1, gamma: 0.3, offset: 0.1 };
    let kernel = Kernel::Sum { terms: vec![Kernel::Matern52 { gamma: 0.1 }, affine] };
    let fit = |backend: &dyn Backend, observer: &mut dyn Observer| {
        let origin = Origin { map: &map, rows: &rows };
        let operator = WithTrends(backend);
        let operator = operator.operator_from(origin, features.view(), &kernel, storage()).unwrap();
        sso::solve(&problem, operator.as_ref(), &settings, 0, observer).unwrap()
    };
    let here = fit(&Host, &mut Ignore);
    assert_eq!(here.status, Status::MaxIterations);
    for count in [1, 3] {
        let workers = Workers::new(&signals, count);
        let there = fit(&ClusterBackend::new(workers.clone()), &mut Ignore);
        assert_eq!(here.certified.coefficients, there.certified.coefficients, "{count} workers");
        // Two parts of the warm-up, and five times four blocks.
        assert_eq!(workers.n_blocks.load(Ordering::SeqCst), 22);
    }
    let workers = Workers::new(&signals, 2);
    let stopped = fit(&ClusterBackend::new(workers.clone()), &mut After(12));
    assert_eq!(stopped.status, Status::Interrupted);
    assert!(workers.n_blocks.load(Ordering::SeqCst) < 22);
}

/// Stops when it has been asked so often.
struct After(usize);

impl Observer for After {
    fn poll(&mut self) -> ControlFlow<()> {
        self.0 = self.0.saturating_sub(1);
        if self.0 == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Where there is a GPU: what workers compute on it is the product, in each precision.
#[test]
fn parts_on_gpus_are_the_product() {
    if argwhy_cuda::Device::new(0).is_err() {
        return;
    }
    let n = 20_000;
    let signals = wave(n, 5);
    let map = FeatureMap::fit(FeatureSettings::default(), signals.view()).unwrap();
    let rows: Vec<usize> = (0..n).collect();
    let features = map.transform(signals.view()).unwrap();
    let (v, some) = (wave(3, n), [5, 19_999, 17, 18, 400, 401, 3, 1200]);
    let few = v.slice(s![.., ..some.len()]).to_owned();
    for kernel in [Kernel::Rbf { gamma: 0.05 }, Kernel::Matern52 { gamma: 0.1 }] {
        let here = Host.operator(features.view(), &kernel, storage()).unwrap();
        let mut bits: Vec<[Array2<f64>; 2]> = Vec::new();
        for n_workers in [1, 3] {
            let backend = ClusterBackend::new(Workers::with_gpus(&signals, n_workers));
            let origin = Origin { map: &map, rows: &rows };
            let there = backend.operator_from(origin, features.view(), &kernel, storage()).unwrap();
            let [mut working, mut exact, mut expected] = [(); 3].map(|()| Array2::zeros(v.dim()));
            there.apply(v.view(), working.view_mut()).unwrap();
            there.exact().apply(v.view(), exact.view_mut()).unwrap();
            here.exact().apply(v.view(), expected.view_mut()).unwrap();
            let largest = expected.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
            let off = |found: &Array2<f64>| {
                let off = found.iter().zip(&expected).map(|(a, b)| (a - b).abs());
                off.fold(0.0, f64::max) / largest
            };
            assert!(off(&working) < 1e-5 && off(&working) > 1e-12, "{}", off(&working));
            assert!(off(&exact) < 1e-11, "{}", off(&exact));
            let (own, theirs) = (there.rounding().unwrap(), here.rounding().unwrap());
            assert!(own.iter().zip(&theirs).all(|(own, theirs)| own >= theirs));
            let answers = [here.as_ref(), there.as_ref()].map(|operator| {
                let mut panel = vec![0.0; some.len() * n];
                operator.rows_into(&some, 0..n, &mut panel).unwrap();
                let mut columns = v.clone();
                operator.exact().add_columns(&some, few.view(), columns.view_mut()).unwrap();
                panel.into_iter().chain(columns).collect::<Vec<f64>>()
            });
            let pairs = answers[0].iter().zip(&answers[1]);
            assert!(pairs.fold(0.0, |m: f64, (a, b)| m.max((a - b).abs())) < 1e-5);
            bits.push([working, exact]);
            // By another thread than those that computed, and what comes next has to work.
            std::thread::scope(|scope| {
                scope.spawn(move || drop(there));
            });
        }
        assert!(bits[0] == bits[1], "the number of workers changes bits");
    }
}

#[test]
fn a_worker_with_other_data_says_so() {
    let signals = wave(300, 3);
    let map = FeatureMap::fit(FeatureSettings::default(), signals.view()).unwrap();
    let features = map.transform(signals.view()).unwrap();
    let rows: Vec<usize> = (0..300).collect();
    let refused = |theirs: &Array2<f64>| {
        let backend = ClusterBackend::new(Workers::new(theirs, 2));
        let origin = Origin { map: &map, rows: &rows };
        let opened = backend.operator_from(origin, features.view(), &Kernel::Linear, storage());
        opened.err().unwrap().to_string()
    };
    let mut moved = signals.clone();
    moved[[299, 2]] += 1e-9;
    let said = refused(&moved);
    assert!(said.contains("300 samples were read here that are not the 300"), "{said}");
    let said = refused(&signals.slice(s![..200, ..]).to_owned());
    assert!(said.contains("the data here has 200 rows"), "{said}");
}

#[test]
fn only_what_messages_can_carry_is_offered() {
    struct Own;
    impl argwhy_core::kernel::CustomKernel for Own {
        fn name(&self) -> &'static str {
            "own"
        }
        fn evaluate(&self, a: &[f64], b: &[f64]) -> f64 {
            a[0] * b[0]
        }
    }
    let backend = ClusterBackend::new(Workers::new(&wave(10, 1), 1));
    let stored = Storage::new(OperatorKind::Stored, Precision::F32);
    assert!(backend.offers(&Kernel::Linear, 10, 1, storage()));
    assert!(!backend.offers(&Kernel::Linear, 10, 1, stored));
    assert!(!backend.offers(&Kernel::custom(Own), 10, 1, storage()));
}
