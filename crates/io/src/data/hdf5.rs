//! The hdf5 format, in the layouts of D4RL and Minari.
//!
//! D4RL: the arrays lie at the top, `observations` and `actions` of N rows each. Minari: a group
//! per episode, `episode_0`, `episode_1`, …, where `observations` has one row more than `actions`
//! (the state after the last action), which is dropped. Episodes are joined in numeric order.

use std::fs;

use ::hdf5_pure::{Error, File, FileAccessProperties, FormatError, MetadataCacheConfig};

use super::DataRequest;
use super::array::{Listing, Opened, Stored};
use super::format::unreadable;
use super::kept::Kept;
use super::origin::Origin;
use crate::error::{DataError, shortened};
use dataset::Numbers;
use guard::guarded;
use links::WithoutLinks;
use members::Members;

mod chunks;
mod dataset;
mod episodes;
mod guard;
mod links;
mod members;
mod section;

/// Bytes of file structure kept at hand: without, every field of it is a system call. They are part
/// of what the program takes itself.
const METADATA_CACHE: usize = 4 << 20;

pub(super) fn open<'a>(
    origin: Origin<'a>,
    request: &DataRequest,
) -> Result<Listing<'a>, DataError> {
    answered(&origin, || {
        let handle = fs::File::open(origin.path).map_err(|error| unreadable(origin.path, error))?;
        let cached = FileAccessProperties::new()
            .with_metadata_cache(MetadataCacheConfig::new(METADATA_CACHE));
        let source = WithoutLinks::new(handle).map_err(|error| failed(&origin, error.into()))?;
        let file = File::from_source_with_options(source, cached)
            .map_err(|error| failed(&origin, error))?;
        let root = Members::of(&file.root(), "", &origin)?;
        let episodes = episodes::in_order(&root);
        if episodes.is_empty() || root.choose(request, &origin).is_ok() {
            flat(&root, request, origin)
        } else {
            episodes::open(&episodes, request, origin)
        }
    })
}

/// Runs `work`; a panic in it is an error of the file.
fn answered<T>(
    origin: &Origin<'_>,
    work: impl FnOnce() -> Result<T, DataError>,
) -> Result<T, DataError> {
    guarded(work).unwrap_or_else(|panic| {
        Err(origin.corrupt(format!("its structure is inconsistent ({})", shortened(&panic))))
    })
}

/// Arrays at the top of the file.
fn flat<'a>(
    root: &Members,
    request: &DataRequest,
    origin: Origin<'a>,
) -> Result<Listing<'a>, DataError> {
    let chosen = root.choose(request, &origin)?;
    let missing = |key: &str| origin.corrupt(format!("`{key}` cannot be opened"));
    let opened = |numbers: Numbers, key: String| Opened {
        path: origin.path.to_path_buf(),
        key,
        shape: numbers.shape.clone(),
        rows: numbers.rows,
        columns: numbers.columns,
        stored: Box::new(AtTop { numbers, origin }),
    };
    Listing::open(
        origin,
        chosen,
        root.names(),
        |key| Ok(opened(root.numbers(&key, &origin)?.ok_or_else(|| missing(&key))?, key)),
        |key| Ok(opened(root.tensor(key, &origin)?.ok_or_else(|| missing(key))?, key.to_owned())),
    )
}

/// An array at the top of the file.
struct AtTop<'a> {
    numbers: Numbers,
    origin: Origin<'a>,
}

impl Stored for AtTop<'_> {
    fn read(&self, kept: &Kept) -> Result<Vec<f64>, DataError> {
        answered(&self.origin, || self.numbers.read(kept, &self.origin))
    }
}

/// The error behind a failure of the HDF5 crate.
fn failed(origin: &Origin<'_>, error: Error) -> DataError {
    match error {
        Error::Io(source) => origin.read_failed("file", source),
        Error::Format(
            FormatError::UnsupportedVersion(_)
            | FormatError::UnsupportedMessage(_)
            | FormatError::InvalidLayoutVersion(_)
            | FormatError::InvalidChunkIndexType(_)
            | FormatError::UnsupportedVirtualLayout
            | FormatError::UnsupportedExternalStorage
            | FormatError::UnsupportedFilter(_),
        ) => DataError::Unsupported {
            path: origin.path.to_path_buf(),
            detail: format!(
                "{error}, which this reader does not know (or the file is damaged); \
                 save it again with h5py's default settings, or as npz"
            ),
        },
        Error::FileMarkedInUse(_) => DataError::Unsupported {
            path: origin.path.to_path_buf(),
            detail: "it is marked as being written; close its writer, or, if that has died, \
                     clear the mark with `h5clear -s`"
                .to_owned(),
        },
        other => origin.corrupt(other),
    }
}
