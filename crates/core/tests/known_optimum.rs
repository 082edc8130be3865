//! Every solver on every problem whose optimum is known from CVXPY on the full semidefinite program
//! [KIO 9].
//!
//! The folders beside this file hold data and answer; `known_optimum/generate.py` made them.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::known::{self, Known, WAYS, array2};
use argwhy_core::operator::{OperatorKind, Precision};
use argwhy_core::solver::sso::{self, BlockSize, Initialization, Selection};
use argwhy_core::solver::{Ignore, NewtonSettings, SsoSettings, Status, newton};
use serde::Deserialize;

#[derive(Deserialize)]
struct Answer {
    objective: f64,
    responses: Vec<Vec<f64>>,
    accuracy: f64,
}

fn known() -> Vec<Known<Answer>> {
    known::load("known_optimum", 15)
}

#[test]
fn newton_finds_every_known_optimum() {
    for known in known() {
        let name = &known.given.name;
        let problem = known.given.problem();
        // With K factorised, and as larger problems are solved.
        let ranks = [None, Some(problem.n_samples() / 2)];
        for ((precision, kind), max_rank) in
            WAYS.into_iter().flat_map(|way| ranks.map(|r| (way, r)))
        {
            let operator = known.given.operator(precision, kind);
            let settings = NewtonSettings { tol: 1e-10, max_rank, ..NewtonSettings::default() };
            let outcome = newton::solve(&problem, &operator, &settings, 0, &mut Ignore).unwrap();
            let certificate = outcome.certified.certificate;
            assert_eq!(
                outcome.status,
                Status::Solved,
                "{name} {precision:?} {max_rank:?}: {certificate:?}"
            );
            assert!(outcome.iterations <= 15, "{name}: {} steps", outcome.iterations);
            // The certificate encloses the optimum, so the answer can miss it by no more than its
            // own accuracy.
            let answer = known.answer.objective;
            let scale = answer.abs().max(1e-9);
            let allowed = (1e-8_f64).max(4.0 * known.answer.accuracy) * scale + certificate.gap;
            let error = (certificate.objective - answer).abs();
            assert!(
                error <= allowed,
                "{name} {precision:?} {kind:?}: {} is not {answer}",
                certificate.objective
            );
            let responses = array2(&known.answer.responses);
            let off = (&outcome.certified.responses.t() - &responses)
                .iter()
                .fold(0.0_f64, |m, d| m.max(d.abs()));
            assert!(off < 1e-4, "{name}: responses are off by {off:e}");
        }
    }
}

const RULES: [Selection; 4] =
    [Selection::Violation, Selection::Paper, Selection::Cyclic, Selection::Random];
const STARTS: [Initialization; 4] = [
    Initialization::WarmUp,
    Initialization::PaperWarmUp,
    Initialization::Expert,
    Initialization::Zero,
];

#[test]
fn sso_agrees_with_newton_on_every_known_optimum() {
    for known in known() {
        let name = &known.given.name;
        let problem = known.given.problem();
        let n = problem.n_samples();
        let operator = known.given.operator(Precision::F64, OperatorKind::Stored);
        let exact = NewtonSettings { tol: 1e-12, ..NewtonSettings::default() };
        let newton = newton::solve(&problem, &operator, &exact, 0, &mut Ignore).unwrap();
        let expected = newton.certified.certificate.objective;
        for (precision, kind) in [WAYS[0], WAYS[3]] {
            let operator = known.given.operator(precision, kind);
            for (selection, init) in RULES.into_iter().zip(STARTS) {
                let settings = SsoSettings {
                    // Agreement to 1e-8 of the objective, which can be much larger than the gap's
                    // scale.
                    tol: 1e-9,
                    max_iterations: 20_000,
                    block: BlockSize::Share(0.5),
                    selection,
                    init,
                    warm_up: Some(2.min(n)),
                    ..SsoSettings::default()
                };
                let outcome = sso::solve(&problem, &operator, &settings, 3, &mut Ignore).unwrap();
                let found = outcome.certified.certificate;
                assert_eq!(outcome.status, Status::Solved, "{name} {selection:?}: {found:?}");
                let error = (found.objective - expected).abs();
                assert!(
                    error <= 1e-8 * expected.abs().max(1e-9),
                    "{name} {selection:?} {init:?}: {} is not {expected}",
                    found.objective
                );
            }
        }
    }
}

#[test]
fn a_block_of_all_samples_is_one_step_to_the_optimum() {
    for known in known() {
        let problem = known.given.problem();
        let operator = known.given.operator(Precision::F64, OperatorKind::Stored);
        let settings = SsoSettings {
            tol: 1e-9,
            block: BlockSize::Share(1.0),
            init: Initialization::Expert,
            warm_up: Some(1),
            ..SsoSettings::default()
        };
        let outcome = sso::solve(&problem, &operator, &settings, 0, &mut Ignore).unwrap();
        assert_eq!(outcome.status, Status::Solved, "{}", known.given.name);
        assert!(outcome.iterations <= 1, "{}: {} blocks", known.given.name, outcome.iterations);
    }
}
