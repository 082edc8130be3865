//! What a set leaves each dimension: bounds that no decision of the set is beyond.

use super::polyhedra::Polyhedra;
use super::samples::SampleSets;

/// Times that limits of dimensions are drawn from rows and each other.
const ROUNDS: usize = 8;
/// What rounding may take of a limit that was drawn from others, relative to them.
const ROUNDING: f64 = 1e-12;

/// The sets of samples, asked one after the other.
pub(crate) struct Extents<'a> {
    sets: &'a SampleSets,
    found: Vec<(f64, f64)>,
    /// Whether what was found holds for every sample.
    shared: bool,
}

impl SampleSets {
    /// What each set leaves each dimension.
    pub(crate) fn extents(&self) -> Extents<'_> {
        Extents { sets: self, found: Vec::new(), shared: false }
    }
}

impl Extents<'_> {
    /// Least and greatest value of every dimension in sample `i`'s set: exact for boxes; of
    /// polyhedra what follows row by row from the limits of the others, which is never too tight.
    pub fn of(&mut self, i: usize) -> &[(f64, f64)] {
        if self.shared {
            return &self.found;
        }
        self.found = match self.sets {
            SampleSets::Boxes(boxes) => {
                (0..boxes.n).map(|j| (boxes.lower(j, i), boxes.upper(j, i))).collect()
            }
            SampleSets::Polyhedra(polyhedra) => {
                self.shared = !polyhedra.own_limits;
                extent(polyhedra, i)
            }
        };
        &self.found
    }
}

fn extent(polyhedra: &Polyhedra, i: usize) -> Vec<(f64, f64)> {
    let mut found = vec![(f64::NEG_INFINITY, f64::INFINITY); polyhedra.n];
    for _ in 0..ROUNDS {
        let before = found.clone();
        let set = polyhedra.at(i);
        for (r, (row, limit)) in set.rows.chunks(polyhedra.n).zip(set.limits).enumerate() {
            tighten(&mut found, |j| row[j], *limit);
            if r < set.equalities {
                tighten(&mut found, |j| -row[j], -limit);
            }
        }
        if found == before {
            break;
        }
    }
    found
}

/// What row·u ≤ limit leaves each dimension where the others are within what was found.
fn tighten(found: &mut [(f64, f64)], row: impl Fn(usize) -> f64, limit: f64) {
    let least = |j: usize, (low, high): (f64, f64)| match row(j) {
        0.0 => 0.0,
        a if a > 0.0 => a * low,
        a => a * high,
    };
    for j in 0..found.len() {
        let a = row(j);
        if a == 0.0 {
            continue;
        }
        let (mut others, mut size) = (0.0, limit.abs());
        for (k, of) in found.iter().enumerate().filter(|(k, _)| *k != j) {
            let least = least(k, *of);
            others += least;
            size += least.abs();
        }
        // A row of one dimension is that dimension's own limit, to the bit.
        let alone = size == limit.abs();
        let room = if alone { 0.0 } else { ROUNDING * size };
        let bound = (limit - others + room) / a;
        if bound.is_finite() {
            let (low, high) = &mut found[j];
            if a > 0.0 { *high = high.min(bound) } else { *low = low.max(bound) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::Constraints;
    use crate::decision_set::BoxLimits;
    use ndarray::{Array1, array};

    #[test]
    fn a_sum_leaves_each_dimension_what_the_others_need_not() {
        // u0 + 2·u1 ≤ 4 and u0 + u1 + u2 = 3, all between 0 and 10.
        let given = Constraints::new()
            .with_inequalities(array![[1.0, 2.0, 0.0]], array![4.0])
            .unwrap()
            .with_equalities(array![[1.0, 1.0, 1.0]], array![3.0])
            .unwrap();
        let own = BoxLimits::new(vec![0.0; 3], vec![10.0; 3]).unwrap();
        let sets = SampleSets::new(&own, Some(&given), 1, |i| i).unwrap();
        let mut extents = sets.extents();
        for (j, most) in [3.0, 2.0, 3.0].into_iter().enumerate() {
            let (low, high) = extents.of(0)[j];
            assert_eq!(low, 0.0);
            assert!((high - most).abs() < 1e-9 && high >= most, "{j}: {high}");
        }
    }

    #[test]
    fn no_point_of_a_set_is_beyond() {
        for seed in 0..20 {
            let wave = |i: usize| ((seed * 31 + i * 7) as f64).sin();
            let matrix = ndarray::Array2::from_shape_fn((6, 3), |(r, j)| wave(3 * r + j));
            let bound: Array1<f64> = (0..6).map(|r| 1.0 + wave(r).abs()).collect();
            let given = Constraints::new().with_inequalities(matrix, bound).unwrap();
            let sets =
                SampleSets::new(&BoxLimits::none(3), Some(&given), 1, |i| i).unwrap().coupled();
            let mut extents = sets.extents();
            for i in 0..50 {
                let mut point = [9.0 * wave(i), 9.0 * wave(i + 50), 9.0 * wave(i + 100)];
                sets.project(0, &mut point).unwrap();
                for (u, (low, high)) in point.into_iter().zip(extents.of(0)) {
                    assert!(*low - 1e-9 <= u && u <= *high + 1e-9, "{low} {u} {high}");
                }
            }
        }
    }
}
