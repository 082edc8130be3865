//! Sums over panels, in an order that does not depend on who has which.

use ndarray::Array2;
use rayon::prelude::*;
use std::collections::BTreeMap;

/// The sum over 2^level panels, those from index·2^level on.
#[derive(Clone, Debug, PartialEq)]
pub struct Branch {
    /// Additions that lie behind it, one upon the other.
    pub level: u32,
    /// Which of its level.
    pub index: usize,
    /// The sum.
    pub values: Array2<f64>,
}

/// Branches of the binary tree over all panels; two that belong together become one.
#[derive(Debug, Default)]
pub struct Branches {
    open: BTreeMap<(u32, usize), Array2<f64>>,
}

impl Branches {
    /// What one panel gives.
    pub fn add_panel(&mut self, panel: usize, values: Array2<f64>) {
        self.add(Branch { level: 0, index: panel, values });
    }

    /// What several give.
    pub fn add(&mut self, branch: Branch) {
        let Branch { mut level, mut index, mut values } = branch;
        while let Some(other) = self.open.remove(&(level, index ^ 1)) {
            // A sum of two is the same either way round.
            add(&mut values, &other);
            (level, index) = (level + 1, index / 2);
        }
        self.open.insert((level, index), values);
    }

    /// Those that are left: one where every panel was added.
    pub fn into_vec(self) -> Vec<Branch> {
        let open = self.open.into_iter();
        open.map(|((level, index), values)| Branch { level, index, values }).collect()
    }
}

/// Numbers that are one task's.
const TASK: usize = 1 << 15;

fn add(values: &mut Array2<f64>, other: &Array2<f64>) {
    let (values, other) = (values.as_slice_mut(), other.as_slice());
    let (values, other) = (values.expect("made here"), other.expect("made here"));
    values.par_chunks_mut(TASK).zip(other.par_chunks(TASK)).for_each(|(values, other)| {
        values.iter_mut().zip(other).for_each(|(value, other)| *value += other);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn any_shares_and_any_order_have_the_same_bits() {
        let leaf = |panel: usize| array![[(panel as f64 * 0.37).sin() * 10f64.powf(panel as f64)]];
        let shares: [&[&[usize]]; 4] = [
            &[&[0, 1, 2, 3, 4, 5, 6, 7]],
            &[&[7], &[0, 1, 2, 3], &[6], &[4, 5]],
            &[&[3, 0, 5], &[1, 2, 7], &[4, 6]],
            &[&[2], &[1], &[0], &[7], &[3], &[5], &[4], &[6]],
        ];
        let sums = shares.map(|workers| {
            let mut all = Branches::default();
            for own in workers {
                let mut branches = Branches::default();
                own.iter().for_each(|&panel| branches.add_panel(panel, leaf(panel)));
                branches.into_vec().into_iter().for_each(|branch| all.add(branch));
            }
            all.into_vec()
        });
        assert!(sums.iter().all(|sum| sum.len() == 1 && *sum == sums[0]));
        assert_eq!((sums[0][0].level, sums[0][0].index), (3, 0));
    }
}
