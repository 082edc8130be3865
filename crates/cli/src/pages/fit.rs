//! The report of `argwhy fit --report`.

use super::{judged, sections};
use crate::error::CliError;
use argwhy::core::solver::Iteration;
use argwhy::{Dataset, Fit, Predictor, Verdict};
use ndarray::Axis;

/// One page about one fit.
pub fn page(
    (fit, verdict): (&Fit, &Verdict),
    data: &Dataset,
    history: &[Iteration],
    source: &str,
) -> Result<String, CliError> {
    let observed = data.decisions().select(Axis(0), &fit.rows);
    // Each decision in its own set.
    let predictor = Predictor::new(&fit.model)?;
    let given = data.constraints().map(|given| given.select(&fit.rows));
    let sets = predictor.sets(given.as_ref(), fit.rows.len())?;
    let predicted = predictor.decide(fit.outcome.certified.desired.t(), &sets)?;
    let draw = || {
        let decisions = sections::decisions(
            "Decisions on the training data",
            "What the model decides on the signals it was trained on, against what the expert \
             decided.",
            observed.view(),
            &[("decisions", predicted.view())],
        )?;
        let decisions = if fit.model.constrained && fit.model.set.is_unbounded() {
            decisions
        } else {
            decisions.table(sections::limits(&fit.model, observed.view()))
        };
        let header = sections::header("Inverse optimization fit", source, fit);
        judged::opening(header, fit, verdict)
            .section(judged::section(verdict)?)
            .section(sections::convergence(history, fit)?)
            .section(sections::certificate(fit))
            .section(decisions)
            .section(sections::prices(fit)?)
            .section(sections::weights(fit)?)
            .section(sections::settings(fit))
            .footer(format!("argwhy {}", env!("CARGO_PKG_VERSION")))
            .render()
    };
    draw().map_err(|e| CliError::Report(e.to_string()))
}
