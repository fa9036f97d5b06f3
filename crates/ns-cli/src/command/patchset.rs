//! `nextstat patchset`: pyhf's verbs for patch sets.

use nextstat::patchsets;
use ns_translate::patchset::{PatchContents, PatchSet};
use ns_translate::{DocumentError, DocumentSource, pyhf, read_bytes};

use super::Status;
use crate::args::{ApplyArgs, ExtractArgs, PatchsetVerb, SetArgs, VerifyArgs};
use crate::error::CliError;
use crate::report::{self, Talk};

pub(super) fn run(verb: PatchsetVerb) -> Result<Status, CliError> {
    match verb {
        PatchsetVerb::List(args) => list(&args),
        PatchsetVerb::Inspect(args) => inspect(&args),
        PatchsetVerb::Extract(args) => extract(&args),
        PatchsetVerb::Apply(args) => apply(&args),
        PatchsetVerb::Verify(args) => verify(&args),
    }
}

fn read(source: &DocumentSource) -> Result<PatchSet, CliError> {
    PatchSet::from_bytes(&read_bytes(source)?).map_err(|error| named(error, source))
}

fn named(error: impl Into<DocumentError>, source: &DocumentSource) -> CliError {
    error.into().in_file(&source.name()).into()
}

fn read_both(workspace: &DocumentSource, set: &DocumentSource) -> Result<(Vec<u8>, PatchSet), CliError> {
    if *workspace == DocumentSource::Stdin && *set == DocumentSource::Stdin {
        return Err(CliError::TwoFromStdin);
    }
    Ok((read_bytes(workspace)?, read(set)?))
}

fn list(args: &SetArgs) -> Result<Status, CliError> {
    let set = read(&args.source()?)?;
    let names: String = set.patches().iter().map(|patch| format!("{}\n", patch.name)).collect();
    report::write_text(&names, &args.output)?;
    Ok(Status::Done)
}

fn inspect(args: &SetArgs) -> Result<Status, CliError> {
    let set = read(&args.source()?)?;
    report::write_json(&patchsets::patchset(&set), &args.output)?;
    Talk::new(&args.output).say(|_| report::patchset::summary(&set));
    Ok(Status::Done)
}

fn extract(args: &ExtractArgs) -> Result<Status, CliError> {
    let source = &args.set.source()?;
    let set = read(source)?;
    let what = if args.with_metadata { PatchContents::WithMetadata } else { PatchContents::Operations };
    let patch = set.by_name(&args.name).and_then(|entry| set.extract(entry, what));
    let document = patch.map_err(|error| named(error, source))?;
    report::write_json(&document, &args.set.output)?;
    Ok(Status::Done)
}

fn apply(args: &ApplyArgs) -> Result<Status, CliError> {
    let source = &args.set.source()?;
    let (bytes, set) = read_both(&args.workspace, source)?;
    pyhf::read_workspace(&bytes).map_err(|error| named(error, &args.workspace))?;
    let patched = set.apply(&bytes, &args.name).map_err(|error| named(error, source))?;
    let name = format!("{}, patched", args.workspace.name());
    pyhf::from_value(&patched).map_err(|error| DocumentError::from(error).in_file(&name))?;
    report::write_json(&patched, &args.set.output)?;
    Ok(Status::Done)
}

fn verify(args: &VerifyArgs) -> Result<Status, CliError> {
    let (bytes, set) = read_both(&args.workspace, &args.set.source()?)?;
    let checks = set.verify(&bytes).map_err(|error| named(error, &args.workspace))?;
    let verified = checks.iter().all(ns_translate::patchset::DigestCheck::matches);
    report::write_json(&patchsets::verification(&checks), &args.set.output)?;
    let verdict = report::patchset::verdict(verified);
    Talk::new(&args.set.output).say_or_warn((!verified).then_some(verdict), |_| format!("{verdict}\n"));
    Ok(Status::positive_if(verified))
}
