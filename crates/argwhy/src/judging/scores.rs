//! Error, R² and regret, dimension by dimension.
//!
//! On a row with decision û in its set U, where a model desires g and so decides u = X(g):
//! the error is u − û, and the regret the suboptimality loss F(û) − F(u) with F(u) = uᵀΘu − 2gᵀu,
//! what the expert seems to have lost by the model's objective. It is what inverse optimization
//! minimises on the rows it learns from.

use super::baselines::{Baselines, Learned};
use crate::error::Error;
use argwhy_core::decision_set::SampleSets;
use argwhy_core::model::{Calibration, KeptOut, Misfits};
use argwhy_core::qp::Metric;
use argwhy_core::ranges::calibrate;
use ndarray::{Array2, ArrayView1, ArrayView2, Axis, concatenate};
use serde::Serialize;

/// How well decisions match the expert's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scores {
    /// Root of the mean squared error over all dimensions.
    pub rmse: f64,
    /// One minus the squared error over the spread of the decisions, averaged over the dimensions
    /// that have a spread; none where none has.
    pub r2: Option<f64>,
    /// Mean regret.
    pub regret: f64,
    /// The same for each dimension; of the regret, its share.
    pub dimensions: Vec<DimensionScores>,
    /// Squared error of each row, over all dimensions.
    #[serde(skip)]
    pub(crate) squares: Vec<f64>,
}

/// How well one dimension of decisions matches the expert's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DimensionScores {
    /// Root of the mean squared error.
    pub rmse: f64,
    /// One minus the squared error over the spread of the decisions; none where they are constant.
    pub r2: Option<f64>,
    /// Its share of the mean regret: these add up. Under limits or a θ_uu that couple dimensions a
    /// share can be negative.
    pub regret: f64,
}

/// Decisions on rows kept aside, as they come.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    observed: Vec<Array2<f64>>,
    weights: Vec<f64>,
    /// What the situations that the model has seen leave of each row's, where that was asked for.
    left: Vec<f64>,
    /// Where the rows stand in the data, where that was said.
    rows: Vec<usize>,
    model: Decided,
    baselines: Baselines<Decided>,
}

/// What one model or baseline decides, and the regret of what the expert decided.
#[derive(Clone, Debug, Default)]
struct Decided {
    decisions: Vec<Array2<f64>>,
    regret: Vec<Array2<f64>>,
}

impl Decided {
    fn take(
        &mut self,
        desired: ArrayView2<'_, f64>,
        decided: Array2<f64>,
        observed: &Array2<f64>,
        metric: &Metric,
    ) {
        let mut regret = Array2::zeros(decided.dim());
        let mut image = vec![0.0; metric.dim()];
        // Each dimension's share of F(s, u).
        let mut add = |sign: f64, decisions: &Array2<f64>, regret: &mut Array2<f64>| {
            for ((u, g), mut out) in
                decisions.rows().into_iter().zip(desired.rows()).zip(regret.rows_mut())
            {
                metric.apply(&u.to_vec(), &mut image);
                for j in 0..u.len() {
                    out[j] += sign * u[j] * (image[j] - 2.0 * g[j]);
                }
            }
        };
        add(1.0, observed, &mut regret);
        add(-1.0, &decided, &mut regret);
        self.decisions.push(decided);
        self.regret.push(regret);
    }

    fn append(&mut self, other: Self) {
        self.decisions.extend(other.decisions);
        self.regret.extend(other.regret);
    }

    fn scores(&self, observed: ArrayView2<'_, f64>, weights: &[f64]) -> Scores {
        let (decided, regret) = (joined(&self.decisions), joined(&self.regret));
        let squared = (&decided - &observed).mapv(|error| error * error);
        let mean = |values: ArrayView1<'_, f64>| {
            let total: f64 = weights.iter().sum();
            values.iter().zip(weights).map(|(value, weight)| value * weight).sum::<f64>() / total
        };
        let of_dimension = |j: usize| {
            let (error, u) = (mean(squared.column(j)), observed.column(j));
            let centre = mean(u);
            let spread = mean(u.mapv(|u| (u - centre) * (u - centre)).view());
            // Rounding leaves a trace of a spread where all are equal.
            let has_spread = u.iter().any(|u| *u != observed[[0, j]]) && spread > 0.0;
            DimensionScores {
                rmse: error.sqrt(),
                r2: has_spread.then(|| 1.0 - error / spread),
                regret: mean(regret.column(j)),
            }
        };
        let dimensions: Vec<_> = (0..observed.ncols()).map(of_dimension).collect();
        let known: Vec<f64> = dimensions.iter().filter_map(|scores| scores.r2).collect();
        let errors = dimensions.iter().map(|scores| scores.rmse * scores.rmse);
        Scores {
            rmse: (errors.sum::<f64>() / dimensions.len().max(1) as f64).sqrt(),
            r2: (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64),
            regret: dimensions.iter().map(|scores| scores.regret).sum(),
            dimensions,
            squares: squared.sum_axis(Axis(1)).to_vec(),
        }
    }
}

/// Arrays of one width, one below the other.
fn joined(parts: &[Array2<f64>]) -> Array2<f64> {
    let views: Vec<_> = parts.iter().map(|part| part.view()).collect();
    concatenate(Axis(0), &views).expect("all have an entry a decision dimension")
}

impl Tally {
    pub fn is_empty(&self) -> bool {
        self.observed.is_empty()
    }

    pub fn n_rows(&self) -> usize {
        self.observed.iter().map(Array2::nrows).sum()
    }

    /// Adds the rows of another.
    pub fn append(&mut self, other: Self) {
        self.observed.extend(other.observed);
        self.weights.extend(other.weights);
        self.left.extend(other.left);
        self.rows.extend(other.rows);
        self.model.append(other.model);
        let theirs = [other.baselines.mean, other.baselines.ridge, other.baselines.nearest];
        self.baselines
            .each_mut()
            .into_iter()
            .zip(theirs)
            .for_each(|(own, their)| own.append(their));
    }

    /// Begins with rows of which this was decided; the model and the baselines come next.
    pub fn start(&mut self, observed: Array2<f64>, weights: Option<Vec<f64>>) {
        self.weights.extend(weights.unwrap_or_else(|| vec![1.0; observed.nrows()]));
        self.observed.push(observed);
    }

    /// What the model desires and decides on the rows begun with.
    pub fn model(&mut self, desired: ArrayView2<'_, f64>, decided: Array2<f64>, metric: &Metric) {
        let observed = self.observed.last().expect("begun before");
        self.model.take(desired, decided, observed, metric);
    }

    /// What the baselines make of the rows begun with: each desires something too, and decides
    /// what is nearest to it in the row's set.
    pub fn baselines(
        &mut self,
        learned: &Learned,
        signals: ArrayView2<'_, f64>,
        sets: &SampleSets,
    ) -> Result<(), Error> {
        let observed = self.observed.last().expect("begun before");
        let metric = Metric::identity(observed.ncols());
        let desired = learned.desired(signals)?;
        for (decided, desired) in self.baselines.each_mut().into_iter().zip(desired.each()) {
            let mut inside = desired.clone();
            for (i, mut row) in inside.rows_mut().into_iter().enumerate() {
                sets.project(i, row.as_slice_mut().expect("a row is contiguous"))?;
            }
            decided.take(desired.view(), inside, observed, &metric);
        }
        Ok(())
    }

    /// How little the model has seen of the rows' situations, for ranges.
    pub fn left(&mut self, left: Vec<f64>) {
        self.left.extend(left);
    }

    /// Where the rows last begun with stand in the data.
    pub fn name(&mut self, rows: impl Iterator<Item = usize>) {
        self.rows.extend(rows);
    }

    /// The rows that fit worst; none unless all were named.
    pub fn misfits(&self) -> Option<Misfits> {
        if self.rows.len() != self.n_rows() {
            return None;
        }
        let (decided, expected) = (joined(&self.observed), joined(&self.model.decisions));
        Some(Misfits::new(KeptOut::HeldOut, &self.rows, decided.view(), expected.view()))
    }

    /// What errors are to be expected where; none unless every row's situation was looked at.
    pub fn calibration(&self) -> Option<Calibration> {
        if self.left.len() != self.n_rows() {
            return None;
        }
        let (decided, observed) = (joined(&self.model.decisions), joined(&self.observed));
        calibrate(decided.view(), observed.view(), &self.left)
    }

    /// Scores of the model.
    pub fn scores(&self) -> Scores {
        self.model.scores(joined(&self.observed).view(), &self.weights)
    }

    /// Scores of the baselines.
    pub fn baseline_scores(&self) -> Baselines<Scores> {
        let observed = joined(&self.observed);
        self.baselines.map(|decided| decided.scores(observed.view(), &self.weights))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use argwhy_core::DecisionSet;
    use argwhy_core::metrics;
    use ndarray::array;

    #[test]
    fn scores_are_those_of_the_metrics_and_shares_add_up() {
        let sets = SampleSets::from(DecisionSet::bounds(2, -1.0, 1.0).unwrap());
        let observed = array![[0.5, -1.0], [1.0, 0.0], [0.0, 0.2]];
        let desired = array![[0.7, -3.0], [2.0, 0.1], [-0.1, 0.0]];
        let mut tally = Tally::default();
        tally.start(observed.clone(), None);
        let metric = Metric::identity(2);
        tally.model(desired.view(), desired.mapv(|g| g.clamp(-1.0, 1.0)), &metric);
        let scores = tally.scores();
        let m = metrics::evaluate(desired.view(), observed.view(), &metric, &sets).unwrap();
        assert!((scores.rmse - m.rmse).abs() < 1e-12);
        assert!((scores.regret - m.mean_suboptimality).abs() < 1e-12);
        let sum: f64 = scores.dimensions.iter().map(|d| d.regret).sum();
        assert!((sum - scores.regret).abs() < 1e-12);
    }

    #[test]
    fn regret_is_by_the_learned_objective() {
        let theta = array![[2.0, 0.5], [0.5, 1.5]];
        let (observed, decided, desired) =
            (array![[0.5, -1.0]], array![[0.25, 0.5]], array![[0.7, -3.0]]);
        let mut tally = Tally::default();
        tally.start(observed.clone(), None);
        let metric = Metric::new(theta.view()).unwrap();
        tally.model(desired.view(), decided.clone(), &metric);
        let objective = |u: &Array2<f64>| u.dot(&theta).dot(&u.t()) - 2.0 * desired.dot(&u.t());
        let expected = (objective(&observed) - objective(&decided))[[0, 0]];
        assert!((tally.scores().regret - expected).abs() < 1e-12);
    }

    #[test]
    fn a_constant_dimension_has_no_r2() {
        let mut tally = Tally::default();
        tally.start(array![[0.1, 1.0], [0.1, 3.0]], Some(vec![1.0, 3.0]));
        let desired = array![[0.1, 1.0], [0.1, 2.0]];
        tally.model(desired.view(), desired.clone(), &Metric::identity(2));
        let scores = tally.scores();
        assert_eq!(scores.dimensions[0].r2, None);
        // Mean 2.5; spread (2.25 + 3·0.25)/4 = 0.75; error 3·1/4 = 0.75.
        assert_eq!(scores.dimensions[1].r2, Some(0.0));
        assert_eq!(scores.r2, Some(0.0));
    }
}
