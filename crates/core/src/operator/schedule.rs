//! How the tiles of a symmetric matrix are shared out: a number of tasks fixed by the matrix's size
//! alone.
//!
//! A tile (I, J), I < J, adds to the output of two blocks, so tasks that run side by side may not
//! write to one output. Each task sums into an output of its own, and these are added first to
//! last. Which tile belongs to which task, and the order of every sum, does not depend on the
//! number of threads.
//!
//! Machines that share a product take whole tasks each, called parts there: the same ones, except
//! that of a huge matrix there are more of them.

use std::ops::Range;

/// Tiles (I, J), I ≤ J, row by row, cut into tasks.
pub(crate) struct Schedule {
    n_blocks: usize,
}

/// Tasks of a small and of a large matrix: enough for so many cores, and for balance on fewer.
const TASKS: [usize; 2] = [16, 32];
/// Tiles a task has at least: below, starting it costs more than it saves.
const LEAST_TILES: usize = 3;
/// Blocks from which on a matrix is large.
const LARGE: usize = 64;
/// Blocks from which on a matrix is huge, for machines that share a product: a million samples.
const HUGE: usize = 4096;
/// Parts of a huge matrix: two for each of 64 machines. Each sends an output of its own.
const HUGE_PARTS: usize = 128;

impl Schedule {
    pub(crate) fn new(n_blocks: usize) -> Self {
        Self { n_blocks }
    }

    /// Tiles of `n_blocks` blocks: a triangle with its diagonal.
    pub(crate) fn n_tiles(n_blocks: usize) -> usize {
        n_blocks * (n_blocks + 1) / 2
    }

    /// Number of the tile (i, j), i ≤ j.
    pub(crate) fn tile(&self, i: usize, j: usize) -> usize {
        debug_assert!(i <= j && j < self.n_blocks);
        i * self.n_blocks - i * (i + 1) / 2 + j
    }

    /// Tasks for `n_blocks` blocks.
    pub(crate) fn n_tasks(n_blocks: usize) -> usize {
        let most = TASKS[usize::from(n_blocks >= LARGE)];
        match (Self::n_tiles(n_blocks) / LEAST_TILES).clamp(1, most) {
            // So that two or four cores have equal shares.
            3 => 2,
            tasks @ 4.. => tasks / 4 * 4,
            tasks => tasks,
        }
    }

    /// Numbers of the tiles of `task`.
    pub(crate) fn task(&self, task: usize) -> Range<usize> {
        self.cut(task, Self::n_tasks(self.n_blocks))
    }

    /// Parts that machines share `n_blocks` blocks in: a number fixed by the size alone.
    pub(crate) fn n_parts(n_blocks: usize) -> usize {
        if n_blocks < HUGE { Self::n_tasks(n_blocks) } else { HUGE_PARTS }
    }

    /// Numbers of the tiles of `part`.
    pub(crate) fn part(&self, part: usize) -> Range<usize> {
        self.cut(part, Self::n_parts(self.n_blocks))
    }

    /// One of `count` equal shares of the tiles.
    fn cut(&self, at: usize, count: usize) -> Range<usize> {
        let n_tiles = Self::n_tiles(self.n_blocks);
        at * n_tiles / count..(at + 1) * n_tiles / count
    }

    /// Number of the first tile of row `i`.
    fn row_start(&self, i: usize) -> usize {
        i * self.n_blocks - i * (i + 1) / 2 + i
    }

    /// The blocks (I, J) of a tile.
    pub(crate) fn blocks(&self, tile: usize) -> (usize, usize) {
        debug_assert!(tile < Self::n_tiles(self.n_blocks));
        // Row i starts at i·n − i(i − 1)/2; the root is right to within a row.
        let width = 2.0 * self.n_blocks as f64 + 1.0;
        let root = (width - (width * width - 8.0 * tile as f64).max(0.0).sqrt()) / 2.0;
        let mut i = (root as usize).min(self.n_blocks - 1);
        while self.row_start(i) > tile {
            i -= 1;
        }
        while i + 1 < self.n_blocks && self.row_start(i + 1) <= tile {
            i += 1;
        }
        (i, i + tile - self.row_start(i))
    }

    /// Numbers that a product adds one after the other at most, for tiles of `block` samples: those
    /// of a column in all tiles of a task, the tiles of a row, the tasks.
    pub(crate) fn longest_sum(&self, n_samples: usize, block: usize) -> usize {
        let rows_of = |task: usize| {
            let tiles = self.task(task);
            if tiles.is_empty() {
                return 0;
            }
            self.blocks(tiles.end - 1).0 - self.blocks(tiles.start).0 + 1
        };
        let n_tasks = Self::n_tasks(self.n_blocks);
        let rows = (0..n_tasks).map(rows_of).max().unwrap_or(0);
        (rows * block).min(n_samples) + self.n_blocks + n_tasks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tile_belongs_to_one_task_and_one_part() {
        for n_blocks in [1, 2, 3, 7, 40, 64, 100, HUGE] {
            let schedule = Schedule::new(n_blocks);
            let tasks = (0..Schedule::n_tasks(n_blocks)).map(|t| schedule.task(t));
            let parts = (0..Schedule::n_parts(n_blocks)).map(|t| schedule.part(t));
            for shares in [tasks.collect::<Vec<_>>(), parts.collect()] {
                assert_eq!(shares[0].start, 0);
                assert_eq!(shares[shares.len() - 1].end, Schedule::n_tiles(n_blocks));
                assert!(shares.windows(2).all(|w| w[0].end == w[1].start));
                assert!(shares.iter().all(|share| !share.is_empty()));
            }
        }
    }

    #[test]
    fn tiles_are_numbered_row_by_row() {
        for n_blocks in [1, 2, 3, 7, 40, 100] {
            let schedule = Schedule::new(n_blocks);
            let order = (0..n_blocks).flat_map(|i| (i..n_blocks).map(move |j| (i, j)));
            for (number, (i, j)) in order.enumerate() {
                assert_eq!(schedule.tile(i, j), number);
                assert_eq!(schedule.blocks(number), (i, j));
            }
        }
        // Ten million samples: far more tiles than a list of them could hold.
        let n_blocks = 41_667;
        let schedule = Schedule::new(n_blocks);
        for i in (0..n_blocks).step_by(97) {
            for j in [i, usize::midpoint(i, n_blocks), n_blocks - 1] {
                assert_eq!(schedule.blocks(schedule.tile(i, j)), (i, j));
            }
        }
    }
}
