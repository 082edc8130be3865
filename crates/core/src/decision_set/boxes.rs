//! Limits dimension by dimension.

use super::label::{RowLabel, empty};
use super::limits::BoxLimits;
use crate::dataset::Constraints;
use crate::error::Error;
use ndarray::Array2;
use serde::{Deserialize, Serialize};

/// Lower and upper limits, one pair a dimension for all samples or one a dimension and sample.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Boxes {
    pub(super) n: usize,
    /// Samples that have limits of their own; one where all share them.
    pub(super) width: usize,
    /// Zero where all samples share their limits, else one.
    pub(super) step: usize,
    /// Dimension by dimension.
    pub(super) lower: Vec<f64>,
    pub(super) upper: Vec<f64>,
}

impl Boxes {
    pub(super) fn shared(limits: &BoxLimits) -> Self {
        let (lower, upper) = (limits.lower().to_vec(), limits.upper().to_vec());
        Self { n: lower.len(), width: 1, step: 0, lower, upper }
    }

    pub(super) fn intersect(own: &BoxLimits, given: &Constraints) -> Self {
        let n = own.lower().len();
        let parts = [&given.lower, &given.upper];
        let width = parts.into_iter().flatten().map(Array2::nrows).max().unwrap_or(1);
        let value = |part: &Option<Array2<f64>>, i: usize, j: usize| -> Option<f64> {
            part.as_ref().map(|a| a[[if a.nrows() == 1 { 0 } else { i }, j]])
        };
        let mut boxes = Self {
            n,
            width,
            step: usize::from(width > 1),
            lower: Vec::with_capacity(n * width),
            upper: Vec::with_capacity(n * width),
        };
        for j in 0..n {
            for i in 0..width {
                let lower = value(&given.lower, i, j).unwrap_or(f64::NEG_INFINITY);
                let upper = value(&given.upper, i, j).unwrap_or(f64::INFINITY);
                boxes.lower.push(lower.max(own.lower()[j]));
                boxes.upper.push(upper.min(own.upper()[j]));
            }
        }
        boxes
    }

    pub(super) fn check(&self, name: impl Fn(usize) -> usize) -> Result<(), Error> {
        for i in 0..self.width {
            for j in 0..self.n {
                if self.lower(j, i) > self.upper(j, i) {
                    let labels = [RowLabel::Lower(j as u32), RowLabel::Upper(j as u32)];
                    return Err(empty(self.step == 0, name(i), &labels));
                }
            }
        }
        Ok(())
    }

    /// Lower limit of dimension `j` for sample `i`.
    #[inline]
    pub fn lower(&self, j: usize, i: usize) -> f64 {
        self.lower[j * self.width + i * self.step]
    }

    /// Upper limit of dimension `j` for sample `i`.
    #[inline]
    pub fn upper(&self, j: usize, i: usize) -> f64 {
        self.upper[j * self.width + i * self.step]
    }

    /// Nearest allowed value.
    #[inline]
    pub fn clamp(&self, j: usize, i: usize, value: f64) -> f64 {
        value.clamp(self.lower(j, i), self.upper(j, i))
    }

    pub(super) fn select(&self, samples: &[usize]) -> Self {
        if self.step == 0 {
            return self.clone();
        }
        let part = |limits: &[f64]| -> Vec<f64> {
            limits.chunks(self.width).flat_map(|row| samples.iter().map(|&i| row[i])).collect()
        };
        let (lower, upper) = (part(&self.lower), part(&self.upper));
        Self { n: self.n, width: samples.len(), step: 1, lower, upper }
    }

    pub(super) fn scaled(&self, factors: &[f64]) -> Self {
        let side = |limit: &dyn Fn(usize, usize) -> f64| -> Vec<f64> {
            (0..self.n)
                .flat_map(|j| factors.iter().enumerate().map(move |(i, f)| (j, i, f)))
                .map(|(j, i, f)| limit(j, i) * f)
                .collect()
        };
        let (lower, upper) = (side(&|j, i| self.lower(j, i)), side(&|j, i| self.upper(j, i)));
        Self { n: self.n, width: factors.len(), step: 1, lower, upper }
    }
}
