//! The model file: a [`Model`] as bytes and back, bit for bit. `FORMAT.md` beside this crate is the
//! specification.
//!
//! In: a model and the settings it was fitted with. Out: a safetensors file whose metadata holds
//! everything that is not an array, under a checksum that covers every byte of the file. Files are
//! treated as hostile.

mod tensors;

use crate::checkpoint;
use crate::data::{check_regular, write_whole};
use crate::kept::{self, Kept};
use argwhy_core::Model;
use argwhy_core::dataset::Names;
use argwhy_core::decision_set::{DecisionSet, Prices};
use argwhy_core::features::FeatureMap;
use argwhy_core::kernel::Kernel;
use argwhy_core::model::{
    Calibration, FeatureWeights, FitRecord, Law, LearnedTheta, Misfits, Seen, Support,
};
use ndarray::Array2;
use safetensors::tensor::{SafeTensors, TensorView};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
pub(crate) use tensors::{Tensor, matrix, numbers};
pub(crate) use tensors::{integers, row_numbers};
use tensors::{prices, tensors_of};

/// The newest format this version reads, and writes where a model needs it.
pub const FORMAT: u64 = 5;
/// What models are written as that have nothing beyond it, so that earlier versions read them.
const PLAIN: u64 = 2;
/// What they are written as that have names or remember situations, and nothing beyond it.
const NAMED: u64 = 3;
/// What they are written as that have ranges or misfits, and no units.
const JUDGED: u64 = 4;

/// The one key of the safetensors metadata. A single key keeps the file's bytes the same from run
/// to run.
const KEY: &str = "argwhy";
/// How the checksum looks inside the header: a JSON string inside a JSON string.
const CHECKSUM_MARK: &[u8] = br#"{\"checksum\":\""#;
pub(crate) const CHECKSUM_LEN: usize = 64;

/// Why a model file could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelFileError {
    /// Nothing exists at the path.
    #[error("no model at `{}`; check the path, or make one with `argwhy fit`", path.display())]
    NotFound {
        /// The path asked for.
        path: PathBuf,
    },
    /// The operating system refused.
    #[error("cannot read the model `{}`: {source}", path.display())]
    Unreadable {
        /// The path asked for.
        path: PathBuf,
        /// What the operating system answered.
        source: io::Error,
    },
    /// Something else than a model.
    #[error("`{}` is not an argwhy model ({why}); models are written by `argwhy fit \
             -o`", path.display())]
    NotAModel {
        /// The file.
        path: PathBuf,
        /// What was seen.
        why: String,
    },
    /// Written by a later version.
    #[error(
        "`{}` has model format {found} (written by argwhy {writer}), but this version reads up to \
         {FORMAT}; update argwhy",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u64,
        /// The version that wrote it.
        writer: String,
    },
    /// Written with a kernel of a later version.
    #[error(
        "`{}` (written by argwhy {writer}) has the kernel `{kind}`, which this version does not \
         know; update argwhy",
        path.display()
    )]
    UnknownKernel {
        /// The file.
        path: PathBuf,
        /// Its kernel.
        kind: String,
        /// The version that wrote it.
        writer: String,
    },
    /// The bytes are not those that were written.
    #[error("the model `{}` is damaged ({why}); copy or fit it again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was seen.
        why: String,
    },
    /// It could not be written; nothing at the path has changed.
    #[error("cannot write the model `{}`: {source}", path.display())]
    Write {
        /// The path asked for.
        path: PathBuf,
        /// What the operating system answered.
        source: io::Error,
    },
}

/// A model with what the file says beside it.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredModel {
    /// The model.
    pub model: Model,
    /// The settings it was fitted with, as the fit stored them.
    pub settings: serde_json::Value,
    /// The version of argwhy that wrote it.
    pub version: String,
    /// The rows it learned from, where it was told to keep them.
    pub kept: Option<Kept>,
}

/// Everything that is not an array. The checksum comes first: see [`CHECKSUM_MARK`].
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Metadata {
    checksum: String,
    format: u64,
    version: String,
    features: FeatureMap,
    kernel: Kernel,
    decision_set: DecisionSet,
    /// Since format 2.
    #[serde(default)]
    constrained: bool,
    record: FitRecord,
    settings: serde_json::Value,
    /// Since format 3.
    #[serde(default, skip_serializing_if = "Names::is_empty")]
    names: Names,
    /// Since format 3; its situations are an array.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seen: Option<SeenNumbers>,
    /// Since format 4; its scores are an array.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ranges: Option<RangeNumbers>,
    /// Since format 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    misfits: Option<Misfits>,
}

/// What ranges are made of, beside the scores of rows kept aside.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RangeNumbers {
    noise: Vec<f64>,
    growth: Vec<f64>,
    spread: Vec<f64>,
    known: f64,
}

/// What a model remembers of its situations, beside the situations.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SeenNumbers {
    lowest: Vec<f64>,
    highest: Vec<f64>,
    left: Vec<f64>,
}

/// What is read before the format is known to be ours.
#[derive(Deserialize)]
struct Preamble {
    format: u64,
    version: String,
    kernel: Option<serde_json::Value>,
}

/// The first kind of kernel, in an expression's order, that this version does not know.
fn unknown_kind(kernel: &serde_json::Value) -> Option<String> {
    const COMPOUND: [&str; 4] = ["scaled", "sum", "product", "anisotropic"];
    let own = kernel.get("kind").and_then(serde_json::Value::as_str);
    if let Some(kind) = own.filter(|kind| !Kernel::NAMES.contains(kind) && !COMPOUND.contains(kind))
    {
        return Some(kind.to_owned());
    }
    let parts =
        ["terms", "factors"].into_iter().filter_map(|key| kernel.get(key)?.as_array()).flatten();
    parts.chain(kernel.get("kernel")).find_map(unknown_kind)
}

/// Writes a model whole or not at all.
pub fn save_model(
    path: &Path,
    model: &Model,
    settings: &serde_json::Value,
) -> Result<(), ModelFileError> {
    save_model_with(path, model, settings, None)
}

/// The same with the rows it learned from. Versions that do not know of these read the model all
/// the same.
pub fn save_model_with(
    path: &Path,
    model: &Model,
    settings: &serde_json::Value,
    kept: Option<&Kept>,
) -> Result<(), ModelFileError> {
    let write = |source| ModelFileError::Write { path: path.to_path_buf(), source };
    let bytes = encode(model, settings, kept).map_err(|why| write(io::Error::other(why)))?;
    write_whole(path, &bytes).map_err(write)
}

/// Reads a model and checks every byte of it.
pub fn load_model(path: &Path) -> Result<StoredModel, ModelFileError> {
    check_regular(path)
        .map_err(|source| ModelFileError::Unreadable { path: path.to_path_buf(), source })?;
    let bytes = fs::read(path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => ModelFileError::NotFound { path: path.to_path_buf() },
        _ => ModelFileError::Unreadable { path: path.to_path_buf(), source },
    })?;
    let path = path.to_path_buf();
    decode_model(&bytes).map_err(|problem| match problem {
        Problem::NotAModel(why) => ModelFileError::NotAModel { path, why },
        Problem::Newer { found, writer } => ModelFileError::Newer { path, found, writer },
        Problem::UnknownKernel { kind, writer } => {
            ModelFileError::UnknownKernel { path, kind, writer }
        }
        Problem::Damaged(why) => ModelFileError::Damaged { path, why },
    })
}

/// What is wrong with a model's bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// They are something else.
    #[error("not an argwhy model ({0})")]
    NotAModel(String),
    /// They follow a later specification.
    #[error("model format {found}, written by argwhy {writer}; this version reads up to {FORMAT}")]
    Newer {
        /// Its format.
        found: u64,
        /// The version that wrote it.
        writer: String,
    },
    /// They name a kernel of a later version.
    #[error("the kernel `{kind}`, written by argwhy {writer}, is not known to this version")]
    UnknownKernel {
        /// The kernel.
        kind: String,
        /// The version that wrote it.
        writer: String,
    },
    /// They were changed since they were written.
    #[error("damaged ({0})")]
    Damaged(String),
}

/// The oldest format that has room for all of a model.
fn format_of(model: &Model) -> u64 {
    if !model.names.units.is_empty() {
        FORMAT
    } else if model.calibration.is_some() || model.misfits.is_some() {
        JUDGED
    } else if model.names.is_empty() && model.seen.is_none() {
        PLAIN
    } else {
        NAMED
    }
}

/// The file's bytes. The same model and settings give the same bytes.
pub fn encode_model(model: &Model, settings: &serde_json::Value) -> Result<Vec<u8>, String> {
    encode(model, settings, None)
}

fn encode(
    model: &Model,
    settings: &serde_json::Value,
    kept: Option<&Kept>,
) -> Result<Vec<u8>, String> {
    if let Some(kernel) = model.kernel().custom_part() {
        return Err(format!("its kernel `{}` is code of the user's own, not data", kernel.name()));
    }
    let metadata = Metadata {
        checksum: "0".repeat(CHECKSUM_LEN),
        format: format_of(model),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        features: model.features.clone(),
        kernel: model.kernel(),
        decision_set: model.set.clone(),
        constrained: model.constrained,
        record: model.record.clone(),
        settings: settings.clone(),
        names: model.names.clone(),
        seen: model.seen.as_ref().map(|seen| SeenNumbers {
            lowest: seen.lowest.clone(),
            highest: seen.highest.clone(),
            left: seen.left.clone(),
        }),
        ranges: model.calibration.as_ref().map(|calibration| RangeNumbers {
            noise: calibration.noise.clone(),
            growth: calibration.growth.clone(),
            spread: calibration.spread.clone(),
            known: calibration.known,
        }),
        misfits: model.misfits.clone(),
    };
    let text = serde_json::to_string(&metadata).map_err(|e| e.to_string())?;
    let mut tensors = tensors_of(model);
    tensors.extend(kept.map(kept::tensors).unwrap_or_default());
    seal(KEY, text, &tensors)
}

/// A file of arrays and one text, whose `checksum` comes first and is filled in.
pub(crate) fn seal(key: &str, text: String, tensors: &[Tensor]) -> Result<Vec<u8>, String> {
    let mut views = Vec::new();
    for Tensor { name, dtype, shape, bytes } in tensors {
        let view = TensorView::new(*dtype, shape.clone(), bytes).map_err(|e| e.to_string())?;
        views.push((*name, view));
    }
    let mut bytes = safetensors::serialize(views, Some(HashMap::from([(key.to_owned(), text)])))
        .map_err(|e| e.to_string())?;
    let at = checksum_place(&bytes).ok_or("the header has no place for the checksum")?;
    let hash = blake3::hash(&bytes).to_hex();
    bytes[at..at + CHECKSUM_LEN].copy_from_slice(hash.as_bytes());
    Ok(bytes)
}

/// The model of a file's bytes, once every one of them is known to be as it was written.
pub fn decode_model(bytes: &[u8]) -> Result<StoredModel, Problem> {
    let (_, header) =
        SafeTensors::read_metadata(bytes).map_err(|e| Problem::NotAModel(e.to_string()))?;
    let metadata = header.metadata().clone().unwrap_or_default();
    let text = metadata.get(KEY).ok_or_else(|| {
        let what = if metadata.contains_key(checkpoint::KEY) {
            "a checkpoint, from which a fit that resumes it makes one"
        } else {
            "a safetensors file without argwhy metadata"
        };
        Problem::NotAModel(what.to_owned())
    })?;
    let damaged = |e: &dyn std::fmt::Display| Problem::Damaged(e.to_string());
    let preamble: Preamble = serde_json::from_str(text).map_err(|e| damaged(&e))?;
    if preamble.format > FORMAT {
        return Err(Problem::Newer { found: preamble.format, writer: preamble.version });
    }
    if preamble.format == 0 {
        return Err(Problem::Damaged("model format 0, which never was".to_owned()));
    }
    check_checksum(bytes)?;
    if let Some(kind) = preamble.kernel.and_then(|kernel| unknown_kind(&kernel)) {
        return Err(Problem::UnknownKernel { kind, writer: preamble.version });
    }
    let metadata: Metadata = serde_json::from_str(text).map_err(|e| damaged(&e))?;
    let file = SafeTensors::deserialize(bytes).map_err(|e| damaged(&e))?;
    let tensor = |name: &str| file.tensor(name).map_err(|e| damaged(&e));
    let has = |name: &str| file.names().into_iter().any(|found| found == name);
    let theta = if has("theta_uu") {
        let theta_uu = matrix(&tensor("theta_uu")?)?;
        Some(LearnedTheta { theta_uu, multiplier: matrix(&tensor("theta_multiplier")?)? })
    } else {
        None
    };
    // Files of format 1 have no prices.
    let prices = if has("price_rows") {
        prices(&tensor("price_rows")?, &tensor("price_limits")?, &tensor("price_values")?)?
    } else {
        Prices::default()
    };
    let support = Support {
        kernel: metadata.kernel,
        signals: matrix(&tensor("support_signals")?)?,
        coefficients: matrix(&tensor("coefficients")?)?,
        rows: row_numbers(&tensor("support_rows")?)?,
        prices,
    };
    let seen = match metadata.seen {
        None => None,
        Some(SeenNumbers { lowest, highest, left }) => {
            Some(Seen { lowest, highest, left, pivots: matrix(&tensor("seen_signals")?)? })
        }
    };
    let calibration = match metadata.ranges {
        None => None,
        Some(RangeNumbers { noise, growth, spread, known }) => {
            let scores = matrix(&tensor("range_scores")?)?;
            Some(Calibration { noise, growth, spread, known, scores })
        }
    };
    let law = if has("weights") {
        Law::Primal(feature_weights(matrix(&tensor("weights")?)?, &support)?)
    } else {
        Law::Kernel(support)
    };
    let model = Model {
        features: metadata.features,
        law,
        set: metadata.decision_set,
        constrained: metadata.constrained,
        theta,
        names: metadata.names,
        seen,
        calibration,
        misfits: metadata.misfits,
        record: metadata.record,
    };
    model.validate().map_err(|e| damaged(&e))?;
    let kept = kept::read(&file, &model.names)?;
    Ok(StoredModel { model, settings: metadata.settings, version: metadata.version, kept })
}

/// Weights of features, where the kernel has these and nothing says something else of samples.
fn feature_weights(values: Array2<f64>, rest: &Support) -> Result<FeatureWeights, Problem> {
    let intercept = rest.kernel == Kernel::linear_with_intercept();
    if rest.kernel != Kernel::Linear && !intercept {
        return Err(Problem::Damaged(format!("weights for the kernel {}", rest.kernel)));
    }
    let lengths = [rest.signals.nrows(), rest.coefficients.nrows(), rest.rows.len()];
    if lengths != [0; 3] || !rest.prices.is_empty() {
        return Err(Problem::Damaged("weights of features beside samples".to_owned()));
    }
    Ok(FeatureWeights { values, intercept })
}

/// Where the 64 hexadecimal digits of the checksum begin.
fn checksum_place(bytes: &[u8]) -> Option<usize> {
    let at = bytes.windows(CHECKSUM_MARK.len()).position(|w| w == CHECKSUM_MARK)?;
    let start = at + CHECKSUM_MARK.len();
    (bytes.len() >= start + CHECKSUM_LEN).then_some(start)
}

/// BLAKE3 of the whole file with the digits of the checksum itself read as zeros.
pub(crate) fn check_checksum(bytes: &[u8]) -> Result<(), Problem> {
    let at = checksum_place(bytes)
        .ok_or_else(|| Problem::Damaged("its checksum is missing".to_owned()))?;
    let mut hasher = blake3::Hasher::new();
    hasher.update(&bytes[..at]);
    hasher.update(&[b'0'; CHECKSUM_LEN]);
    hasher.update(&bytes[at + CHECKSUM_LEN..]);
    if hasher.finalize().to_hex().as_bytes() == &bytes[at..at + CHECKSUM_LEN] {
        Ok(())
    } else {
        Err(Problem::Damaged("its checksum does not match its contents".to_owned()))
    }
}
