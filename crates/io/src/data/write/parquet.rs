//! Parquet as plain as it can be: columns of doubles, none missing, not packed.

use std::io::{self, Write};

use super::data::Column;

/// Rows of a row group.
const GROUP: usize = 1 << 17;
const DOUBLE: i64 = 5;
const RLE: i64 = 3;

pub(super) fn write(columns: &[Column<'_>], n_rows: usize, out: &mut impl Write) -> io::Result<()> {
    const MAGIC: &[u8] = b"PAR1";
    out.write_all(MAGIC)?;
    let mut at = MAGIC.len() as u64;
    let mut groups = Vec::new();
    for first in (0..n_rows).step_by(GROUP) {
        let rows = first..n_rows.min(first + GROUP);
        let mut chunks = Vec::new();
        let start = at;
        for (_, value) in columns {
            let header = page_header(rows.len());
            out.write_all(&header)?;
            super::blocks(rows.clone().map(|row| value(row).to_le_bytes()), out)?;
            let size = (header.len() + 8 * rows.len()) as u64;
            chunks.push((at, size));
            at += size;
        }
        groups.push((rows.len(), at - start, chunks));
    }
    let mut footer = Thrift::default();
    footer.integer(1, 1);
    footer.list(2, STRUCT, columns.len() + 1);
    footer.nested(|own| {
        own.text(4, "schema");
        own.integer(5, (columns.len() as u64).cast_signed());
    });
    for (name, _) in columns {
        footer.nested(|own| {
            own.integer(1, DOUBLE);
            own.integer(3, 0);
            own.text(4, name);
        });
    }
    footer.long(3, n_rows as u64);
    footer.list(4, STRUCT, groups.len());
    for (rows, size, chunks) in &groups {
        footer.nested(|own| {
            own.list(1, STRUCT, chunks.len());
            for ((start, size), (name, _)) in chunks.iter().zip(columns) {
                own.nested(|own| chunk(own, name, *rows, (*start, *size)));
            }
            own.long(2, *size);
            own.long(3, *rows as u64);
        });
    }
    footer.text(6, concat!("argwhy ", env!("CARGO_PKG_VERSION")));
    let footer = footer.finish();
    out.write_all(&footer)?;
    out.write_all(&(footer.len() as u32).to_le_bytes())?;
    out.write_all(MAGIC)
}

fn page_header(n_values: usize) -> Vec<u8> {
    let mut header = Thrift::default();
    header.integer(1, 0);
    header.integer(2, 8 * (n_values as u64).cast_signed());
    header.integer(3, 8 * (n_values as u64).cast_signed());
    header.structure(5, |own| {
        own.integer(1, (n_values as u64).cast_signed());
        own.integer(2, 0);
        own.integer(3, RLE);
        own.integer(4, RLE);
    });
    header.finish()
}

fn chunk(own: &mut Thrift, name: &str, rows: usize, (start, size): (u64, u64)) {
    own.long(2, start);
    own.structure(3, |own| {
        own.integer(1, DOUBLE);
        own.list(2, I32, 1);
        own.zigzag(0);
        own.list(3, BINARY, 1);
        own.bytes(name.as_bytes());
        own.integer(4, 0);
        own.long(5, rows as u64);
        own.long(6, size);
        own.long(7, size);
        own.long(9, start);
    });
}

const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// Thrift's compact protocol, being written.
#[derive(Default)]
struct Thrift {
    bytes: Vec<u8>,
    /// The last field of the structure being written.
    last: u8,
}

impl Thrift {
    fn field(&mut self, id: u8, kind: u8) {
        self.bytes.push((id - self.last) << 4 | kind);
        self.last = id;
    }

    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    fn zigzag(&mut self, number: i64) {
        self.varint((number << 1 ^ number >> 63) as u64);
    }

    fn integer(&mut self, id: u8, number: i64) {
        self.field(id, I32);
        self.zigzag(number);
    }

    fn long(&mut self, id: u8, number: u64) {
        self.field(id, I64);
        self.zigzag(number.cast_signed());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.varint(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    fn text(&mut self, id: u8, text: &str) {
        self.field(id, BINARY);
        self.bytes(text.as_bytes());
    }

    /// Begins a list; its entries follow.
    fn list(&mut self, id: u8, kind: u8, length: usize) {
        self.field(id, LIST);
        if length < 15 {
            self.bytes.push((length as u8) << 4 | kind);
        } else {
            self.bytes.push(0xf0 | kind);
            self.varint(length as u64);
        }
    }

    fn structure(&mut self, id: u8, write: impl FnOnce(&mut Self)) {
        self.field(id, STRUCT);
        self.nested(write);
    }

    /// A structure that is an entry of a list.
    fn nested(&mut self, write: impl FnOnce(&mut Self)) {
        let last = std::mem::take(&mut self.last);
        write(self);
        self.bytes.push(0);
        self.last = last;
    }

    fn finish(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}
