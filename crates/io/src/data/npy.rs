//! The npy format: a Python-literal header, then the numbers.
//!
//! In: a stream and how many bytes it holds. Out: the kept rows of an array, converted block by
//! block. The header is checked against the bytes that are there before anything is allocated.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use ndarray::ArrayView2;

use super::DataRequest;
use super::array::{Listing, Opened, Stored};
use super::dtype::Dtype;
use super::format::unreadable;
use super::groups::Belonging;
use super::kept::Kept;
use super::origin::Origin;
use super::sink::Sink;
use super::walk::Take;
use crate::budget::Meter;
use crate::error::{DataError, shaped, shortened};
pub(super) use header::Header;

mod header;

/// Bytes read at a time.
const BLOCK: usize = 1 << 16;

/// Opens a file that is one array: the signals. Decisions and weights come from other such files.
pub(super) fn open<'a>(
    origin: Origin<'a>,
    request: &DataRequest,
) -> Result<Listing<'a>, DataError> {
    let path = origin.path;
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
            super::Format::Npy => {
                let key = other.display().to_string();
                open_array(Origin { path: other, ..origin }, &key)
            }
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
    let groups = request.groups.as_deref().map(|g| beside("groups", g)).transpose()?;
    Ok(Listing {
        origin,
        signals: open_array(origin, "signals")?,
        decisions,
        weights: request.weights.as_deref().map(|w| beside("weights", w)).transpose()?,
        groups: groups.map(Belonging::Column),
        tensors: Vec::new(),
        keys: vec!["signals".to_owned()],
        unread: Vec::new(),
        limits: None,
    })
}

/// Opens the only array of a file, to be called `key`.
pub(super) fn open_array(origin: Origin<'_>, key: &str) -> Result<Opened<'static>, DataError> {
    open_file(origin, key, false)
}

/// Opens the only array of a file as a part of the constraints.
pub(super) fn open_tensor(origin: Origin<'_>, key: &str) -> Result<Opened<'static>, DataError> {
    open_file(origin, key, true)
}

fn open_file(origin: Origin<'_>, key: &str, tensor: bool) -> Result<Opened<'static>, DataError> {
    let path = origin.path;
    let file = File::open(path).map_err(|error| unreadable(path, error))?;
    let length = file.metadata().map_err(|error| unreadable(path, error))?.len();
    let layout = Layout::of(&mut BufReader::new(file), length, (key, tensor), &origin)?;
    let (meter, stored) = (origin.meter.clone(), layout.clone());
    let file = NpyFile { path: path.to_path_buf(), layout: stored, meter };
    Ok(layout.opened(path, Box::new(file)))
}

/// An npy file whose header is known.
struct NpyFile {
    path: PathBuf,
    layout: Layout,
    meter: Meter,
}

impl NpyFile {
    /// The file behind its header.
    fn open(&self) -> Result<File, DataError> {
        let mut file = File::open(&self.path).map_err(|error| unreadable(&self.path, error))?;
        file.seek(SeekFrom::Start(self.layout.header.length))
            .map_err(|error| unreadable(&self.path, error))?;
        Ok(file)
    }

    fn origin(&self) -> Origin<'_> {
        Origin { path: &self.path, format: "npy", meter: &self.meter }
    }
}

impl Stored for NpyFile {
    fn read(&self, kept: &Kept) -> Result<Vec<f64>, DataError> {
        self.layout.read(self.open()?, kept, &self.origin())
    }

    fn walk(&self, piece_rows: usize, take: &mut Take<'_>) -> Result<Option<bool>, DataError> {
        self.layout.walk(self.open()?, piece_rows, take, &self.origin())
    }
}

/// How an array lies in its stream.
#[derive(Clone)]
pub(super) struct Layout {
    key: String,
    pub header: Header,
    dtype: Dtype,
    rows: usize,
    columns: usize,
}

impl Layout {
    /// Reads the header of a stream of exactly `length` bytes: of an array of one or two axes, or
    /// of a tensor of up to three.
    pub fn of(
        stream: &mut impl Read,
        length: u64,
        (key, tensor): (&str, bool),
        origin: &Origin<'_>,
    ) -> Result<Self, DataError> {
        let header = Header::read(stream, key, origin)?;
        let dtype = Dtype::from_numpy(&header.descr).ok_or_else(|| DataError::Dtype {
            path: origin.path.to_path_buf(),
            key: key.to_owned(),
            dtype: shortened(&header.descr),
        })?;
        let (rows, columns) = if tensor {
            origin.tensor_shape(key, &header.shape)?
        } else {
            origin.matrix_shape(key, &header.shape)?
        };
        let layout = Self { key: key.to_owned(), header, dtype, rows, columns };
        layout.check_length(length, origin)?;
        Ok(layout)
    }

    /// The array, whose values `stored` can read.
    pub fn opened<'a>(self, path: &Path, stored: Box<dyn Stored + 'a>) -> Opened<'a> {
        let Self { key, header, rows, columns, .. } = self;
        Opened { path: path.to_path_buf(), key, shape: header.shape, rows, columns, stored }
    }

    /// Checks that the numbers are what follows the header.
    fn check_length(&self, length: u64, origin: &Origin<'_>) -> Result<(), DataError> {
        let expected = (self.rows * self.columns) as u64 * self.dtype.size() as u64;
        let present = length.saturating_sub(self.header.length);
        if expected == present {
            return Ok(());
        }
        Err(origin.corrupt(format!(
            "`{}` claims shape {}, {expected} bytes of {}, where {present} bytes follow",
            self.key,
            shaped(&self.header.shape),
            self.header.descr
        )))
    }

    /// The kept rows from a stream that stands behind the header.
    pub fn read(
        &self,
        stream: impl Read,
        kept: &Kept,
        origin: &Origin<'_>,
    ) -> Result<Vec<f64>, DataError> {
        let mut sink = Sink::new(&self.key, &self.header.shape, self.columns, kept, origin)?;
        if self.is_turned() {
            self.stream(stream, origin, |at, bytes| self.put_columns(&mut sink, at, bytes))?;
        } else {
            self.stream(stream, origin, |at, bytes| sink.put(at, self.dtype, bytes))?;
        }
        Ok(sink.into_values())
    }

    /// Whether columns come one after the other instead of rows.
    fn is_turned(&self) -> bool {
        self.header.fortran_order && self.rows > 1 && self.columns > 1
    }

    /// Hands all rows of such a stream to `take`, so many at a time; none where columns come one
    /// after the other.
    pub fn walk(
        &self,
        stream: impl Read,
        piece_rows: usize,
        take: &mut Take<'_>,
        origin: &Origin<'_>,
    ) -> Result<Option<bool>, DataError> {
        if self.is_turned() {
            return Ok(None);
        }
        let columns = self.columns;
        let most = piece_rows.min(self.rows) * columns;
        let mut piece = origin.room(&self.key, &self.header.shape, most)?;
        piece.clear();
        let mut goes_on = true;
        let mut hand_on = |piece: &mut Vec<f64>| {
            let rows = ArrayView2::from_shape((piece.len() / columns, columns), piece);
            goes_on = goes_on && rows.is_ok_and(&mut *take);
            piece.clear();
        };
        self.stream(stream, origin, |_, bytes| {
            self.dtype.decode(bytes, |value| {
                piece.push(value);
                if piece.len() == most {
                    hand_on(&mut piece);
                }
            });
        })?;
        if !piece.is_empty() {
            hand_on(&mut piece);
        }
        origin.meter.release(most as u64 * 8);
        Ok(Some(goes_on))
    }

    /// Columns come one after the other: number k belongs to row k mod n, column k div n.
    fn put_columns(&self, sink: &mut Sink<'_>, mut at: usize, mut bytes: &[u8]) {
        let size = self.dtype.size();
        while !bytes.is_empty() {
            let (row, column) = (at % self.rows, at / self.rows);
            let count = (bytes.len() / size).min(self.rows - row);
            let (part, rest) = bytes.split_at(count * size);
            sink.put_down(self.row_major(column), row, self.dtype, part);
            at += count;
            bytes = rest;
        }
    }

    /// Where the column that comes `column`-th in Fortran's order stands in a row.
    fn row_major(&self, column: usize) -> usize {
        match *self.header.shape.as_slice() {
            [_, inner, outer] => {
                let (inner, outer) = (inner as usize, outer as usize);
                (column % inner) * outer + column / inner
            }
            _ => column,
        }
    }

    /// Hands all numbers to `take`, a block at a time with the place of its first, then asks for
    /// the end, where a zip checks its checksum.
    fn stream(
        &self,
        mut stream: impl Read,
        origin: &Origin<'_>,
        mut take: impl FnMut(usize, &[u8]),
    ) -> Result<(), DataError> {
        let failed = |error| origin.read_failed(&format!("array `{}`", self.key), error);
        let size = self.dtype.size();
        let count = self.rows * self.columns;
        let mut block = vec![0u8; BLOCK];
        let mut at = 0;
        while at < count {
            let part = (count - at).min(BLOCK / size);
            stream.read_exact(&mut block[..part * size]).map_err(failed)?;
            take(at, &block[..part * size]);
            at += part;
        }
        match stream.read(&mut block).map_err(failed)? {
            0 => Ok(()),
            _ => Err(origin.corrupt(format!("array `{}` goes on after its end", self.key))),
        }
    }
}
