//! The `torchless` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(torchless::cli::run(std::env::args_os()))
}

/// Called before `main` and before Rust's runtime, which opens `/dev/null` where standard output is
/// closed: answers would be lost without a word.
#[cfg(any(target_os = "linux", target_os = "macos"))]
#[used]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
#[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func"))]
#[expect(unsafe_code, reason = "the only place for code that runs before Rust's runtime")]
// SAFETY: the section holds pointers to functions of the C calling convention, which this is; the
// function asks the file system and sets a flag.
static BEFORE_MAIN: extern "C" fn() = ns_terminal::look_at_stdout;
