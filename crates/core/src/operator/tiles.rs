//! The symmetric kernel matrix as tiles of 240 × 240, stored or recomputed.

use super::accumulate::{accumulate_both, accumulate_rows};
use super::schedule::Tournament;
use crate::kernel::panels::{BLOCK, Packing, Panels, RowPack, STRIP};
use crate::kernel::tile::compute_strip;
use crate::linalg::simd::{Isa, Vectors};
use ndarray::{ArrayView2, ArrayViewMut2};
use rayon::prelude::*;
use std::ops::Range;

const TILE: usize = BLOCK * BLOCK;

/// K in precision `T`, as the tiles of its lower triangle.
pub(crate) struct Tiles<T> {
    panels: Panels<T>,
    schedule: Tournament,
    isa: Isa,
    /// Tiles in the schedule's order: the diagonal first, then round by round.
    stored: Option<Vec<T>>,
}

impl<T: Vectors> Tiles<T> {
    /// Packs the features; `store` also computes and keeps every tile.
    pub(crate) fn new(
        packing: Packing,
        features: ArrayView2<'_, f64>,
        store: bool,
        isa: Isa,
    ) -> Self {
        Self::from_panels(Panels::new(packing, features), store, isa)
    }

    fn from_panels(panels: Panels<T>, store: bool, isa: Isa) -> Self {
        let schedule = Tournament::new(panels.n_blocks());
        let mut tiles = Self { panels, schedule, isa, stored: None };
        if store {
            let mut values = vec![T::default(); tiles.schedule.n_tiles() * TILE];
            let order = tiles.order();
            values.par_chunks_mut(TILE).zip(&order).for_each(|(tile, &(rows, columns))| {
                for r in (0..tiles.panels.block_len(rows)).step_by(STRIP) {
                    tiles.compute(rows, r, columns, &mut tile[r * BLOCK..]);
                }
            });
            tiles.stored = Some(values);
        }
        tiles
    }

    /// Bytes of the stored tiles.
    pub(crate) fn stored_bytes(n_samples: usize) -> u64 {
        (Tournament::new(n_samples.div_ceil(BLOCK)).n_tiles() * TILE * size_of::<T>()) as u64
    }

    pub(crate) fn panels(&self) -> &Panels<T> {
        &self.panels
    }

    fn order(&self) -> Vec<(usize, usize)> {
        let diagonal = (0..self.panels.n_blocks()).map(|b| (b, b));
        diagonal
            .chain((0..self.schedule.n_rounds()).flat_map(|round| self.schedule.round(round)))
            .collect()
    }

    fn compute(&self, rows: usize, r: usize, columns: usize, out: &mut [T]) {
        let packing = &self.panels.packing;
        compute_strip(
            self.isa,
            packing.kernel(),
            packing.n_features(),
            self.panels.strip(rows, r),
            STRIP,
            self.panels.block(columns),
            out,
        );
    }

    /// Hands the strips of a tile, eight rows each, to `visit`.
    fn strips(&self, tile: usize, rows: usize, columns: usize, mut visit: impl FnMut(usize, &[T])) {
        let n_rows = self.panels.block_len(rows);
        if let Some(stored) = &self.stored {
            let values = &stored[tile * TILE..(tile + 1) * TILE];
            for r in (0..n_rows).step_by(STRIP) {
                visit(r, &values[r * BLOCK..(r + STRIP) * BLOCK]);
            }
        } else {
            let mut strip = [T::default(); STRIP * BLOCK];
            for r in (0..n_rows).step_by(STRIP) {
                self.compute(rows, r, columns, &mut strip);
                visit(r, &strip);
            }
        }
    }

    /// out = v·K. Each kernel value is computed or loaded once.
    pub(crate) fn apply(&self, v: ArrayView2<'_, f64>, mut out: ArrayViewMut2<'_, f64>) {
        let (n_vectors, n_samples) = v.dim();
        let n_blocks = self.panels.n_blocks();
        // Block-wise copies, filled up with zeros, so that a block's part of all vectors is one slice.
        let block_size = n_vectors * BLOCK;
        let mut input = vec![0.0; n_blocks * block_size];
        for (c, row) in v.rows().into_iter().enumerate() {
            for (i, &value) in row.iter().enumerate() {
                input[i / BLOCK * block_size + c * BLOCK + i % BLOCK] = value;
            }
        }
        let of_block = |b: usize| &input[b * block_size..(b + 1) * block_size];
        let mut output = vec![0.0; n_blocks * block_size];

        output.par_chunks_mut(block_size).enumerate().for_each(|(b, y)| {
            let len = self.panels.block_len(b);
            self.strips(b, b, b, |r, strip| {
                accumulate_rows(self.isa, strip, STRIP, len, of_block(b), &mut y[r..], n_vectors);
            });
        });
        let mut first_tile = n_blocks;
        for round in 0..self.schedule.n_rounds() {
            let mut free: Vec<_> = output.chunks_mut(block_size).map(Some).collect();
            let pairs: Vec<_> = self
                .schedule
                .round(round)
                .enumerate()
                .filter_map(|(at, (i, j))| {
                    Some((first_tile + at, i, j, free[i].take()?, free[j].take()?))
                })
                .collect();
            first_tile += pairs.len();
            pairs.into_par_iter().for_each(|(tile, i, j, y_i, y_j)| {
                let len = self.panels.block_len(j);
                self.strips(tile, i, j, |r, strip| {
                    let columns = (of_block(j), &mut *y_j);
                    let rows = (&of_block(i)[r..], &mut y_i[r..]);
                    accumulate_both(self.isa, strip, len, columns, rows, n_vectors);
                });
            });
        }

        for (c, mut row) in out.rows_mut().into_iter().enumerate() {
            for (i, value) in row.iter_mut().enumerate().take(n_samples) {
                *value = output[i / BLOCK * block_size + c * BLOCK + i % BLOCK];
            }
        }
    }

    /// out[a · samples.len() + b] = κ(samples\[a\], samples\[b\]).
    pub(crate) fn block_into(&self, samples: &[usize], out: &mut [f64]) {
        let block = Self::from_panels(self.panels.select(samples), false, self.isa);
        let all: Vec<usize> = (0..samples.len()).collect();
        block.rows_into(&all, 0..samples.len(), out);
    }

    /// out[r · columns.len() + j] = κ(samples\[r\], columns.start + j).
    pub(crate) fn rows_into(&self, samples: &[usize], columns: Range<usize>, out: &mut [f64]) {
        let packing = &self.panels.packing;
        let mut rows = RowPack::new(packing.n_features());
        let mut strip = [T::default(); STRIP * BLOCK];
        let width = columns.len();
        for (group, samples) in samples.chunks(STRIP).enumerate() {
            self.panels.gather(samples, &mut rows);
            for block in columns.start / BLOCK..columns.end.div_ceil(BLOCK) {
                compute_strip(
                    self.isa,
                    packing.kernel(),
                    packing.n_features(),
                    rows.rows(),
                    samples.len(),
                    self.panels.block(block),
                    &mut strip,
                );
                let from = columns.start.max(block * BLOCK);
                let to = columns.end.min((block + 1) * BLOCK);
                for r in 0..samples.len() {
                    let at = (group * STRIP + r) * width + from - columns.start;
                    let values = &strip[r * BLOCK + from % BLOCK..][..to - from];
                    for (out, value) in out[at..].iter_mut().zip(values) {
                        *out = value.to_f64();
                    }
                }
            }
        }
    }
}
