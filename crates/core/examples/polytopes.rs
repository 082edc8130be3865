//! How long exact fitting takes where every sample has a polytope of its own.
//!
//!     cargo run --release -p argwhy-core --example polytopes \
//!         [n_samples] [decision_dim] [rows] [k] [f32|f64] [stored|tiled]

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement for people to read")]

use argwhy_core::decision_set::{BoxLimits, SampleSets};
use argwhy_core::features::{Expansion, FeatureMap, FeatureSettings};
use argwhy_core::operator::{HostOperator, OperatorKind, Precision};
use argwhy_core::problem::Problem;
use argwhy_core::random::stream;
use argwhy_core::solver::{Iteration, NewtonSettings, Observer, newton};
use argwhy_core::{Constraints, Kernel};
use ndarray::{Array2, Array3, Axis};
use rand::RngExt;
use std::ops::ControlFlow;
use std::time::Instant;

struct Print;

impl Observer for Print {
    fn on_iteration(&mut self, at: &Iteration) -> ControlFlow<()> {
        println!(
            "{:>3}  gap {:9.2e}  free {:5.3}  products {:>4}  {:7.2} s{}",
            at.iteration,
            at.relative_gap,
            at.free,
            at.kernel_products,
            at.seconds,
            if at.exact { "  exact" } else { "" }
        );
        ControlFlow::Continue(())
    }
}

fn main() {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let text = |at: usize, default: &str| given.get(at).map_or(default, |v| v).to_owned();
    let count = |at: usize, default: &str| text(at, default).parse::<usize>().unwrap();
    let (n_samples, dim, rows) = (count(0, "5000"), count(1, "6"), count(2, "20"));
    let k: f64 = text(3, "1e-6").parse().unwrap();
    let precision = if text(4, "f32") == "f64" { Precision::F64 } else { Precision::F32 };
    let kind =
        if text(5, "stored") == "tiled" { OperatorKind::Tiled } else { OperatorKind::Stored };

    let mut rng = stream(7, "polytopes");
    // Sums of uniform numbers are normal enough.
    let mut normal = || (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
    let signals = Array2::from_shape_simple_fn((n_samples, 11), &mut normal);
    let (sines, cosines) = (
        Array2::from_shape_simple_fn((11, dim), || 0.3 * normal()),
        Array2::from_shape_simple_fn((11, dim), || 0.3 * normal()),
    );
    let mut matrix = Array3::from_shape_simple_fn((n_samples, rows, dim), &mut normal);
    for mut row in matrix.lanes_mut(Axis(2)) {
        let length = row.dot(&row).sqrt();
        row /= length;
    }
    let noise = Array2::from_shape_simple_fn((n_samples, dim), || 0.05 * normal());
    let bound = Array2::from_shape_simple_fn((n_samples, rows), || 0.6 + 0.1 * normal().abs());
    let constraints = Constraints::new().with_inequalities(matrix, bound).unwrap();

    let start = Instant::now();
    let sets =
        SampleSets::new(&BoxLimits::none(dim), Some(&constraints), n_samples, |i| i).unwrap();
    println!("sets checked in {:.2} s", start.elapsed().as_secs_f64());
    let mut decisions =
        signals.dot(&sines).mapv(f64::sin) + 0.4 * signals.dot(&cosines).mapv(f64::cos) + noise;
    for (i, mut decision) in decisions.rows_mut().into_iter().enumerate() {
        let mut u = decision.to_vec();
        sets.project(i, &mut u).unwrap();
        decision.iter_mut().zip(u).for_each(|(a, b)| *a = b);
    }
    let map = FeatureMap::fit(
        FeatureSettings { expansion: Expansion::Poly2, ..FeatureSettings::default() },
        signals.view(),
    )
    .unwrap();
    let features = map.transform(signals.view()).unwrap();
    let kernel = Kernel::Rbf { gamma: 1.0 / features.ncols() as f64 };
    let start = Instant::now();
    let operator = HostOperator::new(features.view(), kernel, precision, kind).unwrap();
    println!("{} features; kernel in {:.2} s", features.ncols(), start.elapsed().as_secs_f64());
    let problem = Problem::new(decisions.view(), sets, k).unwrap();
    let start = Instant::now();
    let outcome =
        newton::solve(&problem, &operator, &NewtonSettings::default(), 0, &mut Print).unwrap();
    println!(
        "{:?}: {} steps, {} products, {} rescued, {} prices, {:.2} s, {:?}",
        outcome.status,
        outcome.iterations,
        outcome.kernel_products,
        outcome.rescued_decisions,
        outcome.prices.len(),
        start.elapsed().as_secs_f64(),
        outcome.certified.certificate
    );
}
