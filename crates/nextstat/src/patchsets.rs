//! Patch sets: their documents, and the same question asked of every patch.

mod merge;

pub use merge::{GridMergeError, GridShard, NamedGrid, merge};

use crate::document::{VERSION, headed, to_document};
use crate::error::{NeedsPoi, Procedure, SettingsError};
use crate::pois::poi_named;
use crate::provenance::{WorkspaceProvenance, file_name};
use crate::{Analysis, Answer, CompiledModel, Document, Error, Face, Provenance, Settings};
use ns_core::CompileOptions;
use ns_core::compile::PoiChoice;
use ns_inference::parallel::{self, ExecutionContext};
use ns_translate::digest::{DigestAlgorithm, digest};
use ns_translate::patchset::{DigestCheck, PatchEntry, PatchSet, PatchSetError, PatchValue};
use ns_translate::pyhf::{from_value, read_value};
use ns_translate::toys::Shard;
use ns_translate::{DocumentError, DocumentSource, read_bytes, read_workspace_text};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Returns the metadata of the set, and the name and values of every patch.
#[must_use]
pub fn patchset(set: &PatchSet) -> Value {
    let mut document = metadata(set);
    let patch = |entry: &PatchEntry| json!({"name": entry.name, "values": values(entry)});
    document.insert("patches".to_owned(), set.patches().iter().map(patch).collect());
    document.insert("n_patches".to_owned(), json!(set.patches().len()));
    headed("patchset-inspect", Value::Object(document))
}

fn metadata(set: &PatchSet) -> Map<String, Value> {
    let metadata = set.metadata();
    let digests: Map<String, Value> =
        metadata.digests.iter().map(|(algorithm, digest)| (algorithm.to_string(), json!(digest))).collect();
    let references: Map<String, Value> =
        metadata.references.iter().map(|(kind, reference)| (kind.clone(), json!(reference))).collect();
    Map::from_iter([
        ("description".to_owned(), json!(metadata.description)),
        ("digests".to_owned(), Value::Object(digests)),
        ("labels".to_owned(), json!(metadata.labels)),
        ("references".to_owned(), Value::Object(references)),
    ])
}

fn values(entry: &PatchEntry) -> Value {
    entry.values.iter().map(value_of).collect()
}

/// Returns one value of a patch. Whole numbers stay whole: most values are masses in GeV.
#[must_use]
pub fn value_of(value: &PatchValue) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        PatchValue::Text(text) => json!(text),
        PatchValue::Number(number) if number.fract() == 0.0 && number.abs() < EXACT => json!(*number as i64),
        PatchValue::Number(number) => json!(number),
    }
}

/// Returns every digest of the set with that of the workspace.
#[must_use]
pub fn verification(checks: &[DigestCheck]) -> Value {
    let check = |check: &DigestCheck| {
        let (algorithm, matches) = (check.algorithm.as_str(), check.matches());
        json!({"algorithm": algorithm, "expected": check.expected, "found": check.found, "matches": matches})
    };
    let verified = checks.iter().all(DigestCheck::matches);
    let digests: Vec<Value> = checks.iter().map(check).collect();
    headed("patchset-verify", json!({"verified": verified, "digests": digests}))
}

/// A background-only workspace with a set of patches for it: a model for each signal.
#[derive(Debug, Clone)]
pub struct SignalGrid {
    set: Arc<PatchSet>,
    background: Value,
    /// SHA-256 digest of the background.
    sha256: String,
    files: GridFiles,
}

/// The files of a grid, as provenance names them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GridFiles {
    /// That of the background, `-` for standard input.
    pub workspace: Option<String>,
    /// That of the patch set.
    pub patchset: Option<String>,
}

impl SignalGrid {
    /// Reads a background and a patch set.
    ///
    /// # Errors
    /// Documents that cannot be read; a set that was made for another workspace.
    pub fn load(workspace: &DocumentSource, patchset: &DocumentSource) -> Result<Self, DocumentError> {
        let bytes = read_workspace_text(workspace)?.bytes;
        let background = read_value(&bytes).map_err(|error| DocumentError::from(error).in_file(&workspace.name()))?;
        let set = PatchSet::from_bytes(&read_bytes(patchset)?);
        let grid = set.and_then(|set| Self::of(Arc::new(set), &bytes, background));
        let grid = grid.map_err(|error| DocumentError::from(error).in_file(&patchset.name()))?;
        let files = GridFiles { workspace: Some(file_name(workspace)), patchset: Some(file_name(patchset)) };
        Ok(Self { files, ..grid })
    }

    /// Joins a patch set and the text of the background that it was made for.
    ///
    /// # Errors
    /// A background that is not JSON, or is another one.
    pub fn new(set: Arc<PatchSet>, workspace: &[u8], files: GridFiles) -> Result<Self, PatchSetError> {
        let background = read_value(workspace)?;
        Ok(Self { files, ..Self::of(set, workspace, background)? })
    }

    fn of(set: Arc<PatchSet>, text: &[u8], background: Value) -> Result<Self, PatchSetError> {
        let checks = set.require(text)?;
        // The digest of a large background takes longer than the fit of a patch.
        let known = checks.into_iter().find(|check| check.algorithm == DigestAlgorithm::Sha256);
        let sha256 = match known {
            Some(check) => check.found,
            None => digest(text, DigestAlgorithm::Sha256).unwrap_or_default(),
        };
        Ok(Self { set, background, sha256, files: GridFiles::default() })
    }

    /// Returns the patch set.
    #[must_use]
    pub fn set(&self) -> &PatchSet {
        &self.set
    }

    /// Compiles the model of one patch.
    ///
    /// # Errors
    /// A patch that does not fit; a workspace that is not a model.
    pub fn model(&self, entry: &PatchEntry, options: &CompileOptions) -> Result<CompiledModel, Error> {
        let workspace = self.set.workspace(&self.background, entry).map_err(DocumentError::from)?;
        Ok(CompiledModel::new(workspace, options)?)
    }

    /// Compiles the background alone, without a parameter of interest, and returns the name of the
    /// strength of its signals if there is one.
    ///
    /// # Errors
    /// A workspace that is not a model.
    pub(crate) fn background(&self, options: &CompileOptions) -> Result<(CompiledModel, Option<String>), Error> {
        let workspace = from_value(&self.background)?;
        let strength = poi_named(&workspace, options);
        Ok((CompiledModel::new(workspace, &CompileOptions { poi: PoiChoice::None, ..options.clone() })?, strength))
    }

    /// Returns the analysis of the model of one patch.
    ///
    /// # Errors
    /// As [`SignalGrid::model`], and settings that do not fit.
    pub(crate) fn analysis(&self, entry: &PatchEntry, request: &GridRequest<'_>) -> Result<Analysis, Error> {
        Analysis::new(&self.model(entry, request.options)?, request.settings)
    }

    /// Returns the analysis of the first patch that can be analysed.
    ///
    /// # Errors
    /// The error of the first patch if there is none; `procedure` needs a signal if there is no
    /// patch.
    pub(crate) fn first_analysis(&self, request: &GridRequest<'_>, procedure: Procedure) -> Result<Analysis, Error> {
        let mut first_error = None;
        for entry in self.set.patches() {
            match self.analysis(entry, request) {
                Ok(analysis) => return Ok(analysis),
                Err(error) => {
                    first_error.get_or_insert(error);
                }
            }
        }
        Err(first_error.unwrap_or(SettingsError::NoPoi(NeedsPoi::Procedure(procedure)).into()))
    }

    /// Asks the same question of every patch. The background is read once, and each signal is
    /// patched in, analysed and dropped.
    ///
    /// A patch whose question has no result has its error in the document, and does not stop the
    /// others.
    ///
    /// # Errors
    /// The error of the question, if it is the same for every patch.
    pub fn every_patch<T: Document>(
        &self,
        request: &GridRequest<'_>,
        execution: ExecutionContext<'_>,
        question: impl Fn(&Analysis) -> Result<Answer<T>, Error> + Sync,
    ) -> Result<GridAnswer, Error> {
        self.every_patch_of(GridShard::WHOLE, request, execution, question)
    }

    /// Asks the same question of every patch of a shard, as [`every_patch`](Self::every_patch). The
    /// errors of a shard are all in its document, because other patches may have none.
    ///
    /// # Errors
    /// The error of the question, if it is the same for every patch of the whole set.
    pub fn every_patch_of<T: Document>(
        &self,
        part: GridShard,
        request: &GridRequest<'_>,
        execution: ExecutionContext<'_>,
        question: impl Fn(&Analysis) -> Result<Answer<T>, Error> + Sync,
    ) -> Result<GridAnswer, Error> {
        let n_patches = self.set.patches().len();
        let entries = &self.set.patches()[part.range(n_patches)];
        let ask = |entry: &PatchEntry| {
            let answer = question(&self.analysis(entry, request)?)?;
            Ok((answer.result_document(), answer.analysis.provenance_of(self.workspace_provenance())))
        };
        let mut answers = parallel::map(entries.len(), execution, || (), |(), i| ask(&entries[i]));
        let is_whole = part.shard == Shard::WHOLE;
        if is_whole
            && (have_one_error(&answers, request.face) || are_of_the_request(&answers))
            && let Some(Some(Err(error))) = answers.pop()
        {
            return Err(error);
        }
        let mut grid = GridAnswer { n_patches, patches: Vec::new(), part, provenance: Value::Null };
        let mut first = None;
        for (entry, answer) in entries.iter().zip(answers) {
            let mut patch = self.head(entry);
            match answer {
                None => continue,
                Some(Err(error)) => {
                    patch.insert("error".to_owned(), json!(Error::full_message(&error, request.face)));
                }
                Some(Ok((document, provenance))) => {
                    first.get_or_insert(provenance);
                    patch.insert("result".to_owned(), document);
                }
            }
            grid.patches.push(Value::Object(patch));
        }
        grid.provenance = self.with_patchset(first.as_ref());
        Ok(grid)
    }

    /// Returns the name and the values by label of a patch.
    #[must_use]
    pub fn head(&self, entry: &PatchEntry) -> Map<String, Value> {
        let labels = self.set.metadata().labels.iter().zip(&entry.values);
        let values: Map<String, Value> = labels.map(|(label, value)| (label.clone(), value_of(value))).collect();
        Map::from_iter([("patch".to_owned(), json!(entry.name)), ("values".to_owned(), Value::Object(values))])
    }

    /// Returns how the results of the grid were computed, once for all patches: the background, the
    /// patch set, and the rest as in `analysis`, that of one patch, if there is one.
    #[must_use]
    pub fn provenance(&self, analysis: Option<&Analysis>) -> Value {
        self.with_patchset(analysis.map(|analysis| analysis.provenance_of(self.workspace_provenance())).as_ref())
    }

    pub(crate) fn with_patchset(&self, of_patch: Option<&Provenance>) -> Value {
        let mut document = match of_patch {
            Some(provenance) => to_document(provenance),
            None => json!({"nextstat_version": VERSION, "workspace": to_document(&self.workspace_provenance())}),
        };
        document["patchset"] = json!({"digest": self.set.digest(DigestAlgorithm::Sha256)});
        if let Some(file) = &self.files.patchset {
            document["patchset"]["file"] = json!(file);
        }
        document
    }

    pub(crate) fn workspace_provenance(&self) -> WorkspaceProvenance {
        let file = self.files.workspace.clone();
        WorkspaceProvenance {
            digest: self.sha256.clone(),
            file,
            files: Vec::new(),
            card: None,
            patches: Vec::new(),
            patchset: None,
        }
    }
}

/// Returns `true` if every answer is the same error, worded by `face`.
fn have_one_error<T>(answers: &[Option<Result<T, Error>>], face: Face) -> bool {
    let message = |answer: &Option<Result<T, Error>>| match answer {
        Some(Err(error)) => Some(error.full_message(face)),
        _ => None,
    };
    let Some(first) = answers.first().and_then(message) else { return false };
    answers.iter().all(|answer| message(answer).as_ref() == Some(&first))
}

/// Returns `true` if every answer is an error of the settings, such as a name that no patch has:
/// their hints may differ.
fn are_of_the_request<T>(answers: &[Option<Result<T, Error>>]) -> bool {
    let is_setting = |answer: &Option<Result<T, Error>>| {
        matches!(
            answer,
            Some(Err(Error::Settings(_) | Error::SampleGroup(_) | Error::Device(_) | Error::OnCpuOnly { .. }))
        )
    };
    !answers.is_empty() && answers.iter().all(is_setting)
}

/// What the models of all patches have in common.
#[derive(Debug, Clone, Copy)]
pub struct GridRequest<'a> {
    /// How to compile them.
    pub options: &'a CompileOptions,
    /// How to fit them.
    pub settings: &'a Settings,
    /// The interface that words the errors.
    pub face: Face,
}

/// The answers for the patches of a set.
#[derive(Debug, Clone, PartialEq)]
pub struct GridAnswer {
    /// Patches of the set.
    pub n_patches: usize,
    /// Those that were analysed, in the order of the set: `patch`, `values`, and `result`, a
    /// document without its head, or `error`.
    pub patches: Vec<Value>,
    /// The part of the set that was to be analysed.
    pub part: GridShard,
    provenance: Value,
}

impl GridAnswer {
    /// Returns `true` if every patch of the set was analysed.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.patches.len() == self.n_patches
    }

    /// Returns the number of patches that were to be analysed.
    #[must_use]
    pub fn n_wanted(&self) -> usize {
        self.part.range(self.n_patches).len()
    }

    /// Returns `true` if the run was cancelled.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.patches.len() < self.n_wanted()
    }

    /// Returns the number of patches with an error or with fits that did not converge.
    #[must_use]
    pub fn n_failed(&self) -> usize {
        let is_bad = |patch: &&Value| patch.get("error").is_some() || patch["result"]["converged"] == json!(false);
        self.patches.iter().filter(is_bad).count()
    }

    /// Returns what a reader should know before using the numbers.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        failed_patches(self.n_failed(), self.patches.len())
    }

    /// Returns the document.
    #[must_use]
    pub fn document(&self) -> Value {
        let mut fields = json!({
            "complete": self.is_complete(),
            "converged": self.n_failed() == 0,
            "measurement": self.provenance.get("measurement"),
            "n_patches": self.n_patches,
            "patches": self.patches,
            "provenance": self.provenance,
            "warnings": self.warning().into_iter().collect::<Vec<_>>(),
        });
        if let Some(shard) = self.part.entry(self.n_patches) {
            fields["shard"] = shard;
        }
        headed("every-patch", fields)
    }
}

/// Returns the warning about `n_failed` of `n_done` patches.
#[must_use]
pub fn failed_patches(n_failed: usize, n_done: usize) -> Option<String> {
    (n_failed > 0).then(|| format!("{n_failed} of {n_done} patches have errors or fits that did not converge"))
}
