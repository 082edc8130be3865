//! Ctrl-C stops at the next step and saves what is reached, certified where there is time for it.

use crate::common::{Folder, signal, written};
use serde_json::Value;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Starts a fit that never ends, sends it a signal once its first step is in the trace, and gives
/// the result.
fn stopped_by(name: &str, rows: usize, more: &[&str]) -> (Folder, Value) {
    let folder = Folder::with_data(rows);
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("argwhy"))
        .args(["fit", "data.csv", "-o", "m.argwhy", "--bounds=-1,1", "--json"])
        .args(["--operator=tiled", "--precision=f64", "--kernel=laplace", "--threads=1"])
        .args(["--tol=1e-300", "--max-iterations=1000000", "--trace=t.jsonl"])
        .args(more)
        .current_dir(folder.path(""))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let started = Instant::now();
    let lines = |trace: String| trace.lines().count();
    let begun =
        || std::fs::read_to_string(folder.path("t.jsonl")).is_ok_and(|trace| lines(trace) > 1);
    while !begun() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before its first step");
        assert!(started.elapsed() < Duration::from_mins(2), "no step in two minutes");
        sleep(Duration::from_millis(5));
    }
    assert!(signal(&child, name));
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("interrupted") && !stderr.contains("panicked"), "{stderr}");
    (folder, serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
fn what_is_reached_is_saved_with_its_certificate() {
    // Few enough for a certificate in time even on a busy machine.
    let (folder, result) = stopped_by("INT", 1000, &[]);
    assert_eq!(result["status"], "interrupted");
    for name in ["objective", "primal", "dual", "gap", "relative_gap"] {
        assert!(result[name].as_f64().is_some_and(f64::is_finite), "{name} in {result}");
    }
    assert!(result["gap"].as_f64().unwrap() >= 0.0);
    let inspected = folder.run(["inspect", "m.argwhy", "--json"]).exits(0).json();
    assert_eq!(result["not_judged"], "the fit was interrupted");
    for (name, value) in result.as_object().unwrap().iter().filter(|(n, _)| *n != "not_judged") {
        assert_eq!(&inspected[name], value, "{name}");
    }
    folder.run(["predict", "m.argwhy", "data.csv", "-o", "p.npy", "--rows=0:50"]).exits(0);
    assert!(written(&folder.path("p.npy")).iter().all(|u| (-1.0..=1.0).contains(u)));
}

/// A certificate would take many seconds here; nobody waits for that.
#[test]
fn without_time_for_a_certificate_what_is_reached_is_a_checkpoint() {
    let blocks = ["--solver=sso", "--block=20", "--init=expert"];
    let (folder, result) = stopped_by("TERM", 60_000, &blocks);
    assert_eq!((&result["status"], &result["model"]), (&"interrupted".into(), &Value::Null));
    assert_eq!(result["checkpoint"], "m.argwhy.checkpoint");
    assert!(!folder.path("m.argwhy").exists());
    let resume = ["-o", "n.argwhy", "--bounds=-1,1", "--resume=m.argwhy.checkpoint"];
    let other = ["--rows=0:100"];
    let said = folder.refused(["fit", "data.csv"].iter().chain(&resume).chain(&other));
    assert!(said.contains("belongs to other rows") && said.contains("--resume"), "{said}");
}

#[test]
fn a_fit_stopped_before_its_first_step_replaces_no_model() {
    let folder = Folder::with_data(300);
    let fit = ["fit", "data.csv", "-o", "m.argwhy", "--bounds=-1,1"];
    let short = || fit.into_iter().chain(["--time-limit=1e-9"]);
    // Without one, what there is is written, as always.
    folder.run(short()).exits(1);
    assert_eq!(folder.run(["inspect", "m.argwhy", "--json"]).exits(0).json()["n_support"], 0);
    folder.run(fit).exits(0);
    let good = std::fs::read(folder.path("m.argwhy")).unwrap();
    let ran = folder.run(short().chain(["--json"])).exits(1);
    assert_eq!(ran.json()["model"], Value::Null);
    assert!(ran.stderr.contains("m.argwhy stays as it was"), "{}", ran.stderr);
    assert_eq!(std::fs::read(folder.path("m.argwhy")).unwrap(), good);
}

/// Ends `predict` while it writes a large csv file; whatever ends it, nothing hidden stays behind.
#[cfg(target_os = "linux")]
#[test]
fn a_signal_during_predict_leaves_no_temporary_file() {
    let folder = Folder::with_data(300);
    let primal = ["--kernel=linear", "--primal", "--bounds=-1,1"];
    folder.run(["fit", "data.csv", "-o", "m.argwhy"].into_iter().chain(primal)).exits(0);
    let header = std::fs::read_to_string(folder.path("data.csv")).unwrap();
    let (names, rows) = header.split_once('\n').unwrap();
    std::fs::write(folder.path("many.csv"), format!("{names}\n{}", rows.repeat(300))).unwrap();
    for (name, old) in [("INT", false), ("TERM", true), ("KILL", true)] {
        if old {
            std::fs::write(folder.path("p.csv"), "old").unwrap();
        }
        // From early on to after its end: at whatever moment it is stopped.
        for wait in [20, 60, 100, 200, 400] {
            let mut child = Command::new(assert_cmd::cargo::cargo_bin!("argwhy"))
                .args(["predict", "m.argwhy", "many.csv", "-o", "p.csv", "--quiet"])
                .current_dir(folder.path(""))
                .spawn()
                .unwrap();
            sleep(Duration::from_millis(wait));
            // It may have ended already.
            signal(&child, name);
            child.wait().unwrap();
            let hidden: Vec<_> = std::fs::read_dir(folder.path(""))
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .filter(|name| name.starts_with('.'))
                .collect();
            assert!(hidden.is_empty(), "{hidden:?} after {name} at {wait} ms");
        }
    }
}
