//! The kernel matrix of some samples as something to multiply with. K itself is never stored.

mod check;
mod streamed;

pub(crate) use check::check_range;
use check::{check_features, check_finite};

use crate::device::{Device, int};
use crate::error::Error;
use crate::exact::{self, Centred, Entry, Exact};
use crate::fused::{self, Packed, Precision, Scratch, one_thread_each};
use crate::linear;
use crate::parts::Part;
use crate::plan::GROUP_COLUMNS;
use crate::recipe::Recipe;
use argwhy_core::Kernel;
use cudarc::driver::{CudaSlice, PushKernelArg};
use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Columns of V that share one computation of the kernel values.
const PASS_COLUMNS: usize = 2 * GROUP_COLUMNS;

/// A matrix of n_samples rows on the GPU, in f64.
#[derive(Debug)]
#[allow(clippy::struct_field_names)] // as everywhere: n_samples, n_columns
pub struct Columns {
    pub(crate) data: CudaSlice<f64>,
    pub(crate) n_samples: usize,
    pub(crate) n_columns: usize,
}

impl Columns {
    pub(crate) fn zeros(
        device: &Device,
        n_samples: usize,
        n_columns: usize,
    ) -> Result<Self, Error> {
        let data = device.zeros("vectors", n_samples * n_columns)?;
        Ok(Self { data, n_samples, n_columns })
    }
}

/// What is prepared for samples besides rows of K.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// Products in working precision; needs features within 6e4 length scales of their mean.
    pub working: bool,
    /// Exact products from inner products of centred features, twice as fast as by differences;
    /// where all terms of the kernel are of the Euclidean distance.
    pub centred: bool,
}

/// K for given samples and kernel, on a GPU.
#[derive(Debug)]
pub struct Products {
    device: Device,
    recipe: Recipe,
    n_samples: usize,
    n_features: usize,
    held: Held,
    means: CudaSlice<f64>,
    centred: Option<Centred>,
    packed: Option<Vec<Packed>>,
    scratch: Mutex<Scratch>,
}

/// Where features are as they came, scaled.
#[derive(Debug)]
enum Held {
    /// On the GPU.
    There(CudaSlice<f64>),
    /// On the host, in panels of so many samples.
    Here { features: Array2<f64>, panel_rows: usize },
}

impl Products {
    /// Copies features (n_samples × n_features, finite) to the GPU and prepares them for each term
    /// of the kernel. Memory there: 8 bytes a feature and sample, 8 more for exact products with
    /// kernels of the Euclidean distance, and 4 for each term.
    pub fn new(
        device: &Device,
        features: ArrayView2<'_, f64>,
        kernel: &Kernel,
    ) -> Result<Self, Error> {
        Self::prepared(device, features, kernel, Prepared { working: true, centred: true })
    }

    /// The same with a choice of what is prepared.
    pub fn prepared(
        device: &Device,
        features: ArrayView2<'_, f64>,
        kernel: &Kernel,
        prepared: Prepared,
    ) -> Result<Self, Error> {
        let recipe = Recipe::new(kernel)?;
        let features = recipe.scaled(features)?;
        let means = check_features(&recipe, features.view(), prepared.working)?;
        let on_device = device.upload("the features", features.as_slice().expect("row by row"))?;
        let means = device.upload("the features' means", &means)?;
        Self::from_device(device, recipe, on_device, means, prepared)
    }

    fn from_device(
        device: &Device,
        recipe: Recipe,
        features: CudaSlice<f64>,
        means: CudaSlice<f64>,
        prepared: Prepared,
    ) -> Result<Self, Error> {
        let (n_features, device) = (means.len(), device.clone());
        let n_samples = features.len() / n_features;
        let pack = |term: &_| Packed::new(&device, *term, &features, &means, n_samples);
        let packed = prepared.working.then(|| recipe.terms.iter().map(pack).collect());
        let centre = || Centred::new(&device, &features, &means, n_samples);
        let centred = (prepared.centred && recipe.distances() == 1).then(centre);
        let (packed, centred) = (packed.transpose()?, centred.transpose()?);
        let scratch = Mutex::default();
        Ok(Self {
            device,
            recipe,
            n_samples,
            n_features,
            held: Held::There(features),
            means,
            centred,
            packed,
            scratch,
        })
    }

    /// Bytes on the GPU for `n_samples` with `n_features`, the buffers of products among them.
    pub(crate) fn bytes(recipe: &Recipe, n_samples: usize, n_features: usize) -> u64 {
        Self::held_bytes(recipe, n_samples, n_features) + Self::buffer_bytes(n_samples)
    }

    /// Of these the samples'.
    pub(crate) fn held_bytes(recipe: &Recipe, n_samples: usize, n_features: usize) -> u64 {
        let padded = n_samples.next_multiple_of(128) * n_features.next_multiple_of(16);
        let (n, d, terms) = (n_samples as u64, n_features as u64, recipe.terms.len() as u64);
        8 * n * d + (8 + 4 * terms) * padded as u64 + 24 * n
    }

    /// And those that a product takes: sums of strips or pairs in f64, eight columns of each; the
    /// fused products' two buffers.
    pub(crate) fn buffer_bytes(n_samples: usize) -> u64 {
        let n = n_samples as u64;
        (16 * 8 * 8 * n).max(exact::PAIR_BYTES as u64 + 64 * n) + fused::SCRATCH_BYTES
    }

    /// The GPU.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Rows and columns of K.
    pub fn n_samples(&self) -> usize {
        self.n_samples
    }

    /// What is prepared.
    pub fn what(&self) -> Prepared {
        Prepared { working: self.packed.is_some(), centred: self.centred.is_some() }
    }

    /// K·v: n_samples × any number of columns. Kernel values are computed once for up to 8 columns.
    pub fn apply(
        &self,
        v: ArrayView2<'_, f64>,
        precision: Precision,
    ) -> Result<Array2<f64>, Error> {
        self.download(&self.apply_columns(&self.upload(v)?, precision)?)
    }

    /// K·v in f64: what certificates are evaluated with. From inner products of centred features
    /// where those are prepared, else by differences.
    pub fn apply_exact(&self, v: ArrayView2<'_, f64>) -> Result<Array2<f64>, Error> {
        self.download(&self.apply_exact_columns(&self.upload(v)?)?)
    }

    /// As [`apply`](Self::apply), from and to the GPU.
    pub fn apply_columns(&self, v: &Columns, precision: Precision) -> Result<Columns, Error> {
        let Some(terms) = &self.packed else { return self.apply_exact_columns(v) };
        self.part_columns(terms, v, precision, Part::WHOLE)
    }

    /// One part of K·v, in f64 where no precision is given or prepared.
    pub(crate) fn apply_part(
        &self,
        v: ArrayView2<'_, f64>,
        precision: Option<Precision>,
        part: Part,
    ) -> Result<Array2<f64>, Error> {
        let v = self.upload_rows(v)?;
        let found = match (precision, &self.packed) {
            (Some(precision), Some(terms)) => self.part_columns(terms, &v, precision, part)?,
            _ => self.exact().part(&v, part)?,
        };
        let mut out = Array2::zeros((v.n_columns, self.n_samples));
        self.download_rows(&found, out.view_mut())?;
        Ok(out)
    }

    fn part_columns(
        &self,
        terms: &[Packed],
        v: &Columns,
        precision: Precision,
        part: Part,
    ) -> Result<Columns, Error> {
        let mut out = Columns::zeros(&self.device, v.n_samples, v.n_columns)?;
        let largest = fused::largest_entries(&self.device, v)?;
        let mut scratch = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        for packed in terms {
            for first in (0..v.n_columns).step_by(PASS_COLUMNS) {
                let pass = (first, (v.n_columns - first).min(PASS_COLUMNS));
                let (device, scratch) = (&self.device, &mut scratch);
                packed
                    .add_product(device, precision, v, &largest, &mut out, pass, part, scratch)?;
            }
        }
        if self.recipe.has_linear() && part.is_first() {
            linear::add_product(&self.exact(), &self.exact(), v, &mut out)?;
        }
        Ok(out)
    }

    /// As [`apply_exact`](Self::apply_exact), from and to the GPU.
    pub fn apply_exact_columns(&self, v: &Columns) -> Result<Columns, Error> {
        self.exact().product(&self.exact(), v)
    }

    /// v·K for vectors as rows, as the operators of argwhy-core have them; in f64 where no
    /// precision is given.
    pub fn apply_rows(
        &self,
        v: ArrayView2<'_, f64>,
        precision: Option<Precision>,
        out: ArrayViewMut2<'_, f64>,
    ) -> Result<(), Error> {
        let columns = self.upload_rows(v)?;
        let found = match precision {
            Some(precision) => self.apply_columns(&columns, precision)?,
            None => self.apply_exact_columns(&columns)?,
        };
        self.download_rows(&found, out)
    }

    /// κ(rows, samples)·v in f64, for other samples: `rows` is any number × n_features, finite.
    pub fn apply_between(
        &self,
        rows: ArrayView2<'_, f64>,
        v: &Columns,
    ) -> Result<Array2<f64>, Error> {
        let rows = self.recipe.scaled(rows)?;
        check_finite("features", rows.view())?;
        if let Held::Here { .. } = self.held {
            let needed = Self::bytes(&self.recipe, self.n_samples, self.n_features) as usize;
            let free = self.device.probe()?.free_memory;
            return Err(Error::NoMemory { what: "predicting from all samples", needed, free });
        }
        let features = self.device.upload("features", rows.as_slice().expect("row by row"))?;
        let n_rows = rows.nrows();
        let centre = |_| Centred::new(&self.device, &features, &self.means, n_rows);
        let centred = self.centred.as_ref().map(centre).transpose()?;
        let others = Exact {
            features: Some(&features),
            n_samples: n_rows,
            centred: centred.as_ref(),
            ..self.exact()
        };
        self.download(&self.exact().product(&others, v)?)
    }

    /// v·K[samples, :] in f64 for vectors as rows: `v` has a column for each of `samples`.
    pub fn apply_some(
        &self,
        samples: &[usize],
        v: ArrayView2<'_, f64>,
    ) -> Result<Array2<f64>, Error> {
        let features = self.gather(samples)?;
        let n_samples = samples.len();
        let centre = |_| Centred::new(&self.device, &features, &self.means, n_samples);
        let centred = self.centred.as_ref().map(centre).transpose()?;
        let centred = centred.as_ref();
        let few = Exact { features: Some(&features), n_samples, centred, ..self.exact() };
        let data = v.t().as_standard_layout().into_owned();
        let data = self.device.upload("vectors", data.as_slice().expect("row by row"))?;
        let columns = Columns { data, n_samples, n_columns: v.nrows() };
        if let Held::Here { features, panel_rows } = &self.held {
            return self.products_by_panels((features, *panel_rows), &few, &columns);
        }
        let found = few.product(&self.exact(), &columns)?;
        let mut out = Array2::zeros((v.nrows(), self.n_samples));
        self.download_rows(&found, out.view_mut())?;
        Ok(out)
    }

    /// v·K[samples, columns], likewise.
    pub(crate) fn apply_some_between(
        &self,
        samples: &[usize],
        v: ArrayView2<'_, f64>,
        columns: Range<usize>,
    ) -> Result<Array2<f64>, Error> {
        let columns: Vec<usize> = columns.collect();
        let (few, others) = (self.gather(samples)?, self.gather(&columns)?);
        let centre = |features: &CudaSlice<f64>, n_samples: usize| {
            let centre = |_| Centred::new(&self.device, features, &self.means, n_samples);
            self.centred.as_ref().map(centre).transpose()
        };
        let centred = (centre(&few, samples.len())?, centre(&others, columns.len())?);
        let of = |features, n_samples, centred| Exact {
            features: Some(features),
            n_samples,
            centred,
            ..self.exact()
        };
        let rows = of(&others, columns.len(), centred.1.as_ref());
        let few = of(&few, samples.len(), centred.0.as_ref());
        let data = v.t().as_standard_layout().into_owned();
        let data = self.device.upload("vectors", data.as_slice().expect("row by row"))?;
        let v = Columns { data, n_samples: samples.len(), n_columns: v.nrows() };
        Ok(self.download(&few.product(&rows, &v)?)?.reversed_axes())
    }

    /// K[rows, columns], rounded to `T`.
    pub(crate) fn between<T: Entry>(
        &self,
        rows: &[usize],
        columns: Range<usize>,
    ) -> Result<Array2<T>, Error> {
        self.values(rows, Some(&columns.collect::<Vec<usize>>()))
    }

    /// The matrix of the listed samples alone, prepared likewise.
    pub fn restrict(&self, samples: &[usize]) -> Result<Self, Error> {
        let features = self.gather(samples)?;
        let doing = |error| Error::from_driver("copying features", error);
        let means = self.device.stream().clone_dtod(&self.means).map_err(doing)?;
        Self::from_device(&self.device, self.recipe.clone(), features, means, self.what())
    }

    /// K[rows, :], computed in f64 by differences and rounded to `T`, f32 or f64: one row for each
    /// number, in order.
    pub fn rows<T: Entry>(&self, rows: &[usize]) -> Result<Array2<T>, Error> {
        self.values(rows, None)
    }

    /// K[samples, samples], likewise.
    pub fn block<T: Entry>(&self, samples: &[usize]) -> Result<Array2<T>, Error> {
        self.values(samples, Some(samples))
    }

    fn values<T: Entry>(
        &self,
        rows: &[usize],
        columns: Option<&[usize]>,
    ) -> Result<Array2<T>, Error> {
        let row_numbers = self.numbers(rows)?;
        let width = columns.map_or(self.n_samples, <[usize]>::len);
        let shape = (rows.len(), width);
        if rows.is_empty() || width == 0 {
            return Ok(Array2::from_shape_simple_fn(shape, T::default));
        }
        let mut out = self.device.zeros("rows of K", rows.len() * width)?;
        match columns {
            None => self.rows_into(&row_numbers, &mut out, width)?,
            Some(columns) => self.block_into((rows, columns), &mut out)?,
        }
        let values = self.device.download(&out)?;
        Ok(Array2::from_shape_vec(shape, values).expect("one value a row and column"))
    }

    /// out[r · pitch + j] = κ(rows\[r\], j) for all samples j.
    pub(crate) fn rows_into<T: Entry>(
        &self,
        rows: &[u64],
        out: &mut CudaSlice<T>,
        pitch: usize,
    ) -> Result<(), Error> {
        match &self.held {
            Held::There(_) => self.exact().values(rows, None, &mut out.as_view_mut(), pitch),
            Held::Here { features, panel_rows } => {
                self.values_by_panels((features, *panel_rows), rows, out, pitch)
            }
        }
    }

    /// K[rows, columns], wherever features are.
    fn block_into<T: Entry>(
        &self,
        (rows, columns): (&[usize], &[usize]),
        out: &mut CudaSlice<T>,
    ) -> Result<(), Error> {
        let both: Vec<usize> = rows.iter().chain(columns).copied().collect();
        let features = self.gather(&both)?;
        let numbers: Vec<u64> = (0..both.len() as u64).collect();
        let (rows, columns) = numbers.split_at(rows.len());
        let n_samples = both.len();
        let part = Exact { features: Some(&features), n_samples, centred: None, ..self.exact() };
        part.values(rows, Some(columns), &mut out.as_view_mut(), columns.len())
    }

    /// Numbers of samples as kernels take them.
    pub(crate) fn numbers(&self, samples: &[usize]) -> Result<Vec<u64>, Error> {
        let n_samples = self.n_samples;
        match samples.iter().find(|sample| **sample >= n_samples) {
            Some(&row) => Err(Error::Row { row, n_samples }),
            None => Ok(samples.iter().map(|sample| *sample as u64).collect()),
        }
    }

    /// A copy of v (n_samples × at least one column, finite) on the GPU.
    pub fn upload(&self, v: ArrayView2<'_, f64>) -> Result<Columns, Error> {
        let (n_samples, n_columns) = v.dim();
        if n_samples != self.n_samples || n_columns == 0 {
            let expected = format!("({}, one or more)", self.n_samples);
            return Err(Error::Shape { what: "v", found: v.dim(), expected });
        }
        check_finite("v", v)?;
        let v = v.as_standard_layout();
        let data = self.device.upload("vectors", v.as_slice().expect("row by row"))?;
        Ok(Columns { data, n_samples, n_columns })
    }

    /// A copy on the host.
    pub fn download(&self, columns: &Columns) -> Result<Array2<f64>, Error> {
        let data = self.device.download(&columns.data)?;
        let shape = (columns.n_samples, columns.n_columns);
        Ok(Array2::from_shape_vec(shape, data).expect("as many as were computed"))
    }

    /// Vectors as rows, n_vectors × n_samples, to the GPU as columns.
    fn upload_rows(&self, v: ArrayView2<'_, f64>) -> Result<Columns, Error> {
        let (n_columns, n_samples) = v.dim();
        if n_samples != self.n_samples || n_columns == 0 {
            let expected = format!("(one or more, {})", self.n_samples);
            return Err(Error::Shape { what: "v", found: v.dim(), expected });
        }
        check_finite("v", v)?;
        let v = v.as_standard_layout();
        let rows = self.device.upload("vectors", v.as_slice().expect("row by row"))?;
        let mut columns = Columns::zeros(&self.device, n_samples, n_columns)?;
        self.turn("rows_to_columns", &rows, &mut columns.data, n_columns, n_samples)?;
        Ok(columns)
    }

    fn download_rows(&self, columns: &Columns, out: ArrayViewMut2<'_, f64>) -> Result<(), Error> {
        let Columns { data, n_samples, n_columns } = columns;
        let mut rows = self.device.zeros("vectors", data.len())?;
        self.turn("columns_to_rows", data, &mut rows, *n_columns, *n_samples)?;
        self.device.download_rows(&rows, out)
    }

    #[allow(unsafe_code)]
    fn turn(
        &self,
        name: &str,
        from: &CudaSlice<f64>,
        to: &mut CudaSlice<f64>,
        n_columns: usize,
        n_samples: usize,
    ) -> Result<(), Error> {
        let (n, columns) = (n_samples as u64, int(n_columns));
        let function = self.device.function("pack", name, 0)?;
        let mut launch = self.device.stream().launch_builder(&function);
        launch.arg(from).arg(to).arg(&n).arg(&columns);
        // SAFETY: the arguments are those of the kernel; both arrays have n_samples × n_columns.
        unsafe { launch.launch(one_thread_each(n_samples)) }
            .map_err(|error| Error::from_driver("turning vectors", error))?;
        Ok(())
    }

    /// Features of the listed samples.
    #[allow(unsafe_code)]
    fn gather(&self, samples: &[usize]) -> Result<CudaSlice<f64>, Error> {
        let from = match &self.held {
            Held::There(features) => features,
            Held::Here { features, .. } => {
                self.numbers(samples)?;
                let few = features.select(Axis(0), samples);
                return self.device.upload("the features", few.as_slice().expect("row by row"));
            }
        };
        let numbers = self.device.upload("row numbers", &self.numbers(samples)?)?;
        let len = samples.len() * self.n_features;
        let mut out = self.device.zeros("the features", len)?;
        let (n, d) = (samples.len() as u64, int(self.n_features));
        let function = self.device.function("pack", "gather_rows", 0)?;
        let mut launch = self.device.stream().launch_builder(&function);
        launch.arg(from).arg(&numbers).arg(&mut out).arg(&n).arg(&d);
        // SAFETY: the arguments are those of the kernel; `numbers` checked the samples.
        unsafe { launch.launch(one_thread_each(len)) }
            .map_err(|error| Error::from_driver("copying features", error))?;
        Ok(out)
    }

    pub(crate) fn exact(&self) -> Exact<'_> {
        Exact {
            device: &self.device,
            features: match &self.held {
                Held::There(features) => Some(features),
                Held::Here { .. } => None,
            },
            n_samples: self.n_samples,
            n_features: self.n_features,
            recipe: &self.recipe,
            centred: self.centred.as_ref(),
        }
    }
}
