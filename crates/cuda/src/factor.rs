//! Launches of `kernels/factor.cu`: B with K ≈ BᵀB, and (λI + B_FᵀB_F)⁻¹ by Woodbury's identity,
//! (v − B_Fᵀ(λI + B_FB_Fᵀ)⁻¹B_F v)/λ, its inner matrix inverted outright by sweeps.
#![allow(unsafe_code)]

use crate::device::{Device, int};
use crate::error::Error;
use crate::fused::one_thread_each;
use crate::operator::failed;
use crate::products::Products;
use argwhy_core::operator::RemoteFactor;
use cudarc::driver::{CudaSlice, CudaView, CudaViewMut, DriverError, LaunchConfig, PushKernelArg};
use ndarray::{ArrayView2, ArrayViewMut2};
use std::sync::Arc;

/// Rows and columns of a block's product, `TILE` in `kernels/factor.cu`; `CHUNK` there; and
/// `VECTORS`.
const TILE: usize = 64;
const CHUNK: usize = 16;
const VECTORS: usize = 4;
/// Pivots of a round.
const PROPOSALS: usize = 128;
/// Samples whose columns of B are gathered at a time.
const GATHERED: usize = 16_384;
/// Blocks of threads that keep a large GPU busy, and strips of a sum at most.
const ENOUGH_BLOCKS: usize = 1024;
const MOST_STRIPS: usize = 16;
/// Samples that one block of threads sums over in Bv.
const PROJECTED: usize = 8192;

/// B and what goes with it on a GPU.
pub(crate) struct Factor {
    products: Arc<Products>,
    /// √w of a weighted problem.
    roots: Option<CudaSlice<f64>>,
    n_samples: usize,
    /// Numbers of a row of B: n_samples, padded.
    pitch: usize,
    rank: usize,
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
}

/// Everything that follows the free samples.
struct Inverse {
    /// Rows of the small matrices: the rank, padded.
    side: usize,
    ridge: f64,
    /// BBᵀ over all samples.
    full: CudaSlice<f64>,
    dimensions: Vec<Dimension>,
    /// −(λI + B_FB_Fᵀ)⁻¹, one a dimension.
    matrices: CudaSlice<f64>,
    /// One byte a dimension and sample.
    free: CudaSlice<u8>,
}

struct Dimension {
    free: Vec<bool>,
    /// B_FB_Fᵀ; none where an earlier dimension has the same free samples.
    gram: Option<CudaSlice<f64>>,
    same_as: usize,
    /// Whether the inverse is that of `gram`.
    current: bool,
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
            rows: device.zeros(what, max_rank.next_multiple_of(TILE) * pitch)?,
            growing: Some(Growing {
                panels: [panel()?, panel()?],
                diagonal: device.zeros(what, n_samples)?,
                floor: device.zeros(what, n_samples)?,
            }),
            inverse: None,
            n_dimensions,
        })
    }

    /// Bytes on the GPU for a factor of this rank.
    pub(crate) fn bytes(n_samples: usize, rank: usize, n_dimensions: usize) -> u64 {
        let (pitch, side) = (n_samples.next_multiple_of(TILE), rank.next_multiple_of(TILE));
        let rows = side * pitch * size_of::<f32>();
        let panels = 2 * PROPOSALS * pitch * size_of::<f64>();
        // The full Gram matrix, those of the dimensions and their inverses, and partial sums.
        let squares = 1 + 2 * n_dimensions + strips(side, 1 << 40).1;
        let small = squares * side * side * size_of::<f64>() + side * GATHERED * size_of::<f32>();
        (rows + panels.max(small) + 12 * n_samples * n_dimensions * size_of::<f64>()) as u64
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
        if self.rank == 0 {
            growing.diagonal = device.upload("the preconditioner", diagonal)?;
            growing.floor = device.upload("the preconditioner", floor)?;
        }
        let numbers = products.numbers(pivots)?;
        let Growing { panels: [panel, found], .. } = &mut growing;
        products.exact().values(&numbers, None, panel, self.pitch)?;
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

    /// panel −= B_SᵀB.
    fn subtract_known(
        &self,
        device: &Device,
        panel: &mut CudaSlice<f64>,
        pivots: &CudaSlice<u64>,
    ) -> Result<(), Error> {
        if self.rank == 0 {
            return Ok(());
        }
        let depth = self.rank.next_multiple_of(CHUNK);
        let rows = pivots.len().next_multiple_of(TILE);
        let mut weights = device.zeros::<f64>("columns of B", rows * depth)?;
        let sizes = [self.pitch, depth].map(|size| size as u64);
        let ints = [self.rank, pivots.len(), depth].map(int);
        let function = device.function("factor", "gather_turned", 0)?;
        let mut launch = device.stream().launch_builder(&function);
        launch.arg(&self.rows).arg(&sizes[0]).arg(pivots).arg(&ints[0]).arg(&mut weights);
        launch.arg(&sizes[1]);
        let grid = LaunchConfig {
            grid_dim: (self.rank.div_ceil(128) as u32, pivots.len() as u32, 1),
            block_dim: (128, 1, 1),
            shared_mem_bytes: 0,
        };
        // SAFETY: the arguments are those of the kernel; `weights` has a row of `depth` a pivot.
        unsafe { launch.launch(grid) }.map_err(growing_rows)?;

        let function = device.function("factor", "subtract_known", 0)?;
        let mut launch = device.stream().launch_builder(&function);
        launch.arg(&weights).arg(&sizes[1]).arg(&self.rows).arg(panel).arg(&sizes[0]);
        launch.arg(&ints[1]).arg(&ints[2]);
        // SAFETY: the arguments are those of the kernel; weights are padded with zeros to whole
        // tiles and chunks, and B has `depth` rows of `pitch`.
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
        let Growing { panels: [_, found], diagonal, floor } = growing;
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
        if row.len() != self.n_samples || at + self.pitch > self.rows.len() {
            return Err(Error::Overflow);
        }
        let single: Vec<f32> = row.iter().map(|v| *v as f32).collect();
        let mut place = self.rows.slice_mut(at..at + row.len());
        let copied = self.products.device().stream().memcpy_htod(&single, &mut place);
        copied.map_err(growing_rows)?;
        self.rank += 1;
        Ok(())
    }

    fn try_update(&mut self, free: ArrayView2<'_, bool>, ridge: f64) -> Result<(), Error> {
        self.growing = None;
        let mut inverse = match self.inverse.take() {
            Some(inverse) => inverse,
            None => self.first_inverse(ridge)?,
        };
        let bytes: Vec<u8> = free.iter().map(|free| u8::from(*free)).collect();
        inverse.free = self.device().upload("free samples", &bytes)?;
        if ridge != inverse.ridge {
            inverse.ridge = ridge;
            inverse.dimensions.iter_mut().for_each(|dimension| dimension.current = false);
        }
        for j in 0..inverse.dimensions.len() {
            self.follow(&mut inverse, j, free)?;
        }
        if self.rank > 0 {
            self.invert(&mut inverse)?;
        }
        self.inverse = Some(inverse);
        Ok(())
    }

    fn first_inverse(&self, ridge: f64) -> Result<Inverse, Error> {
        let device = self.device();
        let side = self.rank.next_multiple_of(TILE);
        let what = "the preconditioner's matrices";
        let mut full = device.zeros(what, side * side)?;
        let count = self.n_samples.next_multiple_of(CHUNK);
        add_gram(device, &self.rows.as_view(), self.pitch, count, &mut full, side, 1.0)?;
        let dimension = |same_as| Dimension {
            free: vec![true; self.n_samples],
            gram: None,
            same_as,
            current: false,
        };
        Ok(Inverse {
            side,
            ridge,
            full,
            dimensions: (0..self.n_dimensions).map(dimension).collect(),
            matrices: device.zeros(what, self.n_dimensions * side * side)?,
            free: device.zeros(what, 1)?,
        })
    }

    /// Dimension j gets its free samples and their Gram matrix, from the nearest of three starting
    /// points: its last one, that of all samples, zero.
    fn follow(
        &self,
        inverse: &mut Inverse,
        j: usize,
        free: ArrayView2<'_, bool>,
    ) -> Result<(), Error> {
        let now = free.row(j).to_vec();
        if self.rank == 0 {
            inverse.dimensions[j].free = now;
            return Ok(());
        }
        let dimensions = &inverse.dimensions;
        let twin = (0..j).find(|&i| dimensions[i].same_as == i && dimensions[i].free == now);
        if let Some(twin) = twin {
            inverse.dimensions[j] =
                Dimension { free: now, gram: None, same_as: twin, current: true };
            return Ok(());
        }
        let dimension = &mut inverse.dimensions[j];
        let last = if dimension.same_as == j { dimension.gram.take() } else { None };
        if last.is_some() && dimension.free == now && dimension.current {
            dimension.gram = last;
            return Ok(());
        }
        let indices = |keep: &dyn Fn(usize) -> bool| -> Vec<usize> {
            (0..now.len()).filter(|&i| keep(i)).collect()
        };
        let bound = indices(&|i| !now[i]);
        let n_free = now.len() - bound.len();
        let switched = last.as_ref().map(|_| {
            let joined = indices(&|i| now[i] && !dimension.free[i]);
            (joined, indices(&|i| !now[i] && dimension.free[i]))
        });
        let n_switched = switched.as_ref().map_or(usize::MAX, |(a, b)| a.len() + b.len());
        let copy = || {
            let copied = self.device().stream().clone_dtod(&inverse.full);
            copied.map_err(|error| Error::from_driver("copying a matrix", error))
        };
        let (mut gram, joined, left) = match (last, switched) {
            (Some(gram), Some((joined, left))) if n_switched <= n_free.min(bound.len()) => {
                (gram, joined, left)
            }
            _ if n_free < bound.len() => {
                let len = inverse.full.len();
                let zero = self.device().zeros("the preconditioner's matrices", len)?;
                (zero, indices(&|i| now[i]), Vec::new())
            }
            _ => (copy()?, Vec::new(), bound),
        };
        self.add_samples(&mut gram, inverse.side, &joined, 1.0)?;
        self.add_samples(&mut gram, inverse.side, &left, -1.0)?;
        *dimension = Dimension { free: now, gram: Some(gram), same_as: j, current: false };
        Ok(())
    }

    /// gram += sign · B_S B_Sᵀ.
    fn add_samples(
        &self,
        gram: &mut CudaSlice<f64>,
        side: usize,
        samples: &[usize],
        sign: f64,
    ) -> Result<(), Error> {
        if samples.is_empty() || self.rank == 0 {
            return Ok(());
        }
        let device = self.device();
        let width = samples.len().min(GATHERED).next_multiple_of(CHUNK);
        let mut gathered = device.zeros::<f32>("columns of B", side * width)?;
        for samples in samples.chunks(GATHERED) {
            let numbers = device.upload("row numbers", &self.products.numbers(samples)?)?;
            let padded = samples.len().next_multiple_of(CHUNK);
            let sizes = [self.pitch, samples.len(), padded, width].map(|size| size as u64);
            let function = device.function("factor", "gather_f32", 0)?;
            let mut launch = device.stream().launch_builder(&function);
            launch.arg(&self.rows).arg(&sizes[0]).arg(&numbers).arg(&sizes[1]).arg(&sizes[2]);
            launch.arg(&mut gathered).arg(&sizes[3]);
            let grid = LaunchConfig {
                grid_dim: (padded.div_ceil(128) as u32, self.rank as u32, 1),
                block_dim: (128, 1, 1),
                shared_mem_bytes: 0,
            };
            // SAFETY: the arguments are those of the kernel; `gathered` has `side` rows of `width`.
            unsafe { launch.launch(grid) }.map_err(gathering)?;
            add_gram(device, &gathered.as_view(), width, padded, gram, side, sign)?;
        }
        Ok(())
    }

    /// The inverses of all Gram matrices that changed. Where rounding has made one indefinite, a
    /// larger shift still gives a valid, if weaker, preconditioner.
    fn invert(&self, inverse: &mut Inverse) -> Result<(), Error> {
        let Inverse { side, ridge, dimensions, matrices, .. } = inverse;
        let square = *side * *side;
        let owners = dimensions.iter_mut().enumerate().filter(|(j, d)| d.same_as == *j);
        for (j, dimension) in owners.filter(|(_, d)| !d.current) {
            let gram = dimension.gram.as_ref().expect("an owner has a matrix");
            let mut shift = *ridge;
            loop {
                let matrix = &mut matrices.slice_mut(j * square..(j + 1) * square);
                if sweep(self.device(), gram, matrix, (*side, self.rank), shift)? {
                    break;
                }
                shift *= 10.0;
                if !shift.is_finite() {
                    return Err(Error::Overflow);
                }
            }
            dimension.current = true;
        }
        Ok(())
    }

    fn try_apply(
        &self,
        dimensions: &[usize],
        v: ArrayView2<'_, f64>,
        out: ArrayViewMut2<'_, f64>,
    ) -> Result<(), Error> {
        let inverse = self.inverse.as_ref().expect("a preconditioner follows faces first");
        let device = self.device();
        let (n_vectors, n) = v.dim();
        let v = v.as_standard_layout();
        let v = device.upload("vectors", v.as_slice().expect("in standard layout"))?;
        let mut found = device.zeros::<f64>("vectors", n_vectors * n)?;
        for first in (0..n_vectors).step_by(VECTORS) {
            let last = (first + VECTORS).min(n_vectors);
            let part = first * n..last * n;
            let (v, mut found) = (v.slice(part.clone()), found.slice_mut(part));
            self.apply_pass(inverse, &dimensions[first..last], &v, &mut found)?;
        }
        device.download_rows(&found, out)
    }

    fn apply_pass(
        &self,
        inverse: &Inverse,
        dimensions: &[usize],
        v: &CudaView<'_, f64>,
        out: &mut CudaViewMut<'_, f64>,
    ) -> Result<(), Error> {
        let (device, side) = (self.device(), inverse.side);
        let strips = self.n_samples.div_ceil(PROJECTED);
        let what = "projections";
        let len = VECTORS * side.max(1);
        let mut partials = device.zeros::<f64>(what, strips * len)?;
        let mut projected = device.zeros::<f64>(what, len)?;
        let mut weights = device.zeros::<f64>(what, len)?;
        let owners = dimensions.iter().map(|&j| int(inverse.dimensions[j].same_as));
        let owners = device.upload(what, &owners.collect::<Vec<_>>())?;
        let systems = dimensions.iter().map(|&j| int(j)).collect::<Vec<_>>();
        let systems = device.upload(what, &systems)?;
        let sizes = [self.pitch, self.n_samples, PROJECTED].map(|size| size as u64);
        let ints = [dimensions.len(), side, strips].map(int);
        let [vectors, side_int, n_strips] = &ints;
        let grid = |x: usize, y: usize| LaunchConfig {
            grid_dim: (x as u32, y as u32, 1),
            block_dim: (256, 1, 1),
            shared_mem_bytes: 0,
        };
        if side > 0 {
            let function = device.function("factor", "project", 0)?;
            let mut launch = device.stream().launch_builder(&function);
            launch.arg(&self.rows).arg(&sizes[0]).arg(v).arg(&sizes[1]).arg(vectors);
            launch.arg(&sizes[2]).arg(side_int).arg(&mut partials);
            // SAFETY: the arguments are those of the kernel; B has `side` rows, a multiple of 8.
            unsafe { launch.launch(grid(side / 8, strips)) }.map_err(preconditioning)?;

            let function = device.function("factor", "sum_projections", 0)?;
            let mut launch = device.stream().launch_builder(&function);
            launch.arg(&partials).arg(&mut projected).arg(side_int).arg(n_strips);
            // SAFETY: as above; it writes VECTORS × side numbers.
            unsafe { launch.launch(one_thread_each(len)) }.map_err(preconditioning)?;

            let function = device.function("factor", "multiply_small", 0)?;
            let mut launch = device.stream().launch_builder(&function);
            launch.arg(&inverse.matrices).arg(&owners).arg(&projected).arg(&mut weights);
            launch.arg(side_int);
            // SAFETY: as above; owners are dimensions, each with a matrix of side × side.
            unsafe { launch.launch(grid(side / 8, dimensions.len())) }.map_err(preconditioning)?;
        }
        let function = device.function("factor", "expand", 0)?;
        let mut launch = device.stream().launch_builder(&function);
        launch.arg(&self.rows).arg(&sizes[0]).arg(v).arg(&weights).arg(&inverse.free);
        launch.arg(&systems).arg(&inverse.ridge).arg(out).arg(&sizes[1]).arg(vectors).arg(side_int);
        // SAFETY: as above; it writes n_samples numbers a vector.
        unsafe { launch.launch(grid(self.n_samples.div_ceil(256), 1)) }.map_err(preconditioning)?;
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

/// Columns of a strip of a Gram matrix's sum, and how many strips there are: enough blocks of
/// threads for small matrices.
fn strips(side: usize, count: usize) -> (usize, usize) {
    let n_tiles = side / TILE;
    let n_strips = (ENOUGH_BLOCKS / (n_tiles * (n_tiles + 1) / 2).max(1)).clamp(1, MOST_STRIPS);
    let strip = count.div_ceil(n_strips).div_ceil(CHUNK) * CHUNK;
    (strip, count.div_ceil(strip))
}

/// gram += sign · B Bᵀ over the first `count` columns, a multiple of 16, of `side` rows of `pitch`.
fn add_gram(
    device: &Device,
    rows: &CudaView<'_, f32>,
    pitch: usize,
    count: usize,
    gram: &mut CudaSlice<f64>,
    side: usize,
    sign: f64,
) -> Result<(), Error> {
    if side == 0 {
        return Ok(());
    }
    let (strip, n_strips) = strips(side, count);
    let mut partials = device.zeros::<f64>("partial sums", n_strips * side * side)?;
    let sizes = [pitch, count, strip].map(|size| size as u64);
    let (side_int, strips_int) = (int(side), int(n_strips));
    let n_tiles = (side / TILE) as u32;
    let function = device.function("factor", "gram_partials", 0)?;
    let mut launch = device.stream().launch_builder(&function);
    launch.arg(rows).arg(&sizes[0]).arg(&sizes[1]).arg(&sizes[2]).arg(&mut partials).arg(&side_int);
    let grid = LaunchConfig {
        grid_dim: (n_tiles, n_tiles, n_strips as u32),
        block_dim: (128, 1, 1),
        shared_mem_bytes: 0,
    };
    // SAFETY: the arguments are those of the kernel; rows are padded to whole tiles and columns to
    // whole chunks, with zeros.
    unsafe { launch.launch(grid) }.map_err(preconditioning)?;

    let function = device.function("factor", "add_gram", 0)?;
    let mut launch = device.stream().launch_builder(&function);
    launch.arg(&partials).arg(gram).arg(&side_int).arg(&strips_int).arg(&sign);
    // SAFETY: as above; the matrix has side × side numbers.
    unsafe { launch.launch(one_thread_each(side * side)) }.map_err(preconditioning)?;
    Ok(())
}

/// matrix = −(gram + shift I)⁻¹; false where that is not positive definite.
fn sweep(
    device: &Device,
    gram: &CudaSlice<f64>,
    matrix: &mut CudaViewMut<'_, f64>,
    (side, rank): (usize, usize),
    shift: f64,
) -> Result<bool, Error> {
    let (side_int, rank) = (int(side), int(rank));
    let function = device.function("factor", "shifted", 0)?;
    let mut launch = device.stream().launch_builder(&function);
    launch.arg(gram).arg(&mut *matrix).arg(&side_int).arg(&rank).arg(&shift);
    // SAFETY: the arguments are those of the kernel; both have side × side numbers.
    unsafe { launch.launch(one_thread_each(side * side)) }.map_err(preconditioning)?;
    let what = "a sweep";
    let mut pivot = device.zeros::<f64>(what, TILE * TILE)?;
    let mut old = device.zeros::<f64>(what, side * TILE)?;
    let mut swept = device.zeros::<f64>(what, side * TILE)?;
    let mut flag = device.zeros::<i32>(what, 1)?;
    let n_tiles = (side / TILE) as u32;
    let grid = |x, y, threads| LaunchConfig {
        grid_dim: (x, y, 1),
        block_dim: (threads, 1, 1),
        shared_mem_bytes: 0,
    };
    for k in 0..int(side / TILE) {
        let old_matrix = matrix.as_view();
        let function = device.function("factor", "sweep_pivot", 0)?;
        let mut launch = device.stream().launch_builder(&function);
        launch.arg(&old_matrix).arg(&side_int).arg(&k).arg(&mut pivot).arg(&mut flag);
        // SAFETY: the arguments are those of the kernel; k is a block of the matrix.
        unsafe { launch.launch(grid(1, 1, 256)) }.map_err(preconditioning)?;

        let function = device.function("factor", "sweep_panel", 0)?;
        let mut launch = device.stream().launch_builder(&function);
        launch.arg(&old_matrix).arg(&side_int).arg(&k).arg(&pivot).arg(&mut old).arg(&mut swept);
        // SAFETY: as above; the panels have `side` rows of a block's columns.
        unsafe { launch.launch(grid(n_tiles, 1, 128)) }.map_err(preconditioning)?;

        let function = device.function("factor", "sweep_rest", 0)?;
        let mut launch = device.stream().launch_builder(&function);
        launch.arg(&mut *matrix).arg(&side_int).arg(&k).arg(&pivot).arg(&old).arg(&swept);
        // SAFETY: as above.
        unsafe { launch.launch(grid(n_tiles, n_tiles, 128)) }.map_err(preconditioning)?;
    }
    Ok(device.download(&flag)?[0] == 0)
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

fn preconditioning(error: DriverError) -> Error {
    Error::from_driver("preconditioning", error)
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

    #[test]
    fn strips_cover_all_columns_in_whole_chunks() {
        for (side, count) in [(64, 16), (64, 100_000), (512, 4000), (2560, 1_000_000)] {
            let (strip, n_strips) = strips(side, count);
            assert!(strip % CHUNK == 0 && n_strips <= MOST_STRIPS);
            assert!(strip * n_strips >= count && strip * (n_strips - 1) < count);
        }
    }
}
