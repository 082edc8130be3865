//! Messages between this process and one that speaks to workers.
//!
//! A frame is the length of its head in four bytes, the head in JSON, then the arrays it lists, one
//! after the other, each number in little-endian order.

use ndarray::{ArrayView, Dimension};
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};

/// Heads are a few words, or a feature map: longer ones are a mistake.
const LONGEST_HEAD: usize = 256 << 20;

/// Numbers with a shape.
#[derive(Clone, Debug, PartialEq)]
pub enum Array {
    /// Row numbers.
    Indices(Vec<u64>),
    /// What only those at both ends understand.
    Bytes(Vec<u8>),
    /// Values of any shape, the last axis running fastest.
    Values(Vec<f64>, Vec<usize>),
    /// Values in single precision.
    Singles(Vec<f32>, Vec<usize>),
    /// Signs: −1, 0 or 1.
    Signs(Vec<i8>, Vec<usize>),
}

impl From<&[usize]> for Array {
    fn from(numbers: &[usize]) -> Self {
        Self::Indices(numbers.iter().map(|&number| number as u64).collect())
    }
}

impl<D: Dimension> From<ArrayView<'_, f64, D>> for Array {
    fn from(values: ArrayView<'_, f64, D>) -> Self {
        Self::Values(values.iter().copied().collect(), values.shape().to_vec())
    }
}

/// What stands in a head about an array.
#[derive(Serialize, Deserialize)]
struct Described {
    kind: Kind,
    shape: Vec<usize>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    U1,
    U8,
    F8,
    F4,
    I1,
}

#[derive(Serialize, Deserialize)]
struct Head {
    message: serde_json::Value,
    arrays: Vec<Described>,
}

/// A message: words and arrays.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// What it says.
    pub message: serde_json::Value,
    /// What it brings.
    pub arrays: Vec<Array>,
}

impl Frame {
    /// Writes it and does not wait.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let arrays = self.arrays.iter().map(Array::described).collect();
        let head = Head { message: self.message.clone(), arrays };
        let head = serde_json::to_vec(&head)?;
        to.write_all(&(head.len() as u32).to_le_bytes())?;
        to.write_all(&head)?;
        self.arrays.iter().try_for_each(|array| array.write(to))?;
        to.flush()
    }

    /// Waits for one.
    pub fn read(from: &mut impl Read) -> io::Result<Self> {
        let mut length = [0; 4];
        from.read_exact(&mut length)?;
        let length = u32::from_le_bytes(length) as usize;
        if length > LONGEST_HEAD {
            return Err(io::Error::other(format!("a head of {length} bytes")));
        }
        let mut head = vec![0; length];
        from.read_exact(&mut head)?;
        let head: Head = serde_json::from_slice(&head)?;
        let arrays = head.arrays.iter().map(|described| Array::read(described, from));
        Ok(Self { message: head.message, arrays: arrays.collect::<io::Result<_>>()? })
    }
}

impl Array {
    fn described(&self) -> Described {
        match self {
            Self::Indices(values) => Described { kind: Kind::U8, shape: vec![values.len()] },
            Self::Bytes(values) => Described { kind: Kind::U1, shape: vec![values.len()] },
            Self::Values(_, shape) => Described { kind: Kind::F8, shape: shape.clone() },
            Self::Singles(_, shape) => Described { kind: Kind::F4, shape: shape.clone() },
            Self::Signs(_, shape) => Described { kind: Kind::I1, shape: shape.clone() },
        }
    }

    fn write(&self, to: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Indices(values) => write_all(to, values, u64::to_le_bytes),
            Self::Bytes(values) => to.write_all(values),
            Self::Values(values, _) => write_all(to, values, f64::to_le_bytes),
            Self::Singles(values, _) => write_all(to, values, f32::to_le_bytes),
            Self::Signs(values, _) => write_all(to, values, i8::to_le_bytes),
        }
    }

    fn read(described: &Described, from: &mut impl Read) -> io::Result<Self> {
        let wrong = || io::Error::other("an array with a shape that nothing here has");
        let count = described.shape.iter().try_fold(1_usize, |a, b| a.checked_mul(*b));
        let count = count.ok_or_else(wrong)?;
        let shape = described.shape.clone();
        Ok(match described.kind {
            Kind::U1 => Self::Bytes(read_all(from, count, u8::from_le_bytes)?),
            Kind::U8 => Self::Indices(read_all(from, count, u64::from_le_bytes)?),
            Kind::F8 => Self::Values(read_all(from, count, f64::from_le_bytes)?, shape),
            Kind::F4 => Self::Singles(read_all(from, count, f32::from_le_bytes)?, shape),
            Kind::I1 => Self::Signs(read_all(from, count, i8::from_le_bytes)?, shape),
        })
    }
}

/// Numbers that are turned into bytes at a time.
const CHUNK: usize = 1 << 14;

fn write_all<T: Copy, const B: usize>(
    to: &mut impl Write,
    values: &[T],
    bytes: impl Fn(T) -> [u8; B],
) -> io::Result<()> {
    let mut buffer = Vec::with_capacity(CHUNK * B);
    for chunk in values.chunks(CHUNK) {
        buffer.clear();
        chunk.iter().for_each(|value| buffer.extend_from_slice(&bytes(*value)));
        to.write_all(&buffer)?;
    }
    Ok(())
}

fn read_all<T, const B: usize>(
    from: &mut impl Read,
    count: usize,
    value: impl Fn([u8; B]) -> T,
) -> io::Result<Vec<T>> {
    let mut values = Vec::new();
    let mut buffer = vec![0; CHUNK * B];
    let mut left = count;
    while left > 0 {
        let chunk = &mut buffer[..left.min(CHUNK) * B];
        from.read_exact(chunk)?;
        let numbers = chunk
            .chunks_exact(B)
            .map(|bytes| value(bytes.try_into().expect("chunks have as many bytes as a number")));
        values.extend(numbers);
        left -= left.min(CHUNK);
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_written_is_read() {
        let frame = Frame {
            message: json!({"call": "product", "exact": true}),
            arrays: vec![
                Array::Indices(vec![0, 7, u64::MAX]),
                Array::Bytes((0..=255).cycle().take(100_000).collect()),
                Array::Bytes(Vec::new()),
                Array::Values((0..40_000).map(|i| f64::from(i).sqrt()).collect(), vec![2, 20_000]),
                Array::Singles(vec![1.5, -0.0], vec![1, 2]),
                Array::Signs(vec![1, 0, -1], vec![3]),
                Array::Values(Vec::new(), vec![0, 3]),
                Array::Values(vec![2.0; 24], vec![2, 3, 4]),
            ],
        };
        let mut bytes = Vec::new();
        frame.write(&mut bytes).unwrap();
        frame.write(&mut bytes).unwrap();
        let mut from = bytes.as_slice();
        assert_eq!(Frame::read(&mut from).unwrap(), frame);
        assert_eq!(Frame::read(&mut from).unwrap(), frame);
        assert!(from.is_empty());
    }

    #[test]
    fn a_frame_that_breaks_off_or_makes_no_sense_is_an_error() {
        let frame =
            Frame { message: json!(1), arrays: vec![Array::Values(vec![1.0; 9], vec![3, 3])] };
        let mut bytes = Vec::new();
        frame.write(&mut bytes).unwrap();
        for end in 0..bytes.len() {
            assert!(Frame::read(&mut &bytes[..end]).is_err(), "{end}");
        }
        assert!(Frame::read(&mut [255, 255, 255, 255, 0].as_slice()).is_err());
    }
}
