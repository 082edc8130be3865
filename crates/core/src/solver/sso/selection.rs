//! Which samples make the next block.

use super::Checked;
use super::settings::Selection;
use crate::problem::Problem;
use ndarray::Array2;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// Share of a block that is chosen by its share of the gap. A quarter is the best of those tried:
/// nothing greedy forgets what matters, everything greedy picks the complement of the last block
/// over and over.
const GREEDY: f64 = 0.25;
/// In the paper's rule, violations above this share of the largest count.
const ABOVE: f64 = 0.1;

pub(crate) struct Selector {
    rule: Selection,
    /// Samples of a block.
    block: usize,
    /// Blocks that are solved at once.
    at_once: usize,
    rng: ChaCha8Rng,
    /// Where the next cyclic block starts.
    next: usize,
}

impl Selector {
    pub(crate) fn new(rule: Selection, sizes: &Checked, rng: ChaCha8Rng) -> Self {
        Self { rule, block: sizes.block, at_once: sizes.at_once, rng, next: 0 }
    }

    /// The next blocks, each in increasing order, and how many of their samples the rule chose; the
    /// others are random.
    pub(crate) fn select(
        &mut self,
        problem: &Problem,
        responses: &Array2<f64>,
        desired: &Array2<f64>,
        decided: &Array2<f64>,
    ) -> (Vec<Vec<usize>>, usize) {
        let (n, count) = (problem.n_samples(), self.block * self.at_once);
        let by_rule = match self.rule {
            Selection::Cyclic => {
                let samples: Vec<usize> = (0..count).map(|i| (self.next + i) % n).collect();
                self.next = (self.next + count) % n;
                samples
            }
            Selection::Random => Vec::new(),
            Selection::Violation => {
                let shares = problem.gap_shares(responses, desired, decided);
                let n_greedy = ((GREEDY * count as f64).ceil() as usize).min(n);
                let mut order: Vec<usize> = (0..n).collect();
                order.sort_by(|&a, &b| shares[b].total_cmp(&shares[a]).then(a.cmp(&b)));
                order.truncate(n_greedy);
                order
            }
            Selection::Paper => {
                let mut above = candidates(problem, responses, desired);
                self.shuffle(&mut above, count);
                above.truncate(count);
                above
            }
        };
        let n_chosen = by_rule.len();
        let samples = self.fill(n, count, by_rule);
        (self.deal(&samples), n_chosen)
    }

    /// A share of what was chosen, and of what is random, for each block; cyclic ones follow each
    /// other.
    fn deal(&self, samples: &[usize]) -> Vec<Vec<usize>> {
        let (apart, along) = match self.rule {
            Selection::Cyclic => (1, self.block),
            _ => (self.at_once, 1),
        };
        let one = |number: usize| {
            let mut block: Vec<usize> = samples
                .iter()
                .skip(number * along)
                .step_by(apart)
                .copied()
                .take(self.block)
                .collect();
            block.sort_unstable();
            block
        };
        (0..self.at_once).map(one).collect()
    }

    /// Adds samples at random until there are `count`.
    fn fill(&mut self, n: usize, count: usize, mut chosen: Vec<usize>) -> Vec<usize> {
        let mut taken = vec![false; n];
        chosen.iter().for_each(|&i| taken[i] = true);
        let mut rest: Vec<usize> = (0..n).filter(|&i| !taken[i]).collect();
        let missing = count - chosen.len();
        self.shuffle(&mut rest, missing);
        chosen.extend_from_slice(&rest[..missing]);
        chosen
    }

    /// Puts a uniformly random selection of `count` to the front (Fisher and Yates, stopped early).
    fn shuffle(&mut self, items: &mut [usize], count: usize) {
        for i in 0..count.min(items.len()) {
            let j = self.rng.random_range(i..items.len());
            items.swap(i, j);
        }
    }
}

/// Samples strictly inside their set with ‖Θx_i − g_i‖² above a tenth of the largest of all
/// samples, held by a limit or not. The paper has Θ = I; inside its set x_i is optimal where the
/// gradient Θx_i − g_i of its objective is zero.
fn candidates(problem: &Problem, responses: &Array2<f64>, desired: &Array2<f64>) -> Vec<usize> {
    let (n, dim) = (problem.n_samples(), problem.decision_dim());
    let pulls = problem.theta_times(responses);
    let violations: Vec<f64> =
        (0..n).map(|i| (0..dim).map(|j| (pulls[[j, i]] - desired[[j, i]]).powi(2)).sum()).collect();
    let largest = violations.iter().copied().fold(0.0, f64::max);
    let inside = |i: usize| problem.sets().is_inside(i, &responses.column(i).to_vec());
    (0..n).filter(|&i| inside(i) && violations[i] > ABOVE * largest).collect()
}
