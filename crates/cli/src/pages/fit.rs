//! The report of `argwhy fit --report`.

use super::{judged, sections, why};
use crate::error::CliError;
use crate::misfits;
use argwhy::core::solver::Iteration;
use argwhy::explain::{Explainer, Situations};
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
    let signals = data.signals().select(Axis(0), &fit.rows);
    let situations = Situations::of_data(&predictor, signals.view(), given.as_ref())?;
    let explanation = Explainer::new(&fit.model, &predictor, situations).explain()?;
    let draw = || {
        let decisions = sections::decisions(
            "Decisions on the training data",
            "What the model decides on the signals it was trained on, against what the expert \
             decided.",
            observed.view(),
            &[("decisions", predicted.view())],
            &fit.model.names,
        )?;
        let decisions = if fit.model.constrained && fit.model.set.is_unbounded() {
            decisions
        } else {
            decisions.table(sections::limits(&fit.model, observed.view()))
        };
        // Why first, verdict second, proof third.
        let header = sections::header("Inverse optimization fit", source, fit);
        let mut page = judged::opening(header, fit, verdict);
        for section in why::sections(&explanation)? {
            page = page.section(section);
        }
        page = page.section(judged::section(verdict, &fit.model.names)?);
        if let Some(section) = misfits::section(fit.model.misfits.as_ref(), &fit.model.names) {
            page = page.section(section);
        }
        page.section(sections::convergence(history, fit)?)
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
