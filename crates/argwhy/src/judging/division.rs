//! Which rows are kept aside: what belongs together stays together.

use crate::error::Error;
use argwhy_core::random::stream;
use argwhy_io::{GroupKind, Groups};
use rand::seq::SliceRandom;
use std::collections::BTreeMap;
use std::ops::Range;

/// How rows are divided into those that are learned from and those that are kept aside.
///
/// Rows that are nearly copies of each other (neighbours in time, steps of one episode) must not
/// stand on both sides, or a model is praised for what it remembers.
#[derive(Clone, Debug, PartialEq)]
pub enum Division {
    /// At random.
    Rows,
    /// Blocks of rows that follow each other; the last ones where a share is kept aside.
    Time,
    /// Whole groups.
    Groups(Groups),
}

impl Division {
    /// By the groups that the data has, in time where it was asked for, else at random. A single
    /// episode has nothing to be told apart from, and is divided in time.
    pub fn of(groups: Option<Groups>, in_time: bool) -> Result<Self, Error> {
        match groups {
            _ if in_time => Ok(Self::Time),
            None => Ok(Self::Rows),
            Some(groups) if groups.of_rows.windows(2).any(|pair| pair[0] != pair[1]) => {
                Ok(Self::Groups(groups))
            }
            Some(Groups { kind: GroupKind::Episodes, .. }) => Ok(Self::Time),
            Some(Groups { kind: GroupKind::Column, .. }) => Err(one_group()),
        }
    }

    /// What is kept together, in a word.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Rows => "rows",
            Self::Time => "time",
            Self::Groups(Groups { kind: GroupKind::Episodes, .. }) => "episodes",
            Self::Groups(Groups { kind: GroupKind::Column, .. }) => "groups",
        }
    }

    /// About a share of `rows` to be kept aside; never none, never all.
    pub fn aside(&self, rows: &[usize], share: f64, seed: u64) -> Result<Vec<usize>, Error> {
        let wanted = (rows.len() as f64 * share).round() as usize;
        let wanted = wanted.clamp(1, rows.len().saturating_sub(1).max(1));
        match self {
            Self::Rows => Ok(in_order(rows, &shuffled(rows, seed)[..wanted])),
            Self::Time => Ok(rows[rows.len() - wanted..].to_vec()),
            Self::Groups(groups) => {
                let groups = members(groups, rows, seed)?;
                let mut aside = Vec::new();
                for group in &groups[..groups.len() - 1] {
                    aside.extend_from_slice(group);
                    if aside.len() >= wanted {
                        break;
                    }
                }
                Ok(in_order(rows, &aside))
            }
        }
    }

    /// `rows` in so many parts of about the same size, of which none is empty; fewer where there
    /// are fewer groups.
    pub fn parts(
        &self,
        rows: &[usize],
        n_parts: usize,
        seed: u64,
    ) -> Result<Vec<Vec<usize>>, Error> {
        if rows.len() < n_parts || n_parts < 2 {
            return Err(Error::Judging {
                what: format!(
                    "{} rows cannot be divided into {n_parts} parts to be kept aside in turn; use \
                     more rows, or fewer parts (at least two)",
                    rows.len()
                ),
            });
        }
        let evenly = |rows: &[usize]| -> Vec<Vec<usize>> {
            let cut = |part: usize| part * rows.len() / n_parts;
            (0..n_parts).map(|part| rows[cut(part)..cut(part + 1)].to_vec()).collect()
        };
        Ok(match self {
            Self::Rows => {
                let parts = evenly(&shuffled(rows, seed));
                parts.iter().map(|part| in_order(rows, part)).collect()
            }
            Self::Time => evenly(rows),
            Self::Groups(groups) => {
                let mut groups = members(groups, rows, seed)?;
                // The largest first, each into the smallest part.
                groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
                let mut parts = vec![Vec::new(); n_parts.min(groups.len())];
                for group in groups {
                    if let Some(part) = parts.iter_mut().min_by_key(|part| part.len()) {
                        part.extend(group);
                    }
                }
                parts.iter().map(|part| in_order(rows, part)).collect()
            }
        })
    }
}

fn one_group() -> Error {
    let what = "all rows are of one group, so none can be kept aside whole; choose another column \
                for {groups}, or leave it out";
    Error::Judging { what: what.to_owned() }
}

/// The rows of each group, groups in random order.
fn members(groups: &Groups, rows: &[usize], seed: u64) -> Result<Vec<Vec<usize>>, Error> {
    let mut members: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for &row in rows {
        let n_rows = groups.of_rows.len();
        let group = groups.of_rows.get(row).ok_or(Error::Row { row, n_rows })?;
        members.entry(*group).or_default().push(row);
    }
    if members.len() < 2 {
        return Err(one_group());
    }
    let mut members: Vec<_> = members.into_values().collect();
    members.shuffle(&mut stream(seed, "groups kept aside"));
    Ok(members)
}

fn shuffled(rows: &[usize], seed: u64) -> Vec<usize> {
    let mut rows = rows.to_vec();
    rows.shuffle(&mut stream(seed, "rows kept aside"));
    rows
}

/// Those of `rows` that are among `some`, in the order of `rows`.
fn in_order(rows: &[usize], some: &[usize]) -> Vec<usize> {
    let some: std::collections::HashSet<usize> = some.iter().copied().collect();
    rows.iter().copied().filter(|row| some.contains(row)).collect()
}

/// `rows`, or so many of them at random, in their order.
pub(crate) fn some_of(rows: Vec<usize>, most: usize, seed: u64) -> Vec<usize> {
    if rows.len() <= most {
        return rows;
    }
    in_order(&rows, &shuffled(&rows, seed)[..most])
}

/// Rows as ranges, in their order.
pub(crate) fn ranges_of(rows: &[usize]) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for &row in rows {
        match ranges.last_mut() {
            Some(last) if last.end == row => last.end += 1,
            _ => ranges.push(row..row + 1),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    fn episodes(of_rows: &[u32]) -> Groups {
        Groups { of_rows: of_rows.to_vec(), kind: GroupKind::Episodes }
    }

    #[test]
    fn parts_are_disjoint_and_everything_and_the_same_each_time() {
        let rows: Vec<usize> = (10..47).rev().collect();
        let groups = episodes(&(0..60).map(|row| row / 4).collect::<Vec<_>>());
        for division in [Division::Rows, Division::Time, Division::Groups(groups)] {
            let parts = division.parts(&rows, 5, 3).unwrap();
            assert_eq!(parts, division.parts(&rows, 5, 3).unwrap());
            assert_eq!(parts.len(), 5);
            assert!(parts.iter().all(|part| (4..=12).contains(&part.len())), "{parts:?}");
            let mut all: Vec<usize> = parts.concat();
            all.sort_unstable();
            assert_eq!(all, (10..47).collect::<Vec<_>>());
            let aside = division.aside(&rows, 0.1, 3).unwrap();
            assert!((4..=7).contains(&aside.len()), "{division:?}: {aside:?}");
        }
        assert_ne!(
            Division::Rows.aside(&rows, 0.1, 0).unwrap(),
            Division::Rows.aside(&rows, 0.1, 1).unwrap()
        );
        assert_eq!(Division::Time.aside(&rows, 0.1, 0).unwrap(), [13, 12, 11, 10]);
    }

    #[test]
    fn no_group_stands_on_both_sides() {
        let groups = episodes(&[0, 0, 0, 1, 1, 2, 3, 3, 3, 3]);
        let rows: Vec<usize> = (0..10).collect();
        let division = Division::Groups(groups.clone());
        for seed in 0..9 {
            for aside in division.parts(&rows, 3, seed).unwrap() {
                let of = |row: &usize| groups.of_rows[*row];
                let inside: Vec<u32> = aside.iter().map(of).collect();
                assert!(!inside.is_empty() && inside.len() < 10);
                let outside = crate::judging::without(&rows, &aside);
                assert!(outside.iter().all(|row| !inside.contains(&of(row))));
            }
        }
    }

    #[test]
    fn one_episode_is_divided_in_time_and_one_group_is_refused() {
        let one = episodes(&[7; 5]);
        assert_eq!(Division::of(Some(one.clone()), false).unwrap(), Division::Time);
        assert_eq!(Division::of(None, false).unwrap(), Division::Rows);
        let column = Groups { kind: GroupKind::Column, ..one };
        let told = Division::of(Some(column.clone()), false).unwrap_err();
        assert!(format!("{told:#}").contains("--groups"), "{told:#}");
        // All of the file's groups, and the rows that are learned from are of one.
        let two = Groups { of_rows: vec![0, 0, 1, 1], ..column };
        assert!(Division::Groups(two).aside(&[0, 1], 0.5, 0).is_err());
        let few = Division::Rows.parts(&[1, 2, 3], 5, 0).unwrap_err().to_string();
        assert!(few.contains("3 rows") && few.contains("5 parts"), "{few}");
    }

    #[test]
    fn ranges_keep_the_order() {
        assert_eq!(ranges_of(&[4, 5, 6, 1, 2, 9]), [4..7, 1..3, 9..10]);
    }
}
