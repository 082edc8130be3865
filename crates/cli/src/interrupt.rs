//! Ctrl-C: once asks for a stop at the next step, twice quits. A fit that cannot stop and certify
//! in time leaves what it has reached as a checkpoint.

use argwhy::Checkpoints;
use serde::Serialize;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

static ASKED: AtomicBool = AtomicBool::new(false);
static FIT: Mutex<Option<Fit>> = Mutex::new(None);

/// How long a fit may take to end by itself: within two seconds everybody has their terminal back.
const GRACE: Duration = Duration::from_millis(1500);

/// A fit that has not ended yet.
struct Fit {
    checkpoints: Checkpoints,
    json: bool,
}

/// What `fit --json` prints of a fit that left a checkpoint.
#[derive(Serialize)]
struct Left<'a> {
    status: &'static str,
    reason: &'a str,
    model: Option<&'a str>,
    checkpoint: Option<String>,
    iterations: usize,
}

/// From now on Ctrl-C, SIGTERM and SIGHUP are requests that [`asked`] answers.
pub fn listen() {
    // Without a handler Ctrl-C ends the process at once, which is all that is lost.
    let _ = ctrlc::set_handler(|| {
        if ASKED.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
        tell("\nstopping at the next step and saving what is reached; Ctrl-C again quits at once");
        // The handler itself has to be there for the second one.
        thread::spawn(|| {
            thread::sleep(GRACE);
            if let Some(fit) = lock().take() {
                leave(&fit);
            }
        });
    });
}

/// Whether a stop was asked for.
pub fn asked() -> bool {
    ASKED.load(Ordering::SeqCst)
}

/// From now on a request that is not answered in time ends the process with a checkpoint.
pub fn hurry(checkpoints: Checkpoints, json: bool) {
    *lock() = Some(Fit { checkpoints, json });
}

/// The fit has ended: what follows is left to end by itself.
pub fn ended() {
    *lock() = None;
}

fn lock() -> MutexGuard<'static, Option<Fit>> {
    FIT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends the process with what was reached. Meanwhile [`ended`] waits.
fn leave(fit: &Fit) -> ! {
    let path = fit.checkpoints.path().display();
    let (said, checkpoint, iterations) = match fit.checkpoints.write() {
        Ok(Some(steps)) => (
            format!(
                "interrupted after step {steps}; certifying it would take longer, so it is kept in \
                 {path}: go on with the same command and --resume {path}, or make a model of it \
                 with --max-iterations 0 added"
            ),
            Some(path.to_string()),
            steps,
        ),
        Ok(None) => {
            ("interrupted; nothing was written but what was finished before".to_owned(), None, 0)
        }
        Err(error) => (format!("interrupted, and what was reached is lost: {error}"), None, 0),
    };
    tell(&said);
    if fit.json {
        let left =
            Left { status: "interrupted", reason: &said, model: None, checkpoint, iterations };
        if let Ok(text) = serde_json::to_string_pretty(&left) {
            let _ = writeln!(io::stdout(), "{text}");
        }
    }
    std::process::exit(1);
}

/// If stderr is gone there is nobody to tell.
fn tell(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}
