//! A preconditioner for K_FF + λI: low-rank factors of K by random pivoting, inverted by Woodbury's identity.

mod low_rank;
mod woodbury;

pub use low_rank::{LowRank, RankLimits};
pub(crate) use woodbury::Woodbury;
