//! `argwhy demo charging`: its figures, its files, and that a second run gives the same.

use crate::common::Folder;
use argwhy::io::DataRequest;
use ndarray::Array2;

const FILES: [&str; 9] = [
    "README.txt",
    "decisions.csv",
    "depot.argwhy",
    "held-out.csv",
    "history.csv",
    "matrix.csv",
    "prices.csv",
    "report.html",
    "tomorrow.csv",
];

fn family(folder: &Folder, file: &str, key: &str) -> Array2<f64> {
    let signals = Some(key.to_owned());
    let request = DataRequest { signals, want_decisions: false, ..DataRequest::default() };
    argwhy::load(&folder.path(file), &request).unwrap().signals
}

#[test]
fn plans_are_within_two_per_cent_of_the_best() {
    let folder = Folder::new();
    let told = folder.run(["demo", "charging", "--json", "-q", "-o", "out"]).exits(0);
    assert_eq!(told.stderr, "");
    let figures = told.json();
    let excess = |who: &str, what: &str| figures["planners"][who][what].as_f64().unwrap();
    assert_eq!((&figures["n_samples"], &figures["held_out"]), (&1000.into(), &200.into()));
    assert_eq!(figures["status"], "solved");
    assert!(figures["relative_gap"].as_f64().unwrap() <= 1e-6);
    assert!(figures["best_mean_cost"].as_f64().unwrap() > 50.0);
    for what in ["excess", "mean_relative_excess"] {
        assert!(excess("argwhy", what) <= 0.02, "{figures:#}");
        for other in ["dispatcher", "kernel_ridge", "cheapest_hours"] {
            assert!(0.0 < excess("argwhy", what) && excess("argwhy", what) < excess(other, what));
        }
    }
    let what_ifs = figures["what_ifs"].as_array().unwrap();
    assert_eq!(what_ifs.len(), 4);
    for what_if in what_ifs {
        assert!(what_if["excess"].as_f64().unwrap() <= 0.02, "{what_if}");
        assert!(what_if["nights"].as_u64().unwrap() >= 100, "{what_if}");
        // Side by side on the same nights: the tighter grid is not the cheaper one.
        assert_eq!(what_if["nights"], what_ifs[0]["nights"], "{what_if}");
        assert!(what_if["true_change"].as_f64().unwrap() >= 0.0, "{what_if}");
        let cost = |of: &serde_json::Value| of["best_cost"].as_f64().unwrap();
        assert!(cost(what_if) >= cost(&what_ifs[0]), "{what_if}");
    }
    let wear = |side: &str| figures["wear"][side].as_f64().unwrap();
    assert!((wear("learned") / wear("true") - 1.0).abs() < 0.35, "{figures:#}");
    for limit in figures["limits"].as_array().unwrap() {
        assert!(limit["correlation"].as_f64().unwrap() > 0.6, "{limit}");
    }
}

#[test]
fn files_are_tables_and_decisions_keep_the_limits_in_them() {
    let folder = Folder::new();
    let told = folder.run(["demo", "charging", "--nights", "120", "-o", "out"]).exits(0);
    for part in ["argwhy fit history.csv", "argwhy predict", "--prices", "argwhy evaluate", "EUR"] {
        assert!(told.stdout.contains(part), "{}", told.stdout);
    }
    for file in FILES {
        assert!(folder.path("out").join(file).is_file(), "{file}");
    }
    for (file, rows) in [("out/history.csv", 120), ("out/held-out.csv", 200)] {
        assert_eq!(family(&folder, file, "signals").dim(), (rows, 12));
        for (key, width) in [("decisions", 8), ("lower", 8), ("upper", 8), ("W", 13)] {
            assert_eq!(family(&folder, file, key).dim(), (rows, width), "{file} {key}");
        }
    }
    assert!(!folder.text("out/tomorrow.csv").contains("decisions"));
    let matrix = family(&folder, "out/matrix.csv", "M");
    assert_eq!(matrix.dim(), (13, 8));
    for (limits, plans) in
        [("out/tomorrow.csv", "out/decisions.csv"), ("out/history.csv", "out/history.csv")]
    {
        let (plans, upper) =
            (family(&folder, plans, "decisions"), family(&folder, limits, "upper"));
        let bounds = family(&folder, limits, "W");
        assert_eq!(plans.nrows(), bounds.nrows());
        for ((plan, upper), bound) in plans.rows().into_iter().zip(upper.rows()).zip(bounds.rows())
        {
            assert!(plan.iter().zip(upper).all(|(u, most)| *u >= -1e-9 && *u <= most + 1e-9));
            let used = matrix.dot(&plan);
            assert!(
                used.iter().zip(bound).all(|(used, most)| *used <= most + 1e-6),
                "{used} {bound}"
            );
        }
    }
    // The stored model is the one that decided: it names the limits it needs.
    let stored = argwhy::load_model(&folder.path("out/depot.argwhy")).unwrap();
    assert!(stored.model.constrained);
    let page = folder.text("out/report.html");
    let outside = page.replace("http://www.w3.org/2000/svg", "");
    assert!(!outside.contains("http:") && !outside.contains("https:") && !page.contains("<script"));
}

#[test]
fn the_commands_it_prints_give_the_same_decisions_and_prices() {
    let folder = Folder::new();
    folder.run(["demo", "charging", "--nights", "100", "-q", "-o", "."]).exits(0);
    let before = ["decisions.csv", "prices.csv"].map(|file| (file, folder.bytes(file)));
    for (file, _) in &before {
        std::fs::remove_file(folder.path(file)).unwrap();
    }
    std::fs::remove_file(folder.path("depot.argwhy")).unwrap();
    let readme = folder.text("README.txt");
    let commands: Vec<&str> =
        readme.lines().filter_map(|line| line.strip_prefix("argwhy ")).collect();
    assert_eq!(commands.len(), 3);
    for command in commands {
        // As a shell splits it: quotes hold words together.
        let words: Vec<String> = command
            .split('"')
            .enumerate()
            .flat_map(|(i, part)| match i % 2 {
                0 => part.split_whitespace().map(str::to_owned).collect(),
                _ => vec![part.to_owned()],
            })
            .collect();
        folder.run(words).exits(0);
    }
    for (file, bytes) in before {
        assert_eq!(folder.bytes(file), bytes, "{file}");
    }
}

#[test]
fn a_second_run_writes_the_same_tables() {
    let folder = Folder::new();
    for out in ["a", "b"] {
        folder.run(["demo", "charging", "--nights", "60", "-q", "-o", out]).exits(0);
    }
    folder.run(["demo", "charging", "--nights", "60", "-q", "-o", "c", "--seed", "1"]).exits(0);
    for file in FILES.iter().filter(|file| file.contains(".csv")) {
        let bytes = |out: &str| folder.bytes(&format!("{out}/{file}"));
        assert_eq!(bytes("a"), bytes("b"), "{file}");
        assert!(*file == "matrix.csv" || bytes("a") != bytes("c"), "{file}");
    }
}
