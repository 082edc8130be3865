//! `argwhy schema`: what a config file of `fit` may say, as a JSON Schema for editors.
//!
//! Names and defaults are those of the settings, sentences those of the flags; here are only the
//! kinds of values. The schema knows kinds and words, not what goes with what: `fit` checks that.

use super::print_json;
use crate::End;
use crate::args::{Cli, OutputOptions, SourceOptions};
use crate::error::CliError;
use argwhy::FitSettings;
use clap::CommandFactory;
use serde::Serialize;
use serde_json::{Map, Value, json};

pub fn run() -> Result<End, CliError> {
    print_json(&schema())?;
    Ok(End::Done)
}

fn schema() -> Value {
    let defaults = defaults();
    let help = help();
    let described = |(name, default): (&String, &Value)| {
        let mut property = kind(name).map_or_else(Map::new, Kind::schema);
        if let Some(help) = help.get(name) {
            property.insert("description".to_owned(), help.clone());
        }
        // A setting without a default is left to the solver or the data.
        if !default.is_null() {
            property.insert("default".to_owned(), default.clone());
        }
        (name.clone(), Value::Object(property))
    };
    let properties: Map<String, Value> = defaults.iter().map(described).collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "argwhy fit --config",
        "description": "Options of `argwhy fit`, by the names of its flags. The command line wins.",
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    })
}

/// Every name of a config file with what holds where nobody says anything.
fn defaults() -> Map<String, Value> {
    let mut all = object(&FitSettings::default());
    all.extend(object(&SourceOptions::default()));
    all.extend(object(&OutputOptions::default()));
    all
}

fn object(options: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(options) {
        Ok(Value::Object(all)) => all,
        _ => Map::new(),
    }
}

/// What the flags of `fit` say of themselves, by their names.
fn help() -> Map<String, Value> {
    let whole = Cli::command();
    let fit = whole.find_subcommand("fit");
    let flags = fit.into_iter().flat_map(clap::Command::get_arguments);
    flags
        .filter_map(|flag| {
            let help = flag.get_help()?.to_string();
            // The default has a place of its own.
            let help = help.split(" [default: ").next().unwrap_or_default();
            Some((flag.get_long()?.to_owned(), Value::from(help)))
        })
        .collect()
}

/// What values a name takes.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// true or false.
    Switch,
    Text,
    Number,
    /// Zero or more, no fraction.
    Whole,
    /// The same, as text where TOML's numbers end.
    WholeOrText,
    /// A number, or text such as `auto` or `2GiB`.
    NumberOrText,
    /// A list; `inf` and text such as `-1,1` are understood too.
    Numbers,
    /// A list.
    Texts,
    Words(&'static [&'static str]),
}

fn kind(name: &str) -> Option<Kind> {
    Some(match name {
        "features" => Kind::Words(&["poly2", "raw"]),
        "normalize" => Kind::Words(&["zscore", "none"]),
        "trend" => Kind::Words(&["auto", "none", "constant", "linear"]),
        "infeasible" => Kind::Words(&["error", "clip", "keep"]),
        "solver" => Kind::Words(&["newton", "sso"]),
        "theta" => Kind::Words(&["identity", "learn"]),
        "selection" => Kind::Words(&["violation", "paper", "cyclic", "random"]),
        "init" => Kind::Words(&["zero", "expert", "warm-up", "paper-warm-up"]),
        "precision" => Kind::Words(&["f32", "f64"]),
        "operator" => Kind::Words(&["auto", "stored", "compact", "tiled"]),
        "clip" | "offset" | "tol" | "time-limit" | "holdout" => Kind::Number,
        "order" => Kind::Words(&["time"]),
        "missing" => Kind::Words(&["error", "drop", "mean"]),
        "decimal" => Kind::Words(&[".", ","]),
        "one-hot" | "cyclic" | "units" => Kind::Texts,
        "degree" | "max-iterations" | "concurrent-blocks" | "warm-up" | "threads" | "every"
        | "sample" | "ray-workers" | "ray-cpus" | "ray-gpus" | "ray-spread-from" => Kind::Whole,
        "seed" => Kind::WholeOrText,
        "gamma" | "regularization" | "block" | "memory" => Kind::NumberOrText,
        "bounds" | "lower" | "upper" | "length-scales" | "path" => Kind::Numbers,
        "intercept" | "primal" | "unbounded" | "constraints" | "json" | "quiet" | "tune"
        | "keep-data" | "no-factor" => Kind::Switch,
        "kernel" | "signals" | "decisions" | "rows" | "weights" | "groups" | "matrix"
        | "matrix-eq" | "trace" | "report" | "checkpoint" | "checkpoint-every" | "resume"
        | "from" | "episodes" | "sheet" | "ray" | "ray-timeout" => Kind::Text,
        _ => return tried(name),
    })
}

/// What a setting takes that nobody has described here: found by trying.
fn tried(name: &str) -> Option<Kind> {
    use argwhy::settings::Value as Entry;
    if !FitSettings::names().iter().any(|known| known == name) {
        return None;
    }
    let takes = |entry: Entry| FitSettings::check(name, &entry).is_ok();
    let text = ["auto", "2GiB", "1"].into_iter().any(|text| takes(text.into()));
    Some(if takes(Entry::Boolean(true)) {
        Kind::Switch
    } else if takes(Entry::Array(vec![Entry::Float(1.0)])) {
        Kind::Numbers
    } else if takes(Entry::Float(1.5)) {
        if text { Kind::NumberOrText } else { Kind::Number }
    } else if takes(Entry::Integer(1)) {
        if text { Kind::WholeOrText } else { Kind::Whole }
    } else {
        Kind::Text
    })
}

impl Kind {
    fn schema(self) -> Map<String, Value> {
        let schema = match self {
            Self::Switch => json!({"type": "boolean"}),
            Self::Text => json!({"type": "string"}),
            Self::Number => json!({"type": "number"}),
            Self::Whole => json!({"type": "integer", "minimum": 0}),
            Self::WholeOrText => json!({"type": ["integer", "string"], "minimum": 0}),
            Self::NumberOrText => json!({"type": ["number", "string"]}),
            Self::Numbers => json!({
                "type": ["array", "number", "string"],
                "items": {"type": ["number", "string"]},
            }),
            Self::Texts => json!({"type": "array", "items": {"type": "string"}}),
            Self::Words(words) => json!({"enum": words}),
        };
        match schema {
            Value::Object(schema) => schema,
            _ => Map::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use argwhy::settings::{Table, read_table};

    /// Whether a schema of the few words used here admits a value.
    fn admits(schema: &Value, value: &Value) -> bool {
        let is = |name: &Value| match name.as_str().unwrap() {
            "boolean" => value.is_boolean(),
            "string" => value.is_string(),
            "number" => value.is_number(),
            "integer" => value.is_i64() || value.is_u64(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            other => panic!("{other}"),
        };
        let all = schema.as_object().unwrap();
        all.iter().all(|(word, told)| match word.as_str() {
            "$schema" | "title" | "description" | "default" => true,
            "type" => told.as_array().map_or_else(|| is(told), |types| types.iter().any(is)),
            "enum" => told.as_array().unwrap().contains(value),
            "minimum" => value.as_f64().is_none_or(|number| number >= told.as_f64().unwrap()),
            "items" => value.as_array().is_none_or(|items| items.iter().all(|v| admits(told, v))),
            "properties" => value.as_object().is_none_or(|entries| {
                entries.iter().all(|(name, v)| told.get(name).is_none_or(|s| admits(s, v)))
            }),
            "additionalProperties" => value.as_object().is_none_or(|entries| {
                entries.keys().all(|name| all["properties"].get(name).is_some())
            }),
            other => panic!("{other}"),
        })
    }

    /// Whether `fit` reads this entry of a config file.
    fn reads(name: &str, value: &Value) -> bool {
        let table = Table::try_from(json!({ name: value })).unwrap();
        let names = |options: Map<String, Value>| options.keys().cloned().collect::<Vec<_>>();
        let source = names(object(&SourceOptions::default()));
        let outputs = names(object(&OutputOptions::default()));
        if source.iter().any(|known| known == name) {
            read_table::<SourceOptions>(&table, &source).is_ok()
        } else if outputs.iter().any(|known| known == name) {
            read_table::<OutputOptions>(&table, &outputs).is_ok()
        } else {
            FitSettings::from_table(&table).is_ok()
        }
    }

    #[test]
    fn every_name_of_a_config_file_is_there_with_kind_and_help() {
        let schema = schema();
        let properties = schema["properties"].as_object().unwrap();
        for name in FitSettings::names() {
            assert!(properties.contains_key(&name), "{name}");
        }
        for (name, property) in properties {
            assert!(property.get("type").or(property.get("enum")).is_some(), "{name}: no kind");
            assert!(property["description"].as_str().is_some_and(|t| !t.is_empty()), "{name}");
            if let Some(default) = property.get("default") {
                assert!(admits(property, default) && reads(name, default), "{name}: {default}");
            }
        }
    }

    /// What `fit` reads the schema admits. Of other kinds than text neither takes anything the
    /// other refuses; text has rules of its own (`2GiB`, `-1,1`) that only the reader knows.
    #[test]
    fn schema_and_reader_agree_on_kinds() {
        let probes = [
            json!(true),
            json!(1),
            json!(-1),
            json!(0.5),
            json!([1.0, 2.5]),
            json!([1, "inf"]),
            json!("auto"),
            json!("1,2"),
            json!("2GiB"),
            json!("rbf"),
            json!("nonsense"),
            json!({"a": 1}),
            json!([true]),
        ];
        let schema = schema();
        for (name, property) in schema["properties"].as_object().unwrap() {
            for probe in &probes {
                let (admitted, read) = (admits(property, probe), reads(name, probe));
                let is_text = probe.is_string() && property.get("enum").is_none();
                // A block or an amount of memory below zero is of the right kind.
                let is_range = probe == &json!(-1) || probe == &json!(0.5) || probe.is_array();
                assert!(admitted || !read, "{name} = {probe}: read and not admitted");
                assert!(read || !admitted || is_text || is_range, "{name} = {probe}: not read");
            }
        }
    }

    /// The words listed here are those that the reader lists when it refuses one.
    #[test]
    fn the_words_are_those_of_the_reader() {
        for name in FitSettings::names() {
            let Some(Kind::Words(words)) = kind(&name) else { continue };
            let refused = FitSettings::check(&name, &"nonsense".into()).unwrap_err().to_string();
            let mut told: Vec<&str> = refused.split('`').skip(1).step_by(2).collect();
            told.retain(|word| *word != "nonsense");
            let (mut told, mut words) = (told, words.to_vec());
            told.sort_unstable();
            words.sort_unstable();
            assert_eq!(words, told, "{name}");
        }
    }

    #[test]
    fn an_example_is_admitted_and_its_misspellings_are_not() {
        let admitted = |text: &str| {
            let table: Table = text.parse().unwrap();
            admits(&schema(), &serde_json::to_value(table).unwrap())
        };
        assert!(admitted(
            "kernel = \"rbf + 0.5*linear\"\ngamma = \"auto\"\nregularization = 1e-6\n\
             lower = [-1, 0.5]\nupper = \"1,inf\"\nmemory = \"2GiB\"\nthreads = 2\n\
             constraints = true\nrows = \"0:5000\"\nreport = \"fit.html\"\nsolver = \"sso\""
        ));
        assert!(admitted(""));
        for wrong in
            ["regularisation = 1", "solver = \"simplex\"", "tol = \"small\"", "degree = -1"]
        {
            assert!(!admitted(wrong), "{wrong}");
        }
    }
}
