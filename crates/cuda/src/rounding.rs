//! How far exact values and products on the GPU can be from those of the definition, proven.
//!
//! Enters: a kernel taken apart and features. Leaves: a number r_i a sample such that entry i of an
//! exact product is off by at most r_i Σ_j r_j |v_j|, as `argwhy_core::kernel::rounding` has it for
//! the host, whose lemmas hold here too. With u = 2⁻⁵³, d features, c = z − mean and h = γ‖c‖² (for
//! rbf times log₂ e):
//!
//! * γ‖a − b‖² as γ(‖a‖² + ‖b‖² − 2aᵀb) of rounded centred features is off by (2d + 30)u(h_a +
//!   h_b):
//!   d roundings in each sum, whatever their order, and a few around them. With κ' at most `slope`,
//!   (h_a + h_b)κ' ≤ 5 slope √((1 + h_a)(1 + h_b)).
//! * By differences it is off by (d + 16)u of itself, and |x|κ'(x) is below 0.37 whatever x.
//! * exp is off by an ulp, roots are exact to rounding: 16 units cover them and their polynomial.
//! * Length scales divide before anything is subtracted, which moves a sample by u‖z‖: κ changes by
//!   at most 0.91√γ times that, and A + B ≤ √2 √((1 + A²)(1 + B²)).
//! * The linear part goes by its factors, Z(Zᵀv): so many roundings as numbers are added, of
//!   w‖z_i‖‖z_j‖.

use crate::exact::Strips;
use crate::linear;
use crate::recipe::{Kind, Recipe, Term};
use ndarray::{ArrayView2, Axis};
use std::f64::consts::{LN_2, LOG2_E};

/// Half the distance between 1 and the next f64.
const UNIT: f64 = f64::EPSILON / 2.0;
/// Units that exponential, root and their polynomial add to a value.
const FINISH: f64 = 16.0;
/// Norms h on average beyond which 22 bits have no digits of a distance left.
const WORKING_NORM: f64 = 1e4;

/// What is known of every sample under a kernel.
pub(crate) struct Rounded {
    samples: Vec<Sample>,
    /// Whether exact products may come from inner products of centred features.
    pub(crate) centred: bool,
    /// Whether the working precision can tell the samples apart.
    pub(crate) working: bool,
    n_parts: usize,
    has_linear: bool,
}

struct Sample {
    /// κ(z, z).
    diagonal: f64,
    /// r²/u of a value.
    squared: f64,
}

/// Sums over the features of one sample.
struct Norms {
    centred: f64,
    raw: f64,
    /// ‖z‖₁.
    absolute: f64,
}

impl Rounded {
    /// `features`: as the recipe scaled them. Products from inner products where values are then
    /// off by no more than `accuracy` on average, else by differences.
    pub(crate) fn new(recipe: &Recipe, features: ArrayView2<'_, f64>, accuracy: f64) -> Self {
        let means = features.mean_axis(Axis(0)).unwrap_or_default();
        let norms: Vec<Norms> = features
            .rows()
            .into_iter()
            .map(|row| {
                let mut norms = Norms { centred: 0.0, raw: 0.0, absolute: 0.0 };
                for (z, mean) in row.iter().zip(&means) {
                    norms.centred += (z - mean) * (z - mean);
                    norms.raw += z * z;
                    norms.absolute += z.abs();
                }
                norms
            })
            .collect();
        let (n_samples, n_features) = features.dim();
        let of = |centred: bool| -> Vec<Sample> {
            let one = |norms: &Norms| sample(recipe, norms, (n_samples, n_features), centred);
            norms.iter().map(one).collect()
        };
        let mean = |samples: &[Sample]| {
            UNIT * samples.iter().map(|s| s.squared).sum::<f64>() / n_samples.max(1) as f64
        };
        let fast = of(true);
        let centred = recipe.distances() == 1 && mean(&fast) <= accuracy;
        let samples = if centred { fast } else { of(false) };
        let half = |term: &Term| {
            norms.iter().map(|n| half(term, n)).sum::<f64>() / n_samples.max(1) as f64
        };
        let euclidean = recipe.terms.iter().filter(|term| term.kind != Kind::Laplace);
        let working = euclidean.map(half).fold(0.0, f64::max) <= WORKING_NORM;
        let n_parts = recipe.terms.len() + 1;
        Self { samples, centred, working, n_parts, has_linear: recipe.has_linear() }
    }

    /// r_i.
    pub(crate) fn envelope(&self) -> Vec<f64> {
        self.envelope_of(0)
    }

    /// The same for a product of so many parts, which are added one after the other.
    pub(crate) fn envelope_of(&self, n_parts: usize) -> Vec<f64> {
        let n_samples = self.samples.len();
        // The linear part counts what it adds itself (`sample`).
        let additions = Strips::longest_sum(n_samples) + self.n_parts + n_parts + 4;
        let additions = if self.has_linear { additions + 2 } else { additions };
        let units = |s: &Sample| s.squared + additions as f64 * s.diagonal;
        self.samples.iter().map(|s| (UNIT * units(s)).sqrt()).collect()
    }
}

/// h.
fn half(term: &Term, norms: &Norms) -> f64 {
    let base = if term.kind == Kind::Rbf { LOG2_E } else { 1.0 };
    base * term.gamma * norms.centred
}

fn sample(
    recipe: &Recipe,
    norms: &Norms,
    (n_samples, n_features): (usize, usize),
    centred: bool,
) -> Sample {
    let d = n_features as f64;
    let mut found = Sample { diagonal: 0.0, squared: 0.0 };
    for term in &recipe.terms {
        let slope = match term.kind {
            Kind::Rbf => LN_2,
            Kind::Laplace => 1.0,
            Kind::Matern32 => 3.0,
            Kind::Matern52 => 10.0 / 6.0,
        };
        let mut own = match term.kind {
            Kind::Laplace => 0.37 * (d + 16.0),
            _ if centred => 5.0 * slope * (2.0 * d + 30.0) * (1.0 + half(term, norms)),
            _ => 0.37 * (d + 16.0),
        };
        own += FINISH;
        if recipe.has_scales() {
            own += match term.kind {
                Kind::Laplace => 2.0 * (1.0 + (term.gamma * norms.absolute).powi(2)),
                _ => 2.0 * (1.0 + term.gamma * norms.raw),
            };
        }
        found.diagonal += term.weight;
        found.squared += term.weight * (own + 2.0);
    }
    if recipe.has_linear() {
        let value = recipe.linear * norms.raw + recipe.constant;
        found.diagonal += value;
        found.squared += (d + 20.0 + linear::longest_sum(n_samples) as f64) * value;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use argwhy_core::Kernel;
    use argwhy_core::operator::{HostOperator, KernelOperator, OperatorKind, Precision};
    use ndarray::Array2;

    fn near() -> Array2<f64> {
        Array2::from_shape_fn((50, 4), |(i, k)| ((i * 7 + k) as f64 * 0.4).sin())
    }

    fn rounded(kernel: &Kernel, features: &Array2<f64>, accuracy: f64) -> Rounded {
        Rounded::new(&Recipe::new(kernel).unwrap(), features.view(), accuracy)
    }

    #[test]
    fn ordinary_features_need_no_differences_and_far_ones_do() {
        let kernel = Kernel::Rbf { gamma: 0.25 };
        let (near, far) = (near(), near().mapv(|z| 1e9 * z));
        let ordinary = rounded(&kernel, &near, 1e-11);
        assert!(ordinary.centred && ordinary.working);
        let exact = rounded(&kernel, &far, 1e-11);
        assert!(!exact.centred && !exact.working);
        assert!(exact.envelope().iter().all(|r| r * r < 1e-13));
        assert!(rounded(&kernel, &far, f64::INFINITY).envelope().iter().any(|r| r * r > 1.0));
    }

    /// What the GPU may be off by is of the size of what the host may be.
    #[test]
    fn the_envelope_is_about_the_hosts() {
        let gamma = 0.25;
        let kernels = [
            Kernel::Rbf { gamma },
            Kernel::Laplace { gamma },
            Kernel::Matern32 { gamma },
            Kernel::Matern52 { gamma },
            Kernel::Linear,
            Kernel::Sum { terms: vec![Kernel::Rbf { gamma }, Kernel::linear_with_intercept()] },
        ];
        let features = near();
        for kernel in kernels {
            let own = rounded(&kernel, &features, 1e-11).envelope();
            let (precision, kind) = (Precision::F64, OperatorKind::Tiled);
            let host = HostOperator::new(features.view(), kernel.clone(), precision, kind).unwrap();
            for (own, host) in own.iter().zip(host.rounding().unwrap()) {
                // Sums of the linear part run over samples before they run over features.
                assert!(*own > 0.4 * host && *own < 8.0 * host, "{kernel:?}: {own:e} {host:e}");
            }
        }
    }
}
