//! Systems with A = λI + B_FB_Fᵀ, rank × rank, of each dimension.
//!
//! A is inverted outright, by sweeps: a solution is then one product instead of a hundred launches.
//! Such an inverse X is off by more than a triangular solve would be, and Woodbury's identity
//! multiplies that by ‖A‖/λ. So every solution is refined, by X(t − A·Xt), and an inverse is tried
//! before it is used (ADR 0016).
#![allow(unsafe_code)]

use super::TILE;
use super::inverse::{Inverse, preconditioning};
use crate::device::{Device, int};
use crate::error::Error;
use crate::fused::one_thread_each;
use cudarc::driver::{CudaSlice, CudaView, CudaViewMut, LaunchConfig, PushKernelArg};

/// Share of its shift that a matrix may be off by in its inverse.
const SOUND: f64 = 1e-3;

impl Inverse {
    /// A⁻¹t with the A = λI + B_FB_Fᵀ of each dimension listed, a vector each: that of X, the
    /// inverse by sweeps, and what X makes of the rest that it leaves. 2X − XAX is as symmetric.
    pub(super) fn solve(
        &self,
        device: &Device,
        dimensions: &[usize],
        t: &CudaSlice<f64>,
    ) -> Result<CudaSlice<f64>, Error> {
        let what = "projections";
        let owners: Vec<usize> = dimensions.iter().map(|&j| self.dimensions[j].same_as).collect();
        let numbers: Vec<i32> = owners.iter().map(|&owner| int(owner)).collect();
        let numbers = device.upload(what, &numbers)?;
        let mut found = device.zeros(what, t.len())?;
        let mut rest = device.zeros(what, t.len())?;
        self.multiply(device, &numbers, t, &mut found, false)?;
        for (c, &owner) in owners.iter().enumerate() {
            let own = c * self.side..(c + 1) * self.side;
            let (t, found) = (t.slice(own.clone()), found.slice(own.clone()));
            self.rest(device, owner, &t, &found, &mut rest.slice_mut(own))?;
        }
        self.multiply(device, &numbers, &rest, &mut found, true)?;
        Ok(found)
    }

    /// out = Xt, or out + Xt, with the X of each owner.
    fn multiply(
        &self,
        device: &Device,
        owners: &CudaSlice<i32>,
        t: &CudaSlice<f64>,
        out: &mut CudaSlice<f64>,
        add: bool,
    ) -> Result<(), Error> {
        let (side, add) = (int(self.side), i32::from(add));
        let function = device.function("factor", "multiply_small", 0)?;
        let mut launch = device.stream().launch_builder(&function);
        launch.arg(&self.matrices).arg(owners).arg(t).arg(out).arg(&side).arg(&add);
        // SAFETY: the arguments are those of the kernel; owners are dimensions, each with a matrix
        // of side × side, and t and out have `side` numbers for each.
        unsafe { launch.launch(a_warp_each(self.side, owners.len())) }.map_err(preconditioning)?;
        Ok(())
    }

    /// rest = t − Ay with the A of dimension `owner`.
    fn rest(
        &self,
        device: &Device,
        owner: usize,
        t: &CudaView<'_, f64>,
        y: &CudaView<'_, f64>,
        rest: &mut CudaViewMut<'_, f64>,
    ) -> Result<(), Error> {
        let dimension = &self.dimensions[owner];
        let gram = dimension.gram.as_ref().expect("an owner has a matrix");
        let shift = dimension.shift.expect("an inverse is there before it is used");
        let side = int(self.side);
        let function = device.function("factor", "rest_small", 0)?;
        let mut launch = device.stream().launch_builder(&function);
        launch.arg(gram).arg(&shift).arg(t).arg(y).arg(rest).arg(&side);
        // SAFETY: the arguments are those of the kernel; the matrix is side × side, the vectors
        // have `side` numbers.
        unsafe { launch.launch(a_warp_each(self.side, 1)) }.map_err(preconditioning)?;
        Ok(())
    }

    /// Whether solutions are those of a matrix that differs from A by far less than its shift,
    /// tried with t = −Au for a u of signs, which has all that is large in A.
    pub(super) fn is_sound(
        &self,
        device: &Device,
        owner: usize,
        rank: usize,
    ) -> Result<bool, Error> {
        let (what, side) = ("a trial", self.side);
        let signs: Vec<f64> = (0..side).map(|r| if r < rank { sign(r) } else { 0.0 }).collect();
        let signs = device.upload(what, &signs)?;
        let zero = device.zeros::<f64>(what, side)?;
        let mut t = device.zeros::<f64>(what, side)?;
        let mut rest = device.zeros::<f64>(what, side)?;
        self.rest(device, owner, &zero.as_view(), &signs.as_view(), &mut t.as_view_mut())?;
        let found = self.solve(device, &[owner], &t)?;
        self.rest(device, owner, &t.as_view(), &found.as_view(), &mut rest.as_view_mut())?;
        let left = device.download(&rest)?.iter().map(|r| r * r).sum::<f64>().sqrt();
        let shift = self.dimensions[owner].shift.unwrap_or(self.ridge);
        Ok(left <= SOUND * shift * (rank as f64).sqrt())
    }
}

/// Signs without a pattern that rows of B could share: the bits of a number that is spread out.
fn sign(row: usize) -> f64 {
    let spread = (row as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    if (spread ^ (spread >> 29)) >> 40 & 1 == 0 { 1.0 } else { -1.0 }
}

/// A warp for each of `side` rows, of so many vectors.
fn a_warp_each(side: usize, n_vectors: usize) -> LaunchConfig {
    LaunchConfig {
        grid_dim: ((side / 8) as u32, n_vectors as u32, 1),
        block_dim: (256, 1, 1),
        shared_mem_bytes: 0,
    }
}

impl Inverse {
    /// X = −(gram + shift I)⁻¹ for each of the owners listed, side by side; false for those where
    /// that is not positive definite.
    pub(super) fn sweep(
        &mut self,
        device: &Device,
        owners: &[usize],
        rank: usize,
        shift: f64,
    ) -> Result<Vec<bool>, Error> {
        owners.iter().try_for_each(|&owner| self.shift(device, owner, rank, shift))?;
        let (side, count) = (self.side, owners.len());
        let what = "a sweep";
        let numbers: Vec<i32> = owners.iter().map(|&owner| int(owner)).collect();
        let numbers = device.upload(what, &numbers)?;
        let mut pivots = device.zeros::<f64>(what, count * TILE * TILE)?;
        let mut old = device.zeros::<f64>(what, count * side * TILE)?;
        let mut swept = device.zeros::<f64>(what, count * side * TILE)?;
        let mut failed = device.zeros::<i32>(what, count)?;
        let (side_int, n_tiles, matrices) = (int(side), side / TILE, &mut self.matrices);
        let grid = |grid: [usize; 3], threads| LaunchConfig {
            grid_dim: (grid[0] as u32, grid[1] as u32, grid[2] as u32),
            block_dim: (threads, 1, 1),
            shared_mem_bytes: 0,
        };
        for k in 0..int(n_tiles) {
            let function = device.function("factor", "sweep_pivot", 0)?;
            let mut launch = device.stream().launch_builder(&function);
            launch.arg(&*matrices).arg(&numbers).arg(&side_int).arg(&k);
            launch.arg(&mut pivots).arg(&mut failed);
            // SAFETY: the arguments are those of the kernel; owners are dimensions, each with a
            // matrix of side × side, of which k is a block.
            unsafe { launch.launch(grid([count, 1, 1], 256)) }.map_err(preconditioning)?;

            let function = device.function("factor", "sweep_panel", 0)?;
            let mut launch = device.stream().launch_builder(&function);
            launch.arg(&*matrices).arg(&numbers).arg(&side_int).arg(&k);
            launch.arg(&pivots).arg(&mut old).arg(&mut swept);
            // SAFETY: as above; the panels have `side` rows of a block's columns for each.
            unsafe { launch.launch(grid([n_tiles, count, 1], 128)) }.map_err(preconditioning)?;

            let function = device.function("factor", "sweep_rest", 0)?;
            let mut launch = device.stream().launch_builder(&function);
            launch.arg(&mut *matrices).arg(&numbers).arg(&side_int).arg(&k);
            launch.arg(&pivots).arg(&old).arg(&swept);
            let all = grid([n_tiles, n_tiles, count], 128);
            // SAFETY: as above.
            unsafe { launch.launch(all) }.map_err(preconditioning)?;
        }
        Ok(device.download(&failed)?.iter().map(|failed| *failed == 0).collect())
    }

    /// X = gram + shift I, to be swept.
    fn shift(
        &mut self,
        device: &Device,
        owner: usize,
        rank: usize,
        shift: f64,
    ) -> Result<(), Error> {
        let (side, square) = (int(self.side), self.side * self.side);
        let gram = self.dimensions[owner].gram.as_ref().expect("an owner has a matrix");
        let mut matrix = self.matrices.slice_mut(owner * square..(owner + 1) * square);
        let rank = int(rank);
        let function = device.function("factor", "shifted", 0)?;
        let mut launch = device.stream().launch_builder(&function);
        launch.arg(gram).arg(&mut matrix).arg(&side).arg(&rank).arg(&shift);
        // SAFETY: the arguments are those of the kernel; both have side × side numbers.
        unsafe { launch.launch(one_thread_each(square)) }.map_err(preconditioning)?;
        self.dimensions[owner].shift = Some(shift);
        Ok(())
    }
}
