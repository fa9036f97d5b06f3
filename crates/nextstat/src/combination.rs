//! Combinations of workspaces and parameters that are split, each with an account of what was
//! correlated and why.
//!
//! ```
//! use nextstat::combination::{CombinationInput, CombinationMap, CombineRequest, combine};
//! use nextstat::DocumentSource;
//!
//! let input = |name: &str| CombinationInput::load(&DocumentSource::Path(format!("../../examples/{name}").into()));
//! let map = "measurement: both\npoi: {name: mu, parameters: {simple: mu, shapes: mu}}\n";
//! let map = CombinationMap::from_yaml(map.as_bytes())?;
//! let request = CombineRequest { map: Some(map), ..CombineRequest::default() };
//! let combination = combine(vec![input("simple.json")?, input("shapes.json")?], &request)?;
//! assert_eq!(combination.report.measurements[0].name, "both");
//! # Ok::<(), nextstat::Error>(())
//! ```

use crate::Error;
use crate::document::{VERSION, headed, to_document};
use crate::provenance::file_name;
use ns_translate::digest::{DigestAlgorithm, digest};
use ns_translate::workspace::{
    self, ChannelJoin, CombinationReport, CorrelationMap, DecorrelateRequest, JoinDecision, LabelledWorkspace,
    MapError, MapSyntax, WorkspaceDocument, WorkspaceJoin, WorkspaceSide, combine_by_map, report_by_name, stem,
};
use ns_translate::{DocumentError, DocumentSource, read_bytes, read_workspace_text};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// A workspace to combine or to split.
#[derive(Debug, Clone, PartialEq)]
pub struct CombinationInput {
    label: Option<String>,
    /// The file, `-` for standard input; `None` if it is not from one.
    file: Option<String>,
    /// In backticks, for messages.
    name: Option<String>,
    sha256: String,
    document: WorkspaceDocument,
}

impl CombinationInput {
    /// Reads a workspace.
    ///
    /// # Errors
    /// A document that cannot be read, or is not a workspace.
    pub fn load(source: &DocumentSource) -> Result<Self, DocumentError> {
        let input =
            Self::from_json(&read_workspace_text(source)?.bytes).map_err(|error| error.in_file(&source.name()))?;
        Ok(Self { file: Some(file_name(source)), name: Some(source.name()), ..input })
    }

    /// Reads the text of a workspace.
    ///
    /// # Errors
    /// A document that is not a workspace.
    pub fn from_json(text: &[u8]) -> Result<Self, DocumentError> {
        let document = WorkspaceDocument::from_bytes(text)?;
        let sha256 = digest(text, DigestAlgorithm::Sha256)?;
        Ok(Self { label: None, file: None, name: None, sha256, document })
    }

    /// Returns the same workspace with what maps, suffixes and messages call it; without a label it
    /// has the name of its file without extension.
    #[must_use]
    pub fn labelled_as(self, label: String) -> Self {
        Self { label: Some(label), ..self }
    }

    /// Returns the label, or that of the workspace `i` of several.
    fn label_at(&self, i: usize) -> String {
        let from_file = self.file.as_deref().filter(|file| *file != "-").map(stem).map(str::to_owned);
        self.label.clone().or(from_file).unwrap_or_else(|| format!("workspace_{}", i + 1))
    }

    fn labelled(self, i: usize) -> LabelledWorkspace {
        LabelledWorkspace { label: self.label_at(i), file: self.file, document: self.document }
    }
}

/// A correlation map with the file that it is from.
#[derive(Debug, Clone, PartialEq)]
pub struct CombinationMap {
    map: CorrelationMap,
    file: Option<String>,
    /// In backticks, for messages.
    name: Option<String>,
    /// Where the files that the map names are; the working directory for a map that is not from a
    /// file.
    folder: PathBuf,
}

impl CombinationMap {
    /// Reads a map: JSON from a file whose name ends in `.json`, and YAML from others.
    ///
    /// # Errors
    /// A document that cannot be read, or is not a map.
    pub fn load(source: &DocumentSource) -> Result<Self, DocumentError> {
        let map = CorrelationMap::from_bytes(&read_bytes(source)?, MapSyntax::of(source));
        let map = map.map_err(|error| DocumentError::from(error).in_file(&source.name()))?;
        let folder = match source {
            DocumentSource::Path(path) => path.parent().map(Path::to_owned).unwrap_or_default(),
            DocumentSource::Stdin => PathBuf::new(),
        };
        Ok(Self { map, file: Some(file_name(source)), name: Some(source.name()), folder })
    }

    /// Returns the files of the workspaces that the map names.
    ///
    /// # Errors
    /// A map without workspaces, or with one without a file.
    pub fn files(&self) -> Result<Vec<PathBuf>, Error> {
        let files = self.map.files().map_err(|error| self.error(error))?;
        Ok(files.into_iter().map(|file| self.folder.join(file)).collect())
    }

    /// Reads the workspaces that the map names.
    fn inputs(&self) -> Result<Vec<CombinationInput>, Error> {
        let files = self.map.files().map_err(|error| self.error(error))?;
        let input = |file: String| {
            let input = CombinationInput::load(&DocumentSource::Path(self.folder.join(&file)))?;
            // The map finds the workspace by this name.
            Ok(CombinationInput { file: Some(file), ..input })
        };
        files.into_iter().map(input).collect()
    }

    /// Reads the text of a map in YAML.
    ///
    /// # Errors
    /// A text that is not a map.
    pub fn from_yaml(text: &[u8]) -> Result<Self, DocumentError> {
        Self::from_text(text, MapSyntax::Yaml)
    }

    /// Reads the text of a map in JSON.
    ///
    /// # Errors
    /// A text that is not a map.
    pub fn from_json(text: &[u8]) -> Result<Self, DocumentError> {
        Self::from_text(text, MapSyntax::Json)
    }

    fn from_text(text: &[u8], syntax: MapSyntax) -> Result<Self, DocumentError> {
        Ok(Self { map: CorrelationMap::from_bytes(text, syntax)?, file: None, name: None, folder: PathBuf::new() })
    }

    /// Returns an error that the map has a part in, with the file of the map if it has a place
    /// there.
    fn error(&self, error: MapError) -> Error {
        match &self.name {
            Some(name) if error.place.is_some() => DocumentError::from(error).in_file(name).into(),
            _ => DocumentError::from(error).into(),
        }
    }

    fn provenance(&self) -> Value {
        let mut provenance = json!({"sha256": self.map.sha256()});
        if let Some(file) = &self.file {
            provenance["file"] = json!(file);
        }
        provenance
    }
}

/// How to combine workspaces.
#[derive(Debug, Clone, Default)]
pub struct CombineRequest {
    /// The map, which decides everything; `None` for names that decide and the joins below.
    pub map: Option<CombinationMap>,
    /// What happens to channels, observations and measurements of one name.
    pub join: WorkspaceJoin,
    /// What happens to a channel that two workspaces have.
    pub channels: ChannelJoin,
}

/// A workspace made of others, and what was done.
#[derive(Debug, Clone, PartialEq)]
pub struct Combination {
    /// The workspace.
    pub workspace: WorkspaceDocument,
    /// What was correlated and split.
    pub report: CombinationReport,
    provenance: Value,
}

impl Combination {
    /// Returns the report as a document.
    #[must_use]
    pub fn document(&self) -> Value {
        let mut document = headed("combination", to_document(&self.report));
        document["provenance"] = self.provenance.clone();
        document
    }
}

/// Combines workspaces one after the other, or all at once as a map says; without workspaces those
/// that the map names, whose files are relative to its own.
///
/// # Errors
/// Workspaces that do not fit each other, files that cannot be read, and those of
/// [`combine_by_map`].
pub fn combine(inputs: Vec<CombinationInput>, request: &CombineRequest) -> Result<Combination, Error> {
    match &request.map {
        Some(map) if inputs.is_empty() => by_map(map.inputs()?, map),
        Some(map) => by_map(inputs, map),
        None if inputs.is_empty() => Err(Error::NothingToCombine),
        None => by_name(&inputs, request),
    }
}

fn by_map(inputs: Vec<CombinationInput>, map: &CombinationMap) -> Result<Combination, Error> {
    let sources: Vec<Value> = inputs.iter().map(source).collect();
    let analyses = inputs.into_iter().enumerate().map(|(i, input)| input.labelled(i)).collect();
    let made = combine_by_map(analyses, &map.map).map_err(|error| map.error(error))?;
    let labels = made.report.analyses.iter().map(|analysis| analysis.label.clone()).collect();
    let mut provenance = provenance(sources, labels);
    provenance["map"] = map.provenance();
    Ok(Combination { workspace: made.document, report: made.report, provenance })
}

fn by_name(inputs: &[CombinationInput], request: &CombineRequest) -> Result<Combination, Error> {
    let labels = unique_labels(inputs);
    let provenance = provenance(inputs.iter().map(source).collect(), labels.clone());
    let mut joined: Option<(WorkspaceDocument, String)> = None;
    let mut warnings = Vec::new();
    for (input, label) in inputs.iter().zip(&labels) {
        let name = input.name.clone().unwrap_or_else(|| format!("`{label}`"));
        let document = input.document.clone();
        joined = Some(match joined {
            None => (document, name),
            Some((left, left_name)) => {
                let names = [left_name, name];
                let combined = workspace::combine(left, document, request.join, request.channels)
                    .map_err(|error| Error::Combine { names: names.clone(), error })?;
                warnings.extend(combined.kept.iter().map(|kept| decision(kept, &names)));
                (combined.document, names.join(" and "))
            }
        });
    }
    let (workspace, _) = joined.ok_or(Error::NothingToCombine)?;
    let analyses: Vec<(&str, &WorkspaceDocument)> =
        labels.iter().map(String::as_str).zip(inputs.iter().map(|input| &input.document)).collect();
    let mut report = report_by_name(&analyses, &workspace);
    report.warnings.splice(0..0, warnings);
    Ok(Combination { workspace, report, provenance })
}

/// Splits parameters of a workspace.
///
/// # Errors
/// Those of [`ns_translate::workspace::decorrelate`].
pub fn decorrelate(input: CombinationInput, request: &DecorrelateRequest) -> Result<Combination, Error> {
    let (sources, name) = (vec![source(&input)], input.name.clone());
    let made = workspace::decorrelate(input.labelled(0), request).map_err(|error| {
        let error = DocumentError::from(error);
        match &name {
            Some(name) => error.in_file(name),
            None => error,
        }
    })?;
    let labels = made.report.analyses.iter().map(|analysis| analysis.label.clone()).collect();
    Ok(Combination { workspace: made.document, report: made.report, provenance: provenance(sources, labels) })
}

/// Returns a label for each workspace: the path of its file where the name of the file is not
/// enough, with its number where the path is not.
fn unique_labels(inputs: &[CombinationInput]) -> Vec<String> {
    let short: Vec<String> = inputs.iter().enumerate().map(|(i, input)| input.label_at(i)).collect();
    let is_unique = |labels: &[String]| labels.iter().collect::<HashSet<_>>().len() == labels.len();
    if is_unique(&short) {
        return short;
    }
    let long: Vec<String> =
        inputs.iter().zip(&short).map(|(input, short)| input.file.clone().unwrap_or_else(|| short.clone())).collect();
    if is_unique(&long) {
        return long;
    }
    long.into_iter().enumerate().map(|(i, label)| format!("{label} ({})", i + 1)).collect()
}

fn source(input: &CombinationInput) -> Value {
    let mut source = json!({"digest": input.sha256});
    if let Some(file) = &input.file {
        source["file"] = json!(file);
    }
    source
}

fn provenance(mut sources: Vec<Value>, labels: Vec<String>) -> Value {
    for (source, label) in sources.iter_mut().zip(labels) {
        source["label"] = json!(label);
    }
    json!({"nextstat_version": VERSION, "workspaces": sources})
}

/// Formats which of two different parts was kept, of the workspaces called `names`.
fn decision(JoinDecision { part, name, side, difference }: &JoinDecision, names: &[String; 2]) -> String {
    let from = match side {
        WorkspaceSide::Left => &names[0],
        WorkspaceSide::Right => &names[1],
    };
    format!("keeping the {part} `{name}` of {from}; that of the other workspace differs: {difference}")
}
