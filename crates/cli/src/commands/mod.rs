//! One file a command.

pub mod ablate;
pub mod bench;
pub mod demo;
pub mod doctor;
pub mod evaluate;
pub mod fit;
pub mod inspect;
pub mod predict;

use crate::args::DataOptions;
use crate::error::CliError;
use argwhy::io::{DataRequest, RowRanges};
use ndarray::{Array2, Axis};
use serde::Serialize;
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;

/// Prints one JSON object on a line of its own.
fn print_json(value: &impl Serialize) -> Result<(), CliError> {
    let mut text = serde_json::to_string_pretty(value).map_err(|e| CliError::Stdout(e.into()))?;
    text.push('\n');
    print(&text)
}

fn print(text: &str) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(CliError::Stdout)
}

/// The ranges asked for, or all rows.
fn resolve(rows: Option<&RowRanges>, n_rows: usize) -> Result<Vec<Range<usize>>, CliError> {
    match rows {
        Some(rows) => Ok(rows.resolve(n_rows)?),
        None => Ok(vec![0..n_rows; 1]),
    }
}

/// Signals and, where a key or the caller wants them, decisions of the rows asked for.
fn load_rows(
    path: &Path,
    options: &DataOptions,
    decisions: Option<&String>,
    want_decisions: bool,
) -> Result<(Array2<f64>, Option<Array2<f64>>), CliError> {
    let request = DataRequest {
        signals: options.signals.clone(),
        decisions: decisions.cloned(),
        want_decisions,
    };
    let loaded = argwhy::load(path, &request)?;
    if options.rows.is_none() {
        return Ok((loaded.signals, loaded.decisions));
    }
    let rows: Vec<usize> =
        resolve(options.rows.as_ref(), loaded.signals.nrows())?.into_iter().flatten().collect();
    Ok((
        loaded.signals.select(Axis(0), &rows),
        loaded.decisions.map(|decisions| decisions.select(Axis(0), &rows)),
    ))
}

/// Refuses an output that would overwrite an input or another output, one without a folder, and one that is written whole but is
/// no regular file. `streams` are written line by line and may be pipes.
fn check_targets(inputs: &[&Path], wholes: &[&Path], streams: &[&Path]) -> Result<(), CliError> {
    let outputs = [wholes, streams].concat();
    // A file that does not exist yet is known by its folder and its name.
    let identity = |path: &Path| {
        path.canonicalize().or_else(|_| {
            let folder = match path.parent() {
                Some(folder) if !folder.as_os_str().is_empty() => folder,
                _ => Path::new("."),
            };
            folder.canonicalize().map(|folder| folder.join(path.file_name().unwrap_or_default()))
        })
    };
    for (i, path) in outputs.iter().enumerate() {
        let wrong = |source| CliError::Write { path: path.to_path_buf(), source };
        if i < wholes.len() {
            argwhy::io::check_regular(path).map_err(wrong)?;
        }
        let Ok(own) = identity(path) else {
            let folder = path.parent().unwrap_or(path).display();
            return Err(wrong(io::Error::new(
                io::ErrorKind::NotFound,
                format!("there is no folder `{folder}`"),
            )));
        };
        for other in inputs.iter().chain(&outputs[..i]) {
            if identity(other).is_ok_and(|other| other == own) {
                return Err(CliError::Usage(format!(
                    "`{}` is used twice, and writing it would destroy the other; choose another name for the output",
                    path.display()
                )));
            }
        }
    }
    Ok(())
}

/// Runs `work` on as many threads as asked for.
fn on_threads<T: Send>(
    threads: Option<usize>,
    work: impl FnOnce() -> T + Send,
) -> Result<T, CliError> {
    argwhy::settings::check_threads(threads)?;
    let n_threads = threads.unwrap_or(0);
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(n_threads)
        .build()
        .map_err(|e| argwhy::Error::Threads { n_threads, why: e.to_string() })?;
    Ok(pool.install(work))
}
