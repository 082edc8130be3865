//! What is done to data while it is read: gaps, categories, cycles, rows left out, limits found.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::files::{Folder, committed, decisions, keys, only, signals};
use argwhy_io::{Budget, DataRequest, Encoding, Missing, OneHot, RowRanges, Thinning, load};
use ndarray::{Axis, array, s};
use std::fmt::Write;

const DAYS: &str = "day,hour,load,power\nTue,0,1,10\nMon,6,2,20\nTue,12,3,30\nWed,18,4,40\n";

fn coded(signals: &str) -> DataRequest {
    let encoding =
        Encoding { one_hot: vec![OneHot::new("day")], cyclic: vec!["hour:24".parse().unwrap()] };
    DataRequest { encoding, ..keys(signals, "power") }
}

#[test]
fn categories_and_cycles_become_numbers_and_are_remembered() {
    let folder = Folder::new();
    let loaded = folder.load("t.csv", DAYS, &coded("load,day,hour")).unwrap();
    let names = ["load", "day=Mon", "day=Tue", "day=Wed", "sin(hour/24)", "cos(hour/24)"];
    assert_eq!(loaded.names.signals, names);
    assert_eq!(
        loaded.signals.slice(s![.., ..4]),
        array![
            [1.0, 0.0, 1.0, 0.0],
            [2.0, 1.0, 0.0, 0.0],
            [3.0, 0.0, 1.0, 0.0],
            [4.0, 0.0, 0.0, 1.0],
        ]
    );
    let angles = array![[0.0, 1.0], [1.0, 0.0], [0.0, -1.0], [-1.0, 0.0]];
    let off = &loaded.signals.slice(s![.., 4..]) - &angles;
    assert!(off.iter().all(|off| off.abs() < 1e-12));
    // What a model remembers finds the same columns, whatever their order and values.
    let again = DataRequest {
        signal_names: loaded.names.signals.clone(),
        encoding: loaded.encoding.clone(),
        ..DataRequest::signals_only()
    };
    let other = "hour,day,load\n12,Tue,3\n";
    let found = folder.load("u.csv", other, &again).unwrap();
    assert_eq!(found.signals.row(0), loaded.signals.row(2));
    let message = folder.refusal("u.csv", "hour,day,load\n12,Sun,3\n", &again);
    assert!(message.contains("`Sun`; the model knows Mon, Tue, Wed"), "{message}");
    let message = folder.refusal("t.csv", DAYS, &coded("load,hour"));
    assert!(message.contains("one_hot names `day`"), "{message}");
    let message = folder.refusal("t.csv", DAYS, &keys("load,day", "power"));
    assert!(message.contains("`Tue` is not a number") && message.contains("one_hot=\"day\""));
    let mut too_many = String::new();
    (0..1001).for_each(|i| writeln!(too_many, "v{i},0,1,1").unwrap());
    let message =
        folder.refusal("t.csv", format!("day,hour,load,power\n{too_many}"), &coded("day,hour"));
    assert!(message.contains("line 1002") && message.contains("1000 values at most"), "{message}");
}

#[test]
fn dates_are_refused_or_go_round() {
    let folder = Folder::new();
    let text = "when,power\n2024-02-29 06:00,1\n2024-03-01T12:00:00Z,2\n";
    let message = folder.refusal("t.csv", text, &keys("when", "power"));
    assert!(message.contains("cyclic=\"when:day\""), "{message}");
    let by = |cyclic: &[&str]| DataRequest {
        encoding: Encoding {
            cyclic: cyclic.iter().map(|text| text.parse().unwrap()).collect(),
            ..Encoding::default()
        },
        ..keys("when", "power")
    };
    let loaded = folder.load("t.csv", text, &by(&["when:day", "when:year"])).unwrap();
    assert_eq!(loaded.signals.dim(), (2, 4));
    assert!((loaded.signals[[0, 0]] - 1.0).abs() < 1e-12);
    assert!((loaded.signals[[1, 1]] + 1.0).abs() < 1e-12);
    let message = folder.refusal("t.csv", "when,power\nsoon,1\n", &by(&["when:day"]));
    assert!(message.contains("`soon`; expected a date"), "{message}");
    // Time stamps of parquet and Arrow are dates, too.
    for name in ["tables/snappy.parquet", "tables/lz4.feather"] {
        let path = committed(name);
        let request =
            DataRequest { decisions: Some("decisions_0".to_owned()), ..by(&["when:day"]) };
        let loaded = load(&path, &request).unwrap();
        assert!((loaded.signals[[6, 0]] - 1.0).abs() < 1e-12, "{name}");
        let error = load(&path, &keys("when", "decisions_0")).unwrap_err().to_string();
        assert!(error.contains("`when` holds dates"), "{error}");
        let hot = Encoding { one_hot: vec![OneHot::new("day")], ..Encoding::default() };
        let request = DataRequest { encoding: hot, ..keys("day,signals_0", "decisions_0") };
        let loaded = load(&path, &request).unwrap();
        assert_eq!(loaded.signals.row(4), array![0.0, 1.0, 0.0, 4.0], "{name}");
    }
}

#[test]
fn gaps_are_named_left_out_or_filled_in() {
    let folder = Folder::new();
    let text = "a,b,u,w,g\n1,2,3,1,x\n,NA,3,2,x\n3,4,3,3,y\n5,nan,3,4,y\n5,6,,5,z\n";
    let with = |missing, signals: &str| DataRequest {
        missing,
        weights: Some("w".to_owned()),
        groups: Some("g".to_owned()),
        ..keys(signals, "u")
    };
    let message = folder.refusal("t.csv", text, &with(Missing::Error, "a,b"));
    for part in ["4 values are missing", "`a` in row 1;", "`b` in rows 1, 3;", "`u` in row 4 "] {
        assert!(message.contains(part), "{message}");
    }
    assert!(message.contains("missing=\"drop\"") && !message.contains("mean"), "{message}");
    let loaded = folder.load("t.csv", text, &with(Missing::Drop, "a,b")).unwrap();
    assert_eq!(loaded.signals, array![[1.0, 2.0], [3.0, 4.0]]);
    assert_eq!((loaded.places, loaded.n_dropped), (Some(vec![0, 2]), 3));
    assert_eq!(loaded.weights, Some(vec![1.0, 3.0]));
    assert_eq!(loaded.groups.unwrap().of_rows, [0, 1]);
    // Nobody knows what an expert would have decided.
    let message = folder.refusal("t.csv", text, &with(Missing::Mean, "a,b"));
    assert!(message.contains("1 value is missing") && message.contains("`u` in row 4"));
    let rows: Option<RowRanges> = Some("0:4".parse().unwrap());
    let request = DataRequest { rows, ..with(Missing::Mean, "a,b") };
    let loaded = folder.load("t.csv", text, &request).unwrap();
    assert_eq!(loaded.signals, array![[1.0, 2.0], [3.0, 3.0], [3.0, 4.0], [5.0, 3.0]]);
    assert_eq!(loaded.fill, Some(vec![3.0, 3.0]));
    let known = DataRequest { fill: vec![-1.0, -2.0], ..only("a,b") };
    let loaded = folder.load("t.csv", text, &known).unwrap();
    assert_eq!(loaded.signals.row(1), array![-1.0, -2.0]);
    let error = load(&committed("tables/snappy.parquet"), &only("gaps")).unwrap_err().to_string();
    assert!(
        error.contains("10 values are missing")
            && error.contains("`gaps` in rows 1, 5, 9, 13, 17, …")
    );
}

#[test]
fn rows_are_left_out_while_reading() {
    let thinned = |thinning: Thinning| DataRequest { thinning, ..DataRequest::default() };
    let every = |n| Thinning { every: Some(n), ..Thinning::default() };
    let sample = |n, seed| Thinning { sample: Some(n), seed, ..Thinning::default() };
    for name in [
        "plain.npz",
        "d4rl.hdf5",
        "tables/second.parquet",
        "tables/lz4.feather",
        "tables/book.xlsx",
    ] {
        let path = committed(name);
        let all = load(&path, &DataRequest::default()).unwrap().signals;
        let loaded = load(&path, &thinned(every(5))).unwrap();
        let places: Vec<usize> = (0..all.nrows()).step_by(5).collect();
        assert_eq!(loaded.signals, all.select(Axis(0), &places), "{name}");
        assert_eq!(loaded.places, Some(places));
        let first = load(&path, &thinned(sample(4, 0))).unwrap();
        assert_eq!(first.signals.nrows(), 4);
        assert_eq!(first, load(&path, &thinned(sample(4, 0))).unwrap());
        let places = first.places.clone().unwrap();
        assert_eq!(first.signals, all.select(Axis(0), &places), "{name}");
        let of_rows = DataRequest { rows: Some("3:9".parse().unwrap()), ..thinned(every(2)) };
        assert_eq!(load(&path, &of_rows).unwrap().places, Some(vec![3, 5, 7]));
    }
    let episodes = |range: &str| {
        thinned(Thinning { episodes: Some(range.parse().unwrap()), ..Thinning::default() })
    };
    for name in ["minari", "robomimic.hdf5"] {
        let loaded = load(&committed(name), &episodes("1:3")).unwrap();
        assert_eq!(loaded.signals, signals(20, 3).slice(s![3..6, ..]), "{name}");
        assert_eq!(loaded.decisions.unwrap(), decisions(20, 2).slice(s![3..6, ..]));
    }
    let error = load(&committed("plain.npz"), &episodes("0:1")).unwrap_err();
    assert!(error.to_string().ends_with("no episodes to choose from; leave out episodes"));
    assert!(format!("{error:#}").ends_with("no episodes to choose from; leave out --episodes"));
    let error = load(&committed("minari"), &episodes("9:12")).unwrap_err().to_string();
    assert!(error.contains("there are 11 episodes"), "{error}");
    let folder = Folder::new();
    let text = "signals,decisions,terminals\n0,0,0\n1,1,1\n2,2,0\n3,3,true\n4,4,0\n";
    let loaded = folder.load("t.csv", text, &episodes("1:")).unwrap();
    assert_eq!(loaded.signals, array![[2.0], [3.0], [4.0]]);
}

#[test]
fn what_is_left_out_takes_no_memory() {
    let folder = Folder::new();
    let mut text = "signals_0,signals_1,decisions\n".to_owned();
    for i in 0..200_000 {
        writeln!(text, "{i},1,2").unwrap();
    }
    let path = folder.write("t.csv", text);
    let thinning = Thinning { every: Some(1000), ..Thinning::default() };
    // The list of rows is all that grows with the file.
    let budget = Budget::within(4 << 20, 0);
    let loaded = load(&path, &DataRequest { thinning, budget, ..DataRequest::default() }).unwrap();
    assert_eq!(loaded.signals.nrows(), 200);
    assert!(load(&path, &DataRequest { budget, ..DataRequest::default() }).is_err());
}

#[test]
fn robomimics_observations_stand_side_by_side() {
    let path = committed("robomimic.hdf5");
    let loaded = load(&path, &DataRequest { episodes: true, ..DataRequest::default() }).unwrap();
    assert_eq!(loaded.signals, signals(19, 3));
    assert_eq!(loaded.decisions, Some(decisions(19, 2)));
    assert_eq!(loaded.signals_key, "obs/a_position,obs/b_rest");
    assert_eq!(loaded.groups.unwrap().of_rows[..6], [0, 0, 0, 1, 1, 2]);
    let loaded = load(&path, &keys("obs/b_rest", "actions")).unwrap();
    assert_eq!(loaded.signals, signals(19, 3).slice(s![.., 1..]));
    let loaded = load(&path, &keys("states", "actions")).unwrap();
    assert_eq!(loaded.signals, signals(19, 3));
    let both = keys("observations/observation,observations/desired_goal", "actions");
    let loaded = load(&committed("minari-dict.hdf5"), &both).unwrap();
    assert_eq!(loaded.signals.ncols(), 4);
    let loaded =
        load(&committed("d4rl.hdf5"), &keys("observations, infos/qpos", "actions")).unwrap();
    assert_eq!(loaded.signals.slice(s![.., 3..]), signals(12, 3));
}

#[test]
fn an_action_space_has_limits() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("data")).unwrap();
    let main = committed("minari/data/main_data.hdf5");
    std::fs::copy(main, folder.path("data/main_data.hdf5")).unwrap();
    let space =
        r#"{\"type\": \"Box\", \"shape\": [2], \"low\": [-1.0, -2.0], \"high\": [1, Infinity]}"#;
    std::fs::write(
        folder.path("data/metadata.json"),
        format!("{{\"dataset_id\": \"x\", \"action_space\": \"{space}\"}}"),
    )
    .unwrap();
    let limits = load(&folder.path(""), &DataRequest::default()).unwrap().limits.unwrap();
    assert_eq!((limits.lower, limits.upper), (vec![-1.0, -2.0], vec![1.0, f64::INFINITY]));
    assert!(limits.found_in.contains("metadata.json"));
    // Of another number of dimensions, or none: not theirs.
    std::fs::write(folder.path("data/metadata.json"), "{\"action_space\": \"[[[\"}").unwrap();
    assert_eq!(load(&folder.path(""), &DataRequest::default()).unwrap().limits, None);
    assert_eq!(load(&committed("d4rl.hdf5"), &DataRequest::default()).unwrap().limits, None);
}
