//! `argwhy convert`: data from one format to another.

use super::targets::check_targets;
use super::whole_machine;
use crate::End;
use crate::args::ConvertArgs;
use crate::error::CliError;
use crate::progress::say;
use argwhy::io::{
    DataOut, DataRequest, Encoding, GroupKind, OneHot, check_data_ending, write_data,
};

pub fn run(args: &ConvertArgs) -> Result<End, CliError> {
    check_data_ending(&args.output)?;
    check_targets(&[&args.data], &[&args.output], &[])?;
    let request = DataRequest {
        decisions: args.decisions.clone(),
        want_decisions: !args.signals_only,
        weights: args.weights.clone(),
        missing: args.missing.unwrap_or_default(),
        encoding: Encoding {
            one_hot: args.one_hot.iter().flatten().map(OneHot::new).collect(),
            cyclic: args.cyclic.clone().unwrap_or_default(),
        },
        episodes: true,
        budget: whole_machine(),
        ..args.rows.request()
    };
    let loaded = argwhy::load(&args.data, &request)?;
    let episodes = loaded.groups.as_ref().filter(|groups| groups.kind == GroupKind::Episodes);
    let out = DataOut {
        signals: loaded.signals.view(),
        decisions: loaded.decisions.as_ref().map(|decisions| decisions.view()),
        weights: loaded.weights.as_deref(),
        episodes: episodes.map(|groups| groups.of_rows.as_slice()),
        names: &loaded.names,
    };
    write_data(&args.output, &out)?;
    let (rows, path) = (loaded.signals.nrows(), args.output.display());
    say(args.quiet, format_args!("{rows} rows written to {path}"));
    Ok(End::Done)
}
