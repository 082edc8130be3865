//! Dense factorisations, by faer, on plain column-major slices. Every call of faer runs on one
//! thread and work is cut into tasks of fixed size, here or by the caller, so that results do not
//! depend on the number of threads.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor::{cholesky_in_place, cholesky_in_place_scratch};
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::linalg::triangular_solve::{
    solve_lower_triangular_in_place, solve_upper_triangular_in_place,
};
use faer::reborrow::{IntoConst, ReborrowMut};
use faer::{Accum, MatMut, MatRef, Par, Side};
use rayon::prelude::*;

/// Columns factorised together by [`cholesky_on_all_cores`], and columns or rows that are one
/// task's.
const FACTORED: usize = 192;
const SHARE: usize = 96;
/// Rows of L that a substitution on all cores takes together, and columns and rows of what is
/// solved for that are one task's.
const PANEL: usize = 128;
const COLUMNS: usize = 32;
const ROWS: usize = 64;
/// Rows of C, its columns, and terms of each of its sums that one product of faer's has at most. It
/// copies that much of both factors, to places that every thread keeps: a third of a megabyte,
/// where a whole product would leave several with each.
const ROWS_COPIED: usize = 96;
const COLUMNS_COPIED: usize = 96;
const TERMS: usize = 192;
/// What the parts of a product are a multiple of, but the last: faer's own smallest blocks.
const WHOLE: usize = 24;

/// Replaces the lower triangle of the n × n matrix by its Cholesky factor; the strict upper
/// triangle is left alone. False where the matrix is not positive definite.
pub(crate) fn cholesky(a: &mut [f64], n: usize) -> bool {
    factorise(MatMut::from_column_major_slice_mut(a, n, n))
}

/// V and E with A = V diag(E) Vᵀ for the symmetric n × n matrix, whose lower triangle is read: V
/// column-major, E increasing. None where they are not found.
pub(crate) fn eigen(a: &[f64], n: usize) -> Option<(Vec<f64>, Vec<f64>)> {
    let matrix = MatRef::from_column_major_slice(a, n, n);
    let found = matrix.self_adjoint_eigen(Side::Lower).ok()?;
    let values = (0..n).map(|i| found.S()[i]).collect();
    let vectors = (0..n * n).map(|at| found.U()[(at % n, at / n)]).collect();
    Some((vectors, values))
}

/// Smallest eigenvalue of the symmetric n × n matrix, whose lower triangle is read; NaN where it is
/// not found.
pub(crate) fn smallest_eigenvalue(a: &[f64], n: usize) -> f64 {
    let matrix = MatRef::from_column_major_slice(a, n, n);
    let values = matrix.self_adjoint_eigenvalues(Side::Lower).unwrap_or_default();
    values.into_iter().reduce(f64::min).unwrap_or(f64::NAN)
}

/// Numbers that [`cholesky_on_all_cores`] needs beside the matrix.
pub(crate) fn cholesky_room(n: usize) -> usize {
    n.saturating_sub(FACTORED) * FACTORED
}

/// As [`cholesky`], cut into tasks for all cores.
pub(crate) fn cholesky_on_all_cores(a: &mut [f64], n: usize) -> bool {
    let mut whole = MatMut::from_column_major_slice_mut(a, n, n);
    // A panel's rows one after the other: products of these take three quarters of the time.
    let mut copy = vec![0.0; cholesky_room(n)];
    for first in (0..n).step_by(FACTORED) {
        let width = FACTORED.min(n - first);
        let rest = whole.rb_mut().submatrix_mut(first, first, n - first, n - first);
        let (panel, rest) = rest.split_at_col_mut(width);
        let (mut top, below) = panel.split_at_row_mut(width);
        if !factorise(top.rb_mut()) {
            return false;
        }
        let top = top.into_const();
        let n_below = below.nrows();
        let copy = &mut copy[..n_below * width];
        let tasks = cut(below.transpose_mut(), SHARE);
        tasks.into_par_iter().zip(copy.par_chunks_mut(SHARE * width)).for_each(
            |((_, mut rows), copy)| {
                solve_lower_triangular_in_place(top, rows.rb_mut(), Par::Seq);
                MatMut::from_column_major_slice_mut(copy, width, rows.ncols()).copy_from(rows);
            },
        );
        let below = MatRef::from_row_major_slice(copy, n_below, width);
        cut(rest.split_at_row_mut(width).1, SHARE).into_par_iter().for_each(|(at, columns)| {
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
            matmul(tail, Accum::Add, lower, own.transpose(), -1.0);
        });
    }
    true
}

/// Cuts a matrix into groups of `width` columns, each with the number of its first.
fn cut(matrix: MatMut<'_, f64>, width: usize) -> Vec<(usize, MatMut<'_, f64>)> {
    let (mut rest, mut parts, mut first) = (matrix, Vec::new(), 0);
    while rest.ncols() > 0 {
        let width = width.min(rest.ncols());
        let (part, left) = rest.split_at_col_mut(width);
        parts.push((first, part));
        (rest, first) = (left, first + width);
    }
    parts
}

/// C (+)= α A B, a part after the other.
fn matmul(c: MatMut<'_, f64>, accum: Accum, a: MatRef<'_, f64>, b: MatRef<'_, f64>, alpha: f64) {
    let n_terms = a.ncols();
    let (width, height, depth) =
        (part(c.ncols(), COLUMNS_COPIED), part(c.nrows(), ROWS_COPIED), part(n_terms, TERMS));
    for (column, mut columns) in cut(c, width) {
        let b = b.subcols(column, columns.ncols());
        for first in (0..n_terms.max(1)).step_by(depth) {
            let n_terms = depth.min(n_terms - first);
            let (a, b) = (a.subcols(first, n_terms), b.subrows(first, n_terms));
            let accum = if first == 0 { accum } else { Accum::Add };
            for (row, rows) in cut(columns.rb_mut().transpose_mut(), height) {
                let a = a.subrows(row, rows.ncols());
                faer::linalg::matmul::matmul(rows.transpose_mut(), accum, a, b, alpha, Par::Seq);
            }
        }
    }
}

/// Of as many parts of `n` as it takes for none to be larger than `most`, the size: nearly the same
/// for all, as one of few rows would be added in another order.
fn part(n: usize, most: usize) -> usize {
    n.div_ceil(n.div_ceil(most).max(1)).next_multiple_of(WHOLE).min(n).max(1)
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

/// Solves L x = b in place, or Lᵀ x = b where `transposed`, for columns of n numbers each: L is
/// read once for all.
pub(crate) fn triangular_solve(l: &[f64], n: usize, b: &mut [f64], transposed: bool) {
    let l = MatRef::from_column_major_slice(l, n, n);
    let n_columns = b.len() / n.max(1);
    let b = MatMut::from_column_major_slice_mut(b, n, n_columns);
    if transposed {
        solve_upper_triangular_in_place(l.transpose(), b, Par::Seq);
    } else {
        solve_lower_triangular_in_place(l, b, Par::Seq);
    }
}

/// Solves L Y = B in place on all cores, a panel of L after the other. Column c of `b` (n rows,
/// column-major) is zero above row `starts[c]`, and the starts do not decrease.
pub(crate) fn forward_substitute_on_all_cores(
    l: &[f64],
    n: usize,
    b: &mut [f64],
    starts: &[usize],
) {
    let l = MatRef::from_column_major_slice(l, n, n);
    let mut whole = MatMut::from_column_major_slice_mut(b, n, starts.len());
    for first in (0..n).step_by(PANEL) {
        let end = n.min(first + PANEL);
        let begun = starts.partition_point(|&start| start < end);
        let (above, below) = whole.rb_mut().subcols_mut(0, begun).split_at_row_mut(end);
        let mut panel = above.subrows_mut(first, end - first);
        let columns = l.subcols(first, end - first);
        let top = columns.subrows(first, end - first);
        cut(panel.rb_mut(), COLUMNS).into_par_iter().for_each(|(_, columns)| {
            solve_lower_triangular_in_place(top, columns, Par::Seq);
        });
        subtract_product(below, columns.subrows(end, n - end), panel.into_const());
    }
}

/// Solves Lᵀ Y = B in place on all cores, a panel of L after the other, for m columns,
/// column-major.
pub(crate) fn back_substitute_on_all_cores(l: &[f64], n: usize, b: &mut [f64], m: usize) {
    let l = MatRef::from_column_major_slice(l, n, n);
    let mut whole = MatMut::from_column_major_slice_mut(b, n, m);
    for first in (0..n).step_by(PANEL).rev() {
        let end = n.min(first + PANEL);
        let (above, mut panel) = whole.rb_mut().subrows_mut(0, end).split_at_row_mut(first);
        let rows = l.subrows(first, end - first);
        let top = rows.subcols(first, end - first).transpose();
        cut(panel.rb_mut(), COLUMNS).into_par_iter().for_each(|(_, columns)| {
            solve_upper_triangular_in_place(top, columns, Par::Seq);
        });
        subtract_product(above, rows.subcols(0, first).transpose(), panel.into_const());
    }
}

/// C −= A B, a group of rows a task.
fn subtract_product(c: MatMut<'_, f64>, a: MatRef<'_, f64>, b: MatRef<'_, f64>) {
    cut(c.transpose_mut(), ROWS).into_par_iter().for_each(|(at, rows)| {
        let a = a.subrows(at, rows.ncols());
        matmul(rows.transpose_mut(), Accum::Add, a, b, -1.0);
    });
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
    );
}

/// The lower triangle of C gets AᵀB added, which the caller knows to be symmetric: C n × n
/// column-major, A and B m × n row-major.
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

/// The columns `from..to` of a lower triangle get α P Pᵀ added, from their diagonal down. `p` is n
/// × m row-major; `columns` holds exactly those columns of the n × n column-major matrix.
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
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cmp::Ordering::{Equal, Greater, Less};

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
        for n in [1, 5, FACTORED, FACTORED + 1, 3 * FACTORED + 17] {
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
    fn substitutions_invert_their_products() {
        for n in [1, 40, PANEL, 2 * PANEL + 3] {
            let entry = |i: usize, j: usize| match i.cmp(&j) {
                Less => f64::NAN,
                Equal => 2.0 + (i % 3) as f64,
                Greater => ((i * 7 + j * 3) as f64).sin() / n as f64,
            };
            let l: Vec<f64> = (0..n * n).map(|at| entry(at % n, at / n)).collect();
            // Columns that begin at the top, in the middle of panels, and at the last row, more
            // than one task's.
            let starts: Vec<usize> =
                (0..COLUMNS + 9).map(|c| c * (n - 1) / (COLUMNS + 8)).collect();
            let wave = |i: usize, c: usize| ((i * 5 + c) as f64 * 0.3).cos();
            let y = |i: usize, c: usize| if i < starts[c] { 0.0 } else { wave(i, c) };
            let mut forward = Vec::new();
            let mut back = Vec::new();
            for c in 0..starts.len() {
                for i in 0..n {
                    forward.push((0..=i).map(|j| entry(i, j) * y(j, c)).sum::<f64>());
                    back.push((i..n).map(|j| entry(j, i) * wave(j, c)).sum::<f64>());
                }
            }
            let mut one = back.clone();
            forward_substitute_on_all_cores(&l, n, &mut forward, &starts);
            back_substitute_on_all_cores(&l, n, &mut back, starts.len());
            back_substitute(&l, n, &mut one, starts.len());
            for c in 0..starts.len() {
                for i in 0..n {
                    assert!((forward[c * n + i] - y(i, c)).abs() < 1e-13, "{n} {i} {c}");
                    assert!((back[c * n + i] - wave(i, c)).abs() < 1e-13, "{n} {i} {c}");
                    assert!((one[c * n + i] - wave(i, c)).abs() < 1e-13, "{n} {i} {c}");
                }
            }
        }
    }

    /// Wide, tall and deep ones are cut into pieces.
    #[test]
    fn products_of_any_shape_are_sums() {
        let sizes = [1, 3, 48, COLUMNS_COPIED + 1, 2 * COLUMNS_COPIED + 70];
        let depths = [0, 1, 7, TERMS + 5, 2 * TERMS + 200];
        let shapes = sizes.iter().flat_map(|&m| sizes.map(|n| (m, n)));
        for (m, n, k) in shapes.flat_map(|(m, n)| depths.map(|k| (m, n, k))) {
            let entry = |at: usize| (at as f64 * 0.7).sin();
            let a: Vec<f64> = (0..m * k).map(entry).collect();
            let b: Vec<f64> = (0..k * n).map(entry).collect();
            let mut c = vec![1.0; m * n];
            add_product_rows(&mut c, -2.0, &a, &b, (m, n, k));
            for (at, found) in c.iter().enumerate() {
                let (i, j) = (at / n, at % n);
                let sum: f64 = (0..k).map(|l| a[i * k + l] * b[l * n + j]).sum();
                assert!((found - (1.0 - 2.0 * sum)).abs() < 1e-10, "{m} {n} {k}: {i} {j}");
            }
        }
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
