//! `fit --ray` without Ray: what is said where the Python side is not there. With it:
//! `python/tests/test_ray.py`.

use crate::common::{Folder, one_message, says};
use assert_cmd::cargo::cargo_bin_cmd;

const FIT: [&str; 5] = ["fit", "data.csv", "-o", "m.argwhy", "--bounds=-1,1"];

/// What is said with an interpreter of one's choice.
fn told(folder: &Folder, python: &str) -> String {
    let mut command = cargo_bin_cmd!("argwhy");
    command.current_dir(folder.path("")).env("ARGWHY_PYTHON", python);
    let output = command.args(FIT).args(["--ray", "auto"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(!folder.path("m.argwhy").exists());
    one_message(&String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_python_that_is_not_there_is_named_with_what_to_install() {
    let said = told(&Folder::with_data(30), "/no/such/python");
    says(&said, &["no `/no/such/python` here", "pip install 'argwhy[ray]'", "ARGWHY_PYTHON"]);
}

#[cfg(unix)]
#[test]
fn a_python_without_argwhy_or_another_version_is_told_with_what_to_install() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::with_data(30);
    let script = |text: &str| {
        let path = folder.write("python", format!("#!/bin/sh\n{text}\n"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path.display().to_string()
    };
    let said = told(&folder, &script("exit 1"));
    says(&said, &["ended; --ray needs Python with argwhy", "-m pip install 'argwhy[ray]'"]);
    // The head of an answer: its length, then JSON.
    let head = r#"{"message": {"refused": "another version"}, "arrays": []}"#;
    let answer = format!("printf '\\{:o}\\0\\0\\0%s' '{head}'; cat > /dev/null", head.len());
    assert_eq!(told(&folder, &script(&answer)).trim(), "error: another version");
}

/// A search has nothing to keep while Ray starts: it waited for it to the end, and blamed the
/// budget.
#[cfg(target_os = "linux")]
#[test]
fn a_request_to_stop_is_answered_while_ray_starts() {
    use std::os::unix::fs::PermissionsExt;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};
    let folder = Folder::with_data(30);
    let path = folder.write("python", "#!/bin/sh\necho here > started\nexec sleep 30\n");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut search = Command::new(assert_cmd::cargo::cargo_bin!("argwhy"));
    search.current_dir(folder.path("")).env("ARGWHY_PYTHON", &path).stderr(Stdio::null());
    search.args(["tune", "data.csv", "-o", "found", "--bounds=-1,1", "--ray", "auto"]);
    let mut running = search.spawn().unwrap();
    while !folder.path("started").exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
    let began = Instant::now();
    let asked =
        Command::new("sh").args(["-c", "kill -TERM $0", &running.id().to_string()]).status();
    assert!(asked.unwrap().success());
    let status = running.wait().unwrap();
    assert_eq!(status.code(), Some(1));
    assert!(began.elapsed() < Duration::from_secs(20));
    assert!(!folder.path("found").exists(), "an empty folder stays behind");
}

#[test]
fn what_has_no_meaning_with_ray_is_refused() {
    let folder = Folder::with_data(30);
    let refused = |more: &[&str]| folder.refused(FIT.iter().chain(&["--ray", "auto"]).chain(more));
    says(&refused(&["--kernel", "linear", "--primal"]), &["--ray", "--primal"]);
    says(&refused(&["--device", "cuda"]), &["--ray", "--device"]);
    let ran = folder.run(FIT.iter().chain(&["--ray-workers", "2"])).exits(2);
    says(&ran.stderr, &["--ray <auto|ADDRESS>"]);
    let folder = Folder::with_data(30);
    folder.write("fit.toml", "ray-cpus = 2\n");
    says(&folder.refused(FIT.iter().chain(&["--config", "fit.toml"])), &["by --ray"]);
}
