//! Lengths the compiler knows, so that the loops of small problems unroll and their bounds checks vanish.

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

/// aᵀb, with two partial sums: the width of the vectors every processor has.
#[inline(always)]
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (a_pairs, a_rest) = a.as_chunks::<2>();
    let (b_pairs, b_rest) = b.as_chunks::<2>();
    let mut sum = [0.0; 2];
    for (a, b) in a_pairs.iter().zip(b_pairs) {
        sum[0] += a[0] * b[0];
        sum[1] += a[1] * b[1];
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sum[0] + sum[1] + rest
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
