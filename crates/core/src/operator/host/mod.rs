//! The kernel operator of this machine: its memory, its cores.

use super::kind::{OperatorKind, Precision};
use super::tiles::{PartialProduct, Tiles};
use super::{KernelOperator, ORDINARY_ACCURACY};
use crate::error::Error;
use crate::kernel::layout::BLOCK;
use crate::kernel::recipe::Recipe;
use crate::kernel::rounding::{Accuracy, Rounded};
use crate::kernel::samples::Samples;
use crate::kernel::{self, Kernel};
use crate::linalg::simd::Isa;
use ndarray::{Array2, ArrayView2, ArrayViewMut2, s};
use std::ops::Range;

/// Products with K on this machine's cores.
pub struct HostOperator {
    working: Working,
    /// Recomputed f64 tiles, where the working ones are f32.
    exact: Option<Box<HostOperator>>,
    kernel: Kernel,
    diagonal: Vec<f64>,
    /// Of exact products, see [`KernelOperator::rounding`].
    rounding: Vec<f64>,
    /// How the matrices of some of the samples are held.
    blocks: OperatorKind,
}

enum Working {
    Single(Tiles<f32>),
    Double(Tiles<f64>),
}

/// Evaluates an expression with the operator's tiles, whatever their precision.
macro_rules! with_tiles {
    ($operator:expr, $tiles:ident => $body:expr) => {
        match &$operator.working {
            Working::Single($tiles) => $body,
            Working::Double($tiles) => $body,
        }
    };
}

impl HostOperator {
    /// Packs `features` (n_samples × n_features) for `kernel`; with [`OperatorKind::Stored`]
    /// computes all of K.
    pub fn new(
        features: ArrayView2<'_, f64>,
        kernel: Kernel,
        precision: Precision,
        kind: OperatorKind,
    ) -> Result<Self, Error> {
        Self::with_accuracy(features, kernel, precision, kind, ORDINARY_ACCURACY)
    }

    /// As [`new`](Self::new), with distances in f64 by differences, at twice the cost, where the
    /// faster way would be off by more than `accuracy` on average;
    /// [`accuracy_for`](super::accuracy_for) says what a certificate needs. Certificates are true
    /// either way: they count what rounding can have done.
    pub fn with_accuracy(
        features: ArrayView2<'_, f64>,
        kernel: Kernel,
        precision: Precision,
        kind: OperatorKind,
        accuracy: f64,
    ) -> Result<Self, Error> {
        Self::build(features, kernel, precision, kind, (accuracy, Isa::detect(), false))
    }

    /// As [`with_accuracy`](Self::with_accuracy), for few products: with [`OperatorKind::Stored`]
    /// the first ones compute K themselves, and it is stored if more come.
    pub fn late(
        features: ArrayView2<'_, f64>,
        kernel: Kernel,
        precision: Precision,
        kind: OperatorKind,
        accuracy: f64,
    ) -> Result<Self, Error> {
        Self::build(features, kernel, precision, kind, (accuracy, Isa::detect(), true))
    }

    /// As [`new`](Self::new) with an instruction set of one's choice, for comparing them.
    pub fn with_isa(
        features: ArrayView2<'_, f64>,
        kernel: Kernel,
        precision: Precision,
        kind: OperatorKind,
        isa: Isa,
    ) -> Result<Self, Error> {
        Self::build(features, kernel, precision, kind, (ORDINARY_ACCURACY, isa, false))
    }

    fn build(
        features: ArrayView2<'_, f64>,
        kernel: Kernel,
        precision: Precision,
        kind: OperatorKind,
        (accuracy, isa, late): (f64, Isa, bool),
    ) -> Result<Self, Error> {
        kernel.validate_for(features.ncols())?;
        if features.nrows() == 0 {
            return Err(Error::NoSamples);
        }
        let diagonal = kernel::check(&kernel, features)?;
        let recipe = Recipe::new(&kernel, features);
        if kind == OperatorKind::Compact && !kernel.is_fraction() {
            return Err(Error::Setting {
                name: "operator",
                found: "compact, for a kernel with values beyond [0, 1]".to_owned(),
                allowed: "stored, tiled or auto: 16 bits hold rbf, laplace, matern kernels, their \
                          products, and their sums with weights of at most 1 in all",
            });
        }
        let rounded = Rounded::new(&recipe, features, Accuracy::Mean(accuracy));
        let envelope = rounded.envelope(Tiles::<f64>::longest_sum(features.nrows()));
        let Rounded { recipe: exact, single_will_do, .. } = rounded;
        let double = |kind| Self {
            working: Working::Double(match kind {
                OperatorKind::Stored if late => Tiles::late(exact.clone(), features, isa),
                kind => Tiles::new(exact.clone(), features, kind, isa),
            }),
            exact: None,
            kernel: kernel.clone(),
            diagonal: diagonal.clone(),
            rounding: envelope.clone(),
            blocks: kind,
        };
        Ok(match working_precision(precision, kind) {
            Precision::F32 if single_will_do => Self {
                working: Working::Single(match kind {
                    OperatorKind::Stored if late => Tiles::late(recipe, features, isa),
                    kind => Tiles::new(recipe, features, kind, isa),
                }),
                exact: Some(Box::new(double(OperatorKind::Tiled))),
                kernel: kernel.clone(),
                diagonal: diagonal.clone(),
                rounding: envelope.clone(),
                blocks: kind,
            },
            // Memory was promised for f32 values, so f64 ones are not kept.
            Precision::F32 => double(OperatorKind::Tiled),
            Precision::F64 => double(kind),
        })
    }

    /// Bytes an operator holds.
    pub fn bytes(
        kernel: &Kernel,
        n_samples: usize,
        n_features: usize,
        precision: Precision,
        kind: OperatorKind,
    ) -> u64 {
        let samples = match working_precision(precision, kind) {
            Precision::F32 => Samples::<f32>::bytes(kernel, n_samples, n_features),
            Precision::F64 => 0,
        };
        let value = match (kind, precision) {
            (OperatorKind::Tiled, _) => 0,
            (OperatorKind::Compact, _) => size_of::<u16>(),
            (OperatorKind::Stored, Precision::F32) => size_of::<f32>(),
            (OperatorKind::Stored, Precision::F64) => size_of::<f64>(),
        };
        // Certificates have f64 samples of their own.
        let exact = Samples::<f64>::bytes(kernel, n_samples, n_features);
        exact + samples + (Tiles::<f64>::stored_values(n_samples) * value) as u64
    }

    /// Bytes a product with `n_vectors` vectors takes while it runs.
    pub fn product_bytes(n_samples: usize, n_vectors: usize) -> u64 {
        Tiles::<f64>::product_bytes(n_samples, n_vectors)
    }

    fn select(&self, samples: &[usize], kind: OperatorKind) -> Self {
        Self {
            working: match &self.working {
                Working::Single(tiles) => Working::Single(tiles.restrict(samples, kind)),
                Working::Double(tiles) => Working::Double(tiles.restrict(samples, kind)),
            },
            exact: self
                .exact
                .as_ref()
                .map(|exact| Box::new(exact.select(samples, OperatorKind::Tiled))),
            kernel: self.kernel.clone(),
            diagonal: samples.iter().map(|&i| self.diagonal[i]).collect(),
            rounding: samples.iter().map(|&i| self.rounding[i]).collect(),
            blocks: self.blocks,
        }
    }

    /// The same, its restrictions to some of the samples held as `kind` says; without this, as the
    /// whole is.
    #[must_use]
    pub fn with_blocks(mut self, kind: OperatorKind) -> Self {
        self.blocks = kind;
        self
    }

    /// The kernel K is made of.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// The matrix that [`exact`](KernelOperator::exact) products are made with.
    pub fn exact_host(&self) -> &Self {
        self.exact.as_deref().unwrap_or(self)
    }

    /// Whether values are computed in single precision.
    pub fn is_single(&self) -> bool {
        matches!(self.working, Working::Single(_))
    }

    /// Parts that machines can share a product of `n_samples` in; their number depends on nothing
    /// else.
    pub fn n_parts(n_samples: usize) -> usize {
        Tiles::<f64>::n_parts(n_samples)
    }

    /// One part of v·K. Below a million samples, parts added first to last to zeros have the bits
    /// of [`apply`](KernelOperator::apply); beyond, machines share more parts than threads do.
    pub fn part(&self, part: usize, v: ArrayView2<'_, f64>) -> PartialProduct {
        with_tiles!(self, tiles => tiles.part(part, v))
    }

    /// Columns of K that are computed together: where [`add_columns_from`](Self::add_columns_from)
    /// may start.
    pub const COLUMNS: usize = BLOCK;

    /// [`add_columns`](KernelOperator::add_columns) for as many columns as `out` has, from
    /// `first` on, a multiple of [`COLUMNS`](Self::COLUMNS).
    pub fn add_columns_from(
        &self,
        first: usize,
        samples: &[usize],
        v: ArrayView2<'_, f64>,
        out: ArrayViewMut2<'_, f64>,
    ) {
        debug_assert!(first.is_multiple_of(BLOCK));
        let block = first / BLOCK;
        with_tiles!(self, tiles => tiles.add_columns_from(block, samples, v, out));
    }
}

/// Sixteen bits have no need of more than f32 before they are rounded.
fn working_precision(precision: Precision, kind: OperatorKind) -> Precision {
    if kind == OperatorKind::Compact { Precision::F32 } else { precision }
}

impl KernelOperator for HostOperator {
    fn n_samples(&self) -> usize {
        self.diagonal.len()
    }

    fn diagonal(&self) -> Result<Vec<f64>, Error> {
        Ok(self.diagonal.clone())
    }

    fn apply(&self, v: ArrayView2<'_, f64>, out: ArrayViewMut2<'_, f64>) -> Result<(), Error> {
        with_tiles!(self, tiles => tiles.apply(v, out));
        Ok(())
    }

    fn rounding(&self) -> Result<Vec<f64>, Error> {
        Ok(self.rounding.clone())
    }

    fn exact(&self) -> &dyn KernelOperator {
        let Some(exact) = &self.exact else { return self };
        with_tiles!(self, tiles => tiles.forget());
        &**exact
    }

    fn is_exact(&self) -> bool {
        self.exact.is_none()
    }

    fn rows_into(
        &self,
        samples: &[usize],
        columns: Range<usize>,
        out: &mut [f64],
    ) -> Result<(), Error> {
        with_tiles!(self, tiles => tiles.rows_into(samples, columns, out));
        Ok(())
    }

    fn block_into(&self, samples: &[usize], out: &mut [f64]) -> Result<(), Error> {
        with_tiles!(self, tiles => tiles.block_into(samples, out));
        Ok(())
    }

    fn add_columns(
        &self,
        samples: &[usize],
        v: ArrayView2<'_, f64>,
        out: ArrayViewMut2<'_, f64>,
    ) -> Result<(), Error> {
        with_tiles!(self, tiles => tiles.add_columns(samples, v, out));
        Ok(())
    }

    fn apply_at(
        &self,
        columns: Range<usize>,
        v: ArrayView2<'_, f64>,
        mut out: ArrayViewMut2<'_, f64>,
    ) -> Result<(), Error> {
        let first = columns.start / BLOCK * BLOCK;
        let mut wider = Array2::zeros((v.nrows(), columns.end - first));
        let all: Vec<usize> = (0..v.ncols()).collect();
        self.add_columns_from(first, &all, v, wider.view_mut());
        out.assign(&wider.slice(s![.., columns.start - first..]));
        Ok(())
    }

    fn restrict(&self, samples: &[usize]) -> Result<Box<dyn KernelOperator>, Error> {
        if samples.is_empty() {
            return Err(Error::NoSamples);
        }
        Ok(Box::new(self.select(samples, self.blocks)))
    }
}

#[cfg(test)]
mod tests;
