//! Whatever ends a command, as one message.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why a command failed.
#[derive(Debug, Error)]
pub enum CliError {
    /// Data, model, settings or mathematics.
    #[error(transparent)]
    Argwhy(#[from] argwhy::Error),
    /// The config file.
    #[error("{}: {why}", path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// What is wrong, with line and column where there is one.
        why: String,
    },
    /// A file of ours that could not be written.
    #[error("cannot write `{}`: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A model that could not be written where it was to be.
    #[error("{source}; it was saved to `{}` instead: move it from there", path.display())]
    Elsewhere {
        /// Why not there.
        source: Box<argwhy::Error>,
        /// Where it is.
        path: PathBuf,
    },
    /// A path that ended before its last model, with others saved.
    #[error("{source}; saved so far: {saved}; fit the rest with --path {left}")]
    Path {
        /// Why it ended.
        source: Box<argwhy::Error>,
        /// The models that are there.
        saved: String,
        /// The regularizations that are not.
        left: String,
    },
    /// The trace broke off while the fit went on.
    #[error("the trace `{}` is incomplete ({source}); the model was saved", path.display())]
    Trace {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// stdout.
    #[error("cannot write to standard output: {0}")]
    Stdout(io::Error),
    /// A line of a stream.
    #[error("line {line} of the input: {why}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// A model that needs constraints, and data that has none.
    #[error("the model was fitted with constraints, so every decision needs its own: {0:#}")]
    NeedsConstraints(argwhy::io::DataError),
    /// A request to stop that came before there was anything to keep.
    #[error("interrupted; nothing was written but what was finished before")]
    Stopped,
    /// Options that contradict each other.
    #[error("{0}")]
    Usage(String),
    /// The page could not be drawn.
    #[error("the report could not be drawn: {0}")]
    Report(String),
    /// The bundled expert failed.
    #[error("the bundled expert failed: {0}")]
    Expert(#[from] argwhy_experts::ExpertError),
    /// Something on this machine does not work.
    #[error("{failed} of {total} checks failed; see the list above")]
    Unhealthy {
        /// Failed checks.
        failed: usize,
        /// All checks.
        total: usize,
    },
}

impl CliError {
    pub(crate) fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Stdout(e) if e.kind() == io::ErrorKind::BrokenPipe)
    }
}

macro_rules! through_argwhy {
    ($($source:ty),*) => {$(
        impl From<$source> for CliError {
            fn from(error: $source) -> Self {
                Self::Argwhy(error.into())
            }
        }
    )*};
}
through_argwhy!(argwhy::core::Error, argwhy::io::DataError, argwhy::io::ModelFileError);
