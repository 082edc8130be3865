//! Files made by NumPy and h5py (`tests/data`) give the numbers their script wrote.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::files::{
    Folder, committed, decisions, episodes_hdf5, keys, npy, npy_of, npz, only, signals,
};
use argwhy_io::{DataRequest, Loaded, load, write_decisions};
use ndarray::{Array2, array, s};

fn expect(loaded: &Loaded, rows: usize, signals_key: &str, decisions_key: &str) {
    assert_eq!(loaded.signals, signals(rows, 3));
    assert_eq!(loaded.decisions, Some(decisions(rows, 2)));
    assert_eq!(loaded.signals_key, signals_key);
    assert_eq!(loaded.decisions_key.as_deref(), Some(decisions_key));
    assert!(loaded.signals.is_standard_layout());
}

#[test]
fn npz_of_numpy() {
    let loaded = load(&committed("plain.npz"), &DataRequest::default()).unwrap();
    expect(&loaded, 12, "signals", "decisions");
}

#[test]
fn npz_with_objects_strings_and_fortran_order_beside() {
    let loaded = load(&committed("d4rl.npz"), &DataRequest::default()).unwrap();
    expect(&loaded, 12, "observations", "actions");
    assert!(loaded.decisions.unwrap().is_standard_layout());
}

#[test]
fn npz_dtypes_and_byte_orders() {
    let column = |key: &str| load(&committed("dtypes.npz"), &only(key)).unwrap().signals;
    for key in ["f16", "f32be", "f64be"] {
        assert_eq!(column(key), signals(12, 3), "{key}");
    }
    let counted = Array2::from_shape_fn((12, 1), |(i, _)| i as f64 - 6.0);
    for key in ["i8", "i16be", "i64"] {
        assert_eq!(column(key), counted, "{key}");
    }
    assert_eq!(column("u32"), counted + 6.0);
    assert_eq!(column("bools").slice(s![..4, 0]), array![1.0, 0.0, 0.0, 1.0]);
}

#[test]
fn npy_of_numpy_with_decisions_in_a_second_file() {
    let second = committed("decisions.npy").display().to_string();
    let request = DataRequest { decisions: Some(second.clone()), ..DataRequest::default() };
    expect(&load(&committed("signals.npy"), &request).unwrap(), 12, "signals", &second);
    let alone = DataRequest { want_decisions: false, ..DataRequest::default() };
    let loaded = load(&committed("signals.npy"), &alone).unwrap();
    assert_eq!((loaded.decisions, loaded.decisions_key), (None, None));
}

#[test]
fn a_folder_of_npy_files() {
    let folder = Folder::new();
    std::fs::copy(committed("signals.npy"), folder.path("observations.npy")).unwrap();
    std::fs::copy(committed("decisions.npy"), folder.path("actions.npy")).unwrap();
    folder.write("rewards.npy", "not even npy");
    let loaded = load(&folder.path(""), &DataRequest::default()).unwrap();
    expect(&loaded, 12, "observations", "actions");
    std::fs::copy(committed("signals.npy"), folder.path("signals.npy")).unwrap();
    let loaded = load(&folder.path(""), &keys("signals", "actions")).unwrap();
    expect(&loaded, 12, "signals", "actions");
}

#[test]
fn hdf5_of_d4rl() {
    let loaded = load(&committed("d4rl.hdf5"), &DataRequest::default()).unwrap();
    expect(&loaded, 12, "observations", "actions");
    for key in ["infos/qpos", "half", "big"] {
        let loaded = load(&committed("d4rl.hdf5"), &only(key)).unwrap();
        assert_eq!(loaded.signals, signals(12, 3), "{key}");
    }
    let loaded = load(&committed("d4rl.hdf5"), &keys("counts", "terminals")).unwrap();
    assert_eq!(loaded.signals, Array2::from_shape_fn((12, 1), |(i, _)| i as f64));
    assert_eq!(loaded.decisions, Some(Array2::zeros((12, 1))));
}

#[test]
fn hdf5_of_minari_from_any_of_its_folders() {
    for name in ["minari", "minari/data", "minari/data/main_data.hdf5"] {
        let loaded = load(&committed(name), &DataRequest::default()).unwrap();
        expect(&loaded, 19, "observations", "actions");
        // Signals alone have the same rows: the last of each episode is dropped as well.
        let alone = DataRequest { want_decisions: false, ..DataRequest::default() };
        assert_eq!(load(&committed(name), &alone).unwrap().signals, loaded.signals);
    }
    let loaded = load(&committed("minari"), &keys("infos/qpos", "rewards")).unwrap();
    assert_eq!(loaded.signals, Array2::<f64>::zeros((19, 2)));
    assert_eq!(loaded.decisions, Some(Array2::ones((19, 1))));
}

#[test]
fn episodes_follow_their_numbers_not_their_names() {
    let folder = Folder::new();
    let steps: Vec<usize> = (0..25).map(|e| 1 + e % 3).collect();
    let total = steps.iter().sum();
    let loaded = folder.load("e.h5", episodes_hdf5(&steps), &DataRequest::default()).unwrap();
    assert_eq!(loaded.signals, signals(total, 1));
    assert_eq!(loaded.decisions, Some(decisions(total, 1)));
}

#[test]
fn csv_in_its_usual_dialects() {
    let folder = Folder::new();
    let request = DataRequest::default();
    let expected = (array![[1.0, 2.0], [3.0, 4.0]], Some(array![[0.5], [-1e-3]]));
    for text in [
        "signals_0,signals_1,decisions\n1,2,0.5\n3,4,-1e-3\n",
        "\u{feff}signals_0,signals_1,decisions\r\n1,2,0.5\r\n3,4,-1e-3\r\n",
        "decisions_0,other,signals_1,signals_0\n.5,text,2,1\n\n-.001,,4,3",
        "\"signals[1]\", signals[0] ,decisions[0]\n\"2\", 1 ,0.5\n4,3.0,-1E-3\n",
        "signals.0,signals.1,decisions0\n1.,2,+0.5\n3,4,-0.001\n",
    ] {
        let loaded = folder.load("t.csv", text, &request).unwrap();
        assert_eq!((loaded.signals, loaded.decisions), expected, "{text}");
        let tabs = text.replace(',', "\t");
        let loaded = folder.load("t.tsv", tabs, &request).unwrap();
        assert_eq!((loaded.signals, loaded.decisions), expected, "{text}");
    }
}

#[test]
fn csv_columns_by_name() {
    let folder = Folder::new();
    let text = "time,load,price,charge\nmon,1,2,3\ntue,4,5,6\n";
    let loaded = folder.load("t.csv", text, &keys("price,load", "charge")).unwrap();
    assert_eq!(loaded.signals, array![[2.0, 1.0], [5.0, 4.0]]);
    assert_eq!(loaded.decisions, Some(array![[3.0], [6.0]]));
    assert_eq!(loaded.signals_key, "price,load");
}

#[test]
fn the_ending_is_free_when_the_first_bytes_speak() {
    let folder = Folder::new();
    let request = DataRequest::default();
    for (from, to) in [("plain.npz", "a.data"), ("d4rl.hdf5", "b"), ("plain.npz", "C.NPZ")] {
        let bytes = std::fs::read(committed(from)).unwrap();
        assert_eq!(folder.load(to, bytes, &request).unwrap().signals, signals(12, 3));
    }
    let loaded = folder.load("x.bin", npy_of(&signals(4, 2)), &only("signals")).unwrap();
    assert_eq!(loaded.signals, signals(4, 2));
}

#[test]
fn large_arrays_cross_the_block_size() {
    let folder = Folder::new();
    let (s, u) = (signals(30_011, 3), decisions(30_011, 1));
    let entries = [("signals", npy_of(&s)), ("decisions", npy_of(&u))];
    for deflated in [false, true] {
        let request = DataRequest::default();
        let loaded = folder.load("l.npz", npz(&entries, deflated), &request).unwrap();
        assert_eq!((&loaded.signals, loaded.decisions.as_ref()), (&s, Some(&u)));
    }
}

#[test]
fn version_2_and_3_headers() {
    let folder = Folder::new();
    let one = npy("<f8", "(1,)", &7f64.to_le_bytes());
    for version in [2u8, 3] {
        let mut bytes = one.clone();
        bytes[6] = version;
        // The length grows from two bytes to four.
        bytes.splice(10..10, [0, 0]);
        let loaded = folder.load("v.npy", bytes, &only("signals")).unwrap();
        assert_eq!(loaded.signals, array![[7.0]]);
    }
}

#[test]
fn written_decisions_read_back_bit_for_bit() {
    let folder = Folder::new();
    let values = array![
        [1.0 / 3.0, -0.0, 1e300],
        [f64::MIN_POSITIVE, 5e-324, -123_456_789.125],
        [0.1 + 0.2, 2f64.powi(60), -1e-7],
    ];
    // A transposed view, so that the layout in memory is not the layout on disk.
    for name in ["o.npz", "o.csv", "O.CSV", "o.npy"] {
        let path = folder.path(name);
        write_decisions(&path, values.t(), &[]).unwrap();
        let key = if name == "o.npy" { "signals" } else { "decisions" };
        let back = load(&path, &only(key)).unwrap().signals;
        let bits = |array: &Array2<f64>| array.mapv(f64::to_bits);
        assert_eq!(bits(&back), bits(&values.t().to_owned()), "{name}");
    }
    let text = std::fs::read_to_string(folder.path("o.csv")).unwrap();
    assert!(text.starts_with("decisions_0,decisions_1,decisions_2\n"), "{text}");
}

#[test]
fn what_is_written_is_the_same_every_time() {
    let folder = Folder::new();
    for name in ["a.npz", "a.npy", "a.csv"] {
        let path = folder.path(name);
        write_decisions(&path, decisions(5, 2).view(), &[]).unwrap();
        let first = std::fs::read(&path).unwrap();
        write_decisions(&path, decisions(5, 2).view(), &[]).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), first, "{name}");
    }
}
