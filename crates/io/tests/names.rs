//! Names from the header of a table to the model file, and back to columns in any order.

use crate::files::Folder;
use argwhy_core::Predictor;
use argwhy_core::dataset::{Names, Relation};
use argwhy_core::ranges::Ranges;
use argwhy_io::{DataRequest, SharedMatrix, load, load_model, write_decisions};
use ndarray::array;
use std::path::Path;

fn list(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

const DAYS: &str = "load,power,price,p_min\n1,2,3,0.5\n4,5,6,\n";

fn asked(signals: &str) -> DataRequest {
    DataRequest {
        signals: Some(signals.to_owned()),
        decisions: Some("power".to_owned()),
        ..DataRequest::default()
    }
}

fn known() -> DataRequest {
    DataRequest { signal_names: list(&["price", "load"]), ..DataRequest::signals_only() }
}

#[test]
fn columns_keep_their_names_and_numbered_families_have_none() {
    let folder = Folder::new();
    let days = folder.write("days.csv", DAYS);
    let loaded = load(&days, &asked("price,load")).unwrap();
    assert_eq!(loaded.names.signals, list(&["price", "load"]));
    assert_eq!(loaded.names.decisions, list(&["power"]));
    let numbered = folder.write("n.csv", "signals_0,signals_1,decisions_0\n1,2,3\n");
    assert!(load(&numbered, &DataRequest::default()).unwrap().names.is_empty());
    let family = folder.write("f.csv", "x1,x0,power\n1,2,3\n");
    assert_eq!(load(&family, &asked("x")).unwrap().names.signals, list(&["x0", "x1"]));
}

#[test]
fn a_model_finds_its_columns_in_any_order() {
    let folder = Folder::new();
    let days = folder.write("days.csv", DAYS);
    let loaded = load(&days, &known()).unwrap();
    assert_eq!(loaded.signals, array![[3.0, 1.0], [6.0, 4.0]]);
    // Chosen by hand in another order: still by name.
    let chosen = DataRequest { signals: Some("load,price".to_owned()), ..known() };
    assert_eq!(load(&days, &chosen).unwrap().signals, loaded.signals);
    // Decisions too, where they are wanted.
    let both = DataRequest { want_decisions: true, decision_names: list(&["power"]), ..known() };
    assert_eq!(load(&days, &both).unwrap().decisions, Some(array![[2.0], [5.0]]));
}

#[test]
fn what_is_missing_or_moved_is_named() {
    let folder = Folder::new();
    let refusal = |text: &str, request: &DataRequest| folder.refusal("a.csv", text, request);
    let message = refusal("price,wind\n1,2\n", &known());
    assert!(message.contains("lacks `load`") && message.contains("`wind`"), "{message}");
    let chosen = DataRequest { signals: Some("load,wind".to_owned()), ..known() };
    let message = refusal("load,wind\n1,2\n", &chosen);
    assert!(message.contains("`load`") && message.contains("number 1"), "{message}");
    // Other names than the model's are taken in their order.
    let other = folder.write("b.csv", "a,b\n1,2\n");
    let chosen = DataRequest { signals: Some("a,b".to_owned()), ..known() };
    let loaded = load(&other, &chosen).unwrap();
    assert_eq!((loaded.signals, loaded.names.signals), (array![[1.0, 2.0]], list(&["a", "b"])));
}

#[test]
fn limits_come_from_named_columns() {
    let folder = Folder::new();
    let days = folder.write("days.csv", DAYS);
    let request = DataRequest { lower: list(&["p_min"]), ..asked("price,load") };
    let loaded = load(&days, &request).unwrap();
    let lower = loaded.constraints.unwrap();
    // An empty cell is no limit.
    assert_eq!(lower.lower().unwrap(), array![[0.5], [f64::NEG_INFINITY]]);
    assert_eq!(loaded.names.lower, list(&["p_min"]));
    let message = folder.refusal("a.csv", "price,load,power\n1,2,3\n", &request);
    assert!(message.contains("lacks `p_min`"), "{message}");
    let two = DataRequest { lower: list(&["p_min", "p_min"]), ..asked("price,load") };
    let message = folder.refusal("days.csv", DAYS, &two);
    assert!(message.contains('2') && message.contains("lower"), "{message}");
}

#[test]
fn a_matrix_has_names_for_its_rows_and_its_columns_in_any_order() {
    let folder = Folder::new();
    let path = folder.write("m.csv", "limit,heat,power,W\ngrid connection,1,2,9\n\"a, b\",3,4,8\n");
    let load = |path: &Path| SharedMatrix::load(path, Relation::AtMost).unwrap();
    let matrix = load(&path).ordered_by(&list(&["power", "heat"])).unwrap();
    assert_eq!(matrix.names, list(&["grid connection", "a, b"]));
    assert_eq!(matrix.matrix, array![[2.0, 1.0], [4.0, 3.0]]);
    assert_eq!(matrix.bound, Some(array![9.0, 8.0]));
    // Columns with other names stand in the decisions' order.
    let other = load(&path).ordered_by(&list(&["x", "y"])).unwrap();
    assert_eq!(other.matrix, array![[1.0, 2.0], [3.0, 4.0]]);
    let error = load(&path).ordered_by(&list(&["power", "wind"])).unwrap_err().to_string();
    assert!(error.contains("lacks `wind`"), "{error}");
    for wrong in ["limit,M_0,W\na,1,2\na,3,4\n", "limit,M_0,W\n,1,2\n"] {
        let path = folder.write("w.csv", wrong);
        let error = SharedMatrix::load(&path, Relation::AtMost).unwrap_err().to_string();
        assert!(error.contains("`limit`"), "{error}");
    }
}

#[test]
fn decisions_are_written_under_their_names() {
    let folder = Folder::new();
    let path = folder.path("d.csv");
    write_decisions(&path, array![[1.0, 2.0]].view(), &list(&["power", "heat, \"kW\""])).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, "power,\"heat, \"\"kW\"\"\"\n1.0,2.0\n");
}

/// Files written by the version before names, and by the one that brought them.
#[test]
fn models_of_both_formats_open_and_decide_the_same() {
    let file = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    let (old, new) =
        (load_model(&file("format-2.safetensors")), load_model(&file("format-3.safetensors")));
    let (old, new) = (old.unwrap().model, new.unwrap().model);
    assert_eq!(old.names, Names::default());
    assert_eq!(new.names.signals, list(&["price", "load"]));
    assert_eq!(new.names.decisions, list(&["power_kw"]));
    let signals = array![[20.0, 0.5], [50.0, 0.1]];
    let decide = |model| Predictor::new(model).unwrap().predict(signals.view()).unwrap();
    assert_eq!(decide(&old), decide(&new));
}

/// A file of the version that brought ranges and rows that do not fit; older ones say that they have
/// none.
#[test]
fn a_model_with_ranges_opens_and_older_ones_say_that_they_have_none() {
    let file = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    let model = load_model(&file("format-4.safetensors")).unwrap().model;
    let misfits = model.misfits.as_ref().unwrap();
    assert_eq!((misfits.rows.len(), misfits.rows[0].row), (10, 4));
    let signals = array![[0.2, -0.4]];
    let predictor = Predictor::new(&model).unwrap();
    let decided = predictor.predict(signals.view()).unwrap();
    let sets = predictor.sets(None, 1).unwrap();
    let ranges = Ranges::new(&model, 0.9).unwrap();
    let (low, high) = ranges.around(signals.view(), decided.view(), &sets).unwrap();
    let [low, u, high] = [low, decided, high].map(|part| part[[0, 0]]);
    assert!(-1.0 <= low && low < u && u < high && high <= 1.0, "{low} {u} {high}");
    for older in ["format-2.safetensors", "format-3.safetensors"] {
        let model = load_model(&file(older)).unwrap().model;
        let told = Ranges::new(&model, 0.9).err().unwrap();
        assert_eq!(told, argwhy_core::Error::NoRanges);
        assert!(format!("{told:#}").contains("--holdout"));
    }
}
