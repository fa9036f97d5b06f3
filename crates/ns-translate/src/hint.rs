//! Advice for each error, one line or nothing.

use ns_core::spec::ModifierKind;

use crate::DocumentError;
use crate::digest::DigestAlgorithm;
use crate::json::SyntaxProblem;
use crate::kind::DocumentKind;
use crate::patch::PatchProblem;
use crate::source::{DocumentSource, UNPACKED_LIMIT};

/// How alike two words must be for one to be taken for the other (0: nothing in common, 1: the same).
const LIKENESS: f64 = 0.6;

pub(crate) fn of(error: &DocumentError) -> Option<String> {
    match error {
        DocumentError::InFile { name, error } if *name == DocumentSource::Stdin.name() && is_blank(error) => {
            Some("name a file, or pipe a document in".to_owned())
        }
        DocumentError::InFile { error, .. } => of(error),
        DocumentError::Syntax { problem, .. } => problem.hint().map(str::to_owned),
        DocumentError::NotFinite { .. } => {
            Some("JSON has no NaN and no infinity; leave the entry out or write a finite number".to_owned())
        }
        DocumentError::NotUtf8 { .. } => {
            Some("workspaces are JSON text, plain or compressed as .gz or .zst".to_owned())
        }
        DocumentError::UnpackedTooLarge { .. } => {
            Some(format!("if the file is sound, allow more: `{UNPACKED_LIMIT}=BYTES` in the environment"))
        }
        DocumentError::WrongDocument { wanted, found } => wrong_document(*wanted, *found).map(str::to_owned),
        DocumentError::UnknownModifier { kind, .. } => {
            let known = ModifierKind::ALL.map(ModifierKind::as_str);
            Some(meant(kind, known).unwrap_or_else(|| format!("the types are {}", in_backticks(known))))
        }
        DocumentError::UnknownKey { key, known, .. } => {
            let known = known.iter().copied();
            Some(meant(key, known.clone()).unwrap_or_else(|| format!("the keys here are {}", in_backticks(known))))
        }
        DocumentError::DuplicateKey { .. } => {
            Some("the same object has this key before; other readers silently take the last one".to_owned())
        }
        DocumentError::UnsupportedVersion { .. } => Some("this is written for pyhf schema version `1.0.0`".to_owned()),
        DocumentError::UnknownOperation { op, .. } => {
            let known = ["add", "remove", "replace", "move", "copy", "test"];
            Some(meant(op, known).unwrap_or_else(|| format!("the operations are {}", in_backticks(known))))
        }
        DocumentError::Patch { problem, .. } => patch(problem),
        DocumentError::UnknownPatch { name, known } => unknown_patch(name, known),
        DocumentError::UnknownPatchValues { labels, .. } => {
            Some(format!("the values stand for {}", in_backticks(labels.iter().map(String::as_str))))
        }
        DocumentError::UnknownAlgorithm { .. } => {
            Some(format!("the algorithms are {}", in_backticks(DigestAlgorithm::ALL.map(DigestAlgorithm::as_str))))
        }
        DocumentError::DigestMismatch { .. } => {
            Some("if that is intended, extract the patch to a file and pass it with `--patch`".to_owned())
        }
        _ => None,
    }
}

fn is_blank(error: &DocumentError) -> bool {
    matches!(error, DocumentError::Syntax { problem: SyntaxProblem::Blank, .. })
}

fn wrong_document(wanted: DocumentKind, found: DocumentKind) -> Option<&'static str> {
    use DocumentKind::{Hs3, Model, Patch, PatchSet, Workspace};
    match (wanted, found) {
        (Patch, PatchSet) => Some("pass a patch set with `--patchset FILE --patch-name NAME`"),
        (_, PatchSet) => Some("pass it with `--patchset FILE --patch-name NAME`, after the workspace it was made for"),
        (PatchSet, Patch) => Some("pass a single patch with `--patch FILE`"),
        (_, Patch) => Some("this looks like a JSON patch; pass it with `--patch`, after the workspace it changes"),
        (_, Workspace) => Some("the workspace comes first, patches follow with `--patch` or `--patchset`"),
        (_, Model) => Some("a workspace also has `observations`, `measurements` and `version`"),
        (_, Hs3) => Some("HS3 documents cannot be read yet; export the workspace as pyhf JSON"),
    }
}

fn patch(problem: &PatchProblem) -> Option<String> {
    match problem {
        PatchProblem::Missing { .. } => Some("was the patch made for this workspace?".to_owned()),
        _ => None,
    }
}

fn unknown_patch(name: &str, known: &[String]) -> Option<String> {
    const SHOWN: usize = 5;
    let mut ranked: Vec<(f64, &str)> = known.iter().map(|other| (likeness(name, other), other.as_str())).collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
    let nearest = in_backticks(ranked.iter().take(SHOWN).map(|(_, other)| *other));
    match known.len() {
        0 => None,
        all if all <= SHOWN => Some(format!("it has {nearest}")),
        all => Some(format!("it has {all} patches; the nearest names are {nearest}")),
    }
}

/// "did you mean" the most alike of `known`, if any is alike.
fn meant<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<String> {
    let ranked = known.into_iter().map(|other| (likeness(word, other), other));
    let (score, nearest) = ranked.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (score >= LIKENESS).then(|| format!("did you mean `{nearest}`?"))
}

fn likeness(a: &str, b: &str) -> f64 {
    // Far longer words are nothing alike, and comparing them takes time with the product of their lengths.
    if a.len().max(b.len()) > 200 {
        return 0.0;
    }
    strsim::normalized_damerau_levenshtein(&a.to_lowercase(), &b.to_lowercase())
}

fn in_backticks<'k>(words: impl IntoIterator<Item = &'k str>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| format!("`{word}`")).collect();
    words.join(", ")
}
