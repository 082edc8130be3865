//! A model as a page carries it: what is not an array as JSON, then the arrays.
//!
//! `argwhy::explore` writes it. It is no file format: both ends are in one page, made at once.

use argwhy_core::Model;
use argwhy_core::decision_set::{DecisionSet, Prices};
use argwhy_core::features::FeatureMap;
use argwhy_core::kernel::Kernel;
use argwhy_core::model::{FeatureWeights, FitRecord, Law, LearnedTheta, Seen, Support};
use ndarray::Array2;
use serde::Deserialize;

/// Everything but the arrays, which follow in this order: support signals, coefficients, weights of
/// features, θ_uu, pivots.
#[derive(Deserialize)]
struct Header {
    features: FeatureMap,
    kernel: Kernel,
    decision_set: DecisionSet,
    constrained: bool,
    record: FitRecord,
    n_support: usize,
    /// Rows of the weights of a plain model; zero in others.
    n_weights: usize,
    has_theta: bool,
    seen: Option<SeenHeader>,
}

#[derive(Deserialize)]
struct SeenHeader {
    lowest: Vec<f64>,
    highest: Vec<f64>,
    left: Vec<f64>,
    n_pivots: usize,
}

/// The model of a page.
pub fn read(header: &[u8], arrays: &[f64]) -> Result<Model, String> {
    let header: Header = serde_json::from_slice(header).map_err(|error| error.to_string())?;
    let (d, n) = (header.features.signal_dim(), header.decision_set.decision_dim());
    let mut rest = arrays;
    let mut next = |rows: usize, columns: usize| {
        let len = rows * columns;
        let (part, after) = rest.split_at_checked(len).ok_or("the page's numbers are cut off")?;
        rest = after;
        Array2::from_shape_vec((rows, columns), part.to_vec()).map_err(|_| "an odd shape")
    };
    let (signals, coefficients) = (next(header.n_support, d)?, next(header.n_support, n)?);
    let weights = next(header.n_weights, n)?;
    let theta = next(if header.has_theta { n } else { 0 }, n)?;
    let seen = match header.seen {
        None => None,
        Some(SeenHeader { lowest, highest, left, n_pivots }) => {
            Some(Seen { lowest, highest, left, pivots: next(n_pivots, d)? })
        }
    };
    let law = if header.n_weights > 0 {
        let intercept = header.kernel == Kernel::linear_with_intercept();
        Law::Primal(FeatureWeights { values: weights, intercept })
    } else {
        let rows = (0..header.n_support as u64).collect();
        let kernel = header.kernel;
        Law::Kernel(Support { kernel, signals, coefficients, rows, prices: Prices::default() })
    };
    let theta = header
        .has_theta
        .then(|| LearnedTheta { multiplier: Array2::zeros(theta.dim()), theta_uu: theta });
    let (set, constrained) = (header.decision_set, header.constrained);
    let bare = Model::bare(header.features, law, set, constrained, header.record);
    let model = Model { theta, seen, ..bare };
    model.validate().map_err(|error| error.to_string())?;
    Ok(model)
}
