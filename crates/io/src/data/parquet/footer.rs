//! What a parquet file says of itself: its columns, and where their parts lie.

use std::fs::File;

use super::MAGIC;
use super::thrift::{Answer, Bad, LIST, Reader, STRUCT};
use crate::data::codec::Codec;
use crate::data::origin::Origin;
use crate::error::{DataError, shortened};

/// Bytes that the list of parts takes for one.
const CHUNK_BYTES: u64 = 64;

#[derive(Debug, Default)]
pub(super) struct Footer {
    pub n_rows: usize,
    pub columns: Vec<Column>,
    pub groups: Vec<Group>,
}

/// A column of single values.
#[derive(Debug)]
pub(super) struct Column {
    pub name: String,
    pub physical: i64,
    /// Bytes of a value, where all have the same.
    pub width: usize,
    pub shape: Shape,
    /// The level of a value that is there; less where one around it is missing.
    pub max_level: u32,
}

/// What a value means.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Shape {
    /// The number stored.
    Number,
    /// The same without a sign.
    Unsigned,
    /// A whole number of parts, of which there are so many to one.
    Parts(f64),
    /// The same of a time, in seconds.
    Seconds(f64),
    Half,
    Text,
    Unreadable(&'static str),
}

#[derive(Debug)]
pub(super) struct Group {
    pub n_rows: usize,
    pub chunks: Vec<Place>,
}

/// Where a column of a row group lies.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub start: u64,
    pub n_values: u64,
    pub codec: Result<Codec, i64>,
}

/// Physical types.
pub(super) const BOOLEAN: i64 = 0;
pub(super) const INT32: i64 = 1;
pub(super) const INT64: i64 = 2;
pub(super) const FLOAT: i64 = 4;
pub(super) const DOUBLE: i64 = 5;
pub(super) const BYTES: i64 = 6;
pub(super) const FIXED: i64 = 7;

impl Footer {
    pub fn read(file: &mut File, length: u64, origin: &Origin<'_>) -> Result<Self, DataError> {
        const TAIL: u64 = 8;
        if length < 12 {
            return Err(origin.corrupt(format!("{length} bytes are too few")));
        }
        let tail = origin.part(file, (length - TAIL, TAIL))?;
        let (size, magic) = tail.split_at(4);
        if magic == b"PARE" {
            let detail = "it is encrypted; write it without encryption".to_owned();
            return Err(DataError::Unsupported { path: origin.path.to_path_buf(), detail });
        }
        if magic != MAGIC {
            return Err(origin.corrupt("it does not end as a parquet file: it may be cut short"));
        }
        let size = u64::from(u32::from_le_bytes([size[0], size[1], size[2], size[3]]));
        let start = (length - TAIL).checked_sub(size).filter(|start| *start >= 4);
        let Some(start) = start else {
            let claim = format!("a footer of {size} bytes is claimed in a file of {length}");
            return Err(origin.corrupt(claim));
        };
        let bytes = origin.part(file, (start, size))?;
        let wrong = |bad: Bad| {
            origin.corrupt(format!("its footer is broken at byte {}", start + bad.at as u64))
        };
        let mut schema = Vec::new();
        let mut footer = Self::default();
        let mut n_rows = 0;
        let mut reader = Reader::new(&bytes);
        let read = |own: &mut Reader<'_>, id: i16, kind: u8| match (id, kind) {
            (2, LIST) => {
                own.list(|own, _| element(own).map(|found| schema.push(found)))?;
                Ok(true)
            }
            (3, _) => own.count().map(|found| n_rows = found).map(|()| true),
            (4, LIST) => {
                own.list(|own, _| group(own).map(|found| footer.groups.push(found)))?;
                Ok(true)
            }
            _ => Ok(false),
        };
        reader.structure(read).map_err(wrong)?;
        let n_chunks = footer.groups.iter().map(|group| group.chunks.len() as u64).sum::<u64>();
        origin.charge_list(n_chunks * CHUNK_BYTES, "the list of its columns")?;
        origin.meter.release(size + TAIL);
        footer.columns = columns(&schema).ok_or_else(|| origin.corrupt("its schema is broken"))?;
        footer.check(n_rows, origin)?;
        Ok(footer)
    }

    /// Every row group has a part of every column, and as many rows as are told in all.
    fn check(&mut self, n_rows: u64, origin: &Origin<'_>) -> Result<(), DataError> {
        let mut sum = 0usize;
        for (at, group) in self.groups.iter().enumerate() {
            if group.chunks.len() != self.columns.len() {
                return Err(origin.corrupt(format!(
                    "row group {at} has {} columns where the schema has {}",
                    group.chunks.len(),
                    self.columns.len()
                )));
            }
            sum = sum.saturating_add(group.n_rows);
        }
        if sum as u64 != n_rows {
            let rows = format!("its row groups have {sum} rows where {n_rows} are told in all");
            return Err(origin.corrupt(rows));
        }
        self.n_rows = sum;
        Ok(())
    }
}

/// An entry of the schema, which lists a tree depth first.
#[derive(Debug, Default)]
struct Element {
    name: String,
    physical: Option<i64>,
    width: usize,
    repetition: i64,
    n_children: u64,
    converted: Option<i64>,
    scale: i64,
    logical: Option<Logical>,
}

#[derive(Debug, Clone, Copy)]
struct Logical {
    kind: i16,
    /// Whether integers are signed; the unit of times, as a power of a thousandth.
    signed: bool,
    unit: i32,
    scale: i64,
}

fn element(reader: &mut Reader<'_>) -> Answer<Element> {
    let mut found = Element::default();
    reader.structure(|own, id, kind| {
        match id {
            1 => found.physical = Some(own.integer()?),
            2 => found.width = usize::try_from(own.count()?).unwrap_or(usize::MAX),
            3 => found.repetition = own.integer()?,
            4 => found.name = shortened(&String::from_utf8_lossy(own.binary()?)),
            5 => found.n_children = own.count()?,
            6 => found.converted = Some(own.integer()?),
            7 => found.scale = own.integer()?,
            10 if kind == STRUCT => found.logical = logical(own)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(found)
}

/// A union: the one field that is there says what it is.
fn logical(reader: &mut Reader<'_>) -> Answer<Option<Logical>> {
    let mut found = None;
    reader.structure(|own, kind, field| {
        let mut logical = Logical { kind, signed: true, unit: 0, scale: 0 };
        if field != STRUCT {
            return Ok(false);
        }
        own.structure(|own, id, field| match (kind, id) {
            // DECIMAL, TIME and TIMESTAMP, INTEGER.
            (5, 1) => own.integer().map(|scale| logical.scale = scale).map(|()| true),
            (7 | 8, 2) if field == STRUCT => {
                own.structure(|_, unit, _| {
                    logical.unit = i32::from(unit);
                    Ok(false)
                })?;
                Ok(true)
            }
            (10, 2) => {
                logical.signed = field == super::thrift::TRUE;
                Ok(true)
            }
            _ => Ok(false),
        })?;
        found = Some(logical);
        Ok(true)
    })?;
    Ok(found)
}

fn group(reader: &mut Reader<'_>) -> Answer<Group> {
    let mut found = Group { n_rows: 0, chunks: Vec::new() };
    reader.structure(|own, id, kind| {
        match (id, kind) {
            (1, LIST) => own.list(|own, _| chunk(own).map(|place| found.chunks.push(place)))?,
            (3, _) => {
                let at = own.at;
                found.n_rows = usize::try_from(own.count()?).map_err(|_| Bad { at })?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(found)
}

fn chunk(reader: &mut Reader<'_>) -> Answer<Place> {
    let mut found = Place { start: 0, n_values: 0, codec: Ok(Codec::None) };
    reader.structure(|own, id, kind| {
        if (id, kind) != (3, STRUCT) {
            return Ok(false);
        }
        let (mut data, mut dictionary) = (0, None);
        own.structure(|own, id, _| {
            match id {
                4 => found.codec = codec(own.integer()?),
                5 => found.n_values = own.count()?,
                9 => data = own.count()?,
                11 => dictionary = Some(own.count()?).filter(|offset| *offset > 0),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        found.start = dictionary.map_or(data, |offset| offset.min(data));
        Ok(true)
    })?;
    Ok(found)
}

fn codec(number: i64) -> Result<Codec, i64> {
    match number {
        0 => Ok(Codec::None),
        1 => Ok(Codec::Snappy),
        2 => Ok(Codec::Gzip),
        6 => Ok(Codec::Zstd),
        7 => Ok(Codec::Lz4),
        other => Err(other),
    }
}

/// The leaves of the schema; none where it is no tree.
fn columns(schema: &[Element]) -> Option<Vec<Column>> {
    let mut elements = schema.iter();
    let root = elements.next()?;
    let mut columns = Vec::new();
    // Around the next entry: names, levels, whether anything repeats, and entries still to come.
    let mut around = vec![(String::new(), 0u32, false, root.n_children)];
    for element in elements {
        while around.last()?.3 == 0 {
            around.pop();
        }
        let (prefix, level, repeats, left) = around.last_mut()?;
        *left -= 1;
        let level = *level + u32::from(element.repetition != 0);
        let repeats = *repeats || element.repetition == 2;
        let name = format!("{prefix}{}", element.name);
        match element.physical {
            Some(physical) => columns.push(Column {
                shape: if repeats { Shape::Unreadable(LISTS) } else { shape(element, physical) },
                name,
                physical,
                width: width(physical, element.width),
                max_level: level,
            }),
            None => around.push((format!("{name}."), level, repeats, element.n_children)),
        }
    }
    around.iter().all(|(_, _, _, left)| *left == 0).then_some(columns)
}

const LISTS: &str = "holds lists, which are not read";

fn width(physical: i64, fixed: usize) -> usize {
    match physical {
        INT32 | FLOAT => 4,
        INT64 | DOUBLE => 8,
        FIXED => fixed,
        _ => 0,
    }
}

fn shape(element: &Element, physical: i64) -> Shape {
    let power = |exponent: i64| 10f64.powi(exponent.clamp(0, 400) as i32);
    let logical = element.logical.map(|logical| (logical.kind, logical));
    match (physical, logical, element.converted) {
        (BYTES, _, _) => Shape::Text,
        (FIXED, Some((15, _)), _) if element.width == 2 => Shape::Half,
        (FIXED, _, _) => Shape::Unreadable("holds bytes"),
        (INT32 | INT64, Some((5, logical)), _) => Shape::Parts(power(logical.scale)),
        (INT32 | INT64, None, Some(5)) => Shape::Parts(power(element.scale)),
        // Dates are days, times and time stamps parts of a second: all become seconds.
        (INT32, Some((6, _)), _) | (INT32, None, Some(6)) => Shape::Seconds(1.0 / 86_400.0),
        (INT32 | INT64, Some((7 | 8, logical)), _) => {
            Shape::Seconds(1000f64.powi(logical.unit.clamp(1, 3)))
        }
        (INT32 | INT64, None, Some(7 | 9)) => Shape::Seconds(1e3),
        (INT64, None, Some(8 | 10)) => Shape::Seconds(1e6),
        (INT32 | INT64, Some((10, Logical { signed: false, .. })), _)
        | (INT32 | INT64, None, Some(11..=14)) => Shape::Unsigned,
        (BOOLEAN | INT32 | INT64 | FLOAT | DOUBLE, _, _) => Shape::Number,
        _ => Shape::Unreadable("has a type that is not read"),
    }
}
