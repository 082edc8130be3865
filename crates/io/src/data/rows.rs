//! Row ranges as written on the command line: `0:5000,10000:15000`.

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::DataError;

/// Half-open ranges of rows, in the order given, none overlapping another.
///
/// Either end may be left out: `:100` are the first hundred rows, `100:` all after them. Reads and
/// writes itself as the text it was given (spaces aside), in serde formats too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RowRanges(Vec<RowRange>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RowRange {
    start: Option<usize>,
    end: Option<usize>,
}

impl RowRange {
    /// The rows covered in a file of unlimited length.
    fn span(self) -> Range<usize> {
        self.start.unwrap_or(0)..self.end.unwrap_or(usize::MAX)
    }
}

impl RowRanges {
    /// The ranges in a file of `n_rows`; fails if any reaches outside it. Never empty.
    pub fn resolve(&self, n_rows: usize) -> Result<Vec<Range<usize>>, DataError> {
        self.0
            .iter()
            .map(|range| {
                let span = range.start.unwrap_or(0)..range.end.unwrap_or(n_rows);
                if span.is_empty() || span.end > n_rows {
                    return Err(DataError::RowsOutside { range: range.to_string(), n_rows });
                }
                Ok(span)
            })
            .collect()
    }
}

impl RowRanges {
    /// What the ranges name among rows that have these numbers: those with numbers that are there.
    /// Of a range with an end that names others too, and of one that names nothing, the first
    /// number that is not there comes along, for who uses it to refuse.
    pub fn among(&self, numbers: &[u64]) -> Vec<u64> {
        let known: HashSet<u64> = numbers.iter().copied().collect();
        let named = |range: &RowRange| -> Vec<u64> {
            let start = range.start.unwrap_or(0) as u64;
            let Some(end) = range.end else {
                let own: Vec<u64> = numbers.iter().copied().filter(|row| *row >= start).collect();
                return if own.is_empty() { vec![start] } else { own };
            };
            let all = start..end as u64;
            let n_there = all.clone().take_while(|row| known.contains(row)).count();
            all.take(n_there + 1).collect()
        };
        self.0.iter().flat_map(named).collect()
    }

    /// Whether a row is in one of the ranges.
    pub(super) fn contains(&self, row: usize) -> bool {
        self.0.iter().any(|range| range.span().contains(&row))
    }

    /// Rows of the ranges among the first `n_rows`.
    pub(super) fn count_below(&self, n_rows: usize) -> usize {
        let inside = |range: &RowRange| {
            let span = range.span();
            span.end.min(n_rows).saturating_sub(span.start)
        };
        self.0.iter().map(inside).sum()
    }
}

impl FromStr for RowRanges {
    type Err = DataError;

    fn from_str(text: &str) -> Result<Self, DataError> {
        let mut ranges: Vec<RowRange> = Vec::new();
        for part in text.split(',') {
            let range: RowRange = part.parse()?;
            let span = range.span();
            let overlapped = ranges.iter().find(|earlier| {
                let earlier = earlier.span();
                earlier.start < span.end && span.start < earlier.end
            });
            if let Some(earlier) = overlapped {
                let (first, second) = (earlier.to_string(), range.to_string());
                return Err(DataError::RowsOverlap { first, second });
            }
            ranges.push(range);
        }
        Ok(Self(ranges))
    }
}

impl FromStr for RowRange {
    type Err = DataError;

    fn from_str(text: &str) -> Result<Self, DataError> {
        let wrong = |detail| DataError::RowsSyntax { text: text.trim().to_owned(), detail };
        let end_of = |end: &str| match end.trim() {
            "" => Ok(None),
            // `usize` would take a leading plus.
            digits if digits.bytes().all(|b| b.is_ascii_digit()) => {
                digits.parse().map(Some).map_err(|_| wrong("the number is too large"))
            }
            _ => Err(wrong("both ends are whole numbers counted from 0")),
        };
        let (start, end) = text.split_once(':').ok_or_else(|| wrong("a range needs a colon"))?;
        let range = Self { start: end_of(start)?, end: end_of(end)? };
        if range.span().is_empty() {
            return Err(wrong("it holds no rows"));
        }
        Ok(range)
    }
}

impl fmt::Display for RowRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(start) = self.start {
            write!(f, "{start}")?;
        }
        f.write_str(":")?;
        if let Some(end) = self.end {
            write!(f, "{end}")?;
        }
        Ok(())
    }
}

impl fmt::Display for RowRanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, range) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            write!(f, "{range}")?;
        }
        Ok(())
    }
}

impl TryFrom<String> for RowRanges {
    type Error = DataError;

    fn try_from(text: String) -> Result<Self, DataError> {
        text.parse()
    }
}

impl From<RowRanges> for String {
    fn from(ranges: RowRanges) -> Self {
        ranges.to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(text: &str) -> RowRanges {
        text.parse().unwrap()
    }

    fn refused(text: &str) -> String {
        text.parse::<RowRanges>().unwrap_err().to_string()
    }

    #[test]
    fn order_is_kept_and_ends_may_be_left_out() {
        assert_eq!(parsed("10:15,0:5").resolve(15).unwrap(), [10..15, 0..5]);
        assert_eq!(parsed("100:, :7").resolve(120).unwrap(), [100..120, 0..7]);
        assert_eq!(parsed(":").resolve(3).unwrap(), std::slice::from_ref(&(0..3)));
    }

    #[test]
    fn touching_ranges_are_fine_and_overlapping_ones_are_not() {
        assert!("0:5,5:9".parse::<RowRanges>().is_ok());
        assert_eq!(
            refused("0:5,3:4"),
            "row ranges `0:5` and `3:4` overlap; give every row at most once"
        );
        assert!(refused("100:,5:9,200:201").contains("`100:` and `200:201`"));
        assert!(refused(":,:").contains("overlap"));
    }

    #[test]
    fn what_is_not_a_range_is_refused() {
        for text in ["", "5", "a:b", "-5:", "+1:2", "1:2:3", "1.0:2", "0:5,", "5:5", "5:4", ":0"] {
            assert!(refused(text).contains("half-open ranges such as"), "{text}");
        }
        assert!(refused("0:99999999999999999999").contains("too large"));
    }

    #[test]
    fn bounds_are_checked_against_the_rows_there_are() {
        let message = parsed("0:5,7:11").resolve(10).unwrap_err().to_string();
        assert_eq!(message, "row range `7:11` reaches outside the data, which has 10 rows");
        assert!(parsed("10:").resolve(10).is_err());
        assert!(parsed(":").resolve(0).is_err());
        assert!(parsed("7:10").resolve(10).is_ok());
    }

    #[test]
    fn numbers_with_gaps_are_named_by_ranges_and_what_is_not_there_comes_along() {
        let numbers = [3, 4, 5, 9, 11];
        let among = |text: &str| parsed(text).among(&numbers);
        assert_eq!(among("3:5"), [3, 4]);
        assert_eq!(among("4:"), [4, 5, 9, 11]);
        assert_eq!(among(":"), numbers);
        assert_eq!(among("9:10,3:4"), [9, 3]);
        assert_eq!(among("4:11"), [4, 5, 6]);
        assert_eq!(among(":4"), [0]);
        assert_eq!(among("12:"), [12]);
        assert_eq!(among("4:18446744073709551615"), [4, 5, 6]);
    }

    #[test]
    fn serde_sees_a_string() {
        let ranges = parsed("0:5,7:");
        let json = serde_json::to_string(&ranges).unwrap();
        assert_eq!(json, "\"0:5,7:\"");
        assert_eq!(serde_json::from_str::<RowRanges>(&json).unwrap(), ranges);
        assert!(serde_json::from_str::<RowRanges>("\"0:5,4:6\"").is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_refused_or_survives_a_round_trip(text in "[0-9:, a-]{0,20}") {
            if let Ok(ranges) = text.parse::<RowRanges>() {
                let shown = ranges.to_string();
                let plain = |n: &str| n.parse::<usize>().map_or(String::new(), |n| n.to_string());
                let expected = text.replace(' ', "").split(',').map(|part| {
                    let (start, end) = part.split_once(':').unwrap();
                    format!("{}:{}", plain(start), plain(end))
                }).collect::<Vec<_>>().join(",");
                prop_assert_eq!(&shown, &expected);
                prop_assert_eq!(shown.parse::<RowRanges>().unwrap(), ranges);
            }
        }

        #[test]
        fn resolved_rows_are_distinct_and_in_bounds(
            cuts in prop::collection::btree_set(0usize..1000, 2..8),
            n_rows in 1usize..1000,
        ) {
            let cuts: Vec<usize> = cuts.into_iter().collect();
            let text: Vec<String> =
                cuts.windows(2).rev().map(|w| format!("{}:{}", w[0], w[1])).collect();
            let fits = *cuts.last().unwrap() <= n_rows;
            match parsed(&text.join(",")).resolve(n_rows) {
                Ok(ranges) => {
                    prop_assert!(fits);
                    let mut rows: Vec<usize> = ranges.into_iter().flatten().collect();
                    let count = rows.len();
                    rows.sort_unstable();
                    rows.dedup();
                    prop_assert_eq!(rows.len(), count);
                    prop_assert!(rows.iter().all(|&row| row < n_rows));
                }
                Err(_) => prop_assert!(!fits),
            }
        }
    }
}
