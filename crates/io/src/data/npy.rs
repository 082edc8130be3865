//! The npy format: a Python-literal header, then the numbers.
//!
//! In: a stream and how many bytes it holds. Out: an n × d array, converted block by block. The
//! header is checked against the bytes that are there before anything is allocated.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use ndarray::Array2;

use super::DataRequest;
use super::array::Found;
use super::dtype::Dtype;
use super::format::unreadable;
use super::origin::Origin;
use crate::error::{DataError, shaped, shortened};
use header::Header;

mod header;

/// Loads a file that is one array: the signals. Decisions come from a second such file.
pub(super) fn load(
    path: &Path,
    request: &DataRequest,
) -> Result<(Found, Option<Found>), DataError> {
    if let Some(key) = request.signals.as_ref().filter(|key| *key != "signals") {
        return Err(DataError::Unsupported {
            path: path.to_path_buf(),
            detail: format!("an npy file is one array and has no key `{key}`; leave out --signals"),
        });
    }
    if !request.want_decisions {
        return Ok((load_array(path, "signals")?, None));
    }
    let Some(decisions) = &request.decisions else {
        return Err(DataError::NoDecisions { path: path.to_path_buf() });
    };
    let decisions_path = Path::new(decisions);
    let second = match super::format::detect(decisions_path)? {
        super::Format::Npy => load_array(decisions_path, decisions)?,
        _ => {
            return Err(DataError::Unsupported {
                path: decisions_path.to_path_buf(),
                detail: format!(
                    "the decisions for `{}` have to be an npy file as well",
                    path.display()
                ),
            });
        }
    };
    Ok((load_array(path, "signals")?, Some(second)))
}

/// Loads the only array of a file, to be called `key`.
pub(super) fn load_array(path: &Path, key: &str) -> Result<Found, DataError> {
    let file = File::open(path).map_err(|error| unreadable(path, error))?;
    let length = file.metadata().map_err(|error| unreadable(path, error))?.len();
    let origin = Origin { path, format: "npy" };
    let values = read(BufReader::new(file), length, key, &origin)?;
    Ok(Found { path: path.to_path_buf(), key: key.to_owned(), values })
}

/// Reads an array from a stream of exactly `length` bytes.
pub(super) fn read(
    mut stream: impl Read,
    length: u64,
    key: &str,
    origin: &Origin<'_>,
) -> Result<Array2<f64>, DataError> {
    let header = Header::read(&mut stream, key, origin)?;
    let dtype = Dtype::from_numpy(&header.descr).ok_or_else(|| DataError::Dtype {
        path: origin.path.to_path_buf(),
        key: key.to_owned(),
        dtype: shortened(&header.descr),
    })?;
    let (rows, columns) = origin.matrix_shape(key, &header.shape)?;
    let count = rows * columns;

    let expected = count as u64 * dtype.size() as u64;
    let present = length.saturating_sub(header.length);
    if expected != present {
        return Err(origin.corrupt(format!(
            "`{key}` claims shape {}, {expected} bytes of {}, where {present} bytes follow",
            shaped(&header.shape),
            header.descr
        )));
    }

    let mut values = origin.reserve(key, &header.shape, count)?;
    if header.fortran_order && rows > 1 && columns > 1 {
        values.resize(count, 0.0);
        // Columns come one after the other: number k belongs to row k mod n, column k div n.
        let (mut row, mut column) = (0, 0);
        decode(stream, count, dtype, key, origin, |value| {
            values[row * columns + column] = value;
            row += 1;
            if row == rows {
                (row, column) = (0, column + 1);
            }
        })?;
    } else {
        decode(stream, count, dtype, key, origin, |value| values.push(value))?;
    }
    Array2::from_shape_vec((rows, columns), values).map_err(|error| origin.corrupt(error))
}

/// Streams `count` numbers to `take`, then asks for the end, where a zip checks its checksum.
fn decode(
    mut stream: impl Read,
    count: usize,
    dtype: Dtype,
    key: &str,
    origin: &Origin<'_>,
    mut take: impl FnMut(f64),
) -> Result<(), DataError> {
    let failed = |error| origin.read_failed(&format!("array `{key}`"), error);
    let mut block = vec![0u8; 1 << 16];
    let mut left = count * dtype.size();
    while left > 0 {
        let part = &mut block[..left.min(1 << 16)];
        stream.read_exact(part).map_err(failed)?;
        dtype.decode(part, &mut take);
        left -= part.len();
    }
    match stream.read(&mut block).map_err(failed)? {
        0 => Ok(()),
        _ => Err(origin.corrupt(format!("array `{key}` goes on after its end"))),
    }
}
