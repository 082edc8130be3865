//! Sequential Selection Optimization: the paper's Algorithm 1 in the variables of (Q).
//!
//! Enters: a problem and an operator. Leaves: an outcome. Each iteration selects a block S of
//! samples, solves (Q) in their responses exactly while all others stay fixed, by the Newton solver
//! on K_SS, and passes the change on: g += K_{:,S}Δα_S. Since x stays feasible and α = (û − x)/λ
//! throughout, the certificate (1/N)Σδ_i is there after every block for O(Nn). K_SS may be stored;
//! K_{:,S} is streamed with the f64 kernel, so memory grows with N·n + p² at most. The book's
//! chapter "SSO" derives the rules and their rates.

mod block;
mod selection;
mod settings;
mod together;

pub use block::answer;
pub use settings::{BlockSize, Initialization, Selection, SsoSettings};

use super::clock::Clock;
use super::observer::{BlockStep, Iteration, Observer};
use super::outcome::{Effort, Outcome, Status};
use super::state::State;
use crate::error::Error;
use crate::operator::KernelOperator;
use crate::problem::{Certificate, Decided, Problem, Values};
use crate::random::stream;
use ndarray::{Array2, Axis};
use selection::Selector;
use std::ops::Range;

/// Blocks over which neither gap nor objective has fallen before a run counts as stalled.
const PATIENCE: usize = 50;

/// Minimises (Q) block by block to `settings.tol`.
pub fn solve(
    problem: &Problem,
    operator: &dyn KernelOperator,
    settings: &SsoSettings,
    seed: u64,
    observer: &mut dyn Observer,
) -> Result<Outcome, Error> {
    solve_from(problem, operator, settings, seed, None, observer)
}

/// The same from a state instead of `settings.init`.
pub fn solve_from(
    problem: &Problem,
    operator: &dyn KernelOperator,
    settings: &SsoSettings,
    seed: u64,
    start: Option<&State>,
    observer: &mut dyn Observer,
) -> Result<Outcome, Error> {
    let checked = settings.check(problem.n_samples())?;
    let (unweighted, operator) = (operator, &problem.weigh(operator)?);
    let mut clock = Clock::new(settings.time_limit, observer);
    let shape = problem.decisions().dim();
    let desired = Array2::zeros(shape);
    let mut sso = Sso {
        problem,
        operator,
        unweighted,
        settings,
        seed,
        responses: problem.responses(Array2::zeros(shape).view())?,
        coefficients: Array2::zeros(shape),
        decided: problem.decide(&desired, None)?,
        desired,
        rescued: 0,
        entries: 0.0,
    };
    let started = match start {
        None => {
            sso.coefficients = problem.coefficients(sso.responses.view());
            sso.initialise(&checked, &mut clock)?
        }
        Some(start) => {
            let coefficients = start.weighted(problem)?;
            sso.responses = problem.responses(coefficients.view())?;
            sso.coefficients = problem.coefficients(sso.responses.view());
            sso.refresh()?;
            true
        }
    };
    sso.run(&checked, started, &mut clock)?.finished(problem)
}

/// Settings with the problem's size filled in.
pub(crate) struct Checked {
    /// Samples of a block.
    pub(crate) block: usize,
    /// Blocks that are solved at once.
    pub(crate) at_once: usize,
    pub(crate) parts: usize,
}

impl Checked {
    /// Samples of all blocks that are solved at once.
    fn samples(&self) -> usize {
        self.block * self.at_once
    }
}

struct Sso<'a> {
    problem: &'a Problem,
    /// With the problem's weights.
    operator: &'a dyn KernelOperator,
    /// As it came: a block's problem has the weights itself.
    unweighted: &'a dyn KernelOperator,
    settings: &'a SsoSettings,
    seed: u64,
    responses: Array2<f64>,
    coefficients: Array2<f64>,
    desired: Array2<f64>,
    /// X(g).
    decided: Decided,
    /// Decisions that the small quadratic programs' fallback had to find.
    rescued: usize,
    /// Kernel values computed or loaded, in units of a full product's N²/2.
    entries: f64,
}

impl Sso<'_> {
    /// Brings the starting point; false where it was interrupted.
    fn initialise(&mut self, checked: &Checked, clock: &mut Clock<'_>) -> Result<bool, Error> {
        match self.settings.init {
            // Responses are the decisions themselves, moved into their set: there already. Where a
            // decision is kept outside its set, α is not zero and g takes a product.
            Initialization::Expert => self.refresh()?,
            Initialization::Zero => {
                let problem = self.problem;
                self.responses.fill(0.0);
                problem.sets().project_all(&mut self.responses)?;
                self.coefficients = problem.coefficients(self.responses.view());
                self.refresh()?;
            }
            Initialization::WarmUp => {
                self.refresh()?;
                for part in self.parts(checked.parts) {
                    if self.improve(&[part.collect()], clock)?.is_none() {
                        return Ok(false);
                    }
                }
            }
            Initialization::PaperWarmUp => {
                self.refresh()?;
                let start = (self.coefficients.clone(), self.desired.clone());
                // Alone: the others' coefficients count as zero.
                self.coefficients.fill(0.0);
                self.desired.fill(0.0);
                let parts: Vec<Vec<usize>> =
                    self.parts(checked.parts).into_iter().map(Iterator::collect).collect();
                let scales = self.problem.mean_squares();
                let Some(found) = self.solve_blocks(&parts, &scales, clock)? else {
                    (self.coefficients, self.desired) = start;
                    return Ok(false);
                };
                for (samples, block) in parts.iter().zip(&found) {
                    for (at, &i) in samples.iter().enumerate() {
                        self.responses.column_mut(i).assign(&block.column(at));
                    }
                }
                self.coefficients = self.problem.coefficients(self.responses.view());
                self.refresh()?;
            }
        }
        Ok(true)
    }

    fn parts(&self, n_parts: usize) -> Vec<Range<usize>> {
        let n = self.problem.n_samples();
        (0..n_parts).map(|m| m * n / n_parts..(m + 1) * n / n_parts).collect()
    }

    /// g = Kα from nothing.
    fn refresh(&mut self) -> Result<(), Error> {
        if self.coefficients.iter().all(|a| *a == 0.0) {
            self.desired.fill(0.0);
        } else {
            self.operator.exact().apply(self.coefficients.view(), self.desired.view_mut())?;
            self.entries += 1.0;
        }
        self.decide()
    }

    /// Follows g.
    fn decide(&mut self) -> Result<(), Error> {
        self.decided = self.problem.decide(&self.desired, Some(&self.decided.faces))?;
        self.rescued += self.decided.faces.rescued();
        Ok(())
    }

    fn values(&self) -> (Values, f64) {
        self.problem.values(
            &self.responses,
            &self.coefficients,
            &self.desired,
            &self.decided.decisions,
        )
    }

    fn run(
        mut self,
        checked: &Checked,
        started: bool,
        clock: &mut Clock<'_>,
    ) -> Result<Outcome, Error> {
        let mut selector =
            Selector::new(self.settings.selection, checked, stream(self.seed, "blocks"));
        let mut best = (f64::INFINITY, f64::INFINITY);
        let mut idle = 0;
        let (mut iteration, mut block) = (0, None);
        let status = loop {
            let (values, objective) = self.values();
            let bounds = self.problem.bounds(&values, objective)?;
            self.tell(iteration, block, &bounds, clock);
            if bounds.relative_gap <= self.settings.tol {
                break Status::Solved;
            }
            if !started || clock.poll() {
                break clock.stopped.unwrap_or(Status::Interrupted);
            }
            if iteration >= self.settings.max_iterations {
                break Status::MaxIterations;
            }
            // The gap may rise for many blocks while the objective falls, and near the end falls
            // when the objective no longer can.
            let rounding = 4.0 * f64::EPSILON * objective.abs();
            let gap = bounds.gap;
            let falls = gap < best.0 || objective < best.1 - rounding;
            idle = if falls { 0 } else { idle + 1 };
            best = (best.0.min(gap), best.1.min(objective));
            if idle > PATIENCE.max(4 * self.problem.n_samples() / checked.samples()) {
                break Status::Stalled;
            }
            let (blocks, chosen) = selector.select(
                self.problem,
                &self.responses,
                &self.desired,
                &self.decided.decisions,
            );
            let Some(moved) = self.improve(&blocks, clock)? else {
                break clock.stopped.unwrap_or(Status::Interrupted);
            };
            block = Some(BlockStep { samples: checked.samples(), chosen, moved });
            iteration += 1;
        };
        // What is reported is recomputed from the definition, free of the rounding of the updates.
        let certified = self.problem.certify(self.operator, self.responses)?;
        let solved = certified.certificate.relative_gap <= self.settings.tol;
        let status = if status == Status::Solved && !solved { Status::Stalled } else { status };
        let effort = Effort {
            iterations: iteration,
            kernel_products: (self.entries + 1.0).ceil() as usize,
            rescued_decisions: self.rescued,
            seconds: clock.seconds(),
        };
        Ok(Outcome::new(certified, status, effort))
    }

    fn tell(
        &self,
        iteration: usize,
        block: Option<BlockStep>,
        bounds: &Certificate,
        clock: &mut Clock<'_>,
    ) {
        clock.tell(&Iteration {
            kernel_products: self.entries.ceil() as usize,
            seconds: clock.seconds(),
            block,
            ..Iteration::at(iteration, bounds, self.problem, &self.responses, &self.decided)
        });
        clock.offer(&|| State::of(self.problem, &self.coefficients));
    }

    /// Solves blocks that share no sample, and passes their change on; returns how many responses
    /// moved. None where it was interrupted: nothing has changed then.
    fn improve(
        &mut self,
        blocks: &[Vec<usize>],
        clock: &mut Clock<'_>,
    ) -> Result<Option<usize>, Error> {
        let scales = self.problem.scales(&self.values().0)?;
        let Some(found) = self.solve_blocks(blocks, &scales, clock)? else {
            return Ok(None);
        };
        let moved = match (blocks, found.as_slice()) {
            ([samples], [responses]) => self.take(samples, responses)?,
            _ => self.step(blocks, &found)?,
        };
        if moved > 0 {
            self.decide()?;
        }
        Ok(Some(moved))
    }

    /// Takes a block's responses over.
    fn take(&mut self, samples: &[usize], responses: &Array2<f64>) -> Result<usize, Error> {
        let mut change = Array2::zeros(responses.dim());
        for (at, &i) in samples.iter().enumerate() {
            for j in 0..responses.nrows() {
                let response = responses[[j, at]];
                let coefficient =
                    (self.problem.decisions()[[j, i]] - response) / self.problem.ridge();
                change[[j, at]] = coefficient - self.coefficients[[j, i]];
                self.responses[[j, i]] = response;
                self.coefficients[[j, i]] = coefficient;
            }
        }
        let mut desired = std::mem::take(&mut self.desired);
        let moved = self.add_columns(samples, &change, &mut desired);
        self.desired = desired;
        moved
    }

    /// desired += K·change for the samples that moved; how many did.
    fn add_columns(
        &mut self,
        samples: &[usize],
        change: &Array2<f64>,
        desired: &mut Array2<f64>,
    ) -> Result<usize, Error> {
        // Rows that did not move pass nothing on.
        let moved: Vec<usize> =
            (0..samples.len()).filter(|&at| change.column(at).iter().any(|d| *d != 0.0)).collect();
        if !moved.is_empty() {
            let rows: Vec<usize> = moved.iter().map(|&at| samples[at]).collect();
            let change = change.select(Axis(1), &moved).as_standard_layout().into_owned();
            self.operator.exact().add_columns(&rows, change.view(), desired.view_mut())?;
            self.entries += 2.0 * rows.len() as f64 / self.problem.n_samples() as f64;
        }
        Ok(moved.len())
    }
}
