//! Where a command writes: found out before it works, told apart by the file and not by its name,
//! untouched until there is something. Each test is named after a fault of issue 21.

use crate::common::{Folder, says};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

const OLD: &str = "what was there before\n";

/// Fault 9.
#[test]
fn a_refused_fit_leaves_the_old_trace() {
    let folder = Folder::with_data(20);
    folder.write("t.jsonl", OLD);
    folder.write("bad.csv", "signals,decisions\n1,5\n2,0\n");
    for args in [
        // Refused by the options, by the data, by the limits, by the plan, by the kernel.
        "fit data.csv -o m.argwhy --trace t.jsonl --bounds=-1,1 -k=-1",
        "fit none.csv -o m.argwhy --trace t.jsonl --bounds=-1,1",
        "fit data.csv -o m.argwhy --trace t.jsonl --bounds=-1,1 --rows=0:99",
        "fit bad.csv -o m.argwhy --trace t.jsonl --bounds=-1,1",
        "fit data.csv -o m.argwhy --trace t.jsonl --bounds=-1,1 --memory=1MiB",
        "fit data.csv -o m.argwhy --trace t.jsonl --bounds=-1,1 --length-scales=1,2",
        "fit data.csv -o m.argwhy --trace t.jsonl --bounds=-1,1 --solver=sso --block=21",
        "fit data.csv -o m.argwhy --trace t.jsonl --bounds=-1,1 --solver=sso --warm-up=21 -q",
    ] {
        folder.refused(args.split(' '));
        assert_eq!(folder.text("t.jsonl"), OLD, "{args}");
    }
    let fit = "fit data.csv -o m.argwhy --trace t.jsonl --bounds=-1,1 -q";
    folder.run(fit.split(' ')).exits(0);
    let steps = folder.text("t.jsonl");
    assert!(
        steps.lines().all(|line| line.starts_with('{')) && steps.lines().count() > 0,
        "{steps}"
    );
}

#[test]
fn every_solver_writes_a_trace_and_leaves_no_other_file() {
    let folder = Folder::with_data(20);
    for (at, more) in
        ["", "--solver=sso", "--theta=learn", "--kernel=linear --primal", "--max-iterations=0"]
            .into_iter()
            .enumerate()
    {
        folder.write("t.jsonl", OLD);
        let args =
            format!("fit data.csv -o m.argwhy --trace t.jsonl --bounds=-1,1 -q -k 0.01 {more}");
        folder.run(args.split_whitespace());
        let steps = folder.text("t.jsonl");
        assert!(!steps.contains(OLD) && steps.lines().count() > 0, "{at} {more}: {steps}");
        assert_eq!(folder.contents().len(), 3, "{more}");
    }
}

#[test]
fn a_trace_to_standard_error_is_a_stream() {
    let folder = Folder::with_data(20);
    let args = "fit data.csv -o m.argwhy --trace /dev/stderr --bounds=-1,1 -q";
    let ran = folder.run(args.split(' ')).exits(0);
    assert!(ran.stderr.contains("relative_gap"), "{}", ran.stderr);
}

/// Fault 10.
#[test]
fn a_link_to_an_input_or_another_output_is_refused() {
    let folder = Folder::with_model();
    fs::hard_link(folder.path("data.csv"), folder.path("hard.csv")).unwrap();
    fs::hard_link(folder.path("model.argwhy"), folder.path("hard.argwhy")).unwrap();
    symlink("data.csv", folder.path("soft.csv")).unwrap();
    symlink("soft.csv", folder.path("softer.csv")).unwrap();
    symlink(".", folder.path("here")).unwrap();
    folder.write("old", OLD);
    fs::hard_link(folder.path("old"), folder.path("old-2")).unwrap();
    folder.write("c.toml", "tol = 1e-6\n");
    fs::hard_link(folder.path("c.toml"), folder.path("c-2.toml")).unwrap();
    let fit = "fit data.csv --bounds=-1,1 -q";
    for args in [
        format!("{fit} -o m --trace hard.csv"),
        format!("{fit} -o m --trace soft.csv"),
        format!("{fit} -o m --trace softer.csv"),
        format!("{fit} -o m --report hard.csv"),
        format!("{fit} -o hard.csv"),
        format!("{fit} -o m --config c.toml --trace c-2.toml"),
        format!("{fit} -o old --trace old-2"),
        format!("{fit} -o old --report old-2"),
        format!("{fit} -o new --trace here/new"),
        format!("{fit} -o here/new --report ./new"),
        "predict model.argwhy data.csv -o hard.csv".to_owned(),
        "predict model.argwhy data.csv -o p.csv --prices softer.csv".to_owned(),
        "predict hard.argwhy --jsonl -o model.argwhy".to_owned(),
        "predict model.argwhy data.csv -o new.csv --prices here/new.csv".to_owned(),
    ] {
        says(&folder.refused(args.split(' ')), &["used twice"]);
    }
}

#[test]
fn an_output_among_the_data_of_a_folder_is_refused() {
    let folder = Folder::new();
    fs::create_dir(folder.path("d")).unwrap();
    for name in ["signals.npy", "decisions.npy"] {
        fs::copy(crate::common::io_data("signals.npy"), folder.path("d").join(name)).unwrap();
    }
    let before = fs::read(folder.path("d/signals.npy")).unwrap();
    folder.refused("fit d -o m.argwhy --unbounded --trace d/signals.npy".split(' '));
    assert_eq!(fs::read(folder.path("d/signals.npy")).unwrap(), before);
    // A model beside the data is no data, the second time too.
    for _ in 0..2 {
        folder.run("fit d -o d/m.argwhy --unbounded -q".split(' ')).exits(0);
    }
}

/// Fault 14.
#[test]
fn ablate_tells_data_sets_of_one_name_apart() {
    let folder = Folder::new();
    for (name, rows) in [("a", 20), ("b", 30)] {
        fs::create_dir(folder.path(name)).unwrap();
        fs::write(folder.path(name).join("d.csv"), crate::common::csv(rows)).unwrap();
    }
    let args = "ablate a/d.csv b/d.csv --bounds=-1,1 -o out --only zero --iterations 2 -k 1e-2 -q";
    let ran = folder.run(args.split(' ')).exits(0);
    says(&ran.stdout, &["| a-d | 20 |", "| b-d | 30 |"]);
    let mut traces: Vec<String> = fs::read_dir(folder.path("out"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| Path::new(name).extension().is_some_and(|e| e == "jsonl"))
        .collect();
    traces.sort();
    assert_eq!(traces.len(), 4, "{traces:?}");
    assert!(traces[0].starts_with("a-d.") && traces[3].starts_with("b-d."), "{traces:?}");
    says(&folder.text("out/report.html"), &["a-d", "b-d"]);
}

/// Fault 18. As root no folder is read-only, but some are not there, are files, or are the
/// system's.
#[test]
fn a_place_that_cannot_be_written_is_refused_before_the_work() {
    let folder = Folder::with_model();
    folder.write("file", OLD);
    fs::create_dir(folder.path("dir")).unwrap();
    fs::create_dir(folder.path("dir.csv")).unwrap();
    fs::create_dir_all(folder.path("full/report.html")).unwrap();
    // Data that is refused too: the place comes first.
    for data in ["data.csv", "none.csv"] {
        for place in ["none/m", "file/m", "/proc/m", "/proc/none/m", "dir"] {
            for args in [
                format!("fit {data} --bounds=-1,1 -o {place}"),
                format!("fit {data} --bounds=-1,1 -o m --report {place}"),
                format!("fit {data} --bounds=-1,1 -o m --trace {place}"),
                format!("fit {data} --bounds=-1,1 -o {place} --path=1e-2,1e-3")
                    .replace("-o dir ", "-o dir/none/m "),
                format!("predict model.argwhy {data} --jsonl -o {place}"),
                format!("predict model.argwhy {data} -o {place}.csv"),
                format!("predict model.argwhy {data} -o p.csv --prices {place}.csv"),
            ] {
                let message = folder.refused(args.split(' '));
                says(&message, &["cannot write", place.trim_end_matches("/m")]);
            }
        }
        for place in ["file", "file/out", "/proc/out", "full"] {
            let message =
                folder.refused(format!("ablate {data} --bounds=-1,1 -o {place}").split(' '));
            says(&message, &["cannot write", place]);
        }
    }
    for demo in ["demo", "demo charging"] {
        for place in ["file", "file/out", "/proc/out", "full"] {
            let message = folder.refused(format!("{demo} -o {place}").split(' '));
            says(&message, &["cannot write", place]);
        }
    }
    says(&folder.refused("predict model.argwhy none.csv -o p.mat".split(' ')), &["p.mat", ".npz"]);
    says(&folder.refused("inspect model.argwhy --prices none/p.csv".split(' ')), &["none"]);
    // A folder made for nothing goes again.
    folder.refused("ablate none.csv -o new/deep".split(' '));
}

/// Fault 19.
#[test]
fn one_side_of_the_limits_on_the_command_line_keeps_the_other_of_the_config_file() {
    let folder = Folder::with_data(20);
    let limits = |config: &str, flag: &str| {
        folder.write("c.toml", config);
        folder
            .run(["fit", "data.csv", "-o", "m.argwhy", "--config", "c.toml", "-q", flag])
            .exits(0);
        folder.run(["inspect", "m.argwhy", "--json"]).exits(0).json()["decision_set"].clone()
    };
    let expected = serde_json::json!({"kind": "box", "lower": [-1.0, -2.0], "upper": [3.0, 4.0]});
    assert_eq!(limits("lower = [-1, -2]\nupper = [1, 1]", "--upper=3,4"), expected);
    assert_eq!(limits("lower = [-1, -2]", "--upper=3,4"), expected);
    assert_eq!(limits("upper = [3, 4]", "--lower=-1,-2"), expected);
    let expected = serde_json::json!({"kind": "box", "lower": [-1.0, -1.0], "upper": [3.0, 4.0]});
    assert_eq!(limits("bounds = [-1, 1]", "--upper=3,4"), expected);
    folder.write("c.toml", "kernel = \"polynomial\"\ndegree = 2\nbounds = [-1, 1]");
    let ran =
        folder.run("fit data.csv -o m.argwhy --config c.toml --kernel rbf".split(' ')).exits(0);
    says(&ran.stderr, &["note: the config file's degree", "--kernel"]);
}

/// Messages of the libraries name settings; the command shows its flags.
#[test]
fn messages_show_flags() {
    let folder = Folder::with_data(60);
    let message = |args: &str| folder.refused(args.split(' '));
    let fit = "fit data.csv -o m.argwhy";
    says(
        &message(&format!("{fit} --bounds=-0.1,0.1")),
        &["--infeasible clip", "--infeasible keep"],
    );
    says(&message(&format!("{fit} --primal")), &["--kernel linear", "--primal"]);
    says(&message(&format!("{fit} --memory=1MiB")), &["raise --memory"]);
    says(&message(&format!("{fit} --signals=x")), &["--signals"]);
    says(&message(&format!("{fit} --constraints")), &["--matrix"]);
    says(&message(&format!("{fit} --time-limit=0")), &["time-limit is 0"]);
    let short = format!("{fit} --bounds=-1,1 --solver=sso --max-iterations=0 --tol=1e-12");
    let ran = folder.run(short.split(' ')).exits(1);
    says(&ran.stderr, &["raise --max-iterations"]);
    let other = message("fit data.csv -o m.argwhy --config none.toml");
    says(&other, &["none.toml"]);
    folder.write("c.toml", "max_iterations = 3");
    says(&message(&format!("{fit} --config c.toml")), &["line 1", "`max-iterations`"]);
}
