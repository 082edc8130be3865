//! Which reader a path belongs to: by its ending, else by its first bytes.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use super::packed::{GZIP, ZSTD};
use crate::error::{DataError, shortened};

/// A format with a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Npz,
    Npy,
    Csv,
    Tsv,
    Hdf5,
    Parquet,
    Arrow,
    Xlsx,
    Ods,
    Folder,
}

impl Format {
    /// Whether columns have names.
    pub fn is_table(self) -> bool {
        matches!(self, Self::Csv | Self::Tsv | Self::Parquet | Self::Arrow | Self::Xlsx | Self::Ods)
    }
}

/// Endings of files that can be read, and their formats.
const ENDINGS: [(&str, Format); 12] = [
    ("npz", Format::Npz),
    ("npy", Format::Npy),
    ("csv", Format::Csv),
    ("tsv", Format::Tsv),
    ("hdf5", Format::Hdf5),
    ("h5", Format::Hdf5),
    ("parquet", Format::Parquet),
    ("feather", Format::Arrow),
    ("arrow", Format::Arrow),
    ("ipc", Format::Arrow),
    ("xlsx", Format::Xlsx),
    ("ods", Format::Ods),
];

/// Endings of files that can be read, without their dots.
pub fn data_endings() -> impl Iterator<Item = &'static str> {
    ENDINGS.into_iter().map(|(ending, _)| ending)
}

const ZIP: &[u8] = b"PK\x03\x04";
const EMPTY_ZIP: &[u8] = b"PK\x05\x06";
/// What the first file inside a workbook is called, by those who write them.
const BOOK: [&[u8]; 4] = [b"[Content_Types].xml", b"docProps/", b"_rels/", b"xl/"];
const NPY: &[u8] = b"\x93NUMPY";
const PARQUET: &[u8] = b"PAR1";
const ARROW: &[u8] = b"ARROW1";
/// What a message begins with.
const ARROW_STREAM: &[u8] = b"\xff\xff\xff\xff";
const HDF5: &[u8] = b"\x89HDF\r\n\x1a\n";

/// The format of what lies at `path`; fails if nothing readable does.
pub(super) fn detect(path: &Path) -> Result<Format, DataError> {
    let metadata = fs::metadata(path).map_err(|error| unreadable(path, error))?;
    if metadata.is_dir() {
        return Ok(Format::Folder);
    }
    if !metadata.is_file() {
        return Err(DataError::NotAFile { path: path.to_path_buf() });
    }
    if metadata.len() == 0 {
        return Err(DataError::Empty { path: path.to_path_buf() });
    }
    let start = first_bytes(path)?;
    let known = known_ending(path);
    let Some(format) = known else {
        if path.file_name().is_some_and(|name| name == "standard-input") {
            return Ok(sniff(&start).unwrap_or(Format::Csv));
        }
        return sniff(&start).ok_or_else(|| DataError::UnknownFormat {
            path: path.to_path_buf(),
            seen: in_words(&start),
        });
    };
    // A download page or a pointer saved under the dataset's name is the usual damage: say so.
    let (name, fits) = match format {
        Format::Npz => ("npz", start.starts_with(ZIP) || start.starts_with(EMPTY_ZIP)),
        Format::Npy => ("npy", start.starts_with(NPY)),
        // An HDF5 file may begin with a user block.
        Format::Hdf5 => ("hdf5", sniff(&start).is_none_or(|found| found == Format::Hdf5)),
        Format::Csv | Format::Tsv => {
            ("csv", sniff(&start).is_none_or(|found| found == Format::Csv))
        }
        Format::Parquet => ("parquet", start.starts_with(PARQUET)),
        Format::Arrow => ("Arrow", start.starts_with(ARROW) || start.starts_with(ARROW_STREAM)),
        Format::Xlsx => ("xlsx", start.starts_with(ZIP)),
        Format::Ods => ("ods", start.starts_with(ZIP)),
        Format::Folder => ("a folder", true),
    };
    if fits {
        return Ok(format);
    }
    Err(DataError::Corrupt {
        path: path.to_path_buf(),
        format: name,
        detail: format!("it starts with {}", in_words(&start)),
    })
}

/// The format of the path's ending; of packed text, the one before that.
fn known_ending(path: &Path) -> Option<Format> {
    let mut own = ending(path)?;
    if PACKED.contains(&own.as_str()) {
        own = path.file_stem().map(Path::new).and_then(ending).unwrap_or_default();
        return match own.as_str() {
            "tsv" => Some(Format::Tsv),
            // Whatever else it claims to be, text is all that is read packed.
            _ => Some(Format::Csv),
        };
    }
    ENDINGS.into_iter().find(|(ending, _)| own == *ending).map(|(_, format)| format)
}

/// Endings of packed text.
const PACKED: [&str; 2] = ["gz", "zst"];

/// The lower-case ending of a path, without its dot.
pub(super) fn ending(path: &Path) -> Option<String> {
    Some(path.extension()?.to_str()?.to_ascii_lowercase())
}

/// The error for a path that cannot be opened.
pub(super) fn unreadable(path: &Path, source: io::Error) -> DataError {
    let path = path.to_path_buf();
    match source.kind() {
        io::ErrorKind::NotFound => DataError::NotFound { path },
        _ => DataError::Unreadable { path, source },
    }
}

fn first_bytes(path: &Path) -> Result<Vec<u8>, DataError> {
    let mut start = Vec::new();
    fs::File::open(path)
        .and_then(|file| file.take(64).read_to_end(&mut start))
        .map_err(|error| unreadable(path, error))?;
    Ok(start)
}

fn sniff(start: &[u8]) -> Option<Format> {
    if start.starts_with(ZIP) && contains(start, b"mimetypeapplication/vnd.oasis") {
        Some(Format::Ods)
    } else if start.starts_with(ZIP) && BOOK.iter().any(|name| contains(start, name)) {
        Some(Format::Xlsx)
    } else if start.starts_with(ZIP) || start.starts_with(EMPTY_ZIP) {
        Some(Format::Npz)
    } else if start.starts_with(PARQUET) {
        Some(Format::Parquet)
    } else if start.starts_with(ARROW) || start.starts_with(ARROW_STREAM) {
        Some(Format::Arrow)
    } else if start.starts_with(NPY) {
        Some(Format::Npy)
    } else if start.starts_with(HDF5) {
        Some(Format::Hdf5)
    } else if start.starts_with(GZIP) || start.starts_with(ZSTD) {
        Some(Format::Csv)
    } else {
        None
    }
}

fn contains(start: &[u8], text: &[u8]) -> bool {
    start.windows(text.len()).any(|window| window == text)
}

/// The first bytes of a file as a person would name them.
fn in_words(start: &[u8]) -> String {
    let known: [(&[u8], &str); 12] = [
        (ZIP, "a zip archive (npz?)"),
        (EMPTY_ZIP, "an empty zip archive"),
        (NPY, "an npy array"),
        (HDF5, "HDF5"),
        (b"version https://git-lfs", "a Git LFS pointer, not the data (run `git lfs pull`)"),
        (b"<!DOCTYPE", "a web page"),
        (b"<html", "a web page"),
        (b"\x80", "a Python pickle"),
        (PARQUET, "parquet"),
        (ARROW, "Arrow"),
        (b"FEA1", "Feather of the first version (write it again with version 2)"),
        (b"\xd0\xcf\x11\xe0", "an old spreadsheet, xls (save it as xlsx)"),
    ];
    if let Some((_, words)) = known.iter().find(|(magic, _)| start.starts_with(magic)) {
        return (*words).to_owned();
    }
    if let Ok(text) = str::from_utf8(start) {
        return format!("the text `{}`", shortened(text.lines().next().unwrap_or("")));
    }
    let bytes: Vec<String> = start.iter().take(8).map(|b| format!("{b:02x}")).collect();
    format!("the bytes {}", bytes.join(" "))
}
