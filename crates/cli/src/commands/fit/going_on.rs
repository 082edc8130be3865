//! Where a fit starts, and where it leaves what it reaches.

use crate::args::OutputOptions;
use crate::error::CliError;
use crate::interrupt;
use argwhy::io::{load_checkpoint, load_model};
use argwhy::{Checkpoints, Pipeline, Start};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often a checkpoint is written.
const EVERY: Duration = Duration::from_mins(1);

/// From where to where.
pub struct Way {
    pub start: Option<Start>,
    checkpoints: Checkpoints,
    json: bool,
}

impl Way {
    /// Reads what is started from.
    pub fn new(model: &Path, outputs: &OutputOptions) -> Result<Self, CliError> {
        let checkpoints = checkpoints(model, outputs);
        Ok(Self { start: start(outputs)?, checkpoints, json: outputs.json })
    }

    /// What to know about the start.
    pub fn note(&self) -> Option<String> {
        match &self.start {
            Some(Start::Checkpoint(from)) => {
                Some(format!("going on from a checkpoint after step {}", from.iterations))
            }
            _ => None,
        }
    }

    /// A request to stop that is not answered in time ends the process with a checkpoint.
    pub fn hurry(&self) {
        if !interrupt::asked() {
            interrupt::hurry(self.checkpoints.clone(), self.json);
        }
    }

    /// A pipeline that goes this way.
    pub fn go(self, pipeline: &Pipeline) -> Pipeline {
        let pipeline = pipeline.clone().with_checkpoints(self.checkpoints);
        match self.start {
            Some(start) => pipeline.starting_from(start),
            None => pipeline,
        }
    }
}

/// In a file of the user's choice every now and then, else beside the model if there is no time for
/// more.
fn checkpoints(model: &Path, outputs: &OutputOptions) -> Checkpoints {
    if let Some(path) = &outputs.checkpoint {
        let every = outputs.checkpoint_every.map_or(EVERY, |span| span.0);
        return Checkpoints::new(path, Some(every));
    }
    let mut name = model.as_os_str().to_owned();
    name.push(".checkpoint");
    Checkpoints::new(PathBuf::from(name), None)
}

fn start(outputs: &OutputOptions) -> Result<Option<Start>, CliError> {
    if let Some(path) = &outputs.resume {
        let checkpoint = load_checkpoint(path).map_err(argwhy::Error::from)?;
        return Ok(Some(Start::Checkpoint(Box::new(checkpoint))));
    }
    let Some(path) = &outputs.from else { return Ok(None) };
    let model = load_model(path).map_err(argwhy::Error::from)?.model;
    Ok(Some(Start::Model(Box::new(model))))
}
