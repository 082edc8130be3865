//! The npz format: a zip archive of npy files, stored or deflated.
//!
//! Only the entries asked for are opened, so an archive may hold anything beside them. Entries are
//! unpacked a block at a time, and only as far as their headers before a budget has agreed.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::rc::Rc;

use ::zip::ZipArchive;

use super::DataRequest;
use super::array::{Listing, Opened, Stored};
use super::format::unreadable;
use super::kept::Kept;
use super::keys;
use super::npy::Layout;
use super::origin::Origin;
use super::walk::Take;
use crate::error::DataError;

type Archive = ZipArchive<BufReader<File>>;

/// Bytes that the archive's directory takes for an entry, its name included.
const ENTRY_BYTES: u64 = 1 << 10;

pub(super) fn open<'a>(
    origin: Origin<'a>,
    request: &DataRequest,
) -> Result<Listing<'a>, DataError> {
    let path = origin.path;
    let file = File::open(path).map_err(|error| unreadable(path, error))?;
    let length = file.metadata().map_err(|error| unreadable(path, error))?.len();
    let archive = ZipArchive::new(BufReader::new(file)).map_err(|error| origin.corrupt(error))?;

    let entries: Vec<String> =
        archive.file_names_raw().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    origin.charge_list(entries.len() as u64 * ENTRY_BYTES, "the list of its arrays")?;
    let names: Vec<String> = entries
        .iter()
        .map(|entry| entry.strip_suffix(".npy").unwrap_or(entry).to_owned())
        .collect();
    let index = |key: &str| names.iter().position(|name| name == key);
    let chosen = keys::choose(path, &names, request, |key| index(key).is_some())?;

    let archive = Rc::new(RefCell::new(archive));
    let open = |key: &str, tensor: bool| {
        let index = index(key).ok_or_else(|| origin.corrupt(format!("`{key}` is gone")))?;
        Entry::open(&archive, (index, length), (key, tensor), origin)
    };
    Listing::open(origin, chosen, names.clone(), |key| open(&key, false), |key| open(key, true))
}

/// An array of the archive whose header is known.
struct Entry<'a> {
    archive: Rc<RefCell<Archive>>,
    index: usize,
    layout: Layout,
    origin: Origin<'a>,
}

impl<'a> Entry<'a> {
    fn open(
        archive: &Rc<RefCell<Archive>>,
        (index, archive_length): (usize, u64),
        (key, tensor): (&str, bool),
        origin: Origin<'a>,
    ) -> Result<Opened<'a>, DataError> {
        let mut opened = archive.borrow_mut();
        let mut entry = opened
            .by_index(index)
            .map_err(|error| origin.corrupt(format!("array `{key}`: {error}")))?;
        let (packed, size) = (entry.compressed_size(), entry.size());
        // Deflate shrinks to no less than 1/1032; a directory that claims more is lying, and
        // believing it would reserve memory for bytes that never come.
        if packed > archive_length || size > packed.saturating_mul(1032).saturating_add(1024) {
            return Err(origin.corrupt(format!(
                "array `{key}` claims {size} bytes packed into {packed}, in a file of \
                 {archive_length}"
            )));
        }
        let layout = Layout::of(&mut entry, size, (key, tensor), &origin)?;
        let archive = Rc::clone(archive);
        let stored = Self { archive, index, layout: layout.clone(), origin };
        Ok(layout.opened(origin.path, Box::new(stored)))
    }
}

impl Entry<'_> {
    /// What `work` makes of the array's bytes behind its header.
    fn with_stream<T>(
        &self,
        work: impl FnOnce(&mut dyn Read) -> Result<T, DataError>,
    ) -> Result<T, DataError> {
        let mut archive = self.archive.borrow_mut();
        let mut entry = archive.by_index(self.index).map_err(|error| self.origin.corrupt(error))?;
        let header = self.layout.header.length;
        let skipped = io::copy(&mut entry.by_ref().take(header), &mut io::sink())
            .map_err(|error| self.origin.read_failed("header", error))?;
        if skipped != header {
            return Err(self.origin.corrupt("the data ends early"));
        }
        work(&mut entry)
    }
}

impl Stored for Entry<'_> {
    fn read(&self, kept: &Kept) -> Result<Vec<f64>, DataError> {
        self.with_stream(|stream| self.layout.read(stream, kept, &self.origin))
    }

    fn walk(&self, piece_rows: usize, take: &mut Take<'_>) -> Result<Option<bool>, DataError> {
        self.with_stream(|stream| self.layout.walk(stream, piece_rows, take, &self.origin))
    }
}
