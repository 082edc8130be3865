//! The sets of all samples in the form solvers use: boxes, or polyhedra with rows of about length
//! one.
//!
//! Enters: the model's own limits and the constraints that came with the data. Leaves: for every
//! sample the decision nearest to, or best for, what is desired, X(g) = argmin over U of uᵀΘu −
//! 2gᵀu, with the face of U it lies on.

use super::boxes::Boxes;
use super::faces::{Face, Faces};
use super::label::RowLabel;
use super::limits::BoxLimits;
use super::polyhedra::Polyhedra;
use super::prices::Prices;
use crate::dataset::Constraints;
use crate::error::Error;
use crate::linalg::entries::filled;
use crate::qp::{ActiveSet, Metric, residual};
use ndarray::{Array2, ArrayView1, ArrayView2};
use serde::{Deserialize, Serialize};

/// What two projections of one point on general rows may differ by, relative to the largest
/// decision.
const LAST_BITS: f64 = 8.0 * f64::EPSILON;

/// A decision set for every sample.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum SampleSets {
    /// Limits dimension by dimension.
    Boxes(Boxes),
    /// General linear limits.
    Polyhedra(Polyhedra),
}

impl SampleSets {
    /// The intersection of `own` limits with those given for `n_samples`. `name` tells the user
    /// which row a sample is.
    ///
    /// Fails where parts do not fit together and where a sample's set is empty.
    pub fn new(
        own: &BoxLimits,
        given: Option<&Constraints>,
        n_samples: usize,
        name: impl Fn(usize) -> usize,
    ) -> Result<Self, Error> {
        let n = own.lower().len();
        let Some(given) = given else {
            return Ok(Self::Boxes(Boxes::shared(own)));
        };
        given.check(n_samples, n)?;
        let boxes = Boxes::intersect(own, given);
        if given.inequalities.is_none() && given.equalities.is_none() {
            boxes.check(name)?;
            return Ok(Self::Boxes(boxes));
        }
        let polyhedra =
            Polyhedra::new(&boxes, given.equalities.as_ref(), given.inequalities.as_ref());
        polyhedra.check(n_samples, name)?;
        Ok(Self::Polyhedra(polyhedra))
    }

    /// The same limits for any number of samples.
    pub fn shared(limits: &BoxLimits) -> Self {
        Self::Boxes(Boxes::shared(limits))
    }

    /// Length of a decision.
    pub fn decision_dim(&self) -> usize {
        match self {
            Self::Boxes(boxes) => boxes.n,
            Self::Polyhedra(polyhedra) => polyhedra.n,
        }
    }

    /// Dimensions that make up one system of Newton's method: with boxes each is one of its own.
    pub(crate) fn dims_per_system(&self) -> usize {
        match self {
            Self::Boxes(_) => 1,
            Self::Polyhedra(polyhedra) => polyhedra.n,
        }
    }

    /// Relative to the largest decision, by how much two projections of one point may differ: those
    /// on general rows are what small programs find, those on boxes are exact.
    pub(crate) fn projection_rounding(&self) -> f64 {
        match self {
            Self::Boxes(_) => 0.0,
            Self::Polyhedra(_) => LAST_BITS,
        }
    }

    /// Whether anything limits a decision.
    pub(crate) fn has_limits(&self) -> bool {
        match self {
            Self::Boxes(boxes) => {
                boxes.lower.iter().chain(&boxes.upper).any(|limit| limit.is_finite())
            }
            Self::Polyhedra(_) => true,
        }
    }

    /// Every row of every sample's matrix, once where samples share it; none for boxes.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &[f64]> {
        let (rows, n) = match self {
            Self::Boxes(boxes) => (&[][..], boxes.n),
            Self::Polyhedra(polyhedra) => (&polyhedra.rows[..], polyhedra.n),
        };
        rows.chunks(n.max(1))
    }

    /// Whether an inequality holds sample `i`'s `decision`, of a box in dimension `j`: it is met up
    /// to `tolerance`.
    pub(crate) fn is_on_limit(
        &self,
        j: usize,
        i: usize,
        decision: ArrayView1<'_, f64>,
        tolerance: f64,
    ) -> bool {
        match self {
            Self::Boxes(boxes) => {
                let room = (decision[j] - boxes.lower(j, i)).min(boxes.upper(j, i) - decision[j]);
                room <= tolerance
            }
            Self::Polyhedra(polyhedra) => {
                let set = polyhedra.at(i);
                let rows = set.rows.chunks(polyhedra.n).zip(set.limits).skip(set.equalities);
                rows.into_iter().any(|(row, limit)| {
                    let value: f64 = row.iter().zip(decision).map(|(a, u)| a * u).sum();
                    limit - value <= tolerance
                })
            }
        }
    }

    /// How far sample `i`'s `point` is beyond a general row, to twice the digits of f64; nothing
    /// for boxes.
    pub(crate) fn beyond(&self, i: usize, point: ArrayView1<'_, f64>) -> f64 {
        let Self::Polyhedra(polyhedra) = self else { return 0.0 };
        let (set, u) = (polyhedra.at(i), point.to_vec());
        let rows = set.rows.chunks(polyhedra.n).zip(set.limits).take(polyhedra.general).enumerate();
        let over = rows.map(|(r, (row, limit))| {
            let over = -residual(row, &u, *limit);
            if r < set.equalities { over.abs() } else { over.max(0.0) }
        });
        over.fold(0.0, f64::max)
    }

    /// Numbers held.
    pub fn n_numbers(&self) -> usize {
        match self {
            Self::Boxes(boxes) => boxes.lower.len() + boxes.upper.len(),
            Self::Polyhedra(p) => p.rows.len() + p.norms.len() + p.limits.len(),
        }
    }

    /// The sets of the listed samples.
    #[must_use]
    pub fn select(&self, samples: &[usize]) -> Self {
        match self {
            Self::Boxes(boxes) => Self::Boxes(boxes.select(samples)),
            Self::Polyhedra(polyhedra) => Self::Polyhedra(polyhedra.select(samples)),
        }
    }

    /// The sets blown up by one factor a sample.
    #[must_use]
    pub(crate) fn scaled(&self, factors: &[f64]) -> Self {
        match self {
            Self::Boxes(boxes) => Self::Boxes(boxes.scaled(factors)),
            Self::Polyhedra(polyhedra) => Self::Polyhedra(polyhedra.scaled(factors)),
        }
    }

    /// The same sets as polyhedra.
    #[must_use]
    pub fn into_polyhedra(self) -> Polyhedra {
        match self {
            Self::Boxes(boxes) => Polyhedra::new(&boxes, None, None),
            Self::Polyhedra(polyhedra) => polyhedra,
        }
    }

    /// The same sets with their dimensions as one system.
    #[must_use]
    pub(crate) fn coupled(self) -> Self {
        Self::Polyhedra(self.into_polyhedra())
    }

    /// Share of the entries of `decisions` (decision_dim × n_samples) that sit on a limit of a box;
    /// none where general rows hold them.
    pub(crate) fn share_on_limits(&self, decisions: ArrayView2<'_, f64>) -> Option<f64> {
        let Self::Boxes(boxes) = self else { return None };
        let on_limit = decisions
            .indexed_iter()
            .filter(|((j, i), u)| **u <= boxes.lower(*j, *i) || boxes.upper(*j, *i) <= **u)
            .count();
        Some(on_limit as f64 / decisions.len() as f64)
    }

    /// What "a millionth" refers to in dimension `j` of sample `i`: the largest finite limit there,
    /// or one.
    pub(crate) fn scale(&self, j: usize, i: usize) -> f64 {
        let larger = |m: f64, l: f64| if l.is_finite() { m.max(l.abs()) } else { m };
        let scale = match self {
            Self::Boxes(boxes) => larger(larger(0.0, boxes.lower(j, i)), boxes.upper(j, i)),
            Self::Polyhedra(p) => p.at(i).limits.iter().copied().fold(0.0, larger),
        };
        if scale > 0.0 { scale } else { 1.0 }
    }

    /// What is wrong with a decision of sample `i`, worst in dimension `j`.
    pub(crate) fn explain(&self, i: usize, j: usize, decision: &[f64]) -> String {
        match self {
            Self::Boxes(boxes) => {
                let value = decision[j];
                let (lower, upper) = (boxes.lower(j, i), boxes.upper(j, i));
                format!("dimension {j} has {value} outside [{lower}, {upper}]")
            }
            Self::Polyhedra(p) => p.explain(i, decision),
        }
    }

    /// How far sample `i`'s `decision` is outside its set at most, by any one limit.
    pub fn excess(&self, i: usize, decision: &[f64]) -> f64 {
        match self {
            Self::Boxes(boxes) => decision
                .iter()
                .enumerate()
                .map(|(j, u)| (boxes.lower(j, i) - u).max(u - boxes.upper(j, i)))
                .fold(0.0, f64::max),
            Self::Polyhedra(p) => p.excesses(i, decision).fold(0.0, f64::max),
        }
    }

    /// Whether `decision` lies strictly inside sample `i`'s set.
    pub(crate) fn is_inside(&self, i: usize, decision: &[f64]) -> bool {
        match self {
            Self::Boxes(boxes) => decision
                .iter()
                .enumerate()
                .all(|(j, u)| boxes.lower(j, i) < *u && *u < boxes.upper(j, i)),
            Self::Polyhedra(p) => p.excesses(i, decision).all(|over| over < 0.0),
        }
    }

    /// The decision of sample `i`'s set nearest to `point`.
    pub fn project(&self, i: usize, point: &mut [f64]) -> Result<(), Error> {
        match self {
            Self::Boxes(boxes) => {
                for (j, u) in point.iter_mut().enumerate() {
                    *u = boxes.clamp(j, i, *u);
                }
                Ok(())
            }
            Self::Polyhedra(polyhedra) => {
                let mut solver = ActiveSet::new(&Metric::identity(polyhedra.n));
                polyhedra.solve(i, &mut solver, point)?;
                point.copy_from_slice(solver.solution());
                Ok(())
            }
        }
    }

    /// Replaces what is desired by the decision of sample `i`'s set that is best by the solver's
    /// metric.
    pub(crate) fn decide_one(
        &self,
        i: usize,
        solver: &mut ActiveSet,
        desired: &mut [f64],
    ) -> Result<(), Error> {
        let Self::Polyhedra(polyhedra) = self else { return self.project(i, desired) };
        polyhedra.solve(i, solver, desired)?;
        desired.copy_from_slice(solver.solution());
        Ok(())
    }

    /// Moves every sample's column of `points` (n × n_samples) to the nearest point of its set.
    pub(crate) fn project_all(&self, points: &mut Array2<f64>) -> Result<(), Error> {
        match self {
            Self::Boxes(boxes) => {
                *points = filled(points.dim(), |j, i| boxes.clamp(j, i, points[[j, i]]));
            }
            Self::Polyhedra(polyhedra) => {
                let metric = Metric::identity(polyhedra.n);
                let read = |i: usize, _: &[f64], solver: &mut ActiveSet| {
                    polyhedra.polish(i, solver);
                    solver.solution().to_vec()
                };
                let nearest = polyhedra.visit(&metric, points, None, read)?;
                for (i, nearest) in nearest.into_iter().enumerate() {
                    for (j, u) in nearest.into_iter().enumerate() {
                        points[[j, i]] = u;
                    }
                }
            }
        }
        Ok(())
    }

    /// The prices of the limits that hold X(g), sample by sample; `desired` is n × n_samples.
    pub fn prices(&self, metric: &Metric, desired: &Array2<f64>) -> Result<Prices, Error> {
        let mut prices = Prices::default();
        match self {
            Self::Boxes(boxes) => {
                for i in 0..desired.ncols() {
                    for j in 0..boxes.n {
                        let over = desired[[j, i]] - boxes.clamp(j, i, desired[[j, i]]);
                        let limit = if over > 0.0 { RowLabel::Upper } else { RowLabel::Lower };
                        if over != 0.0 {
                            prices.push(i, limit(j as u32), 2.0 * over.abs());
                        }
                    }
                }
            }
            Self::Polyhedra(polyhedra) => {
                let held = polyhedra.visit(metric, desired, None, |_, _, solver| {
                    (solver.working_set().to_vec(), solver.multipliers().to_vec())
                })?;
                for (i, (rows, multipliers)) in held.into_iter().enumerate() {
                    for (row, value) in rows.into_iter().zip(multipliers) {
                        let row = row as usize;
                        if value != 0.0 {
                            prices.push(i, polyhedra.labels[row], value / polyhedra.norm(i, row));
                        }
                    }
                }
            }
        }
        Ok(prices)
    }

    /// X(g) for every sample (n × n_samples) with the faces it lies on. Cost: a clamp or a small
    /// quadratic program each; `last` are faces near which to look first.
    pub(crate) fn decide(
        &self,
        metric: &Metric,
        desired: &Array2<f64>,
        last: Option<&Faces>,
    ) -> Result<(Array2<f64>, Faces), Error> {
        match self {
            Self::Boxes(boxes) => {
                let decided = filled(desired.dim(), |j, i| boxes.clamp(j, i, desired[[j, i]]));
                let free = filled(desired.dim(), |j, i| {
                    let g = desired[[j, i]];
                    boxes.lower(j, i) < g && g < boxes.upper(j, i)
                });
                Ok((decided, Faces::Box(free)))
            }
            Self::Polyhedra(polyhedra) => {
                let seats = polyhedra.visit(metric, desired, last, |i, g, solver| {
                    polyhedra.polish(i, solver);
                    let doubt = solver.doubt(polyhedra.at(i), g, polyhedra.general);
                    (solver.solution().to_vec(), Face::of(solver, doubt))
                })?;
                let mut decided = Array2::zeros(desired.dim());
                let mut faces = Vec::with_capacity(seats.len());
                for (i, (decision, face)) in seats.into_iter().enumerate() {
                    for (j, u) in decision.into_iter().enumerate() {
                        decided[[j, i]] = u;
                    }
                    faces.push(face);
                }
                Ok((decided, Faces::Polyhedral(faces)))
            }
        }
    }
}
