//! Explanations of experts whose objective is known.

use argwhy::core::dataset::Names;
use argwhy::core::features::Expansion;
use argwhy::core::metrics;
use argwhy::explain::{Effect, Explainer, Explanation, Method, OneSettings, Situations};
use argwhy::settings::TrendChoice;
use argwhy::{Dataset, FitSettings, Model, Pipeline, Predictor};
use ndarray::{Array2, Axis};

/// A number in [-1, 1) that follows from its place.
fn noise(i: usize, j: usize) -> f64 {
    let mut x = (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ (j as u64 + 1).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ (x >> 31)) as f64 / 2_f64.powi(63) - 1.0
}

const NAMES: [&str; 6] = ["price", "load", "wind", "sun", "echo", "idle"];

/// `load` and `echo` follow `price`; `idle` follows nothing.
fn signals(n: usize) -> Array2<f64> {
    Array2::from_shape_fn((n, 6), |(i, j)| match j {
        1 | 4 => 0.7 * noise(i, 0) + 0.5 * noise(i, j),
        _ => 1.5 * noise(i, j),
    })
}

/// What the expert wants: `echo` and `idle` do not matter, `wind` and `sun` only together.
fn wish(s: &[f64]) -> [f64; 2] {
    [1.6 * s[0].sin() + 0.8 * s[1] + 0.5 * s[2] * s[3], 1.2 * s[2] - 0.8 * s[0]]
}

struct Fitted {
    model: Model,
    predictor: Predictor,
    signals: Array2<f64>,
}

/// Decisions within ±`limit`: three leaves nearly all wishes alone.
fn fitted(n: usize, limit: f64, settings: FitSettings) -> Fitted {
    let signals = signals(n);
    let decisions = Array2::from_shape_fn((n, 2), |(i, m)| {
        wish(&signals.row(i).to_vec())[m].clamp(-limit, limit)
    });
    let names = Names {
        signals: NAMES.iter().map(ToString::to_string).collect(),
        decisions: vec!["power".to_owned(), "heat".to_owned()],
        ..Names::default()
    };
    let data = Dataset::new(signals.clone(), decisions).unwrap().with_names(names).unwrap();
    let bounds = Some(format!("{},{limit}", -limit).parse().unwrap());
    let model =
        Pipeline::new(FitSettings { bounds, ..settings }).unwrap().fit(&data).unwrap().model;
    let predictor = Predictor::new(&model).unwrap();
    Fitted { model, predictor, signals }
}

impl Fitted {
    fn explainer(&self) -> Explainer<'_> {
        let situations = Situations::of_data(&self.predictor, self.signals.view(), None).unwrap();
        Explainer::new(&self.model, &self.predictor, situations)
    }
}

fn importance(explanation: &Explanation, name: &str) -> f64 {
    explanation.signals.iter().find(|s| s.name == name).unwrap().importance
}

fn effect<'a>(explanation: &'a Explanation, name: &str) -> &'a Effect {
    explanation.signals.iter().find(|s| s.name == name).unwrap().effect.as_ref().unwrap()
}

/// The largest distance of two curves, each about its mean over the rows, by the true one's range.
fn off(
    effect: &Effect,
    m: usize,
    signals: &Array2<f64>,
    j: usize,
    truth: impl Fn(f64) -> f64,
) -> f64 {
    let mean = signals.column(j).mapv(&truth).mean().unwrap();
    let curve: Vec<f64> = effect.at.iter().map(|&at| truth(at) - mean).collect();
    let (low, high) =
        curve.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(*v), h.max(*v)));
    let far = curve.iter().zip(&effect.desired[m]).map(|(a, b)| (a - b).abs());
    far.fold(0.0, f64::max) / (high - low)
}

#[test]
fn effects_are_those_of_the_expert() {
    let raw = FitSettings { features: Expansion::Raw, ..FitSettings::default() };
    check_effects(&fitted(700, 3.0, raw));
    let with_trend = FitSettings { trend: TrendChoice::Linear, ..FitSettings::default() };
    check_effects(&fitted(700, 3.0, with_trend));
}

fn check_effects(fitted: &Fitted) {
    let explanation = fitted.explainer().explain().unwrap();
    let off = |name: &str, m: usize, truth: &dyn Fn(f64) -> f64| {
        let j = NAMES.iter().position(|own| *own == name).unwrap();
        let off = off(effect(&explanation, name), m, &fitted.signals, j, truth);
        assert!(off < 0.05, "{name} on {m}: {off}");
    };
    off("price", 0, &|s| 1.6 * s.sin());
    off("load", 0, &|s| 0.8 * s);
    off("wind", 1, &|s| 1.2 * s);
    off("price", 1, &|s| -0.8 * s);

    let whole: f64 = explanation.signals.iter().map(|s| s.importance).sum();
    assert!((whole - 1.0).abs() < 1e-12, "{whole}");
    assert!(explanation.signals.is_sorted_by(|a, b| a.importance >= b.importance));
    // Wind and sun matter for power only together: neither's own curve would tell.
    let weakest = ["price", "load", "wind", "sun"]
        .map(|name| importance(&explanation, name))
        .into_iter()
        .fold(1.0, f64::min);
    for idle in ["echo", "idle"] {
        let share = importance(&explanation, idle);
        assert!(share < 0.1 * weakest, "{idle}: {share} of {weakest}");
    }
    let pair = explanation.pair.as_ref().unwrap();
    let mut names = pair.names.clone();
    names.sort();
    assert_eq!((names, pair.decision), (["sun".to_owned(), "wind".to_owned()], 0));
    let product = |i: usize| 0.5 * fitted.signals[[i, 2]] * fitted.signals[[i, 3]];
    let all: Vec<f64> = (0..700).map(product).collect();
    let wishes: Vec<f64> = (0..700).map(|i| wish(&fitted.signals.row(i).to_vec())[0]).collect();
    let variance = |values: &[f64]| ndarray::ArrayView1::from(values).var(0.0);
    let truth = variance(&all) / variance(&wishes);
    assert!((pair.share - truth).abs() < 0.3 * truth, "{} {truth}", pair.share);
}

#[test]
fn the_decision_stops_at_its_limits_and_the_cost_says_where() {
    let fitted = fitted(300, 3.0, FitSettings::default());
    let explanation = fitted.explainer().explain().unwrap();
    let range = |curve: &[f64]| {
        let highest = curve.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        highest - curve.iter().copied().fold(f64::INFINITY, f64::min)
    };
    let price = effect(&explanation, "price");
    let decided = &price.decision.as_ref().unwrap()[0];
    assert!(range(decided) <= range(&price.desired[0]) + 1e-9);
    // All but the outermost.
    let between = price.rows.iter().sum::<usize>();
    assert!((280..300).contains(&between), "{between}");
    for curve in &explanation.costs {
        let least = curve.cost.iter().copied().fold(f64::INFINITY, f64::min);
        let beyond = curve.at.iter().zip(&curve.allowed).filter(|(at, _)| at.abs() > 3.0);
        assert!(beyond.clone().all(|(_, allowed)| !allowed));
        assert!(least >= -1e-9, "{least}");
        assert_eq!(curve.limits, [Some(-3.0), Some(3.0)]);
    }
}

#[test]
fn one_decision_adds_up() {
    let fitted = fitted(300, 3.0, FitSettings::default());
    let explainer = fitted.explainer();
    for row in [3, 17, 40] {
        let signal = fitted.signals.row(row).to_vec();
        let one = explainer.explain_one(&signal, None, OneSettings::default()).unwrap();
        assert_eq!(one.method, Method::Exact);
        for m in 0..2 {
            let pushed: f64 = one.pushes.iter().map(|push| push.push[m]).sum();
            let whole = one.desired[m] - one.typical.desired[m];
            assert!((pushed - whole).abs() < 1e-9, "{pushed} {whole}");
        }
        // The whole sum has the desired decision; the ten largest terms are some of it.
        let terms = one.rests_on.as_ref().unwrap();
        assert!(terms.len() == 10 && terms.is_sorted_by(|a, b| a.share >= b.share));
        // A change that is told does change the decision by that much, and hardly less would do.
        let decision = one.decision.as_ref().unwrap();
        let settings = OneSettings { by: Some(0.25) };
        let changed = explainer.explain_one(&signal, None, settings).unwrap();
        let change = &changed.changes[0];
        let moved = |to: f64| {
            let mut moved = signal.clone();
            moved[NAMES.iter().position(|name| *name == change.signal).unwrap()] = to;
            let moved = Array2::from_shape_vec((1, 6), moved).unwrap();
            let decided = fitted.predictor.predict(moved.view()).unwrap();
            decided.iter().zip(decision).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
        };
        let far = moved(change.to.unwrap());
        assert!((0.25..0.26).contains(&far), "{far}");
    }
}

#[test]
fn a_decision_at_a_limit_is_held_by_it_and_can_be_freed() {
    let fitted = fitted(400, 1.0, FitSettings::default());
    let desired = fitted.predictor.desired(fitted.signals.view()).unwrap();
    let at_limit = (0..400).find(|&i| desired[[i, 0]] > 1.1).expect("some are beyond the limit");
    let signal = fitted.signals.row(at_limit).to_vec();
    let one = fitted.explainer().explain_one(&signal, None, OneSettings::default()).unwrap();
    assert!(one.held_by.iter().any(|held| held.limit == "upper[power]" && held.price > 0.0));
    let freed = one.frees.iter().find(|freed| freed.limit == "upper[power]").unwrap();
    let (name, to) = (freed.signal.as_ref().unwrap(), freed.to.unwrap());
    let mut moved = signal;
    moved[NAMES.iter().position(|own| own == name).unwrap()] = to;
    let moved = Array2::from_shape_vec((1, 6), moved).unwrap();
    let desired = fitted.predictor.desired(moved.view()).unwrap()[[0, 0]];
    assert!(desired <= 1.0 && desired > 0.95, "{desired}");
}

#[test]
fn plain_models_are_explained_over_data_alone() {
    let settings = FitSettings {
        kernel: "linear".parse().unwrap(),
        primal: true,
        features: Expansion::Raw,
        ..FitSettings::default()
    };
    let fitted = fitted(300, 3.0, settings);
    assert!(Situations::of_support(&fitted.model, &fitted.predictor).is_err());
    let one = fitted.explainer().explain_one(&[0.0; 6], None, OneSettings::default()).unwrap();
    assert!(one.rests_on.is_none() && one.method == Method::Exact);
    let explanation = fitted.explainer().explain().unwrap();
    let straight = effect(&explanation, "wind");
    // A linear law has a line for an effect, the same in every situation.
    assert!(straight.spread[1].iter().all(|apart| *apart < 1e-9));
    let observed = fitted.predictor.predict(fitted.signals.view()).unwrap();
    assert!(metrics::r2(observed.view(), observed.view(), None) > 0.999);
    assert_eq!(observed.len_of(Axis(0)), 300);
}

#[test]
fn a_model_alone_is_explained_over_the_samples_it_keeps() {
    let fitted = fitted(300, 3.0, FitSettings::default());
    let situations = Situations::of_support(&fitted.model, &fitted.predictor).unwrap();
    let explanation =
        Explainer::new(&fitted.model, &fitted.predictor, situations).explain().unwrap();
    assert!(explanation.situations.support_only);
    assert_eq!(explanation.situations.rows, fitted.model.n_support());
    assert!(importance(&explanation, "price") > importance(&explanation, "idle"));
}
