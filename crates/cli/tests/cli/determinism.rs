//! The same question has the same answer, bit for bit, on any number of threads and however it is
//! asked.

use crate::common::{Folder, signals, timeless, written};
use serde_json::{Value, json};
use std::fmt::Write;

#[test]
fn models_do_not_depend_on_threads_or_operator() {
    let folder = Folder::with_data(700);
    for (kernel, k) in [
        ("rbf", "1e-4"),
        ("laplace", "1e-4"),
        ("linear", "1e-2"),
        ("polynomial", "1e-2"),
        ("matern32", "1e-4"),
        ("matern52 + 0.5*linear", "1e-2"),
    ] {
        let mut models = Vec::new();
        for (threads, operator) in
            [("1", "stored"), ("2", "stored"), ("3", "stored"), ("1", "tiled"), ("3", "tiled")]
        {
            let args = ["fit", "data.csv", "-o", "m.argwhy", "--bounds=-1,1", "-q", "--seed=11"];
            let more = ["--kernel", kernel, "-k", k, "--threads", threads, "--operator", operator];
            folder.run(args.iter().chain(&more)).exits(0);
            models.push(timeless(&folder.path("m.argwhy"), &Value::Null));
        }
        assert!(models.windows(2).all(|pair| pair[0] == pair[1]), "{kernel}");
    }
}

#[test]
fn the_same_run_twice_writes_the_same_bytes_but_for_the_clock() {
    let folder = Folder::with_data(100);
    for name in ["a.argwhy", "b.argwhy"] {
        let args = ["fit", "data.csv", "-o", name, "--bounds=-1,1", "-q", "--report", "r.html"];
        folder.run(args).exits(0);
    }
    let bytes = |name| {
        let path = folder.path(name);
        timeless(&path, &argwhy::load_model(&path).unwrap().settings)
    };
    assert!(bytes("a.argwhy") == bytes("b.argwhy"));
}

#[test]
fn decisions_do_not_depend_on_batch_threads_or_format() {
    let folder = Folder::with_data(150);
    folder.run(["fit", "data.csv", "-o", "m.argwhy", "--bounds=-1,1", "-q"]).exits(0);
    let predict = |more: &[&str]| {
        let args = ["predict", "m.argwhy", "data.csv", "-o", "p.npy", "-q"];
        folder.run(args.iter().chain(more)).exits(0);
        written(&folder.path("p.npy"))
    };
    let whole = predict(&[]);
    for threads in ["1", "2", "3"] {
        assert_eq!(whole, predict(&["--threads", threads]));
    }
    for rows in ["0:1", "7:8", "63:66", "64:65", "149:150", "10:80,0:3", "1:150"] {
        let part = predict(&["--rows", rows]);
        let ranges: argwhy::io::RowRanges = rows.parse().unwrap();
        let chosen: Vec<usize> = ranges.resolve(150).unwrap().into_iter().flatten().collect();
        assert_eq!(part, whole.select(ndarray::Axis(0), &chosen), "{rows}");
    }
    let mut lines = String::new();
    for row in signals(150).rows() {
        writeln!(lines, "{}", json!({ "signal": row.to_vec() })).unwrap();
    }
    let ran = folder.run_with(["predict", "m.argwhy", "--jsonl"], lines).exits(0);
    for (line, row) in ran.stdout.lines().zip(whole.rows()) {
        let answer: Value = serde_json::from_str(line).unwrap();
        assert_eq!(answer["decision"], json!(row.to_vec()));
    }
}
