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
    // Numbers and names do not mix, nor do limits and none.
    let mixed = FIT.into_iter().chain(["--upper=40,p_max_kw"]);
    assert!(folder.run(mixed).exits(2).stderr.contains("--upper"));
    folder.write("none.toml", "upper = \"p_max_kw,p_max_kw\"\nunbounded = true\n");
    let ran = folder.run(FIT[..6].iter().chain(&["--config=none.toml", "-o=d.argwhy"]));
    says(&ran.exits(2).stderr, &["--unbounded"]);
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
