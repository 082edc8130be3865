//! The problem's functions at a point, group by group: losses, energies, gaps, and what relative
//! gaps refer to.
//!
//! Every sum is of terms that cancel nothing: a dimension fixed at 1e6 adds exact zeros, not the
//! rounding of 1e12.

use super::{Certificate, Problem, slice};
use crate::error::Error;
use crate::linalg::entries::filled;
use crate::linalg::sums::sum_over;
use ndarray::{Array2, ArrayView2};

/// Relative to what can be explained, P below which nothing is left to explain.
const NOTHING: f64 = 1e-12;

/// Relative to mean ûᵀΘû, what can be explained below which it is the rounding of decisions.
const FIXED: f64 = 1e-14;

/// P, D and the gap, group by group.
#[derive(Clone, Debug)]
pub(crate) struct Values {
    pub(crate) primal: Vec<f64>,
    pub(crate) dual: Vec<f64>,
    pub(crate) gap: Vec<f64>,
    /// How far P and D may be off, where that is known.
    pub(crate) doubt: Vec<f64>,
}

impl Values {
    /// P and a gap; D is what they leave.
    pub(crate) fn below(primal: Vec<f64>, gap: Vec<f64>) -> Self {
        let dual = primal.iter().zip(&gap).map(|(p, g)| p - g).collect();
        let doubt = vec![0.0; gap.len()];
        Self { primal, dual, gap, doubt }
    }

    /// Σ P.
    pub(crate) fn total_primal(&self) -> f64 {
        self.primal.iter().sum()
    }

    /// Σ D.
    pub(crate) fn total_dual(&self) -> f64 {
        self.dual.iter().sum()
    }

    /// Σ gap.
    pub(crate) fn total_gap(&self) -> f64 {
        self.gap.iter().sum()
    }
}

impl Problem {
    /// How far each response is from optimal: ‖x_i − X_i(g_i)‖², zero for every sample at the
    /// optimum.
    ///
    /// Completes [KIO 12], which covers only samples strictly inside their set. `decided` is X(g).
    pub(crate) fn violations(
        &self,
        responses: ArrayView2<'_, f64>,
        decided: ArrayView2<'_, f64>,
    ) -> Vec<f64> {
        let of_sample = |i: usize| {
            let differences = (0..self.decision_dim()).map(|j| responses[[j, i]] - decided[[j, i]]);
            differences.map(|d| d.powi(2)).sum()
        };
        filled((1, self.n_samples()), |_, i| of_sample(i)).into_raw_vec_and_offset().0
    }

    /// x − y, without what the last bits of two small quadratic programs differ by: on polyhedra x
    /// and y come from programs of their own, and those bits times a large pull would be a gap of
    /// either sign.
    pub(super) fn differences(
        &self,
        responses: &Array2<f64>,
        decided: &Array2<f64>,
    ) -> Array2<f64> {
        let mut differences = responses - decided;
        for (mut row, largest) in differences.rows_mut().into_iter().zip(&self.largest) {
            let same = self.sets.projection_rounding() * largest;
            row.mapv_inplace(|d| if d.abs() <= same { 0.0 } else { d });
        }
        differences
    }

    /// q(x) − q(y) with q(u) = uᵀΘu − 2gᵀu and y = X(g), as (x−y)ᵀΘ(x−y) + 2(x−y)ᵀ(Θy−g), entry by
    /// entry: no cancellation, and both sums over a sample are nonnegative. `differences` is x − y.
    fn excess_terms<'a>(
        &self,
        differences: &'a Array2<f64>,
        desired: &'a Array2<f64>,
        decided: &'a Array2<f64>,
    ) -> impl Fn(usize) -> f64 + Sync + 'a {
        let (d, g, y) = (slice(differences), slice(desired), slice(decided));
        let weighted = (!self.metric.is_identity()).then(|| {
            (self.theta_times(differences).into_owned(), self.theta_times(decided).into_owned())
        });
        move |at| match &weighted {
            None => d[at] * d[at] + 2.0 * d[at] * (y[at] - g[at]),
            Some((td, ty)) => d[at] * slice(td)[at] + 2.0 * d[at] * (slice(ty)[at] - g[at]),
        }
    }

    /// δ_i: each sample's share of the gap, times N. Nonnegative for feasible responses. `decided`
    /// is X(g).
    pub(crate) fn gap_shares(
        &self,
        responses: &Array2<f64>,
        desired: &Array2<f64>,
        decided: &Array2<f64>,
    ) -> Vec<f64> {
        let differences = self.differences(responses, decided);
        let terms = self.excess_terms(&differences, desired, decided);
        (0..self.n_samples())
            .map(|i| (0..self.decision_dim()).map(|j| terms(j * self.n_samples() + i)).sum())
            .map(|share: f64| share.max(0.0))
            .collect()
    }

    /// (1/N) Σ of terms of every entry, group by group.
    pub(super) fn means(&self, terms: impl Fn(usize) -> f64 + Sync) -> Vec<f64> {
        let n = self.n_samples();
        let rows = (0..self.decision_dim()).map(|j| sum_over(n, |i| terms(j * n + i)) / self.total);
        self.groups.sum(rows)
    }

    /// (1/N) Σ δ_i, group by group.
    pub(crate) fn gaps(
        &self,
        responses: &Array2<f64>,
        desired: &Array2<f64>,
        decided: &Array2<f64>,
    ) -> Vec<f64> {
        self.gaps_of_differences(&self.differences(responses, decided), desired, decided)
    }

    /// The same, from x − y.
    pub(super) fn gaps_of_differences(
        &self,
        differences: &Array2<f64>,
        desired: &Array2<f64>,
        decided: &Array2<f64>,
    ) -> Vec<f64> {
        let terms = self.excess_terms(differences, desired, decided);
        let n = self.n_samples();
        let groups = self.groups.members();
        // On general rows a response may be outside by rounding, and its share negative: that much
        // is not known, and counts.
        let share = |group: &Vec<usize>, i: usize| group.iter().map(|j| terms(j * n + i)).sum();
        groups.iter().map(|group| sum_over(n, |i| f64::abs(share(group, i))) / self.total).collect()
    }

    /// (1/N) Σ ℓ_i: how much better X(g_i) is than the expert's decision, by the objective of g.
    pub(super) fn losses(&self, desired: &Array2<f64>, decided: &Array2<f64>) -> Vec<f64> {
        let differences = &*self.decisions - decided;
        self.means(self.excess_terms(&differences, desired, decided))
    }

    /// k⟨v, Kv⟩, group by group, from v and its image.
    pub(crate) fn squared_norms(&self, v: &Array2<f64>, image: &Array2<f64>) -> Vec<f64> {
        let (v, image) = (slice(v), slice(image));
        let scale = self.regularization * self.total;
        self.means(|at| scale * (v[at] * image[at]))
    }

    /// k times energies ⟨v, Kv⟩ of each dimension, group by group.
    pub(crate) fn energies_in_groups(&self, energies: &[f64]) -> Vec<f64> {
        self.groups.sum(energies.iter().map(|energy| self.regularization * energy))
    }

    /// k⟨α, g⟩, group by group; in a block g has the others' share, which is in it `offsets` times.
    pub(super) fn energies(
        &self,
        coefficients: &Array2<f64>,
        desired: &Array2<f64>,
        offsets: f64,
    ) -> Vec<f64> {
        let (a, g) = (slice(coefficients), slice(desired));
        let scale = self.regularization * self.total;
        match &self.offset {
            None => self.means(|at| scale * (a[at] * g[at])),
            Some(c) => {
                let c = slice(c);
                self.means(|at| scale * (a[at] * (g[at] + (offsets - 1.0) * c[at])))
            }
        }
    }

    /// P(α) for its desired decisions, group by group.
    pub(crate) fn primals(
        &self,
        coefficients: &Array2<f64>,
        desired: &Array2<f64>,
        decided: &Array2<f64>,
    ) -> Vec<f64> {
        let energies = self.energies(coefficients, desired, 0.0);
        energies.into_iter().zip(self.losses(desired, decided)).map(|(e, l)| e + l).collect()
    }

    /// What relative gaps refer to, group by group: the larger bound, but no less than a 1e-12 of
    /// what there is to explain: P at α = 0, to which nothing adds that is fixed.
    pub(crate) fn scales(&self, values: &Values) -> Result<Vec<f64>, Error> {
        if let Some(scales) = &self.scales {
            return Ok(scales.clone());
        }
        let bounds = values.primal.iter().zip(&values.dual).zip(&values.doubt);
        let mut scales: Vec<f64> =
            bounds.map(|((p, d), doubt)| (p.abs().max(d.abs()) - doubt).max(0.0)).collect();
        // What can be explained is at most mean ûᵀΘû: mostly that tells enough.
        let most = self.mean_squares();
        if scales.iter().zip(&most).any(|(scale, most)| *scale < NOTHING * most) {
            let nothing = Array2::zeros(self.decisions.dim());
            let explainable = self.losses(&nothing, &self.decide(&nothing, None)?.decisions);
            for ((scale, explainable), most) in scales.iter_mut().zip(explainable).zip(&most) {
                // Where limits alone explain everything, what is left is the last digits of the
                // decisions.
                let fixed = explainable.abs() <= FIXED * most;
                *scale = scale.max(if fixed { *most } else { NOTHING * explainable.abs() });
            }
        }
        Ok(scales)
    }

    /// The bounds that the values are, without what rounding may hide: for following a solver.
    pub(crate) fn bounds(&self, values: &Values, objective: f64) -> Result<Certificate, Error> {
        let (primal, gap) = (values.total_primal(), values.total_gap());
        if !(primal.is_finite() && gap.is_finite()) {
            return Err(Error::Numerical { what: format!("the objective overflowed ({primal})") });
        }
        let (dual, relative_gap) = (values.total_dual(), self.relative_gap(values)?);
        Ok(Certificate { objective, primal, dual, gap, relative_gap, rounding: 0.0 })
    }

    /// The largest gap of a group relative to what it refers to.
    pub(crate) fn relative_gap(&self, values: &Values) -> Result<f64, Error> {
        Ok(relative(&values.gap, &self.scales(values)?))
    }
}

/// max of gap/scale; a gap of zero is none.
pub(super) fn relative(gaps: &[f64], scales: &[f64]) -> f64 {
    let ratio = |(gap, scale): (&f64, &f64)| if *gap == 0.0 { 0.0 } else { gap / scale };
    gaps.iter().zip(scales).map(ratio).fold(0.0, f64::max)
}
