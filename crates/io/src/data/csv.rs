//! The csv and tsv formats: a header line, then numbers.
//!
//! A key is a family of columns, `signals_0, signals_1, …` (also `signals[0]`, `signals.0`,
//! `signals0`), or one column of exactly that name, or a comma-separated list of column names.
//! Every line is a sample, so constraints are families too: `W_0, W_1, …`, `lower_0, …`, and for a
//! matrix `M_<row>_<dimension>` (also `M[1][2]`), or `M_<dimension>` where it has one row. An empty
//! cell of a bound means no limit.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use ::csv::{ByteRecord, Reader, ReaderBuilder};
use ndarray::{Array2, ArrayD, IxDyn};

use super::DataRequest;
use super::array::{Arrays, Found, Tensor};
use super::format::unreadable;
use super::keys;
use super::origin::Origin;
use crate::error::DataError;
use columns::Columns;

mod columns;
mod line;

pub(super) fn load(path: &Path, request: &DataRequest, delimiter: u8) -> Result<Arrays, DataError> {
    let origin = Origin { path, format: "csv" };
    let mut lines = Lines::open(&origin, delimiter)?;
    let columns = &lines.columns;
    let found = columns.keys();
    let has = |key: &str| {
        let matrix = ["M", "M_eq"].contains(&key);
        columns.has(key) || (matrix && columns.has_matrix(key))
    };
    let chosen = keys::choose(path, &found, request, has)?;
    let mut blocks = Vec::new();
    for key in [Some(chosen.signals), chosen.decisions, chosen.weights].into_iter().flatten() {
        blocks.push(Block::new(key, columns, &origin)?);
    }
    let mut tensors = Vec::new();
    for key in chosen.constraints {
        tensors.push(TensorBlock::new(key, columns, &origin)?);
    }

    while lines.next(&origin)? {
        let (record, columns) = (&lines.record, &lines.columns);
        for block in blocks.iter_mut().chain(tensors.iter_mut().map(|tensor| &mut tensor.block)) {
            block.take(record, columns, &origin)?;
        }
    }

    let mut blocks = blocks.into_iter();
    let mut finish = |wanted: bool| -> Result<Option<Found>, DataError> {
        let block = if wanted { blocks.next() } else { None };
        block.map(|block| block.finish(&origin)).transpose()
    };
    let signals = finish(true)?.ok_or_else(|| origin.corrupt("it has no signals"))?;
    let decisions = finish(request.want_decisions)?;
    let weights = finish(request.weights.is_some())?;
    let tensors =
        tensors.into_iter().map(|tensor| tensor.finish(&origin)).collect::<Result<_, _>>()?;
    Ok(Arrays { signals, decisions, weights, tensors, keys: found, unread: chosen.unread })
}

/// Reads a whole table: the columns of `key` where there are any, else all but those of `beside`;
/// and the column `beside`, where an empty cell means no limit.
pub(super) fn load_table(
    path: &Path,
    delimiter: u8,
    key: &'static str,
    beside: &'static str,
) -> Result<(Found, Option<Found>), DataError> {
    let origin = Origin { path, format: "csv" };
    let mut lines = Lines::open(&origin, delimiter)?;
    let columns = &lines.columns;
    let bound = columns.has(beside).then(|| columns.of(beside, &origin)).transpose()?;
    let main = if columns.has(key) {
        columns.of(key, &origin)?
    } else {
        let taken = bound.clone().unwrap_or_default();
        (0..columns.len()).filter(|column| !taken.contains(column)).collect()
    };
    let mut main = Block { key: key.to_owned(), columns: main, values: Vec::new(), empty: None };
    let mut bound = bound.map(|columns| {
        let empty = empty_cell(beside);
        Block { key: beside.to_owned(), columns, values: Vec::new(), empty }
    });
    while lines.next(&origin)? {
        for block in std::iter::once(&mut main).chain(&mut bound) {
            block.take(&lines.record, &lines.columns, &origin)?;
        }
    }
    Ok((main.finish(&origin)?, bound.map(|bound| bound.finish(&origin)).transpose()?))
}

/// A file being read line by line, past its header.
struct Lines {
    reader: Reader<BufReader<File>>,
    record: ByteRecord,
    columns: Columns,
}

impl Lines {
    fn open(origin: &Origin<'_>, delimiter: u8) -> Result<Self, DataError> {
        let file = File::open(origin.path).map_err(|error| unreadable(origin.path, error))?;
        let mut reader = ReaderBuilder::new()
            .delimiter(delimiter)
            .has_headers(false)
            .flexible(true)
            .from_reader(BufReader::new(file));
        let mut record = ByteRecord::new();
        next(&mut reader, &mut record, origin)?;
        let columns = Columns::from_header(&record, delimiter, origin)?;
        Ok(Self { reader, record, columns })
    }

    /// Moves on to the next line; `false` at the end.
    fn next(&mut self, origin: &Origin<'_>) -> Result<bool, DataError> {
        if !next(&mut self.reader, &mut self.record, origin)? {
            return Ok(false);
        }
        if self.record.len() != self.columns.len() {
            return Err(DataError::Ragged {
                path: origin.path.to_path_buf(),
                line: line::of(&self.record, origin.path),
                found: self.record.len(),
                expected: self.columns.len(),
            });
        }
        Ok(true)
    }
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
    /// What an empty cell means; none where it is an error.
    empty: Option<f64>,
}

/// The columns of a part of the constraints.
struct TensorBlock {
    key: &'static str,
    /// Sizes of the axes beyond the first.
    shape: Vec<usize>,
    block: Block,
}

/// What an empty cell of a bound means: no limit.
fn empty_cell(key: &str) -> Option<f64> {
    match key {
        "lower" => Some(f64::NEG_INFINITY),
        "W" | "upper" => Some(f64::INFINITY),
        _ => None,
    }
}

impl TensorBlock {
    fn new(key: &'static str, columns: &Columns, origin: &Origin<'_>) -> Result<Self, DataError> {
        let (shape, columns) = if ["M", "M_eq"].contains(&key) {
            let (shape, columns) = columns.matrix(key, origin)?;
            (shape.to_vec(), columns)
        } else {
            let columns = columns.of(key, origin)?;
            (vec![columns.len()], columns)
        };
        let empty = empty_cell(key);
        let block = Block { key: key.to_owned(), columns, values: Vec::new(), empty };
        Ok(Self { key, shape, block })
    }

    fn finish(self, origin: &Origin<'_>) -> Result<Tensor, DataError> {
        let found = self.block.finish(origin)?;
        let shape: Vec<usize> = std::iter::once(found.values.nrows()).chain(self.shape).collect();
        let values = found.values.into_raw_vec_and_offset().0;
        let values =
            ArrayD::from_shape_vec(IxDyn(&shape), values).map_err(|error| origin.corrupt(error))?;
        Ok(Tensor { path: found.path, key: self.key, values })
    }
}

impl Block {
    fn new(key: String, columns: &Columns, origin: &Origin<'_>) -> Result<Self, DataError> {
        let columns = columns.of(&key, origin)?;
        Ok(Self { key, columns, values: Vec::new(), empty: None })
    }

    fn take(
        &mut self,
        record: &ByteRecord,
        columns: &Columns,
        origin: &Origin<'_>,
    ) -> Result<(), DataError> {
        for &column in &self.columns {
            let bytes = record.get(column).unwrap_or_default().trim_ascii();
            let number = match (bytes, self.empty) {
                (b"", Some(empty)) => Some(empty),
                _ => str::from_utf8(bytes).ok().and_then(|text| text.parse().ok()),
            };
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
