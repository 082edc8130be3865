//! What must hold for any decision sets: boxes are polytopes, weights are repetitions, decisions
//! lie in their sets and have the same bits on any number of threads.

#![allow(clippy::unwrap_used, reason = "tests")]

use argwhy_core::decision_set::{BoxLimits, SampleSets};
use argwhy_core::features::{FeatureMap, FeatureSettings};
use argwhy_core::model::{LearnedTheta, Parts};
use argwhy_core::operator::{HostOperator, OperatorKind, Precision};
use argwhy_core::problem::{Certificate, Problem};
use argwhy_core::qp::Metric;
use argwhy_core::random::stream;
use argwhy_core::solver::sso::{self, BlockSize};
use argwhy_core::solver::{
    Ignore, NewtonSettings, Outcome, SsoSettings, State, Status, newton, path,
};
use argwhy_core::{Constraints, DecisionSet, Kernel, Model, Predictor};
use ndarray::{Array1, Array2, Array3, Axis};
use proptest::prelude::*;
use rand::RngExt;

/// A problem with everything that can vary.
struct Random {
    features: Array2<f64>,
    decisions: Array2<f64>,
    constraints: Constraints,
    theta: Array2<f64>,
    weights: Option<Vec<f64>>,
    kernel: Kernel,
    k: f64,
}

/// Random problems a property is tried on.
const CASES: u32 = 300;

type Draw = rand_chacha::ChaCha8Rng;

fn normal(rng: &mut Draw) -> f64 {
    (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0
}

/// A polytope around a point for every sample.
fn polytopes(rng: &mut Draw, n: usize, rows: usize, dim: usize) -> Constraints {
    let mut matrix = Array3::from_shape_simple_fn((n, rows, dim), || normal(rng));
    // Some rows twice, some in pairs: degenerate now and then.
    for i in 0..n {
        if rows > 3 && i % 4 == 0 {
            let first = matrix.index_axis(Axis(0), i).row(0).to_owned();
            matrix.index_axis_mut(Axis(0), i).row_mut(2).assign(&(&first * 2.0));
            matrix.index_axis_mut(Axis(0), i).row_mut(3).assign(&(&first * -1.0));
        }
    }
    let bound = Array2::from_shape_fn((n, rows), |(i, r)| {
        let row = matrix.index_axis(Axis(0), i).row(r).to_owned();
        row.dot(&row).sqrt() * (0.2 + 0.6 * rng.random::<f64>())
    });
    Constraints::new().with_inequalities(matrix, bound).unwrap()
}

impl Random {
    fn new(seed: u64, n: usize, dim: usize, k: f64) -> Self {
        let mut rng = stream(seed, "features");
        let features = Array2::from_shape_simple_fn((n, 3), || normal(&mut rng));
        let turn = Array2::from_shape_simple_fn((3, dim), || normal(&mut rng));
        let noise = Array2::from_shape_simple_fn((n, dim), || 0.1 * normal(&mut rng));
        Self {
            decisions: features.dot(&turn).mapv(f64::sin) + noise,
            features,
            constraints: Constraints::new(),
            theta: Array2::eye(dim),
            weights: None,
            kernel: Kernel::Rbf { gamma: 0.3 },
            k,
        }
    }

    fn within(mut self, constraints: Constraints) -> Self {
        self.constraints = constraints;
        let sets = self.sets();
        for (i, mut decision) in self.decisions.rows_mut().into_iter().enumerate() {
            let mut u = decision.to_vec();
            sets.project(i, &mut u).unwrap();
            decision.iter_mut().zip(u).for_each(|(a, b)| *a = b);
        }
        self
    }

    fn sets(&self) -> SampleSets {
        let (n, dim) = self.decisions.dim();
        SampleSets::new(&BoxLimits::none(dim), Some(&self.constraints), n, |i| i).unwrap()
    }

    fn problem(&self) -> Problem {
        let problem = Problem::new(self.decisions.view(), self.sets(), self.k).unwrap();
        let problem = match &self.weights {
            None => problem,
            Some(weights) => problem.with_weights(weights).unwrap(),
        };
        problem.with_theta(Metric::new(self.theta.view()).unwrap())
    }

    fn operator(&self, precision: Precision) -> HostOperator {
        let kind = OperatorKind::Stored;
        HostOperator::new(self.features.view(), self.kernel.clone(), precision, kind).unwrap()
    }

    fn solve(&self, tol: f64) -> Outcome {
        let settings = NewtonSettings { tol, ..NewtonSettings::default() };
        let operator = self.operator(Precision::F64);
        newton::solve(&self.problem(), &operator, &settings, 0, &mut Ignore).unwrap()
    }

    /// The samples of `origin`, one after the other.
    fn select(&self, origin: &[usize]) -> Self {
        Self {
            features: self.features.select(Axis(0), origin),
            decisions: self.decisions.select(Axis(0), origin),
            constraints: self.constraints.select(origin),
            theta: self.theta.clone(),
            weights: None,
            kernel: self.kernel.clone(),
            k: self.k,
        }
    }

    fn model(&self, outcome: &Outcome) -> Model {
        let n = self.decisions.nrows();
        let settings = FeatureSettings {
            expansion: argwhy_core::features::Expansion::Raw,
            normalization: argwhy_core::features::Normalization::None,
            ..FeatureSettings::default()
        };
        let rows: Vec<u64> = (0..n as u64).collect();
        let parts = Parts {
            features: FeatureMap::fit(settings, self.features.view()).unwrap(),
            kernel: self.kernel.clone(),
            set: DecisionSet::unbounded(self.decisions.ncols()),
            constrained: !self.constraints.is_empty(),
            signals: self.features.view(),
            rows: &rows,
            names: argwhy_core::dataset::Names::default(),
        };
        let mut model = Model::from_outcome(&self.problem(), outcome, parts);
        if !Metric::new(self.theta.view()).unwrap().is_identity() {
            let multiplier = Array2::zeros(self.theta.dim());
            model.theta = Some(LearnedTheta { theta_uu: self.theta.clone(), multiplier });
        }
        model
    }
}

fn random_theta(rng: &mut Draw, dim: usize) -> Array2<f64> {
    let factor = Array2::from_shape_simple_fn((dim, dim), || normal(rng));
    let product = factor.t().dot(&factor);
    // One triangle decides.
    Array2::from_shape_fn((dim, dim), |(i, j)| product[[i.max(j), i.min(j)]])
        + Array2::<f64>::eye(dim)
}

fn largest(a: &Array2<f64>) -> f64 {
    a.iter().fold(0.0, |m, v| m.max(v.abs()))
}

fn same(a: &Outcome, b: &Outcome, tol: f64) -> Result<(), TestCaseError> {
    let (one, two) = (a.certified.certificate, b.certified.certificate);
    let scale = one.objective.abs().max(one.primal.abs());
    prop_assert!((one.objective - two.objective).abs() <= tol * scale, "{one:?} {two:?}");
    let off = largest(&(&a.certified.responses - &b.certified.responses));
    // mean ‖x − x*‖² is at most the gap.
    let bound = (a.certified.responses.ncols() as f64 * (one.gap + two.gap)).sqrt();
    prop_assert!(
        off <= tol * largest(&a.certified.responses).max(1.0) + 2.0 * bound,
        "responses {off:e} apart, gaps {:e} {:e}",
        one.relative_gap,
        two.relative_gap
    );
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: CASES,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// A box is a box, however it is written: as limits of the data, as rows, as both, as the rows
    /// of a metric that is I.
    #[test]
    fn a_box_written_as_rows_is_the_same_box(
        seed in 0_u64..1_000_000, n in 1_usize..40, dim in 1_usize..5, log_k in -5.0..0.0_f64,
    ) {
        let mut rng = stream(seed, "boxes");
        let lower = Array2::from_shape_simple_fn((n, dim), || -rng.random::<f64>());
        let upper = &lower + &Array2::from_shape_simple_fn((n, dim), || 1.5 * rng.random::<f64>());
        let boxed = Constraints::new().with_lower(lower.clone()).unwrap();
        let boxed = boxed.with_upper(upper.clone()).unwrap();
        let mut matrix = Array2::zeros((2 * dim, dim));
        for j in 0..dim {
            // Lengths other than one, and in another order than the library's own.
            matrix[[2 * j, j]] = 3.0;
            matrix[[2 * j + 1, j]] = -0.5;
        }
        let bound = Array2::from_shape_fn((n, 2 * dim), |(i, r)| {
            if r % 2 == 0 { 3.0 * upper[[i, r / 2]] } else { -0.5 * lower[[i, r / 2]] }
        });
        let rows = Constraints::new().with_inequalities(matrix, bound).unwrap();
        let first = Random::new(seed, n, dim, 10_f64.powf(log_k)).within(boxed);
        let mut second = first.select(&(0..n).collect::<Vec<_>>());
        second.constraints = rows;
        let (a, b) = (first.solve(1e-13), second.solve(1e-13));
        same(&a, &b, 1e-8)?;
        prop_assert!(a.certified.certificate.relative_gap <= 1e-10);
        // Rows times 3 are met to the last place of their limits, which at the rows' prices is a
        // gap of its own.
        let c = b.certified.certificate;
        let own = c.relative_gap * (1.0 - c.rounding / c.gap.max(f64::MIN_POSITIVE));
        prop_assert!(own <= 1e-10 && c.relative_gap <= 1e-7, "{c:?}");
    }

    /// A sample of weight w is w samples: the same optimum, the same responses, the sum of their
    /// coefficients.
    #[test]
    fn a_weight_is_a_repetition(
        seed in 0_u64..1_000_000, n in 1_usize..20, dim in 1_usize..4,
        rows in 1_usize..9, log_k in -4.0..0.0_f64,
        polyhedral in any::<bool>(), metric in any::<bool>()
    ) {
        let mut rng = stream(seed, "weights");
        let constraints = if polyhedral {
            polytopes(&mut rng, n, rows, dim)
        } else {
            let lower = Array2::from_shape_simple_fn((n, dim), || -rng.random::<f64>());
            Constraints::new().with_lower(lower).unwrap()
        };
        let mut weighted = Random::new(seed, n, dim, 10_f64.powf(log_k)).within(constraints);
        if metric {
            weighted.theta = random_theta(&mut rng, dim);
        }
        let counts: Vec<usize> = (0..n).map(|_| rng.random_range(1..5)).collect();
        let origin: Vec<usize> = (0..n).flat_map(|i| std::iter::repeat_n(i, counts[i])).collect();
        let repeated = weighted.select(&origin);
        weighted.weights = Some(counts.iter().map(|c| *c as f64).collect());
        let (a, b) = (weighted.solve(1e-13), repeated.solve(1e-13));
        let (one, two) = (a.certified.certificate, b.certified.certificate);
        let scale = one.objective.abs().max(one.primal.abs());
        prop_assert!((one.objective - two.objective).abs() <= 1e-9 * scale, "{one:?} {two:?}");
        prop_assert!((one.primal - two.primal).abs() <= 1e-9 * scale, "{one:?} {two:?}");
        let copies = a.certified.responses.select(Axis(1), &origin);
        let off = largest(&(&copies - &b.certified.responses));
        let bound = 2.0 * (origin.len() as f64 * (one.gap + two.gap)).sqrt();
        let gaps = [one.relative_gap, two.relative_gap];
        prop_assert!(off <= 1e-9 + bound, "responses {off:e} apart, gaps {gaps:?}");
        let off = largest(&(&a.certified.desired.select(Axis(1), &origin) - &b.certified.desired));
        // Each is no further from the optimum's than its certificate says.
        let proven = |c: Certificate| c.prediction_bound(1.0, weighted.k);
        let allowed = 1e-7 * (1.0 + largest(&b.certified.desired)) + proven(one) + proven(two);
        prop_assert!(off <= allowed, "desired {off:e} apart, {allowed:e} allowed");
        // α_i of a merged sample is the sum of its copies'.
        let mut sums = Array2::zeros(a.certified.coefficients.dim());
        for (at, &i) in origin.iter().enumerate() {
            let mut sum = sums.column_mut(i);
            sum += &b.certified.coefficients.column(at);
        }
        let off = largest(&(&sums - &a.certified.coefficients));
        prop_assert!(off * weighted.k <= 1e-7, "coefficients {off:e} apart");
        // Prices are of one copy.
        let price = |o: &Outcome, i: u64| -> f64 {
            let all = o.prices.samples.iter().zip(&o.prices.values);
            all.filter(|(s, _)| **s == i).map(|(_, v)| *v).sum()
        };
        let degenerate = polyhedral && rows > 3;
        if !degenerate {
            for (at, &i) in origin.iter().enumerate() {
                let (one, two) = (price(&a, i as u64), price(&b, at as u64));
                prop_assert!((one - two).abs() <= 1e-5 * (1.0 + one.abs()), "prices {one} {two}");
            }
        }
    }

    /// The gap closes, the identity holds, decisions lie in their sets, and one decision at a time
    /// has the bits of many.
    #[test]
    fn solved_means_solved_and_decisions_are_allowed(
        seed in 0_u64..1_000_000, n in 1_usize..60, dim in 1_usize..6,
        rows in 1_usize..16, log_k in -6.0..0.5_f64,
        metric in any::<bool>(), single in any::<bool>()
    ) {
        let mut rng = stream(seed, "sets");
        let constraints = polytopes(&mut rng, n, rows, dim);
        let mut random = Random::new(seed, n, dim, 10_f64.powf(log_k)).within(constraints);
        if metric {
            random.theta = random_theta(&mut rng, dim);
        }
        let precision = if single { Precision::F32 } else { Precision::F64 };
        let settings = NewtonSettings { tol: 1e-9, ..NewtonSettings::default() };
        let problem = random.problem();
        let operator = random.operator(precision);
        let outcome = newton::solve(&problem, &operator, &settings, 0, &mut Ignore).unwrap();
        let c = outcome.certified.certificate;
        let steps = outcome.iterations;
        prop_assert_eq!(outcome.status, Status::Solved, "{:?} after {} steps", c, steps);
        prop_assert!(c.gap >= 0.0);
        let scale = c.primal.abs().max(c.dual.abs()).max(c.objective.abs());
        // P and D are a gap apart, and by what P itself may be off.
        let apart = c.primal - c.dual - c.gap;
        prop_assert!((-1e-11 * scale..=1e-8 * scale).contains(&apart), "{c:?}");

        let predictor = Predictor::new(&random.model(&outcome)).unwrap();
        let m = 30;
        let signals = Array2::from_shape_simple_fn((m, 3), || 2.0 * normal(&mut rng));
        let theirs = polytopes(&mut rng, m, rows, dim);
        let sets = predictor.sets(Some(&theirs), m).unwrap();
        let desired = predictor.desired(signals.view()).unwrap();
        let many = predictor.decide(desired.view(), &sets).unwrap();
        let within = predictor.predict_within(signals.view(), &theirs).unwrap();
        prop_assert_eq!(&many, &within);
        let mut scratch = predictor.scratch();
        let mut one = vec![0.0; dim];
        for i in 0..m {
            let size = 1.0 + many.row(i).iter().fold(0.0_f64, |m, v| m.max(v.abs()));
            let excess = sets.excess(i, &many.row(i).to_vec());
            prop_assert!(excess <= 1e-12 * size, "outside by {excess:e}");
            let set = Some((&sets, i));
            predictor.decide_one(&signals.row(i).to_vec(), set, &mut scratch, &mut one).unwrap();
            prop_assert_eq!(&one, &many.row(i).to_vec());
        }
    }
}

/// Solver and predictor, on one thread and on two.
#[test]
fn the_number_of_threads_does_not_change_the_bits() {
    let (n, dim) = (700, 3);
    let mut rng = stream(5, "threads");
    let constraints = polytopes(&mut rng, n, 8, dim);
    let mut random = Random::new(5, n, dim, 1e-4).within(constraints);
    random.weights = Some((0..n).map(|i| 1.0 + (i % 3) as f64).collect());
    random.theta = random_theta(&mut rng, dim);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let operator = random.operator(Precision::F32);
            let problem = random.problem();
            let settings = NewtonSettings { max_rank: Some(100), ..NewtonSettings::default() };
            let newton = newton::solve(&problem, &operator, &settings, 0, &mut Ignore).unwrap();
            let settings = SsoSettings {
                block: BlockSize::Count(300),
                max_iterations: 3,
                ..SsoSettings::default()
            };
            let sso = sso::solve(&problem, &operator, &settings, 0, &mut Ignore).unwrap();
            let predictor = Predictor::new(&random.model(&newton)).unwrap();
            let decisions =
                predictor.predict_within(random.features.view(), &random.constraints).unwrap();
            (newton, sso, decisions)
        })
    };
    let (first, second) = (run(1), run(2));
    assert_eq!(first.0.certified.coefficients, second.0.certified.coefficients);
    assert_eq!(first.0.certified.certificate, second.0.certified.certificate);
    assert_eq!(first.0.prices, second.0.prices);
    assert_eq!(first.1.certified.coefficients, second.1.certified.coefficients);
    assert_eq!(first.1.certified.certificate, second.1.certified.certificate);
    assert_eq!(first.2, second.2);
}

/// A wide kernel and a tiny k: ‖K‖/λ is about 1/k, and rounding kernel values to f32 moves the
/// optimum.
#[test]
fn single_precision_reaches_the_tolerance_where_its_own_kernel_values_cannot() {
    let (n, dim) = (400, 3);
    for k in [1e-6, 1e-7, 1e-8] {
        let mut rng = stream(9, "wide");
        let constraints = polytopes(&mut rng, n, 8, dim);
        let mut random = Random::new(9, n, dim, k);
        random.kernel = Kernel::Rbf { gamma: 0.1 };
        let random = random.within(constraints);
        let problem = random.problem();
        for (precision, max_rank) in
            [(Precision::F64, None), (Precision::F32, None), (Precision::F32, Some(100))]
        {
            let settings = NewtonSettings { max_rank, ..NewtonSettings::default() };
            let operator = random.operator(precision);
            let outcome = newton::solve(&problem, &operator, &settings, 0, &mut Ignore).unwrap();
            let (steps, products) = (outcome.iterations, outcome.kernel_products);
            let gap = outcome.certified.certificate.relative_gap;
            let how = format!(
                "{k:e} {precision:?} {max_rank:?}: {steps} steps, {products} products, gap {gap:e}"
            );
            assert_eq!(outcome.status, Status::Solved, "{how}");
        }
    }
}

/// A small k, and a preconditioner with far fewer rows than K has directions above λ: conjugate
/// gradients would take hundreds of products a step.
#[test]
fn systems_that_are_too_hard_for_the_preconditioner_are_factorised_where_there_is_room() {
    let (n, dim) = (240, 3);
    let mut rng = stream(11, "hard");
    let polytopes = polytopes(&mut rng, n, 8, dim);
    let boxes = Constraints::new().with_lower(Array2::from_elem((1, dim), -0.8)).unwrap();
    let boxes = boxes.with_upper(Array2::from_elem((1, dim), 0.8)).unwrap();
    for constraints in [polytopes, boxes] {
        let mut random = Random::new(11, n, dim, 1e-9);
        random.kernel = Kernel::Matern52 { gamma: 0.3 };
        let random = random.within(constraints);
        let (problem, operator) = (random.problem(), random.operator(Precision::F64));
        let solve = |threads: usize, k: f64, spare_bytes: u64| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let problem = problem.clone().with_regularization(k).unwrap();
            let settings =
                NewtonSettings { max_rank: Some(20), spare_bytes, ..NewtonSettings::default() };
            pool.install(|| newton::solve(&problem, &operator, &settings, 0, &mut Ignore).unwrap())
        };
        let (without, with) = (solve(2, 1e-9, 0), solve(2, 1e-9, 1 << 28));
        assert_eq!(with.status, Status::Solved);
        assert!(with.certified.certificate.relative_gap <= 1e-6);
        let products = (without.kernel_products, with.kernel_products);
        assert!(products.0 > 3 * products.1, "{products:?}");
        let objective = |outcome: &Outcome| outcome.certified.certificate.objective;
        let gaps = without.certified.certificate.gap + with.certified.certificate.gap;
        assert!((objective(&without) - objective(&with)).abs() <= gaps + 1e-12);

        // The same on any number of threads; too little room is none; what is easy stays as it is.
        let coefficients = |outcome: Outcome| outcome.certified.coefficients;
        let with = coefficients(with);
        assert!(with == coefficients(solve(1, 1e-9, 1 << 28)));
        assert!(coefficients(without) == coefficients(solve(2, 1e-9, 1 << 16)));
        assert!(coefficients(solve(2, 1e-2, 0)) == coefficients(solve(2, 1e-2, 1 << 28)));
    }
}

/// Decisions without noise and a small k: from nothing, samples change sides one by one.
#[test]
fn a_small_regularization_is_come_upon_from_larger_ones() {
    let (n, dim) = (300, 3);
    let mut random = Random::new(12, n, dim, 1e-8);
    random.kernel = Kernel::Matern52 { gamma: 0.2 };
    random.decisions = random.features.mapv(|x| 1.2 * (0.8 * x).tanh());
    let sides = Array2::from_shape_fn((7, dim), |(row, j)| match row {
        6 => 1.0,
        row if row % 3 == j => {
            if row < 3 {
                1.0
            } else {
                -1.0
            }
        }
        _ => 0.0,
    });
    let bound = Array1::from_shape_fn(7, |row| if row == 6 { 0.5 } else { 0.8 });
    let random = random.within(Constraints::new().with_inequalities(sides, bound).unwrap());
    let operator = random.operator(Precision::F64);
    let settings =
        NewtonSettings { max_rank: Some(40), spare_bytes: 1 << 28, ..NewtonSettings::default() };
    let solve = |start: Option<&State>| {
        let mut found = None;
        let each = |_: &Problem, outcome| -> Result<(), argwhy_core::Error> {
            found = Some(outcome);
            Ok(())
        };
        let (problem, ks) = (random.problem(), [1e-8]);
        path::solve(problem, &operator, &ks, &settings, 0, start, &mut Ignore, each).unwrap();
        let outcome: Outcome = found.unwrap();
        assert_eq!(outcome.status, Status::Solved);
        outcome
    };
    // Next to nothing is a start of one's own, which is taken as it is.
    let own = State { coefficients: Array2::from_elem((dim, n), 1e-200), theta: None };
    let (straight, descended) = (solve(Some(&own)), solve(None));
    let steps = (straight.iterations, descended.iterations);
    assert!(5 * steps.0 > 6 * steps.1, "{steps:?}");
    let of = |outcome: &Outcome| outcome.certified.certificate;
    let off = (of(&straight).objective - of(&descended).objective).abs();
    assert!(off <= of(&straight).gap + of(&descended).gap + 1e-12);

    // As many steps as allowed, those on the way counted.
    let few = NewtonSettings { max_iterations: 3, ..settings };
    let stopped = newton::solve(&random.problem(), &operator, &few, 0, &mut Ignore).unwrap();
    assert_eq!((stopped.status, stopped.iterations), (Status::MaxIterations, 3));
}
