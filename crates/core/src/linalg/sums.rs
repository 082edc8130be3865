//! Sums whose order is fixed by the data's length alone, so that every number of threads gives the
//! same bits.

use rayon::prelude::*;

/// Elements a task sums on its own.
const CHUNK: usize = 8192;

/// Half the distance between 1 and the next f64: what an operation is off by, relative to its
/// result.
pub(crate) const UNIT: f64 = f64::EPSILON / 2.0;

/// Σ aᵢ bᵢ.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    sum_over(a.len(), |i| a[i] * b[i])
}

/// Σ term(i) for i in 0..n: chunks of fixed size in parallel, their sums added first to last.
pub(crate) fn sum_over(n: usize, term: impl Fn(usize) -> f64 + Sync) -> f64 {
    let sum_chunk = |chunk: usize| {
        let range = chunk * CHUNK..((chunk + 1) * CHUNK).min(n);
        // Four running sums let the compiler use vectors without reassociating on its own.
        let mut lanes = [0.0; 4];
        for (at, i) in range.enumerate() {
            lanes[at % 4] += term(i);
        }
        (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])
    };
    let n_chunks = n.div_ceil(CHUNK);
    if n_chunks <= 1 {
        return if n == 0 { 0.0 } else { sum_chunk(0) };
    }
    let partial: Vec<f64> = (0..n_chunks).into_par_iter().map(sum_chunk).collect();
    partial.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_threads_does_not_change_the_bits() {
        let a: Vec<f64> = (0..50_001).map(|i| (i as f64 * 0.37).sin()).collect();
        let sum_with = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| dot(&a, &a)).to_bits()
        };
        assert_eq!(sum_with(1), sum_with(3));
        assert_eq!(dot(&[], &[]), 0.0);
    }
}
