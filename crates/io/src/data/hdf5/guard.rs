//! Turns a panic inside the HDF5 crate into an error.
//!
//! hdf5-pure is careful with damaged files, but the format has many corners: in version 0.47,
//! random damage reached an arithmetic overflow (`chunked_read.rs`, `place_chunk`).

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    /// Whether this thread is inside `guarded`, where a panic is answered and need not be shown.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

static HOOK: Once = Once::new();

/// Runs `work`; a panic in it comes back as its message.
pub(super) fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    // The hook is shared by the whole process, so it is replaced once, for good, by one that
    // does what it did before, except on threads that are in here.
    HOOK.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !QUIET.try_with(Cell::get).unwrap_or(false) {
                previous(info);
            }
        }));
    });
    let outer = QUIET.replace(true);
    // Nothing that `work` changed outlives it, so no broken state can be seen afterwards.
    let answer = panic::catch_unwind(AssertUnwindSafe(work));
    QUIET.set(outer);
    answer.map_err(|payload| message(payload.as_ref()))
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no reason given")
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_its_message() {
        assert_eq!(guarded(|| 5), Ok(5));
        assert_eq!(guarded(|| panic!("plain")), Err::<(), _>("plain".to_owned()));
        let index = 7;
        assert_eq!(guarded(|| panic!("at {index}")), Err::<(), _>("at 7".to_owned()));
        assert!(!QUIET.get());
    }
}
