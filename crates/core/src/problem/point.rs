//! A point of the problem in its forms: coefficients, responses, desired and best decisions.

use super::{Certified, Decided, Problem};
use crate::decision_set::{Faces, Prices};
use crate::error::Error;
use crate::linalg::entries::filled;
use crate::operator::KernelOperator;
use ndarray::{Array2, ArrayView2};

/// Relative to the largest decision of a dimension, a step below this may be rounding.
const ROUNDING: f64 = 1e-12;
/// λ from which on a coefficient of a last place over λ is none.
const HARMLESS: f64 = 1e-6;

impl Problem {
    /// X(g) for every sample; `last` says where to look first.
    pub(crate) fn decide(
        &self,
        desired: &Array2<f64>,
        last: Option<&Faces>,
    ) -> Result<Decided, Error> {
        let (decisions, faces) = self.sets.decide(&self.metric, desired, last)?;
        Ok(Decided { decisions, faces })
    }

    /// Π(û − λα): the feasible responses nearest to what the coefficients stand for. A sample that
    /// its limit explains has the decision itself, and a coefficient of exactly zero.
    pub(crate) fn responses(
        &self,
        coefficients: ArrayView2<'_, f64>,
    ) -> Result<Array2<f64>, Error> {
        let ridge = self.ridge();
        let mut points = filled(coefficients.dim(), |j, i| {
            let decision = self.decisions[[j, i]];
            let step = ridge * coefficients[[j, i]];
            if self.is_negligible(j, i, step) { decision } else { decision - step }
        });
        self.sets.project_all(&mut points)?;
        if self.sets.projection_rounding() > 0.0 {
            for (i, mut x) in points.columns_mut().into_iter().enumerate() {
                let u = self.decisions.column(i);
                let steps = x.iter().zip(u).map(|(x, u)| x - u);
                if steps.enumerate().all(|(j, step)| self.is_negligible(j, i, step)) {
                    x.assign(&u);
                }
            }
        }
        Ok(points)
    }

    /// Whether a response `step` away from sample `i`'s decision is that decision up to rounding,
    /// which counts where a limit holds it. Inside the limits a coefficient is as good as it is
    /// small: with a tiny λ all of them stand for tiny steps.
    fn is_negligible(&self, j: usize, i: usize, step: f64) -> bool {
        let decision = self.decisions.column(i);
        step.abs() <= ROUNDING * self.largest[j]
            && self.sets.is_on_limit(j, i, decision, ROUNDING * self.largest[j])
            // A decision that was kept beyond its limits, if by a last place, costs its distance
            // over λ.
            && (self.ridge() >= HARMLESS || self.sets.beyond(i, decision) == 0.0)
    }

    /// Coefficients whose effect on a response is rounding become zero, as those of
    /// [`responses`](Self::responses) are.
    pub(crate) fn without_rounding(&self, mut coefficients: Array2<f64>) -> Array2<f64> {
        let ridge = self.ridge();
        for ((j, i), a) in coefficients.indexed_iter_mut() {
            if self.is_negligible(j, i, ridge * *a) {
                *a = 0.0;
            }
        }
        coefficients
    }

    /// α = (û − x)/λ.
    pub fn coefficients(&self, responses: ArrayView2<'_, f64>) -> Array2<f64> {
        (&*self.decisions - &responses) / self.ridge()
    }

    /// g = Kα, in a block with what the other samples add, by an exact product.
    pub(crate) fn desired(
        &self,
        operator: &dyn KernelOperator,
        coefficients: &Array2<f64>,
    ) -> Result<Array2<f64>, Error> {
        let mut desired = Array2::zeros(coefficients.dim());
        operator.exact().apply(coefficients.view(), desired.view_mut())?;
        if let Some(offset) = &self.offset {
            desired += offset;
        }
        Ok(desired)
    }

    /// The point in the units of the data: without the factors √w that weighted problems are solved
    /// with.
    pub(crate) fn without_weights(&self, mut certified: Certified) -> Certified {
        if let Some(roots) = &self.roots {
            let scale = |array: &mut Array2<f64>, factor: &dyn Fn(f64) -> f64| {
                for mut row in array.rows_mut() {
                    row.iter_mut().zip(roots).for_each(|(v, root)| *v *= factor(*root));
                }
            };
            scale(&mut certified.responses, &|root| 1.0 / root);
            scale(&mut certified.desired, &|root| 1.0 / root);
            scale(&mut certified.coefficients, &|root| root);
        }
        certified
    }

    /// What the samples' limits cost at the point: the multipliers [KIO 4] has for them, a sample's
    /// own whatever its weight.
    pub(crate) fn prices(&self, certified: &Certified) -> Result<Prices, Error> {
        let mut prices = self.sets.prices(&self.metric, &certified.desired)?;
        if let Some(roots) = &self.roots {
            let samples = prices.samples.iter().map(|&i| roots[i as usize]);
            prices.values.iter_mut().zip(samples).for_each(|(value, root)| *value /= root);
        }
        Ok(prices)
    }
}
