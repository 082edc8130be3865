//! Dense factorisations, by faer, on plain column-major slices. Every call of faer runs on one thread and work is cut into
//! tasks of fixed size, here or by the caller, so that results do not depend on the number of threads.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor::{cholesky_in_place, cholesky_in_place_scratch};
use faer::linalg::matmul::matmul;
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::linalg::triangular_solve::{
    solve_lower_triangular_in_place, solve_upper_triangular_in_place,
};
use faer::reborrow::{IntoConst, ReborrowMut};
use faer::{Accum, MatMut, MatRef, Par, Side};
use rayon::prelude::*;

/// Columns factorised together by [`cholesky_on_all_cores`], and columns or rows that are one task's.
const PANEL: usize = 128;

/// Replaces the lower triangle of the n × n matrix by its Cholesky factor; the strict upper triangle is left alone.
/// False where the matrix is not positive definite.
pub(crate) fn cholesky(a: &mut [f64], n: usize) -> bool {
    factorise(MatMut::from_column_major_slice_mut(a, n, n))
}

/// V and E with A = V diag(E) Vᵀ for the symmetric n × n matrix, whose lower triangle is read: V column-major, E increasing. None where they
/// are not found.
pub(crate) fn eigen(a: &[f64], n: usize) -> Option<(Vec<f64>, Vec<f64>)> {
    let matrix = MatRef::from_column_major_slice(a, n, n);
    let found = matrix.self_adjoint_eigen(Side::Lower).ok()?;
    let values = (0..n).map(|i| found.S()[i]).collect();
    let vectors = (0..n * n).map(|at| found.U()[(at % n, at / n)]).collect();
    Some((vectors, values))
}

/// Smallest eigenvalue of the symmetric n × n matrix, whose lower triangle is read; NaN where it is not found.
pub(crate) fn smallest_eigenvalue(a: &[f64], n: usize) -> f64 {
    let matrix = MatRef::from_column_major_slice(a, n, n);
    let values = matrix.self_adjoint_eigenvalues(Side::Lower).unwrap_or_default();
    values.into_iter().reduce(f64::min).unwrap_or(f64::NAN)
}

/// As [`cholesky`], cut into tasks for all cores.
pub(crate) fn cholesky_on_all_cores(a: &mut [f64], n: usize) -> bool {
    let mut whole = MatMut::from_column_major_slice_mut(a, n, n);
    for first in (0..n).step_by(PANEL) {
        let width = PANEL.min(n - first);
        let rest = whole.rb_mut().submatrix_mut(first, first, n - first, n - first);
        let (panel, rest) = rest.split_at_col_mut(width);
        let (mut top, mut below) = panel.split_at_row_mut(width);
        if !factorise(top.rb_mut()) {
            return false;
        }
        let top = top.into_const();
        let tasks: Vec<_> = cut(below.rb_mut().transpose_mut()).collect();
        tasks.into_par_iter().for_each(|(_, rows)| {
            solve_lower_triangular_in_place(top, rows, Par::Seq);
        });
        let below = below.into_const();
        let tasks: Vec<_> = cut(rest.split_at_row_mut(width).1).collect();
        tasks.into_par_iter().for_each(|(at, columns)| {
            let width = columns.ncols();
            let (square, tail) = columns.split_at_row_mut(at).1.split_at_row_mut(width);
            let (own, lower) = below.split_at_row(at).1.split_at_row(width);
            triangular::matmul(
                square,
                BlockStructure::TriangularLower,
                Accum::Add,
                own,
                BlockStructure::Rectangular,
                own.transpose(),
                BlockStructure::Rectangular,
                -1.0,
                Par::Seq,
            );
            matmul(tail, Accum::Add, lower, own.transpose(), -1.0, Par::Seq);
        });
    }
    true
}

/// Cuts a matrix into groups of columns, each with the number of its first.
fn cut(matrix: MatMut<'_, f64>) -> impl Iterator<Item = (usize, MatMut<'_, f64>)> {
    let (mut rest, mut first) = (Some(matrix), 0);
    std::iter::from_fn(move || {
        let matrix = rest.take().filter(|m| m.ncols() > 0)?;
        let (part, left) = {
            let width = PANEL.min(matrix.ncols());
            matrix.split_at_col_mut(width)
        };
        rest = Some(left);
        let at = first;
        first += part.ncols();
        Some((at, part))
    })
}

fn factorise(a: MatMut<'_, f64>) -> bool {
    let n = a.nrows();
    let mut memory =
        MemBuffer::new(cholesky_in_place_scratch::<f64>(n, Par::Seq, faer::Spec::default()));
    cholesky_in_place(
        a,
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

/// Solves L Y = B in place for the last rows of L, from `first` on: `b` holds those rows of m columns, column-major. What
/// stands above them is zero and stays so.
pub(crate) fn forward_substitute(l: &[f64], n: usize, first: usize, b: &mut [f64], m: usize) {
    let l = MatRef::from_column_major_slice(l, n, n);
    let l = l.submatrix(first, first, n - first, n - first);
    solve_lower_triangular_in_place(
        l,
        MatMut::from_column_major_slice_mut(b, n - first, m),
        Par::Seq,
    );
}

/// Solves Lᵀ Y = B in place for m columns, column-major.
pub(crate) fn back_substitute(l: &[f64], n: usize, b: &mut [f64], m: usize) {
    let l = MatRef::from_column_major_slice(l, n, n);
    let b = MatMut::from_column_major_slice_mut(b, n, m);
    solve_upper_triangular_in_place(l.transpose(), b, Par::Seq);
}

/// C = AᵀB for column-major A (k × m) and B (k × n); C column-major.
pub(crate) fn inner_products(
    c: &mut [f64],
    a: &[f64],
    b: &[f64],
    (m, n, k): (usize, usize, usize),
) {
    matmul(
        MatMut::from_column_major_slice_mut(c, m, n),
        Accum::Replace,
        MatRef::from_column_major_slice(a, k, m).transpose(),
        MatRef::from_column_major_slice(b, k, n),
        1.0,
        Par::Seq,
    );
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

/// C += AᵀB, all row-major: C m × n, A k × m, B k × n.
pub(crate) fn add_transposed_product_rows(
    c: &mut [f64],
    a: &[f64],
    b: &[f64],
    (m, n, k): (usize, usize, usize),
) {
    matmul(
        MatMut::from_row_major_slice_mut(c, m, n),
        Accum::Add,
        MatRef::from_row_major_slice(a, k, m).transpose(),
        MatRef::from_row_major_slice(b, k, n),
        1.0,
        Par::Seq,
    );
}

/// The lower triangle of C gets AᵀB added, which the caller knows to be symmetric: C n × n column-major, A and B m × n row-major.
pub(crate) fn add_symmetric_product(c: &mut [f64], a: &[f64], b: &[f64], (n, m): (usize, usize)) {
    triangular::matmul(
        MatMut::from_column_major_slice_mut(c, n, n),
        BlockStructure::TriangularLower,
        Accum::Add,
        MatRef::from_row_major_slice(a, m, n).transpose(),
        BlockStructure::Rectangular,
        MatRef::from_row_major_slice(b, m, n),
        BlockStructure::Rectangular,
        1.0,
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
    fn all_cores_find_the_factor_of_one_and_leave_the_upper_triangle_alone() {
        for n in [1, 5, PANEL, PANEL + 1, 3 * PANEL + 17] {
            let entry = |i: usize, j: usize| {
                let near = -((i as f64 - j as f64) * 0.3).powi(2);
                near.exp() + if i == j { 0.5 } else { 0.0 }
            };
            let mut reference: Vec<f64> = (0..n * n).map(|at| entry(at % n, at / n)).collect();
            let mut found = reference.clone();
            assert!(cholesky(&mut reference, n) && cholesky_on_all_cores(&mut found, n));
            for (found, expected) in found.iter().zip(&reference) {
                assert!((found - expected).abs() < 1e-13);
            }
        }
        let mut indefinite = vec![1.0; 300 * 300];
        indefinite[299 * 301] = 0.5;
        assert!(!cholesky_on_all_cores(&mut indefinite, 300));
    }

    #[test]
    fn substitution_may_start_below_the_zeros() {
        let l = [2.0, 1.0, 3.0, 0.0, 4.0, 5.0, 0.0, 0.0, 8.0];
        let (mut whole, mut tail) = ([0.0, 4.0, 1.0], [4.0, 1.0]);
        forward_substitute(&l, 3, 0, &mut whole, 1);
        forward_substitute(&l, 3, 1, &mut tail, 1);
        assert_eq!(whole, [0.0, 1.0, -0.5]);
        assert_eq!(tail, [1.0, -0.5]);
        back_substitute(&l, 3, &mut whole, 1);
        assert!((8.0 * whole[2] + 0.5).abs() < 1e-15);
        assert!((4.0 * whole[1] + 5.0 * whole[2] - 1.0).abs() < 1e-15);
    }

    #[test]
    fn transposed_products_by_hand() {
        let (a, b) = ([1.0, 2.0, 3.0, 4.0], [5.0, 6.0]);
        let mut c = [1.0, 1.0];
        add_transposed_product_rows(&mut c, &a, &b, (2, 1, 2));
        assert_eq!(c, [24.0, 35.0]);
        let mut gram = [0.0, 0.0, 7.0, 0.0];
        add_symmetric_product(&mut gram, &a, &a, (2, 2));
        assert_eq!(gram, [10.0, 14.0, 7.0, 20.0]);
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
