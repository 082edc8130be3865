//! Leaving samples out one by one, from one system, against fits that never saw them.

use crate::known::{self, Given, array2};
use argwhy_core::decision_set::SampleSets;
use argwhy_core::leave_one_out::{FEW, Room, leave_one_out};
use argwhy_core::metrics::evaluate;
use argwhy_core::operator::{OperatorKind, Precision};
use argwhy_core::qp::Metric;
use argwhy_core::random;
use argwhy_core::solver::{Ignore, NewtonSettings, newton};
use ndarray::{Array2, s};
use rand::RngExt;
use serde::de::IgnoredAny;

/// α of a fit, decision_dim × n_samples.
fn coefficients(given: &Given) -> Array2<f64> {
    let operator = given.operator(Precision::F64, OperatorKind::Stored);
    let settings = NewtonSettings { tol: 1e-12, ..NewtonSettings::default() };
    let outcome = newton::solve(&given.problem(), &operator, &settings, 0, &mut Ignore).unwrap();
    outcome.certified.coefficients
}

/// What a fit without sample `i` desires for it, 1 × decision_dim.
fn without(given: &Given, i: usize) -> Array2<f64> {
    let others: Vec<usize> = (0..given.decisions.len()).filter(|&l| l != i).collect();
    let rest = given.permuted(&others);
    let alpha = coefficients(&rest);
    let mut desired = Array2::zeros((1, given.n()));
    for (l, features) in rest.features.iter().enumerate() {
        let kappa = given.kernel.evaluate(&given.features[i], features);
        desired.row_mut(0).scaled_add(kappa, &alpha.column(l));
    }
    desired
}

const PLENTY: Room = Room { whole: u64::MAX, beside: u64::MAX };

/// What leaving out each sample decides, where there is room for it.
fn decided_within(given: &Given, alpha: &Array2<f64>, room: Room) -> Option<Array2<f64>> {
    let features = array2(&given.features);
    leave_one_out(&given.problem(), &given.kernel, features.view(), alpha.view(), room).unwrap()
}

/// Of all samples, or every so manieth: root of the mean squared difference between what the two
/// ways decide, and between the second and the expert.
fn compared(given: &Given, every: usize) -> (f64, f64) {
    let decisions = array2(&given.decisions);
    let alpha = coefficients(given);
    let found = decided_within(given, &alpha, PLENTY).unwrap().reversed_axes();
    let metric = Metric::new(given.theta().view()).unwrap();
    let (mut off, mut error) = (0.0, 0.0);
    let samples: Vec<usize> = (0..given.decisions.len()).step_by(every).collect();
    for &i in &samples {
        let desired = without(given, i);
        let sets = SampleSets::Polyhedra(given.permuted(&[i]).sets().into_polyhedra());
        let from = |points: &Array2<f64>| {
            let point = points.slice(s![i..=i, ..]);
            evaluate(desired.view(), point, &metric, &sets).unwrap().rmse.powi(2)
        };
        off += from(&found);
        error += from(&decisions);
    }
    let n = samples.len() as f64;
    ((off / n).sqrt(), (error / n).sqrt())
}

#[test]
fn one_system_says_what_every_fit_without_a_sample_decides() {
    let mut faults = Vec::new();
    for folder in ["known_optimum", "known_sets"] {
        for known in known::load::<IgnoredAny>(folder, 20) {
            let given = known.given;
            if given.decisions.len() < 2 {
                continue;
            }
            let (off, error) = compared(&given, 1);
            if off > 0.02 * error + 1e-9 {
                let name = given.name;
                faults.push(format!("{name}: off by {off:e} of {error:e}, {:.3}", off / error));
            }
        }
    }
    assert!(faults.is_empty(), "{} off:\n{}", faults.len(), faults.join("\n"));
}

/// A sine in three signals with noise, cut to limits.
fn made(n_samples: usize, n: usize, limits: &str) -> Given {
    let mut draw = random::stream(5, "left out");
    let features: Vec<Vec<f64>> = (0..n_samples)
        .map(|_| (0..3).map(|_| 2.0 * draw.random::<f64>() - 1.0).collect())
        .collect();
    let decide = |s: &Vec<f64>| -> Vec<f64> {
        let noise = |draw: &mut rand_chacha::ChaCha8Rng| draw.random::<f64>() - 0.5;
        (0..n).map(|j| 0.5 + (3.0 * s[j % 3] + s[(j + 1) % 3]).sin() + noise(&mut draw)).collect()
    };
    let decisions: Vec<Vec<f64>> = features.iter().map(decide).collect();
    let text = format!(
        r#"{{"name": "made", "kernel": {{"kind": "rbf", "gamma": 1.0}}, "regularization": 1e-3,
            "features": {features:?}, "decisions": {decisions:?}, {limits}}}"#
    );
    let mut given: Given = serde_json::from_str(&text).unwrap();
    let sets = given.sets();
    for (i, decision) in given.decisions.iter_mut().enumerate() {
        sets.project(i, decision).unwrap();
    }
    given
}

/// More samples than are left out one fit after the other.
#[test]
fn samples_that_change_their_face_are_few_among_many() {
    let boxes = made(400, 2, r#""lower": [0.0, 0.0], "upper": [1.0, 1.2]"#);
    let sums =
        made(250, 3, r#""lower": [0.0, 0.0, 0.0], "matrix": [[1.0, 1.0, 1.0]], "bound": [1.5]"#);
    let free = made(300, 1, r#""lower": [null]"#);
    for (what, given, allowed) in
        [("boxes", boxes, 0.02), ("sums", sums, 0.02), ("free", free, 1e-6)]
    {
        assert!(given.decisions.len() > FEW);
        let (off, error) = compared(&given, 17);
        assert!(off <= allowed * error, "{what}: off by {off:e} of {error:e}");
    }
}

/// One fit at a time has the bits of many beside each other, and nothing begins without room.
#[test]
fn room_decides_whether_and_how_many_at_once_but_no_bit() {
    let given = made(60, 2, r#""lower": [0.0, 0.0], "upper": [1.0, 1.2]"#);
    assert!(given.decisions.len() <= FEW);
    let alpha = coefficients(&given);
    let found = decided_within(&given, &alpha, PLENTY).unwrap();
    for beside in [0, 1 << 20] {
        let room = Room { beside, ..PLENTY };
        assert_eq!(decided_within(&given, &alpha, room).unwrap(), found);
    }
    let room = Room { whole: 60 * 60 * 8, ..PLENTY };
    assert!(decided_within(&given, &alpha, room).is_none());
}
