//! The csv and tsv formats: a header line, then numbers.
//!
//! A key is a family of columns, `signals_0, signals_1, …` (also `signals[0]`, `signals.0`,
//! `signals0`), or one column of exactly that name, or a comma-separated list of column names.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use ::csv::{ByteRecord, Reader, ReaderBuilder};
use ndarray::Array2;

use super::DataRequest;
use super::array::Found;
use super::format::unreadable;
use super::keys;
use super::origin::Origin;
use crate::error::DataError;
use columns::Columns;

mod columns;
mod line;

pub(super) fn load(
    path: &Path,
    request: &DataRequest,
    delimiter: u8,
) -> Result<(Found, Option<Found>), DataError> {
    let origin = Origin { path, format: "csv" };
    let file = File::open(path).map_err(|error| unreadable(path, error))?;
    let mut reader = ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        .flexible(true)
        .from_reader(BufReader::new(file));

    let mut record = ByteRecord::new();
    next(&mut reader, &mut record, &origin)?;
    let columns = Columns::from_header(&record, delimiter, &origin)?;
    let chosen = keys::choose(path, &columns.keys(), request, |key| columns.has(key))?;
    let mut blocks = vec![Block::new(chosen.signals, &columns, &origin)?];
    if let Some(key) = chosen.decisions {
        blocks.push(Block::new(key, &columns, &origin)?);
    }

    while next(&mut reader, &mut record, &origin)? {
        if record.len() != columns.len() {
            return Err(DataError::Ragged {
                path: path.to_path_buf(),
                line: line::of(&record, path),
                found: record.len(),
                expected: columns.len(),
            });
        }
        for block in &mut blocks {
            block.take(&record, &columns, &origin)?;
        }
    }

    let mut found = Vec::with_capacity(2);
    for block in blocks {
        found.push(block.finish(&origin)?);
    }
    let decisions = if found.len() == 2 { found.pop() } else { None };
    let signals = found.pop().ok_or_else(|| origin.corrupt("it has no signals"))?;
    Ok((signals, decisions))
}

fn next(
    reader: &mut Reader<BufReader<File>>,
    record: &mut ByteRecord,
    origin: &Origin<'_>,
) -> Result<bool, DataError> {
    reader.read_byte_record(record).map_err(|error| match error.into_kind() {
        ::csv::ErrorKind::Io(source) => origin.read_failed("text", source),
        _ => origin.corrupt("its lines cannot be split into cells"),
    })
}

/// The columns of one key, and the numbers read from them so far.
struct Block {
    key: String,
    columns: Vec<usize>,
    values: Vec<f64>,
}

impl Block {
    fn new(key: String, columns: &Columns, origin: &Origin<'_>) -> Result<Self, DataError> {
        let columns = columns.of(&key, origin)?;
        Ok(Self { key, columns, values: Vec::new() })
    }

    fn take(
        &mut self,
        record: &ByteRecord,
        columns: &Columns,
        origin: &Origin<'_>,
    ) -> Result<(), DataError> {
        for &column in &self.columns {
            let bytes = record.get(column).unwrap_or_default().trim_ascii();
            let number = str::from_utf8(bytes).ok().and_then(|text| text.parse().ok());
            let Some(number) = number else {
                return Err(DataError::Cell {
                    path: origin.path.to_path_buf(),
                    line: line::of(record, origin.path),
                    column: columns.name(column).to_owned(),
                    text: String::from_utf8_lossy(bytes).into_owned(),
                });
            };
            self.values.push(number);
        }
        Ok(())
    }

    fn finish(self, origin: &Origin<'_>) -> Result<Found, DataError> {
        let width = self.columns.len();
        let rows = self.values.len().checked_div(width).unwrap_or(0);
        let values = Array2::from_shape_vec((rows, width), self.values)
            .map_err(|error| origin.corrupt(error))?;
        Ok(Found { path: origin.path.to_path_buf(), key: self.key, values })
    }
}
