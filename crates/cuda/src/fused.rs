//! Launches of `kernels/pack.cu` and `kernels/fused.cu`: one term of the kernel, times V.
#![allow(unsafe_code)]

use crate::device::{Device, int};
use crate::error::Error;
use crate::plan::{CHUNK, Plan, Stages, TILE};
use crate::products::Columns;
use crate::recipe::{Kind, Term};
use cudarc::driver::{CudaSlice, LaunchConfig, PushKernelArg};
use std::f64::consts::LOG2_E;

/// How closely products follow the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// Features and kernel values rounded to 11 bits, as tf32 has: the exact kernel of samples
    /// moved by rounding, its values rounded. For iterations that something more exact corrects.
    Fast,
    /// 22 bits of both, sums in f32 and f64: about what f32 arithmetic gives.
    Fine,
}

/// Half the exponent by which kernel values are scaled: `SHIFT / 2` in `kernels/fused.cu`.
const HALF_SHIFT: f64 = 5.0;
/// Largest scaled feature: that of f16, with room for rounding.
pub(crate) const LARGEST_FEATURE: f64 = 6e4;
/// Bytes that the buffers of a product take at most, about.
pub(crate) const SCRATCH_BYTES: u64 = 600 << 20;
/// Threads of a block of the fused kernel.
const THREADS: u32 = 128;

/// Features packed for one term of the kernel.
#[derive(Debug)]
pub(crate) struct Packed {
    term: Term,
    n_samples: usize,
    n_chunks: usize,
    /// Two halves, or one f32, a feature.
    features: CudaSlice<u16>,
    norms_high: CudaSlice<f32>,
    norms_full: CudaSlice<f32>,
}

/// Buffers that products leave for the next one.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    rows: Option<CudaSlice<f32>>,
    columns: Option<CudaSlice<f32>>,
    v: Option<CudaSlice<u16>>,
}

/// What centred features are multiplied with, so that the exponent is an inner product less half
/// the squared norms.
pub(crate) fn feature_scale(term: &Term) -> f64 {
    let rate = term.kind.rate(term.gamma);
    match term.kind {
        Kind::Rbf => (2.0 * LOG2_E * rate).sqrt(),
        Kind::Laplace => LOG2_E * rate,
        Kind::Matern32 | Kind::Matern52 => (2.0 * rate).sqrt(),
    }
}

impl Packed {
    /// `features`: n_samples × n_features on the GPU, row by row; `means`: one a feature.
    pub(crate) fn new(
        device: &Device,
        term: Term,
        features: &CudaSlice<f64>,
        means: &CudaSlice<f64>,
        n_samples: usize,
    ) -> Result<Self, Error> {
        let n_features = means.len();
        let n_chunks = n_features.div_ceil(CHUNK).max(1);
        let padded = n_samples.div_ceil(TILE) * TILE;
        let what = "packed features";
        let norms = if term.kind == Kind::Laplace { 1 } else { padded };
        let mut packed = Self {
            term,
            n_samples,
            n_chunks,
            features: device.zeros(what, 2 * padded * n_chunks * CHUNK)?,
            norms_high: device.zeros(what, norms)?,
            norms_full: device.zeros(what, norms)?,
        };
        let scale = feature_scale(&term);
        let shift = if term.kind == Kind::Rbf { HALF_SHIFT } else { 0.0 };
        let (n, p) = (n_samples as u64, padded as u64);
        let (d, chunks) = (int(n_features), int(n_chunks));
        let laplace = term.kind == Kind::Laplace;
        let name = if laplace { "pack_floats" } else { "pack_halves" };
        let function = device.function("pack", name, 0)?;
        let mut launch = device.stream().launch_builder(&function);
        launch.arg(features).arg(means).arg(&scale);
        if laplace {
            launch.arg(&mut packed.features);
        } else {
            launch.arg(&shift).arg(&mut packed.features);
            launch.arg(&mut packed.norms_high).arg(&mut packed.norms_full);
        }
        launch.arg(&n).arg(&p).arg(&d).arg(&chunks);
        // SAFETY: the arguments are those of the kernel in number, order and type; it writes
        // `padded` rows, as allocated.
        unsafe { launch.launch(one_thread_each(padded)) }.map_err(packing)?;
        Ok(packed)
    }

    /// `out += K·v` for this term's K, columns `first..first + width` (at most 8).
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn add_product(
        &self,
        device: &Device,
        precision: Precision,
        v: &Columns,
        largest: &CudaSlice<u64>,
        out: &mut Columns,
        (first, width): (usize, usize),
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        let parts = parts(self.term.kind, precision);
        let plan = Plan::new(self.n_samples, width, self.n_chunks, parts);
        scratch.reserve(device, &plan)?;
        self.pack_v(device, &plan, v, largest, first, scratch)?;
        for first_group in (0..plan.n_groups).step_by(plan.batch) {
            self.multiply(device, precision, &plan, first_group, scratch)?;
            self.reduce(device, &plan, first_group, largest, out, first, scratch)?;
        }
        Ok(())
    }

    fn pack_v(
        &self,
        device: &Device,
        plan: &Plan,
        v: &Columns,
        largest: &CudaSlice<u64>,
        first: usize,
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        let padded = plan.n_tiles * TILE;
        let (n, p) = (self.n_samples as u64, padded as u64);
        let (columns, first, width) = (int(v.n_columns), int(first), int(plan.width));
        let groups = int(plan.v_groups);
        let function = device.function("pack", "pack_v", 0)?;
        let mut launch = device.stream().launch_builder(&function);
        launch.arg(&v.data).arg(largest).arg(scratch.v.as_mut().expect("reserved"));
        launch.arg(&n).arg(&p).arg(&columns).arg(&first).arg(&width).arg(&groups);
        // SAFETY: as in `new`; `reserve` made room for `padded` rows of 8 halves a group.
        unsafe { launch.launch(one_thread_each(padded)) }.map_err(packing)?;
        Ok(())
    }

    /// Partial sums of the pairs (a, b) with a in `first..first + batch`.
    fn multiply(
        &self,
        device: &Device,
        precision: Precision,
        plan: &Plan,
        first: usize,
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        let program = program(self.term.kind, precision, plan.v_groups);
        let parts = parts(self.term.kind, precision);
        // Two bytes a half; differences take one f32, which is as much as two halves.
        let chunk_bytes = TILE * CHUNK * 2 * parts;
        let stages = Stages::new(plan, self.n_chunks, chunk_bytes, device.shared_memory()?);
        let function = device.function(program, "fused", stages.shared_bytes)?;
        let norms = if parts == 1 { &self.norms_high } else { &self.norms_full };
        let ints = [
            plan.width,
            plan.n_tiles,
            plan.group_tiles,
            plan.n_groups,
            first,
            self.n_chunks,
            stages.chunks,
            stages.count,
            usize::from(stages.resident),
        ]
        .map(int);
        let mut launch = device.stream().launch_builder(&function);
        launch.arg(&self.features).arg(norms).arg(scratch.v.as_ref().expect("reserved"));
        launch.arg(scratch.rows.as_mut().expect("reserved"));
        launch.arg(scratch.columns.as_mut().expect("reserved"));
        ints.iter().for_each(|int| {
            launch.arg(int);
        });
        let left = plan.n_groups - first;
        let grid = LaunchConfig {
            grid_dim: (plan.batch.min(left) as u32, left as u32, 1),
            block_dim: (THREADS, 1, 1),
            shared_mem_bytes: stages.shared_bytes as u32,
        };
        // SAFETY: the arguments are those of the kernel; the plan that sized the buffers also
        // bounds what it writes.
        unsafe { launch.launch(grid) }.map_err(multiplying)?;
        Ok(())
    }

    #[allow(clippy::too_many_arguments)]
    fn reduce(
        &self,
        device: &Device,
        plan: &Plan,
        first: usize,
        largest: &CudaSlice<u64>,
        out: &mut Columns,
        first_column: usize,
        scratch: &Scratch,
    ) -> Result<(), Error> {
        let n = self.n_samples as u64;
        let count = plan.batch.min(plan.n_groups - first);
        let ints = [
            out.n_columns,
            first_column,
            plan.width,
            plan.group_rows(),
            plan.n_groups,
            first,
            count,
        ]
        .map(int);
        let function = device.function("pack", "reduce_partials", 0)?;
        let mut launch = device.stream().launch_builder(&function);
        launch.arg(scratch.rows.as_ref().expect("reserved"));
        launch.arg(scratch.columns.as_ref().expect("reserved"));
        launch.arg(largest).arg(&mut out.data).arg(&self.term.weight).arg(&n);
        ints.iter().for_each(|int| {
            launch.arg(int);
        });
        let rows = self.n_samples - first * plan.group_rows();
        // SAFETY: as in `multiply`; rows from n_samples on are left out.
        unsafe { launch.launch(one_thread_each(rows * plan.width)) }.map_err(multiplying)?;
        Ok(())
    }
}

impl Scratch {
    fn reserve(&mut self, device: &Device, plan: &Plan) -> Result<(), Error> {
        let what = "partial sums";
        reserve(device, what, &mut self.rows, plan.partials())?;
        reserve(device, what, &mut self.columns, plan.partials())?;
        reserve(device, "packed vectors", &mut self.v, plan.n_tiles * TILE * 8 * plan.v_groups)
    }
}

fn reserve<T: cudarc::driver::DeviceRepr + cudarc::driver::ValidAsZeroBits>(
    device: &Device,
    what: &'static str,
    buffer: &mut Option<CudaSlice<T>>,
    len: usize,
) -> Result<(), Error> {
    if buffer.as_ref().is_none_or(|buffer| buffer.len() < len) {
        // The old one goes first: both need not fit.
        *buffer = None;
        *buffer = Some(device.zeros(what, len)?);
    }
    Ok(())
}

/// The largest |v| of each column, as bits.
pub(crate) fn largest_entries(device: &Device, v: &Columns) -> Result<CudaSlice<u64>, Error> {
    let mut largest = device.zeros("the largest entries", v.n_columns)?;
    let (n, columns) = (v.n_samples as u64, int(v.n_columns));
    let function = device.function("pack", "largest_entries", 0)?;
    let mut launch = device.stream().launch_builder(&function);
    launch.arg(&v.data).arg(&mut largest).arg(&n).arg(&columns);
    let blocks = v.n_samples.div_ceil(256).min(256) as u32;
    let grid = LaunchConfig {
        grid_dim: (blocks, v.n_columns as u32, 1),
        block_dim: (256, 1, 1),
        shared_mem_bytes: 0,
    };
    // SAFETY: the arguments are those of the kernel, which writes one number a column.
    unsafe { launch.launch(grid) }.map_err(packing)?;
    Ok(largest)
}

/// In how many halves a feature is taken.
fn parts(kind: Kind, precision: Precision) -> usize {
    if kind != Kind::Laplace && precision == Precision::Fast { 1 } else { 2 }
}

/// The program for a kind of kernel.
fn program(kind: Kind, precision: Precision, v_groups: usize) -> &'static str {
    let names = match (kind, precision) {
        (Kind::Rbf, Precision::Fast) => ["fused_rbf_1_1", "fused_rbf_1_2"],
        (Kind::Rbf, Precision::Fine) => ["fused_rbf_2_1", "fused_rbf_2_2"],
        (Kind::Laplace, _) => ["fused_laplace_2_1", "fused_laplace_2_2"],
        (Kind::Matern32, Precision::Fast) => ["fused_matern32_1_1", "fused_matern32_1_2"],
        (Kind::Matern32, Precision::Fine) => ["fused_matern32_2_1", "fused_matern32_2_2"],
        (Kind::Matern52, Precision::Fast) => ["fused_matern52_1_1", "fused_matern52_1_2"],
        (Kind::Matern52, Precision::Fine) => ["fused_matern52_2_1", "fused_matern52_2_2"],
    };
    names[v_groups - 1]
}

/// One thread for each of `count` things.
pub(crate) fn one_thread_each(count: usize) -> LaunchConfig {
    LaunchConfig {
        grid_dim: (count.div_ceil(256).max(1) as u32, 1, 1),
        block_dim: (256, 1, 1),
        shared_mem_bytes: 0,
    }
}

fn packing(error: cudarc::driver::DriverError) -> Error {
    Error::from_driver("packing", error)
}

fn multiplying(error: cudarc::driver::DriverError) -> Error {
    Error::from_driver("multiplying", error)
}
