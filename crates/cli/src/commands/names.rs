//! What a model knows by name, found in data and in lines, and said where it was not.

use crate::error::CliError;
use crate::progress::say;
use argwhy::core::dataset::{Names, Units};
use argwhy::io::{DataRequest, Encoding, Given, Loaded};
use argwhy::{DataSources, StoredModel, sources};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The request with the names that a model knows its data by.
pub fn by_name(request: DataRequest, stored: &StoredModel) -> DataRequest {
    let names = &stored.model.names;
    // A model whose limits come from named columns alone reads no other constraints.
    let by_column = !(names.lower.is_empty() && names.upper.is_empty());
    let from = sources::from_stored(&stored.settings).map(|(_, from)| from).unwrap_or_default();
    DataRequest {
        signal_names: names.signals.clone(),
        decision_names: names.decisions.clone(),
        lower: names.lower.clone(),
        upper: names.upper.clone(),
        constraints: request.constraints && (!by_column || from.constraints),
        encoding: from.encoding,
        fill: from.fill.unwrap_or_default(),
        ..request
    }
}

/// How a model's signals are made of columns.
pub fn encoding(stored: &StoredModel) -> Encoding {
    let from = sources::from_stored(&stored.settings).map(|(_, from)| from).unwrap_or_default();
    from.encoding
}

/// What was done to the data while it was read, where a person may not expect it.
pub fn prepared(loaded: &Loaded, request: &DataRequest) -> Option<String> {
    let mut told = Vec::new();
    if request.signals.is_none() && loaded.signals_key.contains(',') && loaded.names.is_empty() {
        told.push(format!("signals are {}", loaded.signals_key.replace(',', ", ")));
    }
    if loaded.n_dropped > 0 {
        told.push(match loaded.n_dropped {
            1 => "1 row that lacks a value is left out".to_owned(),
            n => format!("{n} rows that lack a value are left out"),
        });
    }
    for hot in &loaded.encoding.one_hot {
        told.push(format!("{} is one of {}", hot.column, hot.values.join(", ")));
    }
    (!told.is_empty()).then(|| told.join("; "))
}

/// What a model is to remember of how its data was made numbers.
pub fn with_preparation(sources: DataSources, loaded: &Loaded) -> DataSources {
    DataSources { encoding: loaded.encoding.clone(), fill: loaded.fill.clone(), ..sources }
}

/// Says where data was matched by position although the model has names.
pub fn tell(path: &Path, loaded: &Loaded, names: &Names, quiet: bool) {
    let decisions = loaded.decisions.as_ref().map(|_| &loaded.names.decisions);
    let roles = [
        ("signals", Some(&loaded.names.signals), &names.signals),
        ("decisions", decisions, &names.decisions),
    ];
    for (role, found, known) in roles {
        let Some(found) = found.filter(|found| !known.is_empty() && *found != known) else {
            continue;
        };
        let path = path.display();
        if found.is_empty() {
            say(
                quiet,
                format_args!(
                    "note: `{path}` has no names of {role}; its columns are taken as {}",
                    known.join(", ")
                ),
            );
        } else {
            let pairs: Vec<String> =
                found.iter().zip(known).map(|(own, name)| format!("{own} as {name}")).collect();
            say(
                quiet,
                format_args!("note: {role} of `{path}` are taken in order: {}", pairs.join(", ")),
            );
        }
    }
}

/// What limits are called: as the data says, else as the model does.
pub fn limits(model: &Names, data: &Names) -> Names {
    let either = |own: &[String], other: &[String]| {
        if own.is_empty() { other.to_vec() } else { own.to_vec() }
    };
    Names {
        inequalities: either(&data.inequalities, &model.inequalities),
        equalities: either(&data.equalities, &model.equalities),
        ..model.clone()
    }
}

/// A signal as a line of JSON has it: its numbers in order, or each with its name.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum SignalLine {
    InOrder(Vec<f64>),
    Named(BTreeMap<String, Given>),
}

impl SignalLine {
    /// Its numbers in the model's order.
    pub fn in_order(self, names: &Names, encoding: &Encoding) -> Result<Vec<f64>, String> {
        let given = match self {
            Self::InOrder(signal) => return Ok(signal),
            Self::Named(given) => given,
        };
        if names.signals.is_empty() {
            return Err(
                "the model has no names of signals; give \"signal\" as a list of numbers".into()
            );
        }
        let list = |names: Vec<&String>| {
            names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        };
        let columns = encoding.sources(&names.signals);
        let missing: Vec<_> = columns.iter().filter(|name| !given.contains_key(*name)).collect();
        if !missing.is_empty() {
            return Err(format!("the signal lacks {}", list(missing)));
        }
        let unknown: Vec<_> = given.keys().filter(|name| !columns.contains(name)).collect();
        if !unknown.is_empty() {
            let known = list(columns.iter().collect());
            return Err(format!("the model has no signal {}; it has {known}", list(unknown)));
        }
        encoding.encode(&names.signals, |name| given.get(name).cloned())
    }
}

/// `power=kW`, one or more: units by name.
pub fn units(given: &[String]) -> Result<Units, CliError> {
    let part = |text: &String| {
        let (name, unit) = text.rsplit_once('=').ok_or_else(|| {
            CliError::Usage(format!("--units has `{text}`; expected NAME=UNIT, such as power=kW"))
        })?;
        Ok((name.trim().to_owned(), unit.trim().to_owned()))
    };
    given.iter().map(part).collect::<Result<_, CliError>>().map(Units)
}

/// Limits of which some come from columns.
#[derive(Debug, PartialEq, Eq)]
pub struct LimitColumns {
    /// A column a dimension, and nothing where a number stands.
    pub columns: Vec<String>,
    /// The numbers, and no limit where a column stands; none where all are columns.
    pub numbers: Option<String>,
}

/// Names of columns where limits could be numbers, as in `p_max,3`; none where all are numbers.
pub fn limit_columns(text: &str, side: &str) -> Option<LimitColumns> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    let is_number = |part: &&str| part.parse::<f64>().is_ok();
    if parts.iter().any(|part| part.is_empty()) || parts.iter().all(is_number) {
        return None;
    }
    let columns = parts.iter().map(|part| if is_number(part) { "" } else { part });
    let none = if side == "lower" { "-inf" } else { "inf" };
    let numbers = parts.iter().map(|part| if is_number(part) { part } else { none });
    Some(LimitColumns {
        columns: columns.map(ToOwned::to_owned).collect(),
        numbers: parts.iter().any(is_number).then(|| numbers.collect::<Vec<_>>().join(",")),
    })
}

/// Refuses columns of limits beside a setting that says something else.
pub fn check_columns(lower: &[String], upper: &[String], unbounded: bool) -> Result<(), CliError> {
    if unbounded && !(lower.is_empty() && upper.is_empty()) {
        return Err(CliError::Usage(
            "limits come from columns, and --unbounded says there are none; leave one of them out"
                .to_owned(),
        ));
    }
    Ok(())
}
