//! What the two learners make of the nights shown: argwhy the cost behind the plans, kernel ridge
//! regression a copy of them.

use super::history::History;
use super::tables;
use crate::error::CliError;
use crate::findings::charging::{Choice, KERNEL, Ridge, rmse};
use crate::interrupt;
use argwhy::core::features::Expansion;
use argwhy::{Dataset, FitSettings, Pipeline, Predictor};
use argwhy_experts::charging::{self, LIMIT_ROWS, Night, PERIODS};
use ndarray::{Array2, ArrayView2, Axis, concatenate, s};

/// Both learners choose k by the last fifth of the nights shown.
const VALIDATED: usize = 5;
/// What argwhy may choose k from.
const CHOICES: [f64; 5] = [1e-2, 3e-3, 1e-3, 3e-4, 1e-4];
/// The largest k whose error is within this share of the least: the simplest model that is not
/// noticeably worse.
const AS_GOOD: f64 = 0.01;
/// What kernel ridge regression may choose k from.
const RIDGE_CHOICES: [f64; 6] = [1e-1, 1e-2, 3e-3, 1e-3, 1e-4, 1e-5];

pub fn settings(regularization: f64) -> Result<FitSettings, CliError> {
    let kernel = KERNEL.parse().map_err(CliError::Usage)?;
    Ok(FitSettings {
        features: Expansion::Poly2,
        kernel,
        regularization: regularization.into(),
        ..FitSettings::default()
    })
}

/// Nights as argwhy learns from them, each with its own limits.
pub fn dataset(nights: &[Night], decisions: ArrayView2<'_, f64>) -> Result<Dataset, CliError> {
    let data = Dataset::new(charging::signals(nights), decisions.to_owned())?;
    Ok(data.with_constraints(charging::constraints(nights)?)?.with_names(tables::names())?)
}

/// The learned plans, within the limits of each night.
pub fn plan(predictor: &Predictor, nights: &[Night]) -> Result<Array2<f64>, CliError> {
    let constraints = charging::constraints(nights)?;
    Ok(predictor.predict_within(charging::signals(nights).view(), &constraints)?)
}

/// Nights shown that a learner learns from while it chooses; it judges by the rest.
fn n_train(history: &History) -> usize {
    history.shown.len() - history.shown.len() / VALIDATED
}

/// How far the decisions on the last nights are off, for each k that argwhy may choose.
pub fn tried(history: &History) -> Result<Vec<Choice>, CliError> {
    let n_train = n_train(history);
    let (given, kept) = history.shown_decisions.view().split_at(Axis(0), n_train);
    let data = dataset(&history.shown[..n_train], given)?;
    let mut tried = Vec::new();
    for regularization in CHOICES {
        let fit = Pipeline::new(settings(regularization)?)?.fit(&data)?;
        let plans = plan(&Predictor::new(&fit.model)?, &history.shown[n_train..])?;
        tried.push(Choice { regularization, error: rmse(plans.view(), kept) });
        if interrupt::asked() {
            break;
        }
    }
    Ok(tried)
}

/// The place of the choice with the largest k that is as good as the best.
pub fn simplest(choices: &[Choice]) -> usize {
    let least = choices.iter().fold(f64::INFINITY, |least, choice| least.min(choice.error));
    let good = choices.iter().enumerate().filter(|(_, c)| c.error <= (1.0 + AS_GOOD) * least);
    // Of two with the same k the better one.
    let chosen = good.max_by(|(_, a), (_, b)| {
        a.regularization.total_cmp(&b.regularization).then(b.error.total_cmp(&a.error))
    });
    chosen.expect("there is something to choose from").0
}

/// Kernel ridge regression with the same kernel, its plans moved to the nearest ones allowed.
pub struct Imitation {
    pub ridge: Ridge,
    /// For the nights kept back.
    pub plans: Array2<f64>,
}

impl Imitation {
    /// It chooses k, and whether to see the limits beside the signals, by the same nights as argwhy
    /// chooses k.
    pub fn new(history: &History) -> Result<Self, CliError> {
        let n_train = n_train(history);
        let kept = history.shown_decisions.slice(s![n_train.., ..]);
        let (mut ridges, mut choices) = (Vec::new(), Vec::new());
        let all = RIDGE_CHOICES.into_iter().flat_map(|k| [(k, false), (k, true)]);
        for (regularization, sees_limits) in all {
            let ridge = Ridge { regularization, sees_limits };
            let plans = ridge_plans(ridge, history, n_train, &history.shown[n_train..])?;
            ridges.push(ridge);
            choices.push(Choice { regularization, error: rmse(plans.view(), kept) });
            if interrupt::asked() {
                break;
            }
        }
        let ridge = ridges[simplest(&choices)];
        let plans = ridge_plans(ridge, history, history.shown.len(), &history.held_out)?;
        Ok(Self { ridge, plans })
    }
}

/// Learned from the first `n` nights shown, for `nights`.
fn ridge_plans(
    ridge: Ridge,
    history: &History,
    n: usize,
    nights: &[Night],
) -> Result<Array2<f64>, CliError> {
    let unlimited = FitSettings { unbounded: true, ..settings(ridge.regularization)? };
    let given = history.shown_decisions.slice(s![..n, ..]).to_owned();
    let data = Dataset::new(ridge_inputs(ridge, &history.shown[..n]), given)?;
    let model = Pipeline::new(unlimited)?.fit(&data)?.model;
    let wanted = Predictor::new(&model)?.desired(ridge_inputs(ridge, nights).view())?;
    Ok(charging::nearest(&charging::sets(nights)?, wanted)?)
}

fn ridge_inputs(ridge: Ridge, nights: &[Night]) -> Array2<f64> {
    let signals = charging::signals(nights);
    if !ridge.sees_limits {
        return signals;
    }
    let limits = Array2::from_shape_fn((nights.len(), PERIODS + LIMIT_ROWS), |(i, c)| {
        let limits = &nights[i].limits;
        if c < PERIODS { limits.chargers[c] } else { limits.bounds()[c - PERIODS] }
    });
    concatenate(Axis(1), &[signals.view(), limits.view()]).expect("a row a night on both sides")
}
