//! Messages: errors and warnings on standard error always, tables if a terminal shows them.

use super::OutputArgs;
use crate::error::CliError;
use nextstat::Analysis;
use serde_json::Value;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write as _};

/// Whether, where and how to write tables.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reporter {
    is_quiet: bool,
    tables: TableTarget,
    /// Whether progress is shown: standard error is a terminal, or an option asks for it.
    has_progress: bool,
    paint: Paint,
}

/// Where tables go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TableTarget {
    Nowhere,
    Stdout,
    Stderr,
}

/// What a user must be told of a result.
#[derive(Debug, Clone)]
pub(crate) struct Notice {
    /// Its warnings in one line, if the numbers cannot be used without them.
    pub(crate) alarm: Option<String>,
    /// Whether something is missing that was asked for, so that the command fails.
    pub(crate) is_failure: bool,
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
    /// Follows the arguments, `NO_COLOR`, and whether standard output and standard error are
    /// terminals. A verb without a table of its result has `output` without one.
    pub(crate) fn new(output: &OutputArgs) -> Self {
        let has_progress = io::stderr().is_terminal() || output.summary;
        let tables = match () {
            () if output.quiet => TableTarget::Nowhere,
            () if output.has_table_on_stdout() => TableTarget::Stdout,
            () if has_progress => TableTarget::Stderr,
            () => TableTarget::Nowhere,
        };
        let is_terminal = match tables {
            TableTarget::Stdout => true,
            _ => io::stderr().is_terminal(),
        };
        let paint = if is_terminal && has_colours() { Paint::Colour } else { Paint::Plain };
        Self { is_quiet: output.quiet, tables, has_progress, paint }
    }

    /// Returns whether progress goes to a terminal, or `None` if it is not shown.
    pub(crate) fn shows_progress(self) -> Option<bool> {
        (self.has_progress && !self.is_quiet).then(|| io::stderr().is_terminal())
    }

    /// Writes the table, unless it is suppressed.
    pub(crate) fn summary(self, summary: impl FnOnce(Paint) -> String) {
        match self.tables {
            TableTarget::Nowhere => {}
            // A closed standard output was an error before.
            TableTarget::Stdout => drop(io::stdout().lock().write_all(summary(self.paint).as_bytes())),
            TableTarget::Stderr => print(&summary(self.paint)),
        }
    }

    /// Writes, on standard error, what happened to a document that is written whatever standard
    /// output is.
    pub(crate) fn note(self, note: impl FnOnce() -> String) {
        if self.shows_progress().is_some() {
            print(&note());
        }
    }

    /// Writes warnings, unless they are suppressed.
    pub(crate) fn warn(self, warnings: &[String]) {
        if !self.is_quiet {
            print(&lines_of(warnings));
        }
    }

    /// Writes the summary; without one, writes the warning of `notice`, so that a log shows it.
    /// That of a failure is written even if the arguments suppress warnings.
    pub(crate) fn summary_or_warning(self, notice: Notice, summary: impl FnOnce(Paint) -> String) {
        let is_written = self.tables == TableTarget::Nowhere && (notice.is_failure || !self.is_quiet);
        match notice.alarm {
            Some(alarm) if is_written => warning_in_full(&alarm),
            _ => self.summary(summary),
        }
    }
}

/// Returns `true` unless `NO_COLOR` is set.
fn has_colours() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Returns `label` in a colour if standard error shows colours.
fn label(label: &'static str, colour: &'static str) -> Cow<'static, str> {
    if io::stderr().is_terminal() && has_colours() {
        return format!("\x1b[1;{colour}m{label}\x1b[0m").into();
    }
    label.into()
}

/// Returns the label of errors.
fn error_label() -> Cow<'static, str> {
    label("error:", "31")
}

/// Returns the label of warnings.
fn warning_label() -> Cow<'static, str> {
    label("warning:", "33")
}

/// Joins `warnings` to one alarm if `is_bad`.
pub(crate) fn alarm_if(is_bad: bool, warnings: &[String]) -> Option<String> {
    is_bad.then(|| warnings.join("; "))
}

/// Writes `error: …` with its causes, and `hint: …` if there is one.
pub(crate) fn error(error: &CliError) {
    print(&format!("{} {}\n", error_label(), shortened(&escape(&with_causes(error)))));
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
    print(&format!("{} {}\n", warning_label(), shortened(&escape(text))));
}

/// Writes `warning: …` without shortening it.
fn warning_in_full(text: &str) {
    print(&format!("{} {}\n", warning_label(), escape(text)));
}

/// Writes `hint: …`.
pub(crate) fn hint(advice: &str) {
    print(&format!("{} {}\n", label("hint:", "36"), shortened(&escape(advice))));
}

/// Writes to standard error; a closed one is ignored.
fn print(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Formats what a reader must know to understand a document, one line each.
pub(crate) fn conditions_of(provenance: &Value) -> String {
    lines(&nextstat::provenance::conditions_of(provenance))
}

fn lines(conditions: &[String]) -> String {
    conditions.iter().map(|line| format!("{}\n", escape(line))).collect()
}

/// Formats what a reader must know to understand the results of `analysis`, one line each.
pub(crate) fn conditions(analysis: &Analysis) -> String {
    lines(&analysis.conditions())
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
