//! Columns that become one array.

use std::collections::HashMap;

use ndarray::{Array2, ArrayD, Axis, IxDyn};

use super::columns::Columns;
use super::records::Records;
use crate::data::array::{Found, Tensor};
use crate::data::dates;
use crate::data::encoding::{Code, Cyclic, Encoding, MOST_CATEGORIES, OneHot, Period};
use crate::data::missing;
use crate::data::origin::Origin;
use crate::error::DataError;

/// The columns of one key, and the numbers read from them so far.
pub(super) struct Block {
    key: String,
    columns: Vec<usize>,
    values: Vec<f64>,
    /// What an empty cell means; none where it is an error.
    empty: Option<f64>,
    /// Whether words for a missing value are one.
    gaps: bool,
    /// Whether columns may become numbers in their own way.
    encodable: bool,
    /// How each column becomes numbers, with its name; none where all are.
    codes: Vec<Coded>,
}

/// A column that may have to be encoded.
struct Coded {
    name: String,
    code: Code,
    /// The places of categories; those of a model are all there are.
    places: HashMap<Vec<u8>, usize>,
    grows: bool,
}

/// The columns of a part of the constraints.
pub(super) struct TensorBlock {
    pub key: &'static str,
    /// Sizes of the axes beyond the first.
    pub shape: Vec<usize>,
    pub block: Block,
    /// The dimensions that have a column, where some have none.
    limited: Vec<bool>,
}

/// What an empty cell of a bound means: no limit.
fn empty_cell(key: &str) -> Option<f64> {
    match key {
        "lower" => Some(f64::NEG_INFINITY),
        "W" | "upper" => Some(f64::INFINITY),
        _ => None,
    }
}

impl TensorBlock {
    pub fn new(
        key: &'static str,
        columns: &Columns,
        origin: &Origin<'_>,
    ) -> Result<Self, DataError> {
        let (shape, columns) = if ["M", "M_eq"].contains(&key) {
            let (shape, columns) = columns.matrix(key, origin)?;
            (shape.to_vec(), columns)
        } else {
            let columns = columns.of(key, origin)?;
            (vec![columns.len()], columns)
        };
        Ok(Self::of(key, shape, columns))
    }

    pub fn of(key: &'static str, shape: Vec<usize>, columns: Vec<usize>) -> Self {
        Self { key, shape, block: Block::bound(key, columns), limited: Vec::new() }
    }

    /// The same, where only some dimensions have a column.
    pub fn limiting(self, limited: Vec<bool>) -> Self {
        Self { shape: vec![limited.len()], limited, ..self }
    }

    pub fn finish(self, order: Option<&[usize]>, origin: &Origin<'_>) -> Result<Tensor, DataError> {
        let found = self.block.finish(order, origin)?;
        let shape: Vec<usize> = std::iter::once(found.values.nrows()).chain(self.shape).collect();
        let mut values = found.values.into_raw_vec_and_offset().0;
        if self.limited.contains(&false) {
            let none = empty_cell(self.key).unwrap_or(f64::NAN);
            let mut own = values.into_iter();
            let cells = shape[0] * self.limited.len();
            let limited = self.limited.iter().cycle().take(cells);
            values =
                limited.map(|has| if *has { own.next().unwrap_or(none) } else { none }).collect();
        }
        let values =
            ArrayD::from_shape_vec(IxDyn(&shape), values).map_err(|error| origin.corrupt(error))?;
        Ok(Tensor { path: found.path, key: self.key, values })
    }
}

impl Block {
    pub fn of(key: String, columns: Vec<usize>) -> Self {
        let (values, codes) = (Vec::new(), Vec::new());
        Self { key, columns, values, empty: None, gaps: false, encodable: false, codes }
    }

    /// The same columns of numbers, of which nothing is read yet.
    pub fn afresh(&self) -> Self {
        let Self { empty, gaps, encodable, .. } = *self;
        Self { empty, gaps, encodable, ..Self::of(self.key.clone(), self.columns.clone()) }
    }

    /// The same, where values may be missing.
    pub fn with_gaps(self) -> Self {
        Self { gaps: true, ..self }
    }

    /// The same, where columns may become numbers in their own way.
    pub fn encodable(self) -> Self {
        Self { encodable: true, ..self }
    }

    /// The same, with columns that do.
    pub fn encoded(
        mut self,
        encoding: &Encoding,
        columns: &Columns,
        origin: &Origin<'_>,
    ) -> Result<Self, DataError> {
        let coded = |column: &usize| {
            let name = columns.name(*column).to_owned();
            let code = encoding.of_column(&name);
            let places = match &code {
                Code::Category(hot) => {
                    let values = hot.values.iter().enumerate();
                    values.map(|(at, value)| (value.clone().into_bytes(), at)).collect()
                }
                _ => HashMap::new(),
            };
            let grows = matches!(&code, Code::Category(hot) if hot.values.is_empty());
            Coded { name, code, places, grows }
        };
        self.codes = self.columns.iter().map(coded).collect();
        let used = |name: &str| self.codes.iter().any(|coded| coded.name == name);
        let hot = encoding.one_hot.iter().map(|hot| ("one_hot", hot.column.as_str()));
        let cyclic = encoding.cyclic.iter().map(|cyclic| ("cyclic", cyclic.column.as_str()));
        if let Some((setting, name)) = hot.chain(cyclic).find(|(_, name)| !used(name)) {
            return Err(DataError::Unsupported {
                path: origin.path.to_path_buf(),
                detail: format!(
                    "{{{setting}}} names `{name}`, which is no column of the signals; choose them \
                     with {{signals}}"
                ),
            });
        }
        Ok(self)
    }

    /// Whether the column at `place` is read as dates.
    pub fn wants_times(&self, place: usize) -> bool {
        match self.codes.get(place).map(|coded| &coded.code) {
            Some(Code::Cycle(periods)) => periods.iter().any(|period| period.is_of_dates()),
            _ => false,
        }
    }

    /// Puts sine and cosine, zeros and ones where columns are encoded; what the columns are then
    /// called, and how they were made.
    pub fn expand(
        &mut self,
        origin: &Origin<'_>,
    ) -> Result<Option<(Vec<String>, Encoding)>, DataError> {
        if self.codes.iter().all(|coded| coded.code == Code::Number) {
            return Ok(None);
        }
        let (mut encoding, mut names) = (Encoding::default(), Vec::new());
        for (place, coded) in self.codes.iter_mut().enumerate() {
            if let Code::Category(hot) = &mut coded.code {
                // The order must not depend on which row comes first.
                let new_places = coded.places.sort_into(hot);
                let column = self.values.iter_mut().skip(place).step_by(self.columns.len());
                for value in column.filter(|value| !value.is_nan()) {
                    *value = new_places[*value as usize] as f64;
                }
                encoding.one_hot.push(hot.clone());
            }
            if let Code::Cycle(periods) = &coded.code {
                let cyclic =
                    |period: &Period| Cyclic { column: coded.name.clone(), period: *period };
                encoding.cyclic.extend(periods.iter().map(cyclic));
            }
            names.extend(coded.code.names(&coded.name));
        }
        let rows = self.values.len() / self.columns.len().max(1);
        let width: usize = self.codes.iter().map(|coded| coded.code.width()).sum();
        origin.charge((rows * width * 8) as u64, "the encoded signals")?;
        let mut values = Vec::with_capacity(rows * width);
        for row in self.values.chunks(self.columns.len().max(1)) {
            for (value, coded) in row.iter().zip(&self.codes) {
                coded.code.expand(*value, &mut values);
            }
        }
        origin.meter.release(self.values.len() as u64 * 8);
        self.values = values;
        self.columns = vec![0; width];
        Ok(Some((names, encoding)))
    }

    /// Columns of a bound, where an empty cell means that there is none.
    pub fn bound(key: &str, columns: Vec<usize>) -> Self {
        Self { empty: empty_cell(key), ..Self::of(key.to_owned(), columns) }
    }

    pub fn new(key: String, columns: &Columns, origin: &Origin<'_>) -> Result<Self, DataError> {
        let columns = columns.of(&key, origin)?;
        Ok(Self::of(key, columns))
    }

    pub fn columns(&self) -> &[usize] {
        &self.columns
    }

    pub fn width(&self) -> usize {
        // Categories that are still to be found take one column at least.
        let own = |coded: &Coded| coded.code.width().max(1);
        if self.codes.is_empty() { self.columns.len() } else { self.codes.iter().map(own).sum() }
    }

    /// Makes room for so many rows more, charged to the budget.
    pub fn reserve(&mut self, rows: usize, origin: &Origin<'_>) -> Result<(), DataError> {
        let count = rows.saturating_mul(self.columns.len());
        let what = format!("`{}`, of {rows} lines,", self.key);
        origin.charge((count as u64).saturating_mul(8), &what)?;
        self.values.try_reserve_exact(count).map_err(|_| {
            let shape = [rows as u64, self.columns.len() as u64];
            origin.too_large(&self.key, &shape, "more memory than there is")
        })
    }

    /// Room for so many rows in all, to be put anywhere.
    pub fn make_room(&mut self, rows: usize, origin: &Origin<'_>) -> Result<(), DataError> {
        let shape = [rows as u64, self.columns.len() as u64];
        self.values = origin.room(&self.key, &shape, rows.saturating_mul(self.columns.len()))?;
        Ok(())
    }

    /// Adds a row of text.
    pub fn take(&mut self, records: &dyn Records, origin: &Origin<'_>) -> Result<(), DataError> {
        if self.values.len() + self.columns.len() > self.values.capacity() {
            // More lines than were counted, or a table that is not counted: half as many again.
            let rows = self.values.len() / self.columns.len().max(1);
            self.reserve((rows / 2).max(64), origin)?;
        }
        let (record, decimal) = (records.record(), records.decimal());
        for (place, &column) in self.columns.iter().enumerate() {
            let bytes = record.get(column).unwrap_or_default().trim_ascii();
            let number = match self.codes.get_mut(place) {
                Some(coded) if coded.code != Code::Number => coded.read(bytes, decimal),
                _ => number(bytes, decimal).or_else(|| match self.empty {
                    Some(empty) => bytes.is_empty().then_some(empty),
                    None => (self.gaps && missing::is_word(bytes)).then_some(f64::NAN),
                }),
            };
            let Some(number) = number else {
                return Err(DataError::Cell {
                    path: origin.path.to_path_buf(),
                    line: records.line(origin),
                    column: records.columns().name(column).to_owned(),
                    text: String::from_utf8_lossy(bytes).into_owned(),
                    expected: self.expected(place, bytes),
                });
            };
            self.values.push(number);
        }
        Ok(())
    }

    /// What a cell that could not be read should have been, where that is not simply a number.
    fn expected(&self, place: usize, cell: &[u8]) -> Option<String> {
        if let Some(coded) = self.codes.get(place) {
            return coded.expected();
        }
        let is_word = !cell.is_empty() && [b'.', b','].iter().all(|d| number(cell, *d).is_none());
        (is_word && !self.encodable).then(|| {
            format!(
                "`{}` needs numbers, since only signals can be categories or dates; write the \
                 column as numbers or choose others",
                self.key
            )
        })
    }

    /// Puts numbers of the column at `place`, from row `first` of the result on.
    pub fn put(&mut self, place: usize, first: usize, numbers: &[f64]) {
        let (width, empty) = (self.columns.len(), self.empty);
        let slots = self.values[first * width + place..].iter_mut().step_by(width);
        for (slot, &number) in slots.zip(numbers) {
            *slot = match empty {
                Some(empty) if number.is_nan() => empty,
                _ => number,
            };
        }
    }

    /// The same, from row `row` of the file on; categories may be numbers.
    pub fn put_numbers(
        &mut self,
        at: (usize, usize, usize),
        numbers: &[f64],
        column: &str,
        origin: &Origin<'_>,
    ) -> Result<(), DataError> {
        let is_category =
            self.codes.get(at.0).is_some_and(|coded| matches!(coded.code, Code::Category(_)));
        if !is_category {
            self.put(at.0, at.1, numbers);
            return Ok(());
        }
        let written = |number: &f64| (!number.is_nan()).then(|| number.to_string().into_bytes());
        let texts: Vec<Option<Vec<u8>>> = numbers.iter().map(written).collect();
        let texts: Vec<Option<&[u8]>> = texts.iter().map(Option::as_deref).collect();
        self.put_texts(at, &texts, column, origin)
    }

    /// The same of text.
    pub fn put_texts(
        &mut self,
        (place, first, row): (usize, usize, usize),
        texts: &[Option<&[u8]>],
        column: &str,
        origin: &Origin<'_>,
    ) -> Result<(), DataError> {
        for (at, text) in texts.iter().enumerate() {
            let bytes = text.unwrap_or_default().trim_ascii();
            let read = match self.codes.get_mut(place) {
                Some(coded) if coded.code != Code::Number => coded.read(bytes, b'.'),
                _ if text.is_none() || missing::is_word(bytes) => Some(f64::NAN),
                _ => number(bytes, b'.'),
            };
            let Some(number) = read else {
                return Err(DataError::TextCell {
                    path: origin.path.to_path_buf(),
                    row: row + at,
                    column: column.to_owned(),
                    text: String::from_utf8_lossy(bytes).into_owned(),
                    expected: self.expected(place, bytes),
                });
            };
            self.put(place, first + at, &[number]);
        }
        Ok(())
    }

    /// The rows in the order given, or else in the file's.
    pub fn finish(self, order: Option<&[usize]>, origin: &Origin<'_>) -> Result<Found, DataError> {
        let width = self.columns.len();
        let rows = self.values.len().checked_div(width).unwrap_or(0);
        let mut values = Array2::from_shape_vec((rows, width), self.values)
            .map_err(|error| origin.corrupt(error))?;
        if let Some(order) = order {
            origin.charge((rows * width * 8) as u64, "the order of rows")?;
            values = values.select(Axis(0), order);
            origin.meter.release((rows * width * 8) as u64);
        }
        Ok(Found { path: origin.path.to_path_buf(), key: self.key, values })
    }
}

impl Coded {
    /// The number that stands for a cell until columns are expanded.
    fn read(&mut self, cell: &[u8], decimal: u8) -> Option<f64> {
        if missing::is_word(cell) {
            return Some(f64::NAN);
        }
        match &self.code {
            Code::Category(_) => {
                if let Some(place) = self.places.get(cell) {
                    return Some(*place as f64);
                }
                let next = self.places.len();
                let has_room = self.grows && next < MOST_CATEGORIES;
                has_room.then(|| {
                    self.places.insert(cell.to_vec(), next);
                    next as f64
                })
            }
            Code::Cycle(periods) if periods.iter().any(|period| period.is_of_dates()) => {
                dates::seconds(cell)
            }
            _ => number(cell, decimal),
        }
    }

    /// What a cell that could not be read should have been.
    fn expected(&self) -> Option<String> {
        match &self.code {
            Code::Number => None,
            Code::Category(_) if self.grows => Some(format!(
                "a category may have {MOST_CATEGORIES} values at most, and this column has more"
            )),
            Code::Category(hot) => Some(format!("the model knows {}", hot.values.join(", "))),
            Code::Cycle(periods) if periods.iter().any(|period| period.is_of_dates()) => {
                Some("expected a date such as 2024-05-31 13:05".to_owned())
            }
            Code::Cycle(_) => Some("expected a number, or a cycle of dates".to_owned()),
        }
    }
}

/// Categories in the order in which they were found.
trait Places {
    /// Gives a category its values in the order of the alphabet, where they were found here; the
    /// new place of each old one.
    fn sort_into(&self, hot: &mut OneHot) -> Vec<usize>;
}

impl Places for HashMap<Vec<u8>, usize> {
    fn sort_into(&self, hot: &mut OneHot) -> Vec<usize> {
        if !hot.values.is_empty() {
            return (0..hot.values.len()).collect();
        }
        let mut sorted: Vec<(&Vec<u8>, &usize)> = self.iter().collect();
        sorted.sort();
        let mut places = vec![0; sorted.len()];
        for (new, (value, old)) in sorted.into_iter().enumerate() {
            places[*old] = new;
            hot.values.push(String::from_utf8_lossy(value).into_owned());
        }
        places
    }
}

/// A number as text has it.
pub(in crate::data) fn number(bytes: &[u8], decimal: u8) -> Option<f64> {
    /// Characters of a number; what is longer has no more digits that count.
    const MOST: usize = 64;
    if decimal == b'.' {
        return str::from_utf8(bytes).ok()?.parse().ok();
    }
    let mut plain = [0u8; MOST];
    let plain = plain.get_mut(..bytes.len())?;
    for (to, &from) in plain.iter_mut().zip(bytes) {
        *to = match from {
            b'.' => return None,
            from if from == decimal => b'.',
            from => from,
        };
    }
    str::from_utf8(plain).ok()?.parse().ok()
}
