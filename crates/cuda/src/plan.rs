//! How a product is cut into blocks of threads, and what those keep in shared memory. Plain
//! arithmetic, no GPU.
//!
//! Rows come in tiles of 128 and groups of tiles; a block of threads owns a pair of groups, a ≤ b.
//! One launch covers `batch` values of a, so that its partial sums fit a fixed buffer. All of this
//! depends on the problem alone, never on the GPU or its free memory, so that sums are added in the
//! same order everywhere.

/// Rows of a tile, `TILE` in `kernels/fused.cu`.
pub(crate) const TILE: usize = 128;
/// Features that a step of the tensor cores takes, `CHUNK` there.
pub(crate) const CHUNK: usize = 16;
/// Columns of V in one group of eight halves: four, each in two halves.
pub(crate) const GROUP_COLUMNS: usize = 4;
/// Partial sums of one launch take about so many bytes at most.
const PARTIAL_BYTES: usize = 512 << 20;
/// Beyond so many chunks (96 features) small stages cost more than small groups.
const MANY_CHUNKS: usize = 6;
/// Pairs that keep every multiprocessor of today's GPUs busy until the end.
const ENOUGH_PAIRS: usize = 4096;

/// Tiles, groups and launches of one product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) n_tiles: usize,
    pub(crate) group_tiles: usize,
    pub(crate) n_groups: usize,
    pub(crate) batch: usize,
    /// `GROUPS` in `kernels/fused.cu`.
    pub(crate) v_groups: usize,
    /// Columns of V.
    pub(crate) width: usize,
}

impl Plan {
    /// For `n_samples`, `width` columns, at most 8, and `n_chunks` chunks of features in `parts`
    /// halves.
    pub(crate) fn new(n_samples: usize, width: usize, n_chunks: usize, parts: usize) -> Self {
        let n_tiles = n_samples.div_ceil(TILE);
        let v_groups = width.div_ceil(GROUP_COLUMNS);
        let pairs = |tiles: usize| n_tiles.div_ceil(tiles) * (n_tiles.div_ceil(tiles) + 1) / 2;
        // Column sums of a group stay in shared memory beside the features: fewer rows where those
        // take more.
        let many_features = if n_chunks > MANY_CHUNKS { 2 } else { 1 };
        let mut group_tiles = (8 / v_groups / parts / many_features).max(2);
        while group_tiles > 1 && pairs(group_tiles) < ENOUGH_PAIRS {
            group_tiles /= 2;
        }
        let n_groups = n_tiles.div_ceil(group_tiles);
        let bytes = 2 * n_groups * group_tiles * TILE * width * size_of::<f32>();
        let batch = (PARTIAL_BYTES / bytes).clamp(1, n_groups);
        Self { n_tiles, group_tiles, n_groups, batch, v_groups, width }
    }

    pub(crate) fn group_rows(&self) -> usize {
        self.group_tiles * TILE
    }

    /// Numbers in one of the two buffers of partial sums.
    pub(crate) fn partials(&self) -> usize {
        self.batch * self.n_groups * self.group_rows() * self.width
    }
}

/// How features pass through shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stages {
    /// Chunks of features in a stage.
    pub(crate) chunks: usize,
    pub(crate) count: usize,
    /// Whether a tile's rows stay in shared memory, rather than pass through with the columns.
    pub(crate) resident: bool,
    pub(crate) shared_bytes: usize,
}

impl Stages {
    /// For `n_chunks` chunks of `chunk_bytes`. `block`, `multiprocessor`: bytes of shared memory.
    /// Prefers two blocks a multiprocessor (one computes exponentials while the other multiplies),
    /// rows that stay and large stages.
    pub(crate) fn new(
        plan: &Plan,
        n_chunks: usize,
        chunk_bytes: usize,
        (block, multiprocessor): (usize, usize),
    ) -> Self {
        // One KiB of each block is the system's.
        let half = (multiprocessor / 2 - 1024).min(block);
        let choices = [(half, true), (half, false), (block, true), (block, false)];
        let fit = |(limit, resident)| {
            // (stages, chunks of each): the whole tile twice, else ever fewer of its chunks, three
            // or two times.
            let parts = (1..n_chunks).rev().flat_map(|chunks| [(3, chunks), (2, chunks)]);
            std::iter::once((2, n_chunks))
                .chain(parts)
                .map(|(count, chunks)| {
                    Self::sized(plan, n_chunks, chunk_bytes, count, chunks, resident)
                })
                .find(|stages| stages.shared_bytes <= limit)
        };
        let least = Self::sized(plan, n_chunks, chunk_bytes, 2, 1, false);
        choices.into_iter().find_map(fit).unwrap_or(least)
    }

    fn sized(
        plan: &Plan,
        n_chunks: usize,
        chunk_bytes: usize,
        count: usize,
        chunks: usize,
        resident: bool,
    ) -> Self {
        let ring = count * chunks * chunk_bytes;
        let rows = if resident { n_chunks * chunk_bytes } else { ring };
        let sums = GROUP_COLUMNS * plan.v_groups * size_of::<f32>();
        // Rows of V are padded by 16 bytes.
        let v = 3 * plan.v_groups * 8 * (TILE * 2 + 16);
        let norms = 3 * TILE * size_of::<f32>();
        let shared_bytes = ring + rows + v + norms + 2 * (TILE + plan.group_rows()) * sums;
        Self { chunks, count, resident, shared_bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// H200, A100, and the least of compute capability 8.
    const GPUS: [(usize, usize); 3] =
        [(227 << 10, 228 << 10), (163 << 10, 164 << 10), (99 << 10, 100 << 10)];

    #[test]
    fn every_row_lies_in_a_group_and_partials_fit_their_buffer() {
        for n_samples in [1, 127, 128, 129, 3000, 100_000, 1_000_000] {
            for (width, parts) in (1..=8).flat_map(|width| [(width, 1), (width, 2)]) {
                let plan = Plan::new(n_samples, width, 5, parts);
                assert!(plan.n_groups * plan.group_rows() >= n_samples);
                assert!((plan.n_groups - 1) * plan.group_rows() < n_samples);
                assert!(plan.batch >= 1 && plan.batch <= plan.n_groups);
                assert!(plan.batch == 1 || 2 * plan.partials() * 4 <= PARTIAL_BYTES, "{plan:?}");
                assert_eq!(plan.v_groups, if width <= 4 { 1 } else { 2 });
            }
        }
    }

    #[test]
    fn a_hundred_thousand_samples_keep_a_large_gpu_busy_in_one_launch() {
        let plan = Plan::new(100_000, 3, 5, 1);
        assert_eq!((plan.group_tiles, plan.n_groups, plan.batch), (8, 98, 98));
        let plan = Plan::new(100_000, 3, 5, 2);
        assert_eq!((plan.group_tiles, plan.n_groups, plan.batch), (4, 196, 196));
    }

    #[test]
    fn stages_fit_shared_memory_whatever_the_number_of_features() {
        for gpu in GPUS {
            for width in [3, 8] {
                for n_chunks in [1, 2, 5, 11, 40, 200] {
                    for parts in [1, 2] {
                        let plan = Plan::new(1_000_000, width, n_chunks, parts);
                        let stages = Stages::new(&plan, n_chunks, parts * 4096, gpu);
                        assert!(stages.shared_bytes <= gpu.0, "{gpu:?} {n_chunks} {stages:?}");
                        // No more than one tile ahead, or V of the columns would be overwritten.
                        assert!(stages.count - 1 <= n_chunks.div_ceil(stages.chunks), "{stages:?}");
                        assert!((2..=4).contains(&stages.count));
                    }
                }
            }
        }
    }

    #[test]
    fn two_blocks_fit_a_multiprocessor_of_an_h200_for_hopper_features() {
        for parts in [1, 2] {
            let plan = Plan::new(1_000_000, 3, 5, parts);
            let stages = Stages::new(&plan, 5, parts * 4096, GPUS[0]);
            assert!(stages.resident && 2 * (stages.shared_bytes + 1024) <= GPUS[0].1, "{stages:?}");
        }
    }
}
