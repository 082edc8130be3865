//! Dense factorisations, by faer, on plain column-major slices and on one thread: callers cut work into tasks of fixed
//! size, so that results do not depend on the number of threads.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor::{cholesky_in_place, cholesky_in_place_scratch};
use faer::linalg::matmul::matmul;
use faer::linalg::triangular_solve::{
    solve_lower_triangular_in_place, solve_upper_triangular_in_place,
};
use faer::reborrow::ReborrowMut;
use faer::{Accum, MatMut, MatRef, Par};

/// Replaces the lower triangle of the n × n matrix by its Cholesky factor; the strict upper triangle is left alone.
/// False where the matrix is not positive definite.
pub(crate) fn cholesky(a: &mut [f64], n: usize) -> bool {
    let mut memory =
        MemBuffer::new(cholesky_in_place_scratch::<f64>(n, Par::Seq, faer::Spec::default()));
    cholesky_in_place(
        MatMut::from_column_major_slice_mut(a, n, n),
        faer::linalg::cholesky::llt::factor::LltRegularization::default(),
        Par::Seq,
        MemStack::new(&mut memory),
        faer::Spec::default(),
    )
    .is_ok()
}

/// Solves LLᵀ x = b in place.
pub(crate) fn cholesky_solve(l: &[f64], n: usize, b: &mut [f64]) {
    let l = MatRef::from_column_major_slice(l, n, n);
    let mut b = MatMut::from_column_major_slice_mut(b, n, 1);
    solve_lower_triangular_in_place(l, b.rb_mut(), Par::Seq);
    solve_upper_triangular_in_place(l.transpose(), b, Par::Seq);
}

/// Solves L Y = B in place; `l` n × n column-major, `b` n × m row-major.
pub(crate) fn forward_substitute_rows(l: &[f64], n: usize, b: &mut [f64], m: usize) {
    let l = MatRef::from_column_major_slice(l, n, n);
    solve_lower_triangular_in_place(l, MatMut::from_row_major_slice_mut(b, n, m), Par::Seq);
}

/// C += α A B, all row-major: C m × n, A m × k, B k × n.
pub(crate) fn add_product_rows(
    c: &mut [f64],
    alpha: f64,
    a: &[f64],
    b: &[f64],
    (m, n, k): (usize, usize, usize),
) {
    matmul(
        MatMut::from_row_major_slice_mut(c, m, n),
        Accum::Add,
        MatRef::from_row_major_slice(a, m, k),
        MatRef::from_row_major_slice(b, k, n),
        alpha,
        Par::Seq,
    );
}

/// The columns `from..to` of a lower triangle get α P Pᵀ added, from their diagonal down. `p` is n × m row-major;
/// `columns` holds exactly those columns of the n × n column-major matrix.
pub(crate) fn add_gram_columns(
    columns: &mut [f64],
    (from, to): (usize, usize),
    alpha: f64,
    p: &[f64],
    (n, m): (usize, usize),
) {
    let p = MatRef::from_row_major_slice(p, n, m);
    let width = to - from;
    let lower = MatMut::from_column_major_slice_mut(columns, n, width);
    matmul(
        lower.subrows_mut(from, n - from),
        Accum::Add,
        p.subrows(from, n - from),
        p.subrows(from, width).transpose(),
        alpha,
        Par::Seq,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cholesky_solves_and_says_when_it_cannot() {
        let mut a = [4.0, 2.0, 0.0, 3.0];
        assert!(cholesky(&mut a, 2));
        let mut b = [2.0, 5.0];
        cholesky_solve(&a, 2, &mut b);
        assert!((4.0 * b[0] + 2.0 * b[1] - 2.0).abs() < 1e-14);
        assert!((2.0 * b[0] + 3.0 * b[1] - 5.0).abs() < 1e-14);
        assert!(!cholesky(&mut [1.0, 2.0, 0.0, 1.0], 2));
    }

    #[test]
    fn gram_columns_fill_the_lower_triangle() {
        let p = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let mut gram = [0.0; 9];
        add_gram_columns(&mut gram[..6], (0, 2), 1.0, &p, (3, 2));
        add_gram_columns(&mut gram[6..], (2, 3), 1.0, &p, (3, 2));
        let at = |i: usize, j: usize| gram[j * 3 + i];
        assert_eq!([at(0, 0), at(1, 0), at(2, 0)], [5.0, 11.0, 17.0]);
        assert_eq!([at(1, 1), at(2, 1), at(2, 2)], [25.0, 39.0, 61.0]);
    }
}
