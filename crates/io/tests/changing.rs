//! Files that change between the look at their sizes and the reading: what was there, or an error;
//! never a mixture, never a panic.

use crate::files::{Folder, decisions, flat_hdf5, npy_of, npz, signals};
use argwhy_io::{DataError, DataRequest, load, load_if};
use std::fmt::Write;
use std::fs;
use std::path::Path;

fn csv(rows: usize) -> String {
    let mut text = "signals_0,signals_1,decisions_0\n".to_owned();
    for i in 0..rows {
        let x = i as f64;
        writeln!(text, "{x},{},{}", 0.5 * x, 0.25 * x).unwrap();
    }
    text
}

/// What is done to a file, given its bytes and others.
type Change = fn(&Path, &[u8], &[u8]);

/// Each format with 400 rows, and the same with others.
fn files() -> Vec<(&'static str, Vec<u8>, Vec<u8>)> {
    let arrays =
        |n: usize| [("signals", npy_of(&signals(n, 3))), ("decisions", npy_of(&decisions(n, 2)))];
    vec![
        ("f.csv", csv(400).into_bytes(), csv(90).into_bytes()),
        ("stored.npz", npz(&arrays(400), false), npz(&arrays(90), false)),
        ("deflated.npz", npz(&arrays(400), true), npz(&arrays(90), true)),
        (
            "f.hdf5",
            flat_hdf5(&signals(400, 3), &decisions(400, 2), true),
            flat_hdf5(&signals(90, 3), &decisions(90, 2), true),
        ),
    ]
}

#[test]
fn a_file_that_goes_or_changes_while_it_is_read_gives_all_of_one_or_an_error() {
    let changes: [(&str, Change); 4] = [
        ("goes", |path, _, _| fs::remove_file(path).unwrap()),
        ("is cut", |path, old, _| fs::write(path, &old[..old.len() / 2]).unwrap()),
        ("is emptied", |path, _, _| fs::write(path, "").unwrap()),
        ("is replaced", |path, _, new| fs::write(path, new).unwrap()),
    ];
    for (name, old, new) in files() {
        for (what, change) in changes {
            let folder = Folder::new();
            let path = folder.write(name, &old);
            let (whole, other) = (load(&path, &DataRequest::default()).unwrap(), {
                let other = folder.write(&format!("other-{name}"), &new);
                load(&other, &DataRequest::default()).unwrap()
            });
            let accept = |_: &argwhy_io::Survey| {
                change(&path, &old, &new);
                Ok::<(), DataError>(())
            };
            match load_if(&path, &DataRequest::default(), accept) {
                Ok(found) => assert!(
                    found.signals == whole.signals || found.signals == other.signals,
                    "{name} {what}"
                ),
                Err(error) => {
                    let said = error.to_string();
                    assert!(said.contains(name), "{name} {what}: {said}");
                }
            }
        }
    }
}
