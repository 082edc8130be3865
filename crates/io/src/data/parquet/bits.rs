//! Small whole numbers, packed bit by bit: runs of one value, runs of bits, and differences.

/// Numbers of `width` bits each: parquet's mixture of runs and packed bits.
pub(super) struct Runs<'a> {
    bytes: &'a [u8],
    width: u32,
    run: Run<'a>,
}

enum Run<'a> {
    /// So many more of a value.
    Same(u64, u32),
    /// So many more, from this bit of the bytes on.
    Packed(u64, &'a [u8], u64),
}

impl<'a> Runs<'a> {
    /// None where numbers are wider than 32 bits.
    pub fn new(bytes: &'a [u8], width: u32) -> Option<Self> {
        (width <= 32).then_some(Self { bytes, width, run: Run::Same(0, 0) })
    }

    /// Fills `out`; none where the bytes do not suffice.
    pub fn fill(&mut self, mut out: &mut [u32]) -> Option<()> {
        while !out.is_empty() {
            let (left, width) = (self.left(), self.width);
            if left == 0 {
                self.next_run()?;
                continue;
            }
            let count = left.min(out.len() as u64) as usize;
            let (now, later) = out.split_at_mut(count);
            match &mut self.run {
                Run::Same(left, value) => {
                    now.fill(*value);
                    *left -= count as u64;
                }
                Run::Packed(left, bytes, bit) => {
                    for slot in now {
                        *slot = bits(bytes, *bit, width);
                        *bit += u64::from(width);
                    }
                    *left -= count as u64;
                }
            }
            out = later;
        }
        Some(())
    }

    fn left(&self) -> u64 {
        match self.run {
            Run::Same(left, _) | Run::Packed(left, _, _) => left,
        }
    }

    fn next_run(&mut self) -> Option<()> {
        let head = varint(&mut self.bytes)?;
        if head & 1 == 0 {
            let (value, rest) = self.bytes.split_at_checked(self.width.div_ceil(8) as usize)?;
            self.bytes = rest;
            let value = value.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte));
            self.run = Run::Same(head >> 1, value);
        } else {
            // Groups of eight; the last one may be cut where its values end.
            let claimed = (head >> 1).checked_mul(u64::from(self.width))?;
            let taken = claimed.min(self.bytes.len() as u64) as usize;
            let (packed, rest) = self.bytes.split_at(taken);
            self.bytes = rest;
            let count = match self.width {
                0 => (head >> 1).checked_mul(8)?,
                width => (taken as u64 * 8) / u64::from(width),
            };
            if count == 0 {
                return None;
            }
            self.run = Run::Packed(count, packed, 0);
        }
        Some(())
    }
}

/// `width` bits from bit `start` on, the lowest first; what is not there is zero.
fn bits(bytes: &[u8], start: u64, width: u32) -> u32 {
    let first = (start / 8) as usize;
    let mut window = [0u8; 8];
    match bytes.get(first..first + 8) {
        Some(found) => window.copy_from_slice(found),
        None => {
            for (slot, byte) in window.iter_mut().zip(bytes.get(first..).unwrap_or_default()) {
                *slot = *byte;
            }
        }
    }
    let mask = (1u64 << width) - 1;
    ((u64::from_le_bytes(window) >> (start % 8)) & mask) as u32
}

pub(super) fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 0x7f) << shift;
        if *first < 0x80 {
            return Some(number);
        }
    }
    None
}

fn signed(bytes: &mut &[u8]) -> Option<i64> {
    let number = varint(bytes)?;
    Some((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
}

/// Whole numbers as differences from one to the next, in blocks with a width for each part.
pub(super) struct Deltas<'a> {
    bytes: &'a [u8],
    per_part: u64,
    parts: usize,
    left: u64,
    last: i64,
    is_first: bool,
    least: i64,
    widths: &'a [u8],
    /// The part being read: its bits, how many values are left in it, and their width.
    part: (&'a [u8], u64, u32),
    bit: u64,
}

impl<'a> Deltas<'a> {
    pub fn new(mut bytes: &'a [u8]) -> Option<Self> {
        let block = varint(&mut bytes)?;
        let parts = varint(&mut bytes)?;
        let left = varint(&mut bytes)?;
        let last = signed(&mut bytes)?;
        let per_part = block.checked_div(parts).filter(|n| *n > 0 && n.is_multiple_of(8))?;
        let parts = usize::try_from(parts).ok().filter(|parts| *parts <= bytes.len().max(512))?;
        let part = (&[][..], 0, 0);
        let (is_first, least, widths, bit) = (true, 0, &[][..], 0);
        Some(Self { bytes, per_part, parts, left, last, is_first, least, widths, part, bit })
    }

    pub fn next(&mut self) -> Option<i64> {
        self.left = self.left.checked_sub(1)?;
        if std::mem::take(&mut self.is_first) {
            return Some(self.last);
        }
        if self.part.1 == 0 {
            self.next_part()?;
        }
        let (bytes, left, width) = &mut self.part;
        let delta = wide_bits(bytes, self.bit, *width);
        self.bit += u64::from(*width);
        *left -= 1;
        self.last = self.last.wrapping_add(self.least).wrapping_add(delta.cast_signed());
        Some(self.last)
    }

    fn next_part(&mut self) -> Option<()> {
        if self.widths.is_empty() {
            self.least = signed(&mut self.bytes)?;
            (self.widths, self.bytes) = self.bytes.split_at_checked(self.parts)?;
        }
        let (width, widths) = self.widths.split_first()?;
        self.widths = widths;
        let width = u32::from(*width);
        if width > 64 {
            return None;
        }
        let claimed = (self.per_part / 8).checked_mul(u64::from(width))?;
        let taken = claimed.min(self.bytes.len() as u64) as usize;
        let (part, rest) = self.bytes.split_at(taken);
        self.bytes = rest;
        // Values that nothing is stored for end the data.
        if width > 0 && taken == 0 {
            return None;
        }
        self.part = (part, self.per_part, width);
        self.bit = 0;
        Some(())
    }

    /// What follows the numbers, once all have been read.
    pub fn rest(self) -> &'a [u8] {
        self.bytes
    }
}

/// As [`bits`], of up to 64.
fn wide_bits(bytes: &[u8], start: u64, width: u32) -> u64 {
    let low = width.min(32);
    let lower = u64::from(bits(bytes, start, low));
    let upper = u64::from(bits(bytes, start + u64::from(low), width - low));
    if low == 32 { lower | upper << 32 } else { lower }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_and_packed_bits_alternate() {
        // Five times 3, then 0 to 7 in three bits each.
        let bytes = [10, 3, 3, 0b1000_1000, 0b1100_0110, 0b1111_1010];
        let mut runs = Runs::new(&bytes, 3).unwrap();
        let mut out = [0; 13];
        runs.fill(&mut out[..2]).unwrap();
        runs.fill(&mut out[2..]).unwrap();
        assert_eq!(out, [3, 3, 3, 3, 3, 0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(runs.fill(&mut out[..1]), None);
    }

    #[test]
    fn differences_add_up() {
        // The specification's example: 7, 5, 3, 1, 2, 3, 4, 5 with a least difference of -2.
        let bytes = [0x80, 0x01, 4, 8, 14, 3, 2, 0, 0, 0, 0xc0, 0x3f, 0, 0, 0, 0, 0, 0];
        let mut deltas = Deltas::new(&bytes).unwrap();
        let found: Vec<i64> = std::iter::from_fn(|| deltas.next()).collect();
        assert_eq!(found, [7, 5, 3, 1, 2, 3, 4, 5]);
        assert!(Deltas::new(&[0, 0, 8, 14]).is_none());
    }
}
