//! Some columns of B, K ≈ BᵀB: those of all samples on one machine, of a share of them on each of
//! several.
//!
//! Enters: rows of K over these samples, round by round, and what B is at their pivots. Leaves: B's
//! columns in f32 and what a preconditioner asks of them: products with B and its transpose, and
//! B_SB_Sᵀ for some samples S. Every answer depends on what entered alone, so that a panel that is
//! lost can be made again.

use super::low_rank::proposals;
use crate::error::Error;
use crate::kernel::layout::{BLOCK, STRIP};
use crate::linalg::aligned::Aligned;
use crate::linalg::dense::{add_gram_columns, add_product_rows, forward_substitute_rows};
use crate::linalg::simd::Isa;
use crate::operator::{KernelOperator, accumulate_columns, accumulate_rows};
use ndarray::{Array2, ArrayView2};
use rayon::prelude::*;

/// Samples whose columns of B are gathered at a time.
pub(crate) const GATHERED: usize = 1024;
/// Columns of a Gram matrix that are one task's.
const GRAM_COLUMNS: usize = 64;

/// B over some samples, in the order in which they are listed.
pub struct FactorPanel {
    n_samples: usize,
    rank: usize,
    /// Rows that no pivot brought: no row of K knows of them.
    n_given: usize,
    rounds: Vec<Rows>,
    isa: Isa,
}

/// Rows of B that were found in one round.
struct Rows {
    n_rows: usize,
    /// value (r, i) at (i / BLOCK · n_rows + r) · BLOCK + i % BLOCK.
    data: Aligned<f32>,
}

impl Rows {
    fn zeros(n_rows: usize, n_samples: usize) -> Self {
        Self { n_rows, data: Aligned::zeros(n_samples.div_ceil(BLOCK) * n_rows * BLOCK) }
    }

    /// All rows over the samples of `block`.
    fn block(&self, block: usize) -> &[f32] {
        &self.data[block * self.n_rows * BLOCK..(block + 1) * self.n_rows * BLOCK]
    }
}

impl FactorPanel {
    /// No rows yet.
    pub fn new(n_samples: usize) -> Self {
        Self { n_samples, rank: 0, n_given: 0, rounds: Vec::new(), isa: Isa::detect() }
    }

    /// The rows of K itself at `pivots`, C, in place of those of B: with T the Cholesky factor of C
    /// at the pivots T⁻¹C is B, and nothing of the size of C is solved for.
    pub(super) fn of_kernel(
        operator: &dyn KernelOperator,
        pivots: &[usize],
    ) -> Result<Self, Error> {
        let n_samples = operator.n_samples();
        let mut panel = Self { rank: pivots.len(), ..Self::new(n_samples) };
        let mut rows = Vec::new();
        for pivots in pivots.chunks(proposals(n_samples)) {
            let m = pivots.len();
            rows.resize(m * n_samples, 0.0);
            operator.rows_into(pivots, 0..n_samples, &mut rows)?;
            let mut found = Rows::zeros(m, n_samples);
            let of_block = |(block, data): (usize, &mut [f32])| {
                for (values, out) in rows.chunks(n_samples).zip(data.chunks_mut(BLOCK)) {
                    let values = &values[block * BLOCK..];
                    out.iter_mut().zip(values).for_each(|(out, value)| *out = *value as f32);
                }
            };
            found.data.par_chunks_mut(m * BLOCK).enumerate().for_each(of_block);
            panel.rounds.push(found);
        }
        Ok(panel)
    }

    /// Samples, the columns.
    pub fn n_samples(&self) -> usize {
        self.n_samples
    }

    /// Rows.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Bytes that so many rows take.
    pub fn bytes(n_samples: usize, rank: usize) -> u64 {
        (n_samples.next_multiple_of(BLOCK) * rank * size_of::<f32>()) as u64
    }

    /// Rows of what the matrix has beside the K of [`append`](Self::append), n_rows × n_samples;
    /// before the first pivots.
    pub fn give(&mut self, given: ArrayView2<'_, f32>) {
        debug_assert!(self.rank == 0 && given.ncols() == self.n_samples);
        if given.nrows() == 0 {
            return;
        }
        let n_rows = given.nrows();
        let mut rows = Rows::zeros(n_rows, self.n_samples);
        for (r, row) in given.rows().into_iter().enumerate() {
            for (i, value) in row.iter().enumerate() {
                rows.data[(i / BLOCK * n_rows + r) * BLOCK + i % BLOCK] = *value;
            }
        }
        self.rounds.push(rows);
        (self.rank, self.n_given) = (n_rows, n_rows);
    }

    /// Appends L⁻¹(K_S: − B_SᵀB) for the m pivots S, and lowers the residual diagonal, nowhere
    /// below zero, by the rows' squares. `rows` is K_S: over these samples, m × n_samples, and
    /// `weights` B_Sᵀ without the rows given, m × known, both row-major; `triangle` is L,
    /// column-major.
    pub fn append(
        &mut self,
        rows: &[f64],
        weights: &[f64],
        triangle: &[f64],
        diagonal: &mut [f64],
    ) {
        let (m, n_samples) = (triangle.len().isqrt(), self.n_samples);
        let weights = self.by_rounds(weights, m);
        let mut found = Rows::zeros(m, n_samples);
        let old = &self.rounds[self.rounds.len() - weights.len()..];
        found
            .data
            .par_chunks_mut(m * BLOCK)
            .zip(diagonal.par_chunks_mut(BLOCK))
            .enumerate()
            .for_each(|(block, (data, diagonal))| {
                let len = diagonal.len();
                let mut own = vec![0.0; m * BLOCK];
                for (row, values) in own.chunks_mut(BLOCK).zip(rows.chunks(n_samples)) {
                    row[..len].copy_from_slice(&values[block * BLOCK..][..len]);
                }
                for (old, weights) in old.iter().zip(&weights) {
                    let widened: Vec<f64> =
                        old.block(block).iter().map(|v| f64::from(*v)).collect();
                    add_product_rows(&mut own, -1.0, weights, &widened, (m, BLOCK, old.n_rows));
                }
                forward_substitute_rows(triangle, m, &mut own, BLOCK);
                for (row, out) in own.chunks(BLOCK).zip(data.chunks_mut(BLOCK)) {
                    for (j, d) in diagonal.iter_mut().enumerate() {
                        out[j] = row[j] as f32;
                        *d = (*d - row[j] * row[j]).max(0.0);
                    }
                }
            });
        self.rounds.push(found);
        self.rank += m;
    }

    /// Weights of m pivots cut into those for each round of pivots: m × the round's rows.
    fn by_rounds(&self, weights: &[f64], m: usize) -> Vec<Vec<f64>> {
        let known = self.rank - self.n_given;
        let of_pivots = &self.rounds[usize::from(self.n_given > 0)..];
        let mut first = 0;
        let cut = of_pivots.iter().map(|round| {
            let own = first..first + round.n_rows;
            first = own.end;
            (0..m).flat_map(|i| &weights[i * known..][own.clone()]).copied().collect()
        });
        cut.collect()
    }

    /// B at `samples`, by their places here: rank × samples.len() row-major.
    pub fn gather(&self, samples: &[usize]) -> Vec<f64> {
        let mut out = vec![0.0; self.rank * samples.len()];
        self.gather_into(samples, &mut out);
        out
    }

    fn gather_into(&self, samples: &[usize], out: &mut [f64]) {
        let mut row = 0;
        for round in &self.rounds {
            for r in 0..round.n_rows {
                let out = &mut out[row * samples.len()..(row + 1) * samples.len()];
                for (out, &i) in out.iter_mut().zip(samples) {
                    *out =
                        f64::from(round.data[(i / BLOCK * round.n_rows + r) * BLOCK + i % BLOCK]);
                }
                row += 1;
            }
        }
    }

    /// gram += sign · B_S B_Sᵀ over `samples`, rank × rank, lower triangle.
    pub fn add_gram(&self, gram: &mut [f64], samples: &[usize], sign: f64) {
        let rank = self.rank;
        if rank == 0 {
            return;
        }
        let mut room = vec![0.0; rank * GATHERED.min(samples.len())];
        for samples in samples.chunks(GATHERED) {
            let gathered = &mut room[..rank * samples.len()];
            self.gather_into(samples, gathered);
            let gathered = &*gathered;
            gram.par_chunks_mut(rank * GRAM_COLUMNS).enumerate().for_each(|(at, columns)| {
                let from = at * GRAM_COLUMNS;
                let to = from + columns.len() / rank;
                add_gram_columns(columns, (from, to), sign, gathered, (rank, samples.len()));
            });
        }
    }

    /// The same for samples with a sign each: gram += Σ s_i b_i b_iᵀ, s_i one of −1, 0, 1.
    pub fn add_signed_gram(&self, gram: &mut [f64], signs: &[i8]) {
        for sign in [1, -1] {
            let own: Vec<usize> = (0..signs.len()).filter(|&i| signs[i] == sign).collect();
            self.add_gram(gram, &own, f64::from(sign));
        }
    }

    /// B v for vectors of these samples: n_vectors × rank.
    pub fn project(&self, v: ArrayView2<'_, f64>) -> Array2<f64> {
        self.unstrip(&self.rows_times(&in_blocks(v), v.nrows()), v.nrows())
    }

    /// Bᵀw for `w` n_vectors × rank: n_vectors × n_samples.
    pub fn expand(&self, w: ArrayView2<'_, f64>) -> Array2<f64> {
        let n_vectors = w.nrows();
        let mut blocked = Aligned::zeros(self.n_samples.div_ceil(BLOCK) * n_vectors * BLOCK);
        self.add_columns_times(&self.strip(w), &mut blocked, n_vectors);
        from_blocks(&blocked, (n_vectors, self.n_samples))
    }

    /// B v, each round in its own task, its samples in order; [round][strip][c·BLOCK + r].
    pub(crate) fn rows_times(&self, blocked: &[f64], n_vectors: usize) -> Vec<Aligned<f64>> {
        let block_size = n_vectors * BLOCK;
        let rounds = self.rounds.par_iter();
        rounds
            .map(|round| {
                let n_strips = round.n_rows.div_ceil(STRIP);
                let mut sums = Aligned::zeros(n_strips * block_size);
                for (block, v) in blocked.chunks(block_size).enumerate() {
                    for (strip, sums) in sums.chunks_mut(block_size).enumerate() {
                        let first = strip * STRIP;
                        let n_rows = STRIP.min(round.n_rows - first);
                        let values = &round.block(block)[first * BLOCK..];
                        accumulate_rows(self.isa, values, n_rows, BLOCK, v, sums, n_vectors);
                    }
                }
                sums
            })
            .collect()
    }

    /// blocked += Bᵀw, for w as [`Self::rows_times`] leaves it.
    pub(crate) fn add_columns_times(
        &self,
        w: &[Aligned<f64>],
        blocked: &mut [f64],
        n_vectors: usize,
    ) {
        let block_size = n_vectors * BLOCK;
        blocked.par_chunks_mut(block_size).enumerate().for_each(|(block, y)| {
            for (round, strips) in self.rounds.iter().zip(w) {
                for (strip, w) in strips.chunks(block_size).enumerate() {
                    let n_rows = STRIP.min(round.n_rows - strip * STRIP);
                    let values = &round.block(block)[strip * STRIP * BLOCK..];
                    accumulate_columns(self.isa, values, n_rows, BLOCK, w, y, n_vectors);
                }
            }
        });
    }

    /// What [`Self::rows_times`] left, row after row: n_vectors × rank.
    pub(crate) fn unstrip(&self, sums: &[Aligned<f64>], n_vectors: usize) -> Array2<f64> {
        let mut out = Array2::zeros((n_vectors, self.rank));
        let mut row = 0;
        for (round, sums) in self.rounds.iter().zip(sums) {
            for r in 0..round.n_rows {
                for c in 0..n_vectors {
                    out[[c, row]] = sums[(r / STRIP * n_vectors + c) * BLOCK + r % STRIP];
                }
                row += 1;
            }
        }
        out
    }

    /// Weights of the rows, n_vectors × rank, as [`Self::add_columns_times`] wants them.
    pub(crate) fn strip(&self, w: ArrayView2<'_, f64>) -> Vec<Aligned<f64>> {
        let n_vectors = w.nrows();
        let mut first = 0;
        let strips = self.rounds.iter().map(|round| {
            let mut strips = Aligned::zeros(round.n_rows.div_ceil(STRIP) * n_vectors * BLOCK);
            for r in 0..round.n_rows {
                for c in 0..n_vectors {
                    strips[(r / STRIP * n_vectors + c) * BLOCK + r % STRIP] = w[[c, first + r]];
                }
            }
            first += round.n_rows;
            strips
        });
        strips.collect()
    }
}

/// Vectors with the samples of a block side by side: value (c, i) at (i / BLOCK · n_vectors + c) ·
/// BLOCK + i % BLOCK.
pub(crate) fn in_blocks(v: ArrayView2<'_, f64>) -> Aligned<f64> {
    let (n_vectors, n_samples) = v.dim();
    let block_size = n_vectors * BLOCK;
    let mut blocked = Aligned::zeros(n_samples.div_ceil(BLOCK) * block_size);
    for (c, row) in v.rows().into_iter().enumerate() {
        for (i, value) in row.iter().enumerate() {
            blocked[i / BLOCK * block_size + c * BLOCK + i % BLOCK] = *value;
        }
    }
    blocked
}

/// The same back.
pub(crate) fn from_blocks(blocked: &[f64], shape: (usize, usize)) -> Array2<f64> {
    let n_vectors = shape.0;
    Array2::from_shape_fn(shape, |(c, i)| blocked[(i / BLOCK * n_vectors + c) * BLOCK + i % BLOCK])
}

#[cfg(test)]
mod tests {
    use super::*;

    const N: usize = 700;

    fn wave(rows: usize, columns: usize) -> Array2<f64> {
        Array2::from_shape_fn((rows, columns), |(i, j)| ((i * 7 + j * (i + 3)) as f64 * 0.37).sin())
    }

    /// Two rounds with made-up rows of K over the columns from `first` on, behind a given row.
    fn grown(first: usize, last: usize) -> (FactorPanel, Vec<f64>) {
        let mut panel = FactorPanel::new(last - first);
        let mut diagonal = vec![9.0; last - first];
        panel.give(Array2::from_shape_fn((1, last - first), |(_, i)| (first + i) as f32).view());
        for (round, known) in [(0, 0), (1, 3)] {
            let rows = wave(3, N).slice(ndarray::s![.., first..last]).to_owned() + f64::from(round);
            let weights = wave(3, known);
            let triangle = [2.0, 0.5, 0.25, 0.0, 1.0, 0.5, 0.0, 0.0, 3.0];
            let rows = rows.as_standard_layout().to_owned();
            let (rows, weights) = (rows.as_slice().unwrap(), weights.as_slice().unwrap());
            panel.append(rows, weights, &triangle, &mut diagonal);
        }
        (panel, diagonal)
    }

    /// Columns of blocks of their own have the bits of all columns together.
    #[test]
    fn panels_are_the_columns_of_the_whole() {
        let (whole, lowered) = grown(0, N);
        assert_eq!(whole.rank(), 7);
        let all: Vec<usize> = (0..N).collect();
        let b = Array2::from_shape_vec((7, N), whole.gather(&all)).unwrap();
        assert!(b.rows().into_iter().all(|row| row.iter().any(|v| v.abs() > 0.1)));
        for (first, last) in [(0, 240), (240, 480), (480, N)] {
            let (panel, own) = grown(first, last);
            let local: Vec<usize> = (0..last - first).collect();
            let columns = b.slice(ndarray::s![.., first..last]).to_owned();
            assert_eq!(panel.gather(&local), columns.iter().copied().collect::<Vec<f64>>());
            assert_eq!(own, lowered[first..last]);
        }
        let v = wave(2, N);
        let close = |a: &Array2<f64>, b: &Array2<f64>| {
            (a - b).iter().all(|off| off.abs() < 1e-9 * b.iter().fold(1.0, |m, x| x.abs().max(m)))
        };
        assert!(close(&whole.project(v.view()), &v.dot(&b.t())));
        let w = wave(2, 7);
        assert!(close(&whole.expand(w.view()), &w.dot(&b)));
    }

    #[test]
    fn signs_say_what_a_gram_matrix_gains_and_loses() {
        let (panel, _) = grown(0, N);
        let signs: Vec<i8> = (0..N).map(|i| [1, 0, -1, 0, 0][i % 5]).collect();
        let all: Vec<usize> = (0..N).collect();
        let b = Array2::from_shape_vec((7, N), panel.gather(&all)).unwrap();
        let mut gram = vec![0.0; 49];
        panel.add_signed_gram(&mut gram, &signs);
        for c in 0..7 {
            for r in c..7 {
                let terms = (0..N).map(|i| f64::from(signs[i]) * b[[r, i]] * b[[c, i]]);
                let (found, expected) = (gram[c * 7 + r], terms.sum::<f64>());
                assert!((found - expected).abs() < 1e-6 * expected.abs().max(1.0), "{r} {c}");
            }
        }
    }
}
