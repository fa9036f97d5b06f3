//! The `torchless` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(torchless::cli::run(std::env::args_os()))
}
