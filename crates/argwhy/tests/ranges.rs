//! Ranges hold the expert's decision as often as they say, for every bundled expert.

use argwhy::io::{GroupKind, Groups};
use argwhy::judging::Division;
use argwhy::ranges::Ranges;
use argwhy::{Dataset, FitSettings, Judging, Model, Pipeline, Predictor, Silent};
use argwhy_experts::charging::{self, Depot};
use argwhy_experts::{Expert, ExpertSettings, Quadrotor};
use ndarray::{Array2, ArrayView2};

const FRESH: usize = 5000;
const LEVEL: f64 = 0.9;
/// Nights that the dispatcher shows.
const SHOWN: usize = 480;

/// Fits, keeps rows aside, and puts what they say into the model.
fn calibrated(data: &Dataset, settings: FitSettings, division: Division, holdout: f64) -> Model {
    let pipeline = Pipeline::new(settings).unwrap();
    let rows: Vec<usize> = (0..data.n_samples()).collect();
    let judging = Judging { division, holdout };
    let verdict = pipeline.judge_rows(data, &rows, &judging, None, &mut Silent).unwrap();
    let mut model = pipeline.fit(data).unwrap().model;
    model.calibration.clone_from(&verdict.judgement().unwrap().calibration);
    model
}

/// The share of decisions within their range, dimension by dimension.
fn held((low, high): (&Array2<f64>, &Array2<f64>), decisions: ArrayView2<'_, f64>) -> Vec<f64> {
    let inside = |j: usize| {
        let within = |i: &usize| (low[[*i, j]]..=high[[*i, j]]).contains(&decisions[[*i, j]]);
        (0..decisions.nrows()).filter(within).count() as f64 / decisions.nrows() as f64
    };
    (0..decisions.ncols()).map(inside).collect()
}

fn check(what: &str, shares: &[f64]) {
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    assert!((0.88..=0.92).contains(&mean), "{what}: {mean}, {shares:?}");
    assert!(shares.iter().all(|share| (0.86..=0.94).contains(share)), "{what}: {shares:?}");
}

#[test]
fn the_pilots_decisions_lie_in_their_ranges() {
    let pilot = Expert::new(Quadrotor::default(), ExpertSettings::default()).unwrap();
    let shown = pilot.demonstrations(4000, 0).unwrap();
    let fresh = pilot.demonstrations(FRESH, 1).unwrap();
    let mut of_rows = vec![0; shown.signals.nrows()];
    for (episode, &start) in shown.episode_starts.iter().enumerate() {
        of_rows[start..].fill(episode as u32);
    }
    let bounds = Some(format!("{},{}", shown.lower[0], shown.upper[0]).parse().unwrap());
    let data = Dataset::new(shown.signals, shown.decisions).unwrap();
    let settings = FitSettings { bounds, tol: 1e-3, ..FitSettings::default() };
    // Steps of one flight are much alike: whole flights are kept aside.
    let division = Division::Groups(Groups { of_rows, kind: GroupKind::Episodes });
    let model = calibrated(&data, settings, division, 0.2);
    let predictor = Predictor::new(&model).unwrap();
    let decided = predictor.predict(fresh.signals.view()).unwrap();
    let sets = predictor.sets(None, FRESH).unwrap();
    let ranges = Ranges::new(&model, LEVEL).unwrap();
    let (low, high) = ranges.around(fresh.signals.view(), decided.view(), &sets).unwrap();
    check("the pilot", &held((&low, &high), fresh.decisions.view()));
}

#[test]
fn the_dispatchers_decisions_lie_in_their_ranges_under_limits_of_every_night() {
    let depot = Depot::default();
    let (shown, fresh) = (charging::nights(SHOWN, 0), charging::nights(FRESH, 1));
    let decisions = depot.decisions(&shown, 0).unwrap();
    let data = Dataset::new(charging::signals(&shown), decisions).unwrap();
    let data = data.with_constraints(charging::constraints(&shown).unwrap()).unwrap();
    let settings = FitSettings {
        kernel: "linear + 0.3*rbf".parse().unwrap(),
        regularization: 1e-3.into(),
        tol: 1e-3,
        ..FitSettings::default()
    };
    // So few that each is kept aside once.
    let model = calibrated(&data, settings, Division::Rows, 0.1);
    let predictor = Predictor::new(&model).unwrap();
    let (signals, given) = (charging::signals(&fresh), charging::constraints(&fresh).unwrap());
    let sets = predictor.sets(Some(&given), FRESH).unwrap();
    let desired = predictor.desired(signals.view()).unwrap();
    let decided = predictor.decide(desired.view(), &sets).unwrap();
    let ranges = Ranges::new(&model, LEVEL).unwrap();
    let (low, high) = ranges.around(signals.view(), decided.view(), &sets).unwrap();
    let truth = depot.decisions(&fresh, 1).unwrap();
    check("the dispatcher", &held((&low, &high), truth.view()));
    // Cut to what each night leaves.
    for (i, night) in fresh.iter().enumerate() {
        for (j, most) in night.limits.capacity().into_iter().enumerate() {
            assert!(low[[i, j]] >= -1e-9 && high[[i, j]] <= most + 1e-9, "night {i}, period {j}");
        }
    }
}
