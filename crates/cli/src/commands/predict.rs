//! `argwhy predict`: signals → decisions, from a file or as a stream.

use super::names::{SignalLine, encoding, limits};
use super::strange;
use super::targets::check_targets;
use super::{Wanted, load_rows, on_threads, resolve};
use crate::End;
use crate::args::{PredictArgs, SetOptions};
use crate::error::CliError;
use crate::progress::say;
use argwhy::core::Constraints;
use argwhy::core::dataset::{ConstraintArrays, Names, Relation};
use argwhy::core::decision_set::{Prices, SampleSets};
use argwhy::core::metrics;
use argwhy::io::{
    Beside, SharedMatrix, check_decisions_ending, check_prices_ending, write_decisions_beside,
    write_prices, write_whole,
};
use argwhy::ranges::Ranges;
use argwhy::{Predictor, StoredModel, device};
use ndarray::{Array1, Array2, ArrayD, ArrayView2};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;

pub fn run(args: &PredictArgs) -> Result<End, CliError> {
    let sets = &args.sets;
    let second = args.decisions.as_deref().map(Path::new).filter(|path| path.is_file());
    let inputs = [
        Some(args.model.as_path()),
        args.data.as_deref(),
        second,
        sets.matrix.as_deref(),
        sets.matrix_eq.as_deref(),
    ];
    let prices = prices_file(args)?;
    if let Some(output) = args.output.as_deref().filter(|_| !args.jsonl) {
        check_decisions_ending(output)?;
        strange::check_room(output, "--familiarity", args.familiarity)?;
        strange::check_room(output, "--range", args.range.is_some())?;
    }
    let outputs: Vec<&Path> = args.output.as_deref().into_iter().chain(prices).collect();
    check_targets(&inputs.into_iter().flatten().collect::<Vec<_>>(), &outputs, &[])?;
    let stored = argwhy::load_model(&args.model)?;
    let predictor = Predictor::new(&stored.model)?;
    let ranges = args.range.map(|level| Ranges::new(&stored.model, level)).transpose()?;
    if args.jsonl {
        return stream(&predictor, &stored, ranges.as_ref(), args);
    }
    let predictor = predictor.with_batches(device::batches(args.device, &stored.model)?);
    let (Some(data), Some(output)) = (&args.data, &args.output) else {
        return Err(CliError::Usage("DATA and --output are needed without --jsonl".to_owned()));
    };
    let wanted = Wanted {
        decisions: args.decisions.as_ref(),
        want_decisions: args.decisions.is_some(),
        ..Wanted::new(&args.rows, sets)
    };
    let rows = load_rows(data, &wanted, (&stored, &predictor), args.quiet)?;
    let sets = rows.sets(&predictor)?;
    let (desired, predicted, priced, range) = on_threads(args.rows.threads, || {
        let desired = predictor.desired(rows.signals.view())?;
        let predicted = predictor.decide(desired.view(), &sets)?;
        let priced = prices.map(|_| predictor.prices(desired.view(), &sets)).transpose()?;
        let around = |ranges: &Ranges| ranges.around(rows.signals.view(), predicted.view(), &sets);
        let range = ranges.as_ref().map(around).transpose()?;
        Ok::<_, CliError>((desired, predicted, priced, range))
    })??;
    let compared = match &rows.decisions {
        None => None,
        Some(observed) => {
            Some(metrics::evaluate(desired.view(), observed.view(), predictor.metric(), &sets)?)
        }
    };
    let familiar = strange::familiarity(&stored.model, &rows, args.familiarity, args.quiet)?;
    let beside = Beside {
        range: range.as_ref().map(|(low, high)| (low.view(), high.view())),
        familiarity: familiar.as_deref().filter(|_| args.familiarity),
    };
    write_decisions_beside(output, predicted.view(), &stored.model.names.decisions, beside)?;
    if let (Some(path), Some(mut priced)) = (prices, priced) {
        for row in &mut priced.samples {
            *row = rows.place(*row as usize) as u64;
        }
        write_prices(path, &priced, &rows.names)?;
        say(args.quiet, format_args!("{} prices written to {}", priced.len(), path.display()));
    }
    if let Some(m) = compared {
        say(
            args.quiet,
            format_args!("rmse {:.6}, largest error {:.6} over {} rows", m.rmse, m.max_error, m.n),
        );
    }
    say(
        args.quiet,
        format_args!("{} decisions written to {}", predicted.nrows(), output.display()),
    );
    Ok(End::Done)
}

/// Where prices go, if into a file.
fn prices_file(args: &PredictArgs) -> Result<Option<&Path>, CliError> {
    match (args.prices.as_deref(), args.jsonl) {
        (None, _) => Ok(None),
        (Some(path), true) if path == Path::new("-") => Ok(None),
        (Some(path), true) => Err(CliError::Usage(format!(
            "with --jsonl prices are part of each answer and take no file, but `{}` follows \
             --prices; put --prices last",
            path.display()
        ))),
        (Some(path), false) if path == Path::new("-") => {
            Err(CliError::Usage("--prices needs a file ending in .csv or .npz".to_owned()))
        }
        (Some(path), false) => {
            check_prices_ending(path)?;
            Ok(Some(path))
        }
    }
}

/// A signal with the constraints of its decision; null in a bound is no limit.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Question {
    pub signal: SignalLine,
    #[serde(rename = "M")]
    matrix: Option<Vec<Vec<f64>>>,
    #[serde(rename = "W")]
    bound: Option<Vec<Option<f64>>>,
    #[serde(rename = "M_eq")]
    equal_matrix: Option<Vec<Vec<f64>>>,
    #[serde(rename = "W_eq")]
    equal_bound: Option<Vec<f64>>,
    lower: Option<Vec<Option<f64>>>,
    upper: Option<Vec<Option<f64>>>,
}

#[derive(Serialize)]
struct Answer<'a> {
    decision: &'a [f64],
    #[serde(skip_serializing_if = "Option::is_none")]
    prices: Option<BTreeMap<String, f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    low: Option<Vec<f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    high: Option<Vec<f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    familiarity: Option<f64>,
}

impl<'a> Answer<'a> {
    fn of(decision: &'a [f64]) -> Self {
        Self { decision, prices: None, low: None, high: None, familiarity: None }
    }
}

/// The matrices that all lines share.
struct Shared {
    matrix: Option<SharedMatrix>,
    equal: Option<SharedMatrix>,
}

impl Shared {
    fn load(options: &SetOptions, names: &Names) -> Result<Self, CliError> {
        let load = |path: &Option<std::path::PathBuf>, relation| {
            let load = |path| SharedMatrix::load(path, relation)?.ordered_by(&names.decisions);
            path.as_deref().map(load).transpose()
        };
        Ok(Self {
            matrix: load(&options.matrix, Relation::AtMost)?,
            equal: load(&options.matrix_eq, Relation::Equal)?,
        })
    }
}

impl Shared {
    /// What limits are called.
    fn names(&self, model: &Names) -> Names {
        let rows = |shared: &Option<SharedMatrix>| {
            shared.as_ref().map(|shared| shared.names.clone()).unwrap_or_default()
        };
        let (inequalities, equalities) = (rows(&self.matrix), rows(&self.equal));
        limits(model, &Names { inequalities, equalities, ..Names::default() })
    }
}

impl Question {
    /// One line.
    pub fn read(line: &str) -> Result<Self, String> {
        serde_json::from_str(line).map_err(|e| {
            // What kinds of signals there are is no user's concern, what was wrong is.
            let why = e.to_string();
            let why = if why.starts_with("data did not match any variant") {
                let place = why.find(" at line").map_or("", |at| &why[at..]);
                format!("the signal has a value that is no number{place}")
            } else {
                why
            };
            format!("{why}; expected {{\"signal\": [numbers]}} or {{\"signal\": {{name: number}}}}")
        })
    }

    /// What the line itself says of limits.
    pub fn own_constraints(&self) -> Result<Constraints, String> {
        self.constraints(&Shared { matrix: None, equal: None })
    }

    /// What limits this decision beside the model's own limits; empty where nothing does.
    fn constraints(&self, shared: &Shared) -> Result<Constraints, String> {
        let fill = |bound: &Option<Vec<Option<f64>>>, none: f64| -> Option<ArrayD<f64>> {
            let bound = bound.as_ref()?.iter().map(|b| b.unwrap_or(none));
            Some(bound.collect::<Array1<f64>>().into_dyn())
        };
        let bound = fill(&self.bound, f64::INFINITY);
        let own = (self.matrix.as_deref(), bound);
        let (matrix, bound) = rows(Relation::AtMost, own, shared.matrix.as_ref())?.unzip();
        let bound_eq = self.equal_bound.clone().map(|bound| Array1::from(bound).into_dyn());
        let own = (self.equal_matrix.as_deref(), bound_eq);
        let (equal_matrix, equal_bound) =
            rows(Relation::Equal, own, shared.equal.as_ref())?.unzip();
        let lower = fill(&self.lower, f64::NEG_INFINITY);
        let upper = fill(&self.upper, f64::INFINITY);
        let arrays = ConstraintArrays { matrix, bound, equal_matrix, equal_bound, lower, upper };
        Constraints::from_arrays(arrays).map_err(|e| format!("{e:#}"))
    }
}

/// A matrix with its bound.
type MatrixAndBound = (ArrayD<f64>, ArrayD<f64>);

/// A line's matrix and bound, each from the shared file where the line has none.
fn rows(
    relation: Relation,
    (matrix, bound): (Option<&[Vec<f64>]>, Option<ArrayD<f64>>),
    shared: Option<&SharedMatrix>,
) -> Result<Option<MatrixAndBound>, String> {
    let name = relation.matrix();
    let matrix = match (matrix, shared) {
        (Some(_), Some(shared)) => {
            let file = shared.path.display();
            return Err(format!("`{name}` is in the line and in `{file}`; leave out one of them"));
        }
        (Some(rows), None) => {
            let width = rows.first().map_or(0, Vec::len);
            let flat: Vec<f64> = rows.iter().flatten().copied().collect();
            if rows.iter().any(|row| row.len() != width) {
                return Err(format!("the rows of `{name}` have different lengths"));
            }
            let matrix = Array2::from_shape_vec((rows.len(), width), flat);
            Some(matrix.map_err(|e| e.to_string())?.into_dyn())
        }
        (None, Some(shared)) => Some(shared.matrix.clone().into_dyn()),
        (None, None) => None,
    };
    let shared = shared.and_then(|shared| shared.bound.as_ref());
    let bound = bound.or_else(|| shared.map(|bound| bound.clone().into_dyn()));
    let pair = relation.pair(matrix, bound);
    let pair = pair.map_err(|half| format!("there is `{}` but no `{}`", half.has, half.lacks))?;
    match pair {
        Some((matrix, bound)) if matrix.shape()[0] != bound.len() => Err(format!(
            "`{name}` has {} rows but `{}` has {} bounds; every row needs one",
            matrix.shape()[0],
            relation.bound(),
            bound.len()
        )),
        pair => Ok(pair),
    }
}

/// One line in, one line out, flushed: a control loop waits for it.
fn stream(
    predictor: &Predictor,
    stored: &StoredModel,
    ranges: Option<&Ranges>,
    args: &PredictArgs,
) -> Result<End, CliError> {
    let (model, encoding) = (&stored.model, encoding(stored));
    let names = &model.names;
    let familiarity = strange::asked_for(model, args.familiarity)?;
    let read = |path: &Path| {
        File::open(path).map_err(|source| {
            let path = path.to_path_buf();
            argwhy::io::DataError::Unreadable { path, source }
        })
    };
    let input: Box<dyn BufRead> = match &args.data {
        Some(path) => Box::new(BufReader::new(read(path)?)),
        None => Box::new(io::stdin().lock()),
    };
    // A file is written whole or not at all; a stream is answered line by line.
    let mut whole = Vec::new();
    let mut stdout = BufWriter::new(io::stdout().lock());
    let wanted =
        args.rows.choice.rows.as_ref().map(|rows| resolve(Some(rows), usize::MAX)).transpose()?;
    let shared = Shared::load(&args.sets, names)?;
    let limits = shared.names(names);
    let mut scratch = predictor.scratch();
    let mut decision = vec![0.0; predictor.decision_dim()];
    let mut n_lines = 0;
    for (at, line) in input.lines().enumerate() {
        let wrong = |why: String| CliError::Line { line: at + 1, why };
        let line = line.map_err(|e| wrong(e.to_string()))?;
        n_lines = at + 1;
        if line.trim().is_empty()
            || wanted.as_ref().is_some_and(|w| !w.iter().any(|r| r.contains(&at)))
        {
            continue;
        }
        let question = Question::read(&line).map_err(wrong)?;
        let given = question.constraints(&shared).map_err(wrong)?;
        let signal = question.signal.in_order(names, &encoding).map_err(wrong)?;
        let plain = args.prices.is_none() && ranges.is_none();
        let free = given.is_empty() && !predictor.is_constrained() && plain;
        let answer = if free {
            predictor
                .decide_one(&signal, None, &mut scratch, &mut decision)
                .map_err(|e| wrong(format!("{e:#}")))?;
            Answer::of(&decision)
        } else {
            let wrong = |e: argwhy::core::Error| {
                wrong(format!("{:#}", argwhy::Error::from(e).named(&limits)))
            };
            let given = Some(&given).filter(|given| !given.is_empty());
            let sets = predictor.sets(given, 1).map_err(wrong)?;
            predictor
                .decide_one(&signal, Some((&sets, 0)), &mut scratch, &mut decision)
                .map_err(wrong)?;
            let prices = match args.prices {
                Some(_) => Some(prices(predictor, &limits, &signal, &sets).map_err(wrong)?),
                None => None,
            };
            let (low, high) = ranges
                .map(|r| range(r, &signal, &decision, &sets))
                .transpose()
                .map_err(wrong)?
                .unzip();
            Answer { prices, low, high, ..Answer::of(&decision) }
        };
        let answer = match &familiarity {
            Some(familiarity) => {
                let found =
                    strange::of_one(familiarity, &signal).map_err(|e| wrong(format!("{e:#}")))?;
                Answer { familiarity: Some(found), ..answer }
            }
            None => answer,
        };
        let output: &mut dyn Write = if args.output.is_some() { &mut whole } else { &mut stdout };
        serde_json::to_writer(&mut *output, &answer)
            .map_err(io::Error::from)
            .and_then(|()| output.write_all(b"\n"))
            .and_then(|()| output.flush())
            .map_err(CliError::Stdout)?;
    }
    // How many lines there are is known only now.
    if args.rows.choice.rows.is_some() {
        resolve(args.rows.choice.rows.as_ref(), n_lines)?;
    }
    if let Some(path) = &args.output {
        write_whole(path, &whole)
            .map_err(|source| CliError::Write { path: path.clone(), source })?;
    }
    Ok(End::Done)
}

/// Where the expert's decision would lie around one of the model's.
fn range(
    ranges: &Ranges,
    signal: &[f64],
    decision: &[f64],
    sets: &SampleSets,
) -> Result<(Vec<f64>, Vec<f64>), argwhy::core::Error> {
    let (low, high) = ranges.around(one_row(signal), one_row(decision), sets)?;
    Ok((low.into_iter().collect(), high.into_iter().collect()))
}

fn one_row(values: &[f64]) -> ArrayView2<'_, f64> {
    ArrayView2::from_shape((1, values.len()), values).expect("one row of its length")
}

/// The prices of the limits that hold one decision, by their names.
fn prices(
    predictor: &Predictor,
    names: &Names,
    signal: &[f64],
    sets: &SampleSets,
) -> Result<BTreeMap<String, f64>, argwhy::core::Error> {
    let Prices { limits, values, .. } =
        predictor.prices(predictor.desired(one_row(signal))?.view(), sets)?;
    Ok(limits.iter().map(|limit| limit.named(names)).zip(values).collect())
}
