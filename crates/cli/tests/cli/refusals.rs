//! Bad input: one clear message on stderr, exit 2, and no file touched. `Folder::refused` checks
//! all but the words.

use crate::common::{Folder, io_data, says};

/// Arguments of a fit of `data` onto a file that is there already.
fn fit<'a>(data: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    ["fit", data, "-o", "old.argwhy", "--bounds=-9,9"]
        .into_iter()
        .chain(more.iter().copied())
        .collect()
}

fn folder() -> Folder {
    let folder = Folder::with_data(20);
    folder.write("old.argwhy", "what was there before");
    folder
}

#[test]
fn data_that_is_not_there() {
    let folder = folder();
    says(
        &folder.refused(fit("none.npz", &[])),
        &["`none.npz`", "no file or folder", "check the path"],
    );
    says(&folder.refused(fit("data.csv/x.csv", &[])), &["data.csv/x.csv"]);
    says(&folder.refused(["evaluate", "none.argwhy", "data.csv"]), &["none.argwhy", "argwhy fit"]);
}

#[test]
fn data_that_is_damaged() {
    let folder = folder();
    let whole = std::fs::read(io_data("d4rl.npz")).unwrap();
    for length in [1, 30, whole.len() / 3, whole.len() / 2, whole.len() - 30, whole.len() - 1] {
        folder.write("cut.npz", &whole[..length]);
        says(&folder.refused(fit("cut.npz", &[])), &["`cut.npz`"]);
    }
    folder.write("noise.npz", b"PK\x03\x04 and then nothing of the kind");
    says(&folder.refused(fit("noise.npz", &[])), &["cannot be read as npz", "damaged"]);
    let whole = std::fs::read(io_data("d4rl.hdf5")).unwrap();
    for length in [4, 100, whole.len() / 2] {
        folder.write("cut.hdf5", &whole[..length]);
        says(&folder.refused(fit("cut.hdf5", &[])), &["`cut.hdf5`"]);
    }
    folder.write("noise.hdf5", b"\x89HDF\r\n\x1a\n and then nothing of the kind");
    says(&folder.refused(fit("noise.hdf5", &[])), &["`noise.hdf5`"]);
    folder.write("empty.csv", "");
    says(&folder.refused(fit("empty.csv", &[])), &["`empty.csv` is empty"]);
    let text = "signals,decisions\n1,2\n3,four\n";
    folder.write("text.csv", text);
    says(
        &folder.refused(fit("text.csv", &[])),
        &["line 3", "`decisions`", "`four`; `decisions` needs numbers"],
    );
    folder.write("semicolons.csv", text.replace(',', ";"));
    // Separators are found by themselves.
    says(
        &folder.refused(fit("semicolons.csv", &[])),
        &["line 3", "`four`; `decisions` needs numbers"],
    );
    folder.write("ragged.csv", "signals,decisions\n1,2\n3\n");
    says(&folder.refused(fit("ragged.csv", &[])), &["line 3"]);
}

#[test]
fn data_without_rows() {
    let folder = folder();
    folder.write("header.csv", "signals,decisions\n");
    says(&folder.refused(fit("header.csv", &[])), &["`header.csv`", "0 rows"]);
}

#[test]
fn data_with_the_wrong_keys() {
    let folder = folder();
    folder.write("other.csv", "price,load,power\n1,2,3\n");
    says(
        &folder.refused(fit("other.csv", &[])),
        &["`price`, `load`, `power`", "--signals", "--decisions"],
    );
    folder.write("both.csv", "signals,decisions,observations,actions\n1,2,3,4\n");
    let message = folder.refused(fit("both.csv", &[]));
    says(&message, &["not clear", "`signals`, `decisions`, `observations`, `actions`"]);
    let message = folder.refused(fit("data.csv", &["--signals", "speed"]));
    says(&message, &["`speed`", "it holds `signals`, `decisions`"]);
    folder.write("half.csv", "signals,actions\n1,2\n");
    folder.refused(fit("half.csv", &[]));
}

#[test]
fn data_of_the_wrong_shape() {
    let folder = folder();
    let d4rl = io_data("d4rl.npz").display().to_string();
    says(&folder.refused(fit(&d4rl, &["--signals", "images"])), &["`images`", "3-D"]);
    says(&folder.refused(fit(&d4rl, &["--signals", "names"])), &["`names`", "dtype"]);
    let (signals, rows) = (io_data("signals.npy"), io_data("plain.npz"));
    let signals = signals.display().to_string();
    says(&folder.refused(fit(&signals, &[])), &["--decisions FILE.npy"]);
    let rows = rows.display().to_string();
    folder.refused(fit(&signals, &["--decisions", &rows]));
}

#[test]
fn values_that_are_not_finite() {
    let folder = folder();
    let bad = |value: &str| format!("signals_0,signals_1,decisions\n1,2,3\n4,5,6\n7,{value},9\n");
    for value in ["inf", "-inf", "1e999"] {
        folder.write("bad.csv", bad(value));
        says(&folder.refused(fit("bad.csv", &[])), &["`signals`", "row 2, column 1"]);
    }
    for value in ["NaN", ""] {
        folder.write("bad.csv", bad(value));
        let said = folder.refused(fit("bad.csv", &[]));
        says(&said, &["missing", "`signals[1]` in row 2", "--missing drop"]);
    }
    folder.write("bad.csv", "signals,decisions_0,decisions_1\n1,2,3\n4,nan,6\n");
    says(&folder.refused(fit("bad.csv", &[])), &["missing", "`decisions[0]` in row 1"]);
    folder.write("huge.csv", "signals,decisions\n1e200,1\n-1e200,2\n");
    says(&folder.refused(fit("huge.csv", &[])), &["overflow"]);
}

#[test]
fn rows_that_are_not_there() {
    let folder = folder();
    for (rows, part) in [
        ("0:21", "which has 20 rows"),
        ("20:", "which has 20 rows"),
        ("0:1000000000000", "which has 20 rows"),
        ("0:99999999999999999999", "too large"),
        ("5:5", "no rows"),
        ("8:3", "no rows"),
        ("0:5,4:9", "`0:5` and `4:9` overlap"),
        ("5", "colon"),
        ("a:b", "whole numbers"),
        ("", "colon"),
    ] {
        let rows = format!("--rows={rows}");
        says(&folder.refused(fit("data.csv", &[&rows])), &[part]);
    }
}

#[test]
fn settings_out_of_range() {
    let folder = folder();
    for (setting, parts) in [
        ("-k=0", &["regularization is 0", "positive"][..]),
        ("-k=-1", &["regularization is -1"]),
        ("-k=nan", &["regularization is NaN"]),
        ("-k=inf", &["regularization is inf"]),
        ("-k=much", &["much"]),
        ("--gamma=0", &["gamma is 0", "auto"]),
        ("--gamma=-2", &["gamma is -2"]),
        ("--gamma=wide", &["wide", "auto"]),
        ("--tol=0", &["tol is 0"]),
        ("--tol=inf", &["tol is inf"]),
        ("--clip=0", &["clip is 0"]),
        ("--clip=nan", &["clip is NaN"]),
        ("--time-limit=0", &["time-limit is 0", "seconds"]),
        ("--time-limit=-1", &["time-limit is -1"]),
        ("--threads=0", &["threads is 0", "every core"]),
        ("--threads=-1", &["-1"]),
        ("--seed=-1", &["-1"]),
        ("--max-iterations=1.5", &["1.5"]),
        ("--memory=lots", &["lots", "2GiB"]),
        ("--memory=0", &["512MiB"]),
    ] {
        says(&folder.refused(fit("data.csv", &[setting])), parts);
    }
}

#[test]
fn choices_list_what_is_allowed() {
    let folder = folder();
    for (setting, allowed) in [
        (
            "--kernel=gauss",
            &["rbf", "laplace", "linear", "polynomial", "matern32", "matern52", "0.5*linear"][..],
        ),
        ("--features=poly3", &["poly2", "raw"]),
        ("--normalize=minmax", &["zscore", "none"]),
        ("--infeasible=ignore", &["error", "clip", "keep"]),
        ("--precision=f16", &["f32", "f64"]),
        ("--operator=dense", &["auto", "stored", "tiled"]),
        ("--solver=adam", &["newton"]),
    ] {
        let value = setting.split('=').nth(1).unwrap();
        let message = folder.refused(fit("data.csv", &[setting]));
        says(&message, &[value]);
        says(&message, allowed);
    }
    says(&folder.refused(fit("data.csv", &["--bouns=1,2"])), &["--bouns", "--bounds"]);
    says(&folder.refused(["demo", "helicopter"]), &["helicopter", "quadrotor", "charging"]);
    says(&folder.refused(["demo", "--nights", "100"]), &["--nights", "charging"]);
    says(&folder.refused(["demo", "charging", "--nights", "7"]), &["7", "50"]);
    says(&folder.refused(["train"]), &["train", "--help"]);
}

#[test]
fn limits_that_make_no_sense() {
    let folder = folder();
    let limits = |more: &[&str]| {
        let args = ["fit", "data.csv", "-o", "old.argwhy"];
        folder.refused(args.iter().chain(more))
    };
    says(&limits(&["--bounds=1,-1"]), &["lower limit 1", "upper limit -1"]);
    says(
        &limits(&["--lower=0,2", "--upper=1,1"]),
        &["dimension 1", "lower limit 2", "upper limit 1"],
    );
    says(&limits(&["--lower=-1"]), &["lower", "1", "2"]);
    says(&limits(&["--lower=-1,-1", "--upper=1,1,1"]), &["upper", "3", "2"]);
    says(&limits(&["--bounds=1"]), &["LO,HI"]);
    says(&limits(&["--bounds=-1,0,1"]), &["LO,HI"]);
    says(&limits(&["--bounds=a,b"]), &["`a` is not a number"]);
    says(&limits(&["--bounds=nan,1"]), &["nan"]);
    says(&limits(&["--bounds=inf,inf"]), &["inf"]);
    says(&limits(&["--bounds=-1,1", "--unbounded"]), &["--bounds", "--unbounded"]);
    says(&limits(&["--bounds=-1,1", "--lower=0,0"]), &["--bounds", "--lower"]);
}

#[test]
fn decisions_outside_their_limits_are_an_error_or_clipped_or_kept() {
    let folder = Folder::new();
    folder.write("data.csv", "signals,decisions\n0,0\n1,1.5\n2,0.5\n3,-4\n4,1.0000001\n");
    let fit = |more: &'static [&'static str]| {
        ["fit", "data.csv", "-o", "m.argwhy", "--bounds=-1,1", "-k=0.01"].iter().chain(more)
    };
    let message = folder.refused(fit(&[]));
    says(&message, &["2 of 5 decisions", "rows: 1, 3", "row 1: dimension 0 has 1.5", "[-1, 1]"]);
    says(&message, &["--infeasible clip", "--infeasible keep"]);
    // Rows are named by their place in the file.
    says(&folder.refused(fit(&["--rows=3:5"])), &["1 of 2 decisions", "row 3"]);
    let ran = folder.run(fit(&["--infeasible=clip", "--json"])).exits(0);
    says(
        &ran.stderr,
        &[
            "2 decisions lie outside their limits",
            "1 decisions lie outside their limits by rounding",
        ],
    );
    let clipped = ran.json()["objective"].as_f64().unwrap();
    folder.write("clipped.csv", "signals,decisions\n0,0\n1,1\n2,0.5\n3,-1\n4,1\n");
    let args = ["fit", "clipped.csv", "-o", "n.argwhy", "--bounds=-1,1", "-k=0.01", "--json"];
    assert_eq!(folder.run(args).exits(0).json()["objective"].as_f64().unwrap(), clipped);
    let kept = folder.run(fit(&["--infeasible=keep", "--json"])).exits(0).json();
    assert!(kept["objective"].as_f64().unwrap() != clipped);
    folder.run(["predict", "m.argwhy", "data.csv", "-o", "p.npy"]).exits(0);
    assert!(crate::common::written(&folder.path("p.npy")).iter().all(|u| (-1.0..=1.0).contains(u)));
}

#[test]
fn a_memory_limit_that_cannot_be_kept_names_the_least_and_the_least_works() {
    let folder = Folder::with_data(300);
    for operator in ["auto", "stored", "tiled"] {
        let base = ["fit", "data.csv", "-o", "m.argwhy", "--bounds=-1,1", "--operator", operator];
        let message = folder.refused(base.iter().chain(&["--memory=1MiB"]));
        says(&message, &["1MiB", "300 samples", "--memory"]);
        let least = message.split("at least ").nth(1).unwrap().split([';', ' ']).next().unwrap();
        let memory = format!("--memory={least}");
        let result =
            folder.run(base.iter().copied().chain([memory.as_str(), "--json"])).exits(0).json();
        let limit: argwhy::settings::MemorySize = least.parse().unwrap();
        if let Some(peak) = result["peak_memory_bytes"].as_u64() {
            assert!(peak <= limit.0, "{operator}: {peak} of {least}");
        }
        std::fs::remove_file(folder.path("m.argwhy")).unwrap();
    }
}

/// data.csv has three signals, so ten features.
#[test]
fn kernels_that_cannot_be_meant() {
    let folder = folder();
    for (options, parts) in [
        (&["--kernel=rbf + gauss"][..], &["`gauss`", "`matern32`"][..]),
        (&["--kernel=rbf(degree=2)"], &["`rbf` has no parameter `degree`", "gamma"]),
        (&["--kernel=rbf - linear"], &["`- linear`"]),
        (&["--kernel=-1*rbf"], &["negative", "positive semidefinite"]),
        (&["--kernel=rbf + 2"], &["`2` is a number"]),
        (&["--kernel=0*rbf"], &["weight", "positive"]),
        (&["--kernel="], &["--kernel"]),
        (&["--degree=2"], &["degree is 2", "only polynomial"]),
        (&["--kernel=matern32", "--offset=2"], &["offset is 2", "only polynomial"]),
        (&["--kernel=linear", "--gamma=2"], &["gamma is 2", "auto"]),
        (&["--kernel=polynomial(degree=2)", "--degree=3"], &["degree is 3", "parentheses"]),
        (&["--kernel=polynomial", "--degree=0"], &["degree is 0", "1 to 32"]),
        (&["--kernel=polynomial", "--degree=2.5"], &["2.5"]),
        (&["--kernel=polynomial", "--degree=-1"], &["-1"]),
        (&["--kernel=polynomial", "--offset=-1"], &["offset is -1", "zero or a positive"]),
        (&["--kernel=matern52(gamma=-1)"], &["gamma is -1"]),
        (&["--length-scales=1,2"], &["2 length scales", "3 features"]),
        (&["--length-scales=1,0"], &["length-scales is 0", "positive"]),
        (&["--length-scales=1,-2"], &["length-scales is -2"]),
        (&["--length-scales=1,inf"], &["length-scales is inf"]),
        (&["--length-scales=1,x"], &["`x` is not a number"]),
    ] {
        says(&folder.refused(fit("data.csv", options)), parts);
    }
    for (text, parts) in [
        ("kernel = \"rbf + gauss\"", &["line 1", "`gauss`"][..]),
        ("degree = 2", &["degree is 2"]),
        ("kernel = \"linear\"\ngamma = 2.0", &["gamma is 2"]),
        ("length-scales = [1, 2]", &["2 length scales"]),
        ("kernel = 3", &["line 1", "rbf + 0.5*linear"]),
        ("kernel = { kind = \"gauss\" }", &["gauss"]),
    ] {
        folder.write("c.toml", text);
        says(&folder.refused(fit("data.csv", &["--config=c.toml"])), parts);
    }
}

#[test]
fn config_files_that_are_wrong() {
    let folder = folder();
    for (text, parts) in [
        ("regularisation = 1", &["c.toml", "line 1", "`regularisation`", "`regularization`"][..]),
        ("tol = 1e-6\nkernel = \"gauss\"", &["c.toml", "line 2", "gauss", "`rbf`"]),
        ("tol = \"small\"", &["line 1", "small"]),
        ("rows = \"3:1\"", &["line 1", "3:1"]),
        ("[[", &["c.toml", "line 1"]),
        ("regularization = -1", &["regularization is -1"]),
        ("threads = 0", &["threads is 0"]),
        ("output = \"x\"", &["`output`"]),
    ] {
        folder.write("c.toml", text);
        says(&folder.refused(fit("data.csv", &["--config", "c.toml"])), parts);
    }
    folder.write("c.toml", "bounds = [-1, 1]\nunbounded = true");
    folder.refused(["fit", "data.csv", "-o", "old.argwhy", "--config", "c.toml"]);
    says(&folder.refused(fit("data.csv", &["--config", "none.toml"])), &["none.toml"]);
}

#[test]
fn places_that_cannot_be_written() {
    let folder = Folder::with_model();
    std::fs::create_dir(folder.path("dir")).unwrap();
    std::fs::create_dir(folder.path("dir.csv")).unwrap();
    let fit = |more: [&'static str; 3]| {
        folder.refused(["fit", "data.csv", "--bounds=-1,1", more[0], more[1], more[2]])
    };
    says(&fit(["-o", "none/m.argwhy", "-q"]), &["none/m.argwhy", "no folder `none`"]);
    says(&fit(["-o", "dir", "-q"]), &["`dir`", "folder"]);
    let message = folder.refused(["fit", "data.csv", "-o", "m.argwhy", "--report", "none/r.html"]);
    says(&message, &["none/r.html"]);
    let message =
        folder.refused(["fit", "data.csv", "-o", "m.argwhy", "--bounds=-1,1", "--trace", "none/t"]);
    says(&message, &["none/t"]);
    let predict = |out: &str| folder.refused(["predict", "model.argwhy", "data.csv", "-o", out]);
    says(&predict("p.mat"), &["p.mat", ".npz, .npy or .csv"]);
    says(&predict("none/p.csv"), &["no folder"]);
    says(&predict("dir.csv"), &["dir.csv"]);
    says(&folder.refused(["predict", "model.argwhy", "data.csv"]), &["--output"]);
}

#[test]
fn models_that_are_not() {
    let folder = Folder::with_model();
    folder.write("old.npz", "what was there before");
    let whole = folder.bytes("model.argwhy");
    let use_of = |bytes: &[u8]| {
        folder.write("m.argwhy", bytes);
        let messages = [
            folder.refused(["predict", "m.argwhy", "data.csv", "-o", "old.npz"]),
            folder.refused(["inspect", "m.argwhy"]),
        ];
        assert_eq!(messages[0], messages[1]);
        let [message, _] = messages;
        message
    };
    says(&use_of(b""), &["`m.argwhy` is not an argwhy model"]);
    says(&use_of(folder.text("data.csv").as_bytes()), &["not an argwhy model", "argwhy fit"]);
    for length in [7, 8, 200, whole.len() / 2, whole.len() - 1] {
        use_of(&whole[..length]);
    }
    for at in [0, 3, 9, 40, 300, whole.len() / 2, whole.len() - 1] {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        use_of(&damaged);
    }
    let mut longer = whole.clone();
    longer.push(0);
    use_of(&longer);
    let old = br#"\"format\":4,"#;
    let at = whole.windows(old.len()).position(|w| w == old).unwrap();
    let mut newer = whole.clone();
    newer[at..at + old.len()].copy_from_slice(br#"\"format\":9,"#);
    says(&use_of(&newer), &["format 9", "reads up to 5", "update argwhy"]);
}

#[test]
fn signals_of_the_wrong_width() {
    let folder = Folder::with_model();
    folder.write("narrow.csv", "signals_0,signals_1,decisions_0,decisions_1\n1,2,3,4\n");
    folder.write("old.csv", "what was there before");
    let message = folder.refused(["predict", "model.argwhy", "narrow.csv", "-o", "old.csv"]);
    says(&message, &["signals", "2", "3"]);
    folder.refused(["evaluate", "model.argwhy", "narrow.csv"]);
    folder.write("one.csv", "signals_0,signals_1,signals_2,decisions_0\n1,2,3,4\n");
    says(
        &folder.refused(["evaluate", "model.argwhy", "one.csv", "--json"]),
        &["decisions", "1", "2"],
    );
    let ask = |line: &str| folder.refused_with(["predict", "model.argwhy", "--jsonl"], line);
    says(&ask(r#"{"signal": [1, 2]}"#), &["line 1", "2", "3"]);
    for line in [
        "{}",
        "[]",
        "hello",
        r#"{"signal": 1}"#,
        r#"{"signal": []}"#,
        r#"{"signal": [1, 2, null]}"#,
        r#"{"signal": [1, 2, NaN]}"#,
        r#"{"signal": [1, 2, 1e999]}"#,
        r#"{"signal": [1, 2, "3"]}"#,
        r#"{"signal": [1, 2, 3], "other": 4}"#,
        r#"{"signal": [1, 2, 3]} {"signal": [1, 2, 3]}"#,
    ] {
        says(&ask(line), &["line 1"]);
    }
    // What comes before a bad line is answered; the bad line is named.
    let lines = "{\"signal\": [1, 2, 3]}\n\n{\"signal\": [1, 2]}\n{\"signal\": [1, 2, 3]}\n";
    let ran = folder.run_with(["predict", "model.argwhy", "--jsonl"], lines).exits(2);
    assert_eq!(ran.stdout.lines().count(), 1);
    says(&crate::common::one_message(&ran.stderr), &["line 3"]);
    folder.refused_with(["predict", "none.argwhy", "--jsonl"], "");
    folder.refused(["predict", "model.argwhy", "none.jsonl", "--jsonl"]);
    folder.refused(["predict", "model.argwhy", "data.csv", "-o", "p.csv", "--rows", "0:61"]);
    folder.refused(["predict", "model.argwhy", "data.csv", "-o", "p.csv", "--threads", "0"]);
}
