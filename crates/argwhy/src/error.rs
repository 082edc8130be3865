//! Whatever can go wrong between a file and a model.

use thiserror::Error;

/// An error of any stage, in the words of that stage.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The mathematics cannot work with the input.
    #[error(transparent)]
    Core(#[from] argwhy_core::Error),
    /// A data file.
    #[error(transparent)]
    Data(#[from] argwhy_io::DataError),
    /// A model file.
    #[error(transparent)]
    Model(#[from] argwhy_io::ModelFileError),
    /// A row that is not there.
    #[error("row {row} was asked for, but the data has {n_rows} rows (0 to {last})", last = n_rows.saturating_sub(1))]
    Row {
        /// The row.
        row: usize,
        /// Rows there are.
        n_rows: usize,
    },
    /// Threads could not be started.
    #[error("cannot start {n_threads} threads ({why}); use a smaller --threads")]
    Threads {
        /// As many as were asked for; 0 is one a core.
        n_threads: usize,
        /// What the system said.
        why: String,
    },
    /// The plan keeps its limit, but the machine has less.
    #[error(
        "the fit would take {needed} of memory, but this machine has {reachable} left; lower --memory"
    )]
    Machine {
        /// What the plan takes, as text.
        needed: String,
        /// What could be had, as text.
        reachable: String,
    },
    /// A kernel that no file can hold.
    #[error(
        "a model with the user-defined kernel `{name}` cannot be saved: a file holds numbers, not code; keep it in memory, or \
         write the kernel as sums and products of the named ones"
    )]
    CustomKernel {
        /// The kernel's name.
        name: String,
    },
    /// Settings that cannot be stored.
    #[error("the settings cannot be stored: {why}")]
    Settings {
        /// What was seen.
        why: String,
    },
}
