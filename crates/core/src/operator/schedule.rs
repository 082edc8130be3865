//! The order in which tiles are visited: a round-robin tournament.
//!
//! Every tile (I, J), I ≠ J, adds to the output of two blocks. In one round of a tournament each block meets exactly
//! one other, so the tiles of a round write to disjoint blocks and run in parallel without locks or private copies;
//! and since a block's rounds come one after the other, the order of its sums is fixed, whatever the number of threads.

/// Pairs of blocks in rounds.
pub(crate) struct Tournament {
    n_blocks: usize,
}

impl Tournament {
    pub(crate) fn new(n_blocks: usize) -> Self {
        Self { n_blocks }
    }

    /// Tiles of a triangle with its diagonal.
    pub(crate) fn n_tiles(&self) -> usize {
        self.n_blocks * (self.n_blocks + 1) / 2
    }

    pub(crate) fn n_rounds(&self) -> usize {
        self.even().saturating_sub(1)
    }

    /// An even number of players; the last is a bye where the number of blocks is odd.
    fn even(&self) -> usize {
        self.n_blocks.next_multiple_of(2)
    }

    /// The pairs (I, J), I < J, of `round`, each block at most once.
    pub(crate) fn round(&self, round: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        let ring = self.even() - 1;
        (0..self.even() / 2)
            .map(move |i| {
                let a = (round + i) % ring;
                let b = if i == 0 { ring } else { (round + ring - i) % ring };
                (a.min(b), a.max(b))
            })
            .filter(|&(_, b)| b < self.n_blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_pair_meets_once_and_no_block_plays_twice_in_a_round() {
        for n_blocks in 1..20 {
            let tournament = Tournament::new(n_blocks);
            let mut met = HashSet::new();
            for round in 0..tournament.n_rounds() {
                let mut busy = HashSet::new();
                for (a, b) in tournament.round(round) {
                    assert!(a < b && b < n_blocks && met.insert((a, b)));
                    assert!(busy.insert(a) && busy.insert(b));
                }
            }
            assert_eq!(met.len() + n_blocks, tournament.n_tiles());
        }
    }
}
