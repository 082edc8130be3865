//! What the words mean: command line over config file over defaults, all of them tables.

use crate::args::{FitArgs, OutputOptions, RowOrder, SourceOptions, TuneArgs};
use crate::commands::names::{LimitColumns, limit_columns};
use crate::error::CliError;
use argwhy::core::wording::Spelling;
use argwhy::io::{DataRequest, Encoding, Loaded, OneHot, RowRanges, Thinning};
use argwhy::settings::{Preset, SolverKind, Table, TableError, Value, merge, read_table};
use argwhy::tuning::scales_asked_for;
use argwhy::{DataSources, FitSettings};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use toml::Spanned;

/// Everything `fit` was told.
#[derive(Clone, Debug)]
pub struct Options {
    pub settings: FitSettings,
    pub source: SourceOptions,
    pub outputs: OutputOptions,
    /// The settings that somebody mentioned.
    pub given: Table,
    /// What was left out of the config file, and why.
    pub notes: Vec<String>,
}

impl Options {
    /// What to keep with the model of where its data came from.
    pub fn sources(&self) -> DataSources {
        let text = |path: &Option<std::path::PathBuf>| {
            path.as_ref().map(|path| path.to_string_lossy().into_owned())
        };
        DataSources {
            constraints: self.source.constraints,
            matrix: text(&self.source.matrix),
            matrix_eq: text(&self.source.matrix_eq),
            weights: self.source.weights.clone(),
            ..DataSources::default()
        }
    }

    /// The options with the limits that the data knows, where nobody gave any; and what to say of
    /// it.
    pub fn with_limits_of(mut self, loaded: &Loaded) -> Result<(Self, Option<String>), CliError> {
        let constrained = loaded.constraints.is_some();
        let unsaid = self.settings.limits_unsaid(constrained);
        let Some(limits) = loaded.limits.as_ref().filter(|_| unsaid) else {
            return Ok((self, None));
        };
        let list = |numbers: &[f64]| Value::Array(numbers.iter().map(|n| (*n).into()).collect());
        self.given.insert("lower".to_owned(), list(&limits.lower));
        self.given.insert("upper".to_owned(), list(&limits.upper));
        self.settings = FitSettings::from_table(&self.given)
            .map_err(|error: TableError| CliError::Usage(error.to_string()))?;
        let told = |numbers: &[f64]| {
            let numbers: Vec<String> = numbers.iter().map(f64::to_string).collect();
            numbers.join(", ")
        };
        let note = format!(
            "limits from {}: lower {}, upper {}; --bounds, --lower, --upper or --unbounded say \
             otherwise",
            limits.found_in,
            told(&limits.lower),
            told(&limits.upper)
        );
        Ok((self, Some(note)))
    }
}

/// Options of the config file, overridden by those of the command line, checked.
pub fn options(args: &FitArgs) -> Result<Options, CliError> {
    let mut line = line(args)?;
    let mut file = args.config.as_deref().map(read).transpose()?.unwrap_or_default();
    let auto = scales_asked_for(&mut line) | scales_asked_for(&mut file);
    let mut options = merged(&line, over_preset(args.preset, &line, file))?;
    if auto && !options.given.contains_key("length-scales") {
        if !options.outputs.tune {
            return Err(CliError::Usage(
                "--length-scales auto is a search: add --tune, or see `argwhy tune`".to_owned(),
            ));
        }
        options.given.insert("length-scales".to_owned(), Value::from("auto"));
    }
    check_solver(&line, &options.settings)?;
    options.settings.validate()?;
    Ok(options)
}

/// The config file on top of the preset, where one is named.
fn over_preset(preset: Option<Preset>, line: &Table, file: Table) -> Table {
    let Some(preset) = preset else { return file };
    let mut table = preset.table();
    // A path is several regularizations in place of the one.
    if line.contains_key("path") || file.contains_key("path") {
        table.remove("regularization");
    }
    merge(table, &file).0
}

/// Everything `tune` was told.
pub struct ToldToTune {
    pub options: Options,
    /// Settings and what is about data, as a config file of `fit` says it.
    pub said: Table,
}

/// The same for `tune`, which leaves outputs to `fit`.
pub fn for_tuning(args: &TuneArgs) -> Result<ToldToTune, CliError> {
    let mut line = table(&args.source)?;
    line.retain(|_, value| *value != Value::Boolean(false));
    line.extend(args.settings.0.clone());
    let mut file = args.config.as_deref().map(read).transpose()?.unwrap_or_default();
    let outputs = Names::all()?.outputs;
    file.retain(|name, _| !outputs.iter().any(|output| output == name));
    let auto = scales_asked_for(&mut line) | scales_asked_for(&mut file);
    let (said, _) = merge(file.clone(), &line);
    let mut options = merged(&line, file)?;
    if auto && !options.given.contains_key("length-scales") {
        options.given.insert("length-scales".to_owned(), Value::from("auto"));
    }
    check_solver(&line, &options.settings)?;
    options.settings.validate()?;
    Ok(ToldToTune { options, said })
}

/// What to load.
pub fn request(source: &SourceOptions, seed: u64) -> DataRequest {
    DataRequest {
        signals: source.signals.clone(),
        decisions: source.decisions.clone(),
        constraints: source.constraints,
        matrix: source.matrix.clone(),
        matrix_eq: source.matrix_eq.clone(),
        weights: source.weights.clone(),
        groups: source.groups.clone(),
        lower: source.lower_columns.clone(),
        upper: source.upper_columns.clone(),
        // Rows that are thinned are chosen while they are read, in ranges too.
        rows: if is_thinned(source) { source.rows.clone() } else { None },
        thinning: Thinning {
            episodes: source.episodes.clone(),
            every: source.every,
            sample: source.sample,
            seed,
        },
        encoding: Encoding {
            one_hot: source.one_hot.iter().flatten().map(OneHot::new).collect(),
            cyclic: source.cyclic.clone().unwrap_or_default(),
        },
        missing: source.missing.unwrap_or_default(),
        sheet: source.sheet.clone(),
        decimal: source.decimal.unwrap_or_default(),
        ..DataRequest::default()
    }
}

/// Whether rows are left out while they are read.
fn is_thinned(source: &SourceOptions) -> bool {
    source.episodes.is_some() || source.every.is_some() || source.sample.is_some()
}

/// The rows to learn from, of those that were read.
pub fn training_rows(source: &SourceOptions) -> Option<&RowRanges> {
    source.rows.as_ref().filter(|_| !is_thinned(source))
}

/// Whether rows stand in the order of time.
pub fn in_time(source: &SourceOptions) -> Result<bool, CliError> {
    let in_time = source.order == Some(RowOrder::Time);
    if in_time && source.groups.is_some() {
        return Err(CliError::Usage(
            "--groups keeps whole groups aside and --order time what is near in time; leave one \
             of them out"
                .to_owned(),
        ));
    }
    Ok(in_time)
}

/// What the command line mentions.
fn line(args: &FitArgs) -> Result<Table, CliError> {
    let mut line = table(&args.source)?;
    line.extend(table(&args.outputs)?);
    // A flag that is not there says nothing; it does not say no.
    line.retain(|_, value| *value != Value::Boolean(false));
    line.extend(args.settings.0.clone());
    Ok(line)
}

fn table(options: &impl Serialize) -> Result<Table, CliError> {
    Table::try_from(options).map_err(|e| CliError::Usage(e.to_string()))
}

/// One table out of two, and what it says.
fn merged(line: &Table, mut file: Table) -> Result<Options, CliError> {
    let mut notes = Vec::new();
    for (given, other) in [("regularization", "path"), ("path", "regularization")] {
        if line.contains_key(given) && file.remove(other).is_some() {
            notes.push(left_out(other, given));
        }
    }
    let (mut table, without) = merge(file, line);
    let [lower_columns, upper_columns] =
        ["lower", "upper"].map(|side| take_columns(&mut table, side).unwrap_or_default());
    notes.extend(without.iter().map(|left| left_out(left.name, left.because)));
    let names = Names::all()?;
    let part = |known: &[String]| -> Table {
        let own = table.iter().filter(|(name, _)| known.contains(name));
        own.map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    let wrong = |e: TableError| CliError::Usage(e.to_string());
    let given = part(&names.settings);
    Ok(Options {
        settings: FitSettings::from_table(&given).map_err(wrong)?,
        given,
        source: SourceOptions {
            lower_columns,
            upper_columns,
            ..read_table(&part(&names.source), &names.source).map_err(wrong)?
        },
        outputs: read_table(&part(&names.outputs), &names.outputs).map_err(wrong)?,
        notes,
    })
}

/// The columns that a limit names in place of numbers; the table has only the numbers afterwards.
fn take_columns(table: &mut Table, side: &str) -> Option<Vec<String>> {
    let LimitColumns { columns, numbers } = limit_columns(&text_of(table.get(side)?)?, side)?;
    match numbers {
        Some(numbers) => table.insert(side.to_owned(), Value::from(numbers)),
        None => table.remove(side),
    };
    Some(columns)
}

/// `"p_min,0"`, or the same from `["p_min", 0]`.
fn text_of(value: &Value) -> Option<String> {
    let one = |part: &Value| match part {
        Value::String(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        _ => None,
    };
    match value {
        Value::Array(parts) => Some(parts.iter().map(one).collect::<Option<Vec<_>>>()?.join(",")),
        _ => one(value),
    }
}

fn left_out(name: &str, because: &str) -> String {
    let because = Spelling::Flags.setting(because);
    format!("the config file's {name} has no meaning with {because} and is left out")
}

/// The names a config file can use.
struct Names {
    settings: Vec<String>,
    source: Vec<String>,
    outputs: Vec<String>,
}

impl Names {
    fn all() -> Result<Self, CliError> {
        let names = |value: serde_json::Result<serde_json::Value>| match value {
            Ok(serde_json::Value::Object(all)) => Ok(all.keys().cloned().collect()),
            Ok(other) => Err(CliError::Usage(other.to_string())),
            Err(error) => Err(CliError::Usage(error.to_string())),
        };
        Ok(Self {
            settings: FitSettings::names(),
            source: names(serde_json::to_value(SourceOptions::default()))?,
            outputs: names(serde_json::to_value(OutputOptions::default()))?,
        })
    }

    /// Whether an entry of a config file is known and can be read.
    fn check(&self, name: &String, value: &Value) -> Result<(), TableError> {
        let mut alone = Table::new();
        alone.insert(name.clone(), value.clone());
        if self.source.contains(name) {
            return read_table::<SourceOptions>(&alone, &self.source).map(|_| ());
        }
        if self.outputs.contains(name) {
            return read_table::<OutputOptions>(&alone, &self.outputs).map(|_| ());
        }
        let from_columns = |text: String| limit_columns(&text, name).is_some();
        if ["lower", "upper"].contains(&name.as_str()) && text_of(value).is_some_and(from_columns) {
            return Ok(());
        }
        if self.settings.contains(name) {
            return FitSettings::check(name, value);
        }
        let known = [&self.settings[..], &self.source, &self.outputs].concat();
        Err(TableError::unknown(name, &known))
    }
}

/// The table of a config file, every entry of it checked.
fn read(path: &Path) -> Result<Table, CliError> {
    let wrong = |why: String| CliError::Config { path: path.to_path_buf(), why };
    let text = fs::read_to_string(path).map_err(|e| wrong(format!("cannot read it: {e}")))?;
    let entries: BTreeMap<String, Spanned<Value>> =
        toml::from_str(&text).map_err(|e| wrong(e.to_string().trim_end().to_owned()))?;
    let mut entries: Vec<_> = entries.into_iter().collect();
    entries.sort_by_key(|(_, value)| value.span().start);
    let names = Names::all()?;
    let mut table = Table::new();
    for (name, value) in entries {
        let line = 1 + text[..value.span().start].matches('\n').count();
        let value = value.into_inner();
        names.check(&name, &value).map_err(|error| match error.why {
            Some(why) => wrong(format!("line {line}, {name}: {why}")),
            None => wrong(format!("line {line}: {error}")),
        })?;
        table.insert(name, value);
    }
    Ok(table)
}

/// Refuses options of SSO where another solver would ignore them, and those of the kernel matrix
/// where there is none.
fn check_solver(line: &Table, settings: &FitSettings) -> Result<(), CliError> {
    if settings.primal && line.contains_key("precision") {
        return Err(CliError::Usage(
            "--precision is about kernel values, and --primal has none: it computes in f64; leave \
             one of them out"
                .to_owned(),
        ));
    }
    let of_sso = ["block", "concurrent-blocks", "selection", "warm-up", "init"];
    match of_sso.iter().find(|name| line.contains_key(**name)) {
        Some(name) if settings.solver != SolverKind::Sso => Err(CliError::Usage(format!(
            "--{name} belongs to --solver sso; add that or leave it out"
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
