//! The checkpoint file: what a fit has reached, to go on from after whatever ended it.
//!
//! In: a [`Checkpoint`]. Out: a safetensors file under the checksum of a model file, written whole
//! or not at all. A checkpoint is no model: nothing in it is certified.

use crate::data::{check_regular, write_whole};
use crate::model::{CHECKSUM_LEN, Tensor, check_checksum, matrix, seal};
use argwhy_core::solver::State;
use safetensors::SafeTensors;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The one key of the safetensors metadata.
pub(crate) const KEY: &str = "argwhy checkpoint";
/// The newest format this version reads.
const FORMAT: u64 = 1;

/// What a fit has reached.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// To go on from.
    pub state: State,
    /// The fingerprint of the rows that were fitted to.
    pub rows: String,
    /// Steps that led there.
    pub iterations: usize,
    /// Where it stood, by what the solver followed: not certified.
    pub relative_gap: f64,
}

/// Why a checkpoint could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The operating system refused.
    #[error("cannot read the checkpoint `{}`: {source}", path.display())]
    Unreadable {
        /// The path asked for.
        path: PathBuf,
        /// What the operating system answered.
        source: io::Error,
    },
    /// Something else, or bytes that are not those that were written.
    #[error("`{}` cannot be resumed from: {why}", path.display())]
    NotACheckpoint {
        /// The file.
        path: PathBuf,
        /// What was seen.
        why: String,
    },
    /// It could not be written; nothing at the path has changed.
    #[error("cannot write the checkpoint `{}`: {source}", path.display())]
    Write {
        /// The path asked for.
        path: PathBuf,
        /// What the operating system answered.
        source: io::Error,
    },
}

/// Everything that is not an array. The checksum comes first, as in a model.
#[derive(Serialize, Deserialize)]
struct Metadata {
    checksum: String,
    format: u64,
    version: String,
    rows: String,
    iterations: usize,
    relative_gap: f64,
}

/// Writes a checkpoint whole or not at all.
pub fn save_checkpoint(path: &Path, checkpoint: &Checkpoint) -> Result<(), CheckpointError> {
    let write = |source| CheckpointError::Write { path: path.to_path_buf(), source };
    let bytes = encode(checkpoint).map_err(|why| write(io::Error::other(why)))?;
    write_whole(path, &bytes).map_err(write)
}

/// Reads a checkpoint and checks every byte of it.
pub fn load_checkpoint(path: &Path) -> Result<Checkpoint, CheckpointError> {
    let unreadable = |source| CheckpointError::Unreadable { path: path.to_path_buf(), source };
    check_regular(path).map_err(unreadable)?;
    let bytes = fs::read(path).map_err(unreadable)?;
    decode(&bytes).map_err(|why| CheckpointError::NotACheckpoint { path: path.to_path_buf(), why })
}

fn encode(checkpoint: &Checkpoint) -> Result<Vec<u8>, String> {
    let Checkpoint { state, rows, iterations, relative_gap } = checkpoint;
    let metadata = Metadata {
        checksum: "0".repeat(CHECKSUM_LEN),
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        rows: rows.clone(),
        iterations: *iterations,
        relative_gap: *relative_gap,
    };
    let text = serde_json::to_string(&metadata).map_err(|e| e.to_string())?;
    let mut tensors = vec![Tensor::matrix("coefficients", &state.coefficients)];
    if let Some(theta) = &state.theta {
        tensors.push(Tensor::matrix("theta_uu", theta));
    }
    seal(KEY, text, &tensors)
}

fn decode(bytes: &[u8]) -> Result<Checkpoint, String> {
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(|e| e.to_string())?;
    let metadata = header.metadata().clone().unwrap_or_default();
    let text = metadata.get(KEY).ok_or_else(|| {
        if metadata.contains_key("argwhy") {
            "it is a model, which fits start from in another way"
        } else {
            "it is no checkpoint of argwhy"
        }
    })?;
    let metadata: Metadata = serde_json::from_str(text).map_err(|e| e.to_string())?;
    if metadata.format != FORMAT {
        return Err(format!(
            "it has checkpoint format {}, written by argwhy {}; this version reads {FORMAT}",
            metadata.format, metadata.version
        ));
    }
    check_checksum(bytes).map_err(|e| e.to_string())?;
    let file = SafeTensors::deserialize(bytes).map_err(|e| e.to_string())?;
    let coefficients = file.tensor("coefficients").map_err(|e| e.to_string())?;
    let theta = file.tensor("theta_uu").ok().map(|tensor| matrix(&tensor)).transpose();
    Ok(Checkpoint {
        state: State {
            coefficients: matrix(&coefficients).map_err(|e| e.to_string())?,
            theta: theta.map_err(|e| e.to_string())?,
        },
        rows: metadata.rows,
        iterations: metadata.iterations,
        relative_gap: metadata.relative_gap,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array2, array};

    fn checkpoint() -> Checkpoint {
        let coefficients =
            Array2::from_shape_fn((2, 7), |(j, i)| (i as f64 - 0.3) / (j + 3) as f64);
        let theta = Some(array![[1.5, 0.2], [0.2, 1.0]]);
        let state = State { coefficients, theta };
        Checkpoint { state, rows: "abc".to_owned(), iterations: 4, relative_gap: 2e-3 }
    }

    #[test]
    fn what_is_written_is_read_bit_for_bit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.checkpoint");
        for theta in [true, false] {
            let mut written = checkpoint();
            written.state.theta = written.state.theta.filter(|_| theta);
            save_checkpoint(&path, &written).unwrap();
            assert_eq!(load_checkpoint(&path).unwrap(), written);
        }
    }

    #[test]
    fn every_changed_byte_and_every_shorter_file_is_refused() {
        let bytes = encode(&checkpoint()).unwrap();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x21;
            assert!(decode(&changed).is_err(), "byte {at}");
            assert!(decode(&bytes[..at]).is_err(), "{at} bytes");
        }
    }

    #[test]
    fn other_files_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.checkpoint");
        assert!(load_checkpoint(&path).unwrap_err().to_string().contains("cannot read"));
        fs::write(&path, "not at all").unwrap();
        assert!(load_checkpoint(&path).unwrap_err().to_string().contains("cannot be resumed"));
        save_checkpoint(&path, &checkpoint()).unwrap();
        let error = crate::load_model(&path).unwrap_err().to_string();
        assert!(error.contains("a checkpoint"), "{error}");
    }
}
