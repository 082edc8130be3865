//! Constraints and weights from every format, and what is refused about them.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use crate::files::{Folder, committed, decisions, npy_of, npy_tensor, npz, only, signals};
use argwhy_core::Constraints;
use argwhy_core::dataset::{Names, Relation};
use argwhy_core::decision_set::{Prices, RowLabel};
use argwhy_io::{DataRequest, SharedMatrix, load, write_prices};
use ndarray::{Array2, Array3, array};

const INF: f64 = f64::INFINITY;

fn wanted() -> DataRequest {
    DataRequest { constraints: true, ..DataRequest::default() }
}

/// Signals and decisions of `rows` samples, two dimensions a decision, and more.
fn archive(rows: usize, more: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut entries =
        vec![("signals", npy_of(&signals(rows, 3))), ("decisions", npy_of(&decisions(rows, 2)))];
    entries.extend(more.iter().cloned());
    npz(&entries, false)
}

fn says(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in {message:?}");
    }
}

/// One matrix a sample, a bound a sample, limits for all.
fn expected() -> Constraints {
    let matrix = Array3::from_shape_fn((3, 2, 2), |(i, r, j)| (i * 4 + r * 2 + j) as f64);
    let bound = array![[1.0, 2.0], [3.0, INF], [5.0, 6.0]];
    Constraints::new()
        .with_inequalities(matrix, bound)
        .unwrap()
        .with_equalities(array![[1.0, 1.0]], array![[7.0], [8.0], [9.0]])
        .unwrap()
        .with_lower(array![0.0, -INF])
        .unwrap()
        .with_upper(array![[1.0, 1.0], [2.0, INF], [3.0, 3.0]])
        .unwrap()
}

fn parts() -> Vec<(&'static str, Vec<usize>, Vec<f64>)> {
    vec![
        ("M", vec![3, 2, 2], (0..12).map(f64::from).collect()),
        ("W", vec![3, 2], vec![1.0, 2.0, 3.0, INF, 5.0, 6.0]),
        ("M_eq", vec![1, 2], vec![1.0, 1.0]),
        // One row: a list has one bound a sample.
        ("W_eq", vec![3], vec![7.0, 8.0, 9.0]),
        ("lower", vec![2], vec![0.0, -INF]),
        ("upper", vec![3, 2], vec![1.0, 1.0, 2.0, INF, 3.0, 3.0]),
    ]
}

#[test]
fn npz_and_folders() {
    let folder = Folder::new();
    let more: Vec<_> =
        parts().iter().map(|(key, shape, values)| (*key, npy_tensor(shape, values))).collect();
    let loaded = folder.load("a.npz", archive(3, &more), &wanted()).unwrap();
    assert_eq!(loaded.constraints, Some(expected()));
    assert!(loaded.unread.is_empty());
    // Not asked for: not read, but told.
    let loaded = folder.load("a.npz", archive(3, &more), &DataRequest::default()).unwrap();
    assert_eq!(loaded.constraints, None);
    assert_eq!(loaded.unread, ["M", "W", "M_eq", "W_eq", "lower", "upper"]);

    std::fs::create_dir(folder.path("dir")).unwrap();
    folder.write("dir/signals.npy", npy_of(&signals(3, 3)));
    folder.write("dir/decisions.npy", npy_of(&decisions(3, 2)));
    for (key, bytes) in &more {
        folder.write(&format!("dir/{key}.npy"), bytes);
    }
    let loaded = load(&folder.path("dir"), &wanted()).unwrap();
    assert_eq!(loaded.constraints, Some(expected()));
}

#[test]
fn fortran_order_is_turned() {
    let folder = Folder::new();
    let straight = npy_tensor(&[3, 2, 2], &(0..12).map(f64::from).collect::<Vec<_>>());
    let mut turned = vec![0.0; 12];
    for (at, (i, r, j)) in places(3, 2, 2).enumerate() {
        turned[i + 3 * r + 6 * j] = at as f64;
    }
    let mut bytes = npy_tensor(&[3, 2, 2], &turned);
    let at = bytes.windows(5).position(|w| w == b"False").unwrap();
    bytes.splice(at..at + 5, *b"True ");
    let bound = npy_tensor(&[2], &[1.0, 2.0]);
    let read = |matrix: Vec<u8>| {
        let more = [("M", matrix), ("W", bound.clone())];
        folder.load("a.npz", archive(3, &more), &wanted()).unwrap().constraints
    };
    assert_eq!(read(bytes), read(straight));
}

/// Every place of a three-axis array, in row-major order.
fn places(a: usize, b: usize, c: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    (0..a).flat_map(move |i| (0..b).flat_map(move |r| (0..c).map(move |j| (i, r, j))))
}

#[test]
fn hdf5_in_its_flat_layout() {
    let folder = Folder::new();
    let mut file = hdf5_pure::FileBuilder::new();
    for (name, array) in [("signals", signals(3, 3)), ("decisions", decisions(3, 2))] {
        let shape = [array.nrows() as u64, array.ncols() as u64];
        let values: Vec<f64> = array.iter().copied().collect();
        file.create_dataset(name).with_f64_data(&values).with_shape(&shape);
    }
    for (name, shape, values) in parts() {
        let shape: Vec<u64> = shape.iter().map(|&size| size as u64).collect();
        file.create_dataset(name).with_f64_data(&values).with_shape(&shape);
    }
    file.create_dataset("weights").with_f64_data(&[1.0, 0.0, 2.5]).with_shape(&[3]);
    let request = DataRequest { weights: Some("weights".into()), ..wanted() };
    let loaded = folder.load("a.h5", file.finish().unwrap(), &request).unwrap();
    assert_eq!(loaded.constraints, Some(expected()));
    assert_eq!(loaded.weights, Some(vec![1.0, 0.0, 2.5]));
}

#[test]
fn csv_columns() {
    let folder = Folder::new();
    let text = "signals,decisions_0,decisions_1,M_0_0,M_0_1,M_1_0,M[1][1],W_0,W_1,\
                M_eq_0,M_eq_1,W_eq,lower_0,lower_1,upper_0,upper_1,weights\n\
                1,0,0,0,1,2,3,1,2,1,1,7,0,,1,1,1\n\
                2,0,0,4,5,6,7,3,inf,1,1,8,0,-inf,2,,0\n\
                3,0,0,8,9,10,11,5,6,1,1,9,0,,3,3,2.5\n";
    let request = DataRequest { weights: Some("weights".into()), ..wanted() };
    let loaded = folder.load("a.csv", text, &request).unwrap();
    let each = |row: [f64; 2]| Array2::from_shape_fn((3, 2), |(_, j)| row[j]);
    let again = Constraints::new()
        .with_inequalities(
            Array3::from_shape_fn((3, 2, 2), |(i, r, j)| (i * 4 + r * 2 + j) as f64),
            array![[1.0, 2.0], [3.0, INF], [5.0, 6.0]],
        )
        .unwrap()
        .with_equalities(Array3::<f64>::ones((3, 1, 2)), array![[7.0], [8.0], [9.0]])
        .unwrap()
        .with_lower(each([0.0, -INF]))
        .unwrap()
        .with_upper(array![[1.0, 1.0], [2.0, INF], [3.0, 3.0]])
        .unwrap();
    assert_eq!(loaded.constraints, Some(again));
    assert_eq!(loaded.weights, Some(vec![1.0, 0.0, 2.5]));
    let loaded = folder.load("a.csv", text, &DataRequest::default()).unwrap();
    assert_eq!(loaded.unread, ["M", "W", "M_eq", "W_eq", "lower", "upper"]);
    // Without decisions the constraints are the same.
    let alone = DataRequest { constraints: true, ..DataRequest::signals_only() };
    assert!(folder.load("a.csv", text, &alone).unwrap().constraints.is_some());
}

#[test]
fn a_matrix_for_all_rows_from_a_file_of_its_own() {
    let folder = Folder::new();
    let data = "signals,decisions_0,decisions_1,W_0,W_1\n1,0,0,10,20\n2,0,0,30,\n";
    let csv = folder.write("m.csv", "first,second\n1,2\n3,4\n");
    let numbered = folder.write("n.tsv", "M_1\tW\tM_0\n2\t\t1\n4\t8\t3\n");
    let npy = folder.write("m.npy", npy_of(&array![[1.0, 2.0], [3.0, 4.0]]));
    let matrix = array![[1.0, 2.0], [3.0, 4.0]];
    let expected = |bound: Array2<f64>| {
        Some(Constraints::new().with_inequalities(matrix.clone(), bound).unwrap())
    };
    for path in [&csv, &numbered, &npy] {
        let request = DataRequest { matrix: Some(path.clone()), ..DataRequest::default() };
        let loaded = folder.load("a.csv", data, &request).unwrap();
        assert_eq!(loaded.constraints, expected(array![[10.0, 20.0], [30.0, INF]]), "{path:?}");
    }
    // The file's bound serves where the data has none, whatever the data's format.
    let bounded = DataRequest { matrix: Some(numbered.clone()), ..DataRequest::default() };
    let loaded = folder.load("a.npz", archive(2, &[]), &bounded).unwrap();
    assert_eq!(loaded.constraints, expected(array![[INF, 8.0]]));
    let loaded = load(&committed("minari"), &bounded).unwrap();
    assert_eq!(loaded.constraints, expected(array![[INF, 8.0]]));
    let second = committed("decisions.npy").display().to_string();
    let request = DataRequest { decisions: Some(second), ..bounded };
    let loaded = load(&committed("signals.npy"), &request).unwrap();
    assert_eq!(loaded.constraints, expected(array![[INF, 8.0]]));

    let equal = folder.write("e.csv", "a,b,W_eq\n1,1,5\n");
    let request = DataRequest { matrix_eq: Some(equal.clone()), ..DataRequest::default() };
    let plain = "signals,decisions_0,decisions_1\n1,2,3\n2,4,1\n";
    let loaded = folder.load("a.csv", plain, &request).unwrap();
    let simplex = Constraints::new().with_equalities(array![[1.0, 1.0]], array![5.0]).unwrap();
    assert_eq!(loaded.constraints, Some(simplex));
    assert_eq!(SharedMatrix::load(&equal, Relation::Equal).unwrap().bound, Some(array![5.0]));
    let row = folder.write("row.npy", npy_tensor(&[2], &[1.0, 1.0]));
    assert_eq!(SharedMatrix::load(&row, Relation::AtMost).unwrap().matrix, array![[1.0, 1.0]]);
}

#[test]
fn matrices_that_cannot_be_used() {
    let folder = Folder::new();
    let data = "signals,decisions_0,decisions_1\n1,0,0\n2,0,0\n";
    let refused = |data: &str, name: &str, bytes: &[u8]| {
        let matrix = Some(folder.write(name, bytes));
        folder.refusal("a.csv", data, &DataRequest { matrix, ..DataRequest::default() })
    };
    let message = refused(data, "m.csv", b"a,b\n1,2\n");
    says(&message, &["`m.csv` has the matrix `M`", "`a.csv`", "bound `W`", "W_0"]);
    says(&refused(data, "m.csv", b"a,b,W\n1,x,3\n"), &["line 2, column `b`", "`x`"]);
    says(&refused(data, "m.csv", b"a,b,W\n1,,3\n"), &["column `b`", "empty"]);
    says(&refused(data, "m.csv", b"a,b,W\n1,nan,3\n"), &["`M` in `m.csv`", "row 0, column 1"]);
    says(&refused(data, "m.csv", b"a,b,W\n1,1,nan\n"), &["`W[0]` in `m.csv` is NaN"]);
    says(&refused(data, "m.csv", b"a,b,c,W\n1,2,3,4\n"), &["3 columns", "2 dimensions"]);
    says(&refused(data, "m.csv", b"1,2\n3,4\n"), &["no header"]);
    says(&refused(data, "m.npz", &archive(2, &[])), &["csv file with a header or an npy"]);
    let deep = npy_tensor(&[2, 1, 2], &[1.0; 4]);
    says(&refused(data, "m.npy", &deep), &["shape (2, 1, 2)", "the same for all samples"]);
    let both = "signals,decisions_0,decisions_1,M_0,M_1,W\n1,0,0,1,1,3\n";
    says(&refused(both, "m.csv", b"a,b,W\n1,2,3\n"), &["`M` is in `a.csv` and in `m.csv`"]);
    let three = "signals,decisions_0,decisions_1,W_0,W_1,W_2\n1,0,0,1,1,3\n";
    says(&refused(three, "m.csv", b"a,b\n1,2\n"), &["`M` has 1 rows but `W` has 3 bounds"]);
    let message = folder.refusal(
        "a.csv",
        data,
        &DataRequest {
            matrix: Some(Path::new("no/such.csv").to_path_buf()),
            ..DataRequest::default()
        },
    );
    says(&message, &["no file or folder at `no/such.csv`"]);
}

#[test]
fn constraints_that_are_not_there() {
    let folder = Folder::new();
    let message = folder.refusal("a.npz", archive(3, &[]), &wanted());
    says(
        &message,
        &["`a.npz` has no constraints", "it holds `signals`, `decisions`", "give matrix"],
    );
    let text = "signals,decisions,time\n1,2,3\n";
    let message = folder.refusal("a.csv", text, &wanted());
    says(&message, &["no constraints", "`signals`, `decisions`, `time`"]);
    let half = archive(3, &[("M", npy_tensor(&[1, 2], &[1.0, 1.0]))]);
    says(&folder.refusal("a.npz", half, &wanted()), &["has `M` but no `W`", "M·u ≤ W"]);
    let half = archive(3, &[("W_eq", npy_tensor(&[1], &[1.0]))]);
    let message = folder.refusal("a.npz", half, &wanted());
    says(&message, &["has `W_eq` but no `M_eq`", "M_eq·u = W_eq", "matrix_eq=\"FILE\""]);
    let error = load(&committed("minari"), &wanted()).unwrap_err().to_string();
    says(&error, &["constraints inside episodes are not read", "npz"]);
    let second = committed("decisions.npy").display().to_string();
    let request = DataRequest { decisions: Some(second), ..wanted() };
    let error = load(&committed("signals.npy"), &request).unwrap_err().to_string();
    says(&error, &["an npy file is one array", "give matrix"]);
}

#[test]
fn shapes_that_do_not_fit() {
    let folder = Folder::new();
    let refused = |parts: &[(&'static str, &[usize])]| {
        let more: Vec<_> = parts
            .iter()
            .map(|(key, shape)| (*key, npy_tensor(shape, &vec![1.0; shape.iter().product()])))
            .collect();
        folder.refusal("a.npz", archive(3, &more), &wanted())
    };
    says(&refused(&[("M", &[2, 2]), ("W", &[3])]), &["`M` has 2 rows but `W` has 3 bounds"]);
    says(&refused(&[("M", &[2, 2]), ("W", &[3, 3])]), &["2 rows", "3 bounds"]);
    says(&refused(&[("M", &[2, 3]), ("W", &[2])]), &["`M`", "3 columns", "2 dimensions"]);
    says(&refused(&[("M", &[5, 2, 2]), ("W", &[2])]), &["(5, 2, 2)", "each of 3 samples"]);
    says(&refused(&[("M", &[2, 2]), ("W", &[5, 2])]), &["`W`", "(5, 2)", "each of 3 samples"]);
    says(&refused(&[("M", &[4]), ("W", &[2])]), &["`M`", "(4,)", "rows × decision dimensions"]);
    says(&refused(&[("M", &[2, 2]), ("W", &[3, 2, 1])]), &["`W`", "one number a row"]);
    says(&refused(&[("M", &[0, 2]), ("W", &[0])]), &["0 rows"]);
    says(&refused(&[("M", &[1, 1, 2, 2]), ("W", &[2])]), &["(1, 1, 2, 2)", "three axes"]);
    says(&refused(&[("lower", &[3])]), &["`lower`", "3 columns", "2 dimensions"]);
    says(&refused(&[("upper", &[2, 2])]), &["`upper`", "each of 3 samples"]);
    says(&refused(&[("lower", &[3, 2, 1])]), &["`lower`", "one number a dimension"]);
    // Where decisions are not loaded, their length can be given.
    let more = [("lower", npy_tensor(&[3], &[1.0; 3]))];
    let alone = DataRequest { constraints: true, ..DataRequest::signals_only() };
    let one = DataRequest { decision_dim: Some(1), ..alone.clone() };
    let loaded = folder.load("a.npz", archive(3, &more), &one).unwrap();
    assert_eq!(loaded.constraints.unwrap().n_samples(), Some(3));
    let two = DataRequest { decision_dim: Some(2), ..alone };
    says(&folder.refusal("a.npz", archive(3, &more), &two), &["3 columns"]);
}

#[test]
fn values_that_mean_nothing() {
    let folder = Folder::new();
    let refused = |parts: &[(&'static str, &[usize], &[f64])]| {
        let more: Vec<_> =
            parts.iter().map(|(key, shape, values)| (*key, npy_tensor(shape, values))).collect();
        folder.refusal("a.npz", archive(2, &more), &wanted())
    };
    let matrix = |bad: f64| {
        let mut values = vec![1.0; 8];
        values[6] = bad;
        refused(&[("M", &[2, 2, 2], &values), ("W", &[2], &[1.0, 1.0])])
    };
    says(&matrix(f64::NAN), &["`M[1][0]` in `a.npz` is NaN in row 1 (counted from 0)"]);
    says(&matrix(INF), &["`M[1][0]`", "is inf", "finite"]);
    let bound = |key, bad: f64| {
        let m = if key == "W" { "M" } else { "M_eq" };
        refused(&[(m, &[1, 2], &[1.0, 1.0]), (key, &[2, 1], &[0.0, bad])])
    };
    says(&bound("W", f64::NAN), &["`W[0]` in `a.npz` is NaN in row 1"]);
    says(&bound("W", -INF), &["`W[0]`", "is -inf in row 1"]);
    says(&bound("W_eq", INF), &["`W_eq[0]`", "is inf in row 1", "finite number"]);
    says(&refused(&[("lower", &[2], &[0.0, INF])]), &["`lower[1]` in `a.npz` is inf;"]);
    says(&refused(&[("upper", &[2], &[f64::NAN, 0.0])]), &["`upper[0]`", "NaN"]);
    let csv = "signals,decisions_0,decisions_1,M_0,M_1,W\n1,0,0,1,1,3\n1,0,0,1,nan,3\n";
    says(&folder.refusal("a.csv", csv, &wanted()), &["`M[0][1]` in `a.csv` is NaN in row 1"]);
    let csv = "signals,decisions_0,decisions_1,M_0,M_1,W\n1,0,0,1,,3\n";
    says(&folder.refusal("a.csv", csv, &wanted()), &["line 2, column `M_1`", "empty"]);
}

#[test]
fn weights_from_npy_and_their_refusals() {
    let folder = Folder::new();
    let by = |key: &str| DataRequest { weights: Some(key.to_owned()), ..DataRequest::default() };
    let weights = folder.write("w.npy", npy_tensor(&[12], &[2.0; 12]));
    let request = DataRequest {
        decisions: Some(committed("decisions.npy").display().to_string()),
        ..by(&weights.display().to_string())
    };
    let loaded = load(&committed("signals.npy"), &request).unwrap();
    assert_eq!(loaded.weights, Some(vec![2.0; 12]));
    let refused = |values: &[f64]| {
        let more = [("count", npy_tensor(&[values.len()], values))];
        folder.refusal("a.npz", archive(3, &more), &by("count"))
    };
    says(&refused(&[1.0, -2.0, 0.0]), &["`count` in `a.npz`", "weight -2 in row 1"]);
    says(&refused(&[1.0, f64::NAN, 0.0]), &["`count`", "NaN", "row 1"]);
    says(&refused(&[1.0, 2.0]), &["`count`", "each of 3 rows"]);
    let message = folder.refusal("a.npz", archive(3, &[]), &by("weights"));
    says(
        &message,
        &["no weights under the key `weights`", "`signals`, `decisions`", "choose with weights"],
    );
    let error = load(&committed("minari"), &by("rewards")).unwrap_err().to_string();
    says(&error, &["weights inside episodes are not read"]);
}

#[test]
fn prices_are_written_as_table_and_as_arrays() {
    let folder = Folder::new();
    let prices = Prices {
        samples: vec![3, 3, 70_000],
        limits: vec![RowLabel::Inequality(12), RowLabel::Upper(0), RowLabel::Equality(1)],
        values: vec![0.1, 2.0, -1.0 / 3.0],
    };
    write_prices(&folder.path("p.csv"), &prices, &Names::default()).unwrap();
    let text = std::fs::read_to_string(folder.path("p.csv")).unwrap();
    let expected =
        "row,limit,price\n3,M[12],0.1\n3,upper[0],2.0\n70000,M_eq[1],-0.3333333333333333\n";
    assert_eq!(text, expected);
    write_prices(&folder.path("p.npz"), &prices, &Names::default()).unwrap();
    let column = |key: &str| load(&folder.path("p.npz"), &only(key)).unwrap().signals;
    assert_eq!(column("row"), array![[3.0], [3.0], [70_000.0]]);
    assert_eq!(column("price"), array![[0.1], [2.0], [-1.0 / 3.0]]);
    let bytes = std::fs::read(folder.path("p.npz")).unwrap();
    let wide: Vec<u8> = "upper[0]".bytes().flat_map(|c| [c, 0, 0, 0]).collect();
    assert!(bytes.windows(wide.len()).any(|w| w == wide));
    let error = write_prices(&folder.path("p.npy"), &prices, &Names::default()).unwrap_err();
    says(&folder.short(&error), &["`p.npy`", ".npz or .csv"]);
}
