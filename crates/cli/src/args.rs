//! The words of the command line. What they mean is decided in `config`; the flags of settings are
//! in `flags`.

use crate::flags::SettingFlags;
use argwhy::io::{Cyclic, DataRequest, Decimal, Missing, RowRanges, Thinning};
use argwhy::judging::HOLDOUT;
use argwhy::settings::{Block, DeviceChoice, MemorySize, Numbers, Preset};
use argwhy::tuning::{Judge, N_PARTS};
use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Recover the objective behind an expert's decisions, with a proof of optimality, and decide like
/// the expert.
#[derive(Parser)]
#[command(name = "argwhy", version, propagate_version = true, max_term_width = 110)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Learn a model from signals and decisions
    Fit(Box<FitArgs>),
    /// Choose the settings of a fit by rows kept aside
    Tune(Box<TuneArgs>),
    /// Let a model learn from more rows, or forget some, without starting from nothing
    Update(Box<UpdateArgs>),
    /// Say what data is like before anything is learned from it
    Describe(DescribeArgs),
    /// Write data in another format
    Convert(ConvertArgs),
    /// Decide on new signals
    Predict(PredictArgs),
    /// Compare a model's decisions with an expert's
    Evaluate(EvaluateArgs),
    /// Show what is inside a model
    Inspect(InspectArgs),
    /// Say what the expert weighs, and why one decision is what it is
    Explain(ExplainArgs),
    /// Write a page on which a model can be tried out: a slider for each signal
    Explore(ExploreArgs),
    /// Learn from a bundled expert, end to end, with a report
    Demo(DemoArgs),
    /// Reproduce the paper's ablation of SSO, beside our rule, on data of your own
    Ablate(Box<AblateArgs>),
    /// Measure how fast a model decides on this machine
    Bench(BenchArgs),
    /// Check that this machine is all right
    Doctor(DoctorArgs),
    /// Print a script that completes these words in your shell
    Completions(CompletionsArgs),
    /// Write manual pages, one a command
    Man(ManArgs),
    /// Print the JSON Schema of `fit`'s config file, for editors
    Schema,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  argwhy fit hopper_expert-v2.hdf5 --rows 0:5000 --bounds=-1,1 -o hopper.argwhy
  argwhy fit days.csv --signals price,load --decisions power --bounds 0,40 \\
    -o dispatch.argwhy --report fit.html
  argwhy fit plans.csv --signals margin --decisions tonnes --lower 0,0 \\
    --matrix hours.csv -o planner.argwhy

Exit status: 0 solved, 1 stopped short of the tolerance (the model reached is saved), 2 error.")]
pub struct FitArgs {
    /// Signals and decisions: npz, npy, csv, tsv (also .gz, .zst), parquet, Arrow (Feather), xlsx,
    /// ods, hdf5 (D4RL, Minari, robomimic) or a folder of them; - for standard input
    pub data: PathBuf,
    /// Where to write the model
    #[arg(short, long, value_name = "MODEL")]
    pub output: PathBuf,
    /// Options from a TOML file, by the same names; the command line wins
    #[arg(long, value_name = "FILE.toml")]
    pub config: Option<PathBuf>,
    /// Start from the settings of one of the paper's experiments, limits of ±1 included; the
    /// config file and the command line win. The rows it drew from D4RL's file are for --rows
    #[arg(long, value_name = "NAME", value_parser = PresetParser)]
    pub preset: Option<Preset>,
    #[command(flatten)]
    pub source: SourceOptions,
    #[command(flatten)]
    pub settings: SettingFlags,
    #[command(flatten)]
    pub outputs: OutputOptions,
}

/// Reads the name of a preset; help and completions list them all, with what they say.
#[derive(Clone)]
struct PresetParser;

impl TypedValueParser for PresetParser {
    type Value = Preset;

    fn parse_ref(
        &self,
        _: &clap::Command,
        _: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<Preset, clap::Error> {
        let refused = |why: String| clap::Error::raw(ErrorKind::InvalidValue, why + "\n");
        Preset::named(&value.to_string_lossy()).map_err(|error| refused(error.to_string()))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let described = |preset: Preset| {
            let Preset { rows, regularization, block, .. } = preset;
            let help = format!("k {regularization:e}, block {block}; rows {rows}");
            PossibleValue::new(preset.name).help(help)
        };
        Some(Box::new(Preset::ALL.into_iter().map(described)))
    }
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  argwhy tune days.csv --signals price,load --decisions power --lower 0 --upper 40
  argwhy tune hopper.hdf5 --rows 0:5000 --bounds=-1,1 --judge regret --budget 10min -o hopper-tune
  argwhy fit hopper.hdf5 --config hopper-tune/best.toml -o hopper.argwhy

What is given is not searched: with --kernel rbf only gamma, features, trend and -k are chosen.
Exit status: 0 done, 1 stopped early with the best so far (see --resume), 2 error.")]
pub struct TuneArgs {
    /// Signals and decisions: npz, npy, csv, tsv (also .gz, .zst), parquet, Arrow (Feather), xlsx,
    /// ods, hdf5 (D4RL, Minari, robomimic) or a folder of them; - for standard input
    pub data: PathBuf,
    /// Folder for best.toml (for `fit --config`), trials.jsonl and report.html
    #[arg(short, long, value_name = "FOLDER", default_value = "argwhy-tune")]
    pub output: PathBuf,
    /// Options from a config file of `fit`, as far as they are about data and settings; the command
    /// line wins
    #[arg(long, value_name = "FILE.toml")]
    pub config: Option<PathBuf>,
    /// What the settings are compared by: error (how far decisions are from the expert's) or regret
    /// (the suboptimality loss that inverse optimization minimises). Both are shown
    #[arg(long, value_name = "BY", value_enum, default_value_t)]
    pub judge: JudgeBy,
    /// Time there is, as in 90s, 5min or 1h; the best so far is kept when it ends
    #[arg(long, value_name = "TIME", default_value = "5min")]
    pub budget: Span,
    /// Parts that the rows are divided into, each kept aside once
    #[arg(long, value_name = "N", default_value_t = N_PARTS)]
    pub folds: usize,
    /// Search these instead: a TOML file of lists, as in `kernel = ["rbf", "laplace"]`
    #[arg(long, value_name = "GRID.toml")]
    pub grid: Option<PathBuf>,
    /// Go on with the search that was stopped in this folder
    #[arg(long)]
    pub resume: bool,
    /// Print one JSON object with the best settings and every trial on stdout
    #[arg(long)]
    pub json: bool,
    /// Say nothing on stderr but errors
    #[arg(short, long)]
    pub quiet: bool,
    #[command(flatten)]
    pub ray: RayOptions,
    #[command(flatten)]
    pub source: SourceOptions,
    #[command(flatten)]
    pub settings: SettingFlags,
}

/// What settings are compared by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum JudgeBy {
    /// How far decisions are from the expert's
    #[default]
    Error,
    /// The suboptimality loss
    Regret,
}

impl From<JudgeBy> for Judge {
    fn from(by: JudgeBy) -> Self {
        match by {
            JudgeBy::Error => Self::Error,
            JudgeBy::Regret => Self::Regret,
        }
    }
}

/// A length of time as people write it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Span(pub Duration);

impl From<Span> for String {
    fn from(span: Span) -> Self {
        format!("{}s", span.0.as_secs_f64())
    }
}

impl TryFrom<String> for Span {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit = match &text[digits.len()..] {
            "" | "s" | "sec" => Some(1.0),
            "min" | "m" => Some(60.0),
            "h" => Some(3600.0),
            _ => None,
        };
        let seconds = unit.zip(digits.trim().parse::<f64>().ok()).map(|(unit, n)| unit * n);
        let span = seconds.filter(|s| *s > 0.0).and_then(|s| Duration::try_from_secs_f64(s).ok());
        span.map(Self).ok_or_else(|| "expected a time such as 90s, 5min or 1h".to_owned())
    }
}

/// What `fit` learns from; on the command line or in a config file.
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct SourceOptions {
    /// Key (tables: columns, as in price,load or s* or first:last; * is all that have no other
    /// role) of the signals; `signals`, else `observations`, if not given
    #[arg(long, value_name = "KEY", help_heading = "Data")]
    pub signals: Option<String>,
    /// Key (csv: columns; npy: second file) of the decisions; `decisions`, else `actions`, if not
    /// given
    #[arg(long, value_name = "KEY", help_heading = "Data")]
    pub decisions: Option<String>,
    /// Rows to train on, half-open; feature statistics still come from all rows. All rows if not
    /// given
    #[arg(
        long,
        value_name = "0:5000,10000:15000",
        allow_hyphen_values = true,
        help_heading = "Data"
    )]
    pub rows: Option<RowRanges>,
    /// How many times each row counts, under this key (`weights` if the flag is given alone); once
    /// each if not given
    #[arg(
        long,
        value_name = "KEY",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "weights",
        help_heading = "Data"
    )]
    pub weights: Option<String>,
    /// Read each row's constraints from the data, whichever are there: M·u ≤ W, M_eq·u = W_eq,
    /// lower ≤ u ≤ upper (csv: columns M_<row>_<dim>, W_<row>, lower_<dim>, …). Limits given here
    /// as well restrict them further
    #[arg(long, help_heading = "Data")]
    pub constraints: bool,
    /// One M for all rows, from a csv or npy file (rows × dimensions); W comes from the data, else
    /// from a column W of the file. A column `limit` has what each row is called, and columns with
    /// the decisions' names may stand in any order
    #[arg(long, value_name = "FILE", help_heading = "Data")]
    #[serde(with = "path_text")]
    pub matrix: Option<PathBuf>,
    /// The same for M_eq and W_eq
    #[arg(long, value_name = "FILE", help_heading = "Data")]
    #[serde(with = "path_text")]
    pub matrix_eq: Option<PathBuf>,
    /// Where rows are kept aside, keep whole groups aside: those with the same value under this key
    /// (csv: in these columns, text too). By whole episodes if not given and the data has any
    /// (terminals, timeouts, Minari), else at random
    #[arg(long, value_name = "KEY", help_heading = "Data")]
    pub groups: Option<String>,
    /// Rows stand in the order of time: the last ones are kept aside
    #[arg(long, value_name = "ORDER", help_heading = "Data")]
    pub order: Option<RowOrder>,
    /// Read these episodes alone, by number. With this, --every or --sample, what is left out is
    /// not kept in memory, and feature statistics come from the rows that are read
    #[arg(long, value_name = "0:10", help_heading = "Data")]
    pub episodes: Option<RowRanges>,
    /// Read the first of every N rows
    #[arg(long, value_name = "N", value_parser = at_least_one, help_heading = "Data")]
    pub every: Option<usize>,
    /// Read N rows chosen at random (by --seed), in their order
    #[arg(long, value_name = "N", value_parser = at_least_one, help_heading = "Data")]
    pub sample: Option<usize>,
    /// Where values are missing: error (say where), drop (leave those rows out) or mean (in
    /// signals, put the mean of the column; the model remembers it) [default: error]
    #[arg(long, value_name = "WAY", help_heading = "Data")]
    pub missing: Option<Missing>,
    /// Columns of signals with categories, such as days of the week: each becomes one column of
    /// zeros and ones a value. The model remembers the values
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', help_heading = "Data")]
    pub one_hot: Option<Vec<String>>,
    /// Columns of signals that go round, with when they begin again: hour:24, or for dates
    /// when:day, when:week or when:year. Each becomes a sine and a cosine
    #[arg(long, value_name = "COLUMN:PERIOD", value_delimiter = ',', help_heading = "Data")]
    pub cyclic: Option<Vec<Cyclic>>,
    /// Units of signals, decisions and named limits, told with them: power=kW,price=EUR/MWh. A
    /// column called `power [kW]` says its unit itself
    #[arg(long, value_name = "NAME=UNIT", value_delimiter = ',', help_heading = "Data")]
    pub units: Option<Vec<String>>,
    /// Sheet of a workbook (xlsx, ods); the first one if not given
    #[arg(long, value_name = "NAME", help_heading = "Data")]
    pub sheet: Option<String>,
    /// What separates the fraction of numbers in csv files: . or , [default: .]
    #[arg(long, value_name = "CHARACTER", help_heading = "Data")]
    pub decimal: Option<Decimal>,
    /// What `--lower` names where it has no numbers.
    #[arg(skip)]
    #[serde(skip)]
    pub lower_columns: Vec<String>,
    /// What `--upper` names where it has no numbers.
    #[arg(skip)]
    #[serde(skip)]
    pub upper_columns: Vec<String>,
}

/// A number that is not zero.
fn at_least_one(text: &str) -> Result<usize, String> {
    let number = text.parse::<usize>().map_err(|error| error.to_string())?;
    if number == 0 { Err("expected one or more".to_owned()) } else { Ok(number) }
}

/// The default stands where the share does.
fn holdout_help() -> String {
    format!(
        "Share of the rows that is kept aside to judge a second, looser fit on: error, R² and \
         regret beside three baselines. 0 for no verdict. The model that is saved learns from all \
         rows [default: {HOLDOUT}]"
    )
}

/// What the order of rows means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RowOrder {
    /// Later rows are later in time
    Time,
}

/// A cluster that the work is done on; on the command line or in a config file of `fit`.
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct RayOptions {
    /// Have the workers of a Ray cluster do the work, products of a fit or trials of a search:
    /// "auto" for the one this machine is part of, else one of this machine alone; or HOST:PORT.
    /// Needs Python with `pip install 'argwhy[ray]'` (python3, or what ARGWHY_PYTHON names). For a
    /// fit workers read DATA themselves, by the same path
    #[arg(long, value_name = "auto|ADDRESS", help_heading = "Machine")]
    pub ray: Option<String>,
    /// Workers of the cluster; one a node if not given
    #[arg(long, value_name = "N", requires = "ray", help_heading = "Machine")]
    pub ray_workers: Option<usize>,
    /// Cores of each of them; all of the smallest node if not given
    #[arg(long, value_name = "N", requires = "ray", help_heading = "Machine")]
    pub ray_cpus: Option<usize>,
    /// GPUs of each of them, 0 or 1: products of many samples are computed there
    #[arg(long, value_name = "N", requires = "ray", help_heading = "Machine")]
    pub ray_gpus: Option<usize>,
    /// Samples from which on workers keep the preconditioner, a share each, instead of this
    /// process; a million if not given. Decides the last bits, as the number of workers does not
    #[arg(long, value_name = "N", requires = "ray", help_heading = "Machine")]
    pub ray_spread_from: Option<usize>,
    /// Replace a worker that says nothing for so long, such as 10min; 5min if not given. More than
    /// its largest piece of work takes, reading the data included
    #[arg(long, value_name = "TIME", requires = "ray", help_heading = "Machine")]
    pub ray_timeout: Option<Span>,
}

/// What `fit` leaves behind; on the command line or in a config file.
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct OutputOptions {
    /// Fit a model for each of these instead of one for -k, each starting from the one before:
    /// quickest from large to small. The models are named after MODEL, with the regularization
    /// added
    #[arg(
        long,
        value_name = "1e-4,1e-5,1e-6",
        conflicts_with = "regularization",
        help_heading = "Problem and solver"
    )]
    pub path: Option<Numbers>,
    /// Choose kernel, gamma, features, trend and -k first, where they are not given, as `argwhy
    /// tune` does, and learn with those
    #[arg(long, conflicts_with = "path", help_heading = "Problem and solver")]
    pub tune: bool,
    /// Share of the rows that is kept aside to judge a second, looser fit on: error, R² and regret
    /// beside three baselines. 0 for no verdict. The model that is saved learns from all rows
    #[arg(long, value_name = "SHARE", help_heading = "Output", help = holdout_help())]
    pub holdout: Option<f64>,
    /// Keep what is reached in this file, written whole at the first step after each
    /// --checkpoint-every. Ctrl-C and SIGTERM write it too, beside MODEL where no file is given,
    /// when there is no time to certify it
    #[arg(long, value_name = "FILE", conflicts_with = "path", help_heading = "Going on")]
    #[serde(with = "path_text")]
    pub checkpoint: Option<PathBuf>,
    /// How often the checkpoint is written [default: 60s]
    #[arg(long, value_name = "60s", requires = "checkpoint", help_heading = "Going on")]
    pub checkpoint_every: Option<Span>,
    /// Keep the rows in the model, so that `argwhy update` needs nothing else, and what makes it
    /// quick: from 2800 rows on up to 8 MB a dimension of decisions at 20,000 rows, twice that
    /// where k is small
    #[arg(long, conflicts_with = "path", help_heading = "Going on")]
    pub keep_data: bool,
    /// Keep the rows alone, in a smaller model; an update takes about twice as long
    #[arg(long, requires = "keep_data", help_heading = "Going on")]
    pub no_factor: bool,
    /// Go on from a checkpoint of the same rows; the optimum is that of a fit from nothing, and
    /// settings may differ
    #[arg(long, value_name = "FILE", conflicts_with = "path", help_heading = "Going on")]
    #[serde(with = "path_text")]
    pub resume: Option<PathBuf>,
    /// Start from the coefficients of a model of the same rows, with other settings or further rows
    /// behind them; the optimum does not depend on it, the time does
    #[arg(
        long,
        value_name = "MODEL",
        conflicts_with_all = ["path", "resume"],
        help_heading = "Going on"
    )]
    #[serde(with = "path_text")]
    pub from: Option<PathBuf>,
    #[command(flatten)]
    #[serde(flatten)]
    pub ray: RayOptions,
    /// Print one JSON object with the result on stdout
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Write every step as a line of JSON
    #[arg(long, value_name = "FILE.jsonl", help_heading = "Output")]
    #[serde(with = "path_text")]
    pub trace: Option<PathBuf>,
    /// Write a self-contained page with convergence, certificate and decisions
    #[arg(long, value_name = "FILE.html", help_heading = "Output")]
    #[serde(with = "path_text")]
    pub report: Option<PathBuf>,
    /// Say nothing on stderr but errors
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,
}

/// Paths in tables: text, or where they are none the bytes that they are.
mod path_text {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::ffi::OsString;
    use std::path::PathBuf;

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Written {
        Text(String),
        Bytes(OsString),
    }

    #[allow(clippy::ref_option, reason = "the signature that serde calls")]
    pub fn serialize<S: Serializer>(
        path: &Option<PathBuf>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let written = path.clone().map(|path| match path.into_os_string().into_string() {
            Ok(text) => Written::Text(text),
            Err(bytes) => Written::Bytes(bytes),
        });
        written.serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<PathBuf>, D::Error> {
        let written = Option::<Written>::deserialize(deserializer)?;
        Ok(written.map(|written| match written {
            Written::Text(text) => text.into(),
            Written::Bytes(bytes) => bytes.into(),
        }))
    }
}

/// Where the rows of a command come from, and who works on them.
#[derive(Args)]
pub struct DataOptions {
    #[command(flatten)]
    pub choice: RowOptions,
    /// Threads; one a core if not given. The result does not depend on it
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
}

/// Where the rows of a command come from.
#[derive(Args)]
pub struct RowOptions {
    /// Key (csv: columns) of the signals; `signals`, else `observations`, if not given
    #[arg(long, value_name = "KEY")]
    pub signals: Option<String>,
    /// Rows to use, half-open; all if not given
    #[arg(long, value_name = "0:5000,10000:15000", allow_hyphen_values = true)]
    pub rows: Option<RowRanges>,
    /// Episodes to use, by number
    #[arg(long, value_name = "0:10")]
    pub episodes: Option<RowRanges>,
    /// Use the first of every N rows
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub every: Option<usize>,
    /// Use N rows chosen at random, always the same ones, in their order
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub sample: Option<usize>,
    /// Sheet of a workbook (xlsx, ods); the first one if not given
    #[arg(long, value_name = "NAME")]
    pub sheet: Option<String>,
    /// What separates the fraction of numbers in csv files: . or , [default: .]
    #[arg(long, value_name = "CHARACTER")]
    pub decimal: Option<Decimal>,
}

impl RowOptions {
    /// A request for the rows chosen here, as far as these options say.
    pub fn request(&self) -> DataRequest {
        DataRequest {
            signals: self.signals.clone(),
            rows: self.rows.clone(),
            thinning: Thinning {
                episodes: self.episodes.clone(),
                every: self.every,
                sample: self.sample,
                seed: 0,
            },
            sheet: self.sheet.clone(),
            decimal: self.decimal.unwrap_or_default(),
            ..DataRequest::default()
        }
    }
}

/// Where constraints come from that all rows share. Those of single rows come with the data.
#[derive(Args)]
pub struct SetOptions {
    /// One M for all rows, from a csv or npy file (rows × dimensions); W comes from the data, else
    /// from a column W of the file
    #[arg(long, value_name = "FILE")]
    pub matrix: Option<PathBuf>,
    /// The same for M_eq and W_eq
    #[arg(long, value_name = "FILE")]
    pub matrix_eq: Option<PathBuf>,
}

#[derive(Args)]
pub struct PredictArgs {
    /// A model written by `fit`
    pub model: PathBuf,
    /// Signals to decide on, with M, W, … for a model fitted with constraints; with --jsonl lines
    /// of {"signal": [..]}, from stdin if not given
    #[arg(required_unless_present = "jsonl")]
    pub data: Option<PathBuf>,
    /// Where to write the decisions: .npz, .npy or .csv; with --jsonl stdout if not given
    #[arg(short, long, value_name = "OUT", required_unless_present = "jsonl")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub rows: DataOptions,
    /// Also compare with these decisions, on stderr
    #[arg(long, value_name = "KEY")]
    pub decisions: Option<String>,
    #[command(flatten)]
    pub sets: SetOptions,
    /// Where decisions are computed: cpu, or cuda (cuda:N), an NVIDIA GPU, for many at once. On the
    /// CPU a decision has the same bits alone and in any batch, so auto means cpu here
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub device: DeviceChoice,
    /// Also write the prices of the limits that hold a decision (.csv or .npz): what one more unit
    /// of that limit would be worth to the expert. With --jsonl they are part of each answer
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub prices: Option<PathBuf>,
    /// Also write how familiar each situation is, 0 to 100: the share of training situations that
    /// were stranger to the others (csv: a column, npz: an array; with --jsonl part of each
    /// answer). Rows below 1 are told on stderr in any case, except with --jsonl
    #[arg(long)]
    pub familiarity: bool,
    /// Also write where the expert's own decision would lie with this probability, such as 0.9,
    /// each dimension for itself: by the errors on rows that `fit` kept aside, wider where a
    /// situation is unfamiliar, cut to the limits (csv: columns NAME_low and NAME_high; npz: arrays
    /// decisions_low and decisions_high; with --jsonl "low" and "high" of each answer)
    #[arg(long, value_name = "P")]
    pub range: Option<f64>,
    /// Decide line by line: {"signal": [..]} in, {"decision": [..]} out; constraints as "M":
    /// [[..]], "W": [..], "M_eq", "W_eq", "lower", "upper", where null means no limit
    #[arg(long, conflicts_with_all = [
            "signals", "decisions", "threads", "device", "episodes", "every", "sample", "sheet",
            "decimal",
        ])]
    pub jsonl: bool,
    /// Say nothing on stderr but errors
    #[arg(short, long)]
    pub quiet: bool,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  argwhy describe days.csv --signals price,load --decisions power
  argwhy describe hopper_expert-v2.hdf5 -o data.html
  argwhy describe days.parquet --json")]
pub struct DescribeArgs {
    /// Data in any format that `fit` reads
    pub data: PathBuf,
    /// Write a self-contained page with a histogram of each column
    #[arg(short, long, value_name = "FILE.html")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub rows: RowOptions,
    /// Key (tables: columns; npy: second file) of the decisions; `decisions`, else `actions`, if
    /// not given
    #[arg(long, value_name = "KEY")]
    pub decisions: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  argwhy convert hopper_expert-v2.hdf5 hopper.parquet --episodes 0:10
  argwhy convert days.xlsx days.csv --sheet 2024 --signals price,load --decisions power")]
pub struct ConvertArgs {
    /// Data in any format that `fit` reads
    pub data: PathBuf,
    /// Where to write it: .csv, .tsv, .npz, .parquet, .feather, .arrow, .ipc, .xlsx, .hdf5 or .h5
    pub output: PathBuf,
    #[command(flatten)]
    pub rows: RowOptions,
    /// Key (tables: columns; npy: second file) of the decisions; `decisions`, else `actions`, if
    /// not given
    #[arg(long, value_name = "KEY")]
    pub decisions: Option<String>,
    /// Write signals alone
    #[arg(long, conflicts_with = "decisions")]
    pub signals_only: bool,
    /// Write the weights under this key, too
    #[arg(long, value_name = "KEY")]
    pub weights: Option<String>,
    /// Where values are missing: error (say where), drop (leave those rows out) or mean (in
    /// signals, put the mean of the column) [default: error]
    #[arg(long, value_name = "WAY")]
    pub missing: Option<Missing>,
    /// Columns of signals with categories: each becomes one column of zeros and ones a value
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub one_hot: Option<Vec<String>>,
    /// Columns of signals that go round, with when they begin again: hour:24, or for dates
    /// when:day, when:week or when:year
    #[arg(long, value_name = "COLUMN:PERIOD", value_delimiter = ',')]
    pub cyclic: Option<Vec<Cyclic>>,
    /// Say nothing on stderr but errors
    #[arg(short, long)]
    pub quiet: bool,
}

#[derive(Args)]
pub struct EvaluateArgs {
    /// A model written by `fit`
    pub model: PathBuf,
    /// Signals with the expert's decisions
    pub data: PathBuf,
    #[command(flatten)]
    pub rows: DataOptions,
    /// Key (csv: columns; npy: second file) of the decisions; `decisions`, else `actions`, if not
    /// given
    #[arg(long, value_name = "KEY")]
    pub decisions: Option<String>,
    #[command(flatten)]
    pub sets: SetOptions,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
#[command(after_help = "\
Examples:
  argwhy fit days.csv --bounds 0,40 --keep-data -o monday.argwhy
  argwhy update monday.argwhy tuesday.csv -o tuesday.argwhy
  argwhy update monday.argwhy tuesday.csv --old days.csv -o tuesday.argwhy
  argwhy update tuesday.argwhy --drop 17:18,100:200 -o cleaned.argwhy

The old rows come from the model (`fit --keep-data`) or from --old. The model is fitted anew to all
rows that are left, by the settings it was fitted with, from its own coefficients, and certified
like any other: the same optimum as a fit from nothing, sooner. Features keep the means and widths
of the first fit; where new rows have drifted away from them you are told.

Exit status: 0 solved, 1 stopped short of the tolerance (the model reached is saved), 2 error.")]
pub struct UpdateArgs {
    /// A model written by `fit` or `update`
    pub model: PathBuf,
    /// Rows to add: signals with the expert's decisions
    #[arg(required_unless_present = "drop")]
    pub data: Option<PathBuf>,
    /// Where to write the new model
    #[arg(short, long, value_name = "MODEL2")]
    pub output: PathBuf,
    /// The data that the model was fitted to, where the model does not keep it
    #[arg(long, value_name = "DATA")]
    pub old: Option<PathBuf>,
    /// Its rows that the model was fitted to; all if not given
    #[arg(long, value_name = "0:5000", requires = "old")]
    pub old_rows: Option<RowRanges>,
    /// Old rows to forget, by the numbers they had, half-open. Rows keep their numbers; new ones
    /// are counted on from the largest
    #[arg(long, value_name = "17:18,100:200")]
    pub drop: Option<RowRanges>,
    #[command(flatten)]
    pub rows: DataOptions,
    /// Key (csv: columns; npy: second file) of the decisions; `decisions`, else `actions`, if not
    /// given
    #[arg(long, value_name = "KEY")]
    pub decisions: Option<String>,
    #[command(flatten)]
    pub sets: SetOptions,
    /// Keep all rows in the new model, as one does that kept them before
    #[arg(long)]
    pub keep_data: bool,
    /// Keep the rows without what makes the next update quick
    #[arg(long)]
    pub no_factor: bool,
    /// Memory the whole process may take; as much as the model was fitted with if not given
    #[arg(long, value_name = "2GiB")]
    pub memory: Option<MemorySize>,
    /// Share of the rows that is kept aside to judge a second, looser fit on; 0 for no verdict
    #[arg(long, value_name = "SHARE", help = holdout_help())]
    pub holdout: Option<f64>,
    /// Write every step as a line of JSON
    #[arg(long, value_name = "FILE.jsonl")]
    pub trace: Option<PathBuf>,
    /// Print one JSON object with the result on stdout
    #[arg(long)]
    pub json: bool,
    /// Say nothing on stderr but errors
    #[arg(short, long)]
    pub quiet: bool,
}

#[derive(Args)]
pub struct InspectArgs {
    /// A model written by `fit`
    pub model: PathBuf,
    /// Write the prices of all limits that hold a training decision (.csv or .npz): what one more
    /// unit of that limit would be worth to the expert
    #[arg(long, value_name = "FILE")]
    pub prices: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  argwhy explain dispatch.argwhy days.csv                  what moves the decisions, in words
  argwhy explain dispatch.argwhy days.csv -o why.html      in pictures
  argwhy explain dispatch.argwhy days.csv --row 17         one decision, and what pushed it")]
pub struct ExplainArgs {
    /// A model written by `fit`
    pub model: PathBuf,
    /// Situations to explain it over, best the data it was fitted to, with M, W, … for a model
    /// fitted with constraints. Without, the samples that the model keeps: those that carry weight
    pub data: Option<PathBuf>,
    /// Write a self-contained page
    #[arg(short, long, value_name = "FILE.html")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub rows: DataOptions,
    #[command(flatten)]
    pub sets: SetOptions,
    /// Explain the decision on this row
    #[arg(long, value_name = "N", conflicts_with = "jsonl")]
    pub row: Option<usize>,
    /// Explain the decision on a line from stdin, as `predict --jsonl` takes it
    #[arg(long)]
    pub jsonl: bool,
    /// With --row or --jsonl: by how much a decision should change for that to count; a tenth of
    /// its range if not given
    #[arg(long, value_name = "AMOUNT", allow_negative_numbers = true)]
    pub by: Option<f64>,
    /// Count prices and costs in money too: a decision and the signal that says what a unit of it
    /// costs, such as power=price_eur_mwh
    #[arg(long, value_name = "DECISION=SIGNAL")]
    pub numeraire: Option<Numeraire>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Say nothing on stderr but errors
    #[arg(short, long)]
    pub quiet: bool,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  argwhy explore dispatch.argwhy days.csv -o explore.html

The page needs no server and loads nothing: it carries the model, the rows and the code that
decides. Whoever has it has those too.")]
pub struct ExploreArgs {
    /// A model written by `fit`
    pub model: PathBuf,
    /// Rows to start from and to compare with, best the data it was fitted to, with M, W, … for a
    /// model fitted with constraints. Without, the samples that the model keeps
    pub data: Option<PathBuf>,
    /// Where to write the page
    #[arg(short, long, value_name = "FILE.html", default_value = "explore.html")]
    pub output: PathBuf,
    #[command(flatten)]
    pub rows: DataOptions,
    /// Key of the decisions, or columns; those of the model's names if not given
    #[arg(long, value_name = "KEY|COLUMNS")]
    pub decisions: Option<String>,
    #[command(flatten)]
    pub sets: SetOptions,
    /// Count prices and costs in money too: a decision and the signal that says what a unit of it
    /// costs, such as power=price_eur_mwh
    #[arg(long, value_name = "DECISION=SIGNAL")]
    pub numeraire: Option<Numeraire>,
    /// Say nothing on stderr but errors
    #[arg(short, long)]
    pub quiet: bool,
}

/// A decision whose unit costs what a signal says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numeraire {
    /// The decision's name.
    pub decision: String,
    /// The signal's name.
    pub signal: String,
}

impl FromStr for Numeraire {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((decision, signal)) if !decision.is_empty() && !signal.is_empty() => {
                Ok(Self { decision: decision.to_owned(), signal: signal.to_owned() })
            }
            _ => Err("write a decision and its price, such as power=price_eur_mwh".to_owned()),
        }
    }
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  argwhy demo                    a pilot whose rotors are often at their limits, from new starts
  argwhy demo charging -o depot  a dispatcher of electric vans, new limits every night, in euros")]
pub struct DemoArgs {
    /// Which expert
    #[arg(value_enum, default_value_t)]
    pub name: DemoName,
    /// Folder for report, data and models
    #[arg(short, long, value_name = "FOLDER", default_value = "argwhy-demo")]
    pub output: PathBuf,
    /// Seed of the demonstrations
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Nights shown to the learners (charging), 50 to 5000; 1000 if not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(50..=5000))]
    pub nights: Option<u64>,
    /// Print one JSON object with the figures instead of the table
    #[arg(long)]
    pub json: bool,
    /// Say nothing on stderr but errors
    #[arg(short, long)]
    pub quiet: bool,
}

/// The bundled experts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum DemoName {
    /// A model-predictive pilot of a planar quadrotor
    #[default]
    Quadrotor,
    /// A dispatcher who charges a depot of electric vans against prices
    Charging,
}

#[derive(Args)]
#[command(after_help = "\
Example, the paper's Figure 2:
  argwhy ablate hopper_expert-v2.hdf5 --rows 0:5000 --bounds=-1,1 -k 1e-6 \\
    --seeds 5 -o ablation")]
pub struct AblateArgs {
    /// One or more data sets
    #[arg(required = true)]
    pub data: Vec<PathBuf>,
    /// Folder for traces, table and report
    #[arg(short, long, value_name = "FOLDER", default_value = "argwhy-ablation")]
    pub output: PathBuf,
    #[command(flatten)]
    pub rows: DataOptions,
    /// Key (csv: columns; npy: second file) of the decisions; `decisions`, else `actions`, if not
    /// given
    #[arg(long, value_name = "KEY")]
    pub decisions: Option<String>,
    /// One lower and one upper limit for every dimension of a decision
    #[arg(long, value_name = "LO,HI", allow_hyphen_values = true)]
    pub bounds: Option<Numbers>,
    /// Weight of simplicity: one for all data sets, or a list with one for each
    #[arg(short = 'k', long, value_name = "K[,K..]", allow_hyphen_values = true)]
    pub regularization: Option<Numbers>,
    /// Samples of a block: a share with a decimal point or a number
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true)]
    pub block: Option<Block>,
    /// Blocks after the warm-up
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub iterations: usize,
    /// Seeds; curves and tables show medians
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seeds: u64,
    /// Stop a variant at this relative gap
    #[arg(long, default_value_t = 1e-13)]
    pub tol: f64,
    /// Seconds a variant may take
    #[arg(long, value_name = "SECONDS")]
    pub time_limit: Option<f64>,
    /// Only variants whose name contains this
    #[arg(long, value_name = "TEXT")]
    pub only: Option<String>,
    /// Memory the whole process may take
    #[arg(long, value_name = "2GiB")]
    pub memory: Option<MemorySize>,
    /// Say nothing on stderr but errors
    #[arg(short, long)]
    pub quiet: bool,
}

#[derive(Args)]
pub struct BenchArgs {
    /// A model written by `fit`
    pub model: PathBuf,
    /// Signals to decide on, with M, W, … for a model fitted with constraints; the model's own
    /// training signals if not given
    pub data: Option<PathBuf>,
    /// Key (csv: columns) of the signals; `signals`, else `observations`, if not given
    #[arg(long, value_name = "KEY", requires = "data")]
    pub signals: Option<String>,
    #[command(flatten)]
    pub sets: SetOptions,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct DoctorArgs {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  argwhy completions bash > ~/.local/share/bash-completion/completions/argwhy
  argwhy completions zsh > \"${fpath[1]}/_argwhy\"
  argwhy completions fish > ~/.config/fish/completions/argwhy.fish")]
pub struct CompletionsArgs {
    /// Your shell
    #[arg(value_enum)]
    pub shell: Shell,
}

#[derive(Args)]
pub struct ManArgs {
    /// Folder for the pages, made if it is not there
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
    /// Say nothing on stderr but errors
    #[arg(short, long)]
    pub quiet: bool,
}
