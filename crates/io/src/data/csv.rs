//! The csv and tsv formats: a header line, then numbers.
//!
//! A key is a family of columns, `signals_0, signals_1, …` (also `signals[0]`, `signals.0`,
//! `signals0`), or one column of exactly that name, or a comma-separated list of column names.
//! Every line is a sample, so constraints are families too: `W_0, W_1, …`, `lower_0, …`, and for a
//! matrix `M_<row>_<dimension>` (also `M[1][2]`), or `M_<dimension>` where it has one row. An empty
//! cell of a bound means no limit.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read};
use std::rc::Rc;

use ::csv::{ByteRecord, Reader, ReaderBuilder};
use argwhy_core::dataset::Names;
use ndarray::{Array2, ArrayD, Axis, IxDyn};

use super::DataRequest;
use super::array::{Arrays, Found, RowsOf, Tensor};
use super::format::unreadable;
use super::kept::Kept;
use super::keys;
use super::origin::Origin;
use super::rows::RowRanges;
use super::survey::Survey;
use crate::error::DataError;
use belonging::Belonging;
use columns::Columns;
use named::Named;

mod belonging;
mod columns;
mod line;
mod matrix;
mod named;

pub(super) use matrix::load_matrix;

/// A table whose header is read, and whose lines are counted roughly.
pub(super) struct Table<'a> {
    origin: Origin<'a>,
    lines: Lines,
    /// The columns of the signals, then of decisions and weights where they are wanted.
    blocks: Vec<Block>,
    tensors: Vec<TensorBlock>,
    groups: Option<Belonging>,
    has_decisions: bool,
    has_weights: bool,
    n_lines: usize,
    delimiter: u8,
    keys: Vec<String>,
    unread: Vec<&'static str>,
    names: Names,
}

impl<'a> Table<'a> {
    pub fn open(
        origin: Origin<'a>,
        request: &DataRequest,
        delimiter: u8,
    ) -> Result<Self, DataError> {
        let lines = Lines::open(&origin, delimiter)?;
        let columns = &lines.columns;
        let keys = columns.keys();
        let has = |key: &str| {
            let matrix = ["M", "M_eq"].contains(&key);
            columns.has(key) || (matrix && columns.has_matrix(key))
        };
        let named = by_names(request, columns, &origin)?;
        // Columns that a model names need no key.
        let asked = DataRequest {
            signals: request.signals.clone().or(named[0].as_ref().map(|n| n.names.join(","))),
            decisions: request.decisions.clone().or(named[1].as_ref().map(|n| n.names.join(","))),
            ..request.clone()
        };
        let own = |key: &str| {
            [&asked.signals, &asked.decisions]
                .iter()
                .zip(&named)
                .any(|(name, found)| found.is_some() && name.as_deref() == Some(key))
        };
        let chosen = keys::choose(origin.path, &keys, &asked, |key| own(key) || has(key))?;
        let (has_decisions, has_weights) = (chosen.decisions.is_some(), chosen.weights.is_some());
        let groups = Belonging::new(&chosen, columns, &origin)?;
        let [signals, decisions] = named;
        let roles = [
            ("signals", Some(chosen.signals), signals, &request.signal_names),
            ("decisions", chosen.decisions, decisions, &request.decision_names),
        ];
        let (mut blocks, mut found) = (Vec::new(), Vec::new());
        for (role, key, named, known) in roles {
            let Some(key) = key else { continue };
            let named = match named {
                Some(named) => named,
                None => Named::by_key(role, &key, known, columns, &origin)?,
            };
            blocks.push(Block { key, columns: named.columns, values: Vec::new(), empty: None });
            found.push(named.names);
        }
        if let Some(key) = chosen.weights {
            blocks.push(Block::new(key, columns, &origin)?);
        }
        let mut found = found.into_iter();
        let mut names = Names { signals: found.next().unwrap_or_default(), ..Names::default() };
        names.decisions = found.next().unwrap_or_default();
        let mut tensors = Vec::new();
        for key in chosen.constraints {
            tensors.push(TensorBlock::new(key, columns, &origin)?);
        }
        for (key, limits) in [("lower", &request.lower), ("upper", &request.upper)] {
            if limits.is_empty() {
                continue;
            }
            if tensors.iter().any(|tensor| tensor.key == key) {
                let detail = format!(
                    "`{key}` is in the data, and `{}` is named as the {key} limit too; leave out \
                     one of them",
                    limits.join(",")
                );
                return Err(DataError::Columns { path: origin.path.to_path_buf(), detail });
            }
            let columns = Named::by_name(key, limits, columns, &origin)?.columns;
            tensors.push(TensorBlock::of(key, vec![columns.len()], columns));
        }
        names.lower.clone_from(&request.lower);
        names.upper.clone_from(&request.upper);
        let n_lines = line::count_all(origin.path)
            .map_err(|error| unreadable(origin.path, error))?
            .saturating_sub(1);
        let unread = chosen.unread;
        Ok(Self {
            origin,
            lines,
            blocks,
            tensors,
            groups,
            has_decisions,
            has_weights,
            n_lines,
            delimiter,
            keys,
            unread,
            names,
        })
    }

    /// Lines behind the header: rows, blank lines and parts of cells that hold line ends.
    pub fn n_lines(&self) -> usize {
        self.n_lines
    }

    /// Rows, counted one by one.
    pub fn count_rows(&self) -> Result<usize, DataError> {
        let mut lines = Lines::open(&self.origin, self.delimiter)?;
        let mut n_rows = 0;
        while lines.next(&self.origin)? {
            n_rows += 1;
        }
        Ok(n_rows)
    }

    /// The sizes, if there are `n_rows`.
    pub fn survey(&self, rows: Option<&RowRanges>, n_rows: usize) -> Survey {
        let width = |at: usize| self.blocks.get(at).map_or(0, |block| block.columns.len());
        let shape = |tensor: &TensorBlock| [&[n_rows][..], &tensor.shape].concat();
        Survey {
            n_rows,
            n_kept: rows.map_or(n_rows, |rows| rows.count_below(n_rows)),
            signal_dim: width(0),
            decision_dim: self.has_decisions.then(|| width(1)),
            weighted: self.has_weights,
            constraints: self.tensors.iter().map(|tensor| (tensor.key, shape(tensor))).collect(),
        }
    }

    /// Reads the rows asked for. All lines are split into cells, those left out no further.
    pub fn read(mut self, rows: Option<&RowRanges>) -> Result<Arrays, DataError> {
        let origin = &self.origin;
        let expected = rows.map_or(self.n_lines, |rows| rows.count_below(self.n_lines));
        let mut blocks: Vec<&mut Block> = self.blocks.iter_mut().collect();
        blocks.extend(self.tensors.iter_mut().map(|tensor| &mut tensor.block));
        for block in &mut blocks {
            block.reserve(expected, origin)?;
        }
        if let Some(groups) = &mut self.groups {
            groups.reserve(expected, origin)?;
        }
        let mut n_rows = 0;
        while self.lines.next(origin)? {
            let is_kept = rows.is_none_or(|rows| rows.contains(n_rows));
            if let Some(groups) = &mut self.groups {
                groups.take(&self.lines.record, is_kept);
            }
            if is_kept {
                for block in &mut blocks {
                    block.take(&self.lines.record, &self.lines.columns, origin)?;
                }
            }
            n_rows += 1;
        }
        let kept = Kept::of(if n_rows > 0 { rows } else { None }, n_rows)?;
        let order = kept.file_order();
        let mut found = Vec::new();
        for block in self.blocks {
            found.push(block.finish(order.as_deref(), origin)?);
        }
        let mut tensors = Vec::new();
        for tensor in self.tensors {
            tensors.push(tensor.finish(order.as_deref(), origin)?);
        }
        let mut found = found.into_iter();
        let signals = found.next().ok_or_else(|| origin.corrupt("it has no signals"))?;
        let decisions = if self.has_decisions { found.next() } else { None };
        let weights = if self.has_weights { found.next() } else { None };
        let weights = weights.map(|found| (found, RowsOf::Kept));
        let (keys, unread, names) = (self.keys, self.unread, self.names);
        let groups = self.groups.and_then(|groups| groups.finish(order.as_deref()));
        let groups = groups.map(|found| (found, RowsOf::Kept));
        Ok(Arrays { signals, decisions, weights, groups, tensors, kept, keys, unread, names })
    }
}

/// Signals and decisions by the names a model knows them by, where nobody chose them by key.
fn by_names(
    request: &DataRequest,
    columns: &Columns,
    origin: &Origin<'_>,
) -> Result<[Option<Named>; 2], DataError> {
    let find = |role, key: &Option<String>, names: &[String]| {
        let asked = key.is_none() && !names.is_empty();
        asked.then(|| Named::by_name(role, names, columns, origin)).transpose()
    };
    let signals = find("signals", &request.signals, &request.signal_names)?;
    let decisions = if request.want_decisions {
        find("decisions", &request.decisions, &request.decision_names)?
    } else {
        None
    };
    Ok([signals, decisions])
}

/// Bytes of a line that no limit forbids.
const LINE_BYTES: u64 = 1 << 16;
/// Bytes read at a time.
const READ_BYTES: usize = 1 << 16;

/// A file being read line by line, past its header.
struct Lines {
    reader: Reader<Metered>,
    record: ByteRecord,
    columns: Columns,
    /// Bytes read since the last line began.
    of_line: Rc<Cell<u64>>,
}

/// A file that stops where one line takes more memory than there may be: without its closing quote,
/// a cell goes on to the end of the file.
struct Metered {
    file: File,
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
    fn open(origin: &Origin<'_>, delimiter: u8) -> Result<Self, DataError> {
        let file = File::open(origin.path).map_err(|error| unreadable(origin.path, error))?;
        let of_line = Rc::new(Cell::new(0));
        // The bytes of a line, where its cells end, and room to grow.
        let most = origin.meter.left().map(|left| (left / 8).max(LINE_BYTES));
        let file = Metered { file, of_line: Rc::clone(&of_line), most };
        let mut reader = ReaderBuilder::new()
            .delimiter(delimiter)
            .has_headers(false)
            .flexible(true)
            .buffer_capacity(READ_BYTES)
            .from_reader(file);
        let mut record = ByteRecord::new();
        next(&mut reader, &mut record, origin)?;
        let columns = Columns::from_header(&record, delimiter, origin)?;
        Ok(Self { reader, record, columns, of_line })
    }

    /// Moves on to the next line; `false` at the end.
    fn next(&mut self, origin: &Origin<'_>) -> Result<bool, DataError> {
        self.of_line.set(0);
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
        Ok(Self::of(key, shape, columns))
    }

    fn of(key: &'static str, shape: Vec<usize>, columns: Vec<usize>) -> Self {
        let empty = empty_cell(key);
        let block = Block { key: key.to_owned(), columns, values: Vec::new(), empty };
        Self { key, shape, block }
    }

    fn finish(self, order: Option<&[usize]>, origin: &Origin<'_>) -> Result<Tensor, DataError> {
        let found = self.block.finish(order, origin)?;
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

    /// Makes room for so many rows more, charged to the budget.
    fn reserve(&mut self, rows: usize, origin: &Origin<'_>) -> Result<(), DataError> {
        let count = rows.saturating_mul(self.columns.len());
        let what = format!("`{}`, of {rows} lines,", self.key);
        origin.charge((count as u64).saturating_mul(8), &what)?;
        self.values.try_reserve_exact(count).map_err(|_| {
            let shape = [rows as u64, self.columns.len() as u64];
            origin.too_large(&self.key, &shape, "more memory than there is")
        })
    }

    fn take(
        &mut self,
        record: &ByteRecord,
        columns: &Columns,
        origin: &Origin<'_>,
    ) -> Result<(), DataError> {
        if self.values.len() + self.columns.len() > self.values.capacity() {
            // More lines than were counted, or a table that is not counted: half as many again.
            let rows = self.values.len() / self.columns.len().max(1);
            self.reserve((rows / 2).max(64), origin)?;
        }
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

    /// The rows in the order given, or else in the file's.
    fn finish(self, order: Option<&[usize]>, origin: &Origin<'_>) -> Result<Found, DataError> {
        let width = self.columns.len();
        let rows = self.values.len().checked_div(width).unwrap_or(0);
        let mut values = Array2::from_shape_vec((rows, width), self.values)
            .map_err(|error| origin.corrupt(error))?;
        if let Some(order) = order {
            origin.charge((rows * width * 8) as u64, "the order of rows")?;
            values = values.select(Axis(0), order);
            origin.meter.release((rows * width * 8) as u64);
        }
        Ok(Found { path: origin.path.to_path_buf(), key: self.key, values })
    }
}
