//! The names and promises of PRODUCT.md, command by command.

use crate::common::{Folder, decisions, says, signals, timeless, written};
use serde_json::{Value, json};
use std::fmt::Write;

const RESULT_NUMBERS: [&str; 6] = ["objective", "primal", "dual", "gap", "relative_gap", "seconds"];
const RESULT_COUNTS: [&str; 6] =
    ["n_samples", "decision_dim", "feature_dim", "iterations", "kernel_products", "n_support"];

fn is_a_result(result: &Value) {
    for name in RESULT_NUMBERS {
        assert!(result[name].as_f64().is_some_and(f64::is_finite), "{name} in {result}");
    }
    for name in RESULT_COUNTS {
        assert!(result[name].is_u64(), "{name} in {result}");
    }
    assert!(result["peak_memory_bytes"].is_u64() || result["peak_memory_bytes"].is_null());
    assert!(result["gap"].as_f64().unwrap() >= 0.0);
    let names = ["solved", "max_iterations", "time_limit", "interrupted", "stalled"];
    assert!(names.contains(&result["status"].as_str().unwrap()), "{result}");
}

#[test]
fn fit_prints_the_promised_object_and_nothing_else() {
    let folder = Folder::with_data(60);
    let ran = folder.run(["fit", "data.csv", "-o", "m.argwhy", "--bounds=-1,1", "--json"]).exits(0);
    let result = ran.json();
    is_a_result(&result);
    assert_eq!(result["status"], "solved");
    assert_eq!((&result["n_samples"], &result["decision_dim"]), (&json!(60), &json!(2)));
    assert_eq!((&result["feature_dim"], &result["model"]), (&json!(3), &json!("m.argwhy")));
    assert!(result["relative_gap"].as_f64().unwrap() <= 1e-6);
    assert!(result["iterations"].as_u64().unwrap() <= 100);
    let mean_square = decisions(60).iter().map(|u| u * u).sum::<f64>() / 60.0;
    let dual = mean_square - result["objective"].as_f64().unwrap();
    assert!((dual - result["dual"].as_f64().unwrap()).abs() < 1e-12);
    says(&ran.stderr, &["fitting 60 samples", "memory", "solved", "m.argwhy"]);
}

#[test]
fn without_json_nothing_is_on_stdout_and_quiet_is_silent() {
    let folder = Folder::with_data(40);
    let ran = folder.run(["fit", "data.csv", "-o", "m.argwhy", "--bounds=-1,1"]).exits(0);
    assert_eq!(ran.stdout, "");
    for json in [&[][..], &["--json"]] {
        let args = ["fit", "data.csv", "-o", "m.argwhy", "--quiet"].iter().chain(json);
        let ran = folder.run(args).exits(0);
        assert_eq!(ran.stderr, "");
        assert_eq!(ran.stdout.is_empty(), json.is_empty());
    }
    let ran = folder.run(["predict", "m.argwhy", "data.csv", "-o", "p.csv", "-q"]).exits(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
}

#[test]
fn a_preset_is_stored_as_the_settings_it_stands_for() {
    let folder = Folder::with_data(30);
    let fit = |more: &[&str]| {
        let words = ["fit", "data.csv", "-o", "m.argwhy", "--json"];
        folder.run(words.iter().chain(more)).exits(0);
        folder.run(["inspect", "m.argwhy", "--json"]).exits(0).json()["settings"].clone()
    };
    let plain = fit(&["--preset", "walker2d-medium"]);
    assert_eq!((&plain["regularization"], &plain["bounds"]), (&json!(1e-5), &json!("-1,1")));
    assert_eq!(fit(&["--preset", "walker2d-medium", "-k", "0.5"])["regularization"], json!(0.5));
    let words = ["fit", "data.csv", "-o", "m.argwhy", "--preset", "ant-expert"];
    let refused = folder.run(words).exits(2);
    says(&refused.stderr, &["ant-expert", "hopper-medium-expert"]);
}

#[test]
fn unbounded_decisions_are_noted_unless_meant() {
    let folder = Folder::with_data(30);
    let fit = |more: &[&str]| {
        folder.run(["fit", "data.csv", "-o", "m.argwhy"].iter().chain(more)).exits(0).stderr
    };
    says(&fit(&[]), &["no limits given", "unbounded"]);
    for meant in ["--unbounded", "--bounds=-1,1", "--upper=1,1", "--lower=-inf,-1"] {
        assert!(!fit(&[meant]).contains("no limits given"), "{meant}");
    }
}

#[test]
fn stopping_short_exits_1_with_a_usable_model_and_its_honest_certificate() {
    let folder = Folder::with_data(80);
    for (status, stop) in
        [("max_iterations", "--max-iterations=1"), ("time_limit", "--time-limit=1e-9")]
    {
        // Files of their own: what reaches nothing replaces no model.
        let model = &format!("{status}.argwhy");
        let args = ["fit", "data.csv", "-o", model, "--bounds=-1,1", "--json", stop];
        let result = folder.run(args).exits(1).json();
        is_a_result(&result);
        assert_eq!(result["status"], status);
        assert!(result["relative_gap"].as_f64().unwrap() > 1e-6);
        let inspected = folder.run(["inspect", model, "--json"]).exits(0).json();
        assert_eq!(inspected["gap"], result["gap"]);
        folder.run(["predict", model, "data.csv", "-o", "p.npy"]).exits(0);
        let predicted = written(&folder.path("p.npy"));
        assert_eq!(predicted.dim(), (80, 2));
        assert!(predicted.iter().all(|u| (-1.0..=1.0).contains(u)));
    }
}

#[test]
fn inspect_repeats_the_result_and_adds_what_is_inside() {
    let folder = Folder::with_data(60);
    let args = ["fit", "data.csv", "-o", "m.argwhy", "--bounds=-1,1", "--json", "--seed=3"];
    let fitted = folder.run(args).exits(0).json();
    let ran = folder.run(["inspect", "m.argwhy", "--json"]).exits(0);
    let inspected = ran.json();
    assert_eq!(ran.stderr, "");
    is_a_result(&inspected);
    for (name, value) in fitted.as_object().unwrap() {
        // A verdict is about rows, not about what is inside.
        if name == "judged" || name == "not_judged" {
            continue;
        }
        assert_eq!(&inspected[name], value, "{name}");
    }
    assert_eq!(inspected["theta_uu"], json!([[1.0, 0.0], [0.0, 1.0]]));
    assert_eq!(inspected["regularization"], 5e-3);
    let settings = &inspected["settings"];
    assert_eq!((&settings["seed"], &settings["kernel"]), (&json!(3), &json!("matern52")));
    assert_eq!(
        (&settings["regularization"], &settings["bounds"]),
        (&json!("auto"), &json!("-1,1"))
    );
    assert_eq!(
        inspected["n_support"].as_u64().unwrap() as usize,
        inspected["support_rows"].as_array().unwrap().len()
    );
    let ran = folder.run(["inspect", "m.argwhy"]).exits(0);
    says(&ran.stdout, &["solved", "objective", "gap", "-1 ≤ u0 ≤ 1"]);
    assert_eq!(ran.stderr, "");
}

#[test]
fn rows_choose_the_samples_and_their_order_but_not_the_statistics() {
    let folder = Folder::with_data(60);
    let fit = |rows: &str, model: &str| {
        let args =
            ["fit", "data.csv", "-o", model, "--bounds=-1,1", "-k=0.01", "--rows", rows, "-q"];
        folder.run(args).exits(0);
        folder.run(["inspect", model, "--json"]).exits(0).json()
    };
    let inspected = fit("40:50,0:10", "m.argwhy");
    assert_eq!(inspected["n_samples"], 20);
    let rows: Vec<u64> = serde_json::from_value(inspected["support_rows"].clone()).unwrap();
    let order: Vec<u64> = (40..50).chain(0..10).filter(|row| rows.contains(row)).collect();
    assert_eq!(rows, order);
    fit("0:7", "few.argwhy");
    let mean = |name: &str| {
        let stored = argwhy::load_model(&folder.path(name)).unwrap();
        serde_json::to_value(&stored.model.features).unwrap()["mean"].clone()
    };
    assert_eq!(mean("m.argwhy"), mean("few.argwhy"));
}

#[test]
fn evaluate_measures_what_predict_decides() {
    let folder = Folder::with_model();
    let ran = folder.run(["evaluate", "model.argwhy", "data.csv", "--json"]).exits(0);
    let scores = ran.json();
    assert_eq!(ran.stderr, "");
    assert_eq!((&scores["n"], &scores["infeasible"]), (&json!(60), &json!(0)));
    folder.run(["predict", "model.argwhy", "data.csv", "-o", "p.npz"]).exits(0);
    let errors = written(&folder.path("p.npz")) - decisions(60);
    let number = |name: &str| scores[name].as_f64().unwrap();
    let rmse = (errors.mapv(|e| e * e).sum() / 120.0).sqrt();
    assert!((number("rmse") - rmse).abs() < 1e-12, "{scores}");
    assert!((number("mae") - errors.mapv(f64::abs).sum() / 120.0).abs() < 1e-12);
    assert_eq!(number("max_error"), errors.iter().fold(0.0_f64, |m, e| m.max(e.abs())));
    assert!(number("mean_suboptimality") >= 0.0);
    let few =
        folder.run(["evaluate", "model.argwhy", "data.csv", "--rows", "3:5", "--json"]).exits(0);
    assert_eq!(few.json()["n"], 2);
    says(&folder.run(["evaluate", "model.argwhy", "data.csv"]).exits(0).stdout, &["rmse", "60"]);
}

#[test]
fn predict_writes_the_same_numbers_in_every_format() {
    let folder = Folder::with_model();
    for name in ["p.npz", "p.npy", "p.csv"] {
        let ran = folder.run(["predict", "model.argwhy", "data.csv", "-o", name]).exits(0);
        assert_eq!(ran.stdout, "");
    }
    let predicted = written(&folder.path("p.npz"));
    assert_eq!(predicted.dim(), (60, 2));
    assert_eq!(predicted, written(&folder.path("p.npy")));
    assert_eq!(predicted, written(&folder.path("p.csv")));
    assert!(folder.text("p.csv").starts_with("decisions_0,decisions_1\n"));
    // The expert is learned, not merely answered.
    let errors = &predicted - &decisions(60);
    let rmse = (errors.mapv(|e| e * e).sum() / 120.0).sqrt();
    assert!(rmse < 0.15, "{rmse}: {errors}");
    let ran = folder
        .run(["predict", "model.argwhy", "data.csv", "-o", "q.csv", "--decisions", "decisions"])
        .exits(0);
    says(&ran.stderr, &["rmse", "60"]);
}

#[test]
fn jsonl_answers_every_line() {
    let folder = Folder::with_model();
    folder.run(["predict", "model.argwhy", "data.csv", "-o", "p.npy"]).exits(0);
    let expected = written(&folder.path("p.npy"));
    let mut lines = String::new();
    for row in signals(60).rows() {
        writeln!(lines, "{}", json!({ "signal": row.to_vec() })).unwrap();
    }
    let from_stdin =
        folder.run_with(["predict", "model.argwhy", "--jsonl"], lines.as_str()).exits(0);
    assert_eq!(from_stdin.stderr, "");
    let answers: Vec<Value> =
        from_stdin.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), 60);
    for (answer, row) in answers.iter().zip(expected.rows()) {
        assert_eq!(answer, &json!({ "decision": row.to_vec() }));
    }
    folder.write("in.jsonl", &lines);
    let args = ["predict", "model.argwhy", "in.jsonl", "--jsonl", "-o", "out.jsonl"];
    assert_eq!(folder.run(args).exits(0).stdout, "");
    assert_eq!(folder.text("out.jsonl"), from_stdin.stdout);
    // Windows line ends, blank lines, no line end at the end.
    let line = r#"{"signal": [0.5, -1, 2]}"#;
    let ran =
        folder.run_with(["predict", "model.argwhy", "--jsonl"], format!("{line}\r\n\r\n{line}"));
    assert_eq!(ran.exits(0).stdout.lines().count(), 2);
    // Rows count lines; those that never come are an error once the end is known.
    let rows = |rows: &str| {
        folder.run_with(
            ["predict", "model.argwhy", "--jsonl", "--rows", rows],
            format!("{line}\n{line}"),
        )
    };
    assert_eq!(rows("1:2").exits(0).stdout.lines().count(), 1);
    says(&rows("1:5").exits(2).stderr, &["1:5", "2"]);
}

/// The settings of a model, whatever command gave them.
fn asked_for(folder: &Folder, name: &str) -> Value {
    let mut settings = argwhy::load_model(&folder.path(name)).unwrap().settings;
    settings.as_object_mut().unwrap().remove("provenance");
    settings
}

#[test]
fn a_config_file_says_what_flags_say() {
    let folder = Folder::with_data(60);
    let config = "\
        rows = \"10:50\"\nkernel = \"laplace\"\ngamma = 0.05\nlower = [-1, \"-inf\"]\nupper \
        = \"1,1\"\n\
        regularization = 1e-4\ntol = 1e-8\nprecision = \"f64\"\noperator = \"tiled\"\nseed = \
        5\nthreads = 1\n\
        memory = \"512MiB\"\nfeatures = \"raw\"\nnormalize = \"none\"\nclip = 3\nmax-iterations = \
        50\njson = true\n";
    folder.write("fit.toml", config);
    let from_file =
        folder.run(["fit", "data.csv", "-o", "a.argwhy", "--config", "fit.toml", "-q"]).exits(0);
    let flags = "--rows 10:50 --kernel laplace --gamma 0.05 --lower=-1,-inf --upper 1,1 -k 1e-4 \
                 --tol 1e-8 --precision f64 --operator tiled --seed 5 --threads 1 --memory 512MiB \
                 --features raw --normalize none --clip 3 --max-iterations 50 --json -q";
    let args = ["fit", "data.csv", "-o", "b.argwhy"].into_iter().chain(flags.split_whitespace());
    let from_flags = folder.run(args).exits(0);
    assert_eq!(from_file.json()["objective"], from_flags.json()["objective"]);
    let settings = |name| asked_for(&folder, name);
    assert_eq!(settings("a.argwhy"), settings("b.argwhy"));
    assert_eq!(settings("a.argwhy")["lower"], "-1,-inf");
    let timeless = |name| timeless(&folder.path(name), &settings(name));
    assert!(timeless("a.argwhy") == timeless("b.argwhy"), "the models differ");
    // The command line wins.
    let args = ["fit", "data.csv", "-o", "c.argwhy", "--config", "fit.toml", "-q", "--seed", "6"];
    folder.run(args).exits(0);
    assert_eq!(settings("c.argwhy")["seed"], 6);
}

#[test]
fn kernels_are_chosen_by_name_and_by_expression() {
    let folder = Folder::with_data(40);
    let fit = |options: &[&str]| {
        let args =
            ["fit", "data.csv", "-o", "m.argwhy", "--bounds=-1,1", "-k=1e-3", "-q", "--json"];
        let args = args.iter().chain(&["--features=poly2"]).chain(options);
        folder.run(args).exits(0).json()["objective"].as_f64().unwrap()
    };
    let inspect = || folder.run(["inspect", "m.argwhy", "--json"]).exits(0).json();
    let told = || folder.run(["inspect", "m.argwhy"]).exits(0).stdout;
    fit(&["--kernel", "polynomial", "--degree", "2", "--offset", "0.5", "--gamma", "0.25"]);
    let expected = json!({"kind": "polynomial", "degree": 2, "gamma": 0.25, "offset": 0.5});
    assert_eq!(inspect()["kernel"], expected);
    assert_eq!(inspect()["settings"]["degree"], 2);
    says(&told(), &["polynomial(degree=2, gamma=0.25, offset=0.5)"]);
    fit(&["--kernel", "matern52", "--trend", "none"]);
    assert_eq!(inspect()["kernel"], json!({"kind": "matern52", "gamma": 0.1}));
    // A kernel of distances has a trend beside it unless that is said to be none.
    fit(&["--kernel", "matern52"]);
    says(&told(), &["matern52(gamma=0.1) + constant + 0.01*linear"]);
    let sum = fit(&["--kernel", "rbf + 0.5*polynomial(degree=2)", "--offset", "0"]);
    let terms = &inspect()["kernel"]["terms"];
    assert_eq!(terms[0], json!({"kind": "rbf", "gamma": 0.1}));
    assert_eq!(terms[1]["kernel"]["offset"], 0.0);
    says(&told(), &["rbf(gamma=0.1) + 0.5*polynomial(degree=2, gamma=0.1, offset=0)"]);
    folder.write("c.toml", "kernel = \"rbf + 0.5*polynomial\"\ndegree = 2\noffset = 0");
    assert_eq!(sum, fit(&["--config", "c.toml"]));
    // Length scales of two are a quarter of gamma.
    let scales = ["2"; 10].join(",");
    let scaled = fit(&["--kernel", "rbf", "--trend", "none", "--length-scales", &scales]);
    says(&told(), &["with 10 length scales"]);
    let wide = fit(&["--kernel", "rbf", "--trend", "none", "--gamma", "0.025"]);
    assert!((scaled / wide - 1.0).abs() < 1e-6, "{scaled} {wide}");
    for kernel in ["rbf", "matern32", "rbf*linear"] {
        fit(&["--kernel", kernel]);
        let ran = folder.run(["evaluate", "m.argwhy", "data.csv", "--json"]).exits(0).json();
        assert_eq!(ran["infeasible"], 0, "{kernel}");
    }
}

#[test]
fn the_settings_in_a_model_are_a_config_file() {
    let folder = Folder::with_data(40);
    let args = ["fit", "data.csv", "-o", "a.argwhy", "--bounds=-1,1", "-k=1e-3", "-q"];
    folder.run(args.iter().chain(&["--kernel=rbf + 0.5*polynomial", "--degree=2"])).exits(0);
    let stored = asked_for(&folder, "a.argwhy");
    let lines: Vec<String> = stored
        .as_object()
        .unwrap()
        .iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(name, value)| format!("{name} = {value}"))
        .collect();
    folder.write("again.toml", lines.join("\n"));
    folder.run(["fit", "data.csv", "-o", "b.argwhy", "--config", "again.toml", "-q"]).exits(0);
    let timeless = |name| timeless(&folder.path(name), &stored);
    assert!(timeless("a.argwhy") == timeless("b.argwhy"), "the models differ");
}

#[test]
fn the_trace_is_json_lines_whose_gap_closes() {
    let folder = Folder::with_data(80);
    for precision in ["f32", "f64"] {
        let args = ["fit", "data.csv", "-o", "m.argwhy", "--bounds=-1,1", "--json", "-q"];
        let more = ["--trace", "t.jsonl", "--precision", precision];
        let result = folder.run(args.iter().chain(&more)).exits(0).json();
        let trace = folder.text("t.jsonl");
        let steps: Vec<Value> =
            trace.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let number = |step: &Value, name: &str| step[name].as_f64().unwrap();
        let (first, last) = (&steps[0], steps.last().unwrap());
        assert_eq!(first["iteration"], 0);
        assert_eq!((&last["gap"], &last["exact"]), (&result["gap"], &json!(true)));
        assert_eq!(last["iteration"], result["iterations"]);
        assert!(number(last, "gap") < 1e-4 * number(first, "gap"));
        for pair in steps.windows(2) {
            assert!(pair[0]["iteration"].as_u64() <= pair[1]["iteration"].as_u64());
            assert!(pair[0]["kernel_products"].as_u64() <= pair[1]["kernel_products"].as_u64());
            // The line search never lets the upper bound rise, while the kernel stays the same.
            if pair[0]["exact"] == pair[1]["exact"] && pair[0]["iteration"] != pair[1]["iteration"]
            {
                let rounding = 1e-9 * number(first, "primal");
                assert!(number(&pair[1], "primal") <= number(&pair[0], "primal") + rounding);
            }
        }
        for step in &steps {
            assert!(number(step, "gap") >= 0.0 && number(step, "violation") >= 0.0);
            assert!((0.0..=1.0).contains(&number(step, "free")));
        }
    }
}

#[test]
fn the_report_needs_nothing_from_outside() {
    let folder = Folder::with_data(60);
    // A name that would break a page that does not escape.
    std::fs::rename(folder.path("data.csv"), folder.path("a<b>&'\"c.csv")).unwrap();
    let args =
        ["fit", "a<b>&'\"c.csv", "-o", "m.argwhy", "--bounds=-1,1", "-q", "--report", "r.html"];
    folder.run(args).exits(0);
    let page = folder.text("r.html");
    assert!(page.trim_start().starts_with("<!DOCTYPE html>") && page.contains("<svg"));
    assert!(page.trim_end().ends_with("</html>"));
    let without =
        page.replace("http://www.w3.org/2000/svg", "").replace("http://www.w3.org/1999/xlink", "");
    for outside in ["http:", "https:", "<link", "@import", "url(", "src=\"//"] {
        assert!(!without.contains(outside), "{outside}");
    }
    assert!(!page.contains("a<b>") && !page.contains("NaN") && !page.contains("Infinity"));
}

#[test]
fn doctor_and_bench_answer_in_json() {
    let folder = Folder::with_model();
    let health = folder.run(["doctor", "--json"]).exits(0).json();
    assert_eq!(health["healthy"], true);
    assert!(health["checks"].as_array().is_some_and(|checks| !checks.is_empty()));
    assert!(folder.run(["bench", "model.argwhy", "--json"]).exits(0).json().is_object());
}

#[test]
fn every_data_format_will_do() {
    let folder = Folder::new();
    for (name, more) in [
        ("plain.npz", &[][..]),
        ("d4rl.npz", &[]),
        ("d4rl.hdf5", &[]),
        ("small.hdf5", &[]),
        ("minari", &[]),
    ] {
        let data = crate::common::io_data(name).display().to_string();
        let args = ["fit", &data, "-o", "m.argwhy", "--unbounded", "--json", "-q"];
        let result = folder.run(args.iter().chain(more)).json();
        is_a_result(&result);
        let scores = folder.run(["evaluate", "m.argwhy", &data, "--json"]).exits(0).json();
        assert_eq!(scores["n"], result["n_samples"], "{name}");
    }
    let (s, u) = (crate::common::io_data("signals.npy"), crate::common::io_data("decisions.npy"));
    let (s, u) = (s.display().to_string(), u.display().to_string());
    folder.run(["fit", &s, "--decisions", &u, "-o", "m.argwhy", "--unbounded", "-q"]).exits(0);
}

#[test]
fn help_and_version_are_data() {
    let folder = Folder::new();
    for args in [&["--help"][..], &["fit", "--help"], &["help", "predict"], &["--version"]] {
        let ran = folder.run(args).exits(0);
        assert!(ran.stderr.is_empty() && ran.stdout.len() > 10);
    }
    let help = folder.run(["fit", "--help"]).exits(0).stdout;
    says(
        &help,
        &["--bounds", "--regularization", "[default: 2GiB]", "[default: matern52]", "Examples:"],
    );
    let ran = folder.run([] as [&str; 0]).exits(2);
    assert_eq!(ran.stdout, "");
    says(&ran.stderr, &["Usage: argwhy <COMMAND>", "fit", "predict", "doctor"]);
}
