//! Files that have no name until they are complete (Linux).
//!
//! A process that is killed while it writes leaves nothing behind: a file without a name goes with
//! the last process that has it open.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process;

use ::rustix::fs::{AtFlags, CWD, OFlags, linkat};

/// Where the system shows a process its open files.
const OPEN_FILES: &str = "/proc/self/fd";
/// Names tried for a file that replaces another.
const ATTEMPTS: u32 = 1000;

/// A new file in `folder`; none where the file system or the system cannot do this.
pub(super) fn create(folder: &Path) -> Option<File> {
    if !Path::new(OPEN_FILES).is_dir() {
        return None;
    }
    let mut options = OpenOptions::new();
    // As permissive as the umask lets any new file be.
    options.read(true).write(true).mode(0o666).custom_flags(OFlags::TMPFILE.bits().cast_signed());
    options.open(folder).ok()
}

/// Gives the file its name, in place of a file that may have it.
pub(super) fn name(file: &File, folder: &Path, target: &Path) -> io::Result<()> {
    let open = PathBuf::from(format!("{OPEN_FILES}/{}", file.as_raw_fd()));
    let link = |path: &Path| linkat(CWD, &open, CWD, path, AtFlags::SYMLINK_FOLLOW);
    let exists = |error: &io::Error| error.kind() == io::ErrorKind::AlreadyExists;
    match link(target).map_err(io::Error::from) {
        Err(error) if exists(&error) => {}
        answer => return answer,
    }
    // A link cannot replace a file, a new name can: between the two there is a name for a moment.
    for attempt in 0..ATTEMPTS {
        let path = folder.join(format!(".argwhy-{}-{attempt}.tmp", process::id()));
        match link(&path).map_err(io::Error::from) {
            Err(error) if exists(&error) => {}
            Err(error) => return Err(error),
            Ok(()) => {
                return fs::rename(&path, target).inspect_err(|_| {
                    // What cannot be removed either is no worse for being told.
                    let _ = fs::remove_file(&path);
                });
            }
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "its folder is full of temporary files"))
}
