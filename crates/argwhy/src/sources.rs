//! Where a fit's data came from: no setting, but kept with the model beside the settings.
//!
//! In a model file both stand in one object, as they always have: settings and sources have
//! different names.

use crate::error::Error;
use crate::settings::FitSettings;
use argwhy_io::Encoding;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What a fit was given beside signals and decisions, and from where.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct DataSources {
    /// Constraints came with the data, and will come with every signal that is to be decided on.
    pub constraints: bool,
    /// The file the M of all samples came from.
    pub matrix: Option<String>,
    /// The file the M_eq of all samples came from.
    pub matrix_eq: Option<String>,
    /// The key the samples' weights came from.
    pub weights: Option<String>,
    /// How columns of the signals became numbers.
    #[serde(skip_serializing_if = "Encoding::is_empty")]
    pub encoding: Encoding,
    /// What stands where a signal is missing; an error where there is nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fill: Option<Vec<f64>>,
    /// How the model came about.
    #[serde(skip_serializing_if = "Provenance::is_empty")]
    pub provenance: Provenance,
}

/// How a model came about: enough to know it again and to make it again, and no clock, so that the
/// same run writes the same.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Provenance {
    /// The name of what the rows were read from, without its folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// A hash of the rows it learned from: their signals, decisions, weights and limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<String>,
    /// What was typed, but for where results go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// What it was fitted by, such as `argwhy` and `python`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub versions: BTreeMap<String, String>,
}

impl Provenance {
    /// Of rows with this hash, fitted by this version.
    pub fn of_rows(hash: String) -> Self {
        let own = ("argwhy".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        Self { rows: Some(hash), versions: BTreeMap::from([own]), ..Self::default() }
    }

    /// Whether nothing is known, as in models of earlier versions.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The names above, some of which are left out where they say nothing.
const NAMES: [&str; 7] =
    ["constraints", "matrix", "matrix-eq", "weights", "encoding", "fill", "provenance"];

/// What a model file keeps of a fit, as one object.
pub fn to_stored(settings: &FitSettings, sources: &DataSources) -> Result<Value, Error> {
    let mut stored = object(settings)?;
    stored.append(&mut object(sources)?);
    Ok(Value::Object(stored))
}

/// Settings and sources of a model file, of this version or an earlier one.
pub fn from_stored(stored: &Value) -> Result<(FitSettings, DataSources), Error> {
    let Value::Object(stored) = stored else {
        return Err(Error::Settings { why: "they are not an object".to_owned() });
    };
    let (sources, settings): (Map<_, _>, Map<_, _>) =
        stored.clone().into_iter().partition(|(name, _)| NAMES.contains(&name.as_str()));
    Ok((read(settings)?, read(sources)?))
}

fn object(value: &impl Serialize) -> Result<Map<String, Value>, Error> {
    match serde_json::to_value(value) {
        Ok(Value::Object(entries)) => Ok(entries),
        Ok(other) => Err(Error::Settings { why: format!("{other} is not an object") }),
        Err(error) => Err(Error::Settings { why: error.to_string() }),
    }
}

fn read<T: DeserializeOwned>(entries: Map<String, Value>) -> Result<T, Error> {
    serde_json::from_value(Value::Object(entries))
        .map_err(|error| Error::Settings { why: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_and_sources_come_back_and_share_no_name() {
        let settings = FitSettings { tol: 1e-9, threads: Some(2), ..FitSettings::default() };
        let sources = DataSources {
            constraints: true,
            matrix: Some("m.csv".to_owned()),
            weights: Some("w".to_owned()),
            ..DataSources::default()
        };
        let stored = to_stored(&settings, &sources).unwrap();
        let names = stored.as_object().unwrap().len();
        assert_eq!(names, FitSettings::names().len() + 4);
        assert_eq!(from_stored(&stored).unwrap(), (settings.clone(), sources.clone()));
        let hot = argwhy_io::OneHot { column: "day".to_owned(), values: vec!["Mon".to_owned()] };
        let cyclic = vec!["hour:24".parse().unwrap()];
        let encoding = Encoding { one_hot: vec![hot], cyclic };
        let provenance = Provenance::of_rows("abc".to_owned());
        let sources = DataSources { encoding, fill: Some(vec![0.5]), provenance, ..sources };
        let stored = to_stored(&settings, &sources).unwrap();
        let all = stored.as_object().unwrap().len();
        assert_eq!(all, FitSettings::names().len() + NAMES.len());
        assert_eq!(from_stored(&stored).unwrap(), (settings, sources));
    }

    #[test]
    fn what_earlier_versions_stored_is_read() {
        let old = serde_json::json!({
            "regularization": 1e-3, "constraints": true, "matrix": null, "weights": "w"
        });
        let (settings, sources) = from_stored(&old).unwrap();
        assert_eq!((settings.regularization, sources.constraints), (1e-3.into(), true));
        assert_eq!((sources.matrix, sources.weights.as_deref()), (None, Some("w")));
        assert!(from_stored(&serde_json::json!({"regularisation": 1})).is_err());
        assert!(from_stored(&serde_json::json!(3)).is_err());
    }
}
