//! Where a command may write, found out before it starts to work.

use crate::error::CliError;
use argwhy::io::{check_regular, check_writable, data_endings};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Refuses an output that would overwrite an input or another output, one that cannot be written,
/// and one that is written whole but is no regular file. `streams` are written line by line and may
/// be pipes. Nothing is changed.
pub fn check_targets(
    inputs: &[&Path],
    wholes: &[&Path],
    streams: &[&Path],
) -> Result<(), CliError> {
    let mut taken: Vec<File> = inputs.iter().flat_map(|path| files_of(path)).collect();
    for (at, path) in wholes.iter().chain(streams).enumerate() {
        let wrong = |source| CliError::Write { path: path.to_path_buf(), source };
        let own = File::at(path).map_err(wrong)?;
        if taken.contains(&own) {
            return Err(CliError::Usage(format!(
                "`{}` is used twice, and writing it would destroy the other; choose another name \
                 for the output",
                path.display()
            )));
        }
        taken.push(own);
        if at < wholes.len() || !is_stream(path) {
            check_writable(path).map_err(wrong)?;
        }
    }
    Ok(())
}

/// Makes the folder of a command's outputs and refuses it where one of them could not be written.
pub fn check_folder(
    folder: &Path,
    names: &[impl AsRef<Path>],
    inputs: &[&Path],
) -> Result<NewFolder, CliError> {
    let made = NewFolder::make(folder)
        .map_err(|source| CliError::Write { path: folder.to_path_buf(), source })?;
    let outputs: Vec<PathBuf> = names.iter().map(|name| folder.join(name)).collect();
    check_targets(inputs, &outputs.iter().map(PathBuf::as_path).collect::<Vec<_>>(), &[])?;
    Ok(made)
}

/// Folders that were made for outputs; those still empty in the end go again.
pub struct NewFolder(Vec<PathBuf>);

impl NewFolder {
    fn make(folder: &Path) -> io::Result<Self> {
        let missing = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
        let made = folder.ancestors().take_while(missing).map(Path::to_path_buf).collect();
        fs::create_dir_all(folder)?;
        Ok(Self(made))
    }
}

impl Drop for NewFolder {
    fn drop(&mut self) {
        // From the inside out; one that holds something refuses to go, as it should.
        for folder in &self.0 {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Something that is there and is no file with contents of its own: a pipe, a terminal, a device.
pub fn is_stream(path: &Path) -> bool {
    // What stdout is redirected to is a file, but not one to be replaced under the shell's hands.
    let of_system = path.starts_with("/dev") || path.starts_with("/proc");
    let there = path.exists() && !path.is_dir();
    there && (of_system || check_regular(path).is_err())
}

/// A file as the system knows it, whatever its names.
#[derive(PartialEq, Eq)]
enum File {
    /// One that is there.
    There(Identity),
    /// One that is not there yet: its folder and the name it will have.
    New(Identity, OsString),
}

impl File {
    fn at(path: &Path) -> io::Result<Self> {
        if let Ok(identity) = identity(path) {
            return Ok(Self::There(identity));
        }
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let name = path.file_name().unwrap_or_default().to_owned();
        match identity(folder) {
            Ok(folder) => Ok(Self::New(folder, name)),
            Err(_) => Err(io::Error::new(
                io::ErrorKind::NotFound,
                format!("there is no folder `{}`", folder.display()),
            )),
        }
    }
}

/// Folders inside a folder of data that may hold some of it (Minari's `data`).
const DEPTH: usize = 2;

/// An input, and where it is a folder the data in it: models and reports beside it are nobody's
/// input.
fn files_of(path: &Path) -> Vec<File> {
    fn inside(path: &Path, depth: usize, found: &mut Vec<File>) {
        let is_data = path.extension().is_some_and(|e| data_endings().any(|data| e == data));
        if is_data || depth == DEPTH {
            found.extend(File::at(path));
        }
        if depth == 0 || !path.is_dir() {
            return;
        }
        // A folder that cannot be read is the reader's to complain about.
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            inside(&entry.path(), depth - 1, found);
        }
    }
    let mut found = Vec::new();
    inside(path, DEPTH, &mut found);
    found
}

/// Device and number: the same for every hard link and through every symbolic one.
#[cfg(unix)]
type Identity = (u64, u64);

#[cfg(unix)]
fn identity(path: &Path) -> io::Result<Identity> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).map(|found| (found.dev(), found.ino()))
}

#[cfg(not(unix))]
type Identity = PathBuf;

#[cfg(not(unix))]
fn identity(path: &Path) -> io::Result<Identity> {
    path.canonicalize()
}
