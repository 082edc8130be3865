//! A part of a product, for machines that share it.
//!
//! A part is a task of the schedule, and its sums are made in the task's order, so that parts added
//! first to last have the bits of the whole product, whoever computed which. All threads of a
//! machine work on one part: a column's sums follow one another row by row, but different columns
//! have nothing to do with each other; and what a tile gives to its rows is one number a row, which
//! can wait until all columns are there.

use super::super::schedule::Schedule;
use super::{Sums, Tiles};
use crate::kernel::layout::BLOCK;
use crate::linalg::aligned::Aligned;
use crate::linalg::simd::Vectors;
use ndarray::{Array2, ArrayView2, Axis};
use rayon::prelude::*;
use std::ops::Range;

/// What one part gives to v·K.
#[derive(Clone, Debug, PartialEq)]
pub struct PartialProduct {
    /// The first sample it gives anything to.
    pub first: usize,
    /// n_vectors × (n_samples − first).
    pub values: Array2<f64>,
}

/// Bytes that wait for the columns, about.
const WAITING: usize = 32 << 20;
/// Rows of tiles whose shares wait together at most.
const MOST_ROWS: usize = 16;

impl<T: Vectors> Tiles<T> {
    /// Parts that a product with the matrix of `n_samples` has.
    pub(crate) fn n_parts(n_samples: usize) -> usize {
        Schedule::n_parts(n_samples.div_ceil(BLOCK))
    }

    /// One of them.
    pub(crate) fn part(&self, part: usize, v: ArrayView2<'_, f64>) -> PartialProduct {
        let (n_blocks, block_size) = (self.samples.n_blocks(), v.nrows() * BLOCK);
        let tiles = self.schedule.part(part);
        let first = self.schedule.blocks(tiles.start).0;
        let last = self.schedule.blocks(tiles.end - 1).0;
        let mut input = Aligned::zeros(n_blocks * block_size);
        self.by_blocks(v, &mut input);
        let mut share = Share {
            tiles,
            first,
            input: &input,
            output: Aligned::zeros((n_blocks - first) * block_size),
            n_vectors: v.nrows(),
        };
        let row_bytes = (n_blocks - first) * block_size * size_of::<f64>();
        let n_rows = (WAITING / row_bytes).clamp(1, MOST_ROWS);
        let mut waiting = Aligned::zeros((n_blocks - first) * n_rows * block_size);
        for from in (first..=last).step_by(n_rows) {
            self.add_rows(&mut share, from..(from + n_rows).min(last + 1), &mut waiting);
        }
        PartialProduct { first: first * BLOCK, values: share.by_vectors(v.ncols()) }
    }

    /// Adds the part's tiles of some rows of tiles.
    fn add_rows(&self, share: &mut Share<'_>, rows: Range<usize>, waiting: &mut [f64]) {
        let Share { first, n_vectors, input, .. } = *share;
        let block_size = n_vectors * BLOCK;
        let columns: Vec<Range<usize>> =
            rows.clone().map(|row| self.columns(&share.tiles, row)).collect();
        let from = columns.iter().map(|columns| columns.start).min().unwrap_or(0);
        let to = columns.iter().map(|columns| columns.end).max().unwrap_or(0);
        let vectors = |block: usize| &input[block * block_size..(block + 1) * block_size];
        let sums = &mut share.output[(from - first) * block_size..(to - first) * block_size];
        let room = rows.len() * block_size;
        sums.par_chunks_mut(block_size).zip(waiting.par_chunks_mut(room)).enumerate().for_each(
            |(at, (own, waiting))| {
                let column = from + at;
                let len = self.samples.block_len(column);
                for ((row, columns), share) in
                    rows.clone().zip(&columns).zip(waiting.chunks_mut(block_size))
                {
                    if !columns.contains(&column) {
                        continue;
                    }
                    share.fill(0.0);
                    let mirror = (row < column).then_some((vectors(row), share));
                    let (v, own) = (vectors(column), &mut *own);
                    let sums = Sums { isa: self.isa, n_vectors, len, v, own, mirror };
                    self.add_to(self.schedule.tile(row, column), sums);
                }
            },
        );
        // Rows get theirs after all that came to them as columns, in the order of the tiles.
        let sums = &mut share.output[(rows.start - first) * block_size..][..room];
        sums.par_chunks_mut(block_size).enumerate().for_each(|(at, sum)| {
            let row = rows.start + at;
            for column in columns[at].clone().filter(|&column| column > row) {
                let share = &waiting[(column - from) * room + at * block_size..][..block_size];
                sum.iter_mut().zip(share).for_each(|(sum, share)| *sum += share);
            }
        });
    }

    /// Columns of a row's tiles that are among `tiles`.
    fn columns(&self, tiles: &Range<usize>, row: usize) -> Range<usize> {
        let start = self.schedule.tile(row, row);
        let end = self.schedule.tile(row, self.samples.n_blocks() - 1) + 1;
        let column = |tile: usize| row + tile - start;
        column(tiles.start.max(start))..column(tiles.end.min(end))
    }
}

/// A part while it is computed: vectors and sums, block by block.
struct Share<'a> {
    tiles: Range<usize>,
    /// The block that the sums start with.
    first: usize,
    input: &'a [f64],
    output: Aligned<f64>,
    n_vectors: usize,
}

impl Share<'_> {
    /// The sums, vector by vector.
    fn by_vectors(&self, n_samples: usize) -> Array2<f64> {
        let mut values = Array2::zeros((self.n_vectors, n_samples - self.first * BLOCK));
        let block_size = self.n_vectors * BLOCK;
        for (c, mut row) in values.rows_mut().into_iter().enumerate() {
            for (block, mut to) in row.axis_chunks_iter_mut(Axis(0), BLOCK).enumerate() {
                let from = &self.output[block * block_size + c * BLOCK..];
                to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
            }
        }
        values
    }
}
