//! Disks that are full and folders that go: nothing that was there is lost, nor what was reached.
//!
//! A full disk is made of a limit on the size of files; `trap` turns the signal that comes with it
//! into an error.

use crate::common::{Folder, one_message, says};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Runs the command where files may have 512 or 1024 bytes, as the shell counts.
fn cramped(folder: &Folder, args: &str) -> (Option<i32>, String) {
    let (code, _, stderr) = within("ulimit -f 1", folder, args);
    (code, stderr)
}

/// Runs the command after a limit was set: how it ends, and what it prints and says.
fn within(limit: &str, folder: &Folder, args: &str) -> (Option<i32>, String, String) {
    let program = assert_cmd::cargo::cargo_bin!("argwhy");
    let script = format!("trap '' XFSZ; {limit}; exec {} {args}", program.display());
    let output =
        Command::new("sh").args(["-c", &script]).current_dir(folder.path("")).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn leaves_what_was_there() {
    let folder = Folder::with_model();
    for name in ["m.argwhy", "r.html", "p.npz", "p.npy", "p.csv"] {
        folder.write(name, "what was there before");
    }
    let before = folder.contents();
    for args in [
        "fit data.csv --bounds=-1,1 -q -o m.argwhy",
        "predict model.argwhy data.csv -o p.npz",
        "predict model.argwhy data.csv -o p.npy",
        "predict model.argwhy data.csv -o p.csv",
    ] {
        let (code, stderr) = cramped(&folder, args);
        assert_eq!(code, Some(2), "{args}: {stderr}");
        says(&one_message(&stderr), &["cannot write", args.rsplit(' ').next().unwrap()]);
        assert_eq!(folder.contents(), before, "{args}");
    }
    // A model small enough to fit, and a report that is not: the old report stays.
    let args = "fit data.csv --rows 0:1 --features raw --bounds=-1,1 -q -o small.argwhy \
                --report r.html";
    let (code, stderr) = cramped(&folder, args);
    assert_eq!(code, Some(2), "{stderr}");
    says(&one_message(&stderr), &["cannot write"]);
    assert_eq!(folder.text("r.html"), "what was there before");
}

/// Fits whose folder goes while data comes in; what is said, and what is in the folder for
/// temporary files.
fn without_its_folder(more: &[&str]) -> (Folder, String, Vec<PathBuf>) {
    let folder = Folder::with_data(20);
    for name in ["gone", "spare"] {
        std::fs::create_dir(folder.path(name)).unwrap();
    }
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("argwhy"))
        .args(["fit", "-", "-o", "gone/m.argwhy", "--bounds=-1,1", "-q", "--holdout=0"])
        .args(more)
        .env("TMPDIR", folder.path("spare"))
        .current_dir(folder.path(""))
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // More than a pipe holds: once it is taken, the outputs have been checked.
    let data = crate::common::csv(20_000);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(data.as_bytes()).unwrap();
    std::fs::remove_dir_all(folder.path("gone")).unwrap();
    drop(stdin);
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(2), "{said}");
    let kept = std::fs::read_dir(folder.path("spare")).unwrap().map(|e| e.unwrap().path());
    let kept = kept.filter(|path| path.extension().is_some()).collect();
    (folder, one_message(&said), kept)
}

#[test]
fn a_folder_that_goes_while_the_fit_runs_does_not_cost_the_model() {
    let plain = ["--kernel=linear", "--features=raw", "--primal"];
    let (folder, said, kept) = without_its_folder(&plain);
    says(&said, &["gone/m.argwhy", "was saved to", "spare"]);
    assert_eq!(kept.len(), 1, "{kept:?}");
    folder.run(["inspect", kept[0].to_str().unwrap()]).exits(0);
}

#[test]
fn a_folder_that_goes_costs_no_model_of_a_path() {
    let (folder, said, kept) = without_its_folder(&["--rows=0:60", "--path=1e-2,1e-3,1e-4"]);
    says(&said, &["gone/m-k1e-2.argwhy", "was saved to", "spare"]);
    assert_eq!(kept.len(), 3, "{kept:?}");
    for model in kept {
        folder.run(["inspect", model.to_str().unwrap()]).exits(0);
    }
}

/// The larger of two models has no room anywhere: the other stays, and is told.
#[test]
fn a_disk_that_fills_up_during_a_path_costs_no_model_that_was_saved() {
    let folder = Folder::new();
    // Decisions at their limit while k is small: few samples carry weight.
    let rows = (0..1200).map(|i| {
        let x = f64::from(i % 40) / 20.0 - 1.0;
        format!("{x},{}\n", if x > -0.9 { 1.0 } else { 0.2 })
    });
    folder.write("data.csv", format!("signals_0,decisions_0\n{}", rows.collect::<String>()));
    let common = "fit data.csv --bounds=-1,1 --kernel rbf --trend none --holdout 0";
    let args = format!("{common} --path 1e-6,1e3,1 -o m.argwhy");
    let (code, _, stderr) = within(":", &folder, &args);
    assert_eq!(code, Some(0), "{stderr}");
    let size = |name: &str| std::fs::metadata(folder.path(name)).unwrap().len();
    let (small, large) = (size("m-k1e-6.argwhy"), size("m-k1e3.argwhy"));
    assert!(small + 2048 < large, "{small} and {large} bytes");
    for name in ["m-k1e-6.argwhy", "m-k1e3.argwhy", "m-k1e0.argwhy"] {
        std::fs::remove_file(folder.path(name)).unwrap();
    }
    // The shell counts in 512 or 1024 bytes; `/bin/sh` is asked which.
    let limit = format!(
        "(ulimit -f 1; head -c 4096 /dev/zero 2> /dev/null > probe); \
         unit=$(wc -c < probe); ulimit -f $(({large} / unit - 1))"
    );
    let (code, stdout, stderr) = within(&limit, &folder, &format!("{args} --json"));
    assert_eq!(code, Some(2), "{stderr}");
    let error = stderr.lines().find(|line| line.contains("error")).unwrap();
    says(error, &["cannot write", "m-k1e3.argwhy", "saved so far: `m-k1e-6.argwhy`"]);
    says(error, &["fit the rest with --path 1e3,1e0"]);
    let told: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(told["path"].as_array().unwrap().len(), 1);
    folder.run(["inspect", "m-k1e-6.argwhy"]).exits(0);
    assert!(!folder.path("m-k1e3.argwhy").exists() && !folder.path("m-k1e0.argwhy").exists());
}

/// Not even root can make a file there.
#[test]
fn folders_that_take_no_files_are_refused_before_the_fit() {
    let folder = Folder::with_data(20);
    for (flag, path) in [("-o", "/proc/m.argwhy"), ("--checkpoint", "/proc/c.checkpoint")] {
        let own = ["fit", "data.csv", "--bounds=-1,1", flag, path];
        let output: &[&str] = if flag == "-o" { &[] } else { &["-o", "m.argwhy"] };
        let said = folder.refused(own.iter().chain(output));
        says(&said, &["cannot write", path]);
    }
}

#[test]
fn a_trace_that_breaks_off_is_reported_and_the_model_saved() {
    let folder = Folder::with_data(20);
    let args = ["fit", "data.csv", "-o", "m.argwhy", "--bounds=-1,1", "-q", "--trace", "/dev/full"];
    let ran = folder.run(args).exits(2);
    says(&one_message(&ran.stderr), &["/dev/full", "trace", "model was saved"]);
    folder.run(["inspect", "m.argwhy"]).exits(0);
    let ran = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let status = Command::new(assert_cmd::cargo::cargo_bin!("argwhy"))
        .args(["inspect", "m.argwhy", "--json"])
        .current_dir(folder.path(""))
        .stdout(ran)
        .output()
        .unwrap();
    assert_eq!(status.status.code(), Some(2));
    says(&one_message(&String::from_utf8(status.stderr).unwrap()), &["standard output"]);
}
