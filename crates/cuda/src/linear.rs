//! Launches of `kernels/linear.cu`: the part w aᵀb + c of a kernel, by its factors.
#![allow(unsafe_code)]

use crate::device::{Device, int};
use crate::error::Error;
use crate::exact::Exact;
use crate::fused::one_thread_each;
use crate::products::Columns;
use cudarc::driver::{CudaSlice, LaunchConfig, PushKernelArg};

/// Columns of V in one pass, `WIDTH` in `kernels/linear.cu`.
const WIDTH: usize = 8;
/// Rows summed by one block of threads, at least, and blocks at most.
const STRIP_ROWS: usize = 512;
const STRIPS: usize = 1024;

/// w YZᵀ + c 11ᵀ for the features Z of samples and Y of others, in f64.
pub(crate) struct Linear<'a> {
    /// Z.
    pub(crate) samples: &'a CudaSlice<f64>,
    /// Y.
    pub(crate) rows: &'a CudaSlice<f64>,
    /// Rows of Y.
    pub(crate) n_rows: usize,
    pub(crate) n_features: usize,
    /// w.
    pub(crate) slope: f64,
    /// c.
    pub(crate) level: f64,
}

/// `out += w Y (Zᵀv) + c 1 (1ᵀv)` of a kernel's recipe, for the features of `samples` and `rows`.
pub(crate) fn add_product(
    samples: &Exact<'_>,
    rows: &Exact<'_>,
    v: &Columns,
    out: &mut Columns,
) -> Result<(), Error> {
    let linear = Linear {
        samples: samples.all(),
        rows: rows.all(),
        n_rows: rows.n_samples,
        n_features: samples.n_features,
        slope: samples.recipe.linear,
        level: samples.recipe.constant,
    };
    linear.add_product(samples.device, v, out)
}

impl Linear<'_> {
    /// `out += w Y (Zᵀv) + c 1 (1ᵀv)`.
    pub(crate) fn add_product(
        &self,
        device: &Device,
        v: &Columns,
        out: &mut Columns,
    ) -> Result<(), Error> {
        let n_features = self.n_features;
        let (strip, strips) = strips(v.n_samples);
        let what = "the linear part";
        let count = (n_features + 1) * v.n_columns.min(WIDTH);
        let mut partials = device.zeros::<f64>(what, strips * count)?;
        let mut inner = device.zeros::<f64>(what, count)?;
        let (n, strip_rows, d) = (v.n_samples as u64, strip as u64, int(n_features));
        let n_rows = self.n_rows as u64;
        for first in (0..v.n_columns).step_by(WIDTH) {
            let width = (v.n_columns - first).min(WIDTH);
            let ints = [v.n_columns, first, width, strips].map(int);
            let [columns, first, w, n_strips] = &ints;

            let function = device.function("linear", "inner_partials", 0)?;
            let mut launch = device.stream().launch_builder(&function);
            launch.arg(self.samples).arg(&v.data).arg(&mut partials).arg(&n).arg(&d);
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
            launch.arg(&self.slope).arg(&self.level);
            // SAFETY: as above; it writes (n_features + 1) × width numbers.
            unsafe { launch.launch(one_thread_each(count)) }.map_err(multiplying)?;

            let function = device.function("linear", "add_outer", 0)?;
            let mut launch = device.stream().launch_builder(&function);
            launch.arg(self.rows).arg(&inner).arg(&mut out.data).arg(&n_rows).arg(&d);
            launch.arg(columns).arg(first).arg(w);
            // SAFETY: as above; it adds to columns first..first + width of `out`.
            unsafe { launch.launch(one_thread_each(self.n_rows * width)) }.map_err(multiplying)?;
        }
        Ok(())
    }
}

/// Rows of a strip, and how many strips there are.
fn strips(n_samples: usize) -> (usize, usize) {
    let strip = n_samples.div_ceil(STRIPS).max(STRIP_ROWS);
    (strip, n_samples.div_ceil(strip))
}

/// Numbers that are added one after the other at most, beside those of the features.
pub(crate) fn longest_sum(n_samples: usize) -> usize {
    let (strip, strips) = strips(n_samples);
    strip + strips
}

fn multiplying(error: cudarc::driver::DriverError) -> Error {
    Error::from_driver("multiplying by the linear part", error)
}
