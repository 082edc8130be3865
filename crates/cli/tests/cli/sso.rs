//! `fit --solver sso` and `ablate`.

use crate::common::{Folder, says, timeless};
use serde_json::Value;

fn fit<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let args = ["fit", "data.csv", "-o", "m.argwhy", "--bounds=-1,1", "--solver=sso", "--json"];
    args.iter().chain(more).copied().collect()
}

#[test]
fn every_rule_start_and_block_reaches_newtons_optimum() {
    let folder = Folder::with_data(60);
    let objective = |result: &Value| result["objective"].as_f64().unwrap();
    let newton = folder
        .run([
            "fit",
            "data.csv",
            "-o",
            "n.argwhy",
            "--bounds=-1,1",
            "-k=1e-3",
            "--tol=1e-10",
            "--json",
        ])
        .exits(0);
    let expected = objective(&newton.json());
    for more in [
        &[][..],
        &["--selection=violation", "--block=0.25"],
        &["--selection=paper", "--init=paper-warm-up", "--warm-up=3"],
        &["--selection=cyclic", "--init=expert", "--block=7"],
        &["--selection=random", "--init=zero", "--block=20"],
        &["--warm-up=60", "--block=1.0"],
    ] {
        let args = fit(more);
        let args = args.iter().chain(&["-k=1e-3", "--tol=1e-9", "--max-iterations=100000"]);
        let result = folder.run(args).exits(0).json();
        assert_eq!(result["status"], "solved", "{more:?}");
        assert!((objective(&result) / expected - 1.0).abs() < 1e-7, "{more:?} {result}");
    }
}

#[test]
fn a_single_sample_is_a_block_too() {
    let folder = Folder::with_data(12);
    let result = folder
        .run(fit(&["--block=1", "-k", "0.01", "--max-iterations=100000", "--trace=t.jsonl"]))
        .exits(0)
        .json();
    assert_eq!(result["status"], "solved");
    let objectives: Vec<f64> = steps(&folder).iter().map(|s| number(s, "objective")).collect();
    assert!(objectives.len() > 12);
    assert!(objectives.windows(2).all(|w| w[1] <= w[0] + 1e-12), "{objectives:?}");
}

/// Issue 21, fault 11: a warm-up of two parts was nobody's wish.
#[test]
fn one_two_or_three_samples_are_enough() {
    for rows in [1, 2, 3] {
        let folder = Folder::with_data(rows);
        let newton = ["fit", "data.csv", "-o", "n.argwhy", "--bounds=-1,1", "-k=0.01", "--json"];
        let expected = folder.run(newton).exits(0).json()["objective"].as_f64().unwrap();
        let most = format!("--block={rows}");
        for more in [
            &[][..],
            &["--block=1"],
            &[most.as_str()],
            &["--block=1.0"],
            &["--block=0.01"],
            &["--warm-up=1"],
            &["--init=paper-warm-up"],
            &["--init=expert"],
            &["--init=zero"],
            &["--selection=paper"],
            &["--selection=cyclic"],
            &["--selection=random"],
        ] {
            let args = fit(more);
            let result = folder.run(args.iter().chain(&["-k=0.01"])).exits(0).json();
            let objective = result["objective"].as_f64().unwrap();
            assert!((objective - expected).abs() <= 1e-6, "{rows} {more:?}: {result}");
        }
        let refused = folder.run(fit(&[&format!("--warm-up={}", rows + 1)])).exits(2);
        says(&refused.stderr, &["warm-up is", "no more parts than samples"]);
    }
}

fn steps(folder: &Folder) -> Vec<Value> {
    folder.text("t.jsonl").lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

fn number(step: &Value, name: &str) -> f64 {
    step[name].as_f64().unwrap_or_else(|| panic!("{name} in {step}"))
}

#[test]
fn the_trace_tells_every_block_and_the_same_seed_the_same_bits() {
    let folder = Folder::with_data(60);
    let run = |seed: &str, threads: &str| -> (Vec<Value>, Vec<u8>) {
        let limited = ["--trace=t.jsonl", "--block=0.2", "--tol=1e-12", "--max-iterations=9"];
        let args = fit(&limited);
        folder.run(args.iter().chain(&[seed, threads])).exits(1);
        let steps = steps(&folder);
        for (at, step) in steps.iter().enumerate() {
            assert_eq!(step["iteration"], at);
            for name in ["objective", "gap", "relative_gap", "violation", "seconds"] {
                assert!(number(step, name) >= 0.0);
            }
            // Twelve of sixty, three of them by the rule.
            let block = &step["block"];
            assert_eq!(block.is_null(), at == 0, "{step}");
            if at > 0 {
                assert_eq!((number(block, "samples"), number(block, "chosen")), (12.0, 3.0));
                assert!(number(block, "moved") <= 12.0);
            }
        }
        (steps, timeless(&folder.path("m.argwhy"), &Value::Null))
    };
    let (steps, model) = run("--seed=3", "--threads=1");
    assert_eq!(steps.len(), 10);
    assert_eq!(model, run("--seed=3", "--threads=4").1);
    assert_ne!(model, run("--seed=4", "--threads=1").1);
}

#[test]
fn sizes_rules_and_starts_that_make_no_sense_list_what_is_allowed() {
    let folder = Folder::with_data(30);
    for (setting, parts) in [
        ("--block=0", &["'0'", "0.5", "2500"][..]),
        ("--block=31", &["block is 31", "30 samples"]),
        ("--block=0.0", &["0.0", "0.5"]),
        ("--block=1.5", &["1.5", "up to 1"]),
        ("--block=-3", &["-3"]),
        ("--block=half", &["half", "0.5", "2500"]),
        ("--block=nan", &["nan"]),
        ("--concurrent-blocks=0", &["concurrent-blocks is 0"]),
        (
            "--concurrent-blocks=3",
            &["concurrent-blocks is 3 of 15 samples", "30", "smaller blocks"],
        ),
        ("--warm-up=31", &["warm-up is 31", "30"]),
        ("--warm-up=0", &["warm-up is 0"]),
        ("--selection=greedy", &["greedy", "violation", "paper", "cyclic", "random"]),
        ("--init=ones", &["ones", "warm-up", "paper-warm-up", "expert", "zero"]),
    ] {
        let ran = folder.run(fit(&[setting])).exits(2);
        says(&ran.stderr, parts);
        assert!(!folder.path("m.argwhy").exists());
    }
}

#[test]
fn ablate_writes_a_trace_a_variant_a_table_and_a_report() {
    let folder = Folder::with_data(80);
    let ran = folder
        .run([
            "ablate",
            "data.csv",
            "--bounds=-1,1",
            "-o",
            "out",
            "--iterations=6",
            "--seeds=2",
            "-k",
            "1e-3",
        ])
        .exits(0);
    says(
        &ran.stdout,
        &["| data | 80 | Newton |", "| data | 80 | violation |", "| data | 80 | paper |"],
    );
    assert_eq!(folder.text("out/table.md"), ran.stdout);
    let traces = std::fs::read_dir(folder.path("out"))
        .unwrap()
        .filter(|f| f.as_ref().unwrap().path().extension().is_some_and(|e| e == "jsonl"))
        .count();
    assert_eq!(traces, 18);
    let report = folder.text("out/report.html");
    says(&report, &["<svg", "violation", "paper, no warm-up (zero)"]);
    assert!(!report.contains("http://") || report.contains("http://www.w3.org"), "self-contained");
}

#[test]
fn ablate_refuses_what_it_cannot_run() {
    let folder = Folder::with_data(20);
    let refused = |more: &[&str]| {
        folder.run(["ablate", "data.csv", "--bounds=-1,1"].iter().chain(more)).exits(2).stderr
    };
    says(&refused(&["--only=greedy"]), &["greedy", "violation, expert"]);
    says(&refused(&["--seeds=0"]), &["seeds"]);
    says(&refused(&["-k", "1e-6,1e-5"]), &["2 regularizations for 1 data sets"]);
    says(&refused(&["--block=21"]), &["block is 21"]);
    says(&folder.run(["ablate", "missing.npz"]).exits(2).stderr, &["missing.npz"]);
}
