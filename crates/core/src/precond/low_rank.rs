//! K ≈ BᵀB by block randomly pivoted Cholesky (Chen, Epperly, Tropp, Webber).
//!
//! Enters: an operator. Leaves: B (rank × n_samples) in f32. Each round proposes pivots with
//! probability proportional to the residual diagonal, accepts each with the probability that
//! one-at-a-time sampling would have given it, and appends their residual rows. Products and pivot
//! blocks are f64; only the rows kept are rounded, and since they are used as they are, the
//! preconditioner stays symmetric and positive definite.

use super::FactorPanel;
use crate::error::Error;
use crate::linalg::dense::add_product_rows;
use crate::linalg::sums::sum_over;
use crate::operator::{KernelOperator, RemoteFactor};
use rand::{Rng, RngExt};

/// Pivots proposed in a round, and the bytes that their rows of K may take: a round asks for them
/// in one call.
const PROPOSALS: usize = 96;
const PANEL_BYTES: usize = 256 << 20;

/// When to stop growing.
#[derive(Clone, Copy, Debug)]
pub struct RankLimits {
    /// No more rows than these.
    pub max_rank: usize,
    /// Enough once trace(K − BᵀB) is below this.
    pub enough_trace: f64,
}

/// A low-rank factor of the kernel matrix.
pub struct LowRank {
    n_samples: usize,
    rank: usize,
    rows: Rows,
    /// The samples chosen, those of a round in the order of its rows.
    pivots: Vec<usize>,
    trace_left: f64,
}

/// Where B is.
enum Rows {
    Here(FactorPanel),
    There(Box<dyn RemoteFactor>),
}

impl LowRank {
    /// Grows B until `limits` say stop, or until nothing of K is left. `keep_going` is asked once a
    /// round.
    pub fn build(
        operator: &dyn KernelOperator,
        limits: RankLimits,
        rng: &mut impl Rng,
        keep_going: impl FnMut() -> bool,
    ) -> Result<Self, Error> {
        let rows = Rows::Here(FactorPanel::new(operator.n_samples()));
        Self::grow(operator, rows, limits, rng, keep_going)
    }

    /// The same in `place`, which the operator made.
    pub(crate) fn build_there(
        operator: &dyn KernelOperator,
        place: Box<dyn RemoteFactor>,
        limits: RankLimits,
        rng: &mut impl Rng,
        keep_going: impl FnMut() -> bool,
    ) -> Result<Self, Error> {
        Self::grow(operator, Rows::There(place), limits, rng, keep_going)
    }

    fn grow(
        operator: &dyn KernelOperator,
        rows: Rows,
        limits: RankLimits,
        rng: &mut impl Rng,
        mut keep_going: impl FnMut() -> bool,
    ) -> Result<Self, Error> {
        let n_samples = operator.n_samples();
        let mut diagonal = operator.diagonal()?;
        let first_rank = match &rows {
            Rows::Here(_) => 0,
            Rows::There(factor) => {
                factor.begin(&mut diagonal);
                factor.rank()
            }
        };
        let first_trace = sum_over(n_samples, |i| diagonal[i]);
        // Below this share of its first value a diagonal entry is rounding.
        let floor: Vec<f64> = diagonal.iter().map(|d| 1e-7 * d).collect();
        let n_proposals = match &rows {
            Rows::Here(_) => proposals(n_samples),
            Rows::There(factor) => factor.n_proposals(),
        };
        let pivots = Vec::new();
        let mut factor =
            Self { n_samples, rank: first_rank, rows, pivots, trace_left: first_trace };
        let mut panel = Vec::new();
        let max_rank = first_rank + limits.max_rank.min(n_samples);
        while factor.rank < max_rank && factor.trace_left > limits.enough_trace && keep_going() {
            let wanted = n_proposals.min(max_rank - factor.rank);
            let proposals = propose(&diagonal, factor.trace_left, wanted, rng);
            if proposals.is_empty() {
                break;
            }
            let (pivots, triangle) = factor.accept(operator, &proposals, rng)?;
            if pivots.is_empty() {
                // Everything proposed was rounding noise: K has no more rank in this precision.
                break;
            }
            match &mut factor.rows {
                Rows::There(rows) => rows.append(&pivots, &triangle, &mut diagonal, &floor)?,
                Rows::Here(rows) => {
                    panel.resize(pivots.len() * n_samples, 0.0);
                    operator.rows_into(&pivots, 0..n_samples, &mut panel)?;
                    let weights = transpose(&rows.gather(&pivots), rows.rank(), pivots.len());
                    rows.append(&panel, &weights, &triangle, &mut diagonal);
                    clear(&mut diagonal, &pivots, &floor);
                }
            }
            factor.rank += pivots.len();
            factor.pivots.extend(pivots);
            factor.trace_left = sum_over(n_samples, |i| diagonal[i]);
        }
        Ok(factor)
    }

    /// Bytes a factor of this rank takes.
    pub fn bytes(n_samples: usize, rank: usize) -> u64 {
        FactorPanel::bytes(n_samples, rank)
    }

    /// Bytes that building one takes while it grows: the rows of K of a round.
    pub fn building_bytes(n_samples: usize, rank: usize) -> u64 {
        (proposals(n_samples).min(rank) * n_samples * size_of::<f64>()) as u64
    }

    /// Rows of B.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Columns of B.
    pub fn n_samples(&self) -> usize {
        self.n_samples
    }

    /// The samples that were chosen.
    pub(crate) fn pivots(&self) -> &[usize] {
        &self.pivots
    }

    /// trace(K − BᵀB).
    pub fn trace_left(&self) -> f64 {
        self.trace_left
    }

    /// The factor on the operator's machine, or this one's own.
    pub(crate) fn into_rows(self) -> Result<Box<dyn RemoteFactor>, FactorPanel> {
        match self.rows {
            Rows::There(factor) => Ok(factor),
            Rows::Here(panel) => Err(panel),
        }
    }

    /// B restricted to `samples`, rank × samples.len() row-major, wherever it is.
    pub(crate) fn gather(&self, samples: &[usize]) -> Result<Vec<f64>, Error> {
        match &self.rows {
            Rows::Here(panel) => Ok(panel.gather(samples)),
            Rows::There(factor) => factor.gather(samples),
        }
    }

    /// Cholesky of the proposals' residual block, leaving out those that a sequential sampler would
    /// have rejected. Returns the accepted pivots and their lower triangle, column-major.
    fn accept(
        &self,
        operator: &dyn KernelOperator,
        proposals: &[usize],
        rng: &mut impl Rng,
    ) -> Result<(Vec<usize>, Vec<f64>), Error> {
        let m = proposals.len();
        let mut block = vec![0.0; m * m];
        operator.block_into(proposals, &mut block)?;
        let old = self.gather(proposals)?;
        let old_transposed = transpose(&old, self.rank, m);
        add_product_rows(&mut block, -1.0, &old_transposed, &old, (m, m, self.rank));

        // Left-looking over the accepted ones; factor[a] is the row of L of the a-th accepted
        // pivot.
        let first: Vec<f64> = (0..m).map(|a| block[a * m + a]).collect();
        let mut accepted: Vec<usize> = Vec::new();
        let mut factor: Vec<Vec<f64>> = Vec::new();
        for a in 0..m {
            let mut row = Vec::with_capacity(accepted.len() + 1);
            let mut left = block[a * m + a];
            for (t, &b) in accepted.iter().enumerate() {
                let known: f64 = row.iter().zip(&factor[t]).map(|(x, y): (&f64, &f64)| x * y).sum();
                let value = (block[a * m + b] - known) / factor[t][t];
                left -= value * value;
                row.push(value);
            }
            if left > 1e-6 * first[a].max(0.0) && rng.random::<f64>() * first[a] < left {
                row.push(left.sqrt());
                factor.push(row);
                accepted.push(a);
            }
        }
        let n = accepted.len();
        let mut triangle = vec![0.0; n * n];
        for (i, row) in factor.iter().enumerate() {
            for (j, value) in row.iter().enumerate() {
                triangle[j * n + i] = *value;
            }
        }
        Ok((accepted.into_iter().map(|a| proposals[a]).collect(), triangle))
    }
}

/// A residual diagonal is zero at pivots, and where it is below its `floor`.
pub fn clear(diagonal: &mut [f64], pivots: &[usize], floor: &[f64]) {
    pivots.iter().for_each(|&i| diagonal[i] = 0.0);
    for (d, floor) in diagonal.iter_mut().zip(floor) {
        if *d < *floor {
            *d = 0.0;
        }
    }
}

/// Pivots proposed in a round.
pub(super) fn proposals(n_samples: usize) -> usize {
    (PANEL_BYTES / size_of::<f64>() / n_samples.max(1)).clamp(1, PROPOSALS)
}

/// The transpose of an n_rows × n_columns matrix, row-major.
pub fn transpose(a: &[f64], n_rows: usize, n_columns: usize) -> Vec<f64> {
    let mut out = vec![0.0; a.len()];
    for r in 0..n_rows {
        for c in 0..n_columns {
            out[c * n_rows + r] = a[r * n_columns + c];
        }
    }
    out
}

/// Up to `wanted` different indices, drawn with probability proportional to `diagonal`, in the
/// order drawn.
fn propose(diagonal: &[f64], trace: f64, wanted: usize, rng: &mut impl Rng) -> Vec<usize> {
    let mut targets: Vec<(f64, usize)> =
        (0..wanted).map(|order| (rng.random::<f64>() * trace, order)).collect();
    targets.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut found = vec![None; wanted];
    let (mut below, mut next) = (0.0, 0);
    for (i, d) in diagonal.iter().enumerate() {
        below += d;
        let hit = next;
        while next < wanted && targets[next].0 < below {
            next += 1;
        }
        if next > hit {
            found[targets[hit].1] = Some(i);
        }
    }
    found.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;
    use crate::operator::{HostOperator, OperatorKind, Precision};
    use crate::random::stream;
    use ndarray::Array2;

    fn operator(n: usize, kernel: Kernel) -> HostOperator {
        let features = Array2::from_shape_fn((n, 3), |(i, j)| {
            ((i * (j + 2)) as f64 * 0.618).sin() + (i as f64 * 0.01).cos()
        });
        HostOperator::new(features.view(), kernel, Precision::F64, OperatorKind::Tiled).unwrap()
    }

    #[test]
    fn approximates_the_kernel_matrix_and_knows_by_how_much() {
        let operator = operator(500, Kernel::Rbf { gamma: 0.5 });
        let limits = RankLimits { max_rank: 500, enough_trace: 0.01 };
        let factor = LowRank::build(&operator, limits, &mut stream(1, "test"), || true).unwrap();
        assert!(factor.trace_left() <= 0.01 && factor.rank() < 400, "{}", factor.rank());
        let all: Vec<usize> = (0..500).collect();
        let b = factor.gather(&all).unwrap();
        let mut k = vec![0.0; 500 * 500];
        operator.rows_into(&all, 0..500, &mut k).unwrap();
        let trace: f64 = (0..500)
            .map(|i| k[i * 501] - (0..factor.rank()).map(|r| b[r * 500 + i].powi(2)).sum::<f64>())
            .sum();
        assert!((trace - factor.trace_left()).abs() < 1e-3, "{trace}");
    }

    #[test]
    fn finds_the_rank_of_a_singular_kernel_and_stops() {
        let operator = operator(300, Kernel::Linear);
        let limits = RankLimits { max_rank: 300, enough_trace: 0.0 };
        let factor = LowRank::build(&operator, limits, &mut stream(2, "test"), || true).unwrap();
        assert!((3..=6).contains(&factor.rank()), "{}", factor.rank());
    }
}
