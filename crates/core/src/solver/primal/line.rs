//! How far to go along a direction δ of weights: the rule of `line_search` with P'(t) ∝ λ⟨V + tδ,
//! δ⟩ + ⟨δΦᵀ, X(g + tδΦᵀ) − û⟩.

use super::Point;
use crate::decision_set::{Boxes, Polyhedra, SampleSets};
use crate::error::Error;
use crate::linalg::sums::dot;
use crate::problem::{Problem, slice};
use crate::solver::line_search::{Least, Shape, Trial, least, polyhedral_trial};
use ndarray::Array2;
use rayon::prelude::*;

pub(super) struct Line<'a> {
    pub(super) problem: &'a Problem,
    pub(super) point: &'a Point,
    pub(super) direction: &'a Array2<f64>,
    /// δΦᵀ.
    pub(super) image: &'a Array2<f64>,
}

/// The root of P' to this share of its start, for boxes and where every trial takes a quadratic
/// program a sample.
const BOX_TOL: f64 = 1e-12;
const COUPLED_TOL: f64 = 1e-4;

/// Products of the weights with the direction, all a trial needs of them.
struct Weights {
    ridge: f64,
    square: f64,
    along: f64,
    direction: f64,
}

impl Weights {
    fn new(ridge: f64, weights: &[f64], direction: &[f64]) -> Self {
        Self {
            ridge,
            square: dot(weights, weights),
            along: dot(weights, direction),
            direction: dot(direction, direction),
        }
    }

    fn trial(&self, t: f64) -> Trial {
        let norm = self.square + t * (2.0 * self.along + t * self.direction);
        Trial {
            value: self.ridge * (self.along + t * self.direction),
            slope: self.ridge * self.direction,
            loss: self.ridge * norm,
            ..Trial::default()
        }
    }

    fn shape(&self, image: &[f64], decisions: &[f64]) -> Shape {
        Shape {
            curvature: self.direction,
            image: dot(image, image),
            decisions: dot(decisions, decisions),
            ridge: self.ridge,
            slack: 0.0,
        }
    }
}

impl Line<'_> {
    /// The least of P, for each dimension of boxes on its own.
    pub(super) fn search(&self) -> Result<Vec<Least>, Error> {
        match self.problem.sets() {
            SampleSets::Boxes(boxes) => {
                let all = 0..self.problem.decision_dim();
                all.into_par_iter().map(|j| self.search_box(boxes, j)).collect()
            }
            SampleSets::Polyhedra(polyhedra) => {
                Ok(vec![self.search_polyhedra(polyhedra)?; self.problem.decision_dim()])
            }
        }
    }

    fn search_box(&self, boxes: &Boxes, j: usize) -> Result<Least, Error> {
        let row = |array: &'_ Array2<f64>| -> Vec<f64> { array.row(j).to_vec() };
        let (weights, direction) = (row(&self.point.weights), row(self.direction));
        let n = self.problem.n_samples();
        let samples = j * n..(j + 1) * n;
        let decisions = self.problem.decisions();
        let decisions =
            &decisions.as_slice().expect("decisions are in standard layout")[samples.clone()];
        let desired = &slice(&self.point.desired)[samples.clone()];
        let image = &slice(self.image)[samples];
        let weights = Weights::new(self.problem.ridge(), &weights, &direction);
        least(&weights.shape(image, decisions), BOX_TOL, |t| {
            let mut at = weights.trial(t);
            for (i, ((u, g), image)) in decisions.iter().zip(desired).zip(image).enumerate() {
                let g = g + t * image;
                let y = boxes.clamp(j, i, g);
                at.value += image * (y - u);
                if y == g {
                    at.slope += image * image;
                }
                at.loss += (u - g) * (u - g) - (g - y) * (g - y);
            }
            Ok(at)
        })
    }

    fn search_polyhedra(&self, polyhedra: &Polyhedra) -> Result<Least, Error> {
        let problem = self.problem;
        let decisions = problem.decisions();
        let flat = decisions.as_slice().expect("decisions are in standard layout");
        let weights =
            Weights::new(problem.ridge(), slice(&self.point.weights), slice(self.direction));
        let sets = (problem, polyhedra, &self.point.decided.faces);
        least(&weights.shape(slice(self.image), flat), COUPLED_TOL, |t| {
            let desired = &self.point.desired + &(self.image * t);
            polyhedral_trial(weights.trial(t), sets, &desired, self.image, |at, decided| {
                let place = [decided.dimension, decided.sample];
                let (g, y, u) = (decided.desired, decided.decision, decisions[place]);
                at.value += self.image[place] * (y - u);
                at.loss += (2.0 * g - decided.theta_decision) * y - 2.0 * g * u;
            })
        })
    }
}
