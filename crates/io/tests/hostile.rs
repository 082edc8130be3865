//! Whatever the bytes, the answer is `Ok` or `Err`: no panic, no abort, no runaway allocation.
//!
//! Nothing is caught here; a panic in the reader fails the test.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::files::{
    Folder, committed, decisions, episodes_hdf5, flat_hdf5, npy_of, npy_tensor, npz, only, signals,
};
use argwhy_io::DataRequest;

/// A file name, a small well-formed file, and the request that loads it.
fn samples() -> Vec<(&'static str, Vec<u8>, DataRequest)> {
    let (s, u) = (signals(5, 2), decisions(5, 1));
    let entries = [("signals", npy_of(&s)), ("decisions", npy_of(&u))];
    let csv = "signals_0,signals_1,\"decisions\"\r\n0.5,1e3,2\r\n-1,2,\"3\"\n4,5,6\n";
    let both = DataRequest::default();
    let limited = DataRequest { constraints: true, weights: Some("w".into()), ..both.clone() };
    let mut more = entries.to_vec();
    more.push(("M", npy_tensor(&[5, 1, 1], &[1.0; 5])));
    more.push(("W", npy_tensor(&[1], &[9.0])));
    more.push(("w", npy_tensor(&[5], &[1.0; 5])));
    let columns =
        "signals,decisions,M_0_0,M_1_0,W_0,W_1,upper,w\n1,2,3,4,5,,inf,1\n2,3,1,1,9,9,,0\n";
    vec![
        ("limits.npz", npz(&more, false), limited.clone()),
        ("limits.csv", columns.into(), limited),
        ("stored.npz", npz(&entries, false), both.clone()),
        ("deflated.npz", npz(&entries, true), both.clone()),
        ("array.npy", npy_of(&s), only("signals")),
        ("table.csv", csv.into(), both.clone()),
        ("contiguous.hdf5", flat_hdf5(&s, &u, false), both.clone()),
        ("chunked.hdf5", flat_hdf5(&s, &u, true), both.clone()),
        ("episodes.hdf5", episodes_hdf5(&[2, 1]), both.clone()),
        // Older structures than hdf5-pure writes: symbol tables, version 1 headers and B-trees.
        ("h5py.hdf5", std::fs::read(committed("small.hdf5")).unwrap(), both),
    ]
}

#[test]
fn the_samples_load() {
    let folder = Folder::new();
    for (name, bytes, request) in samples() {
        folder.load(name, bytes, &request).unwrap();
    }
}

#[test]
fn every_truncation_is_answered() {
    let folder = Folder::new();
    for (name, bytes, request) in samples() {
        for length in 0..bytes.len() {
            let answer = folder.load(name, &bytes[..length], &request);
            if ["stored.npz", "deflated.npz", "array.npy"].contains(&name) {
                assert!(answer.is_err(), "{name} cut to {length} of {} bytes", bytes.len());
            }
        }
    }
}

/// Loads the file with `flip` applied to each byte in turn.
fn flip_each(flips: impl Fn(u8) -> Vec<u8>) {
    let folder = Folder::new();
    for (name, bytes, request) in samples() {
        let original = folder.load(name, &bytes, &request).unwrap();
        let mut damaged = bytes.clone();
        for at in 0..bytes.len() {
            for byte in flips(bytes[at]) {
                damaged[at] = byte;
                let answer = folder.load(name, &damaged, &request);
                // Zip archives carry checksums: what still loads has the right numbers.
                if let (Ok(loaded), "stored.npz" | "deflated.npz") = (answer, name) {
                    assert_eq!(loaded, original, "{name}, byte {at} set to {byte:#04x}");
                }
            }
            damaged[at] = bytes[at];
        }
    }
}

#[test]
fn every_byte_flip_is_answered() {
    flip_each(|byte| vec![!byte, byte ^ 1, byte ^ 0x80]);
}

/// A quarter of an hour; run after a change of a reader or of a crate behind it.
#[test]
#[ignore = "slow"]
fn every_value_of_every_byte_is_answered() {
    flip_each(|byte| (0..=255).filter(|&other| other != byte).collect());
}
