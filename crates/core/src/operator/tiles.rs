//! The symmetric kernel matrix as tiles of 240 × 240, stored or recomputed.
//!
//! Compact tiles hold round(65535·κ). A product with them is one with those integers: the vectors
//! are divided by 65535 beforehand.

#![allow(unsafe_code)]

mod parts;

pub use parts::PartialProduct;

use super::accumulate::{accumulate_both, accumulate_columns, accumulate_rows};
use super::kind::OperatorKind;
use super::schedule::Schedule;
use crate::kernel::layout::{BLOCK, STRIP};
use crate::kernel::recipe::Recipe;
use crate::kernel::samples::{RowPack, Samples, StripRows};
use crate::linalg::aligned::Aligned;
use crate::linalg::simd::{Arch, Isa, Task, Vectors, Widen};
use ndarray::{ArrayView1, ArrayView2, ArrayViewMut2, Axis, Zip};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

const TILE: usize = BLOCK * BLOCK;
/// Rows of a panel that are one task's, over one block of columns: enough to use the block while it
/// is in cache.
const PANEL_ROWS: usize = 96;
/// Products that compute values anew before these are stored, where few products are expected.
/// Storing takes as long as computing them and clearing the memory they go to, which is worth a few
/// products more than that (ADR 0024).
const LATE: usize = 10;
/// What compact tiles have for a value of one.
const FULL: f64 = u16::MAX as f64;

/// K in precision `T`, as the tiles of its lower triangle.
pub(crate) struct Tiles<T> {
    samples: Samples<T>,
    schedule: Schedule,
    isa: Isa,
    held: Held<T>,
    /// The buffer of the last product, for the next.
    kept: Mutex<Option<Aligned<f64>>>,
}

/// Most bytes that are kept where every product computes all values, which takes longer than fresh
/// memory does. Where they are stored that would be a tenth of a product.
const KEPT: usize = 4 << 20;

/// Values in the order of the schedule's tiles.
enum Held<T> {
    Nothing,
    Whole(Aligned<T>),
    Compact(Aligned<u16>),
    /// As whole, once so many products have computed them.
    Late {
        products: AtomicUsize,
        values: OnceLock<Aligned<T>>,
    },
}

impl<T: Vectors> Tiles<T> {
    /// As stored ones, which are stored only once a few products have computed their values.
    pub(crate) fn late(recipe: Recipe, features: ArrayView2<'_, f64>, isa: Isa) -> Self {
        let tiles = Self::new(recipe, features, OperatorKind::Tiled, isa);
        let held = Held::Late { products: AtomicUsize::new(0), values: OnceLock::new() };
        Self { held, ..tiles }
    }

    /// Packs the features, and computes every tile where `kind` keeps them.
    pub(crate) fn new(
        recipe: Recipe,
        features: ArrayView2<'_, f64>,
        kind: OperatorKind,
        isa: Isa,
    ) -> Self {
        Self::from_samples(Samples::new(recipe, features), kind, isa)
    }

    fn from_samples(samples: Samples<T>, kind: OperatorKind, isa: Isa) -> Self {
        let schedule = Schedule::new(samples.n_blocks());
        let mut tiles =
            Self { samples, schedule, isa, held: Held::Nothing, kept: Mutex::default() };
        tiles.held = match kind {
            OperatorKind::Tiled => Held::Nothing,
            OperatorKind::Stored => Held::Whole(tiles.whole()),
            OperatorKind::Compact => Held::Compact(tiles.all(|(rows, columns), tile| {
                tiles.computed(rows, columns, |r, values| {
                    let out = &mut tile[r * BLOCK..(r + STRIP) * BLOCK];
                    // SAFETY: `isa` was detected on this machine, and the task has no contract of
                    // its own.
                    unsafe { isa.run(Round { values, out }) }
                });
            })),
        };
        tiles
    }

    /// All values.
    fn whole(&self) -> Aligned<T> {
        self.all(|(rows, columns), tile| {
            let mut spare = self.samples.spare();
            for r in (0..self.samples.block_len(rows)).step_by(STRIP) {
                self.compute(rows, r, columns, &mut tile[r * BLOCK..], &mut spare);
            }
        })
    }

    /// Values that are stored as they are, by now.
    fn stored(&self) -> Option<&Aligned<T>> {
        match &self.held {
            Held::Whole(values) => Some(values),
            Held::Late { values, .. } => values.get(),
            _ => None,
        }
    }

    #[cfg(test)]
    pub(crate) fn holds_values(&self) -> bool {
        self.stored().is_some()
    }

    /// Every tile, as `write` makes it of its blocks.
    fn all<S: Copy + Default + Send>(
        &self,
        write: impl Fn((usize, usize), &mut [S]) + Sync,
    ) -> Aligned<S> {
        let n_tiles = Schedule::n_tiles(self.samples.n_blocks());
        let mut values = Aligned::zeros(n_tiles * TILE);
        let blocks = |number| self.schedule.blocks(number);
        let tiles = values.par_chunks_mut(TILE).enumerate();
        tiles.for_each(|(number, tile)| write(blocks(number), tile));
        values
    }

    /// Numbers that a product adds one after the other at most.
    pub(crate) fn longest_sum(n_samples: usize) -> usize {
        Schedule::new(n_samples.div_ceil(BLOCK)).longest_sum(n_samples, BLOCK)
    }

    /// Values that are held where all are.
    pub(crate) fn stored_values(n_samples: usize) -> usize {
        Schedule::n_tiles(n_samples.div_ceil(BLOCK)) * TILE
    }

    /// Bytes a product of `n_vectors` takes while it runs, and what the same matrix in the other
    /// precision may have kept.
    pub(crate) fn product_bytes(n_samples: usize, n_vectors: usize) -> u64 {
        let n_blocks = n_samples.div_ceil(BLOCK);
        let copies = Schedule::n_tasks(n_blocks) + 1;
        let own = copies * n_blocks * BLOCK * n_vectors * size_of::<f64>();
        (own + own.min(KEPT)) as u64
    }

    fn compute(&self, block: usize, row: usize, columns: usize, out: &mut [T], spare: &mut [T]) {
        let rows = StripRows::InPlace { block, row };
        self.samples.compute(self.isa, rows, STRIP, columns, out, spare);
    }

    /// Computes the strips of a tile, eight rows each, and hands them to `visit`.
    fn computed(&self, rows: usize, columns: usize, mut visit: impl FnMut(usize, &[T])) {
        let mut strip = Aligned::zeros(STRIP * BLOCK);
        let mut spare = self.samples.spare();
        for r in (0..self.samples.block_len(rows)).step_by(STRIP) {
            self.compute(rows, r, columns, &mut strip, &mut spare);
            visit(r, &strip);
        }
    }

    /// out = v·K. Each kernel value is computed or loaded once.
    pub(crate) fn apply(&self, v: ArrayView2<'_, f64>, mut out: ArrayViewMut2<'_, f64>) {
        if let Held::Late { products, values } = &self.held
            && products.fetch_add(1, Ordering::Relaxed) >= LATE
        {
            values.get_or_init(|| self.whole());
        }
        let n_vectors = v.nrows();
        let n_blocks = self.samples.n_blocks();
        // Block-wise copies, filled up with zeros, so that a block's part of all vectors is one
        // slice.
        let block_size = n_vectors * BLOCK;
        let len = n_blocks * block_size;
        let mut buffer = self.buffer((Schedule::n_tasks(n_blocks) + 1) * len);
        let (input, outputs) = buffer.split_at_mut(len);
        self.by_blocks(v, input);
        outputs.par_chunks_mut(len.max(1)).enumerate().for_each(|(task, output)| {
            output.fill(0.0);
            for tile in self.schedule.task(task) {
                self.add_tile(tile, input, output, n_vectors);
            }
        });
        // The sum takes the place of the vectors.
        input.par_chunks_mut(block_size).enumerate().for_each(|(block, sum)| {
            sum.fill(0.0);
            for part in outputs.chunks(len) {
                let part = &part[block * block_size..(block + 1) * block_size];
                sum.iter_mut().zip(part).for_each(|(s, p)| *s += p);
            }
        });
        for (c, mut row) in out.rows_mut().into_iter().enumerate() {
            for (block, mut part) in row.axis_chunks_iter_mut(Axis(0), BLOCK).enumerate() {
                let from = &input[block * block_size + c * BLOCK..];
                part.iter_mut().zip(from).for_each(|(value, from)| *value = *from);
            }
        }
        self.keep(buffer);
    }

    /// Copies vectors block by block, in the unit of the values that are held; the last block is
    /// filled up with zeros.
    fn by_blocks(&self, v: ArrayView2<'_, f64>, input: &mut [f64]) {
        let block_size = v.nrows() * BLOCK;
        let unit = if matches!(self.held, Held::Compact(_)) { 1.0 / FULL } else { 1.0 };
        input[self.samples.n_blocks().saturating_sub(1) * block_size..].fill(0.0);
        for (c, row) in v.rows().into_iter().enumerate() {
            for (block, part) in row.axis_chunks_iter(Axis(0), BLOCK).enumerate() {
                let to = &mut input[block * block_size + c * BLOCK..][..part.len()];
                to.iter_mut().zip(part).for_each(|(to, value)| *to = value * unit);
            }
        }
    }

    /// A buffer of `len` numbers, with whatever the last product left in it.
    fn buffer(&self, len: usize) -> Aligned<f64> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.take().filter(|buffer| buffer.len() == len).unwrap_or_else(|| Aligned::zeros(len))
    }

    fn keep(&self, buffer: Aligned<f64>) {
        if !matches!(self.held, Held::Nothing) || size_of_val(&*buffer) <= KEPT {
            *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(buffer);
        }
    }

    /// Gives back what is kept: plans count a product's buffer, or what takes its place.
    pub(crate) fn forget(&self) {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Adds a tile's share, and its mirror image's, to `output`.
    fn add_tile(&self, tile: usize, input: &[f64], output: &mut [f64], n_vectors: usize) {
        let (i, j) = self.schedule.blocks(tile);
        let block_size = n_vectors * BLOCK;
        let (head, tail) = output.split_at_mut(j * block_size);
        let own = &mut tail[..block_size];
        let part = |block: usize| &input[block * block_size..(block + 1) * block_size];
        let mirror = (i < j).then(|| (part(i), &mut head[i * block_size..(i + 1) * block_size]));
        let len = self.samples.block_len(j);
        self.add_to(tile, Sums { isa: self.isa, n_vectors, len, v: part(j), own, mirror });
    }

    /// Adds a tile's products to `sums`, strip by strip.
    fn add_to(&self, tile: usize, mut sums: Sums<'_>) {
        let (i, j) = self.schedule.blocks(tile);
        let starts = (0..self.samples.block_len(i)).step_by(STRIP);
        let at = |r: usize| tile * TILE + r * BLOCK..tile * TILE + (r + STRIP) * BLOCK;
        match (&self.held, self.stored()) {
            (_, Some(values)) => starts.for_each(|r| sums.add(r, &values[at(r)])),
            (Held::Compact(values), _) => starts.for_each(|r| sums.add(r, &values[at(r)])),
            _ => self.computed(i, j, |r, strip| sums.add(r, strip)),
        }
    }

    /// The matrix of the listed samples.
    pub(crate) fn restrict(&self, samples: &[usize], kind: OperatorKind) -> Self {
        Self::from_samples(self.samples.select(samples), kind, self.isa)
    }

    /// out += v·K\[samples, :\]. Kernel values are computed eight rows at a time and used at once.
    pub(crate) fn add_columns(
        &self,
        samples: &[usize],
        v: ArrayView2<'_, f64>,
        out: ArrayViewMut2<'_, f64>,
    ) {
        self.add_columns_from(0, samples, v, out);
    }

    /// The same for as many columns as `out` has, from the first of `block` on.
    pub(crate) fn add_columns_from(
        &self,
        block: usize,
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
        let sums: Vec<Aligned<f64>> = (block..block + out.ncols().div_ceil(BLOCK))
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
        let block = self.restrict(samples, OperatorKind::Tiled);
        let all: Vec<usize> = (0..samples.len()).collect();
        block.rows_into(&all, 0..samples.len(), out);
    }

    /// out[r · columns.len() + j] = κ(samples\[r\], columns.start + j), on all cores.
    pub(crate) fn rows_into(&self, samples: &[usize], columns: Range<usize>, out: &mut [f64]) {
        self.forget();
        let shape = (samples.len(), columns.len());
        let mut out = ArrayViewMut2::from_shape(shape, out).expect("room for a value a pair");
        let mut tasks = Vec::new();
        let panels = out.axis_chunks_iter_mut(Axis(0), PANEL_ROWS);
        for (mut rest, samples) in panels.zip(samples.chunks(PANEL_ROWS)) {
            let mut from = columns.start;
            while from < columns.end {
                let to = ((from / BLOCK + 1) * BLOCK).min(columns.end);
                let (part, right) = rest.split_at(Axis(1), to - from);
                tasks.push((samples, from..to, part));
                (rest, from) = (right, to);
            }
        }
        tasks
            .into_par_iter()
            .for_each(|(samples, columns, out)| self.panel_into(samples, columns, out));
    }

    /// The rows of some samples over columns of one block.
    fn panel_into(
        &self,
        samples: &[usize],
        columns: Range<usize>,
        mut out: ArrayViewMut2<'_, f64>,
    ) {
        // How a value is computed depends on its sample's panel, so only samples of one kind are
        // computed together.
        let mut kinds: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for (at, &i) in samples.iter().enumerate() {
            kinds.entry(self.samples.kind(i)).or_default().push(at);
        }
        for places in kinds.values().flat_map(|places| places.chunks(STRIP)) {
            self.strip_into(samples, places, columns.clone(), out.view_mut());
        }
    }

    /// The rows of up to eight `samples`, those at `places`, over columns of one block.
    fn strip_into(
        &self,
        samples: &[usize],
        places: &[usize],
        columns: Range<usize>,
        mut out: ArrayViewMut2<'_, f64>,
    ) {
        let picked: Vec<usize> = places.iter().map(|&at| samples[at]).collect();
        let last = picked.iter().max().map_or(0, |i| i / BLOCK);
        let block = columns.start / BLOCK;
        // Tiles on and above the diagonal are kept; the others are cheaper to compute than to
        // transpose.
        let stored = self.stored().filter(|_| last <= block);
        let mut strip = Aligned::zeros(if stored.is_some() { 0 } else { STRIP * BLOCK });
        if stored.is_none() {
            let mut rows = self.samples.row_pack();
            self.samples.gather(&picked, &mut rows);
            let (rows, mut spare) = (StripRows::Packed(&rows), self.samples.spare());
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
            let values = &values[columns.start % BLOCK..][..columns.len()];
            // By Zip, which sees that a row lies in one piece.
            let values = ArrayView1::from(values);
            Zip::from(out.row_mut(at)).and(values).for_each(|out, value| *out = value.to_f64());
        }
    }
}

/// Where the products of a tile go.
struct Sums<'a> {
    isa: Isa,
    n_vectors: usize,
    /// Columns of the tile.
    len: usize,
    /// The vectors at the columns.
    v: &'a [f64],
    /// Sums of the columns.
    own: &'a mut [f64],
    /// The vectors at the rows and their sums, where the tile stands for its mirror image too.
    mirror: Option<(&'a [f64], &'a mut [f64])>,
}

impl Sums<'_> {
    /// Adds the eight rows from `r` on.
    fn add<S: Widen>(&mut self, r: usize, strip: &[S]) {
        match &mut self.mirror {
            None => {
                let sums = &mut self.own[r..];
                accumulate_rows(self.isa, strip, STRIP, self.len, self.v, sums, self.n_vectors);
            }
            Some((w, sums)) => {
                let (columns, rows) = ((self.v, &mut *self.own), (&w[r..], &mut sums[r..]));
                accumulate_both(self.isa, strip, self.len, columns, rows, self.n_vectors);
            }
        }
    }
}

/// round(65535·κ), for values that exceed one by rounding at most.
struct Round<'a, T> {
    values: &'a [T],
    out: &'a mut [u16],
}

impl<T: Vectors> Task for Round<'_, T> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<A: Arch>(self) {
        for (out, value) in self.out.iter_mut().zip(self.values) {
            *out = (value.to_f64() * FULL + 0.5) as i32 as u16;
        }
    }
}
