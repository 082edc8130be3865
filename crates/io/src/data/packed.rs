//! Text that may be packed, by gzip or zstd: what it is, the first bytes say.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use flate2::read::MultiGzDecoder;

use super::format::unreadable;
use super::origin::Origin;
use crate::error::DataError;

pub(super) const GZIP: &[u8] = b"\x1f\x8b";
pub(super) const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";

/// The file, unpacked while it is read.
pub(super) fn open(origin: &Origin<'_>) -> Result<Box<dyn Read>, DataError> {
    let failed = |error| unreadable(origin.path, error);
    let mut file = File::open(origin.path).map_err(failed)?;
    let mut start = Vec::new();
    file.by_ref().take(18).read_to_end(&mut start).map_err(failed)?;
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    if start.starts_with(GZIP) {
        return Ok(Box::new(MultiGzDecoder::new(std::io::BufReader::new(file))));
    }
    if start.starts_with(ZSTD) {
        return zstd(file, origin);
    }
    Ok(Box::new(file))
}

#[cfg(feature = "zstd")]
fn zstd(file: File, origin: &Origin<'_>) -> Result<Box<dyn Read>, DataError> {
    Ok(Box::new(super::codec::zstd::stream(std::io::BufReader::new(file), origin)?))
}

#[cfg(not(feature = "zstd"))]
fn zstd(_: File, origin: &Origin<'_>) -> Result<Box<dyn Read>, DataError> {
    Err(origin.not_built("zstd"))
}
