//! `fit --primal`: plain inverse optimization from data to decisions.

use crate::common::{Folder, noise, says, timeless, written};
use serde_json::Value;
use std::fmt::Write;

fn fit<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let args = ["fit", "data.csv", "--kernel=linear", "--bounds=-1,1", "--json", "-k=1e-3"];
    args.iter().chain(more).copied().collect()
}

fn number(result: &Value, name: &str) -> f64 {
    result[name].as_f64().unwrap_or_else(|| panic!("{name} in {result}"))
}

#[test]
fn the_primal_has_the_duals_optimum_and_decisions() {
    let folder = Folder::with_data(300);
    for more in
        [&[][..], &["--intercept"], &["--features=raw", "--intercept"], &["--rows=200:290,0:50"]]
    {
        let with = |own: &[&'static str]| -> Value {
            let args = fit(own);
            folder.run(args.iter().chain(more).chain(&["--tol=1e-11"])).exits(0).json()
        };
        let (plain, dual) = (with(&["-o=p.argwhy", "--primal"]), with(&["-o=d.argwhy"]));
        assert!((number(&plain, "objective") / number(&dual, "objective") - 1.0).abs() < 1e-9);
        assert!(number(&plain, "relative_gap") <= 1e-11);
        assert_eq!((&plain["n_support"], &plain["kernel_products"]), (&0.into(), &0.into()));
        for name in ["p", "d"] {
            let (model, out) = (format!("{name}.argwhy"), format!("{name}.npy"));
            folder.run(["predict", &model, "data.csv", "-o", &out]).exits(0);
        }
        let (a, b) = (written(&folder.path("p.npy")), written(&folder.path("d.npy")));
        assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-6), "{more:?}");
        let rmse = |model: &str| {
            number(&folder.run(["evaluate", model, "data.csv", "--json"]).exits(0).json(), "rmse")
        };
        assert!((rmse("p.argwhy") - rmse("d.argwhy")).abs() < 1e-6);
    }
}

#[test]
fn an_intercept_explains_a_constant_that_features_cannot() {
    let folder = Folder::new();
    let mut text = "signals,decisions\n".to_owned();
    let mut mean = 0.0;
    for i in 0..40 {
        let s = f64::from(i) * 0.1;
        let u = 0.25 + 0.1 * (2.0 * s).sin();
        mean += u / 40.0;
        writeln!(text, "{s},{u}").unwrap();
    }
    folder.write("data.csv", text);
    let decided = |more: &[&'static str]| {
        let args = fit(&["-o=m.argwhy", "-q"]);
        folder.run(args.iter().chain(more)).exits(0);
        folder.run(["predict", "m.argwhy", "data.csv", "-o", "p.npy", "-q"]).exits(0);
        written(&folder.path("p.npy")).sum() / 40.0
    };
    for primal in [&["--primal"][..], &[]] {
        let with = |own: &[&'static str]| decided(&[primal, own].concat());
        assert!(with(&[]).abs() < 1e-9);
        assert!((with(&["--intercept"]) - mean).abs() < 1e-3);
    }
}

#[test]
fn every_command_takes_a_plain_model() {
    let folder = Folder::with_data(200);
    let args = fit(&[
        "-o=m.argwhy",
        "--primal",
        "--intercept",
        "--report=r.html",
        "--trace=t.jsonl",
        "--features=poly2",
    ]);
    let ran = folder.run(args).exits(0);
    says(&ran.stderr, &["fitting 200 samples", "no kernel", "memory", "solved", "11 × 2 weights"]);
    assert!(!ran.stderr.contains("kernel products"), "{}", ran.stderr);
    let page = folder.text("r.html");
    says(&page, &["Which features carry weight", "s0*s2", "intercept", "<svg"]);
    let steps: Vec<Value> =
        folder.text("t.jsonl").lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert!(steps.len() >= 2);
    assert!(number(steps.last().unwrap(), "relative_gap") <= 1e-6);

    let text = folder.run(["inspect", "m.argwhy"]).exits(0).stdout;
    says(&text, &["plain linear", "intercept", "largest weights", "s1*s2", "u0", "u1"]);
    let inspected = folder.run(["inspect", "m.argwhy", "--json"]).exits(0).json();
    let weights = inspected["weights"].as_array().unwrap();
    assert_eq!(weights.len(), 11);
    assert_eq!(
        (&weights[0]["feature"], &weights[10]["feature"]),
        (&"1".into(), &"intercept".into())
    );
    assert_eq!(weights[4]["values"].as_array().unwrap().len(), 2);
    assert_eq!(inspected["settings"]["primal"], true);
    says(&folder.run(["bench", "m.argwhy"]).exits(0).stdout, &["11 × 2 weights", "one decision"]);
    let line = r#"{"signal": [0.1, 0.2, 0.3]}"#;
    let answer = folder.run_with(["predict", "m.argwhy", "--jsonl"], line).exits(0).json();
    assert_eq!(answer["decision"].as_array().unwrap().len(), 2);
    // A few numbers, however many samples there were, but for those of rows kept aside.
    let mut stored = argwhy::load_model(&folder.path("m.argwhy")).unwrap();
    (stored.model.calibration, stored.model.misfits) = (None, None);
    let bytes = argwhy::io::encode_model(&stored.model, &stored.settings).unwrap();
    assert!(bytes.len() < 4000);
}

#[test]
fn threads_change_no_bit_and_config_files_say_the_same() {
    let folder = Folder::with_data(700);
    let model = |more: &[&str]| {
        folder.run(["fit", "data.csv", "-o", "m.argwhy", "-q"].iter().chain(more)).exits(0);
        timeless(&folder.path("m.argwhy"), &Value::Null)
    };
    folder.write(
        "fit.toml",
        "kernel = \"linear\"\nprimal = true\nintercept = true\nbounds = [-1, 1]",
    );
    let one = ["--kernel=linear", "--primal", "--intercept", "--bounds=-1,1"];
    let reference = model(&[&one[..], &["--threads=1"]].concat());
    assert_eq!(reference, model(&[&one[..], &["--threads=2"]].concat()));
    assert_eq!(reference, model(&["--config=fit.toml"]));
}

#[test]
fn stopping_short_exits_1_with_a_model() {
    let folder = Folder::with_data(200);
    let args = fit(&["-o=m.argwhy", "--primal", "--max-iterations=1", "--tol=1e-13"]);
    let result = folder.run(args).exits(1).json();
    assert_eq!(result["status"], "max_iterations");
    assert!(number(&result, "gap") > 0.0);
    let inspected = folder.run(["inspect", "m.argwhy", "--json"]).exits(0).json();
    assert_eq!(inspected["gap"], result["gap"]);
}

#[test]
fn what_the_primal_cannot_do_is_refused_with_a_remedy() {
    let folder = Folder::with_data(20);
    folder.write("m.argwhy", "what was there before");
    let refused = |more: &[&str]| {
        let args = ["fit", "data.csv", "-o", "m.argwhy", "--bounds=-9,9"];
        folder.refused(args.iter().chain(more))
    };
    says(&refused(&["--primal"]), &["primal", "--kernel linear"]);
    says(&refused(&["--primal", "--kernel=rbf + linear"]), &["primal", "--kernel linear"]);
    says(&refused(&["--intercept", "--kernel=rbf"]), &["intercept", "--kernel linear"]);
    let plain = |more: &str| refused(&["--primal", "--kernel=linear", more]);
    says(&plain("--solver=sso"), &["sso", "--primal"]);
    says(&plain("--theta=learn"), &["theta", "--primal"]);
    says(&plain("--operator=tiled"), &["operator", "--primal"]);
    says(&plain("--precision=f32"), &["--precision", "--primal"]);
    says(&plain("--length-scales=1,1"), &["length-scales", "--primal"]);
    says(&plain("--gamma=1"), &["gamma"]);
    says(&plain("--block=0.5"), &["--block", "sso"]);
    says(&plain("--memory=1MiB"), &["1MiB", "at least", "--memory"]);
}

/// Two decisions under a budget of their own a row, counted by weights.
fn budgets(rows: usize) -> String {
    let mut text = "signals,decisions_0,decisions_1,M_0_0,M_0_1,W_0,weights\n".to_owned();
    for i in 0..rows {
        let (s, budget) = (noise(i, 0), 0.6 + 0.3 * noise(i, 1));
        let wanted = [0.5 + 0.6 * s + 0.1 * noise(i, 2), 0.4 - 0.5 * s + 0.1 * noise(i, 3)];
        // The nearest point with a budget for the sum.
        let over = ((wanted[0] + wanted[1] - budget) / 2.0).max(0.0);
        let [a, b] = wanted.map(|u| u - over);
        let slack = budget.max(a + b);
        writeln!(text, "{s:?},{a:?},{b:?},1,1,{slack:?},{}", 1 + i % 3).unwrap();
    }
    text
}

#[test]
fn constraints_and_weights_of_every_row_are_kept() {
    let folder = Folder::new();
    folder.write("data.csv", budgets(90));
    let with = |own: &[&'static str]| -> Value {
        let common =
            ["--constraints", "--weights", "--intercept", "--tol=1e-11", "--json", "-k=1e-3"];
        let args = ["fit", "data.csv", "--kernel=linear"].iter().chain(&common).chain(own);
        folder.run(args).exits(0).json()
    };
    let (plain, dual) =
        (with(&["-o=p.argwhy", "--primal", "--report=r.html"]), with(&["-o=d.argwhy"]));
    assert!((number(&plain, "objective") / number(&dual, "objective") - 1.0).abs() < 1e-9);
    for name in ["p", "d"] {
        let (model, out, prices) =
            (format!("{name}.argwhy"), format!("{name}.npy"), format!("{name}.csv"));
        folder.run(["predict", &model, "data.csv", "-o", &out, "--prices", &prices]).exits(0);
    }
    let (a, b) = (written(&folder.path("p.npy")), written(&folder.path("d.npy")));
    assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-6));
    // The budget holds some rows, and the report and `predict` know at what price.
    let n_prices = folder.text("p.csv").lines().count();
    assert!(n_prices > 10, "{n_prices}");
    assert_eq!(n_prices, folder.text("d.csv").lines().count());
    says(&folder.text("r.html"), &["What holds the decisions", "M[0]"]);
    let refused = folder.refused(["inspect", "p.argwhy", "--prices", "q.csv"]);
    says(&refused, &["plain model", "argwhy predict"]);
}
