//! `argwhy fit --path`: a model for each of several regularizations.

use super::{FitResult, Saved, save_somewhere, with_sources};
use crate::End;
use crate::commands::print_json;
use crate::error::CliError;
use crate::progress::{Follow, say};
use argwhy::core::solver::Status;
use argwhy::settings::Numbers;
use argwhy::{DataSources, Dataset, Pipeline};
use serde::Serialize;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The files that will be written: MODEL itself, or for a path one for each regularization,
/// `hopper.argwhy` → `hopper-k1e-6.argwhy`.
pub fn models(output: &Path, path: Option<&Numbers>) -> Vec<PathBuf> {
    let Some(path) = path else { return vec![output.to_path_buf()] };
    let stem = output.file_stem().unwrap_or_default().to_string_lossy();
    let ending =
        output.extension().map(|e| format!(".{}", e.to_string_lossy())).unwrap_or_default();
    path.0.iter().map(|k| output.with_file_name(format!("{stem}-k{k:e}{ending}"))).collect()
}

/// What was fitted, in order, and what went wrong. Each model is saved before the next is begun:
/// elsewhere, and the error says where, if it cannot be written to where it should be. One that can
/// be written nowhere ends the path; those before it are told.
pub fn run(
    pipeline: &Pipeline,
    (data, rows): (&Dataset, &[Range<usize>]),
    (path, models): (&[f64], &[PathBuf]),
    sources: &DataSources,
    follow: &mut Follow,
) -> Result<(Vec<FitResult>, Option<CliError>), CliError> {
    let (mut results, mut trouble) = (Vec::new(), None);
    let ended = pipeline.fit_path(data, rows, path, follow, &mut |fit| {
        let model = &models[results.len()];
        let fit = with_sources(fit, sources);
        let at = match save_somewhere(&fit, model, None)? {
            Saved::There => model.clone(),
            Saved::Elsewhere { path, source } => {
                let told = CliError::Elsewhere { source: Box::new(source), path: path.clone() };
                trouble.get_or_insert(told);
                path
            }
        };
        results.push(FitResult::new(&fit, &at));
        Ok(())
    });
    match ended {
        Err(source) if !results.is_empty() => {
            let left = path[results.len()..].iter().map(|k| format!("{k:e}")).collect::<Vec<_>>();
            let saved = results.iter().filter_map(|r| r.model.as_ref()).map(|m| format!("`{m}`"));
            let saved = saved.collect::<Vec<_>>().join(", ");
            let told = CliError::Path { source: Box::new(source), saved, left: left.join(",") };
            trouble = Some(told);
        }
        ended => ended?,
    }
    Ok((results, trouble))
}

/// A table for people, and with `json` an object.
pub fn tell(results: &[FitResult], quiet: bool, json: bool) -> Result<End, CliError> {
    #[derive(Serialize)]
    struct Whole<'a> {
        path: &'a [FitResult],
    }
    say(
        quiet,
        format_args!("       k     objective  relative gap  steps  products  seconds  status"),
    );
    for r in results {
        say(
            quiet,
            format_args!(
                "{:>8.1e}  {:>12.8}  {:>12.1e}  {:>5}  {:>8}  {:>7.2}  {}, saved to {}",
                r.regularization,
                r.objective,
                r.relative_gap,
                r.iterations,
                r.kernel_products,
                r.seconds,
                r.status.name(),
                r.model.as_deref().unwrap_or_default()
            ),
        );
    }
    if json {
        print_json(&Whole { path: results })?;
    }
    let solved = results.iter().all(|r| r.status == Status::Solved);
    Ok(if solved { End::Done } else { End::Short })
}
