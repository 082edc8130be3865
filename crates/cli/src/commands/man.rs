//! `argwhy man`: a manual page for the command and one for each of its subcommands, from their
//! help.

use crate::End;
use crate::args::{Cli, ManArgs};
use crate::error::CliError;
use crate::progress::say;
use argwhy::io::write_whole;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use std::fs;
use std::io;
use std::path::Path;

pub fn run(args: &ManArgs) -> Result<End, CliError> {
    let wrong = |path: &Path, source| CliError::Write { path: path.to_path_buf(), source };
    fs::create_dir_all(&args.folder).map_err(|e| wrong(&args.folder, e))?;
    let pages = pages();
    for page in &pages {
        let path = args.folder.join(page.get_filename());
        rendered(page).and_then(|text| write_whole(&path, &text)).map_err(|e| wrong(&path, e))?;
    }
    let folder = args.folder.display();
    let n_pages = pages.len();
    say(
        args.quiet,
        format_args!("{n_pages} pages in {folder}; read one: man -l {folder}/argwhy.1"),
    );
    Ok(End::Done)
}

fn pages() -> Vec<Man> {
    let mut whole = Cli::command().disable_help_subcommand(true);
    // Gives each subcommand its full name, `argwhy-fit`.
    whole.build();
    let own = whole.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    let all: Vec<Command> = std::iter::once(whole.clone()).chain(own).collect();
    let titled = |command| Man::new(in_short(command)).manual("argwhy").source(version());
    all.into_iter().map(titled).collect()
}

/// Its synopsis is the line of the help: sixty options, each in brackets, tell nobody anything.
fn in_short(mut command: Command) -> Command {
    let usage = command.render_usage().to_string();
    let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage).to_owned();
    command.override_usage(usage)
}

fn version() -> String {
    format!("argwhy {}", env!("CARGO_PKG_VERSION"))
}

fn rendered(page: &Man) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    page.render(&mut text)?;
    Ok(text)
}
