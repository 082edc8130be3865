//! The header of an npy file: `{'descr': '<f4', 'fortran_order': False, 'shape': (5, 3), }`.

use std::io::Read;

use crate::data::origin::Origin;
use crate::error::{DataError, shortened};

/// What the header says of the numbers behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::data) struct Header {
    /// NumPy's type string; for structured types, their description as written.
    pub descr: String,
    pub fortran_order: bool,
    pub shape: Vec<u64>,
    /// Bytes before the first number.
    pub length: u64,
}

/// Headers of plain arrays have some hundred bytes; a longer one is structured or damaged.
const MAX_TEXT: u32 = 1 << 16;

impl Header {
    pub fn read(stream: &mut impl Read, key: &str, origin: &Origin<'_>) -> Result<Self, DataError> {
        let what = format!("header of `{key}`");
        let mut fill = |bytes: &mut [u8]| {
            stream.read_exact(bytes).map_err(|error| origin.read_failed(&what, error))
        };
        let mut start = [0u8; 8];
        fill(&mut start)?;
        let [b'\x93', b'N', b'U', b'M', b'P', b'Y', major, minor] = start else {
            return Err(origin.corrupt(format!("{what}: it does not start with \\x93NUMPY")));
        };
        let (text_length, prefix) = match major {
            1 => {
                let mut bytes = [0u8; 2];
                fill(&mut bytes)?;
                (u32::from(u16::from_le_bytes(bytes)), 10)
            }
            2 | 3 => {
                let mut bytes = [0u8; 4];
                fill(&mut bytes)?;
                (u32::from_le_bytes(bytes), 12)
            }
            _ => {
                return Err(origin.corrupt(format!("{what}: unknown version {major}.{minor}")));
            }
        };
        if text_length > MAX_TEXT {
            return Err(origin.corrupt(format!("{what}: it claims {text_length} bytes of text")));
        }
        let mut text = vec![0u8; text_length as usize];
        fill(&mut text)?;
        let text = String::from_utf8_lossy(&text);
        let (descr, fortran_order, shape) = Literal::new(&text)
            .dictionary()
            .ok_or_else(|| origin.corrupt(format!("{what}: it reads `{}`", shortened(&text))))?;
        Ok(Self { descr, fortran_order, shape, length: prefix + u64::from(text_length) })
    }
}

/// The part of Python's literal syntax that npy headers use.
struct Literal<'a> {
    rest: &'a str,
}

impl<'a> Literal<'a> {
    fn new(text: &'a str) -> Self {
        Self { rest: text }
    }

    fn eat(&mut self, token: &str) -> Option<()> {
        self.rest = self.rest.trim_start().strip_prefix(token)?;
        Some(())
    }

    fn dictionary(mut self) -> Option<(String, bool, Vec<u64>)> {
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        self.eat("{")?;
        while self.eat("}").is_none() {
            let name = self.string()?;
            self.eat(":")?;
            match name {
                "descr" => descr = Some(self.description()?),
                "fortran_order" => fortran_order = Some(self.boolean()?),
                "shape" => shape = Some(self.tuple()?),
                _ => return None,
            }
            if self.eat(",").is_none() {
                self.eat("}")?;
                break;
            }
        }
        Some((descr?, fortran_order?, shape?))
    }

    fn string(&mut self) -> Option<&'a str> {
        let quote = if self.eat("'").is_some() { '\'' } else { self.eat("\"").map(|()| '"')? };
        let (text, rest) = self.rest.split_once(quote)?;
        self.rest = rest;
        Some(text)
    }

    /// A type string, or the balanced list or tuple of a structured type, kept as written.
    fn description(&mut self) -> Option<String> {
        self.rest = self.rest.trim_start();
        if !self.rest.starts_with(['[', '(']) {
            return self.string().map(str::to_owned);
        }
        let mut depth = 0usize;
        for (i, byte) in self.rest.bytes().enumerate() {
            match byte {
                b'[' | b'(' => depth += 1,
                b']' | b')' => depth = depth.checked_sub(1)?,
                _ => {}
            }
            if depth == 0 {
                let (text, rest) = self.rest.split_at(i + 1);
                self.rest = rest;
                return Some(text.to_owned());
            }
        }
        None
    }

    fn boolean(&mut self) -> Option<bool> {
        if self.eat("True").is_some() {
            return Some(true);
        }
        self.eat("False").map(|()| false)
    }

    fn tuple(&mut self) -> Option<Vec<u64>> {
        let mut sizes = Vec::new();
        self.eat("(")?;
        while self.eat(")").is_none() {
            self.rest = self.rest.trim_start();
            let digits = self.rest.bytes().take_while(u8::is_ascii_digit).count();
            let (number, rest) = self.rest.split_at(digits);
            sizes.push(number.parse().ok()?);
            // Python 2 wrote long integers as 5L.
            self.rest = rest.strip_prefix('L').unwrap_or(rest);
            if self.eat(",").is_none() {
                self.eat(")")?;
                break;
            }
        }
        Some(sizes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Option<(String, bool, Vec<u64>)> {
        Literal::new(text).dictionary()
    }

    #[test]
    fn headers_as_numpy_writes_them() {
        let text = "{'descr': '<f4', 'fortran_order': False, 'shape': (5, 3), }      \n";
        assert_eq!(parsed(text), Some(("<f4".to_owned(), false, vec![5, 3])));
        let text = "{'descr': '|b1', 'fortran_order': True, 'shape': (7,), }";
        assert_eq!(parsed(text), Some(("|b1".to_owned(), true, vec![7])));
        let text = "{\"shape\": (), \"descr\": \"<i8\", \"fortran_order\": False}";
        assert_eq!(parsed(text), Some(("<i8".to_owned(), false, vec![])));
        let text = "{'descr': '<f8', 'fortran_order': False, 'shape': (5L, 3L), }";
        assert_eq!(parsed(text).unwrap().2, [5, 3]);
    }

    #[test]
    fn structured_types_are_kept_as_text() {
        let text = "{'descr': [('a', '<f4', (2,)), ('b', '|O')], 'fortran_order': False, \
                    'shape': (5,), }";
        assert_eq!(parsed(text).unwrap().0, "[('a', '<f4', (2,)), ('b', '|O')]");
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "{}",
            "{'descr': '<f4'}",
            "{'descr': '<f4', 'fortran_order': 0, 'shape': (5, 3)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (5, -3)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (5, 3",
            "{'descr': [('a', '<f4', 'fortran_order': False, 'shape': (5,)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (5,), 'more': 1}",
        ] {
            assert_eq!(parsed(text), None, "{text}");
        }
    }
}
