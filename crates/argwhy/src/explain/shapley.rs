//! How much each signal pushed g away from what it is in a typical situation: Shapley values.
//!
//! The value of a group of signals is g where these are as they are and all others as in the
//! typical situation; a signal's push is what it adds to a group, averaged over all orders in which
//! signals can join. Pushes add up to the whole difference.

use crate::error::Error;
use argwhy_core::random;
use ndarray::{Array2, Axis};
use rand::seq::SliceRandom;
use serde::Serialize;

/// Signals whose groups are all tried: 2 to that power desired decisions.
const ENUMERATED: usize = 10;
/// Desired decisions that are spent where there are more.
const SPENT: usize = 1536;

/// How pushes were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// By all groups of signals, or because signals act each on its own.
    Exact,
    /// By random orders; the standard error says how far off.
    Sampled,
}

/// Pushes, signals × decisions.
pub(super) struct Pushes {
    pub values: Array2<f64>,
    /// Of each, zero where they are exact.
    pub errors: Array2<f64>,
    pub method: Method,
}

/// A situation and the typical one it is compared with.
pub(super) struct Compared<'a> {
    pub signal: &'a [f64],
    pub typical: &'a [f64],
    /// Signals that act each on its own.
    pub additive: bool,
}

type Desired<'a> = dyn Fn(&Array2<f64>) -> Result<Array2<f64>, Error> + 'a;

impl Compared<'_> {
    /// Pushes, exact where that is cheap.
    pub fn pushes(&self, desired: &Desired<'_>) -> Result<Pushes, Error> {
        let moved: Vec<usize> =
            (0..self.signal.len()).filter(|&j| self.signal[j] != self.typical[j]).collect();
        if self.additive {
            self.one_by_one(&moved, desired)
        } else if moved.len() <= ENUMERATED {
            self.enumerated(&moved, desired)
        } else {
            self.sampled(&moved, desired)
        }
    }

    /// The typical situation with some signals as they are.
    fn with(&self, present: impl Iterator<Item = usize>) -> Vec<f64> {
        let mut signal = self.typical.to_vec();
        present.for_each(|j| signal[j] = self.signal[j]);
        signal
    }

    fn array(&self, rows: Vec<Vec<f64>>) -> Array2<f64> {
        let (n, d) = (rows.len(), self.signal.len());
        Array2::from_shape_vec((n, d), rows.concat()).expect("rows of one length")
    }

    fn exact(&self, moved: &[usize], of_moved: &Array2<f64>) -> Pushes {
        let mut values = Array2::zeros((self.signal.len(), of_moved.ncols()));
        for (row, &j) in of_moved.rows().into_iter().zip(moved) {
            values.row_mut(j).assign(&row);
        }
        Pushes { errors: Array2::zeros(values.dim()), values, method: Method::Exact }
    }

    fn one_by_one(&self, moved: &[usize], desired: &Desired<'_>) -> Result<Pushes, Error> {
        let alone = moved.iter().map(|&j| self.with(std::iter::once(j)));
        let rows = std::iter::once(self.typical.to_vec()).chain(alone).collect();
        let g = desired(&self.array(rows))?;
        let pushes = &g.slice(ndarray::s![1.., ..]) - &g.row(0);
        Ok(self.exact(moved, &pushes))
    }

    /// Every group of the signals that differ.
    pub fn enumerated(&self, moved: &[usize], desired: &Desired<'_>) -> Result<Pushes, Error> {
        let m = moved.len();
        let group = |mask: usize| (0..m).filter(move |at| mask >> at & 1 == 1).map(|at| moved[at]);
        let g = desired(&self.array((0..1 << m).map(|mask| self.with(group(mask))).collect()))?;
        // |S|!(m − |S| − 1)!/m!: the share of orders in which exactly S comes before.
        let mut share = vec![1.0 / m.max(1) as f64; m.max(1)];
        for size in 1..m {
            share[size] = share[size - 1] * size as f64 / (m - size) as f64;
        }
        let mut pushes = Array2::zeros((m, g.ncols()));
        for mask in 0..1_usize << m {
            for at in (0..m).filter(|at| mask >> at & 1 == 0) {
                let gain = &g.row(mask | 1 << at) - &g.row(mask);
                pushes.row_mut(at).scaled_add(share[mask.count_ones() as usize], &gain);
            }
        }
        Ok(self.exact(moved, &pushes))
    }

    /// Random orders, each with its reverse, which halves what they have in common.
    pub fn sampled(&self, moved: &[usize], desired: &Desired<'_>) -> Result<Pushes, Error> {
        let m = moved.len();
        let pairs = (SPENT / (2 * m)).max(8);
        let mut random = random::stream(0, "orders");
        let mut orders = Vec::new();
        for _ in 0..pairs {
            let mut order = moved.to_vec();
            order.shuffle(&mut random);
            orders.push(order.clone());
            order.reverse();
            orders.push(order);
        }
        let mut rows = vec![self.typical.to_vec(), self.signal.to_vec()];
        for order in &orders {
            rows.extend((1..m).map(|n| self.with(order[..n].iter().copied())));
        }
        let g = desired(&self.array(rows))?;
        let dim = g.ncols();
        // The mean of an order and its reverse is one draw.
        let mut draws = Array2::<f64>::zeros((pairs, self.signal.len() * dim));
        for (o, order) in orders.iter().enumerate() {
            let at = |n: usize| match n {
                0 => 0,
                n if n == m => 1,
                n => 2 + o * (m - 1) + n - 1,
            };
            for (n, &j) in order.iter().enumerate() {
                for c in 0..dim {
                    draws[[o / 2, j * dim + c]] += 0.5 * (g[[at(n + 1), c]] - g[[at(n), c]]);
                }
            }
        }
        let shape = (self.signal.len(), dim);
        let mean = draws.mean_axis(Axis(0)).expect("at least one draw");
        let error = draws.std_axis(Axis(0), 1.0) / (pairs as f64).sqrt();
        let shaped = |values: ndarray::Array1<f64>| {
            values.into_shape_with_order(shape).expect("as many as there are")
        };
        Ok(Pushes { values: shaped(mean), errors: shaped(error), method: Method::Sampled })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    /// x0·x1·x2 + 2·x3: by symmetry a third of the product each.
    #[allow(clippy::unnecessary_wraps, reason = "what stands in for it can fail")]
    fn desired(rows: &Array2<f64>) -> Result<Array2<f64>, Error> {
        let of = |s: ndarray::ArrayView1<'_, f64>| s[0] * s[1] * s[2] + 2.0 * s[3] + 0.0 * s[4];
        Ok(rows.map_axis(Axis(1), of).insert_axis(Axis(1)))
    }

    fn compared<'a>(signal: &'a [f64], typical: &'a [f64]) -> Compared<'a> {
        Compared { signal, typical, additive: false }
    }

    #[test]
    fn enumeration_is_exact_and_adds_up() {
        let (signal, typical) = ([1.0, 2.0, 3.0, 5.0, 7.0], [0.0, 0.0, 0.0, 1.0, 7.0]);
        let pushes = compared(&signal, &typical).pushes(&desired).unwrap();
        assert_eq!(pushes.method, Method::Exact);
        let expected = array![[2.0], [2.0], [2.0], [8.0], [0.0]];
        assert!((&pushes.values - &expected).iter().all(|e| e.abs() < 1e-12), "{}", pushes.values);
    }

    #[test]
    fn random_orders_come_near_to_enumeration_and_say_how_near() {
        let (signal, typical) = ([1.0, 2.0, 3.0, 5.0, 7.0], [0.5, -1.0, 0.2, 1.0, 6.0]);
        let compared = compared(&signal, &typical);
        let moved = [0, 1, 2, 3, 4];
        let exact = compared.enumerated(&moved, &desired).unwrap().values;
        let near = compared.sampled(&moved, &desired).unwrap();
        let whole = exact.sum();
        assert!((near.values.sum() - whole).abs() < 1e-9 * whole.abs());
        for ((a, b), error) in exact.iter().zip(&near.values).zip(&near.errors) {
            assert!((a - b).abs() <= 4.0 * error + 1e-9, "{a} {b} ± {error}");
            assert!(*error <= 0.01 * whole.abs(), "{a} {b} ± {error}");
        }
    }

    #[test]
    fn nothing_moved_is_no_push() {
        let same = [1.0, 2.0, 3.0, 4.0, 5.0];
        let pushes = compared(&same, &same).pushes(&desired).unwrap();
        assert!(pushes.values.iter().all(|push| *push == 0.0));
    }
}
