//! The groups of a table's rows: the text of some cells, or marks on the last rows of episodes.

use std::io::Write;

use ::csv::ByteRecord;

use super::columnar::{Piece, Take};
use super::columns::Columns;
use crate::data::groups::{GroupKind, Groups, Names};
use crate::data::kept::Kept;
use crate::data::keys::Keys;
use crate::data::origin::Origin;
use crate::error::DataError;

/// Columns that say what belongs together, and the groups of the rows read so far.
pub(super) struct Belonging {
    kind: GroupKind,
    columns: Vec<usize>,
    names: Names<Vec<u8>>,
    episode: u32,
    /// Whether any mark was seen.
    has_ends: bool,
    of_rows: Vec<u32>,
}

impl Belonging {
    pub fn new(
        chosen: &Keys,
        columns: &Columns,
        origin: &Origin<'_>,
    ) -> Result<Option<Self>, DataError> {
        let (kind, columns) = if let Some(key) = &chosen.groups {
            (GroupKind::Column, columns.of(key, origin)?)
        } else {
            let mut ends = Vec::new();
            for key in &chosen.ends {
                ends.extend(columns.of(key, origin)?);
            }
            (GroupKind::Episodes, ends)
        };
        Ok((!columns.is_empty()).then(|| Self {
            kind,
            columns,
            names: Names::default(),
            episode: 0,
            has_ends: false,
            of_rows: Vec::new(),
        }))
    }

    pub fn kind(&self) -> GroupKind {
        self.kind
    }

    pub fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// The same columns, with nothing read.
    pub fn afresh(&self) -> Self {
        Self {
            kind: self.kind,
            columns: self.columns.clone(),
            names: Names::default(),
            episode: 0,
            has_ends: false,
            of_rows: Vec::new(),
        }
    }

    pub fn reserve(&mut self, rows: usize, origin: &Origin<'_>) -> Result<(), DataError> {
        origin.charge((rows as u64).saturating_mul(4), "the groups of its rows")?;
        self.of_rows.try_reserve(rows).map_err(|_| too_many(rows, origin))
    }

    /// Takes a row. Episodes end in rows that are left out, too.
    pub fn take(&mut self, record: &ByteRecord, kept: bool) {
        let cell = |column: &usize| record.get(*column).unwrap_or_default().trim_ascii();
        let group = match self.kind {
            GroupKind::Column if !kept => return,
            GroupKind::Column => {
                let text = self.columns.iter().map(cell).collect::<Vec<_>>();
                self.names.of(text.join(&b'\x1f'))
            }
            GroupKind::Episodes => {
                let own = self.episode;
                let last = self.columns.iter().any(|column| is_mark(cell(column)));
                self.episode += u32::from(last);
                self.has_ends |= last;
                own
            }
        };
        if kept {
            self.of_rows.push(group);
        }
    }

    /// Takes all rows of the columns that `read` reads, those kept in the order asked for.
    pub fn take_columns(
        &mut self,
        kept: &Kept,
        origin: &Origin<'_>,
        read: impl Fn(usize, &mut Take<'_>) -> Result<(), DataError>,
    ) -> Result<(), DataError> {
        let n_rows = kept.n_rows();
        origin.charge((n_rows as u64).saturating_mul(4), "the groups of its rows")?;
        // Rows that agree in the columns so far have the same number.
        let mut codes: Vec<u32> = Vec::new();
        codes.try_reserve_exact(n_rows).map_err(|_| too_many(n_rows, origin))?;
        codes.resize(n_rows, 0);
        for &column in &self.columns {
            let mut pairs = Names::default();
            let marks = self.kind == GroupKind::Episodes;
            read(column, &mut |start, piece| {
                let mut put = |at: usize, cell: &[u8]| {
                    let code = &mut codes[start + at];
                    *code = if marks {
                        *code | u32::from(is_mark(cell))
                    } else {
                        pairs.of((*code, cell.to_vec()))
                    };
                };
                match piece {
                    Piece::Numbers(numbers) => {
                        let mut text = Vec::new();
                        for (at, number) in numbers.iter().enumerate() {
                            text.clear();
                            write!(text, "{number}").map_err(|error| origin.corrupt(error))?;
                            put(at, &text);
                        }
                    }
                    Piece::Texts(texts) => {
                        for (at, text) in texts.iter().enumerate() {
                            put(at, text.unwrap_or_default());
                        }
                    }
                }
                Ok(())
            })?;
        }
        if self.kind == GroupKind::Episodes {
            self.has_ends = codes.contains(&1);
            for code in &mut codes {
                let is_last = *code;
                *code = self.episode;
                self.episode += is_last;
            }
        }
        self.of_rows = match kept.places() {
            Some(places) => places.into_iter().map(|row| codes[row]).collect(),
            None => codes,
        };
        Ok(())
    }

    /// The groups of the rows kept, in the order given, or else in the file's.
    pub fn finish(self, order: Option<&[usize]>) -> Option<Groups> {
        if self.kind == GroupKind::Episodes && !self.has_ends {
            return None;
        }
        let of_rows = match order {
            Some(order) => order.iter().map(|&row| self.of_rows[row]).collect(),
            None => self.of_rows,
        };
        Some(Groups { of_rows, kind: self.kind })
    }
}

/// The error for more rows than there is memory for.
fn too_many(rows: usize, origin: &Origin<'_>) -> DataError {
    origin.too_large("groups", &[rows as u64], "more memory than there is")
}

fn is_mark(cell: &[u8]) -> bool {
    let number = str::from_utf8(cell).ok().and_then(|text| text.parse::<f64>().ok());
    number.map_or_else(|| cell.eq_ignore_ascii_case(b"true"), |number| number != 0.0)
}
