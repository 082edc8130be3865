//! The hdf5 format, in the layouts of D4RL, Minari and robomimic.
//!
//! D4RL: the arrays lie at the top, `observations` and `actions` of N rows each. Minari: a group
//! per episode, `episode_0`, `episode_1`, …, where `observations` has one row more than `actions`
//! (the state after the last action), which is dropped. robomimic: the same in `data/demo_0`, …,
//! with the signals in several arrays of a group `obs`, which are joined in the order of their
//! names. Episodes are joined in numeric order.

use std::fs;

use ::hdf5_pure::{AttrValue, Error, File, FileAccessProperties, FormatError, MetadataCacheConfig};

use super::DataRequest;
use super::array::{Listing, Opened, Stored};
use super::contents::Entry;
use super::format::unreadable;
use super::kept::Kept;
use super::origin::Origin;
use super::space::{self, Limits};
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
        let file = file(&origin)?;
        let root = Members::of(&file.root(), "", &origin)?;
        let inner = match root.groups.get("data") {
            Some(data) => Some(Members::of(data, "data", &origin)?),
            None => None,
        };
        let mut episodes = episodes::in_order(&root, "episode_");
        let is_minari = !episodes.is_empty();
        if let Some(data) = inner.as_ref().filter(|_| !is_minari) {
            episodes = episodes::in_order(data, "demo_");
        }
        if episodes.is_empty() || root.choose(request, &origin).is_ok() {
            return flat(&root, request, origin);
        }
        let listing = episodes::open(&episodes, request, origin)?;
        let limits = if is_minari { minari_limits(&file, &origin) } else { None };
        Ok(Listing { limits, ..listing })
    })
}

fn file(origin: &Origin<'_>) -> Result<File, DataError> {
    let handle = fs::File::open(origin.path).map_err(|error| unreadable(origin.path, error))?;
    let cached =
        FileAccessProperties::new().with_metadata_cache(MetadataCacheConfig::new(METADATA_CACHE));
    let source = WithoutLinks::new(handle).map_err(|error| failed(origin, error.into()))?;
    File::from_source_with_options(source, cached).map_err(|error| failed(origin, error))
}

/// Groups inside of groups that are listed.
const DEEPEST: usize = 8;

/// What arrays there are, at most so many, in the order of their keys.
pub(super) fn entries(origin: &Origin<'_>, most: usize) -> Result<Vec<Entry>, DataError> {
    answered(origin, || {
        let file = file(origin)?;
        let mut found = Vec::new();
        let mut groups = vec![(String::new(), file.root(), 0)];
        while let Some((path, group, depth)) = groups.pop() {
            let full = |name: &str| {
                if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") }
            };
            for (name, dataset) in group.iter_datasets().map_err(|e| failed(origin, e))? {
                let shape = dataset.shape().unwrap_or_default();
                let kind = dataset.datatype().map_or_else(|_| "?".to_owned(), |d| d.to_string());
                found.push(Entry::array(full(&name), shape, shortened(&kind)));
            }
            if depth < DEEPEST && found.len() < most {
                for (name, inner) in group.iter_groups().map_err(|e| failed(origin, e))? {
                    groups.push((full(&name), inner, depth + 1));
                }
            }
            if groups.len() > most {
                return Err(origin.corrupt(format!("it has more than {most} groups")));
            }
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        found.truncate(most);
        Ok(found)
    })
}

/// The limits of the action space: beside the file, or among the file's own attributes, where
/// Minari kept them before version 0.5.
fn minari_limits(file: &File, origin: &Origin<'_>) -> Option<Limits> {
    space::beside(origin.path).or_else(|| {
        let found_in = format!("the action space in `{}`", origin.path.display());
        match file.root().attrs().ok()?.get("action_space")? {
            AttrValue::String(text) => space::of_space(text, found_in),
            _ => None,
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
