//! A folder of npy files, or a Minari dataset.

use std::fs;
use std::path::{Path, PathBuf};

use super::DataRequest;
use super::array::Listing;
use super::format::{ending, unreadable};
use super::origin::Origin;
use super::{keys, npy};
use crate::error::DataError;

/// Where Minari keeps its arrays, from the dataset's folder or from its `data` folder.
const MINARI: [&str; 2] = ["data/main_data.hdf5", "main_data.hdf5"];

/// The file of a Minari dataset.
pub(super) fn minari(path: &Path) -> Option<PathBuf> {
    MINARI.iter().map(|name| path.join(name)).find(|file| file.is_file())
}

/// Opens a folder of npy files.
pub(super) fn open<'a>(
    origin: Origin<'a>,
    request: &DataRequest,
) -> Result<Listing<'a>, DataError> {
    let path = origin.path;
    let (found, names) = arrays(path)?;
    if names.is_empty() {
        return Err(DataError::UnknownFolder { path: path.to_path_buf(), found });
    }
    let chosen = keys::choose(path, &names, request, |key| names.iter().any(|n| n == key))?;
    let file = |key: &str| path.join(format!("{key}.npy"));
    let open = |key: &str, tensor: bool| {
        let file = file(key);
        let origin = Origin { path: &file, ..origin };
        if tensor { npy::open_tensor(origin, key) } else { npy::open_array(origin, key) }
    };
    Listing::open(origin, chosen, names.clone(), |key| open(&key, false), |key| open(key, true))
}

/// The files of a folder, and those among them that are arrays, without their endings.
pub(super) fn arrays(path: &Path) -> Result<(Vec<String>, Vec<String>), DataError> {
    let mut found: Vec<String> = Vec::new();
    let mut names: Vec<String> = Vec::new();
    for entry in fs::read_dir(path).map_err(|error| unreadable(path, error))? {
        let name = entry.map_err(|error| unreadable(path, error))?.file_name();
        let name = name.to_string_lossy().into_owned();
        if ending(Path::new(&name)).as_deref() == Some("npy") {
            names.push(name[..name.len() - ".npy".len()].to_owned());
        }
        found.push(name);
    }
    found.sort();
    names.sort();
    Ok((found, names))
}
