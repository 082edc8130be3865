//! Launches of `kernels/pack.cu` and `kernels/fused.cu`: one term of the kernel, times V.
#![allow(unsafe_code)]

use crate::device::{Device, int};
use crate::error::Error;
use crate::panels::{Features, Panel, Panels, Step};
use crate::parts::Part;
use crate::plan::{CHUNK, Plan, Stages, TILE};
use crate::products::Columns;
use crate::recipe::{Kind, Term};
use cudarc::driver::{CudaSlice, CudaView, LaunchConfig, PushKernelArg};
use std::f64::consts::LOG2_E;
use std::ops::Range;

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
    features: Features<u16>,
    norms_high: CudaSlice<f32>,
    norms_full: CudaSlice<f32>,
}

/// As messages name what `Packed` holds.
const PACKED: &str = "packed features";

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
        let n_rows = n_samples.next_multiple_of(TILE);
        let mut packed = Self::unfilled(device, term, means.len(), n_samples)?;
        let data = packed.fill(device, &features.as_view(), means, (0, n_samples))?;
        packed.features = Features::Resident { data, n_rows };
        Ok(packed)
    }

    /// The same in panels of `panel_rows`, which `push` brings.
    pub(crate) fn streamed(
        device: &Device,
        term: Term,
        n_features: usize,
        n_samples: usize,
        panel_rows: usize,
    ) -> Result<Self, Error> {
        let mut packed = Self::unfilled(device, term, n_features, n_samples)?;
        let width = 2 * packed.n_chunks * CHUNK;
        packed.features = Features::Streamed(Panels::new(device, panel_rows, width)?);
        Ok(packed)
    }

    /// The features of the next samples, from number `first` on.
    pub(crate) fn push(
        &mut self,
        device: &Device,
        features: &CudaView<'_, f64>,
        means: &CudaSlice<f64>,
        first: usize,
    ) -> Result<(), Error> {
        let panel = self.fill(device, features, means, (first, features.len() / means.len()))?;
        self.features.push(&panel)
    }

    fn unfilled(
        device: &Device,
        term: Term,
        n_features: usize,
        n_samples: usize,
    ) -> Result<Self, Error> {
        let n_chunks = n_features.div_ceil(CHUNK).max(1);
        let norms = if term.kind == Kind::Laplace { 1 } else { n_samples.next_multiple_of(TILE) };
        Ok(Self {
            term,
            n_samples,
            n_chunks,
            features: Features::Resident { data: device.zeros(PACKED, 1)?, n_rows: 0 },
            norms_high: device.zeros(PACKED, norms)?,
            norms_full: device.zeros(PACKED, norms)?,
        })
    }

    /// Packs the features of samples `first..first + count`, and their norms where those belong.
    fn fill(
        &mut self,
        device: &Device,
        features: &CudaView<'_, f64>,
        means: &CudaSlice<f64>,
        (first, count): (usize, usize),
    ) -> Result<CudaSlice<u16>, Error> {
        let padded = count.next_multiple_of(TILE);
        let mut out = device.zeros::<u16>(PACKED, 2 * padded * self.n_chunks * CHUNK)?;
        let scale = feature_scale(&self.term);
        let shift = if self.term.kind == Kind::Rbf { HALF_SHIFT } else { 0.0 };
        let (n, p) = (count as u64, padded as u64);
        let (d, chunks) = (int(means.len()), int(self.n_chunks));
        let laplace = self.term.kind == Kind::Laplace;
        let name = if laplace { "pack_floats" } else { "pack_halves" };
        let function = device.function("pack", name, 0)?;
        let norms = if laplace { 0..1 } else { first..first + padded };
        let mut high = self.norms_high.slice_mut(norms.clone());
        let mut full = self.norms_full.slice_mut(norms);
        let mut launch = device.stream().launch_builder(&function);
        launch.arg(features).arg(means).arg(&scale);
        if laplace {
            launch.arg(&mut out);
        } else {
            launch.arg(&shift).arg(&mut out).arg(&mut high).arg(&mut full);
        }
        launch.arg(&n).arg(&p).arg(&d).arg(&chunks);
        // SAFETY: the arguments are those of the kernel in number, order and type; it writes
        // `padded` rows, as allocated.
        unsafe { launch.launch(one_thread_each(padded)) }.map_err(packing)?;
        Ok(out)
    }

    /// `out += K·v` for this term's K, columns `first..first + width` (at most 8); of a part, what
    /// that gives.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn add_product(
        &self,
        device: &Device,
        precision: Precision,
        v: &Columns,
        largest: &CudaSlice<u64>,
        out: &mut Columns,
        (first, width): (usize, usize),
        part: Part,
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        let parts = parts(self.term.kind, precision);
        let plan = Plan::new(self.n_samples, width, self.n_chunks, parts);
        scratch.reserve(device, &plan)?;
        self.pack_v(device, &plan, v, largest, first, scratch)?;
        let own = part.groups(plan.n_groups);
        for first_group in own.clone().step_by(plan.batch) {
            let groups = (plan.n_groups, plan.group_rows());
            let batch = first_group..(first_group + plan.batch).min(own.end);
            self.features.each_step(groups, batch.clone(), |step, panels| {
                self.multiply(device, precision, &plan, (first_group, step), &panels, scratch)
            })?;
            self.reduce(device, &plan, batch, largest, out, first, scratch)?;
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

    /// Partial sums of the pairs (a, b) of a step; the buffers begin with a = `first`.
    fn multiply(
        &self,
        device: &Device,
        precision: Precision,
        plan: &Plan,
        (first, step): (usize, &Step),
        panels: &[Panel<'_, u16>; 2],
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
            step.a.start,
            step.b.start,
            self.n_chunks,
            stages.chunks,
            stages.count,
            usize::from(stages.resident),
        ]
        .map(int);
        let padded = panels.each_ref().map(|panel| panel.n_rows as u64);
        let first_tiles = panels.each_ref().map(|panel| int(panel.first / TILE));
        let mut launch = device.stream().launch_builder(&function);
        for i in 0..2 {
            launch.arg(panels[i].data).arg(&padded[i]).arg(&first_tiles[i]);
        }
        launch.arg(norms).arg(scratch.v.as_ref().expect("reserved"));
        launch.arg(scratch.rows.as_mut().expect("reserved"));
        launch.arg(scratch.columns.as_mut().expect("reserved"));
        ints.iter().for_each(|int| {
            launch.arg(int);
        });
        let grid = LaunchConfig {
            grid_dim: (step.a.len() as u32, step.b.len() as u32, 1),
            block_dim: (THREADS, 1, 1),
            shared_mem_bytes: stages.shared_bytes as u32,
        };
        // SAFETY: the arguments are those of the kernel; the plan that sized the buffers also
        // bounds what it writes, and the panels have all groups of the step.
        unsafe { launch.launch(grid) }.map_err(multiplying)?;
        Ok(())
    }

    #[allow(clippy::too_many_arguments)]
    fn reduce(
        &self,
        device: &Device,
        plan: &Plan,
        batch: Range<usize>,
        largest: &CudaSlice<u64>,
        out: &mut Columns,
        first_column: usize,
        scratch: &Scratch,
    ) -> Result<(), Error> {
        let n = self.n_samples as u64;
        let ints = [
            out.n_columns,
            first_column,
            plan.width,
            plan.group_rows(),
            plan.n_groups,
            batch.start,
            batch.len(),
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
        let rows = self.n_samples - batch.start * plan.group_rows();
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
