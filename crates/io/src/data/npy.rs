//! The npy format: a Python-literal header, then the numbers.
//!
//! In: a stream and how many bytes it holds. Out: an n × d array, converted block by block. The
//! header is checked against the bytes that are there before anything is allocated.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use ndarray::{Array2, ArrayD, IxDyn, ShapeBuilder};

use super::DataRequest;
use super::array::{Arrays, Found, Tensor};
use super::dtype::Dtype;
use super::format::unreadable;
use super::origin::Origin;
use crate::error::{DataError, shaped, shortened};
use header::Header;

mod header;

/// Loads a file that is one array: the signals. Decisions and weights come from other such files.
pub(super) fn load(path: &Path, request: &DataRequest) -> Result<Arrays, DataError> {
    if let Some(key) = request.signals.as_ref().filter(|key| *key != "signals") {
        return Err(DataError::Unsupported {
            path: path.to_path_buf(),
            detail: format!(
                "an npy file is one array and has no key `{key}`; leave out {{signals}}"
            ),
        });
    }
    if request.constraints && request.matrix.is_none() && request.matrix_eq.is_none() {
        return Err(DataError::Unsupported {
            path: path.to_path_buf(),
            detail: "an npy file is one array and holds no constraints; put signals, decisions, M \
                     and W into one npz file or a folder, or give {matrix} with a column W"
                .to_owned(),
        });
    }
    let beside = |role: &str, other: &str| {
        let other = Path::new(other);
        match super::format::detect(other)? {
            super::Format::Npy => load_array(other, &other.display().to_string()),
            _ => Err(DataError::Unsupported {
                path: other.to_path_buf(),
                detail: format!(
                    "the {role} for `{}` have to be an npy file as well",
                    path.display()
                ),
            }),
        }
    };
    let decisions = match (&request.decisions, request.want_decisions) {
        (_, false) => None,
        (Some(decisions), true) => Some(beside("decisions", decisions)?),
        (None, true) => return Err(DataError::NoDecisions { path: path.to_path_buf() }),
    };
    Ok(Arrays {
        signals: load_array(path, "signals")?,
        decisions,
        weights: request.weights.as_deref().map(|w| beside("weights", w)).transpose()?,
        tensors: Vec::new(),
        keys: vec!["signals".to_owned()],
        unread: Vec::new(),
    })
}

/// Loads the only array of a file, to be called `key`.
pub(super) fn load_array(path: &Path, key: &str) -> Result<Found, DataError> {
    let file = File::open(path).map_err(|error| unreadable(path, error))?;
    let length = file.metadata().map_err(|error| unreadable(path, error))?.len();
    let origin = Origin { path, format: "npy" };
    let values = read(BufReader::new(file), length, key, &origin)?;
    Ok(Found { path: path.to_path_buf(), key: key.to_owned(), values })
}

/// Loads the only array of a file as a part of the constraints.
pub(super) fn load_tensor(path: &Path, key: &'static str) -> Result<Tensor, DataError> {
    let file = File::open(path).map_err(|error| unreadable(path, error))?;
    let length = file.metadata().map_err(|error| unreadable(path, error))?.len();
    let origin = Origin { path, format: "npy" };
    let values = read_tensor(BufReader::new(file), length, key, &origin)?;
    Ok(Tensor { path: path.to_path_buf(), key, values })
}

/// The header of a stream of exactly `length` bytes, and its dtype.
fn open(
    stream: &mut impl Read,
    key: &str,
    origin: &Origin<'_>,
) -> Result<(Header, Dtype), DataError> {
    let header = Header::read(stream, key, origin)?;
    let dtype = Dtype::from_numpy(&header.descr).ok_or_else(|| DataError::Dtype {
        path: origin.path.to_path_buf(),
        key: key.to_owned(),
        dtype: shortened(&header.descr),
    })?;
    Ok((header, dtype))
}

/// Checks that `count` numbers are what follows the header.
fn check_length(
    header: &Header,
    dtype: Dtype,
    (count, length): (usize, u64),
    key: &str,
    origin: &Origin<'_>,
) -> Result<(), DataError> {
    let expected = count as u64 * dtype.size() as u64;
    let present = length.saturating_sub(header.length);
    if expected == present {
        return Ok(());
    }
    Err(origin.corrupt(format!(
        "`{key}` claims shape {}, {expected} bytes of {}, where {present} bytes follow",
        shaped(&header.shape),
        header.descr
    )))
}

/// Reads an array of one to three axes from a stream of exactly `length` bytes.
pub(super) fn read_tensor(
    mut stream: impl Read,
    length: u64,
    key: &str,
    origin: &Origin<'_>,
) -> Result<ArrayD<f64>, DataError> {
    let (header, dtype) = open(&mut stream, key, origin)?;
    let (rows, row) = origin.tensor_shape(key, &header.shape)?;
    let count = rows * row;
    check_length(&header, dtype, (count, length), key, origin)?;
    let mut values = origin.reserve(key, &header.shape, count)?;
    decode(stream, count, dtype, key, origin, |value| values.push(value))?;
    let shape: Vec<usize> = header.shape.iter().map(|&size| size as usize).collect();
    let array = if header.fortran_order {
        ArrayD::from_shape_vec(IxDyn(&shape).f(), values)
    } else {
        ArrayD::from_shape_vec(IxDyn(&shape), values)
    };
    let array = array.map_err(|error| origin.corrupt(error))?;
    // Owned arrays in standard layout are passed on as they are.
    Ok(if array.is_standard_layout() { array } else { array.as_standard_layout().into_owned() })
}

/// Reads an array from a stream of exactly `length` bytes.
pub(super) fn read(
    mut stream: impl Read,
    length: u64,
    key: &str,
    origin: &Origin<'_>,
) -> Result<Array2<f64>, DataError> {
    let (header, dtype) = open(&mut stream, key, origin)?;
    let (rows, columns) = origin.matrix_shape(key, &header.shape)?;
    let count = rows * columns;
    check_length(&header, dtype, (count, length), key, origin)?;

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
