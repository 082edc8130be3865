//! A folder, the command, and small data that is the same on every run.

use assert_cmd::cargo::cargo_bin_cmd;
use ndarray::Array2;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What a run left behind.
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    /// stdout as one JSON value and nothing else.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| {
            panic!("{e}: stdout is {:?}, stderr {:?}", self.stdout, self.stderr)
        })
    }

    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout {:?}\nstderr {:?}", self.stdout, self.stderr);
        self
    }
}

/// A folder that lasts as long as the test and in which the command runs.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// With `data.csv`: `rows` rows of an expert in [-1, 1] that is often at a limit.
    pub fn with_data(rows: usize) -> Self {
        let folder = Self::new();
        folder.write("data.csv", csv(rows));
        folder
    }

    /// With `data.csv` (60 rows, three signals, two decisions) and `model.argwhy` fitted to it.
    pub fn with_model() -> Self {
        let folder = Self::with_data(60);
        folder.run(["fit", "data.csv", "-o", "model.argwhy", "--bounds=-1,1", "-q"]).exits(0);
        folder
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    pub fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    pub fn text(&self, name: &str) -> String {
        String::from_utf8(self.bytes(name)).unwrap()
    }

    pub fn run<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Ran {
        self.run_with(args, "")
    }

    /// Runs the command with something on stdin. A minute is far more than any test takes.
    pub fn run_with<A: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = A>,
        stdin: impl Into<Vec<u8>>,
    ) -> Ran {
        let mut command = cargo_bin_cmd!("argwhy");
        command.current_dir(self.0.path()).timeout(Duration::from_mins(1));
        let output = command.args(args).write_stdin(stdin).output().unwrap();
        Ran {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Every file with its bytes.
    pub fn contents(&self) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
        std::fs::read_dir(self.0.path())
            .unwrap()
            .map(|entry| {
                let path = entry.unwrap().path();
                let bytes = path.is_file().then(|| std::fs::read(&path).unwrap());
                (path, bytes)
            })
            .collect()
    }

    /// Runs something that must be refused: exit 2, one message, nothing on stdout, no file
    /// touched. Gives the message.
    pub fn refused<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> String {
        self.refused_with(args, "")
    }

    pub fn refused_with<A: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = A>,
        stdin: &str,
    ) -> String {
        let before = self.contents();
        let ran = self.run_with(args, stdin).exits(2);
        assert_eq!(self.contents(), before, "files changed: {}", ran.stderr);
        assert_eq!(ran.stdout, "", "{}", ran.stderr);
        one_message(&ran.stderr)
    }
}

/// One message, first thing on stderr, and no trace of a crash.
pub fn one_message(stderr: &str) -> String {
    assert!(stderr.starts_with("error: "), "{stderr}");
    assert_eq!(stderr.lines().filter(|line| line.starts_with("error")).count(), 1, "{stderr}");
    for crash in ["panicked", "RUST_BACKTRACE", "unwrap", "src/"] {
        assert!(!stderr.contains(crash), "{stderr}");
    }
    stderr.to_owned()
}

/// The message has every part.
pub fn says(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in {message:?}");
    }
}

/// A number in [-1, 1) that follows from its place.
pub fn noise(i: usize, j: usize) -> f64 {
    let mut x = (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ (j as u64 + 1).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ (x >> 31)) as f64 / 2_f64.powi(63) - 1.0
}

/// Bell-shaped, deviation one.
pub fn bell(i: usize, j: usize) -> f64 {
    0.87 * (0..4).map(|c| noise(i, 10 * j + c)).sum::<f64>()
}

pub fn signals(rows: usize) -> Array2<f64> {
    Array2::from_shape_fn((rows, 3), |(i, j)| 2.0 * noise(i, j))
}

/// A smooth function of the signals with noise, cut to [-1, 1]; about a third of the entries are at
/// a limit.
pub fn decisions(rows: usize) -> Array2<f64> {
    let s = signals(rows);
    Array2::from_shape_fn((rows, 2), |(i, j)| {
        let clean = if j == 0 { (s[[i, 0]] + s[[i, 1]]).sin() * 1.3 } else { s[[i, 2]] * 0.7 };
        (clean + 0.1 * noise(i, 7 + j)).clamp(-1.0, 1.0)
    })
}

pub fn csv(rows: usize) -> String {
    let mut text = "signals_0,signals_1,signals_2,decisions_0,decisions_1\n".to_owned();
    let (s, u) = (signals(rows), decisions(rows));
    for i in 0..rows {
        let cells: Vec<String> =
            s.row(i).iter().chain(u.row(i)).map(|v| format!("{v:?}")).collect();
        writeln!(text, "{}", cells.join(",")).unwrap();
    }
    text
}

/// A committed file of the io crate's tests.
pub fn io_data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../io/tests/data").join(name)
}

/// The decisions `predict` wrote.
pub fn written(path: &Path) -> Array2<f64> {
    let key = if path.extension().is_some_and(|e| e == "npy") { None } else { Some("decisions") };
    let request = argwhy::io::DataRequest {
        signals: key.map(ToOwned::to_owned),
        ..argwhy::io::DataRequest::signals_only()
    };
    argwhy::load(path, &request).unwrap().signals
}

/// A model's bytes with what depends on the clock set to zero, and with other settings.
pub fn timeless(path: &Path, settings: &Value) -> Vec<u8> {
    let mut stored = argwhy::load_model(path).unwrap();
    stored.model.record.seconds = 0.0;
    stored.model.record.peak_memory_bytes = None;
    argwhy::io::encode_model(&stored.model, settings).unwrap()
}

/// Sends a signal, such as `INT`, to a child; whether it was there to be told. `kill` the program
/// is a package of its own, the shell has it built in.
#[cfg(unix)]
pub fn signal(child: &std::process::Child, name: &str) -> bool {
    use std::process::{Command, Stdio};
    let script = format!("kill -{name} {}", child.id());
    let sent = Command::new("sh").args(["-c", &script]).stderr(Stdio::null()).status();
    sent.unwrap().success()
}
