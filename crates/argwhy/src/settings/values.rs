//! Values that people write by hand.

use argwhy_core::solver::sso::BlockSize;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A kernel's inverse width, or the word `auto`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Gamma {
    /// 1/(number of features).
    Auto,
    /// This value.
    Value(f64),
}

impl Gamma {
    /// The value on `n_features` features.
    pub fn value(self, n_features: usize) -> f64 {
        match self {
            Self::Auto => 1.0 / n_features as f64,
            Self::Value(gamma) => gamma,
        }
    }
}

impl FromStr for Gamma {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        text.parse().map(Self::Value).map_err(|_| "expected `auto` or a positive number".to_owned())
    }
}

impl fmt::Display for Gamma {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Value(gamma) => gamma.fmt(f),
        }
    }
}

/// The weight of simplicity, or the word `auto`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Regularization {
    /// [`SHARE`](Self::SHARE)/(number of samples): the more was seen, the more detail it supports.
    Auto,
    /// This value.
    Value(f64),
}

impl Regularization {
    /// What all samples together weigh against simplicity where nobody says: found best over ten
    /// tables of 350 to 4000 rows (`bench/CHOOSING.md`).
    pub const SHARE: f64 = 0.3;

    /// The value for `n_samples` samples.
    pub fn value(self, n_samples: usize) -> f64 {
        match self {
            // No digits beyond those that people read.
            Self::Auto => two_digits(Self::SHARE / n_samples.max(1) as f64),
            Self::Value(value) => value,
        }
    }
}

/// Rounded to what is written with two digits, as people write settings.
pub(crate) fn two_digits(value: f64) -> f64 {
    format!("{value:.1e}").parse().unwrap_or(value)
}

impl From<f64> for Regularization {
    fn from(value: f64) -> Self {
        Self::Value(value)
    }
}

impl FromStr for Regularization {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        text.parse().map(Self::Value).map_err(|_| "expected `auto` or a positive number".to_owned())
    }
}

impl fmt::Display for Regularization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Value(value) => value.fmt(f),
        }
    }
}

impl Serialize for Regularization {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str("auto"),
            Self::Value(value) => serializer.serialize_f64(*value),
        }
    }
}

/// An amount of memory: bytes, or with a unit (`512MiB`, `2GiB`, `1.5GB`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemorySize(pub u64);

const UNITS: [(&str, u64); 9] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("B", 1),
];

impl FromStr for MemorySize {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "expected an amount such as 512MiB, 2GiB or a number of bytes".to_owned();
        let text = text.trim();
        let (number, unit) = UNITS
            .iter()
            .find_map(|(name, bytes)| {
                let cut = text.len().checked_sub(name.len())?;
                let (number, unit) = text.split_at_checked(cut)?;
                unit.eq_ignore_ascii_case(name).then_some((number, *bytes))
            })
            .unwrap_or((text, 1));
        let number: f64 = number.trim().parse().map_err(|_| wrong())?;
        let bytes = number * unit as f64;
        if bytes.is_finite() && (1.0..1e18).contains(&bytes) {
            Ok(Self(bytes as u64))
        } else {
            Err(wrong())
        }
    }
}

impl fmt::Display for MemorySize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let binary = UNITS[..4].iter().rev().find(|(_, bytes)| self.0 >= *bytes);
        match binary {
            None => write!(f, "{}B", self.0),
            Some((name, bytes)) if self.0.is_multiple_of(*bytes) => {
                write!(f, "{}{name}", self.0 / bytes)
            }
            Some((name, bytes)) => write!(f, "{:.1}{name}", self.0 as f64 / *bytes as f64),
        }
    }
}

/// Where kernel values are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// On a GPU where there is one and the fit is large enough to be worth it, else on this
    /// machine's cores.
    #[default]
    Auto,
    /// On this machine's cores.
    Cpu,
    /// On the NVIDIA GPU of this number.
    Cuda(usize),
}

impl FromStr for DeviceChoice {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "expected `auto`, `cpu`, `cuda`, or `cuda:1` and so on".to_owned();
        match text.split_once(':') {
            None if text == "auto" => Ok(Self::Auto),
            None if text == "cpu" => Ok(Self::Cpu),
            None if text == "cuda" => Ok(Self::Cuda(0)),
            Some(("cuda", number)) => number.parse().map(Self::Cuda).map_err(|_| wrong()),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(0) => f.write_str("cuda"),
            Self::Cuda(number) => write!(f, "cuda:{number}"),
        }
    }
}

impl Serialize for DeviceChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A list of numbers, `inf` and `-inf` included.
#[derive(Clone, Debug, PartialEq)]
pub struct Numbers(pub Vec<f64>);

impl FromStr for Numbers {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        text.split(',')
            .map(|part| match part.trim().parse::<f64>() {
                Ok(value) if !value.is_nan() => Ok(value),
                _ => Err(format!("`{part}` is not a number; expected a list such as -1,0.5,inf")),
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

impl fmt::Display for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, value) in self.0.iter().enumerate() {
            write!(f, "{}{value}", if i > 0 { "," } else { "" })?;
        }
        Ok(())
    }
}

/// Samples of a block: with a decimal point a share of all, without one a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Block(pub BlockSize);

impl FromStr for Block {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let size = if text.contains(['.', 'e', 'E']) {
            text.parse().ok().filter(|s| *s > 0.0 && *s <= 1.0).map(BlockSize::Share)
        } else {
            text.parse().ok().filter(|n| *n > 0).map(BlockSize::Count)
        };
        size.map(Self).ok_or_else(|| {
            "expected a share above 0 and up to 1 with a decimal point (0.5), or a number of \
             samples from 1 up (2500)"
                .to_owned()
        })
    }
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            BlockSize::Share(share) => write!(f, "{share:?}"),
            BlockSize::Count(count) => count.fmt(f),
        }
    }
}

impl Serialize for Block {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What JSON and TOML can hold in place of a hand-written value.
#[derive(Deserialize)]
#[serde(untagged)]
enum Raw {
    Integer(i64),
    Number(f64),
    Text(String),
    List(Vec<Raw>),
}

impl Raw {
    fn text(self) -> String {
        match self {
            Self::Integer(value) => value.to_string(),
            // With its decimal point: a block of 1.0 is not a block of 1.
            Self::Number(value) => format!("{value:?}"),
            Self::Text(text) => text,
            Self::List(list) => list.into_iter().map(Self::text).collect::<Vec<_>>().join(","),
        }
    }
}

/// A whole number that may be larger than TOML can hold, where it comes as text.
pub(super) fn whole_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Whole {
        Number(u64),
        Text(String),
        Other(Raw),
    }
    let wrong = |found: String| {
        D::Error::custom(format!("`{found}` is not a whole number from 0 to {}", u64::MAX))
    };
    match Whole::deserialize(deserializer)? {
        Whole::Number(number) => Ok(number),
        Whole::Text(text) => text.parse().map_err(|_| wrong(text)),
        Whole::Other(other) => Err(wrong(other.text())),
    }
}

macro_rules! read_as_written {
    ($($name:ident),*) => {$(
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Raw::deserialize(deserializer)?.text().parse().map_err(D::Error::custom)
            }
        }
    )*};
}
read_as_written!(Block, DeviceChoice, Gamma, MemorySize, Numbers, Regularization);

impl Serialize for Gamma {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str("auto"),
            Self::Value(gamma) => serializer.serialize_f64(*gamma),
        }
    }
}

impl Serialize for MemorySize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

impl Serialize for Numbers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_reads_and_prints() {
        for (text, bytes) in [
            ("2GiB", 2 << 30),
            ("512 MiB", 512 << 20),
            ("1.5gb", 1_500_000_000),
            ("300MB", 300_000_000),
            ("4096", 4096),
            ("64kib", 64 << 10),
        ] {
            assert_eq!(text.parse::<MemorySize>(), Ok(MemorySize(bytes)), "{text}");
        }
        for text in ["", "GiB", "-1GiB", "two", "nan", "inf", "0", "1e40", "€"] {
            assert!(text.parse::<MemorySize>().is_err(), "{text}");
        }
        assert_eq!(MemorySize(2 << 30).to_string(), "2GiB");
        assert_eq!(MemorySize(1_610_612_736).to_string(), "1.5GiB");
        assert_eq!(MemorySize(100).to_string(), "100B");
    }

    #[test]
    fn simplicity_weighs_less_the_more_samples_there_are() {
        assert_eq!("auto".parse(), Ok(Regularization::Auto));
        assert_eq!("1e-3".parse(), Ok(Regularization::Value(1e-3)));
        assert!("large".parse::<Regularization>().is_err());
        assert_eq!(Regularization::Auto.value(5000), 6e-5);
        assert_eq!(Regularization::Auto.value(0), 0.3);
        assert_eq!(Regularization::Value(0.5).value(5000), 0.5);
        for text in ["\"auto\"", "0.001"] {
            let read: Regularization = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), text);
        }
    }

    #[test]
    fn devices_read_and_print() {
        for (text, device) in [
            ("auto", DeviceChoice::Auto),
            ("cpu", DeviceChoice::Cpu),
            ("cuda", DeviceChoice::Cuda(0)),
            ("cuda:3", DeviceChoice::Cuda(3)),
        ] {
            assert_eq!(text.parse(), Ok(device));
            assert_eq!(device.to_string(), text);
        }
        assert_eq!("cuda:0".parse(), Ok(DeviceChoice::Cuda(0)));
        for text in ["", "gpu", "cuda:", "cuda:-1", "cuda:one", "cpu:0", "CUDA"] {
            let error = text.parse::<DeviceChoice>().unwrap_err();
            assert!(error.contains("`auto`, `cpu`, `cuda`"), "{text}: {error}");
        }
    }

    #[test]
    fn a_decimal_point_makes_a_block_a_share() {
        assert_eq!("0.5".parse(), Ok(Block(BlockSize::Share(0.5))));
        assert_eq!("1.0".parse(), Ok(Block(BlockSize::Share(1.0))));
        assert_eq!("1".parse(), Ok(Block(BlockSize::Count(1))));
        assert_eq!(serde_json::from_str::<Block>("1.0").unwrap().0, BlockSize::Share(1.0));
        assert_eq!(serde_json::from_str::<Block>("1").unwrap().0, BlockSize::Count(1));
        for text in ["0", "0.0", "1.5", "-1", "-0.5", "half", "", "nan", "1e9"] {
            assert!(text.parse::<Block>().is_err(), "{text}");
        }
    }

    #[test]
    fn lists_read_from_text_and_from_arrays() {
        let expected = Numbers(vec![-1.0, 0.5, f64::INFINITY]);
        assert_eq!("-1, 0.5,inf".parse(), Ok(expected.clone()));
        assert_eq!(serde_json::from_str::<Numbers>(r#"[-1, 0.5, "inf"]"#).unwrap(), expected);
        assert_eq!(serde_json::from_str::<Numbers>(r#""-1,0.5,inf""#).unwrap(), expected);
        assert!("1,,2".parse::<Numbers>().is_err());
        assert!("nan".parse::<Numbers>().is_err());
    }
}
