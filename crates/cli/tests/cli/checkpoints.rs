//! Fits that go on from checkpoints and from models.

use crate::common::{Folder, says};
use serde_json::Value;

/// So often that every step is kept, however quick the machine.
const KEEP: [&str; 2] = ["--checkpoint=c.checkpoint", "--checkpoint-every=0.000001s"];

fn fit(folder: &Folder, more: &[&str]) -> crate::common::Ran {
    let own = ["fit", "data.csv", "-o", "m.argwhy", "--bounds=-1,1", "--json", "--holdout=0"];
    folder.run(own.iter().chain(more))
}

fn number(result: &Value, name: &str) -> f64 {
    result[name].as_f64().unwrap_or_else(|| panic!("{name} in {result}"))
}

#[test]
fn a_fit_goes_on_from_its_checkpoint_to_the_same_optimum() {
    let ways: [&[&str]; 3] = [
        &["--kernel=laplace"],
        &["--solver=sso", "--init=expert", "-k=1e-3"],
        &["--theta=learn", "-k=1e-3"],
    ];
    for way in ways {
        let folder = Folder::with_data(200);
        let whole = fit(&folder, way).exits(0).json();
        let stopped = fit(&folder, &[way, &KEEP, &["--max-iterations=1", "--tol=1e-12"]].concat());
        stopped.exits(1);
        let ran = fit(&folder, &[way, &["--resume=c.checkpoint"]].concat()).exits(0);
        let on = ran.json();
        says(&ran.stderr, &["going on from a checkpoint after step"]);
        let off = (number(&on, "primal") - number(&whole, "primal")).abs();
        assert!(off <= 2e-6 * number(&whole, "primal"), "{way:?}: {on} {whole}");
        assert!(number(&on, "iterations") <= number(&whole, "iterations"), "{way:?}");
    }
}

#[test]
fn a_checkpoint_becomes_a_model_without_a_step() {
    let folder = Folder::with_data(200);
    fit(&folder, &[&KEEP[..], &["--max-iterations=2", "--tol=1e-300"]].concat()).exits(1);
    let before = folder.run(["inspect", "m.argwhy", "--json"]).exits(0).json();
    let more = ["--resume=c.checkpoint", "--max-iterations=0", "--tol=1e-300"];
    let after = fit(&folder, &more).exits(1).json();
    assert_eq!(after["iterations"], 0);
    assert_eq!(after["model"], "m.argwhy");
    let off = (number(&after, "primal") - number(&before, "primal")).abs();
    assert!(off <= 1e-9 * number(&before, "primal"), "{after} {before}");
}

#[test]
fn a_model_is_a_start_for_other_settings_and_further_rows() {
    let folder = Folder::with_data(300);
    fit(&folder, &["--rows=0:280"]).exits(0);
    std::fs::rename(folder.path("m.argwhy"), folder.path("old.argwhy")).unwrap();
    let fresh = fit(&folder, &["--kernel=laplace"]).exits(0).json();
    let again = fit(&folder, &["--kernel=laplace", "--from=old.argwhy"]).exits(0).json();
    let off = (number(&again, "primal") - number(&fresh, "primal")).abs();
    assert!(off <= 2e-6 * number(&fresh, "primal"), "{again} {fresh}");

    let old = std::fs::read_to_string(folder.path("data.csv")).unwrap();
    let other: Vec<&str> = old.lines().take(1).chain(old.lines().skip(9)).collect();
    folder.write("other.csv", other.join("\n") + "\n");
    let own = ["fit", "other.csv", "-o", "n.argwhy", "--bounds=-1,1", "--from=old.argwhy"];
    let said = folder.refused(own);
    says(&said, &["row 0 has other signals", "the numbers they had"]);
    let own = ["fit", "data.csv", "-o", "old.argwhy", "--bounds=-1,1", "--from=old.argwhy"];
    says(&folder.refused(own), &["old.argwhy", "used twice"]);
}

#[test]
fn what_cannot_be_gone_on_from_is_refused() {
    let folder = Folder::with_data(100);
    fit(&folder, &KEEP).exits(0);
    let to = |more: &[&str]| {
        let own = ["fit", "data.csv", "-o", "n.argwhy", "--bounds=-1,1"];
        folder.refused(own.iter().chain(more))
    };
    says(&to(&["--resume=m.argwhy"]), &["m.argwhy", "it is a model"]);
    says(&to(&["--from=c.checkpoint"]), &["c.checkpoint", "a checkpoint"]);
    says(&to(&["--resume=none"]), &["cannot read the checkpoint `none`"]);
    says(&to(&["--resume=data.csv"]), &["data.csv", "cannot be resumed from"]);
    says(&to(&["--resume=c.checkpoint", "--rows=1:50"]), &["belongs to other rows", "--resume"]);
    says(&to(&["--resume=c.checkpoint", "--primal", "--kernel=linear"]), &["plain", "--primal"]);
    let folder_missing = to(&["--checkpoint=nowhere/c.checkpoint"]);
    says(&folder_missing, &["nowhere"]);
}

/// Whatever moment it is killed at, the file is whole and the next run goes on from it.
#[cfg(unix)]
#[test]
fn killed_a_hundred_times_a_fit_still_ends_at_its_optimum() {
    use std::process::{Command, Stdio};
    use std::thread::sleep;
    use std::time::Duration;

    let folder = Folder::with_data(900);
    let endless = ["--tol=1e-300", "--max-iterations=1000000", "--solver=sso", "--block=30"];
    let plain = ["--init=expert", "--threads=1"];
    let checkpoint = folder.path("c.checkpoint");
    let mut state = 7_u64;
    for kill in 0..100 {
        let resume = checkpoint.exists().then_some("--resume=c.checkpoint");
        let mut child = Command::new(assert_cmd::cargo::cargo_bin!("argwhy"))
            .args(["fit", "data.csv", "-o", "m.argwhy", "--bounds=-1,1", "--holdout=0", "-q"])
            .args(KEEP)
            .args(endless)
            .args(plain)
            .args(resume)
            .current_dir(folder.path(""))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        sleep(Duration::from_millis(20 + (state >> 33) % 90));
        child.kill().unwrap();
        let said = String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap();
        assert!(!said.contains("error"), "kill {kill}: {said}");
    }
    assert!(checkpoint.exists());
    // Between its last byte and its name a file may be left behind, but never a part of one.
    let whole = std::fs::metadata(&checkpoint).unwrap().len();
    let hidden = std::fs::read_dir(folder.path("")).unwrap().map(|entry| entry.unwrap());
    for left in hidden.filter(|e| e.file_name().as_encoded_bytes().starts_with(b".")) {
        let found = left.metadata().unwrap().len();
        assert!(found.abs_diff(whole) < 16, "{left:?}: {found} of {whole} bytes");
    }
    let on = fit(&folder, &["--resume=c.checkpoint"]).exits(0).json();
    let whole = fit(&folder, &[]).exits(0).json();
    let off = (number(&on, "primal") - number(&whole, "primal")).abs();
    assert!(off <= 2e-6 * number(&whole, "primal"), "{on} {whole}");
}
