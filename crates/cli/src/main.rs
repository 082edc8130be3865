//! The `argwhy` command: arguments → plan → one of `commands/`. Data goes to stdout, everything
//! else to stderr.

#[cfg(any(test, target_os = "linux"))]
mod allocator;
mod args;
mod commands;
mod config;
mod error;
mod findings;
mod flags;
mod interrupt;
mod judged;
mod misfits;
mod pages;
mod prices;
mod progress;
mod provenance;
mod report;
mod words;

use args::{Cli, Command};
use clap::Parser;
use error::CliError;
use std::io::{self, Write};
use std::process::ExitCode;

/// The system's keeps too much of what was freed, or nothing.
#[cfg(target_os = "linux")]
#[global_allocator]
static MEMORY: allocator::Keeping = allocator::Keeping::new();

/// How a command that did not fail ended.
enum End {
    /// Everything asked for is done.
    Done,
    /// A fit stopped short of its tolerance; what it reached is saved.
    Short,
}

fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    argwhy::machine::give_back_freed_memory(allocator::SMALLEST);
    let cli = Cli::parse();
    let ended = match cli.command {
        Command::Fit(args) => commands::fit::run(*args),
        Command::Tune(args) => commands::tune::run(&args),
        Command::Update(args) => commands::update::run(&args),
        Command::Describe(args) => commands::describe::run(&args),
        Command::Convert(args) => commands::convert::run(&args),
        Command::Predict(args) => commands::predict::run(&args),
        Command::Evaluate(args) => commands::evaluate::run(&args),
        Command::Inspect(args) => commands::inspect::run(&args),
        Command::Explain(args) => commands::explain::run(&args),
        Command::Explore(args) => commands::explore::run(&args),
        Command::Demo(args) => commands::demo::run(&args),
        Command::Ablate(args) => commands::ablate::run(&args),
        Command::Bench(args) => commands::bench::run(&args),
        Command::Doctor(args) => commands::doctor::run(&args),
        Command::Completions(args) => commands::completions::run(&args),
        Command::Man(args) => commands::man::run(&args),
        Command::Schema => commands::schema::run(),
    };
    match ended {
        Ok(End::Done) => ExitCode::SUCCESS,
        Ok(End::Short) => ExitCode::from(1),
        // A reader that went away (`argwhy … | head`) is no error worth a message.
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        // If stderr is gone too there is nobody left to tell.
        Err(CliError::Stopped) => {
            let _ = writeln!(io::stderr(), "{}", CliError::Stopped);
            ExitCode::from(1)
        }
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {error:#}");
            ExitCode::from(2)
        }
    }
}
