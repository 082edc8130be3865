//! The line a record starts on, for error messages.
//!
//! The csv crate notes where it began to look for a record: before the line feed of the CRLF
//! that ended the last one, and before blank lines. Counting again from the file is exact.

use std::io::{self, BufRead, BufReader, Read};

use ::csv::ByteRecord;

use super::packed;
use crate::data::origin::Origin;

/// The line, from 1, of a record.
pub(super) fn of(record: &ByteRecord, origin: &Origin<'_>) -> u64 {
    let Some(position) = record.position() else { return 0 };
    let counted = packed::open(origin)
        .ok()
        .and_then(|file| count(BufReader::new(file), position.byte()).ok());
    counted.unwrap_or(position.line())
}

/// Counts the line ends (LF, CRLF or CR) up to byte `start`, and those that follow directly.
fn count(text: impl BufRead, start: u64) -> io::Result<u64> {
    let mut line = 1;
    let mut last = 0;
    for (at, byte) in (0u64..).zip(text.bytes()) {
        let byte = byte?;
        match byte {
            b'\n' if last == b'\r' => {}
            b'\n' | b'\r' => line += 1,
            _ if at >= start => break,
            _ => {}
        }
        last = byte;
    }
    Ok(line)
}

/// Lines of a file, counted by their ends: never fewer than its records.
pub(super) fn count_all(mut file: impl Read) -> io::Result<usize> {
    let mut block = vec![0u8; 1 << 16];
    // A file whose last line has no end has one line more.
    let (mut feeds, mut returns, mut last) = (0, 0, b'\n');
    loop {
        let count = file.read(&mut block)?;
        let Some(&end) = block[..count].last() else { break };
        last = end;
        feeds += occurrences(&block[..count], b'\n');
        returns += occurrences(&block[..count], b'\r');
    }
    let unended = usize::from(![b'\n', b'\r'].contains(&last));
    // With CRLF every end is one of each.
    Ok(if returns == feeds { feeds } else { feeds + returns } + unended)
}

/// How often a byte occurs; counted in bytes, 255 at a time, which vectors do best.
fn occurrences(bytes: &[u8], wanted: u8) -> usize {
    let count = |part: &[u8]| part.iter().fold(0u8, |n, byte| n + u8::from(*byte == wanted));
    bytes.chunks(255).map(|part| usize::from(count(part))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_of_all_kinds_are_counted_once() {
        for (text, start, line) in [
            ("a\nb", 2, 2),
            ("a\r\nb", 2, 2),
            ("a\r\nb", 3, 2),
            ("a\r\n\r\n\r\nb", 2, 4),
            ("a\rb\rc", 4, 3),
            ("a\n\n\nb\nc", 2, 4),
            ("a", 0, 1),
            ("", 0, 1),
        ] {
            assert_eq!(count(text.as_bytes(), start).unwrap(), line, "{text:?}");
        }
    }
}
