//! Launches of `kernels/linear.cu`: the part w aᵀb + c of a kernel, by its factors.
#![allow(unsafe_code)]

use crate::device::{Device, int};
use crate::error::Error;
use crate::fused::one_thread_each;
use crate::products::Columns;
use crate::recipe::Recipe;
use cudarc::driver::{CudaSlice, LaunchConfig, PushKernelArg};

/// Columns of V in one pass, `WIDTH` in `kernels/linear.cu`.
const WIDTH: usize = 8;
/// Rows summed by one block of threads, at least, and blocks at most.
const STRIP_ROWS: usize = 512;
const STRIPS: usize = 1024;

/// `out += w Z (Zᵀv) + c 1 (1ᵀv)`, in f64. `features`: Z, n_samples × n_features.
pub(crate) fn add_product(
    device: &Device,
    features: &CudaSlice<f64>,
    n_features: usize,
    recipe: &Recipe,
    v: &Columns,
    out: &mut Columns,
) -> Result<(), Error> {
    let strip = v.n_samples.div_ceil(STRIPS).max(STRIP_ROWS);
    let strips = v.n_samples.div_ceil(strip);
    let what = "the linear part";
    let count = (n_features + 1) * v.n_columns.min(WIDTH);
    let mut partials = device.zeros::<f64>(what, strips * count)?;
    let mut inner = device.zeros::<f64>(what, count)?;
    let (n, strip_rows, d) = (v.n_samples as u64, strip as u64, int(n_features));
    for first in (0..v.n_columns).step_by(WIDTH) {
        let width = (v.n_columns - first).min(WIDTH);
        let ints = [v.n_columns, first, width, strips].map(int);
        let [columns, first, w, n_strips] = &ints;

        let function = device.function("linear", "inner_partials", 0)?;
        let mut launch = device.stream().launch_builder(&function);
        launch.arg(features).arg(&v.data).arg(&mut partials).arg(&n).arg(&d);
        launch.arg(columns).arg(first).arg(w).arg(&strip_rows);
        let grid = LaunchConfig {
            grid_dim: (strips as u32, 1, 1),
            block_dim: (128, 1, 1),
            shared_mem_bytes: 0,
        };
        // SAFETY: the arguments are those of the kernel; it writes strips × (n_features + 1) ×
        // width numbers, as allocated.
        unsafe { launch.launch(grid) }.map_err(multiplying)?;

        let function = device.function("linear", "sum_inner", 0)?;
        let mut launch = device.stream().launch_builder(&function);
        launch.arg(&partials).arg(&mut inner).arg(&d).arg(w).arg(n_strips);
        launch.arg(&recipe.linear).arg(&recipe.constant);
        // SAFETY: as above; it writes (n_features + 1) × width numbers.
        unsafe { launch.launch(one_thread_each(count)) }.map_err(multiplying)?;

        let function = device.function("linear", "add_outer", 0)?;
        let mut launch = device.stream().launch_builder(&function);
        launch.arg(features).arg(&inner).arg(&mut out.data).arg(&n).arg(&d);
        launch.arg(columns).arg(first).arg(w);
        // SAFETY: as above; it adds to columns first..first + width of `out`.
        unsafe { launch.launch(one_thread_each(v.n_samples * width)) }.map_err(multiplying)?;
    }
    Ok(())
}

fn multiplying(error: cudarc::driver::DriverError) -> Error {
    Error::from_driver("multiplying by the linear part", error)
}
