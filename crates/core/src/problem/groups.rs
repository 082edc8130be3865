//! Which dimensions of the decision belong together.
//!
//! A limit on two dimensions, or an entry of Θ beside its diagonal, ties them to each other. Groups
//! that nothing ties are problems of their own: P, D and the gap are sums over groups, with units
//! of their own, and each group is judged by its own bounds. For boxes with Θ = I every dimension
//! is a group.

use crate::decision_set::SampleSets;
use crate::qp::Metric;
use serde::{Deserialize, Serialize};

/// A partition of the dimensions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Groups {
    /// The group of each dimension; groups are numbered in the order of their first one.
    of: Vec<usize>,
    count: usize,
}

impl Groups {
    pub(super) fn new(sets: &SampleSets, metric: &Metric) -> Self {
        let n = sets.decision_dim();
        let mut union = Union { parent: (0..n).collect(), count: n };
        if !metric.is_identity() {
            for ((i, j), value) in metric.theta().indexed_iter() {
                if *value != 0.0 {
                    union.tie(i, j);
                }
            }
        }
        for row in sets.rows() {
            if union.count <= 1 {
                break;
            }
            let mut tied = (0..n).filter(|&j| row[j] != 0.0);
            if let Some(first) = tied.next() {
                tied.for_each(|j| union.tie(first, j));
            }
        }
        let mut numbers = vec![None; n];
        let (mut of, mut count) = (Vec::with_capacity(n), 0);
        for j in 0..n {
            let root = union.find(j);
            let number = *numbers[root].get_or_insert_with(|| {
                count += 1;
                count - 1
            });
            of.push(number);
        }
        Self { of, count }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The dimensions of each group.
    pub(super) fn members(&self) -> Vec<Vec<usize>> {
        let mut members = vec![Vec::new(); self.count];
        self.of.iter().enumerate().for_each(|(j, group)| members[*group].push(j));
        members
    }

    /// One number a dimension, added up.
    pub(super) fn sum(&self, by_dimension: impl IntoIterator<Item = f64>) -> Vec<f64> {
        self.fold(by_dimension, |sum, value| sum + value)
    }

    /// The largest of one nonnegative number a dimension.
    pub(super) fn largest(&self, by_dimension: &[f64]) -> Vec<f64> {
        self.fold(by_dimension.iter().copied(), f64::max)
    }

    fn fold(
        &self,
        by_dimension: impl IntoIterator<Item = f64>,
        join: impl Fn(f64, f64) -> f64,
    ) -> Vec<f64> {
        let mut out = vec![0.0; self.count];
        for (group, value) in self.of.iter().zip(by_dimension) {
            out[*group] = join(out[*group], value);
        }
        out
    }

    /// One number a group, for each of its dimensions.
    pub(super) fn spread(&self, by_group: &[f64]) -> Vec<f64> {
        self.of.iter().map(|&group| by_group[group]).collect()
    }
}

struct Union {
    parent: Vec<usize>,
    count: usize,
}

impl Union {
    fn find(&mut self, mut j: usize) -> usize {
        while self.parent[j] != j {
            self.parent[j] = self.parent[self.parent[j]];
            j = self.parent[j];
        }
        j
    }

    fn tie(&mut self, i: usize, j: usize) {
        let (i, j) = (self.find(i), self.find(j));
        if i != j {
            self.parent[i.max(j)] = i.min(j);
            self.count -= 1;
        }
    }
}
