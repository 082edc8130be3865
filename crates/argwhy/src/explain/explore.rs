//! What a page needs that explores a model without this program: the model itself, past cases, and
//! what everything is called.
//!
//! Enters: a model and cases. Leaves: [`Exploration`], JSON and numbers that `crates/wasm` and the
//! scripts of `argwhy explore` read.

use super::{Explainer, Situations, Units};
use crate::error::Error;
use argwhy_core::decision_set::RowLabel;
use argwhy_core::{Constraints, Model, Predictor};
use ndarray::{Array2, ArrayView, Axis, Dimension};
use serde_json::{Value, json};

/// Cases that a page keeps at most, and numbers it keeps of them at most: some ten megabytes.
const MOST_CASES: usize = 5000;
const MOST_NUMBERS: usize = 1_200_000;

/// Past situations, with what was decided and allowed in them as far as that is known.
pub struct Cases {
    signals: Array2<f64>,
    decisions: Option<Array2<f64>>,
    constraints: Option<Constraints>,
    /// Where each stood in the data.
    places: Vec<usize>,
    /// How many there were.
    rows: usize,
    /// Whether they are the model's own samples, for want of data.
    support_only: bool,
}

/// What a page carries.
pub struct Exploration {
    /// Names, ranges, and where each array of cases stands among the numbers.
    pub about: Value,
    /// The model but for its arrays.
    pub model: Value,
    /// The arrays of the model, then those of the cases.
    pub numbers: Vec<f64>,
}

impl Cases {
    /// Rows of data; evenly some of them where they are too many for a page.
    pub fn of_data(
        signals: &Array2<f64>,
        decisions: Option<&Array2<f64>>,
        constraints: Option<&Constraints>,
        place: impl Fn(usize) -> usize,
    ) -> Self {
        let rows = signals.nrows();
        let own = constraints.filter(|given| given.n_samples().is_some());
        let numbers = signals.len()
            + decisions.map_or(0, Array2::len)
            + own.map_or(0, Constraints::n_numbers);
        let fitting = MOST_NUMBERS * rows / numbers.max(1);
        let kept = rows.min(MOST_CASES).min(fitting.max(1));
        let picked: Vec<usize> = (0..kept).map(|i| i * rows / kept).collect();
        Self {
            signals: signals.select(Axis(0), &picked),
            decisions: decisions.map(|decisions| decisions.select(Axis(0), &picked)),
            constraints: constraints.map(|given| given.select(&picked)),
            places: picked.iter().map(|&i| place(i)).collect(),
            rows,
            support_only: false,
        }
    }

    /// The samples a model keeps, and what the model decides on them; none of a plain model.
    pub fn of_support(model: &Model, predictor: &Predictor) -> Result<Self, Error> {
        let none = Array2::zeros((0, predictor.signal_dim()));
        let (signals, rows) = match model.support() {
            Some(support) => (&support.signals, &support.rows[..]),
            None => (&none, &[][..]),
        };
        let known = !predictor.is_constrained() && signals.nrows() > 0;
        let decisions = if known { Some(predictor.predict(signals.view())?) } else { None };
        let cases = Self::of_data(signals, decisions.as_ref(), None, |i| rows[i] as usize);
        Ok(Self { support_only: true, ..cases })
    }
}

/// Everything a page needs; `numeraire`: a decision and the signal that says what a unit of it
/// costs. Fails where neither cases nor the model tell what values signals have.
pub fn explore(
    model: &Model,
    predictor: &Predictor,
    cases: &Cases,
    numeraire: Option<(&str, &str)>,
) -> Result<Exploration, Error> {
    let mut numbers = Numbers::default();
    let header = write_model(model, &mut numbers)?;
    let model_numbers = numbers.0.len();
    let ranges = ranges(model, cases)?;
    let signals: Vec<Value> = ranges
        .iter()
        .enumerate()
        .map(|(j, (low, high))| measured(model, &model.names.signal(j), Some((*low, *high))))
        .collect();
    let decisions: Vec<Value> = (0..model.decision_dim())
        .map(|j| measured(model, &model.names.decision(j), None))
        .collect();
    let own = model.set.limits();
    let finite = |side: &[f64]| -> Vec<Option<f64>> {
        side.iter().map(|&v| Some(v).filter(|v| v.is_finite())).collect()
    };
    let rows = |theta: &Array2<f64>| -> Vec<Vec<f64>> {
        theta.rows().into_iter().map(|row| row.to_vec()).collect()
    };
    let theta = model.theta.as_ref().map(|theta| rows(&theta.theta_uu));
    let explainer = explainer(model, predictor, cases)?;
    let typical = match &explainer {
        Some(explainer) => Some(explainer.typical()?.row),
        None => None,
    };
    let money = match (explainer, numeraire) {
        (_, None) => None,
        (None, Some(_)) => return Err(Error::NothingToExplain),
        (Some(explainer), Some((p, c))) => explainer.in_money(p, c)?.money().cloned(),
    };
    let about = json!({
        "signals": signals,
        "decisions": decisions,
        "names": limit_names(model, cases),
        "own": {"lower": finite(own.lower()), "upper": finite(own.upper())},
        "own_only": cases.constraints.is_none(),
        "constrained": model.constrained,
        "theta": theta,
        "places": cases.places,
        "typical": typical,
        "money": money,
        "past_note": past_note(cases),
        "arrays": write_cases(cases, &mut numbers),
        "model_numbers": model_numbers,
    });
    Ok(Exploration { about, model: header, numbers: numbers.0 })
}

/// What a signal or a decision is called, in what unit it is, and the values it has.
fn measured(model: &Model, name: &str, range: Option<(f64, f64)>) -> Value {
    let mut about = json!({"name": Units::bare(name), "unit": model.names.units.of(name)});
    if let Some((low, high)) = range {
        about["low"] = json!(low);
        about["high"] = json!(high);
    }
    about
}

/// Numbers, one array after the other.
#[derive(Default)]
struct Numbers(Vec<f64>);

impl Numbers {
    /// Adds an array; says where it stands.
    fn add<D: Dimension>(&mut self, array: ArrayView<'_, f64, D>) -> Value {
        let at = self.0.len();
        self.0.extend(&array);
        json!({"at": at, "shape": array.shape()})
    }
}

/// The model as `crates/wasm` reads it.
fn write_model(model: &Model, numbers: &mut Numbers) -> Result<Value, Error> {
    if let Some(kernel) = model.kernel().custom_part() {
        return Err(Error::CustomKernel { name: kernel.name().to_owned() });
    }
    if let Some(support) = model.support() {
        numbers.0.extend(&support.signals);
        numbers.0.extend(&support.coefficients);
    }
    let weights = model.feature_weights().map(|weights| &weights.values);
    numbers.0.extend(weights.into_iter().flatten());
    numbers.0.extend(model.theta.iter().flat_map(|theta| &theta.theta_uu));
    let seen = model.seen.as_ref().map(|seen| {
        numbers.0.extend(&seen.pivots);
        json!({
            "lowest": seen.lowest,
            "highest": seen.highest,
            "left": seen.left,
            "n_pivots": seen.pivots.nrows(),
        })
    });
    Ok(json!({
        "features": model.features,
        "kernel": model.kernel(),
        "decision_set": model.set,
        "constrained": model.constrained,
        "record": model.record,
        "n_support": model.n_support(),
        "n_weights": weights.map_or(0, Array2::nrows),
        "has_theta": model.theta.is_some(),
        "seen": seen,
    }))
}

/// Arrays of the cases, those that there are; of constraints that all cases share, one.
fn write_cases(cases: &Cases, numbers: &mut Numbers) -> Value {
    let mut arrays = serde_json::Map::new();
    if cases.signals.nrows() == 0 {
        return Value::Object(arrays);
    }
    let mut add = |name: &str, place: Value| arrays.insert(name.to_owned(), place);
    add("signals", numbers.add(cases.signals.view()));
    if let Some(decisions) = &cases.decisions {
        add("decisions", numbers.add(decisions.view()));
    }
    let Some(given) = &cases.constraints else { return Value::Object(arrays) };
    let rows = [("M", "W", given.inequalities()), ("M_eq", "W_eq", given.equalities())];
    for (matrix_name, bound_name, part) in rows {
        if let Some((matrix, bound)) = part {
            add(matrix_name, numbers.add(matrix));
            add(bound_name, numbers.add(bound));
        }
    }
    for (name, side) in [("lower", given.lower()), ("upper", given.upper())] {
        if let Some(side) = side {
            add(name, numbers.add(side));
        }
    }
    Value::Object(arrays)
}

/// What each limit is called.
fn limit_names(model: &Model, cases: &Cases) -> Value {
    let given = cases.constraints.as_ref();
    let rows = given.and_then(|given| given.inequalities()).map_or(0, |(_, bound)| bound.ncols());
    let equal = given.and_then(|given| given.equalities()).map_or(0, |(_, bound)| bound.ncols());
    let named = |n: usize, label: fn(u32) -> RowLabel| -> Vec<String> {
        (0..n as u32).map(|i| model.limit_name(label(i))).collect()
    };
    json!({
        "equal": named(equal, RowLabel::Equality),
        "rows": named(rows, RowLabel::Inequality),
        "lower": named(model.decision_dim(), RowLabel::Lower),
        "upper": named(model.decision_dim(), RowLabel::Upper),
    })
}

/// What values each signal has: what the model saw, else what the cases have.
fn ranges(model: &Model, cases: &Cases) -> Result<Vec<(f64, f64)>, Error> {
    if let Some(seen) = &model.seen {
        return Ok(seen.lowest.iter().copied().zip(seen.highest.iter().copied()).collect());
    }
    if cases.signals.nrows() == 0 {
        return Err(Error::NothingToExplain);
    }
    let every: Vec<usize> = (0..cases.signals.nrows()).collect();
    let (lowest, highest) = argwhy_core::familiarity::ranges(cases.signals.view(), &every);
    Ok(lowest.into_iter().zip(highest).collect())
}

/// The model over its cases, by their numbers among the cases.
fn explainer<'a>(
    model: &'a Model,
    predictor: &'a Predictor,
    cases: &Cases,
) -> Result<Option<Explainer<'a>>, Error> {
    if cases.signals.nrows() == 0 {
        return Ok(None);
    }
    let given = cases.constraints.as_ref();
    let situations = Situations::of_data(predictor, cases.signals.view(), given)?;
    Ok(Some(Explainer::new(model, predictor, situations)))
}

fn past_note(cases: &Cases) -> String {
    let kept = cases.signals.nrows();
    let which = match (cases.support_only, kept == cases.rows) {
        (true, true) => format!("Among {kept} samples that the model keeps"),
        (true, false) => format!("Among {kept} of {} samples that the model keeps", cases.rows),
        (false, true) => format!("Among {kept} rows of the data"),
        (false, false) => {
            format!("Among {kept} rows of the data, evenly taken from {}", cases.rows)
        }
    };
    let decided = match (&cases.decisions, cases.support_only) {
        (None, _) => "",
        (Some(_), true) => ", with what the model decides there",
        (Some(_), false) => ", with what was decided then",
    };
    format!("{which}{decided}. Alike is 1 where the kernel cannot tell them apart.")
}
