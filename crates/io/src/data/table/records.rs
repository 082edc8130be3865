//! Rows that come one after the other, as text.

use ::csv::ByteRecord;

use super::belonging::Belonging;
use super::block::Block;
use super::columns::Columns;
use crate::data::kept::Kept;
use crate::data::origin::Origin;
use crate::data::rows::RowRanges;
use crate::error::DataError;

/// A table of text, read past its header.
pub(in crate::data) trait Records {
    fn columns(&self) -> &Columns;

    /// Moves on to the next row; `false` at the end.
    fn next(&mut self, origin: &Origin<'_>) -> Result<bool, DataError>;

    /// The row it is at, with as many cells as there are columns.
    fn record(&self) -> &ByteRecord;

    /// The line, from 1, that the row stands on.
    fn line(&self, origin: &Origin<'_>) -> u64;

    /// What separates a number's fraction.
    fn decimal(&self) -> u8 {
        b'.'
    }

    /// Rows, or a few more.
    fn rough_rows(&self, origin: &Origin<'_>) -> Result<usize, DataError>;

    /// The same table from its first row on.
    fn again(&self, origin: &Origin<'_>) -> Result<Box<dyn Records>, DataError>;
}

/// Puts the rows asked for into `blocks`, in the file's order. All rows are split into cells, those
/// left out no further.
pub(super) fn read(
    mut records: Box<dyn Records + '_>,
    (selection, rough_rows): (Chosen<'_>, usize),
    (blocks, mut groups): (&mut [&mut Block], Option<&mut Belonging>),
    origin: &Origin<'_>,
) -> Result<Kept, DataError> {
    let expected = match &selection {
        Chosen::Rows(rows) => rows.map_or(rough_rows, |rows| rows.count_below(rough_rows)),
        Chosen::Kept(kept) => kept.len(),
    };
    for block in &mut *blocks {
        block.reserve(expected, origin)?;
    }
    if let Some(groups) = &mut groups {
        groups.reserve(expected, origin)?;
    }
    let mut n_rows = 0;
    while records.next(origin)? {
        let is_kept = match &selection {
            Chosen::Rows(rows) => rows.is_none_or(|rows| rows.contains(n_rows)),
            Chosen::Kept(kept) => kept.any(n_rows..n_rows + 1),
        };
        if let Some(groups) = &mut groups {
            groups.take(records.record(), is_kept);
        }
        if is_kept {
            for block in &mut *blocks {
                block.take(&*records, origin)?;
            }
        }
        n_rows += 1;
    }
    match selection {
        Chosen::Rows(rows) => Kept::of(if n_rows > 0 { rows } else { None }, n_rows),
        Chosen::Kept(kept) => Ok(kept),
    }
}

/// Hands columns like those of `signals` to `hand_on`, so many rows at a time, until it says no.
pub(super) fn walk(
    mut records: Box<dyn Records + '_>,
    piece_rows: usize,
    signals: &Block,
    hand_on: &mut dyn FnMut(Block) -> Result<bool, DataError>,
    origin: &Origin<'_>,
) -> Result<bool, DataError> {
    let mut block = signals.afresh();
    let mut n_rows = 0;
    while records.next(origin)? {
        if n_rows == 0 {
            block.reserve(piece_rows, origin)?;
        }
        block.take(&*records, origin)?;
        n_rows += 1;
        if n_rows == piece_rows {
            n_rows = 0;
            if !hand_on(std::mem::replace(&mut block, signals.afresh()))? {
                return Ok(false);
            }
        }
    }
    if n_rows == 0 { Ok(true) } else { hand_on(block) }
}

/// The rows to keep: known beforehand, or by ranges that need no count of all rows.
pub(super) enum Chosen<'a> {
    Rows(Option<&'a RowRanges>),
    Kept(Kept),
}
