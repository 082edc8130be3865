//! Certificates: two values that enclose the optimum, recomputed from the definitions, with what
//! rounding may hide.
//!
//! Enters: a feasible point and an operator. Leaves: P, D and their gap. The gap is the sum of the
//! identity's nonnegative terms and of a proven bound on what f64 may have taken off them: the
//! exact product is off by at most E_i = r_i Σ_j r_j|α_j| ([`KernelOperator::rounding`]), which
//! moves δ_i by at most 2E_i‖x_i − y_i‖ + 2E_i².

use super::measure::{Values, relative};
use super::rounding::{Rounding, SUMS};
use super::{Decided, Problem, slice};
use crate::error::Error;
use crate::linalg::sums::{UNIT, dot, sum_over};
use crate::operator::KernelOperator;
use ndarray::{Array2, Axis};
use serde::{Deserialize, Serialize};

/// Relative gap from which on a bound on rounding means that values may be rounded visibly.
const VISIBLE: f64 = 1e-9;
/// Doubt about P, relative to P or to what it is judged by, from which on it counts whatever the
/// gap. With few samples from [`VISIBLE`] a sample on: the doubt adds up what N² kernel values can
/// be off at worst, of which about an Nth is left. On general rows, where decisions off their set
/// by rounding are pulled hard, from [`VISIBLE`] on.
const CLEAR: f64 = 1e-6;
/// Share of the samples up to which their own matrix is worth making.
const FEW: usize = 4;

/// Two values that enclose the optimum, and how far apart they are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// (Q)(x), the paper's [KIO 9], at the responses.
    pub objective: f64,
    /// P(α): an upper bound on the optimal suboptimality loss plus regularization ([KIO 3] without
    /// the constant kn). Where rounding is most of the gap, P(α) and what it may be off by.
    pub primal: f64,
    /// A lower bound on the same: P(α) less the gap, and likewise less what P(α) may be off by.
    pub dual: f64,
    /// P(α) − D(x) from the identity of nonnegative terms, and what rounding may have taken off it.
    pub gap: f64,
    /// The gap relative to max(|P|, |D|, 1e-12 · P(0)). Dimensions that nothing ties together are
    /// judged each, and the worst counts.
    pub relative_gap: f64,
    /// The part of the gap that is a bound on rounding.
    #[serde(default)]
    pub rounding: f64,
}

impl Certificate {
    /// A bound on ‖u(s) − u*(s)‖, the distance of any prediction from that of the exact optimum,
    /// for a signal with κ(s, s) = `kernel_value`: √(κ(s, s)·gap/k).
    pub fn prediction_bound(&self, kernel_value: f64, regularization: f64) -> f64 {
        (kernel_value * self.gap / regularization).sqrt()
    }

    /// A bound on ‖Θ − Θ*‖, where θ_uu was learned: √(gap/k).
    pub fn theta_bound(&self, regularization: f64) -> f64 {
        (self.gap / regularization).sqrt()
    }
}

/// A feasible point with everything that follows from it.
#[derive(Clone, Debug)]
pub struct Certified {
    /// x, decision_dim × n_samples, in U.
    pub responses: Array2<f64>,
    /// α: that of the responses, (û − x)/λ, unless a solver found one with a smaller gap.
    pub coefficients: Array2<f64>,
    /// g = Kα by the f64 kernel.
    pub desired: Array2<f64>,
    /// The proof.
    pub certificate: Certificate,
}

impl Problem {
    /// Builds the coefficients of feasible `responses`, multiplies them with the f64 kernel and
    /// measures the gap, all from the definitions. Cost: one exact product.
    pub(crate) fn certify(
        &self,
        operator: &dyn KernelOperator,
        responses: Array2<f64>,
    ) -> Result<Certified, Error> {
        let coefficients = self.coefficients(responses.view());
        let desired = self.desired(operator, &coefficients)?;
        self.certified(operator, responses, coefficients, desired)
    }

    /// As [`certify`](Self::certify), of responses whose coefficients and desired decisions are
    /// known.
    fn certified(
        &self,
        operator: &dyn KernelOperator,
        responses: Array2<f64>,
        coefficients: Array2<f64>,
        desired: Array2<f64>,
    ) -> Result<Certified, Error> {
        let decided = self.decide(&desired, None)?;
        let y = &decided.decisions;
        let differences = self.differences(&responses, y);
        let primal = self.primals(&coefficients, &desired, y);
        let values = Values::below(primal, self.gaps_of_differences(&differences, &desired, y));
        // Where entries of x and y are the same but for their last bits, y's stand for x's: α
        // differs by so much.
        let standing = y + &differences;
        let snapped = &responses - &standing;
        let rounding = self.rounding(
            operator,
            (&coefficients, &standing, &desired),
            &decided,
            &differences,
            &snapped,
        )?;
        let objective = self.objective(&responses, &coefficients, &desired);
        let certificate = self.assemble(objective, values, rounding)?;
        Ok(Certified { responses, coefficients, desired, certificate })
    }

    /// As [`certify`](Self::certify), for `coefficients` beside the responses of `certified`, by
    /// the full gap identity k‖α − (û−x)/λ‖²_K + (1/N)Σδ_i. Cost: two exact products. Of use where
    /// α is better than that of the nearest feasible responses, whose gap can be larger by ‖K‖/λ:
    /// for small k, and where a solver stops early.
    pub(crate) fn certify_pair(
        &self,
        operator: &dyn KernelOperator,
        coefficients: Array2<f64>,
        certified: &Certified,
    ) -> Result<Certified, Error> {
        let desired = self.desired(operator, &coefficients)?;
        let difference = self.pair_difference(&coefficients, &certified.responses);
        let image = if difference.iter().all(|d| *d == 0.0) {
            None
        } else {
            let mut image = Array2::zeros(difference.dim());
            operator.exact().apply(difference.view(), image.view_mut())?;
            Some(image)
        };
        let own = (certified.responses.clone(), certified.certificate.objective);
        self.paired(operator, (coefficients, desired), (&difference, image), own)
    }

    /// As [`certify_pair`](Self::certify_pair), without the certificate of the responses' own
    /// coefficients before it. Cost: one exact product, and one with the matrix of the samples
    /// whose coefficients are not those of their responses, of which there are few near the
    /// optimum; a second whole one where working products are exact.
    pub(crate) fn certify_alone(
        &self,
        operator: &dyn KernelOperator,
        coefficients: Array2<f64>,
        responses: Array2<f64>,
    ) -> Result<Certified, Error> {
        let difference = self.pair_difference(&coefficients, &responses);
        let apart: Vec<usize> = (0..self.n_samples())
            .filter(|&i| difference.column(i).iter().any(|d| *d != 0.0))
            .collect();
        let desired = self.desired(operator, &coefficients)?;
        let mut image = Array2::zeros(difference.dim());
        // An exact matrix at hand may be stored, and a part of it would be too, beside it.
        let whole = apart.len() > self.n_samples() / FEW || operator.is_exact();
        if whole && !apart.is_empty() {
            operator.exact().apply(difference.view(), image.view_mut())?;
        } else if !apart.is_empty() {
            let part = difference.select(Axis(1), &apart);
            let mut own = Array2::zeros(part.dim());
            operator.exact().restrict(&apart)?.exact().apply(part.view(), own.view_mut())?;
            for (own, &i) in own.columns().into_iter().zip(&apart) {
                image.column_mut(i).assign(&own);
            }
        }
        // (Q) belongs to the responses: with α − d their coefficients, ‖α − d‖²_K is ⟨α − d, Kα⟩ −
        // ⟨d, Kα⟩ + ⟨d, Kd⟩.
        let square = dot(slice(&responses), slice(&self.theta_times(&responses)));
        let mixed = self.energies(&(&coefficients - &difference), &desired, 2.0);
        let less = self.energies(&difference, &desired, 0.0);
        let own = self.squared_norms(&difference, &image);
        let energy = mixed.iter().chain(&own).sum::<f64>() - less.iter().sum::<f64>();
        let objective = square / self.total + energy;
        let image = (!apart.is_empty()).then_some(image);
        self.paired(operator, (coefficients, desired), (&difference, image), (responses, objective))
    }

    /// α − (û−x)/λ. Where û − λα lies inside its set it is the response, with nothing rounded: for
    /// tiny λ the last bits of x alone would be a large step in α.
    fn pair_difference(&self, coefficients: &Array2<f64>, responses: &Array2<f64>) -> Array2<f64> {
        let mut difference = coefficients - &self.coefficients(responses.view());
        for (at, d) in difference.indexed_iter_mut() {
            if self.is_own_response(coefficients, responses, at) {
                *d = 0.0;
            }
        }
        difference
    }

    fn is_own_response(
        &self,
        coefficients: &Array2<f64>,
        responses: &Array2<f64>,
        (j, i): (usize, usize),
    ) -> bool {
        self.decisions[[j, i]] - self.ridge() * coefficients[[j, i]] == responses[[j, i]]
            && !self.sets.is_on_limit(j, i, responses.column(i), 0.0)
    }

    /// As [`certify_pair`](Self::certify_pair), of coefficients with their desired decisions, and
    /// of their difference with its image, where it is not zero. (Q) belongs to the responses.
    fn paired(
        &self,
        operator: &dyn KernelOperator,
        (coefficients, desired): (Array2<f64>, Array2<f64>),
        (difference, image): (&Array2<f64>, Option<Array2<f64>>),
        (responses, objective): (Array2<f64>, f64),
    ) -> Result<Certified, Error> {
        let decided = self.decide(&desired, None)?;
        let y = &decided.decisions;
        let mut differences = self.differences(&responses, y);
        for (at, d) in differences.indexed_iter_mut() {
            if self.is_own_response(&coefficients, &responses, at) {
                *d = (self.decisions[at] - y[at]) - self.ridge() * coefficients[at];
            }
        }
        let distances = if let Some(image) = image {
            let off = Self::product_error(operator, difference)?;
            let errors = self.squared_norms(&difference.mapv(f64::abs), &off);
            let terms = self.squared_norms(difference, &image);
            terms.into_iter().zip(errors).map(|(d, e)| d.max(0.0) + e).collect()
        } else {
            vec![0.0; self.groups.count()]
        };
        let gap = self.gaps_of_differences(&differences, &desired, y);
        let hidden = self.hidden(&responses, &differences, &desired, &decided);
        let gap: Vec<f64> =
            gap.into_iter().zip(distances).zip(hidden).map(|((gap, d), h)| gap + d + h).collect();
        let primal = self.primals(&coefficients, &desired, y);
        let none = Array2::zeros(differences.dim());
        let rounding = self.rounding(
            operator,
            (&coefficients, &responses, &desired),
            &decided,
            &differences,
            &none,
        )?;
        let values = Values::below(primal, gap);
        let certificate = self.assemble(objective, values, rounding)?;
        Ok(Certified { responses, coefficients, desired, certificate })
    }

    /// (Q) at responses with coefficients of their own.
    fn objective(
        &self,
        responses: &Array2<f64>,
        coefficients: &Array2<f64>,
        desired: &Array2<f64>,
    ) -> f64 {
        let square = dot(slice(responses), slice(&self.theta_times(responses)));
        // λ²/(kN²) = k turns the second term of (Q) into k‖α‖²_K, in a block k(‖α‖²_K + 2⟨α, c⟩).
        square / self.total + self.energies(coefficients, desired, 2.0).iter().sum::<f64>()
    }

    /// The values of a feasible point with its own coefficients α = (û − x)/λ, desired decisions g
    /// = Kα and X(g), without what rounding may hide: for following a solver. Also (Q).
    pub(crate) fn values(
        &self,
        responses: &Array2<f64>,
        coefficients: &Array2<f64>,
        desired: &Array2<f64>,
        decided: &Array2<f64>,
    ) -> (Values, f64) {
        let primal = self.primals(coefficients, desired, decided);
        let gap = self.gaps(responses, desired, decided);
        (Values::below(primal, gap), self.objective(responses, coefficients, desired))
    }

    /// The certificate of explicit weights V (decision_dim × n_features) with the responses x =
    /// X(g), g = VΦᵀ, from the definitions and without a kernel: ‖(û−x)/λ‖²_K is ‖V_x‖² for `own`
    /// V_x = (û−x)Φ/λ. Every δ_i is zero, and the gap is k‖V − V_x‖². `lengths` are ‖φ_i‖, and
    /// `chain` the additions behind an entry of V_x at most.
    pub(crate) fn certificate_of_weights(
        &self,
        (weights, own): (&Array2<f64>, &Array2<f64>),
        desired: &Array2<f64>,
        decided: &Decided,
        (lengths, chain): (&[f64], usize),
    ) -> Result<Certificate, Error> {
        let k = self.regularization;
        let y = &decided.decisions;
        let rows = |a: &Array2<f64>| -> Vec<f64> {
            a.rows().into_iter().map(|row| row.dot(&row)).collect()
        };
        let squares = |a: &Array2<f64>| self.groups.sum(rows(a).into_iter().map(|s| k * s));
        let losses = self.losses(desired, y);
        let primal: Vec<f64> = squares(weights).iter().zip(&losses).map(|(e, l)| e + l).collect();
        let gap = squares(&(weights - own));
        let responses = dot(slice(y), slice(&self.theta_times(y)));
        let objective = responses / self.total + squares(own).iter().sum::<f64>();

        // g is off by E = (d + 4)u‖V_j‖‖φ_i‖ and V_x by η = u·chain·Σ|û − x|‖φ‖/λ.
        let (n, units) = (self.n_samples(), (weights.ncols() + 4) as f64 * UNIT);
        let sizes: Vec<f64> = rows(weights).into_iter().map(f64::sqrt).collect();
        let off = Array2::from_shape_fn(y.dim(), |(j, i)| units * sizes[j] * lengths[i]);
        // Responses beyond a row by rounding stand for ones inside.
        let outside = sum_over(n, |i| 2.0 * self.sets.beyond(i, y.column(i)) * lengths[i]);
        let residuals = self.decisions.rows().into_iter().zip(y.rows()).map(|(u, x)| {
            let summed = sum_over(n, |i| (u[i] - x[i]).abs() * lengths[i]);
            (summed * UNIT * (chain + 8) as f64 + outside) / self.ridge()
        });
        let distance = rows(&(weights - own)).into_iter().map(f64::sqrt);
        let by_own = residuals.zip(distance).map(|(eta, d)| k * eta * (2.0 * d + eta));
        let own_rounding = self.groups.sum(by_own);
        let none = Array2::zeros(y.dim());
        let mut rounding = self.rounding_of(&off, (&none, y), &none, (desired, decided));
        rounding.gap.iter_mut().zip(own_rounding).for_each(|(gap, own)| *gap += own);
        self.assemble(objective, Values::below(primal, gap), rounding)
    }

    /// A certificate of values and of what rounding may have done to them.
    fn assemble(
        &self,
        objective: f64,
        mut values: Values,
        mut rounding: Rounding,
    ) -> Result<Certificate, Error> {
        values.doubt = std::mem::take(&mut rounding.doubt);
        if rounding.programs.is_some() {
            // What small programs find is right to last places: nothing below P's own is claimed.
            let places = values.primal.iter().map(|primal| f64::EPSILON * primal.abs());
            rounding.gap.iter_mut().zip(places).for_each(|(gap, place)| *gap += place);
        }
        for (gap, rounding) in values.gap.iter_mut().zip(&rounding.gap) {
            *gap = *gap * (1.0 + SUMS) + rounding;
        }
        let (primal, gap) = (values.total_primal(), values.total_gap());
        if !(primal.is_finite() && gap.is_finite()) {
            return Err(Error::Numerical {
                what: format!("the objective overflowed (primal {primal}, gap {gap})"),
            });
        }
        // Where rounding is most of the gap it may be visible in P itself: what is reported
        // encloses the optimum all the same.
        let scales = self.scales(&values)?;
        let bound = rounding.gap.iter().sum::<f64>();
        let doubt: f64 = values.doubt.iter().sum();
        let few = if rounding.programs.is_none() { self.n_samples() as f64 } else { 1.0 };
        let visible = (2.0 * bound >= gap && relative(&rounding.gap, &scales) > VISIBLE)
            || relative(&values.doubt, &scales) > CLEAR
            || doubt > primal.abs() * CLEAR.min(few * VISIBLE);
        let doubt = if visible { doubt } else { 0.0 } + rounding.programs.unwrap_or(0.0);
        let (primal, dual) = (primal + doubt, primal - doubt - gap);
        let relative_gap = relative(&values.gap, &scales);
        Ok(Certificate { objective, primal, dual, gap, relative_gap, rounding: bound })
    }
}
