//! Launches of `kernels/factor.cu`: B with K ≈ BᵀB, grown by pivots; `inverse` has what follows
//! from it.
#![allow(unsafe_code)]

mod descent;
mod inverse;
mod small;

use crate::device::{Device, int};
use crate::error::Error;
use crate::fused::one_thread_each;
use crate::operator::failed;
use crate::products::Products;
use argwhy_core::operator::{Descent, RemoteFactor};
use cudarc::driver::{CudaSlice, CudaView, DriverError, LaunchConfig, PushKernelArg};
use descent::Beside;
use inverse::{GATHERED, Inverse, strips};
use ndarray::{ArrayView2, ArrayViewMut2};
use std::sync::Arc;

/// Rows and columns of a block's product, `TILE` in `kernels/factor.cu`, and `CHUNK` there.
const TILE: usize = 64;
const CHUNK: usize = 16;
/// Pivots of a round.
const PROPOSALS: usize = 128;

/// B and what goes with it on a GPU.
pub(crate) struct Factor {
    products: Arc<Products>,
    /// √w of a weighted problem.
    roots: Option<CudaSlice<f64>>,
    n_samples: usize,
    /// Numbers of a row of B: n_samples, padded.
    pitch: usize,
    rank: usize,
    /// The first rows, which no pivot brought and no pivot's row of K knows of.
    n_beside: usize,
    /// The same in f64, once B is whole.
    beside: Option<Beside>,
    rows: CudaSlice<f32>,
    growing: Option<Growing>,
    inverse: Option<Inverse>,
    n_dimensions: usize,
}

/// What is needed until B is whole: K[pivots, :] before and after, the residual diagonal and what
/// of it is rounding.
struct Growing {
    panels: [CudaSlice<f64>; 2],
    diagonal: CudaSlice<f64>,
    floor: CudaSlice<f64>,
    /// The rows that no pivot brought.
    beside: Vec<CudaSlice<f64>>,
}

impl Factor {
    /// Room for up to `max_rank` rows.
    pub(crate) fn new(
        products: &Arc<Products>,
        max_rank: usize,
        n_dimensions: usize,
        roots: Option<&[f64]>,
    ) -> Result<Self, Error> {
        let device = products.device();
        let n_samples = products.n_samples();
        let pitch = n_samples.next_multiple_of(TILE);
        let what = "the preconditioner";
        let panel = || device.zeros("rows of K", PROPOSALS * pitch);
        Ok(Self {
            products: Arc::clone(products),
            roots: roots.map(|roots| device.upload(what, roots)).transpose()?,
            n_samples,
            pitch,
            rank: 0,
            n_beside: 0,
            beside: None,
            rows: device.zeros(what, rows_for(max_rank) * pitch)?,
            growing: Some(Growing {
                panels: [panel()?, panel()?],
                diagonal: device.zeros(what, n_samples)?,
                floor: device.zeros(what, n_samples)?,
                beside: Vec::new(),
            }),
            inverse: None,
            n_dimensions,
        })
    }

    /// Bytes on the GPU for the rows of a factor of this rank.
    pub(crate) fn row_bytes(n_samples: usize, rank: usize) -> u64 {
        (rows_for(rank) * n_samples.next_multiple_of(TILE) * size_of::<f32>()) as u64
    }

    /// What it takes besides while it grows.
    pub(crate) fn growing_bytes(n_samples: usize) -> u64 {
        let pitch = n_samples.next_multiple_of(TILE);
        ((2 * PROPOSALS * pitch + 4 * n_samples) * size_of::<f64>()) as u64
    }

    /// And while it is used: the full Gram matrix, those of the dimensions and their inverses,
    /// partial sums, and the vectors of conjugate gradients.
    pub(crate) fn used_bytes(n_samples: usize, rank: usize, n_dimensions: usize) -> u64 {
        let side = rank.next_multiple_of(TILE);
        let squares = 1 + 2 * n_dimensions + strips(side, 1 << 40).1;
        let small = squares * side * side * size_of::<f64>() + side * GATHERED * size_of::<f32>();
        (small + 12 * n_samples * n_dimensions * size_of::<f64>()) as u64
    }

    fn device(&self) -> &Device {
        self.products.device()
    }

    /// B at `samples`, rank × samples.len().
    fn try_gather(&self, samples: &[usize]) -> Result<Vec<f64>, Error> {
        if self.rank == 0 || samples.is_empty() {
            return Ok(Vec::new());
        }
        let device = self.device();
        let numbers = device.upload("row numbers", &self.products.numbers(samples)?)?;
        let mut out = device.zeros::<f64>("columns of B", self.rank * samples.len())?;
        let sizes = [self.pitch, samples.len()].map(|size| size as u64);
        let function = device.function("factor", "gather_f64", 0)?;
        let mut launch = device.stream().launch_builder(&function);
        launch.arg(&self.rows).arg(&sizes[0]).arg(&numbers).arg(&sizes[1]).arg(&sizes[1]);
        launch.arg(&mut out).arg(&sizes[1]);
        let grid = LaunchConfig {
            grid_dim: (samples.len().div_ceil(128) as u32, self.rank as u32, 1),
            block_dim: (128, 1, 1),
            shared_mem_bytes: 0,
        };
        // SAFETY: the arguments are those of the kernel; `numbers` checked the samples, and B has
        // `rank` rows.
        unsafe { launch.launch(grid) }.map_err(gathering)?;
        device.download(&out)
    }

    fn try_append(
        &mut self,
        pivots: &[usize],
        triangle: &[f64],
        diagonal: &mut [f64],
        floor: &[f64],
    ) -> Result<(), Error> {
        let (products, device) = (Arc::clone(&self.products), self.products.device().clone());
        let mut growing = self.growing.take().expect("a factor grows before it is used");
        if self.rank == self.n_beside {
            growing.diagonal = device.upload("the preconditioner", diagonal)?;
            growing.floor = device.upload("the preconditioner", floor)?;
        }
        let numbers = products.numbers(pivots)?;
        let Growing { panels: [panel, found], .. } = &mut growing;
        products.rows_into(&numbers, panel, self.pitch)?;
        let numbers = device.upload("row numbers", &numbers)?;
        self.weigh(&device, panel, &numbers)?;
        self.subtract_known(&device, panel, &numbers)?;
        combine(&device, triangle, pivots.len(), panel, found, self.pitch)?;
        self.keep(&device, &mut growing, &numbers)?;
        device.download_into(&growing.diagonal, diagonal)?;
        self.growing = Some(growing);
        self.rank += pivots.len();
        Ok(())
    }

    /// The rows of a weighted K.
    fn weigh(
        &self,
        device: &Device,
        panel: &mut CudaSlice<f64>,
        pivots: &CudaSlice<u64>,
    ) -> Result<(), Error> {
        let Some(roots) = &self.roots else { return Ok(()) };
        let sizes = [self.pitch, self.n_samples].map(|size| size as u64);
        let count = int(pivots.len());
        let function = device.function("factor", "weigh_panel", 0)?;
        let mut launch = device.stream().launch_builder(&function);
        launch.arg(panel).arg(&sizes[0]).arg(roots).arg(pivots).arg(&sizes[1]).arg(&count);
        // SAFETY: the arguments are those of the kernel; the panel has a row of `pitch` a pivot.
        unsafe { launch.launch(one_thread_each(self.n_samples)) }.map_err(growing_rows)?;
        Ok(())
    }

    /// The rows that pivots brought.
    fn pivot_rows(&self) -> CudaView<'_, f32> {
        self.rows.slice(self.n_beside * self.pitch..)
    }

    /// panel −= B_SᵀB, of the rows that pivots brought.
    fn subtract_known(
        &self,
        device: &Device,
        panel: &mut CudaSlice<f64>,
        pivots: &CudaSlice<u64>,
    ) -> Result<(), Error> {
        let (known, known_rows) = (self.rank - self.n_beside, self.pivot_rows());
        if known == 0 {
            return Ok(());
        }
        let depth = known.next_multiple_of(CHUNK);
        let rows = pivots.len().next_multiple_of(TILE);
        let mut weights = device.zeros::<f64>("columns of B", rows * depth)?;
        let sizes = [self.pitch, depth].map(|size| size as u64);
        let ints = [known, pivots.len(), depth].map(int);
        let function = device.function("factor", "gather_turned", 0)?;
        let mut launch = device.stream().launch_builder(&function);
        launch.arg(&known_rows).arg(&sizes[0]).arg(pivots).arg(&ints[0]).arg(&mut weights);
        launch.arg(&sizes[1]);
        let grid = LaunchConfig {
            grid_dim: (known.div_ceil(128) as u32, pivots.len() as u32, 1),
            block_dim: (128, 1, 1),
            shared_mem_bytes: 0,
        };
        // SAFETY: the arguments are those of the kernel; `weights` has a row of `depth` a pivot.
        unsafe { launch.launch(grid) }.map_err(growing_rows)?;

        let function = device.function("factor", "subtract_known", 0)?;
        let mut launch = device.stream().launch_builder(&function);
        launch.arg(&weights).arg(&sizes[1]).arg(&known_rows).arg(panel).arg(&sizes[0]);
        launch.arg(&ints[1]).arg(&ints[2]);
        // SAFETY: the arguments are those of the kernel; weights are padded with zeros to whole
        // tiles and chunks, and `rows_for` made room for `depth` rows of B from these on.
        unsafe { launch.launch(tiles(self.pitch, rows)) }.map_err(growing_rows)?;
        Ok(())
    }

    /// The rows found become B's, and lower the residual diagonal.
    fn keep(
        &mut self,
        device: &Device,
        growing: &mut Growing,
        pivots: &CudaSlice<u64>,
    ) -> Result<(), Error> {
        let Growing { panels: [_, found], diagonal, floor, .. } = growing;
        let sizes = [self.pitch, self.n_samples].map(|size| size as u64);
        let ints = [self.rank, pivots.len()].map(int);
        let function = device.function("factor", "append_rows", 0)?;
        let mut launch = device.stream().launch_builder(&function);
        launch.arg(&*found).arg(&mut self.rows).arg(&sizes[0]).arg(&mut *diagonal).arg(&*floor);
        launch.arg(&sizes[1]).arg(&ints[0]).arg(&ints[1]);
        // SAFETY: the arguments are those of the kernel; B has room for the rows, as the caller
        // keeps to `max_rank`.
        unsafe { launch.launch(one_thread_each(self.n_samples)) }.map_err(growing_rows)?;

        let function = device.function("factor", "clear_pivots", 0)?;
        let mut launch = device.stream().launch_builder(&function);
        launch.arg(diagonal).arg(pivots).arg(&ints[1]);
        // SAFETY: as above; pivots are samples.
        unsafe { launch.launch(one_thread_each(pivots.len())) }.map_err(growing_rows)?;
        Ok(())
    }

    fn try_append_row(&mut self, row: &[f64]) -> Result<(), Error> {
        let at = self.rank * self.pitch;
        let is_late = self.rank > self.n_beside;
        if is_late || row.len() != self.n_samples || at + self.pitch > self.rows.len() {
            return Err(Error::Overflow);
        }
        let device = self.products.device();
        let single: Vec<f32> = row.iter().map(|v| *v as f32).collect();
        let mut place = self.rows.slice_mut(at..at + row.len());
        let copied = device.stream().memcpy_htod(&single, &mut place);
        copied.map_err(growing_rows)?;
        let growing = self.growing.as_mut().ok_or(Error::Overflow)?;
        growing.beside.push(device.upload("a trend", row)?);
        self.rank += 1;
        self.n_beside = self.rank;
        Ok(())
    }
}

impl RemoteFactor for Factor {
    fn rank(&self) -> usize {
        self.rank
    }

    fn n_proposals(&self) -> usize {
        PROPOSALS
    }

    fn gather(&self, samples: &[usize]) -> Result<Vec<f64>, argwhy_core::Error> {
        self.try_gather(samples).map_err(failed)
    }

    fn append(
        &mut self,
        pivots: &[usize],
        triangle: &[f64],
        diagonal: &mut [f64],
        floor: &[f64],
    ) -> Result<(), argwhy_core::Error> {
        self.try_append(pivots, triangle, diagonal, floor).map_err(failed)
    }

    fn append_row(&mut self, row: &[f64]) -> Result<(), argwhy_core::Error> {
        self.try_append_row(row).map_err(failed)
    }

    fn update(&mut self, free: ArrayView2<'_, bool>, ridge: f64) -> Result<(), argwhy_core::Error> {
        self.try_update(free, ridge).map_err(failed)
    }

    fn apply(
        &self,
        dimensions: &[usize],
        v: ArrayView2<'_, f64>,
        out: ArrayViewMut2<'_, f64>,
    ) -> Result<(), argwhy_core::Error> {
        self.try_apply(dimensions, v, out).map_err(failed)
    }

    fn descent(
        &self,
        rhs: ArrayView2<'_, f64>,
        ridge: f64,
        exact: bool,
    ) -> Result<Option<Box<dyn Descent + '_>>, argwhy_core::Error> {
        Ok(Some(Box::new(self.try_descent(rhs, ridge, exact).map_err(failed)?)))
    }
}

/// found = L⁻¹ panel, for the lower triangle L, column-major, of `m` rows.
fn combine(
    device: &Device,
    triangle: &[f64],
    m: usize,
    panel: &CudaSlice<f64>,
    found: &mut CudaSlice<f64>,
    pitch: usize,
) -> Result<(), Error> {
    let (rows, depth) = (m.next_multiple_of(TILE), m.next_multiple_of(CHUNK));
    let mut weights = vec![0.0; rows * depth];
    for (row, inverse) in weights.chunks_mut(depth).zip(inverted(triangle, m).chunks(m)) {
        row[..m].copy_from_slice(inverse);
    }
    let weights = device.upload("a triangle", &weights)?;
    let sizes = [depth, pitch].map(|size| size as u64);
    let ints = [m, depth].map(int);
    let function = device.function("factor", "combine_rows", 0)?;
    let mut launch = device.stream().launch_builder(&function);
    launch.arg(&weights).arg(&sizes[0]).arg(panel).arg(found).arg(&sizes[1]);
    launch.arg(&ints[0]).arg(&ints[1]);
    // SAFETY: the arguments are those of the kernel; weights are padded with zeros, and panels have
    // PROPOSALS rows, a multiple of a chunk.
    unsafe { launch.launch(tiles(pitch, rows)) }.map_err(growing_rows)?;
    Ok(())
}

/// The inverse of a lower triangle, column-major, row by row.
fn inverted(triangle: &[f64], m: usize) -> Vec<f64> {
    let mut inverse = vec![0.0; m * m];
    for c in 0..m {
        for r in c..m {
            let known: f64 = (c..r).map(|k| triangle[k * m + r] * inverse[k * m + c]).sum();
            let unit = if r == c { 1.0 } else { 0.0 };
            inverse[r * m + c] = (unit - known) / triangle[r * m + r];
        }
    }
    inverse
}

/// Rows of B with room for `max_rank`: whole tiles, and a chunk more for those that no pivot
/// brought.
fn rows_for(max_rank: usize) -> usize {
    (max_rank + CHUNK).next_multiple_of(TILE)
}

/// A block of threads for each tile of columns and of rows.
fn tiles(n_columns: usize, n_rows: usize) -> LaunchConfig {
    LaunchConfig {
        grid_dim: ((n_columns / TILE) as u32, (n_rows / TILE) as u32, 1),
        block_dim: (128, 1, 1),
        shared_mem_bytes: 0,
    }
}

fn gathering(error: DriverError) -> Error {
    Error::from_driver("gathering columns of the preconditioner", error)
}

fn growing_rows(error: DriverError) -> Error {
    Error::from_driver("building the preconditioner", error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_triangle_times_its_inverse_is_the_identity() {
        let m = 5;
        let triangle: Vec<f64> = (0..m * m)
            .map(|at| (at / m, at % m))
            .map(|(c, r)| if r < c { 0.0 } else { 1.0 + ((3 * c + r) as f64).sin() / 2.0 })
            .collect();
        let inverse = inverted(&triangle, m);
        for r in 0..m {
            for c in 0..m {
                let sum: f64 = (0..m).map(|k| triangle[k * m + r] * inverse[k * m + c]).sum();
                let expected = if r == c { 1.0 } else { 0.0 };
                assert!((sum - expected).abs() < 1e-14, "{r} {c}: {sum}");
            }
        }
    }
}
