//! What a worker of several computes of products with K.

use super::{Columns, Products};
use crate::error::Error;
use crate::exact::{Centred, Entry, Exact};
use crate::fused::Precision;
use crate::parts::Part;
use cudarc::driver::CudaSlice;
use ndarray::{Array2, ArrayView2};
use std::ops::Range;

impl Products {
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

    /// v·K[samples, columns] in f64 for vectors as rows.
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
}
