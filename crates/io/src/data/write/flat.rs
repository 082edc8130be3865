//! FlatBuffers as Arrow describes itself in: written from the end to the beginning, so that what is
//! pointed at is there before what points at it.

/// A buffer that grows towards its beginning. A place in it is its distance from the end.
#[derive(Default)]
pub(super) struct Flat {
    /// Last byte first.
    reversed: Vec<u8>,
}

/// What a place takes until it is known how far away it is.
const POINTER: usize = 4;

impl Flat {
    fn put(&mut self, bytes: &[u8]) {
        self.reversed.extend(bytes.iter().rev());
    }

    /// Fills up so that after `more` bytes the beginning is at a multiple of `size`.
    fn align(&mut self, size: usize, more: usize) {
        let end = (self.reversed.len() + more).next_multiple_of(size);
        self.reversed.resize(end - more, 0);
    }

    /// A pointer to `place`.
    fn point(&mut self, place: usize) {
        let distance = self.reversed.len() + POINTER - place;
        self.put(&(distance as u32).to_le_bytes());
    }

    pub fn text(&mut self, text: &str) -> usize {
        // A zero behind it, its length before it.
        self.align(4, text.len() + 1);
        self.put(&[0]);
        self.put(text.as_bytes());
        self.put(&(text.len() as u32).to_le_bytes());
        self.reversed.len()
    }

    /// A list of places.
    pub fn places(&mut self, places: &[usize]) -> usize {
        self.align(4, places.len() * POINTER);
        for &place in places.iter().rev() {
            self.point(place);
        }
        self.put(&(places.len() as u32).to_le_bytes());
        self.reversed.len()
    }

    /// A list of structures of so many numbers each.
    fn structures(&mut self, numbers: &[u64], each: usize) -> usize {
        self.align(8, numbers.len() * 8);
        for number in numbers.iter().rev() {
            self.put(&number.to_le_bytes());
        }
        self.put(&((numbers.len() / each) as u32).to_le_bytes());
        self.reversed.len()
    }

    pub fn pairs(&mut self, numbers: &[u64]) -> usize {
        self.structures(numbers, 2)
    }

    /// Structures of three numbers, of which the second is shorter and filled up with zeros: the
    /// same bytes while it is below 2³¹.
    pub fn triples(&mut self, numbers: &[u64]) -> usize {
        self.structures(numbers, 3)
    }

    /// The bytes, with the place of the table that everything follows from first.
    pub fn finish(mut self, root: usize) -> Vec<u8> {
        self.align(8, POINTER);
        self.point(root);
        self.reversed.reverse();
        self.reversed
    }
}

/// The entries of a table, by their numbers.
#[derive(Default)]
pub(super) struct Table(Vec<(usize, Entry)>);

enum Entry {
    Byte(u8),
    Short(i16),
    Long(u64),
    Place(usize),
}

impl Entry {
    fn size(&self) -> usize {
        match self {
            Self::Byte(_) => 1,
            Self::Short(_) => 2,
            Self::Place(_) => POINTER,
            Self::Long(_) => 8,
        }
    }
}

impl Table {
    fn with(mut self, number: usize, entry: Entry) -> Self {
        self.0.push((number, entry));
        self
    }

    pub fn byte(self, number: usize, value: u8) -> Self {
        self.with(number, Entry::Byte(value))
    }

    pub fn short(self, number: usize, value: i16) -> Self {
        self.with(number, Entry::Short(value))
    }

    pub fn long(self, number: usize, value: u64) -> Self {
        self.with(number, Entry::Long(value))
    }

    pub fn place(self, number: usize, place: usize) -> Self {
        self.with(number, Entry::Place(place))
    }

    /// Writes the entries, and before them where each is.
    pub fn put(self, flat: &mut Flat) -> usize {
        let n_slots = self.0.iter().map(|(number, _)| number + 1).max().unwrap_or(0);
        let before = flat.reversed.len();
        let mut ends = vec![0; n_slots];
        for (number, entry) in &self.0 {
            flat.align(entry.size(), entry.size());
            match entry {
                Entry::Byte(value) => flat.put(&[*value]),
                Entry::Short(value) => flat.put(&value.to_le_bytes()),
                Entry::Long(value) => flat.put(&value.to_le_bytes()),
                Entry::Place(place) => flat.point(*place),
            }
            ends[*number] = flat.reversed.len();
        }
        // The table begins with the distance back to the list of where its entries are, which comes
        // right before it.
        flat.align(4, 4);
        let slots = 2 * (2 + n_slots);
        flat.put(&(slots as u32).to_le_bytes());
        let table = flat.reversed.len();
        for &end in ends.iter().rev() {
            let offset = if end == 0 { 0 } else { table - end };
            flat.put(&(offset as u16).to_le_bytes());
        }
        flat.put(&((table - before) as u16).to_le_bytes());
        flat.put(&(slots as u16).to_le_bytes());
        table
    }
}
