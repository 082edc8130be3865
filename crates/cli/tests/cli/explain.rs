//! Why, from the command line: what moves decisions, one decision, and what is unlike all else.

use crate::common::{Folder, noise, says};
use serde_json::Value;
use std::fmt::Write;

/// `power` falls with the price and rises with the load, `idle` does nothing, `always` never moves.
fn folder(more: &[&str]) -> Folder {
    let folder = Folder::new();
    let mut text = "price,load,idle,always,power\n".to_owned();
    for i in 0..150 {
        let (price, load, idle) = (50.0 + 30.0 * noise(i, 0), noise(i, 1), noise(i, 2));
        let power = (20.0 - 0.5 * (price - 50.0) + 6.0 * load).clamp(0.0, 30.0);
        writeln!(text, "{price:?},{load:?},{idle:?},7,{power:?}").unwrap();
    }
    folder.write("days.csv", text);
    let fit = ["fit", "days.csv", "--signals=price,load,idle,always", "--decisions=power"];
    let rest = ["--lower=0", "--upper=30", "-k=1e-5", "-o=m.argwhy"];
    let ran = folder.run(fit.into_iter().chain(rest).chain(more.iter().copied())).exits(0);
    says(&ran.stderr, &["always is always 7"]);
    folder
}

fn shares(explained: &Value) -> Vec<(String, f64)> {
    let signals = explained["signals"].as_array().unwrap();
    signals
        .iter()
        .map(|s| (s["name"].as_str().unwrap().to_owned(), s["importance"].as_f64().unwrap()))
        .collect()
}

#[test]
fn what_moves_decisions_is_told_in_words_numbers_and_pictures() {
    let folder = folder(&["--report=fit.html"]);
    let explained = folder.run(["explain", "m.argwhy", "days.csv", "--json"]).exits(0).json();
    let shares = shares(&explained);
    assert!((shares.iter().map(|(_, share)| share).sum::<f64>() - 1.0).abs() < 1e-9);
    let names: Vec<&str> = shares.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names[..2], ["price", "load"]);
    assert!(shares[2].1 < 0.1 * shares[1].1, "{shares:?}");
    let price = &explained["signals"][0]["effect"];
    let length = price["at"].as_array().unwrap().len();
    for curve in [&price["desired"][0], &price["spread"][0], &price["decision"][0]] {
        assert_eq!(curve.as_array().unwrap().len(), length);
    }
    assert!(explained["signals"].as_array().unwrap().iter().any(|s| s["effect"].is_null()));

    let text = folder.run(["explain", "m.argwhy", "days.csv"]).exits(0).stdout;
    says(&text, &["Over 150 rows", "the desired power falls by", "never changes"]);
    // By itself, over what the model keeps, and it says so.
    let alone = folder.run(["explain", "m.argwhy"]).exits(0).stdout;
    says(&alone, &["that the model keeps", "price"]);

    folder.run(["explain", "m.argwhy", "days.csv", "-o", "why.html", "-q"]).exits(0);
    for page in ["why.html", "fit.html"] {
        let page = folder.text(page);
        says(&page, &["Why: what moves the decisions", "What a decision costs", "above its mean"]);
    }
    // Why first, proof later.
    let page = folder.text("fit.html");
    let place = |title: &str| page.find(title).unwrap();
    assert!(place("Why: what moves") < place("Convergence"));
    assert!(page.contains("Never changing: always."));
}

#[test]
fn one_decision_is_explained_by_row_and_by_line() {
    let folder = folder(&[]);
    let row = ["explain", "m.argwhy", "days.csv", "--row", "17", "--json"];
    let one = folder.run(row).exits(0).json();
    let pushed: f64 = one["pushes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|push| push["push"][0].as_f64().unwrap())
        .sum();
    let whole =
        one["desired"][0].as_f64().unwrap() - one["typical"]["desired"][0].as_f64().unwrap();
    assert!((pushed - whole).abs() < 1e-9);
    assert_eq!((one["method"].as_str(), one["row"].as_u64()), (Some("exact"), Some(17)));
    assert_eq!(one["rests_on"].as_array().unwrap().len(), 10);

    // A cheap hour: the upper limit holds it, at a price, and a higher price of power frees it.
    let line = r#"{"signal": {"always": 7, "idle": 0, "load": 0.5, "price": 22}}"#;
    let by_line = ["explain", "m.argwhy", "days.csv", "--jsonl", "--json"];
    let held = folder.run_with(by_line, line).exits(0).json();
    assert_eq!(held["held_by"][0]["limit"], "upper[power]");
    assert!(held["held_by"][0]["price"].as_f64().unwrap() > 0.0);
    assert_eq!(held["frees"][0]["limit"], "upper[power]");
    assert!(held["frees"][0]["to"].is_number());
    let text = folder.run_with(&by_line[..4], line).exits(0).stdout;
    says(&text, &["upper[power] at a price of", "would no longer hold it with", "rests on"]);
    folder.run_with(["explain", "m.argwhy", "--jsonl", "-o", "one.html", "-q"], line).exits(0);
    says(&folder.text("one.html"), &["What pushed it", "What holds it", "Which past decisions"]);

    let message = folder.refused(["explain", "m.argwhy", "days.csv", "--row", "150"]);
    says(&message, &["row 150", "150 rows"]);
    let message = folder.refused(["explain", "m.argwhy", "--row", "99999"]);
    says(&message, &["99999", "give the data"]);
    says(&folder.refused(["explain", "m.argwhy", "--row", "1", "--by", "-1"]), &["--by"]);
    assert!(folder.refused_with(["explain", "m.argwhy", "--jsonl"], "").contains("stdin"));
}

#[test]
fn models_without_names_and_plain_models_are_explained_or_say_why_not() {
    let folder = Folder::with_model();
    let explained = folder.run(["explain", "model.argwhy", "--json"]).exits(0).json();
    assert!(shares(&explained).iter().all(|(name, _)| name.starts_with('s')));
    let plain = ["fit", "data.csv", "-o", "p.argwhy", "--kernel=linear", "--primal", "-q"];
    folder.run(plain.into_iter().chain(["--bounds=-1,1"])).exits(0);
    says(&folder.refused(["explain", "p.argwhy"]), &["keeps no samples", "data"]);
    folder.run(["explain", "p.argwhy", "data.csv"]).exits(0);
    let one = folder.run(["explain", "p.argwhy", "data.csv", "--row=3", "--json"]).exits(0).json();
    assert!(one["rests_on"].is_null());
}

#[test]
fn what_is_unlike_anything_seen_is_told() {
    let folder = folder(&[]);
    let ran = folder.run(["predict", "m.argwhy", "days.csv", "-o", "a.csv"]).exits(0);
    // One row in a hundred is the strangest hundredth.
    assert!(!ran.stderr.contains("unlike") || ran.stderr.contains("note: 1 of 150"));
    folder.write("far.csv", "price,load,idle,always\n50,0,0,7\n400,0,0,7\n51,0.1,0,8\n");
    let ran = folder.run(["predict", "m.argwhy", "far.csv", "-o", "b.csv", "--familiarity"]);
    let stderr = ran.exits(0).stderr;
    says(&stderr, &["of 3 rows are unlike", "price is 400 where", "always was always 7", "1 row"]);
    let text = folder.text("b.csv");
    assert!(text.starts_with("power,familiarity\n"), "{text}");
    let familiarity: Vec<f64> =
        text.lines().skip(1).map(|l| l.split(',').nth(1).unwrap().parse().unwrap()).collect();
    assert!(familiarity[0] > 20.0 && familiarity[1] == 0.0, "{familiarity:?}");
    let line = r#"{"signal": [400, 0, 0, 7]}"#;
    let stream = ["predict", "m.argwhy", "--jsonl", "--familiarity"];
    assert_eq!(folder.run_with(stream, line).exits(0).json()["familiarity"], 0.0);
    let npy = folder.refused(["predict", "m.argwhy", "far.csv", "-o", "b.npy", "--familiarity"]);
    says(&npy, &[".npz or .csv"]);
}

#[test]
fn a_known_price_counts_in_money() {
    let folder = folder(&[]);
    let asked = ["explain", "m.argwhy", "days.csv", "--numeraire=power=price"];
    let said = folder.run(asked).exits(0).stdout;
    says(&said, &["in the money of price", "as price rises by 1"]);
    let told = folder.run(asked.into_iter().chain(["--json"])).exits(0).json();
    let worth = told["money"]["worth"].as_f64().unwrap();
    // Half a unit of power less for a unit of price: 1/(2 · 0.5).
    assert!((worth - 1.0).abs() < 0.15, "{worth}");
    assert!(told["costs"][0]["money"].as_array().unwrap().len() > 50);
    let line = r#"{"signal": {"price": 20.5, "load": 0.9, "idle": 0, "always": 7}}"#;
    let held = ["explain", "m.argwhy", "days.csv", "--jsonl", "--numeraire=power=price"];
    let said = folder.run_with(held, line).exits(0).stdout;
    says(&said, &["held by upper[power] at a price of", "in the money of price"]);
    folder.run(["explore", "m.argwhy", "days.csv", "--numeraire=power=price", "-q"]).exits(0);
    says(&folder.text("explore.html"), &["\"money\":{\"decision\":\"power\",\"signal\":\"price\""]);
    for (wrong, part) in [
        ("power=nothing", "no signal `nothing`"),
        ("power=load", "does not fall"),
        ("power=always", "never changes"),
        ("power", "such as power=price_eur_mwh"),
    ] {
        let asked = ["explain", "m.argwhy", "days.csv", "--numeraire", wrong];
        says(&folder.run(asked).exits(2).stderr, &[part]);
    }
}

/// One decision written down wrongly is found by all that speak of rows that do not fit.
#[test]
fn a_row_that_does_not_fit_is_told_by_fit_its_page_and_inspect() {
    let folder = Folder::new();
    let mut text = "price,load,power\n".to_owned();
    for i in 0..120 {
        let (price, load) = (50.0 + 30.0 * noise(i, 0), noise(i, 1));
        let usual = 20.0 - 0.2 * (price - 50.0) + 3.0 * load + 0.05 * noise(i, 2);
        writeln!(text, "{price:?},{load:?},{:?}", if i == 71 { 37.0 } else { usual }).unwrap();
    }
    folder.write("days.csv", text);
    let fit = ["fit", "days.csv", "--signals=price,load", "--decisions=power", "--bounds=0,40"];
    let settings = ["-k=1e-4", "--kernel=matern52", "--trend=linear", "--features=raw"];
    let outputs = ["--report=fit.html", "-o=m.argwhy"];
    let ran = folder.run(fit.into_iter().chain(settings).chain(outputs)).exits(0);
    says(&ran.stderr, &["rows that do not fit", "row 71: power is 37", "was to be expected"]);
    let page = folder.text("fit.html");
    let section = &page[page.find("Which rows fit worst?").unwrap()..];
    let first = section.find("<td").map(|at| &section[at..at + 40]).unwrap();
    assert!(first.contains(">71<"), "{first}");
    let inspected = folder.run(["inspect", "m.argwhy"]).exits(0).stdout;
    says(&inspected, &["rows that fit worst", "row 71: power is 37"]);
    let worst = &folder.run(["inspect", "m.argwhy", "--json"]).exits(0).json()["misfits"]["rows"];
    assert_eq!((worst[0]["row"].as_u64(), worst[0]["name"].as_str()), (Some(71), Some("power")));
}
