//! What every block step must do, on random problems, rules, starts and block sizes.

#![allow(clippy::unwrap_used, reason = "tests")]

use argwhy_core::operator::{HostOperator, OperatorKind, Precision};
use argwhy_core::problem::Problem;
use argwhy_core::solver::sso::{self, BlockSize, Initialization, Selection};
use argwhy_core::solver::{Ignore, Iteration, Observer, SsoSettings, Status};
use argwhy_core::{DecisionSet, Error, Kernel};
use ndarray::Array2;
use proptest::prelude::*;
use std::ops::ControlFlow;

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
        init in start(), seed in 0_u64..1000
    ) {
        let (problem, operator) = setup(n, dim, 10_f64.powf(log_k), phase, limit);
        let settings = SsoSettings {
            tol: 1e-10, max_iterations: 30, block: BlockSize::Share(share), selection, init,
            ..SsoSettings::default()
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
