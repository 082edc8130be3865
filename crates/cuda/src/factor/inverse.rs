//! (λI + B_FᵀB_F)⁻¹ by Woodbury's identity, (v − B_Fᵀ(λI + B_FB_Fᵀ)⁻¹B_F v)/λ, for the free samples
//! F of each dimension; `small` has the matrix in the middle.
#![allow(unsafe_code)]

use super::{CHUNK, Factor, TILE, gathering};
use crate::device::{Device, int};
use crate::error::Error;
use crate::fused::one_thread_each;
use cudarc::driver::{CudaSlice, CudaView, CudaViewMut, DriverError, LaunchConfig, PushKernelArg};
use ndarray::{ArrayView2, ArrayViewMut2};

/// Samples whose columns of B are gathered at a time.
pub(super) const GATHERED: usize = 16_384;
/// Blocks of threads that keep a large GPU busy, and strips of a sum at most.
const ENOUGH_BLOCKS: usize = 1024;
const MOST_STRIPS: usize = 16;
/// Vectors that pass through B together: few have a program of their own.
const VECTORS: usize = 8;
const FEW_VECTORS: usize = 4;
/// Samples that one block of threads sums over in Bv.
const PROJECTED: usize = 8192;

/// Everything that follows the free samples.
pub(super) struct Inverse {
    /// Rows of the small matrices: the rank, padded.
    pub(super) side: usize,
    pub(super) ridge: f64,
    /// BBᵀ over all samples.
    pub(super) full: CudaSlice<f64>,
    pub(super) dimensions: Vec<Dimension>,
    /// −(λI + B_FB_Fᵀ)⁻¹, one a dimension.
    pub(super) matrices: CudaSlice<f64>,
    /// One byte a dimension and sample.
    pub(super) free: CudaSlice<u8>,
}

pub(super) struct Dimension {
    pub(super) free: Vec<bool>,
    /// B_FB_Fᵀ; none where an earlier dimension has the same free samples.
    pub(super) gram: Option<CudaSlice<f64>>,
    pub(super) same_as: usize,
    /// λ, or more where rounding asks for it: what was added to the diagonal of `gram` before it
    /// was inverted. None where the inverse is out of date.
    pub(super) shift: Option<f64>,
}

impl Factor {
    pub(super) fn try_update(
        &mut self,
        free: ArrayView2<'_, bool>,
        ridge: f64,
    ) -> Result<(), Error> {
        // The panels go before this comes.
        if let Some(rows) = self.growing.take().map(|growing| growing.beside) {
            self.beside = self.lay_beside(&rows)?;
        }
        let mut inverse = match self.inverse.take() {
            Some(inverse) => inverse,
            None => self.first_inverse(ridge)?,
        };
        let bytes: Vec<u8> = free.iter().map(|free| u8::from(*free)).collect();
        inverse.free = self.device().upload("free samples", &bytes)?;
        if ridge != inverse.ridge {
            inverse.ridge = ridge;
            inverse.dimensions.iter_mut().for_each(|dimension| dimension.shift = None);
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
            shift: None,
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
            inverse.dimensions[j] = Dimension { free: now, gram: None, same_as: twin, shift: None };
            return Ok(());
        }
        let dimension = &mut inverse.dimensions[j];
        let last = if dimension.same_as == j { dimension.gram.take() } else { None };
        if last.is_some() && dimension.free == now && dimension.shift.is_some() {
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
        *dimension = Dimension { free: now, gram: Some(gram), same_as: j, shift: None };
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

    /// The inverses of all Gram matrices that changed. Where rounding has made one indefinite or
    /// its inverse useless, a larger shift still gives a valid, if weaker, preconditioner.
    fn invert(&self, inverse: &mut Inverse) -> Result<(), Error> {
        let device = self.device();
        let is_old = |(j, dimension): (usize, &Dimension)| {
            (dimension.same_as == j && dimension.shift.is_none()).then_some(j)
        };
        let mut left: Vec<usize> =
            inverse.dimensions.iter().enumerate().filter_map(is_old).collect();
        let mut shift = inverse.ridge;
        while !left.is_empty() {
            if !shift.is_finite() {
                return Err(Error::Overflow);
            }
            let definite = inverse.sweep(device, &left, self.rank, shift)?;
            let mut unsound = Vec::new();
            for (j, is_definite) in left.into_iter().zip(definite) {
                if !is_definite || !inverse.is_sound(device, j, self.rank)? {
                    unsound.push(j);
                }
            }
            left = unsound;
            shift *= 10.0;
        }
        Ok(())
    }

    pub(super) fn try_apply(
        &self,
        dimensions: &[usize],
        v: ArrayView2<'_, f64>,
        out: ArrayViewMut2<'_, f64>,
    ) -> Result<(), Error> {
        let v = v.as_standard_layout();
        let v = self.device().upload("vectors", v.as_slice().expect("in standard layout"))?;
        self.device().download_rows(&self.preconditioned(dimensions, &v)?, out)
    }

    /// The same for vectors that are there, one after the other.
    pub(super) fn preconditioned(
        &self,
        dimensions: &[usize],
        v: &CudaSlice<f64>,
    ) -> Result<CudaSlice<f64>, Error> {
        let inverse = self.inverse.as_ref().expect("a preconditioner follows faces first");
        let (n_vectors, n) = (dimensions.len(), self.n_samples);
        let mut found = self.device().zeros::<f64>("vectors", n_vectors * n)?;
        for first in (0..n_vectors).step_by(VECTORS) {
            let last = (first + VECTORS).min(n_vectors);
            let part = first * n..last * n;
            let (v, mut found) = (v.slice(part.clone()), found.slice_mut(part));
            self.apply_pass(inverse, &dimensions[first..last], &v, &mut found)?;
        }
        Ok(found)
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
        // Kernels' names, vectors that they are made for and rows of a block.
        let few = dimensions.len() <= FEW_VECTORS;
        let (project, expand, width, rows) = if few {
            ("project_4", "expand_4", FEW_VECTORS, 8)
        } else {
            ("project_8", "expand_8", VECTORS, 4)
        };
        let len = width * side.max(1);
        let mut partials = device.zeros::<f64>(what, strips * len)?;
        let mut projected = device.zeros::<f64>(what, len)?;
        let mut weights = device.zeros::<f64>(what, len)?;
        let systems = dimensions.iter().map(|&j| int(j)).collect::<Vec<_>>();
        let systems = device.upload(what, &systems)?;
        let sizes = [self.pitch, self.n_samples, PROJECTED].map(|size| size as u64);
        let ints = [dimensions.len(), side, strips, len].map(int);
        let [vectors, side_int, n_strips, count] = &ints;
        let grid = |x: usize, y: usize| LaunchConfig {
            grid_dim: (x as u32, y as u32, 1),
            block_dim: (256, 1, 1),
            shared_mem_bytes: 0,
        };
        if side > 0 {
            let function = device.function("factor", project, 0)?;
            let mut launch = device.stream().launch_builder(&function);
            launch.arg(&self.rows).arg(&sizes[0]).arg(v).arg(&sizes[1]).arg(vectors);
            launch.arg(&sizes[2]).arg(side_int).arg(&mut partials);
            // SAFETY: the arguments are those of the kernel; B has `side` rows, a multiple of 8.
            unsafe { launch.launch(grid(side / rows, strips)) }.map_err(preconditioning)?;

            let function = device.function("factor", "sum_projections", 0)?;
            let mut launch = device.stream().launch_builder(&function);
            launch.arg(&partials).arg(&mut projected).arg(count).arg(n_strips);
            // SAFETY: as above; it writes `side` numbers a vector.
            unsafe { launch.launch(one_thread_each(len)) }.map_err(preconditioning)?;

            weights = inverse.solve(device, dimensions, &projected)?;
        }
        let function = device.function("factor", expand, 0)?;
        let mut launch = device.stream().launch_builder(&function);
        launch.arg(&self.rows).arg(&sizes[0]).arg(v).arg(&weights).arg(&inverse.free);
        launch.arg(&systems).arg(&inverse.ridge).arg(out).arg(&sizes[1]).arg(vectors).arg(side_int);
        // SAFETY: as above; it writes n_samples numbers a vector.
        unsafe { launch.launch(grid(self.n_samples.div_ceil(256), 1)) }.map_err(preconditioning)?;
        Ok(())
    }
}

/// Columns of a strip of a Gram matrix's sum, and how many strips there are: enough blocks of
/// threads for small matrices.
pub(super) fn strips(side: usize, count: usize) -> (usize, usize) {
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

pub(super) fn preconditioning(error: DriverError) -> Error {
    Error::from_driver("preconditioning", error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strips_cover_all_columns_in_whole_chunks() {
        for (side, count) in [(64, 16), (64, 100_000), (512, 4000), (2560, 1_000_000)] {
            let (strip, n_strips) = strips(side, count);
            assert!(strip % CHUNK == 0 && n_strips <= MOST_STRIPS);
            assert!(strip * n_strips >= count && strip * (n_strips - 1) < count);
        }
    }
}
