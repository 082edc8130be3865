//! Launches of `kernels/descent.cu`: conjugate gradients with every vector on the GPU. A right-hand
//! side goes there and a solution comes back; a step brings three numbers a dimension.
#![allow(unsafe_code)]

use super::Factor;
use crate::device::{Device, int};
use crate::error::Error;
use crate::fused::{Precision, one_thread_each};
use crate::linear::Linear;
use crate::operator::failed;
use crate::products::Columns;
use argwhy_core::operator::{Descent, Step};
use cudarc::driver::{CudaSlice, DriverError, LaunchConfig, PushKernelArg};
use ndarray::{Array2, ArrayView2};

/// `THREADS` in `kernels/descent.cu`, and samples of a block of threads there.
const THREADS: usize = 256;
const BLOCK: usize = 4 * THREADS;
/// Numbers a dimension that a step brings back.
const REPORTED: usize = 3;

/// Systems on their way to be solved.
pub(super) struct OnGpu<'a> {
    factor: &'a Factor,
    ridge: f64,
    exact: bool,
    vectors: Vectors,
    /// c and its image, of all dimensions.
    found: CudaSlice<f64>,
    image: CudaSlice<f64>,
    n_dimensions: usize,
}

/// What the dimensions that take part have, a row each.
struct Vectors {
    dimensions: Vec<usize>,
    /// The same there.
    numbers: CudaSlice<i32>,
    residual: CudaSlice<f64>,
    /// p and ⟨r, z⟩; none before the first step.
    last: Option<(CudaSlice<f64>, CudaSlice<f64>)>,
}

/// The rows of a matrix beside those of K, as features of the samples.
pub(super) struct Beside {
    features: CudaSlice<f64>,
    n_rows: usize,
}

impl Factor {
    pub(super) fn try_descent(
        &self,
        rhs: ArrayView2<'_, f64>,
        ridge: f64,
        exact: bool,
    ) -> Result<OnGpu<'_>, Error> {
        let (device, n_dimensions) = (self.device(), rhs.nrows());
        let rhs = rhs.as_standard_layout();
        let rhs = rhs.as_slice().expect("in standard layout");
        let dimensions: Vec<usize> = (0..n_dimensions).collect();
        let zeros = || device.zeros("vectors", rhs.len());
        Ok(OnGpu {
            factor: self,
            ridge,
            exact,
            vectors: Vectors {
                numbers: numbers(device, &dimensions)?,
                dimensions,
                residual: device.upload("vectors", rhs)?,
                last: None,
            },
            found: zeros()?,
            image: zeros()?,
            n_dimensions,
        })
    }

    /// Rows that no pivot brought, for products: B has them in f32 only.
    pub(super) fn lay_beside(&self, rows: &[CudaSlice<f64>]) -> Result<Option<Beside>, Error> {
        if rows.is_empty() {
            return Ok(None);
        }
        let (device, n_rows) = (self.device(), rows.len());
        let mut features = device.zeros("a trend", n_rows * self.n_samples)?;
        let function = device.function("descent", "beside", 0)?;
        let (n, count, weighted) = (self.n_samples as u64, int(n_rows), self.is_weighted());
        for (r, row) in rows.iter().enumerate() {
            let number = int(r);
            let mut launch = device.stream().launch_builder(&function);
            launch.arg(row).arg(self.roots_or(row)).arg(&weighted).arg(&mut features);
            launch.arg(&n).arg(&number).arg(&count);
            // SAFETY: the arguments are those of the kernel; it writes one number a sample.
            unsafe { launch.launch(one_thread_each(self.n_samples)) }.map_err(descending)?;
        }
        Ok(Some(Beside { features, n_rows }))
    }

    fn is_weighted(&self) -> i32 {
        i32::from(self.roots.is_some())
    }

    /// √w, or where there are no weights something that kernels do not read.
    fn roots_or<'a>(&'a self, unread: &'a CudaSlice<f64>) -> &'a CudaSlice<f64> {
        self.roots.as_ref().unwrap_or(unread)
    }

    /// Blocks of threads over the samples of a vector.
    fn n_blocks(&self) -> usize {
        self.n_samples.div_ceil(BLOCK)
    }
}

impl Vectors {
    /// Leaves out the dimensions that are not listed.
    fn keep(&mut self, device: &Device, n: usize, dimensions: &[usize]) -> Result<(), Error> {
        if self.dimensions == dimensions {
            return Ok(());
        }
        let places =
            (0..self.dimensions.len()).filter(|&c| dimensions.contains(&self.dimensions[c]));
        let places: Vec<usize> = places.collect();
        let select = |from: &CudaSlice<f64>, len: usize| -> Result<CudaSlice<f64>, Error> {
            let mut to = device.zeros("vectors", places.len() * len)?;
            for (to_place, &place) in places.iter().enumerate() {
                let from = from.slice(place * len..(place + 1) * len);
                let mut to = to.slice_mut(to_place * len..(to_place + 1) * len);
                device.stream().memcpy_dtod(&from, &mut to).map_err(descending)?;
            }
            Ok(to)
        };
        self.residual = select(&self.residual, n)?;
        if let Some((p, rho)) = &self.last {
            self.last = Some((select(p, n)?, select(rho, 1)?));
        }
        self.dimensions = dimensions.to_vec();
        self.numbers = numbers(device, dimensions)?;
        Ok(())
    }
}

impl OnGpu<'_> {
    fn try_step(&mut self, dimensions: &[usize]) -> Result<Vec<Step>, Error> {
        let n = self.factor.n_samples;
        self.vectors.keep(self.factor.device(), n, dimensions)?;
        let columns = self.turn()?;
        let product = self.product(&columns)?;
        drop(columns);
        let report = self.advance(&product)?;
        Ok(report.chunks(REPORTED).map(step_of).collect())
    }

    /// The next direction, p = z + βp with the preconditioned residual z, side by side.
    fn turn(&mut self) -> Result<Columns, Error> {
        let (factor, device) = (self.factor, self.factor.device());
        let Vectors { dimensions, residual, last, .. } = &mut self.vectors;
        let (count, n) = (dimensions.len(), factor.n_samples);
        let z = factor.preconditioned(dimensions, residual)?;
        let is_first = i32::from(last.is_none());
        let (mut p, mut rho) = match last.take() {
            Some(last) => last,
            None => (device.zeros("vectors", count * n)?, device.zeros("sums", count)?),
        };
        let n_blocks = factor.n_blocks();
        let mut partials = device.zeros::<f64>("sums", count * n_blocks)?;
        let mut beta = device.zeros::<f64>("sums", count)?;
        let mut columns = Columns::zeros(device, n, count)?;
        let (n_samples, vectors, blocks) = (n as u64, int(count), int(n_blocks));

        let function = device.function("descent", "inner_products", 0)?;
        let mut launch = device.stream().launch_builder(&function);
        launch.arg(&*residual).arg(&z).arg(&mut partials).arg(&n_samples).arg(&blocks);
        // SAFETY: the arguments are those of the kernel; vectors have n_samples numbers each, and
        // partial sums one a block.
        unsafe { launch.launch(grid(n_blocks, count)) }.map_err(descending)?;

        let function = device.function("descent", "turn_factors", 0)?;
        let mut launch = device.stream().launch_builder(&function);
        launch.arg(&partials).arg(&blocks).arg(&mut rho).arg(&mut beta).arg(&is_first);
        // SAFETY: as above; one number a vector.
        unsafe { launch.launch(grid(count, 1)) }.map_err(descending)?;

        let weighted = factor.is_weighted();
        let function = device.function("descent", "turn", 0)?;
        let mut launch = device.stream().launch_builder(&function);
        launch.arg(&z).arg(&beta).arg(factor.roots_or(&beta)).arg(&weighted).arg(&mut p);
        launch.arg(&mut columns.data).arg(&n_samples).arg(&vectors);
        // SAFETY: as above; roots are read where there are weights, of which each sample has one.
        unsafe { launch.launch(grid(n_blocks, count)) }.map_err(descending)?;
        *last = Some((p, rho));
        Ok(columns)
    }

    /// K·v without the weights' roots, with what is beside K.
    fn product(&self, v: &Columns) -> Result<Columns, Error> {
        let products = &self.factor.products;
        let mut out = if self.exact {
            products.apply_exact_columns(v)?
        } else {
            products.apply_columns(v, Precision::Fine)?
        };
        if let Some(Beside { features, n_rows }) = &self.factor.beside {
            let linear = Linear {
                samples: features,
                rows: features,
                n_rows: v.n_samples,
                n_features: *n_rows,
                slope: 1.0,
                level: 0.0,
            };
            linear.add_product(self.factor.device(), v, &mut out)?;
        }
        Ok(out)
    }

    /// The step along p, whose product is there: three numbers a dimension.
    fn advance(&mut self, product: &Columns) -> Result<Vec<f64>, Error> {
        let (factor, device) = (self.factor, self.factor.device());
        let inverse = factor.inverse.as_ref().expect("a preconditioner follows faces first");
        let Vectors { dimensions, numbers, residual, last } = &mut self.vectors;
        let (p, rho) = last.as_ref().expect("a step has a direction");
        let (count, n, n_blocks) = (dimensions.len(), factor.n_samples, factor.n_blocks());
        let mut full = device.zeros::<f64>("vectors", count * n)?;
        let mut partials = device.zeros::<f64>("sums", 2 * count * n_blocks)?;
        let mut lengths = device.zeros::<f64>("sums", count)?;
        let mut report = device.zeros::<f64>("sums", REPORTED * count)?;
        let (n_samples, vectors, blocks) = (n as u64, int(count), int(n_blocks));
        let weighted = factor.is_weighted();

        let function = device.function("descent", "curve", 0)?;
        let mut launch = device.stream().launch_builder(&function);
        launch.arg(&product.data).arg(factor.roots_or(rho)).arg(&weighted).arg(p);
        launch.arg(&inverse.free).arg(&*numbers).arg(&self.ridge).arg(&mut full);
        launch.arg(&mut partials).arg(&n_samples).arg(&vectors).arg(&blocks);
        // SAFETY: the arguments are those of the kernel; vectors have n_samples numbers each,
        // partial sums are two a block, and `free` has a row for every dimension.
        unsafe { launch.launch(grid(n_blocks, count)) }.map_err(descending)?;

        let function = device.function("descent", "step_lengths", 0)?;
        let mut launch = device.stream().launch_builder(&function);
        launch.arg(&partials).arg(&blocks).arg(rho).arg(&mut lengths).arg(&mut report);
        // SAFETY: as above; a report has three numbers a vector.
        unsafe { launch.launch(grid(count, 1)) }.map_err(descending)?;

        let function = device.function("descent", "take_step", 0)?;
        let mut launch = device.stream().launch_builder(&function);
        launch.arg(&full).arg(p).arg(&inverse.free).arg(&*numbers).arg(&lengths).arg(&self.ridge);
        launch.arg(residual).arg(&mut self.found).arg(&mut self.image).arg(&mut partials);
        launch.arg(&n_samples).arg(&blocks);
        // SAFETY: as above; c and its image have a row for every dimension.
        unsafe { launch.launch(grid(n_blocks, count)) }.map_err(descending)?;

        let function = device.function("descent", "squared_residuals", 0)?;
        let mut launch = device.stream().launch_builder(&function);
        launch.arg(&partials).arg(&blocks).arg(&mut report);
        // SAFETY: as above.
        unsafe { launch.launch(grid(count, 1)) }.map_err(descending)?;
        device.download(&report)
    }

    fn try_finish(&self) -> Result<(Array2<f64>, Array2<f64>), Error> {
        let shape = (self.n_dimensions, self.factor.n_samples);
        let rows = |data: &CudaSlice<f64>| -> Result<Array2<f64>, Error> {
            let mut rows = Array2::zeros(shape);
            self.factor.device().download_rows(data, rows.view_mut())?;
            Ok(rows)
        };
        Ok((rows(&self.found)?, rows(&self.image)?))
    }
}

impl Descent for OnGpu<'_> {
    fn step(&mut self, dimensions: &[usize]) -> Result<Vec<Step>, argwhy_core::Error> {
        self.try_step(dimensions).map_err(failed)
    }

    fn finish(self: Box<Self>) -> Result<(Array2<f64>, Array2<f64>), argwhy_core::Error> {
        self.try_finish().map_err(failed)
    }
}

/// What a dimension's three numbers say; `kernels/descent.cu` went nowhere where the first is not
/// positive and finite.
fn step_of(report: &[f64]) -> Step {
    let (curvature, square) = (report[0], report[1]);
    if curvature > 0.0 && curvature.is_finite() {
        return Step::Taken { residual: report[2].sqrt() };
    }
    Step::Flat { curvature, square }
}

fn numbers(device: &Device, dimensions: &[usize]) -> Result<CudaSlice<i32>, Error> {
    let numbers: Vec<i32> = dimensions.iter().map(|&j| int(j)).collect();
    device.upload("numbers of dimensions", &numbers)
}

fn grid(x: usize, y: usize) -> LaunchConfig {
    LaunchConfig {
        grid_dim: (x as u32, y as u32, 1),
        block_dim: (THREADS as u32, 1, 1),
        shared_mem_bytes: 0,
    }
}

fn descending(error: DriverError) -> Error {
    Error::from_driver("stepping along a direction", error)
}
