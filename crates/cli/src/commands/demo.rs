//! `argwhy demo`: a bundled expert, its decisions, a fit, a comparison by the expert's true cost, a
//! report.

pub mod charging;
pub mod quadrotor;

use crate::End;
use crate::args::{DemoArgs, DemoName};
use crate::commands::targets::check_folder;
use crate::error::CliError;
use crate::progress::say;
use argwhy::io::write_whole;
use std::path::Path;

/// What each demo writes.
const OF_QUADROTOR: [&str; 3] = ["demonstrations.csv", "pilot.argwhy", "report.html"];
const OF_CHARGING: [&str; 9] = [
    "history.csv",
    "held-out.csv",
    "tomorrow.csv",
    "matrix.csv",
    "depot.argwhy",
    "README.txt",
    "decisions.csv",
    "prices.csv",
    "report.html",
];

pub fn run(args: &DemoArgs) -> Result<End, CliError> {
    if args.name == DemoName::Quadrotor && args.nights.is_some() {
        return Err(CliError::Usage("--nights belongs to `argwhy demo charging`".to_owned()));
    }
    let outputs = match args.name {
        DemoName::Quadrotor => &OF_QUADROTOR[..],
        DemoName::Charging => &OF_CHARGING,
    };
    let _folder = check_folder(&args.output, outputs, &[])?;
    match args.name {
        DemoName::Quadrotor => quadrotor::run(args),
        DemoName::Charging => charging::run(args),
    }
}

/// Ctrl-C after the fit: the model is there, the report is not.
fn stopped(quiet: bool, model: &Path) -> End {
    say(quiet, format_args!("stopped before the report; the model is in {}", model.display()));
    End::Short
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), CliError> {
    write_whole(path, bytes).map_err(|source| CliError::Write { path: path.to_path_buf(), source })
}
