//! The binary of the `nextstat` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(ns_cli::run(std::env::args_os()))
}

/// Runs before `main` and before Rust's runtime, which opens `/dev/null` if standard output is
/// closed, so that results would be lost without an error.
#[cfg(any(target_os = "linux", target_os = "macos"))]
#[used]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
#[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func"))]
#[expect(unsafe_code, reason = "the only place for code that runs before Rust's runtime")]
// SAFETY: the section holds pointers to functions of the C calling convention, as this one is; the
// function queries the file system and sets a flag.
static BEFORE_MAIN: extern "C" fn() = ns_terminal::look_at_stdout;
