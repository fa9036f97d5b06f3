//! Words for people, on standard error: errors always, summaries if it is a terminal.

use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write as _};

use crate::args::OutputArgs;
use crate::error::CliError;

/// Whether and how to say things on standard error.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Talk {
    is_quiet: bool,
    /// Whether a summary will be read: standard error is a terminal, or one was asked for.
    has_reader: bool,
    paint: Paint,
}

/// How to make words stand out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    /// Not at all.
    Plain,
    /// With colours, as terminals understand them.
    Colour,
}

impl Paint {
    /// `text` as something that must not be missed.
    pub(crate) fn alarm(self, text: &str) -> String {
        self.wrap("\x1b[1;31m", text)
    }

    /// `text` as a heading.
    pub(crate) fn strong(self, text: &str) -> String {
        self.wrap("\x1b[1m", text)
    }

    fn wrap(self, start: &str, text: &str) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::Colour => format!("{start}{text}\x1b[0m"),
        }
    }
}

impl Talk {
    /// As the arguments and standard error allow.
    pub(crate) fn new(output: &OutputArgs) -> Self {
        let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let is_terminal = io::stderr().is_terminal();
        let paint = if is_plain || !is_terminal { Paint::Plain } else { Paint::Colour };
        Self { is_quiet: output.quiet, has_reader: is_terminal || output.summary, paint }
    }

    /// Whether anybody listens, and if so, on a terminal or not.
    pub(crate) fn listener(self) -> Option<bool> {
        (self.has_reader && !self.is_quiet).then(|| io::stderr().is_terminal())
    }

    /// Says what `summary` makes, if anybody is there to read it.
    pub(crate) fn say(self, summary: impl FnOnce(Paint) -> String) {
        if self.has_reader && !self.is_quiet {
            print(&summary(self.paint));
        }
    }

    /// Warns, unless asked to be quiet.
    pub(crate) fn warn(self, warnings: &[String]) {
        if !self.is_quiet {
            print(&lines_of(warnings));
        }
    }

    /// The same for a result that is bad if there is an `alarm`: a log gets that line, so that it cannot be missed there either.
    pub(crate) fn say_or_warn(self, alarm: Option<&str>, summary: impl FnOnce(Paint) -> String) {
        match alarm {
            Some(alarm) if !self.has_reader && !self.is_quiet => print(&format!("warning: {}\n", harmless(alarm))),
            _ => self.say(summary),
        }
    }
}

/// Prints `error: …` with its causes, and `hint: …` where there is one.
pub(crate) fn error(error: &CliError) {
    let mut text = format!("error: {error}");
    let mut cause = error.source();
    while let Some(reason) = cause {
        let _ = write!(text, ": {reason}");
        cause = reason.source();
    }
    print(&format!("{}\n", shortened(&harmless(&text))));
    if let Some(advice) = error.hint() {
        hint(&advice);
    }
}

/// Names have no limit in documents; messages do.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 1000;
    match text.char_indices().nth(LONGEST) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// Prints `warning: …`, whatever the arguments.
pub(crate) fn warning(text: &str) {
    print(&format!("warning: {}\n", shortened(&harmless(text))));
}

/// Prints `hint: …`.
pub(crate) fn hint(advice: &str) {
    print(&format!("hint: {}\n", shortened(&harmless(advice))));
}

/// Nothing can be done about a standard error that is closed.
fn print(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// The warnings of a result, as many as a screen has room for, after a blank line; nothing if there are none.
pub(crate) fn warnings(warnings: &[String]) -> String {
    let blank = if warnings.is_empty() { "" } else { "\n" };
    format!("{blank}{}", lines_of(warnings))
}

/// One line for each of the warnings, as many as a screen has room for.
fn lines_of(warnings: &[String]) -> String {
    const SHOWN: usize = 10;
    let mut text = String::new();
    for warning in warnings.iter().take(SHOWN) {
        let _ = writeln!(text, "warning: {}", harmless(warning));
    }
    if warnings.len() > SHOWN {
        let _ = writeln!(text, "warning: and {} more, in the result", warnings.len() - SHOWN);
    }
    text
}

/// The last line about a procedure whose free fit failed, so that it cannot be missed.
pub(crate) fn free_fit_failed(paint: Paint) -> String {
    format!("\n{}\n", paint.alarm("!!! THE FREE FIT DID NOT CONVERGE; do not use these numbers !!!"))
}

/// Names come from documents: what would command a terminal, break a line or be invisible is
/// escaped.
pub(crate) fn harmless(text: &str) -> String {
    ns_terminal::escape(text).into_owned()
}
