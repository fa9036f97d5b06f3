//! `nextstat digest`: digests of a document, as pyhf's patch sets carry them.

use ns_translate::digest::{DigestAlgorithm, digest};
use ns_translate::{DocumentError, read_bytes};

use super::Status;
use crate::args::DigestArgs;
use crate::error::CliError;
use crate::report;

pub(super) fn run(args: &DigestArgs) -> Result<Status, CliError> {
    let words = args.algorithm.iter();
    let mut algorithms: Vec<DigestAlgorithm> = Vec::new();
    for algorithm in words.map(|word| DigestAlgorithm::from_word(word)) {
        let algorithm = algorithm.map_err(DocumentError::from)?;
        if !algorithms.contains(&algorithm) {
            algorithms.push(algorithm);
        }
    }
    let source = args.source()?;
    let bytes = read_bytes(&source)?;
    let digest = |algorithm: &DigestAlgorithm| Ok((algorithm.as_str(), digest(&bytes, *algorithm)?));
    let digests: Vec<(&str, String)> =
        algorithms.iter().map(digest).collect::<Result<_, DocumentError>>().map_err(|e| e.in_file(&source.name()))?;
    if args.json {
        let digests: serde_json::Map<_, _> =
            digests.into_iter().map(|(algorithm, digest)| (algorithm.to_owned(), digest.into())).collect();
        report::write_json(&digests, &args.output)?;
    } else {
        let lines: String = digests.iter().map(|(algorithm, digest)| format!("{algorithm}:{digest}\n")).collect();
        report::write_text(&lines, &args.output)?;
    }
    Ok(Status::Done)
}
