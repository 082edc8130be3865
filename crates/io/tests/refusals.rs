//! What is wrong with a file is said with its name, what was found, and what to do.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::files::{
    Folder, committed, decisions, flat_hdf5, keys, npy, npy_of, npz, only, signals,
};
use argwhy_io::{DataRequest, load, write_decisions};
use ndarray::Array2;

fn both() -> DataRequest {
    DataRequest::default()
}

fn refusal_of(name: &str, request: &DataRequest) -> String {
    let folder = format!("{}/", committed("").parent().unwrap().join("data").display());
    load(&committed(name), request).unwrap_err().to_string().replace(&folder, "")
}

#[track_caller]
fn says(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "`{part}` is not in: {message}");
    }
    assert!(!message.contains('\n'), "{message}");
}

#[test]
fn nothing_there() {
    let folder = Folder::new();
    let error = load(&folder.path("none.npz"), &both()).unwrap_err();
    assert_eq!(folder.short(&error), "no file or folder at `none.npz`; check the path");
    assert_eq!(
        folder.refusal("e.csv", "", &both()),
        "`e.csv` is empty (0 bytes); fetch or write it again"
    );
    let error = load(&folder.path("e.csv/inside.npz"), &both()).unwrap_err();
    says(&folder.short(&error), &["cannot read `e.csv/inside.npz`"]);
}

#[test]
fn a_folder_without_data_lists_what_it_holds() {
    let folder = Folder::new();
    folder.write("notes.txt", "x");
    let error = load(&folder.path(""), &both()).unwrap_err().to_string();
    says(&error, &["holds no dataset", "signals.npy", "found `notes.txt`"]);
    folder.write("signals.npy", npy_of(&signals(3, 1)));
    let error = load(&folder.path(""), &both()).unwrap_err().to_string();
    says(&error, &["it holds `signals`:"]);
}

#[cfg(unix)]
#[test]
fn devices_are_not_files() {
    let error = load(std::path::Path::new("/dev/null"), &both()).unwrap_err().to_string();
    assert_eq!(error, "`/dev/null` is neither a file nor a folder; save the data to a file first");
}

#[test]
fn other_things_under_a_known_name() {
    let folder = Folder::new();
    let lfs = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n";
    says(&folder.refusal("a.npz", lfs, &both()), &["`a.npz`", "as npz", "Git LFS pointer"]);
    let page = "<!DOCTYPE html><html>Not found</html>";
    says(&folder.refusal("a.npy", page, &both()), &["as npy", "a web page"]);
    let page = folder.refusal("a.hdf5", page, &both());
    says(&page, &["as hdf5", "signature not found"]);
    let zip = npz(&[("x", npy_of(&signals(2, 1)))], false);
    says(&folder.refusal("a.hdf5", &zip, &both()), &["a zip archive"]);
    says(&folder.refusal("a.csv", &zip, &both()), &["as csv", "a zip archive"]);
    says(&folder.refusal("a.dat", "1 2 3", &both()), &["the text `1 2 3`", ".npz, .npy, .csv"]);
    let bytes = folder.refusal("a.bin", [0xff, 0xfe, 1], &both());
    says(&bytes, &["the bytes ff fe 01"]);
}

#[test]
fn keys_that_are_missing_or_too_many() {
    let message = refusal_of("d4rl.npz", &keys("observations", "moves"));
    says(&message, &["`d4rl.npz`", "no decisions under the key `moves`", "`terminals`"]);
    says(&refusal_of("dtypes.npz", &both()), &["no `signals` and `decisions`", "`f16`"]);
    says(&refusal_of("d4rl.hdf5", &only("infos")), &["`infos`", "is a group", "`infos/qpos`"]);
    says(&refusal_of("d4rl.hdf5", &only("infos/none")), &["no signals under the key"]);
    says(&refusal_of("minari", &only("none")), &["no signals under the key", "`rewards`"]);
    let array = npy_of(&signals(2, 1));
    let names = ["signals", "decisions", "observations", "actions"];
    let entries: Vec<_> = names.iter().map(|name| (*name, array.clone())).collect();
    let message = Folder::new().refusal("a.npz", npz(&entries, false), &both());
    says(&message, &["has both `signals`, `decisions` and `observations`, `actions`"]);
}

#[test]
fn dictionary_spaces() {
    let message = refusal_of("minari-dict.hdf5", &both());
    says(&message, &["`episode_0/observations`", "is a group", "`observations/desired_goal`"]);
    // One array inside it will do.
    let request = keys("observations/observation", "actions");
    assert_eq!(load(&committed("minari-dict.hdf5"), &request).unwrap().signals, signals(2, 3));
}

#[test]
fn npy_needs_its_decisions_as_a_file() {
    says(&refusal_of("signals.npy", &both()), &["single array", "decisions=\"FILE.npy\""]);
    let request = DataRequest { decisions: Some("no.npy".into()), ..both() };
    says(&refusal_of("signals.npy", &request), &["no file or folder at `no.npy`"]);
    let npz = committed("plain.npz").display().to_string();
    let request = DataRequest { decisions: Some(npz), ..both() };
    says(&refusal_of("signals.npy", &request), &["have to be an npy file"]);
    says(&refusal_of("signals.npy", &only("x")), &["has no key `x`"]);
}

#[test]
fn dtypes_that_are_not_numbers() {
    for (key, dtype) in [
        ("infos", "|O"),
        ("names", "<U6"),
        ("phases", "<c8"),
        ("records", "[('a', '<f4'), ('b', '|S3')]"),
        ("wide", "<f16"),
    ] {
        let message = refusal_of("d4rl.npz", &only(key));
        says(&message, &[&format!("`{key}` in `d4rl.npz` has dtype {dtype};"), "convert it first"]);
    }
    says(&refusal_of("d4rl.hdf5", &only("words")), &["`words`", "has dtype"]);
    says(&refusal_of("d4rl.hdf5", &only("phases")), &["`phases`", "has dtype"]);
}

#[test]
fn shapes_that_are_not_rows_of_numbers() {
    says(&refusal_of("d4rl.npz", &only("scalar")), &["`scalar`", "shape () (0-D)"]);
    says(&refusal_of("d4rl.npz", &only("images")), &["`images`", "shape (12, 2, 2) (3-D)"]);
    let folder = Folder::new();
    let message = folder.refusal("z.npy", npy("<f8", "(0, 3)", &[]), &only("signals"));
    says(&message, &["0 rows and 3 columns"]);
    let message = folder.refusal("z.npy", npy("<f8", "(3, 0)", &[]), &only("signals"));
    says(&message, &["3 rows and 0 columns"]);
}

#[test]
fn rows_that_do_not_pair_up() {
    let folder = Folder::new();
    let entries = [("signals", npy_of(&signals(5, 2))), ("decisions", npy_of(&decisions(4, 2)))];
    let message = folder.refusal("a.npz", npz(&entries, true), &both());
    says(&message, &["`signals` has 5 rows and `decisions` has 4"]);
    let file = flat_hdf5(&signals(5, 2), &decisions(4, 2), false);
    says(&folder.refusal("a.h5", file, &both()), &["`observations` has 5", "`actions` has 4"]);
}

#[test]
fn values_that_are_not_finite() {
    let folder = Folder::new();
    let mut values: Array2<f64> = signals(5, 2);
    values[[3, 1]] = f64::NAN;
    values[[4, 0]] = f64::NEG_INFINITY;
    let message = folder.refusal("a.npy", npy_of(&values), &only("signals"));
    says(&message, &["1 value is missing", "`signals[1]` in row 3 (counted from 0)"]);
    values[[3, 1]] = f64::INFINITY;
    let message = folder.refusal("a.npy", npy_of(&values), &only("signals"));
    says(
        &message,
        &["has 2 values NaN or infinite", "the first (inf) in row 3, column 1 (counted from 0)"],
    );
    let text = "signals,decisions\n1,2\n1,1e999\n";
    let message = folder.refusal("a.csv", text, &both());
    says(
        &message,
        &["`decisions` in `a.csv` has 1 value NaN or infinite", "(inf) in row 1, column 0"],
    );
}

#[test]
fn shapes_no_file_could_hold() {
    let folder = Folder::new();
    for shape in ["(1000000000000000,)", "(1000000000, 1000000)", "(4611686018427387904, 2)"] {
        let array = npy("<f8", shape, &[0; 16]);
        let message = folder.refusal("h.npy", &array, &only("signals"));
        says(&message, &["`signals`", "shape"]);
        let archive = npz(&[("signals", array)], true);
        says(&folder.refusal("h.npz", archive, &only("signals")), &["`signals`", "shape"]);
    }
    let mut file = hdf5_pure::FileBuilder::new();
    file.create_dataset("signals").with_f64_data(&[0.0; 4]).with_shape(&[4]);
    let mut bytes = file.finish().unwrap();
    // Every place that reads as the size 4 becomes 2^50, one at a time.
    for at in 0..bytes.len() - 8 {
        if bytes[at..at + 8] == 4u64.to_le_bytes() {
            bytes[at..at + 8].copy_from_slice(&(1u64 << 50).to_le_bytes());
            let _ = folder.load("h.hdf5", &bytes, &only("signals"));
            bytes[at..at + 8].copy_from_slice(&4u64.to_le_bytes());
        }
    }
}

#[test]
fn archives_that_lie_about_their_sizes() {
    let folder = Folder::new();
    let archive = npz(&[("signals", npy_of(&signals(4, 2)))], true);
    // The directory's uncompressed size lies 24 bytes into its entry.
    let entry = archive.windows(4).position(|w| w == b"PK\x01\x02").unwrap();
    let mut lying = archive.clone();
    lying[entry + 24..entry + 28].copy_from_slice(&0xf000_0000u32.to_le_bytes());
    says(&folder.refusal("l.npz", lying, &only("signals")), &["cannot be read as npz"]);
}

#[test]
fn damaged_values_fail_their_checksum() {
    let folder = Folder::new();
    let mut archive = npz(&[("signals", npy_of(&signals(4, 2)))], false);
    let value = archive.windows(8).position(|w| w == 3f64.to_le_bytes()).unwrap();
    archive[value] ^= 1;
    let message = folder.refusal("c.npz", archive, &only("signals"));
    says(
        &message,
        &["`c.npz` cannot be read as npz", "array `signals`", "fetch or write it again"],
    );
}

#[test]
fn csv_lines_that_cannot_be_read() {
    let folder = Folder::new();
    let csv = |text: &str| folder.refusal("t.csv", text, &both());
    assert_eq!(
        csv("signals,decisions\n1,2\nx1,3\n"),
        "`t.csv`, line 3, column `signals`: `x1` is not a number; every cell needs a number with a \
         decimal point; for categories give one_hot=\"signals\", or leave the column out"
    );
    // Categories are for signals.
    assert_eq!(
        csv("signals,decisions\n1,2\n3,x1\n"),
        "`t.csv`, line 3, column `decisions`: `x1`; `decisions` needs numbers, since only signals \
         can be categories or dates; write the column as numbers or choose others"
    );
    says(
        &csv("signals,decisions\r\n1,2\r\n,2\r\n"),
        &["1 value is missing", "`signals[0]` in row 1", "missing=\"drop\"", "missing=\"mean\""],
    );
    says(
        &csv("\u{feff}signals,decisions\r\n\r\n1,2\r\n\r\n\"\r\n3\",4\r\n5\r\n"),
        &["line 7: 1 cells"],
    );
    says(&csv("signals,decisions\n1,2\n3\n"), &["line 3: 1 cells where the header has 2"]);
    says(&csv("signals,decisions\n1,2,3\n"), &["line 2: 3 cells"]);
    says(&csv("signals,decisions\n1,\"2\n3,4\n"), &["line 2", "`2"]);
    says(&csv("signals,decisions\n"), &["0 rows"]);
    says(&csv("1,2\n3,4\n"), &["no header", "signals_0,signals_1,decisions_0"]);
    says(&csv("signals_0,signals_2,decisions\n1,2,3\n"), &["no number 1", "without gaps"]);
    says(&csv("time,load\n1,2\n"), &["it holds `time`, `load`"]);
    says(&csv("\n\n"), &["no line of column names"]);
    let utf16: Vec<u8> =
        "\u{feff}signals,decisions\n1,2\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    says(&folder.refusal("t.csv", utf16, &both()), &["UTF-16"]);
    let message = folder.refusal("t.csv", "a,b\n1,2\n", &keys("a,c", "b"));
    says(&message, &["no signals under the key `a,c`", "`a`, `b`"]);
}

#[test]
fn episodes_that_do_not_fit_together() {
    let folder = Folder::new();
    let episode = |rows: [u64; 2], columns: [u64; 2], key: &str| {
        let mut file = hdf5_pure::FileBuilder::new();
        for e in 0..2 {
            let mut group = file.create_group(&format!("episode_{e}"));
            let name = if e == 0 { "observations" } else { key };
            let shape = [rows[e], columns[e]];
            let values = vec![0.5; (rows[e] * columns[e]) as usize];
            group.create_dataset(name).with_f64_data(&values).with_shape(&shape);
            group.create_dataset("actions").with_f64_data(&[0.0; 2]).with_shape(&[2]);
            file.add_group(group.finish());
        }
        folder.refusal("e.hdf5", file.finish().unwrap(), &both())
    };
    let message = episode([3, 5], [1, 1], "observations");
    says(&message, &["`episode_1`", "`observations` has 5 rows for 2 decisions"]);
    let message = episode([3, 3], [1, 2], "observations");
    says(&message, &["`episode_1`", "has 2 columns where earlier episodes have 1"]);
    says(&episode([3, 3], [1, 1], "states"), &["`episode_1`: it has no array `observations`"]);
}

#[test]
fn places_that_cannot_be_written() {
    let folder = Folder::new();
    let values = decisions(3, 2);
    let refused = |name: &str| {
        let error = write_decisions(&folder.path(name), values.view(), &[]).unwrap_err();
        folder.short(&error)
    };
    let message = refused("out.mat");
    assert_eq!(
        message,
        "cannot tell which format to write to `out.mat`; use an ending of .npz, .npy or .csv"
    );
    says(&refused("none/out.csv"), &["cannot write `none/out.csv`: there is no folder", "nothing"]);
    std::fs::create_dir(folder.path("dir.npy")).unwrap();
    says(&refused("dir.npy"), &["cannot write `dir.npy`", "it is a folder"]);
    folder.write("file", "x");
    says(&refused("file/out.csv"), &["cannot write `file/out.csv`"]);
}
