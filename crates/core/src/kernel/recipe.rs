//! A kernel taken apart: simple kernels on scaled features, and how their values are combined.
//!
//! Enters: a kernel and features. Leaves: the simple kernels in the order they stand in the
//! expression, each with the packing of its samples, and a tree of weighted sums and products of
//! them. Length scales reach down to every simple kernel.

use super::Kernel;
use super::custom::CustomKernel;
use super::finish::Finish;
use super::panels::Packing;
use super::tile::Pairing;
use ndarray::ArrayView2;
use std::f64::consts::LOG2_E;
use std::sync::Arc;

/// A kernel made ready to pack samples for.
#[derive(Clone)]
pub(crate) struct Recipe {
    pub(super) leaves: Vec<Leaf>,
    pub(super) root: Node,
}

/// A simple kernel.
#[derive(Clone)]
pub(super) enum Leaf {
    Packed(Packing),
    /// With the factor that each feature is multiplied by.
    Custom(Arc<dyn CustomKernel>, Vec<f64>),
}

/// weight · (a simple kernel, a sum, a product).
#[derive(Clone)]
pub(super) struct Node {
    pub(super) weight: f64,
    pub(super) operation: Operation,
}

#[derive(Clone)]
pub(super) enum Operation {
    /// The simple kernel of this number.
    Leaf(usize),
    Sum(Vec<Node>),
    Product(Vec<Node>),
}

impl Recipe {
    /// `features` (n_samples × n_features) say what to centre on.
    pub(crate) fn new(kernel: &Kernel, features: ArrayView2<'_, f64>) -> Self {
        let mut centre = vec![0.0; features.ncols()];
        for row in features.rows() {
            centre.iter_mut().zip(row).for_each(|(m, z)| *m += z);
        }
        if features.nrows() > 0 {
            centre.iter_mut().for_each(|m| *m /= features.nrows() as f64);
        }
        let mut leaves = Vec::new();
        let root = take_apart(kernel, &vec![1.0; features.ncols()], &centre, &mut leaves);
        Self { leaves, root }
    }

    /// The same kernel, every distance by differences of features that nothing has rounded before.
    pub(crate) fn by_differences(&self) -> Self {
        let leaves = self.leaves.iter().map(|leaf| match leaf {
            Leaf::Packed(packing) => Leaf::Packed(packing.by_differences()),
            Leaf::Custom(..) => leaf.clone(),
        });
        Self { leaves: leaves.collect(), root: self.root.clone() }
    }

    /// Strips of values needed beside the one that is asked for.
    pub(super) fn n_spare(&self) -> usize {
        self.root.n_spare()
    }
}

impl Node {
    fn n_spare(&self) -> usize {
        match &self.operation {
            Operation::Leaf(_) => 0,
            // The first part is computed in place, each other one strip further.
            Operation::Sum(parts) | Operation::Product(parts) => {
                let others = parts[1..].iter().map(|part| 1 + part.n_spare()).max();
                parts[0].n_spare().max(others.unwrap_or(0))
            }
        }
    }
}

/// `inverse`: what length scales around `kernel` multiply each feature by.
fn take_apart(kernel: &Kernel, inverse: &[f64], centre: &[f64], leaves: &mut Vec<Leaf>) -> Node {
    let mut all = |parts: &[Kernel]| -> Vec<Node> {
        parts.iter().map(|part| take_apart(part, inverse, centre, leaves)).collect()
    };
    let operation = match kernel {
        Kernel::Sum { terms } => Operation::Sum(all(terms)),
        Kernel::Product { factors } => Operation::Product(all(factors)),
        Kernel::Scaled { weight, kernel } => {
            let inner = take_apart(kernel, inverse, centre, leaves);
            return Node { weight: weight * inner.weight, ..inner };
        }
        Kernel::Anisotropic { length_scales, kernel } => {
            let inverse: Vec<f64> = inverse.iter().zip(length_scales).map(|(i, l)| i / l).collect();
            return take_apart(kernel, &inverse, centre, leaves);
        }
        Kernel::Custom(kernel) => {
            leaves.push(Leaf::Custom(Arc::clone(kernel), inverse.to_vec()));
            Operation::Leaf(leaves.len() - 1)
        }
        _ => {
            let (pairing, finish, weight) = simple(kernel).expect("a simple kernel");
            let scale = if pairing == Pairing::Absolute { weight } else { weight.sqrt() };
            let scale = inverse.iter().map(|inverse| scale * inverse).collect();
            leaves.push(Leaf::Packed(Packing::new((pairing, finish), scale, centre)));
            Operation::Leaf(leaves.len() - 1)
        }
    };
    Node { weight: 1.0, operation }
}

/// What a simple kernel pairs, its last step, and the weight of what is paired. None for others.
pub(super) fn simple(kernel: &Kernel) -> Option<(Pairing, Finish, f64)> {
    let simple = match *kernel {
        Kernel::Rbf { gamma } => (Pairing::Squared, Finish::Exp2, 2.0 * gamma * LOG2_E),
        Kernel::Matern32 { gamma } => (Pairing::Squared, Finish::Matern32, 2.0 * gamma),
        Kernel::Matern52 { gamma } => (Pairing::Squared, Finish::Matern52, 2.0 * gamma),
        Kernel::Laplace { gamma } => (Pairing::Absolute, Finish::Exp2, gamma * LOG2_E),
        Kernel::Polynomial { degree, gamma, offset } => {
            (Pairing::Inner, Finish::Power { degree, offset }, gamma)
        }
        Kernel::Linear => (Pairing::Inner, Finish::Identity, 1.0),
        Kernel::Constant => (Pairing::Inner, Finish::Power { degree: 1, offset: 1.0 }, 0.0),
        Kernel::Scaled { .. }
        | Kernel::Sum { .. }
        | Kernel::Product { .. }
        | Kernel::Anisotropic { .. }
        | Kernel::Custom(_) => return None,
    };
    Some(simple)
}
