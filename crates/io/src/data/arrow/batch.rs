//! One record batch: where its buffers lie, and the values in them.

use std::fs::File;
use std::ops::Range;

use super::flat::Flat;
use super::schema::Type;
use crate::data::codec::{Codec, unpack};
use crate::data::dtype::{Dtype, Kind};
use crate::data::origin::Origin;
use crate::error::DataError;

/// Bytes that a buffer may unpack to.
const LARGEST: i64 = 1 << 32;

#[derive(Debug)]
pub(super) struct Batch {
    /// The row of the file that it begins with.
    pub first: usize,
    pub n_rows: usize,
    /// Where its body lies.
    pub start: u64,
    length: u64,
    nodes: Vec<(i64, i64)>,
    buffers: Vec<(i64, i64)>,
    codec: Codec,
    /// Buffers more that each column of views has.
    of_views: Vec<i64>,
}

/// The nodes and buffers of one field, and what follows.
#[derive(Clone, Copy)]
pub(super) struct Buffers<'a> {
    nodes: &'a [(i64, i64)],
    places: &'a [(i64, i64)],
    /// Buffers more, if it has views.
    of_views: usize,
}

impl Batch {
    pub fn of(flat: &Flat<'_>, (start, length): (u64, u64), first: usize) -> Option<Self> {
        let n_rows = usize::try_from(flat.long(0).unwrap_or(0)).ok()?;
        let codec = match flat.table(3).map(|packing| packing.byte(0).unwrap_or(0)) {
            None => Codec::None,
            Some(0) => Codec::Lz4Frame,
            Some(1) => Codec::Zstd,
            Some(_) => return None,
        };
        let nodes = flat.pairs(1).unwrap_or_default();
        let buffers = flat.pairs(2).unwrap_or_default();
        let of_views = flat.longs(4).unwrap_or_default();
        Some(Self { first, n_rows, start, length, nodes, buffers, codec, of_views })
    }

    pub fn listed_bytes(&self) -> u64 {
        16 * (self.nodes.len() + self.buffers.len()) as u64
    }

    /// Those of a field behind others with so many nodes, buffers and columns of views.
    pub fn buffers(&self, nodes: usize, buffers: usize, views: usize) -> Option<Buffers<'_>> {
        let more = |count: &i64| usize::try_from(*count).ok();
        let before = self.of_views.iter().take(views).map(more).sum::<Option<usize>>()?;
        let of_views = self.of_views.get(views).map_or(Some(0), more)?;
        let places = self.buffers.get(buffers.checked_add(before)?..)?;
        Some(Buffers { nodes: self.nodes.get(nodes..)?, places, of_views })
    }

    /// The bytes of a buffer, unpacked.
    fn read(
        &self,
        (offset, size): (i64, i64),
        (file, origin): (&mut File, &Origin<'_>),
    ) -> Result<Vec<u8>, DataError> {
        let inside = |offset: i64, size: i64| {
            let (offset, size) = (u64::try_from(offset).ok()?, u64::try_from(size).ok()?);
            (offset.checked_add(size)? <= self.length).then_some((self.start + offset, size))
        };
        let wrong = |what: &str| {
            origin.corrupt(format!("a buffer of the batch at byte {} {what}", self.start))
        };
        let place = inside(offset, size).ok_or_else(|| wrong("lies outside of its batch"))?;
        let bytes = origin.part(file, place)?;
        if self.codec == Codec::None || bytes.is_empty() {
            return Ok(bytes);
        }
        let (head, packed) = bytes.split_first_chunk::<8>().ok_or_else(|| wrong("is too short"))?;
        let size = i64::from_le_bytes(*head);
        if size == -1 {
            return Ok(packed.to_vec());
        }
        let size = Some(size).filter(|size| (0..LARGEST).contains(size));
        let size = size.ok_or_else(|| wrong("claims an impossible size"))? as usize;
        origin.charge(size as u64, "a buffer of a column")?;
        let found = unpack(self.codec, packed, size, origin)?;
        origin.meter.release(bytes.len() as u64);
        Ok(found)
    }
}

/// The values of a field in one batch.
pub(super) struct Values {
    /// A bit a row, set where a value is there; empty where all are.
    valid: Vec<u8>,
    rows: usize,
    data: Data,
    /// What it takes.
    pub bytes: u64,
}

enum Data {
    Numbers { bytes: Vec<u8>, kind: Kind, length: usize, parts: f64 },
    Bits(Vec<u8>),
    Texts { places: Vec<u8>, bytes: Vec<u8>, wide: bool },
    Views { views: Vec<u8>, texts: Vec<Vec<u8>> },
}

impl Values {
    pub fn read(
        stored: &Type,
        found: Buffers<'_>,
        batch: &Batch,
        (file, origin): (&mut File, &Origin<'_>),
    ) -> Result<Self, DataError> {
        let wrong = |what: &str| {
            origin.corrupt(format!("a column of the batch at byte {} {what}", batch.start))
        };
        let Some(&(rows, missing)) = found.nodes.first() else {
            return Err(wrong("has no rows"));
        };
        let rows = usize::try_from(rows).map_err(|_| wrong("has fewer than no rows"))?;
        let mut buffers = found.places.iter();
        let mut next = |file: &mut File| {
            let buffer = buffers.next().ok_or_else(|| wrong("has too few buffers"))?;
            batch.read(*buffer, (file, origin))
        };
        let valid = next(file)?;
        let valid = if missing == 0 { Vec::new() } else { valid };
        let data = match stored {
            Type::Number(kind) => {
                Data::Numbers { bytes: next(file)?, kind: *kind, length: 1, parts: 1.0 }
            }
            Type::Time { kind, parts } => {
                Data::Numbers { bytes: next(file)?, kind: *kind, length: 1, parts: *parts }
            }
            Type::Numbers { kind, length } => {
                if found.nodes.get(1).is_some_and(|(_, missing)| *missing != 0) {
                    return Err(wrong("has lists with missing values, which are not read"));
                }
                next(file)?;
                Data::Numbers { bytes: next(file)?, kind: *kind, length: *length, parts: 1.0 }
            }
            Type::Bits => Data::Bits(next(file)?),
            Type::Text { wide } => {
                Data::Texts { places: next(file)?, bytes: next(file)?, wide: *wide }
            }
            Type::Views => {
                let views = next(file)?;
                let mut texts = Vec::new();
                for _ in 0..found.of_views {
                    texts.push(next(file)?);
                }
                Data::Views { views, texts }
            }
            Type::Other { .. } => return Err(wrong("has a type that is not read")),
        };
        let bytes = valid.len() + data.size();
        Ok(Self { valid, rows, data, bytes: bytes as u64 })
    }

    fn is_there(&self, row: usize) -> Option<bool> {
        if self.valid.is_empty() {
            return Some(true);
        }
        Some(self.valid.get(row / 8)? >> (row % 8) & 1 == 1)
    }

    /// Numbers of some rows, NaN where one is missing; `entry` of each list.
    pub fn numbers(&self, rows: Range<usize>, entry: usize) -> Option<Vec<f64>> {
        let mut found = Vec::with_capacity(rows.len());
        match &self.data {
            Data::Numbers { bytes, kind, length, parts } => {
                let dtype = Dtype { kind: *kind, big_endian: false };
                let size = dtype.size();
                let step = size.checked_mul(*length)?;
                if *length == 1 {
                    let part = bytes.get(rows.start * size..rows.end.checked_mul(size)?)?;
                    dtype.decode(part, |number| found.push(number));
                } else {
                    for row in rows.clone() {
                        let from = row.checked_mul(step)? + entry * size;
                        dtype.decode(bytes.get(from..from + size)?, |number| found.push(number));
                    }
                }
                if *parts != 1.0 {
                    found.iter_mut().for_each(|number| *number /= parts);
                }
            }
            Data::Bits(bits) => {
                for row in rows.clone() {
                    found.push(f64::from(bits.get(row / 8)? >> (row % 8) & 1));
                }
            }
            Data::Texts { .. } | Data::Views { .. } => return None,
        }
        if !self.valid.is_empty() {
            for (number, row) in found.iter_mut().zip(rows) {
                if !self.is_there(row)? {
                    *number = f64::NAN;
                }
            }
        }
        Some(found)
    }

    /// Texts of some rows, none where one is missing.
    pub fn texts(&self, rows: Range<usize>) -> Option<Vec<Option<&[u8]>>> {
        rows.map(|row| if self.is_there(row)? { self.text(row).map(Some) } else { Some(None) })
            .collect()
    }

    fn text(&self, row: usize) -> Option<&[u8]> {
        match &self.data {
            Data::Texts { places, bytes, wide } => {
                let place = |row: usize| -> Option<usize> {
                    if *wide {
                        let found = places.get(row.checked_mul(8)?..)?.first_chunk()?;
                        usize::try_from(i64::from_le_bytes(*found)).ok()
                    } else {
                        let found = places.get(row.checked_mul(4)?..)?.first_chunk()?;
                        usize::try_from(i32::from_le_bytes(*found)).ok()
                    }
                };
                bytes.get(place(row)?..place(row + 1)?)
            }
            Data::Views { views, texts } => {
                /// The longest text that lies in the view itself.
                const INSIDE: usize = 12;
                let view: &[u8; 16] = views.get(row.checked_mul(16)?..)?.first_chunk()?;
                let word = |at: usize| {
                    u32::from_le_bytes([view[at], view[at + 1], view[at + 2], view[at + 3]])
                        as usize
                };
                let length = word(0);
                if length <= INSIDE {
                    return views.get(row * 16 + 4..row * 16 + 4 + length);
                }
                texts.get(word(8))?.get(word(12)..word(12).checked_add(length)?)
            }
            _ => None,
        }
    }

    /// The entries of this dictionary at some places, NaN for what is missing.
    pub fn looked_up(&self, places: &[f64]) -> Option<Vec<Option<&[u8]>>> {
        let one = |place: &f64| {
            if place.is_nan() {
                return Some(None);
            }
            let row = Some(*place).filter(|p| (0.0..self.rows as f64).contains(p))? as usize;
            self.texts(row..row + 1).map(|found| found[0])
        };
        places.iter().map(one).collect()
    }
}

impl Data {
    fn size(&self) -> usize {
        match self {
            Self::Numbers { bytes, .. } | Self::Bits(bytes) => bytes.len(),
            Self::Texts { places, bytes, .. } => places.len() + bytes.len(),
            Self::Views { views, texts } => views.len() + texts.iter().map(Vec::len).sum::<usize>(),
        }
    }
}
