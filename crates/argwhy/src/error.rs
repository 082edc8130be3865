//! Whatever can go wrong between a file and a model.

mod named;

use argwhy_core::dataset::Names;
use argwhy_core::wording::Spelling;
use std::fmt;
use thiserror::Error;

/// An error of any stage, in the words of that stage. `{}` names settings as in Rust and Python,
/// `{:#}` as the command's flags.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The mathematics cannot work with the input.
    #[error(transparent)]
    Core(#[from] argwhy_core::Error),
    /// The same, about data that has names.
    #[error(fmt = by_name)]
    Named {
        /// What the mathematics said.
        error: argwhy_core::Error,
        /// What it knows by number.
        names: Box<Names>,
    },
    /// A data file.
    #[error(transparent)]
    Data(#[from] argwhy_io::DataError),
    /// A model file.
    #[error(transparent)]
    Model(#[from] argwhy_io::ModelFileError),
    /// A checkpoint file.
    #[error(transparent)]
    Checkpoint(#[from] argwhy_io::CheckpointError),
    /// A fit cannot start from where it was to.
    #[error(fmt = marked)]
    Start {
        /// What is wrong and what to do; options are marked for [`Spelling::text`].
        what: String,
    },
    /// Data without a column of numbers.
    #[error(fmt = marked)]
    NoNumbers {
        /// What there is instead and what to do; options are marked for [`Spelling::text`].
        what: String,
    },
    /// A row that is not there.
    #[error("row {row} was asked for, but the data has {n_rows} rows (0 to \
             {last})", last = n_rows.saturating_sub(1))]
    Row {
        /// The row.
        row: usize,
        /// Rows there are.
        n_rows: usize,
    },
    /// Threads could not be started.
    #[error(fmt = threads)]
    Threads {
        /// As many as were asked for; 0 is one a core.
        n_threads: usize,
        /// What the system said.
        why: String,
    },
    /// The plan keeps its limit, but the machine has less.
    #[error(fmt = machine)]
    Machine {
        /// What the plan takes, as text.
        needed: String,
        /// What could be had, as text.
        reachable: String,
    },
    /// A kernel that no file can hold.
    #[error(
        "a model with the user-defined kernel `{name}` cannot be saved: a file holds numbers, not \
         code; keep it in memory, or write the kernel as sums and products of the named ones"
    )]
    CustomKernel {
        /// The kernel's name.
        name: String,
    },
    /// Rows cannot be kept aside as asked for.
    #[error(fmt = marked)]
    Judging {
        /// What is wrong and what to do; options are marked for [`Spelling::text`].
        what: String,
    },
    /// Settings cannot be chosen.
    #[error(fmt = marked)]
    Tuning {
        /// What is wrong and what to do; options are marked for [`Spelling::text`].
        what: String,
    },
    /// A decision and a signal that cannot say what a unit of cost is worth.
    #[error("cannot count in money: {what}")]
    Numeraire {
        /// What is wrong and what to do.
        what: String,
    },
    /// A model that keeps no situations to be explained over.
    #[error(
        "the model keeps no samples (a plain model has weights instead, or none carries weight), \
         so it cannot be explained by itself; give the data it was fitted to"
    )]
    NothingToExplain,
    /// Settings that cannot be stored.
    #[error("the settings cannot be stored: {why}")]
    Settings {
        /// What was seen.
        why: String,
    },
}

impl Error {
    /// The same with names for what the mathematics knows by number, where there are any.
    #[must_use]
    pub fn named(self, names: &Names) -> Self {
        match self {
            Self::Core(error) if !names.is_empty() => {
                Self::Named { error, names: Box::new(names.clone()) }
            }
            other => other,
        }
    }

    /// What the mathematics said, where it is that.
    pub fn core(&self) -> Option<&argwhy_core::Error> {
        match self {
            Self::Core(error) | Self::Named { error, .. } => Some(error),
            _ => None,
        }
    }
}

fn by_name(error: &argwhy_core::Error, names: &Names, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let said = if f.alternate() { format!("{error:#}") } else { error.to_string() };
    f.write_str(&named::translated(&said, names))?;
    f.write_str(&named::column(error, names).unwrap_or_default())
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that thiserror calls")]
fn threads(n_threads: &usize, why: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let threads = Spelling::of(f).setting("threads");
    write!(f, "cannot start {n_threads} threads ({why}); use a smaller {threads}")
}

fn marked(what: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str(&Spelling::of(f).text(what))
}

fn machine(needed: &str, reachable: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let memory = Spelling::of(f).setting("memory");
    write!(
        f,
        "the fit would take {needed} of memory, but this machine has {reachable} left; lower \
         {memory}"
    )
}
