//! Verbs that the command passes on to the Python package.

use std::path::Path;
use std::process::{Command, Output};

/// Runs `nextstat` with `python` as the Python of the package.
fn with_python(python: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nextstat"));
    command.args(arguments).env("NEXTSTAT_PYTHON", python).output().expect("the command starts")
}

fn message(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("text")
}

#[test]
fn without_a_python_the_error_names_it() {
    let output = with_python(Path::new("/absent/python3"), &["xml2json", "config/FitConfig.xml"]);
    assert_eq!(output.status.code(), Some(2));
    let wanted = "error: `xml2json` runs in the Python package, and `/absent/python3` cannot be run: ";
    assert!(message(&output).starts_with(wanted), "{}", message(&output));
    assert!(message(&output).ends_with("hint: NEXTSTAT_PYTHON names the Python to use\n"), "{}", message(&output));
}

#[cfg(unix)]
mod programs {
    use super::{message, with_python};
    use crate::support::Scratch;
    use std::os::unix::fs::PermissionsExt;
    use std::{fs, path};

    /// Writes a shell script that stands for Python.
    fn script(scratch: &Scratch, text: &str) -> path::PathBuf {
        let path = path::PathBuf::from(scratch.path("python"));
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("a script");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("an executable");
        path
    }

    #[test]
    fn arguments_and_the_exit_code_are_passed_on() {
        let scratch = Scratch::new("passed-on");
        let python = script(&scratch, "shift 2; printf '<%s>' \"$@\"; exit 3");
        let output = with_python(&python, &["xml2json", "--output-file", "a b", "-", "--help"]);
        assert_eq!(output.status.code(), Some(3));
        assert_eq!(output.stdout, b"<xml2json><--output-file><a b><-><--help>");
    }

    #[test]
    fn a_python_without_the_package_is_an_error() {
        let scratch = Scratch::new("no-package");
        let output = with_python(&script(&scratch, "exit 86"), &["contrib", "download"]);
        assert_eq!(output.status.code(), Some(2));
        let wanted = "error: `contrib` runs in the Python package nextstat-rs, which `";
        assert!(message(&output).starts_with(wanted), "{}", message(&output));
        assert!(message(&output).contains("hint: `pip install 'nextstat-rs[build,xmlio]'` installs it"));
    }
}
