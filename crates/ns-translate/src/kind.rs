//! Tells kinds of documents apart, so that each is read by its reader, and a document of the wrong
//! kind is named.
//!
//! A kind is recognised twice: from the first keys of the bytes, which is quick and selects a
//! reader, and from all keys of a tree, which is exact and explains why a reader failed. Which
//! kinds can be read, and by what, is in the table of [`crate::format`].

use std::borrow::Cow;
use std::fmt;

use ns_core::advice::AdvicePart::{Remedy as Name, Text};
use ns_core::advice::{Advice, Remedy};

use crate::json::{JsonNode, JsonTree, first_keys};
use crate::text;

/// The kinds of documents that users have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DocumentKind {
    /// A pyhf workspace.
    Workspace,
    /// A pyhf model: channels without observations and measurements.
    Model,
    /// A JSON patch (RFC 6902).
    Patch,
    /// A pyhf patch set.
    PatchSet,
    /// A document of the HEP Statistics Serialization Standard.
    Hs3,
    /// A combination in HistFactory XML, which names further files.
    HistFactory,
    /// A data card of Combine.
    Card,
}

/// What is known of a kind without reading it.
struct KindTraits {
    kind: DocumentKind,
    /// What it is called in messages, with an article.
    name: &'static str,
    /// Whether it is a list of objects, and [`Self::keys`] are theirs.
    is_list: bool,
    /// Keys of which the first one in a document indicates the kind.
    keys: &'static [&'static str],
    /// Advice for a document of this kind where another is expected.
    advice: Advice,
}

const KINDS: [KindTraits; 7] = [
    KindTraits {
        kind: DocumentKind::Workspace,
        name: "a pyhf workspace",
        is_list: false,
        keys: &["channels", "measurements", "observations"],
        advice: Advice::Naming(&[
            Text("the workspace comes first, patches follow with "),
            Name(Remedy::Patches),
            Text(" or "),
            Name(Remedy::PatchSet),
        ]),
    },
    KindTraits {
        kind: DocumentKind::Model,
        name: "a pyhf model without observations and measurements",
        is_list: false,
        // Only what it lacks distinguishes it from a workspace.
        keys: &[],
        advice: Advice::Text(Cow::Borrowed("a workspace also has `observations`, `measurements` and `version`")),
    },
    KindTraits {
        kind: DocumentKind::Patch,
        name: "a JSON patch",
        is_list: true,
        keys: &["op"],
        advice: Advice::Naming(&[
            Text("this looks like a JSON patch; pass it with "),
            Name(Remedy::Patches),
            Text(", after the workspace it changes"),
        ]),
    },
    KindTraits {
        kind: DocumentKind::PatchSet,
        name: "a pyhf patch set",
        is_list: false,
        keys: &["patches"],
        advice: Advice::Naming(&[
            Text("pass it with "),
            Name(Remedy::NamedPatch),
            Text(", after the workspace it was made for"),
        ]),
    },
    KindTraits {
        kind: DocumentKind::Hs3,
        name: "an HS3 document",
        is_list: false,
        keys: &["distributions", "likelihoods", "analyses", "parameter_points"],
        advice: Advice::Text(Cow::Borrowed("name the document instead of the workspace")),
    },
    KindTraits {
        kind: DocumentKind::HistFactory,
        name: "a combination in HistFactory XML",
        is_list: false,
        // XML has no keys: its first character tells it.
        keys: &[],
        advice: Advice::Text(Cow::Borrowed("name the combination instead of the workspace")),
    },
    KindTraits {
        kind: DocumentKind::Card,
        name: "a data card of Combine",
        is_list: false,
        // Cards have lines instead of keys.
        keys: &[],
        advice: Advice::Text(Cow::Borrowed("name the card instead of the workspace")),
    },
];

/// Bytes at the beginning of a document within which its kind is recognised.
const OPENING: usize = 1 << 16;

impl DocumentKind {
    /// Every kind.
    pub const ALL: [Self; KINDS.len()] =
        [Self::Workspace, Self::Model, Self::Patch, Self::PatchSet, Self::Hs3, Self::HistFactory, Self::Card];

    fn traits(self) -> &'static KindTraits {
        &KINDS[self as usize]
    }

    /// Returns the kind that the first 64 kB of a document indicate, or `None` if they indicate
    /// none.
    ///
    /// A document that begins with `<` is XML, and one with lines of a data card is a card.
    /// Otherwise the first key that belongs to one kind decides. A pyhf model is a
    /// [`Self::Workspace`] here, because only what it lacks distinguishes it.
    ///
    /// # Example
    ///
    /// ```
    /// use ns_translate::DocumentKind;
    ///
    /// let recognized = DocumentKind::recognize(br#"{"version": "1.0.0", "channels": []}"#);
    /// assert_eq!(recognized, Some(DocumentKind::Workspace));
    /// let recognized = DocumentKind::recognize(br#"[{"op": "remove", "path": "/channels/0"}]"#);
    /// assert_eq!(recognized, Some(DocumentKind::Patch));
    /// assert_eq!(DocumentKind::recognize(b"imax 1 channel"), Some(DocumentKind::Card));
    /// assert_eq!(DocumentKind::recognize(b"channels: []"), None);
    /// ```
    #[must_use]
    pub fn recognize(bytes: &[u8]) -> Option<Self> {
        let opening = text::valid_opening(&bytes[..bytes.len().min(OPENING)]);
        if opening.trim_start().starts_with('<') {
            return Some(Self::HistFactory);
        }
        if !opening.trim_start_matches('\u{feff}').trim_start().starts_with(['{', '[']) && is_card(opening) {
            return Some(Self::Card);
        }
        first_keys(opening, |is_list, key| {
            let found = KINDS.iter().find(|kind| kind.is_list == is_list && kind.keys.contains(&key))?;
            Some(found.kind)
        })
    }

    /// Returns the kind of the document whose tree is `root`, or `None` if it looks like no kind.
    pub(crate) fn of(root: &JsonNode<'_>) -> Option<Self> {
        match &root.tree {
            JsonTree::List(items) => {
                let operations = items.iter().all(|item| has_key(item, "op"));
                (operations && !items.is_empty()).then_some(Self::Patch)
            }
            JsonTree::Object(_) => Self::of_keys(|key| has_key(root, key)),
            _ => None,
        }
    }

    /// Returns the kind of an object that has the keys for which `has` returns true.
    fn of_keys(has: impl Fn(&str) -> bool) -> Option<Self> {
        if has("patches") && !has("channels") {
            Some(Self::PatchSet)
        } else if has("distributions") {
            Some(Self::Hs3)
        } else if has("channels") && (has("observations") || has("measurements")) {
            Some(Self::Workspace)
        } else if has("channels") && (has("parameters") || !has("version")) {
            Some(Self::Model)
        } else {
            None
        }
    }

    /// Refuses a document of another kind than `self`; one of no known kind passes.
    pub(crate) fn require(self, root: &JsonNode<'_>) -> Result<(), WrongDocumentError> {
        match Self::of(root) {
            Some(found) if found != self => Err(WrongDocumentError { wanted: self, found }),
            _ => Ok(()),
        }
    }
}

/// The first words of lines that only data cards have.
const CARD_WORDS: [&str; 5] = ["imax", "jmax", "kmax", "process", "rate"];

/// Returns whether a text that is neither JSON nor XML is a card: some line begins with a word of
/// cards, and has more.
fn is_card(opening: &str) -> bool {
    opening.lines().any(|line| {
        let mut words = line.split_whitespace();
        words.next().is_some_and(|first| CARD_WORDS.contains(&first)) && words.next().is_some()
    })
}

fn has_key(node: &JsonNode<'_>, key: &str) -> bool {
    match &node.tree {
        JsonTree::Object(members) => members.iter().any(|member| member.key == key),
        _ => false,
    }
}

impl fmt::Display for DocumentKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.traits().name)
    }
}

/// A document of one kind where another is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected {wanted}, found {found}")]
pub struct WrongDocumentError {
    /// The kind that the reader reads.
    pub wanted: DocumentKind,
    /// The kind of the document.
    pub found: DocumentKind,
}

impl WrongDocumentError {
    /// Returns one line of advice.
    #[must_use]
    pub fn advice(&self) -> Advice {
        match (self.wanted, self.found) {
            (DocumentKind::Patch, DocumentKind::PatchSet) => {
                Advice::Naming(&[Text("pass a patch set with "), Name(Remedy::NamedPatch)])
            }
            (DocumentKind::PatchSet, DocumentKind::Patch) => {
                Advice::Naming(&[Text("pass a single patch with "), Name(Remedy::PatchFile)])
            }
            (_, found) => found.traits().advice.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn every_kind_has_its_row_in_the_table() {
        for (index, kind) in DocumentKind::ALL.into_iter().enumerate() {
            assert_eq!((kind as usize, KINDS[index].kind), (index, kind));
        }
    }

    #[test]
    fn first_keys_and_all_keys_indicate_the_same_kind() {
        for (text, kind) in [
            (r#"{"channels": [], "observations": []}"#, DocumentKind::Workspace),
            (r#"{"version": "1.0.0", "measurements": [{}], "channels": [1, "]"]}"#, DocumentKind::Workspace),
            (r#"{"metadata": {"a": [1, {"channels": 2}]}, "patches": []}"#, DocumentKind::PatchSet),
            (r#" [ {"path": "", "op": "add"}]"#, DocumentKind::Patch),
            ("\u{feff}{\"metadata\": {}, \"distributions\": []}", DocumentKind::Hs3),
        ] {
            assert_eq!(DocumentKind::recognize(text.as_bytes()), Some(kind), "{text}");
            let text = text.trim_start_matches('\u{feff}');
            assert_eq!(DocumentKind::of(&json::parse(text).expect("JSON")), Some(kind), "{text}");
        }
    }

    #[test]
    fn xml_is_recognized_by_its_first_character() {
        for text in ["<Combination/>", "\u{feff}\n <!DOCTYPE Combination SYSTEM 'a.dtd'>", "<?xml version='1.0'?>"] {
            assert_eq!(DocumentKind::recognize(text.as_bytes()), Some(DocumentKind::HistFactory), "{text}");
        }
    }

    #[test]
    fn documents_of_no_kind_are_not_recognized() {
        for text in ["", "{", "[", "[]", "{}", "[[{\"op\": 1}]]", "3", "{\"a\": 1", "{\"a\" 1}", "\u{fffd}"] {
            assert_eq!(DocumentKind::recognize(text.as_bytes()), None, "{text}");
        }
        assert_eq!(DocumentKind::recognize(b"\xff{\"channels\": []}"), None);
    }
}
