//! Columns that come one after the other, as numbers or text.

use super::belonging::Belonging;
use super::block::Block;
use super::columns::Columns;
use crate::data::kept::Kept;
use crate::data::origin::Origin;
use crate::error::DataError;

/// Rows of one column, one after the other.
#[derive(Clone, Copy)]
pub(in crate::data) enum Piece<'a> {
    /// NaN where a value is missing.
    Numbers(&'a [f64]),
    /// None where a value is missing.
    Texts(&'a [Option<&'a [u8]>]),
}

impl Piece<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Numbers(numbers) => numbers.len(),
            Self::Texts(texts) => texts.len(),
        }
    }
}

/// Takes pieces of a column, each with the row of the file that it starts in.
pub(in crate::data) type Take<'t> = dyn FnMut(usize, Piece<'_>) -> Result<(), DataError> + 't;

/// A table that keeps each column together.
pub(in crate::data) trait Columnar {
    fn columns(&self) -> &Columns;

    fn n_rows(&self) -> usize;

    /// Whether the numbers of a column are times, in seconds since 1970.
    fn holds_times(&self, column: usize) -> bool;

    /// Hands the pieces of a column to `take` that hold any of the kept rows.
    fn read(
        &self,
        column: usize,
        kept: &Kept,
        take: &mut Take<'_>,
        origin: &Origin<'_>,
    ) -> Result<(), DataError>;
}

/// Puts the kept rows into `blocks`, in the order asked for.
pub(super) fn read(
    table: &dyn Columnar,
    kept: &Kept,
    (blocks, groups): (&mut [&mut Block], Option<&mut Belonging>),
    origin: &Origin<'_>,
) -> Result<(), DataError> {
    for block in blocks {
        block.make_room(kept.len(), origin)?;
        for (place, column) in block.columns().to_vec().into_iter().enumerate() {
            let name = table.columns().name(column).to_owned();
            if table.holds_times(column) != block.wants_times(place) {
                let is_time = table.holds_times(column);
                return Err(times_and_numbers(&name, is_time, origin));
            }
            let mut take = |start: usize, piece: Piece<'_>| {
                for (rows, first) in kept.parts(start..start + piece.len()) {
                    let own = rows.start - start..rows.end - start;
                    match piece {
                        Piece::Numbers(numbers) => {
                            let at = (place, first, rows.start);
                            block.put_numbers(at, &numbers[own], &name, origin)?;
                        }
                        Piece::Texts(texts) => {
                            let at = (place, first, rows.start);
                            block.put_texts(at, &texts[own], &name, origin)?;
                        }
                    }
                }
                Ok(())
            };
            table.read(column, kept, &mut take, origin)?;
        }
    }
    let Some(groups) = groups else { return Ok(()) };
    groups.reserve(kept.len(), origin)?;
    let all = Kept::all(table.n_rows());
    groups.take_columns(kept, origin, |column, take| table.read(column, &all, take, origin))
}

/// The error for dates where numbers are needed, or the other way round.
fn times_and_numbers(column: &str, is_time: bool, origin: &Origin<'_>) -> DataError {
    let detail = if is_time {
        format!(
            "the column `{column}` holds dates; leave it out, or give {{cyclic}} with \
             `{column}:day`, `{column}:week` or `{column}:year`"
        )
    } else {
        format!(
            "the column `{column}` holds numbers and no dates; give {{cyclic}} with the length of \
             its cycle, as in `{column}:24`"
        )
    };
    DataError::Unsupported { path: origin.path.to_path_buf(), detail }
}
