//! Files in, arrays out, and models both ways: the readers and writers of argwhy.
//!
//! In: a path to npz, npy, csv, tsv, parquet, Arrow, xlsx, ods or hdf5 data (or a folder of them).
//! Out: `signals` (n_samples × signal_dim) and `decisions` (n_samples × decision_dim), both f64,
//! finite, row for row, with constraints and weights where they are asked for. Files are treated as
//! hostile: whatever the bytes, the answer is a [`Loaded`] or a [`DataError`] that says what to do,
//! never a panic, and never more memory than the request's [`Budget`].

pub mod budget;
pub mod checkpoint;
pub mod data;
pub mod error;
pub mod kept;
pub mod model;

pub use budget::Budget;
pub use checkpoint::{Checkpoint, CheckpointError, load_checkpoint, save_checkpoint};
pub use data::{
    Beside, Contents, Cyclic, DataOut, DataRequest, Decimal, Encoding, Entry, Gaps, Given,
    GroupKind, Groups, Limits, Loaded, Missing, OneHot, Period, RowRanges, SharedMatrix, Spooled,
    Survey, Thinning, check_data_ending, check_decisions_ending, check_prices_ending,
    check_regular, check_writable, contents, data_endings, load, load_if, standard_input, survey,
    walk_signals, write_data, write_decisions, write_decisions_beside, write_onward, write_prices,
    write_whole,
};
pub use error::DataError;
pub use kept::Kept;
pub use model::{
    ModelFileError, StoredModel, decode_model, encode_model, load_model, save_model,
    save_model_with,
};
