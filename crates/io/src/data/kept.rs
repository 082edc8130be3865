//! Which rows of a file are kept, and where each of them goes.

use std::ops::Range;

use super::rows::RowRanges;
use crate::error::DataError;

/// The rows of an array that are kept, in the order asked for.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    n_rows: usize,
    /// Ranges of the file with the first row each becomes, by place in the file; none for all rows.
    ranges: Option<Vec<(Range<usize>, usize)>>,
}

impl Kept {
    pub fn all(n_rows: usize) -> Self {
        Self { n_rows, ranges: None }
    }

    pub fn of(rows: Option<&RowRanges>, n_rows: usize) -> Result<Self, DataError> {
        let Some(rows) = rows else { return Ok(Self::all(n_rows)) };
        let mut next = 0;
        let mut ranges = Vec::new();
        for range in rows.resolve(n_rows)? {
            let first = next;
            next += range.len();
            ranges.push((range, first));
        }
        ranges.sort_by_key(|(range, _)| range.start);
        Ok(Self { n_rows, ranges: Some(ranges) })
    }

    /// Rows that follow each other.
    pub fn range(n_rows: usize, rows: Range<usize>) -> Self {
        Self { n_rows, ranges: Some(vec![(rows, 0)]) }
    }

    /// The rows at these places, in this order, each at most once.
    pub fn at(n_rows: usize, places: &[usize]) -> Self {
        let mut ranges: Vec<(Range<usize>, usize)> = Vec::new();
        for (first, &place) in places.iter().enumerate() {
            match ranges.last_mut() {
                Some((range, _)) if range.end == place => range.end += 1,
                _ => ranges.push((place..place + 1, first)),
            }
        }
        ranges.sort_by_key(|(range, _)| range.start);
        Self { n_rows, ranges: Some(ranges) }
    }

    /// Rows there are.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Rows that are kept.
    pub fn len(&self) -> usize {
        match &self.ranges {
            None => self.n_rows,
            Some(ranges) => ranges.iter().map(|(range, _)| range.len()).sum(),
        }
    }

    /// The parts of `rows` that are kept, each with the row it becomes.
    pub fn parts(&self, rows: Range<usize>) -> impl Iterator<Item = (Range<usize>, usize)> {
        let all = self.ranges.is_none().then(|| (rows.clone(), rows.start));
        // Ranges are in the file's order and share no rows.
        let ranges = self.ranges.as_deref().unwrap_or_default();
        let from = ranges.partition_point(|(range, _)| range.end <= rows.start);
        let to = ranges.partition_point(|(range, _)| range.start < rows.end);
        let some = ranges[from..to.max(from)].iter().filter_map(move |(range, first)| {
            let part = range.start.max(rows.start)..range.end.min(rows.end);
            (!part.is_empty()).then(|| (part.clone(), first + part.start - range.start))
        });
        all.into_iter().chain(some)
    }

    /// Whether any of `rows` is kept.
    pub fn any(&self, rows: Range<usize>) -> bool {
        self.parts(rows).next().is_some()
    }

    /// Of rows kept in the file's order, which comes first, second, …; none where that order stays.
    pub fn file_order(&self) -> Option<Vec<usize>> {
        let ranges = self.ranges.as_ref()?;
        if ranges.windows(2).all(|pair| pair[0].1 < pair[1].1) {
            return None;
        }
        let mut parts = Vec::new();
        let mut next = 0;
        for (range, first) in ranges {
            parts.push((*first, next..next + range.len()));
            next += range.len();
        }
        parts.sort_by_key(|(first, _)| *first);
        Some(parts.into_iter().flat_map(|(_, rows)| rows).collect())
    }

    /// Where each kept row stood in the file; none where they are all of its rows, in order.
    pub fn places(&self) -> Option<Vec<usize>> {
        let mut ranges = self.ranges.clone()?;
        ranges.sort_by_key(|(_, first)| *first);
        Some(ranges.into_iter().flat_map(|(range, _)| range).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_where_they_go() {
        let rows: RowRanges = "10:15,0:5".parse().unwrap();
        let kept = Kept::of(Some(&rows), 20).unwrap();
        assert_eq!(kept.len(), 10);
        let parts = |rows: Range<usize>| kept.parts(rows).collect::<Vec<_>>();
        assert_eq!(parts(0..20), [(0..5, 5), (10..15, 0)]);
        assert_eq!(parts(3..12), [(3..5, 8), (10..12, 0)]);
        assert!(!kept.any(5..10) && kept.any(14..16));
        assert_eq!(kept.places().unwrap(), [10, 11, 12, 13, 14, 0, 1, 2, 3, 4]);
        assert_eq!(kept.file_order().unwrap(), [5, 6, 7, 8, 9, 0, 1, 2, 3, 4]);
        assert_eq!(Kept::all(3).file_order(), None);
        assert_eq!(Kept::all(3).parts(1..3).collect::<Vec<_>>(), [(1..3, 1)]);
        assert!(Kept::of(Some(&rows), 12).is_err());
        let kept = Kept::at(9, &[7, 8, 1, 4, 5]);
        assert_eq!(kept.parts(0..9).collect::<Vec<_>>(), [(1..2, 2), (4..6, 3), (7..9, 0)]);
        assert_eq!((kept.len(), kept.places().unwrap()), (5, vec![7, 8, 1, 4, 5]));
        assert!(kept.any(5..7) && !kept.any(2..4) && !kept.any(3..3));
    }
}
