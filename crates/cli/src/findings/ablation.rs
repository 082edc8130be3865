//! What `argwhy ablate` found: how far each way to run SSO is from the exact optimum after each
//! block.

use argwhy::core::solver::Iteration;
use argwhy::core::solver::sso::{Initialization, Selection};

/// The paper reports 200 times (Q).
pub const PAPER_SCALE: f64 = 200.0;

/// Relative gaps whose costs are compared.
pub const GAPS: [f64; 2] = [1e-3, 1e-6];

/// What reaching a gap takes: seconds from the start of the fit, and kernel products.
#[derive(Clone, Copy)]
pub struct Cost {
    /// Seconds.
    pub seconds: f64,
    /// Products with the whole kernel matrix.
    pub products: f64,
}

/// One way to run SSO.
pub struct Variant {
    /// Name in tables and legends.
    pub name: &'static str,
    /// How blocks are chosen.
    pub selection: Selection,
    /// Where it starts.
    pub init: Initialization,
    /// Whether it belongs to the paper's Figure 2.
    pub of_paper: bool,
}

/// All runs on one data set.
pub struct Ablation {
    /// The file's name.
    pub name: String,
    /// k.
    pub regularization: f64,
    /// Training samples.
    pub n_samples: usize,
    /// The exact optimum, by Newton.
    pub optimum: f64,
    /// The relative gap that Newton proved for it.
    pub proven: f64,
    /// What Newton takes when asked for each of [`GAPS`], where it got there.
    pub newton: [Option<Cost>; 2],
    /// Each variant with its runs, one a seed.
    pub variants: Vec<(&'static Variant, Vec<Vec<Iteration>>)>,
}

impl Ablation {
    /// Median over seeds of the error in the paper's scaling after each block.
    pub fn errors(&self, runs: &[Vec<Iteration>]) -> Vec<(f64, f64)> {
        let longest = runs.iter().map(Vec::len).max().unwrap_or(0);
        (0..longest)
            .map(|t| {
                let at: Vec<f64> = runs
                    .iter()
                    .filter_map(|run| run.get(t).or(run.last()))
                    .map(|i| PAPER_SCALE * (i.objective - self.optimum))
                    .collect();
                (t as f64, median(at))
            })
            .collect()
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// What it took until a relative gap was first reached, medians over runs; none unless all reached
/// it.
pub fn reached(runs: &[Vec<Iteration>], gap: f64) -> Option<Cost> {
    let firsts: Option<Vec<&Iteration>> =
        runs.iter().map(|run| run.iter().find(|i| i.relative_gap <= gap)).collect();
    let firsts = firsts?;
    Some(Cost {
        seconds: median(firsts.iter().map(|i| i.seconds).collect()),
        products: median(firsts.iter().map(|i| i.kernel_products as f64).collect()),
    })
}
