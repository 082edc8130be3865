//! Constraints and weights, from files to decisions and prices.

use crate::common::{Folder, noise, one_message, says, written};
use argwhy::core::Constraints;
use argwhy::core::decision_set::{BoxLimits, SampleSets};
use ndarray::{Array2, array};
use serde_json::{Value, json};
use std::fmt::Write;
use std::io::{Cursor, Write as _};

/// Hours a unit of each product takes on two machines.
const HOURS: [[f64; 2]; 2] = [[2.0, 1.0], [1.0, 3.0]];

struct Plans {
    signals: Array2<f64>,
    bounds: Array2<f64>,
    decisions: Array2<f64>,
}

/// A planner with u ≥ 0 and HOURS·u ≤ what each day has, often at a limit.
fn plans(rows: usize) -> Plans {
    let signals = Array2::from_shape_fn((rows, 2), |(i, j)| 2.0 * noise(i, j));
    let bounds = Array2::from_shape_fn((rows, 2), |(i, j)| 3.0 + noise(i, 5 + j));
    let mut decisions = Array2::from_shape_fn((rows, 2), |(i, j)| {
        1.0 + (signals[[i, j]] + 0.3 * signals[[i, 1 - j]]).sin()
    });
    let given = Constraints::new()
        .with_inequalities(array![HOURS[0], HOURS[1]], bounds.clone())
        .unwrap()
        .with_lower(array![0.0, 0.0])
        .unwrap();
    let sets = SampleSets::new(&BoxLimits::none(2), Some(&given), rows, |i| i).unwrap();
    for (i, mut row) in decisions.rows_mut().into_iter().enumerate() {
        sets.project(i, row.as_slice_mut().unwrap()).unwrap();
    }
    Plans { signals, bounds, decisions }
}

impl Plans {
    /// A table with every constraint in columns.
    fn wide_csv(&self) -> String {
        let mut text = "signals_0,signals_1,decisions_0,decisions_1,lower_0,lower_1,\
                        M_0_0,M_0_1,M_1_0,M_1_1,W_0,W_1\n"
            .to_owned();
        for i in 0..self.signals.nrows() {
            let (s, u, w) = (self.signals.row(i), self.decisions.row(i), self.bounds.row(i));
            writeln!(
                text,
                "{:?},{:?},{:?},{:?},0,0,2,1,1,3,{:?},{:?}",
                s[0], s[1], u[0], u[1], w[0], w[1]
            )
            .unwrap();
        }
        text
    }

    /// A table with the bounds alone.
    fn narrow_csv(&self) -> String {
        let mut text = "signals_0,signals_1,decisions_0,decisions_1,W_0,W_1\n".to_owned();
        for i in 0..self.signals.nrows() {
            let (s, u, w) = (self.signals.row(i), self.decisions.row(i), self.bounds.row(i));
            writeln!(text, "{:?},{:?},{:?},{:?},{:?},{:?}", s[0], s[1], u[0], u[1], w[0], w[1])
                .unwrap();
        }
        text
    }

    fn npz(&self, more: &[(&str, Vec<u8>)]) -> Vec<u8> {
        let mut entries = vec![
            ("signals", npy(&[self.signals.nrows(), 2], self.signals.iter())),
            ("decisions", npy(&[self.signals.nrows(), 2], self.decisions.iter())),
        ];
        entries.extend(more.iter().cloned());
        npz(&entries)
    }
}

fn npy<'a>(shape: &[usize], values: impl Iterator<Item = &'a f64>) -> Vec<u8> {
    let sizes: Vec<String> = shape.iter().map(|size| format!("{size},")).collect();
    let text =
        format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({}), }}\n", sizes.join(" "));
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.extend(values.flat_map(|value| value.to_le_bytes()));
    bytes
}

fn npz(entries: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let options =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (key, bytes) in entries {
        archive.start_file(format!("{key}.npy"), options).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

/// With the same plans as `wide.csv`, `narrow.csv` with `hours.csv`, and `plans.npz`.
fn folder(rows: usize) -> (Folder, Plans) {
    let (folder, plans) = (Folder::new(), plans(rows));
    folder.write("wide.csv", plans.wide_csv());
    folder.write("narrow.csv", plans.narrow_csv());
    folder.write("hours.csv", "product a,product b\n2,1\n1,3\n");
    let more = [
        ("M", npy(&[2, 2], HOURS.iter().flatten())),
        ("W", npy(&[rows, 2], plans.bounds.iter())),
        ("lower", npy(&[2], [0.0, 0.0].iter())),
    ];
    folder.write("plans.npz", plans.npz(&more));
    (folder, plans)
}

fn excess(plans: &Plans, i: usize, u: &[f64]) -> f64 {
    let rows =
        HOURS.iter().enumerate().map(|(r, a)| a[0] * u[0] + a[1] * u[1] - plans.bounds[[i, r]]);
    rows.chain(u.iter().map(|u| -u)).fold(f64::NEG_INFINITY, f64::max)
}

#[test]
fn every_way_to_say_the_same_constraints_gives_the_same_model() {
    let (folder, plans) = folder(60);
    let ways: [(&str, &[&str], &[&str]); 3] = [
        ("wide.csv", &["--constraints"], &[]),
        ("narrow.csv", &["--matrix=hours.csv", "--lower=0,0"], &["--matrix=hours.csv"]),
        ("plans.npz", &["--constraints"], &[]),
    ];
    let mut first: Option<Array2<f64>> = None;
    for (data, fit, use_) in ways {
        let args = ["fit", data, "-o", "m.argwhy", "--json", "--tol=1e-10", "-k=1e-6"];
        let ran = folder.run(args.iter().chain(fit)).exits(0);
        assert_eq!(ran.json()["status"], "solved");
        assert!(!ran.stderr.contains("no limits given"), "{}", ran.stderr);
        folder.run(["predict", "m.argwhy", data, "-o", "p.npy", "-q"].iter().chain(use_)).exits(0);
        let predicted = written(&folder.path("p.npy"));
        for (i, u) in predicted.rows().into_iter().enumerate() {
            assert!(excess(&plans, i, &u.to_vec()) < 1e-12, "{data}, row {i}: {u}");
        }
        let args = ["evaluate", "m.argwhy", data, "--json"];
        let scores = folder.run(args.iter().chain(use_)).exits(0).json();
        assert_eq!((&scores["n"], &scores["infeasible"]), (&json!(60), &json!(0)));
        let errors = (&predicted - &plans.decisions).mapv(|e| e * e).sum() / 120.0;
        assert!((scores["rmse"].as_f64().unwrap() - errors.sqrt()).abs() < 1e-12);
        assert!(errors.sqrt() < 0.02, "{errors}");
        match &first {
            None => first = Some(predicted),
            Some(first) => {
                let off = (first - &predicted).iter().fold(0.0_f64, |m, e| m.max(e.abs()));
                assert!(off < 1e-5, "{data}: {off:e}");
            }
        }
        let inspected = folder.run(["inspect", "m.argwhy", "--json"]).exits(0).json();
        assert_eq!(
            (&inspected["constrained"], &inspected["settings"]["constraints"]),
            (&json!(true), &json!(true))
        );
        folder.run(["bench", "m.argwhy", data, "--json"].iter().chain(use_)).exits(0).json();
    }
    says(&folder.refused(["bench", "m.argwhy"]), &["constraints", "DATA"]);
}

#[test]
fn rows_select_the_constraints_too() {
    let (folder, plans) = folder(60);
    let fit = ["fit", "plans.npz", "--constraints", "-q", "-o"];
    folder.run(fit.iter().chain(&["m.argwhy", "--rows=0:40"])).exits(0);
    let predict = |rows: &str, out: &str| {
        let args = ["predict", "m.argwhy", "plans.npz", "-q", "--rows", rows, "-o", out];
        folder.run(args).exits(0);
        written(&folder.path(out))
    };
    let (all, part) = (predict("0:60", "a.npy"), predict("50:60,3:5", "b.npy"));
    for (at, i) in (50..60).chain(3..5).enumerate() {
        assert_eq!(all.row(i), part.row(at), "row {i}");
        assert!(excess(&plans, i, &part.row(at).to_vec()) < 1e-12);
    }
    // Prices name rows by their place in the file.
    let args = ["predict", "m.argwhy", "plans.npz", "-q", "--rows=50:60", "-o", "c.npy"];
    folder.run(args.iter().chain(&["--prices", "c.csv"])).exits(0);
    let prices = folder.text("c.csv");
    assert!(prices.lines().count() > 2, "{prices}");
    for line in prices.lines().skip(1) {
        let row: usize = line.split(',').next().unwrap().parse().unwrap();
        assert!((50..60).contains(&row), "{line}");
    }
}

/// The price of a limit is what the learned objective gains by one more unit of it.
#[test]
fn prices_are_what_more_of_a_limit_is_worth() {
    let (folder, _) = folder(60);
    folder.run(["fit", "plans.npz", "--constraints", "-q", "-o", "m.argwhy"]).exits(0);
    let model = argwhy::load_model(&folder.path("m.argwhy")).unwrap().model;
    let predictor = argwhy::Predictor::new(&model).unwrap();
    let ask = |w: f64| {
        let line = json!({"signal": [0.9, 0.7], "M": HOURS, "W": [w, null], "lower": [0, 0]});
        let ran = folder.run_with(["predict", "m.argwhy", "--jsonl", "--prices"], line.to_string());
        serde_json::from_str::<Value>(&ran.exits(0).stdout).unwrap()
    };
    let g = predictor.desired(array![[0.9, 0.7]].view()).unwrap();
    let cost = |answer: &Value| -> f64 {
        let u: Vec<f64> = serde_json::from_value(answer["decision"].clone()).unwrap();
        u.iter().zip(&g).map(|(u, g)| u * u - 2.0 * g * u).sum()
    };
    let (tight, more) = (ask(2.0), ask(2.0 + 1e-4));
    let price = tight["prices"]["M[0]"].as_f64().unwrap();
    let worth = (cost(&tight) - cost(&more)) / 1e-4;
    assert!(price > 0.5 && (price - worth).abs() < 1e-3, "{price} {worth}");
    assert_eq!(ask(1000.0)["prices"], json!({}));
    // Table and stream agree.
    folder.write("q.csv", "signals_0,signals_1,W_0,W_1,lower_0,lower_1\n0.9,0.7,2,,0,0\n");
    let args =
        ["predict", "m.argwhy", "q.csv", "--matrix=hours.csv", "-o", "u.csv", "-q", "--prices"];
    folder.run(args.iter().chain(&["p.csv"])).exits(0);
    assert_eq!(folder.text("p.csv"), format!("row,limit,price\n0,M[0],{price:?}\n"));
    folder.run(args.iter().chain(&["p.npz"])).exits(0);
    assert_eq!(folder.text("p.csv").lines().count(), 2);
    assert!(folder.bytes("p.npz").starts_with(b"PK"));
}

#[test]
fn inspect_lists_the_limits_that_hold_decisions() {
    let (folder, _) = folder(60);
    folder.run(["fit", "plans.npz", "--constraints", "-q", "-o", "m.argwhy"]).exits(0);
    let inspected = folder.run(["inspect", "m.argwhy", "--json"]).exits(0).json();
    let held = inspected["prices"].as_array().unwrap();
    assert!(!held.is_empty());
    let rows: Vec<u64> = held.iter().map(|h| h["rows"].as_u64().unwrap()).collect();
    assert!(rows.is_sorted_by(|a, b| a >= b) && rows.iter().all(|n| *n <= 60), "{rows:?}");
    let ran = folder.run(["inspect", "m.argwhy", "--prices", "all.csv"]).exits(0);
    says(&ran.stdout, &["M[0]", "mean price", "come with the data", "one more unit"]);
    let lines: Vec<String> =
        folder.text("all.csv").lines().skip(1).map(ToOwned::to_owned).collect();
    assert_eq!(lines.len() as u64, rows.iter().sum::<u64>());
    let first = held.iter().find(|h| h["limit"] == "M[0]").unwrap();
    let prices: Vec<f64> = lines
        .iter()
        .filter(|line| line.contains(",M[0],"))
        .map(|line| line.rsplit(',').next().unwrap().parse().unwrap())
        .collect();
    let mean = prices.iter().sum::<f64>() / prices.len() as f64;
    assert!((first["mean_price"].as_f64().unwrap() - mean).abs() < 1e-12);
    // The prices of training are those of the same rows predicted.
    let args = ["predict", "m.argwhy", "plans.npz", "-o", "p.npy", "-q", "--prices", "again.csv"];
    folder.run(args).exits(0);
    for (a, b) in folder.text("again.csv").lines().zip(folder.text("all.csv").lines()).skip(1) {
        let price = |line: &str| line.rsplit(',').next().unwrap().parse::<f64>().unwrap();
        assert_eq!(a.rsplit_once(',').unwrap().0, b.rsplit_once(',').unwrap().0);
        assert!((price(a) - price(b)).abs() < 1e-6, "{a} {b}");
    }
    says(&folder.refused(["inspect", "m.argwhy", "--prices", "p.txt"]), &["p.txt", ".npz or .csv"]);
    says(&folder.refused(["inspect", "m.argwhy", "--prices", "m.argwhy"]), &[".npz or .csv"]);
    let help = folder.run(["inspect", "--help"]).exits(0).stdout;
    says(
        &help.split_whitespace().collect::<Vec<_>>().join(" "),
        &["what one more unit of that limit would be worth"],
    );
}

#[test]
fn the_report_draws_decisions_in_their_own_sets() {
    let (folder, _) = folder(60);
    let fit = |more: &[&str]| {
        let args = ["fit", "plans.npz", "--constraints", "-q", "-o", "m.argwhy", "--report=r.html"];
        folder.run(args.iter().chain(more)).exits(0);
        let page = folder.text("r.html");
        assert!(!page.contains("NaN"));
        page
    };
    let page = fit(&[]);
    says(&page, &["What holds the decisions", "M[0]", "largest price"]);
    assert!(!page.contains("expert at a limit"));
    says(&fit(&["--bounds=0,9"]), &["expert at a limit", "come with each row"]);
}

#[test]
fn lines_bring_their_own_constraints() {
    let (folder, plans) = folder(60);
    folder.run(["fit", "plans.npz", "--constraints", "-q", "-o", "m.argwhy"]).exits(0);
    folder.run(["predict", "m.argwhy", "plans.npz", "-q", "-o", "p.npy"]).exits(0);
    let expected = written(&folder.path("p.npy"));
    let mut lines = String::new();
    for i in 0..60 {
        let line = json!({"signal": plans.signals.row(i).to_vec(), "M": HOURS,
            "W": plans.bounds.row(i).to_vec(), "lower": [0, 0], "upper": [null, null]});
        writeln!(lines, "{line}").unwrap();
    }
    let ran = folder.run_with(["predict", "m.argwhy", "--jsonl"], lines.as_str()).exits(0);
    for (answer, u) in ran.stdout.lines().zip(expected.rows()) {
        assert_eq!(serde_json::from_str::<Value>(answer).unwrap(), json!({"decision": u.to_vec()}));
    }
    assert_eq!(ran.stdout.lines().count(), 60);
    // A matrix for all lines; an equality.
    let line = r#"{"signal": [0.1, 0.2], "W": [3, 2.5], "lower": [0, 0]}"#;
    let with = ["predict", "m.argwhy", "--jsonl", "--matrix=hours.csv"];
    let shared = folder.run_with(with, line).exits(0).stdout;
    let own = line.replace("\"W\"", "\"M\": [[2, 1], [1, 3]], \"W\"");
    assert_eq!(folder.run_with(["predict", "m.argwhy", "--jsonl"], own).exits(0).stdout, shared);
    let line = r#"{"signal": [0.1, 0.2], "M_eq": [[1, 1]], "W_eq": [1.5]}"#;
    let ran = folder.run_with(["predict", "m.argwhy", "--jsonl"], line).exits(0);
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    let u: Vec<f64> = serde_json::from_value(answer["decision"].clone()).unwrap();
    assert!((u[0] + u[1] - 1.5).abs() < 1e-12, "{u:?}");

    let refused = |line: &str| folder.refused_with(["predict", "m.argwhy", "--jsonl"], line);
    says(&refused(r#"{"signal": [0, 0]}"#), &["line 1", "constraints", "M and W"]);
    says(&refused(r#"{"signal": [0, 0], "M": [[1, 1]]}"#), &["line 1", "`M` but no `W`"]);
    says(&refused(r#"{"signal": [0, 0], "W": [1]}"#), &["`W` but no `M`"]);
    says(&refused(r#"{"signal": [0, 0], "M": [[1, 1]], "W": [1, 2]}"#), &["1 rows", "2 bounds"]);
    says(
        &refused(r#"{"signal": [0, 0], "M": [[1, 1], [1]], "W": [1, 2]}"#),
        &["different lengths"],
    );
    says(&refused(r#"{"signal": [0, 0], "M": [[1, 1, 1]], "W": [1]}"#), &["M", "3", "2"]);
    says(&refused(r#"{"signal": [0, 0], "M": [[1, null]], "W": [1]}"#), &["line 1", "null"]);
    says(
        &refused(r#"{"signal": [0, 0], "lower": [1, 0], "upper": [0, 1]}"#),
        &["lower[0]", "upper[0]"],
    );
    let message = folder.refused_with(with, r#"{"signal": [0, 0], "M": [[1, 1]], "W": [1]}"#);
    says(&message, &["hours.csv", "leave out one"]);
    let message =
        folder.refused_with(["predict", "m.argwhy", "--jsonl", "--prices", "p.csv"], line);
    says(&message, &["--jsonl", "--prices last"]);
    says(
        &folder.refused(["predict", "m.argwhy", "plans.npz", "-o", "q.npy", "--prices"]),
        &["--prices needs a file"],
    );
    says(
        &folder.refused(["predict", "m.argwhy", "plans.npz", "-o", "q.npy", "--prices=p.mat"]),
        &["p.mat", ".npz or .csv"],
    );
    says(
        &folder.refused(["predict", "m.argwhy", "plans.npz", "-o", "q.csv", "--prices=q.csv"]),
        &["q.csv", "twice"],
    );
}

/// Weighing a row is repeating it, feature statistics included.
#[test]
fn weights_are_repetitions() {
    let plans = plans(40);
    let folder = Folder::new();
    let counts: Vec<usize> = (0..40).map(|i| [1, 3, 0, 2][i % 4]).collect();
    let text = plans.wide_csv();
    let (header, lines) = text.split_once('\n').unwrap();
    let mut weighted = format!("{header},weights,times\n");
    let mut repeated = format!("{header}\n");
    for (line, count) in lines.lines().zip(&counts) {
        writeln!(weighted, "{line},{count},{}", 2 * count).unwrap();
        for _ in 0..*count {
            writeln!(repeated, "{line}").unwrap();
        }
    }
    folder.write("weighted.csv", weighted);
    folder.write("repeated.csv", repeated);
    for limits in [&["--constraints"][..], &["--bounds=0,3"]] {
        let decide = |data: &str, more: &[&str]| {
            let args = ["fit", data, "-o", "m.argwhy", "-q", "--json", "--tol=1e-17", "-k=1e-2"];
            let ran = folder.run(args.iter().chain(limits).chain(more));
            let objective = ran.json()["objective"].as_f64().unwrap();
            folder.run(["predict", "m.argwhy", "weighted.csv", "-o", "p.npy", "-q"]).exits(0);
            (written(&folder.path("p.npy")), objective)
        };
        let (expected, objective) = decide("repeated.csv", &[]);
        for (more, what) in [(&["--weights"][..], "weights"), (&["--weights=times"], "times")] {
            let (found, weighed) = decide("weighted.csv", more);
            let off = (&found - &expected).iter().fold(0.0_f64, |m, e| m.max(e.abs()));
            assert!(off < 1e-9, "{limits:?} {what}: {off:e}");
            assert!((weighed - objective).abs() < 1e-9 * objective.abs(), "{weighed} {objective}");
        }
        let (plain, _) = decide("weighted.csv", &[]);
        assert!((&plain - &expected).iter().any(|e| e.abs() > 1e-4), "weights make no difference");
    }
}

#[test]
fn what_is_there_and_not_used_is_told() {
    let (folder, _) = folder(30);
    let ran = folder.run(["fit", "plans.npz", "--bounds=0,9", "-o", "m.argwhy"]).exits(0);
    says(&ran.stderr, &["`M`, `W` and `lower`", "--constraints"]);
    let ran = folder.run(["predict", "m.argwhy", "plans.npz", "-o", "p.npy"]).exits(0);
    says(&ran.stderr, &["`M`, `W` and `lower`", "fitted without"]);
    folder.run(["fit", "plans.npz", "--bounds=0,9", "-q", "-o", "m.argwhy"]).exits(0);
    // Bounds and constraints together are their intersection.
    folder
        .run([
            "fit",
            "plans.npz",
            "--constraints",
            "--bounds=-9,0.7",
            "--infeasible=clip",
            "-q",
            "-o",
            "m.argwhy",
        ])
        .exits(0);
    folder.run(["predict", "m.argwhy", "plans.npz", "-q", "-o", "p.npy"]).exits(0);
    assert!(written(&folder.path("p.npy")).iter().all(|u| (-1e-12..=0.7 + 1e-12).contains(u)));
}

#[test]
fn a_config_file_says_it_too() {
    let (folder, _) = folder(30);
    folder.write("c.toml", "constraints = true\nweights = \"W_0\"\nk = 1");
    says(&folder.refused(["fit", "wide.csv", "-o", "m.argwhy", "--config=c.toml"]), &["`k`"]);
    folder.write("c.toml", "matrix = \"hours.csv\"\nlower = [0, 0]\nweights = \"decisions_0\"");
    let flags = ["--matrix=hours.csv", "--lower=0,0", "--weights=decisions_0", "-q", "--json"];
    let a = folder.run(["fit", "narrow.csv", "-o", "a.argwhy"].iter().chain(&flags)).exits(0);
    let b = folder
        .run(["fit", "narrow.csv", "-o", "b.argwhy", "--config=c.toml", "-q", "--json"])
        .exits(0);
    assert_eq!(a.json()["objective"], b.json()["objective"]);
    let settings = argwhy::load_model(&folder.path("b.argwhy")).unwrap().settings;
    assert_eq!(
        (&settings["matrix"], &settings["weights"]),
        (&json!("hours.csv"), &json!("decisions_0"))
    );
}

#[test]
fn sso_knows_constraints_and_weights() {
    let (folder, _) = folder(50);
    let fit = |more: &[&str]| {
        let args =
            ["fit", "plans.npz", "--constraints", "-q", "--json", "-o", "m.argwhy", "-k=1e-3"];
        folder.run(args.iter().chain(more)).exits(0).json()["objective"].as_f64().unwrap()
    };
    let (newton, sso) = (fit(&[]), fit(&["--solver=sso"]));
    assert!((newton - sso).abs() < 1e-5 * newton.abs(), "{newton} {sso}");
}

#[test]
fn constraints_that_cannot_be_used() {
    let (folder, plans) = folder(12);
    folder.write("old.argwhy", "what was there before");
    let fit = |data: &'static str, more: &'static [&'static str]| {
        folder.refused(["fit", data, "-o", "old.argwhy"].iter().chain(more))
    };
    folder.write("plain.npz", plans.npz(&[]));
    says(
        &fit("plain.npz", &["--constraints"]),
        &["plain.npz", "no constraints", "`signals`, `decisions`"],
    );
    says(&fit("narrow.csv", &["--constraints"]), &["`W` but no `M`", "--matrix"]);
    folder.write("three.csv", "a,b,c\n1,2,3\n4,5,6\n");
    says(&fit("narrow.csv", &["--matrix=three.csv"]), &["three.csv", "3 columns", "2 dimensions"]);
    folder.write("one.csv", "a,b\n1,2\n");
    says(&fit("narrow.csv", &["--matrix=one.csv"]), &["1 rows", "2 bounds"]);
    says(&fit("wide.csv", &["--matrix=one.csv"]), &["`M` is in"]);
    says(&fit("narrow.csv", &["--matrix=none.csv"]), &["none.csv"]);

    // An empty set, a value that is none, a decision outside: each by its row in the file.
    let replace = |line: usize, from: &str, to: &str| {
        let text = plans.wide_csv();
        let lines: Vec<String> = text
            .lines()
            .enumerate()
            .map(
                |(i, text)| {
                    if i == line + 1 { text.replacen(from, to, 1) } else { text.to_owned() }
                },
            )
            .collect();
        folder.write("bad.csv", lines.join("\n"));
    };
    replace(7, ",0,0,2,1,1,3,", ",5,0,2,1,1,3,");
    for rows in [&["--constraints"][..], &["--constraints", "--rows=5:12"]] {
        let message = folder.refused(["fit", "bad.csv", "-o", "old.argwhy"].iter().chain(rows));
        says(&message, &["no decision satisfies", "row 7", "lower[0]"]);
    }
    folder.run(["fit", "wide.csv", "--constraints", "-q", "-o", "m.argwhy"]).exits(0);
    let message = folder.refused(["predict", "m.argwhy", "bad.csv", "-o", "p.csv", "--rows=4:9"]);
    says(&message, &["row 7", "lower[0]"]);
    replace(3, ",0,0,2,1,1,3,", ",0,0,2,nan,1,3,");
    says(
        &folder.refused(["fit", "bad.csv", "-o", "old.argwhy", "--constraints"]),
        &["`M[0][1]`", "row 3"],
    );
    replace(2, ",0,0,2,1,1,3,", ",0,0,2,x,1,3,");
    says(
        &folder.refused(["fit", "bad.csv", "-o", "old.argwhy", "--constraints"]),
        &["line 4", "`M_0_1`"],
    );
    replace(9, ",0,0,2,1,1,3,", ",0,0,20,10,1,3,");
    let message =
        folder.refused(["fit", "bad.csv", "-o", "old.argwhy", "--constraints", "--rows=8:12"]);
    says(&message, &["1 of 4 decisions", "row 9", "M[0]", "--infeasible"]);
    says(&folder.refused(["evaluate", "m.argwhy", "narrow.csv"]), &["`W` but no `M`"]);
    let message = folder.refused(["evaluate", "m.argwhy", "plain.npz"]);
    says(&message, &["fitted with constraints", "plain.npz", "`signals`, `decisions`"]);
    let minari = crate::common::io_data("minari").display().to_string();
    says(&folder.refused(["fit", &minari, "-o", "old.argwhy", "--constraints"]), &["episodes"]);
}

#[test]
fn weights_that_cannot_be_used() {
    let folder = Folder::new();
    folder.write("old.argwhy", "what was there before");
    let refused = |weights: [&str; 3], more: &[&str]| {
        let [a, b, c] = weights;
        folder.write("d.csv", format!("signals,decisions,weights\n1,2,{a}\n2,3,{b}\n3,1,{c}\n"));
        let args = ["fit", "d.csv", "-o", "old.argwhy", "--weights", "--unbounded"];
        folder.refused(args.iter().chain(more))
    };
    says(&refused(["1", "-2", "1"], &[]), &["weight -2", "row 1", "zero or more"]);
    says(&refused(["1", "nan", "1"], &[]), &["`weights`", "NaN", "row 1"]);
    says(&refused(["1", "", "1"], &[]), &["line 3", "`weights`", "empty"]);
    says(&refused(["0", "0", "0"], &[]), &["every row has the weight zero"]);
    says(&refused(["0", "0", "1"], &["--rows=0:2"]), &["every row has the weight zero"]);
    says(&refused(["1", "1", "1"], &["--weights=w"]), &["--weights"]);
    let message = folder.refused(["fit", "d.csv", "-o", "old.argwhy", "--weights=w"]);
    says(&one_message(&message), &["no weights under the key `w`", "`weights`"]);
}

/// The plan counts sets, faces and the preconditioner of all dimensions together.
#[test]
fn the_memory_limit_is_kept_with_constraints() {
    let rows = 1500;
    let plans = plans(rows);
    let folder = Folder::new();
    let matrix: Vec<f64> =
        (0..rows).flat_map(|_| HOURS.iter().flatten().copied().collect::<Vec<_>>()).collect();
    let more = [
        ("M", npy(&[rows, 2, 2], matrix.iter())),
        ("W", npy(&[rows, 2], plans.bounds.iter())),
        ("lower", npy(&[2], [0.0, 0.0].iter())),
    ];
    folder.write("plans.npz", plans.npz(&more));
    let base = ["fit", "plans.npz", "-o", "m.argwhy", "--constraints", "-k=1e-4"];
    let message = folder.refused(base.iter().chain(&["--memory=1MiB"]));
    let least = message.split("at least ").nth(1).unwrap().split([';', ' ']).next().unwrap();
    for memory in [least, "60MiB", "2GiB"] {
        let limit: argwhy::settings::MemorySize = memory.parse().unwrap();
        let option = format!("--memory={memory}");
        let ran = folder.run(base.iter().copied().chain([option.as_str(), "--json"])).exits(0);
        let peak = ran.json()["peak_memory_bytes"].as_u64().unwrap_or(0);
        assert!(peak <= limit.0, "{peak} of {memory}");
        // And the plan is an upper bound, not a guess below.
        let planned = ran.stderr.split("kernel ").nth(1).unwrap().split(", ").nth(1).unwrap();
        let planned: argwhy::settings::MemorySize =
            planned.split(" of ").next().unwrap().parse().unwrap();
        assert!(peak <= planned.0, "{peak} of {planned} planned");
    }
}
