//! Kernels of the user's own.

use std::fmt;

/// A positive semidefinite kernel written by the user of this crate: κ(a, b) on features, in f64.
///
/// Values are computed where and when they are needed, on several threads, so the functions must
/// give the same answer every time. That κ is symmetric and positive semidefinite is checked on a
/// sample of the data before a fit and, as far as the solver sees it, during it; what fails is told
/// as [`NotPositiveSemidefinite`](crate::Error::NotPositiveSemidefinite).
///
/// ```
/// use argwhy_core::Kernel;
/// use argwhy_core::kernel::CustomKernel;
///
/// /// Features on a circle: κ = 1 + Σ cos(a_k − b_k).
/// struct Circle;
///
/// impl CustomKernel for Circle {
///     fn name(&self) -> &str {
///         "circle"
///     }
///     fn evaluate(&self, a: &[f64], b: &[f64]) -> f64 {
///         1.0 + a.iter().zip(b).map(|(a, b)| (a - b).cos()).sum::<f64>()
///     }
/// }
///
/// let kernel = Kernel::Sum { terms: vec![Kernel::custom(Circle), Kernel::Linear] };
/// assert_eq!(kernel.evaluate(&[0.0], &[0.0]), 2.0);
/// ```
pub trait CustomKernel: Send + Sync {
    /// A name for messages.
    fn name(&self) -> &str;

    /// κ(a, b). Both have as many entries as there are features.
    fn evaluate(&self, a: &[f64], b: &[f64]) -> f64;

    /// out\[j\] = κ(a, b_j) where `samples` holds the b_j one after the other. Worth writing where
    /// a whole row is cheaper than its entries; a value may not depend on the samples beside it.
    fn evaluate_row(&self, a: &[f64], samples: &[f64], out: &mut [f64]) {
        let n_features = a.len();
        for (j, out) in out.iter_mut().enumerate() {
            *out = self.evaluate(a, &samples[j * n_features..(j + 1) * n_features]);
        }
    }
}

impl fmt::Debug for dyn CustomKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name())
    }
}

/// Two are equal where they are the same object: code cannot be compared.
impl PartialEq for dyn CustomKernel {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::addr_eq(self, other)
    }
}
