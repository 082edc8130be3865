//! Ctrl-C: once asks for a stop at the next step, twice quits.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

/// From now on Ctrl-C, SIGTERM and SIGHUP are requests that [`asked`] answers.
pub fn listen() {
    // Without a handler Ctrl-C ends the process at once, which is all that is lost.
    let _ = ctrlc::set_handler(|| {
        if ASKED.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
        let _ = writeln!(
            io::stderr(),
            "\nstopping at the next step and saving what is reached; Ctrl-C again quits at once"
        );
    });
}

/// Whether a stop was asked for.
pub fn asked() -> bool {
    ASKED.load(Ordering::SeqCst)
}
