//! Chunks of an HDF5 dataset, unpacked a block at a time.
//!
//! The usual filters, deflate and shuffle, are undone here, so that a chunk of any size takes
//! little memory: the HDF5 crate would hold it packed, unpacked and put in order. Whatever else
//! there is (other filters, chunks that were never written) is left to the crate, and paid for.

use std::fs::File;
use std::io::{BufReader, Read};
use std::ops::Range;
use std::rc::Rc;

use ::flate2::bufread::ZlibDecoder;
use ::hdf5_pure::Chunk;

use super::dataset::Numbers;
use super::section::{InMemory, Planes, Section};
use crate::data::format::unreadable;
use crate::data::kept::Kept;
use crate::data::origin::Origin;
use crate::data::sink::Sink;
use crate::error::DataError;

const DEFLATE: u16 = 1;
const SHUFFLE: u16 = 2;

/// Bytes put into place at a time.
const BLOCK: usize = 1 << 16;

/// The chunks of a dataset, all of them written, and how they are packed.
pub(super) struct Chunks<'a> {
    numbers: &'a Numbers,
    /// In the order of their places in the array.
    list: Vec<Chunk>,
    /// Sizes of a chunk along each axis.
    shape: Vec<usize>,
    shuffled: bool,
    deflated: bool,
    file: Rc<File>,
}

impl<'a> Chunks<'a> {
    /// The chunks, where they can be unpacked here.
    pub fn of(numbers: &'a Numbers, origin: &Origin<'_>) -> Result<Option<Self>, DataError> {
        let Some(shape) = numbers.chunk_shape(origin)? else { return Ok(None) };
        let (shuffled, deflated) = match *numbers.dataset.filters() {
            [] => (false, false),
            [DEFLATE] => (false, true),
            [SHUFFLE] => (true, false),
            [SHUFFLE, DEFLATE] => (true, true),
            _ => return Ok(None),
        };
        let Ok(mut chunks) = numbers.dataset.chunks() else { return Ok(None) };
        let whole = chunks.len() as u64 == numbers.n_chunks(origin)?
            && chunks.iter().all(|chunk| chunk.filter_mask == 0)
            && chunks.iter().all(|chunk| chunk.offset.len() == shape.len());
        let room =
            shape.iter().fold(numbers.dtype.size() as u64, |n, size| n.saturating_mul(*size));
        if !whole || shape.len() != numbers.shape.len() || room > isize::MAX as u64 {
            return Ok(None);
        }
        chunks.sort_by(|a, b| a.offset.cmp(&b.offset));
        let file = File::open(origin.path).map_err(|error| unreadable(origin.path, error))?;
        let shape = shape.into_iter().map(|size| size as usize).collect();
        Ok(Some(Self { numbers, list: chunks, shape, shuffled, deflated, file: Rc::new(file) }))
    }

    /// Puts the kept ones of the first `rows` rows, which are rows `first..` of the whole array.
    pub fn read_into(
        &self,
        rows: usize,
        first: usize,
        kept: &Kept,
        sink: &mut Sink<'_>,
        origin: &Origin<'_>,
    ) -> Result<(), DataError> {
        for chunk in &self.list {
            let start = chunk.offset[0] as usize;
            let end = start.saturating_add(self.shape[0]).min(rows);
            let wanted = kept.parts(first + start.min(end)..first + end);
            // Rows after the last that is kept need not be unpacked.
            let Some(end) = wanted.map(|(part, _)| part.end - first).max() else { continue };
            self.read_chunk(chunk, end, first, sink, origin)?;
        }
        Ok(())
    }

    /// Bytes of an unpacked chunk.
    fn chunk_bytes(&self) -> usize {
        self.shape.iter().product::<usize>() * self.numbers.dtype.size()
    }

    fn read_chunk(
        &self,
        chunk: &Chunk,
        end: usize,
        first: usize,
        sink: &mut Sink<'_>,
        origin: &Origin<'_>,
    ) -> Result<(), DataError> {
        let numbers = self.numbers;
        let failed = |error| origin.read_failed(&format!("array `{}`", numbers.key), error);
        // A number's bytes lie far apart where they are shuffled: the chunk is unpacked whole if
        // there is room for it, else once for each of them.
        let whole =
            self.shuffled && self.deflated && origin.meter.has_room(self.chunk_bytes() as u64);
        let scratch = if whole { self.chunk_bytes() as u64 } else { 0 };
        origin.meter.charge(scratch, &format!("unpacking `{}`", numbers.key), origin.path)?;
        let mut bytes = self.bytes(chunk, whole).map_err(failed)?;
        let size = numbers.dtype.size();
        let mut block = vec![0u8; BLOCK];
        let mut read = 0;
        for run in self.runs(chunk, end) {
            let mut done = 0;
            while done < run.length {
                let count = (run.length - done).min(BLOCK / size);
                let part = &mut block[..count * size];
                bytes.read_exact(part).map_err(failed)?;
                let inside = count.min(run.inside.saturating_sub(done));
                let place = first * numbers.columns + run.place + done;
                sink.put(place, numbers.dtype, &part[..inside * size]);
                done += count;
            }
            read += run.length * size;
        }
        // The end of deflated bytes has their checksum, and nothing may follow.
        let more =
            read == self.chunk_bytes() && bytes.read(&mut block[..size]).map_err(failed)? > 0;
        if more {
            return Err(origin.corrupt(format!("a chunk of `{}` is too long", numbers.key)));
        }
        origin.meter.release(scratch);
        Ok(())
    }

    /// The numbers of a chunk that lie side by side, up to the row `end`, in the chunk's order.
    fn runs(&self, chunk: &Chunk, end: usize) -> Vec<Run> {
        let sizes: Vec<usize> = self.numbers.shape.iter().map(|&size| size as usize).collect();
        let offset: Vec<usize> = chunk.offset.iter().map(|&start| start as usize).collect();
        let row = offset[0];
        let full = sizes[1..] == self.shape[1..];
        if full {
            let columns = self.numbers.columns;
            // To the chunk's own end where that is the last row wanted.
            let all = end == (row + self.shape[0]).min(sizes[0]);
            let inside = (end - row) * columns;
            let length = if all { self.shape[0] * columns } else { inside };
            return vec![Run { place: row * columns, inside, length }];
        }
        let last = sizes.len() - 1;
        let inner = if last == 2 { 0..self.shape[1] } else { 0..1 };
        let rows: Range<usize> = if end == (row + self.shape[0]).min(sizes[0]) {
            0..self.shape[0]
        } else {
            0..end - row
        };
        let mut runs = Vec::new();
        for i in rows {
            for j in inner.clone() {
                let (middle, n_middle) = if last == 2 { (offset[1] + j, sizes[1]) } else { (0, 1) };
                let outside = row + i >= end || middle >= n_middle;
                let inside = sizes[last].saturating_sub(offset[last]).min(self.shape[last]);
                let place = ((row + i) * n_middle + middle) * sizes[last] + offset[last];
                let inside = if outside { 0 } else { inside };
                runs.push(Run { place, inside, length: self.shape[last] });
            }
        }
        runs
    }

    /// The bytes of a chunk, number after number.
    fn bytes(&self, chunk: &Chunk, whole: bool) -> std::io::Result<Box<dyn Read>> {
        let packed = |skip: u64| Section::new(&self.file, chunk.address, chunk.storage_size, skip);
        let size = self.numbers.dtype.size();
        // What is left over at the end of a shuffled chunk would be in order; there is nothing
        // left.
        let plane = self.chunk_bytes() / size;
        let inflated = || ZlibDecoder::new(BufReader::new(packed(0)));
        if !self.shuffled || size == 1 {
            return Ok(if self.deflated {
                Box::new(inflated())
            } else {
                Box::new(BufReader::new(packed(0)))
            });
        }
        let mut planes: Vec<Box<dyn Read>> = Vec::new();
        if whole {
            let mut unpacked = vec![0u8; self.chunk_bytes()];
            let mut stream = inflated();
            stream.read_exact(&mut unpacked)?;
            if stream.read(&mut [0])? > 0 {
                return Err(std::io::ErrorKind::InvalidData.into());
            }
            let unpacked = Rc::new(unpacked);
            for k in 0..size {
                planes.push(Box::new(InMemory::new(&unpacked, k * plane..(k + 1) * plane)));
            }
        } else {
            for k in 0..size {
                let skip = (k * plane) as u64;
                if self.deflated {
                    let mut stream = inflated();
                    std::io::copy(&mut stream.by_ref().take(skip), &mut std::io::sink())?;
                    planes.push(Box::new(stream.take(plane as u64)));
                } else {
                    planes.push(Box::new(BufReader::new(packed(skip)).take(plane as u64)));
                }
            }
        }
        Ok(Box::new(Planes::new(planes)))
    }
}

/// Numbers that lie side by side in a chunk and in the array.
struct Run {
    /// Where the first stands in the array, counted in numbers.
    place: usize,
    /// How many are inside the array and wanted.
    inside: usize,
    /// How many there are in the chunk.
    length: usize,
}
