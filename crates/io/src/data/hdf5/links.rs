//! A file whose groups have no symbolic links.
//!
//! hdf5-pure 0.47 takes every entry of a group of the older kind for an object and fails at the
//! first that is a symbolic link, used or not. Here the entries of links are taken out of the nodes
//! that list a group (`SNOD`: 8 bytes, then entries of a name, an address, a type and 20 bytes), as
//! the crate does itself with groups of the newer kind.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};

use ::hdf5_pure::{FormatError, ReadSeekSource, Source};

/// Type of an entry that is a symbolic link.
const SYMBOLIC: u32 = 2;
const HEAD: usize = 8;

pub(super) struct WithoutLinks {
    file: ReadSeekSource<File>,
    /// Bytes of an address, and of a place in the list of names.
    sizes: (usize, usize),
}

impl WithoutLinks {
    pub fn new(file: File) -> Result<Self, FormatError> {
        let sizes = sizes(&file).unwrap_or((8, 8));
        Ok(Self { file: ReadSeekSource::new(file)?, sizes })
    }

    /// A node without its links.
    fn cleaned(&self, offset: u64, head: &[u8]) -> Result<Vec<u8>, FormatError> {
        let count = usize::from(u16::from_le_bytes([head[6], head[7]]));
        let kind = self.sizes.0 + self.sizes.1;
        let size = kind + 24;
        let node = self.file.read_exact_at(offset, HEAD + count * size)?;
        let mut clean = node[..HEAD].to_vec();
        for entry in node[HEAD..].chunks_exact(size) {
            if entry[kind..kind + 4] != SYMBOLIC.to_le_bytes() {
                clean.extend_from_slice(entry);
            }
        }
        let left = (clean.len() - HEAD) / size;
        clean[6..HEAD].copy_from_slice(&(left as u16).to_le_bytes());
        Ok(clean)
    }
}

impl Source for WithoutLinks {
    fn len(&self) -> u64 {
        self.file.len()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), FormatError> {
        self.file.read_at(offset, buffer)
    }

    fn read_metadata_at(&self, offset: u64, length: usize) -> Result<Vec<u8>, FormatError> {
        let bytes = self.file.read_exact_at(offset, length)?;
        if length < HEAD || !bytes.starts_with(b"SNOD\x01") {
            return Ok(bytes);
        }
        let mut clean = self.cleaned(offset, &bytes)?;
        clean.resize(length.max(clean.len()), 0);
        clean.truncate(length);
        Ok(clean)
    }
}

/// What the superblock says of sizes: those of an address and of a length.
fn sizes(file: &File) -> Option<(usize, usize)> {
    const SIGNATURE: &[u8] = b"\x89HDF\r\n\x1a\n";
    let mut file = BufReader::new(file);
    // A file may begin with a block of the user's own, of 512 bytes or twice that, and so on.
    let places = std::iter::successors(Some(0u64), |&at| Some(if at == 0 { 512 } else { 2 * at }));
    for at in places.take(24) {
        let mut head = [0u8; 16];
        file.seek(SeekFrom::Start(at)).ok()?;
        file.read_exact(&mut head).ok()?;
        if head.starts_with(SIGNATURE) {
            let (addresses, lengths) =
                if head[8] < 2 { (head[13], head[14]) } else { (head[9], head[10]) };
            return Some((usize::from(addresses), usize::from(lengths)));
        }
    }
    None
}
