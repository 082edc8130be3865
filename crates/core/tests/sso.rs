//! What every block step must do, on random problems, rules, starts and block sizes.

#![allow(clippy::unwrap_used, reason = "tests")]

use argwhy_core::backend::{Backend, Host, Storage, WithTrends};
use argwhy_core::decision_set::{BoxLimits, SampleSets};
use argwhy_core::operator::{
    BlockMachines, BlockTask, HostOperator, KernelOperator, OperatorKind, Precision,
};
use argwhy_core::problem::Problem;
use argwhy_core::qp::Metric;
use argwhy_core::solver::sso::{self, BlockSize, Initialization, Selection};
use argwhy_core::solver::{
    Ignore, Iteration, NewtonSettings, Observer, SsoSettings, Status, newton,
};
use argwhy_core::{Constraints, DecisionSet, Error, Kernel};
use ndarray::{Array2, Array3, ArrayView2, ArrayViewMut2, array};
use proptest::prelude::*;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

struct Record(Vec<Iteration>);

impl Observer for Record {
    fn on_iteration(&mut self, iteration: &Iteration) -> ControlFlow<()> {
        self.0.push(*iteration);
        ControlFlow::Continue(())
    }
}

fn setup(n: usize, dim: usize, k: f64, seed: f64, limit: f64) -> (Problem, HostOperator) {
    let wave = |rows: usize, columns: usize, phase: f64| {
        Array2::from_shape_fn((rows, columns), |(i, j)| {
            (((i * 5 + j * 11) as f64) * 0.77 + phase).sin() + 0.3 * ((i * i) as f64 * 0.13).cos()
        })
    };
    let decisions = wave(n, dim, seed).mapv(|u| u.clamp(-limit, limit));
    let set = DecisionSet::bounds(dim, -limit, limit).unwrap();
    let features = wave(n, 3, 2.0 * seed + 0.5);
    let kernel = Kernel::Rbf { gamma: 0.4 };
    let operator =
        HostOperator::new(features.view(), kernel, Precision::F64, OperatorKind::Tiled).unwrap();
    let operator = operator.with_blocks(OperatorKind::Stored);
    (Problem::new(decisions.view(), set, k).unwrap(), operator)
}

fn rule() -> impl Strategy<Value = Selection> {
    prop_oneof![
        Just(Selection::Violation),
        Just(Selection::Paper),
        Just(Selection::Cyclic),
        Just(Selection::Random)
    ]
}

fn start() -> impl Strategy<Value = Initialization> {
    prop_oneof![
        Just(Initialization::WarmUp),
        Just(Initialization::PaperWarmUp),
        Just(Initialization::Expert),
        Just(Initialization::Zero)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn no_block_step_raises_the_objective(
        n in 2_usize..60, dim in 1_usize..4, log_k in -5.0..0.0_f64, phase in 0.0..6.0_f64,
        limit in 0.2..2.0_f64, share in 0.05..1.0_f64, selection in rule(),
        init in start(), at_once in 1_usize..5, seed in 0_u64..1000
    ) {
        let (problem, operator) = setup(n, dim, 10_f64.powf(log_k), phase, limit);
        let settings = SsoSettings {
            tol: 1e-10, max_iterations: 30, block: BlockSize::Share(share / at_once as f64),
            concurrent_blocks: at_once.min(n), selection, init, ..SsoSettings::default()
        };
        let mut record = Record(Vec::new());
        let outcome =
            sso::solve(&problem, &operator, &settings, seed, &mut record).unwrap();
        for pair in record.0.windows(2) {
            let (before, after) = (pair[0].objective, pair[1].objective);
            let allowed = before + 1e-12 * before.abs().max(1.0);
            prop_assert!(after <= allowed, "{before} rose to {after}");
        }
        prop_assert!(outcome.certified.certificate.gap >= 0.0);
        prop_assert!(outcome.certified.responses.iter().all(|x| (-limit..=limit).contains(x)));
    }
}

#[test]
fn one_coordinate_at_a_time_reaches_the_optimum() {
    let (problem, operator) = setup(25, 2, 0.05, 1.0, 0.6);
    // Not the paper's rule: with one coordinate it has no room for its random part, and never
    // visits samples on a limit.
    for selection in [Selection::Violation, Selection::Cyclic, Selection::Random] {
        let settings = SsoSettings {
            tol: 1e-8,
            max_iterations: 100_000,
            block: BlockSize::Count(1),
            selection,
            ..SsoSettings::default()
        };
        let outcome = sso::solve(&problem, &operator, &settings, 0, &mut Ignore).unwrap();
        assert_eq!(outcome.status, Status::Solved, "{selection:?}");
    }
}

#[test]
fn warm_up_never_starts_above_the_expert() {
    let (problem, operator) = setup(60, 2, 1e-3, 0.3, 0.7);
    let first = |init, warm_up| {
        let settings = SsoSettings {
            init,
            warm_up: Some(warm_up),
            max_iterations: 0,
            ..SsoSettings::default()
        };
        let mut record = Record(Vec::new());
        let outcome = sso::solve(&problem, &operator, &settings, 0, &mut record).unwrap();
        assert!(matches!(outcome.status, Status::MaxIterations | Status::Solved));
        record.0[0].objective
    };
    let expert = first(Initialization::Expert, 1);
    for parts in [1, 2, 7, 60] {
        assert!(first(Initialization::WarmUp, parts) <= expert, "{parts} parts");
    }
    assert!(first(Initialization::Zero, 1) > expert);
}

#[test]
fn the_same_seed_gives_the_same_bits_on_any_number_of_threads() {
    let (problem, operator) = setup(300, 2, 1e-4, 0.3, 0.7);
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let settings = SsoSettings { max_iterations: 5, tol: 1e-14, ..SsoSettings::default() };
        pool.install(|| sso::solve(&problem, &operator, &settings, 9, &mut Ignore).unwrap())
            .certified
            .coefficients
    };
    assert_eq!(run(1), run(3));
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    let (problem, operator) = setup(20, 1, 1e-2, 0.0, 1.0);
    let with = |settings: SsoSettings| {
        sso::solve(&problem, &operator, &settings, 0, &mut Ignore).unwrap_err()
    };
    let default = SsoSettings::default;
    for block in [
        BlockSize::Count(0),
        BlockSize::Count(21),
        BlockSize::Share(0.0),
        BlockSize::Share(1.5),
        BlockSize::Share(f64::NAN),
    ] {
        let error = with(SsoSettings { block, ..default() });
        assert!(matches!(error, Error::Setting { name: "block", .. }), "{error}");
    }
    for warm_up in [0, 21] {
        let error = with(SsoSettings { warm_up: Some(warm_up), ..default() });
        assert!(matches!(error, Error::Setting { name: "warm-up", .. }), "{error}");
    }
}

/// Machines of this process that each hold the whole matrix, and are asked by messages.
struct Workers {
    local: HostOperator,
    tasks: AtomicUsize,
}

impl BlockMachines for &Workers {
    fn solve(
        &self,
        tasks: Vec<BlockTask>,
        stops: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Vec<Vec<u8>>>, Error> {
        self.tasks.fetch_add(tasks.len(), SeqCst);
        // In another order than they were asked for.
        let mut answers = vec![Vec::new(); tasks.len()];
        for (answer, task) in answers.iter_mut().zip(tasks).rev() {
            let task = BlockTask::from_bytes(&task.to_bytes())?;
            *answer = sso::answer(&self.local, &task)?;
        }
        Ok((!stops()).then_some(answers))
    }
}

impl KernelOperator for Workers {
    fn n_samples(&self) -> usize {
        KernelOperator::n_samples(&self.local)
    }
    fn diagonal(&self) -> Result<Vec<f64>, Error> {
        self.local.diagonal()
    }
    fn rounding(&self) -> Result<Vec<f64>, Error> {
        self.local.rounding()
    }
    fn apply(&self, v: ArrayView2<'_, f64>, out: ArrayViewMut2<'_, f64>) -> Result<(), Error> {
        self.local.apply(v, out)
    }
    fn exact(&self) -> &dyn KernelOperator {
        self.local.exact()
    }
    fn is_exact(&self) -> bool {
        self.local.is_exact()
    }
    fn rows_into(&self, s: &[usize], c: Range<usize>, out: &mut [f64]) -> Result<(), Error> {
        self.local.rows_into(s, c, out)
    }
    fn block_into(&self, samples: &[usize], out: &mut [f64]) -> Result<(), Error> {
        self.local.block_into(samples, out)
    }
    fn add_columns(
        &self,
        samples: &[usize],
        v: ArrayView2<'_, f64>,
        out: ArrayViewMut2<'_, f64>,
    ) -> Result<(), Error> {
        self.local.add_columns(samples, v, out)
    }
    fn restrict(&self, samples: &[usize]) -> Result<Box<dyn KernelOperator>, Error> {
        self.local.restrict(samples)
    }
    fn block_machines(&self) -> Option<Box<dyn BlockMachines + '_>> {
        Some(Box::new(self))
    }
}

/// Hands out the machines above, where a fit would make its operator.
#[derive(Debug)]
struct Elsewhere;

impl Backend for Elsewhere {
    fn name(&self) -> &'static str {
        "elsewhere"
    }
    fn offers(&self, kernel: &Kernel, n: usize, d: usize, storage: Storage) -> bool {
        Host.offers(kernel, n, d, storage)
    }
    fn operator_bytes(&self, _: &Kernel, _: usize, _: usize, _: Storage) -> u64 {
        0
    }
    fn product_bytes(&self, _: usize, _: usize) -> u64 {
        0
    }
    fn operator(
        &self,
        features: ArrayView2<'_, f64>,
        kernel: &Kernel,
        storage: Storage,
    ) -> Result<Box<dyn KernelOperator>, Error> {
        let Storage { kind, precision, .. } = storage;
        let local = HostOperator::new(features, kernel.clone(), precision, kind)?;
        Ok(Box::new(Workers { local, tasks: AtomicUsize::new(0) }))
    }
}

/// Boxes, weights, general limits and Θ, with a trend beside the kernel and without.
#[test]
fn blocks_that_others_solve_have_the_same_bits() {
    let n = 120;
    let wave = |columns: usize, phase: f64| {
        Array2::from_shape_fn((n, columns), |(i, j)| ((i * 7 + j * 5) as f64 * 0.31 + phase).sin())
    };
    let (features, decisions) = (wave(3, 0.2), wave(2, 1.1) * 0.4);
    let weights: Vec<f64> = (0..n).map(|i| 0.5 + (i % 5) as f64).collect();
    let boxes = || {
        let set = DecisionSet::bounds(2, -0.3, f64::INFINITY).unwrap();
        let inside = decisions.mapv(|u| u.max(-0.3));
        Problem::new(inside.view(), set, 1e-3).unwrap()
    };
    let polyhedra = |theta: Option<&Array2<f64>>| {
        let limit =
            Array2::from_shape_fn((n, 1), |(i, _)| decisions.row(i).sum() + 0.2 * ((i % 3) as f64));
        let given = Constraints::new().with_inequalities(Array3::ones((1, 1, 2)), limit).unwrap();
        let free = BoxLimits::new(vec![f64::NEG_INFINITY; 2], vec![f64::INFINITY; 2]).unwrap();
        let sets = SampleSets::new(&free, Some(&given), n, |i| i).unwrap();
        let problem = Problem::new(decisions.view(), sets, 1e-3).unwrap();
        match theta {
            None => problem,
            Some(theta) => problem.with_theta(Metric::new(theta.view()).unwrap()),
        }
    };
    let theta = array![[2.0, 0.4], [0.4, 1.5]];
    let problems = [
        ("boxes", boxes()),
        ("weights", boxes().with_weights(&weights).unwrap()),
        ("polyhedra", polyhedra(None)),
        ("theta", polyhedra(Some(&theta))),
    ];
    let plain = Kernel::Rbf { gamma: 0.4 };
    let affine = Kernel::Polynomial { degree: 1, gamma: 0.3, offset: 0.1 };
    let trend = Kernel::Sum { terms: vec![plain.clone(), affine] };
    let storage = Storage::new(OperatorKind::Tiled, Precision::F32);
    for (name, problem) in problems {
        for (kernel, init) in
            [(&plain, Initialization::PaperWarmUp), (&trend, Initialization::WarmUp)]
        {
            let settings = SsoSettings {
                tol: 1e-7,
                block: BlockSize::Count(25),
                concurrent_blocks: 3,
                max_iterations: 300,
                init,
                ..SsoSettings::default()
            };
            let [here, there] = [&Host as &dyn Backend, &Elsewhere].map(|backend| {
                let operator =
                    WithTrends(backend).operator(features.view(), kernel, storage).unwrap();
                sso::solve(&problem, operator.as_ref(), &settings, 3, &mut Ignore).unwrap()
            });
            assert_eq!(here.status, Status::Solved, "{name}");
            assert_eq!(here.certified.coefficients, there.certified.coefficients, "{name}");
            assert_eq!(here.kernel_products, there.kernel_products, "{name}");
            let newton = NewtonSettings { tol: 1e-10, ..NewtonSettings::default() };
            let operator = WithTrends(&Host).operator(features.view(), kernel, storage).unwrap();
            let best = newton::solve(&problem, operator.as_ref(), &newton, 0, &mut Ignore).unwrap();
            let (own, best) = (here.certified.certificate, best.certified.certificate);
            let off = (own.objective - best.objective).abs() / best.objective.abs();
            assert!(off < 1e-6, "{name}: {off:e}");
        }
    }
}

/// Several blocks take fewer steps than one of them, and no more kernel values than they save.
#[test]
fn several_blocks_need_fewer_steps() {
    let (problem, operator) = setup(400, 2, 1e-4, 0.3, 0.7);
    let steps = |concurrent_blocks| {
        let settings = SsoSettings {
            tol: 1e-6,
            block: BlockSize::Share(0.1),
            concurrent_blocks,
            max_iterations: 10_000,
            ..SsoSettings::default()
        };
        let outcome = sso::solve(&problem, &operator, &settings, 0, &mut Ignore).unwrap();
        assert_eq!(outcome.status, Status::Solved);
        outcome.iterations
    };
    let (one, four) = (steps(1), steps(4));
    assert!(3 * four < 2 * one, "{four} steps of four blocks, {one} of one");
}
