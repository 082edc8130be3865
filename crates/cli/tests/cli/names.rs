//! Names end to end: from the header of a table through the model to prices and decisions.

use crate::common::{Folder, noise, says};
use std::fmt::Write;

/// Days of a dispatcher: `power_kw` falls with the price, `heat_kw` with the temperature.
fn days(order: &[&str], rows: usize) -> String {
    let mut text = order.join(",") + "\n";
    for i in 0..rows {
        let (price, load, temp) =
            (50.0 + 30.0 * noise(i, 0), noise(i, 1), 10.0 + 15.0 * noise(i, 2));
        let p_max = if i % 2 == 0 { 30.0 } else { 40.0 };
        let power = (25.0 + 0.5 * (50.0 - price) + 10.0 * load).clamp(0.0, p_max);
        let heat = (20.0 - 0.5 * temp).clamp(0.0, p_max);
        let cell = |name: &&str| match *name {
            "price" => price,
            "load" => load,
            "temp" => temp,
            "power_kw" => power,
            "heat_kw" => heat,
            "p_max_kw" => p_max,
            _ => 0.0,
        };
        let cells: Vec<String> = order.iter().map(|name| format!("{:?}", cell(name))).collect();
        writeln!(text, "{}", cells.join(",")).unwrap();
    }
    text
}

const ALL: [&str; 6] = ["temp", "power_kw", "price", "heat_kw", "load", "p_max_kw"];
const FIT: [&str; 7] = [
    "fit",
    "days.csv",
    "--signals=price,load,temp",
    "--decisions=power_kw,heat_kw",
    "-k=1e-4",
    "-q",
    "-o=m.argwhy",
];

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("days.csv", days(&ALL, 80));
    folder
}

#[test]
fn columns_are_found_by_name_in_any_order() {
    let folder = folder();
    folder.run(FIT.into_iter().chain(["--lower=0,0", "--upper=40,40"])).exits(0);
    folder.write("other.csv", days(&["load", "x", "temp", "price"], 80));
    folder.run(["predict", "m.argwhy", "days.csv", "-o", "a.csv", "-q"]).exits(0);
    let ran = folder.run(["predict", "m.argwhy", "other.csv", "-o", "b.csv"]).exits(0);
    assert!(!ran.stderr.contains("note"), "{}", ran.stderr);
    assert_eq!(folder.text("a.csv"), folder.text("b.csv"));
    assert!(folder.text("a.csv").starts_with("power_kw,heat_kw\n"));
    // The same by hand, in another order.
    let swapped = ["predict", "m.argwhy", "other.csv", "--signals=temp,load,price", "-o", "c.csv"];
    folder.run(swapped).exits(0);
    assert_eq!(folder.text("a.csv"), folder.text("c.csv"));
    // Evaluating needs no words either.
    folder.run(["evaluate", "m.argwhy", "days.csv"]).exits(0);

    folder.write("lacks.csv", "price,temp,wind\n1,2,3\n");
    let message = folder.refused(["predict", "m.argwhy", "lacks.csv", "-o", "d.csv"]);
    says(&message, &["lacks.csv", "`load`", "--signals"]);
    let by_hand = ["predict", "m.argwhy", "lacks.csv", "--signals=temp,price,wind", "-o", "d.csv"];
    says(&folder.refused(by_hand), &["`temp`", "number 2"]);
    // Where there are no names, or others, the order counts, and that is said.
    folder.write("plain.csv", days(&ALL, 3).replace("price", "p").replace("load", "l"));
    let ran = folder.run(["predict", "m.argwhy", "plain.csv", "--signals=p,l,temp", "-o", "d.csv"]);
    says(&ran.exits(0).stderr, &["p as price, l as load"]);
}

#[test]
fn limits_from_columns_are_kept_by_name_and_priced_by_it() {
    let folder = folder();
    let limits = ["--lower=0,0", "--upper=p_max_kw,p_max_kw", "--json"];
    folder.run(FIT.into_iter().chain(limits)).exits(0);
    let inspected = folder.run(["inspect", "m.argwhy"]).exits(0).stdout;
    says(
        &inspected,
        &["upper limits from the columns p_max_kw, p_max_kw", "p_max_kw[power_kw]", "0 ≤ power_kw"],
    );
    let names = &folder.run(["inspect", "m.argwhy", "--json"]).exits(0).json()["names"];
    assert_eq!(names["signals"], serde_json::json!(["price", "load", "temp"]));
    assert_eq!(names["upper"], serde_json::json!(["p_max_kw", "p_max_kw"]));
    let ran = ["predict", "m.argwhy", "days.csv", "-o", "d.csv", "--prices", "p.csv", "-q"];
    folder.run(ran).exits(0);
    assert!(folder.text("p.csv").contains(",p_max_kw[power_kw],"), "{}", folder.text("p.csv"));
    folder.write("free.csv", days(&["price", "load", "temp"], 5));
    let message = folder.refused(["predict", "m.argwhy", "free.csv", "-o", "e.csv"]);
    says(&message, &["`p_max_kw`", "upper"]);
    // The config file has the same words.
    folder.write("fit.toml", "lower = [0, 0]\nupper = [\"p_max_kw\", \"p_max_kw\"]\n");
    folder.run(FIT[..6].iter().chain(&["--config=fit.toml", "-o=c.argwhy"])).exits(0);
    folder.run(["predict", "c.argwhy", "days.csv", "-o", "f.csv", "-q"]).exits(0);
    assert_eq!(folder.text("d.csv"), folder.text("f.csv"));
    // Limits and none do not mix.
    folder.write("none.toml", "upper = \"p_max_kw,p_max_kw\"\nunbounded = true\n");
    let ran = folder.run(FIT[..6].iter().chain(&["--config=none.toml", "-o=d.argwhy"]));
    says(&ran.exits(2).stderr, &["--unbounded"]);
}

#[test]
fn some_limits_come_from_columns_and_others_are_numbers() {
    let folder = folder();
    folder
        .run(FIT.into_iter().chain(["--lower=0,0", "--upper=p_max_kw,14", "--infeasible=clip"]))
        .exits(0);
    let inspected = folder.run(["inspect", "m.argwhy"]).exits(0).stdout;
    says(&inspected, &["upper limits from the columns p_max_kw", "upper[heat_kw]"]);
    let ran = ["predict", "m.argwhy", "days.csv", "-o", "d.csv", "--prices", "p.csv", "-q"];
    folder.run(ran).exits(0);
    let decided: Vec<Vec<f64>> = folder
        .text("d.csv")
        .lines()
        .skip(1)
        .map(|line| line.split(',').map(|cell| cell.parse().unwrap()).collect())
        .collect();
    assert!(decided.iter().all(|row| (0.0..=14.0).contains(&row[1])));
    assert!(decided.iter().any(|row| row[1] == 14.0) && decided.iter().any(|row| row[0] > 30.0));
    for (i, row) in decided.iter().enumerate() {
        assert!(row[0] <= if i % 2 == 0 { 30.0 } else { 40.0 }, "row {i}: {row:?}");
    }
    folder.write("fit.toml", "lower = [0, 0]\nupper = [\"p_max_kw\", 14]\ninfeasible = \"clip\"\n");
    folder.run(FIT[..6].iter().chain(&["--config=fit.toml", "-o=c.argwhy"])).exits(0);
    folder.run(["predict", "c.argwhy", "days.csv", "-o", "f.csv", "-q"]).exits(0);
    assert_eq!(folder.text("d.csv"), folder.text("f.csv"));
}

/// A file of the version that brought units, encodings, provenance and limits from some columns.
#[test]
fn a_model_of_format_5_decides_as_it_did() {
    let folder = Folder::new();
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../io/tests/data/format-5.safetensors");
    folder
        .write("new.csv", "day,hp_max,hour,price [EUR/MWh]\nmon,4.47,0,28.56\nsat,5.16,1,100.13\n");
    folder.run(["predict", model, "new.csv", "-o", "d.csv", "-q"]).exits(0);
    let text = folder.text("d.csv");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("heat pump [kW],battery [kW]"));
    let expected = [
        [4.180_850_461_347_955, 2.728_542_334_096_942],
        [2.743_326_273_414_1, -2.280_445_018_494_576],
    ];
    for (line, expected) in lines.zip(expected) {
        for (cell, expected) in line.split(',').zip(expected) {
            let decided: f64 = cell.parse().unwrap();
            assert!((decided - expected).abs() < 1e-12, "{line}");
        }
    }
    let told = folder.run(["inspect", model]).exits(0).stdout;
    says(
        &told,
        &["from the columns hp_max", "sin(hour/24)", "day=sat", "house.csv", "hash of its rows"],
    );
}

#[test]
fn a_shared_matrix_names_its_limits() {
    let folder = folder();
    folder.write("grid.csv", "limit,heat_kw,power_kw,W\ngrid connection,1,1,30\n");
    let more = ["--matrix=grid.csv", "--lower=0,0", "--infeasible=clip"];
    folder.run(FIT.into_iter().chain(more)).exits(0);
    let inspected = folder.run(["inspect", "m.argwhy"]).exits(0).stdout;
    says(&inspected, &["grid connection", "decision names", "power_kw, heat_kw"]);
    let line = r#"{"signal": {"temp": 5, "load": 0.5, "price": 35}}"#;
    let stream = ["predict", "m.argwhy", "--jsonl", "--prices", "--matrix", "grid.csv"];
    let answer = folder.run_with(stream, line).exits(0).json();
    assert!(answer["prices"]["grid connection"].as_f64().unwrap() > 0.0, "{answer}");
    let numbers = r#"{"signal": [35, 0.5, 5]}"#;
    assert_eq!(folder.run_with(stream, numbers).exits(0).json(), answer);
    for (wrong, word) in [
        (r#"{"signal": {"temp": 1, "price": 2}}"#, "`load`"),
        (r#"{"signal": {"temp": 1, "price": 2, "load": 1, "wind": 1}}"#, "`wind`"),
    ] {
        assert!(folder.run_with(stream, wrong).exits(2).stderr.contains(word));
    }
}

/// Units, said or written behind a name, are kept and told with the numbers.
#[test]
fn units_are_told_wherever_numbers_are() {
    let folder = Folder::new();
    folder.write("days.csv", days(&ALL, 80).replace("temp", "temp [degC]"));
    let fit = ["fit", "days.csv", "--signals=price,load,temp [degC]", "-k=1e-4", "-q"];
    let more = ["--decisions=power_kw,heat_kw", "--lower=0,0", "--upper=40,40", "-o=m.argwhy"];
    let units = "--units=power_kw=kW,heat_kw=kW,price=EUR/MWh";
    let fit: Vec<&str> = fit.into_iter().chain(more).collect();
    let with = |more: &[&'static str]| [fit.as_slice(), more].concat();
    folder.run(with(&[units, "--theta=learn", "--report=fit.html"])).exits(0);
    let told = folder.run(["explain", "m.argwhy", "days.csv"]).exits(0).stdout;
    says(&told, &["EUR/MWh, the desired power_kw falls by", " kW.", "As temp goes from"]);
    says(&told, &[" degC, the desired heat_kw falls by", "Giving up 1 kW of power_kw is worth"]);
    let one = folder.run(["explain", "m.argwhy", "days.csv", "--row=3"]).exits(0).stdout;
    says(&one, &["power_kw [kW]", "EUR/MWh instead of", "temp [degC]"]);
    let json = folder.run(["explain", "m.argwhy", "days.csv", "--json"]).exits(0).json();
    let units = &json["units"];
    assert_eq!((&units["price"], &units["temp [degC]"]), (&"EUR/MWh".into(), &"degC".into()));
    let inspected = folder.run(["inspect", "m.argwhy"]).exits(0).stdout;
    says(&inspected, &["0 ≤ power_kw [kW] ≤ 40", "price [EUR/MWh], load, temp [degC]"]);
    says(&folder.text("fit.html"), &["power_kw [kW], above its mean", "price [EUR/MWh]"]);
    folder.run(["explore", "m.argwhy", "days.csv", "-q"]).exits(0);
    says(&folder.text("explore.html"), &["\"name\":\"price\",\"unit\":\"EUR/MWh\""]);

    // Units change no decision and no name, and stay with a model that grows.
    folder.run(["predict", "m.argwhy", "days.csv", "-o", "a.csv", "-q"]).exits(0);
    assert!(folder.text("a.csv").starts_with("power_kw,heat_kw\n"));
    let grow = ["update", "m.argwhy", "days.csv", "--old=days.csv", "-o=n.argwhy", "-q"];
    folder.run(with(&["--units=price=EUR"])).exits(0);
    folder.run(grow).exits(0);
    let names = &folder.run(["inspect", "n.argwhy", "--json"]).exits(0).json()["names"];
    assert_eq!(names["units"], serde_json::json!({"price": "EUR"}));

    let unknown = folder.run(with(&["--units=prize=EUR"])).exits(2).stderr;
    says(&unknown, &["units", "`prize`", "price, load, temp [degC], power_kw, heat_kw"]);
    says(&folder.run(with(&["--units=EUR"])).exits(2).stderr, &["NAME=UNIT", "power=kW"]);
    says(&folder.run(with(&["--units=price="])).exits(2).stderr, &["no unit for `price`"]);
}

/// What the mathematics knows as dimension 0 or `upper[0]` is told by its name.
#[test]
fn errors_name_what_the_data_names() {
    let folder = folder();
    let fit = |more: &[&'static str]| folder.refused([FIT.as_slice(), more].concat());
    says(&fit(&["--lower=0,0", "--upper=40,5"]), &["`heat_kw` has", "outside [0, 5]"]);
    says(&fit(&["--lower=9,0", "--upper=1,5"]), &["`power_kw` has the lower limit 9"]);
    folder.write("days.csv", days(&ALL, 80).replace("30.0\n", "-3.0\n"));
    let columns = ["--lower=0,0", "--upper=p_max_kw,p_max_kw"];
    says(&fit(&columns), &["row 0", "`lower[power_kw]`, `p_max_kw[power_kw]` contradict"]);
    folder.write("days.csv", days(&ALL, 80));
    folder.run([FIT.as_slice(), &columns].concat()).exits(0);
    let line = r#"{"signal": [35, 0.5, 5], "lower": [0, 9], "upper": [40, 1]}"#;
    let told = folder.refused_with(["predict", "m.argwhy", "--jsonl"], line);
    says(&told, &["line 1", "heat_kw"]);
    let none = r#"{"signal": [35, null, 5]}"#;
    let told = folder.refused_with(["predict", "m.argwhy", "--jsonl"], none);
    says(&told, &["line 1", "no number", "{\"signal\": [numbers]}"]);
}
