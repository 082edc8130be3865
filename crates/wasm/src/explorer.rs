//! A model that is asked about one situation after the other.

use crate::wire;
use argwhy_core::dataset::ConstraintArrays;
use argwhy_core::decision_set::SampleSets;
use argwhy_core::familiarity::Familiarity;
use argwhy_core::pushes::{Plan, Pushes, is_additive};
use argwhy_core::{Constraints, Error, Kernel, Model, Predictor};
use ndarray::{Array1, Array2, ArrayView2, s};

/// A model, the limits in force and the past situations it is compared with.
pub struct Explorer {
    model: Model,
    predictor: Predictor,
    familiarity: Option<Familiarity>,
    kernel: Kernel,
    set: Option<SampleSets>,
    past: Past,
    pushing: Option<Pushing>,
}

/// Past situations.
#[derive(Default)]
struct Past {
    features: Vec<Vec<f64>>,
    /// κ of each with itself.
    own: Vec<f64>,
}

/// Pushes on their way: g of the first `done` rows is known.
struct Pushing {
    plan: Plan,
    desired: Array2<f64>,
    done: usize,
}

/// One situation answered.
pub struct Answer {
    /// What is desired.
    pub desired: Vec<f64>,
    /// What is decided within the limits; none before limits are known.
    pub decision: Option<Vec<f64>>,
    /// Limits that hold it ([`RowLabel::code`](argwhy_core::decision_set::RowLabel::code)), each
    /// with its price.
    pub prices: Vec<(u32, f64)>,
    /// How familiar the situation is, 0 to 100; none in models of older versions.
    pub familiarity: Option<f64>,
}

/// Limits of one situation: M (rows × n) with W, M_eq with W_eq, lower and upper, infinite where
/// there is none.
pub(crate) struct GivenLimits<'a> {
    pub matrix: &'a [f64],
    pub bound: &'a [f64],
    pub equal_matrix: &'a [f64],
    pub equal_bound: &'a [f64],
    pub lower: &'a [f64],
    pub upper: &'a [f64],
}

impl Explorer {
    /// Of a model as a page carries it. Unless decisions need constraints that come with their
    /// signals, the model's own limits are in force.
    pub fn open(header: &[u8], arrays: &[f64]) -> Result<Self, String> {
        let model = wire::read(header, arrays)?;
        let text = |error: Error| error.to_string();
        let predictor = Predictor::new(&model).map_err(text)?;
        let familiarity = Familiarity::new(&model).map_err(text)?;
        let set = if predictor.is_constrained() {
            None
        } else {
            Some(predictor.sets(None, 1).map_err(text)?)
        };
        let (kernel, past) = (model.kernel(), Past::default());
        Ok(Self { model, predictor, familiarity, kernel, set, past, pushing: None })
    }

    /// Entries of a signal.
    pub fn signal_dim(&self) -> usize {
        self.predictor.signal_dim()
    }

    /// Length of a decision.
    pub fn decision_dim(&self) -> usize {
        self.predictor.decision_dim()
    }

    /// Puts limits in force, beside the model's own. Fails, and keeps those before, where nothing
    /// is allowed.
    pub(crate) fn limit(&mut self, given: &GivenLimits<'_>) -> Result<(), Error> {
        let n = self.decision_dim();
        let matrix = |rows: &[f64], bound: &[f64]| {
            let shape = (bound.len(), n);
            let matrix = Array2::from_shape_vec(shape, rows.to_vec()).ok()?;
            (!bound.is_empty())
                .then(|| (matrix.into_dyn(), Array1::from(bound.to_vec()).into_dyn()))
        };
        let side = |limits: &[f64]| Some(Array1::from(limits.to_vec()).into_dyn());
        let (matrix, equal) =
            (matrix(given.matrix, given.bound), matrix(given.equal_matrix, given.equal_bound));
        let (matrix, bound) = matrix.unzip();
        let (equal_matrix, equal_bound) = equal.unzip();
        let arrays = ConstraintArrays {
            matrix,
            bound,
            equal_matrix,
            equal_bound,
            lower: side(given.lower),
            upper: side(given.upper),
        };
        let given = Constraints::from_arrays(arrays)?;
        self.set = Some(self.predictor.sets(Some(&given), 1)?);
        Ok(())
    }

    /// Remembers past situations, a row each.
    pub fn remember(&mut self, signals: ArrayView2<'_, f64>) -> Result<(), Error> {
        if signals.nrows() == 0 {
            self.past = Past::default();
            return Ok(());
        }
        let features = self.model.features.transform(signals)?;
        let features: Vec<Vec<f64>> = features.rows().into_iter().map(|z| z.to_vec()).collect();
        let own = features.iter().map(|z| self.kernel.evaluate(z, z)).collect();
        self.past = Past { features, own };
        Ok(())
    }

    /// The situation `signal`.
    pub fn answer(&self, signal: &[f64]) -> Result<Answer, Error> {
        let row = ArrayView2::from_shape((1, signal.len()), signal).expect("a row of its length");
        let desired = self.predictor.desired(row)?;
        let mut answer = Answer {
            desired: desired.row(0).to_vec(),
            decision: None,
            prices: Vec::new(),
            familiarity: None,
        };
        if let Some(familiarity) = &self.familiarity {
            answer.familiarity = familiarity.percentiles(row)?.first().copied();
        }
        if let Some(set) = &self.set {
            answer.decision = Some(self.predictor.decide(desired.view(), set)?.row(0).to_vec());
            let prices = self.predictor.prices(desired.view(), set)?;
            let codes = prices.limits.iter().map(|limit| limit.code());
            answer.prices = codes.zip(prices.values.iter().copied()).collect();
        }
        Ok(answer)
    }

    /// The past situations most like `signal`, those first, by 2κ(s, ŝ)/(κ(s, s) + κ(ŝ, ŝ)): one
    /// where the kernel cannot tell them apart, and κ(s, ŝ) itself for kernels of distances.
    pub fn nearest(&self, signal: &[f64], most: usize) -> Vec<(usize, f64)> {
        let mut here = vec![0.0; self.model.features.n_features()];
        self.model.features.write(signal.into(), &mut here);
        let own = self.kernel.evaluate(&here, &here);
        let compared = |(i, there): (usize, &Vec<f64>)| {
            let both = own + self.past.own[i];
            (i, if both > 0.0 { 2.0 * self.kernel.evaluate(&here, there) / both } else { 0.0 })
        };
        let mut all: Vec<_> = self.past.features.iter().enumerate().map(compared).collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        all.truncate(most);
        all
    }

    /// Starts to compute what pushed `signal` away from the `typical` one; so many rows of g.
    pub fn start_pushing(&mut self, signal: &[f64], typical: &[f64]) -> usize {
        let plan = Plan::new(signal, typical, is_additive(&self.model));
        let rows = plan.rows().nrows();
        let desired = Array2::zeros((rows, self.decision_dim()));
        self.pushing = Some(Pushing { plan, desired, done: 0 });
        rows
    }

    /// Computes some more rows of g; says how many are left.
    pub fn go_on(&mut self, rows: usize) -> Result<usize, Error> {
        let Some(Pushing { plan, desired, done }) = &mut self.pushing else { return Ok(0) };
        let end = (*done + rows).min(desired.nrows());
        let part = self.predictor.desired(plan.rows().slice(s![*done..end, ..]))?;
        desired.slice_mut(s![*done..end, ..]).assign(&part);
        *done = end;
        Ok(desired.nrows() - end)
    }

    /// The pushes, once no row is left.
    pub fn pushes(&self) -> Option<Pushes> {
        let pushing = self.pushing.as_ref()?;
        let complete = pushing.done == pushing.desired.nrows();
        complete.then(|| pushing.plan.pushes(pushing.desired.view()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use argwhy::explain::{Cases, explore};
    use argwhy::{Dataset, FitSettings, Pipeline};
    use argwhy_core::decision_set::RowLabel;
    use ndarray::array;

    /// What is learned of 60 rows in a simplex with a cap of each row's own.
    fn fitted() -> (Model, Dataset) {
        let signals = Array2::from_shape_fn((60, 2), |(i, j)| ((i * (j + 3)) as f64).sin());
        let capped = Array2::from_shape_fn((60, 2), |(i, _)| 0.6 + 0.1 * (i % 4) as f64);
        let decisions = Array2::from_shape_fn((60, 2), |(i, j)| {
            let first = (0.5 + 0.3 * signals[[i, 0]]).clamp(1.0 - capped[[i, 1]], capped[[i, 0]]);
            if j == 0 { first } else { 1.0 - first }
        });
        let given = Constraints::simplex(2, 1.0).unwrap().with_upper(capped).unwrap();
        let data = Dataset::new(signals, decisions).unwrap().with_constraints(given).unwrap();
        let settings = FitSettings { regularization: 1e-3.into(), ..FitSettings::default() };
        (Pipeline::new(settings).unwrap().fit(&data).unwrap().model, data)
    }

    fn explorer(model: &Model, data: &Dataset) -> Explorer {
        let predictor = Predictor::new(model).unwrap();
        let signals = data.signals().to_owned();
        let cases = Cases::of_data(&signals, None, data.constraints(), |i| i);
        let found = explore(model, &predictor, &cases, None).unwrap();
        let (header, n) = (found.model.to_string(), found.about["model_numbers"].as_u64());
        Explorer::open(header.as_bytes(), &found.numbers[..n.unwrap() as usize]).unwrap()
    }

    #[test]
    fn what_a_page_carries_decides_as_the_model_does() {
        let (model, data) = fitted();
        let mut explorer = explorer(&model, &data);
        let (predictor, given) = (Predictor::new(&model).unwrap(), data.constraints().unwrap());
        let decisions = predictor.predict_within(data.signals(), given).unwrap();
        assert!(explorer.answer(&[0.1, 0.2]).unwrap().decision.is_none());
        let mut held = false;
        for (i, signal) in data.signals().rows().into_iter().enumerate() {
            let upper = given.upper().unwrap().row(i).to_vec();
            let (equal_matrix, equal_bound) = (&[1.0, 1.0][..], &[1.0][..]);
            let (matrix, bound, lower) = (&[][..], &[][..], &[0.0, 0.0][..]);
            let limits =
                GivenLimits { matrix, bound, equal_matrix, equal_bound, lower, upper: &upper };
            explorer.limit(&limits).unwrap();
            let answer = explorer.answer(&signal.to_vec()).unwrap();
            assert_eq!(answer.decision.unwrap(), decisions.row(i).to_vec());
            held |= answer.prices.iter().any(|(code, _)| *code == RowLabel::Upper(0).code());
            assert!(answer.familiarity.is_some());
        }
        assert!(held);
    }

    #[test]
    fn the_nearest_is_the_situation_itself() {
        let (model, data) = fitted();
        let mut explorer = explorer(&model, &data);
        explorer.remember(data.signals()).unwrap();
        let nearest = explorer.nearest(&data.signals().row(7).to_vec(), 3);
        assert_eq!(nearest.len(), 3);
        assert!(nearest[0].0 == 7 && (nearest[0].1 - 1.0).abs() < 1e-12, "{nearest:?}");
        assert!(nearest.is_sorted_by(|a, b| a.1 >= b.1));
    }

    #[test]
    fn pushes_in_slices_are_those_at_once() {
        let (model, data) = fitted();
        let mut explorer = explorer(&model, &data);
        let rows = explorer.start_pushing(&[0.4, 0.1], &[0.0, 0.0]);
        assert_eq!(rows, 4);
        assert!(explorer.pushes().is_none());
        while explorer.go_on(3).unwrap() > 0 {}
        let pushes = explorer.pushes().unwrap().values;
        let whole = array![[0.4, 0.1], [0.0, 0.0]];
        let g = Predictor::new(&model).unwrap().desired(whole.view()).unwrap();
        for j in 0..2 {
            let sum = pushes.column(j).sum();
            assert!((sum - (g[[0, j]] - g[[1, j]])).abs() < 1e-12);
        }
    }

    #[test]
    fn numbers_that_are_cut_off_are_refused() {
        let (model, data) = fitted();
        let predictor = Predictor::new(&model).unwrap();
        let cases = Cases::of_data(&data.signals().to_owned(), None, data.constraints(), |i| i);
        let found = explore(&model, &predictor, &cases, None).unwrap();
        let refused = Explorer::open(found.model.to_string().as_bytes(), &found.numbers[..9]);
        assert!(refused.err().unwrap().contains("cut off"));
    }
}
