//! Which samples make the next block.

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
    block: usize,
    rng: ChaCha8Rng,
    /// Where the next cyclic block starts.
    next: usize,
}

impl Selector {
    pub(crate) fn new(rule: Selection, block: usize, rng: ChaCha8Rng) -> Self {
        Self { rule, block, rng, next: 0 }
    }

    /// The next block, in increasing order, and how many of it the rule chose; the others are
    /// random.
    pub(crate) fn select(
        &mut self,
        problem: &Problem,
        responses: &Array2<f64>,
        desired: &Array2<f64>,
        decided: &Array2<f64>,
    ) -> (Vec<usize>, usize) {
        let n = problem.n_samples();
        let by_rule = match self.rule {
            Selection::Cyclic => {
                let block: Vec<usize> = (0..self.block).map(|i| (self.next + i) % n).collect();
                self.next = (self.next + self.block) % n;
                block
            }
            Selection::Random => Vec::new(),
            Selection::Violation => {
                let shares = problem.gap_shares(responses, desired, decided);
                let n_greedy = ((GREEDY * self.block as f64).ceil() as usize).min(n);
                let mut order: Vec<usize> = (0..n).collect();
                order.sort_by(|&a, &b| shares[b].total_cmp(&shares[a]).then(a.cmp(&b)));
                order.truncate(n_greedy);
                order
            }
            Selection::Paper => {
                let mut above = candidates(problem, responses, desired);
                self.shuffle(&mut above, self.block);
                above.truncate(self.block);
                above
            }
        };
        let n_chosen = by_rule.len();
        let mut block = self.fill(n, by_rule);
        block.sort_unstable();
        (block, n_chosen)
    }

    /// Adds samples at random until the block is full.
    fn fill(&mut self, n: usize, mut chosen: Vec<usize>) -> Vec<usize> {
        let mut taken = vec![false; n];
        chosen.iter().for_each(|&i| taken[i] = true);
        let mut rest: Vec<usize> = (0..n).filter(|&i| !taken[i]).collect();
        let missing = self.block - chosen.len();
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
