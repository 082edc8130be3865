//! Every solver on problems with general decision sets, weights and a fixed θ_uu, whose optimum is
//! known from CVXPY on the full semidefinite program.
//!
//! The folders beside this file hold data and answer; `known_sets/generate_sets.py` made them and
//! says how.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::known::{self, Given, WAYS, array2};
use argwhy_core::decision_set::{RowLabel, SampleSets};
use argwhy_core::operator::{OperatorKind, Precision};
use argwhy_core::qp::Metric;
use argwhy_core::solver::sso::{self, BlockSize, Initialization, Selection};
use argwhy_core::solver::{Ignore, NewtonSettings, Outcome, SsoSettings, Status, newton};
use ndarray::{Array2, Axis};
use serde::Deserialize;

#[derive(Deserialize)]
struct Answer {
    objective: f64,
    reduced: f64,
    responses: Vec<Vec<f64>>,
    accuracy: f64,
    reduced_accuracy: f64,
    responses_accuracy: f64,
}

type Known = known::Known<Answer>;

fn known() -> Vec<Known> {
    known::load("known_sets", 60)
}

fn largest(a: &Array2<f64>) -> f64 {
    a.iter().fold(0.0, |m, v| m.max(v.abs()))
}

/// Everything an outcome claims, against the oracle and against the definitions.
fn check(known: &Known, outcome: &Outcome, tol: f64, how: &str, faults: &mut Vec<String>) {
    let Known { given, answer } = known;
    let c = outcome.certified.certificate;
    let mut fault = |what: String| faults.push(format!("{} {how}: {what}", given.name));
    if outcome.status != Status::Solved {
        fault(format!("{:?} after {} steps, {c:?}", outcome.status, outcome.iterations));
    }

    // The certificate encloses the optimum; the answer can miss it by no more than its own
    // accuracy.
    let scale = answer.reduced.abs().max(1e-6);
    let off = (c.objective - answer.objective).abs();
    if off > (1e-8_f64).max(4.0 * answer.accuracy) * scale + c.gap {
        fault(format!("objective {} is not {}", c.objective, answer.objective));
    }
    let off = (c.objective - answer.reduced).abs();
    let rounding = 1e-12 * (scale + c.primal.abs());
    if off > 4.0 * answer.reduced_accuracy * scale + c.gap + rounding {
        fault(format!("objective {:e} misses {:e} by {off:e}", c.objective, answer.reduced));
    }
    // ‖x − x*‖² ≤ (Σw/w_i)·gap for the least weight, Θ ⪰ I.
    let responses = &outcome.certified.responses;
    let total: f64 = (0..given.decisions.len()).map(|i| given.weight(i)).sum();
    let off = largest(&(&responses.t() - &array2(&answer.responses)));
    let allowed = answer.responses_accuracy + (c.gap * total).sqrt() + 1e-9;
    if off > 2.0 * allowed {
        fault(format!("responses are off by {off:e}, {allowed:e} allowed"));
    }

    let theta = given.theta();
    let sets = given.sets();
    let size = 1.0 + largest(responses).max(largest(&array2(&given.decisions)));
    for (i, x) in responses.columns().into_iter().enumerate() {
        let excess = sets.excess(i, &x.to_vec());
        if excess > 1e-9 * size {
            fault(format!("response {i} lies outside its set by {excess:e}"));
        }
    }
    let bounds = c.primal.abs().max(c.dual.abs()).max(c.objective.abs());
    if (c.primal - c.dual - c.gap).abs() > 1e-12 * bounds.max(1e-6) || c.gap < 0.0 {
        fault(format!("P − D is {:e}, {c:?}", c.primal - c.dual));
    }
    if c.relative_gap > tol {
        fault(format!("relative gap {:e}", c.relative_gap));
    }

    // α = w(û − x)/λ at the optimum, g = Kα.
    let features = array2(&given.features);
    let gram = Array2::from_shape_fn((features.nrows(), features.nrows()), |(a, b)| {
        given.kernel.evaluate(&features.row(a).to_vec(), &features.row(b).to_vec())
    });
    let g = gram.dot(&outcome.certified.coefficients.t());
    let pull = largest(&g).max(size);
    if largest(&(&g.t() - &outcome.certified.desired)) > 1e-9 * pull {
        fault("desired decisions are not Kα".to_owned());
    }

    // Prices: Mᵀν = 2(g − Θy) at y = X(g), of the right sign, only where a limit holds y.
    let metric = given.problem().metric().clone();
    let polyhedra = SampleSets::Polyhedra(sets.clone().into_polyhedra());
    let mut y = g.clone();
    for (i, mut row) in y.rows_mut().into_iter().enumerate() {
        let decided = decide_one(&polyhedra, i, &metric, &row.to_vec());
        row.iter_mut().zip(decided).for_each(|(a, b)| *a = b);
    }
    let mut left = 2.0 * (&g - &y.dot(&theta));
    let prices = &outcome.prices;
    for ((&i, &label), &value) in prices.samples.iter().zip(&prices.limits).zip(&prices.values) {
        let i = i as usize;
        let (row, bound) = given.limit(i, label);
        let mut left = left.row_mut(i);
        left.scaled_add(-value, &row);
        let length = row.dot(&row).sqrt();
        let slack = (bound - row.dot(&y.row(i))) / length;
        if slack.abs() > 1e-8 * size {
            fault(format!("{label} of sample {i} has a price and is {slack:e} away"));
        }
        if value < 0.0 && !matches!(label, RowLabel::Equality(_)) {
            fault(format!("{label} of sample {i} has the price {value}"));
        }
    }
    let off = largest(&left);
    if off > 1e-8 * (pull + largest(&y.dot(&theta))) {
        fault(format!("prices miss 2(g − Θx) by {off:e}"));
    }
    // And y is x up to the gap.
    let off = largest(&(&y.t() - responses));
    if off > 2.0 * (c.gap * total).sqrt() + 1e-8 * size {
        fault(format!("X(g) misses the responses by {off:e}"));
    }
}

/// X(g) of one sample without the solver under test: accelerated projected gradient, restarted when
/// it turns uphill. Projections are checked for themselves in `small_qp`.
fn decide_one(sets: &SampleSets, i: usize, metric: &Metric, g: &[f64]) -> Vec<f64> {
    let theta = metric.theta();
    let largest_eigenvalue: f64 = theta
        .rows()
        .into_iter()
        .map(|r| r.iter().map(|v| v.abs()).sum::<f64>())
        .fold(0.0, f64::max);
    let mut u = g.to_vec();
    sets.project(i, &mut u).unwrap();
    if metric.is_identity() {
        return u;
    }
    let (mut v, mut momentum) = (u.clone(), 1.0_f64);
    for _ in 0..200_000 {
        let mut pull = vec![0.0; g.len()];
        metric.apply(&v, &mut pull);
        let mut next: Vec<f64> = v
            .iter()
            .zip(&pull)
            .zip(g)
            .map(|((v, p), g)| v - (p - g) / largest_eigenvalue)
            .collect();
        sets.project(i, &mut next).unwrap();
        let change = next.iter().zip(&u).fold(0.0_f64, |m, (a, b)| m.max((a - b).abs()));
        let turned: f64 = v.iter().zip(&next).zip(&u).map(|((v, a), b)| (v - a) * (a - b)).sum();
        let following =
            if turned > 0.0 { 1.0 } else { 0.5 * (1.0 + (1.0 + 4.0 * momentum * momentum).sqrt()) };
        let weight = if turned > 0.0 { 0.0 } else { (momentum - 1.0) / following };
        v = next.iter().zip(&u).map(|(a, b)| a + weight * (a - b)).collect();
        let size = next.iter().fold(1e-3_f64, |m, a| m.max(a.abs()));
        u = next;
        momentum = following;
        if change <= 1e-16 * size {
            break;
        }
    }
    u
}

fn report(faults: &[String]) {
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn newton_finds_every_known_optimum() {
    let mut faults = Vec::new();
    for known in known() {
        let problem = known.given.problem();
        // As small problems are solved, and with a preconditioner that is too small.
        let ranks = [None, Some(problem.n_samples() / 2)];
        for ((precision, kind), max_rank) in
            WAYS.into_iter().flat_map(|way| ranks.map(|r| (way, r)))
        {
            let operator = known.given.operator(precision, kind);
            let settings = NewtonSettings { tol: 1e-10, max_rank, ..NewtonSettings::default() };
            let how = format!("newton {precision:?} {kind:?} {max_rank:?}");
            let outcome = match newton::solve(&problem, &operator, &settings, 0, &mut Ignore) {
                Ok(outcome) => outcome,
                Err(error) => {
                    faults.push(format!("{} {how}: {error}", known.given.name));
                    continue;
                }
            };
            check(&known, &outcome, settings.tol, &how, &mut faults);
            if outcome.iterations > 15 {
                faults.push(format!("{} {how}: {} steps", known.given.name, outcome.iterations));
            }
        }
    }
    report(&faults);
}

const RULES: [Selection; 4] =
    [Selection::Violation, Selection::Paper, Selection::Cyclic, Selection::Random];
const STARTS: [Initialization; 4] = [
    Initialization::WarmUp,
    Initialization::PaperWarmUp,
    Initialization::Expert,
    Initialization::Zero,
];
const BLOCKS: [BlockSize; 4] =
    [BlockSize::Share(0.5), BlockSize::Share(0.7), BlockSize::Share(0.3), BlockSize::Share(0.5)];

#[test]
fn sso_finds_every_known_optimum() {
    let mut faults = Vec::new();
    for known in known() {
        let problem = known.given.problem();
        for (precision, kind) in [WAYS[0], WAYS[3]] {
            let operator = known.given.operator(precision, kind);
            for ((selection, init), block) in RULES.into_iter().zip(STARTS).zip(BLOCKS) {
                let settings = SsoSettings {
                    tol: 1e-9,
                    max_iterations: 20_000,
                    block,
                    selection,
                    init,
                    warm_up: Some(2.min(problem.n_samples())),
                    ..SsoSettings::default()
                };
                let how = format!("sso {selection:?} {precision:?}");
                match sso::solve(&problem, &operator, &settings, 3, &mut Ignore) {
                    Ok(outcome) => check(&known, &outcome, settings.tol, &how, &mut faults),
                    Err(error) => faults.push(format!("{} {how}: {error}", known.given.name)),
                }
            }
        }
    }
    report(&faults);
}

#[test]
fn permuting_samples_permutes_the_answer() {
    let mut faults = Vec::new();
    for known in known() {
        let n = known.given.decisions.len();
        // Reversed and rotated.
        let order: Vec<usize> = (0..n).map(|i| (2 * n - 1 - i + n / 3) % n).collect();
        let solve = |given: &Given| {
            let operator = given.operator(Precision::F64, OperatorKind::Stored);
            let settings = NewtonSettings { tol: 1e-12, ..NewtonSettings::default() };
            newton::solve(&given.problem(), &operator, &settings, 0, &mut Ignore).unwrap()
        };
        let (first, second) = (solve(&known.given), solve(&known.given.permuted(&order)));
        let there = first.certified.responses.select(Axis(1), &order);
        let off = largest(&(&there - &second.certified.responses));
        let total: f64 = (0..n).map(|i| known.given.weight(i)).sum();
        let gaps = first.certified.certificate.gap + second.certified.certificate.gap;
        if off > 2.0 * (gaps * total).sqrt() + 1e-9 * (1.0 + largest(&there)) {
            faults.push(format!("{}: responses differ by {off:e}", known.given.name));
        }
    }
    report(&faults);
}
