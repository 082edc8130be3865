//! The pages of a column in one row group.

use std::fs::File;
use std::ops::Range;

use super::bits::Runs;
use super::footer::{Column, Place, Shape};
use super::plain::Values;
use super::thrift::{Answer, Reader, STRUCT, TRUE};
use crate::data::codec::{Codec, unpack};
use crate::data::kept::Kept;
use crate::data::origin::Origin;
use crate::data::table::{Piece, Take};
use crate::error::DataError;

/// Values handed on at a time.
const BATCH: usize = 1 << 13;
/// Bytes looked at for a page's header; more where it holds long statistics.
const HEADER: u64 = 1 << 10;
const LONGEST_HEADER: u64 = 1 << 20;
/// Bytes that a page may hold; writers make them of one megabyte.
const LARGEST_PAGE: u64 = 1 << 30;
/// Values that a page may hold: a number of 31 bits tells them.
const MOST_VALUES: u64 = i32::MAX as u64;

/// A column of one row group, being read.
pub(super) struct Chunk<'a> {
    column: &'a Column,
    place: &'a Place,
    /// The rows of the file that it has.
    rows: Range<usize>,
    length: u64,
    origin: &'a Origin<'a>,
    dictionary: Option<Dictionary>,
}

/// The values that pages refer to by number.
enum Dictionary {
    Numbers(Vec<f64>),
    Texts(Vec<Vec<u8>>),
}

#[derive(Debug, Default)]
struct Header {
    kind: i64,
    unpacked: u64,
    packed: u64,
    n_values: u64,
    encoding: i64,
    level_encoding: i64,
    /// Bytes of the two kinds of levels, of the second version, where they are never packed.
    levels: Option<(u64, u64)>,
    is_packed: bool,
}

const DATA: i64 = 0;
const DICTIONARY: i64 = 2;
const DATA_V2: i64 = 3;
const RLE: i64 = 3;

impl<'a> Chunk<'a> {
    pub fn new(
        column: &'a Column,
        place: &'a Place,
        rows: Range<usize>,
        length: u64,
        origin: &'a Origin<'a>,
    ) -> Self {
        Self { column, place, rows, length, origin, dictionary: None }
    }

    pub fn read(
        &mut self,
        file: &mut File,
        kept: &Kept,
        take: &mut Take<'_>,
    ) -> Result<(), DataError> {
        if self.place.n_values != self.rows.len() as u64 {
            return Err(self.wrong(
                self.place.start,
                &format!("{} values for {} rows", self.place.n_values, self.rows.len()),
            ));
        }
        let codec = self.place.codec.map_err(|number| DataError::Unsupported {
            path: self.origin.path.to_path_buf(),
            detail: format!(
                "the column `{}` is packed by a method that is not read (number {number}); write \
                 it with snappy, gzip, lz4 or zstd",
                self.column.name
            ),
        })?;
        let (mut at, mut row) = (self.place.start, self.rows.start);
        while row < self.rows.end {
            let (header, start) = self.header(file, at)?;
            at = start.saturating_add(header.packed);
            let rows = match header.kind {
                DATA | DATA_V2 => {
                    let left = (self.rows.end - row) as u64;
                    if header.n_values == 0 || header.n_values > left {
                        let claim = format!("a page of {} values", header.n_values);
                        return Err(self.wrong(start, &claim));
                    }
                    row..row + header.n_values as usize
                }
                _ => row..row,
            };
            row = rows.end;
            if header.kind != DICTIONARY && !kept.any(rows.clone()) {
                continue;
            }
            let taken = header.packed.saturating_add(header.unpacked);
            let packed = self.origin.part(file, (start, header.packed))?;
            self.origin.charge(header.unpacked, "a page of a column")?;
            let page = self.unpacked(&header, codec, packed)?;
            if header.kind == DICTIONARY {
                self.dictionary = Some(self.read_dictionary(&header, &page, start)?);
            } else {
                self.read_page(&header, &page, (rows, start), take)?;
            }
            self.origin.meter.release(taken);
        }
        Ok(())
    }

    /// The header at `at`, and where its page begins.
    fn header(&self, file: &mut File, at: u64) -> Result<(Header, u64), DataError> {
        let mut size = HEADER;
        loop {
            let there = self.length.saturating_sub(at).min(size);
            let bytes = self.origin.part(file, (at, there))?;
            self.origin.meter.release(there);
            let mut reader = Reader::new(&bytes);
            match header(&mut reader) {
                Ok(found) => {
                    let start = at + reader.at as u64;
                    let is_large = found.unpacked > LARGEST_PAGE || found.n_values > MOST_VALUES;
                    if found.packed > self.length - start || is_large {
                        let sizes = format!("{} bytes, {} unpacked", found.packed, found.unpacked);
                        return Err(self.wrong(at, &format!("a page claims to have {sizes}")));
                    }
                    return Ok((found, start));
                }
                Err(_) if there == size && size < LONGEST_HEADER => size *= 8,
                Err(bad) => return Err(self.wrong(at + bad.at as u64, "no page is here")),
            }
        }
    }

    /// The page's bytes with levels in front, however they came.
    fn unpacked(
        &self,
        header: &Header,
        codec: Codec,
        packed: Vec<u8>,
    ) -> Result<Vec<u8>, DataError> {
        let Some((definition, repetition)) = header.levels else {
            return unpack(codec, &packed, header.unpacked as usize, self.origin);
        };
        let levels = usize::try_from(definition.saturating_add(repetition)).unwrap_or(usize::MAX);
        let Some((mut page, rest)) = packed.split_at_checked(levels).map(|(l, r)| (l.to_vec(), r))
        else {
            return Err(self.origin.corrupt("the levels of a page are longer than the page"));
        };
        let codec = if header.is_packed { codec } else { Codec::None };
        let size = (header.unpacked as usize).saturating_sub(levels);
        // Nothing at all may stand for a page of missing values.
        if !(rest.is_empty() && size == 0) {
            page.extend(unpack(codec, rest, size, self.origin)?);
        }
        Ok(page)
    }

    fn read_dictionary(
        &self,
        header: &Header,
        page: &[u8],
        at: u64,
    ) -> Result<Dictionary, DataError> {
        let wrong = || self.wrong(at, "its dictionary is broken");
        let mut values = Values::new(0, self.column, page).ok_or_else(wrong)?;
        // A value takes a byte at least.
        if header.n_values > page.len() as u64 * 8 {
            return Err(wrong());
        }
        let count = header.n_values as usize;
        let bytes = header.n_values * 24;
        self.origin.charge(bytes, "the dictionary of a column")?;
        Ok(if self.column.shape == Shape::Text {
            let texts = (0..count).map(|_| values.text().map(<[u8]>::to_vec));
            Dictionary::Texts(texts.collect::<Option<_>>().ok_or_else(wrong)?)
        } else {
            let mut numbers = Vec::new();
            values.numbers(count, &mut numbers).ok_or_else(wrong)?;
            Dictionary::Numbers(numbers)
        })
    }

    fn read_page(
        &self,
        header: &Header,
        page: &[u8],
        (rows, at): (Range<usize>, u64),
        take: &mut Take<'_>,
    ) -> Result<(), DataError> {
        let wrong = |what: &str| self.wrong(at, what);
        let (levels, bytes) =
            self.levels(header, page).ok_or_else(|| wrong("the levels of a page are broken"))?;
        let mut source = self
            .source(header, bytes)
            .ok_or_else(|| wrong(&format!("an encoding that is not read ({})", header.encoding)))?;
        let mut levels = levels;
        let mut present = vec![self.column.max_level; BATCH];
        let mut start = rows.start;
        while start < rows.end {
            let count = (rows.end - start).min(BATCH);
            if let Some(levels) = &mut levels {
                let filled = levels.fill(&mut present[..count]);
                filled.ok_or_else(|| wrong("the levels of a page end early"))?;
            }
            let there = present[..count].iter().map(|level| *level == self.column.max_level);
            let done = if self.column.shape == Shape::Text {
                source.texts(there).map(|texts| take(start, Piece::Texts(&texts)))
            } else {
                source.numbers(there).map(|numbers| take(start, Piece::Numbers(&numbers)))
            };
            done.ok_or_else(|| {
                wrong("a page ends early, or refers to values that are not there")
            })??;
            start += count;
        }
        Ok(())
    }

    /// The levels of a page, where values may be missing, and what follows them.
    fn levels<'p>(&self, header: &Header, page: &'p [u8]) -> Option<(Option<Runs<'p>>, &'p [u8])> {
        let width = u32::BITS - self.column.max_level.leading_zeros();
        let (runs, rest) = match header.levels {
            Some((definition, repetition)) => {
                let (_, page) = page.split_at_checked(repetition as usize)?;
                page.split_at_checked(definition as usize)?
            }
            None if self.column.max_level == 0 => return Some((None, page)),
            None if header.level_encoding != RLE => return None,
            None => {
                let (length, page) = page.split_first_chunk::<4>()?;
                page.split_at_checked(u32::from_le_bytes(*length) as usize)?
            }
        };
        if self.column.max_level == 0 {
            return Some((None, rest));
        }
        Some((Some(Runs::new(runs, width)?), rest))
    }

    fn source<'p>(&'p self, header: &Header, bytes: &'p [u8]) -> Option<Source<'p>> {
        const BY_DICTIONARY: [i64; 2] = [2, 8];
        if BY_DICTIONARY.contains(&header.encoding) {
            let dictionary = self.dictionary.as_ref()?;
            // A page without a value may have no width.
            let (width, bytes) = bytes.split_first().map_or((0, bytes), |(w, b)| (*w, b));
            return Some(Source::Numbered(Runs::new(bytes, u32::from(width))?, dictionary));
        }
        if Values::is_runs(header.encoding, self.column) {
            let (_, bytes) = bytes.split_first_chunk::<4>()?;
            return Some(Source::Bits(Runs::new(bytes, 1)?));
        }
        Values::new(header.encoding, self.column, bytes).map(Source::Stored)
    }

    fn wrong(&self, at: u64, what: &str) -> DataError {
        self.origin.corrupt(format!("column `{}`, byte {at}: {what}", self.column.name))
    }
}

/// Where the values of a page come from.
enum Source<'a> {
    Stored(Values<'a>),
    Numbered(Runs<'a>, &'a Dictionary),
    Bits(Runs<'a>),
}

impl<'a> Source<'a> {
    /// Numbers, NaN where none is there.
    fn numbers(&mut self, there: impl Iterator<Item = bool> + Clone) -> Option<Vec<f64>> {
        let count = there.clone().filter(|there| *there).count();
        let mut found = Vec::with_capacity(BATCH);
        match self {
            Self::Stored(values) => values.numbers(count, &mut found)?,
            Self::Bits(runs) => {
                let mut bits = vec![0; count];
                runs.fill(&mut bits)?;
                found.extend(bits.into_iter().map(f64::from));
            }
            Self::Numbered(runs, Dictionary::Numbers(numbers)) => {
                let mut places = vec![0; count];
                runs.fill(&mut places)?;
                for place in places {
                    found.push(*numbers.get(place as usize)?);
                }
            }
            Self::Numbered(_, Dictionary::Texts(_)) => return None,
        }
        let mut next = found.iter();
        let spread = |there| if there { next.next().copied() } else { Some(f64::NAN) };
        if there.clone().all(|there| there) { Some(found) } else { there.map(spread).collect() }
    }

    /// Texts, none where there is none.
    fn texts(
        &mut self,
        there: impl Iterator<Item = bool> + Clone,
    ) -> Option<Vec<Option<&'a [u8]>>> {
        match self {
            Self::Stored(values) => there
                .map(|there| if there { values.text().map(Some) } else { Some(None) })
                .collect(),
            Self::Numbered(runs, Dictionary::Texts(texts)) => {
                let mut places = vec![0; there.clone().filter(|there| *there).count()];
                runs.fill(&mut places)?;
                let mut next = places.iter();
                let mut text = || texts.get(*next.next()? as usize).map(Vec::as_slice);
                there.map(|there| if there { text().map(Some) } else { Some(None) }).collect()
            }
            _ => None,
        }
    }
}

fn header(reader: &mut Reader<'_>) -> Answer<Header> {
    let mut found = Header { is_packed: true, level_encoding: RLE, ..Header::default() };
    reader.structure(|own, id, kind| {
        match id {
            1 => found.kind = own.integer()?,
            2 => found.unpacked = own.count()?,
            3 => found.packed = own.count()?,
            5 | 7 if kind == STRUCT => own.structure(|own, inner, _| {
                match inner {
                    1 => found.n_values = own.count()?,
                    2 => found.encoding = own.integer()?,
                    // Of a dictionary, whether it is sorted.
                    3 if id == 5 => found.level_encoding = own.integer()?,
                    _ => return Ok(false),
                }
                Ok(true)
            })?,
            8 if kind == STRUCT => second_version(own, &mut found)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(found)
}

fn second_version(reader: &mut Reader<'_>, found: &mut Header) -> Answer<()> {
    let (mut definition, mut repetition) = (0, 0);
    reader.structure(|own, id, kind| {
        match id {
            1 => found.n_values = own.count()?,
            4 => found.encoding = own.integer()?,
            5 => definition = own.count()?,
            6 => repetition = own.count()?,
            7 => found.is_packed = kind == TRUE,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    found.levels = Some((definition, repetition));
    Ok(())
}
