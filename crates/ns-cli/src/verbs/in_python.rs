//! Verbs that the Python package implements: the command passes them on to `python3 -m nextstat`.
//!
//! They need ROOT files, YAML, figures or the network, for which Python has kept libraries. The
//! command that the Python package installs runs them itself.

use super::Command;
use crate::error::CliError;
use crate::status::Status;
use clap::Args;
use std::ffi::OsString;
use std::process;

/// Environment variable that names the Python with the package, instead of `python3`.
const PYTHON: &str = "NEXTSTAT_PYTHON";

/// Runs the verb if the package is there; exits with [`NO_PACKAGE`] if it is not, or is too old.
const PROGRAM: &str = "\
import sys
try:
    from nextstat.__main__ import VERBS, main
except ImportError:
    VERBS = ()
sys.exit(main() if sys.argv[1] in VERBS else 86)
";

/// Exit code of [`PROGRAM`] without the package; no verb has it.
const NO_PACKAGE: i32 = 86;

/// Arguments that are passed on as they are, `--help` included.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
struct PassedOn {
    /// Arguments of the verb; `--help` lists them
    #[arg(value_name = "ARGUMENTS", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

impl PassedOn {
    /// Runs `verb` of the Python package with the arguments.
    fn run(self, verb: &'static str) -> Result<Status, CliError> {
        let python = std::env::var_os(PYTHON).unwrap_or_else(|| "python3".into());
        let name = python.to_string_lossy().into_owned();
        let status = process::Command::new(&python)
            .args(["-c", PROGRAM, verb])
            .args(self.arguments)
            .status()
            .map_err(|source| CliError::NoPython { verb, python: name.clone(), source })?;
        match status.code() {
            Some(NO_PACKAGE) => Err(CliError::NoPythonPackage { verb, python: name }),
            code => Ok(Status::Passed(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(crate::UNUSABLE))),
        }
    }
}

/// Defines a type of arguments for each verb.
macro_rules! verbs_in_python {
    ($($arguments:ident: $verb:literal,)+) => {$(
        #[doc = concat!("Arguments of `", $verb, "`.")]
        #[derive(Debug, Args)]
        #[command(disable_help_flag = true)]
        pub(crate) struct $arguments {
            #[command(flatten)]
            passed_on: PassedOn,
        }

        impl Command for $arguments {
            fn run(self) -> Result<Status, CliError> {
                self.passed_on.run($verb)
            }
        }
    )+};
}

verbs_in_python! {
    BuildArgs: "build",
    HepdataArgs: "hepdata",
    PlotArgs: "plot",
    Xml2JsonArgs: "xml2json",
    ContribArgs: "contrib",
}
