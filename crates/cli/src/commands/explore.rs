//! `argwhy explore`: a page on which a model can be tried out.

use super::targets::check_targets;
use super::{Wanted, load_rows, on_threads};
use crate::args::ExploreArgs;
use crate::error::CliError;
use crate::progress::say;
use crate::{End, pages};
use argwhy::explain::{Cases, explore};
use argwhy::io::write_whole;
use argwhy::{Predictor, StoredModel};

pub fn run(args: &ExploreArgs) -> Result<End, CliError> {
    let sets = &args.sets;
    let (matrix, matrix_eq) = (sets.matrix.as_deref(), sets.matrix_eq.as_deref());
    let inputs = [Some(args.model.as_path()), args.data.as_deref(), matrix, matrix_eq];
    let inputs: Vec<_> = inputs.into_iter().flatten().collect();
    check_targets(&inputs, &[args.output.as_path()], &[])?;
    let stored = argwhy::load_model(&args.model)?;
    let predictor = Predictor::new(&stored.model)?;
    let page = on_threads(args.rows.threads, || page(args, &stored, &predictor))??;
    write_whole(&args.output, page.as_bytes())
        .map_err(|source| CliError::Write { path: args.output.clone(), source })?;
    say(args.quiet, format_args!("page written to {}", args.output.display()));
    Ok(End::Done)
}

fn page(
    args: &ExploreArgs,
    stored: &StoredModel,
    predictor: &Predictor,
) -> Result<String, CliError> {
    let mut model = stored.model.clone();
    let cases = match &args.data {
        None => Cases::of_support(&model, predictor)?,
        Some(path) => {
            let load = |want_decisions: bool| {
                let decisions = args.decisions.as_ref();
                let rest = Wanted::new(&args.rows, &args.sets);
                let wanted = Wanted { decisions, want_decisions, ..rest };
                load_rows(path, &wanted, (stored, predictor), args.quiet)
            };
            // What was decided is worth showing, and not needed unless it was asked for.
            let rows = load(true).or_else(|error| match args.decisions {
                Some(_) => Err(error),
                None => load(false),
            })?;
            let (decisions, given) = (rows.decisions.as_ref(), rows.constraints.as_ref());
            let cases = Cases::of_data(&rows.signals, decisions, given, |i| rows.place(i));
            // Rows of M may be called differently, or anything at all, in this data.
            model.names = rows.names;
            cases
        }
    };
    let numeraire = args.numeraire.as_ref().map(|n| (n.decision.as_str(), n.signal.as_str()));
    let found = explore(&model, predictor, &cases, numeraire)?;
    let name = args.model.file_stem().map_or_else(String::new, |n| n.to_string_lossy().into());
    let what = "Move a signal and see what would be decided, and why.";
    pages::explore::page(&found, &name, what)
}
