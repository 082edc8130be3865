//! The sets of all samples in the form solvers use: boxes, or polyhedra with rows of length one.
//!
//! Enters: the model's own limits and the constraints that came with the data. Leaves: for every sample the decision nearest
//! to, or best for, what is desired, X(g) = argmin over U of uᵀΘu − 2gᵀu, with the face of U it lies on.

use super::faces::{Face, Faces};
use super::limits::BoxLimits;
use crate::dataset::{ConstraintRows as Rows, Constraints};
use crate::error::Error;
use crate::qp::{self, ActiveSet, Metric, QpError};
use ndarray::Array2;
use rayon::prelude::*;

/// A decision set for every sample.
#[derive(Clone, Debug)]
pub enum SampleSets {
    /// Limits dimension by dimension.
    Boxes(Boxes),
    /// General linear limits.
    Polyhedra(Polyhedra),
}

/// Lower and upper limits, one pair a dimension for all samples or one a dimension and sample.
#[derive(Clone, Debug)]
pub struct Boxes {
    n: usize,
    /// Samples that have limits of their own; one where all share them.
    width: usize,
    /// Zero where all samples share their limits, else one.
    step: usize,
    /// Dimension by dimension.
    lower: Vec<f64>,
    upper: Vec<f64>,
}

/// rows·u ≤ limits, the first `equalities` of them =.
#[derive(Clone, Debug)]
pub struct Polyhedra {
    n: usize,
    equalities: usize,
    labels: Vec<RowLabel>,
    /// Of length one, sample by sample or once, row by row.
    rows: Vec<f64>,
    /// What each row was divided by.
    norms: Vec<f64>,
    limits: Vec<f64>,
    own_rows: bool,
    own_limits: bool,
}

/// Where a row of a polyhedron comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RowLabel {
    /// A row of M_eq.
    Equality(u32),
    /// A row of M.
    Inequality(u32),
    /// A lower limit.
    Lower(u32),
    /// An upper limit.
    Upper(u32),
}

impl std::fmt::Display for RowLabel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Equality(i) => write!(f, "M_eq[{i}]"),
            Self::Inequality(i) => write!(f, "M[{i}]"),
            Self::Lower(j) => write!(f, "lower[{j}]"),
            Self::Upper(j) => write!(f, "upper[{j}]"),
        }
    }
}

impl RowLabel {
    /// A number that stands for it in files: the kind in the two highest bits, the index below.
    pub fn code(self) -> u32 {
        let (kind, index) = match self {
            Self::Equality(i) => (0, i),
            Self::Inequality(i) => (1, i),
            Self::Lower(j) => (2, j),
            Self::Upper(j) => (3, j),
        };
        kind << 30 | index
    }

    /// What a number of [`code`](Self::code) stands for.
    pub fn from_code(code: u32) -> Self {
        let index = code & ((1 << 30) - 1);
        match code >> 30 {
            0 => Self::Equality(index),
            1 => Self::Inequality(index),
            2 => Self::Lower(index),
            _ => Self::Upper(index),
        }
    }
}

/// What limits cost: the multiplier ν of every limit that holds a decision, Σ ν_l·row_l = 2(g − Θu). Loosening limit l by one unit lowers
/// the learned objective uᵀΘu − 2gᵀu by ν_l.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prices {
    /// Samples, in increasing order.
    pub samples: Vec<u64>,
    /// The limit of each entry.
    pub limits: Vec<RowLabel>,
    /// ν; nonnegative except for equalities.
    pub values: Vec<f64>,
}

impl Prices {
    fn push(&mut self, sample: usize, limit: RowLabel, value: f64) {
        self.samples.push(sample as u64);
        self.limits.push(limit);
        self.values.push(value);
    }

    /// Entries.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Whether no limit holds any decision.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }
}

/// Samples a task decides for, with one workspace.
const TASK: usize = 256;

impl SampleSets {
    /// The intersection of `own` limits with those given for `n_samples`. `name` tells the user which row a sample is.
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

    /// What "a millionth" refers to in dimension `j` of sample `i`: the largest finite limit there, or one.
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
                solver.solve(polyhedra.at(i), point, &[]).map_err(|e| unsolved(i, &e))?;
                point.copy_from_slice(solver.solution());
                Ok(())
            }
        }
    }

    /// Replaces what is desired by the decision of sample `i`'s set that is best by the solver's metric.
    pub(crate) fn decide_one(
        &self,
        i: usize,
        solver: &mut ActiveSet,
        desired: &mut [f64],
    ) -> Result<(), Error> {
        let Self::Polyhedra(polyhedra) = self else { return self.project(i, desired) };
        solver.solve(polyhedra.at(i), desired, &[]).map_err(|e| unsolved(i, &e))?;
        desired.copy_from_slice(solver.solution());
        Ok(())
    }

    /// Moves every sample's column of `points` (n × n_samples) to the nearest point of its set.
    pub(crate) fn project_all(&self, points: &mut Array2<f64>) -> Result<(), Error> {
        match self {
            Self::Boxes(boxes) => {
                for ((j, i), u) in points.indexed_iter_mut() {
                    *u = boxes.clamp(j, i, *u);
                }
            }
            Self::Polyhedra(polyhedra) => {
                let metric = Metric::identity(polyhedra.n);
                let read = |_: usize, _: &[f64], solver: &ActiveSet| solver.solution().to_vec();
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

    /// X(g) for every sample (n × n_samples) with the faces it lies on. Cost: a clamp or a small quadratic program each; `last` are faces
    /// near which to look first.
    pub(crate) fn decide(
        &self,
        metric: &Metric,
        desired: &Array2<f64>,
        last: Option<&Faces>,
    ) -> Result<(Array2<f64>, Faces), Error> {
        match self {
            Self::Boxes(boxes) => {
                let mut free = Array2::from_elem(desired.dim(), false);
                let decided = Array2::from_shape_fn(desired.dim(), |(j, i)| {
                    boxes.clamp(j, i, desired[[j, i]])
                });
                for ((j, i), free) in free.indexed_iter_mut() {
                    let g = desired[[j, i]];
                    *free = boxes.lower(j, i) < g && g < boxes.upper(j, i);
                }
                Ok((decided, Faces::Box(free)))
            }
            Self::Polyhedra(polyhedra) => {
                let seats = polyhedra.visit(metric, desired, last, |_, _, solver| {
                    (solver.solution().to_vec(), Face::of(solver))
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

impl Boxes {
    fn shared(limits: &BoxLimits) -> Self {
        let (lower, upper) = (limits.lower().to_vec(), limits.upper().to_vec());
        Self { n: lower.len(), width: 1, step: 0, lower, upper }
    }

    fn intersect(own: &BoxLimits, given: &Constraints) -> Self {
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

    fn check(&self, name: impl Fn(usize) -> usize) -> Result<(), Error> {
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

    fn select(&self, samples: &[usize]) -> Self {
        if self.step == 0 {
            return self.clone();
        }
        let part = |limits: &[f64]| -> Vec<f64> {
            limits.chunks(self.width).flat_map(|row| samples.iter().map(|&i| row[i])).collect()
        };
        let (lower, upper) = (part(&self.lower), part(&self.upper));
        Self { n: self.n, width: samples.len(), step: 1, lower, upper }
    }

    fn scaled(&self, factors: &[f64]) -> Self {
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

impl Polyhedra {
    fn new(boxes: &Boxes, equalities: Option<&Rows>, inequalities: Option<&Rows>) -> Self {
        let n = boxes.n;
        let mut labels = Vec::new();
        let count = |rows: Option<&Rows>| rows.map_or(0, |rows| rows.bound.ncols()) as u32;
        labels.extend((0..count(equalities)).map(RowLabel::Equality));
        labels.extend((0..count(inequalities)).map(RowLabel::Inequality));
        for j in 0..n {
            let any = |limits: &[f64]| {
                limits[j * boxes.width..(j + 1) * boxes.width].iter().any(|l| l.is_finite())
            };
            labels.extend(any(&boxes.lower).then_some(RowLabel::Lower(j as u32)));
            labels.extend(any(&boxes.upper).then_some(RowLabel::Upper(j as u32)));
        }
        let parts = || equalities.into_iter().chain(inequalities);
        let own_rows = parts().any(|rows| rows.matrix.shape()[0] > 1);
        let own_limits = own_rows || boxes.step == 1 || parts().any(|rows| rows.bound.nrows() > 1);
        let longest = |lengths: &mut dyn Iterator<Item = usize>| lengths.max().unwrap_or(1).max(1);
        let n_rows = longest(&mut parts().map(|rows| rows.matrix.shape()[0]));
        let n_limits =
            longest(&mut parts().map(|rows| rows.bound.nrows()).chain([n_rows, boxes.width]));
        let entry = |label: RowLabel, i: usize, j: usize| -> f64 {
            let of = |rows: Option<&Rows>, row: u32| {
                let matrix = &rows.expect("a label's part is there").matrix;
                matrix[[if matrix.shape()[0] == 1 { 0 } else { i }, row as usize, j]]
            };
            match label {
                RowLabel::Equality(row) => of(equalities, row),
                RowLabel::Inequality(row) => of(inequalities, row),
                RowLabel::Lower(at) => -f64::from(u8::from(at as usize == j)),
                RowLabel::Upper(at) => f64::from(u8::from(at as usize == j)),
            }
        };
        let bound = |label: RowLabel, i: usize| -> f64 {
            let of = |rows: Option<&Rows>, row: u32| {
                let bound = &rows.expect("a label's part is there").bound;
                bound[[if bound.nrows() == 1 { 0 } else { i }, row as usize]]
            };
            match label {
                RowLabel::Equality(row) => of(equalities, row),
                RowLabel::Inequality(row) => of(inequalities, row),
                RowLabel::Lower(j) => -boxes.lower(j as usize, i),
                RowLabel::Upper(j) => boxes.upper(j as usize, i),
            }
        };
        let (mut rows, mut norms) = (Vec::new(), Vec::new());
        for i in 0..n_rows {
            for &label in &labels {
                let row: Vec<f64> = (0..n).map(|j| entry(label, i, j)).collect();
                let norm = length(&row);
                rows.extend(row.iter().map(|v| if norm > 0.0 { v / norm } else { 0.0 }));
                norms.push(if norm > 0.0 { norm } else { 1.0 });
            }
        }
        let m = labels.len();
        let mut limits = Vec::with_capacity(n_limits * m);
        for i in 0..n_limits {
            for (r, &label) in labels.iter().enumerate() {
                limits.push(bound(label, i) / norms[if own_rows { i * m + r } else { r }]);
            }
        }
        let equalities = count(equalities) as usize;
        Self { n, equalities, labels, rows, norms, limits, own_rows, own_limits }
    }

    /// Refuses empty sets, naming the first.
    fn check(&self, n_samples: usize, name: impl Fn(usize) -> usize) -> Result<(), Error> {
        let shared = !self.own_limits;
        let n_sets = if shared { 1 } else { n_samples };
        let metric = Metric::identity(self.n);
        let all: Vec<usize> = (0..n_sets).collect();
        let found: Vec<Option<(usize, QpError)>> = all
            .par_chunks(TASK)
            .map(|samples| {
                let mut solver = ActiveSet::new(&metric);
                let origin = vec![0.0; self.n];
                samples.iter().find_map(|&i| {
                    let zero_row = self.contradiction_in_zero_row(i);
                    let answer = zero_row.map_or_else(
                        || solver.solve(self.at(i), &origin, &[]),
                        |row| Err(QpError::Empty { rows: vec![row] }),
                    );
                    answer.err().map(|e| (i, e))
                })
            })
            .collect();
        match found.into_iter().flatten().next() {
            None => Ok(()),
            Some((i, QpError::Empty { rows })) => {
                let labels: Vec<RowLabel> =
                    rows.iter().map(|&row| self.labels[row as usize]).collect();
                Err(empty(shared, name(i), &labels))
            }
            Some((i, error @ QpError::Unsolved)) => Err(unsolved(name(i), &error)),
        }
    }

    /// A row 0·u ≤ w with w < 0, or 0·u = w with w ≠ 0.
    fn contradiction_in_zero_row(&self, i: usize) -> Option<u32> {
        let set = self.at(i);
        (0..set.limits.len())
            .find(|&r| {
                let zero = set.rows[r * self.n..(r + 1) * self.n].iter().all(|v| *v == 0.0);
                let off = set.limits[r] < 0.0 || (r < self.equalities && set.limits[r] != 0.0);
                zero && off
            })
            .map(|r| r as u32)
    }

    /// The rows of sample `i`.
    pub(crate) fn at(&self, i: usize) -> qp::Constraints<'_> {
        let m = self.labels.len();
        let (row, limit) = (i * usize::from(self.own_rows), i * usize::from(self.own_limits));
        qp::Constraints {
            rows: &self.rows[row * m * self.n..(row + 1) * m * self.n],
            limits: &self.limits[limit * m..(limit + 1) * m],
            equalities: self.equalities,
        }
    }

    /// What the rows are, in order.
    pub fn labels(&self) -> &[RowLabel] {
        &self.labels
    }

    /// What row `row` of sample `i` was divided by to have length one.
    pub(crate) fn norm(&self, i: usize, row: usize) -> f64 {
        self.norms[i * usize::from(self.own_rows) * self.labels.len() + row]
    }

    /// How far `decision` is beyond each row of sample `i`, by distance.
    fn excesses<'a>(&'a self, i: usize, decision: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
        let set = self.at(i);
        set.rows.chunks(self.n).zip(set.limits).enumerate().map(move |(r, (row, limit))| {
            let value: f64 = row.iter().zip(decision).map(|(a, u)| a * u).sum();
            let over = value - limit;
            if r < self.equalities { over.abs() } else { over }
        })
    }

    fn explain(&self, i: usize, decision: &[f64]) -> String {
        let worst = self.excesses(i, decision).enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
        let Some((row, _)) = worst else { return "it has no limits".to_owned() };
        let (set, norm) = (self.at(i), self.norm(i, row));
        let value: f64 = set.rows[row * self.n..(row + 1) * self.n]
            .iter()
            .zip(decision)
            .map(|(a, u)| a * u)
            .sum();
        let (value, limit) = (value * norm, set.limits[row] * norm);
        match self.labels[row] {
            RowLabel::Lower(j) => {
                format!("dimension {j} has {} below its limit {}", -value, -limit)
            }
            RowLabel::Upper(j) => format!("dimension {j} has {value} above its limit {limit}"),
            label @ RowLabel::Inequality(_) => {
                format!("{label} times the decision is {value} where at most {limit} is allowed")
            }
            label @ RowLabel::Equality(_) => {
                format!("{label} times the decision is {value} where {limit} is required")
            }
        }
    }

    fn select(&self, samples: &[usize]) -> Self {
        let m = self.labels.len();
        let part = |own: bool, values: &[f64], size: usize| -> Vec<f64> {
            if !own {
                return values.to_vec();
            }
            samples.iter().flat_map(|&i| values[i * size..(i + 1) * size].to_vec()).collect()
        };
        Self {
            rows: part(self.own_rows, &self.rows, m * self.n),
            norms: part(self.own_rows, &self.norms, m),
            limits: part(self.own_limits, &self.limits, m),
            labels: self.labels.clone(),
            ..*self
        }
    }

    fn scaled(&self, factors: &[f64]) -> Self {
        let limits = factors
            .iter()
            .enumerate()
            .flat_map(|(i, factor)| self.at(i).limits.iter().map(move |limit| limit * factor))
            .collect();
        Self { limits, own_limits: true, ..self.clone() }
    }

    /// Decides for every sample on what is desired there and reads something off each answer: `read` gets the sample, its g
    /// and the solver.
    pub(crate) fn visit<T: Send>(
        &self,
        metric: &Metric,
        desired: &Array2<f64>,
        last: Option<&Faces>,
        read: impl Fn(usize, &[f64], &ActiveSet) -> T + Sync,
    ) -> Result<Vec<T>, Error> {
        let all: Vec<usize> = (0..desired.ncols()).collect();
        let parts: Vec<Result<Vec<T>, Error>> = all
            .par_chunks(TASK)
            .map(|samples| {
                let mut solver = ActiveSet::new(metric);
                let mut g = vec![0.0; self.n];
                samples
                    .iter()
                    .map(|&i| {
                        for (j, g) in g.iter_mut().enumerate() {
                            *g = desired[[j, i]];
                        }
                        let warm = last.map_or(&[][..], |faces| faces.working(i));
                        solver.solve(self.at(i), &g, warm).map_err(|e| unsolved(i, &e))?;
                        Ok(read(i, &g, &solver))
                    })
                    .collect()
            })
            .collect();
        let mut out = Vec::with_capacity(all.len());
        for part in parts {
            out.extend(part?);
        }
        Ok(out)
    }
}

fn length(row: &[f64]) -> f64 {
    // Scaled, so that no square overflows.
    let largest = row.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
    if largest == 0.0 {
        return 0.0;
    }
    largest * row.iter().map(|v| (v / largest).powi(2)).sum::<f64>().sqrt()
}

fn empty(shared: bool, row: usize, labels: &[RowLabel]) -> Error {
    let labels: Vec<String> = labels.iter().map(RowLabel::to_string).collect();
    Error::EmptySet { row: (!shared).then_some(row), labels: labels.join(", ") }
}

fn unsolved(row: usize, error: &QpError) -> Error {
    Error::Numerical { what: format!("the decision of row {row} was not found: {error}") }
}
