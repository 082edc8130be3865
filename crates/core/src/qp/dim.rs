//! Lengths the compiler knows, so that the loops of small problems unroll and their bounds checks
//! vanish.

/// Length of a decision: a constant for the small ones, a number for the rest.
pub(super) trait Dim: Copy {
    /// The length.
    fn get(self) -> usize;
}

/// A length known when compiling.
#[derive(Clone, Copy)]
pub(super) struct Fixed<const N: usize>;

/// A length known when running.
#[derive(Clone, Copy)]
pub(super) struct Dynamic(pub usize);

impl<const N: usize> Dim for Fixed<N> {
    #[inline(always)]
    fn get(self) -> usize {
        N
    }
}

impl Dim for Dynamic {
    #[inline(always)]
    fn get(self) -> usize {
        self.0
    }
}

/// aᵀb, in partial sums of the width every processor has vectors for: one for short vectors, two
/// for long ones.
#[inline(always)]
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (a_fours, a) = a.as_chunks::<4>();
    let (b_fours, b) = b.as_chunks::<4>();
    let (mut sum, mut more) = ([0.0; 2], [0.0; 2]);
    for (a, b) in a_fours.iter().zip(b_fours) {
        for lane in 0..2 {
            sum[lane] += a[lane] * b[lane];
            more[lane] += a[lane + 2] * b[lane + 2];
        }
    }
    let (a_pairs, a) = a.as_chunks::<2>();
    let (b_pairs, b) = b.as_chunks::<2>();
    for (a, b) in a_pairs.iter().zip(b_pairs) {
        for lane in 0..2 {
            sum[lane] += a[lane] * b[lane];
        }
    }
    let rest = if let ([a], [b]) = (a, b) { a * b } else { 0.0 };
    (sum[0] + more[0]) + (sum[1] + more[1]) + rest
}

/// y += scale·x.
#[inline(always)]
pub(super) fn add_scaled(y: &mut [f64], scale: f64, x: &[f64]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += scale * x;
    }
}

/// Rotates the pair of vectors (x, y) to (cx + sy, cy − sx).
#[inline(always)]
pub(super) fn rotate(x: &mut [f64], y: &mut [f64], (c, s): (f64, f64)) {
    for (x, y) in x.iter_mut().zip(y) {
        (*x, *y) = (c * *x + s * *y, c * *y - s * *x);
    }
}
