//! Stored numbers to f64: bool, integers and floats, in either byte order.

/// How one stored number is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dtype {
    pub kind: Kind,
    pub big_endian: bool,
}

/// What a stored number is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    F32,
    F64,
}

impl Dtype {
    /// The dtype behind a NumPy type string such as `<f4`; `None` if it is not a real number of
    /// at most 64 bits.
    pub fn from_numpy(descr: &str) -> Option<Self> {
        let mut chars = descr.chars();
        let big_endian = match chars.next()? {
            '<' | '|' => false,
            '>' => true,
            '=' => cfg!(target_endian = "big"),
            _ => return None,
        };
        let kind = match chars.as_str() {
            "b1" => Kind::Bool,
            "i1" => Kind::I8,
            "i2" => Kind::I16,
            "i4" => Kind::I32,
            "i8" => Kind::I64,
            "u1" => Kind::U8,
            "u2" => Kind::U16,
            "u4" => Kind::U32,
            "u8" => Kind::U64,
            "f2" => Kind::F16,
            "f4" => Kind::F32,
            "f8" => Kind::F64,
            _ => return None,
        };
        Some(Self { kind, big_endian })
    }

    /// Bytes per number.
    pub fn size(self) -> usize {
        match self.kind {
            Kind::Bool | Kind::I8 | Kind::U8 => 1,
            Kind::I16 | Kind::U16 | Kind::F16 => 2,
            Kind::I32 | Kind::U32 | Kind::F32 => 4,
            Kind::I64 | Kind::U64 | Kind::F64 => 8,
        }
    }

    /// Fills `out` with the numbers in `bytes`, as many as both have.
    pub fn decode_into(self, bytes: &[u8], out: &mut [f64]) {
        let mut slots = out.iter_mut();
        self.decode(bytes, |value| {
            if let Some(slot) = slots.next() {
                *slot = value;
            }
        });
    }

    /// Hands every whole number in `bytes` to `take`, as f64.
    pub fn decode(self, bytes: &[u8], mut take: impl FnMut(f64)) {
        macro_rules! each {
            ($number:ty, $value:expr) => {
                for &raw in bytes.as_chunks::<{ size_of::<$number>() }>().0 {
                    let number = if self.big_endian {
                        <$number>::from_be_bytes(raw)
                    } else {
                        <$number>::from_le_bytes(raw)
                    };
                    take($value(number));
                }
            };
        }
        match self.kind {
            Kind::Bool => each!(u8, |b| f64::from(u8::from(b != 0))),
            Kind::I8 => each!(i8, f64::from),
            Kind::I16 => each!(i16, f64::from),
            Kind::I32 => each!(i32, f64::from),
            Kind::I64 => each!(i64, |n| n as f64),
            Kind::U8 => each!(u8, f64::from),
            Kind::U16 => each!(u16, f64::from),
            Kind::U32 => each!(u32, f64::from),
            Kind::U64 => each!(u64, |n| n as f64),
            Kind::F16 => each!(u16, half_to_f64),
            Kind::F32 => each!(f32, f64::from),
            Kind::F64 => each!(f64, |x| x),
        }
    }
}

/// IEEE 754 binary16, given by its bits: 1 sign, 5 exponent (bias 15), 10 fraction.
fn half_to_f64(bits: u16) -> f64 {
    let fraction = f64::from(bits & 0x03ff) / 1024.0;
    let magnitude = match i32::from(bits >> 10 & 0x1f) {
        0 => fraction * 2f64.powi(-14),
        0x1f if fraction == 0.0 => f64::INFINITY,
        0x1f => f64::NAN,
        exponent => (1.0 + fraction) * 2f64.powi(exponent - 15),
    };
    if bits >> 15 == 0 { magnitude } else { -magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(descr: &str, bytes: &[u8]) -> Vec<f64> {
        let mut values = Vec::new();
        Dtype::from_numpy(descr).unwrap().decode(bytes, |value| values.push(value));
        values
    }

    #[test]
    fn both_byte_orders_give_the_same_numbers() {
        assert_eq!(decoded("<i2", &[0xfe, 0xff, 3, 0]), [-2.0, 3.0]);
        assert_eq!(decoded(">i2", &[0xff, 0xfe, 0, 3]), [-2.0, 3.0]);
        assert_eq!(decoded("<f8", &1.5f64.to_le_bytes()), [1.5]);
        assert_eq!(decoded(">f4", &1.5f32.to_be_bytes()), [1.5]);
        assert_eq!(decoded("|b1", &[0, 1, 7]), [0.0, 1.0, 1.0]);
        assert_eq!(decoded(">u8", &u64::MAX.to_be_bytes()), [2f64.powi(64)]);
    }

    #[test]
    fn halves_cover_subnormals_and_extremes() {
        let halves = [0x3c00u16, 0xc000, 0x0001, 0x7bff, 0x3555, 0x8000];
        let bytes: Vec<u8> = halves.iter().flat_map(|bits| bits.to_le_bytes()).collect();
        let expected = [1.0, -2.0, 2f64.powi(-24), 65504.0, 0.333_251_953_125, -0.0];
        assert_eq!(decoded("<f2", &bytes), expected);
        assert!(half_to_f64(0x7c00).is_infinite() && half_to_f64(0x7e00).is_nan());
    }

    #[test]
    fn what_is_not_a_real_number_has_no_dtype() {
        for descr in ["|O", "<U5", "|S3", "<c8", "<f16", "<M8[ns]", "|V4", "", "f8", "<", "é8"] {
            assert_eq!(Dtype::from_numpy(descr), None, "{descr}");
        }
    }
}
