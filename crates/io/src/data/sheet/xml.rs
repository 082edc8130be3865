//! XML, one tag or text after the other: as much of it as sheets need.

use std::io::{self, Read};

/// Bytes of a single tag or text; sheets have far shorter ones.
const LONGEST: usize = 1 << 20;

/// What comes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    /// `<name …>`; `closed` for `<name … />`.
    Open {
        closed: bool,
    },
    /// `</name>`.
    Close,
    /// Between tags, with entities replaced.
    Text,
    End,
}

/// XML being read. The name and attributes, or the text, of the last event are kept here.
pub(super) struct Xml<R> {
    source: R,
    buffer: Vec<u8>,
    at: usize,
    /// Of a tag, everything between its brackets; of text, the text.
    content: Vec<u8>,
    /// Bytes read in all, for messages.
    pub read: u64,
}

impl<R: Read> Xml<R> {
    pub fn new(source: R) -> Self {
        Self { source, buffer: Vec::new(), at: 0, content: Vec::new(), read: 0 }
    }

    pub fn next(&mut self) -> io::Result<Event> {
        self.content.clear();
        let Some(first) = self.peek()? else { return Ok(Event::End) };
        if first != b'<' {
            self.until(b'<', false)?;
            self.content = unescaped(&self.content);
            return Ok(Event::Text);
        }
        self.at += 1;
        self.until(b'>', true)?;
        if self.content.starts_with(b"!--") {
            while !self.content.ends_with(b"--") {
                self.content.push(b'>');
                self.until(b'>', true)?;
            }
            return self.next();
        }
        match self.content.first() {
            // Declarations and instructions.
            Some(b'?' | b'!') => self.next(),
            Some(b'/') => {
                self.content.remove(0);
                Ok(Event::Close)
            }
            _ => {
                let closed = self.content.last() == Some(&b'/');
                if closed {
                    self.content.pop();
                }
                Ok(Event::Open { closed })
            }
        }
    }

    /// The name of the last tag, without what is before its colon.
    pub fn name(&self) -> &[u8] {
        let end = self.content.iter().position(u8::is_ascii_whitespace);
        let name = &self.content[..end.unwrap_or(self.content.len())];
        name.rsplit(|byte| *byte == b':').next().unwrap_or_default()
    }

    /// An attribute of the last tag, by its full name.
    pub fn attribute(&self, wanted: &str) -> Option<Vec<u8>> {
        let mut rest = &self.content[..];
        loop {
            let at = rest.windows(wanted.len()).position(|part| part == wanted.as_bytes())?;
            let before = at.checked_sub(1).map(|at| rest[at]);
            rest = &rest[at + wanted.len()..];
            if !before.is_some_and(|byte| byte.is_ascii_whitespace()) {
                continue;
            }
            let Some(value) = rest.trim_ascii_start().strip_prefix(b"=") else { continue };
            let (quote, value) = value.trim_ascii_start().split_first()?;
            let end = value.iter().position(|byte| byte == quote)?;
            return Some(unescaped(&value[..end]));
        }
    }

    pub fn text(&self) -> &[u8] {
        &self.content
    }

    fn peek(&mut self) -> io::Result<Option<u8>> {
        if self.at == self.buffer.len() {
            self.buffer.resize(1 << 15, 0);
            let count = self.source.read(&mut self.buffer)?;
            self.buffer.truncate(count);
            self.read += count as u64;
            self.at = 0;
        }
        Ok(self.buffer.get(self.at).copied())
    }

    /// Adds to the content up to `end`, which is passed over if `inclusive`.
    fn until(&mut self, end: u8, inclusive: bool) -> io::Result<()> {
        while self.peek()?.is_some() {
            let rest = &self.buffer[self.at..];
            let found = rest.iter().position(|byte| *byte == end);
            let count = found.unwrap_or(rest.len());
            self.content.extend_from_slice(&rest[..count]);
            if self.content.len() > LONGEST {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a part is too long"));
            }
            self.at += count;
            if found.is_some() {
                self.at += usize::from(inclusive);
                return Ok(());
            }
        }
        if inclusive { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }
}

/// Text with `&lt;`, `&#65;` and the like replaced.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| *byte == b'&') {
        out.extend_from_slice(&rest[..at]);
        let entity = &rest[at + 1..];
        let end = entity.iter().take(12).position(|byte| *byte == b';');
        let Some((name, after)) = end.map(|end| (&entity[..end], &entity[end + 1..])) else {
            out.push(b'&');
            rest = entity;
            continue;
        };
        rest = after;
        match character(name) {
            Some(character) => {
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            None => out.push(b'?'),
        }
    }
    out.extend_from_slice(rest);
    out
}

fn character(name: &[u8]) -> Option<char> {
    Some(match name {
        b"lt" => '<',
        b"gt" => '>',
        b"amp" => '&',
        b"quot" => '"',
        b"apos" => '\'',
        _ => {
            let digits = str::from_utf8(name.strip_prefix(b"#")?).ok()?;
            let number = match digits.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => digits.parse().ok()?,
            };
            char::from_u32(number)?
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_texts_and_entities() {
        let text = b"<?xml?><!-- a > b --><x:a r=\"A1\" xr='2 &lt; 3'>1 &amp; &#50;</x:a><b/>";
        let mut xml = Xml::new(&text[..]);
        assert_eq!(xml.next().unwrap(), Event::Open { closed: false });
        assert_eq!((xml.name(), xml.attribute("r").unwrap()), (&b"a"[..], b"A1".to_vec()));
        assert_eq!(xml.attribute("xr").unwrap(), b"2 < 3");
        assert_eq!(xml.attribute("s"), None);
        assert_eq!(xml.next().unwrap(), Event::Text);
        assert_eq!(xml.text(), b"1 & 2");
        assert_eq!((xml.next().unwrap(), xml.name()), (Event::Close, &b"a"[..]));
        assert_eq!(xml.next().unwrap(), Event::Open { closed: true });
        assert_eq!(xml.next().unwrap(), Event::End);
        assert!(Xml::new(&b"<a"[..]).next().is_err());
    }
}
