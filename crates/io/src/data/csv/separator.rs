//! What separates the cells of a table of text.

use std::io::Read;

use super::packed;
use crate::data::origin::Origin;
use crate::data::table::number;
use crate::error::DataError;

/// Bytes of the first lines that are looked at.
const LOOK: u64 = 1 << 16;
/// What may separate cells, likelier ones first.
const SEPARATORS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// The `usual` separator where the header has it, else the one that divides header and first row
/// alike.
pub(super) fn find(origin: &Origin<'_>, usual: Option<u8>, decimal: u8) -> Result<u8, DataError> {
    let mut start = Vec::new();
    packed::open(origin)?
        .take(LOOK)
        .read_to_end(&mut start)
        .map_err(|error| origin.read_failed("text", error))?;
    let lines = first_lines(&start);
    Ok(among(&lines, usual, decimal))
}

fn among(lines: &[&[u8]], usual: Option<u8>, decimal: u8) -> u8 {
    let header = lines.first().copied().unwrap_or_default();
    let default = if decimal == b',' { b';' } else { b',' };
    if let Some(usual) = usual.filter(|usual| cells(header, *usual) > 1) {
        return usual;
    }
    let alike = |separator: u8| {
        lines.get(1).is_none_or(|row| cells(row, separator) == cells(header, separator))
    };
    let mut best = (false, 1, usual.unwrap_or(default));
    for separator in SEPARATORS.into_iter().filter(|separator| *separator != decimal) {
        let found = (alike(separator), cells(header, separator), separator);
        let is_better = (found.0, found.1) > (best.0, best.1);
        if found.1 > 1 && (best.1 == 1 || is_better) {
            best = found;
        }
    }
    // Names may hold spaces; rows of numbers between spaces do not.
    let spaced = |row: &&[u8]| {
        let mut words = row.split(|byte| *byte == b' ');
        words.all(|word| number(word.trim_ascii(), decimal).is_some())
    };
    if best.1 == 1 && cells(header, b' ') > 1 && alike(b' ') && lines.get(1).is_some_and(spaced) {
        return b' ';
    }
    best.2
}

/// Cells of a line, if they were separated so.
fn cells(line: &[u8], separator: u8) -> usize {
    let mut quoted = false;
    let mut count = 1;
    for &byte in line {
        if byte == b'"' {
            quoted = !quoted;
        } else if byte == separator && !quoted {
            count += 1;
        }
    }
    count
}

/// The header and the first row, as far as quotes tell; the last one may be cut.
fn first_lines(start: &[u8]) -> Vec<&[u8]> {
    let mut lines = Vec::new();
    let (mut quoted, mut from) = (false, 0);
    for (at, &byte) in start.iter().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            b'\n' | b'\r' if !quoted => {
                if at > from {
                    lines.push(&start[from..at]);
                }
                from = at + 1;
                if lines.len() == 2 {
                    return lines;
                }
            }
            _ => {}
        }
    }
    if from < start.len() {
        lines.push(&start[from..]);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, usual: Option<u8>, decimal: u8) -> char {
        char::from(among(&first_lines(text.as_bytes()), usual, decimal))
    }

    #[test]
    fn the_separator_divides_header_and_row_alike() {
        for (text, expected) in [
            ("a,b\n1,2\n", ','),
            ("a;b\n1;2\n", ';'),
            ("a\tb\r\n1\t2\r\n", '\t'),
            ("a|b|c\n1|2|3", '|'),
            ("a b\n1 2\n", ' '),
            ("cost (a,b);load\n1;2\n", ';'),
            ("\"a;b\",c\n1,2\n", ','),
            ("\"a\nb\";c\n1;2\n", ';'),
            ("a;b\n1,5;2,5\n", ';'),
            ("price today\n1\n", ','),
            ("a\n1\n", ','),
            ("", ','),
        ] {
            assert_eq!(found(text, None, b'.'), expected, "{text:?}");
        }
        assert_eq!(found("a,x\tb,x\n1\t2\n", Some(b'\t'), b'.'), '\t');
        assert_eq!(found("a,b\n1,2\n", Some(b'\t'), b'.'), ',');
        assert_eq!(found("a;b,c\n1,5;2,5\n", None, b','), ';');
    }
}
