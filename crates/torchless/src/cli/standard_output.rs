//! Whether there is a standard output: Rust's runtime opens `/dev/null` where it is closed, and what is written there is lost without an error.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

static IS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Remembers whether standard output is closed: to be called before Rust's runtime starts.
pub fn look_at_stdout() {
    IS_CLOSED.store(is_closed_now(), Ordering::Relaxed);
}

/// Where no folder lists open files, standard output counts as open.
fn is_closed_now() -> bool {
    let open_files = Path::new("/dev/fd");
    cfg!(unix) && open_files.is_dir() && fs::symlink_metadata(open_files.join("1")).is_err()
}

/// Standard output, if there is one.
pub(super) fn stdout() -> io::Result<io::StdoutLock<'static>> {
    if IS_CLOSED.load(Ordering::Relaxed) || is_closed_now() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "standard output is closed"));
    }
    Ok(io::stdout().lock())
}
