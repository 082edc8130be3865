//! Arrow's files and streams (Feather is the same): record batches, each column in a few buffers.
//!
//! In: messages one after the other; the footer of a file only repeats where they are. Out: the
//! columns asked for, batch by batch; batches of rows that are left out are passed over. A column
//! of lists of one length is several columns, `name_0`, `name_1`, …

use std::cell::RefCell;
use std::fs::File;

use super::DataRequest;
use super::format::unreadable;
use super::kept::Kept;
use super::origin::Origin;
use super::table::columns::Columns;
use super::table::{Body, Columnar, Piece, Table, Take};
use crate::error::DataError;
use batch::{Batch, Buffers, Values};
use flat::Flat;
use schema::{Field, Type};

mod batch;
mod flat;
mod schema;

const MAGIC: &[u8] = b"ARROW1";
/// Where messages begin in a file.
const FIRST: u64 = 8;
/// Bytes that a message's description may have.
const LARGEST: u64 = 64 << 20;
/// Values handed on at a time.
const BATCH: usize = 1 << 13;

pub(super) fn open<'a>(origin: Origin<'a>, request: &DataRequest) -> Result<Table<'a>, DataError> {
    Table::open(origin, request, body(&origin)?)
}

/// The columns of a file.
pub(super) fn body<'a>(origin: &Origin<'_>) -> Result<Body<'a>, DataError> {
    let file = File::open(origin.path).map_err(|error| unreadable(origin.path, error))?;
    Ok(Body::Columns(Box::new(Arrow::scan(file, origin)?)))
}

struct Arrow {
    file: RefCell<File>,
    fields: Vec<Field>,
    columns: Columns,
    /// The field of each column, and the place in its lists.
    of_fields: Vec<(usize, usize)>,
    batches: Vec<Batch>,
    dictionaries: Vec<(i64, Batch)>,
    n_rows: usize,
}

impl Arrow {
    /// Reads what the messages say of themselves, and passes over their bodies: those that a file's
    /// footer lists, or one after the other.
    fn scan(mut file: File, origin: &Origin<'_>) -> Result<Self, DataError> {
        let length = file.metadata().map_err(|error| unreadable(origin.path, error))?.len();
        let mut found = Scanned::default();
        if origin.part(&mut file, (0, 6.min(length)))? == MAGIC {
            for at in found.read_footer(&mut file, length, origin)? {
                let Some(place) = message(&mut file, at, length, origin)? else { continue };
                found.read_message(&mut file, (at, place), length, origin)?;
            }
        } else {
            let mut at = 0;
            while let Some(place) = message(&mut file, at, length, origin)? {
                at = found.read_message(&mut file, (at, place), length, origin)?;
            }
        }
        let Scanned { fields, batches, dictionaries, n_rows } = found;
        let fields = fields.ok_or_else(|| origin.corrupt("it has no schema"))?;
        let (names, of_fields) = schema::columns(&fields);
        let columns = Columns::named(names);
        let file = RefCell::new(file);
        Ok(Self { file, fields, columns, of_fields, batches, dictionaries, n_rows })
    }

    /// The buffers of one field in a batch.
    fn buffers<'b>(&self, field: usize, batch: &'b Batch) -> Option<Buffers<'b>> {
        let before = &self.fields[..field];
        let skipped = |count: fn(&Type) -> usize| before.iter().map(|f| count(&f.stored)).sum();
        batch.buffers(skipped(Type::n_nodes), skipped(Type::n_buffers), skipped(Type::n_views))
    }

    fn dictionary(
        &self,
        id: i64,
        values: &Type,
        file: &mut File,
        origin: &Origin<'_>,
    ) -> Result<Values, DataError> {
        let batch = self.dictionaries.iter().rev().find(|(own, _)| *own == id);
        let wrong = || origin.corrupt(format!("its dictionary {id} is missing or broken"));
        let (_, batch) = batch.ok_or_else(wrong)?;
        let buffers = batch.buffers(0, 0, 0).ok_or_else(wrong)?;
        Values::read(values, buffers, batch, (file, origin))
    }
}

/// What messages say of themselves.
#[derive(Default)]
struct Scanned {
    fields: Option<Vec<Field>>,
    batches: Vec<Batch>,
    dictionaries: Vec<(i64, Batch)>,
    n_rows: usize,
}

impl Scanned {
    /// Reads the schema of a file's footer; where dictionaries and batches begin.
    fn read_footer(
        &mut self,
        file: &mut File,
        length: u64,
        origin: &Origin<'_>,
    ) -> Result<Vec<u64>, DataError> {
        const TAIL: u64 = 10;
        let cut = || origin.corrupt("it does not end as an Arrow file: it may be cut short");
        let at = length.checked_sub(TAIL).filter(|at| *at >= FIRST).ok_or_else(cut)?;
        let tail = origin.part(file, (at, TAIL))?;
        let (size, magic) = tail.split_first_chunk::<4>().ok_or_else(cut)?;
        let size = u64::from(u32::from_le_bytes(*size));
        let start = at.checked_sub(size).filter(|_| magic == MAGIC && size <= LARGEST);
        let start = start.ok_or_else(cut)?;
        let bytes = origin.part(file, (start, size))?;
        let broken = || origin.corrupt(format!("its footer at byte {start} is broken"));
        let footer = Flat::root(&bytes).ok_or_else(broken)?;
        self.fields = Some(schema::fields(&footer.table(1).ok_or_else(broken)?, origin)?);
        let places = [2, 3].map(|list| footer.offsets(list).unwrap_or_default()).concat();
        origin.meter.release(size + TAIL);
        Ok(places)
    }

    /// Reads the message at `at`, whose description lies at `place`; where the next one begins.
    fn read_message(
        &mut self,
        file: &mut File,
        (at, (start, size)): (u64, (u64, u64)),
        length: u64,
        origin: &Origin<'_>,
    ) -> Result<u64, DataError> {
        let bytes = origin.part(file, (start, size))?;
        let broken = || origin.corrupt(format!("the message at byte {at} is broken"));
        let flat = Flat::root(&bytes).ok_or_else(broken)?;
        let kind = flat.byte(1).ok_or_else(broken)?;
        let body = u64::try_from(flat.long(3).unwrap_or(0)).map_err(|_| broken())?;
        let (from, header) = (start + size, flat.table(2).ok_or_else(broken)?);
        if body > length.saturating_sub(from) {
            let claim = format!("the message at byte {at} claims a body of {body} bytes");
            return Err(origin.corrupt(claim));
        }
        match kind {
            schema::SCHEMA if self.fields.is_none() => {
                self.fields = Some(schema::fields(&header, origin)?);
            }
            schema::BATCH => {
                let batch = Batch::of(&header, (from, body), self.n_rows).ok_or_else(broken)?;
                self.n_rows = self.n_rows.checked_add(batch.n_rows).ok_or_else(broken)?;
                origin.charge_list(batch.listed_bytes(), "the list of its parts")?;
                self.batches.push(batch);
            }
            schema::DICTIONARY => {
                let data = header.table(1).ok_or_else(broken)?;
                let batch = Batch::of(&data, (from, body), 0).ok_or_else(broken)?;
                if header.byte(2).unwrap_or(0) != 0 {
                    return Err(unsupported(origin, "its dictionaries grow in the middle"));
                }
                self.dictionaries.push((header.long(0).unwrap_or(0), batch));
            }
            _ => {}
        }
        origin.meter.release(size);
        Ok(from + body)
    }
}

impl Columnar for Arrow {
    fn columns(&self) -> &Columns {
        &self.columns
    }

    fn n_rows(&self) -> usize {
        self.n_rows
    }

    fn holds_times(&self, column: usize) -> bool {
        let field = self.of_fields.get(column).map(|(field, _)| &self.fields[*field].stored);
        field.is_some_and(|stored| matches!(stored, Type::Time { .. }))
    }

    fn read(
        &self,
        column: usize,
        kept: &Kept,
        take: &mut Take<'_>,
        origin: &Origin<'_>,
    ) -> Result<(), DataError> {
        let Some(&(at, entry)) = self.of_fields.get(column) else { return Ok(()) };
        let field = &self.fields[at];
        if let Type::Other { .. } = field.stored {
            let detail = format!("the column `{}` has a type that is not read", field.name);
            return Err(unsupported(origin, &detail));
        }
        let mut file = self.file.borrow_mut();
        let dictionary = match &field.dictionary {
            Some((id, values)) => Some(self.dictionary(*id, values, &mut file, origin)?),
            None => None,
        };
        for batch in &self.batches {
            if !kept.any(batch.first..batch.first + batch.n_rows) {
                continue;
            }
            let wrong = |what: &str| {
                let (name, at) = (&field.name, batch.start);
                origin.corrupt(format!("column `{name}` of the batch at byte {at}: {what}"))
            };
            let buffers =
                self.buffers(at, batch).ok_or_else(|| wrong("its buffers are missing"))?;
            let values = Values::read(&field.stored, buffers, batch, (&mut file, origin))?;
            let short = || wrong("its buffers are too short");
            for from in (0..batch.n_rows).step_by(BATCH) {
                let rows = from..batch.n_rows.min(from + BATCH);
                let first = batch.first + from;
                match &dictionary {
                    Some(dictionary) => {
                        let places = values.numbers(rows, entry).ok_or_else(short)?;
                        let texts = dictionary.looked_up(&places).ok_or_else(short)?;
                        take(first, Piece::Texts(&texts))?;
                    }
                    None if field.stored.is_text() => {
                        let texts = values.texts(rows).ok_or_else(short)?;
                        take(first, Piece::Texts(&texts))?;
                    }
                    None => {
                        let numbers = values.numbers(rows, entry).ok_or_else(short)?;
                        take(first, Piece::Numbers(&numbers))?;
                    }
                }
            }
            origin.meter.release(values.bytes);
        }
        Ok(())
    }
}

/// Where the description of the message at `at` lies, and its bytes; none at the end.
fn message(
    file: &mut File,
    at: u64,
    length: u64,
    origin: &Origin<'_>,
) -> Result<Option<(u64, u64)>, DataError> {
    let there = length.saturating_sub(at).min(8);
    let head = origin.part(file, (at, there))?;
    origin.meter.release(there);
    let word = |at: usize| head.get(at..at + 4).map(|b| [b[0], b[1], b[2], b[3]]);
    let (size, start) = match (word(0), word(4)) {
        (None, _) => return Ok(None),
        (Some([0xff, 0xff, 0xff, 0xff]), Some(size)) => (u32::from_le_bytes(size), at + 8),
        // Before version 0.15, messages began with their size.
        (Some(size), _) => (u32::from_le_bytes(size), at + 4),
    };
    let size = u64::from(size);
    if size == 0 {
        return Ok(None);
    }
    if size > length.saturating_sub(start).min(LARGEST) {
        let claim = format!("the message at byte {at} claims {size} bytes");
        return Err(origin.corrupt(claim));
    }
    Ok(Some((start, size)))
}

fn unsupported(origin: &Origin<'_>, detail: &str) -> DataError {
    let detail = format!("{detail}; write it again as parquet, csv or npz");
    DataError::Unsupported { path: origin.path.to_path_buf(), detail }
}
