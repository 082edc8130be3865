//! Which rows belong together: episodes that a file has, and columns that are asked for.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::files::{Folder, committed, decisions, episodes_hdf5, npy_of, npy_tensor, npz, signals};
use argwhy_io::{DataRequest, GroupKind, Loaded, load};

fn episodes() -> DataRequest {
    DataRequest { episodes: true, ..DataRequest::default() }
}

fn by(key: &str) -> DataRequest {
    DataRequest { groups: Some(key.to_owned()), ..DataRequest::default() }
}

fn groups(loaded: &Loaded) -> Option<(Vec<u32>, GroupKind)> {
    loaded.groups.clone().map(|groups| (groups.of_rows, groups.kind))
}

/// Seven rows with some arrays of one number a row.
fn archive(marks: &[(&str, [f64; 7])]) -> Vec<u8> {
    let mut entries =
        vec![("signals", npy_of(&signals(7, 2))), ("decisions", npy_of(&decisions(7, 1)))];
    entries.extend(marks.iter().map(|(key, values)| (*key, npy_tensor(&[7], values))));
    npz(&entries, true)
}

#[test]
fn episodes_end_where_a_mark_stands() {
    let folder = Folder::new();
    let terminals = [0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    let timeouts = [0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0];
    let bytes = archive(&[("terminals", terminals), ("timeouts", timeouts)]);
    let expected = Some((vec![0, 0, 1, 1, 1, 2, 2], GroupKind::Episodes));
    assert_eq!(groups(&folder.load("a.npz", &bytes, &episodes()).unwrap()), expected);
    // Nobody asked.
    let unasked = folder.load("a.npz", &bytes, &DataRequest::default()).unwrap();
    assert_eq!(groups(&unasked), None);
    let rows = DataRequest { rows: Some("5:7,1:3".parse().unwrap()), ..episodes() };
    let some = folder.load("a.npz", &bytes, &rows).unwrap();
    assert_eq!(groups(&some), Some((vec![2, 2, 0, 1], GroupKind::Episodes)));
    // No mark anywhere, and one that is used for something else.
    let none = archive(&[("terminals", [0.0; 7])]);
    assert_eq!(groups(&folder.load("b.npz", &none, &episodes()).unwrap()), None);
    let taken = DataRequest { decisions: Some("timeouts".to_owned()), ..episodes() };
    let loaded = folder.load("a.npz", &bytes, &taken).unwrap();
    assert_eq!(groups(&loaded).unwrap().0, [0, 0, 1, 1, 1, 1, 1]);
}

/// Arrays that nobody named may be broken: the rest loads as it always has.
#[test]
fn marks_that_cannot_be_read_are_none() {
    let folder = Folder::new();
    let signals = npy_of(&signals(7, 2));
    let decisions = npy_of(&decisions(7, 1));
    for broken in [b"not even npy".to_vec(), npy_tensor(&[3], &[1.0, 0.0, 1.0])] {
        let entries =
            [("signals", signals.clone()), ("decisions", decisions.clone()), ("terminals", broken)];
        let loaded = folder.load("a.npz", npz(&entries, false), &episodes()).unwrap();
        assert_eq!(groups(&loaded), None);
    }
}

#[test]
fn minari_has_a_group_an_episode() {
    let folder = Folder::new();
    let loaded = folder.load("e.h5", episodes_hdf5(&[2, 1, 3]), &episodes()).unwrap();
    assert_eq!(groups(&loaded), Some((vec![0, 0, 1, 2, 2, 2], GroupKind::Episodes)));
    let told = folder.refusal("e.h5", episodes_hdf5(&[2, 1]), &by("plant"));
    assert!(told.contains("grouped by episode"), "{told}");
    // All of its terminals are zero.
    assert_eq!(groups(&load(&committed("d4rl.hdf5"), &episodes()).unwrap()), None);
}

#[test]
fn a_column_of_numbers_or_of_text_groups_rows() {
    let folder = Folder::new();
    let plants = archive(&[("plant", [3.0, 1.0, 3.0, 3.0, 1.0, 2.0, 2.0])]);
    let loaded = folder.load("a.npz", &plants, &by("plant")).unwrap();
    assert_eq!(groups(&loaded), Some((vec![0, 1, 0, 0, 1, 2, 2], GroupKind::Column)));
    let text = "signals,decisions,plant,timeouts\n1,1,north,0\n2,1,south,True\n3,2,north,0\n\
                4,2,\"east, low\",1\n5,2,south,0\n";
    let loaded = folder.load("a.csv", text, &by("plant")).unwrap();
    assert_eq!(groups(&loaded), Some((vec![0, 1, 0, 2, 1], GroupKind::Column)));
    let loaded = folder.load("a.csv", text, &by("plant,timeouts")).unwrap();
    assert_eq!(groups(&loaded).unwrap().0, [0, 1, 0, 2, 3]);
    let rows =
        |request: DataRequest| DataRequest { rows: Some("4:5,1:3".parse().unwrap()), ..request };
    let some = folder.load("a.csv", text, &rows(by("plant"))).unwrap();
    assert_eq!(groups(&some).unwrap().0, [0, 0, 1].map(|group| [0, 1][group]));
    let some = folder.load("a.csv", text, &rows(episodes())).unwrap();
    assert_eq!(groups(&some), Some((vec![2, 0, 1], GroupKind::Episodes)));
}

#[test]
fn groups_that_do_not_fit_are_refused() {
    let folder = Folder::new();
    let told = folder.refusal("a.npz", archive(&[]), &by("plant"));
    assert!(told.contains("plant") && told.contains("groups"), "{told}");
    let entries = [
        ("signals", npy_of(&signals(7, 2))),
        ("decisions", npy_of(&decisions(7, 1))),
        ("plant", npy_tensor(&[3], &[1.0, 2.0, 3.0])),
    ];
    let told = folder.refusal("b.npz", npz(&entries, false), &by("plant"));
    assert!(told.contains("one value for each of 7 rows"), "{told}");
}
