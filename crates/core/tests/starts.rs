//! Solvers go on from what others reached: the same optimum, from nearer.

use argwhy_core::decision_set::{DecisionSet, SampleSets};
use argwhy_core::operator::{HostOperator, OperatorKind, Precision};
use argwhy_core::precond::{KeptFactor, Triangle};
use argwhy_core::problem::Problem;
use argwhy_core::solver::{
    Ignore, Iteration, NewtonSettings, Observer, Outcome, SsoSettings, State, Status, path, sso,
    theta,
};
use argwhy_core::{Constraints, Error, Kernel};
use ndarray::{Array2, s};
use std::ops::ControlFlow;
use std::sync::Arc;

const N: usize = 80;

fn operator() -> HostOperator {
    let signals = Array2::from_shape_fn((N, 2), |(i, j)| ((i * (2 * j + 3)) as f64 * 0.37).sin());
    let kernel = Kernel::Rbf { gamma: 0.8 };
    HostOperator::new(signals.view(), kernel, Precision::F32, OperatorKind::Tiled)
        .unwrap()
        .with_blocks(OperatorKind::Stored)
}

/// An expert who minimises uᵀΘu − 2gᵀu with Θ = [4 2; 2 4], the first decision below a limit that
/// changes from sample to sample: without learning Θ it looks inconsistent.
fn problem(weighted: bool) -> Problem {
    let limit = |i: usize| -1.0 + 2.0 * (i * 7 % N) as f64 / N as f64;
    let wish = |i: usize| 1.0 + (i as f64 * 0.37).sin();
    let decisions = Array2::from_shape_fn((N, 2), |(i, j)| {
        let first = (wish(i) / 6.0).min(limit(i));
        if j == 0 { first } else { (wish(i) - 2.0 * first) / 4.0 }
    });
    let upper = Array2::from_shape_fn((N, 2), |(i, j)| if j == 0 { limit(i) } else { 9.0 });
    let given = Constraints::new().with_upper(upper).unwrap();
    let own = DecisionSet::bounds(2, -9.0, 9.0).unwrap();
    let sets = SampleSets::new(own.limits(), Some(&given), N, |i| i).unwrap();
    let problem = Problem::new(decisions.view(), sets, 1e-3).unwrap();
    let weights: Vec<f64> = (0..N).map(|i| 1.0 + (i % 4) as f64).collect();
    if weighted { problem.with_weights(&weights).unwrap() } else { problem }
}

/// Keeps the last state and stops after so many steps.
struct Keep {
    steps: usize,
    last: Option<State>,
}

impl Observer for Keep {
    fn on_iteration(&mut self, iteration: &Iteration) -> ControlFlow<()> {
        if iteration.iteration < self.steps {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }

    fn on_state(&mut self, state: &dyn Fn() -> State) {
        self.last = Some(state());
    }
}

type Solve = fn(&Problem, Option<&State>, &mut dyn Observer) -> Result<Outcome, Error>;

fn newton(
    problem: &Problem,
    start: Option<&State>,
    observer: &mut dyn Observer,
) -> Result<Outcome, Error> {
    let settings = NewtonSettings { tol: 1e-10, ..NewtonSettings::default() };
    let (mut found, k) = (None, [problem.regularization()]);
    path::solve(problem.clone(), &operator(), &k, &settings, 0, start, observer, |_, outcome| {
        found = Some(outcome);
        Ok::<(), Error>(())
    })?;
    Ok(found.unwrap())
}

fn blocks(
    problem: &Problem,
    start: Option<&State>,
    observer: &mut dyn Observer,
) -> Result<Outcome, Error> {
    let settings = SsoSettings { tol: 1e-10, max_iterations: 400, ..SsoSettings::default() };
    sso::solve_from(problem, &operator(), &settings, 0, start, observer)
}

fn learned(
    problem: &Problem,
    start: Option<&State>,
    observer: &mut dyn Observer,
) -> Result<Outcome, Error> {
    let settings = NewtonSettings { tol: 1e-10, ..NewtonSettings::default() };
    theta::solve_from(problem, &operator(), &settings, 0, start, observer)
}

const SOLVERS: [(&str, Solve); 3] = [("newton", newton), ("sso", blocks), ("theta", learned)];

#[test]
fn a_solver_that_was_stopped_goes_on_to_the_same_optimum() {
    for weighted in [false, true] {
        let problem = problem(weighted);
        for (name, solve) in SOLVERS {
            let whole = solve(&problem, None, &mut Ignore).unwrap();
            let mut keep = Keep { steps: 1, last: None };
            let stopped = solve(&problem, None, &mut keep).unwrap();
            assert_ne!(stopped.status, Status::Solved, "{name}");
            let state = keep.last.unwrap();
            assert!(state.coefficients.iter().any(|a| *a != 0.0), "{name}");
            let on = solve(&problem, Some(&state), &mut Ignore).unwrap();
            assert_eq!(on.status, Status::Solved, "{name}");
            let (a, b) = (on.certified.certificate, whole.certified.certificate);
            assert!((a.primal - b.primal).abs() <= 1e-8 * b.primal, "{name}: {a:?} {b:?}");
            assert!(on.iterations < whole.iterations, "{name}");
        }
    }
}

#[test]
fn the_last_state_is_what_was_solved() {
    for weighted in [false, true] {
        let problem = problem(weighted);
        for (name, solve) in SOLVERS {
            let mut keep = Keep { steps: usize::MAX, last: None };
            let whole = solve(&problem, None, &mut keep).unwrap();
            let state = keep.last.unwrap();
            let off = (&state.coefficients - &whole.certified.coefficients).mapv(f64::abs);
            let largest = whole.certified.coefficients.iter().fold(0.0, |m: f64, a| m.max(a.abs()));
            assert!(off.iter().all(|off| *off <= 1e-5 * largest), "{name}");
            let again = solve(&problem, Some(&state), &mut Ignore).unwrap();
            assert!(again.iterations <= 1, "{name}: {}", again.iterations);
        }
    }
}

#[test]
fn a_state_of_another_problem_is_refused() {
    let problem = problem(false);
    let none = || Array2::zeros((2, N));
    let wrong = [
        (State { coefficients: Array2::zeros((2, N - 1)), theta: None }, "2 × 79"),
        (State { coefficients: none() / 0.0, theta: None }, "not all numbers"),
    ];
    for (state, said) in wrong {
        for (name, solve) in SOLVERS {
            let error = solve(&problem, Some(&state), &mut Ignore).unwrap_err();
            assert!(error.to_string().contains(said), "{name}: {error}");
        }
    }
    let state = State { coefficients: none(), theta: Some(Array2::eye(3)) };
    let error = learned(&problem, Some(&state), &mut Ignore).unwrap_err();
    assert!(error.to_string().contains("2 × 2"), "{error}");
}

/// An expert with limits on a third of 900 samples, and how they are multiplied: too many to
/// factorise, by the settings.
fn many(n: usize) -> (Problem, HostOperator) {
    let signal = |i: usize, j: usize| ((i * i * (2 * j + 3)) as f64 * 0.0137).sin();
    let signals = Array2::from_shape_fn((n, 2), |(i, j)| signal(i, j));
    let wish = |i: usize, j: usize| {
        let noise = 0.1 * ((i * (31 + j)) as f64).sin();
        (3.0 * signal(i, 0)).sin() + signal(i, 1) * (j as f64 - 0.5) + noise
    };
    let decisions = Array2::from_shape_fn((n, 2), |(i, j)| wish(i, j).clamp(-0.8, 0.7));
    let set = DecisionSet::bounds(2, -0.8, 0.7).unwrap();
    let kernel = Kernel::Rbf { gamma: 4.0 };
    let kind = OperatorKind::Stored;
    let operator = HostOperator::new(signals.view(), kernel, Precision::F32, kind).unwrap();
    (Problem::new(decisions.view(), set, 3e-5).unwrap(), operator)
}

#[test]
fn a_few_more_rows_take_a_third_of_a_fresh_fits_products() {
    let settings = NewtonSettings { max_rank: Some(150), ..NewtonSettings::default() };
    let solve = |n: usize, start: Option<&State>| {
        let (problem, operator) = many(n);
        let (k, mut found) = ([problem.regularization()], None);
        let each = |_: &Problem, outcome| {
            found = Some(outcome);
            Ok::<(), Error>(())
        };
        path::solve(problem, &operator, &k, &settings, 0, start, &mut Ignore, each).unwrap();
        found.unwrap()
    };
    let before = solve(855, None);
    let mut coefficients = Array2::zeros((2, 900));
    coefficients.slice_mut(s![.., ..855]).assign(&before.certified.coefficients);
    let start = State { coefficients, theta: None };
    let (fresh, more) = (solve(900, None), solve(900, Some(&start)));
    assert_eq!((fresh.status, more.status), (Status::Solved, Status::Solved));
    let (a, b) = (more.certified.certificate, fresh.certified.certificate);
    assert!(a.dual <= b.primal && b.dual <= a.primal, "{a:?} {b:?}");
    let (few, many) = (more.kernel_products, fresh.kernel_products);
    assert!(3 * few <= many, "{few} products, from nothing {many}");
}

/// Solves the first `n` of those, keeping what is left.
fn kept(n: usize, start: path::Beginning<'_>) -> Outcome {
    let settings = NewtonSettings { max_rank: Some(150), ..NewtonSettings::default() };
    let (problem, operator) = many(n);
    let (k, mut found) = ([problem.regularization()], None);
    let each = |_: &Problem, outcome| {
        found = Some(outcome);
        Ok::<(), Error>(())
    };
    let start = path::Beginning { keep: true, ..start };
    path::solve(problem, &operator, &k, &settings, 0, start, &mut Ignore, each).unwrap();
    found.unwrap()
}

/// As `kept`, from the coefficients of `before` with zeros behind them, and what it left.
fn grown(n: usize, before: &Outcome, factor: Option<Arc<KeptFactor>>) -> Outcome {
    let old = &before.certified.coefficients;
    let mut coefficients = Array2::zeros((2, n));
    coefficients.slice_mut(s![.., ..old.ncols()]).assign(old);
    let state = State { coefficients, theta: None };
    let factor = factor.map(Arc::unwrap_or_clone);
    kept(n, path::Beginning { state: Some(&state), factor, keep: true })
}

#[test]
fn what_a_fit_leaves_leads_to_the_same_optimum_and_follows_the_rows() {
    let before = kept(800, path::Beginning::default());
    let factor = before.factor.clone().unwrap();
    factor.validate(800, 2).unwrap();
    assert!(factor.n_samples() == 800 && factor.rank() > 30, "{}", factor.rank());
    let mut last = before;
    // Again and again: what is left follows.
    for n in [840, 880, 900] {
        let own = grown(n, &last, None);
        let more = grown(n, &last, last.factor.clone());
        assert_eq!((own.status, more.status), (Status::Solved, Status::Solved));
        let (a, b) = (more.certified.certificate, own.certified.certificate);
        assert!(a.dual <= b.primal && b.dual <= a.primal, "{a:?} {b:?}");
        let (few, fresh) = (more.kernel_products, kept(n, path::Beginning::default()));
        assert!(few <= fresh.kernel_products, "{n}: {few} products");
        let left = more.factor.clone().unwrap();
        left.validate(n, 2).unwrap();
        assert_eq!(left.pivots, factor.pivots, "the factor was made anew");
        assert!(left.trace_left >= factor.trace_left);
        last = more;
    }
}

#[test]
fn what_is_known_of_the_start_is_not_multiplied_and_a_wrong_one_is_found_out() {
    let before = kept(800, path::Beginning::default());
    let factor = before.factor.clone().unwrap();
    let with = |desired: Option<Array2<f64>>| {
        let own = KeptFactor { desired, ..KeptFactor::clone(&factor) };
        grown(840, &before, Some(Arc::new(own)))
    };
    let known = factor.desired.clone().unwrap();
    let (right, multiplied) = (with(Some(known.clone())), with(None));
    assert_eq!(right.status, Status::Solved);
    assert!(right.kernel_products < multiplied.kernel_products);
    let optimum = right.certified.certificate;
    // Another model's, and no model's.
    for wrong in [&known * 3.0 - 0.5, Array2::zeros(known.dim())] {
        let found = with(Some(wrong));
        assert_eq!(found.status, Status::Solved);
        let own = found.certified.certificate;
        assert!(own.dual <= optimum.primal && optimum.dual <= own.primal, "{own:?} {optimum:?}");
    }
}

#[test]
fn a_factor_that_is_not_one_is_refused() {
    let good = kept(800, path::Beginning::default()).factor.unwrap();
    let refused = |change: &dyn Fn(&mut KeptFactor)| {
        let mut factor = KeptFactor::clone(&good);
        change(&mut factor);
        factor.validate(800, 2).unwrap_err().to_string()
    };
    assert!(refused(&|f| f.pivots[0] = 800).contains("pivots"));
    assert!(refused(&|f| f.pivots[0] = f.pivots[1]).contains("twice"));
    assert!(refused(&|f| f.owners = vec![0]).contains("dimensions"));
    assert!(refused(&|f| f.owners = vec![0, 7]).contains("without a matrix"));
    assert!(refused(&|f| f.grams[0].free.truncate(799)).contains("size"));
    assert!(refused(&|f| f.grams[0].triangle = Triangle::Single(vec![0.0])).contains("size"));
    assert!(refused(&|f| f.trace_left = f64::NAN).contains("trace"));
    let none = vec![f64::INFINITY; Triangle::len_of(good.rank())];
    assert!(refused(&|f| f.grams[0].triangle = Triangle::Double(none.clone())).contains("numbers"));
}

#[test]
fn a_start_that_is_worse_than_nothing_is_none() {
    let fresh = kept(800, path::Beginning::default());
    // Such as coefficients of rows whose counterweights were dropped: 275 products in place of 39.
    let coefficients = -30.0 * &fresh.certified.coefficients;
    let state = State { coefficients, theta: None };
    let from = kept(800, path::Beginning { state: Some(&state), ..path::Beginning::default() });
    assert_eq!(from.status, Status::Solved);
    // That of the start.
    assert_eq!(from.kernel_products, fresh.kernel_products + 1);
}
