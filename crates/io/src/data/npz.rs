//! The npz format: a zip archive of npy files, stored or deflated.
//!
//! Only the entries asked for are opened, so an archive may hold anything beside them.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use ::zip::ZipArchive;

use super::DataRequest;
use super::array::{Arrays, Found, Tensor};
use super::format::unreadable;
use super::keys;
use super::npy;
use super::origin::Origin;
use crate::error::DataError;

type Archive = ZipArchive<BufReader<File>>;

pub(super) fn load(path: &Path, request: &DataRequest) -> Result<Arrays, DataError> {
    let origin = Origin { path, format: "npz" };
    let file = File::open(path).map_err(|error| unreadable(path, error))?;
    let length = file.metadata().map_err(|error| unreadable(path, error))?.len();
    let mut archive =
        ZipArchive::new(BufReader::new(file)).map_err(|error| origin.corrupt(error))?;

    let entries: Vec<String> =
        archive.file_names_raw().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    let names: Vec<String> = entries
        .iter()
        .map(|entry| entry.strip_suffix(".npy").unwrap_or(entry).to_owned())
        .collect();
    let index = |key: &str| names.iter().position(|name| name == key);
    let chosen = keys::choose(path, &names, request, |key| index(key).is_some())?;

    let place = |key: &str| index(key).ok_or_else(|| origin.corrupt(format!("`{key}` is gone")));
    Arrays::gather(
        &mut archive,
        chosen,
        names.clone(),
        |archive, key| {
            let (entry, size) = entry(archive, place(&key)?, length, &key, &origin)?;
            let values = npy::read(entry, size, &key, &origin)?;
            Ok(Found { path: path.to_path_buf(), key, values })
        },
        |archive, key| {
            let (entry, size) = entry(archive, place(key)?, length, key, &origin)?;
            let values = npy::read_tensor(entry, size, key, &origin)?;
            Ok(Tensor { path: path.to_path_buf(), key, values })
        },
    )
}

/// An entry of the archive with its size.
fn entry<'a>(
    archive: &'a mut Archive,
    index: usize,
    archive_length: u64,
    key: &str,
    origin: &Origin<'_>,
) -> Result<(impl Read + 'a, u64), DataError> {
    let entry = archive
        .by_index(index)
        .map_err(|error| origin.corrupt(format!("array `{key}`: {error}")))?;
    let (packed, size) = (entry.compressed_size(), entry.size());
    // Deflate shrinks to no less than 1/1032; a directory that claims more is lying, and
    // believing it would reserve memory for bytes that never come.
    if packed > archive_length || size > packed.saturating_mul(1032).saturating_add(1024) {
        return Err(origin.corrupt(format!(
            "array `{key}` claims {size} bytes packed into {packed}, in a file of {archive_length}"
        )));
    }
    Ok((entry, size))
}
