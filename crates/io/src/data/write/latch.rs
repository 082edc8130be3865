//! A writer that keeps its first failure to itself until asked.

use std::io::{self, Seek, SeekFrom, Write};

/// Writes to `inner` until that fails; from then on only pretends to.
///
/// The zip crate prints to stderr when an unfinished archive is dropped on a full disk. Behind
/// this it always finishes, and the failure is found in [`Latch::into_result`].
pub(super) struct Latch<W> {
    inner: W,
    position: u64,
    end: u64,
    failure: Option<io::Error>,
}

impl<W: Write + Seek> Latch<W> {
    /// `inner` must be empty.
    pub fn new(inner: W) -> Self {
        Self { inner, position: 0, end: 0, failure: None }
    }

    pub fn into_result(self) -> io::Result<()> {
        self.failure.map_or(Ok(()), Err)
    }

    fn attempt<T>(&mut self, action: impl FnOnce(&mut W) -> io::Result<T>) {
        if self.failure.is_none() {
            self.failure = action(&mut self.inner).err();
        }
    }
}

impl<W: Write + Seek> Write for Latch<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.attempt(|inner| inner.write_all(bytes));
        self.position += bytes.len() as u64;
        self.end = self.end.max(self.position);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.attempt(Write::flush);
        Ok(())
    }
}

impl<W: Write + Seek> Seek for Latch<W> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let target = match to {
            SeekFrom::Start(target) => Some(target),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
            SeekFrom::End(by) => self.end.checked_add_signed(by),
        };
        let target = target.ok_or(io::ErrorKind::InvalidInput)?;
        self.attempt(|inner| inner.seek(SeekFrom::Start(target)));
        self.position = target;
        Ok(target)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn the_first_failure_is_kept_and_the_rest_goes_on() {
        let mut room = [0u8; 4];
        let mut latch = Latch::new(Cursor::new(&mut room[..]));
        latch.write_all(b"ab").unwrap();
        assert_eq!(latch.seek(SeekFrom::Start(1)).unwrap(), 1);
        latch.write_all(b"cdef").unwrap();
        latch.write_all(b"g").unwrap();
        assert_eq!(latch.stream_position().unwrap(), 6);
        assert_eq!(latch.into_result().unwrap_err().kind(), io::ErrorKind::WriteZero);
    }
}
