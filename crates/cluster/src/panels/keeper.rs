//! Messages about panels.

use ndarray::{Array2, ArrayView2};

/// Samples from which on B is spread over the workers: where parts of a product are more than one
/// machine's threads share, too.
pub const SPREAD_FROM: usize = 1_000_000;

/// What a round of pivots S adds to B, as every panel has to know it.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    /// S.
    pub pivots: Vec<usize>,
    /// √w of the pivots in a weighted problem, otherwise empty.
    pub roots: Vec<f64>,
    /// B_Sᵀ of the rows that pivots brought before: pivots × rows.
    pub weights: Array2<f32>,
    /// The lower triangle of their residual block, column-major.
    pub triangle: Vec<f64>,
}

/// Workers that keep panels of low-rank factors. Whoever implements this keeps the rounds of each
/// factor, too, and has whatever was lost made again by them; errors are sentences that name the
/// worker.
pub trait PanelKeeper {
    /// Samples from which on they do.
    fn spread_from(&self) -> usize {
        SPREAD_FROM
    }

    /// A factor without pivots of one of the matrices that workers hold; its number. `roots` are
    /// the √w of a weighted problem, `given` rows of B that no pivot brings, n_rows × n_samples.
    fn begin(
        &self,
        matrix: u64,
        roots: Option<&[f64]>,
        given: ArrayView2<'_, f32>,
    ) -> Result<u64, String>;

    /// A round more, which lowers the residual diagonal.
    fn append(&self, factor: u64, round: &Round, diagonal: &mut [f64]) -> Result<(), String>;

    /// Σ s_i b_i b_iᵀ for every row of signs, lower triangles column after column: sets ×
    /// r(r + 1)/2.
    fn gram(&self, factor: u64, signs: ArrayView2<'_, i8>) -> Result<Array2<f64>, String>;

    /// B at the samples marked by other than zero, in their order: rank × as many.
    fn gather(&self, factor: u64, marks: ArrayView2<'_, i8>) -> Result<Array2<f32>, String>;

    /// B v: n_vectors × rank.
    fn project(&self, factor: u64, v: ArrayView2<'_, f64>) -> Result<Array2<f64>, String>;

    /// Bᵀw: n_vectors × n_samples.
    fn expand(&self, factor: u64, w: ArrayView2<'_, f64>) -> Result<Array2<f64>, String>;

    /// Nobody will ask for it again.
    fn end(&self, factor: u64);
}
