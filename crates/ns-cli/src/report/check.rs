//! What `check` says to people: the important findings, in words.

use std::fmt::Write;

use ns_core::check::{Finding, Severity};

use super::talk::{Paint, harmless};

/// How many findings of one code a screen has room for.
const SHOWN: usize = 5;

/// The findings in words, the first few of each code.
pub(crate) fn summary(findings: &[Finding], paint: Paint) -> String {
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
            let _ = writeln!(text, "  … and {} more of `{code}`, in the result", of_code.len() - SHOWN);
        }
    }
    let count = |severity| findings.iter().filter(|finding| finding.severity() == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let verdict = format!("{errors} errors, {warnings} warnings, {} notes", count(Severity::Note));
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
    format!("{word}: {}\n", harmless(&format!("{place}{separator}{}{pointer}", finding.problem)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ns_core::check::{FindingKind, FindingPlace};

    #[test]
    fn findings_of_one_code_are_not_all_listed() {
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
          … and 2 more of `empty_bin`, in the result
        warning: the measurement sets `mo`, which no modifier uses; is `mu` meant?
        7 errors, 1 warnings, 0 notes
        "#);
    }
}
