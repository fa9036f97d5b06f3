//! The `nextstat` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(ns_cli::run(std::env::args_os()))
}
