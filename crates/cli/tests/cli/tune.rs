//! `argwhy tune`: settings chosen by rows kept aside.

use crate::common::{Folder, noise, says};
use serde_json::Value;
use std::fmt::Write;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// A smooth law of two signals cut to [-1, 1], with noise.
fn table(rows: usize) -> String {
    let mut text = "signals_0,signals_1,decisions,plant\n".to_owned();
    for i in 0..rows {
        let (a, b) = (noise(i, 0), noise(i, 1));
        let wish = 1.2 * (3.0 * a).sin() + a * b + 0.2 * noise(i, 2);
        writeln!(text, "{a:?},{b:?},{:?},p{}", wish.clamp(-1.0, 1.0), i / 20).unwrap();
    }
    text
}

const SMALL: &str = "kernel = [\"rbf\", \"linear\"]\ntrend = [\"none\", \"constant\"]\n\
                     regularization = [1e-4, 1e-2, 1.0]\n";

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("data.csv", table(120));
    folder.write("grid.toml", SMALL);
    folder
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn the_best_settings_are_a_config_file_of_fit() {
    let folder = folder();
    let args = ["tune", "data.csv", "--bounds=-1,1", "--grid=grid.toml", "--json"];
    let ran = folder.run(args).exits(0);
    let found = ran.json();
    let best = &found["best"];
    assert_eq!((&best["kernel"], &found["finished"]), (&"rbf".into(), &true.into()));
    let last = |t: &&Value| t["round"] == 1;
    let trials = found["trials"].as_array().unwrap();
    let errors = trials.iter().filter(last).map(|t| number(&t["error"]));
    assert_eq!(number(&best["error"]), errors.fold(f64::INFINITY, f64::min));
    // Every combination in the first round.
    assert_eq!(trials.iter().filter(|t| t["round"] == 0).count(), 12);
    assert!(trials.iter().filter(last).all(|t| number(&t["error_spread"]) > 0.0));
    assert!(number(&best["r2"]) > 0.8 && number(&best["regret"]) > 0.0, "{best}");
    says(&ran.stderr, &["argwhy fit data.csv --config", "best.toml"]);
    let config = ["--config=argwhy-tune/best.toml", "-o", "m.argwhy", "-q", "--json"];
    let fitted = folder.run(["fit", "data.csv"].iter().chain(&config)).exits(0).json();
    assert_eq!(fitted["regularization"], best["regularization"]);
    let inside = folder.run(["inspect", "m.argwhy", "--json"]).exits(0).json();
    assert_eq!(inside["settings"]["trend"], best["trend"]);
    assert_eq!(inside["settings"]["bounds"], "-1,1");
    let page = folder.text("argwhy-tune/report.html");
    says(&page, &["The landscape", "Map of", "error bars", "regularization = "]);
}

#[test]
fn the_usual_search_is_no_worse_than_no_search() {
    let folder = folder();
    let args = ["tune", "data.csv", "--bounds=-1,1", "--json", "--features=raw", "--kernel=rbf"];
    let found = folder.run(args).exits(0).json();
    let trials = found["trials"].as_array().unwrap();
    let untuned = |t: &&Value| {
        t["round"] == 1 && t["candidate"] == 0 && t["settings"].as_object().unwrap().len() == 1
    };
    let untuned = trials.iter().filter(untuned).map(|t| number(&t["error"]));
    let untuned = untuned.reduce(f64::min).unwrap();
    assert!(number(&found["best"]["error"]) <= untuned);
    // What is given is not searched.
    assert!(trials.iter().all(|t| t["settings"]["kernel"].is_null()));
    assert!(trials.iter().any(|t| t["settings"]["trend"] == "linear"));
    let by_regret = folder.run(args.iter().chain(&["--judge=regret"])).exits(0).json();
    let last = by_regret["trials"].as_array().unwrap().iter().filter(|t| t["round"] == 1);
    let least = last.map(|t| number(&t["regret"])).fold(f64::INFINITY, f64::min);
    assert_eq!(number(&by_regret["best"]["regret"]), least);
}

#[test]
fn fit_can_tune_first() {
    let folder = folder();
    let args = ["fit", "data.csv", "-o", "m.argwhy", "--bounds=-1,1", "--tune", "--kernel=rbf"];
    let ran = folder.run(args.iter().chain(&["--features=raw", "--json"])).exits(0);
    says(&ran.stderr, &["chosen among", "rbf", "verdict"]);
    let untuned = folder.run(args.iter().filter(|a| **a != "--tune").chain(&["--json"])).exits(0);
    let r2 = |of: &Value| number(&of["judged"]["r2"]);
    assert!(r2(&ran.json()) > r2(&untuned.json()));
}

#[test]
fn a_search_that_was_stopped_goes_on() {
    let folder = folder();
    let args = ["tune", "data.csv", "--bounds=-1,1", "--grid=grid.toml", "--json"];
    let whole = folder.run(args).exits(0).json();
    // As if it had been killed in the middle of writing a line.
    let text = folder.text("argwhy-tune/trials.jsonl");
    let cut: Vec<&str> = text.lines().take(7).collect();
    folder.write("argwhy-tune/trials.jsonl", format!("{}\n{{\"set", cut.join("\n")));
    let resumed = folder.run(args.iter().chain(&["--resume"])).exits(0).json();
    assert_eq!(resumed["best"], whole["best"]);
    // What was known is taken as it was, to the second.
    assert_eq!(
        resumed["trials"].as_array().unwrap()[..6],
        whole["trials"].as_array().unwrap()[..6]
    );
    let other = args.iter().chain(&["--resume", "--seed=3"]);
    says(&folder.run(other).exits(2).stderr, &["other data, rows or settings", "--resume"]);
}

/// Whatever moment it is killed at, what is known stays known and the search ends where it would
/// have.
#[cfg(target_os = "linux")]
#[test]
fn killed_again_and_again_a_search_ends_where_it_would_have() {
    let folder = Folder::new();
    folder.write("data.csv", table(500));
    let many = "gamma = [0.25, 0.5, 1.0, 2.0, 4.0]\n".to_owned() + SMALL;
    folder.write("grid.toml", many);
    let args = ["tune", "data.csv", "--bounds=-1,1", "--grid=grid.toml", "--json", "--threads=1"];
    let whole = folder.run(args.iter().chain(&["-o", "whole"])).exits(0).json();
    let record = folder.path("argwhy-tune/trials.jsonl");
    let known = || std::fs::read_to_string(&record).map_or(0, |text| text.lines().count());
    let (mut state, mut most) = (11_u64, 0);
    for kill in 0..100 {
        let resume = record.exists().then_some("--resume");
        let mut child = Command::new(assert_cmd::cargo::cargo_bin!("argwhy"))
            .args(args)
            .args(resume)
            .current_dir(folder.path(""))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        sleep(Duration::from_millis(10 + (state >> 33) % 90));
        child.kill().unwrap();
        let said = String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap();
        assert!(!said.contains("error:"), "kill {kill}: {said}");
        // But for the line that was being written.
        assert!(known() + 1 >= most, "kill {kill}: {} lines of {most}", known());
        most = most.max(known());
    }
    let resume = record.exists().then_some("--resume");
    let resumed = folder.run(args.iter().copied().chain(resume)).exits(0).json();
    assert_eq!(resumed["best"], whole["best"]);
    let settings = |found: &Value| -> Vec<Value> {
        let trials = found["trials"].as_array().unwrap().iter();
        trials.map(|t| serde_json::json!([t["round"], t["settings"], t["error"]])).collect()
    };
    assert_eq!(settings(&resumed), settings(&whole));
}

/// Ctrl-C in the middle: the best so far is a config file, and the search can go on.
#[cfg(unix)]
#[test]
fn a_search_that_is_interrupted_keeps_what_it_knows() {
    let folder = Folder::new();
    folder.write("data.csv", table(2500));
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("argwhy"))
        .args(["tune", "data.csv", "--bounds=-1,1", "--budget=1h", "--json"])
        .current_dir(folder.path(""))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let trials = || std::fs::read_to_string(folder.path("argwhy-tune/trials.jsonl"));
    // A head and two trials.
    while !trials().is_ok_and(|text| text.lines().count() > 2) {
        assert!(child.try_wait().unwrap().is_none(), "it ended before its second trial");
        sleep(Duration::from_millis(5));
    }
    assert!(crate::common::signal(&child, "INT"));
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    says(&stderr, &["the best so far is kept", "--resume"]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["finished"], false);
    assert!(number(&found["best"]["error"]) > 0.0);
    let config = ["--config=argwhy-tune/best.toml", "-o", "m.argwhy", "-q", "--holdout=0"];
    folder.run(["fit", "data.csv", "--rows=0:300"].iter().chain(&config)).exits(0);
}

#[test]
fn rows_are_kept_aside_as_in_a_fit() {
    let folder = folder();
    let by = |more: &[&str]| {
        let args = ["tune", "data.csv", "--bounds=-1,1", "--grid=grid.toml", "--json", "-q"];
        folder.run(args.iter().chain(more)).exits(0).json()["by"].clone()
    };
    assert_eq!(by(&[]), "rows");
    assert_eq!(by(&["--groups=plant"]), "groups");
    assert_eq!(by(&["--order=time", "--folds=3"]), "time");
}

#[test]
fn bad_searches_are_refused_in_a_sentence() {
    let folder = folder();
    let told = |more: &[&str]| {
        let args = ["tune", "data.csv", "--bounds=-1,1"].iter().chain(more);
        folder.run(args).exits(2).stderr
    };
    says(&told(&["--folds=200"]), &["120 rows cannot be divided into 200 parts"]);
    says(&told(&["--folds=1"]), &["at least two"]);
    says(
        &told(&["--budget=1e-9s", "--grid=grid.toml"]),
        &["no time for a single trial", "--budget"],
    );
    says(&told(&["--budget=soon"]), &["90s, 5min or 1h"]);
    assert!(!folder.path("argwhy-tune").exists(), "an empty folder stays behind");
    folder.write("grid.toml", "kernel = [\"linear\"]\ngamma = [1.0, 2.0]\n");
    says(&told(&["--grid=grid.toml"]), &["none of the 2 settings", "gamma"]);
    folder.write("grid.toml", "krenel = [\"rbf\"]\n");
    says(&told(&["--grid=grid.toml"]), &["krenel", "`kernel`"]);
    folder.write("grid.toml", "kernel = [\n");
    says(&told(&["--grid=grid.toml"]), &["grid.toml"]);
    says(&told(&["--resume", "-o", "nowhere"]), &["no search to resume"]);
    says(&told(&["--groups=plant", "--order=time"]), &["--groups", "--order"]);
}

/// One of four signals decides; the others are noise of the same width.
#[test]
fn signals_that_do_not_matter_get_a_long_scale() {
    let folder = Folder::new();
    let mut text = "signals_0,signals_1,signals_2,signals_3,decisions\n".to_owned();
    for i in 0..260 {
        let s: Vec<f64> = (0..4).map(|j| noise(i, j)).collect();
        let wish = 1.2 * (6.0 * s[1]).sin() + 0.1 * noise(i, 5);
        writeln!(text, "{},{},{},{},{}", s[0], s[1], s[2], s[3], wish.clamp(-1.0, 1.0)).unwrap();
    }
    folder.write("data.csv", text);
    let args = ["tune", "data.csv", "--bounds=-1,1", "--kernel=rbf", "--gamma=1", "--trend=none"];
    let auto = ["--length-scales=auto", "-k=1e-3", "--features=raw", "--json"];
    let found = folder.run(args.iter().chain(&auto)).exits(0).json();
    let scales: Vec<f64> =
        found["best"]["length-scales"].as_array().unwrap().iter().map(number).collect();
    assert!([0, 2, 3].iter().all(|&j| scales[j] > 2.0 * scales[1]), "{scales:?}");
    let without = found["trials"]
        .as_array()
        .unwrap()
        .iter()
        .find(|t| t["round"] == 1 && t["settings"]["length-scales"].is_null());
    assert!(number(&found["best"]["error"]) < 0.8 * number(&without.unwrap()["error"]));
    says(&folder.text("argwhy-tune/best.toml"), &["length-scales = ["]);
    let config = ["--config=argwhy-tune/best.toml", "-o", "m.argwhy", "-q", "--json"];
    let fitted = folder.run(["fit", "data.csv"].iter().chain(&config)).exits(0).json();
    assert!(number(&fitted["judged"]["r2"]) > 0.9, "{fitted}");
    // The search again, from its record.
    let again = folder.run(args.iter().chain(&auto).chain(&["--resume"])).exits(0).json();
    assert_eq!(again["best"], found["best"]);
    let refused = ["fit", "data.csv", "-o", "n.argwhy", "--length-scales=auto"];
    says(&folder.refused(refused), &["--tune"]);
    let poly = ["tune", "data.csv", "--features=poly2", "--length-scales=auto"];
    says(&folder.refused(poly), &["--features raw", "poly2"]);
}
