//! Tables made by pyarrow, polars, pandas and spreadsheets (`tests/data/tables`), and text in all
//! its spellings.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::files::{Folder, committed, decisions, keys, only, signals};
use argwhy_io::{DataError, DataRequest, Decimal, load};
use ndarray::{Array2, Axis, array};
use std::io::Write;

fn table(name: &str) -> std::path::PathBuf {
    committed("tables").join(name)
}

fn column(name: &str, key: &str) -> Result<Vec<f64>, DataError> {
    load(&table(name), &only(key)).map(|loaded| loaded.signals.into_raw_vec_and_offset().0)
}

const TABLES: [&str; 12] = [
    "snappy.parquet",
    "gzip.parquet",
    "zstd.parquet",
    "lz4.parquet",
    "none.parquet",
    "second.parquet",
    "polars.parquet",
    "lz4.feather",
    "zstd.feather",
    "plain.feather",
    "polars.arrow",
    "polars-zstd.arrow",
];

#[test]
fn parquet_and_arrow_of_pyarrow_and_polars() {
    for name in TABLES.iter().chain(&["book.xlsx", "book.ods"]) {
        let loaded = load(&table(name), &DataRequest::default()).unwrap();
        assert_eq!(loaded.signals, signals(40, 3), "{name}");
        assert_eq!(loaded.decisions, Some(decisions(40, 2)), "{name}");
        assert!(loaded.signals.is_standard_layout());
        // Some rows, in an order of their own, across row groups.
        let rows = Some("30:40,3:18".parse().unwrap());
        let loaded = load(&table(name), &DataRequest { rows, ..DataRequest::default() }).unwrap();
        let places: Vec<usize> = (30..40).chain(3..18).collect();
        assert_eq!(loaded.signals, signals(40, 3).select(Axis(0), &places), "{name}");
        assert_eq!(loaded.decisions, Some(decisions(40, 2).select(Axis(0), &places)), "{name}");
        assert_eq!(loaded.places, Some(places));
    }
}

#[test]
fn columns_of_tables_group_rows_by_text_and_by_marks() {
    for name in TABLES {
        let by = |groups: &str, episodes: bool| {
            let groups = Some(groups.to_owned()).filter(|g| !g.is_empty());
            let request = DataRequest { groups, episodes, ..DataRequest::default() };
            load(&table(name), &request).unwrap().groups.unwrap().of_rows
        };
        assert_eq!(by("day", false)[..6], [0, 1, 2, 0, 1, 2], "{name}");
        assert_eq!(by("long", false)[..6], [0, 1, 2, 3, 4, 0], "{name}");
        assert_eq!(by("flag", false)[8..11], [0, 1, 0], "{name}");
    }
}

#[test]
fn every_type_of_parquet() {
    let counted: Vec<f64> = (0..40).map(f64::from).collect();
    for name in ["u8", "u16", "u32", "u64", "half", "decimal", "inner.a"] {
        assert_eq!(column("types.parquet", name).unwrap(), counted, "{name}");
    }
    let signed: Vec<f64> = counted.iter().map(|i| i - 20.0).collect();
    for name in ["i8", "i16", "i32", "i64"] {
        assert_eq!(column("types.parquet", name).unwrap(), signed, "{name}");
    }
    let thirds: Vec<f64> = (0..40).map(|i| f64::from(u8::from(i % 3 == 0))).collect();
    assert_eq!(column("types.parquet", "bool").unwrap(), thirds);
    let eighths: Vec<f64> = counted.iter().map(|i| i / 8.0).collect();
    assert_eq!(column("encodings.parquet", "f").unwrap(), eighths);
    assert_eq!(column("encodings.parquet", "d").unwrap(), eighths);
    let mixed: Vec<f64> = (0..40).map(|i| f64::from((i * 7919) % 101 - 50)).collect();
    assert_eq!(column("encodings.parquet", "i").unwrap(), mixed);
}

#[test]
fn lists_of_one_length_and_categories_of_a_stream() {
    let loaded = load(&table("stream.arrow"), &DataRequest::default()).unwrap();
    assert_eq!(loaded.signals, signals(40, 3));
    let request = DataRequest { groups: Some("day".to_owned()), ..DataRequest::default() };
    let groups = load(&table("stream.arrow"), &request).unwrap().groups.unwrap();
    assert_eq!(groups.of_rows[13..17], [1, 2, 0, 1]);
}

#[test]
fn what_cannot_be_read_as_numbers_is_named() {
    for name in TABLES {
        let error = column(name, "list").unwrap_err().to_string();
        assert!(error.contains("`list`"), "{name}: {error}");
        let error = column(name, "day").unwrap_err().to_string();
        assert!(error.contains("column `day`: `Mon` is not a number"), "{name}: {error}");
    }
}

#[test]
fn a_workbook_without_its_ending_is_known_by_what_is_inside() {
    let folder = Folder::new();
    // As pandas writes them, and from standard input.
    for name in ["book.xlsx", "book.ods"] {
        let path = folder.write("standard-input", std::fs::read(table(name)).unwrap());
        let request = DataRequest::default();
        let found = load(&path, &request).unwrap();
        assert_eq!(found.signals, load(&table(name), &request).unwrap().signals, "{name}");
    }
}

#[test]
fn sheets_are_chosen_by_name_and_need_not_begin_at_the_top() {
    for name in ["book.xlsx", "book.ods"] {
        let of =
            |sheet: &str| DataRequest { sheet: Some(sheet.to_owned()), ..DataRequest::default() };
        let loaded = load(&table(name), &of("moved")).unwrap();
        assert_eq!(loaded.signals, signals(5, 3), "{name}");
        let error = load(&table(name), &of("no such")).unwrap_err().to_string();
        assert!(error.contains("it has `data`, `notes`, `moved`"), "{error}");
        let error = load(&table(name), &of("notes")).unwrap_err().to_string();
        assert!(error.contains("it holds `note`"), "{error}");
        assert_eq!(column(name, "a & b").unwrap()[39], 39.0);
        let error = column(name, "day").unwrap_err().to_string();
        assert!(error.contains("line 2, column `day`: `Mon`"), "{error}");
    }
}

#[test]
fn an_empty_sheet_is_an_error_that_names_the_option() {
    let error = load(&table("empty.xlsx"), &DataRequest::default()).unwrap_err();
    assert!(error.to_string().ends_with("the sheet is empty; name another one with sheet"));
    assert!(format!("{error:#}").ends_with("name another one with --sheet"), "{error:#}");
}

#[test]
fn separators_are_found_and_commas_may_be_decimal() {
    let folder = Folder::new();
    let expected = array![[1.5, 2.0], [-3.25, 4e3]];
    for text in [
        "signals_0,signals_1\n1.5,2\n-3.25,4e3\n",
        "signals_0;signals_1\r\n1.5;2\r\n-3.25;4e3\r\n",
        "\u{feff}\"signals_0\"\t\"signals_1\"\n\"1.5\"\t2\n-3.25\t4e3\n",
        "signals_0|signals_1\n1.5|2\n-3.25|4e3",
        "signals_0 signals_1\n1.5 2\n-3.25 4e3\n",
    ] {
        let loaded = folder.load("t.csv", text, &only("signals")).unwrap();
        assert_eq!(loaded.signals, expected, "{text:?}");
    }
    let text = "signals_0;signals_1\n1,5;2\n-3,25;4e3\n";
    let commas = DataRequest { decimal: Decimal::Comma, ..only("signals") };
    assert_eq!(folder.load("t.csv", text, &commas).unwrap().signals, expected);
    let message = folder.refusal("t.csv", text, &only("signals"));
    assert!(message.contains("`1,5` is not a number") && message.contains("decimal=\",\""));
    let message = folder.refusal("t.csv", "signals;x\n1.5;2\n", &commas);
    assert!(message.contains("`1.5` is not a number"), "{message}");
}

#[test]
fn packed_text_is_unpacked_while_it_is_read() {
    let folder = Folder::new();
    let text = "signals;decisions\n1;2\n3;x\n";
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(text.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    // Two members, one after the other, are one text.
    let rows = Some("0:1".parse().unwrap());
    for name in ["t.csv.gz", "t.gz", "t"] {
        let request = DataRequest { rows: rows.clone(), ..DataRequest::default() };
        let loaded = folder.load(name, &gzip, &request).unwrap();
        assert_eq!(loaded.signals, array![[1.0]], "{name}");
        let message = folder.refusal(name, &gzip, &DataRequest::default());
        assert!(message.contains("line 3, column `decisions`: `x`"), "{message}");
    }
    let zstd = std::fs::read(table("days.csv.zst")).unwrap();
    for name in ["t.csv.zst", "t.zst", "t"] {
        let loaded = folder.load(name, &zstd, &keys("a", "b")).unwrap();
        assert_eq!(loaded.signals, Array2::from_shape_fn((300, 1), |(i, _)| i as f64), "{name}");
    }
    for cut in 0..zstd.len() {
        folder.load("t.zst", &zstd[..cut], &keys("a", "b")).unwrap_err();
    }
    for cut in 0..gzip.len() {
        folder.load("t.gz", &gzip[..cut], &DataRequest::default()).unwrap_err();
    }
}

#[test]
fn columns_are_chosen_by_patterns_and_ranges() {
    let folder = Folder::new();
    let text = "time,s_price,s_load,wind,power\n0,1,2,3,4\n";
    for (key, expected) in [
        ("s_*", array![[1.0, 2.0]]),
        ("s_price:wind", array![[1.0, 2.0, 3.0]]),
        ("wind,s_*", array![[3.0, 1.0, 2.0]]),
        ("1:3", array![[1.0, 2.0]]),
        ("s_load,*d", array![[2.0, 3.0]]),
    ] {
        let loaded = folder.load("t.csv", text, &keys(key, "power")).unwrap();
        assert_eq!(loaded.signals, expected, "{key}");
        assert_eq!(loaded.names.signals.len(), expected.ncols());
    }
    let message = folder.refusal("t.csv", text, &keys("x*", "power"));
    assert!(message.contains("`x*`") && message.contains("`s_price`"), "{message}");
}

#[test]
fn a_star_is_what_has_no_other_role() {
    let folder = Folder::new();
    let text = "price,power,p_max,plant,weight,timeouts,wind,upper_0\n1,2,3,north,1,0,4,5\n";
    let asked = DataRequest {
        weights: Some("weight".to_owned()),
        groups: Some("plant".to_owned()),
        upper: vec!["p_max".to_owned()],
        ..keys("*", "power")
    };
    let loaded = folder.load("t.csv", text, &asked).unwrap();
    assert_eq!(loaded.names.signals, ["price", "wind"]);
    assert_eq!(loaded.signals, array![[1.0, 4.0]]);
    // What is named is taken, whatever else it is; but never the decision itself.
    let named = DataRequest { signals: Some("p_max,*".to_owned()), ..asked.clone() };
    assert_eq!(folder.load("t.csv", text, &named).unwrap().names.signals[0], "p_max");
    for key in ["price,power", "price:p_max", "power"] {
        let message = folder.refusal("t.csv", text, &keys(key, "power"));
        assert!(message.contains("`power` is among the signals and the decisions"), "{message}");
    }
    for (text, key) in [("power\n1\n", "*"), (text, "price,po*")] {
        let message = folder.refusal("t.csv", text, &keys(key, "power"));
        assert!(message.contains("*` stands only for columns that have another role"), "{message}");
    }
    let two = DataRequest { upper: vec!["p_max".to_owned()], ..keys("price", "power,wind") };
    let message = folder.refusal("t.csv", text, &two);
    assert!(message.contains("upper limits are given for 1 of the decisions"), "{message}");
    assert!(message.contains("`power`, `wind`"), "{message}");
    let infinite = text.replace(",4,", ",inf,");
    let message = folder.refusal("t.csv", &infinite, &asked);
    assert!(message.contains("in row 0, `wind`"), "{message}");
    let unnamed = DataRequest { signals: None, ..asked };
    let message = folder.refusal("t.csv", text, &unnamed);
    assert!(message.contains("\"*\" is all columns that have no other role"), "{message}");
}

#[test]
fn a_bound_of_a_table_may_be_missing() {
    let request = DataRequest { upper: vec!["gaps".to_owned()], ..DataRequest::default() };
    let request = DataRequest { decisions: Some("decisions_0".to_owned()), ..request };
    for name in ["snappy.parquet", "lz4.feather"] {
        assert!(load(&table(name), &request).unwrap().constraints.is_some(), "{name}");
    }
}
