//! Explanations of the bundled dispatcher, whose objective is known, whose limits are polytopes.

use argwhy::core::Constraints;
use argwhy::core::dataset::Names;
use argwhy::core::features::{Expansion, Normalization};
use argwhy::explain::{Explainer, OneSettings, Situations};
use argwhy::settings::ThetaChoice;
use argwhy::{Dataset, FitSettings, Model, Pipeline, Predictor};
use argwhy_experts::charging::{self, Depot, HOURS, Night, PERIODS, SIGNAL_NAMES};
use ndarray::{Array1, Array2, array};

struct Dispatch {
    model: Model,
    predictor: Predictor,
    nights: Vec<Night>,
    plans: Array2<f64>,
}

/// What is learned from a dispatcher who never errs.
fn dispatch(n: usize) -> Dispatch {
    let nights = charging::nights(n, 3);
    let plans = Depot::default().best_plans(&nights).unwrap();
    let names = Names {
        signals: SIGNAL_NAMES.iter().map(ToString::to_string).collect(),
        decisions: charging::PERIOD_NAMES.iter().map(ToString::to_string).collect(),
        inequalities: (0..charging::LIMIT_ROWS).map(charging::limit_name).collect(),
        ..Names::default()
    };
    let data = Dataset::new(charging::signals(&nights), plans.clone()).unwrap();
    let data = data.with_constraints(charging::constraints(&nights).unwrap()).unwrap();
    let kernel = "linear + 0.3*rbf".parse().unwrap();
    let settings = FitSettings {
        features: Expansion::Poly2,
        kernel,
        regularization: 1e-5.into(),
        ..FitSettings::default()
    };
    let fit = Pipeline::new(settings).unwrap().fit(&data.with_names(names).unwrap()).unwrap();
    let predictor = Predictor::new(&fit.model).unwrap();
    Dispatch { model: fit.model, predictor, nights, plans }
}

impl Dispatch {
    fn explainer(&self) -> Explainer<'_> {
        let (signals, given) =
            (charging::signals(&self.nights), charging::constraints(&self.nights).unwrap());
        let situations =
            Situations::of_data(&self.predictor, signals.view(), Some(&given)).unwrap();
        Explainer::new(&self.model, &self.predictor, situations)
    }
}

#[test]
fn decisions_in_polytopes_are_explained_by_the_limits_that_hold_them() {
    let learned = dispatch(200);
    let explainer = learned.explainer();
    let given = charging::constraints(&learned.nights).unwrap();
    let mut freed = 0;
    for i in (0..200).step_by(40) {
        let own = given.select(&[i]);
        let set = learned.predictor.sets(Some(&own), 1).unwrap();
        let signal = learned.nights[i].signal().to_vec();
        let one = explainer.explain_one(&signal, Some(&set), OneSettings::default()).unwrap();
        let row = Array2::from_shape_vec((1, signal.len()), signal.clone()).unwrap();
        let decision = learned.predictor.predict_within(row.view(), &own).unwrap();
        assert_eq!(one.decision.as_ref().unwrap(), &decision.row(0).to_vec());
        let near = (&decision.row(0) - &learned.plans.row(i)).mapv(f64::abs);
        assert!(near.iter().all(|apart| *apart < 3.0), "{near}");
        let desired = learned.predictor.desired(row.view()).unwrap();
        let prices = learned.predictor.prices(desired.view(), &set).unwrap();
        let told: Vec<f64> = one.held_by.iter().map(|held| held.price).collect();
        assert_eq!(told, prices.values);
        assert_eq!(one.frees.len(), one.held_by.len());
        // A change that is told to free a decision from a limit does.
        for free in &one.frees {
            let (Some(name), Some(to)) = (&free.signal, free.to) else { continue };
            let mut moved = row.clone();
            moved[[0, SIGNAL_NAMES.iter().position(|own| own == name).unwrap()]] = to;
            let desired = learned.predictor.desired(moved.view()).unwrap();
            let held = learned.predictor.prices(desired.view(), &set).unwrap();
            let names = held.limits.iter().map(|limit| learned.model.limit_name(*limit));
            assert!(!names.into_iter().any(|name| name == free.limit), "{}", free.limit);
            freed += 1;
        }
    }
    assert!(freed > 0);
    // What is told to be allowed along a dimension is, with all other decisions as they are.
    for curve in &explainer.explain().unwrap().costs {
        let least = curve.at.iter().zip(&curve.cost).zip(&curve.allowed);
        let allowed = least.filter(|(_, allowed)| **allowed).map(|((_, cost), _)| *cost);
        assert!(allowed.fold(f64::INFINITY, f64::min) >= -1e-9);
    }
}

#[test]
fn a_known_price_turns_costs_into_money() {
    let learned = dispatch(300);
    let (night, price) = (charging::PERIOD_NAMES[4], SIGNAL_NAMES[4]);
    let explainer = learned.explainer().in_money(night, price).unwrap();
    let money = explainer.money().unwrap();
    // A kW in a period of two hours is two kWh: the price pays for half a unit.
    let wear = Depot::default().wear / HOURS;
    assert!((money.worth / wear - 1.0).abs() < 0.15, "{money:?} {wear}");
    let given = charging::constraints(&learned.nights).unwrap().select(&[7]);
    let set = learned.predictor.sets(Some(&given), 1).unwrap();
    let signal = learned.nights[7].signal().to_vec();
    let one = explainer.explain_one(&signal, Some(&set), OneSettings::default()).unwrap();
    for held in &one.held_by {
        assert_eq!(held.money, Some(held.price * money.worth));
    }
    let curve = &explainer.explain().unwrap().costs[0];
    let paid = curve.money.as_ref().unwrap();
    assert!(paid.iter().zip(&curve.cost).all(|(paid, cost)| *paid == cost * money.worth));
    let refused = |decision: &str, signal: &str| {
        learned.explainer().in_money(decision, signal).err().unwrap().to_string()
    };
    assert!(refused("nothing", price).contains("no decision `nothing`"));
    assert!(refused(night, "nothing").contains("no signal `nothing`"));
    assert!(refused(night, SIGNAL_NAMES[PERIODS + 3]).contains("does not fall"));
}

#[test]
fn trade_offs_are_what_decisions_do() {
    // g = (s0, s1) with a cost that couples the two, in boxes that hold the first now and then.
    let theta = array![[1.0, 0.6], [0.6, 2.0]];
    let n = 300;
    let wave = |i: usize, j: usize| ((i * (7 * j + 3)) as f64 * 0.37).sin();
    let signals = Array2::from_shape_fn((n, 2), |(i, j)| 2.0 * wave(i, j));
    let upper = Array2::from_shape_fn((n, 2), |(i, j)| if i % 2 == j { 0.4 } else { 9.0 });
    let given = Constraints::new().with_upper(upper.clone()).unwrap();
    let decisions = Array2::from_shape_fn((n, 2), |(i, j)| {
        let (g, cap) = (signals.row(i), upper.row(i));
        let det = theta[[0, 0]] * theta[[1, 1]] - theta[[0, 1]] * theta[[1, 0]];
        let free = [
            (theta[[1, 1]] * g[0] - theta[[0, 1]] * g[1]) / det,
            (theta[[0, 0]] * g[1] - theta[[0, 1]] * g[0]) / det,
        ];
        let held = i % 2;
        if free[held] <= cap[held] {
            return free[j];
        }
        let other = 1 - held;
        let answer = (g[other] - theta[[0, 1]] * cap[held]) / theta[[other, other]];
        if j == held { cap[held] } else { answer }
    });
    let data = Dataset::new(signals.clone(), decisions).unwrap().with_constraints(given).unwrap();
    let settings = FitSettings {
        theta: ThetaChoice::Learn,
        kernel: "linear".parse().unwrap(),
        features: Expansion::Raw,
        normalize: Normalization::None,
        regularization: 1e-5.into(),
        ..FitSettings::default()
    };
    let model = Pipeline::new(settings).unwrap().fit(&data).unwrap().model;
    let predictor = Predictor::new(&model).unwrap();
    let situations = Situations::of_data(&predictor, signals.view(), data.constraints()).unwrap();
    let explanation = Explainer::new(&model, &predictor, situations).explain().unwrap();
    let trade = &explanation.trade_offs[0];
    assert_eq!(trade.decisions, ["u0", "u1"]);
    // Hold the first a unit below what is wanted, and see what the second does.
    let row = signals.slice(ndarray::s![4..5, ..]);
    let limit = |upper: [f64; 2]| {
        let given = Constraints::new().with_upper(Array1::from(upper.to_vec())).unwrap();
        predictor.predict_within(row, &given).unwrap().row(0).to_vec()
    };
    let free = limit([99.0, 99.0]);
    let held = limit([free[0] - 1.0, 99.0]);
    assert!((held[1] - free[1] - trade.moves).abs() < 1e-6, "{trade:?} {free:?} {held:?}");
    assert!((trade.moves - 0.3).abs() < 0.05, "{trade:?}");
    assert!((trade.worth - 0.5_f64.sqrt()).abs() < 0.1, "{trade:?}");
}
