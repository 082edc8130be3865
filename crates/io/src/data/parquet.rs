//! The parquet format: columns in row groups, each in pages that may be packed.
//!
//! In: a footer with the schema and where every column of every row group lies. Out: the columns
//! asked for, a page at a time; row groups and pages of rows that are left out are not unpacked.
//! Columns inside columns (lists, maps) cannot be read; those of plain structures are called
//! `outer.inner`.

use std::cell::RefCell;
use std::fs::File;

use super::DataRequest;
use super::format::unreadable;
use super::kept::Kept;
use super::origin::Origin;
use super::table::columns::Columns;
use super::table::{Body, Columnar, Table, Take};
use crate::error::DataError;
use footer::{Footer, Shape};
use pages::Chunk;

mod bits;
mod footer;
mod pages;
mod plain;
mod thrift;

const MAGIC: &[u8] = b"PAR1";

pub(super) fn open<'a>(origin: Origin<'a>, request: &DataRequest) -> Result<Table<'a>, DataError> {
    Table::open(origin, request, body(&origin)?)
}

/// The columns of a file.
pub(super) fn body<'a>(origin: &Origin<'_>) -> Result<Body<'a>, DataError> {
    let failed = |error| unreadable(origin.path, error);
    let mut file = File::open(origin.path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    let footer = Footer::read(&mut file, length, origin)?;
    let names = footer.columns.iter().map(|column| column.name.clone()).collect();
    let columns = Columns::named(names);
    let table = Parquet { file: RefCell::new(file), length, footer, columns };
    Ok(Body::Columns(Box::new(table)))
}

struct Parquet {
    file: RefCell<File>,
    length: u64,
    footer: Footer,
    columns: Columns,
}

impl Columnar for Parquet {
    fn columns(&self) -> &Columns {
        &self.columns
    }

    fn n_rows(&self) -> usize {
        self.footer.n_rows
    }

    fn holds_times(&self, column: usize) -> bool {
        let shape = self.footer.columns.get(column).map(|column| column.shape);
        matches!(shape, Some(Shape::Seconds(_)))
    }

    fn read(
        &self,
        column: usize,
        kept: &Kept,
        take: &mut Take<'_>,
        origin: &Origin<'_>,
    ) -> Result<(), DataError> {
        let Some(shape) = self.footer.columns.get(column) else { return Ok(()) };
        if let Shape::Unreadable(why) = shape.shape {
            return Err(DataError::Unsupported {
                path: origin.path.to_path_buf(),
                detail: format!("the column `{}` {why}; choose other columns", shape.name),
            });
        }
        let mut first = 0;
        for group in &self.footer.groups {
            let rows = first..first + group.n_rows;
            first = rows.end;
            let Some(place) = group.chunks.get(column).filter(|_| kept.any(rows.clone())) else {
                continue;
            };
            let mut chunk = Chunk::new(shape, place, rows, self.length, origin);
            chunk.read(&mut self.file.borrow_mut(), kept, take)?;
        }
        Ok(())
    }
}
