//! Blocks of bytes that columns are packed in: gzip, snappy, lz4 and zstd.
//!
//! Room grows with what comes out, never ahead of it: a size that a file claims is only the most
//! that is taken.

use std::io::Read;

use super::origin::Origin;
use crate::error::DataError;

/// How a block is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    None,
    Snappy,
    Gzip,
    /// One block after the other, as LZ4's frames have it.
    Lz4Frame,
    /// One block.
    Lz4,
    Zstd,
}

/// What a block holds, which is exactly `size` bytes.
pub(super) fn unpack(
    codec: Codec,
    packed: &[u8],
    size: usize,
    origin: &Origin<'_>,
) -> Result<Vec<u8>, DataError> {
    let mut out = Vec::new();
    let done = match codec {
        Codec::None => {
            out.extend_from_slice(packed);
            Some(())
        }
        Codec::Snappy => snappy(packed, size, &mut out),
        Codec::Lz4 => lz4(packed, size, &mut out),
        Codec::Lz4Frame => lz4_frame(packed, size, &mut out),
        Codec::Gzip => {
            let inner = flate2::read::MultiGzDecoder::new(packed);
            inner.take(size as u64 + 1).read_to_end(&mut out).ok().map(|_| ())
        }
        Codec::Zstd => {
            let inner = zstd::stream(packed, origin)?;
            inner.take(size as u64 + 1).read_to_end(&mut out).ok().map(|_| ())
        }
    };
    if done.is_none() || out.len() != size {
        return Err(origin.corrupt(format!(
            "a block of {} bytes, packed by {codec:?}, does not hold the {size} it claims",
            packed.len()
        )));
    }
    Ok(out)
}

/// Snappy's format: a length, then literals and copies of what came before.
fn snappy(packed: &[u8], size: usize, out: &mut Vec<u8>) -> Option<()> {
    let mut bytes = Bytes(packed);
    let mut length = 0u64;
    for shift in (0..35).step_by(7) {
        let byte = bytes.one()?;
        length |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    if length != size as u64 {
        return None;
    }
    while !bytes.0.is_empty() {
        let tag = usize::from(bytes.one()?);
        match tag & 3 {
            0 => {
                let length = match tag >> 2 {
                    short @ 0..60 => short,
                    long => bytes.little(long - 59)?,
                };
                put(bytes.many(length.checked_add(1)?)?, size, out)?;
            }
            1 => {
                let far = (tag >> 5) << 8 | usize::from(bytes.one()?);
                again(far, 4 + (tag >> 2 & 7), size, out)?;
            }
            kind => {
                let far = bytes.little(if kind == 2 { 2 } else { 4 })?;
                again(far, 1 + (tag >> 2), size, out)?;
            }
        }
    }
    Some(())
}

/// LZ4's block format: literals, then a copy of what came before, and again.
fn lz4(packed: &[u8], size: usize, out: &mut Vec<u8>) -> Option<()> {
    /// The shortest copy.
    const SHORTEST: usize = 4;
    let mut bytes = Bytes(packed);
    while !bytes.0.is_empty() {
        let token = usize::from(bytes.one()?);
        let literals = bytes.extended(token >> 4)?;
        put(bytes.many(literals)?, size, out)?;
        if bytes.0.is_empty() {
            break;
        }
        let far = bytes.little(2)?;
        let length = bytes.extended(token & 15)?;
        again(far, length.checked_add(SHORTEST)?, size, out)?;
    }
    Some(())
}

/// LZ4's frame format. Checksums are not compared.
fn lz4_frame(packed: &[u8], size: usize, out: &mut Vec<u8>) -> Option<()> {
    const MAGIC: usize = 0x184d_2204;
    const STORED: usize = 1 << 31;
    let mut bytes = Bytes(packed);
    while !bytes.0.is_empty() {
        if bytes.little(4)? != MAGIC {
            return None;
        }
        let flags = bytes.one()?;
        let [block_sums, has_size, content_sum, dictionary] =
            [0x10, 0x08, 0x04, 0x01].map(|bit| flags & bit != 0);
        // The block size, the content's size, a dictionary's name, and the header's checksum.
        bytes.many(2 + if has_size { 8 } else { 0 } + if dictionary { 4 } else { 0 })?;
        loop {
            let head = bytes.little(4)?;
            if head == 0 {
                break;
            }
            let block = bytes.many(head & !STORED)?;
            if head & STORED == 0 {
                lz4(block, size, out)?;
            } else {
                put(block, size, out)?;
            }
            if block_sums {
                bytes.many(4)?;
            }
        }
        if content_sum {
            bytes.many(4)?;
        }
    }
    Some(())
}

fn put(literals: &[u8], size: usize, out: &mut Vec<u8>) -> Option<()> {
    (literals.len() <= size - out.len()).then(|| out.extend_from_slice(literals))
}

/// Copies `length` bytes from `far` back; they may overlap what is being written.
fn again(far: usize, length: usize, size: usize, out: &mut Vec<u8>) -> Option<()> {
    if length > size - out.len() {
        return None;
    }
    let from = out.len().checked_sub(far).filter(|_| far > 0)?;
    if far >= length {
        out.extend_from_within(from..from + length);
    } else {
        for at in from..from + length {
            out.push(out[at]);
        }
    }
    Some(())
}

/// Bytes still to be read.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn one(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn many(&mut self, count: usize) -> Option<&'a [u8]> {
        let (first, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(first)
    }

    /// A number of up to four bytes, the lowest first.
    fn little(&mut self, count: usize) -> Option<usize> {
        let bytes = self.many(count)?;
        Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte)))
    }

    /// A length of four bits that goes on where it is 15, and on where a byte is 255.
    fn extended(&mut self, start: usize) -> Option<usize> {
        let mut length = start;
        if start == 15 {
            loop {
                let byte = self.one()?;
                length = length.checked_add(usize::from(byte))?;
                if byte < 255 {
                    break;
                }
            }
        }
        Some(length)
    }
}

#[cfg(feature = "zstd")]
pub(super) mod zstd {
    use std::io::{self, Read};

    use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

    use crate::data::origin::Origin;
    use crate::error::DataError;

    /// The most that a frame may look back, as `zstd` itself has it without `--long`.
    const WINDOW: u64 = 8 << 20;

    /// Frames one after the other.
    pub(in crate::data) struct Frames<R: Read> {
        frame: Option<StreamingDecoder<OneMore<R>, FrameDecoder>>,
        window: u64,
    }

    /// A reader that can be asked whether there is more.
    pub(in crate::data) struct OneMore<R> {
        next: Option<u8>,
        source: R,
    }

    impl<R: Read> Read for OneMore<R> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match (self.next, buffer.first_mut()) {
                (Some(byte), Some(first)) => {
                    *first = byte;
                    self.next = None;
                    Ok(1)
                }
                _ => self.source.read(buffer),
            }
        }
    }

    impl<R: Read> OneMore<R> {
        fn has_more(&mut self) -> io::Result<bool> {
            let mut byte = [0];
            if self.next.is_none() && self.source.read(&mut byte)? == 1 {
                self.next = Some(byte[0]);
            }
            Ok(self.next.is_some())
        }
    }

    /// What zstd packed, unpacked while it is read.
    pub(in crate::data) fn stream<R: Read>(
        source: R,
        origin: &Origin<'_>,
    ) -> Result<Frames<R>, DataError> {
        let window = origin.meter.left().map_or(WINDOW, |left| (left / 4).min(WINDOW));
        let source = OneMore { next: None, source };
        let frame = open(source, window).map_err(|error| origin.read_failed("zstd", error))?;
        Ok(Frames { frame: Some(frame), window })
    }

    fn open<R: Read>(
        source: OneMore<R>,
        window: u64,
    ) -> io::Result<StreamingDecoder<OneMore<R>, FrameDecoder>> {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(window);
        StreamingDecoder::new_with_decoder(source, decoder)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))
    }

    impl<R: Read> Read for Frames<R> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            while let Some(frame) = &mut self.frame {
                let count = frame.read(buffer)?;
                if count > 0 || buffer.is_empty() {
                    return Ok(count);
                }
                let mut source = self.frame.take().map(StreamingDecoder::into_inner);
                if let Some(source) = source.take_if(|s| s.has_more().unwrap_or(true)) {
                    self.frame = Some(open(source, self.window)?);
                }
            }
            Ok(0)
        }
    }
}

#[cfg(not(feature = "zstd"))]
pub(super) mod zstd {
    use std::io::{Empty, Read, empty};

    use crate::data::origin::Origin;
    use crate::error::DataError;

    /// Refused: this build has no zstd.
    pub(in crate::data) fn stream<R: Read>(_: R, origin: &Origin<'_>) -> Result<Empty, DataError> {
        Err::<Empty, _>(origin.not_built("zstd"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_may_overlap_what_they_write() {
        let mut out = Vec::new();
        // Ten bytes: the literal `ab`, then eight more from two back.
        snappy(&[10, 1 << 2, b'a', b'b', (7 << 2) | 2, 2, 0], 10, &mut out).unwrap();
        assert_eq!(out, b"ababababab");
        out.clear();
        lz4(&[0x24, b'a', b'b', 2, 0, 0x00], 10, &mut out).unwrap();
        assert_eq!(out, b"ababababab");
    }

    #[test]
    fn what_claims_more_than_it_may_is_refused() {
        let mut out = Vec::new();
        assert!(snappy(&[10, 1 << 2, b'a', b'b', (63 << 2) | 2, 2, 0], 10, &mut out).is_none());
        out.clear();
        assert!(lz4(&[0x2f, b'a', b'b', 2, 0, 255, 255, 9], 10, &mut out).is_none());
        out.clear();
        // Back beyond the beginning.
        assert!(snappy(&[4, 0, b'a', (2 << 2) | 2, 2, 0], 4, &mut out).is_none());
        assert!(lz4_frame(b"\x04\x22\x4d\x18", 4, &mut out).is_none());
    }
}
