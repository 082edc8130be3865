//! Streams over parts of a file and of memory.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::rc::Rc;

/// Some bytes of a file that others read as well.
pub(super) struct Section {
    file: Rc<File>,
    bytes: Range<u64>,
}

impl Section {
    /// The bytes of a part of the file, without the first `skip`.
    pub fn new(file: &Rc<File>, start: u64, length: u64, skip: u64) -> Self {
        let end = start.saturating_add(length);
        Self { file: Rc::clone(file), bytes: start.saturating_add(skip).min(end)..end }
    }
}

impl Read for Section {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.bytes.end - self.bytes.start;
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        if most == 0 {
            return Ok(0);
        }
        let mut file = self.file.as_ref();
        file.seek(SeekFrom::Start(self.bytes.start))?;
        let count = file.read(&mut buffer[..most])?;
        self.bytes.start += count as u64;
        Ok(count)
    }
}

/// Some bytes of memory that others read as well.
pub(super) struct InMemory {
    all: Rc<Vec<u8>>,
    part: Range<usize>,
}

impl InMemory {
    pub fn new(all: &Rc<Vec<u8>>, part: Range<usize>) -> Self {
        Self { all: Rc::clone(all), part }
    }
}

impl Read for InMemory {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.part.len().min(buffer.len());
        buffer[..count].copy_from_slice(&self.all[self.part.start..self.part.start + count]);
        self.part.start += count;
        Ok(count)
    }
}

/// Numbers whose first bytes come first, then their second bytes, and so on, put together again.
///
/// Reads whole numbers: as many bytes as there are planes, or a multiple of it.
pub(super) struct Planes {
    planes: Vec<Box<dyn Read>>,
    block: Vec<u8>,
}

impl Planes {
    pub fn new(planes: Vec<Box<dyn Read>>) -> Self {
        Self { planes, block: Vec::new() }
    }
}

impl Read for Planes {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size = self.planes.len();
        let count = buffer.len() / size;
        self.block.resize(count * size, 0);
        for (k, plane) in self.planes.iter_mut().enumerate() {
            let bytes = &mut self.block[k * count..(k + 1) * count];
            let mut filled = 0;
            while filled < count {
                match plane.read(&mut bytes[filled..])? {
                    // The end is the end of all planes, or the data ends early.
                    0 if k == 0 && filled == 0 => return Ok(0),
                    0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                    more => filled += more,
                }
            }
        }
        match size {
            2 => interleave::<2>(&self.block, buffer),
            4 => interleave::<4>(&self.block, buffer),
            8 => interleave::<8>(&self.block, buffer),
            _ => {
                for (i, number) in buffer.chunks_exact_mut(size).enumerate() {
                    number.iter_mut().enumerate().for_each(|(k, b)| *b = self.block[k * count + i]);
                }
            }
        }
        Ok(count * size)
    }
}

/// Puts numbers of `N` bytes together whose bytes lie in `N` planes one after the other.
fn interleave<const N: usize>(block: &[u8], out: &mut [u8]) {
    let count = block.len() / N;
    let planes: [&[u8]; N] = std::array::from_fn(|k| &block[k * count..(k + 1) * count]);
    for (i, number) in out.as_chunks_mut::<N>().0.iter_mut().take(count).enumerate() {
        *number = std::array::from_fn(|k| planes[k][i]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planes_become_numbers() {
        let all = Rc::new(b"abcABC123".to_vec());
        let planes = (0..3).map(|k| {
            let plane: Box<dyn Read> = Box::new(InMemory::new(&all, 3 * k..3 * k + 3));
            plane
        });
        let mut bytes = Planes::new(planes.collect());
        let mut out = [0; 6];
        bytes.read_exact(&mut out).unwrap();
        assert_eq!(&out, b"aA1bB2");
        bytes.read_exact(&mut out[..3]).unwrap();
        assert_eq!(&out[..3], b"cC3");
        assert_eq!(bytes.read(&mut out[..3]).unwrap(), 0);
        let mut pairs = [0; 4];
        interleave::<2>(b"abAB", &mut pairs);
        assert_eq!(&pairs, b"aAbB");
    }
}
