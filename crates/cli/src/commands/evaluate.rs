//! `argwhy evaluate`: a model's decisions against an expert's.

use super::{Wanted, load_rows, on_threads, print, print_json};
use crate::End;
use crate::args::EvaluateArgs;
use crate::error::CliError;
use crate::judged::{self, Judged};
use argwhy::Predictor;
use argwhy::core::metrics::{self, Metrics};
use argwhy::judging::{Verdict, compare};
use argwhy::{Dataset, FitSettings};
use serde::Serialize;

/// What `evaluate --json` prints.
#[derive(Serialize)]
struct Evaluation<'a> {
    #[serde(flatten)]
    metrics: Metrics,
    #[serde(flatten)]
    verdict: Judged<'a>,
}

pub fn run(args: &EvaluateArgs) -> Result<End, CliError> {
    let stored = argwhy::load_model(&args.model)?;
    let predictor = Predictor::new(&stored.model)?;
    let wanted = Wanted {
        decisions: args.decisions.as_ref(),
        want_decisions: true,
        ..Wanted::new(&args.rows, &args.sets)
    };
    let rows = load_rows(&args.data, &wanted, (&stored, &predictor), false)?;
    let sets = rows.sets(&predictor)?;
    let observed = rows.decisions.clone().unwrap_or_default();
    let m = on_threads(args.rows.threads, || {
        let desired = predictor.desired(rows.signals.view())?;
        metrics::evaluate(desired.view(), observed.view(), predictor.metric(), &sets)
    })??;
    let mut data = Dataset::new(rows.signals, observed)?;
    if let Some(constraints) = rows.constraints {
        data = data.with_constraints(constraints)?;
    }
    let settings = FitSettings { threads: args.rows.threads, ..FitSettings::default() };
    let verdict = compare(&stored.model, &data, &settings)?;
    if args.json {
        print_json(&Evaluation { metrics: m, verdict: Judged::from(&verdict) })?;
    } else {
        print(&format!(
            "rows                {}\n\
             rmse                {:.6}\n\
             mean absolute error {:.6}\n\
             largest error       {:.6}\n\
             mean suboptimality  {:.6e}\n\
             outside the limits  {}\n",
            m.n, m.rmse, m.mae, m.max_error, m.mean_suboptimality, m.infeasible
        ))?;
        let lines = match &verdict {
            Verdict::Judged(judgement) => judged::table(judgement, &stored.model.names),
            Verdict::None { why } => vec![format!("no baselines: {why}")],
        };
        print(&(lines.join("\n") + "\n"))?;
    }
    Ok(End::Done)
}
