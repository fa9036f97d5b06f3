//! `nextstat digest`: digests of a document, as pyhf's patch sets contain them.

use super::Command;
use crate::args::files::Files;
use crate::args::values::source;
use crate::args::{CardArgs, named_or_piped};
use crate::error::CliError;
use crate::output::reporter::warning;
use crate::output::{OutputArgs, write_json, write_text};
use crate::status::Status;
use clap::Args;
use ns_translate::digest::{DigestAlgorithm, digest};
use ns_translate::{DocumentError, DocumentSource, WorkspaceText, read_workspace_text_with};

/// Arguments of `digest`.
#[derive(Debug, Args)]
pub(crate) struct DigestArgs {
    /// Workspace or any other JSON document; `-`, or no document, reads standard input
    #[arg(value_name = "WORKSPACE", value_parser = source())]
    workspace: Option<DocumentSource>,

    /// Same as WORKSPACE
    #[arg(long, value_name = "FILE", value_parser = source(), conflicts_with = "workspace")]
    input: Option<DocumentSource>,

    /// Algorithm: sha256 or md5; repeatable
    #[arg(short, long, value_name = "NAME", default_value = "sha256")]
    algorithm: Vec<String>,

    #[command(flatten)]
    card: CardArgs,

    /// Print a JSON object, as `--json` does
    #[arg(short = 'j', overrides_with = "plaintext")]
    as_json: bool,

    /// Print one line `algorithm:digest` per algorithm; this is the default
    #[arg(short, long, overrides_with_all = ["as_json", "json"])]
    plaintext: bool,

    #[command(flatten)]
    output: OutputArgs,
}

impl DigestArgs {
    /// Returns the document, if it was named.
    fn named(&self) -> Option<&DocumentSource> {
        self.workspace.as_ref().or(self.input.as_ref())
    }
}

impl Command for DigestArgs {
    fn files(&self) -> Files<'_> {
        Files::of(&[self.named()], &self.output)
    }

    fn run(self) -> Result<Status, CliError> {
        let words = self.algorithm.iter();
        let mut algorithms: Vec<DigestAlgorithm> = Vec::new();
        for algorithm in words.map(|word| DigestAlgorithm::from_word(word)) {
            let algorithm = algorithm.map_err(DocumentError::from)?;
            if !algorithms.contains(&algorithm) {
                algorithms.push(algorithm);
            }
        }
        let source = named_or_piped(self.named())?;
        let WorkspaceText { bytes, warnings } = read_workspace_text_with(&source, &self.card.options())?;
        warnings.iter().for_each(|text| warning(text));
        let digest = |algorithm: &DigestAlgorithm| Ok((algorithm.as_str(), digest(&bytes, *algorithm)?));
        let digests: Vec<(&str, String)> = algorithms
            .iter()
            .map(digest)
            .collect::<Result<_, DocumentError>>()
            .map_err(|e| e.in_file(&source.name()))?;
        if self.as_json || self.output.json {
            let digests: serde_json::Map<_, _> =
                digests.into_iter().map(|(algorithm, digest)| (algorithm.to_owned(), digest.into())).collect();
            write_json(&digests, &self.output)?;
        } else {
            let lines: String = digests.iter().map(|(algorithm, digest)| format!("{algorithm}:{digest}\n")).collect();
            write_text(&lines, &self.output)?;
        }
        Ok(Status::Done)
    }
}
