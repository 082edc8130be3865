//! Data from standard input: kept in a file until it has been read, since readers look twice.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::format::unreadable;
use crate::error::DataError;

/// What was piped in, in a file that lasts as long as this.
#[derive(Debug)]
pub struct Spooled {
    _folder: TempDir,
    path: PathBuf,
}

impl Spooled {
    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// What standard input holds, where the path is `-`.
pub fn standard_input(path: &Path) -> Result<Option<Spooled>, DataError> {
    if path != Path::new("-") {
        return Ok(None);
    }
    let failed = |error: io::Error| unreadable(path, error);
    let folder = tempfile::Builder::new().prefix("argwhy-").tempdir().map_err(failed)?;
    let path = folder.path().join("standard-input");
    let mut file = File::create(&path).map_err(failed)?;
    io::copy(&mut io::stdin().lock(), &mut file).map_err(failed)?;
    Ok(Some(Spooled { _folder: folder, path }))
}
