//! General linear limits, with rows of about length one: divided by powers of two, which round
//! nothing.

use super::boxes::Boxes;
use super::faces::Faces;
use super::label::{RowLabel, empty};
use crate::dataset::ConstraintRows as Rows;
use crate::error::Error;
use crate::qp::{self, ActiveSet, Metric, QpError};
use ndarray::Array2;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Samples a task decides for, with one workspace.
const TASK: usize = 256;

/// rows·u ≤ limits, the first `equalities` of them =.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Polyhedra {
    pub(super) n: usize,
    pub(super) equalities: usize,
    pub(super) labels: Vec<RowLabel>,
    /// How many rows come before those of single dimensions.
    pub(super) general: usize,
    /// Of length 0.7 to 1.5, sample by sample or once, row by row.
    pub(super) rows: Vec<f64>,
    /// What each row was divided by.
    pub(super) norms: Vec<f64>,
    pub(super) limits: Vec<f64>,
    pub(super) own_rows: bool,
    pub(super) own_limits: bool,
}

impl Polyhedra {
    pub(super) fn new(
        boxes: &Boxes,
        equalities: Option<&Rows>,
        inequalities: Option<&Rows>,
    ) -> Self {
        let n = boxes.n;
        let mut labels = Vec::new();
        let count = |rows: Option<&Rows>| rows.map_or(0, |rows| rows.bound.ncols()) as u32;
        labels.extend((0..count(equalities)).map(RowLabel::Equality));
        labels.extend((0..count(inequalities)).map(RowLabel::Inequality));
        let general = labels.len();
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
                let norm = power_of_two(length(&row));
                rows.extend(row.iter().map(|v| v / norm));
                norms.push(norm);
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
        Self { n, equalities, labels, general, rows, norms, limits, own_rows, own_limits }
    }

    /// Refuses empty sets, naming the first.
    pub(super) fn check(
        &self,
        n_samples: usize,
        name: impl Fn(usize) -> usize,
    ) -> Result<(), Error> {
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

    /// What row `row` of sample `i` was divided by to have about length one.
    pub(crate) fn norm(&self, i: usize, row: usize) -> f64 {
        self.norms[i * usize::from(self.own_rows) * self.labels.len() + row]
    }

    /// How far `decision` is beyond each row of sample `i`, by distance up to a factor of 1.5.
    pub(super) fn excesses<'a>(
        &'a self,
        i: usize,
        decision: &'a [f64],
    ) -> impl Iterator<Item = f64> + 'a {
        let set = self.at(i);
        set.rows.chunks(self.n).zip(set.limits).enumerate().map(move |(r, (row, limit))| {
            let value: f64 = row.iter().zip(decision).map(|(a, u)| a * u).sum();
            let over = value - limit;
            if r < self.equalities { over.abs() } else { over }
        })
    }

    pub(super) fn explain(&self, i: usize, decision: &[f64]) -> String {
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

    pub(super) fn select(&self, samples: &[usize]) -> Self {
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

    pub(super) fn scaled(&self, factors: &[f64]) -> Self {
        let limits = factors
            .iter()
            .enumerate()
            .flat_map(|(i, factor)| self.at(i).limits.iter().map(move |limit| limit * factor))
            .collect();
        Self { limits, own_limits: true, ..self.clone() }
    }

    /// X(g) of sample `i`, in `solver`. Limits of single dimensions are met exactly, general rows
    /// to a few units in the last place of their own terms.
    pub(super) fn solve(
        &self,
        i: usize,
        solver: &mut ActiveSet,
        desired: &[f64],
    ) -> Result<(), Error> {
        solver.solve(self.at(i), desired, &[]).map_err(|e| unsolved(i, &e))?;
        self.polish(i, solver);
        Ok(())
    }

    /// Takes off the solution what rounding put beyond the limits of sample `i`.
    pub(super) fn polish(&self, i: usize, solver: &mut ActiveSet) {
        let set = self.at(i);
        let mut bounds = [vec![f64::NEG_INFINITY; self.n], vec![f64::INFINITY; self.n]];
        for (label, limit) in self.labels.iter().zip(set.limits).skip(self.general) {
            match label {
                RowLabel::Lower(j) => bounds[0][*j as usize] = -limit,
                RowLabel::Upper(j) => bounds[1][*j as usize] = *limit,
                RowLabel::Equality(_) | RowLabel::Inequality(_) => {}
            }
        }
        solver.polish(set, &bounds[0], &bounds[1]);
    }

    /// Decides for every sample on what is desired there and reads something off each answer:
    /// `read` gets the sample, its g and the solver.
    pub(crate) fn visit<T: Send>(
        &self,
        metric: &Metric,
        desired: &Array2<f64>,
        last: Option<&Faces>,
        read: impl Fn(usize, &[f64], &mut ActiveSet) -> T + Sync,
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
                        Ok(read(i, &g, &mut solver))
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

/// The power of two nearest to a length by ratio; one for a row of zeros.
fn power_of_two(length: f64) -> f64 {
    if length == 0.0 { 1.0 } else { length.log2().round().clamp(-1000.0, 1000.0).exp2() }
}

fn unsolved(row: usize, error: &QpError) -> Error {
    Error::Numerical { what: format!("the decision of row {row} was not found: {error}") }
}
