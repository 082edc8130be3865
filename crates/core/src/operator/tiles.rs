//! The symmetric kernel matrix as tiles of 240 × 240, stored or recomputed.

use super::accumulate::{accumulate_both, accumulate_columns, accumulate_rows};
use super::schedule::Schedule;
use crate::kernel::panels::{BLOCK, STRIP};
use crate::kernel::recipe::Recipe;
use crate::kernel::samples::{RowPack, Samples, StripRows};
use crate::linalg::aligned::Aligned;
use crate::linalg::simd::{Isa, Vectors};
use ndarray::{ArrayView2, ArrayViewMut2};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::ops::Range;

const TILE: usize = BLOCK * BLOCK;

/// K in precision `T`, as the tiles of its lower triangle.
pub(crate) struct Tiles<T> {
    samples: Samples<T>,
    schedule: Schedule,
    isa: Isa,
    /// Tiles in the schedule's order.
    stored: Option<Aligned<T>>,
}

impl<T: Vectors> Tiles<T> {
    /// Packs the features; `store` also computes and keeps every tile.
    pub(crate) fn new(
        recipe: Recipe,
        features: ArrayView2<'_, f64>,
        store: bool,
        isa: Isa,
    ) -> Self {
        Self::from_samples(Samples::new(recipe, features), store, isa)
    }

    fn from_samples(samples: Samples<T>, store: bool, isa: Isa) -> Self {
        let schedule = Schedule::new(samples.n_blocks());
        let mut tiles = Self { samples, schedule, isa, stored: None };
        if store {
            let order = tiles.schedule.order();
            let mut values = Aligned::zeros(order.len() * TILE);
            values.par_chunks_mut(TILE).zip(order).for_each(|(tile, &(rows, columns))| {
                let mut spare = tiles.samples.spare();
                for r in (0..tiles.samples.block_len(rows)).step_by(STRIP) {
                    tiles.compute(rows, r, columns, &mut tile[r * BLOCK..], &mut spare);
                }
            });
            tiles.stored = Some(values);
        }
        tiles
    }

    /// Bytes of the stored tiles.
    pub(crate) fn stored_bytes(n_samples: usize) -> u64 {
        (Schedule::n_tiles(n_samples.div_ceil(BLOCK)) * TILE * size_of::<T>()) as u64
    }

    /// Bytes a product of `n_vectors` takes while it runs.
    pub(crate) fn product_bytes(n_samples: usize, n_vectors: usize) -> u64 {
        let n_blocks = n_samples.div_ceil(BLOCK);
        let copies = Schedule::n_tasks(n_blocks) + 2;
        (copies * n_blocks * BLOCK * n_vectors * size_of::<f64>()) as u64
    }

    fn compute(&self, block: usize, row: usize, columns: usize, out: &mut [T], spare: &mut [T]) {
        let rows = StripRows::InPlace { block, row };
        self.samples.compute(self.isa, rows, STRIP, columns, out, spare);
    }

    /// Hands the strips of a tile, eight rows each, to `visit`.
    fn strips(&self, tile: usize, rows: usize, columns: usize, mut visit: impl FnMut(usize, &[T])) {
        let n_rows = self.samples.block_len(rows);
        if let Some(stored) = &self.stored {
            let values = &stored[tile * TILE..(tile + 1) * TILE];
            for r in (0..n_rows).step_by(STRIP) {
                visit(r, &values[r * BLOCK..(r + STRIP) * BLOCK]);
            }
        } else {
            let mut strip = Aligned::zeros(STRIP * BLOCK);
            let mut spare = self.samples.spare();
            for r in (0..n_rows).step_by(STRIP) {
                self.compute(rows, r, columns, &mut strip, &mut spare);
                visit(r, &strip);
            }
        }
    }

    /// out = v·K. Each kernel value is computed or loaded once.
    pub(crate) fn apply(&self, v: ArrayView2<'_, f64>, mut out: ArrayViewMut2<'_, f64>) {
        let (n_vectors, n_samples) = v.dim();
        let n_blocks = self.samples.n_blocks();
        // Block-wise copies, filled up with zeros, so that a block's part of all vectors is one slice.
        let block_size = n_vectors * BLOCK;
        let mut input = Aligned::zeros(n_blocks * block_size);
        for (c, row) in v.rows().into_iter().enumerate() {
            for (i, &value) in row.iter().enumerate() {
                input[i / BLOCK * block_size + c * BLOCK + i % BLOCK] = value;
            }
        }
        let partial: Vec<Aligned<f64>> = (0..Schedule::n_tasks(n_blocks))
            .into_par_iter()
            .map(|task| {
                let mut output = Aligned::zeros(n_blocks * block_size);
                for tile in self.schedule.task(task) {
                    self.add_tile(tile, &input, &mut output, n_vectors);
                }
                output
            })
            .collect();
        let mut output = Aligned::zeros(n_blocks * block_size);
        output.par_chunks_mut(block_size).enumerate().for_each(|(block, sum)| {
            for part in &partial {
                let part = &part[block * block_size..(block + 1) * block_size];
                sum.iter_mut().zip(part).for_each(|(s, p)| *s += p);
            }
        });

        for (c, mut row) in out.rows_mut().into_iter().enumerate() {
            for (i, value) in row.iter_mut().enumerate().take(n_samples) {
                *value = output[i / BLOCK * block_size + c * BLOCK + i % BLOCK];
            }
        }
    }

    /// Adds a tile's share, and its mirror image's, to `output`.
    fn add_tile(&self, tile: usize, input: &[f64], output: &mut [f64], n_vectors: usize) {
        let (i, j) = self.schedule.order()[tile];
        let block_size = n_vectors * BLOCK;
        let len = self.samples.block_len(j);
        let v = &input[j * block_size..(j + 1) * block_size];
        if i == j {
            let y = &mut output[i * block_size..(i + 1) * block_size];
            self.strips(tile, i, j, |r, strip| {
                accumulate_rows(self.isa, strip, STRIP, len, v, &mut y[r..], n_vectors);
            });
        } else {
            let w = &input[i * block_size..(i + 1) * block_size];
            let (head, tail) = output.split_at_mut(j * block_size);
            let y_i = &mut head[i * block_size..(i + 1) * block_size];
            let y_j = &mut tail[..block_size];
            self.strips(tile, i, j, |r, strip| {
                let rows = (&w[r..], &mut y_i[r..]);
                accumulate_both(self.isa, strip, len, (v, &mut *y_j), rows, n_vectors);
            });
        }
    }

    /// The matrix of the listed samples.
    pub(crate) fn restrict(&self, samples: &[usize], store: bool) -> Self {
        Self::from_samples(self.samples.select(samples), store, self.isa)
    }

    /// out += v·K\[samples, :\]. Kernel values are computed eight rows at a time and used at once.
    pub(crate) fn add_columns(
        &self,
        samples: &[usize],
        v: ArrayView2<'_, f64>,
        mut out: ArrayViewMut2<'_, f64>,
    ) {
        let n_vectors = v.nrows();
        let mut weights = Aligned::zeros(samples.len().div_ceil(BLOCK) * n_vectors * BLOCK);
        for ((c, i), value) in v.indexed_iter() {
            weights[(i / BLOCK * n_vectors + c) * BLOCK + i % BLOCK] = *value;
        }
        let strips: Vec<RowPack<T>> = samples
            .chunks(STRIP)
            .map(|group| {
                let mut rows = self.samples.row_pack();
                self.samples.gather(group, &mut rows);
                rows
            })
            .collect();
        let sums: Vec<Aligned<f64>> = (0..self.samples.n_blocks())
            .into_par_iter()
            .map(|block| {
                let mut sums = Aligned::zeros(n_vectors * BLOCK);
                let mut strip = Aligned::zeros(STRIP * BLOCK);
                let mut spare = self.samples.spare();
                let len = self.samples.block_len(block);
                for (at, rows) in strips.iter().enumerate() {
                    let first = at * STRIP;
                    let weights = &weights[first / BLOCK * n_vectors * BLOCK + first % BLOCK..];
                    let rows = StripRows::Packed(rows);
                    self.samples.compute(self.isa, rows, STRIP, block, &mut strip, &mut spare);
                    accumulate_columns(self.isa, &strip, STRIP, len, weights, &mut sums, n_vectors);
                }
                sums
            })
            .collect();
        for ((c, i), value) in out.indexed_iter_mut() {
            *value += sums[i / BLOCK][c * BLOCK + i % BLOCK];
        }
    }

    /// out[a · samples.len() + b] = κ(samples\[a\], samples\[b\]).
    pub(crate) fn block_into(&self, samples: &[usize], out: &mut [f64]) {
        let block = Self::from_samples(self.samples.select(samples), false, self.isa);
        let all: Vec<usize> = (0..samples.len()).collect();
        block.rows_into(&all, 0..samples.len(), out);
    }

    /// out[r · columns.len() + j] = κ(samples\[r\], columns.start + j).
    pub(crate) fn rows_into(&self, samples: &[usize], columns: Range<usize>, out: &mut [f64]) {
        // How a value is computed depends on its sample's panel, so only samples of one kind are computed together.
        let mut kinds: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for (at, &i) in samples.iter().enumerate() {
            kinds.entry(self.samples.kind(i)).or_default().push(at);
        }
        for places in kinds.values().flat_map(|places| places.chunks(STRIP)) {
            self.strip_into(samples, places, columns.clone(), out);
        }
    }

    /// The rows of up to eight `samples`, those at `places`.
    fn strip_into(
        &self,
        samples: &[usize],
        places: &[usize],
        columns: Range<usize>,
        out: &mut [f64],
    ) {
        let picked: Vec<usize> = places.iter().map(|&at| samples[at]).collect();
        let last = picked.iter().max().map_or(0, |i| i / BLOCK);
        let mut rows = None;
        let mut strip = Aligned::zeros(STRIP * BLOCK);
        let mut spare = self.samples.spare();
        for block in columns.start / BLOCK..columns.end.div_ceil(BLOCK) {
            let from = columns.start.max(block * BLOCK);
            let to = columns.end.min((block + 1) * BLOCK);
            // Tiles on and above the diagonal are kept; the others are cheaper to compute than to transpose.
            let stored = self.stored.as_ref().filter(|_| last <= block);
            if stored.is_none() {
                let rows = rows.get_or_insert_with(|| {
                    let mut rows = self.samples.row_pack();
                    self.samples.gather(&picked, &mut rows);
                    rows
                });
                let rows = StripRows::Packed(rows);
                self.samples.compute(self.isa, rows, picked.len(), block, &mut strip, &mut spare);
            }
            for (r, (&at, &i)) in places.iter().zip(&picked).enumerate() {
                let values = match stored {
                    Some(stored) => {
                        let tile = self.schedule.tile(i / BLOCK, block) * TILE;
                        &stored[tile + i % BLOCK * BLOCK..][..BLOCK]
                    }
                    None => &strip[r * BLOCK..(r + 1) * BLOCK],
                };
                let out = &mut out[at * columns.len() + from - columns.start..];
                let values = &values[from % BLOCK..][..to - from];
                out.iter_mut().zip(values).for_each(|(out, value)| *out = value.to_f64());
            }
        }
    }
}
