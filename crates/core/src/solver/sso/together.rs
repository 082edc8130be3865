//! Several blocks at once: each is solved as if the others stayed, on machines of their own where
//! there are any, and all go the same share of their way.
//!
//! Solved from one point, M blocks want M times over what only one of them should: smooth errors
//! are everyone's. (Q) is a parabola along the change of all of them, so the share that lowers it
//! most is known, and since 1/M of the way never raises it, neither does that share.

use super::super::clock::Clock;
use super::Sso;
use super::block::{Block, Solved};
use crate::error::Error;
use crate::operator::BlockMachines;
use ndarray::{Array2, Axis, concatenate};

impl Sso<'_> {
    /// The blocks' optimal responses; none where they were interrupted.
    pub(super) fn solve_blocks(
        &mut self,
        blocks: &[Vec<usize>],
        scales: &[f64],
        clock: &mut Clock<'_>,
    ) -> Result<Option<Vec<Array2<f64>>>, Error> {
        let machines = if blocks.len() > 1 { self.unweighted.block_machines() } else { None };
        let found = match machines {
            Some(machines) => self.solve_there(machines.as_ref(), blocks, scales, clock)?,
            None => self.solve_here(blocks, scales, clock)?,
        };
        let Some(found) = found else { return Ok(None) };
        for (samples, solved) in blocks.iter().zip(&found) {
            let share = samples.len() as f64 / self.problem.n_samples() as f64;
            self.entries += share * share * solved.products as f64;
        }
        Ok(Some(found.into_iter().map(|solved| solved.responses).collect()))
    }

    fn solve_there(
        &self,
        machines: &dyn BlockMachines,
        blocks: &[Vec<usize>],
        scales: &[f64],
        clock: &mut Clock<'_>,
    ) -> Result<Option<Vec<Solved>>, Error> {
        let task = |samples: &Vec<usize>| self.block(samples, scales).task(samples);
        let answers = machines.solve(blocks.iter().map(task).collect(), &mut || clock.poll())?;
        let Some(answers) = answers else { return Ok(None) };
        let shapes = blocks.iter().map(|block| (self.problem.decision_dim(), block.len()));
        let found = answers.iter().zip(shapes);
        found
            .map(|(bytes, shape)| Solved::from_bytes(bytes, shape))
            .collect::<Result<_, _>>()
            .map(Some)
    }

    /// One after the other.
    fn solve_here(
        &self,
        blocks: &[Vec<usize>],
        scales: &[f64],
        clock: &mut Clock<'_>,
    ) -> Result<Option<Vec<Solved>>, Error> {
        let mut found = Vec::new();
        for samples in blocks {
            let operator = self.unweighted.restrict(samples)?;
            let solved = self.block(samples, scales).solve(operator.as_ref(), &mut *clock)?;
            let Some(solved) = solved else { return Ok(None) };
            found.push(solved);
        }
        Ok(Some(found))
    }

    fn block(&self, samples: &[usize], scales: &[f64]) -> Block {
        let pick = |a: &Array2<f64>| a.select(Axis(1), samples).as_standard_layout().into_owned();
        Block {
            problem: self.problem.block(samples, scales.to_vec()),
            coefficients: pick(&self.coefficients),
            desired: pick(&self.desired),
            tol: self.settings.tol,
            max_rank: self.settings.max_rank,
            seed: self.seed,
        }
    }

    /// Goes from x towards what the blocks found, as far as (Q) falls; how many responses moved.
    pub(super) fn step(
        &mut self,
        blocks: &[Vec<usize>],
        found: &[Array2<f64>],
    ) -> Result<usize, Error> {
        let ridge = self.problem.ridge();
        let samples: Vec<usize> = blocks.iter().flatten().copied().collect();
        let ends: Vec<_> = found.iter().map(|block| block.view()).collect();
        let ends = concatenate(Axis(1), &ends).expect("as many rows as a decision has numbers");
        let mut change = Array2::zeros(self.responses.dim());
        let mut pushes = Array2::zeros(ends.dim());
        for ((j, at), end) in ends.indexed_iter() {
            let delta = end - self.responses[[j, samples[at]]];
            change[[j, samples[at]]] = delta;
            pushes[[j, at]] = -delta / ridge;
        }
        let mut follows = Array2::zeros(self.desired.dim());
        let moved = self.add_columns(&samples, &pushes, &mut follows)?;
        let steps = self.problem.step(&self.responses, &change, &self.desired, &follows);
        for ((j, at), &end) in ends.indexed_iter() {
            let (i, share) = (samples[at], steps[j]);
            let from = self.responses[[j, i]];
            // Between both ends, in spite of rounding.
            let between = (from + share * change[[j, i]]).clamp(from.min(end), from.max(end));
            let response = if share < 1.0 { between } else { end };
            self.responses[[j, i]] = response;
            self.coefficients[[j, i]] = (self.problem.decisions()[[j, i]] - response) / ridge;
        }
        for (share, (mut g, change)) in
            steps.iter().zip(self.desired.rows_mut().into_iter().zip(follows.rows()))
        {
            g.scaled_add(*share, &change);
        }
        Ok(moved)
    }
}
