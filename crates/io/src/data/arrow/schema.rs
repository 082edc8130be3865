//! The columns of an Arrow file.

use super::flat::Flat;
use crate::data::dtype::Kind;
use crate::data::origin::Origin;
use crate::error::{DataError, shortened};

/// Kinds of messages.
pub(super) const SCHEMA: u8 = 1;
pub(super) const DICTIONARY: u8 = 2;
pub(super) const BATCH: u8 = 3;

/// Columns inside columns; deeper ones are refused.
const DEEPEST: usize = 16;
/// Entries of a list that become columns.
const LONGEST: usize = 1 << 16;

#[derive(Debug)]
pub(super) struct Field {
    pub name: String,
    /// How its buffers lie: the numbers of a dictionary's entries, where it has one.
    pub stored: Type,
    /// The dictionary's name, and what is in it.
    pub dictionary: Option<(i64, Type)>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Type {
    Number(Kind),
    /// Whole numbers of parts of a second, so many to one.
    Time {
        kind: Kind,
        parts: f64,
    },
    Bits,
    /// With places of 4 or 8 bytes.
    Text {
        wide: bool,
    },
    Views,
    /// So many numbers of this kind a row.
    Numbers {
        kind: Kind,
        length: usize,
    },
    /// What is not read, with the nodes, buffers and views that it has.
    Other {
        nodes: usize,
        buffers: usize,
        views: usize,
    },
}

impl Type {
    pub fn is_text(&self) -> bool {
        matches!(self, Self::Text { .. } | Self::Views)
    }

    pub fn n_nodes(&self) -> usize {
        match self {
            Self::Numbers { .. } => 2,
            Self::Other { nodes, .. } => *nodes,
            _ => 1,
        }
    }

    /// Columns of views, each of which has some buffers more for its texts.
    pub fn n_views(&self) -> usize {
        match self {
            Self::Views => 1,
            Self::Other { views, .. } => *views,
            _ => 0,
        }
    }

    /// Buffers, those of views' texts aside.
    pub fn n_buffers(&self) -> usize {
        match self {
            Self::Text { .. } | Self::Numbers { .. } => 3,
            Self::Other { buffers, .. } => *buffers,
            _ => 2,
        }
    }
}

pub(super) fn fields(schema: &Flat<'_>, origin: &Origin<'_>) -> Result<Vec<Field>, DataError> {
    if schema.half(0).unwrap_or(0) != 0 {
        return Err(super::unsupported(origin, "its numbers have their highest byte first"));
    }
    let broken = || origin.corrupt("its schema is broken");
    let found: Option<Vec<Field>> =
        schema.tables(1).ok_or_else(broken)?.iter().map(field).collect();
    found.ok_or_else(broken)
}

fn field(flat: &Flat<'_>) -> Option<Field> {
    let name = shortened(&String::from_utf8_lossy(flat.text(0).unwrap_or_default()));
    let own = stored(flat, 0)?;
    let Some(encoding) = flat.table(4) else {
        return Some(Field { name, stored: own, dictionary: None });
    };
    let id = encoding.long(0).unwrap_or(0);
    let places = encoding.table(1).map_or(Some(Kind::I32), |index| integer(&index))?;
    // Only texts are looked up; other dictionaries are not read.
    let stored = if own.is_text() {
        Type::Number(places)
    } else {
        Type::Other { nodes: 1, buffers: 2, views: 0 }
    };
    Some(Field { name, stored, dictionary: Some((id, own)) })
}

fn integer(index: &Flat<'_>) -> Option<Kind> {
    let signed = index.byte(1).unwrap_or(0) != 0;
    Some(match (index.int(0).unwrap_or(0), signed) {
        (8, true) => Kind::I8,
        (16, true) => Kind::I16,
        (32, true) => Kind::I32,
        (64, true) => Kind::I64,
        (8, false) => Kind::U8,
        (16, false) => Kind::U16,
        (32, false) => Kind::U32,
        (64, false) => Kind::U64,
        _ => return None,
    })
}

/// The type of a field; none where the schema is broken.
fn stored(flat: &Flat<'_>, depth: usize) -> Option<Type> {
    if depth > DEEPEST {
        return None;
    }
    let own = flat.table(3)?;
    let children = flat.tables(5).unwrap_or_default();
    let time = |kind, parts| Type::Time { kind, parts };
    Some(match flat.byte(2)? {
        1 => Type::Other { nodes: 1, buffers: 0, views: 0 },
        2 => Type::Number(integer(&own)?),
        3 => Type::Number(match own.half(0).unwrap_or(0) {
            0 => Kind::F16,
            1 => Kind::F32,
            _ => Kind::F64,
        }),
        4 | 5 => Type::Text { wide: false },
        6 => Type::Bits,
        8 if own.half(0).unwrap_or(1) == 0 => time(Kind::I32, 1.0 / 86_400.0),
        8 => time(Kind::I64, 1e3),
        9 => time(
            if own.int(1).unwrap_or(32) == 64 { Kind::I64 } else { Kind::I32 },
            1000f64.powi(i32::from(own.half(0).unwrap_or(1))),
        ),
        10 => time(Kind::I64, 1000f64.powi(i32::from(own.half(0).unwrap_or(0).clamp(0, 3)))),
        // Decimals, intervals, bytes of one length, and spans of time.
        7 | 11 | 15 | 18 => Type::Other { nodes: 1, buffers: 2, views: 0 },
        16 => {
            let length = usize::try_from(own.int(0)?).ok()?;
            match (stored(children.first()?, depth + 1)?, length) {
                (Type::Number(kind), 1..LONGEST) => Type::Numbers { kind, length },
                (inner, _) => around(&[inner], 1),
            }
        }
        12 | 17 | 21 => around(&[stored(children.first()?, depth + 1)?], 2),
        13 => {
            let inner: Option<Vec<Type>> =
                children.iter().map(|child| stored(child, depth + 1)).collect();
            around(&inner?, 1)
        }
        19 | 20 => Type::Text { wide: true },
        23 | 24 => Type::Views,
        _ => return None,
    })
}

/// A column around others, which is not read.
fn around(inner: &[Type], own: usize) -> Type {
    let nodes = 1 + inner.iter().map(Type::n_nodes).sum::<usize>();
    let buffers = own + inner.iter().map(Type::n_buffers).sum::<usize>();
    let views = inner.iter().map(Type::n_views).sum();
    Type::Other { nodes, buffers, views }
}

/// The names of columns, and where each comes from: its field, and its place in the lists of that.
pub(super) fn columns(fields: &[Field]) -> (Vec<String>, Vec<(usize, usize)>) {
    let (mut names, mut places) = (Vec::new(), Vec::new());
    for (at, field) in fields.iter().enumerate() {
        if let Type::Numbers { length, .. } = field.stored {
            names.extend((0..length).map(|entry| format!("{}_{entry}", field.name)));
            places.extend((0..length).map(|entry| (at, entry)));
        } else {
            names.push(field.name.clone());
            places.push((at, 0));
        }
    }
    (names, places)
}
