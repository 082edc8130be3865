//! Where kernel values live: a machine as a value that plans, builds operators and decides on
//! batches.
//!
//! Enters: features and a kernel, or a model. Leaves: a [`KernelOperator`] for the solvers, a
//! [`BatchPredictor`] for a predictor. [`Host`], this machine's cores, is the default. Another
//! machine is a crate of its own with an implementation of [`Backend`]; nothing here, in the
//! solvers or in the plan knows its name. What it holds on a device or on other machines is its own
//! to bound; what it holds in this process is what a plan counts.

use crate::error::Error;
use crate::features::FeatureMap;
use crate::kernel::Kernel;
use crate::model::Model;
use crate::operator::{
    HostOperator, KernelOperator, ORDINARY_ACCURACY, OperatorKind, Precision, Trended,
};
use crate::predict::BatchPredictor;
use ndarray::{Array2, ArrayView2};
use std::fmt::Debug;
use std::time::Instant;

/// How K is held, and in which precision it is multiplied with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Storage {
    /// All of K.
    pub kind: OperatorKind,
    /// The matrices of some of the samples, for solvers that work block by block.
    pub blocks: OperatorKind,
    /// Of kernel values while iterating.
    pub precision: Precision,
    /// What kernel values of exact products may be off by on average:
    /// [`accuracy_for`](crate::operator::accuracy_for) says what a certificate needs. Whatever they
    /// are off by, the operator tells ([`KernelOperator::rounding`]).
    pub accuracy: f64,
    /// Whether few products are expected: kernel values that are to be stored need not be before a
    /// few have computed them. Products have the same bits.
    pub late: bool,
}

impl Storage {
    /// K and its parts held alike.
    pub fn new(kind: OperatorKind, precision: Precision) -> Self {
        Self { kind, blocks: kind, precision, accuracy: ORDINARY_ACCURACY, late: false }
    }
}

/// Where features came from, for machines that make theirs themselves instead of being sent them.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// What makes features of signals.
    pub map: &'a FeatureMap,
    /// The rows of the data that the samples are, in order.
    pub rows: &'a [usize],
}

/// A machine that multiplies with kernel matrices. Failures of its own are [`Error::Backend`] with
/// its name.
pub trait Backend: Debug + Send + Sync {
    /// As messages name it.
    fn name(&self) -> &'static str;

    /// Whether it can hold the matrix of `n_samples` like this: it has the kernel, the kind and the
    /// precision, and room of its own.
    fn offers(
        &self,
        kernel: &Kernel,
        n_samples: usize,
        n_features: usize,
        storage: Storage,
    ) -> bool;

    /// Bytes of this process that its operator holds.
    fn operator_bytes(
        &self,
        kernel: &Kernel,
        n_samples: usize,
        n_features: usize,
        storage: Storage,
    ) -> u64;

    /// Bytes of this process that a product with `n_vectors` vectors takes while it runs.
    fn product_bytes(&self, n_samples: usize, n_vectors: usize) -> u64;

    /// The kernel matrix of `features` (n_samples × n_features), held as planned. Features may be
    /// dropped when this returns.
    fn operator(
        &self,
        features: ArrayView2<'_, f64>,
        kernel: &Kernel,
        storage: Storage,
    ) -> Result<Box<dyn KernelOperator>, Error>;

    /// The same for a fit, which also says where the features came from.
    fn operator_from(
        &self,
        _origin: Origin<'_>,
        features: ArrayView2<'_, f64>,
        kernel: &Kernel,
        storage: Storage,
    ) -> Result<Box<dyn KernelOperator>, Error> {
        self.operator(features, kernel, storage)
    }

    /// The largest rank of a low-rank factor that it keeps itself
    /// ([`KernelOperator::remote_factor`]); none where that is the host's to keep.
    fn factor_rank(
        &self,
        _kernel: &Kernel,
        _n_samples: usize,
        _n_features: usize,
        _decision_dim: usize,
    ) -> Option<usize> {
        None
    }

    /// Bytes of this process beside a factor that it keeps itself, of so many rows by pivots and so
    /// many of a trend, for n_samples × n_features.
    fn factor_bytes(
        &self,
        _kernel: &Kernel,
        _shape: (usize, usize),
        _rows: (usize, usize),
        _decision_dim: usize,
    ) -> u64 {
        0
    }

    /// Multiply-adds a second of a factor that it keeps itself, about: those of a GPU.
    fn factor_rate(&self) -> f64 {
        2e12
    }

    /// Whether the matrices of some of the samples are its own too, and not the host's.
    fn keeps_blocks(&self) -> bool {
        true
    }

    /// What computes the desired decisions of batches; none where the host's own way is best.
    fn batch_predictor(&self, _model: &Model) -> Result<Option<Box<dyn BatchPredictor>>, Error> {
        Ok(None)
    }

    /// Seconds of a product of `n_vectors` vectors with the matrix of `n_samples`, by trying the
    /// samples given and scaling with N².
    fn product_seconds(
        &self,
        features: ArrayView2<'_, f64>,
        kernel: &Kernel,
        storage: Storage,
        (n_samples, n_vectors): (usize, usize),
    ) -> Result<f64, Error> {
        let operator = self.operator(features, kernel, storage)?;
        let v = Array2::from_elem((n_vectors, features.nrows()), 1.0);
        let mut out = Array2::zeros(v.dim());
        let start = Instant::now();
        operator.apply(v.view(), out.view_mut())?;
        let scale = (n_samples as f64 / features.nrows() as f64).powi(2);
        Ok(scale * start.elapsed().as_secs_f64())
    }
}

/// A backend as a fit uses it: kernels with a trend are taken apart, the backend holds what is
/// left, and the trend is added here, from d + 1 numbers a sample.
#[derive(Debug)]
pub struct WithTrends<'a>(pub &'a dyn Backend);

impl Backend for WithTrends<'_> {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn offers(
        &self,
        kernel: &Kernel,
        n_samples: usize,
        n_features: usize,
        storage: Storage,
    ) -> bool {
        let rest = kernel.split_trend().map(|(rest, _)| rest);
        self.0.offers(rest.as_ref().unwrap_or(kernel), n_samples, n_features, storage)
    }

    fn operator_bytes(
        &self,
        kernel: &Kernel,
        n_samples: usize,
        n_features: usize,
        storage: Storage,
    ) -> u64 {
        match kernel.split_trend() {
            None => self.0.operator_bytes(kernel, n_samples, n_features, storage),
            Some((rest, _)) => {
                self.0.operator_bytes(&rest, n_samples, n_features, storage)
                    + Trended::bytes(n_samples, n_features)
            }
        }
    }

    fn product_bytes(&self, n_samples: usize, n_vectors: usize) -> u64 {
        self.0.product_bytes(n_samples, n_vectors)
    }

    fn operator(
        &self,
        features: ArrayView2<'_, f64>,
        kernel: &Kernel,
        storage: Storage,
    ) -> Result<Box<dyn KernelOperator>, Error> {
        let Some((rest, trend)) = kernel.split_trend() else {
            return self.0.operator(features, kernel, storage);
        };
        let inner = self.0.operator(features, &rest, storage)?;
        Ok(Box::new(Trended::new(inner, trend, features)))
    }

    fn operator_from(
        &self,
        origin: Origin<'_>,
        features: ArrayView2<'_, f64>,
        kernel: &Kernel,
        storage: Storage,
    ) -> Result<Box<dyn KernelOperator>, Error> {
        let Some((rest, trend)) = kernel.split_trend() else {
            return self.0.operator_from(origin, features, kernel, storage);
        };
        let inner = self.0.operator_from(origin, features, &rest, storage)?;
        Ok(Box::new(Trended::new(inner, trend, features)))
    }

    fn factor_rank(
        &self,
        kernel: &Kernel,
        n_samples: usize,
        n_features: usize,
        decision_dim: usize,
    ) -> Option<usize> {
        let Some((rest, trend)) = kernel.split_trend() else {
            return self.0.factor_rank(kernel, n_samples, n_features, decision_dim);
        };
        // The trend's own rows are beside those of pivots, and for products a second time with
        // twice the digits.
        let rank = self.0.factor_rank(&rest, n_samples, n_features, decision_dim)?;
        rank.checked_sub(3 * trend.n_rows(n_features)).filter(|rank| *rank > 0)
    }

    fn factor_bytes(
        &self,
        kernel: &Kernel,
        shape: (usize, usize),
        rows: (usize, usize),
        decision_dim: usize,
    ) -> u64 {
        let Some((rest, trend)) = kernel.split_trend() else {
            return self.0.factor_bytes(kernel, shape, rows, decision_dim);
        };
        let rows = (rows.0, rows.1 + trend.n_rows(shape.1));
        self.0.factor_bytes(&rest, shape, rows, decision_dim)
    }

    fn factor_rate(&self) -> f64 {
        self.0.factor_rate()
    }

    fn keeps_blocks(&self) -> bool {
        self.0.keeps_blocks()
    }

    fn batch_predictor(&self, model: &Model) -> Result<Option<Box<dyn BatchPredictor>>, Error> {
        self.0.batch_predictor(model)
    }

    fn product_seconds(
        &self,
        features: ArrayView2<'_, f64>,
        kernel: &Kernel,
        storage: Storage,
        shape: (usize, usize),
    ) -> Result<f64, Error> {
        let rest = kernel.split_trend().map(|(rest, _)| rest);
        self.0.product_seconds(features, rest.as_ref().unwrap_or(kernel), storage, shape)
    }
}

/// This machine's memory and cores.
#[derive(Clone, Copy, Debug, Default)]
pub struct Host;

impl Backend for Host {
    fn name(&self) -> &'static str {
        "host"
    }

    fn offers(&self, kernel: &Kernel, _: usize, _: usize, storage: Storage) -> bool {
        let compact = OperatorKind::Compact;
        // Sixteen bits hold values in [0, 1] that were computed in f32.
        (storage.kind != compact && storage.blocks != compact)
            || (kernel.is_fraction() && storage.precision == Precision::F32)
    }

    fn operator_bytes(
        &self,
        kernel: &Kernel,
        n_samples: usize,
        n_features: usize,
        storage: Storage,
    ) -> u64 {
        HostOperator::bytes(kernel, n_samples, n_features, storage.precision, storage.kind)
    }

    fn product_bytes(&self, n_samples: usize, n_vectors: usize) -> u64 {
        HostOperator::product_bytes(n_samples, n_vectors)
    }

    fn operator(
        &self,
        features: ArrayView2<'_, f64>,
        kernel: &Kernel,
        storage: Storage,
    ) -> Result<Box<dyn KernelOperator>, Error> {
        let Storage { kind, blocks, precision, accuracy, late } = storage;
        let make = if late { HostOperator::late } else { HostOperator::with_accuracy };
        let operator = make(features, kernel.clone(), precision, kind, accuracy)?;
        Ok(Box::new(operator.with_blocks(blocks)))
    }
}
