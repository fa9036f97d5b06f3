//! `nextstat patchset`: pyhf's verbs for patch sets.

use super::{Command, every_patch};
use crate::args::files::Files;
use crate::args::named_or_piped;
use crate::args::values::source;
use crate::error::CliError;
use crate::output::reporter::Notice;
use crate::output::table::{Align, table};
use crate::output::{OutputArgs, Reporter, ResultArgs, escape, write_json, write_text};
use crate::status::Status;
use clap::{Args, Subcommand};
use nextstat::patchsets::{self, NamedGrid};
use ns_translate::patchset::{PatchContents, PatchEntry, PatchSet};
use ns_translate::{DocumentError, DocumentSource, pyhf, read_bytes, read_workspace_text};
use std::path::PathBuf;

/// Arguments of `patchset`.
#[derive(Debug, Args)]
pub(crate) struct PatchsetArgs {
    #[command(subcommand)]
    verb: PatchsetVerb,
}

/// Verbs for patch sets.
#[derive(Debug, Subcommand)]
enum PatchsetVerb {
    /// Print the name of every patch, one per line
    List(SetArgs),
    /// Show the metadata of the set, and the name and values of every patch
    Inspect(SetArgs),
    /// Print one patch
    Extract(ExtractArgs),
    /// Print the workspace with one patch applied
    Apply(ApplyArgs),
    /// Check that the set was made for a workspace; exit with 1 if it was not
    Verify(VerifyArgs),
    /// Join the shards of `hypotest` or `limit` with `--every-patch`: the result is that of one run
    /// of all patches
    Merge(MergeArgs),
}

/// A patch set.
#[derive(Debug, Args)]
struct SetArgs {
    /// Patch set, plain or compressed; `-`, or no patch set, reads standard input
    #[arg(value_name = "PATCHSET", value_parser = source())]
    patchset: Option<DocumentSource>,

    #[command(flatten)]
    output: OutputArgs,
}

impl SetArgs {
    /// Returns the patch set, if it was named.
    fn named(&self) -> Option<&DocumentSource> {
        self.patchset.as_ref()
    }

    /// Returns the source of the patch set.
    fn source(&self) -> Result<DocumentSource, CliError> {
        named_or_piped(self.named())
    }
}

/// Arguments of `patchset extract`.
#[derive(Debug, Args)]
struct ExtractArgs {
    #[command(flatten)]
    set: SetArgs,

    /// Name of the patch
    #[arg(long, value_name = "NAME")]
    name: String,

    /// Include name, values and the metadata of the set
    #[arg(long, overrides_with = "without_metadata")]
    with_metadata: bool,

    /// Print the operations alone; this is the default
    #[arg(long)]
    without_metadata: bool,
}

/// Arguments of `patchset apply`.
#[derive(Debug, Args)]
struct ApplyArgs {
    /// Workspace that the set was made for; `-` reads standard input
    #[arg(value_name = "WORKSPACE", value_parser = source())]
    workspace: DocumentSource,

    #[command(flatten)]
    set: SetArgs,

    /// Name of the patch
    #[arg(long, value_name = "NAME")]
    name: String,
}

/// Arguments of `patchset verify`.
#[derive(Debug, Args)]
struct VerifyArgs {
    /// Workspace; `-` reads standard input
    #[arg(value_name = "WORKSPACE", value_parser = source())]
    workspace: DocumentSource,

    #[command(flatten)]
    set: SetArgs,
}

/// Arguments of `patchset merge`.
#[derive(Debug, Args)]
struct MergeArgs {
    /// Results of all shards, in any order
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    #[command(flatten)]
    output: ResultArgs,
}

impl Command for PatchsetArgs {
    fn files(&self) -> Files<'_> {
        match &self.verb {
            PatchsetVerb::List(args) | PatchsetVerb::Inspect(args) => set_files(args),
            PatchsetVerb::Extract(args) => set_files(&args.set),
            PatchsetVerb::Verify(args) => set_files(&args.set).reading(Some(&args.workspace)),
            // The result may replace the workspace.
            PatchsetVerb::Apply(args) => set_files(&args.set),
            PatchsetVerb::Merge(args) => Files::of(&[], &args.output).reading_paths(&args.files),
        }
    }

    fn run(self) -> Result<Status, CliError> {
        match self.verb {
            PatchsetVerb::List(args) => list(&args),
            PatchsetVerb::Inspect(args) => inspect(&args),
            PatchsetVerb::Extract(args) => extract(&args),
            PatchsetVerb::Apply(args) => apply(&args),
            PatchsetVerb::Verify(args) => verify(&args),
            PatchsetVerb::Merge(args) => merge(&args),
        }
    }
}

fn set_files(args: &SetArgs) -> Files<'_> {
    Files::of(&[args.named()], &args.output)
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
    Ok((read_workspace_text(workspace)?.bytes, read(set)?))
}

fn list(args: &SetArgs) -> Result<Status, CliError> {
    let set = read(&args.source()?)?;
    let names: String = set.patches().iter().map(|patch| format!("{}\n", patch.name)).collect();
    write_text(&names, &args.output)?;
    Ok(Status::Done)
}

fn inspect(args: &SetArgs) -> Result<Status, CliError> {
    let set = read(&args.source()?)?;
    write_json(&patchsets::patchset(&set), &args.output)?;
    Reporter::new(&args.output).summary(|_| summary(&set));
    Ok(Status::Done)
}

fn extract(args: &ExtractArgs) -> Result<Status, CliError> {
    let source = &args.set.source()?;
    let set = read(source)?;
    let what = if args.with_metadata { PatchContents::WithMetadata } else { PatchContents::Operations };
    let patch = set.by_name(&args.name).and_then(|entry| set.extract(entry, what));
    let document = patch.map_err(|error| named(error, source))?;
    write_json(&document, &args.set.output)?;
    Ok(Status::Done)
}

fn apply(args: &ApplyArgs) -> Result<Status, CliError> {
    let source = &args.set.source()?;
    let (bytes, set) = read_both(&args.workspace, source)?;
    pyhf::read_workspace(&bytes).map_err(|error| named(error, &args.workspace))?;
    let patched = set.apply(&bytes, &args.name).map_err(|error| named(error, source))?;
    let name = format!("{}, patched", args.workspace.name());
    pyhf::from_value(&patched).map_err(|error| DocumentError::from(error).in_file(&name))?;
    write_json(&patched, &args.set.output)?;
    Ok(Status::Done)
}

fn verify(args: &VerifyArgs) -> Result<Status, CliError> {
    let (bytes, set) = read_both(&args.workspace, &args.set.source()?)?;
    let checks = set.verify(&bytes).map_err(|error| named(error, &args.workspace))?;
    let verified = checks.iter().all(ns_translate::patchset::DigestCheck::matches);
    write_json(&patchsets::verification(&checks), &args.set.output)?;
    let verdict = verdict(verified);
    let notice = Notice { alarm: (!verified).then(|| verdict.to_owned()), is_failure: !verified };
    Reporter::new(&args.set.output).summary_or_warning(notice, |_| format!("{verdict}\n"));
    Ok(Status::done_if(verified))
}

fn merge(args: &MergeArgs) -> Result<Status, CliError> {
    let read = |path: &PathBuf| {
        let source = DocumentSource::Path(path.clone());
        // What is not JSON is no shard.
        let document = serde_json::from_slice(&read_bytes(&source)?).unwrap_or_default();
        Ok(NamedGrid { name: source.name(), document })
    };
    let documents = args.files.iter().map(read).collect::<Result<Vec<_>, CliError>>()?;
    let answer = patchsets::merge(&documents)?;
    let document = answer.document();
    args.output.write(&document)?;
    Ok(every_patch::report(&answer, &document["provenance"], &args.output))
}

/// Formats the description and a table of the patches.
fn summary(set: &PatchSet) -> String {
    let metadata = set.metadata();
    let columns: Vec<(&str, Align)> = std::iter::once(("patch", Align::Left))
        .chain(metadata.labels.iter().map(|label| (label.as_str(), Align::Right)))
        .collect();
    let row = |entry: &PatchEntry| {
        let values = entry.values.iter().map(|value| escape(&value.to_string()));
        std::iter::once(entry.name.clone()).chain(values).collect()
    };
    let rows: Vec<Vec<String>> = set.patches().iter().map(row).collect();
    let plural = if rows.len() == 1 { "patch" } else { "patches" };
    format!("{}\n{} {plural}\n\n{}", escape(&metadata.description), rows.len(), table(&columns, &rows))
}

/// Formats whether the digests are those of the workspace.
fn verdict(verified: bool) -> &'static str {
    if verified {
        "the patch set was made for this workspace"
    } else {
        "the patch set was made for another workspace: the digests differ"
    }
}
