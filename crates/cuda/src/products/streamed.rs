//! Samples that do not fit on the GPU: their features stay with the host, and panels of them pass
//! through (`crate::panels`). Products have the bits that they have where all of them fit.

use super::{Held, Products, check_features};
use crate::device::Device;
use crate::error::Error;
use crate::exact::{Centred, Entry, Exact, NARROW, PAIRS_FROM};
use crate::fused::Packed;
use crate::panels::{PANEL_UNIT, SLOTS};
use crate::products::Columns;
use crate::recipe::Recipe;
use argwhy_core::Kernel;
use cudarc::driver::CudaSlice;
use ndarray::{Array2, ArrayView2, Axis, s};

/// Samples of a panel at most: as many as are copied at full speed, and fewer where memory is
/// short.
const PANEL_ROWS: usize = 65_536;

impl Products {
    /// As [`prepared`](Self::prepared), with panels of `panel_rows` samples, a multiple of 1024, on
    /// the GPU. For 16,384 samples and more, and kernels of the Euclidean distance alone.
    pub fn streamed(
        device: &Device,
        features: ArrayView2<'_, f64>,
        kernel: &Kernel,
        working: bool,
        panel_rows: usize,
    ) -> Result<Self, Error> {
        let recipe = Recipe::new(kernel)?;
        let features = recipe.scaled(features)?.into_owned();
        let means = check_features(&recipe, features.view(), working)?;
        let (n_samples, n_features) = features.dim();
        if !streams(&recipe, n_samples) || panel_rows == 0 || !panel_rows.is_multiple_of(PANEL_UNIT)
        {
            let expected = format!(
                "{PAIRS_FROM} rows or more, of a kernel of the Euclidean distance, in panels of a \
                 multiple of {PANEL_UNIT} rows"
            );
            return Err(Error::Shape { what: "features", found: features.dim(), expected });
        }
        let means = device.upload("the features' means", &means)?;
        let mut centred = Centred::streamed(device, n_features, n_samples, panel_rows)?;
        let pack = |term: &_| Packed::streamed(device, *term, n_features, n_samples, panel_rows);
        let packed = working.then(|| recipe.terms.iter().map(pack).collect());
        let mut packed: Option<Vec<Packed>> = packed.transpose()?;
        for first in (0..n_samples).step_by(panel_rows) {
            let panel = features.slice(s![first..(first + panel_rows).min(n_samples), ..]);
            let panel = device.upload("a panel", panel.as_slice().expect("row by row"))?;
            centred.push(device, &panel.as_view(), &means, first)?;
            for packed in packed.iter_mut().flatten() {
                packed.push(device, &panel.as_view(), &means, first)?;
            }
        }
        let held = Held::Here { features, panel_rows };
        let products = Self {
            device: device.clone(),
            recipe,
            n_samples,
            n_features,
            held,
            means,
            centred: Some(centred),
            packed,
            scratch: std::sync::Mutex::default(),
        };
        if products.exact().has_room_for_pairs(NARROW)? {
            return Ok(products);
        }
        let kernel = "with so little shared memory, a kernel of samples in panels".to_owned();
        Err(Error::Kernel { kernel })
    }

    /// The largest panels with which `n_samples` take at most `memory` bytes on the GPU, buffers of
    /// products not counted; none where they do not, or cannot be streamed.
    pub(crate) fn panel_rows(
        recipe: &Recipe,
        n_samples: usize,
        n_features: usize,
        memory: u64,
    ) -> Option<usize> {
        let halved = std::iter::successors(Some(PANEL_ROWS), |rows| Some(rows / 2));
        halved
            .take_while(|rows| *rows >= 8 * PANEL_UNIT && streams(recipe, n_samples))
            .find(|rows| Self::streamed_bytes(recipe, (n_samples, n_features), *rows) <= memory)
    }

    /// As [`held_bytes`](Self::held_bytes), in panels.
    pub(crate) fn streamed_bytes(
        recipe: &Recipe,
        (n_samples, n_features): (usize, usize),
        panel_rows: usize,
    ) -> u64 {
        let (n, terms) = (n_samples as u64, recipe.terms.len() as u64);
        let padded = (panel_rows * n_features.next_multiple_of(16)) as u64;
        // The panels in their slots and while they are made, one as it is, with row numbers.
        let panels = (SLOTS as u64 + 1) * (8 + 4 * terms) * padded + 8 * padded;
        let norms = (8 + 8 * terms) * n;
        panels + 16 * panel_rows as u64 + norms + 24 * n
    }

    /// Bytes of the host that features in panels take: as they are, and pinned.
    pub(crate) fn host_bytes(recipe: &Recipe, n_samples: usize, n_features: usize) -> u64 {
        let padded = n_samples.next_multiple_of(128) * n_features.next_multiple_of(16);
        let terms = recipe.terms.len() as u64;
        (8 * n_samples * n_features) as u64 + (8 + 4 * terms) * padded as u64
    }

    /// K[rows, :], `pitch` numbers a row, panel by panel.
    pub(super) fn values_by_panels<T: Entry>(
        &self,
        (features, panel_rows): (&Array2<f64>, usize),
        rows: &[u64],
        out: &mut CudaSlice<T>,
        pitch: usize,
    ) -> Result<(), Error> {
        let row_numbers: Vec<usize> = rows.iter().map(|row| *row as usize).collect();
        let few = features.select(Axis(0), &row_numbers);
        let own: Vec<u64> = (0..rows.len() as u64).collect();
        for first in (0..self.n_samples).step_by(panel_rows) {
            let panel = features.slice(s![first..(first + panel_rows).min(self.n_samples), ..]);
            let both = ndarray::concatenate![Axis(0), few.view(), panel];
            let both = self.device.upload("a panel", both.as_slice().expect("row by row"))?;
            let columns: Vec<u64> = (0..panel.nrows()).map(|j| (rows.len() + j) as u64).collect();
            let n_samples = rows.len() + panel.nrows();
            let part = Exact { features: Some(&both), n_samples, centred: None, ..self.exact() };
            part.values(&own, Some(&columns), &mut out.slice_mut(first..), pitch)?;
        }
        Ok(())
    }

    /// v·K[samples, :] of these `few`, panel by panel.
    pub(super) fn products_by_panels(
        &self,
        (features, panel_rows): (&Array2<f64>, usize),
        few: &Exact<'_>,
        v: &Columns,
    ) -> Result<Array2<f64>, Error> {
        let mut out = Array2::zeros((self.n_samples, v.n_columns));
        for (panel, mut out) in out.axis_chunks_iter_mut(Axis(0), panel_rows).enumerate() {
            let (first, n_samples) = (panel * panel_rows, out.nrows());
            let panel = features.slice(s![first..first + n_samples, ..]);
            let panel = self.device.upload("a panel", panel.as_slice().expect("row by row"))?;
            let centred = Centred::new(&self.device, &panel, &self.means, n_samples)?;
            let (features, centred) = (Some(&panel), Some(&centred));
            let rows = Exact { features, n_samples, centred, ..self.exact() };
            out.assign(&self.download(&few.product(&rows, v)?)?);
        }
        Ok(out.reversed_axes())
    }
}

/// Whether products with such a kernel can have their samples in panels.
fn streams(recipe: &Recipe, n_samples: usize) -> bool {
    recipe.distances() == 1 && !recipe.has_linear() && n_samples >= PAIRS_FROM
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panels_are_as_large_as_memory_allows_and_none_where_they_cannot_be() {
        let of = |kernel: &Kernel| Recipe::new(kernel).unwrap();
        let rbf = of(&Kernel::Rbf { gamma: 0.1 });
        let (n, d) = (4_000_000, 78);
        let least = Products::streamed_bytes(&rbf, (n, d), 8 * PANEL_UNIT);
        assert!(least < Products::bytes(&rbf, n, d) / 2);
        assert_eq!(Products::panel_rows(&rbf, n, d, u64::MAX), Some(PANEL_ROWS));
        assert_eq!(Products::panel_rows(&rbf, n, d, least), Some(8 * PANEL_UNIT));
        assert_eq!(Products::panel_rows(&rbf, n, d, least - 1), None);
        assert_eq!(Products::panel_rows(&rbf, 10_000, d, u64::MAX), None);
        let laplace = of(&Kernel::Laplace { gamma: 0.1 });
        assert_eq!(Products::panel_rows(&laplace, n, d, u64::MAX), None);
    }
}
