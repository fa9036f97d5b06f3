//! Stored references for `verify`: prompts of a `reference.json`, and their logits and residual
//! streams in `reference_logits.safetensors`.
//!
//! A folder has one set of tensors, named after its prompts, or several (of quantised files of one
//! model), each named `SET.PROMPT`; then `reference.json` is an object of sets, and the prompts are
//! in that of another folder.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::cli::CliError;
use crate::cli::args::VerifyArgs;
use crate::error::{Error, Problem, quoted};
use crate::files::{Tensors, json, safetensors};
use crate::model::Model;

const DOCUMENT: &str = "reference.json";

/// One text of the reference.
#[derive(Debug)]
pub(super) struct Prompt {
    pub(super) name: String,
    pub(super) tokens: Vec<u32>,
    /// The tokens whose logits `NAME.logits` has.
    rows: Vec<u32>,
}

/// A reference as it is stored.
#[derive(Debug)]
pub(super) struct Reference {
    /// Its `reference.json`.
    path: PathBuf,
    tensors: Tensors,
    /// None for one set without a name.
    sets: Vec<String>,
    pub(super) prompts: Vec<Prompt>,
    /// The file that has them.
    pub(super) prompts_of: PathBuf,
}

/// One set of a reference.
#[derive(Debug)]
pub(super) struct Stored<'a> {
    tensors: &'a Tensors,
    pub(super) set: Option<String>,
}

impl Reference {
    pub(super) fn open(args: &VerifyArgs) -> Result<Reference, CliError> {
        let folder = args.reference.as_deref().unwrap_or_else(|| folder_of(&args.model.model));
        let path = folder.join(DOCUMENT);
        let document: Value = json::read(&path)?;
        let mut by_name = HashMap::new();
        let stored = folder.join("reference_logits.safetensors");
        safetensors::read(&stored, &mut by_name)?;
        let tensors = Tensors { path: stored.into(), by_name };
        let sets = sets(&document, &tensors, args.set.is_some());
        let prompts_of = match &args.prompts {
            Some(folder) => folder.join(DOCUMENT),
            None if sets.is_empty() || document.get("prompts").is_some() => path.clone(),
            None => neighbour(folder, &sets, &tensors)?.ok_or_else(|| CliError::NoPrompts { path: path.clone() })?,
        };
        let prompts = if prompts_of == path {
            prompts(&path, &document)
        } else {
            prompts(&prompts_of, &json::read(&prompts_of)?)
        };
        Ok(Reference { path, tensors, sets, prompts: prompts?, prompts_of })
    }

    /// Returns whether the prompts are those of another document.
    pub(super) fn is_of_two_documents(&self) -> bool {
        self.prompts_of != self.path
    }

    /// Returns the number of tokens of the longest prompt.
    pub(super) fn longest(&self) -> usize {
        self.prompts.iter().map(|prompt| prompt.tokens.len()).max().unwrap_or(0)
    }

    /// Returns the set `name`, or else that of the format of most matrices of `model`.
    pub(super) fn of(&self, name: Option<&str>, model: &Model) -> Result<Stored<'_>, CliError> {
        let stored = |set| Ok(Stored { tensors: &self.tensors, set });
        if self.sets.is_empty() && name.is_none() {
            return stored(None);
        }
        let formats = model.formats();
        let wanted = name.or(formats.first().map(|(format, _)| format.name())).unwrap_or_default();
        match self.sets.iter().find(|set| set.eq_ignore_ascii_case(wanted)) {
            Some(set) => stored(Some(set.clone())),
            None if self.sets.is_empty() => Err(CliError::NoSets { path: self.path.clone(), wanted: wanted.into() }),
            None => {
                let sets: Vec<String> = self.sets.iter().map(|set| quoted(set)).collect();
                Err(CliError::NoSet { path: self.path.clone(), sets: sets.join(", "), wanted: wanted.into() })
            }
        }
    }
}

/// Returns the folder of a model: itself, or that of its file.
fn folder_of(model: &Path) -> &Path {
    match model.parent() {
        _ if model.is_dir() => model,
        // Of a name without folders.
        Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
        folder => folder.unwrap_or(model),
    }
}

/// Returns the names in `document` that tensors begin with. One that has prompts may have names
/// like theirs, and has no sets unless one `is_wanted`.
fn sets(document: &Value, tensors: &Tensors, is_wanted: bool) -> Vec<String> {
    if document.get("prompts").is_some() && !is_wanted {
        return Vec::new();
    }
    let names = document.as_object().map(|object| object.keys()).into_iter().flatten();
    let begins = |set: &str, tensor: &str| tensor.strip_prefix(set).is_some_and(|rest| rest.starts_with('.'));
    names.filter(|set| tensors.by_name.keys().any(|tensor| begins(set, tensor))).cloned().collect()
}

/// Returns the one document in the folders beside `folder` that has the prompts of all tensors, if
/// there is one and tensors are of prompts.
fn neighbour(folder: &Path, sets: &[String], tensors: &Tensors) -> Result<Option<PathBuf>, Error> {
    let of_tensor = |tensor: &str| -> Option<String> {
        let rest = sets.iter().find_map(|set| tensor.strip_prefix(set.as_str())?.strip_prefix('.'))?;
        rest.rsplit_once('.').map(|(prompt, _)| prompt.to_owned())
    };
    let wanted: Vec<String> = tensors.by_name.keys().filter_map(|tensor| of_tensor(tensor)).collect();
    if wanted.is_empty() {
        return Ok(None);
    }
    let mut found = documents_beside(folder)?.into_iter().filter(|path| {
        // A file that is not a document with prompts is not a reference: other folders may be
        // there.
        let Ok(there) = json::read(path).and_then(|document| prompts(path, &document)) else { return false };
        wanted.iter().all(|name| there.iter().any(|prompt| prompt.name == *name))
    });
    let first = found.next();
    Ok(first.filter(|_| found.next().is_none()))
}

/// Returns the paths that documents in the folders beside `folder` would have.
fn documents_beside(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let unreadable = |path: &Path, source| Error::Unreadable { path: path.to_owned(), source };
    let folder = folder.canonicalize().map_err(|error| unreadable(folder, error))?;
    let Some(parent) = folder.parent() else { return Ok(Vec::new()) };
    let entries = parent.read_dir().and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let entries = entries.map_err(|error| unreadable(parent, error))?.into_iter().map(|entry| entry.path());
    Ok(entries.filter(|other| *other != folder).map(|other| other.join(DOCUMENT)).collect())
}

fn prompts(path: &Path, document: &Value) -> Result<Vec<Prompt>, Error> {
    let missing = || Error::malformed(path, "`prompts`", Problem::Missing);
    let prompts = document["prompts"].as_array().filter(|prompts| !prompts.is_empty()).ok_or_else(missing)?;
    prompts.iter().map(|entry| prompt(path, entry)).collect()
}

/// Reads the token ids and rows of a prompt, and checks that every row is that of a token.
fn prompt(path: &Path, prompt: &Value) -> Result<Prompt, Error> {
    let error = |field: &str, problem| Error::malformed(path, format!("`prompts.{field}`"), problem);
    let missing = |field: &str| error(field, Problem::Missing);
    let name = prompt["name"].as_str().ok_or_else(|| missing("name"))?.to_owned();
    let tokens = numbers(&prompt["ids"]).ok_or_else(|| missing("ids"))?;
    let rows = numbers(&prompt["logit_rows"]).ok_or_else(|| missing("logit_rows"))?;
    match rows.iter().find(|row| **row as usize >= tokens.len()) {
        None => Ok(Prompt { name, tokens, rows }),
        Some(row) => {
            let (value, expected) = (row.to_string(), "rows are those of `ids`, counted from 0");
            Err(error("logit_rows", Problem::OutOfRange { value, expected }))
        }
    }
}

fn numbers(value: &Value) -> Option<Vec<u32>> {
    value.as_array()?.iter().map(|number| number.as_u64().and_then(|number| u32::try_from(number).ok())).collect()
}

impl Stored<'_> {
    fn name(&self, prompt: &Prompt, what: &str) -> String {
        let set = self.set.as_ref().map_or(Cow::Borrowed(""), |set| Cow::Owned(format!("{set}.")));
        format!("{set}{}.{what}", prompt.name)
    }

    /// Returns the tokens whose logits are stored, and their logits: of the listed tokens, or of
    /// the last one.
    pub(super) fn logits(&self, prompt: &Prompt, vocabulary: usize) -> Result<(Vec<u32>, Option<Vec<f32>>), Error> {
        let (all, last) = (self.name(prompt, "logits"), self.name(prompt, "last_logits"));
        match prompt.tokens.len() {
            n @ 1.. if !self.tensors.has(&all) && self.tensors.has(&last) => {
                Ok((vec![n as u32 - 1], Some(self.tensors.vector(&last, vocabulary)?)))
            }
            _ => Ok((prompt.rows.clone(), self.matrix(&all, prompt.rows.len(), vocabulary)?)),
        }
    }

    /// Returns the residual streams after the embedding and each of `n` layers, up to the last one
    /// that is stored; None for those that are absent.
    pub(super) fn layers(&self, prompt: &Prompt, n: usize, hidden: usize) -> Result<Vec<Option<Vec<f32>>>, Error> {
        let prefix = self.name(prompt, "hidden");
        let n_streams = self.streams(prompt).map(|stream| stream.saturating_add(1)).max().unwrap_or(0);
        if n_streams > n {
            let (expected, found) = (format!("of {n} at most"), format!("one of {n_streams}"));
            let field = format!("tensors `{prefix}…`");
            return Err(Error::malformed(&*self.tensors.path, field, Problem::Unexpected { expected, found }));
        }
        let layer = |layer: usize| self.matrix(&format!("{prefix}{layer}"), prompt.tokens.len(), hidden);
        (0..n_streams).map(layer).collect()
    }

    /// Returns the numbers of the residual streams that are stored of a prompt.
    fn streams(&self, prompt: &Prompt) -> impl Iterator<Item = usize> {
        let prefix = self.name(prompt, "hidden");
        self.tensors.by_name.keys().filter_map(move |tensor| {
            let number = tensor.strip_prefix(&prefix)?;
            number.parse().ok().filter(|stream: &usize| stream.to_string() == number)
        })
    }

    /// Returns whether something is stored that can be compared with a prompt.
    pub(super) fn has(&self, prompt: &Prompt) -> bool {
        let has_logits = self.tensors.has(&self.name(prompt, "logits")) && !prompt.rows.is_empty();
        let has_last = self.tensors.has(&self.name(prompt, "last_logits"));
        !prompt.tokens.is_empty() && (has_logits || has_last || self.streams(prompt).next().is_some())
    }

    /// Returns the tensors of the set that are those of no prompt, in the order of their names.
    pub(super) fn unused(&self, prompts: &[Prompt]) -> Vec<String> {
        let set = self.set.as_ref().map_or(String::new(), |set| format!("{set}."));
        let mut used: HashSet<String> = HashSet::new();
        for prompt in prompts {
            used.extend(["logits", "last_logits"].map(|what| self.name(prompt, what)));
            used.extend(self.streams(prompt).map(|stream| self.name(prompt, &format!("hidden{stream}"))));
        }
        let of_set = self.tensors.by_name.keys().filter(|tensor| tensor.starts_with(&set));
        let mut unused: Vec<String> = of_set.filter(|tensor| !used.contains(*tensor)).cloned().collect();
        unused.sort_unstable();
        unused
    }

    /// Returns the file of the tensors.
    pub(super) fn path(&self) -> &Path {
        &self.tensors.path
    }

    /// Returns a stored matrix, if there is one of that name and it has rows.
    fn matrix(&self, name: &str, rows: usize, columns: usize) -> Result<Option<Vec<f32>>, Error> {
        if rows == 0 || !self.tensors.has(name) {
            return Ok(None);
        }
        let matrix = self.tensors.matrix(name, rows, columns)?;
        let mut values = vec![0.0; rows * columns];
        for (row, out) in values.chunks_mut(columns).enumerate() {
            matrix.row(row, out);
        }
        Ok(Some(values))
    }
}
