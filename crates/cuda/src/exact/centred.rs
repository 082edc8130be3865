//! Features as the f64 tensor cores take them.
#![allow(unsafe_code)]

use super::{TENSOR_CHUNK, TENSOR_ROWS, computing};
use crate::device::{Device, int};
use crate::error::Error;
use crate::fused::one_thread_each;
use crate::panels::{Features, Panels};
use cudarc::driver::{CudaSlice, CudaView, PushKernelArg};

/// As messages name what `Centred` holds.
const CENTRED: &str = "centred features";

/// Features less their means, padded for the tensor cores, and their squared norms.
#[derive(Debug)]
pub(crate) struct Centred {
    pub(super) features: Features<f64>,
    pub(super) norms: CudaSlice<f64>,
    pub(super) pitch: usize,
}

impl Centred {
    /// `features`: n_samples × n_features on the GPU; `means`: one a feature.
    pub(crate) fn new(
        device: &Device,
        features: &CudaSlice<f64>,
        means: &CudaSlice<f64>,
        n_samples: usize,
    ) -> Result<Self, Error> {
        let n_rows = n_samples.next_multiple_of(TENSOR_ROWS);
        let mut centred = Self::unfilled(device, means.len(), n_samples)?;
        let data = centred.fill(device, &features.as_view(), means, (0, n_samples))?;
        centred.features = Features::Resident { data, n_rows };
        Ok(centred)
    }

    /// The same in panels of `panel_rows`, which `push` brings.
    pub(crate) fn streamed(
        device: &Device,
        n_features: usize,
        n_samples: usize,
        panel_rows: usize,
    ) -> Result<Self, Error> {
        let mut centred = Self::unfilled(device, n_features, n_samples)?;
        centred.features = Features::Streamed(Panels::new(device, panel_rows, centred.pitch)?);
        Ok(centred)
    }

    /// The features of the next samples, from number `first` on.
    pub(crate) fn push(
        &mut self,
        device: &Device,
        features: &CudaView<'_, f64>,
        means: &CudaSlice<f64>,
        first: usize,
    ) -> Result<(), Error> {
        let panel = self.fill(device, features, means, (first, features.len() / means.len()))?;
        self.features.push(&panel)
    }

    fn unfilled(device: &Device, n_features: usize, n_samples: usize) -> Result<Self, Error> {
        Ok(Self {
            features: Features::Resident { data: device.zeros(CENTRED, 1)?, n_rows: 0 },
            norms: device.zeros(CENTRED, n_samples.next_multiple_of(TENSOR_ROWS))?,
            pitch: n_features.next_multiple_of(TENSOR_CHUNK),
        })
    }

    /// Centres the features of samples `first..first + count`, and puts their norms where those
    /// belong.
    fn fill(
        &mut self,
        device: &Device,
        features: &CudaView<'_, f64>,
        means: &CudaSlice<f64>,
        (first, count): (usize, usize),
    ) -> Result<CudaSlice<f64>, Error> {
        let padded = count.next_multiple_of(TENSOR_ROWS);
        let mut out = device.zeros(CENTRED, padded * self.pitch)?;
        let mut norms = self.norms.slice_mut(first..first + padded);
        let (n, p) = (count as u64, padded as u64);
        let (d, pitch) = (int(means.len()), int(self.pitch));
        let function = device.function("exact_tensor_4", "centre", 0)?;
        let mut launch = device.stream().launch_builder(&function);
        launch.arg(features).arg(means).arg(&mut out).arg(&mut norms);
        launch.arg(&n).arg(&p).arg(&d).arg(&pitch);
        // SAFETY: the arguments are those of the kernel; it writes `padded` rows, as allocated.
        unsafe { launch.launch(one_thread_each(padded)) }.map_err(computing)?;
        Ok(out)
    }

    /// All of them on the GPU, as strips take them.
    pub(super) fn all(&self) -> &CudaSlice<f64> {
        self.features.resident().expect("strips are of samples that are on the GPU")
    }
}
