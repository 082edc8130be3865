//! What a model keeps of the command that made it.

use crate::args::Cli;
use argwhy::Provenance;
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory};
use std::path::Path;

/// Options that say where results go or how they are told, and nothing about the model.
const ASIDE: [&str; 7] =
    ["output", "report", "trace", "checkpoint", "checkpoint-every", "quiet", "json"];

/// Of a fit to rows from `data`, as far as the command knows.
pub fn of(data: &Path) -> Provenance {
    Provenance { source: Some(name(data)), command: typed(), ..Provenance::default() }
}

/// Of a model to which the rows of `data` came, as far as the command knows.
pub fn joined(own: &mut Provenance, data: Option<&Path>) {
    own.command = typed();
    if let Some(data) = data {
        let old = own.source.take().unwrap_or_else(|| "rows of a model".to_owned());
        own.source = Some(format!("{old}, {}", name(data)));
    }
}

/// A file's name; folders say more about a person than about data.
fn name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// The command line as it was typed, without [`ASIDE`].
fn typed() -> Option<String> {
    let command = Cli::command();
    let matches = command.clone().try_get_matches_from(std::env::args_os()).ok()?;
    let (name, given) = matches.subcommand()?;
    Some(words(command.find_subcommand(name)?, given))
}

fn words(command: &clap::Command, given: &ArgMatches) -> String {
    let mut parts: Vec<(usize, String)> = Vec::new();
    for arg in command.get_arguments() {
        let id = arg.get_id().as_str();
        let typed = given.value_source(id) == Some(ValueSource::CommandLine);
        let aside = arg.get_long().is_some_and(|long| ASIDE.contains(&long));
        let Some(at) = given.index_of(id).filter(|_| typed && !aside) else { continue };
        let values: Vec<String> = given
            .get_raw(id)
            .into_iter()
            .flatten()
            .map(|value| quoted(&value.to_string_lossy()))
            .collect();
        let flag = arg.get_long().map(|long| format!("--{long}"));
        let takes = arg.get_action().takes_values();
        let text = match flag {
            None => values.join(" "),
            Some(flag) if !takes => flag,
            Some(flag) => {
                let one = |value: String| {
                    let sign = if value.starts_with('-') { "=" } else { " " };
                    format!("{flag}{sign}{value}")
                };
                values.into_iter().map(one).collect::<Vec<_>>().join(" ")
            }
        };
        parts.push((at, text));
    }
    parts.sort_by_key(|(at, _)| *at);
    let parts = parts.into_iter().map(|(_, text)| text);
    let all: Vec<String> =
        ["argwhy".to_owned(), command.get_name().to_owned()].into_iter().chain(parts).collect();
    all.join(" ")
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:,=+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(line: &str) -> String {
        let command = Cli::command();
        let typed = line.split('|');
        let matches = command.clone().try_get_matches_from(typed).unwrap();
        let (name, given) = matches.subcommand().unwrap();
        words(command.find_subcommand(name).unwrap(), given)
    }

    #[test]
    fn a_command_is_kept_as_typed_but_for_where_results_go() {
        let line = "argwhy|fit|my data.csv|-k|1e-3|--bounds=-1,2|-qo|m.argwhy|--constraints";
        let kept = "argwhy fit 'my data.csv' --regularization 1e-3 --bounds=-1,2 --constraints";
        assert_eq!(told(line), kept);
        let line = "argwhy|update|--json|m.argwhy|--drop|0:3|new.csv|--trace=t.jsonl|-o|n.argwhy";
        assert_eq!(told(line), "argwhy update m.argwhy --drop 0:3 new.csv");
    }

    #[test]
    fn only_names_of_files_are_kept() {
        assert_eq!(name(Path::new("/home/ada/hours.csv")), "hours.csv");
        assert_eq!(name(Path::new("-")), "-");
    }
}
