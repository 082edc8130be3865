//! The signals of all rows, piece by piece: for statistics of more rows than are kept.

use std::path::Path;

use ndarray::ArrayView2;

use super::array::Listing;
use super::{DataRequest, Selection, Source, Thinning, folder};
use crate::budget::Meter;
use crate::data::kept::Kept;
use crate::data::survey::Survey;
use crate::error::DataError;

/// Takes rows; false where that is enough.
pub(super) type Take<'t> = dyn FnMut(ArrayView2<'_, f64>) -> bool + 't;

/// Bytes of a piece, about.
const PIECE_BYTES: usize = 8 << 20;
/// Pieces at most of an array that cannot be read from beginning to end: each may have to be
/// unpacked from a beginning.
const MOST_PIECES: usize = 8;

/// What the headers of a file say of all its rows, exactly: lines of text are counted one by one.
pub fn survey(path: &Path, request: &DataRequest) -> Result<Survey, DataError> {
    with_source(path, request, |source| {
        let whole = Selection { rows: None, thinning: &Thinning::default() };
        match source.recount(&whole)? {
            Some(counted) => Ok(counted),
            None => source.survey(&whole),
        }
    })
}

/// Hands the signals of all rows to `each`, in the file's order, in pieces of a multiple of `unit`
/// rows, the last one aside. Which rows the request asks for does not count, and signals have to be
/// numbers.
///
/// False, with some rows perhaps not handed on, where a value is missing or not finite: [`load`]
/// tells which.
///
/// [`load`]: super::load
pub fn walk_signals(
    path: &Path,
    request: &DataRequest,
    unit: usize,
    mut each: impl FnMut(ArrayView2<'_, f64>),
) -> Result<bool, DataError> {
    // Whatever else is asked for has a say in which columns are the signals.
    let all = DataRequest { rows: None, thinning: Thinning::default(), ..request.clone() };
    let mut take = |rows: ArrayView2<'_, f64>| {
        let finite = rows.iter().all(|value| value.is_finite());
        if finite {
            each(rows);
        }
        finite
    };
    with_source(path, &all, |source| match source {
        Source::Arrays(listing) => walk_arrays(&listing, unit, &mut take),
        Source::Table(table) => {
            let rows = piece_rows(PIECE_BYTES, table.signal_dim(), unit);
            table.walk_signals(rows, &mut take)
        }
    })
}

fn walk_arrays(listing: &Listing<'_>, unit: usize, take: &mut Take<'_>) -> Result<bool, DataError> {
    let (signals, origin) = (&listing.signals, &listing.origin);
    let rows = piece_rows(PIECE_BYTES, signals.columns, unit);
    if let Some(goes_on) = signals.stored.walk(rows, take)? {
        return Ok(goes_on);
    }
    let bytes = (signals.rows * signals.columns * 8).div_ceil(MOST_PIECES).max(PIECE_BYTES);
    let rows = piece_rows(bytes, signals.columns, unit);
    for first in (0..signals.rows).step_by(rows) {
        let piece = Kept::range(signals.rows, first..signals.rows.min(first + rows));
        let found = signals.read(&piece, origin)?;
        let goes_on = take(found.values.view());
        origin.meter.release(found.values.len() as u64 * 8);
        if !goes_on {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Rows of about so many bytes, a multiple of `unit`.
fn piece_rows(bytes: usize, columns: usize, unit: usize) -> usize {
    (bytes / 8 / columns.max(1)).max(1).next_multiple_of(unit.max(1))
}

fn with_source<T>(
    path: &Path,
    request: &DataRequest,
    work: impl FnOnce(Source<'_>) -> Result<T, DataError>,
) -> Result<T, DataError> {
    let meter = Meter::new(request.budget);
    let main = if path.is_dir() { folder::minari(path) } else { None };
    let path = main.as_deref().unwrap_or(path);
    work(Source::open(path, request, &meter)?)
}
