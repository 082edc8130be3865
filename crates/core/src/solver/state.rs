//! What a solver has reached, and where one may start.

use crate::error::Error;
use crate::operator::KernelOperator;
use crate::problem::{Problem, at_least_identity};
use ndarray::{Array2, s};

/// A point in the units of the data. The optimum does not depend on where a solver starts; the time
/// to it does.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// α, decision_dim × n_samples.
    pub coefficients: Array2<f64>,
    /// θ_uu, where one was being learned.
    pub theta: Option<Array2<f64>>,
}

impl State {
    /// The coefficients of a solver, which has them with the problem's weights.
    pub(crate) fn of(problem: &Problem, coefficients: &Array2<f64>) -> Self {
        let mut coefficients = coefficients.clone();
        scale(problem, &mut coefficients, |root| root);
        let metric = problem.metric();
        let theta = (!metric.is_identity()).then(|| metric.theta().to_owned());
        Self { coefficients, theta }
    }

    /// Coefficients as a solver has them, with g = Kα. Cost: a product.
    pub(crate) fn start(
        &self,
        problem: &Problem,
        weighted: &dyn KernelOperator,
    ) -> Result<(Array2<f64>, Array2<f64>), Error> {
        let coefficients = self.weighted(problem)?;
        let mut desired = Array2::zeros(coefficients.dim());
        weighted.apply(coefficients.view(), desired.view_mut())?;
        Ok((coefficients, desired))
    }

    /// The same where g is `known` of the first samples and these alone have coefficients, in a
    /// problem without weights. Cost: the others' rows of K.
    pub(crate) fn start_knowing(
        &self,
        problem: &Problem,
        operator: &dyn KernelOperator,
        known: Option<&Array2<f64>>,
    ) -> Result<(Array2<f64>, Array2<f64>), Error> {
        let (dim, n_samples) = problem.decisions().dim();
        let Some(known) = known.filter(|known| {
            let n_known = known.ncols();
            let rest = self.coefficients.columns().into_iter().skip(n_known);
            known.nrows() == dim && n_known <= n_samples && rest.flatten().all(|a| *a == 0.0)
        }) else {
            return self.start(problem, operator);
        };
        let coefficients = self.weighted(problem)?;
        let n_known = known.ncols();
        let mut desired = Array2::zeros(coefficients.dim());
        desired.slice_mut(s![.., ..n_known]).assign(known);
        if n_known < n_samples {
            let mut new = Array2::zeros((dim, n_samples - n_known));
            let own = coefficients.slice(s![.., ..n_known]);
            operator.apply_at(n_known..n_samples, own, new.view_mut())?;
            desired.slice_mut(s![.., n_known..]).assign(&new);
        }
        Ok((coefficients, desired))
    }

    /// Coefficients as a solver has them.
    pub(crate) fn weighted(&self, problem: &Problem) -> Result<Array2<f64>, Error> {
        let (found, wanted) = (self.coefficients.dim(), problem.decisions().dim());
        if found != wanted {
            let what = format!(
                "the coefficients to start from are {} × {}, but the problem has {} decision \
                 dimensions and {} samples",
                found.0, found.1, wanted.0, wanted.1
            );
            return Err(Error::Start { what });
        }
        if self.coefficients.iter().any(|a| !a.is_finite()) {
            let what = "the coefficients to start from are not all numbers".to_owned();
            return Err(Error::Start { what });
        }
        let mut coefficients = self.coefficients.as_standard_layout().into_owned();
        scale(problem, &mut coefficients, |root| 1.0 / root);
        Ok(coefficients)
    }

    /// Θ ⪰ I to start from, where there is one other than I.
    pub(crate) fn theta(&self, problem: &Problem) -> Result<Option<Array2<f64>>, Error> {
        let Some(theta) = &self.theta else { return Ok(None) };
        let n = problem.decision_dim();
        if theta.dim() != (n, n) || theta.iter().any(|v| !v.is_finite()) {
            let what = format!("the theta_uu to start from is no matrix of {n} × {n} numbers");
            return Err(Error::Start { what });
        }
        at_least_identity(theta).map(Some)
    }
}

fn scale(problem: &Problem, coefficients: &mut Array2<f64>, factor: impl Fn(f64) -> f64) {
    let Some(roots) = problem.roots() else { return };
    for mut row in coefficients.rows_mut() {
        row.iter_mut().zip(roots).for_each(|(a, root)| *a *= factor(*root));
    }
}
