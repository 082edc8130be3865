//! One HDF5 dataset as numbers.

use ::hdf5_pure::{
    Chunk, Dataset, Datatype, DatatypeByteOrder, FixedPointLayout, FloatingPointLayout,
};

use super::chunks::Chunks;
use super::failed;
use crate::data::dtype::{Dtype, Kind};
use crate::data::kept::Kept;
use crate::data::origin::Origin;
use crate::data::sink::Sink;
use crate::error::{DataError, shaped, shortened};

/// A dataset of real numbers, not read yet: in one or two dimensions, or a part of the constraints.
pub(super) struct Numbers {
    pub(super) dataset: Dataset,
    pub(super) dtype: Dtype,
    pub key: String,
    pub shape: Vec<u64>,
    pub rows: usize,
    pub columns: usize,
}

/// Whether a dataset holds real numbers.
pub(super) fn is_number(dataset: &Dataset) -> bool {
    dataset.datatype().is_ok_and(|datatype| dtype_of(&datatype).is_some())
}

/// Bytes decoded at a time; whole chunks in any case, so that none is decompressed twice.
const WINDOW: usize = 1 << 20;
/// Bytes that the list of a dataset's chunks takes for each.
const CHUNK_BYTES: u64 = 128;

impl Numbers {
    /// Checks type, shape and size, before anything is allocated.
    pub fn of(dataset: Dataset, key: &str, origin: &Origin<'_>) -> Result<Self, DataError> {
        Self::shaped_by(dataset, key, origin, |shape| origin.matrix_shape(key, shape))
    }

    /// The same for an array of one to three axes; `columns` is then all that a row holds.
    pub fn tensor(dataset: Dataset, key: &str, origin: &Origin<'_>) -> Result<Self, DataError> {
        Self::shaped_by(dataset, key, origin, |shape| origin.tensor_shape(key, shape))
    }

    fn shaped_by(
        dataset: Dataset,
        key: &str,
        origin: &Origin<'_>,
        rows_of: impl Fn(&[u64]) -> Result<(usize, usize), DataError>,
    ) -> Result<Self, DataError> {
        let shape = dataset.shape().map_err(|error| failed(origin, error))?;
        let datatype = dataset.datatype().map_err(|error| failed(origin, error))?;
        let dtype = dtype_of(&datatype).ok_or_else(|| DataError::Dtype {
            path: origin.path.to_path_buf(),
            key: key.to_owned(),
            dtype: shortened(&datatype.to_string()),
        })?;
        let (rows, columns) = rows_of(&shape)?;

        // Deflate shrinks to no less than 1/1032. Beyond that (and some slack for filters of
        // constant data) the shape is damaged, or the array was never written.
        let length = std::fs::metadata(origin.path).map_or(0, |metadata| metadata.len());
        let claimed = (rows as u64 * columns as u64).saturating_mul(dtype.size() as u64);
        if claimed > length.saturating_mul(1100).saturating_add(1 << 26) {
            let detail = format!("{claimed} bytes, which a file of {length} bytes cannot hold");
            return Err(origin.too_large(key, &shape, detail));
        }
        let numbers = Self { dataset, dtype, key: key.to_owned(), shape, rows, columns };
        let listed = numbers.n_chunks(origin)?.saturating_mul(CHUNK_BYTES);
        origin.charge_list(listed, "the list of its chunks")?;
        check_chunks(&numbers.dataset, length, key, origin)?;
        Ok(numbers)
    }

    /// Sizes of a chunk along each axis; none where the dataset is not chunked.
    pub(super) fn chunk_shape(&self, origin: &Origin<'_>) -> Result<Option<Vec<u64>>, DataError> {
        let shape = self.dataset.chunk_shape().map_err(|error| failed(origin, error))?;
        Ok(shape.map(|shape| shape.into_iter().map(|size| size.max(1)).collect()))
    }

    /// Chunks that the shape asks for.
    pub(super) fn n_chunks(&self, origin: &Origin<'_>) -> Result<u64, DataError> {
        let Some(chunk) = self.chunk_shape(origin)? else { return Ok(0) };
        let counts = self.shape.iter().zip(&chunk).map(|(size, chunk)| size.div_ceil(*chunk));
        Ok(counts.fold(1, u64::saturating_mul))
    }

    /// All kept rows, of a dataset that is the whole array.
    pub fn read(&self, kept: &Kept, origin: &Origin<'_>) -> Result<Vec<f64>, DataError> {
        let mut sink = Sink::new(&self.key, &self.shape, self.columns, kept, origin)?;
        self.read_into(self.rows, 0, kept, &mut sink, origin)?;
        Ok(sink.into_values())
    }

    /// Puts the kept ones of the first `rows` rows, which are rows `first..` of the whole array.
    pub fn read_into(
        &self,
        rows: usize,
        first: usize,
        kept: &Kept,
        sink: &mut Sink<'_>,
        origin: &Origin<'_>,
    ) -> Result<(), DataError> {
        if !kept.any(first..first + rows) {
            return Ok(());
        }
        match Chunks::of(self, origin)? {
            Some(chunks) => chunks.read_into(rows, first, kept, sink, origin),
            None => self.read_windows(rows, first, kept, sink, origin),
        }
    }

    /// Some rows at a time, by the HDF5 crate: of data in one piece, and of filters that are not
    /// unpacked here.
    fn read_windows(
        &self,
        rows: usize,
        first: usize,
        kept: &Kept,
        sink: &mut Sink<'_>,
        origin: &Origin<'_>,
    ) -> Result<(), DataError> {
        let chunk_rows = self.chunk_shape(origin)?.map_or(1, |chunk| chunk[0] as usize);
        let row_bytes = (self.columns * self.dtype.size()).max(1);
        // Packed, unpacked, and put together.
        let copies = if self.dataset.is_chunked() { 4 } else { 1 };
        let left = origin.meter.left().unwrap_or(u64::MAX);
        let most = WINDOW.min(usize::try_from(left / copies).unwrap_or(WINDOW));
        let window = (most / row_bytes).max(1).div_ceil(chunk_rows).saturating_mul(chunk_rows);
        let scratch = (window.min(self.rows) * row_bytes) as u64 * copies;
        origin.charge(scratch, &format!("unpacking `{}`", self.key))?;
        let mut start = 0;
        while start < rows {
            let count = window.min(rows - start);
            if kept.any(first + start..first + start + count) {
                let bytes = self
                    .dataset
                    .read_raw_rows(start as u64, count as u64)
                    .map_err(|error| failed(origin, error))?;
                if bytes.len() != count * row_bytes {
                    return Err(origin.corrupt(format!(
                        "rows {start} to {} of `{}` have {} bytes instead of {}",
                        start + count,
                        self.key,
                        bytes.len(),
                        count * row_bytes
                    )));
                }
                sink.put((first + start) * self.columns, self.dtype, &bytes);
            }
            start += count;
        }
        origin.meter.release(scratch);
        Ok(())
    }
}

/// Checks what hdf5-pure 0.47 believes of the chunk index: it makes room for a chunk of the size
/// claimed, up to 4 GiB, before it finds that the bytes are not there, and adds to the offsets.
fn check_chunks(
    dataset: &Dataset,
    length: u64,
    key: &str,
    origin: &Origin<'_>,
) -> Result<(), DataError> {
    const MAX_OFFSET: u64 = 1 << 48;
    // An index that cannot be listed is left to the read itself to refuse.
    let chunks = if dataset.is_chunked() { dataset.chunks().unwrap_or_default() } else { vec![] };
    for Chunk { offset, address, storage_size, .. } in chunks {
        if address.saturating_add(storage_size) > length {
            return Err(origin.corrupt(format!(
                "a chunk of `{key}` at byte {address} claims {storage_size} bytes, \
                 in a file of {length}"
            )));
        }
        if offset.iter().any(|&start| start > MAX_OFFSET) {
            return Err(origin.corrupt(format!("a chunk of `{key}` starts at {}", shaped(&offset))));
        }
    }
    Ok(())
}

const BINARY16: FloatingPointLayout = FloatingPointLayout {
    bit_offset: 0,
    bit_precision: 16,
    exponent_location: 10,
    exponent_size: 5,
    mantissa_location: 0,
    mantissa_size: 10,
    exponent_bias: 15,
};

/// The layout of a stored number; `None` unless it fills its bytes in the usual way.
fn dtype_of(datatype: &Datatype) -> Option<Dtype> {
    let (kind, order) = match *datatype {
        Datatype::FloatingPoint { size, byte_order, layout } => {
            let kind = match (size, layout) {
                (2, BINARY16) => Kind::F16,
                (4, FloatingPointLayout::IEEE754_BINARY32) => Kind::F32,
                (8, FloatingPointLayout::IEEE754_BINARY64) => Kind::F64,
                _ => return None,
            };
            (kind, byte_order)
        }
        Datatype::FixedPoint { size, byte_order, layout } => {
            let FixedPointLayout { signed, bit_offset: 0, bit_precision } = layout else {
                return None;
            };
            let kind = match (signed, size, bit_precision) {
                (true, 1, 8) => Kind::I8,
                (true, 2, 16) => Kind::I16,
                (true, 4, 32) => Kind::I32,
                (true, 8, 64) => Kind::I64,
                (false, 1, 8) => Kind::U8,
                (false, 2, 16) => Kind::U16,
                (false, 4, 32) => Kind::U32,
                (false, 8, 64) => Kind::U64,
                _ => return None,
            };
            (kind, byte_order)
        }
        // h5py writes bool as an enumeration of FALSE and TRUE.
        Datatype::Enumeration { size, ref base_type, .. } => {
            return dtype_of(base_type).filter(|base| base.size() == size as usize);
        }
        _ => return None,
    };
    let big_endian = match order {
        DatatypeByteOrder::LittleEndian => false,
        DatatypeByteOrder::BigEndian => true,
        DatatypeByteOrder::Vax => return None,
    };
    Some(Dtype { kind, big_endian })
}
