//! What is left of a low-rank factor when a fit is over, for a fit of more rows: its pivots and the
//! Gram matrices of B over the free samples.
//!
//! Making these took N·r² operations twice. B itself follows from the pivots, and is larger.

use crate::error::Error;
use crate::linalg::dense::{add_product_rows, cholesky, forward_substitute_rows};
use crate::operator::KernelOperator;
use ndarray::Array2;
use rayon::prelude::*;

/// Single precision will do where it rounds a Gram matrix by less than this share of λ: for a guess
/// at its inverse that conjugate gradients correct.
const ROUNDED: f64 = 0.05;

/// Samples that are forgotten at once: what that takes does not grow with how many there are.
const PANEL: usize = 256;

/// Pivots and Gram matrices of a factor.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptFactor {
    /// The samples whose rows of K the factor is made of.
    pub pivots: Vec<usize>,
    /// trace(K − BᵀB) over all samples.
    pub trace_left: f64,
    /// Which of the Gram matrices each dimension has.
    pub owners: Vec<usize>,
    /// One for each set of free samples.
    pub grams: Vec<KeptGram>,
    /// Kα of the coefficients that the fit ended with, decision_dim × n_samples: a start from these
    /// need not multiply them. A wrong one costs products, not the answer.
    pub desired: Option<Array2<f64>>,
}

/// B_FB_Fᵀ.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptGram {
    /// F, one a sample.
    pub free: Vec<bool>,
    /// The matrix.
    pub triangle: Triangle,
}

/// The lower triangle of a symmetric matrix, column by column, each from its diagonal down.
#[derive(Clone, Debug, PartialEq)]
pub enum Triangle {
    /// Where that is enough.
    Single(Vec<f32>),
    /// Where λ is small.
    Double(Vec<f64>),
}

impl Triangle {
    /// Numbers of a triangle of so many rows.
    pub fn len_of(rank: usize) -> usize {
        rank * (rank + 1) / 2
    }

    fn len(&self) -> usize {
        match self {
            Self::Single(values) => values.len(),
            Self::Double(values) => values.len(),
        }
    }

    fn is_finite(&self) -> bool {
        match self {
            Self::Single(values) => values.iter().all(|v| v.is_finite()),
            Self::Double(values) => values.iter().all(|v| v.is_finite()),
        }
    }

    /// The lower triangle of a matrix, column-major.
    fn of(matrix: &[f64], rank: usize, ridge: f64) -> Self {
        let columns = || matrix.chunks(rank.max(1)).enumerate().map(|(j, column)| &column[j..]);
        let squared: f64 = columns().flatten().map(|v| v * v).sum();
        // Entries are off by half a unit at most, and the whole by as much in Frobenius' norm.
        if f64::from(f32::EPSILON) / 2.0 * (2.0 * squared).sqrt() <= ROUNDED * ridge {
            Self::Single(columns().flatten().map(|v| *v as f32).collect())
        } else {
            Self::Double(columns().flatten().copied().collect())
        }
    }

    /// The matrix, column-major; `both` triangles of it or the lower one.
    pub(super) fn matrix(&self, rank: usize, both: bool) -> Vec<f64> {
        let mut matrix = vec![0.0; rank * rank];
        let mut at = 0;
        for j in 0..rank {
            let column = &mut matrix[j * rank + j..(j + 1) * rank];
            match self {
                Self::Single(values) => {
                    column.iter_mut().zip(&values[at..]).for_each(|(to, v)| *to = f64::from(*v));
                }
                Self::Double(values) => column.copy_from_slice(&values[at..at + rank - j]),
            }
            at += rank - j;
        }
        if both {
            for j in 0..rank {
                for i in j + 1..rank {
                    matrix[i * rank + j] = matrix[j * rank + i];
                }
            }
        }
        matrix
    }
}

impl KeptGram {
    /// Of a matrix, column-major, whose lower triangle is read.
    pub(super) fn new(free: Vec<bool>, matrix: &[f64], ridge: f64) -> Self {
        let rank = matrix.len().isqrt();
        Self { free, triangle: Triangle::of(matrix, rank, ridge) }
    }
}

impl KeptFactor {
    /// Of a factor's pivots, what it leaves and, for each dimension, the one whose matrix it
    /// shares; none where a matrix was never made.
    pub(super) fn of(
        (pivots, trace_left): (&[usize], f64),
        same_as: impl Iterator<Item = usize>,
        gram: impl Fn(usize) -> Option<KeptGram>,
    ) -> Option<Self> {
        let same_as: Vec<usize> = same_as.collect();
        let mut owners = Vec::with_capacity(same_as.len());
        let mut grams: Vec<(usize, KeptGram)> = Vec::new();
        for j in same_as {
            let known = grams.iter().position(|(of, _)| *of == j);
            let at = if let Some(at) = known {
                at
            } else {
                grams.push((j, gram(j)?));
                grams.len() - 1
            };
            owners.push(at);
        }
        let grams: Vec<KeptGram> = grams.into_iter().map(|(_, gram)| gram).collect();
        let pivots = pivots.to_vec();
        let desired = None;
        (!pivots.is_empty()).then_some(Self { pivots, trace_left, owners, grams, desired })
    }

    /// Rows of B.
    pub fn rank(&self) -> usize {
        self.pivots.len()
    }

    /// Samples it was made of.
    pub fn n_samples(&self) -> usize {
        self.grams.first().map_or(0, |gram| gram.free.len())
    }

    /// Bytes it takes at most.
    pub fn bytes(n_samples: usize, rank: usize, decision_dim: usize) -> u64 {
        let numbers = (Triangle::len_of(rank) + n_samples) * size_of::<f64>();
        (decision_dim * (numbers + n_samples * size_of::<bool>())) as u64
    }

    /// Bytes that a file has for it, but for a few.
    pub fn stored_bytes(&self) -> u64 {
        let of = |gram: &KeptGram| {
            let width = match gram.triangle {
                Triangle::Single(_) => size_of::<f32>(),
                Triangle::Double(_) => size_of::<f64>(),
            };
            (gram.triangle.len() * width + gram.free.len() / 8) as u64
        };
        let desired = self.desired.as_ref().map_or(0, |desired| desired.len() * size_of::<f64>());
        self.grams.iter().map(of).sum::<u64>() + desired as u64
    }

    /// Whether all that it says can be of one factor of `n_samples` samples: files are anyone's.
    pub fn validate(&self, n_samples: usize, decision_dim: usize) -> Result<(), Error> {
        let wrong = |what: &str| Err(Error::Start { what: format!("a kept factor {what}") });
        let mut seen = vec![false; n_samples];
        for &pivot in &self.pivots {
            match seen.get_mut(pivot) {
                Some(seen) if !*seen => *seen = true,
                _ => return wrong("has pivots that are no samples, or the same one twice"),
            }
        }
        if self.owners.len() != decision_dim {
            return wrong("is of another number of dimensions");
        }
        if self.pivots.is_empty() || self.owners.iter().any(|&at| at >= self.grams.len()) {
            return wrong("has dimensions without a matrix");
        }
        let rank = self.rank();
        for gram in &self.grams {
            if gram.free.len() != n_samples || gram.triangle.len() != Triangle::len_of(rank) {
                return wrong("has matrices of another size");
            }
            if !gram.triangle.is_finite() {
                return wrong("has entries that are no numbers");
            }
        }
        if let Some(desired) = &self.desired {
            if desired.dim() != (decision_dim, n_samples) {
                return wrong("has desired decisions of other samples");
            }
            if !desired.iter().all(|v| v.is_finite()) {
                return wrong("has desired decisions that are no numbers");
            }
        }
        if !(self.trace_left >= 0.0 && self.trace_left.is_finite()) {
            return wrong("leaves a trace that is no number");
        }
        Ok(())
    }

    /// The same without the samples that `place` has no place for; the others are counted anew by
    /// it. `kernel_of` makes the matrix of a list of them. None where nothing is left, rounding
    /// hides what is, or more go than stay: a new one takes less then.
    pub fn without(
        mut self,
        place: &[Option<usize>],
        kernel_of: impl FnOnce(&[usize]) -> Result<Box<dyn KernelOperator>, Error>,
    ) -> Result<Option<Self>, Error> {
        let gone: Vec<usize> = (0..place.len()).filter(|&i| place[i].is_none()).collect();
        let n_left = place.len() - gone.len();
        if gone.len() > n_left {
            return Ok(None);
        }
        if !gone.is_empty() {
            self.desired = None;
            if !self.forget(place, &gone, kernel_of)? {
                return Ok(None);
            }
        }
        for gram in &mut self.grams {
            let mut free = vec![false; n_left];
            for (now, was) in place.iter().zip(&gram.free) {
                if let Some(now) = now {
                    free[*now] = *was;
                }
            }
            gram.free = free;
        }
        self.pivots.iter_mut().for_each(|pivot| *pivot = place[*pivot].unwrap_or(0));
        Ok(Some(self))
    }
}

impl KeptFactor {
    /// Takes samples out of pivots, matrices and trace; whether what is left can be used. A matrix
    /// G becomes M (G − LLᵀ) Mᵀ for the columns L of B that are lost and, where rows of it are too,
    /// M.
    fn forget(
        &mut self,
        place: &[Option<usize>],
        gone: &[usize],
        kernel_of: impl FnOnce(&[usize]) -> Result<Box<dyn KernelOperator>, Error>,
    ) -> Result<bool, Error> {
        let rank = self.rank();
        let mut is_pivot = vec![false; place.len()];
        self.pivots.iter().for_each(|&pivot| is_pivot[pivot] = true);
        let mut listed = self.pivots.clone();
        listed.extend(gone.iter().filter(|&&i| !is_pivot[i]));
        let operator = kernel_of(&listed)?;
        let diagonal = operator.diagonal()?;
        let pivots: Vec<usize> = (0..rank).collect();
        let (lost, stay): (Vec<usize>, Vec<usize>) =
            pivots.iter().partition(|&&r| place[self.pivots[r]].is_none());
        if stay.is_empty() {
            return Ok(false);
        }
        let mut block = vec![0.0; rank * rank];
        operator.rows_into(&pivots, 0..rank, &mut block)?;
        let picked = |rows: &[usize], columns: &[usize]| -> Vec<f64> {
            let row = |r: &usize| &block[r * rank..(r + 1) * rank];
            rows.iter().flat_map(|r| columns.iter().map(|&c| row(r)[c])).collect()
        };
        let (of_lost, fewer) = (picked(&pivots, &lost), picked(&stay, &stay));
        let Some(own) = triangle_of(block, rank) else { return Ok(false) };

        let mut matrices: Vec<Vec<f64>> =
            self.grams.iter().map(|gram| gram.triangle.matrix(rank, true)).collect();
        let mut subtract = |at: &[usize], mut columns: Vec<f64>| {
            let n = at.len();
            forward_substitute_rows(&own, rank, &mut columns, n);
            // What the factor left of them is gone too.
            for (c, &i) in at.iter().enumerate() {
                let known: f64 = columns.chunks(n).map(|row| row[c] * row[c]).sum();
                self.trace_left -= (diagonal[i] - known).max(0.0);
            }
            matrices.par_iter_mut().zip(&self.grams).for_each(|(matrix, gram)| {
                let free: Vec<usize> = (0..n).filter(|&c| gram.free[listed[at[c]]]).collect();
                let rows = columns.chunks(n);
                let lost: Vec<f64> = rows.flat_map(|row| free.iter().map(|&c| row[c])).collect();
                let turned = transposed(&lost, rank, free.len());
                add_product_rows(matrix, -1.0, &lost, &turned, (rank, rank, free.len()));
            });
        };
        if !lost.is_empty() {
            subtract(&lost, of_lost);
        }
        for first in (rank..listed.len()).step_by(PANEL) {
            let range = first..listed.len().min(first + PANEL);
            let mut columns = vec![0.0; rank * range.len()];
            operator.rows_into(&pivots, range.clone(), &mut columns)?;
            subtract(&range.collect::<Vec<usize>>(), columns);
        }
        self.trace_left = self.trace_left.max(0.0);
        let n = stay.len();
        if !lost.is_empty() {
            let Some(fewer) = triangle_of(fewer, n) else { return Ok(false) };
            // T'⁻¹ times these rows of T: orthonormal, since both are roots of one matrix.
            let mut turn = rows_of(&own, rank, &stay);
            forward_substitute_rows(&fewer, n, &mut turn, rank);
            let back = transposed(&turn, n, rank);
            matrices.par_iter_mut().for_each(|matrix| {
                let mut half = vec![0.0; n * rank];
                add_product_rows(&mut half, 1.0, &turn, matrix, (n, rank, rank));
                *matrix = vec![0.0; n * n];
                add_product_rows(matrix, 1.0, &half, &back, (n, n, rank));
            });
            self.pivots = stay.iter().map(|&r| self.pivots[r]).collect();
        }
        for (gram, matrix) in self.grams.iter_mut().zip(&matrices) {
            // As exact as it was.
            let single = matches!(gram.triangle, Triangle::Single(_));
            let ridge = if single { f64::INFINITY } else { 0.0 };
            gram.triangle = Triangle::of(matrix, n, ridge);
        }
        // What was finite need not be so after products, and would be blamed on kernel values.
        Ok(self.grams.iter().all(|gram| gram.triangle.is_finite()))
    }
}

/// A matrix of so many rows and columns, row-major, turned.
fn transposed(a: &[f64], n_rows: usize, n_columns: usize) -> Vec<f64> {
    let mut out = vec![0.0; a.len()];
    for r in 0..n_rows {
        (0..n_columns).for_each(|c| out[c * n_rows + r] = a[r * n_columns + c]);
    }
    out
}

/// The Cholesky factor, column-major.
pub(super) fn triangle_of(mut matrix: Vec<f64>, rank: usize) -> Option<Vec<f64>> {
    cholesky(&mut matrix, rank).then_some(matrix)
}

/// Rows of a lower triangle (rank × rank, column-major), one after the other.
fn rows_of(triangle: &[f64], rank: usize, rows: &[usize]) -> Vec<f64> {
    let mut out = vec![0.0; rows.len() * rank];
    for (row, out) in rows.iter().zip(out.chunks_mut(rank)) {
        (0..=*row).for_each(|c| out[c] = triangle[c * rank + row]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision_set::Faces;
    use crate::kernel::Kernel;
    use crate::operator::{HostOperator, OperatorKind, Precision};
    use crate::precond::{LowRank, Preconditioner, RankLimits, Woodbury};
    use crate::random::stream;
    use ndarray::Axis;

    fn features(n: usize) -> Array2<f64> {
        Array2::from_shape_fn((n, 2), |(i, j)| ((i * i * (j + 2)) as f64 * 0.37).sin())
    }

    fn operator(features: &Array2<f64>) -> HostOperator {
        let kernel = Kernel::Rbf { gamma: 2.0 };
        HostOperator::new(features.view(), kernel, Precision::F64, OperatorKind::Tiled).unwrap()
    }

    /// BBᵀ over the free samples for these pivots, from nothing.
    fn gram(operator: &HostOperator, pivots: &[usize], free: &[bool]) -> Vec<f64> {
        let (rank, n) = (pivots.len(), operator.n_samples());
        let mut block = vec![0.0; rank * rank];
        operator.block_into(pivots, &mut block).unwrap();
        let triangle = triangle_of(block, rank).unwrap();
        let mut rows = vec![0.0; rank * n];
        operator.rows_into(pivots, 0..n, &mut rows).unwrap();
        forward_substitute_rows(&triangle, rank, &mut rows, n);
        let mut out = vec![0.0; rank * rank];
        for (i, free) in free.iter().enumerate().filter(|(_, free)| **free) {
            assert!(*free);
            for a in 0..rank {
                for b in 0..rank {
                    out[a * rank + b] += rows[a * n + i] * rows[b * n + i];
                }
            }
        }
        out
    }

    #[test]
    fn without_samples_and_pivots_it_is_the_factor_of_the_rest() {
        // More are forgotten than at once.
        let n = 2100;
        let all = features(n);
        let whole = operator(&all);
        // Few enough that T⁻¹ does not magnify what rounded B.
        let limits = RankLimits { max_rank: 25, enough_trace: 0.0 };
        let factor = LowRank::build(&whole, limits, &mut stream(3, "t"), || true).unwrap();
        // For λ so small that nothing is rounded.
        let (pivots, left) = (factor.pivots().to_vec(), factor.trace_left());
        let panel = factor.into_rows().err().unwrap();
        let mut woodbury = Woodbury::new(panel, 1e-9, 3).of_pivots(pivots, left);
        let free = Array2::from_shape_fn((3, n), |(j, i)| i % 4 > j / 2);
        woodbury.update(&Faces::Box(free)).unwrap();
        let kept = woodbury.keep().unwrap();
        let kept = KeptFactor { desired: Some(Array2::zeros((3, n))), ..kept };
        kept.validate(n, 3).unwrap();
        assert_eq!((kept.owners.as_slice(), kept.grams.len()), (&[0, 0, 1][..], 2));
        let gone = |i: usize| i % 7 == 2 || i == kept.pivots[0] || i == kept.pivots[13];
        let stay: Vec<usize> = (0..n).filter(|&i| !gone(i)).collect();
        let mut place = vec![None; n];
        stay.iter().enumerate().for_each(|(at, &i)| place[i] = Some(at));
        let rest = all.select(Axis(0), &stay);
        let fewer = kept
            .clone()
            .without(&place, |listed| Ok(Box::new(operator(&all.select(Axis(0), listed)))))
            .unwrap()
            .unwrap();
        fewer.validate(stay.len(), 3).unwrap();
        // What the samples that are gone added to it is not known.
        assert!(kept.desired.is_some() && fewer.desired.is_none());
        assert!(kept.validate(n, 2).is_err());
        let still: Vec<usize> = kept.pivots.iter().filter_map(|&pivot| place[pivot]).collect();
        assert!(still.len() < 24 && fewer.pivots == still);
        let left = operator(&rest);
        for own in &fewer.grams {
            let expected = gram(&left, &still, &own.free);
            let found = own.triangle.matrix(still.len(), true);
            let off = found.iter().zip(&expected).fold(0.0_f64, |m, (a, b)| m.max((a - b).abs()));
            // B was rounded to f32.
            assert!(off < 1e-4, "{off:e}");
        }
        let known: f64 =
            gram(&left, &still, &vec![true; stay.len()]).iter().step_by(still.len() + 1).sum();
        let lost = stay.len() as f64 - known - fewer.trace_left;
        // What pivots that are gone had explained is left now.
        assert!(lost > -1e-3, "{lost}");
    }

    #[test]
    fn without_samples_nothing_is_left_of_matrices_that_overflow() {
        let all = features(6);
        let grams = vec![KeptGram {
            free: vec![true; 6],
            triangle: Triangle::Double(vec![f64::MAX; Triangle::len_of(3)]),
        }];
        let (pivots, owners) = (vec![0, 2, 4], vec![0]);
        let kept = KeptFactor { pivots, trace_left: 1.0, owners, grams, desired: None };
        kept.validate(6, 1).unwrap();
        // A pivot goes.
        let place = [None, Some(0), Some(1), Some(2), Some(3), Some(4)];
        let operator_of = |listed: &[usize]| -> Result<Box<dyn KernelOperator>, Error> {
            Ok(Box::new(operator(&all.select(Axis(0), listed))))
        };
        assert_eq!(kept.without(&place, operator_of).unwrap(), None);
    }

    #[test]
    fn where_more_samples_go_than_stay_no_kernel_value_is_computed() {
        let grams = vec![KeptGram { free: vec![true; 6], triangle: Triangle::Double(vec![1.0]) }];
        let (pivots, owners) = (vec![5], vec![0]);
        let kept = KeptFactor { pivots, trace_left: 1.0, owners, grams, desired: None };
        let place = [None, None, None, None, Some(0), Some(1)];
        let without = kept.without(&place, |_| panic!("nothing is worth computing"));
        assert_eq!(without.unwrap(), None);
    }

    #[test]
    fn single_precision_is_for_a_large_ridge() {
        let matrix = [4.0, 1.0 / 3.0, 0.0, 2.0];
        assert!(matches!(Triangle::of(&matrix, 2, 1.0), Triangle::Single(_)));
        let exact = Triangle::of(&matrix, 2, 1e-9);
        assert_eq!(exact, Triangle::Double(vec![4.0, 1.0 / 3.0, 2.0]));
        assert_eq!(exact.matrix(2, false), matrix);
        assert_eq!(exact.matrix(2, true), [4.0, 1.0 / 3.0, 1.0 / 3.0, 2.0]);
    }
}
