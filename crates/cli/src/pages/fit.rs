//! The report of `argwhy fit --report`.

use super::sections;
use crate::error::CliError;
use argwhy::core::solver::Iteration;
use argwhy::{Dataset, Fit};
use ndarray::Axis;

/// One page about one fit.
pub fn page(
    fit: &Fit,
    data: &Dataset,
    history: &[Iteration],
    source: &str,
) -> Result<String, CliError> {
    let observed = data.decisions().select(Axis(0), &fit.rows);
    let mut predicted = fit.outcome.certified.desired.t().as_standard_layout().into_owned();
    for mut row in predicted.rows_mut() {
        if let Some(row) = row.as_slice_mut() {
            fit.model.set.project(row);
        }
    }
    let draw = || {
        let decisions = sections::decisions(
            "Decisions on the training data",
            "What the model decides on the signals it was trained on, against what the expert decided.",
            observed.view(),
            &[("decisions", predicted.view())],
        )?
        .table(sections::limits(&fit.model.set, observed.view()));
        sections::header("Inverse optimization fit", source, fit)
            .section(sections::convergence(history, fit)?)
            .section(sections::certificate(fit))
            .section(decisions)
            .section(sections::weights(fit)?)
            .section(sections::settings(fit))
            .footer(format!("argwhy {}", env!("CARGO_PKG_VERSION")))
            .render()
    };
    draw().map_err(|e| CliError::Report(e.to_string()))
}
