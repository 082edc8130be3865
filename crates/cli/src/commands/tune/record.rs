//! Trials as they are done, line by line, so that a search can go on where another stopped.

use crate::error::CliError;
use argwhy::io::write_onward;
use argwhy::tuning::{Space, Trial, Tuning};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What a search is about: trials of another are of no use to it.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    data: String,
    n_rows: usize,
    first_row: Option<usize>,
    by: String,
    folds: usize,
    seed: u64,
    settings: Vec<String>,
    regularizations: Vec<f64>,
}

impl Header {
    pub fn new(data: &Path, rows: &[usize], space: &Space, tuning: &Tuning) -> Self {
        let name = |one: &argwhy::tuning::Candidate| match &one.settings {
            Ok(settings) => serde_json::to_string(settings).unwrap_or_default(),
            Err(_) => one.chosen.to_string(),
        };
        Self {
            data: data.display().to_string(),
            n_rows: rows.len(),
            first_row: rows.first().copied(),
            by: tuning.division.name().to_owned(),
            folds: tuning.n_parts,
            seed: tuning.seed,
            settings: space.candidates.iter().map(name).collect(),
            regularizations: space.regularizations.clone(),
        }
    }
}

/// The trials of an earlier search of the same kind.
pub fn read(path: &Path, header: &Header) -> Result<Vec<Trial>, CliError> {
    let wrong = |why: String| CliError::Config { path: path.to_path_buf(), why };
    let text = fs::read_to_string(path).map_err(|e| {
        wrong(format!("there is no search to resume here ({e}); leave out --resume"))
    })?;
    let mut lines = text.lines();
    let theirs: Option<Header> = lines.next().and_then(|line| serde_json::from_str(line).ok());
    if theirs.as_ref() != Some(header) {
        return Err(wrong(
            "this search was about other data, rows or settings; use those again, or leave out \
             --resume to begin anew"
                .to_owned(),
        ));
    }
    // The last line may have been cut off.
    Ok(lines.map_while(|line| serde_json::from_str(line).ok()).collect())
}

fn line(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

/// A file of trials being written.
pub struct Record {
    path: PathBuf,
    /// What the file begins with: what the search is about, and the trials of the one it goes on
    /// from, all at once, so that none is lost to whatever ends this one.
    beginning: Vec<u8>,
    known: Vec<Trial>,
    /// None until the first new trial: what an earlier search left there stays until then.
    file: Option<File>,
    failed: Option<io::Error>,
}

impl Record {
    /// A file about a search that knows some trials from an earlier one.
    pub fn new(path: PathBuf, header: &Header, known: Vec<Trial>) -> Result<Self, CliError> {
        let lines = known.iter().map(line);
        match std::iter::once(line(header)).chain(lines).collect::<io::Result<Vec<_>>>() {
            Ok(lines) => {
                Ok(Self { path, beginning: lines.concat(), known, file: None, failed: None })
            }
            Err(source) => Err(CliError::Write { path, source }),
        }
    }

    pub fn add(&mut self, trial: &Trial) {
        if self.failed.is_none() && !self.known.contains(trial) {
            self.failed = self.write(trial).err();
        }
    }

    fn write(&mut self, trial: &Trial) -> io::Result<()> {
        let line = line(trial)?;
        if let Some(file) = &mut self.file {
            return file.write_all(&line);
        }
        let text = [&self.beginning[..], &line].concat();
        self.file = Some(write_onward(&self.path, &text)?);
        Ok(())
    }

    pub fn finish(self) -> Result<(), CliError> {
        match self.failed {
            Some(source) => Err(CliError::Write { path: self.path, source }),
            None => Ok(()),
        }
    }
}
