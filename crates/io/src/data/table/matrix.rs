//! A table that is a matrix: a row a limit, a column a dimension, perhaps its bound and its name.

use std::path::Path;

use super::block::Block;
use super::columns::Columns;
use super::records::Records;
use crate::budget::Meter;
use crate::data::csv::Lines;
use crate::data::matrix::MatrixTable;
use crate::data::origin::Origin;
use crate::error::DataError;

/// The column with what each limit is called.
const NAMES: &str = "limit";

/// Reads a whole table: the columns of `key` where there are any, else all but those of `beside`
/// and the names; and the column `beside`, where an empty cell means no limit.
pub(in crate::data) fn load_matrix(
    path: &Path,
    separator: Option<u8>,
    (key, beside): (&'static str, &'static str),
    meter: &Meter,
) -> Result<MatrixTable, DataError> {
    let origin = Origin { path, format: "csv", meter };
    let mut lines = Lines::open(&origin, separator, b'.')?;
    let columns = lines.columns();
    let bound = columns.has(beside).then(|| columns.of(beside, &origin)).transpose()?;
    let named = columns.contains(NAMES).then(|| columns.exact(NAMES, &origin)).transpose()?;
    let main = if columns.has(key) {
        columns.of(key, &origin)?
    } else {
        let taken = bound.clone().unwrap_or_default();
        let is_free = |column: &usize| !taken.contains(column) && named != Some(*column);
        (0..columns.len()).filter(is_free).collect()
    };
    let header = header(key, &main, columns);
    let mut main = Block::of(key.to_owned(), main);
    let mut bound = bound.map(|columns| Block::bound(beside, columns));
    let mut names = Vec::new();
    while lines.next(&origin)? {
        for block in std::iter::once(&mut main).chain(&mut bound) {
            block.take(&lines, &origin)?;
        }
        if let Some(named) = named {
            let name = lines.record().get(named).unwrap_or_default().trim_ascii();
            names.push(String::from_utf8_lossy(name).into_owned());
        }
    }
    check(&names, &origin)?;
    let bound = bound.map(|bound| bound.finish(None, &origin)).transpose()?;
    Ok(MatrixTable { matrix: main.finish(None, &origin)?, bound, names, columns: header })
}

/// What stands above the matrix; nothing where its columns are numbered.
fn header(key: &str, main: &[usize], columns: &Columns) -> Vec<String> {
    if columns.has(key) {
        return Vec::new();
    }
    main.iter().map(|&column| columns.name(column).to_owned()).collect()
}

/// Every limit has a name of its own, or none has one.
fn check(names: &[String], origin: &Origin<'_>) -> Result<(), DataError> {
    for (row, name) in names.iter().enumerate() {
        let detail = if name.is_empty() {
            format!("row {row} has no name in the column `{NAMES}`; give every limit one")
        } else if names[..row].contains(name) {
            format!("two limits are called `{name}` in the column `{NAMES}`; names must differ")
        } else {
            continue;
        };
        return Err(DataError::Columns { path: origin.path.to_path_buf(), detail });
    }
    Ok(())
}
