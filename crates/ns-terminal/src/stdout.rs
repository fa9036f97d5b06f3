//! Detects a closed standard output. Rust's runtime opens `/dev/null` in its place, and what is
//! written there is lost without an error.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether standard output was closed when the process started.
static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Remembers whether standard output is closed. Commands call it before Rust's runtime starts.
pub extern "C" fn look_at_stdout() {
    WAS_CLOSED.store(is_closed_now(), Ordering::Relaxed);
}

/// Returns whether standard output is closed, or was when the process started.
pub fn is_stdout_closed() -> bool {
    WAS_CLOSED.load(Ordering::Relaxed) || is_closed_now()
}

/// Returns whether standard output is closed now; where no folder lists open files, it is taken to
/// be open.
fn is_closed_now() -> bool {
    let open_files = Path::new("/dev/fd");
    cfg!(unix) && open_files.is_dir() && fs::symlink_metadata(open_files.join("1")).is_err()
}
