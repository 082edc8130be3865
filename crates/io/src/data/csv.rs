//! The csv and tsv formats: a header line, then rows, plain or packed by gzip or zstd.
//!
//! What separates cells is found in the first lines, where nobody says it: a comma, a semicolon, a
//! tab, a bar, or spaces.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

use ::csv::{ByteRecord, Reader, ReaderBuilder};

use super::DataRequest;
use super::format::unreadable;
use super::origin::Origin;
use super::packed;
use super::table::columns::Columns;
use super::table::{Body, Records, Table};
use crate::error::DataError;

mod line;
mod separator;

/// Opens a table of text. Without a `usual` separator it is found.
pub(super) fn open<'a>(
    origin: Origin<'a>,
    request: &DataRequest,
    usual: Option<u8>,
) -> Result<Table<'a>, DataError> {
    Table::open(origin, request, body(&origin, request, usual)?)
}

/// The rows of a table of text.
pub(super) fn body<'a>(
    origin: &Origin<'_>,
    request: &DataRequest,
    usual: Option<u8>,
) -> Result<Body<'a>, DataError> {
    let lines = Lines::open(origin, usual, request.decimal.byte())?;
    Ok(Body::Records(Box::new(lines)))
}

/// Bytes of a line that no limit forbids.
const LINE_BYTES: u64 = 1 << 16;
/// Bytes read at a time.
const READ_BYTES: usize = 1 << 16;

/// A file being read line by line, past its header.
pub(super) struct Lines {
    reader: Reader<Metered>,
    record: ByteRecord,
    columns: Columns,
    separator: u8,
    decimal: u8,
    /// Bytes read since the last line began.
    of_line: Rc<Cell<u64>>,
}

/// A file that stops where one line takes more memory than there may be: without its closing quote,
/// a cell goes on to the end of the file.
struct Metered {
    file: Box<dyn Read>,
    of_line: Rc<Cell<u64>>,
    most: Option<u64>,
}

impl Read for Metered {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.of_line.set(self.of_line.get() + count as u64);
        if self.most.is_some_and(|most| self.of_line.get() > most) {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(count)
    }
}

impl Lines {
    pub fn open(origin: &Origin<'_>, usual: Option<u8>, decimal: u8) -> Result<Self, DataError> {
        let separator = separator::find(origin, usual, decimal)?;
        Self::split_by(origin, separator, decimal)
    }

    fn split_by(origin: &Origin<'_>, separator: u8, decimal: u8) -> Result<Self, DataError> {
        let file = packed::open(origin)?;
        let of_line = Rc::new(Cell::new(0));
        // The bytes of a line, where its cells end, and room to grow.
        let most = origin.meter.left().map(|left| (left / 8).max(LINE_BYTES));
        let file = Metered { file, of_line: Rc::clone(&of_line), most };
        let mut reader = ReaderBuilder::new()
            .delimiter(separator)
            .has_headers(false)
            .flexible(true)
            .buffer_capacity(READ_BYTES)
            .from_reader(file);
        let mut record = ByteRecord::new();
        next(&mut reader, &mut record, origin)?;
        let columns = Columns::from_header(&record, origin)?;
        Ok(Self { reader, record, columns, separator, decimal, of_line })
    }
}

impl Records for Lines {
    fn columns(&self) -> &Columns {
        &self.columns
    }

    fn next(&mut self, origin: &Origin<'_>) -> Result<bool, DataError> {
        self.of_line.set(0);
        if !next(&mut self.reader, &mut self.record, origin)? {
            return Ok(false);
        }
        if self.record.len() != self.columns.len() {
            return Err(DataError::Ragged {
                path: origin.path.to_path_buf(),
                line: self.line(origin),
                found: self.record.len(),
                expected: self.columns.len(),
            });
        }
        Ok(true)
    }

    fn record(&self) -> &ByteRecord {
        &self.record
    }

    fn line(&self, origin: &Origin<'_>) -> u64 {
        line::of(&self.record, origin)
    }

    fn decimal(&self) -> u8 {
        self.decimal
    }

    fn rough_rows(&self, origin: &Origin<'_>) -> Result<usize, DataError> {
        let lines =
            line::count_all(packed::open(origin)?).map_err(|e| unreadable(origin.path, e))?;
        Ok(lines.saturating_sub(1))
    }

    fn again(&self, origin: &Origin<'_>) -> Result<Box<dyn Records>, DataError> {
        Ok(Box::new(Self::split_by(origin, self.separator, self.decimal)?))
    }
}

fn next(
    reader: &mut Reader<Metered>,
    record: &mut ByteRecord,
    origin: &Origin<'_>,
) -> Result<bool, DataError> {
    reader.read_byte_record(record).map_err(|error| match error.into_kind() {
        ::csv::ErrorKind::Io(source) if source.kind() == io::ErrorKind::FileTooLarge => origin
            .corrupt(
                "one of its lines is too long for the memory limit, as after a quote that is \
                 never closed",
            ),
        ::csv::ErrorKind::Io(source) => origin.read_failed("text", source),
        _ => origin.corrupt("its lines cannot be split into cells"),
    })
}
