//! Messages on standard error: errors and warnings always, summaries if a terminal shows them.

use crate::args::OutputArgs;
use crate::error::CliError;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write as _};

/// Whether and how to write summaries to standard error.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reporter {
    is_quiet: bool,
    /// Whether to write summaries: standard error is a terminal, or an option asks for them.
    has_summary: bool,
    paint: Paint,
}

/// How to emphasise text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    /// Not at all.
    Plain,
    /// With terminal colours.
    Colour,
}

impl Paint {
    /// Emphasises `text` as an alarm.
    pub(crate) fn alarm(self, text: &str) -> String {
        self.wrap("\x1b[1;31m", text)
    }

    /// Emphasises `text` as a heading.
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

impl Reporter {
    /// Follows the arguments, `NO_COLOR` and whether standard error is a terminal.
    pub(crate) fn new(output: &OutputArgs) -> Self {
        let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let is_terminal = io::stderr().is_terminal();
        let paint = if is_plain || !is_terminal { Paint::Plain } else { Paint::Colour };
        Self { is_quiet: output.quiet, has_summary: is_terminal || output.summary, paint }
    }

    /// Returns whether progress goes to a terminal, or `None` if it is not shown.
    pub(crate) fn shows_progress(self) -> Option<bool> {
        (self.has_summary && !self.is_quiet).then(|| io::stderr().is_terminal())
    }

    /// Writes the summary, unless it is suppressed.
    pub(crate) fn summary(self, summary: impl FnOnce(Paint) -> String) {
        if self.has_summary && !self.is_quiet {
            print(&summary(self.paint));
        }
    }

    /// Writes warnings, unless they are suppressed.
    pub(crate) fn warn(self, warnings: &[String]) {
        if !self.is_quiet {
            print(&lines_of(warnings));
        }
    }

    /// Writes the summary; without one, writes `alarm` as a warning, so that a log shows it.
    pub(crate) fn summary_or_warning(self, alarm: Option<&str>, summary: impl FnOnce(Paint) -> String) {
        match alarm {
            Some(alarm) if !self.has_summary && !self.is_quiet => print(&format!("warning: {}\n", escape(alarm))),
            _ => self.summary(summary),
        }
    }
}

/// Joins `warnings` to one alarm if `is_bad`.
pub(crate) fn alarm_if(is_bad: bool, warnings: &[String]) -> Option<String> {
    is_bad.then(|| warnings.join("; "))
}

/// Writes `error: …` with its causes, and `hint: …` if there is one.
pub(crate) fn error(error: &CliError) {
    print(&format!("{}\n", shortened(&escape(&format!("error: {}", with_causes(error))))));
    if let Some(advice) = error.hint() {
        hint(&advice);
    }
}

/// Returns the message of `error` with its causes in one sentence. A cause that the message has
/// already is left out.
pub(crate) fn with_causes(error: &CliError) -> String {
    let mut text = error.to_string();
    let mut cause = error.cause();
    while let Some(reason) = cause {
        let reason_text = reason.to_string();
        if !text.contains(&reason_text) {
            let _ = write!(text, ": {reason_text}");
        }
        cause = reason.source();
    }
    text
}

/// Shortens a message, because names in documents may be arbitrarily long.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 1000;
    match text.char_indices().nth(LONGEST) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// Writes `warning: …`, even if the arguments ask for no summary.
pub(crate) fn warning(text: &str) {
    print(&format!("warning: {}\n", shortened(&escape(text))));
}

/// Writes `hint: …`.
pub(crate) fn hint(advice: &str) {
    print(&format!("hint: {}\n", shortened(&escape(advice))));
}

/// Writes to standard error; a closed one is ignored.
fn print(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Formats the first warnings of a result after a blank line; returns an empty text if there are
/// none.
pub(crate) fn warnings(warnings: &[String]) -> String {
    let blank = if warnings.is_empty() { "" } else { "\n" };
    format!("{blank}{}", lines_of(warnings))
}

/// Formats the first warnings, one line each.
fn lines_of(warnings: &[String]) -> String {
    const SHOWN: usize = 10;
    let mut text = String::new();
    for warning in warnings.iter().take(SHOWN) {
        let _ = writeln!(text, "warning: {}", escape(warning));
    }
    if warnings.len() > SHOWN {
        let _ = writeln!(text, "warning: {} more warnings are in the result", warnings.len() - SHOWN);
    }
    text
}

/// Returns the last line of the summary of a procedure whose free fit failed.
pub(crate) fn free_fit_failed(paint: Paint) -> String {
    format!("\n{}\n", paint.alarm("!!! THE FREE FIT DID NOT CONVERGE; do not use these numbers !!!"))
}

/// Escapes what would command a terminal, break a line or be invisible, because names come from
/// documents.
pub(crate) fn escape(text: &str) -> String {
    ns_terminal::escape(text).into_owned()
}
