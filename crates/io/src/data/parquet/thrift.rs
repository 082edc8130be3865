//! Thrift's compact protocol, as far as parquet's metadata needs it.

/// Types of fields.
pub(super) const TRUE: u8 = 1;
pub(super) const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
pub(super) const BINARY: u8 = 8;
pub(super) const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
pub(super) const STRUCT: u8 = 12;

/// Structures inside structures, far more than parquet has.
const DEEPEST: usize = 24;

/// Where the bytes are not what they should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bad {
    pub at: usize,
}

pub(super) type Answer<T> = Result<T, Bad>;

/// Bytes being read.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    pub at: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, depth: 0 }
    }

    fn bad<T>(&self) -> Answer<T> {
        Err(Bad { at: self.at })
    }

    fn byte(&mut self) -> Answer<u8> {
        let Some(&byte) = self.bytes.get(self.at) else { return self.bad() };
        self.at += 1;
        Ok(byte)
    }

    fn varint(&mut self) -> Answer<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        self.bad()
    }

    /// A whole number of any width.
    pub fn integer(&mut self) -> Answer<i64> {
        let number = self.varint()?;
        Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    /// A whole number that counts something.
    pub fn count(&mut self) -> Answer<u64> {
        let at = self.at;
        u64::try_from(self.integer()?).map_err(|_| Bad { at })
    }

    pub fn binary(&mut self) -> Answer<&'a [u8]> {
        let length = self.varint()?;
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        match usize::try_from(length).ok().and_then(|length| rest.get(..length)) {
            Some(found) => {
                self.at += found.len();
                Ok(found)
            }
            None => self.bad(),
        }
    }

    /// Reads a structure: `each` is asked about every field, by number and type, and says whether
    /// it has read it; what it has not is passed over.
    pub fn structure(
        &mut self,
        mut each: impl FnMut(&mut Self, i16, u8) -> Answer<bool>,
    ) -> Answer<()> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return self.bad();
        }
        let mut id = 0i16;
        loop {
            let head = self.byte()?;
            if head == 0 {
                self.depth -= 1;
                return Ok(());
            }
            let kind = head & 0x0f;
            let at = self.at;
            id = match head >> 4 {
                0 => i16::try_from(self.integer()?).map_err(|_| Bad { at })?,
                delta => id.checked_add(i16::from(delta)).ok_or(Bad { at })?,
            };
            if !each(self, id, kind)? {
                self.skip(kind)?;
            }
        }
    }

    /// Reads a list whose entries `each` reads. Never makes room ahead for what a length claims.
    pub fn list(&mut self, mut each: impl FnMut(&mut Self, u8) -> Answer<()>) -> Answer<()> {
        let (length, kind) = self.list_head()?;
        for _ in 0..length {
            each(self, kind)?;
        }
        Ok(())
    }

    fn list_head(&mut self) -> Answer<(u64, u8)> {
        let head = self.byte()?;
        let length = match head >> 4 {
            15 => self.varint()?,
            short => u64::from(short),
        };
        // An entry takes a byte at least.
        if length > (self.bytes.len() - self.at) as u64 {
            return self.bad();
        }
        Ok((length, head & 0x0f))
    }

    /// Passes over a value.
    pub fn skip(&mut self, kind: u8) -> Answer<()> {
        match kind {
            TRUE | FALSE => Ok(()),
            BYTE => self.byte().map(|_| ()),
            I16 | I32 | I64 => self.varint().map(|_| ()),
            DOUBLE => {
                self.at += 8;
                if self.at > self.bytes.len() { self.bad() } else { Ok(()) }
            }
            BINARY => self.binary().map(|_| ()),
            LIST | SET => self.deeper(|own| {
                own.list(|own, kind| own.skip(if kind <= FALSE { BYTE } else { kind }))
            }),
            MAP => self.deeper(Self::skip_map),
            STRUCT => self.structure(|_, _, _| Ok(false)),
            _ => self.bad(),
        }
    }

    fn skip_map(&mut self) -> Answer<()> {
        let length = self.varint()?;
        if length == 0 {
            return Ok(());
        }
        let kinds = self.byte()?;
        if length > (self.bytes.len() - self.at) as u64 {
            return self.bad();
        }
        for _ in 0..length {
            self.skip(kinds >> 4)?;
            self.skip(kinds & 0x0f)?;
        }
        Ok(())
    }

    fn deeper(&mut self, read: impl FnOnce(&mut Self) -> Answer<()>) -> Answer<()> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return self.bad();
        }
        read(self)?;
        self.depth -= 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_are_read_and_what_is_unknown_is_passed_over() {
        // 1: i32 150, 3: "hi", 4: a list of three bytes, 5: true.
        let bytes = [0x15, 0xac, 0x02, 0x28, 2, b'h', b'i', 0x19, 0x33, 1, 2, 3, 0x11, 0];
        let (mut number, mut truth) = (0, false);
        let read = |own: &mut Reader<'_>, id, kind| match id {
            1 => own.integer().map(|found| number = found).map(|()| true),
            5 => {
                truth = kind == TRUE;
                Ok(true)
            }
            _ => Ok(false),
        };
        let mut reader = Reader::new(&bytes);
        reader.structure(read).unwrap();
        assert_eq!((number, truth, reader.at), (150, true, bytes.len()));
    }

    #[test]
    fn depth_and_lengths_are_limited() {
        let deep = [0x1c; 1000];
        assert_eq!(Reader::new(&deep).skip(STRUCT), Err(Bad { at: DEEPEST }));
        let nested = [0x19; 1000];
        assert!(Reader::new(&nested).skip(LIST).is_err());
        assert!(Reader::new(&[0xf8, 0xff, 0xff, 0xff, 0x7f]).skip(LIST).is_err());
        assert!(Reader::new(&[0xff, 0xff, 0xff, 0x7f]).binary().is_err());
    }
}
