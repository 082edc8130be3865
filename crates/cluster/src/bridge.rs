//! Workers by way of a Python process: `python3 -m argwhy.ray`, spoken to by pipes.

mod panels;

use crate::frame::{Array, Frame};
use crate::machines::{Machines, Opening};
use crate::panels::PanelKeeper;
use ndarray::{ArrayView2, ArrayViewMut2};
use serde_json::{Value, json};
use std::fmt;
use std::io::{BufReader, Read};
use std::ops::Range;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// What the other process is to do.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The interpreter, a path or a name.
    pub python: String,
    /// What it is told first: where the cluster is and how to read the data, as JSON.
    pub options: Value,
    /// This program's version: the other side must have the same.
    pub version: &'static str,
}

/// Why there is no bridge.
#[derive(Debug)]
pub enum BridgeError {
    /// There is no such interpreter.
    NoPython {
        /// As it was looked for.
        python: String,
    },
    /// It has no argwhy or no Ray, or the cluster can't be used.
    Refused {
        /// Its own words.
        what: String,
    },
}

impl fmt::Display for BridgeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPython { python } => write!(
                f,
                "--ray needs Python with argwhy and Ray, and there is no `{python}` here; install \
                 it with `pip install 'argwhy[ray]'`, or name an interpreter in ARGWHY_PYTHON"
            ),
            Self::Refused { what } => f.write_str(what),
        }
    }
}

impl std::error::Error for BridgeError {}

/// A Python process that has the workers.
pub struct Bridge {
    ends: Mutex<Ends>,
    n_cores: usize,
    wants_features: bool,
    have_gpus: bool,
    spread_from: usize,
    /// What the other side last said of its workers.
    progress: Mutex<String>,
}

struct Ends {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
}

impl fmt::Debug for Bridge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bridge").field("n_cores", &self.n_cores).finish_non_exhaustive()
    }
}

impl Bridge {
    /// Starts the process and waits until it has a cluster.
    pub fn new(launch: &Launch) -> Result<Self, BridgeError> {
        let mut command = Command::new(&launch.python);
        command.args(["-m", "argwhy.ray"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        apart(&mut command);
        let no_python = |_| BridgeError::NoPython { python: launch.python.clone() };
        let mut child = command.spawn().map_err(no_python)?;
        let to = child.stdin.take();
        let from = BufReader::new(child.stdout.take().expect("piped above"));
        let mut bridge = Self {
            ends: Mutex::new(Ends { child, to, from }),
            n_cores: 1,
            wants_features: true,
            have_gpus: false,
            spread_from: usize::MAX,
            progress: Mutex::default(),
        };
        let refused = |what| BridgeError::Refused { what };
        let hello = json!({"call": "start", "options": launch.options, "version": launch.version});
        // The words of an interpreter without argwhy are on the terminal already.
        let answer = bridge.call(hello, Vec::new()).map_err(|what| {
            refused(format!(
                "{what}; --ray needs Python with argwhy {} and Ray: `{} -m pip install \
                 'argwhy[ray]'`, or name another interpreter in ARGWHY_PYTHON",
                launch.version, launch.python
            ))
        })?;
        let answer = answer.message;
        if let Some(what) = answer["refused"].as_str() {
            return Err(refused(what.to_owned()));
        }
        bridge.n_cores = answer["cores"].as_u64().unwrap_or(1) as usize;
        bridge.wants_features = answer["wants_features"].as_bool().unwrap_or(true);
        bridge.have_gpus = answer["have_gpus"].as_bool().unwrap_or(false);
        let spread_from = answer["spread_from"].as_u64();
        bridge.spread_from = spread_from.map_or(usize::MAX, |n| n as usize);
        Ok(bridge)
    }

    /// How it goes, in a few words: workers alive, and products a second. Empty before the first.
    pub fn progress(&self) -> String {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Hands over what attempts of a search are made on: `words`, and arrays by their names.
    pub fn search(&self, words: &Value, arrays: Vec<(&str, Array)>) -> Result<(), String> {
        let (names, arrays): (Vec<&str>, Vec<Array>) = arrays.into_iter().unzip();
        let message = json!({"call": "search", "words": words, "names": names});
        self.call(message, arrays).map(|_| ())
    }

    /// Has attempts of that search made, each by one worker; `done` is told which, and what came of
    /// it. Ends early where `stops` says so, which is asked several times a second.
    pub fn attempts(
        &self,
        texts: &[String],
        stops: &mut dyn FnMut() -> bool,
        done: &mut dyn FnMut(usize, &str),
    ) -> Result<(), String> {
        let mut answer = self.call(json!({"call": "attempts", "texts": texts}), Vec::new())?;
        loop {
            self.keep_progress(&answer);
            for pair in answer.message["done"].as_array().into_iter().flatten() {
                if let (Some(at), Some(text)) = (pair[0].as_u64(), pair[1].as_str()) {
                    done(at as usize, text);
                }
            }
            if answer.message["waiting"] != true {
                return Ok(());
            }
            answer = self.call(json!({"call": "wait", "stop": stops()}), Vec::new())?;
        }
    }

    fn keep_progress(&self, answer: &Frame) {
        if let Some(words) = answer.message["progress"].as_str() {
            words.clone_into(&mut self.progress.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// One message, one answer.
    fn call(&self, message: Value, arrays: Vec<Array>) -> Result<Frame, String> {
        let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = || "the Python process that has the workers ended".to_owned();
        let to = ends.to.as_mut().ok_or_else(gone)?;
        Frame { message, arrays }.write(to).map_err(|_| gone())?;
        let answer = Frame::read(&mut ends.from).map_err(|_| gone())?;
        match answer.message["error"].as_str() {
            Some(what) => Err(what.to_owned()),
            None => Ok(answer),
        }
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        let ends = self.ends.get_mut().unwrap_or_else(PoisonError::into_inner);
        // The end of its input is its end, too; it gives the workers back first.
        drop(ends.to.take());
        let _ = std::io::copy(&mut ends.from.by_ref(), &mut std::io::sink());
        let _ = ends.child.wait();
    }
}

/// Ctrl-C is for this process, which ends the other in its own time.
#[cfg(unix)]
fn apart(command: &mut Command) {
    use std::os::unix::process::CommandExt;
    command.process_group(0);
}

#[cfg(not(unix))]
fn apart(_: &mut Command) {}

fn unexpected() -> String {
    "the Python process answered something else than was asked for".to_owned()
}

/// Hands the numbers of the only array of an answer to `take`, in order.
fn take(answer: Frame, count: usize, mut take: impl FnMut(usize, f64)) -> Result<(), String> {
    match answer.arrays.first() {
        Some(Array::Values(values, _)) if values.len() == count => {
            values.iter().enumerate().for_each(|(at, value)| take(at, *value));
        }
        Some(Array::Singles(values, _)) if values.len() == count => {
            values.iter().enumerate().for_each(|(at, value)| take(at, f64::from(*value)));
        }
        _ => return Err(unexpected()),
    }
    Ok(())
}

impl Machines for Bridge {
    fn name(&self) -> &'static str {
        "ray"
    }

    fn n_cores(&self) -> usize {
        self.n_cores
    }

    fn have_gpus(&self) -> bool {
        self.have_gpus
    }

    fn open(&self, opening: Opening<'_>) -> Result<u64, String> {
        let job = serde_json::to_string(opening.job).map_err(|why| why.to_string())?;
        let mut arrays = vec![opening.rows.into()];
        if self.wants_features {
            arrays.push(opening.features.into());
        }
        let answer = self.call(json!({"call": "open", "job": job}), arrays)?;
        answer.message["matrix"].as_u64().ok_or_else(|| "no number of the matrix came".to_owned())
    }

    fn product(
        &self,
        matrix: u64,
        exact: bool,
        v: ArrayView2<'_, f64>,
        mut out: ArrayViewMut2<'_, f64>,
    ) -> Result<(), String> {
        let message = json!({"call": "product", "matrix": matrix, "exact": exact});
        let answer = self.call(message, vec![v.into()])?;
        self.keep_progress(&answer);
        let (count, n) = (out.len(), out.ncols());
        take(answer, count, |at, value| out[[at / n, at % n]] = value)
    }

    fn rows(
        &self,
        matrix: u64,
        samples: &[usize],
        columns: Range<usize>,
        out: &mut [f64],
    ) -> Result<(), String> {
        let (start, stop) = (columns.start, columns.end);
        let message = json!({"call": "rows", "matrix": matrix, "start": start, "stop": stop});
        let answer = self.call(message, vec![samples.into()])?;
        take(answer, out.len(), |at, value| out[at] = value)
    }

    fn add_columns(
        &self,
        matrix: u64,
        exact: bool,
        samples: &[usize],
        v: ArrayView2<'_, f64>,
        mut out: ArrayViewMut2<'_, f64>,
    ) -> Result<(), String> {
        let message = json!({"call": "columns", "matrix": matrix, "exact": exact});
        let answer = self.call(message, vec![samples.into(), v.into()])?;
        let (count, n) = (out.len(), out.ncols());
        take(answer, count, |at, value| out[[at / n, at % n]] += value)
    }

    fn solve_blocks(&self) -> bool {
        true
    }

    fn blocks(
        &self,
        matrix: u64,
        tasks: Vec<Vec<u8>>,
        stops: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Vec<Vec<u8>>>, String> {
        let tasks = tasks.into_iter().map(Array::Bytes).collect();
        let mut answer = self.call(json!({"call": "blocks", "matrix": matrix}), tasks)?;
        loop {
            self.keep_progress(&answer);
            if answer.message["waiting"] != true {
                break;
            }
            answer = self.call(json!({"call": "wait", "stop": stops()}), Vec::new())?;
        }
        let bytes = |array| match array {
            Array::Bytes(bytes) => Ok(bytes),
            _ => Err(unexpected()),
        };
        let answers: Vec<Vec<u8>> =
            answer.arrays.into_iter().map(bytes).collect::<Result<_, _>>()?;
        Ok((answer.message["stopped"] != true).then_some(answers))
    }

    fn panels(&self) -> Option<&dyn PanelKeeper> {
        Some(self)
    }

    fn close(&self, matrix: u64) {
        // A process that is gone has nothing to close.
        let _ = self.call(json!({"call": "close", "matrix": matrix}), Vec::new());
    }
}
