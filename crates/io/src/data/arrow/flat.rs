//! Flatbuffers, read without believing them: every place is checked before it is looked at.

/// A table inside of a buffer.
#[derive(Clone, Copy)]
pub(super) struct Flat<'a> {
    bytes: &'a [u8],
    /// Where the table begins.
    at: usize,
    /// Where the list of its fields begins, and its bytes.
    fields: (usize, usize),
}

impl<'a> Flat<'a> {
    /// The table that a buffer is about.
    pub fn root(bytes: &'a [u8]) -> Option<Self> {
        Self::at(bytes, word(bytes, 0)? as usize)
    }

    fn at(bytes: &'a [u8], at: usize) -> Option<Self> {
        let back = word(bytes, at)?.cast_signed();
        let fields = usize::try_from(i64::try_from(at).ok()?.checked_sub(i64::from(back))?).ok()?;
        let size = short(bytes, fields)?;
        Some(Self { bytes, at, fields: (fields, usize::from(size)) })
    }

    /// Where the value of field `number` lies; none where it has its default.
    fn place(&self, number: usize) -> Option<usize> {
        let entry = 4 + 2 * number;
        if entry + 2 > self.fields.1 {
            return None;
        }
        match short(self.bytes, self.fields.0.checked_add(entry)?)? {
            0 => None,
            offset => self.at.checked_add(usize::from(offset)),
        }
    }

    pub fn byte(&self, number: usize) -> Option<u8> {
        self.bytes.get(self.place(number)?).copied()
    }

    pub fn half(&self, number: usize) -> Option<i16> {
        short(self.bytes, self.place(number)?).map(u16::cast_signed)
    }

    pub fn int(&self, number: usize) -> Option<i32> {
        word(self.bytes, self.place(number)?).map(u32::cast_signed)
    }

    pub fn long(&self, number: usize) -> Option<i64> {
        long(self.bytes, self.place(number)?)
    }

    pub fn table(&self, number: usize) -> Option<Self> {
        let place = self.place(number)?;
        Self::at(self.bytes, place.checked_add(word(self.bytes, place)? as usize)?)
    }

    /// Where a list begins, and how many entries of `size` bytes it has: no more than are there.
    fn list(&self, number: usize, size: usize) -> Option<(usize, usize)> {
        let place = self.place(number)?;
        let start = place.checked_add(word(self.bytes, place)? as usize)?;
        let count = word(self.bytes, start)? as usize;
        let first = start.checked_add(4)?;
        let end = first.checked_add(count.checked_mul(size)?)?;
        (end <= self.bytes.len()).then_some((first, count))
    }

    pub fn text(&self, number: usize) -> Option<&'a [u8]> {
        let (first, count) = self.list(number, 1)?;
        self.bytes.get(first..first + count)
    }

    pub fn tables(&self, number: usize) -> Option<Vec<Self>> {
        let (first, count) = self.list(number, 4)?;
        let one = |at: usize| {
            let place = first + 4 * at;
            Self::at(self.bytes, place.checked_add(word(self.bytes, place)? as usize)?)
        };
        (0..count).map(one).collect()
    }

    pub fn longs(&self, number: usize) -> Option<Vec<i64>> {
        let (first, count) = self.list(number, 8)?;
        (0..count).map(|at| long(self.bytes, first + 8 * at)).collect()
    }

    /// Where the blocks of a list begin: an offset, then two sizes.
    pub fn offsets(&self, number: usize) -> Option<Vec<u64>> {
        let (first, count) = self.list(number, 24)?;
        (0..count).map(|at| u64::try_from(long(self.bytes, first + 24 * at)?).ok()).collect()
    }

    /// A list of pairs of numbers.
    pub fn pairs(&self, number: usize) -> Option<Vec<(i64, i64)>> {
        let (first, count) = self.list(number, 16)?;
        let one = |at: usize| {
            let place = first + 16 * at;
            Some((long(self.bytes, place)?, long(self.bytes, place + 8)?))
        };
        (0..count).map(one).collect()
    }
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn long(bytes: &[u8], at: usize) -> Option<i64> {
    Some(i64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}
