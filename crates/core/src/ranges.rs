//! Where the expert's own decision would lie, with a probability that can be trusted.
//!
//! Split conformal: on rows that a model has not seen its errors are known. In units of what is to
//! be expected in each situation (more where it is unfamiliar) they are exchangeable with the error
//! in the next situation of the same kind, whatever they are distributed like: with probability p
//! that is no larger than the ⌈(m + 1)p⌉-th smallest of m. The range of a dimension is the model's
//! decision give or take that, cut to what the set leaves the dimension.

use crate::decision_set::SampleSets;
use crate::error::Error;
use crate::familiarity::Familiarity;
use crate::model::{Calibration, Model};
use ndarray::{Array2, ArrayView2, Axis, Zip};

/// Share of the rows kept aside that count as known territory.
const KNOWN: f64 = 0.99;
/// Unknown territory begins below this at the latest: all of κ(s, s) is left where nothing is
/// known.
const MOST_KNOWN: f64 = 0.95;
/// σ² in familiar situations is no less than this share of the mean squared error, or a few
/// errors among familiar rows would decide on the width of all ranges.
const LEAST_NOISE: f64 = 0.1;

/// Learns from rows kept aside what errors are to be expected where.
///
/// `decided` and `observed`: n_rows × decision_dim; `left`: what the situations seen leave of each
/// of these, by [`Familiarity::left`] of the model that decided. None without rows.
pub fn calibrate(
    decided: ArrayView2<'_, f64>,
    observed: ArrayView2<'_, f64>,
    left: &[f64],
) -> Option<Calibration> {
    let n_rows = left.len();
    if n_rows == 0 {
        return None;
    }
    let errors = (&decided - &observed).mapv(f64::abs);
    let spread = observed.std_axis(Axis(0), 0.0).to_vec();
    let known = quantile(left, KNOWN).min(MOST_KNOWN);
    let (noise, growth): (Vec<f64>, Vec<f64>) = (errors.columns().into_iter().zip(&spread))
        .map(|(errors, spread)| expected(&errors.mapv(|e| e * e).to_vec(), left, *spread))
        .unzip();
    let scores = Array2::zeros((spread.len(), n_rows));
    let mut calibration = Calibration { noise, growth, spread, known, scores };
    for j in 0..calibration.noise.len() {
        let mut scores: Vec<f64> =
            (0..n_rows).map(|i| errors[[i, j]] / calibration.expected(j, left[i])).collect();
        scores.sort_unstable_by(f64::total_cmp);
        calibration.scores.row_mut(j).iter_mut().zip(scores).for_each(|(to, score)| *to = score);
    }
    Some(calibration)
}

/// noise and growth of `squares` ≈ noise + growth·left, by least squares, neither negative.
fn expected(squares: &[f64], left: &[f64], spread: f64) -> (f64, f64) {
    let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / left.len() as f64;
    let square = mean(&mut squares.iter().copied());
    let centre = mean(&mut left.iter().copied());
    let variance = mean(&mut left.iter().map(|v| (v - centre) * (v - centre)));
    let together = mean(&mut squares.iter().zip(left).map(|(s, v)| s * (v - centre)));
    let least = (1e-24 * spread * spread).max(f64::MIN_POSITIVE);
    let noise = |growth: f64| (square - growth * centre).max(LEAST_NOISE * square).max(least);
    let growth = if variance > 0.0 { (together / variance).max(0.0) } else { 0.0 };
    // No steeper than from almost nothing at the most familiar.
    let most = if centre > 0.0 { (1.0 - LEAST_NOISE) * square / centre } else { 0.0 };
    let growth = growth.min(most);
    (noise(growth), growth)
}

/// The smallest value that this share of them is not above.
fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted[((share * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len()) - 1]
}

impl Calibration {
    /// σ_j where so much is left.
    fn expected(&self, j: usize, left: f64) -> f64 {
        let beyond = (left - self.known).max(0.0) / (1.0 - self.known);
        let square = self.noise[j] + self.growth[j] * left + self.spread[j].powi(2) * beyond;
        square.sqrt()
    }

    /// How many σ a range of this probability reaches, dimension by dimension; none where there
    /// are too few rows for it.
    fn reach(&self, level: f64) -> Option<Vec<f64>> {
        // (m + 1)·p is often a whole number that rounding would push up.
        let rank = ((self.n_rows() + 1) as f64 * level - 1e-9).ceil().max(1.0) as usize;
        (rank <= self.n_rows()).then(|| self.scores.column(rank - 1).to_vec())
    }
}

/// A model ready to say where the expert's decisions would lie.
pub struct Ranges {
    familiarity: Familiarity,
    calibration: Calibration,
    reach: Vec<f64>,
}

impl Ranges {
    /// Ranges that hold the expert's decision with probability `level`, each dimension for itself.
    ///
    /// Fails where the model has none, or too few rows were kept aside for this probability.
    pub fn new(model: &Model, level: f64) -> Result<Self, Error> {
        if !(level > 0.0 && level < 1.0) {
            let (name, found) = ("range", level.to_string());
            let allowed = "a probability between 0 and 1, such as 0.9";
            return Err(Error::Setting { name, found, allowed });
        }
        let remembered = model.calibration.as_ref().zip(Familiarity::new(model)?);
        let Some((calibration, familiarity)) = remembered else { return Err(Error::NoRanges) };
        let n_rows = calibration.n_rows();
        let reach = calibration.reach(level).ok_or_else(|| Error::FewForRange {
            level,
            n_rows,
            needed: (level / (1.0 - level) - 1e-9).ceil() as usize,
        })?;
        Ok(Self { familiarity, calibration: calibration.clone(), reach })
    }

    /// Least and greatest decisions, n × decision_dim each, around the `decisions` that the model
    /// takes on `signals`, each in its own of `sets`.
    pub fn around(
        &self,
        signals: ArrayView2<'_, f64>,
        decisions: ArrayView2<'_, f64>,
        sets: &SampleSets,
    ) -> Result<(Array2<f64>, Array2<f64>), Error> {
        let left = self.familiarity.left(signals)?;
        let (mut low, mut high) = (decisions.to_owned(), decisions.to_owned());
        let mut extents = sets.extents();
        for (i, left) in left.into_iter().enumerate() {
            let within = extents.of(i);
            Zip::indexed(low.row_mut(i)).and(high.row_mut(i)).for_each(|j, low, high| {
                let (u, (least, most)) = (*low, within[j]);
                let width = self.reach[j] * self.calibration.expected(j, left);
                *low = (u - width).max(least).min(u);
                *high = (u + width).min(most).max(u);
            });
        }
        Ok((low, high))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random;
    use rand::RngExt;

    fn made(n: usize, sigma: impl Fn(f64) -> f64) -> (Calibration, Vec<f64>, Vec<f64>) {
        let mut draw = random::stream(1, "ranges");
        let left: Vec<f64> = (0..2 * n).map(|_| 0.8 * draw.random::<f64>()).collect();
        let bell = |draw: &mut rand_chacha::ChaCha8Rng| {
            (0..6).map(|_| draw.random::<f64>() - 0.5).sum::<f64>() * 2_f64.sqrt()
        };
        let errors: Vec<f64> = left.iter().map(|v| sigma(*v) * bell(&mut draw)).collect();
        let zero = Array2::zeros((n, 1));
        let decided = Array2::from_shape_fn((n, 1), |(i, _)| errors[i]);
        let calibration = calibrate(decided.view(), zero.view(), &left[..n]).unwrap();
        (calibration, left[n..].to_vec(), errors[n..].to_vec())
    }

    /// The share of errors that a range of this probability holds.
    fn held(calibration: &Calibration, level: f64, left: &[f64], errors: &[f64]) -> f64 {
        let reach = calibration.reach(level).unwrap()[0];
        let inside = left.iter().zip(errors).filter(|(v, e)| {
            let width = reach * calibration.expected(0, **v);
            e.abs() <= width
        });
        inside.count() as f64 / left.len() as f64
    }

    #[test]
    fn errors_that_grow_with_strangeness_are_held_everywhere_alike() {
        let (calibration, left, errors) = made(4000, |v| (0.05 + v).sqrt());
        for level in [0.5, 0.9, 0.99] {
            let found = held(&calibration, level, &left, &errors);
            assert!((found - level).abs() < 0.02, "{level}: {found}");
        }
        // Among the strangest quarter as among all, which one width for all would miss.
        let (strange, theirs): (Vec<f64>, Vec<f64>) =
            left.iter().zip(&errors).filter(|(v, _)| **v > 0.6).unzip();
        let found = held(&calibration, 0.9, &strange, &theirs);
        assert!((found - 0.9).abs() < 0.04, "{found}");
        let alike = Calibration { growth: vec![0.0], known: 0.95, ..calibration };
        assert!(held(&alike, 0.9, &strange, &theirs) < 0.9);
    }

    #[test]
    fn a_probability_needs_rows() {
        let (calibration, ..) = made(19, |_| 1.0);
        // ⌈20·0.95⌉ = 19 is the largest of them; 0.96 would need a twentieth.
        let largest = calibration.scores[[0, 18]];
        assert_eq!(calibration.reach(0.95), Some(vec![largest]));
        assert_eq!(calibration.reach(0.96), None);
    }

    #[test]
    fn beyond_what_was_kept_aside_ranges_widen_even_without_evidence() {
        let mut draw = random::stream(2, "ranges");
        let observed = Array2::from_shape_simple_fn((500, 1), || draw.random::<f64>());
        let decided = &observed + 1e-3;
        let left = vec![0.1; 500];
        let calibration = calibrate(decided.view(), observed.view(), &left).unwrap();
        let (seen, unseen) = (calibration.expected(0, 0.1), calibration.expected(0, 1.0));
        assert!((seen - 1e-3).abs() < 1e-6 && unseen > 0.9 * calibration.spread[0]);
        assert!(calibrate(decided.view(), decided.view(), &left).unwrap().validate(1).is_ok());
    }
}
