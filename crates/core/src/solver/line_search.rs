//! How far to go along a direction.
//!
//! P'(t) ∝ f(t) = ⟨Kd, λ(α + td) − û + X(g + tKd)⟩ is increasing and piecewise linear in t; its
//! root lies in [a/(λb + ‖Kd‖²), a/(λb)] with a = ⟨Kd, r⟩ = −f(0) and b = ⟨Kd, d⟩. Newton's method
//! on f, kept inside the bracket, ends after a few passes over the samples. Boxes have a t for each
//! dimension, polyhedra one for all.
//!
//! The minimiser of P is not always the better point: where a few samples bend the line, the full
//! step, which lands where the faces would put it, often leaves less to do. So of the two the one
//! with the smaller residual is taken, as long as P falls.

use crate::decision_set::{Faces, Polyhedra};
use crate::error::Error;
use crate::problem::{Problem, slice};
use ndarray::Array2;

/// What a point of the line looks like.
#[derive(Clone, Copy, Default)]
pub(crate) struct Trial {
    /// f(t).
    pub(crate) value: f64,
    /// f'(t) to the right.
    pub(crate) slope: f64,
    /// N·P, up to a constant.
    pub(crate) loss: f64,
    /// ‖r‖².
    pub(crate) residual: f64,
}

/// What the line looks like at its start.
#[derive(Debug)]
pub(crate) enum StepLength {
    /// The length chosen.
    At(f64),
    /// The direction does not descend.
    Uphill,
}

/// Sums along the whole direction.
pub(crate) struct Shape {
    /// ⟨Kd, d⟩.
    pub(crate) curvature: f64,
    /// ‖Kd‖².
    pub(crate) image: f64,
    /// ‖û‖².
    pub(crate) decisions: f64,
    pub(crate) ridge: f64,
    /// What N·P may rise by in a full step that halves the residual: P is flat where K is nearly
    /// singular, and the error of a direction then outweighs what there is to descend.
    pub(crate) slack: f64,
}

/// The minimiser along a direction, with what was seen on the way to it.
#[derive(Clone, Copy)]
pub(crate) enum Least {
    At {
        t: f64,
        /// Whether P falls with the full step, or rises by no more than the slack where that halves
        /// the residual.
        full_falls: bool,
        /// Whether the full step leaves less residual than the minimiser.
        full_is_nearer: bool,
    },
    /// P does not change along the direction, or rises by no more than the slack in a step that
    /// halves the residual.
    Flat,
    /// The direction does not descend.
    Uphill,
}

/// Which of the full step and the minimiser is taken where P falls at both.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Preference {
    /// The one with the smaller residual.
    Nearer,
    /// The full one: the direction was made for another λ, whose residual counts.
    Full,
    /// The minimiser: the next direction will be conjugate to this one.
    Minimiser,
}

/// The length of the step; the root is found to `tol` of the slope at the start.
pub(crate) fn choose(
    shape: &Shape,
    tol: f64,
    preference: Preference,
    trial: impl FnMut(f64) -> Result<Trial, Error>,
) -> Result<StepLength, Error> {
    Ok(match least(shape, tol, trial)? {
        Least::At { full_falls: true, .. } if preference == Preference::Full => StepLength::At(1.0),
        // Kd is zero to rounding, while the residual still asks for the full step.
        Least::Flat => StepLength::At(1.0),
        Least::At { full_falls: true, full_is_nearer: true, .. }
            if preference == Preference::Nearer =>
        {
            StepLength::At(1.0)
        }
        Least::At { t, .. } => StepLength::At(t),
        Least::Uphill => StepLength::Uphill,
    })
}

/// The root of f, to `tol` of f(0).
pub(crate) fn least(
    shape: &Shape,
    tol: f64,
    mut trial: impl FnMut(f64) -> Result<Trial, Error>,
) -> Result<Least, Error> {
    let first = trial(0.0)?;
    let start = -first.value;
    let rounding = 1e-14 * (shape.image * shape.decisions).sqrt();
    if start.abs() <= rounding || shape.image == 0.0 {
        return Ok(Least::Flat);
    }
    let full = trial(1.0)?;
    let level = full.loss <= first.loss + shape.slack && 4.0 * full.residual < first.residual;
    if start < 0.0 || shape.curvature < 0.0 {
        return Ok(if level { Least::Flat } else { Least::Uphill });
    }
    let mut low = start / (shape.ridge * shape.curvature + shape.image);
    let mut high = start / (shape.ridge * shape.curvature);
    if low.is_nan() || high.is_nan() || low > high {
        // Numbers beyond the range of f64 have no minimum to be found.
        return Ok(Least::Uphill);
    }
    let mut t = 1.0_f64.clamp(low, high);
    let mut here = if t == 1.0 { full } else { trial(t)? };
    for _ in 0..60 {
        if here.value.abs() <= tol * start {
            break;
        }
        if here.value < 0.0 {
            low = t;
        } else {
            high = t;
        }
        let next = t - here.value / here.slope;
        let inside = low < next && next < high;
        let next = if inside { next } else { 0.5 * (low + high) };
        if next == t || !next.is_finite() {
            break;
        }
        t = next;
        here = trial(t)?;
    }
    Ok(Least::At {
        t,
        full_falls: level || full.loss <= first.loss,
        full_is_nearer: full.residual <= here.residual,
    })
}

/// One dimension of a box: vectors of length n_samples.
pub(crate) struct Line<'a> {
    pub(crate) decisions: &'a [f64],
    pub(crate) coefficients: &'a [f64],
    pub(crate) desired: &'a [f64],
    pub(crate) direction: &'a [f64],
    pub(crate) kernel_direction: &'a [f64],
    /// What the desired decisions have beside K times the coefficients, such as what other samples
    /// add to those of a block.
    pub(crate) offset: Option<&'a [f64]>,
    /// Coefficients whose share is in the offset, by another K.
    pub(crate) begun: Option<&'a [f64]>,
    pub(crate) ridge: f64,
    /// As in [`Shape`].
    pub(crate) slack: f64,
}

impl Line<'_> {
    fn trial(&self, t: f64, clamp: impl Fn(usize, f64) -> f64) -> Trial {
        let mut at = Trial::default();
        for i in 0..self.decisions.len() {
            let (u, kd) = (self.decisions[i], self.kernel_direction[i]);
            let g = self.desired[i] + t * kd;
            let y = clamp(i, g);
            let alpha = self.coefficients[i] + t * self.direction[i];
            let residual = u - y - self.ridge * alpha;
            at.value -= kd * residual;
            at.slope += kd * self.ridge * self.direction[i];
            if y == g {
                at.slope += kd * kd;
            }
            at.residual += residual * residual;
            let own = g - self.offset.map_or(0.0, |c| c[i]);
            let both = alpha + self.begun.map_or(0.0, |begun| begun[i]);
            at.loss += self.ridge * both * own + (u - g) * (u - g) - (g - y) * (g - y);
        }
        at
    }

    /// The step; `clamp` moves a value into the limits of a sample.
    pub(crate) fn search(
        &self,
        preference: Preference,
        clamp: impl Fn(usize, f64) -> f64,
    ) -> Result<StepLength, Error> {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let shape = Shape {
            curvature: dot(self.kernel_direction, self.direction),
            image: dot(self.kernel_direction, self.kernel_direction),
            decisions: dot(self.decisions, self.decisions),
            ridge: self.ridge,
            slack: self.slack,
        };
        choose(&shape, 1e-12, preference, |t| Ok(self.trial(t, &clamp)))
    }
}

/// A direction in all dimensions of polyhedra, n × n_samples each.
pub(crate) struct CoupledLine<'a> {
    pub(crate) problem: &'a Problem,
    pub(crate) polyhedra: &'a Polyhedra,
    pub(crate) faces: &'a Faces,
    pub(crate) coefficients: &'a Array2<f64>,
    pub(crate) desired: &'a Array2<f64>,
    pub(crate) direction: &'a Array2<f64>,
    pub(crate) kernel_direction: &'a Array2<f64>,
    /// As in [`Shape`].
    pub(crate) slack: f64,
}

/// The root of f to this share of its start is enough where every trial takes a quadratic program a
/// sample.
const COUPLED_TOL: f64 = 1e-4;

/// One dimension of what a sample decides.
pub(crate) struct Decided {
    pub(crate) sample: usize,
    pub(crate) dimension: usize,
    /// g.
    pub(crate) desired: f64,
    /// y = X(g).
    pub(crate) decision: f64,
    /// (Θy)_j.
    pub(crate) theta_decision: f64,
}

/// A point of a line over polyhedra: `sum` with what each sample adds to it. `image` is what g
/// grows by along the line; `add` gets every dimension of every decision and adds all but the slope
/// of the projection.
pub(crate) fn polyhedral_trial(
    mut sum: Trial,
    (problem, polyhedra, faces): (&Problem, &Polyhedra, &Faces),
    desired: &Array2<f64>,
    image: &Array2<f64>,
    add: impl Fn(&mut Trial, &Decided) + Sync,
) -> Result<Trial, Error> {
    let (n, metric) = (problem.decision_dim(), problem.metric());
    let parts = polyhedra.visit(metric, desired, Some(faces), |i, g, solver| {
        let y = solver.solution();
        let mut at = Trial::default();
        let mut theta_y = vec![0.0; n];
        metric.apply(y, &mut theta_y);
        for j in 0..n {
            add(
                &mut at,
                &Decided {
                    sample: i,
                    dimension: j,
                    desired: g[j],
                    decision: y[j],
                    theta_decision: theta_y[j],
                },
            );
        }
        // ‖Rᵀ image‖² is the derivative of ⟨image, X(g + t·image)⟩.
        for r in solver.basis().chunks(n) {
            let along = r.iter().enumerate().map(|(j, r)| r * image[[j, i]]);
            at.slope += along.sum::<f64>().powi(2);
        }
        at
    })?;
    for part in parts {
        sum.value += part.value;
        sum.slope += part.slope;
        sum.loss += part.loss;
        sum.residual += part.residual;
    }
    Ok(sum)
}

impl CoupledLine<'_> {
    fn trial(&self, t: f64) -> Result<Trial, Error> {
        let (problem, ridge) = (self.problem, self.problem.ridge());
        let decisions = problem.decisions();
        let desired = self.desired + &(self.kernel_direction * t);
        let sets = (problem, self.polyhedra, self.faces);
        polyhedral_trial(Trial::default(), sets, &desired, self.kernel_direction, |at, decided| {
            let place = [decided.dimension, decided.sample];
            let (g, y) = (decided.desired, decided.decision);
            let (u, kd, d) =
                (decisions[place], self.kernel_direction[place], self.direction[place]);
            let alpha = self.coefficients[place] + t * d;
            let residual = u - y - ridge * alpha;
            at.value -= kd * residual;
            at.slope += kd * ridge * d;
            at.residual += residual * residual;
            let own = g - problem.offset().map_or(0.0, |c| c[place]);
            at.loss += ridge * alpha * own - 2.0 * g * u + (2.0 * g - decided.theta_decision) * y;
        })
    }

    pub(crate) fn search(&self) -> Result<StepLength, Error> {
        let dot = crate::linalg::sums::dot;
        let (d, kd) = (slice(self.direction), slice(self.kernel_direction));
        let decisions = self.problem.decisions();
        let shape = Shape {
            curvature: dot(kd, d),
            image: dot(kd, kd),
            decisions: decisions.iter().map(|u| u * u).sum(),
            ridge: self.problem.ridge(),
            slack: self.slack,
        };
        choose(&shape, COUPLED_TOL, Preference::Nearer, |t| self.trial(t))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_step_is_the_minimiser_or_the_full_one(
            seed in 0.0..100.0_f64, n in 1_usize..60, ridge in 1e-3..1.0_f64
        ) {
            // K = diagonal, so Kd is easy to make consistent.
            let wave = |phase: f64| -> Vec<f64> {
                (0..n).map(|i| (i as f64 * 1.7 + phase).sin()).collect()
            };
            let diagonal: Vec<f64> = (0..n).map(|i| 0.1 + (i % 7) as f64).collect();
            let times = |v: &[f64]| -> Vec<f64> {
                v.iter().zip(&diagonal).map(|(v, k)| v * k).collect()
            };
            let (decisions, coefficients) = (wave(seed), wave(seed + 1.0));
            let desired = times(&coefficients);
            let direction: Vec<f64> = (0..n)
                .map(|i| decisions[i] - desired[i].clamp(-0.5, 0.5) - ridge * coefficients[i])
                .collect();
            let kernel_direction = times(&direction);
            let line = Line {
                decisions: &decisions, coefficients: &coefficients, desired: &desired,
                direction: &direction, kernel_direction: &kernel_direction,
                offset: None,
                begun: None, ridge, slack: 0.0,
            };
            let clamp = |_: usize, g: f64| g.clamp(-0.5, 0.5);
            let Ok(StepLength::At(t)) = line.search(Preference::Nearer, clamp) else {
                panic!("the residual always descends")
            };
            let (first, chosen) = (line.trial(0.0, clamp), line.trial(t, clamp));
            prop_assert!(chosen.loss <= first.loss);
            // Either the minimiser, or the full step with a smaller residual.
            let least = chosen.value.abs() <= 1e-9 * first.value.abs();
            prop_assert!(least || t == 1.0, "t = {t}");
        }
    }
}
