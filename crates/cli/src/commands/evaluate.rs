//! `argwhy evaluate`: a model's decisions against an expert's.

use super::{load_rows, on_threads, print, print_json};
use crate::End;
use crate::args::EvaluateArgs;
use crate::error::CliError;
use argwhy::Predictor;
use argwhy::core::metrics;

pub fn run(args: &EvaluateArgs) -> Result<End, CliError> {
    let stored = argwhy::load_model(&args.model)?;
    let predictor = Predictor::new(&stored.model)?;
    let (signals, decisions) = load_rows(&args.data, &args.rows, args.decisions.as_ref(), true)?;
    let observed = decisions.unwrap_or_default();
    let desired = on_threads(args.rows.threads, || predictor.desired(signals.view()))??;
    let sets = predictor.sets(None, signals.nrows())?;
    let m = metrics::evaluate(desired.view(), observed.view(), predictor.metric(), &sets)?;
    if args.json {
        print_json(&m)?;
    } else {
        print(&format!(
            "rows                {}\nrmse                {:.6}\nmean absolute error {:.6}\nlargest error       {:.6}\n\
             mean suboptimality  {:.6e}\noutside the limits  {}\n",
            m.n, m.rmse, m.mae, m.max_error, m.mean_suboptimality, m.infeasible
        ))?;
    }
    Ok(End::Done)
}
