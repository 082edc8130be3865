//! Plain inverse optimization, solved in the primal, where the optimum is known from CVXPY on the
//! linear matrix inequality [KIO 4].
//!
//! `plain_io/generate.py` made the problems and their answers.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::known::{Limits, Rows, array2, read};
use argwhy_core::dataset::Constraints;
use argwhy_core::decision_set::{BoxLimits, SampleSets};
use argwhy_core::features::{Design, Expansion, FeatureMap, FeatureSettings, Normalization};
use argwhy_core::problem::Problem;
use argwhy_core::solver::{Ignore, PrimalSettings, Status, primal};
use serde::Deserialize;
use std::path::Path;

#[derive(Deserialize)]
struct Known {
    name: String,
    regularization: f64,
    features: Vec<Vec<f64>>,
    decisions: Vec<Vec<f64>>,
    matrix: Rows,
    bound: Limits,
    primal: f64,
    weights: Vec<Vec<f64>>,
    accuracy: f64,
}

/// The sets as rows, and, where the rows are those of boxes, as boxes.
fn sets(known: &Known) -> Vec<SampleSets> {
    let (n_samples, n) = (known.decisions.len(), known.decisions[0].len());
    let none = BoxLimits::new(vec![f64::NEG_INFINITY; n], vec![f64::INFINITY; n]).unwrap();
    let new = |given: &Constraints| SampleSets::new(&none, Some(given), n_samples, |i| i).unwrap();
    let bound = known.bound.array(f64::INFINITY);
    let given = Constraints::new().with_inequalities(known.matrix.array(), bound.clone()).unwrap();
    let mut sets = vec![new(&given)];
    if bound.ncols() == 2 * n {
        let upper = bound.slice(ndarray::s![.., ..n]).to_owned();
        let lower = bound.slice(ndarray::s![.., n..]).mapv(|w| -w);
        let given = Constraints::new().with_lower(lower).unwrap();
        sets.push(new(&given.with_upper(upper).unwrap()));
    }
    sets
}

#[test]
fn the_primal_finds_every_known_optimum() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/plain_io/problems.json");
    let all: Vec<Known> = read(Path::new(path));
    assert_eq!(all.len(), 5);
    let settings = FeatureSettings {
        expansion: Expansion::Raw,
        normalization: Normalization::None,
        ..FeatureSettings::default()
    };
    for known in all {
        let (features, decisions) = (array2(&known.features), array2(&known.decisions));
        let map = FeatureMap::fit(settings, features.view()).unwrap();
        let design = Design::new(&map, features.view()).unwrap();
        for sets in sets(&known) {
            let name = format!("{} {}", known.name, matches!(sets, SampleSets::Boxes(_)));
            let problem = Problem::new(decisions.view(), sets, known.regularization).unwrap();
            let tight = PrimalSettings { tol: 1e-12, ..PrimalSettings::default() };
            let outcome = primal::solve(&problem, &design, &tight, &mut Ignore).unwrap();
            let c = outcome.certified.certificate;
            assert_eq!(outcome.status, Status::Solved, "{name}: {c:?}");
            let allowed = 1e-9_f64.max(4.0 * known.accuracy) * known.primal;
            assert!((c.primal - known.primal).abs() <= allowed, "{name}: {c:?} {}", known.primal);
            let found = outcome.feature_weights.unwrap();
            let expected = array2(&known.weights);
            for (a, b) in found.t().iter().zip(&expected) {
                assert!((a - b).abs() < 1e-5, "{name}: {a} {b}");
            }
        }
    }
}
