//! Effects of experts whose law is known: every curve of both bundled ones and of a made-up family,
//! against the expert's own curve, which the same estimator finds in the expert's law.

use argwhy::core::features::Expansion;
use argwhy::explain::{Effect, Explainer, Explanation, SignalEffect, Situations};
use argwhy::settings::TrendChoice;
use argwhy::{Dataset, FitSettings, Model, Pipeline, Predictor};
use argwhy_experts::charging::{self, Depot, Night, PERIODS};
use argwhy_experts::{Expert, ExpertSettings, Quadrotor, STATE_DIM};
use ndarray::Array2;

/// Off by at most this share of the true curve's range,
const OFF: f64 = 0.05;
/// where it has at least this share of the range of the decision's strongest curve; a weaker one,
/// or one that is not there,
const STRONG: f64 = 0.2;
/// by at most this share of the strongest's range.
const WEAK_OFF: f64 = 0.025;

/// What the expert wants and does in a situation with one signal moved, and whether no limit holds
/// it.
struct Answer {
    desired: Vec<f64>,
    decision: Vec<f64>,
    free: Vec<bool>,
}

/// Situation, signal, value.
type Law<'a> = &'a dyn Fn(usize, usize, f64) -> Answer;

/// The expert's own curves on one decision.
struct Own {
    desired: Vec<f64>,
    decision: Vec<f64>,
}

/// The expert's own curves of one signal: steps summed from edge to edge, each the mean over the
/// rows of its bin that count, or over all where less than two do; with a mean of zero over the
/// rows that count.
fn own_curves(effect: &Effect, j: usize, values: &[f64], law: Law<'_>) -> Vec<Own> {
    let (edges, last) = (&effect.at, effect.at.len() - 2);
    let bin = |value: &f64| edges.partition_point(|e| e < value).saturating_sub(1).min(last);
    let of: Vec<usize> = values.iter().map(bin).collect();
    let sides: Vec<[Answer; 2]> =
        (0..values.len()).map(|i| [law(i, j, edges[of[i]]), law(i, j, edges[of[i] + 1])]).collect();
    let curve = |step: &dyn Fn(&[Answer; 2]) -> f64, counts: &dyn Fn(&[Answer; 2]) -> bool| {
        let (mut curve, mut level, mut counted) = (vec![0.0], 0.0, 0.0);
        for bin in 0..=last {
            let all: Vec<_> = (0..of.len()).filter(|&i| of[i] == bin).map(|i| &sides[i]).collect();
            let free: Vec<_> = all.iter().copied().filter(|side| counts(side)).collect();
            let is_known = free.len() >= 2;
            let rows = if is_known { free } else { all };
            let mean = rows.iter().map(|side| step(side)).sum::<f64>() / rows.len().max(1) as f64;
            curve.push(curve[bin] + mean);
            if is_known {
                level += (curve[bin] + 0.5 * mean) * rows.len() as f64;
                counted += rows.len() as f64;
            }
        }
        curve.iter().map(|value| value - level / counted).collect()
    };
    let dim = sides[0][0].desired.len();
    (0..dim)
        .map(|m| Own {
            desired: curve(&|[low, high]| high.desired[m] - low.desired[m], &|[low, high]| {
                low.free[m] && high.free[m]
            }),
            decision: curve(&|[low, high]| high.decision[m] - low.decision[m], &|_| true),
        })
        .collect()
}

fn range(curve: &[f64]) -> f64 {
    let highest = curve.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    highest - curve.iter().copied().fold(f64::INFINITY, f64::min)
}

/// How far one curve is off, and the range of the true one.
struct Compared {
    what: String,
    decision: usize,
    off: f64,
    range: f64,
}

/// Where curves of g are known, and curves of decisions everywhere.
fn compared(told: &SignalEffect, own: &[Own]) -> Vec<[Compared; 2]> {
    let effect = told.effect.as_ref().unwrap();
    let decisions = effect.decision.as_ref().unwrap();
    let compare = |m: usize,
                   what: &str,
                   (first, last): (usize, usize),
                   truth: &[f64],
                   found: &[f64]| Compared {
        what: format!("{} on {what} {m}", told.name),
        decision: m,
        off: (first..=last).map(|k: usize| f64::abs(truth[k] - found[k])).fold(0.0, f64::max),
        range: range(&truth[first..=last]),
    };
    (0..own.len())
        .map(|m| {
            let known = effect.known(m).expect("some decisions are held by nothing");
            let whole = (0, effect.at.len() - 1);
            [
                compare(m, "desired", known, &own[m].desired, &effect.desired[m]),
                compare(m, "decided", whole, &own[m].decision, &decisions[m]),
            ]
        })
        .collect()
}

/// Every curve of an expert.
fn check_every_curve(explanation: &Explanation, signals: &Array2<f64>, law: Law<'_>) {
    let mut all: [Vec<Compared>; 2] = [Vec::new(), Vec::new()];
    for told in &explanation.signals {
        let Some(effect) = &told.effect else { continue };
        let own = own_curves(effect, told.number, &signals.column(told.number).to_vec(), law);
        for [desired, decided] in compared(told, &own) {
            all[0].push(desired);
            all[1].push(decided);
        }
    }
    let mut far = Vec::new();
    for all in &all {
        for one in all {
            let same = all.iter().filter(|other| other.decision == one.decision);
            let strongest = same.map(|other| other.range).fold(0.0, f64::max);
            let allowed = if one.range >= STRONG * strongest {
                OFF * one.range
            } else {
                WEAK_OFF * strongest
            };
            if one.off > allowed {
                let share = one.off / strongest;
                far.push(format!("{}: {} of {}, {share}", one.what, one.off, one.range));
            }
        }
    }
    assert!(far.is_empty(), "{} curves: {far:#?}", far.len());
}

fn explained(model: &Model, predictor: &Predictor, situations: Situations) -> Explanation {
    Explainer::new(model, predictor, situations).explain().unwrap()
}

/// A night with one of its signals moved.
fn moved(night: &Night, j: usize, value: f64) -> Night {
    let mut night = *night;
    match j.checked_sub(PERIODS) {
        None => night.prices[j] = value,
        Some(0) => night.temperature = value,
        Some(1) => night.building_peak = value,
        Some(2) => night.orders = value,
        _ => night.day_tariff = value,
    }
    night
}

#[test]
fn every_curve_of_a_dispatcher_who_never_errs() {
    let (nights, depot) = (charging::nights(1000, 3), Depot::default());
    let signals = charging::signals(&nights);
    let given = charging::constraints(&nights).unwrap();
    let data = Dataset::new(signals.clone(), depot.best_plans(&nights).unwrap()).unwrap();
    let settings = FitSettings {
        kernel: "linear + 2.5*rbf".parse().unwrap(),
        gamma: "0.0095".parse().unwrap(),
        features: Expansion::Poly2,
        trend: TrendChoice::None,
        regularization: 1e-5.into(),
        ..FitSettings::default()
    };
    let data = data.with_constraints(given.clone()).unwrap();
    let model = Pipeline::new(settings).unwrap().fit(&data).unwrap().model;
    let predictor = Predictor::new(&model).unwrap();
    let situations = Situations::of_data(&predictor, signals.view(), Some(&given)).unwrap();
    let sets = charging::sets(&nights).unwrap();
    let law = |i: usize, j: usize, value: f64| {
        let desired = depot.desired(&moved(&nights[i], j, value)).to_vec();
        let mut decision = desired.clone();
        sets.project(i, &mut decision).unwrap();
        let free = decision.iter().zip(&desired).map(|(u, g)| (u - g).abs() < 1e-6).collect();
        Answer { desired, decision, free }
    };
    check_every_curve(&explained(&model, &predictor, situations), &signals, &law);
}

#[test]
fn every_curve_of_the_pilot() {
    let pilot = Expert::new(Quadrotor::default(), ExpertSettings::default()).unwrap();
    let demos = pilot.demonstrations(2500, 0).unwrap();
    let data = Dataset::new(demos.signals.clone(), demos.decisions).unwrap();
    let settings = FitSettings {
        kernel: "matern52".parse().unwrap(),
        trend: TrendChoice::Linear,
        features: Expansion::Raw,
        regularization: 1e-6.into(),
        bounds: Some(format!("{},{}", demos.lower[0], demos.upper[0]).parse().unwrap()),
        ..FitSettings::default()
    };
    let model = Pipeline::new(settings).unwrap().fit(&data).unwrap().model;
    let predictor = Predictor::new(&model).unwrap();
    let every = 2;
    let rows: Vec<usize> = (0..demos.signals.nrows()).step_by(every).collect();
    let signals = demos.signals.select(ndarray::Axis(0), &rows);
    let situations = Situations::of_data(&predictor, signals.view(), None).unwrap();
    // A plan's first decision at a limit does not say what would be without: there g is not known.
    let law = |i: usize, j: usize, value: f64| {
        let mut state: [f64; STATE_DIM] = std::array::from_fn(|k| signals[[i, k]]);
        state[j] = value;
        let decision = pilot.decide(&state).unwrap();
        let inside = |m: usize| demos.lower[m] < decision[m] && decision[m] < demos.upper[m];
        Answer {
            desired: decision.to_vec(),
            decision: decision.to_vec(),
            free: vec![inside(0), inside(1)],
        }
    };
    check_every_curve(&explained(&model, &predictor, situations), &signals, &law);
}

/// A number in [-1, 1) that follows from its place.
fn noise(i: usize, j: usize) -> f64 {
    let mut x = (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ (j as u64 + 1).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ (x >> 31)) as f64 / 2_f64.powi(63) - 1.0
}

/// Signals 1 and 4 follow signal 0; 4 and 5 do not matter, 2 and 3 act on the first decision only
/// together.
#[test]
fn every_curve_of_a_family_with_interactions_at_wide_and_narrow_limits() {
    let n = 1000;
    let signals = Array2::from_shape_fn((n, 6), |(i, j)| match j {
        1 | 4 => 0.7 * noise(i, 0) + 0.5 * noise(i, j),
        _ => 1.5 * noise(i, j),
    });
    let wish = |s: &[f64]| {
        vec![1.6 * s[0].sin() + 0.8 * s[1] + 0.5 * s[2] * s[3], 1.2 * s[2] - 0.8 * s[0]]
    };
    for limit in [3.0, 1.0] {
        let decided = |wish: &[f64]| wish.iter().map(|g| g.clamp(-limit, limit)).collect();
        let decisions: Vec<Vec<f64>> =
            signals.rows().into_iter().map(|s| decided(&wish(&s.to_vec()))).collect();
        let decisions = Array2::from_shape_fn((n, 2), |(i, m)| decisions[i][m]);
        let settings = FitSettings {
            kernel: "matern52".parse().unwrap(),
            trend: TrendChoice::Linear,
            features: Expansion::Raw,
            regularization: 1e-6.into(),
            bounds: Some(format!("{},{limit}", -limit).parse().unwrap()),
            ..FitSettings::default()
        };
        let data = Dataset::new(signals.clone(), decisions).unwrap();
        let model = Pipeline::new(settings).unwrap().fit(&data).unwrap().model;
        let predictor = Predictor::new(&model).unwrap();
        let situations = Situations::of_data(&predictor, signals.view(), None).unwrap();
        let law = |i: usize, j: usize, value: f64| {
            let mut signal = signals.row(i).to_vec();
            signal[j] = value;
            let desired = wish(&signal);
            let decision: Vec<f64> = decided(&desired);
            let free = decision.iter().zip(&desired).map(|(u, g)| u == g).collect();
            Answer { desired, decision, free }
        };
        let explanation = explained(&model, &predictor, situations);
        check_every_curve(&explanation, &signals, &law);
    }
}
