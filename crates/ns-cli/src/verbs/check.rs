//! `nextstat check`: problems of a model, found before a fit.

use super::{Command, EXIT_CODES};
use crate::args::files::Files;
use crate::args::{HideArgs, ModelArgs};
use crate::error::CliError;
use crate::output::reporter::Notice;
use crate::output::{OutputArgs, Paint, Reporter, escape, write_result};
use crate::status::Status;
use clap::Args;
use nextstat::number::counted;
use nextstat::{Analysis, Blinding, Settings};
use ns_core::check::{Finding, Severity};
use std::fmt::Write;

/// Arguments of `check`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    model: ModelArgs,

    #[command(flatten)]
    hide: HideArgs,

    /// Exit with 1 for warnings too, not only for errors
    #[arg(long)]
    strict: bool,

    #[command(flatten)]
    output: OutputArgs,
}

impl Command for CheckArgs {
    fn files(&self) -> Files<'_> {
        Files::new(&self.model.input, &self.output)
    }

    fn run(self) -> Result<Status, CliError> {
        let model = self.model.model()?;
        // Everything may be hidden: nothing is fitted.
        let blind = Blinding { is_fitted: true, ..self.hide.blinding() };
        let findings = Analysis::new(&model, &Settings { blind, ..Settings::default() })?.check(None)?;
        write_result(&model.findings_document(&findings), &self.output)?;
        let worst_allowed = if self.strict { Severity::Note } else { Severity::Warning };
        let n_bad = findings.iter().filter(|finding| finding.severity() < worst_allowed).count();
        let alarm = (n_bad > 0).then(|| format!("the model has {}", counted(n_bad, "problem")));
        let notice = Notice { alarm, is_failure: n_bad > 0 };
        Reporter::new(&self.output).summary_or_warning(notice, |paint| summary(&findings, paint));
        Ok(Status::done_if(n_bad == 0))
    }
}

/// Findings of one code in the summary.
const SHOWN: usize = 5;

/// Formats the first findings of each code.
fn summary(findings: &[Finding], paint: Paint) -> String {
    let mut text = String::new();
    let mut codes: Vec<&'static str> = Vec::new();
    for finding in findings {
        if !codes.contains(&finding.problem.code()) {
            codes.push(finding.problem.code());
        }
    }
    for code in codes {
        let of_code: Vec<&Finding> = findings.iter().filter(|finding| finding.problem.code() == code).collect();
        for finding in of_code.iter().take(SHOWN) {
            text.push_str(&line(finding, paint));
        }
        if of_code.len() > SHOWN {
            let _ = writeln!(text, "  … {} more of `{code}` are in the result", of_code.len() - SHOWN);
        }
    }
    let count = |severity| findings.iter().filter(|finding| finding.severity() == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let counts = [(errors, "error"), (warnings, "warning"), (count(Severity::Note), "note")];
    let verdict = counts.map(|(n, what)| counted(n, what)).join(", ");
    let _ = writeln!(text, "{}", if errors > 0 { paint.alarm(&verdict) } else { verdict });
    text
}

fn line(finding: &Finding, paint: Paint) -> String {
    let word = match finding.severity() {
        Severity::Error => paint.alarm("error"),
        Severity::Warning => paint.strong("warning"),
        Severity::Note => "note".to_owned(),
    };
    let place = finding.at.to_string();
    let separator = if place.is_empty() { "" } else { ": " };
    let pointer = finding.at.pointer.as_ref().map_or_else(String::new, |pointer| format!(" ({pointer})"));
    format!("{word}: {}\n", escape(&format!("{place}{separator}{}{pointer}", finding.problem)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ns_core::check::{FindingKind, FindingPlace};

    #[test]
    fn only_the_first_findings_of_a_code_are_listed() {
        let finding = |i: usize| {
            let problem = FindingKind::EmptyBin { observed: 2.0 };
            Finding {
                problem,
                at: FindingPlace { channel: Some("SR".to_owned()), bin: Some(i), ..FindingPlace::default() },
            }
        };
        let mut findings: Vec<Finding> = (0..7).map(finding).collect();
        findings.push(Finding {
            problem: FindingKind::UnusedSetting { name: "mo".to_owned(), similar: Some("mu".to_owned()) },
            at: FindingPlace::default(),
        });
        insta::assert_snapshot!(summary(&findings, Paint::Plain), @r#"
        error: channel `SR`, bin 0: no sample has any yield here, and 2 events were observed
        error: channel `SR`, bin 1: no sample has any yield here, and 2 events were observed
        error: channel `SR`, bin 2: no sample has any yield here, and 2 events were observed
        error: channel `SR`, bin 3: no sample has any yield here, and 2 events were observed
        error: channel `SR`, bin 4: no sample has any yield here, and 2 events were observed
          … 2 more of `empty_bin` are in the result
        warning: the measurement sets `mo`, which no modifier uses; is `mu` meant?
        7 errors, 1 warning, 0 notes
        "#);
    }
}
