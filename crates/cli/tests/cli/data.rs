//! Data as it comes: formats, gaps, categories, rows left out, limits found, descriptions.

use crate::common::{Folder, io_data, noise, says, timeless, written};
use serde_json::Value;
use std::fmt::Write;

/// Days, hours and loads, and what an expert decided between 0 and 10.
fn days(rows: usize) -> String {
    let mut text = "day,hour,load,power\n".to_owned();
    for i in 0..rows {
        let (day, hour, load) = (["Mon", "Tue", "Wed"][i % 3], i % 24, noise(i, 0));
        let wish = 5.0 + 4.0 * load + [0.0, 2.0, -2.0][i % 3] + (hour as f64 / 4.0).sin();
        writeln!(text, "{day},{hour},{load:?},{:?}", wish.clamp(0.0, 10.0)).unwrap();
    }
    text
}

const FIT: [&str; 12] = [
    "--signals",
    "day,hour,load",
    "--decisions",
    "power",
    "--one-hot",
    "day",
    "--cyclic",
    "hour:24",
    "--bounds=0,10",
    "--holdout=0",
    "-o",
    "m.argwhy",
];

#[test]
fn a_model_remembers_categories_and_cycles() {
    let folder = Folder::new();
    folder.write("days.csv", days(90));
    let ran = folder.run(["fit", "days.csv"].iter().chain(&FIT)).exits(0);
    says(&ran.stderr, &["day is one of Mon, Tue, Wed"]);
    folder.run(["predict", "m.argwhy", "days.csv", "-o", "p.npy", "-q"]).exits(0);
    // Columns in another order, other rows first: the same decisions.
    folder.write("other.csv", "load,extra,hour,day\n0.25,1,5,Wed\n");
    let first =
        format!("day,hour,load,power\nWed,5,0.25,1\n{}", &days(1)["day,hour,load,power\n".len()..]);
    folder.write("first.csv", first);
    for name in ["other", "first"] {
        let (data, out) = (format!("{name}.csv"), format!("{name}.npy"));
        folder.run(["predict", "m.argwhy", &data, "-o", &out, "-q"]).exits(0);
    }
    let of = |name: &str| written(&folder.path(name));
    assert_eq!(of("other.npy")[[0, 0]], of("first.npy")[[0, 0]]);
    let line = "{\"signal\": {\"day\": \"Wed\", \"hour\": 5, \"load\": 0.25}}\n";
    let ran = folder.run_with(["predict", "m.argwhy", "--jsonl"], line).exits(0);
    assert_eq!(ran.json()["decision"][0].as_f64().unwrap(), of("other.npy")[[0, 0]]);
    let sunday = line.replace("Wed", "Sun");
    let ran = folder.run_with(["predict", "m.argwhy", "--jsonl"], sunday).exits(2);
    says(&ran.stderr, &["Sun", "the model knows Mon, Tue, Wed"]);
    folder.write("new.csv", "day,hour,load\nSun,1,0\n");
    let refused = folder.refused(["predict", "m.argwhy", "new.csv", "-o", "q.npy"]);
    says(&refused, &["line 2", "`Sun`", "Mon, Tue, Wed"]);
}

#[test]
fn words_and_dates_are_refused_with_the_flag_that_helps() {
    let folder = Folder::new();
    folder.write("days.csv", days(30));
    let refused = folder.refused([
        "fit",
        "days.csv",
        "--signals",
        "day,load",
        "--decisions",
        "power",
        "-o",
        "m",
        "--bounds=0,10",
    ]);
    says(&refused, &["line 2", "`Mon` is not a number", "--one-hot day"]);
    folder.write("dates.csv", "when,power\n2024-05-01 13:00,1\n");
    let refused = folder.refused([
        "fit",
        "dates.csv",
        "--signals",
        "when",
        "--decisions",
        "power",
        "-o",
        "m",
        "--bounds=0,10",
    ]);
    says(&refused, &["--cyclic when:day"]);
}

#[test]
fn gaps_are_told_left_out_or_filled_in_and_remembered() {
    let folder = Folder::with_data(60);
    let text = folder.text("data.csv");
    let mut lines: Vec<String> = text.lines().map(ToOwned::to_owned).collect();
    let rest = lines[3].split_once(',').unwrap().1.to_owned();
    lines[3] = format!(",{rest}");
    folder.write("gaps.csv", lines.join("\n"));
    let fit = |more: &[&str]| {
        let args = ["fit", "gaps.csv", "-o", "m.argwhy", "--bounds=-1,1", "--holdout=0", "--json"];
        folder.run(args.iter().chain(more))
    };
    let refused = fit(&[]).exits(2).stderr;
    says(&refused, &["`signals[0]` in row 2", "--missing drop", "--missing mean"]);
    let dropped = fit(&["--missing", "drop"]).exits(0);
    assert_eq!(dropped.json()["n_samples"], 59);
    says(&dropped.stderr, &["1 row that lacks a value is left out"]);
    // Where a decision belongs to each row no option leaves any out, so none is offered.
    for command in ["predict", "evaluate"] {
        let output: &[&str] = if command == "predict" { &["-o", "p.csv"] } else { &[] };
        let refused = folder.refused([command, "m.argwhy", "gaps.csv"].iter().chain(output));
        says(&refused, &["`signals[0]` in row 2", "argwhy convert gaps.csv OUTPUT --missing drop"]);
        assert!(!refused.contains("means"), "{refused}");
    }
    folder.run(["convert", "gaps.csv", "whole.csv", "--missing", "drop"]).exits(0);
    folder.run(["predict", "m.argwhy", "whole.csv", "-o", "p.csv"]).exits(0);
    assert_eq!(fit(&["--missing", "mean"]).exits(0).json()["n_samples"], 60);
    folder.run(["predict", "m.argwhy", "gaps.csv", "-o", "p.npy", "-q"]).exits(0);
    says(&folder.refused(["fit", "gaps.csv", "-o", "x", "--missing", "median"]), &["drop"]);
}

#[test]
fn rows_are_chosen_while_they_are_read() {
    let folder = Folder::with_data(120);
    let n_samples = |more: &[&str]| {
        let args =
            ["fit", "data.csv", "-o", "m.argwhy", "--bounds=-1,1", "--holdout=0", "--json", "-q"];
        folder.run(args.iter().chain(more)).exits(0).json()["n_samples"].as_u64().unwrap()
    };
    assert_eq!(n_samples(&["--every", "4"]), 30);
    assert_eq!(n_samples(&["--sample", "50"]), 50);
    assert_eq!(n_samples(&["--rows", "0:60", "--every", "4", "--sample", "10"]), 10);
    says(&folder.refused(["fit", "data.csv", "-o", "x", "--every", "0"]), &["one or more"]);
    let minari = io_data("minari").display().to_string();
    let args = ["fit", &minari, "-o", "m.argwhy", "--bounds=-9,9", "--holdout=0", "--json", "-q"];
    let ran = folder.run(args.iter().chain(&["--episodes", "0:2"])).exits(0);
    assert_eq!(ran.json()["n_samples"], 5);
    let ran = folder.run(["evaluate", "m.argwhy", &minari, "--every", "3", "--json"]).exits(0);
    assert_eq!(ran.json()["n"], 7);
}

#[test]
fn the_limits_of_an_action_space_are_the_bounds() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path("set/data")).unwrap();
    let main = io_data("minari/data/main_data.hdf5");
    std::fs::copy(main, folder.path("set/data/main_data.hdf5")).unwrap();
    let space = "{\\\"type\\\": \\\"Box\\\", \\\"low\\\": [-1, -2], \\\"high\\\": [5, 4]}";
    folder.write("set/data/metadata.json", format!("{{\"action_space\": \"{space}\"}}"));
    let fit = ["fit", "set", "-o", "m.argwhy", "--holdout=0"];
    let ran = folder.run(fit).exits(0);
    says(&ran.stderr, &["limits from the action space", "lower -1, -2, upper 5, 4", "--bounds"]);
    let stored = argwhy::load_model(&folder.path("m.argwhy")).unwrap();
    assert!(stored.model.set.contains(&[5.0, -2.0]) && !stored.model.set.contains(&[5.1, 0.0]));
    let ran = folder.run(fit.iter().chain(&["--bounds=-9,9"])).exits(0);
    assert!(!ran.stderr.contains("action space"), "{}", ran.stderr);
}

#[test]
fn data_from_standard_input() {
    let folder = Folder::with_data(60);
    let args = ["fit", "-", "-o", "m.argwhy", "--bounds=-1,1", "--holdout=0", "--json", "-q"];
    let piped = folder.run_with(args, folder.bytes("data.csv")).exits(0).json();
    let named =
        folder.run(args.map(|arg| if arg == "-" { "data.csv" } else { arg })).exits(0).json();
    assert_eq!(piped["objective"], named["objective"]);
    let ran = folder.run_with(["describe", "-", "--json"], "a;b\n1;2\n").exits(0);
    assert_eq!(ran.json()["columns"].as_array().unwrap().len(), 2);
}

#[test]
fn data_goes_from_format_to_format_and_back() {
    let folder = Folder::with_data(40);
    let mut from = "data.csv".to_owned();
    for to in [
        "a.parquet",
        "b.npz",
        "c.hdf5",
        "d.tsv",
        "f.feather",
        "g.xlsx",
        "h.arrow",
        "i.ipc",
        "e.csv",
    ] {
        folder.run(["convert", &from, to, "-q"]).exits(0);
        from = to.to_owned();
    }
    assert_eq!(folder.text("e.csv"), folder.text("data.csv"));
    let robomimic = io_data("robomimic.hdf5").display().to_string();
    folder.run(["convert", &robomimic, "r.parquet", "--episodes", "0:3", "-q"]).exits(0);
    let ran = folder.run(["describe", "r.parquet", "--json"]).exits(0);
    assert_eq!(ran.json()["episodes"]["count"], 3);
    assert_eq!(ran.json()["n_rows"], 6);
    says(&folder.refused(["convert", "data.csv", "x.ods"]), &[".parquet", ".xlsx", ".feather"]);
    says(&folder.refused(["convert", "data.csv", "data.csv"]), &["used twice"]);
}

#[test]
fn data_is_described_in_words_json_and_a_page() {
    let folder = Folder::with_data(80);
    let ran = folder.run(["describe", "data.csv"]).exits(0);
    says(
        &ran.stdout,
        &["csv, 80 rows read, 5 columns", "signals_0", "of decisions at −1", "--bounds=-1,1"],
    );
    assert!(ran.stderr.is_empty(), "{}", ran.stderr);
    let found = folder.run(["describe", "data.csv", "--json"]).exits(0).json();
    assert_eq!(found["columns"].as_array().unwrap().len(), 5);
    assert_eq!(found["suggested_bounds"]["upper"], serde_json::json!([1.0, 1.0]));
    let ran = folder.run(["describe", "data.csv", "-o", "page.html"]).exits(0);
    assert_eq!(ran.stdout, "");
    says(&folder.text("page.html"), &["What the data is like", "<svg", "decisions_1"]);
    folder.write("days.csv", days(40));
    folder.write("words.csv", "site,price\nnorth,1\n");
    let ran = folder.run(["describe", "days.csv"]).exits(0);
    says(&ran.stdout, &["text, 3 different", "choose with --signals and --decisions"]);
    says(&folder.refused(["describe", "none.csv"]), &["no file"]);
    // No options that this command does not have.
    let words = folder.refused(["describe", "words.csv", "--signals=site", "--decisions=price"]);
    says(&words, &["`site` holds `north`", "Without --signals and --decisions each"]);
    assert!(!words.contains("one-hot"), "{words}");
}

#[test]
fn a_table_without_numbers_is_told_with_what_it_has() {
    let folder = Folder::new();
    folder.write("days.csv", "site;price\nnorth;1,5\nsouth;2,5\n");
    let said = folder.refused(["describe", "days.csv"]);
    says(&said, &["no column of numbers", "`price`: text", "--decimal ,"]);
    let told = folder.run(["describe", "days.csv", "--decimal", ","]).exits(0).stdout;
    says(&told, &["price", "numbers", "all columns of numbers are described"]);
}

/// Statistics of features come from all rows of a large file, of which only those of the fit are
/// kept: the model is that of all rows at once.
#[test]
fn rows_outside_of_the_fit_take_no_memory() {
    const ROWS: usize = 250_000;
    const ARRAYS: u64 = 8 * 18 * ROWS as u64;
    let folder = Folder::new();
    let names: Vec<String> = (0..16).map(|j| format!("signals_{j}")).collect();
    let mut text = names.join(",") + ",decisions_0,decisions_1\n";
    for i in 0..ROWS {
        for j in 0..17 {
            write!(text, "{},", (i * (3 * j + 1) + i / 7) % 97).unwrap();
        }
        text.push_str(["1\n", "0\n", "-1\n"][i % 3]);
    }
    folder.write("big.csv", &text);
    let cut = text.match_indices('\n').nth(80).unwrap().0;
    folder.write("few.csv", &text[..=cut]);
    drop(text);
    let fit = |data: &str, more: &[&str]| -> u64 {
        let words = ["fit", data, "-o", "m.argwhy", "--bounds=-1,200", "-q", "--json"];
        let ran = folder.run(words.iter().chain(more)).exits(0);
        ran.json()["peak_memory_bytes"].as_u64().unwrap_or(0)
    };
    let alone = fit("few.csv", &[]);
    let rows = ["--rows", "1000:1080", "--keep-data"];
    // Rows that lack a value are looked for among all rows, which are loaded for that.
    let whole = fit("big.csv", &[&rows[..], &["--missing", "drop"]].concat());
    let expected = timeless(&folder.path("m.argwhy"), &Value::Null);
    assert!(whole == 0 || whole > alone + ARRAYS * 3 / 4, "{whole} beside {alone}");
    for name in ["big.csv", "big.npz", "big.parquet", "big.hdf5"] {
        if name != "big.csv" {
            folder.run(["convert", "big.csv", name, "-q"]).exits(0);
        }
        let peak = fit(name, &rows);
        assert!(peak <= alone + ARRAYS / 2, "{name}: {peak} beside {alone}");
        assert_eq!(timeless(&folder.path("m.argwhy"), &Value::Null), expected, "{name}");
    }
    let model = argwhy::load_model(&folder.path("m.argwhy")).unwrap();
    assert_eq!(model.kept.unwrap().rows, (1000..1080).collect::<Vec<u64>>());
}
