//! `argwhy predict`: signals → decisions, from a file or as a stream.

use super::{check_targets, load_rows, on_threads, resolve};
use crate::End;
use crate::args::PredictArgs;
use crate::error::CliError;
use crate::progress::say;
use argwhy::Predictor;
use argwhy::core::metrics;
use argwhy::io::{write_decisions, write_whole};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;

pub fn run(args: &PredictArgs) -> Result<End, CliError> {
    let inputs = [Some(args.model.as_path()), args.data.as_deref()];
    let outputs: Vec<&Path> = args.output.as_deref().into_iter().collect();
    check_targets(&inputs.into_iter().flatten().collect::<Vec<_>>(), &outputs, &[])?;
    let stored = argwhy::load_model(&args.model)?;
    let predictor = Predictor::new(&stored.model)?;
    if args.jsonl {
        return stream(&predictor, args);
    }
    let (Some(data), Some(output)) = (&args.data, &args.output) else {
        return Err(CliError::Usage("DATA and --output are needed without --jsonl".to_owned()));
    };
    let (signals, decisions) =
        load_rows(data, &args.rows, args.decisions.as_ref(), args.decisions.is_some())?;
    let desired = on_threads(args.rows.threads, || predictor.desired(signals.view()))??;
    let mut predicted = desired.clone();
    for mut row in predicted.rows_mut() {
        if let Some(row) = row.as_slice_mut() {
            stored.model.set.project(row);
        }
    }
    write_decisions(output, predicted.view())?;
    if let Some(observed) = decisions {
        let sets = predictor.sets(None, desired.nrows())?;
        let m = metrics::evaluate(desired.view(), observed.view(), predictor.metric(), &sets)?;
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    signal: Vec<f64>,
}

#[derive(Serialize)]
struct Answer<'a> {
    decision: &'a [f64],
}

/// One line in, one line out, flushed: a control loop waits for it.
fn stream(predictor: &Predictor, args: &PredictArgs) -> Result<End, CliError> {
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
    let wanted = args.rows.rows.as_ref().map(|rows| resolve(Some(rows), usize::MAX)).transpose()?;
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
        let question: Question = serde_json::from_str(&line)
            .map_err(|e| wrong(format!("{e}; expected {{\"signal\": [numbers]}}")))?;
        predictor
            .decide(&question.signal, &mut scratch, &mut decision)
            .map_err(|e| wrong(e.to_string()))?;
        let output: &mut dyn Write = if args.output.is_some() { &mut whole } else { &mut stdout };
        serde_json::to_writer(&mut *output, &Answer { decision: &decision })
            .map_err(io::Error::from)
            .and_then(|()| output.write_all(b"\n"))
            .and_then(|()| output.flush())
            .map_err(CliError::Stdout)?;
    }
    // How many lines there are is known only now.
    if args.rows.rows.is_some() {
        resolve(args.rows.rows.as_ref(), n_lines)?;
    }
    if let Some(path) = &args.output {
        write_whole(path, &whole)
            .map_err(|source| CliError::Write { path: path.clone(), source })?;
    }
    Ok(End::Done)
}
