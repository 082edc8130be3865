//! How much memory reading may take.
//!
//! A [`Budget`] is handed to the readers with the request. Every array and every buffer of more
//! than a page or two is charged before it is allocated, by the size found in a header; what does
//! not fit is refused with both sizes. No file, however it is packed, can take more.

use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;

use crate::error::DataError;

/// The memory that reading may take: all there is, or a limit less what is already in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    limit: Option<u64>,
    taken: u64,
}

impl Budget {
    /// A limit in bytes for the whole process, of which `taken` are in use before reading begins.
    pub const fn within(limit: u64, taken: u64) -> Self {
        Self { limit: Some(limit), taken }
    }
}

/// A budget being spent; clones spend the same one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Meter {
    budget: Budget,
    charged: Rc<Cell<u64>>,
}

impl Meter {
    pub fn new(budget: Budget) -> Self {
        Self { budget, charged: Rc::default() }
    }

    /// Bytes that are not charged yet; none where there is no limit.
    pub fn left(&self) -> Option<u64> {
        let taken = self.budget.taken.saturating_add(self.charged.get());
        self.budget.limit.map(|limit| limit.saturating_sub(taken))
    }

    /// Whether so many bytes could be charged.
    pub fn has_room(&self, bytes: u64) -> bool {
        self.left().is_none_or(|left| bytes <= left)
    }

    /// Takes so many bytes for `what`, a part of the file at `path`.
    pub fn charge(&self, bytes: u64, what: &str, path: &Path) -> Result<(), DataError> {
        if !self.has_room(bytes) {
            return Err(DataError::Memory {
                path: path.to_path_buf(),
                what: what.to_owned(),
                needed: bytes,
                left: self.left().unwrap_or(u64::MAX),
                limit: self.budget.limit.unwrap_or(u64::MAX),
            });
        }
        self.charged.set(self.charged.get().saturating_add(bytes));
        Ok(())
    }

    /// Gives back what was charged for something that is gone.
    pub fn release(&self, bytes: u64) {
        self.charged.set(self.charged.get().saturating_sub(bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_charged_is_not_there_until_it_is_released() {
        let meter = Meter::new(Budget::within(100, 40));
        let path = Path::new("f.npz");
        meter.charge(50, "`signals`", path).unwrap();
        assert_eq!(meter.left(), Some(10));
        let refused = meter.charge(11, "`decisions`", path).unwrap_err().to_string();
        assert!(refused.contains("11 bytes") && refused.contains("10 bytes"), "{refused}");
        meter.release(50);
        assert!(meter.has_room(60) && !meter.has_room(61));
        let free = Meter::default();
        free.charge(u64::MAX, "anything", path).unwrap();
        assert!(free.has_room(u64::MAX) && free.left().is_none());
    }
}
