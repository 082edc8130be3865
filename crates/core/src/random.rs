//! Randomness with names: one seed for a run, one independent stream for each stage.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// The generator of stage `name` under `seed`. Different names give independent streams.
pub fn stream(seed: u64, name: &str) -> ChaCha8Rng {
    // FNV-1a: all that is needed is a number that differs between the few names in use.
    let id = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(id);
    rng
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt;

    #[test]
    fn a_stream_repeats_and_differs_from_its_neighbours() {
        let draw = |seed, name| stream(seed, name).random::<u64>();
        assert_eq!(draw(7, "pivots"), draw(7, "pivots"));
        assert_ne!(draw(7, "pivots"), draw(7, "blocks"));
        assert_ne!(draw(7, "pivots"), draw(8, "pivots"));
    }
}
