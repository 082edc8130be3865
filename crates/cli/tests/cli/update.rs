//! `argwhy update`: the optimum of a fit from nothing, whatever the way to it.

use crate::common::{Folder, Ran, csv, says};
use serde_json::Value;
use std::fmt::Write;

/// Features that know nothing of the data's means and widths, so that fits of other rows have the
/// same ones.
const PLAIN: [&str; 4] = ["-k=1e-6", "--normalize=none", "--bounds=-1,1", "--holdout=0"];

fn number(result: &Value, name: &str) -> f64 {
    result[name].as_f64().unwrap_or_else(|| panic!("{name} in {result}"))
}

/// A folder with all.csv, its first 260 rows in old.csv and the rest in new.csv.
fn folder() -> Folder {
    let folder = Folder::new();
    let text = csv(300);
    let lines: Vec<&str> = text.lines().collect();
    folder.write("all.csv", &text);
    folder.write("old.csv", lines[..261].join("\n") + "\n");
    folder.write("new.csv", [&lines[..1], &lines[261..]].concat().join("\n") + "\n");
    folder
}

fn fit(folder: &Folder, data: &str, model: &str, more: &[&str]) -> Value {
    let own = ["fit", data, "-o", model, "--json"];
    folder.run(own.iter().chain(&PLAIN).chain(more)).exits(0).json()
}

fn update(folder: &Folder, args: &[&str]) -> Ran {
    folder.run(["update", "--json", "--holdout=0"].iter().chain(args)).exits(0)
}

fn same_optimum(updated: &Value, fresh: &Value) {
    assert_eq!(
        (&updated["status"], &updated["n_samples"]),
        (&"solved".into(), &fresh["n_samples"])
    );
    let off = (number(updated, "primal") - number(fresh, "primal")).abs();
    assert!(off <= 2e-6 * number(fresh, "primal"), "{updated} {fresh}");
}

#[test]
fn new_rows_lead_to_the_optimum_of_all_rows() {
    let folder = folder();
    let fresh = fit(&folder, "all.csv", "fresh.argwhy", &[]);
    fit(&folder, "old.csv", "kept.argwhy", &["--keep-data"]);
    fit(&folder, "old.csv", "bare.argwhy", &[]);
    let kept = update(&folder, &["kept.argwhy", "new.csv", "-o", "a.argwhy"]).json();
    same_optimum(&kept, &fresh);
    let named = update(&folder, &["bare.argwhy", "new.csv", "--old=old.csv", "-o", "b.argwhy"]);
    same_optimum(&named.json(), &fresh);
    // What decides is the same, too.
    for model in ["a.argwhy", "b.argwhy", "fresh.argwhy"] {
        folder.run(["predict", model, "all.csv", "-o", &format!("{model}.csv")]).exits(0);
    }
    let decided = |model: &str| -> Vec<f64> {
        let text = folder.text(&format!("{model}.csv"));
        let rows = text.lines().skip(1).flat_map(|line| line.split(','));
        rows.map(|v| v.parse().unwrap()).collect()
    };
    let fresh = decided("fresh.argwhy");
    for model in ["a.argwhy", "b.argwhy"] {
        let off = decided(model).iter().zip(&fresh).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(off < 1e-2, "{model}: {off}");
    }
    // A model that kept its rows goes on keeping them.
    let again = update(&folder, &["a.argwhy", "--drop=260:300", "-o", "c.argwhy"]).json();
    same_optimum(&again, &fit(&folder, "old.csv", "d.argwhy", &[]));
}

#[test]
fn dropped_rows_are_forgotten() {
    let folder = folder();
    fit(&folder, "old.csv", "m.argwhy", &["--keep-data", "--rows=20:200"]);
    let args = ["m.argwhy", "new.csv", "--drop=20:30,190:200", "-o", "n.argwhy"];
    let updated = update(&folder, &args).json();
    let fresh = fit(&folder, "all.csv", "f.argwhy", &["--rows=30:190,260:300"]);
    same_optimum(&updated, &fresh);
}

#[test]
fn rows_that_count_zero_times_are_no_samples() {
    let folder = folder();
    let weighted = |file: &str| {
        let text = folder.text(file);
        let mut lines = text.lines();
        let header = format!("{},weights\n", lines.next().unwrap());
        let rows = lines.enumerate().map(|(i, line)| format!("{line},{}\n", i % 3));
        folder.write(file, header + &rows.collect::<String>());
    };
    ["old.csv", "new.csv"].into_iter().for_each(weighted);
    let text = folder.text("old.csv") + folder.text("new.csv").split_once('\n').unwrap().1;
    folder.write("all.csv", text);
    let fresh = fit(&folder, "all.csv", "f.argwhy", &["--weights"]);
    fit(&folder, "old.csv", "m.argwhy", &["--weights", "--keep-data"]);
    let kept = update(&folder, &["m.argwhy", "new.csv", "-o", "n.argwhy"]).json();
    same_optimum(&kept, &fresh);
    let named = ["m.argwhy", "new.csv", "--old=old.csv", "-o", "o.argwhy"];
    same_optimum(&update(&folder, &named).json(), &fresh);
    // By the numbers of the file: 260 counts zero times and is not there.
    let args = ["update", "n.argwhy", "--drop=260:261", "-o", "p.argwhy"];
    says(&folder.refused(args), &["row 260 is to be dropped"]);
    update(&folder, &["n.argwhy", "--drop=261:262", "-o", "p.argwhy"]);
    // New rows that are none leave all as it was.
    let none = folder.text("new.csv").replace(",1\n", ",0\n").replace(",2\n", ",0\n");
    folder.write("none.csv", none);
    let same = update(&folder, &["m.argwhy", "none.csv", "-o", "q.argwhy"]).json();
    same_optimum(&same, &fit(&folder, "old.csv", "g.argwhy", &["--weights"]));
}

#[test]
fn rows_keep_their_numbers_from_one_update_to_the_next() {
    let folder = folder();
    fit(&folder, "old.csv", "m.argwhy", &["--keep-data", "--rows=20:200"]);
    update(&folder, &["m.argwhy", "--drop=20:30", "-o", "n.argwhy"]);
    update(&folder, &["n.argwhy", "new.csv", "--drop=30:40", "-o", "o.argwhy"]);
    // New ones are 200 to 239.
    let updated = update(&folder, &["o.argwhy", "--drop=190:210", "-o", "p.argwhy"]).json();
    same_optimum(&updated, &fit(&folder, "all.csv", "f.argwhy", &["--rows=40:190,270:300"]));
    // What is gone cannot go again; a range without an end means those that are there.
    let refused = |drop: &str| {
        let args = ["update", "p.argwhy", "-o", "q.argwhy", drop];
        folder.refused(args)
    };
    let said = "but the model has no such row; the numbers of its 180 rows lie between 40 and 239";
    says(&refused("--drop=20:30"), &["row 20 is to be dropped", said]);
    says(&refused("--drop=185:215"), &["row 190 is to be dropped", said]);
    says(&refused("--drop=240:"), &["row 240 is to be dropped", said]);
    let updated = update(&folder, &["p.argwhy", "--drop=180:", "-o", "q.argwhy"]).json();
    same_optimum(&updated, &fit(&folder, "all.csv", "f.argwhy", &["--rows=40:180"]));
    // The old data can be named by them too.
    fit(&folder, "old.csv", "bare.argwhy", &[]);
    update(&folder, &["bare.argwhy", "--old=old.csv", "--drop=100:150", "-o", "less.argwhy"]);
    let args = ["less.argwhy", "new.csv", "--old=old.csv", "--old-rows=0:100,150:260"];
    update(&folder, &[&args[..], &["-o", "r.argwhy"]].concat());
}

#[test]
fn drift_is_told() {
    let folder = folder();
    fit(&folder, "old.csv", "m.argwhy", &["--keep-data"]);
    let text = folder.text("new.csv");
    let mut lines = text.lines();
    let mut moved = format!("{}\n", lines.next().unwrap());
    for line in lines {
        let (first, rest) = line.split_once(',').unwrap();
        writeln!(moved, "{},{rest}", first.parse::<f64>().unwrap() + 50.0).unwrap();
    }
    folder.write("moved.csv", moved);
    let ran = update(&folder, &["m.argwhy", "moved.csv", "-o", "n.argwhy"]);
    says(&ran.stderr, &["signals have drifted", "where it was", "features keep"]);
    let ran = update(&folder, &["m.argwhy", "new.csv", "-o", "n.argwhy"]);
    assert!(!ran.stderr.contains("drifted"), "{}", ran.stderr);
}

#[test]
fn what_cannot_be_updated_is_refused() {
    let folder = folder();
    fit(&folder, "old.csv", "kept.argwhy", &["--keep-data"]);
    fit(&folder, "old.csv", "bare.argwhy", &[]);
    fit(&folder, "old.csv", "plain.argwhy", &["--kernel=linear", "--primal", "--keep-data"]);
    let refused = |args: &[&str]| folder.refused(["update"].iter().chain(args));
    says(
        &refused(&["bare.argwhy", "new.csv", "-o", "x"]),
        &["bare.argwhy", "--old", "--keep-data"],
    );
    let said = refused(&["bare.argwhy", "new.csv", "--old=new.csv", "-o", "x"]);
    says(&said, &["row", "fitted to"]);
    let said = refused(&["kept.argwhy", "--drop=0:900", "-o", "x"]);
    says(&said, &["row 260 is to be dropped", "260 rows lie between 0 and 259"]);
    says(&refused(&["plain.argwhy", "new.csv", "-o", "x"]), &["plain model", "fit it again"]);
    says(&refused(&["kept.argwhy", "-o", "x"]), &["<DATA>"]);
    says(&refused(&["kept.argwhy", "new.csv", "-o", "new.csv"]), &["new.csv", "used twice"]);
}

#[test]
fn threads_and_memory_are_those_of_this_run() {
    let folder = folder();
    fit(&folder, "old.csv", "kept.argwhy", &["--keep-data", "--threads=2", "--memory=1GiB"]);
    let settings = |more: &[&str]| {
        let own = ["kept.argwhy", "new.csv", "-o", "new.argwhy"];
        update(&folder, &[&own, more].concat());
        let told =
            folder.run(["inspect", "new.argwhy", "--json"]).exits(0).json()["settings"].take();
        (told["threads"].clone(), told["memory"].clone())
    };
    // The threads of another machine are no rule for this one, while a limit was meant.
    assert_eq!(settings(&[]), (Value::Null, (1_u64 << 30).into()));
    assert_eq!(settings(&["--threads=1", "--memory=500MiB"]), (1.into(), (500_u64 << 20).into()));
    let refused = |more| folder.refused(["update", "kept.argwhy", "new.csv", "-o", "no", more]);
    says(&refused("--memory=1MiB"), &["new.csv", "memory limit of 1.0 MiB"]);
    says(&refused("--threads=0"), &["threads", "0"]);
}

#[test]
fn reading_new_rows_counts_towards_the_limit() {
    let folder = folder();
    fit(&folder, "old.csv", "kept.argwhy", &["--keep-data", "--memory=34MiB"]);
    let text = csv(300);
    let (names, rows) = text.split_once('\n').unwrap();
    folder.write("large.csv", format!("{names}\n{}", rows.repeat(900)));
    let refused = |more: &[&str]| {
        let own = ["update", "kept.argwhy", "large.csv", "-o", "no"];
        folder.refused(own.iter().chain(more))
    };
    // Refused by who reads, before the rows are there, and not by the plan afterwards.
    says(&refused(&[]), &["large.csv", "left of the memory limit of 34.0 MiB"]);
    says(&refused(&["--memory=35MiB"]), &["large.csv", "left of the memory limit of 35.0 MiB"]);
    let some = ["update", "kept.argwhy", "large.csv", "--rows=0:40", "-o", "n.argwhy"];
    folder.run(some).exits(0);
}

#[test]
fn a_model_says_how_it_came_about() {
    let folder = folder();
    fit(&folder, "old.csv", "kept.argwhy", &["--keep-data"]);
    fit(&folder, "all.csv", "all.argwhy", &[]);
    update(&folder, &["kept.argwhy", "new.csv", "-o", "more.argwhy"]);
    let about = |model: &str| {
        let told = folder.run(["inspect", model, "--json"]).exits(0).json();
        assert!(told["settings"].get("provenance").is_none());
        told["provenance"].clone()
    };
    let (old, all, more) = (about("kept.argwhy"), about("all.argwhy"), about("more.argwhy"));
    assert_eq!(old["source"], "old.csv");
    let command = "argwhy fit old.csv --regularization 1e-6 --normalize none --bounds=-1,1 \
                   --holdout 0 --keep-data";
    assert_eq!(old["command"], command);
    assert_eq!(old["versions"]["argwhy"], env!("CARGO_PKG_VERSION"));
    assert_eq!(more["source"], "old.csv, new.csv");
    assert_eq!(more["command"], "argwhy update --holdout 0 kept.argwhy new.csv");
    // The rows are the same ones, whoever read them.
    assert_eq!((&more["rows"], old["rows"] == all["rows"]), (&all["rows"], false));
    let text = folder.run(["inspect", "kept.argwhy"]).exits(0).stdout;
    for said in ["learned from      old.csv\n", "hash of its rows  ", command] {
        assert!(text.contains(said), "{said}: {text}");
    }
}

/// As `folder`, with more rows than a fit factorises: 2900 old ones and 140 new ones.
fn many() -> Folder {
    let folder = Folder::new();
    let text = csv(3040);
    let lines: Vec<&str> = text.lines().collect();
    folder.write("all.csv", &text);
    folder.write("old.csv", lines[..2901].join("\n") + "\n");
    folder.write("new.csv", [&lines[..1], &lines[2901..]].concat().join("\n") + "\n");
    folder
}

#[test]
fn an_update_goes_on_from_the_factor_that_a_model_keeps() {
    let folder = many();
    let model = |name: &str, more: &[&str]| {
        let own = ["fit", "old.csv", "-o", name];
        folder.run(own.iter().chain(&PLAIN).chain(more)).exits(0).stderr
    };
    let said = model("m.argwhy", &["--keep-data"]);
    says(&said, &["of it make the next update quicker", "--no-factor"]);
    let said = model("rows.argwhy", &["--keep-data", "--no-factor"]);
    assert!(!said.contains("quicker"), "{said}");
    let size = |name: &str| std::fs::metadata(folder.path(name)).unwrap().len();
    assert!(size("m.argwhy") > size("rows.argwhy"));

    let fresh = fit(&folder, "all.csv", "f.argwhy", &[]);
    let with = update(&folder, &["m.argwhy", "new.csv", "-o", "with.argwhy"]);
    let without = update(&folder, &["rows.argwhy", "new.csv", "--no-factor", "-o", "rows2.argwhy"]);
    says(&without.stderr, &["note: models that `fit --keep-data` writes"]);
    assert!(!with.stderr.contains("note: models that"), "{}", with.stderr);
    for updated in [&with, &without] {
        same_optimum(&updated.json(), &fresh);
    }
    // What is kept follows the rows, again and again.
    assert!(size("with.argwhy") > size("rows2.argwhy"));
    let fewer = update(&folder, &["with.argwhy", "--drop=0:100", "-o", "fewer.argwhy"]);
    same_optimum(&fewer.json(), &fit(&folder, "all.csv", "g.argwhy", &["--rows=100:3040"]));
    let both = ["fewer.argwhy", "old.csv", "--rows=0:100", "-o", "both.argwhy"];
    let both = update(&folder, &both).json();
    same_optimum(&both, &fresh);
}

#[test]
fn many_new_rows_judge_the_model_before_them() {
    let folder = Folder::new();
    let text = csv(900);
    let lines: Vec<&str> = text.lines().collect();
    folder.write("old.csv", lines[..301].join("\n") + "\n");
    folder.write("new.csv", [&lines[..1], &lines[301..]].concat().join("\n") + "\n");
    fit(&folder, "old.csv", "m.argwhy", &["--keep-data"]);
    let ran = folder.run(["update", "m.argwhy", "new.csv", "-o", "n.argwhy"]).exits(0);
    says(&ran.stderr, &["on 600 new rows (before it learned from them) it errs by"]);
    // So do rows whose signals lie closer together, which is told, but not rows that lie elsewhere.
    let rewritten = |name: &str, change: &dyn Fn(f64) -> f64| {
        let mut text = format!("{}\n", lines[0]);
        for line in &lines[301..] {
            let (first, rest) = line.split_once(',').unwrap();
            writeln!(text, "{},{rest}", change(first.parse().unwrap())).unwrap();
        }
        folder.write(name, text);
        folder.run(["update", "m.argwhy", name, "-o", "n.argwhy"]).exits(0).stderr
    };
    let column = |line: &&str| -> f64 { line.split_once(',').unwrap().0.parse().unwrap() };
    let mean = lines[1..301].iter().map(column).sum::<f64>() / 300.0;
    let said = rewritten("closer.csv", &|x| mean + 0.2 * (x - mean));
    says(&said, &["signals have drifted", "on 600 new rows (before it learned from them)"]);
    for other in
        [rewritten("wider.csv", &|x| mean + 5.0 * (x - mean)), rewritten("away.csv", &|x| x + 50.0)]
    {
        says(&other, &["signals have drifted", "rows kept aside (at random)"]);
    }
    // Few of them, or none, are not enough: rows are kept aside.
    let ran = folder.run(["update", "m.argwhy", "--drop=0:20", "-o", "n.argwhy"]).exits(0);
    says(&ran.stderr, &["rows kept aside (at random)"]);
}
