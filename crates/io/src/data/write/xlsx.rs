//! Sheets: a zip archive of a few documents, of which one has the cells.
//!
//! In: columns with their names. Out: a workbook of one sheet, names in its first row and numbers
//! below, with all their digits. What spreadsheets ask for and nothing else: no styles, no list of
//! shared texts.

use std::fmt::Write as _;
use std::io::{self, Seek, Write};

use ::zip::write::SimpleFileOptions;
use ::zip::{CompressionMethod, ZipWriter};

use super::data::Column;
use super::latch::Latch;

/// Rows and columns that a sheet has at most, that of the names included.
const MOST_ROWS: usize = 1 << 20;
const MOST_COLUMNS: usize = 1 << 14;

const OPENING: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n";
/// Where the names of all that follows are at home.
const HOME: &str = "http://schemas.openxmlformats.org";
const CELLS: &str = "spreadsheetml/2006/main";
const LINKS: &str = "officeDocument/2006/relationships";
const KIND: &str = "application/vnd.openxmlformats-officedocument.spreadsheetml";

/// What is in the archive beside the cells.
fn documents() -> [(&'static str, String); 4] {
    let types = format!(
        "<Types xmlns=\"{HOME}/package/2006/content-types\">\
         <Default Extension=\"rels\" \
         ContentType=\"application/vnd.openxmlformats-package.relationships+xml\"/>\
         <Override PartName=\"/xl/workbook.xml\" ContentType=\"{KIND}.sheet.main+xml\"/>\
         <Override PartName=\"/xl/worksheets/sheet1.xml\" ContentType=\"{KIND}.worksheet+xml\"/>\
         </Types>"
    );
    let link = |kind: &str, target: &str| {
        format!(
            "<Relationships xmlns=\"{HOME}/package/2006/relationships\">\
             <Relationship Id=\"rId1\" Type=\"{HOME}/{LINKS}/{kind}\" Target=\"{target}\"/>\
             </Relationships>"
        )
    };
    let workbook = format!(
        "<workbook xmlns=\"{HOME}/{CELLS}\" xmlns:r=\"{HOME}/{LINKS}\">\
         <sheets><sheet name=\"data\" sheetId=\"1\" r:id=\"rId1\"/></sheets></workbook>"
    );
    [
        ("[Content_Types].xml", types),
        ("_rels/.rels", link("officeDocument", "xl/workbook.xml")),
        ("xl/_rels/workbook.xml.rels", link("worksheet", "worksheets/sheet1.xml")),
        ("xl/workbook.xml", workbook),
    ]
}

/// Writes the columns, each of `n_rows` numbers. Fails where a sheet has no room for them.
pub(super) fn write(
    columns: &[Column<'_>],
    n_rows: usize,
    out: &mut (impl Write + Seek),
) -> io::Result<()> {
    if n_rows >= MOST_ROWS || columns.len() > MOST_COLUMNS {
        return Err(io::Error::other(format!(
            "a sheet has room for {} rows and {MOST_COLUMNS} columns, not for {n_rows} and {}; \
             write .csv or .parquet, or fewer rows",
            MOST_ROWS - 1,
            columns.len()
        )));
    }
    let mut archive = ZipWriter::new(Latch::new(out));
    let packed = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    for (name, text) in documents() {
        archive.start_file(name, packed)?;
        write!(archive, "{OPENING}{text}")?;
    }
    // Cells may take more than 4 GiB before they are packed.
    archive.start_file("xl/worksheets/sheet1.xml", packed.large_file(true))?;
    write!(archive, "{OPENING}<worksheet xmlns=\"{HOME}/{CELLS}\"><sheetData><row>")?;
    for (name, _) in columns {
        let name = escaped(name);
        write!(archive, "<c t=\"inlineStr\"><is><t xml:space=\"preserve\">{name}</t></is></c>")?;
    }
    let mut line = String::new();
    for row in 0..n_rows {
        line.clear();
        line.push_str("</row>\n<row>");
        for (_, value) in columns {
            // The shortest digits that read back as the same f64.
            write!(line, "<c><v>{:?}</v></c>", value(row)).map_err(io::Error::other)?;
        }
        archive.write_all(line.as_bytes())?;
    }
    write!(archive, "</row></sheetData></worksheet>")?;
    archive.finish()?.into_result()
}

/// A text as XML has it; what it has no way to say is left out.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\t' | '\n' => out.push(letter),
            control if control.is_control() => {}
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_sheet_has_no_room_for_is_refused_before_anything_is_written() {
        let column: Column<'_> = ("a".to_owned(), Box::new(|_| 0.0));
        let mut out = io::Cursor::new(Vec::new());
        let refused = write(&[column], MOST_ROWS, &mut out).unwrap_err().to_string();
        assert!(refused.contains("1048575 rows") && refused.contains(".csv"), "{refused}");
        assert!(out.into_inner().is_empty());
    }

    #[test]
    fn names_are_what_they_were() {
        assert_eq!(escaped("a<b & \u{1}\"c\""), "a&lt;b &amp; \"c\"");
    }
}
