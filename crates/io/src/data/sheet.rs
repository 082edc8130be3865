//! Sheets of workbooks, xlsx and ods: the first row that has anything is the header.
//!
//! Both are zip archives of XML. Cells are read one after the other as text, and rows are handed on
//! as those of a csv file are; formulas count as what they were last worked out to.

use std::fs::File;
use std::io::{BufReader, Read};

use ::csv::ByteRecord;
use ::zip::ZipArchive;

use super::DataRequest;
use super::format::unreadable;
use super::origin::Origin;
use super::table::columns::Columns;
use super::table::{Body, Records, Table};
use crate::error::{DataError, shortened};

mod ods;
mod xlsx;
mod xml;

/// Columns that a sheet may have, as in Excel.
const MOST_COLUMNS: usize = 1 << 14;
/// Rows that a sheet may have; spreadsheets stop at a million or at sixteen.
const MOST_ROWS: u64 = 1 << 24;
/// Bytes that one part of a workbook may unpack to.
const LARGEST_PART: u64 = 4 << 30;

pub(super) fn open_xlsx<'a>(
    origin: Origin<'a>,
    request: &DataRequest,
) -> Result<Table<'a>, DataError> {
    Table::open(origin, request, xlsx_body(&origin, request)?)
}

pub(super) fn open_ods<'a>(
    origin: Origin<'a>,
    request: &DataRequest,
) -> Result<Table<'a>, DataError> {
    Table::open(origin, request, ods_body(&origin, request)?)
}

/// The rows of a sheet of an xlsx file.
pub(super) fn xlsx_body<'a>(
    origin: &Origin<'_>,
    request: &DataRequest,
) -> Result<Body<'a>, DataError> {
    let sheet = Sheet::open(origin, Kind::Xlsx, request.sheet.as_deref())?;
    Ok(Body::Records(Box::new(sheet)))
}

/// The same of an ods file.
pub(super) fn ods_body<'a>(
    origin: &Origin<'_>,
    request: &DataRequest,
) -> Result<Body<'a>, DataError> {
    let sheet = Sheet::open(origin, Kind::Ods, request.sheet.as_deref())?;
    Ok(Body::Records(Box::new(sheet)))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Xlsx,
    Ods,
}

/// A sheet whose rows come one by one.
struct Sheet {
    kind: Kind,
    name: Option<String>,
    rows: Box<dyn Rows>,
    /// Cells of the row it is at.
    cells: Vec<Vec<u8>>,
    record: ByteRecord,
    columns: Columns,
    /// The column that the header begins with.
    first: usize,
    line: u64,
}

/// Rows of a sheet.
trait Rows {
    /// The next row's number, from 1, with its cells in `cells`; none at the end.
    fn next(
        &mut self,
        cells: &mut Vec<Vec<u8>>,
        origin: &Origin<'_>,
    ) -> Result<Option<u64>, DataError>;
}

impl Sheet {
    fn open(origin: &Origin<'_>, kind: Kind, name: Option<&str>) -> Result<Self, DataError> {
        let mut rows: Box<dyn Rows> = match kind {
            Kind::Xlsx => Box::new(xlsx::open(origin, name)?),
            Kind::Ods => Box::new(ods::open(origin, name)?),
        };
        let mut cells = Vec::new();
        let is_empty = |cell: &Vec<u8>| cell.trim_ascii().is_empty();
        let mut line = 0;
        while cells.iter().all(is_empty) {
            match rows.next(&mut cells, origin)? {
                Some(at) => line = at,
                None => {
                    return Err(DataError::Unsupported {
                        path: origin.path.to_path_buf(),
                        detail: "the sheet is empty; name another one with {sheet}".to_owned(),
                    });
                }
            }
        }
        let first = cells.iter().position(|cell| !is_empty(cell)).unwrap_or(0);
        let last = cells.iter().rposition(|cell| !is_empty(cell)).unwrap_or(0);
        let mut record = ByteRecord::new();
        cells[first..=last].iter().for_each(|cell| record.push_field(cell));
        let columns = Columns::from_header(&record, origin)?;
        let name = name.map(ToOwned::to_owned);
        Ok(Self { kind, name, rows, cells, record, columns, first, line })
    }
}

impl Records for Sheet {
    fn columns(&self) -> &Columns {
        &self.columns
    }

    fn next(&mut self, origin: &Origin<'_>) -> Result<bool, DataError> {
        loop {
            let Some(line) = self.rows.next(&mut self.cells, origin)? else { return Ok(false) };
            self.line = line;
            if line > MOST_ROWS {
                return Err(origin.corrupt(format!("its sheet claims a row {line}")));
            }
            self.record.clear();
            let mut is_empty = true;
            for column in self.first..self.first + self.columns.len() {
                let cell = self.cells.get(column).map_or(&[][..], Vec::as_slice);
                is_empty &= cell.trim_ascii().is_empty();
                self.record.push_field(cell);
            }
            if !is_empty {
                return Ok(true);
            }
        }
    }

    fn record(&self) -> &ByteRecord {
        &self.record
    }

    fn line(&self, _: &Origin<'_>) -> u64 {
        self.line
    }

    /// Not known before they are read: room grows with them.
    fn rough_rows(&self, _: &Origin<'_>) -> Result<usize, DataError> {
        Ok(0)
    }

    fn again(&self, origin: &Origin<'_>) -> Result<Box<dyn Records>, DataError> {
        Ok(Box::new(Self::open(origin, self.kind, self.name.as_deref())?))
    }
}

type Archive = ZipArchive<BufReader<File>>;

fn archive(origin: &Origin<'_>) -> Result<Archive, DataError> {
    let file = File::open(origin.path).map_err(|error| unreadable(origin.path, error))?;
    ZipArchive::new(BufReader::new(file)).map_err(|error| origin.corrupt(error))
}

/// A part of the workbook, unpacked while it is read.
fn part(mut archive: Archive, name: &str, origin: &Origin<'_>) -> Result<Box<dyn Read>, DataError> {
    let at = archive.index_for_name(name);
    let at = at.ok_or_else(|| origin.corrupt(format!("it has no part `{}`", shortened(name))))?;
    let entry = archive.by_index(at).map_err(|error| origin.corrupt(error))?;
    let (start, packed) = (entry.data_start(), entry.compressed_size());
    let method = entry.compression();
    drop(entry);
    let start = start.ok_or_else(|| origin.corrupt(format!("`{name}` lies nowhere")))?;
    let mut file = archive.into_inner();
    std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(start))
        .map_err(|error| origin.read_failed(name, error))?;
    let bytes = file.take(packed);
    Ok(match method {
        ::zip::CompressionMethod::Stored => Box::new(bytes.take(LARGEST_PART)),
        _ => Box::new(flate2::read::DeflateDecoder::new(bytes).take(LARGEST_PART)),
    })
}

/// The sheet asked for among those there are, or the first.
fn chosen<T>(
    sheets: Vec<(String, T)>,
    name: Option<&str>,
    origin: &Origin<'_>,
) -> Result<T, DataError> {
    let names: Vec<String> = sheets.iter().map(|(name, _)| format!("`{name}`")).collect();
    let mut sheets = sheets.into_iter();
    let found = match name {
        None => sheets.next(),
        Some(name) => sheets.find(|(own, _)| own == name),
    };
    found.map(|(_, sheet)| sheet).ok_or_else(|| DataError::Columns {
        path: origin.path.to_path_buf(),
        detail: format!(
            "there is no sheet `{}`; it has {}",
            shortened(name.unwrap_or_default()),
            names.join(", ")
        ),
    })
}
