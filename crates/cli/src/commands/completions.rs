//! `argwhy completions`: the script with which a shell completes our words.

use super::print;
use crate::End;
use crate::args::{Cli, CompletionsArgs};
use crate::error::CliError;
use clap::CommandFactory;

pub fn run(args: &CompletionsArgs) -> Result<End, CliError> {
    // Written to memory first: the generator panics where it cannot write, and a reader may be
    // gone.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "argwhy", &mut script);
    print(&String::from_utf8_lossy(&script))?;
    Ok(End::Done)
}
