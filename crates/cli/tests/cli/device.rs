//! `--device`: what is said with and without a GPU. Nothing here needs one; what is about one is
//! skipped without.

use crate::common::{Folder, says};

/// What `doctor` found of a GPU.
fn gpu(folder: &Folder) -> String {
    let health = folder.run(["doctor", "--json"]).exits(0).json();
    let checks = health["checks"].as_array().unwrap();
    let gpu = checks.iter().find(|check| check["name"] == "gpu").unwrap();
    assert!(gpu["ok"] == true, "{gpu}");
    gpu["found"].as_str().unwrap().to_owned()
}

#[test]
fn doctor_says_in_a_sentence_what_gpu_there_is_or_why_there_is_none() {
    let found = gpu(&Folder::new());
    assert!(!found.contains('\n'), "{found}");
    assert!(found.starts_with("none: ") || found.contains("off by"), "{found}");
}

/// A GPU has 65,536 signals at a time, and meanwhile the next ones' features are computed.
#[test]
fn decisions_of_a_gpu_are_the_same_alone_and_in_any_batch() {
    let folder = Folder::with_model();
    if gpu(&folder).starts_with("none: ") {
        return;
    }
    let data = folder.text("data.csv");
    let (header, rows) = data.split_once('\n').unwrap();
    let n_rows = rows.lines().count();
    folder.write("many.csv", format!("{header}\n{}", rows.repeat(70_000 / n_rows + 1)));
    for (signals, decisions) in [("data.csv", "few.csv"), ("many.csv", "all.csv")] {
        let predict = ["predict", "model.argwhy", signals, "-o", decisions, "--device=cuda"];
        folder.run(predict).exits(0);
    }
    let (few, all) = (folder.text("few.csv"), folder.text("all.csv"));
    let few: Vec<&str> = few.lines().skip(1).collect();
    assert_eq!(few.len(), n_rows);
    assert!(all.lines().skip(1).eq(few.iter().copied().cycle().take(all.lines().count() - 1)));
}

#[test]
fn a_gpu_that_is_not_there_is_refused_by_name() {
    let folder = Folder::with_model();
    let fit = ["fit", "data.csv", "-o", "m.argwhy", "--bounds=-1,1", "--device=cuda:99"];
    let predict = ["predict", "model.argwhy", "data.csv", "-o", "p.npy", "--device=cuda:99"];
    for args in [&fit[..], &predict] {
        let ran = folder.run(args).exits(2);
        says(&ran.stderr, &["the cuda backend failed: there is no ", "use the CPU"]);
    }
    assert!(!folder.path("m.argwhy").exists() && !folder.path("p.npy").exists());
}

#[test]
fn a_device_that_nobody_has_heard_of_is_named_with_those_there_are() {
    let folder = Folder::with_data(30);
    for name in ["gpu", "cuda:", "cpu:1"] {
        let device = format!("--device={name}");
        let ran = folder.run(["fit", "data.csv", "-o", "m.argwhy", &device]).exits(2);
        says(&ran.stderr, &["`auto`, `cpu`, `cuda`"]);
    }
    let ran = folder.run(["fit", "data.csv", "-o", "m.argwhy", "--device-memory=much"]).exits(2);
    says(&ran.stderr, &["16GiB", "--device-memory"]);
}

/// By default nothing is said of GPUs on a machine without one, and nothing changes.
#[test]
fn small_fits_are_the_same_with_and_without_the_setting() {
    let folder = Folder::with_data(200);
    let fit = |device: &[&str], output: &str| {
        let args = ["fit", "data.csv", "-o", output, "--bounds=-1,1"];
        folder.run(args.iter().chain(device)).exits(0).stderr.clone()
    };
    let said = fit(&[], "a.argwhy");
    assert!(!said.to_lowercase().contains("gpu") && !said.contains("cuda"), "{said}");
    fit(&["--device=cpu"], "b.argwhy");
    for (model, decisions) in [("a.argwhy", "a.csv"), ("b.argwhy", "b.csv")] {
        folder.run(["predict", model, "data.csv", "-o", decisions, "--device=cpu"]).exits(0);
    }
    assert_eq!(folder.text("a.csv"), folder.text("b.csv"));
}
