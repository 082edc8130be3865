//! `predict --range`: where the expert's own decision would lie.

use crate::common::{Folder, bell, noise, says};
use serde_json::Value;
use std::fmt::Write;

/// Hours of work: a line in two signals with noise, cut to 0 and 8.
fn hours(rows: std::ops::Range<usize>) -> String {
    let mut text = "price,load,hours\n".to_owned();
    for i in rows {
        let (price, load) = (2.0 * noise(i, 0), 2.0 * noise(i, 1));
        let hours = (3.0 + 4.0 * price - load + bell(i, 3)).clamp(0.0, 8.0);
        writeln!(text, "{price},{load},{hours}").unwrap();
    }
    text
}

fn folder(more: &[&str]) -> Folder {
    let folder = Folder::new();
    folder.write("past.csv", hours(0..1200));
    folder.write("next.csv", hours(5000..7000));
    let args = ["fit", "past.csv", "--signals=price,load", "--decisions=hours", "--bounds=0,8"];
    let settings = ["-k=1e-2", "--features=raw", "-o", "m.argwhy", "-q"];
    folder.run(args.iter().chain(&settings).chain(more)).exits(0);
    folder
}

fn numbers(text: &str) -> Vec<Vec<f64>> {
    let cells = |line: &str| line.split(',').map(|cell| cell.parse().unwrap()).collect();
    text.lines().skip(1).map(cells).collect()
}

#[test]
fn ranges_hold_the_experts_decision_as_often_as_they_say() {
    let folder = folder(&["--holdout=0.3"]);
    let range = ["predict", "m.argwhy", "next.csv", "--signals=price,load", "-q", "--range=0.9"];
    folder.run(range.iter().chain(&["-o", "out.csv", "--familiarity"])).exits(0);
    let text = folder.text("out.csv");
    assert!(text.starts_with("hours,hours_low,hours_high,familiarity\n"), "{text}");
    let truth = numbers(&folder.text("next.csv"));
    let rows = numbers(&text);
    let mut held = 0;
    for (row, truth) in rows.iter().zip(&truth) {
        let (u, low, high) = (row[0], row[1], row[2]);
        assert!(0.0 <= low && low <= u && u <= high && high <= 8.0, "{row:?}");
        held += usize::from(low <= truth[2] && truth[2] <= high);
    }
    let share = held as f64 / rows.len() as f64;
    assert!((0.87..=0.93).contains(&share), "{share}");
    // What is far from everything seen has a wider range, and the stream says the same.
    folder.write("far.csv", "price,load\n0.1,0.1\n0,40\n");
    let far = ["predict", "m.argwhy", "far.csv", "-q", "--range=0.5", "-o", "far_out.csv"];
    folder.run(far).exits(0);
    let far = numbers(&folder.text("far_out.csv"));
    assert!(far[1][2] - far[1][1] > 1.5 * (far[0][2] - far[0][1]), "{far:?}");
    let line = r#"{"signal": [0.1, 0.1]}"#;
    let answer = folder.run_with(["predict", "m.argwhy", "--jsonl", "--range=0.5"], line);
    let answer = answer.exits(0).json();
    let number = |value: &Value| value[0].as_f64().unwrap();
    assert_eq!([number(&answer["low"]), number(&answer["high"])], [far[0][1], far[0][2]]);
    folder.run(range.iter().chain(&["-o", "out.npz"])).exits(0);
    says(&folder.refused(range.iter().chain(&["-o", "out.npy"])), &["--range", ".npz or .csv"]);
}

#[test]
fn a_model_without_ranges_says_why_and_what_to_do() {
    let without = folder(&["--holdout=0"]);
    let ask = |level: &str| {
        vec!["predict", "m.argwhy", "next.csv", "--signals=price,load", "-o", "o.csv", "--range"]
            .into_iter()
            .map(str::to_owned)
            .chain([level.to_owned()])
            .collect::<Vec<_>>()
    };
    says(&without.refused(ask("0.9")), &["no ranges", "--holdout 0.1"]);
    let inspected = |folder: &Folder| {
        let json = folder.run(["inspect", "m.argwhy", "--json"]).exits(0).json();
        (json["range_rows"].clone(), folder.run(["inspect", "m.argwhy"]).exits(0).stdout)
    };
    assert!(inspected(&without).0.is_null());
    let with = folder(&[]);
    let (rows, text) = inspected(&with);
    assert_eq!(rows, 120);
    says(&text, &["from 120 rows kept aside"]);
    // ⌈121·p⌉ ≤ 120.
    with.run(ask("0.99")).exits(0);
    says(&with.refused(ask("0.999")), &["999 rows", "has 120", "0.991 at most", "--holdout"]);
    for level in ["0", "1", "nan", "-0.5"] {
        let mut args = ask(level);
        let last = args.len() - 1;
        args[last - 1] = format!("--range={}", args.pop().unwrap());
        says(&with.refused(args), &["range", "between 0 and 1"]);
    }
}

#[test]
fn plain_models_have_ranges_too() {
    let folder = folder(&["--kernel=linear", "--primal", "--intercept"]);
    folder.write("far.csv", "price,load\n0.1,0.1\n-1,40\n");
    folder.run(["predict", "m.argwhy", "far.csv", "-q", "--range=0.5", "-o", "out.csv"]).exits(0);
    let rows = numbers(&folder.text("out.csv"));
    assert!(rows[0][1] < rows[0][2] && rows[0][2] - rows[0][1] < 3.0, "{rows:?}");
}
