//! ods: all sheets are in one part, cells and rows may repeat.

use std::io::Read;

use super::xml::{Event, Xml};
use super::{MOST_COLUMNS, Rows, archive, chosen, part};
use crate::data::origin::Origin;
use crate::error::DataError;

const PART: &str = "content.xml";

pub(super) fn open(origin: &Origin<'_>, name: Option<&str>) -> Result<SheetRows, DataError> {
    let mut content = Xml::new(part(archive(origin)?, PART, origin)?);
    let mut found = Vec::new();
    loop {
        match content.next().map_err(|error| origin.read_failed(PART, error))? {
            Event::End => break,
            Event::Open { .. } if content.name() == b"table" => {
                let own = content.attribute("table:name").unwrap_or_default();
                found.push((String::from_utf8_lossy(&own).into_owned(), found.len()));
                if name.is_none() {
                    break;
                }
            }
            _ => {}
        }
    }
    let wanted = chosen(found, name, origin)?;
    let mut content = Xml::new(part(archive(origin)?, PART, origin)?);
    let mut seen = 0;
    while seen <= wanted {
        match content.next().map_err(|error| origin.read_failed(PART, error))? {
            Event::End => break,
            Event::Open { .. } if content.name() == b"table" => seen += 1,
            _ => {}
        }
    }
    Ok(SheetRows { content, row: 0, repeated: (0, Vec::new()) })
}

/// The rows of a sheet.
pub(super) struct SheetRows {
    content: Xml<Box<dyn Read>>,
    row: u64,
    /// How often the last row comes again.
    repeated: (u64, Vec<Vec<u8>>),
}

impl SheetRows {
    fn count(&self, attribute: &str) -> u64 {
        let number = self.content.attribute(attribute);
        number.and_then(|n| str::from_utf8(&n).ok()?.parse().ok()).unwrap_or(1)
    }

    /// The value of the cell whose tag was just read, and whether its text is to be read.
    fn value(&self) -> (Vec<u8>, bool) {
        let of = |name: &str| self.content.attribute(name);
        let value = of("office:value").or_else(|| of("office:date-value"));
        match value.or_else(|| of("office:boolean-value")) {
            Some(value) => (value, false),
            None => (Vec::new(), true),
        }
    }
}

impl Rows for SheetRows {
    fn next(
        &mut self,
        cells: &mut Vec<Vec<u8>>,
        origin: &Origin<'_>,
    ) -> Result<Option<u64>, DataError> {
        cells.clear();
        if self.repeated.0 > 0 {
            self.repeated.0 -= 1;
            self.row += 1;
            cells.clone_from(&self.repeated.1);
            return Ok(Some(self.row));
        }
        let (mut again, mut cell, mut in_text) = (1, None, false);
        loop {
            let event = self.content.next().map_err(|error| origin.read_failed(PART, error))?;
            let is_open = event == Event::Open { closed: false };
            let closed = event == Event::Open { closed: true };
            match (event, self.content.name()) {
                (Event::End, _) | (Event::Close, b"table") => return Ok(None),
                (Event::Open { .. }, b"table-row") => {
                    again = self.count("table:number-rows-repeated").max(1);
                    if closed {
                        self.row += again;
                        return Ok(Some(self.row));
                    }
                }
                (Event::Close, b"table-row") => {
                    self.row += 1;
                    let is_empty = cells.iter().all(Vec::is_empty);
                    // Thousands of empty rows end a sheet; rows that are filled come again.
                    if is_empty {
                        self.row += again - 1;
                    } else {
                        self.repeated = (again - 1, cells.clone());
                    }
                    return Ok(Some(self.row));
                }
                (Event::Open { .. }, b"table-cell" | b"covered-table-cell") => {
                    let count = self.count("table:number-columns-repeated");
                    let (value, is_text) = self.value();
                    in_text = false;
                    if closed {
                        put(cells, &value, count, origin)?;
                    } else {
                        cell = Some((value, count, is_text));
                    }
                }
                (Event::Close, b"table-cell" | b"covered-table-cell") => {
                    if let Some((value, count, _)) = cell.take() {
                        put(cells, &value, count, origin)?;
                    }
                }
                (Event::Open { .. } | Event::Close, b"p") => in_text = is_open,
                (Event::Text, _) if in_text => {
                    if let Some((value, _, true)) = &mut cell {
                        value.extend_from_slice(self.content.text());
                    }
                }
                _ => {}
            }
        }
    }
}

/// Adds a cell as often as it is repeated; an empty one at the end of a row may claim thousands.
fn put(
    cells: &mut Vec<Vec<u8>>,
    value: &[u8],
    count: u64,
    origin: &Origin<'_>,
) -> Result<(), DataError> {
    let end = (cells.len() as u64).saturating_add(count);
    if end > MOST_COLUMNS as u64 && !value.is_empty() {
        return Err(origin.corrupt(format!("a row of `{PART}` has {end} cells")));
    }
    let count = count.min((MOST_COLUMNS - cells.len().min(MOST_COLUMNS)) as u64);
    cells.extend((0..count).map(|_| value.to_vec()));
    Ok(())
}
