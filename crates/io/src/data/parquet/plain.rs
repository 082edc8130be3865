//! Values of a page or a dictionary, as they are stored.

use super::bits::Deltas;
use super::footer::{BOOLEAN, BYTES, Column, DOUBLE, FIXED, FLOAT, INT32, INT64, Shape};
use crate::data::dtype::{Dtype, Kind};

/// Values one after the other.
pub(super) enum Values<'a> {
    /// Of equal width.
    Fixed {
        bytes: &'a [u8],
        column: &'a Column,
    },
    /// A bit each, from this one on.
    Bits {
        bytes: &'a [u8],
        bit: usize,
    },
    /// A length, then the bytes.
    Texts {
        bytes: &'a [u8],
    },
    /// The bytes of a value lie apart: all first ones, all second ones, …
    Split {
        bytes: &'a [u8],
        at: usize,
        column: &'a Column,
    },
    Deltas {
        deltas: Deltas<'a>,
        column: &'a Column,
    },
    /// Lengths first, then the bytes of all.
    Lengths {
        lengths: Deltas<'a>,
        bytes: &'a [u8],
    },
}

const PLAIN: i64 = 0;
const RLE: i64 = 3;
const DELTA: i64 = 5;
const DELTA_LENGTH: i64 = 6;
const SPLIT: i64 = 9;

impl<'a> Values<'a> {
    /// None where the encoding is not one of this type's.
    pub fn new(encoding: i64, column: &'a Column, bytes: &'a [u8]) -> Option<Self> {
        match (encoding, column.physical) {
            (PLAIN, BOOLEAN) => Some(Self::Bits { bytes, bit: 0 }),
            (PLAIN, BYTES) => Some(Self::Texts { bytes }),
            (PLAIN, _) if column.width > 0 => Some(Self::Fixed { bytes, column }),
            (SPLIT, FLOAT | DOUBLE | INT32 | INT64 | FIXED) if column.width > 0 => {
                Some(Self::Split { bytes, at: 0, column })
            }
            (DELTA, INT32 | INT64) => Some(Self::Deltas { deltas: Deltas::new(bytes)?, column }),
            (DELTA_LENGTH, BYTES) => {
                // The lengths are read twice: the bytes begin behind them.
                let mut counted = Deltas::new(bytes)?;
                while counted.next().is_some() {}
                Some(Self::Lengths { lengths: Deltas::new(bytes)?, bytes: counted.rest() })
            }
            _ => None,
        }
    }

    /// Whether an encoding packs booleans as runs.
    pub fn is_runs(encoding: i64, column: &Column) -> bool {
        (encoding, column.physical) == (RLE, BOOLEAN)
    }

    /// The next `count` numbers.
    pub fn numbers(&mut self, count: usize, out: &mut Vec<f64>) -> Option<()> {
        match self {
            Self::Fixed { bytes, column } => {
                let (now, rest) = bytes.split_at_checked(count.checked_mul(column.width)?)?;
                *bytes = rest;
                decode(column, now, out)
            }
            Self::Bits { bytes, bit } => {
                for at in *bit..bit.checked_add(count)? {
                    out.push(f64::from(bytes.get(at / 8)? >> (at % 8) & 1));
                }
                *bit += count;
                Some(())
            }
            Self::Split { bytes, at, column } => {
                let stride = bytes.len() / column.width;
                let mut now = Vec::with_capacity(column.width);
                for value in *at..at.checked_add(count).filter(|end| *end <= stride)? {
                    now.clear();
                    now.extend((0..column.width).map(|byte| bytes[byte * stride + value]));
                    decode(column, &now, out)?;
                }
                *at += count;
                Some(())
            }
            Self::Deltas { deltas, column } => {
                for _ in 0..count {
                    out.push(whole(column, deltas.next()?));
                }
                Some(())
            }
            Self::Texts { .. } | Self::Lengths { .. } => None,
        }
    }

    /// The next text.
    pub fn text(&mut self) -> Option<&'a [u8]> {
        match self {
            Self::Texts { bytes } => {
                let (length, rest) = bytes.split_first_chunk::<4>()?;
                let (text, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
                *bytes = rest;
                Some(text)
            }
            Self::Lengths { lengths, bytes } => {
                let length = usize::try_from(lengths.next()?).ok()?;
                let (text, rest) = bytes.split_at_checked(length)?;
                *bytes = rest;
                Some(text)
            }
            _ => None,
        }
    }
}

/// Stored values to numbers.
fn decode(column: &Column, bytes: &[u8], out: &mut Vec<f64>) -> Option<()> {
    let unsigned = column.shape == Shape::Unsigned;
    let kind = match (column.physical, unsigned) {
        (INT32, false) => Kind::I32,
        (INT32, true) => Kind::U32,
        (INT64, false) => Kind::I64,
        (INT64, true) => Kind::U64,
        (FLOAT, _) => Kind::F32,
        (DOUBLE, _) => Kind::F64,
        (FIXED, _) if column.shape == Shape::Half => Kind::F16,
        _ => return None,
    };
    let from = out.len();
    Dtype { kind, big_endian: false }.decode(bytes, |value| out.push(value));
    if let Shape::Parts(parts) | Shape::Seconds(parts) = column.shape {
        out[from..].iter_mut().for_each(|value| *value /= parts);
    }
    Some(())
}

fn whole(column: &Column, value: i64) -> f64 {
    match column.shape {
        Shape::Parts(parts) | Shape::Seconds(parts) => value as f64 / parts,
        Shape::Unsigned if column.physical == INT32 => f64::from(value as u32),
        Shape::Unsigned => value as u64 as f64,
        // Differences of 32 bits wrap around.
        _ if column.physical == INT32 => f64::from(value as i32),
        _ => value as f64,
    }
}
