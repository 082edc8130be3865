//! `argwhy evaluate`: a model's decisions against an expert's.

use super::{Wanted, load_rows, on_threads, print, print_json};
use crate::End;
use crate::args::EvaluateArgs;
use crate::error::CliError;
use argwhy::Predictor;
use argwhy::core::metrics;

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
    let observed = rows.decisions.unwrap_or_default();
    let m = on_threads(args.rows.threads, || {
        let desired = predictor.desired(rows.signals.view())?;
        metrics::evaluate(desired.view(), observed.view(), predictor.metric(), &sets)
    })??;
    if args.json {
        print_json(&m)?;
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
    }
    Ok(End::Done)
}
