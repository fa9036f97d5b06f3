//! What is said when the arguments themselves are wrong, beyond what clap says.

use std::ffi::OsString;

use clap::error::ErrorKind;

/// Options whose value is optional and therefore needs an equals sign.
const JOINED: [&str; 3] = ["--minos", "--multi-start", "--asimov"];

/// Help and version go to standard output, usage errors to standard error with exit code 2; a closed pipe is no fault.
pub(crate) fn explain(error: &clap::Error, arguments: &[OsString]) -> u8 {
    let _ = error.print();
    if !error.use_stderr() {
        return 0;
    }
    if error.kind() == ErrorKind::UnknownArgument {
        let given = arguments.iter().find_map(|arg| JOINED.into_iter().find(|option| arg == *option));
        if let Some(option) = given {
            crate::report::talk::hint(&format!("a value of `{option}` follows an equals sign: `{option}=VALUE`"));
        }
    }
    crate::UNUSABLE
}
