//! What nobody sane does, once: outputs onto inputs, onto each other, onto things that are no
//! files, odd names.

use crate::common::{Folder, says};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileTypeExt, symlink};

#[test]
fn outputs_never_replace_inputs() {
    let folder = Folder::with_model();
    folder.write("questions.jsonl", "{\"signal\": [1, 2, 3]}\n");
    symlink(folder.path("data.csv"), folder.path("link.csv")).unwrap();
    for args in [
        "fit data.csv -o data.csv --bounds=-1,1",
        "fit data.csv -o ./data.csv --bounds=-1,1",
        "fit data.csv -o link.csv --bounds=-1,1",
        "fit data.csv -o m.argwhy --bounds=-1,1 --trace data.csv",
        "fit data.csv -o m.argwhy --bounds=-1,1 --report data.csv",
        "fit data.csv -o m.argwhy --bounds=-1,1 --report m.argwhy",
        "fit data.csv -o m.argwhy --bounds=-1,1 --trace m.argwhy",
        "predict model.argwhy data.csv -o data.csv",
        "predict model.argwhy questions.jsonl --jsonl -o questions.jsonl",
        "predict model.argwhy questions.jsonl --jsonl -o model.argwhy",
    ] {
        folder.refused(args.split(' '));
    }
}

#[test]
fn a_stream_into_a_file_is_whole_or_not_there() {
    let folder = Folder::with_model();
    folder.write("questions.jsonl", "{\"signal\": [1, 2, 3]}\n{\"signal\": [1]}\n");
    folder.write("old.jsonl", "what was there before");
    let args = ["predict", "model.argwhy", "questions.jsonl", "--jsonl", "-o", "old.jsonl"];
    says(&folder.refused(args), &["line 2"]);
    folder.refused(["predict", "model.argwhy", "none.jsonl", "--jsonl", "-o", "old.jsonl"]);
}

/// As root, writing a model to /dev/null once put a file in its place.
#[test]
fn pipes_and_devices_are_not_replaced_by_files() {
    let folder = Folder::with_model();
    for name in ["pipe", "pipe.csv"] {
        let made = std::process::Command::new("mkfifo").arg(folder.path(name)).status().unwrap();
        assert!(made.success());
    }
    let fit = ["fit", "data.csv", "--bounds=-1,1", "-q", "-o"];
    folder.refused(fit.iter().chain(&["pipe"]));
    folder.refused(fit.iter().chain(&["m.argwhy", "--report", "pipe"]));
    folder.refused(["predict", "model.argwhy", "data.csv", "-o", "pipe.csv"]);
    for name in ["pipe", "pipe.csv"] {
        assert!(std::fs::metadata(folder.path(name)).unwrap().file_type().is_fifo());
    }
    // Nor are they waited for.
    folder.refused(["inspect", "pipe"]);
    folder.refused(["fit", "pipe", "--bounds=-1,1", "-o", "m.argwhy"]);
}

#[test]
fn whatever_fit_accepts_can_be_read_back() {
    let folder = Folder::with_data(20);
    for setting in [
        "--clip=inf",
        "--clip=1e308",
        "--bounds=-inf,inf",
        "--lower=-inf,-1",
        "--upper=inf,1",
        "--seed=18446744073709551615",
        "--time-limit=1e9",
        "--gamma=1e-300",
        "--gamma=1e300",
        "-k=1e300",
        "-k=1e-300",
        "--tol=1e-300",
        "--max-iterations=0",
        "--memory=1e17",
    ] {
        let ran = folder.run(["fit", "data.csv", "-o", "m.argwhy", "-q", setting]);
        if ran.code == Some(2) {
            crate::common::one_message(&ran.stderr);
            assert!(!folder.path("m.argwhy").exists(), "{setting}");
            continue;
        }
        folder.run(["inspect", "m.argwhy", "--json"]).exits(0).json();
        folder.run(["predict", "m.argwhy", "data.csv", "-o", "p.csv", "-q"]).exits(0);
        std::fs::remove_file(folder.path("m.argwhy")).unwrap();
    }
}

#[test]
fn names_that_are_not_text() {
    let folder = Folder::with_data(20);
    let name = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    let (data, model) = (name(b"d\xff.csv"), name(b"-m\xfe.argwhy"));
    let here = |file: &OsString| std::path::Path::new(".").join(file).into_os_string();
    std::fs::rename(folder.path("data.csv"), folder.path("").join(&data)).unwrap();
    let word = |text: &str| OsString::from(text);
    let (data, model) = (here(&data), here(&model));
    let args = [word("fit"), data.clone(), word("-o"), model.clone(), word("--json"), word("-q")];
    folder.run(args).exits(0).json();
    folder.run([word("evaluate"), model.clone(), data, word("--json")]).exits(0).json();
    let message = folder.refused([word("evaluate"), model, here(&name(b"none\xff.csv"))]);
    says(&message, &["no file or folder"]);
}

#[test]
fn as_many_threads_as_a_machine_never_has() {
    let folder = Folder::with_data(20);
    let fit = ["fit", "data.csv", "-o", "m.argwhy", "--bounds=-1,1", "-q", "--threads"];
    folder.run(fit.iter().chain(&["64"])).exits(0);
    let before = folder.contents();
    says(&folder.refused(fit.iter().chain(&["1000000"])), &["threads", "1000000"]);
    assert_eq!(folder.contents(), before);
}

/// The newcomer's first data: a smooth expert without noise, limits, every default. The right-hand
/// side of a Newton system is here 1/λ times larger than the residual it is to remove, so that a
/// tolerance relative to the former removes nothing.
#[test]
fn a_smooth_expert_at_its_limits_is_solved_with_the_defaults() {
    let folder = Folder::new();
    for (rows, first) in [(200, 0), (200, 300_000), (200, 700_000), (1000, 100_000)] {
        let mut text = "signals_0,signals_1,signals_2,decisions_0,decisions_1\n".to_owned();
        for i in first..first + rows {
            let s: [f64; 3] = std::array::from_fn(|j| crate::common::bell(i, j));
            let u = [(s[0] + s[1]).sin(), (s[2] * 0.8).clamp(-1.0, 1.0)];
            let cells: Vec<String> = s.iter().chain(&u).map(|v| format!("{v:?}")).collect();
            text += &(cells.join(",") + "\n");
        }
        folder.write("data.csv", text);
        let args =
            ["fit", "data.csv", "-o", "m.argwhy", "--bounds=-1,1", "-k=1e-6", "--json", "-q"];
        let result = folder.run(args).json();
        assert_eq!(result["status"], "solved", "{rows} rows from {first}: {result}");
        assert!(result["iterations"].as_u64().unwrap() <= 20, "{rows} rows from {first}: {result}");
        let scores = folder.run(["evaluate", "m.argwhy", "data.csv", "--json"]).exits(0).json();
        assert!(scores["rmse"].as_f64().unwrap() < 0.01, "{rows} rows from {first}: {scores}");
    }
}

/// f32 rounds a linear kernel's large values by more than λ: the answer has to come from f64 then.
#[test]
fn a_linear_kernel_is_solved_with_the_defaults() {
    let folder = Folder::with_data(200);
    for limits in ["--unbounded", "--bounds=-1,1"] {
        let args = ["fit", "data.csv", "-o", "m.argwhy", "--kernel=linear", limits, "--json", "-q"];
        let result = folder.run(args).json();
        assert_eq!(result["status"], "solved", "{limits}: {result}");
    }
}

/// Whatever the step it stops at, the saved model is no worse than no model at all: α = 0 has P =
/// mean ‖û‖².
#[test]
fn a_fit_cut_short_is_no_worse_than_no_fit() {
    let folder = Folder::with_data(200);
    let mean_square = crate::common::decisions(200).iter().map(|u| u * u).sum::<f64>() / 200.0;
    for steps in ["0", "1", "2", "3", "4", "5"] {
        let args = ["fit", "data.csv", "-o", "m.argwhy", "--bounds=-1,1", "--json", "-q"];
        let result = folder.run(args.iter().chain(&["--max-iterations", steps])).json();
        let primal = result["primal"].as_f64().unwrap();
        assert!(primal <= mean_square * (1.0 + 1e-9), "{steps} steps: {primal} > {mean_square}");
    }
}
