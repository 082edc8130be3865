//! Reading keeps its budget: sizes are judged before data is read, and rows left out are never
//! held.

use crate::files::{self, Folder, decisions, flat_hdf5, npy_of, npy_tensor, npz, signals};
use argwhy_io::{
    Budget, DataError, DataRequest, RowRanges, Survey, load, load_if, survey, walk_signals,
};
use ndarray::{Array2, Axis, concatenate};
use std::fmt::Write;

const MIB: u64 = 1 << 20;

fn within(bytes: u64) -> DataRequest {
    DataRequest { budget: Budget::within(bytes, 0), ..DataRequest::default() }
}

fn rows(text: &str) -> DataRequest {
    DataRequest { rows: Some(text.parse::<RowRanges>().unwrap()), ..DataRequest::default() }
}

fn zeros(rows: usize, columns: usize) -> Vec<u8> {
    npy_of(&Array2::zeros((rows, columns)))
}

#[test]
fn compressed_zeros_take_no_more_than_the_budget() {
    let folder = Folder::new();
    let bomb = npz(&[("signals", zeros(1_000_000, 10)), ("decisions", zeros(1_000_000, 1))], true);
    assert!(bomb.len() < MIB as usize);
    let error = folder.load("bomb.npz", &bomb, &within(50 * MIB)).unwrap_err();
    assert!(matches!(error, DataError::Memory { .. }), "{error}");
    let message = folder.short(&error);
    for part in ["`signals`", "(1000000, 10)", "76.3 MiB", "50.0 MiB", "fewer rows"] {
        assert!(message.contains(part), "{message}");
    }
    let few = DataRequest { budget: Budget::within(MIB, 0), ..rows("999990:1000000") };
    let loaded = folder.load("bomb.npz", &bomb, &few).unwrap();
    assert_eq!(loaded.signals.dim(), (10, 10));
    assert_eq!(loaded.places.unwrap()[0], 999_990);
}

#[test]
fn what_is_in_use_already_counts() {
    let folder = Folder::new();
    let file = npz(&[("signals", zeros(1000, 10)), ("decisions", zeros(1000, 1))], false);
    let request =
        |taken| DataRequest { budget: Budget::within(MIB, taken), ..DataRequest::default() };
    assert!(folder.load("f.npz", &file, &request(MIB - 90_000)).is_ok());
    assert!(folder.load("f.npz", &file, &request(MIB - 80_000)).is_err());
}

#[test]
fn sizes_are_known_before_anything_is_read() {
    let folder = Folder::new();
    let (s, d) = (signals(20, 3), decisions(20, 2));
    let matrix = npy_tensor(&[20, 4, 2], &[1.0; 160]);
    let bound = npy_tensor(&[20, 4], &[99.0; 80]);
    let entries = [("signals", npy_of(&s)), ("decisions", npy_of(&d)), ("M", matrix), ("W", bound)];
    let csv = "signals_0,signals_1,signals_2,decisions_0,decisions_1\n".to_owned()
        + &"1,2,3,4,5\n".repeat(20);
    let hdf5 = flat_hdf5(&s, &d, true);
    for (name, bytes, constrained) in [
        ("f.npz", npz(&entries, true), true),
        ("f.csv", csv.into_bytes(), false),
        ("f.hdf5", hdf5, false),
    ] {
        let path = folder.write(name, bytes);
        let request = DataRequest { constraints: constrained, ..rows("5:9,0:2") };
        let refused = load_if(&path, &request, |survey| {
            assert_eq!((survey.n_rows, survey.n_kept), (20, 6), "{name}");
            assert_eq!((survey.signal_dim, survey.decision_dim), (3, Some(2)));
            assert_eq!(survey.constraint_numbers(), if constrained { 6 * (8 + 4) } else { 0 });
            Err(DataError::Empty { path: "refused".into() })
        });
        assert!(matches!(refused, Err(DataError::Empty { .. })), "{name}");
    }
}

#[test]
fn lines_are_counted_exactly_before_a_refusal() {
    let folder = Folder::new();
    let blank = "signals,decisions\r\n".to_owned() + &"\r\n".repeat(50) + "1,2\r\n3,4\r\n";
    let path = folder.write("f.csv", blank);
    let accept = |survey: &Survey| match survey.n_rows {
        2 => Ok(()),
        _ => Err(DataError::Empty { path: "too many".into() }),
    };
    let loaded = load_if(&path, &DataRequest::default(), accept).unwrap();
    assert_eq!(loaded.signals.nrows(), 2);
}

#[test]
fn rows_are_the_same_in_every_format() {
    let folder = Folder::new();
    let (s, d) = (signals(50, 3), decisions(50, 2));
    let wanted = "40:50,3:17,20:21";
    let places: Vec<usize> = (40..50).chain(3..17).chain(20..21).collect();
    let expected = (s.select(Axis(0), &places), d.select(Axis(0), &places));
    let arrays = [("signals", npy_of(&s)), ("decisions", npy_of(&d))];
    let mut csv = "signals_0,signals_1,signals_2,decisions_0,decisions_1\n".to_owned();
    for (a, b) in s.rows().into_iter().zip(d.rows()) {
        let cells: Vec<String> = a.iter().chain(b.iter()).map(ToString::to_string).collect();
        csv += &(cells.join(",") + "\n");
    }
    for (name, bytes) in [
        ("stored.npz", npz(&arrays, false)),
        ("deflated.npz", npz(&arrays, true)),
        ("f.csv", csv.into_bytes()),
        ("whole.hdf5", flat_hdf5(&s, &d, false)),
        ("chunks.hdf5", flat_hdf5(&s, &d, true)),
    ] {
        let loaded = folder.load(name, &bytes, &rows(wanted)).unwrap();
        assert_eq!(
            (&loaded.signals, loaded.decisions.as_ref().unwrap()),
            (&expected.0, &expected.1)
        );
        assert_eq!(loaded.places.unwrap(), places, "{name}");
        let outside = folder.load(name, &bytes, &rows("0:51")).unwrap_err();
        assert!(outside.to_string().contains("which has 50 rows"), "{name}: {outside}");
    }
}

/// All rows go by in pieces, in order, and no more of them are there at once than fit the budget.
#[test]
fn signals_can_be_walked_through_in_every_format() {
    const UNIT: usize = 512;
    let folder = Folder::new();
    let n_rows = 300_000;
    let (s, d) = (signals(n_rows, 4), decisions(n_rows, 1));
    let arrays = [("signals", npy_of(&s)), ("decisions", npy_of(&d))];
    let mut csv = "signals_0,signals_1,signals_2,signals_3,decisions\n".to_owned();
    for (a, b) in s.rows().into_iter().zip(&d) {
        writeln!(csv, "{},{},{},{},{b}", a[0], a[1], a[2], a[3]).unwrap();
    }
    let request = DataRequest { budget: Budget::within(9 * MIB, 0), ..rows("0:10") };
    for (name, bytes) in [
        ("stored.npz", npz(&arrays, false)),
        ("deflated.npz", npz(&arrays, true)),
        ("f.csv", csv.into_bytes()),
        ("whole.hdf5", flat_hdf5(&s, &d, false)),
    ] {
        let path = folder.write(name, bytes);
        assert!(load(&path, &DataRequest { rows: None, ..request.clone() }).is_err());
        assert_eq!(survey(&path, &request).unwrap().n_rows, n_rows, "{name}");
        let mut pieces = Vec::new();
        let take = |rows: ndarray::ArrayView2<'_, f64>| pieces.push(rows.to_owned());
        assert!(walk_signals(&path, &request, UNIT, take).unwrap(), "{name}");
        let (last, whole) = pieces.split_last().unwrap();
        assert!(!whole.is_empty() && last.nrows() > 0, "{name}");
        assert!(whole.iter().all(|piece| piece.nrows().is_multiple_of(UNIT)), "{name}");
        let views: Vec<_> = pieces.iter().map(|piece| piece.view()).collect();
        assert_eq!(concatenate(Axis(0), &views).unwrap(), s, "{name}");
    }
}

#[test]
fn a_walk_ends_where_a_value_is_missing() {
    let folder = Folder::new();
    let mut s = signals(9, 2);
    s[[7, 0]] = f64::NAN;
    let arrays = [("signals", npy_of(&s)), ("decisions", npy_of(&decisions(9, 1)))];
    let turned = {
        // Columns one after the other, as `numpy.asfortranarray` stores them.
        let mut bytes = npy_of(&signals(9, 2).t().to_owned());
        let header = bytes.windows(4).position(|w| w == b"alse").unwrap();
        bytes[header - 1..header + 4].copy_from_slice(b"True ");
        let shape = bytes.windows(6).position(|w| w == b"(2, 9)").unwrap();
        bytes[shape..shape + 6].copy_from_slice(b"(9, 2)");
        [("signals", bytes), ("decisions", npy_of(&decisions(9, 1)))]
    };
    let csv = "signals,decisions\n1,2\n,3\n";
    for (name, bytes, whole) in [
        ("f.npz", npz(&arrays, true), false),
        ("f.csv", csv.into(), false),
        ("turned.npz", npz(&turned, false), true),
    ] {
        let path = folder.write(name, bytes);
        let walked = walk_signals(&path, &DataRequest::default(), 1, |rows| {
            assert_eq!(rows, signals(9, 2), "{name}");
        });
        assert_eq!(walked.unwrap(), whole, "{name}");
    }
}

/// `*` leaves out what has another role, in a walk as anywhere.
#[test]
fn a_walk_has_the_columns_that_loading_has() {
    let folder = Folder::new();
    let path = folder.write("f.csv", "a,day,b,u\n1,7,2,3\n4,8,5,6\n");
    let request = DataRequest { groups: Some("day".to_owned()), ..files::keys("*", "u") };
    let walked = walk_signals(&path, &request, 1, |rows| {
        assert_eq!(rows, load(&path, &request).unwrap().signals);
        assert_eq!(rows.ncols(), 2);
    });
    assert!(walked.unwrap());
}

#[test]
fn constraints_and_weights_follow_their_rows() {
    let folder = Folder::new();
    let (s, d) = (signals(6, 1), decisions(6, 1));
    let list: Vec<f64> = (0..6).map(|i| 100.0 + f64::from(i)).collect();
    let file = npz(
        &[
            ("signals", npy_of(&s)),
            ("decisions", npy_of(&d)),
            ("M", npy_tensor(&[1, 1], &[1.0])),
            ("W", npy_tensor(&[6], &list)),
            ("upper", npy_tensor(&[6], &list)),
            ("w", npy_tensor(&[6], &list)),
        ],
        true,
    );
    let request =
        DataRequest { constraints: true, weights: Some("w".to_owned()), ..rows("4:6,1:2") };
    let part = folder.load("f.npz", &file, &request).unwrap();
    let whole = DataRequest { rows: None, ..request };
    let whole = folder.load("f.npz", &file, &whole).unwrap();
    assert_eq!(part.constraints, whole.constraints.map(|given| given.select(&[4, 5, 1])));
    assert_eq!(part.weights.unwrap(), [104.0, 105.0, 101.0]);
}

#[test]
fn errors_name_the_row_of_the_file() {
    let folder = Folder::new();
    let mut s = signals(9, 1);
    s[[7, 0]] = f64::NAN;
    let file = npz(&[("signals", npy_of(&s)), ("decisions", npy_of(&decisions(9, 1)))], false);
    let refused = folder.refusal("f.npz", &file, &rows("6:9"));
    assert!(refused.contains("`signals[0]` in row 7 (counted"), "{refused}");
    // What is left out is not looked at.
    assert!(folder.load("f.npz", &file, &rows("0:7")).is_ok());
}

#[test]
fn a_quote_that_is_never_closed_does_not_swallow_the_file() {
    let folder = Folder::new();
    let text = "signals,decisions\n1,\"2\n".to_owned() + &"3,4\n".repeat(1_000_000);
    let error = folder.load("f.csv", text, &within(4 * MIB)).unwrap_err();
    let message = folder.short(&error);
    assert!(
        message.contains("never closed") || message.contains("left of the memory"),
        "{message}"
    );
}

#[test]
fn csv_grows_within_its_budget() {
    let folder = Folder::new();
    let text = "signals,decisions\n".to_owned() + &"1.5,2\n".repeat(100_000);
    let error = folder.load("f.csv", &text, &within(MIB)).unwrap_err();
    assert!(matches!(error, DataError::Memory { .. }), "{error}");
    assert_eq!(folder.load("f.csv", &text, &within(2 * MIB)).unwrap().signals.nrows(), 100_000);
}

/// Committed files of h5py in every layout: the same numbers, whole and by rows, with room for a
/// chunk and without.
#[test]
fn chunks_of_every_layout_are_unpacked_in_pieces() {
    let path = files::committed("layouts.hdf5");
    let expected = signals(700, 6);
    let keys = [
        "contiguous",
        "chunks",
        "gzip",
        "shuffle",
        "shuffle_only",
        "one_chunk",
        "narrow",
        "checked",
    ];
    for key in keys {
        for budget in [Budget::default(), Budget::within(40_000, 0)] {
            let request = DataRequest { budget, ..files::only(key) };
            if key == "checked" && budget != Budget::default() {
                continue; // Its filter is undone by the HDF5 crate, which needs more.
            }
            assert_eq!(load(&path, &request).unwrap().signals, expected, "{key}");
            let some = DataRequest { rows: Some("650:660,10:400".parse().unwrap()), ..request };
            let places: Vec<usize> = (650..660).chain(10..400).collect();
            let found = load(&path, &some).unwrap().signals;
            assert_eq!(found, expected.select(Axis(0), &places), "{key}");
        }
    }
    // A third axis, cut in all directions.
    let request = DataRequest {
        constraints: true,
        decisions: Some("two".to_owned()),
        ..files::keys("one_chunk", "two")
    };
    let whole = load(&path, &request).unwrap().constraints.unwrap();
    let some = DataRequest { rows: Some("30:40,0:7".parse().unwrap()), ..request };
    let places: Vec<usize> = (30..40).chain(0..7).collect();
    assert_eq!(load(&path, &some).unwrap().constraints.unwrap(), whole.select(&places));
}

#[test]
fn links_that_are_not_used_do_not_matter() {
    for name in ["links-old.hdf5", "links-new.hdf5"] {
        let loaded = load(&files::committed(name), &DataRequest::default()).unwrap();
        assert_eq!(loaded.signals, signals(5, 3), "{name}");
        assert_eq!(loaded.decisions.unwrap(), decisions(5, 2), "{name}");
        let inside = load(&files::committed(name), &files::keys("inner/signals", "decisions"));
        assert_eq!(inside.unwrap().signals, signals(5, 3), "{name}");
    }
}
