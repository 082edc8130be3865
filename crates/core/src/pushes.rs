//! How much each signal pushed g away from what it is in a typical situation: Shapley values.
//!
//! The value of a group of signals is g where these are as they are and all others as in the
//! typical situation; a signal's push is what it adds to a group, averaged over all orders in which
//! signals can join. Pushes add up to the whole difference.
//!
//! Enters: a situation, a typical one, and g of the rows that [`Plan::rows`] asks for. Leaves: a
//! push for every signal and decision. Between the two anyone may compute g, at once or in slices.

use crate::features::Expansion;
use crate::kernel::Kernel;
use crate::model::Model;
use crate::random;
use ndarray::{Array1, Array2, ArrayView2, Axis};
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
pub struct Pushes {
    /// How far each signal pushed each desired decision.
    pub values: Array2<f64>,
    /// Standard error of each, zero where they are exact.
    pub errors: Array2<f64>,
    /// How they were found.
    pub method: Method,
}

/// Whether g is a sum of functions of one signal each: linear in the signals themselves.
pub fn is_additive(model: &Model) -> bool {
    fn is_linear(kernel: &Kernel) -> bool {
        match kernel {
            Kernel::Linear | Kernel::Constant => true,
            Kernel::Scaled { kernel, .. } | Kernel::Anisotropic { kernel, .. } => is_linear(kernel),
            Kernel::Sum { terms } => terms.iter().all(is_linear),
            kernel => *kernel == Kernel::linear_with_intercept(),
        }
    }
    model.features.settings().expansion == Expansion::Raw && is_linear(&model.kernel())
}

/// The situations whose g pushes follow from, the typical one first.
pub struct Plan {
    /// Signals that differ from the typical situation's.
    moved: Vec<usize>,
    way: Way,
    rows: Array2<f64>,
}

/// How the groups were chosen.
enum Way {
    /// Each signal alone.
    OneByOne,
    /// Every group of the signals that differ.
    Groups,
    /// Random orders, each followed by its reverse, which halves what they have in common.
    Orders(Vec<Vec<usize>>),
}

impl Plan {
    /// What to compute for `signal` beside the `typical` one, exact where that is cheap; `additive`
    /// where signals act each on its own.
    pub fn new(signal: &[f64], typical: &[f64], additive: bool) -> Self {
        let moved: Vec<usize> = (0..signal.len()).filter(|&j| signal[j] != typical[j]).collect();
        let way = if additive {
            Way::OneByOne
        } else if moved.len() <= ENUMERATED {
            Way::Groups
        } else {
            Way::Orders(orders(&moved))
        };
        Self::by(way, moved, signal, typical)
    }

    fn by(way: Way, moved: Vec<usize>, signal: &[f64], typical: &[f64]) -> Self {
        let m = moved.len();
        let groups: Vec<Vec<usize>> = match &way {
            Way::OneByOne => {
                std::iter::once(Vec::new()).chain(moved.iter().map(|&j| vec![j])).collect()
            }
            Way::Groups => (0..1_usize << m)
                .map(|mask| (0..m).filter(|at| mask >> at & 1 == 1).map(|at| moved[at]).collect())
                .collect(),
            Way::Orders(orders) => [Vec::new(), moved.clone()]
                .into_iter()
                .chain(orders.iter().flat_map(|o| (1..m).map(|n| o[..n].to_vec())))
                .collect(),
        };
        let mut rows = Array2::zeros((groups.len(), typical.len()));
        for (mut row, group) in rows.rows_mut().into_iter().zip(&groups) {
            row.iter_mut().zip(typical).for_each(|(value, typical)| *value = *typical);
            group.iter().for_each(|&j| row[j] = signal[j]);
        }
        Self { moved, way, rows }
    }

    /// The situations, a row each.
    pub fn rows(&self) -> ArrayView2<'_, f64> {
        self.rows.view()
    }

    /// Pushes, where `desired` has g of every row.
    pub fn pushes(&self, desired: ArrayView2<'_, f64>) -> Pushes {
        match &self.way {
            Way::OneByOne => self.exact(&(&desired.slice(ndarray::s![1.., ..]) - &desired.row(0))),
            Way::Groups => self.exact(&self.over_groups(desired)),
            Way::Orders(orders) => self.over_orders(orders, desired),
        }
    }

    fn exact(&self, of_moved: &Array2<f64>) -> Pushes {
        let mut values = Array2::zeros((self.rows.ncols(), of_moved.ncols()));
        for (row, &j) in of_moved.rows().into_iter().zip(&self.moved) {
            values.row_mut(j).assign(&row);
        }
        Pushes { errors: Array2::zeros(values.dim()), values, method: Method::Exact }
    }

    fn over_groups(&self, g: ArrayView2<'_, f64>) -> Array2<f64> {
        let m = self.moved.len();
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
        pushes
    }

    fn over_orders(&self, orders: &[Vec<usize>], g: ArrayView2<'_, f64>) -> Pushes {
        let (m, dim, pairs) = (self.moved.len(), g.ncols(), orders.len() / 2);
        // The mean of an order and its reverse is one draw.
        let mut draws = Array2::<f64>::zeros((pairs, self.rows.ncols() * dim));
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
        let shape = (self.rows.ncols(), dim);
        let mean = draws.mean_axis(Axis(0)).expect("at least one draw");
        let error = draws.std_axis(Axis(0), 1.0) / (pairs as f64).sqrt();
        let shaped = |values: Array1<f64>| {
            values.into_shape_with_order(shape).expect("as many as there are")
        };
        Pushes { values: shaped(mean), errors: shaped(error), method: Method::Sampled }
    }
}

/// Random orders of the signals that differ, each with its reverse.
fn orders(moved: &[usize]) -> Vec<Vec<usize>> {
    let pairs = (SPENT / (2 * moved.len())).max(8);
    let mut random = random::stream(0, "orders");
    let mut orders = Vec::new();
    for _ in 0..pairs {
        let mut order = moved.to_vec();
        order.shuffle(&mut random);
        orders.push(order.clone());
        order.reverse();
        orders.push(order);
    }
    orders
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{ArrayView1, array};

    /// x0·x1·x2 + 2·x3: by symmetry a third of the product each.
    fn desired(rows: ArrayView2<'_, f64>) -> Array2<f64> {
        let of = |s: ArrayView1<'_, f64>| s[0] * s[1] * s[2] + 2.0 * s[3] + 0.0 * s[4];
        rows.map_axis(Axis(1), of).insert_axis(Axis(1))
    }

    fn pushes(plan: &Plan) -> Pushes {
        plan.pushes(desired(plan.rows()).view())
    }

    #[test]
    fn enumeration_is_exact_and_adds_up() {
        let (signal, typical) = ([1.0, 2.0, 3.0, 5.0, 7.0], [0.0, 0.0, 0.0, 1.0, 7.0]);
        let pushes = pushes(&Plan::new(&signal, &typical, false));
        assert_eq!(pushes.method, Method::Exact);
        let expected = array![[2.0], [2.0], [2.0], [8.0], [0.0]];
        assert!((&pushes.values - &expected).iter().all(|e| e.abs() < 1e-12), "{}", pushes.values);
    }

    #[test]
    fn random_orders_come_near_to_enumeration_and_say_how_near() {
        let (signal, typical) = ([1.0, 2.0, 3.0, 5.0, 7.0], [0.5, -1.0, 0.2, 1.0, 6.0]);
        let moved = vec![0, 1, 2, 3, 4];
        let exact = pushes(&Plan::new(&signal, &typical, false)).values;
        let sampled = Plan::by(Way::Orders(orders(&moved)), moved, &signal, &typical);
        let near = pushes(&sampled);
        let whole = exact.sum();
        assert_eq!(near.method, Method::Sampled);
        assert!((near.values.sum() - whole).abs() < 1e-9 * whole.abs());
        for ((a, b), error) in exact.iter().zip(&near.values).zip(&near.errors) {
            assert!((a - b).abs() <= 4.0 * error + 1e-9, "{a} {b} ± {error}");
            assert!(*error <= 0.01 * whole.abs(), "{a} {b} ± {error}");
        }
    }

    #[test]
    fn nothing_moved_is_no_push() {
        let same = [1.0, 2.0, 3.0, 4.0, 5.0];
        let pushes = pushes(&Plan::new(&same, &same, false));
        assert!(pushes.values.iter().all(|push| *push == 0.0));
    }
}
