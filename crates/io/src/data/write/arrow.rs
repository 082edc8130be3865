//! Arrow's files, which are Feather's: a schema, one batch of rows, and a footer that says where
//! they are.
//!
//! In: columns with their names. Out: columns of float64 without gaps, not packed, each at a
//! multiple of 64 bytes so that readers can use them where they lie.

use std::io::{self, Write};

use super::blocks;
use super::data::Column;
use super::flat::{Flat, Table};

const MAGIC: &[u8] = b"ARROW1";
/// What buffers and messages begin at multiples of.
const ALIGNED: usize = 64;
/// The version of the format, and numbers of its kinds of messages and types.
const VERSION: i16 = 4;
const SCHEMA: u8 = 1;
const BATCH: u8 = 3;
const FLOATING: u8 = 3;
const DOUBLE: i16 = 2;

pub(super) fn write(columns: &[Column<'_>], n_rows: usize, out: &mut impl Write) -> io::Result<()> {
    let column_bytes = (n_rows * 8).next_multiple_of(ALIGNED);
    let body = column_bytes * columns.len();
    let start = MAGIC.len().next_multiple_of(8);
    out.write_all(MAGIC)?;
    out.write_all(&vec![0; start - MAGIC.len()])?;
    let schema_message = message(start, SCHEMA, 0, |flat| schema(flat, columns));
    out.write_all(&schema_message)?;
    let at = start + schema_message.len();
    let batch_message = message(at, BATCH, body, |flat| batch(flat, columns.len(), n_rows));
    out.write_all(&batch_message)?;
    let padding = vec![0; column_bytes - n_rows * 8];
    for (_, value) in columns {
        blocks((0..n_rows).map(|row| value(row).to_le_bytes()), out)?;
        out.write_all(&padding)?;
    }
    // The end of the stream of messages, then the footer, its length and the name again.
    out.write_all(&[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0])?;
    let footer = footer(columns, (at, batch_message.len(), body));
    out.write_all(&footer)?;
    out.write_all(&(footer.len() as u32).to_le_bytes())?;
    out.write_all(MAGIC)
}

/// A message at byte `at` of the file, up to where its body begins.
fn message(at: usize, kind: u8, body: usize, header: impl FnOnce(&mut Flat) -> usize) -> Vec<u8> {
    let mut flat = Flat::default();
    let header = header(&mut flat);
    let root = Table::default()
        .short(0, VERSION)
        .byte(1, kind)
        .place(2, header)
        .long(3, body as u64)
        .put(&mut flat);
    let mut described = flat.finish(root);
    // Mark and length come first; the body begins at a multiple.
    let end = (at + 8 + described.len()).next_multiple_of(ALIGNED);
    described.resize(end - at - 8, 0);
    let mut bytes = vec![0xff; 4];
    bytes.extend((described.len() as u32).to_le_bytes());
    bytes.extend(described);
    bytes
}

fn schema(flat: &mut Flat, columns: &[Column<'_>]) -> usize {
    let mut fields = Vec::with_capacity(columns.len());
    for (name, _) in columns {
        let name = flat.text(name);
        let floating = Table::default().short(0, DOUBLE).put(flat);
        let children = flat.places(&[]);
        let field = Table::default().place(0, name).byte(1, 0).byte(2, FLOATING);
        fields.push(field.place(3, floating).place(5, children).put(flat));
    }
    let fields = flat.places(&fields);
    Table::default().short(0, 0).place(1, fields).put(flat)
}

/// Nodes have a length and a count of gaps; a column has a buffer that would tell the gaps, here
/// empty, and its numbers.
fn batch(flat: &mut Flat, n_columns: usize, n_rows: usize) -> usize {
    let column_bytes = (n_rows * 8).next_multiple_of(ALIGNED);
    let buffers = (0..n_columns).flat_map(|at| {
        let start = (at * column_bytes) as u64;
        [start, 0, start, (n_rows * 8) as u64]
    });
    let buffers = flat.pairs(&buffers.collect::<Vec<_>>());
    let nodes: Vec<u64> = (0..n_columns).flat_map(|_| [n_rows as u64, 0]).collect();
    let nodes = flat.pairs(&nodes);
    Table::default().long(0, n_rows as u64).place(1, nodes).place(2, buffers).put(flat)
}

/// The schema again, and where the batch is: its place, the bytes of its message and its body.
fn footer(columns: &[Column<'_>], (at, message, body): (usize, usize, usize)) -> Vec<u8> {
    let mut flat = Flat::default();
    let schema = schema(&mut flat, columns);
    let batches = flat.triples(&[at as u64, message as u64, body as u64]);
    let none = flat.triples(&[]);
    let root = Table::default().short(0, VERSION).place(1, schema).place(2, none);
    let root = root.place(3, batches).put(&mut flat);
    flat.finish(root)
}
