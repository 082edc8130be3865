//! `argwhy update`: a model that learns from more rows, or forgets some.

use super::fit::{FitResult, learn_aside, print_result, save, summarise, tell, tell_kept};
use super::targets::check_targets;
use super::{Rows, Wanted, load_rows};
use crate::args::UpdateArgs;
use crate::error::CliError;
use crate::progress::{Aside, Follow, say};
use crate::{End, interrupt, provenance};
use argwhy::core::solver::Status;
use argwhy::io::{Budget, DataRequest, Kept, Thinning};
use argwhy::judging::{Division, HOLDOUT};
use argwhy::{
    Changes, Checkpoints, Dataset, Fit, Judging, Pipeline, Predictor, StoredModel, Updated, sources,
};
use std::path::Path;

pub fn run(args: &UpdateArgs) -> Result<End, CliError> {
    let inputs = [Some(args.model.as_path()), args.data.as_deref(), args.old.as_deref()];
    let inputs: Vec<&Path> = inputs.into_iter().flatten().collect();
    check_targets(&inputs, &[&args.output], args.trace.as_deref().as_slice())?;
    let holdout = args.holdout.unwrap_or(HOLDOUT);
    let judging = Judging { division: Division::Rows, holdout };
    judging.validate()?;
    interrupt::listen();
    // An update goes on from the model that is there: what it reaches on its way needs no file.
    interrupt::hurry(Checkpoints::new(&args.output, None), args.json);
    let mut stored = argwhy::load_model(&args.model)?;
    let in_model = stored.kept.take();
    let keep = args.keep_data || in_model.is_some();
    let leave_factor = keep && !args.no_factor;
    let (threads, memory) = (args.rows.threads, args.memory);
    let mut changes = Changes { leave_factor, threads, memory, ..Changes::default() };
    let old = old_rows(args, &stored, in_model, changes.budget(&stored, None)?)?;
    if let Some(path) = &args.data {
        let budget = changes.budget(&stored, Some(&old))?;
        let rows = load(args, path, &stored, args.rows.choice.request(), budget)?;
        changes.new = Some(dataset(rows)?);
    }
    changes.drop = args.drop.as_ref().map_or_else(Vec::new, |drop| drop.among(&old.rows));
    let mut follow = Follow::new(args.quiet, args.trace.as_deref())?;
    let updated = Pipeline::update(&stored, &old, &changes, &mut follow);
    interrupt::ended();
    let traced = follow.finish();
    let Updated { mut fit, data, n_old, drifted } = updated?;
    provenance::joined(&mut fit.sources.provenance, args.data.as_deref());
    let pipeline = Pipeline::new(fit.settings().clone())?;
    // Rows that have drifted say more of what is new to the model than of what it knows now. Others
    // judge it in a moment: it is written once, with what they say.
    let before = (!drifted).then(|| pipeline.judge_before(&data, n_old, &stored.model, &judging));
    let before = before.flatten();
    if let Some(verdict) = &before {
        learn_aside(&mut fit, verdict, &pipeline, &data);
    }
    save(&fit, &args.output, keep.then_some(&data))?;
    summarise(&fit, (&args.output, false), args.quiet);
    if old.factor.is_none() {
        quicker(&fit, args.quiet);
    }
    tell_kept(&fit, args.quiet);
    let verdict = if let Some(verdict) = before {
        tell(&fit, &verdict, args.quiet);
        verdict
    } else {
        let mut aside = Aside::new(args.quiet, "judging it on rows kept aside");
        let verdict = pipeline.judge(&data, &fit, &judging, &mut aside);
        drop(aside);
        if holdout > 0.0 {
            learn_aside(&mut fit, &verdict, &pipeline, &data);
            save(&fit, &args.output, keep.then_some(&data))?;
            tell(&fit, &verdict, args.quiet);
        }
        verdict
    };
    if args.json {
        print_result(FitResult::new(&fit, &args.output), &fit, &verdict)?;
    }
    traced?;
    Ok(if fit.outcome.status == Status::Solved { End::Done } else { End::Short })
}

/// Says once what the next update would gain, where this one had no factor to go on from.
fn quicker(fit: &Fit, quiet: bool) {
    let iterated = fit
        .plan
        .kernel()
        .is_some_and(|plan| plan.device.is_none() && plan.max_rank < fit.plan.sizes.n_samples);
    if iterated && !fit.plan.sizes.coupled && fit.outcome.factor.is_none() {
        say(
            quiet,
            format_args!(
                "note: models that `fit --keep-data` writes have what makes an update take less \
                 than half of a fit's time"
            ),
        );
    }
}

/// What the model learned from: of its own file, or of the one that is named.
fn old_rows(
    args: &UpdateArgs,
    stored: &StoredModel,
    in_model: Option<Kept>,
    budget: Budget,
) -> Result<Kept, CliError> {
    if let Some(path) = &args.old {
        // Rows of the new data are chosen by options of their own.
        let request = DataRequest {
            rows: args.old_rows.clone(),
            thinning: Thinning::default(),
            ..args.rows.choice.request()
        };
        let rows = load(args, path, stored, request, budget)?;
        let numbers = (0..rows.signals.nrows()).map(|i| rows.place(i) as u64).collect();
        return Ok(Kept { data: dataset(rows)?, rows: numbers, factor: None });
    }
    in_model.ok_or_else(|| {
        CliError::Usage(format!(
            "`{}` does not keep the rows it learned from; name them with --old, or fit with \
             --keep-data",
            args.model.display()
        ))
    })
}

fn load(
    args: &UpdateArgs,
    path: &Path,
    stored: &StoredModel,
    request: DataRequest,
    budget: Budget,
) -> Result<Rows, CliError> {
    let (_, from) = sources::from_stored(&stored.settings)?;
    let wanted = Wanted {
        request,
        decisions: args.decisions.as_ref(),
        want_decisions: true,
        weights: from.weights.as_ref(),
        budget,
        ..Wanted::new(&args.rows, &args.sets)
    };
    load_rows(path, &wanted, (stored, &Predictor::new(&stored.model)?), args.quiet)
}

fn dataset(rows: Rows) -> Result<Dataset, CliError> {
    let mut data = Dataset::new(rows.signals, rows.decisions.unwrap_or_default())?;
    if let Some(constraints) = rows.constraints {
        data = data.with_constraints(constraints)?;
    }
    if let Some(weights) = rows.weights {
        data = data.with_weights(weights)?;
    }
    Ok(data.with_names(rows.names)?)
}
