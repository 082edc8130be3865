//! How far computed kernel values can be from those of the definition, proven.
//!
//! Enters: a kernel taken apart and features. Leaves: a number r_i a sample such that every value
//! computed in f64 is off by at most r_i r_j, so that a product K v is off by at most r_i Σ_j r_j
//! |v_j|. The book's chapter "The certificate" derives the constants. In short, with u = 2⁻⁵³, d
//! features and x the number a simple kernel is a function of:
//!
//! * −½‖a − b‖² as aᵀb − h_a − h_b is off by (2d + 22)u(h_a + h_b), h = ½‖·‖² of the packed
//!   numbers. Since ‖a − b‖ ≥ |‖a‖ − ‖b‖|, the kernel has died out wherever one of the two is much
//!   larger than the other, and (h_a + h_b)κ' ≤ 5√((1 + h_a)(1 + h_b)): a few samples far out spoil
//!   their own values only.
//! * By differences it is off by (d + 12)u of itself, and |x|κ'(x) is below 0.37 whatever x.
//! * An inner product is off by (d + 8)u‖a‖‖b‖, a power of it by as much relative to √(κ_aa κ_bb).
//!
//! Sums and products of kernels keep the form r_i r_j by the inequality of Cauchy and Schwarz.

use super::finish::Finish;
use super::panels::Packing;
use super::recipe::{Leaf, Node, Operation, Recipe};
use super::tile::Pairing;
use crate::linalg::sums::UNIT;
use ndarray::ArrayView2;
use rayon::prelude::*;

/// Units that exponential, root and their polynomial add to a value of a simple kernel.
const FINISH: f64 = 16.0;
/// Norms ½‖z‖² of packed samples, on average, beyond which f32 has no digits of a distance left.
const SINGLE_NORM: f64 = 1e4;
/// Packed numbers, squared, and kernel values beyond this are not for f32.
const SINGLE_RANGE: f64 = 1e34;

/// The recipe that f64 values are computed by, how far off they can be, and whether f32 is of any
/// use.
pub(crate) struct Rounded {
    /// By differences where the faster way would lose more than was asked for.
    pub(crate) recipe: Recipe,
    entries: Vec<Entry>,
    /// Whether f32 can tell the samples apart, and holds their kernel values.
    pub(crate) single_will_do: bool,
}

/// What kernel values may be off by before differences are taken.
#[derive(Clone, Copy)]
pub(crate) enum Accuracy {
    /// On average: what a certificate needs, which knows each sample's own.
    Mean(f64),
    /// Of every sample: what decisions need.
    Worst(f64),
}

impl Rounded {
    pub(crate) fn new(recipe: &Recipe, features: ArrayView2<'_, f64>, accuracy: Accuracy) -> Self {
        let of = |recipe: &Recipe| -> Vec<Entry> {
            let features = features.as_standard_layout();
            let rows = features.as_slice().expect("in standard layout");
            let rows = rows.par_chunks(features.ncols().max(1)).with_min_len(64);
            let mut entries: Vec<Entry> =
                rows.map(|row| recipe.root.entry(&recipe.leaves, row)).collect();
            // Without features all samples are the same.
            entries.resize_with(features.nrows(), || recipe.root.entry(&recipe.leaves, &[]));
            entries
        };
        let fast = of(recipe);
        let norm = fast.iter().map(|e| e.norm).sum::<f64>() / fast.len().max(1) as f64;
        let in_range = |e: &Entry| e.norm <= SINGLE_RANGE && e.diagonal <= SINGLE_RANGE;
        let single_will_do = norm <= SINGLE_NORM && fast.iter().all(in_range);
        let units = fast.iter().map(|e| e.squared);
        let enough = match accuracy {
            Accuracy::Mean(limit) => UNIT * units.sum::<f64>() / fast.len().max(1) as f64 <= limit,
            Accuracy::Worst(limit) => units.map(|squared| UNIT * squared).all(|e| e <= limit),
        };
        let (recipe, entries) = if enough {
            (recipe.clone(), fast)
        } else {
            let exact = recipe.by_differences();
            let entries = of(&exact);
            (exact, entries)
        };
        Self { recipe, entries, single_will_do }
    }

    /// r_i: a product that adds no more than so many numbers one after the other is off by at most
    /// r_i Σ_j r_j |v_j|.
    pub(crate) fn envelope(&self, additions: usize) -> Vec<f64> {
        let units = |e: &Entry| e.squared + (additions + 2) as f64 * e.diagonal;
        self.entries.iter().map(|e| (UNIT * units(e)).sqrt()).collect()
    }
}

/// What is known of one sample under a kernel.
#[derive(Clone, Copy)]
struct Entry {
    /// κ(z, z).
    diagonal: f64,
    /// r²/u: with another sample's, under the root, the units a value is off by.
    squared: f64,
    /// The largest ½‖z‖² of its packed numbers.
    norm: f64,
}

impl Node {
    fn entry(&self, leaves: &[Leaf], row: &[f64]) -> Entry {
        let parts = |parts: &[Self]| -> Vec<Entry> {
            parts.iter().map(|part| part.entry(leaves, row)).collect()
        };
        let norm = |parts: &[Entry]| parts.iter().fold(0.0, |m: f64, e| m.max(e.norm));
        let entry = match &self.operation {
            Operation::Leaf(at) => match &leaves[*at] {
                Leaf::Packed(packing) => packing.entry(row),
                // What a user's kernel returns is its definition.
                Leaf::Custom(kernel, scale) => {
                    let z: Vec<f64> = row.iter().zip(scale).map(|(z, s)| z * s).collect();
                    Entry { diagonal: kernel.evaluate(&z, &z), squared: 0.0, norm: 0.0 }
                }
            },
            Operation::Sum(terms) => {
                let parts = parts(terms);
                let diagonal: f64 = parts.iter().map(|e| e.diagonal).sum();
                let own: f64 = parts.iter().map(|e| e.squared).sum();
                let squared = own + parts.len() as f64 * diagonal;
                Entry { diagonal, squared, norm: norm(&parts) }
            }
            Operation::Product(factors) => {
                let parts = parts(factors);
                let diagonal: f64 = parts.iter().map(|e| e.diagonal).product();
                let others = |at: usize| -> f64 {
                    let rest = parts.iter().enumerate().filter(|(other, _)| *other != at);
                    rest.map(|(_, e)| e.diagonal).product()
                };
                let own: f64 = parts.iter().enumerate().map(|(at, e)| e.squared * others(at)).sum();
                // What two errors have in common is of second order; twice the first covers it.
                let squared = 2.0 * own + parts.len() as f64 * diagonal;
                Entry { diagonal, squared, norm: norm(&parts) }
            }
        };
        Entry {
            diagonal: self.weight * entry.diagonal,
            squared: self.weight * (entry.squared + 2.0 * entry.diagonal),
            ..entry
        }
    }
}

/// What a kernel of −½‖a − b‖² = aᵀb − h_a − h_b is off by, for samples of ½‖z‖² = `half`.
pub(super) fn distance_units(finish: Finish, n_features: usize, half: f64) -> f64 {
    UNIT * distance_squared(finish, n_features as f64, half)
}

fn distance_squared(finish: Finish, d: f64, half: f64) -> f64 {
    5.0 * finish.steepness().0 * (2.0 * d + 22.0) * (1.0 + half) + FINISH
}

impl Packing {
    fn entry(&self, row: &[f64]) -> Entry {
        let d = row.len() as f64;
        let half: f64 = 0.5 * self.packed(row).map(|z| z * z).sum::<f64>();
        let length = || self.packed(row).map(f64::abs).sum::<f64>();
        let (slope, reach) = self.finish().steepness();
        let (diagonal, squared) = match self.pairing() {
            Pairing::Squared => (1.0, distance_squared(self.finish(), d, half)),
            Pairing::Absolute => (1.0, 2.0 * slope * 5.0 * (1.0 + length()) + reach * d + FINISH),
            Pairing::ScaledSquared => (1.0, reach * (d + 12.0) + FINISH),
            Pairing::ScaledAbsolute => (1.0, reach * (d + 8.0) + FINISH),
            Pairing::Inner => match self.finish() {
                Finish::Power { degree, offset } => {
                    let value = (2.0 * half + offset).powi(degree.cast_signed());
                    (value, f64::from(degree) * (d + 12.0) * value)
                }
                _ => (2.0 * half, (d + 8.0) * 2.0 * half),
            },
        };
        Entry { diagonal, squared, norm: half }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;
    use ndarray::Array2;

    fn rounded(kernel: &Kernel, features: &Array2<f64>, accuracy: f64) -> Rounded {
        let recipe = Recipe::new(kernel, features.view());
        Rounded::new(&recipe, features.view(), Accuracy::Mean(accuracy))
    }

    fn mean_square(rounded: &Rounded) -> f64 {
        let envelope = rounded.envelope(50);
        envelope.iter().map(|r| r * r).sum::<f64>() / envelope.len() as f64
    }

    #[test]
    fn ordinary_features_need_no_differences_and_far_ones_do() {
        let near = Array2::from_shape_fn((50, 4), |(i, k)| ((i * 7 + k) as f64 * 0.4).sin());
        let far = near.mapv(|z| 1e9 * z);
        let kernel = Kernel::Rbf { gamma: 0.25 };
        assert!(mean_square(&rounded(&kernel, &near, 1e-11)) < 1e-12);
        assert!(rounded(&kernel, &near, 1e-11).single_will_do);
        // γ‖z‖²ε is 50 there; by differences what is left is a few units of the last place of one.
        let exact = rounded(&kernel, &far, 1e-11);
        assert!(mean_square(&exact) < 1e-13 && !exact.single_will_do);
        assert!(mean_square(&rounded(&kernel, &far, f64::INFINITY)) > 1.0);
    }

    #[test]
    fn one_sample_far_out_spoils_its_own_values_only() {
        let mut features =
            Array2::from_shape_fn((50, 4), |(i, k)| ((i * 7 + k) as f64 * 0.4).sin());
        features.row_mut(7).fill(1e5);
        let envelope = rounded(&Kernel::Matern52 { gamma: 0.25 }, &features, 1.0).envelope(50);
        // What they are centred on moves with it, by a fiftieth.
        assert!(envelope[7] > 20.0 * envelope[6], "{:e} {:e}", envelope[7], envelope[6]);
    }
}
