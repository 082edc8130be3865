//! The hdf5 format, in the layouts of D4RL and Minari.
//!
//! D4RL: the arrays lie at the top, `observations` and `actions` of N rows each. Minari: a group
//! per episode, `episode_0`, `episode_1`, …, where `observations` has one row more than `actions`
//! (the state after the last action), which is dropped. Episodes are joined in numeric order.

use std::path::Path;

use ::hdf5_pure::{Error, File, FileAccessProperties, FormatError, MetadataCacheConfig};
use ndarray::{Array2, ArrayD, IxDyn};

use super::DataRequest;
use super::array::{Arrays, Found, Tensor};
use super::origin::Origin;
use crate::error::{DataError, shortened};
use guard::guarded;
use members::Members;

mod dataset;
mod episodes;
mod guard;
mod members;

/// Bytes of file structure kept at hand: without, every field of it is a system call.
const METADATA_CACHE: usize = 4 << 20;

pub(super) fn load(path: &Path, request: &DataRequest) -> Result<Arrays, DataError> {
    let origin = Origin { path, format: "hdf5" };
    guarded(|| {
        let cached = FileAccessProperties::new()
            .with_metadata_cache(MetadataCacheConfig::new(METADATA_CACHE));
        let file = File::open_streaming_with_options(path, cached)
            .map_err(|error| failed(&origin, error))?;
        let root = Members::of(&file.root(), "", &origin)?;
        let episodes = episodes::in_order(&root);
        if episodes.is_empty() || root.choose(request, &origin).is_ok() {
            flat(&root, request, &origin)
        } else {
            episodes::load(&episodes, request, &origin)
        }
    })
    .unwrap_or_else(|panic| {
        Err(origin.corrupt(format!("its structure is inconsistent ({})", shortened(&panic))))
    })
}

/// Arrays at the top of the file.
fn flat(root: &Members, request: &DataRequest, origin: &Origin<'_>) -> Result<Arrays, DataError> {
    let chosen = root.choose(request, origin)?;
    let missing = |key: &str| origin.corrupt(format!("`{key}` cannot be opened"));
    let read = |numbers: &dataset::Numbers, key: &str| -> Result<Vec<f64>, DataError> {
        let mut values = origin.reserve(key, &numbers.shape, numbers.rows * numbers.columns)?;
        numbers.read_into(numbers.rows, &mut values, origin)?;
        Ok(values)
    };
    Arrays::gather(
        &mut (),
        chosen,
        root.names(),
        |(), key| {
            let numbers = root.numbers(&key, origin)?.ok_or_else(|| missing(&key))?;
            let shape = (numbers.rows, numbers.columns);
            let values = Array2::from_shape_vec(shape, read(&numbers, &key)?)
                .map_err(|error| origin.corrupt(error))?;
            Ok(Found { path: origin.path.to_path_buf(), key, values })
        },
        |(), key| {
            let numbers = root.tensor(key, origin)?.ok_or_else(|| missing(key))?;
            let shape: Vec<usize> = numbers.shape.iter().map(|&size| size as usize).collect();
            let values = ArrayD::from_shape_vec(IxDyn(&shape), read(&numbers, key)?)
                .map_err(|error| origin.corrupt(error))?;
            Ok(Tensor { path: origin.path.to_path_buf(), key, values })
        },
    )
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
