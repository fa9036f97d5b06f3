//! What kind of document a tree is, so that a document passed in the wrong place is named and not picked apart.

use std::fmt;

use crate::json::{Node, Tree};

/// The kinds of document that are met in practice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// A HEP Statistics Serialization Standard document, as ROOT writes it.
    Hs3,
}

impl DocumentKind {
    /// The kind that `root` looks like; `None` when it looks like nothing known.
    pub(crate) fn of(root: &Node<'_>) -> Option<Self> {
        match &root.tree {
            Tree::List(items) => {
                let operations = items.iter().all(|item| has_key(item, "op"));
                (operations && !items.is_empty()).then_some(Self::Patch)
            }
            Tree::Object(_) => {
                let has = |key| has_key(root, key);
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
            _ => None,
        }
    }
}

fn has_key(node: &Node<'_>, key: &str) -> bool {
    match &node.tree {
        Tree::Object(members) => members.iter().any(|member| member.key == key),
        _ => false,
    }
}

impl fmt::Display for DocumentKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Workspace => "a pyhf workspace",
            Self::Model => "a pyhf model without observations and measurements",
            Self::Patch => "a JSON patch",
            Self::PatchSet => "a pyhf patch set",
            Self::Hs3 => "an HS3 document",
        })
    }
}
