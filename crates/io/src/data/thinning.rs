//! Which rows are kept beyond ranges: some episodes, every so many, a sample.

use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::kept::Kept;
use super::origin::Origin;
use super::rows::RowRanges;
use crate::error::DataError;

/// What is left out beside rows outside of the ranges asked for; applied in this order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thinning {
    /// The episodes to keep, by number.
    pub episodes: Option<RowRanges>,
    /// Keep the first of every so many rows.
    pub every: Option<usize>,
    /// Keep so many rows, chosen at random, in their order.
    pub sample: Option<usize>,
    /// The seed of that choice.
    pub seed: u64,
}

impl Thinning {
    /// Whether nothing is left out.
    pub fn is_empty(&self) -> bool {
        self.episodes.is_none() && self.every.is_none() && self.sample.is_none()
    }
}

/// The rows asked for.
#[derive(Clone, Copy)]
pub(super) struct Selection<'a> {
    pub rows: Option<&'a RowRanges>,
    pub thinning: &'a Thinning,
}

impl Selection<'_> {
    /// The rows to keep of `n_rows`; `episodes` tells the episode of each row, where that is
    /// needed.
    pub fn kept(
        &self,
        n_rows: usize,
        episodes: impl FnOnce() -> Result<Option<Vec<u32>>, DataError>,
        origin: &Origin<'_>,
    ) -> Result<Kept, DataError> {
        let kept = Kept::of(self.rows, n_rows)?;
        if self.thinning.is_empty() {
            return Ok(kept);
        }
        let wrong = |detail: String| DataError::Columns { path: origin.path.to_path_buf(), detail };
        // Options are spelled as those who gave them know them.
        let wrong_option = |detail: &str| DataError::Unsupported {
            path: origin.path.to_path_buf(),
            detail: detail.to_owned(),
        };
        if [self.thinning.every, self.thinning.sample].contains(&Some(0)) {
            return Err(wrong_option("{every} and {sample} are numbers from one on"));
        }
        origin.charge_list((kept.len() as u64).saturating_mul(8), "the list of rows")?;
        let mut places = kept.places().unwrap_or_else(|| (0..n_rows).collect());
        if let Some(ranges) = &self.thinning.episodes {
            let of_rows = episodes()?.ok_or_else(|| {
                wrong_option("it has no episodes to choose from; leave out {episodes}")
            })?;
            let n_episodes = of_rows.last().map_or(0, |last| *last as usize + 1);
            let wanted = ranges.resolve(n_episodes).map_err(|_| {
                wrong(format!("there are {n_episodes} episodes, but {ranges} are asked for"))
            })?;
            places.retain(|&row| wanted.iter().any(|w| w.contains(&(of_rows[row] as usize))));
        }
        if let Some(every) = self.thinning.every {
            places = places.into_iter().step_by(every).collect();
        }
        if let Some(count) = self.thinning.sample.filter(|count| *count < places.len()) {
            places = sampled(places, count, self.thinning.seed);
        }
        if places.is_empty() {
            return Err(wrong("no row is left; ask for more of them".to_owned()));
        }
        Ok(Kept::at(n_rows, &places))
    }
}

/// So many of the places, each as likely as any other, in their order.
fn sampled(places: Vec<usize>, count: usize, seed: u64) -> Vec<usize> {
    let mut random = argwhy_core::random::stream(seed, "sample of rows");
    let (mut wanted, mut left) = (count as u64, places.len() as u64);
    let chosen = |_: &usize| {
        // A whole number below `left`; the bias of 2⁻⁶⁴ per row is none.
        let drawn = (u128::from(random.random::<u64>()) * u128::from(left)) >> 64;
        left -= 1;
        let is_chosen = (drawn as u64) < wanted;
        wanted -= u64::from(is_chosen);
        is_chosen
    };
    places.into_iter().filter(chosen).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_its_size_its_order_and_its_seed() {
        let of = |seed| sampled((0..1000).collect(), 100, seed);
        let first = of(0);
        assert_eq!(first.len(), 100);
        assert!(first.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(first, of(0));
        assert_ne!(first, of(1));
        assert!(first.iter().filter(|row| **row < 500).count().abs_diff(50) < 20);
    }
}
