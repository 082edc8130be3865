//! What a person sees while a fit runs: the plan, one line that moves, a trace.

use crate::commands::targets::is_stream;
use crate::error::CliError;
use crate::interrupt;
use argwhy::core::decision_set::Outside;
use argwhy::core::solver::{Iteration, Observer};
use argwhy::core::wording::Worded;
use argwhy::io::{check_writable, write_onward};
use argwhy::{Plan, Progress};
use indicatif::{ProgressBar, ProgressStyle};
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Follows one fit.
pub struct Follow {
    quiet: bool,
    bar: Option<ProgressBar>,
    trace: Option<Trace>,
    notes: Vec<String>,
    planned: bool,
    /// What else there is to tell, in words.
    beside: Option<Box<dyn Fn() -> String + Send>>,
    /// Every step, for the report.
    pub history: Vec<Iteration>,
}

struct Trace {
    path: PathBuf,
    /// None until the first step: what an earlier fit left there stays until this one has something
    /// to say.
    file: Option<File>,
    failed: Option<io::Error>,
}

impl Trace {
    /// Opens a pipe or a device at once; a file is left alone until the first step.
    fn new(path: &Path) -> Result<Self, CliError> {
        let wrong = |source| CliError::Write { path: path.to_path_buf(), source };
        let file = if is_stream(path) {
            Some(File::options().append(true).open(path).map_err(wrong)?)
        } else {
            check_writable(path).map_err(wrong)?;
            None
        };
        Ok(Self { path: path.to_path_buf(), file, failed: None })
    }

    fn write(&mut self, iteration: &Iteration) -> io::Result<()> {
        let mut line = serde_json::to_vec(iteration)?;
        line.push(b'\n');
        match &mut self.file {
            Some(file) => file.write_all(&line)?,
            None => self.file = Some(write_onward(&self.path, &line)?),
        }
        Ok(())
    }
}

impl Follow {
    /// Makes sure of the trace, if one is wanted, before any work is done.
    pub fn new(quiet: bool, trace: Option<&Path>) -> Result<Self, CliError> {
        let trace = trace.map(Trace::new).transpose()?;
        let (notes, history) = (Vec::new(), Vec::new());
        Ok(Self { quiet, bar: None, trace, notes, planned: false, beside: None, history })
    }

    /// Words to tell at every step, such as how workers do.
    pub fn tells(&mut self, words: impl Fn() -> String + Send + 'static) {
        self.beside = Some(Box::new(words));
    }

    /// Something to say once the fit is known to start, or now that it has.
    pub fn note(&mut self, text: &str) {
        if !self.planned {
            self.notes.push(text.to_owned());
        } else if let Some(bar) = self.bar.as_ref().filter(|_| !self.quiet) {
            bar.suspend(|| say(false, format_args!("note: {text}")));
        } else {
            say(self.quiet, format_args!("note: {text}"));
        }
    }

    /// Takes the line away and reports a trace that broke off.
    pub fn finish(&mut self) -> Result<(), CliError> {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        match self.trace.take() {
            Some(Trace { path, failed: Some(source), .. }) => Err(CliError::Trace { path, source }),
            _ => Ok(()),
        }
    }
}

/// Says something on stderr unless told to be quiet.
pub fn say(quiet: bool, text: std::fmt::Arguments<'_>) {
    if !quiet {
        // If stderr is gone there is nobody to tell.
        let _ = writeln!(io::stderr(), "{text}");
    }
}

impl Observer for Follow {
    fn on_iteration(&mut self, iteration: &Iteration) -> ControlFlow<()> {
        self.history.push(*iteration);
        if let Some(bar) = &self.bar {
            let beside = self.beside.as_ref().map(|words| format!("  {}", words()));
            let beside = beside.unwrap_or_default();
            bar.set_message(format!(
                "step {}  gap {:.1e}  violation {:.1e}  products {}{beside}",
                iteration.iteration,
                iteration.relative_gap,
                iteration.violation,
                iteration.kernel_products,
            ));
        }
        if let Some(trace) = &mut self.trace
            && trace.failed.is_none()
        {
            trace.failed = trace.write(iteration).err();
        }
        self.poll()
    }

    fn poll(&mut self) -> ControlFlow<()> {
        if interrupt::asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl Progress for Follow {
    fn on_note(&mut self, note: &str) {
        self.note(&format!("{:#}", Worded(note)));
    }

    fn on_plan(&mut self, plan: &Plan, _outside: &Outside) {
        say(self.quiet, format_args!("{}", plan.summary()));
        for note in &self.notes {
            say(self.quiet, format_args!("note: {note}"));
        }
        self.planned = true;
        self.bar = moving_line(self.quiet, "preparing");
    }
}

/// One line that moves, where somebody is looking.
pub fn moving_line(quiet: bool, message: &'static str) -> Option<ProgressBar> {
    (!quiet && io::stderr().is_terminal()).then(|| {
        let style = ProgressStyle::with_template("{spinner} {msg}  {elapsed}")
            .unwrap_or_else(|_| ProgressStyle::default_spinner());
        let bar = ProgressBar::new_spinner().with_style(style).with_message(message);
        bar.enable_steady_tick(Duration::from_millis(120));
        bar
    })
}

/// Follows fits that nobody asked for by themselves: a line that moves, and Ctrl-C.
pub struct Aside(Option<ProgressBar>);

impl Aside {
    /// `message` says what they are for.
    pub fn new(quiet: bool, message: &'static str) -> Self {
        Self(moving_line(quiet, message))
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        if let Some(bar) = self.0.take() {
            bar.finish_and_clear();
        }
    }
}

impl Observer for Aside {
    fn on_iteration(&mut self, _: &Iteration) -> ControlFlow<()> {
        self.poll()
    }

    fn poll(&mut self) -> ControlFlow<()> {
        if interrupt::asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl Progress for Aside {}
