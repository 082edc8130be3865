//! xlsx: the list of sheets, the texts that cells share, and one sheet.

use std::io::Read;

use super::xml::{Event, Xml};
use super::{Archive, MOST_COLUMNS, Rows, archive, chosen, part};
use crate::data::origin::Origin;
use crate::error::DataError;

/// Bytes that a shared text takes beside its own.
const TEXT_BYTES: u64 = 24;

pub(super) fn open(origin: &Origin<'_>, name: Option<&str>) -> Result<SheetRows, DataError> {
    let targets = relations(archive(origin)?, origin)?;
    let id = chosen(sheets(archive(origin)?, origin)?, name, origin)?;
    let target = targets.into_iter().find(|(own, _)| *own == id);
    let target = target.map(|(_, target)| match target.strip_prefix('/') {
        Some(from_root) => from_root.to_owned(),
        None => format!("xl/{target}"),
    });
    let target = target.ok_or_else(|| origin.corrupt("its list of sheets leads nowhere"))?;
    let texts = shared(archive(origin)?, origin)?;
    let sheet = Xml::new(part(archive(origin)?, &target, origin)?);
    Ok(SheetRows { sheet, texts, row: 0 })
}

/// Calls `each` at every opening tag of a part.
fn tags(
    archive: Archive,
    name: &str,
    origin: &Origin<'_>,
    mut each: impl FnMut(&Xml<Box<dyn Read>>),
) -> Result<(), DataError> {
    let mut xml = Xml::new(part(archive, name, origin)?);
    loop {
        match xml.next().map_err(|error| origin.read_failed(name, error))? {
            Event::Open { .. } => each(&xml),
            Event::End => return Ok(()),
            _ => {}
        }
    }
}

fn text(bytes: Option<Vec<u8>>) -> String {
    String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
}

/// Names of sheets, and what they are called inside.
fn sheets(archive: Archive, origin: &Origin<'_>) -> Result<Vec<(String, String)>, DataError> {
    let mut found = Vec::new();
    tags(archive, "xl/workbook.xml", origin, |xml| {
        if xml.name() == b"sheet" {
            found.push((text(xml.attribute("name")), text(xml.attribute("r:id"))));
        }
    })?;
    Ok(found)
}

fn relations(archive: Archive, origin: &Origin<'_>) -> Result<Vec<(String, String)>, DataError> {
    let mut found = Vec::new();
    tags(archive, "xl/_rels/workbook.xml.rels", origin, |xml| {
        if xml.name() == b"Relationship" {
            found.push((text(xml.attribute("Id")), text(xml.attribute("Target"))));
        }
    })?;
    Ok(found)
}

/// The texts that cells refer to by number; none where there are only numbers.
fn shared(archive: Archive, origin: &Origin<'_>) -> Result<Vec<Vec<u8>>, DataError> {
    const PART: &str = "xl/sharedStrings.xml";
    if archive.index_for_name(PART).is_none() {
        return Ok(Vec::new());
    }
    let mut xml = Xml::new(part(archive, PART, origin)?);
    let (mut texts, mut in_text, mut aside) = (Vec::<Vec<u8>>::new(), false, false);
    loop {
        let event = xml.next().map_err(|error| origin.read_failed(PART, error))?;
        let is_open = event == Event::Open { closed: false };
        match (event, xml.name()) {
            (Event::End, _) => return Ok(texts),
            (Event::Open { .. }, b"si") => {
                origin.charge(TEXT_BYTES, "its texts")?;
                texts.push(Vec::new());
            }
            // How a text is pronounced is no part of it.
            (Event::Open { .. } | Event::Close, b"rPh") => aside = is_open,
            (Event::Open { .. } | Event::Close, b"t") => in_text = is_open && !aside,
            (Event::Text, _) if in_text => {
                origin.charge(xml.text().len() as u64, "its texts")?;
                if let Some(last) = texts.last_mut() {
                    last.extend_from_slice(xml.text());
                }
            }
            _ => {}
        }
    }
}

/// The rows of a sheet.
pub(super) struct SheetRows {
    sheet: Xml<Box<dyn Read>>,
    texts: Vec<Vec<u8>>,
    row: u64,
}

impl Rows for SheetRows {
    fn next(
        &mut self,
        cells: &mut Vec<Vec<u8>>,
        origin: &Origin<'_>,
    ) -> Result<Option<u64>, DataError> {
        cells.clear();
        let (mut column, mut shared, mut in_value) = (0, false, false);
        loop {
            let event = self.sheet.next().map_err(|error| origin.read_failed("a sheet", error))?;
            let is_open = event == Event::Open { closed: false };
            match (event, self.sheet.name()) {
                (Event::End, _) => return Ok(None),
                (Event::Open { closed }, b"row") => {
                    let number = self.sheet.attribute("r");
                    let number = number.and_then(|n| str::from_utf8(&n).ok()?.parse().ok());
                    self.row = number.unwrap_or(self.row + 1);
                    if closed {
                        return Ok(Some(self.row));
                    }
                }
                (Event::Close, b"row") => return Ok(Some(self.row)),
                (Event::Open { .. }, b"c") => {
                    let place = self.sheet.attribute("r");
                    column = place.as_deref().and_then(column_of).unwrap_or(cells.len());
                    shared = self.sheet.attribute("t").as_deref() == Some(b"s");
                    if column >= MOST_COLUMNS {
                        let far = format!("row {} has a cell in column {column}", self.row);
                        return Err(origin.corrupt(far));
                    }
                    if cells.len() <= column {
                        cells.resize(column + 1, Vec::new());
                    }
                }
                (Event::Open { .. } | Event::Close, b"v" | b"t") => in_value = is_open,
                (Event::Text, _) if in_value => {
                    let Some(cell) = cells.get_mut(column) else { continue };
                    let value = self.sheet.text();
                    if shared {
                        let number = str::from_utf8(value).ok();
                        let number = number.and_then(|n| n.trim().parse::<usize>().ok());
                        let text = number.and_then(|n| self.texts.get(n)).ok_or_else(|| {
                            let row = self.row;
                            origin.corrupt(format!("row {row} refers to a text that is not there"))
                        })?;
                        cell.extend_from_slice(text);
                    } else {
                        cell.extend_from_slice(value);
                    }
                }
                _ => {}
            }
        }
    }
}

/// `C7` is in column 2.
fn column_of(place: &[u8]) -> Option<usize> {
    let letters = place.iter().take_while(|byte| byte.is_ascii_uppercase());
    let mut column = 0usize;
    for letter in letters {
        column = column.checked_mul(26)?.checked_add(usize::from(letter - b'A') + 1)?;
    }
    column.checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_letters() {
        let of = |place: &str| column_of(place.as_bytes());
        assert_eq!(
            (of("A1"), of("C7"), of("AA10"), of("XFD1")),
            (Some(0), Some(2), Some(26), Some(16383))
        );
        assert_eq!((of("12"), of("ZZZZZZZZZZZZZZZZZZ1")), (None, None));
    }
}
