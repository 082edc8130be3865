//! A folder of npy files, or a Minari dataset.

use std::fs;
use std::path::Path;

use super::DataRequest;
use super::array::Arrays;
use super::format::{ending, unreadable};
use super::{hdf5, keys, npy};
use crate::error::DataError;

/// Where Minari keeps its arrays, from the dataset's folder or from its `data` folder.
const MINARI: [&str; 2] = ["data/main_data.hdf5", "main_data.hdf5"];

pub(super) fn load(path: &Path, request: &DataRequest) -> Result<Arrays, DataError> {
    if let Some(main) = MINARI.iter().map(|name| path.join(name)).find(|file| file.is_file()) {
        return hdf5::load(&main, request);
    }
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
    if names.is_empty() {
        return Err(DataError::UnknownFolder { path: path.to_path_buf(), found });
    }
    let chosen = keys::choose(path, &names, request, |key| names.iter().any(|n| n == key))?;
    let file = |key: &str| path.join(format!("{key}.npy"));
    Arrays::gather(
        &mut (),
        chosen,
        names.clone(),
        |(), key| npy::load_array(&file(&key), &key),
        |(), key| npy::load_tensor(&file(key), key),
    )
}
