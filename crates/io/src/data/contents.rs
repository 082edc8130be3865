//! What a file has, whatever of it is wanted: arrays with their shapes and types, or columns.

use std::collections::HashSet;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use ::zip::ZipArchive;
use serde::Serialize;

use super::format::{self, Format, unreadable};
use super::kept::Kept;
use super::npy::Header;
use super::origin::Origin;
use super::table::{Body, Columnar, Piece, Records, number};
use super::{DataRequest, dates, folder, missing};
use crate::budget::Meter;
use crate::error::{DataError, shortened};

/// Entries that are listed at most.
const MOST: usize = 10_000;
/// Different texts that are told apart.
const MOST_DISTINCT: usize = 1000;

/// What a file has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Contents {
    /// The format that it is read as.
    pub format: &'static str,
    /// Arrays, or columns of a table.
    pub entries: Vec<Entry>,
    /// Whether entries are columns.
    pub is_table: bool,
}

/// An array, or a column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Its key or its name.
    pub name: String,
    /// Sizes of its axes.
    pub shape: Vec<u64>,
    /// What it holds: as the file says, or of text `numbers`, `dates` or `text`.
    pub kind: String,
    /// Values that are missing, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<usize>,
    /// Different texts, up to a thousand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distinct: Option<usize>,
}

impl Entry {
    pub(super) fn array(name: String, shape: Vec<u64>, kind: String) -> Self {
        Self { name, shape, kind, missing: None, distinct: None }
    }

    /// Whether it is numbers that a model could learn from.
    pub fn is_numbers(&self) -> bool {
        self.kind == NUMBERS
    }
}

const NUMBERS: &str = "numbers";
const DATES: &str = "dates";
const TEXT: &str = "text";

/// Lists what the file at `path` has. Text is read whole, of other formats only what they say of
/// themselves.
pub fn contents(path: &Path, request: &DataRequest) -> Result<Contents, DataError> {
    let meter = Meter::new(request.budget);
    let main = if path.is_dir() { folder::minari(path) } else { None };
    let path = main.as_deref().unwrap_or(path);
    let origin = |format| Origin { path, format, meter: &meter };
    let arrays = |format, entries| Contents { format, entries, is_table: false };
    let table = |format, entries| Contents { format, entries, is_table: true };
    Ok(match format::detect(path)? {
        Format::Npz => arrays("npz", of_npz(&origin("npz"))?),
        Format::Npy => arrays("npy", vec![of_npy(path, "signals", &origin("npy"))?]),
        Format::Folder => arrays("folder", of_folder(&origin("npy"))?),
        Format::Hdf5 => arrays("hdf5", super::hdf5::entries(&origin("hdf5"), MOST)?),
        Format::Csv => {
            table("csv", of_body(super::csv::body(&origin("csv"), request, None)?, &origin("csv"))?)
        }
        Format::Tsv => {
            let body = super::csv::body(&origin("csv"), request, Some(b'\t'))?;
            table("tsv", of_body(body, &origin("csv"))?)
        }
        #[cfg(feature = "parquet")]
        Format::Parquet => {
            let body = super::parquet::body(&origin("parquet"))?;
            table("parquet", of_body(body, &origin("parquet"))?)
        }
        #[cfg(feature = "arrow")]
        Format::Arrow => {
            table("Arrow", of_body(super::arrow::body(&origin("Arrow"))?, &origin("Arrow"))?)
        }
        #[cfg(feature = "sheets")]
        Format::Xlsx => {
            let body = super::sheet::xlsx_body(&origin("xlsx"), request)?;
            table("xlsx", of_body(body, &origin("xlsx"))?)
        }
        #[cfg(feature = "sheets")]
        Format::Ods => {
            let body = super::sheet::ods_body(&origin("ods"), request)?;
            table("ods", of_body(body, &origin("ods"))?)
        }
        #[cfg(not(all(feature = "parquet", feature = "arrow", feature = "sheets")))]
        _ => return Err(origin("file").not_built("this format")),
    })
}

fn of_npz(origin: &Origin<'_>) -> Result<Vec<Entry>, DataError> {
    let file = File::open(origin.path).map_err(|error| unreadable(origin.path, error))?;
    let mut archive =
        ZipArchive::new(BufReader::new(file)).map_err(|error| origin.corrupt(error))?;
    let mut entries = Vec::new();
    for at in 0..archive.len().min(MOST) {
        let mut entry = archive.by_index(at).map_err(|error| origin.corrupt(error))?;
        let name = String::from_utf8_lossy(entry.name_raw()).into_owned();
        let name = shortened(name.strip_suffix(".npy").unwrap_or(&name));
        entries.push(match Header::read(&mut entry, &name, origin) {
            Ok(header) => Entry::array(name, header.shape, shortened(&header.descr)),
            Err(_) => Entry::array(name, Vec::new(), "no array".to_owned()),
        });
    }
    Ok(entries)
}

fn of_npy(path: &Path, name: &str, origin: &Origin<'_>) -> Result<Entry, DataError> {
    let file = File::open(path).map_err(|error| unreadable(path, error))?;
    let header = Header::read(&mut BufReader::new(file), name, origin)?;
    Ok(Entry::array(name.to_owned(), header.shape, shortened(&header.descr)))
}

fn of_folder(origin: &Origin<'_>) -> Result<Vec<Entry>, DataError> {
    let mut entries = Vec::new();
    for name in folder::arrays(origin.path)?.1.into_iter().take(MOST) {
        let path = origin.path.join(format!("{name}.npy"));
        entries.push(of_npy(&path, &name, origin)?);
    }
    Ok(entries)
}

fn of_body(body: Body<'_>, origin: &Origin<'_>) -> Result<Vec<Entry>, DataError> {
    match body {
        Body::Records(records) => of_records(records, origin),
        Body::Columns(columns) => of_columns(&*columns, origin),
    }
}

/// What the cells of a column turn out to be.
#[derive(Default)]
struct Seen {
    n_rows: usize,
    missing: usize,
    numbers: usize,
    dates: usize,
    texts: HashSet<Vec<u8>>,
}

impl Seen {
    fn cell(&mut self, cell: &[u8], decimal: u8) {
        self.n_rows += 1;
        if missing::is_word(cell) {
            self.missing += 1;
        } else if number(cell, decimal).is_some() {
            self.numbers += 1;
        } else {
            self.dates += usize::from(dates::seconds(cell).is_some());
            if self.texts.len() < MOST_DISTINCT && !self.texts.contains(cell) {
                self.texts.insert(cell.to_vec());
            }
        }
    }

    fn entry(self, name: &str) -> Entry {
        let there = self.n_rows - self.missing;
        let kind = if self.numbers == there {
            NUMBERS
        } else if self.dates == there {
            DATES
        } else {
            TEXT
        };
        Entry {
            name: name.to_owned(),
            shape: vec![self.n_rows as u64],
            kind: kind.to_owned(),
            missing: Some(self.missing),
            distinct: (kind == TEXT).then_some(self.texts.len()),
        }
    }
}

fn of_records(
    mut records: Box<dyn Records + '_>,
    origin: &Origin<'_>,
) -> Result<Vec<Entry>, DataError> {
    let mut seen: Vec<Seen> = (0..records.columns().len()).map(|_| Seen::default()).collect();
    while records.next(origin)? {
        let decimal = records.decimal();
        for (seen, cell) in seen.iter_mut().zip(records.record()) {
            seen.cell(cell.trim_ascii(), decimal);
        }
    }
    let columns = records.columns();
    let entry = |(at, seen): (usize, Seen)| seen.entry(columns.name(at));
    Ok(seen.into_iter().enumerate().map(entry).collect())
}

fn of_columns(table: &dyn Columnar, origin: &Origin<'_>) -> Result<Vec<Entry>, DataError> {
    let all = Kept::all(table.n_rows());
    let mut entries = Vec::new();
    for column in 0..table.columns().len().min(MOST) {
        let name = table.columns().name(column);
        let mut seen = Seen { n_rows: table.n_rows(), ..Seen::default() };
        let mut take = |_: usize, piece: Piece<'_>| {
            match piece {
                Piece::Numbers(numbers) => {
                    let missing = numbers.iter().filter(|number| number.is_nan()).count();
                    seen.missing += missing;
                    seen.numbers += numbers.len() - missing;
                }
                Piece::Texts(texts) => {
                    seen.n_rows -= texts.len();
                    texts.iter().for_each(|text| seen.cell(text.unwrap_or_default(), b'.'));
                }
            }
            Ok(())
        };
        let read = table.read(column, &all, &mut take, origin);
        let mut entry = seen.entry(name);
        match read {
            Ok(()) if table.holds_times(column) => DATES.clone_into(&mut entry.kind),
            Ok(()) => {}
            Err(DataError::Unsupported { .. }) => {
                let shape = entry.shape;
                entry = Entry::array(entry.name, shape, "not read".to_owned());
            }
            Err(error) => return Err(error),
        }
        entries.push(entry);
    }
    Ok(entries)
}
