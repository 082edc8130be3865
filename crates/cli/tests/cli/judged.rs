//! A verdict on every fit: how good it is on rows it has not seen, beside three baselines.

use crate::common::{Folder, bell, noise, says, timeless};
use serde_json::{Value, json};
use std::fmt::Write;

const BASELINES: [&str; 3] = ["mean", "ridge", "nearest"];

fn fit(folder: &Folder, more: &[&str]) -> (Value, String) {
    let args = ["fit", "data.csv", "-o", "m.argwhy", "--json"].iter().chain(more);
    let ran = folder.run(args).exits(0);
    (ran.json(), ran.stderr)
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn a_good_model_is_called_better_than_every_baseline() {
    let folder = Folder::with_data(600);
    let (result, told) = fit(&folder, &["--bounds=-1,1", "-k=1e-3"]);
    let judged = &result["judged"];
    assert_eq!((&judged["by"], &judged["n_judged"]), (&json!("rows"), &json!(60)));
    assert_eq!((&judged["n_learned"], &result["not_judged"]), (&json!(540), &Value::Null));
    assert_eq!(result["n_samples"], 600);
    assert!(number(&judged["r2"]) > 0.8, "{judged}");
    for name in BASELINES {
        let baseline = &judged["baselines"][name];
        assert!(number(&baseline["rmse"]) > number(&judged["rmse"]), "{name}: {judged}");
        assert!(number(&baseline["regret"]) > number(&judged["regret"]), "{name}: {judged}");
        assert_eq!(baseline["dimensions"].as_array().unwrap().len(), 2);
    }
    let shares: f64 =
        judged["dimensions"].as_array().unwrap().iter().map(|d| number(&d["regret"])).sum();
    assert!((shares - number(&judged["regret"])).abs() < 1e-12);
    says(&told, &["verdict: proven optimal, and better than every baseline", "60 rows kept aside"]);
    says(&told, &["regret", "nearest", "not a distance from the expert"]);
}

/// The story: a green "solved", and decisions worse than the mean.
#[test]
fn a_model_of_noise_is_called_worse_than_a_baseline() {
    let folder = Folder::new();
    let mut text = "signals_0,signals_1,decisions\n".to_owned();
    for i in 0..300 {
        let hours = (2.0 * bell(i, 5)).max(0.0);
        writeln!(text, "{},{},{hours}", noise(i, 0), noise(i, 1)).unwrap();
    }
    folder.write("data.csv", text);
    let (result, told) = fit(&folder, &["--lower=0", "--report=fit.html"]);
    let judged = &result["judged"];
    // Few rows: each of them is kept aside once.
    assert_eq!((&result["status"], &judged["n_judged"]), (&json!("solved"), &json!(300)));
    assert!(number(&judged["r2"]) < 0.0, "{judged}");
    says(&told, &["verdict: proven optimal, yet worse than", "argwhy tune"]);
    let page = folder.text("fit.html");
    says(&page, &["verdict bad", "worse than a baseline", "Proven optimal, yet worse than"]);
    says(&page, &["How good are its decisions?"]);
}

#[test]
fn the_model_learns_from_all_rows_whatever_is_kept_aside() {
    let folder = Folder::with_data(80);
    let model = |more: &[&str]| {
        let (result, told) = fit(&folder, &[&["--bounds=-1,1"], more].concat());
        // Rows kept aside leave ranges and misfits in the model, and nothing else.
        let mut stored = argwhy::load_model(&folder.path("m.argwhy")).unwrap();
        let asked = !more.contains(&"--holdout=0");
        assert_eq!(stored.model.calibration.take().is_some(), asked);
        assert_eq!(stored.model.misfits.take().is_some(), asked);
        argwhy::io::save_model(&folder.path("m.argwhy"), &stored.model, &stored.settings).unwrap();
        (timeless(&folder.path("m.argwhy"), &Value::Null), result, told)
    };
    let (all, judged, _) = model(&[]);
    let (same, unjudged, told) = model(&["--holdout=0"]);
    assert!(all == same);
    assert!(judged["judged"].is_object() && unjudged["judged"].is_null());
    assert!(unjudged["not_judged"].is_string() && !told.contains("verdict"), "{told}");
    // The same rows by the same seed, others by another.
    assert_eq!(model(&["--threads=1"]).1["judged"], judged["judged"]);
    assert_ne!(model(&["--seed=1"]).1["judged"], judged["judged"]);
    for share in ["0.6", "-0.1", "nan"] {
        let args = ["fit", "data.csv", "-o", "n.argwhy", &format!("--holdout={share}")];
        says(&folder.refused(args), &["holdout", "0.5"]);
    }
}

#[test]
fn what_belongs_together_is_kept_aside_together() {
    let folder = Folder::new();
    let mut text = "signals,decisions,plant,one,timeouts\n".to_owned();
    for i in 0..600 {
        let mark = u8::from(i % 50 == 49);
        writeln!(text, "{},{},p{},x,{mark}", noise(i, 0), noise(i, 0), i / 100).unwrap();
    }
    folder.write("data.csv", &text);
    let judged = |more: &[&str]| fit(&folder, &[&["--unbounded"], more].concat()).0;
    let result = judged(&[]);
    assert_eq!(result["judged"]["by"], "episodes");
    assert_eq!(result["judged"]["n_judged"], 100);
    assert_eq!(judged(&["--groups=plant"])["judged"]["by"], "groups");
    let in_time = judged(&["--order=time", "--holdout=0.2"]);
    assert_eq!(
        (&in_time["judged"]["by"], &in_time["judged"]["n_judged"]),
        (&json!("time"), &json!(120))
    );
    let refused =
        |more: &[&str]| folder.refused(["fit", "data.csv", "-o", "n.argwhy"].iter().chain(more));
    says(&refused(&["--groups=one"]), &["one group", "--groups"]);
    says(&refused(&["--groups=town"]), &["town", "plant"]);
    says(&refused(&["--groups=plant", "--order=time"]), &["--groups", "--order"]);
    folder.write("fit.toml", "groups = \"plant\"\nholdout = 0.3\n");
    let configured = judged(&["--config=fit.toml"]);
    assert_eq!(configured["judged"]["by"], "groups");
    assert_eq!(configured["judged"]["n_judged"], 200);
}

#[test]
fn what_cannot_be_judged_is_said() {
    let folder = Folder::with_data(8);
    let (result, told) = fit(&folder, &["--bounds=-1,1"]);
    assert_eq!(result["judged"], Value::Null);
    says(result["not_judged"].as_str().unwrap(), &["8 rows", "too few"]);
    says(&told, &["not judged"]);
    let mut text = "signals,decisions\n".to_owned();
    (0..40).for_each(|i| writeln!(text, "{},0.3", noise(i, 0)).unwrap());
    folder.write("data.csv", &text);
    let (result, told) = fit(&folder, &["--unbounded"]);
    assert_eq!(result["judged"]["r2"], Value::Null);
    assert_eq!(result["judged"]["dimensions"][0]["r2"], Value::Null);
    says(&told, &["R² is undefined", "constant"]);
    // One of two: the other still has one.
    let mut text = "signals,decisions_0,decisions_1\n".to_owned();
    (0..40).for_each(|i| writeln!(text, "{0},0.3,{0}", noise(i, 0)).unwrap());
    folder.write("data.csv", &text);
    let (result, told) = fit(&folder, &["--unbounded"]);
    assert!(result["judged"]["r2"].is_number());
    says(&told, &["R² of u0 is undefined: it never changes"]);
    let ran = folder.run(["fit", "data.csv", "-o", "m.argwhy", "--time-limit=1e-9", "--json"]);
    says(ran.exits(1).json()["not_judged"].as_str().unwrap(), &["time limit"]);
}

#[test]
fn evaluate_says_the_same_of_data() {
    let folder = Folder::with_data(120);
    folder.run(["fit", "data.csv", "-o", "m.argwhy", "--bounds=-1,1", "-q"]).exits(0);
    let result = folder.run(["evaluate", "m.argwhy", "data.csv", "--json"]).exits(0).json();
    let judged = &result["judged"];
    assert_eq!((&judged["by"], &judged["n_judged"]), (&json!("data"), &json!(120)));
    assert!((number(&judged["rmse"]) - number(&result["rmse"])).abs() < 1e-12);
    assert!((number(&judged["regret"]) - number(&result["mean_suboptimality"])).abs() < 1e-12);
    BASELINES.iter().for_each(|name| assert!(judged["baselines"][name].is_object()));
    let told = folder.run(["evaluate", "m.argwhy", "data.csv"]).exits(0).stdout;
    says(&told, &["rmse", "R²", "regret", "ridge"]);
    let few = ["evaluate", "m.argwhy", "data.csv", "--rows=0:5", "--json"];
    says(folder.run(few).exits(0).json()["not_judged"].as_str().unwrap(), &["5 rows", "too few"]);
}
