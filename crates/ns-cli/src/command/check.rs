//! `nextstat check`: what makes a model wrong, before a fit does.

use ns_core::check::Severity;

use super::{Status, model};
use crate::args::CheckArgs;
use crate::error::CliError;
use crate::report::{self, Talk};

pub(super) fn run(args: &CheckArgs) -> Result<Status, CliError> {
    let model = model::model(&args.model)?;
    let findings = model.check(None)?;
    report::write_json(&model.findings_document(&findings), &args.output)?;
    let worst_allowed = if args.strict { Severity::Note } else { Severity::Warning };
    let n_bad = findings.iter().filter(|finding| finding.severity() < worst_allowed).count();
    let alarm = (n_bad > 0).then(|| format!("{n_bad} things are wrong with the model"));
    Talk::new(&args.output).say_or_warn(alarm.as_deref(), |paint| report::check::summary(&findings, paint));
    Ok(Status::positive_if(n_bad == 0))
}
