//! Files that were changed at random: every answer is `Ok` or an error that says something.
//!
//! The files are the corpora of `fuzz/`; changes follow from a seed, `ARGWHY_MUTATIONS_SEED`.
//! `ARGWHY_MUTATIONS` is how many of each reader are tried.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::files::Folder;
use argwhy_io::{Budget, DataRequest, Missing, contents, decode_model, load, survey, walk_signals};
use rand::RngExt;
use std::path::{Path, PathBuf};

/// Of each reader.
const USUAL: usize = 150;
/// Memory that a file may take, whatever it claims.
const LIMIT: u64 = 64 << 20;

fn corpus(reader: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(reader);
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    files.iter().map(|path| (name(path), std::fs::read(path).unwrap())).collect()
}

fn count() -> usize {
    usize::try_from(asked("ARGWHY_MUTATIONS").unwrap_or(USUAL as u64)).unwrap()
}

fn asked(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|n| n.parse().ok())
}

/// The changes of one file, others for each seed.
fn stream(name: &str) -> impl RngExt + use<> {
    argwhy_core::random::stream(asked("ARGWHY_MUTATIONS_SEED").unwrap_or(0), name)
}

/// A few changes of the kinds that readers trip over.
fn mutated(bytes: &[u8], random: &mut impl RngExt) -> Vec<u8> {
    let mut out = bytes.to_vec();
    for _ in 0..random.random_range(1..5) {
        if out.is_empty() {
            break;
        }
        let at = random.random_range(0..out.len());
        match random.random_range(0..8) {
            0 => out[at] ^= 1 << random.random_range(0..8),
            1 => out[at] = random.random(),
            2 => out.truncate(at),
            3 => {
                let end = out.len().min(at + random.random_range(1..64));
                out.drain(at..end);
            }
            4 => {
                let end = out.len().min(at + random.random_range(1..64));
                let part = out[at..end].to_vec();
                let to = random.random_range(0..=out.len());
                out.splice(to..to, part);
            }
            // Sizes that nothing has.
            kind => {
                let numbers = [u64::MAX, i64::MAX as u64, u64::from(u32::MAX), 1 << 40, 1 << 31, 0];
                let number = numbers[random.random_range(0..numbers.len())].to_le_bytes();
                let width = [1, 2, 4, 8][kind - 5..][0].max(1) * if kind == 7 { 2 } else { 1 };
                for (slot, byte) in out[at..].iter_mut().zip(&number[..width]) {
                    *slot = *byte;
                }
            }
        }
    }
    out
}

fn answers(reader: &str, ending: &str) {
    let folder = Folder::new();
    let files = corpus(reader);
    assert!(!files.is_empty());
    let budget = Budget::within(LIMIT, 0);
    let usual = DataRequest { budget, missing: Missing::Drop, ..DataRequest::default() };
    let all = DataRequest { signals: Some("*".to_owned()), want_decisions: false, ..usual.clone() };
    let limited = DataRequest { constraints: true, episodes: true, ..usual.clone() };
    for (name, bytes) in &files {
        let mut random = stream(&format!("{reader}/{name}"));
        for trial in 0..count().div_ceil(files.len()) {
            let path = folder.write(&format!("f.{ending}"), mutated(bytes, &mut random));
            for request in [&usual, &all, &limited] {
                if let Err(error) = load(&path, request) {
                    assert!(!error.to_string().is_empty(), "{name}, {trial}");
                }
            }
            let _ = contents(&path, &DataRequest { budget, ..DataRequest::default() });
            let _ = survey(&path, &usual);
            let _ = walk_signals(&path, &usual, 512, |_| ());
        }
    }
}

#[test]
fn models() {
    for (name, bytes) in corpus("model") {
        assert!(decode_model(&bytes).is_ok(), "{name}");
        let mut random = stream(&name);
        for _ in 0..count() {
            let _ = decode_model(&mutated(&bytes, &mut random));
        }
    }
}

#[test]
fn arrays() {
    answers("npz", "npz");
    answers("npy", "npy");
    answers("hdf5", "hdf5");
}

#[test]
fn text() {
    answers("csv", "csv");
}

#[test]
fn columns() {
    answers("parquet", "parquet");
    answers("arrow", "feather");
}

#[test]
fn sheets() {
    answers("xlsx", "xlsx");
    answers("ods", "ods");
}
