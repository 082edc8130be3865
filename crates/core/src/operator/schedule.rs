//! How the tiles of a symmetric matrix are shared out: a number of tasks fixed by the matrix's size
//! alone.
//!
//! A tile (I, J), I < J, adds to the output of two blocks, so tasks that run side by side may not
//! write to one output. Each task sums into an output of its own, and these are added first to
//! last. Which tile belongs to which task, and the order of every sum, does not depend on the
//! number of threads.

use std::ops::Range;

/// Tiles (I, J), I ≤ J, row by row, cut into tasks.
pub(crate) struct Schedule {
    n_blocks: usize,
    order: Vec<(usize, usize)>,
}

/// Tasks of a small and of a large matrix: enough for so many cores, and for balance on fewer.
const TASKS: [usize; 2] = [16, 32];
/// Tiles a task has at least: below, starting it costs more than it saves.
const LEAST_TILES: usize = 3;
/// Blocks from which on a matrix is large.
const LARGE: usize = 64;

impl Schedule {
    pub(crate) fn new(n_blocks: usize) -> Self {
        let order = (0..n_blocks).flat_map(|i| (i..n_blocks).map(move |j| (i, j))).collect();
        Self { n_blocks, order }
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
        let (n_tasks, n_tiles) = (Self::n_tasks(self.n_blocks), self.order.len());
        task * n_tiles / n_tasks..(task + 1) * n_tiles / n_tasks
    }

    /// Numbers that a product adds one after the other at most, for tiles of `block` samples: those
    /// of a column in all tiles of a task, the tiles of a row, the tasks.
    pub(crate) fn longest_sum(&self, n_samples: usize, block: usize) -> usize {
        let rows_of = |task: usize| {
            let tiles = &self.order[self.task(task)];
            tiles.last().map_or(0, |last| last.0 - tiles[0].0 + 1)
        };
        let n_tasks = Self::n_tasks(self.n_blocks);
        let rows = (0..n_tasks).map(rows_of).max().unwrap_or(0);
        (rows * block).min(n_samples) + self.n_blocks + n_tasks
    }

    /// The blocks (I, J) of every tile.
    pub(crate) fn order(&self) -> &[(usize, usize)] {
        &self.order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tile_belongs_to_one_task() {
        for n_blocks in [1, 2, 3, 7, 40, 64, 100] {
            let schedule = Schedule::new(n_blocks);
            assert_eq!(schedule.order().len(), Schedule::n_tiles(n_blocks));
            let tasks: Vec<_> =
                (0..Schedule::n_tasks(n_blocks)).map(|t| schedule.task(t)).collect();
            assert_eq!(tasks[0].start, 0);
            assert_eq!(tasks[tasks.len() - 1].end, Schedule::n_tiles(n_blocks));
            assert!(tasks.windows(2).all(|w| w[0].end == w[1].start));
            assert!(tasks.iter().all(|task| !task.is_empty()));
            for (number, &(i, j)) in schedule.order().iter().enumerate() {
                assert_eq!(schedule.tile(i, j), number);
            }
        }
    }
}
