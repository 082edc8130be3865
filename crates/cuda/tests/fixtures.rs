//! The whole solver on a GPU: every problem whose optimum is known, with the certificate that the
//! host gives it; and the preconditioner by its definition. Where there is no GPU, nothing to run.

#![allow(clippy::unwrap_used, reason = "tests")]

#[allow(dead_code, reason = "shared with the tests of argwhy-core")]
#[path = "../../core/tests/known.rs"]
mod known;

use argwhy_core::backend::{Backend, Host, Storage, WithTrends};
use argwhy_core::operator::{
    HostOperator, KernelOperator, ORDINARY_ACCURACY, OperatorKind, Precision, RemoteFactor, Step,
};
use argwhy_core::problem::Problem;
use argwhy_core::solver::{Ignore, NewtonSettings, SsoSettings, newton, sso};
use argwhy_core::{DecisionSet, Kernel};
use argwhy_cuda::{CudaBackend, CudaOperator, Device, Recipe};
use known::{Given, array2};
use ndarray::{Array2, ArrayView2};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::path::PathBuf;

const FOLDERS: [&str; 3] = ["known_optimum", "known_sets", "known_theta"];

/// Every problem of the tests of argwhy-core.
fn problems() -> Vec<Given> {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../core/tests"));
    let folders = FOLDERS.iter().flat_map(|name| std::fs::read_dir(root.join(name)).unwrap());
    let mut files: Vec<PathBuf> = folders
        .map(|entry| entry.unwrap().path().join("problem.json"))
        .filter(|path| path.exists())
        .collect();
    files.sort();
    assert!(files.len() > 100, "only {} problems", files.len());
    files.iter().map(|path| known::read(path)).collect()
}

fn largest(a: &Array2<f64>) -> f64 {
    a.iter().fold(0.0, |m: f64, x| m.max(x.abs()))
}

fn product(operator: &dyn KernelOperator, v: &Array2<f64>) -> Array2<f64> {
    let mut out = Array2::zeros(v.dim());
    operator.apply(v.view(), out.view_mut()).unwrap();
    out
}

fn wave(rows: usize, columns: usize, phase: f64) -> Array2<f64> {
    Array2::from_shape_fn((rows, columns), |(i, j)| ((i * 7 + j * 3) as f64 * 0.618 + phase).sin())
}

/// r_i Σ_j r_j |v_j| of every entry.
fn allowed(operator: &dyn KernelOperator, v: &Array2<f64>) -> Array2<f64> {
    let r = operator.rounding().unwrap();
    let sums: Vec<f64> =
        v.rows().into_iter().map(|v| v.iter().zip(&r).map(|(v, r)| v.abs() * r).sum()).collect();
    Array2::from_shape_fn(v.dim(), |(c, i)| r[i] * sums[c])
}

#[test]
fn most_known_problems_have_a_form_on_the_gpu_and_the_others_are_refused() {
    let problems = problems();
    let refused: Vec<&Kernel> =
        problems.iter().map(|given| &given.kernel).filter(|k| Recipe::new(k).is_err()).collect();
    assert!(refused.len() < 10, "{refused:?}");
    for kernel in refused {
        let inner = |kernel: &Kernel| matches!(kernel, Kernel::Polynomial { degree: 2.., .. });
        let parts = match kernel {
            Kernel::Product { .. } => continue,
            Kernel::Sum { terms } => terms.clone(),
            other => vec![other.clone()],
        };
        let unknown = |k: &Kernel| inner(k) || Recipe::new(k).is_err();
        assert!(parts.iter().any(unknown), "{kernel:?}");
    }
}

#[test]
fn certificates_agree_with_the_hosts_on_every_known_problem() {
    let Ok(device) = Device::new(0) else { return };
    for given in problems().into_iter().filter(|given| Recipe::new(&given.kernel).is_ok()) {
        let (name, problem) = (&given.name, given.problem());
        let n = problem.n_samples();
        let features = array2(&given.features);
        let host = given.operator(Precision::F64, OperatorKind::Tiled);
        let v = wave(3, n, 0.4);
        let expected = product(&host, &v);
        let settings = NewtonSettings { tol: 1e-10, ..NewtonSettings::default() };
        let solved = newton::solve(&problem, &host, &settings, 0, &mut Ignore).unwrap();
        let by_host = solved.certified.certificate;
        for working in [false, true] {
            let operator = CudaOperator::new(
                &device,
                features.view(),
                &given.kernel,
                working,
                ORDINARY_ACCURACY,
            )
            .unwrap();
            let found = product(operator.exact(), &v);
            let room = allowed(&host, &v) + allowed(operator.exact(), &v);
            for ((found, expected), room) in found.iter().zip(&expected).zip(&room) {
                assert!((found - expected).abs() <= *room, "{name}: {found} {expected} {room:e}");
            }
            let off = largest(&(&product(&operator, &v) - &expected));
            assert!(off <= 1e-5 * largest(&expected).max(1e-3), "{name}: {off:e}");
            for max_rank in [None, Some((n / 2).max(1))] {
                let settings = NewtonSettings { max_rank, ..settings };
                let solved = newton::solve(&problem, &operator, &settings, 0, &mut Ignore).unwrap();
                let by_gpu = solved.certified.certificate;
                assert_eq!(
                    solved.status,
                    argwhy_core::solver::Status::Solved,
                    "{name} {working} {max_rank:?}: {by_gpu:?}"
                );
                let scale = by_host.primal.abs().max(by_host.objective.abs()).max(1e-6);
                let off = (by_gpu.objective - by_host.objective).abs();
                let off = off.max((by_gpu.primal - by_host.primal).abs());
                assert!(
                    off <= 1e-9 * scale,
                    "{name} {working} {max_rank:?}: {by_gpu:?} {by_host:?}"
                );
            }
        }
    }
}

#[test]
fn sso_solves_on_the_gpu_what_it_solves_on_the_host() {
    let Ok(device) = Device::new(0) else { return };
    let known = problems().into_iter().filter(|given| given.theta_uu.is_none());
    for given in known.filter(|given| Recipe::new(&given.kernel).is_ok()).step_by(5) {
        let problem = given.problem();
        if problem.n_samples() < 4 {
            continue;
        }
        let features = array2(&given.features);
        let host = given.operator(Precision::F64, OperatorKind::Tiled);
        let accuracy = ORDINARY_ACCURACY;
        let operator =
            CudaOperator::new(&device, features.view(), &given.kernel, true, accuracy).unwrap();
        let settings = SsoSettings { tol: 1e-8, max_iterations: 500, ..SsoSettings::default() };
        let by_host = sso::solve(&problem, &host, &settings, 3, &mut Ignore).unwrap();
        let by_gpu = sso::solve(&problem, &operator, &settings, 3, &mut Ignore).unwrap();
        let [a, b] = [by_host, by_gpu].map(|outcome| outcome.certified.certificate);
        let room = 1e-7 * a.objective.abs().max(1e-6) + a.gap + b.gap;
        assert!((a.objective - b.objective).abs() <= room, "{}: {a:?} {b:?}", given.name);
    }
}

/// The lower triangle L of a positive definite matrix, column-major.
fn cholesky(matrix: &[f64], m: usize) -> Vec<f64> {
    let mut factor = vec![0.0; m * m];
    for j in 0..m {
        for i in j..m {
            let known: f64 = (0..j).map(|k| factor[k * m + i] * factor[k * m + j]).sum();
            let left = matrix[i * m + j] - known;
            factor[j * m + i] = if i == j { left.sqrt() } else { left / factor[j * m + j] };
        }
    }
    factor
}

/// x with A x = b, by elimination.
fn solve(mut a: Array2<f64>, mut b: Vec<f64>) -> Vec<f64> {
    let n = b.len();
    for k in 0..n {
        for i in k + 1..n {
            let factor = a[[i, k]] / a[[k, k]];
            for j in k..n {
                a[[i, j]] -= factor * a[[k, j]];
            }
            b[i] -= factor * b[k];
        }
    }
    for k in (0..n).rev() {
        let known: f64 = (k + 1..n).map(|j| a[[k, j]] * b[j]).sum();
        b[k] = (b[k] - known) / a[[k, k]];
    }
    b
}

/// Grows a factor by the pivots listed, two rounds, and checks B, the diagonal and the inverse.
fn check_factor(device: &Device, n: usize, rounds: &[Vec<usize>], roots: Option<&[f64]>) {
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let features = Array2::from_shape_simple_fn((n, 6), || random.random_range(-2.0..2.0));
    let kernel = Kernel::Rbf { gamma: 0.8 };
    let operator = CudaOperator::new(device, features.view(), &kernel, true, 1e-11).unwrap();
    let host =
        HostOperator::new(features.view(), kernel, Precision::F64, OperatorKind::Tiled).unwrap();
    let all: Vec<usize> = (0..n).collect();
    let mut gram = vec![0.0; n * n];
    host.block_into(&all, &mut gram).unwrap();
    let root = |i: usize| roots.map_or(1.0, |roots| roots[i]);
    let gram = Array2::from_shape_fn((n, n), |(i, j)| root(i) * gram[i * n + j] * root(j));
    let rank: usize = rounds.iter().map(Vec::len).sum();
    let mut factor = operator.remote_factor(rank, 3, roots).unwrap().unwrap();
    let mut diagonal: Vec<f64> = gram.diag().to_vec();
    let floor = vec![0.0; n];
    for pivots in rounds {
        let m = pivots.len();
        let old = factor.gather(pivots).unwrap();
        let known = |a: usize, b: usize| -> f64 {
            (0..factor.rank()).map(|r| old[r * m + a] * old[r * m + b]).sum()
        };
        let block: Vec<f64> = (0..m * m)
            .map(|at| gram[[pivots[at / m], pivots[at % m]]] - known(at / m, at % m))
            .collect();
        factor.append(pivots, &cholesky(&block, m), &mut diagonal, &floor).unwrap();
    }
    assert_eq!(factor.rank(), rank);
    let b = Array2::from_shape_vec((rank, n), factor.gather(&all).unwrap()).unwrap();
    let low = b.t().dot(&b);
    for &i in rounds.iter().flatten() {
        for j in 0..n {
            assert!((low[[i, j]] - gram[[i, j]]).abs() < 1e-4, "{i} {j}");
        }
        assert_eq!(diagonal[i], 0.0);
    }
    for i in 0..n {
        let left = (gram[[i, i]] - low[[i, i]]).max(0.0);
        assert!((left - diagonal[i]).abs() < 1e-4, "{i}: {left} {}", diagonal[i]);
    }
    check_inverse(factor.as_mut(), low.view(), n);
}

fn check_inverse(factor: &mut dyn RemoteFactor, low: ArrayView2<'_, f64>, n: usize) {
    type Rule = fn(usize) -> bool;
    // Dimension 2 starts as a twin of 0 and leaves it; 1 loses many, then few, then gains.
    let rules: [[Rule; 3]; 4] = [
        [|_| true, |_| true, |_| true],
        [|i| i % 3 > 0, |i| i % 17 == 0, |i| i % 3 > 0],
        [|i| i % 3 > 0, |i| i % 17 < 2, |i| i % 4 > 0],
        [|_| false, |i| i > 10, |i| i % 4 > 0],
    ];
    for (round, rule) in rules.into_iter().enumerate() {
        let ridge = 0.01 * (1.0 + round as f64);
        let free = Array2::from_shape_fn((3, n), |(j, i)| rule[j](i));
        factor.update(free.view(), ridge).unwrap();
        let dimensions = [0, 1, 2, 1, 2];
        let mut v = wave(5, n, 0.9);
        for ((c, i), v) in v.indexed_iter_mut() {
            if !free[[dimensions[c], i]] {
                *v = 0.0;
            }
        }
        let mut out = Array2::from_elem((5, n), 7.0);
        factor.apply(&dimensions, v.view(), out.view_mut()).unwrap();
        for (c, &j) in dimensions.iter().enumerate() {
            let inside: Vec<usize> = (0..n).filter(|&i| free[[j, i]]).collect();
            let matrix = Array2::from_shape_fn((inside.len(), inside.len()), |(a, b)| {
                low[[inside[a], inside[b]]] + if a == b { ridge } else { 0.0 }
            });
            let expected = solve(matrix, inside.iter().map(|&i| v[[c, i]]).collect());
            let scale = expected.iter().fold(1e-12_f64, |m, x| m.max(x.abs()));
            for (&i, expected) in inside.iter().zip(&expected) {
                let found = out[[c, i]];
                assert!(
                    (found - expected).abs() < 1e-7 * scale,
                    "{round} {c} {i}: {found} {expected}"
                );
            }
            assert!((0..n).all(|i| free[[j, i]] || out[[c, i]] == 0.0), "{round} {c}");
        }
    }
}

#[test]
fn the_preconditioner_is_what_its_definition_says() {
    let Ok(device) = Device::new(0) else { return };
    let every = |first: usize, step: usize, count: usize| -> Vec<usize> {
        (0..count).map(|i| first + i * step).collect()
    };
    check_factor(&device, 300, &[every(0, 7, 40), every(3, 7, 40)], None);
    check_factor(&device, 301, &[every(1, 19, 10), every(5, 29, 7), every(2, 23, 11)], None);
    check_factor(&device, 500, &[every(0, 4, 120), every(1, 4, 100)], None);
    let roots: Vec<f64> = (0..200).map(|i| (0.5 + (i % 3) as f64).sqrt()).collect();
    check_factor(&device, 200, &[every(0, 5, 30), every(2, 5, 30)], Some(&roots));
}

/// Conjugate gradients for each dimension until the last leaves 1e-11 of its right-hand side: c and
/// its image.
fn descend(
    factor: &dyn RemoteFactor,
    rhs: &Array2<f64>,
    ridge: f64,
    exact: bool,
) -> (Array2<f64>, Array2<f64>) {
    let mut descent = factor.descent(rhs.view(), ridge, exact).unwrap().unwrap();
    let mut left = vec![0, 1, 2];
    for _ in 0..200 {
        let steps = descent.step(&left).unwrap();
        assert_eq!(steps.len(), left.len());
        let goes_on = |(j, step): (usize, Step)| match step {
            Step::Taken { residual } => (residual > 1e-11 * largest(rhs)).then_some(j),
            Step::Flat { .. } => panic!("{step:?}"),
        };
        left = left.into_iter().zip(steps).filter_map(goes_on).collect();
        if left.is_empty() {
            return descent.finish().unwrap();
        }
    }
    panic!("{left:?} not solved");
}

/// With weights and with what is beside K, in working precision and exactly.
#[test]
fn systems_whose_vectors_stay_on_the_gpu_are_solved_and_have_the_same_bits_again() {
    let Ok(device) = Device::new(0) else { return };
    let (n, ridge) = (1500, 0.5);
    let mut random = ChaCha8Rng::seed_from_u64(6);
    let features = Array2::from_shape_simple_fn((n, 4), || random.random_range(-2.0..2.0));
    let kernel = Kernel::Matern52 { gamma: 0.1 };
    let operator = CudaOperator::new(&device, features.view(), &kernel, true, 1e-11).unwrap();
    let host =
        HostOperator::new(features.view(), kernel, Precision::F64, OperatorKind::Tiled).unwrap();
    let all: Vec<usize> = (0..n).collect();
    let mut values = vec![0.0; n * n];
    host.block_into(&all, &mut values).unwrap();
    let weights: Vec<f64> = (0..n).map(|i| (0.5 + (i % 3) as f64).sqrt()).collect();
    for (roots, n_beside) in [(None, 0), (None, 2), (Some(&weights), 3)] {
        let root = |i: usize| roots.map_or(1.0, |roots| roots[i]);
        let rows: Vec<Vec<f64>> =
            (0..n_beside).map(|r| (0..n).map(|i| root(i) * features[[i, r]]).collect()).collect();
        let beside = |i: usize, j: usize| rows.iter().map(|row| row[i] * row[j]).sum::<f64>();
        let weighed = |i: usize, j: usize| root(i) * values[i * n + j] * root(j);
        let gram = Array2::from_shape_fn((n, n), |(i, j)| weighed(i, j) + beside(i, j));
        let mut factor =
            operator.remote_factor(60 + n_beside, 3, roots.map(|r| &r[..])).unwrap().unwrap();
        rows.iter().for_each(|row| factor.append_row(row).unwrap());
        let pivots: Vec<usize> = (0..60).map(|i| 7 + 20 * i).collect();
        let block: Vec<f64> =
            pivots.iter().flat_map(|&i| pivots.iter().map(move |&j| weighed(i, j))).collect();
        let mut diagonal: Vec<f64> = (0..n).map(|i| weighed(i, i)).collect();
        factor.append(&pivots, &cholesky(&block, 60), &mut diagonal, &vec![0.0; n]).unwrap();
        let free = Array2::from_shape_fn((3, n), |(j, i)| i % (j + 2) > 0 || i % 5 == 0);
        factor.update(free.view(), 2.0 * ridge).unwrap();
        // The second is solved at once.
        let mut rhs = wave(3, n, 0.2) * &free.mapv(|free| if free { 1.0 } else { 0.0 });
        rhs.row_mut(1).mapv_inplace(|v| 1e-14 * v);
        for (exact, tol) in [(true, 1e-10), (false, 1e-4)] {
            let (found, image) = descend(factor.as_ref(), &rhs, ridge, exact);
            let again = descend(factor.as_ref(), &rhs, ridge, exact);
            assert!(found == again.0 && image == again.1, "other bits");
            let expected_image = found.dot(&gram);
            let off = largest(&(&image - &expected_image)) / largest(&expected_image);
            assert!(off < tol, "{n_beside} {exact}: image off by {off:e}");
            let left =
                (&expected_image + &(&found * ridge)) * &free.mapv(|f| f64::from(u8::from(f)));
            let off = largest(&(left - &rhs)) / largest(&rhs);
            assert!(off < 10.0 * tol, "{n_beside} {exact}: residual {off:e}");
            assert!(found.iter().zip(&free).all(|(c, free)| *free || *c == 0.0));
        }
    }
}

/// A wide kernel beside a trend: both know the constant, and a preconditioner that loses digits
/// where they meet took four hundred products a step and reached nothing.
#[test]
fn a_trend_beside_a_wide_kernel_takes_as_few_products_as_on_the_host() {
    let Ok(backend) = CudaBackend::new(0, None) else { return };
    let n = 4000;
    let mut random = ChaCha8Rng::seed_from_u64(9);
    let features = Array2::<f64>::from_shape_simple_fn((n, 5), || random.random_range(-2.0..2.0));
    let decisions = Array2::from_shape_fn((n, 2), |(i, j)| {
        let row = features.row(i);
        (row[j] + (2.0 * row[j + 1]).sin() + random.random_range(-0.1..0.1)).clamp(-1.0, 1.0)
    });
    let slope = Kernel::Scaled { weight: 0.02, kernel: Box::new(Kernel::Linear) };
    let terms = vec![Kernel::Matern52 { gamma: 0.06 }, Kernel::Constant, slope];
    let kernel = Kernel::Sum { terms };
    let bounds = DecisionSet::bounds(2, -1.0, 1.0).unwrap();
    let problem = Problem::new(decisions.view(), bounds, 1e-6).unwrap();
    let storage = Storage::new(OperatorKind::Tiled, Precision::F64);
    let settings = NewtonSettings { max_rank: Some(400), ..NewtonSettings::default() };
    let [by_host, by_gpu] = [&Host as &dyn Backend, &backend].map(|backend| {
        let operator = WithTrends(backend).operator(features.view(), &kernel, storage).unwrap();
        newton::solve(&problem, operator.as_ref(), &settings, 0, &mut Ignore).unwrap()
    });
    assert_eq!(by_gpu.status, argwhy_core::solver::Status::Solved);
    let [host, gpu] = [&by_host, &by_gpu].map(|outcome| outcome.kernel_products);
    assert!(gpu <= host + host / 4 + 5, "{gpu} products, {host} on the host");
    let [a, b] = [by_host, by_gpu].map(|outcome| outcome.certified.certificate);
    assert!((a.objective - b.objective).abs() <= 2e-6 * a.objective.abs(), "{a:?} {b:?}");
}

/// The whole solver, with features on the GPU and in panels from the host.
#[test]
fn a_fit_with_samples_in_panels_has_the_same_bits() {
    let Ok(device) = Device::new(0) else { return };
    let n = 20_000;
    let mut random = ChaCha8Rng::seed_from_u64(10);
    let features = Array2::<f64>::from_shape_simple_fn((n, 5), || random.random_range(-2.0..2.0));
    let decisions = Array2::from_shape_fn((n, 2), |(i, j)| features[[i, j]].sin().clamp(-0.8, 0.8));
    let bounds = DecisionSet::bounds(2, -0.8, 0.8).unwrap();
    let problem = Problem::new(decisions.view(), bounds, 1e-5).unwrap();
    let (kernel, how) = (Kernel::Matern52 { gamma: 0.2 }, (true, ORDINARY_ACCURACY));
    let all = CudaOperator::new(&device, features.view(), &kernel, how.0, how.1).unwrap();
    let panels = CudaOperator::streamed(&device, features.view(), &kernel, how, 4096).unwrap();
    let settings = NewtonSettings { max_rank: Some(300), ..NewtonSettings::default() };
    let [again, all, panels] = [&all, &all, &panels]
        .map(|operator| newton::solve(&problem, operator, &settings, 0, &mut Ignore).unwrap());
    assert!(all.certified.coefficients == again.certified.coefficients, "other bits");
    assert_eq!(all.status, argwhy_core::solver::Status::Solved);
    assert_eq!(all.kernel_products, panels.kernel_products);
    assert!(all.certified.coefficients == panels.certified.coefficients, "other bits");
}
