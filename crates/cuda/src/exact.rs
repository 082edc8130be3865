//! Launches of `kernels/exact.cu` and `kernels/exact_tensor.cu`: kernel values in f64, by
//! differences or, for products where all terms are of the Euclidean distance, on the tensor cores.
#![allow(unsafe_code)]

mod centred;

pub(crate) use centred::Centred;

use crate::device::{Device, int};
use crate::error::Error;
use crate::fused::one_thread_each;
use crate::linear;
use crate::panels::{Panel, Step};
use crate::parts::Part;
use crate::products::Columns;
use crate::recipe::{Kind, MAX_TERMS, Recipe, Term};
use cudarc::driver::{
    CudaSlice, CudaViewMut, DeviceRepr, LaunchConfig, PushKernelArg, ValidAsZeroBits,
};
use std::ops::Range;

/// Rows and columns of a tile, `TILE` in `kernels/exact.cu`.
const TILE: usize = 64;
/// Threads of a block there.
const THREADS: u32 = 256;
/// Columns of V in one pass there, and where a block of threads has little shared memory.
const WIDTH: usize = 8;
pub(crate) const NARROW: usize = 4;
/// Strips of columns with partial sums of their own: enough blocks for few samples, little memory
/// for many.
const STRIPS: usize = 16;

/// Rows of a group, `GROUP` in `kernels/exact_tensor.cu`, and bytes of the partial sums of pairs of
/// groups in one launch, about.
const GROUP: usize = 512;
pub(crate) const PAIR_BYTES: usize = 1 << 30;
/// Samples from which on pairs keep a large GPU as busy as strips do, with half the work.
pub(crate) const PAIRS_FROM: usize = 16_384;

/// `Terms` in `kernels/exact.cu`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Terms {
    weight: [f64; MAX_TERMS],
    rate: [f64; MAX_TERMS],
    kind: [i32; MAX_TERMS],
    count: i32,
    linear: f64,
    constant: f64,
}

// SAFETY: plain numbers, laid out as the C++ struct is.
unsafe impl DeviceRepr for Terms {}

impl Terms {
    pub(crate) fn new(recipe: &Recipe) -> Self {
        let mut terms = Self {
            weight: [0.0; MAX_TERMS],
            rate: [0.0; MAX_TERMS],
            kind: [0; MAX_TERMS],
            count: int(recipe.terms.len()),
            linear: recipe.linear,
            constant: recipe.constant,
        };
        for (i, term) in recipe.terms.iter().enumerate() {
            terms.weight[i] = term.weight;
            terms.rate[i] = term.kind.rate(term.gamma);
            terms.kind[i] = term.kind as i32;
        }
        terms
    }
}

/// Rows of a block and columns of a tile in `kernels/exact_tensor.cu`, and features of a chunk.
const TENSOR_ROWS: usize = 128;
const TENSOR_COLUMNS: usize = 64;
const TENSOR_CHUNK: usize = 16;

/// Samples that exact values are computed from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exact<'a> {
    pub(crate) device: &'a Device,
    /// None where they are on the host: products are then by pairs of centred ones.
    pub(crate) features: Option<&'a CudaSlice<f64>>,
    pub(crate) n_samples: usize,
    pub(crate) n_features: usize,
    pub(crate) recipe: &'a Recipe,
    /// Where products come from inner products of centred features.
    pub(crate) centred: Option<&'a Centred>,
}

/// How the samples that a sum runs over are cut, for any `n_samples`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Strips {
    /// Samples of a strip: whole tiles.
    pub(crate) samples: usize,
    pub(crate) count: usize,
}

impl Strips {
    pub(crate) fn of(n_samples: usize) -> Self {
        let samples = n_samples.div_ceil(STRIPS).div_ceil(TILE) * TILE;
        Self { samples, count: n_samples.div_ceil(samples) }
    }

    /// Numbers that are added one after the other at most, in strips or in pairs: a thread's (a
    /// quarter of its samples), a few threads' and warps', then all strips or groups.
    pub(crate) fn longest_sum(n_samples: usize) -> usize {
        let Self { samples, count } = Self::of(n_samples);
        let groups = n_samples.div_ceil(GROUP);
        (samples / 4 + 4 + count).max(GROUP / 4 + 32 + 2 * groups)
    }
}

/// How products with all samples on both sides are cut into launches.
#[derive(Clone, Copy, Debug)]
struct Pairs {
    n_groups: usize,
    /// Groups whose pairs are in one launch.
    batch: usize,
}

impl Pairs {
    fn of(n_samples: usize, width: usize) -> Self {
        let n_groups = n_samples.div_ceil(GROUP);
        let bytes = 2 * n_groups * GROUP * width * size_of::<f64>();
        Self { n_groups, batch: (PAIR_BYTES / bytes).clamp(1, n_groups) }
    }

    /// Numbers in one of the two buffers of partial sums.
    fn partials(self, width: usize) -> usize {
        self.batch * self.n_groups * GROUP * width
    }
}

impl Exact<'_> {
    /// κ(rows, samples)·v: v has a row for each of these samples, the result one for each of
    /// `rows`, which may be the same.
    pub(crate) fn product(&self, rows: &Exact<'_>, v: &Columns) -> Result<Columns, Error> {
        let mut out = Columns::zeros(self.device, rows.n_samples, v.n_columns)?;
        if self.recipe.terms.is_empty() {
            linear::add_product(self, rows, v, &mut out)?;
            return Ok(out);
        }
        if let (Some(own), Some(other)) = (self.centred, rows.centred)
            && std::ptr::eq(own, other)
            && self.n_samples >= PAIRS_FROM
            && (self.features.is_none() || self.has_room_for_pairs(v.n_columns)?)
        {
            self.add_pair_products(own, v, &mut out, Part::WHOLE)?;
            return Ok(out);
        }
        let strips = Strips::of(self.n_samples);
        let width = v.n_columns.min(WIDTH);
        let len = strips.count * rows.n_samples * width;
        let mut partials = self.device.zeros("exact partial sums", len)?;
        for first in (0..v.n_columns).step_by(WIDTH) {
            let pass = (first, (v.n_columns - first).min(WIDTH));
            match (self.centred, rows.centred) {
                (Some(columns), Some(centred)) => {
                    let both = (centred, columns);
                    self.tensor_products(rows, both, v, &mut partials, pass)?;
                }
                _ => self.partial_products(rows, v, &mut partials, pass)?,
            }
            self.sum_strips(&partials, &mut out, pass)?;
        }
        if self.centred.is_some() && self.recipe.has_linear() {
            linear::add_product(self, rows, v, &mut out)?;
        }
        Ok(out)
    }

    /// One part of K·v, for as many samples and with as much shared memory as products by pairs
    /// take.
    pub(crate) fn part(&self, v: &Columns, part: Part) -> Result<Columns, Error> {
        let mut out = Columns::zeros(self.device, self.n_samples, v.n_columns)?;
        let centred = self.centred.filter(|_| self.n_samples >= PAIRS_FROM);
        let Some(centred) = centred.filter(|_| !self.recipe.terms.is_empty()) else {
            let kernel = "a part of products with a kernel like this, or of so few samples,";
            return Err(Error::Kernel { kernel: kernel.to_owned() });
        };
        self.add_pair_products(centred, v, &mut out, part)?;
        Ok(out)
    }

    /// out += K·v for samples with themselves, each value computed once; of a part, what that
    /// gives.
    fn add_pair_products(
        &self,
        centred: &Centred,
        v: &Columns,
        out: &mut Columns,
        part: Part,
    ) -> Result<(), Error> {
        let most = if self.has_room_for_pairs(v.n_columns)? { WIDTH } else { NARROW };
        let width = v.n_columns.min(most);
        let len = Pairs::of(self.n_samples, width).partials(width);
        let what = "exact partial sums";
        let mut partials = [self.device.zeros(what, len)?, self.device.zeros(what, len)?];
        for first in (0..v.n_columns).step_by(most) {
            let pass = (first, (v.n_columns - first).min(most));
            let pairs = Pairs::of(self.n_samples, width);
            let own = part.groups(pairs.n_groups);
            for group in own.clone().step_by(pairs.batch) {
                let batch = group..(group + pairs.batch).min(own.end);
                let groups = (pairs.n_groups, GROUP);
                centred.features.each_step(groups, batch.clone(), |step, panels| {
                    let place = (pairs, group, step);
                    self.pair_batch((centred, &panels), v, &mut partials, pass, place)
                })?;
                self.add_pairs(&partials, out, pass, (pairs, batch))?;
            }
        }
        if self.recipe.has_linear() && part.is_first() {
            linear::add_product(self, self, v, out)?;
        }
        Ok(())
    }

    /// Partial sums of the pairs of groups of a step; the buffers begin with a = `group`.
    fn pair_batch(
        &self,
        (centred, panels): (&Centred, &[Panel<'_, f64>; 2]),
        v: &Columns,
        [rows, columns]: &mut [CudaSlice<f64>; 2],
        (first, width): (usize, usize),
        (pairs, group, step): (Pairs, usize, &Step),
    ) -> Result<(), Error> {
        let program = self.tensor_program(width).0;
        let terms = Terms::new(self.recipe);
        let n = self.n_samples as u64;
        let ints = [centred.pitch, v.n_columns, first, width, pairs.n_groups, group];
        let ints = ints.into_iter().chain([step.a.start, step.b.start]).map(int);
        let ints: Vec<i32> = ints.collect();
        let begins = panels.each_ref().map(|panel| panel.first as u64);
        let shared_bytes = self.pair_shared_bytes(width);
        let function = self.device.function(program, "exact_pairs", shared_bytes)?;
        let mut launch = self.device.stream().launch_builder(&function);
        for (panel, begin) in panels.iter().zip(&begins) {
            launch.arg(panel.data).arg(begin);
        }
        launch.arg(&centred.norms).arg(&n).arg(&v.data).arg(rows).arg(columns);
        ints.iter().for_each(|int| {
            launch.arg(int);
        });
        launch.arg(&terms);
        let grid = LaunchConfig {
            grid_dim: (step.a.len() as u32, step.b.len() as u32, 1),
            block_dim: (THREADS, 1, 1),
            shared_mem_bytes: shared_bytes as u32,
        };
        // SAFETY: the arguments are those of the kernel; `Pairs` sized the buffers it writes, the
        // panels have all groups of the step, padded to whole row tiles.
        unsafe { launch.launch(grid) }.map_err(computing)?;
        Ok(())
    }

    /// Whether a block of threads has the shared memory that pairs take with so many columns of V.
    pub(crate) fn has_room_for_pairs(&self, n_columns: usize) -> Result<bool, Error> {
        Ok(self.pair_shared_bytes(n_columns.min(WIDTH)) <= self.device.shared_memory()?.0)
    }

    /// Shared memory of a block: two stages of features, V of both sides, the sums of eight warps,
    /// and those of a group.
    fn pair_shared_bytes(&self, width: usize) -> usize {
        let stages = 2 * (TENSOR_ROWS + TENSOR_COLUMNS) * (TENSOR_CHUNK + 4);
        let each = 9 * TENSOR_COLUMNS + TENSOR_ROWS + GROUP;
        (stages + each * self.tensor_program(width).1) * size_of::<f64>()
    }

    fn add_pairs(
        &self,
        [rows, columns]: &[CudaSlice<f64>; 2],
        out: &mut Columns,
        (first, width): (usize, usize),
        (pairs, batch): (Pairs, Range<usize>),
    ) -> Result<(), Error> {
        let n = self.n_samples as u64;
        let (group, count) = (batch.start, batch.len());
        let ints = [out.n_columns, first, width, pairs.n_groups, group, count].map(int);
        let function = self.device.function(self.tensor_program(width).0, "add_pairs", 0)?;
        let mut launch = self.device.stream().launch_builder(&function);
        launch.arg(rows).arg(columns).arg(&mut out.data).arg(&n);
        ints.iter().for_each(|int| {
            launch.arg(int);
        });
        let rows_left = self.n_samples - group * GROUP;
        // SAFETY: as in `pair_batch`; it adds to columns first..first + width of `out`.
        unsafe { launch.launch(one_thread_each(rows_left * width)) }.map_err(computing)?;
        Ok(())
    }

    /// The program for so many columns of V, and how many it is made for.
    fn tensor_program(&self, width: usize) -> (&'static str, usize) {
        let single = matches!(self.recipe.terms[..], [Term { kind: Kind::Rbf, .. }]);
        match (single, width <= NARROW) {
            (true, true) => ("exact_rbf_4", 4),
            (true, false) => ("exact_rbf_8", 8),
            (false, true) => ("exact_tensor_4", 4),
            (false, false) => ("exact_tensor_8", 8),
        }
    }

    /// As `partial_products`, on the tensor cores and without the linear part.
    fn tensor_products(
        &self,
        rows: &Exact<'_>,
        (row_centred, centred): (&Centred, &Centred),
        v: &Columns,
        partials: &mut CudaSlice<f64>,
        (first, width): (usize, usize),
    ) -> Result<(), Error> {
        let (program, pass) = self.tensor_program(width);
        let terms = Terms::new(self.recipe);
        let strips = Strips::of(self.n_samples);
        let sizes = [rows.n_samples, self.n_samples, strips.samples].map(|size| size as u64);
        let ints = [centred.pitch, v.n_columns, first, width].map(int);
        let same = i32::from(std::ptr::eq(row_centred, centred));
        // Two stages of rows of 16 features and 4 to keep banks apart, and a tile of V.
        let numbers =
            2 * (TENSOR_ROWS + TENSOR_COLUMNS) * (TENSOR_CHUNK + 4) + TENSOR_COLUMNS * pass;
        let shared_bytes = numbers * size_of::<f64>();
        let function = self.device.function(program, "exact_tensor", shared_bytes)?;
        let mut launch = self.device.stream().launch_builder(&function);
        launch.arg(row_centred.all()).arg(&row_centred.norms).arg(&sizes[0]);
        launch.arg(centred.all()).arg(&centred.norms).arg(&sizes[1]).arg(&v.data).arg(partials);
        ints.iter().for_each(|int| {
            launch.arg(int);
        });
        launch.arg(&sizes[2]).arg(&same).arg(&terms);
        let blocks = rows.n_samples.div_ceil(TENSOR_ROWS);
        let grid = LaunchConfig {
            grid_dim: (blocks as u32, strips.count as u32, 1),
            block_dim: (THREADS, 1, 1),
            shared_mem_bytes: shared_bytes as u32,
        };
        // SAFETY: as in `partial_products`; a strip is whole tiles, and features are padded to
        // whole blocks.
        unsafe { launch.launch(grid) }.map_err(computing)?;
        Ok(())
    }

    fn partial_products(
        &self,
        rows: &Exact<'_>,
        v: &Columns,
        partials: &mut CudaSlice<f64>,
        (first, width): (usize, usize),
    ) -> Result<(), Error> {
        let terms = Terms::new(self.recipe);
        let strips = Strips::of(self.n_samples);
        let sizes = [rows.n_samples, self.n_samples, strips.samples].map(|size| size as u64);
        let ints = [self.n_features, v.n_columns, first, width].map(int);
        let function = self.device.function(self.program(), "exact_product", 0)?;
        let mut launch = self.device.stream().launch_builder(&function);
        launch.arg(rows.all()).arg(&sizes[0]).arg(self.all()).arg(&sizes[1]);
        launch.arg(&v.data).arg(partials);
        ints.iter().for_each(|int| {
            launch.arg(int);
        });
        launch.arg(&sizes[2]).arg(&terms);
        let grid = LaunchConfig {
            grid_dim: (rows.n_samples.div_ceil(TILE) as u32, strips.count as u32, 1),
            block_dim: (THREADS, 1, 1),
            shared_mem_bytes: 0,
        };
        // SAFETY: the arguments are those of the kernel; it writes strips × rows × width
        // numbers, as allocated.
        unsafe { launch.launch(grid) }.map_err(computing)?;
        Ok(())
    }

    fn sum_strips(
        &self,
        partials: &CudaSlice<f64>,
        out: &mut Columns,
        (first, width): (usize, usize),
    ) -> Result<(), Error> {
        let n = out.n_samples as u64;
        let strips = Strips::of(self.n_samples).count;
        let ints = [out.n_columns, first, width, strips].map(int);
        let function = self.device.function(self.program(), "sum_strips", 0)?;
        let mut launch = self.device.stream().launch_builder(&function);
        launch.arg(partials).arg(&mut out.data).arg(&n);
        ints.iter().for_each(|int| {
            launch.arg(int);
        });
        // SAFETY: the arguments are those of the kernel; it writes columns first..first + width of
        // `out`.
        unsafe { launch.launch(one_thread_each(out.n_samples * width)) }.map_err(computing)?;
        Ok(())
    }

    /// out[r · pitch + j] = κ(rows\[r\], columns\[j\]) as f32 or f64; all samples in order where no
    /// columns are given.
    pub(crate) fn values<T: Entry>(
        &self,
        rows: &[u64],
        columns: Option<&[u64]>,
        out: &mut CudaViewMut<'_, T>,
        pitch: usize,
    ) -> Result<(), Error> {
        let terms = Terms::new(self.recipe);
        let what = "row numbers";
        let indices = self.device.upload(what, rows)?;
        let n_columns = columns.map_or(self.n_samples, <[u64]>::len);
        let column_indices =
            columns.map(|columns| self.device.upload(what, columns)).transpose()?;
        let sizes = [pitch, n_columns].map(|size| size as u64);
        let (d, n_rows, null) = (int(self.n_features), int(rows.len()), 0_u64);
        let function = self.device.function(self.program(), T::FUNCTION, 0)?;
        let mut launch = self.device.stream().launch_builder(&function);
        launch.arg(self.all()).arg(&indices);
        match &column_indices {
            Some(columns) => launch.arg(columns),
            None => launch.arg(&null),
        };
        launch.arg(out).arg(&sizes[0]).arg(&sizes[1]).arg(&d).arg(&n_rows).arg(&terms);
        let grid = LaunchConfig {
            grid_dim: (n_columns.div_ceil(TILE) as u32, rows.len().div_ceil(TILE) as u32, 1),
            block_dim: (THREADS, 1, 1),
            shared_mem_bytes: 0,
        };
        // SAFETY: the arguments are those of the kernel, a null pointer standing for no columns;
        // rows and columns are below n_samples (callers check it), and `out` has a row of `pitch`
        // for each.
        unsafe { launch.launch(grid) }.map_err(computing)?;
        Ok(())
    }

    /// Features, all on the GPU.
    pub(crate) fn all(&self) -> &CudaSlice<f64> {
        self.features.expect("features are on the GPU where they are taken as they are")
    }

    fn program(&self) -> &'static str {
        ["exact_0", "exact_1", "exact_2", "exact_3"][self.recipe.distances()]
    }
}

/// f32 or f64: what rows of K come as.
pub trait Entry: DeviceRepr + ValidAsZeroBits + Clone + Default {
    #[doc(hidden)]
    const FUNCTION: &'static str;
}

impl Entry for f32 {
    const FUNCTION: &'static str = "rows_f32";
}

impl Entry for f64 {
    const FUNCTION: &'static str = "rows_f64";
}

fn computing(error: cudarc::driver::DriverError) -> Error {
    Error::from_driver("computing kernel values", error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use argwhy_core::Kernel;

    #[test]
    fn pairs_fit_their_buffer_and_cover_all_groups() {
        for (n_samples, width) in [(16_384, 3), (100_000, 8), (1_000_000, 3)] {
            let pairs = Pairs::of(n_samples, width);
            assert!(pairs.n_groups * GROUP >= n_samples && pairs.batch >= 1);
            assert!(2 * pairs.partials(width) * size_of::<f64>() <= PAIR_BYTES, "{pairs:?}");
        }
    }

    #[test]
    fn terms_are_laid_out_as_in_the_kernel() {
        // weight, rate, kind, count and its padding, linear, constant.
        assert_eq!(size_of::<Terms>(), 64 + 64 + 32 + 8 + 8 + 8);
        let terms = vec![Kernel::Matern32 { gamma: 0.5 }, Kernel::Linear];
        let terms = Terms::new(&Recipe::new(&Kernel::Sum { terms }).unwrap());
        assert_eq!((terms.count, terms.kind[0], terms.rate[0], terms.linear), (1, 2, 3.0, 1.0));
    }
}
