//! Which columns of B are a panel's.

use argwhy_core::operator::HostOperator;
use std::ops::Range;

/// Samples that are computed together, and how many of these a panel has at least.
const BLOCK: usize = HostOperator::COLUMNS;
const LEAST_BLOCKS: usize = 2;
/// Panels at most: two for each of 64 machines.
const MOST: usize = 128;

/// How N columns are cut: by their number alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PanelLayout {
    n_samples: usize,
    n_panels: usize,
}

impl PanelLayout {
    /// Of so many samples.
    pub fn new(n_samples: usize) -> Self {
        let most = (n_samples.div_ceil(BLOCK) / LEAST_BLOCKS).clamp(1, MOST);
        Self { n_samples, n_panels: 1 << most.ilog2() }
    }

    /// Panels, a power of two.
    pub fn n_panels(self) -> usize {
        self.n_panels
    }

    /// All columns.
    pub fn n_samples(self) -> usize {
        self.n_samples
    }

    /// The columns of a panel: whole blocks, but for the last one.
    pub fn columns(self, panel: usize) -> Range<usize> {
        self.first(panel)..self.first(panel + 1)
    }

    fn first(self, panel: usize) -> usize {
        let n_blocks = self.n_samples.div_ceil(BLOCK);
        (panel * n_blocks / self.n_panels * BLOCK).min(self.n_samples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panels_are_all_columns_in_whole_blocks() {
        for n_samples in [1, 240, 481, 2000, 20_000, 1_000_000, 10_000_000] {
            let layout = PanelLayout::new(n_samples);
            assert!(layout.n_panels().is_power_of_two() && layout.n_panels() <= MOST);
            let columns: Vec<Range<usize>> =
                (0..layout.n_panels()).map(|panel| layout.columns(panel)).collect();
            assert_eq!((columns[0].start, columns[columns.len() - 1].end), (0, n_samples));
            assert!(columns.windows(2).all(|pair| pair[0].end == pair[1].start));
            assert!(columns.iter().all(|own| !own.is_empty() && own.start % BLOCK == 0));
        }
        assert_eq!(PanelLayout::new(1_000_000).n_panels(), 128);
        assert_eq!(PanelLayout::new(2000).n_panels(), 4);
    }
}
