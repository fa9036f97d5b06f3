//! Combinations of workspaces, or of data cards of Combine, and parameters that are split, each
//! with an account of what was correlated and why.
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
use crate::error::{Setting, SettingsError};
use crate::provenance::{CardProvenance, file_name};
use ns_translate::digest::{DigestAlgorithm, digest, sha256_of_bytes};
use ns_translate::workspace::{
    self, ChannelJoin, CombinationReport, CorrelationMap, DecorrelateRequest, JoinDecision, LabelledWorkspace,
    MapError, MapSyntax, WorkspaceDocument, WorkspaceJoin, WorkspaceSide, combine_by_map, report_by_name, stem,
};
use ns_translate::{
    CardError, CardOptionError, CardOptions, DocumentError, DocumentKind, DocumentSource, LabelledCard, ReadRequest,
    WorkspaceText, join_cards, read_bytes, workspace_text,
};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::path::PathBuf;

/// A workspace to combine or to split, or a data card to join with others.
#[derive(Debug, Clone, PartialEq)]
pub struct CombinationInput {
    label: Option<String>,
    /// The file, `-` for standard input; `None` if it is not from one.
    file: Option<String>,
    /// In backticks, for messages.
    name: Option<String>,
    content: InputContent,
}

/// What an input is.
#[derive(Debug, Clone, PartialEq)]
enum InputContent {
    Workspace(InputWorkspace),
    /// A data card, which is not read before it is clear whether it is joined with others: it may
    /// have no signal.
    Card {
        source: DocumentSource,
        bytes: Vec<u8>,
    },
}

/// A workspace with the digest of its text.
#[derive(Debug, Clone, PartialEq)]
struct InputWorkspace {
    document: WorkspaceDocument,
    sha256: String,
    warnings: Vec<String>,
}

impl CombinationInput {
    /// Reads a workspace, or the text of a data card.
    ///
    /// # Errors
    /// A document that cannot be read, or is not a workspace.
    pub fn load(source: &DocumentSource) -> Result<Self, DocumentError> {
        let bytes = read_bytes(source)?;
        let content = match DocumentKind::recognize(&bytes) {
            Some(DocumentKind::Card) => InputContent::Card { source: source.clone(), bytes },
            _ => InputContent::Workspace(InputWorkspace::read(bytes, source, &CardOptions::default())?),
        };
        Ok(Self { label: None, file: Some(file_name(source)), name: Some(source.name()), content })
    }

    /// Reads the text of a workspace.
    ///
    /// # Errors
    /// A document that is not a workspace.
    pub fn from_json(text: &[u8]) -> Result<Self, DocumentError> {
        let content = InputContent::Workspace(InputWorkspace::from_json(text)?);
        Ok(Self { label: None, file: None, name: None, content })
    }

    /// Returns the same workspace with what maps, suffixes and messages call it; without a label it
    /// has the name of its file without extension. The channels of a card that is joined have its
    /// label in their names: see [`LabelledCard::label`].
    #[must_use]
    pub fn labelled_as(self, label: String) -> Self {
        Self { label: Some(label), ..self }
    }

    fn is_card(&self) -> bool {
        matches!(self.content, InputContent::Card { .. })
    }

    /// Returns the same input as a workspace; a card is read as `card` says.
    fn read(self, card: &CardOptions) -> Result<ReadInput, DocumentError> {
        let Self { label, file, name, content } = self;
        let workspace = match content {
            InputContent::Workspace(workspace) => workspace,
            InputContent::Card { source, bytes } => InputWorkspace::read(bytes, &source, card)?,
        };
        Ok(ReadInput { label, file, name, workspace })
    }

    /// Returns the same input as a card that is joined, the one with index `i`.
    ///
    /// # Errors
    /// A document that is not a card.
    fn card(self, i: usize) -> Result<LabelledCard, Error> {
        match self.content {
            InputContent::Card { source, bytes } => Ok(LabelledCard { label: self.label, source, bytes }),
            InputContent::Workspace(_) => {
                let name = self.name.or_else(|| self.label.map(|label| format!("`{label}`")));
                Err(Error::NotACard { name: name.unwrap_or_else(|| format!("workspace {}", i + 1)) })
            }
        }
    }

    fn provenance(&self) -> Value {
        let digest = match &self.content {
            InputContent::Workspace(workspace) => workspace.sha256.clone(),
            InputContent::Card { bytes, .. } => sha256_of_bytes(bytes),
        };
        source(&digest, self.file.as_deref())
    }
}

/// An input that was read.
struct ReadInput {
    label: Option<String>,
    file: Option<String>,
    /// In backticks, for messages.
    name: Option<String>,
    workspace: InputWorkspace,
}

impl ReadInput {
    /// Returns the label, or that of the workspace `i` of several.
    fn label_at(&self, i: usize) -> String {
        let from_file = self.file.as_deref().filter(|file| *file != "-").map(stem).map(str::to_owned);
        self.label.clone().or(from_file).unwrap_or_else(|| format!("workspace_{}", i + 1))
    }

    fn labelled(self, i: usize) -> LabelledWorkspace {
        LabelledWorkspace { label: self.label_at(i), file: self.file, document: self.workspace.document }
    }

    fn provenance(&self) -> Value {
        source(&self.workspace.sha256, self.file.as_deref())
    }
}

/// Describes an input in the provenance.
fn source(digest: &str, file: Option<&str>) -> Value {
    let mut source = json!({"digest": digest});
    if let Some(file) = file {
        source["file"] = json!(file);
    }
    source
}

impl InputWorkspace {
    fn read(bytes: Vec<u8>, source: &DocumentSource, card: &CardOptions) -> Result<Self, DocumentError> {
        let request = ReadRequest { card: Some(card), ..ReadRequest::new(source) };
        let WorkspaceText { bytes, warnings } = workspace_text(bytes, &request)?;
        let workspace = Self::from_json(&bytes).map_err(|error| error.in_file(&source.name()))?;
        Ok(Self { warnings, ..workspace })
    }

    fn from_json(text: &[u8]) -> Result<Self, DocumentError> {
        let document = WorkspaceDocument::from_bytes(text)?;
        let sha256 = digest(text, DigestAlgorithm::Sha256)?;
        Ok(Self { document, sha256, warnings: Vec::new() })
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
        Ok(Self { map, file: Some(file_name(source)), name: Some(source.name()), folder: source.folder() })
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
    /// How data cards are read.
    pub card: CardOptions,
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
/// that the map names, whose files are relative to its own. Without a map, data cards are joined as
/// `combineCards.py` joins them.
///
/// # Errors
/// Workspaces that do not fit each other, files that cannot be read, and those of
/// [`combine_by_map`]; cards beside other workspaces without a map, and settings of joins that
/// cards do not have.
pub fn combine(inputs: Vec<CombinationInput>, request: &CombineRequest) -> Result<Combination, Error> {
    let inputs = match &request.map {
        Some(map) if inputs.is_empty() => map.inputs()?,
        _ => inputs,
    };
    let has_card = inputs.iter().any(CombinationInput::is_card);
    if request.map.is_none() && has_card {
        return by_cards(inputs, request);
    }
    require_card(&request.card, has_card)?;
    let inputs: Vec<ReadInput> = inputs.into_iter().map(|input| input.read(&request.card)).collect::<Result<_, _>>()?;
    match &request.map {
        Some(map) => by_map(inputs, map, &request.card),
        None if inputs.is_empty() => Err(Error::NothingToCombine),
        None => by_name(&inputs, request),
    }
}

/// Refuses options for cards where there is none.
fn require_card(card: &CardOptions, has_card: bool) -> Result<(), DocumentError> {
    if has_card || card.is_default() {
        return Ok(());
    }
    let found = "a workspace of another kind".to_owned();
    Err(CardError::from(CardOptionError::NotACard { found }).into())
}

/// Joins data cards.
fn by_cards(inputs: Vec<CombinationInput>, request: &CombineRequest) -> Result<Combination, Error> {
    if request.join != WorkspaceJoin::Distinct {
        return Err(SettingsError::JoinOfCards { setting: Setting::Join }.into());
    }
    if request.channels == ChannelJoin::Merged {
        return Err(SettingsError::JoinOfCards { setting: Setting::MergeChannels }.into());
    }
    let sources = inputs.iter().map(CombinationInput::provenance).collect();
    let files: Vec<Option<String>> = inputs.iter().map(|input| input.file.clone()).collect();
    let cards = inputs.into_iter().enumerate().map(|(i, input)| input.card(i)).collect::<Result<Vec<_>, _>>()?;
    let shown = |(i, card): (usize, &LabelledCard)| match (card.label_at(i), &files[i]) {
        (label, Some(file)) if label == LabelledCard::NO_LABEL => stem(file).to_owned(),
        (label, _) => label,
    };
    let labels = unique(cards.iter().enumerate().map(shown).collect(), &files);
    let joined = join_cards(&cards, &request.card)?;
    let workspace = WorkspaceDocument::from_bytes(&joined.text.bytes).map_err(DocumentError::from)?;
    let parts: Vec<WorkspaceDocument> = joined.channels.iter().map(|channels| workspace.part(channels)).collect();
    let analyses: Vec<(&str, &WorkspaceDocument)> = labels.iter().map(String::as_str).zip(&parts).collect();
    let mut report = report_by_name(&analyses, &workspace);
    report.warnings.splice(0..0, joined.text.warnings);
    let provenance = provenance(sources, labels, &request.card);
    Ok(Combination { workspace, report, provenance })
}

fn by_map(inputs: Vec<ReadInput>, map: &CombinationMap, card: &CardOptions) -> Result<Combination, Error> {
    let sources: Vec<Value> = inputs.iter().map(ReadInput::provenance).collect();
    let warnings = warnings(&inputs);
    let analyses = inputs.into_iter().enumerate().map(|(i, input)| input.labelled(i)).collect();
    let mut made = combine_by_map(analyses, &map.map).map_err(|error| map.error(error))?;
    made.report.warnings.splice(0..0, warnings);
    let labels = made.report.analyses.iter().map(|analysis| analysis.label.clone()).collect();
    let mut provenance = provenance(sources, labels, card);
    provenance["map"] = map.provenance();
    Ok(Combination { workspace: made.document, report: made.report, provenance })
}

fn by_name(inputs: &[ReadInput], request: &CombineRequest) -> Result<Combination, Error> {
    let short = inputs.iter().enumerate().map(|(i, input)| input.label_at(i)).collect();
    let files: Vec<Option<String>> = inputs.iter().map(|input| input.file.clone()).collect();
    let labels = unique(short, &files);
    let sources = inputs.iter().map(ReadInput::provenance).collect();
    let provenance = provenance(sources, labels.clone(), &request.card);
    let mut joined: Option<(WorkspaceDocument, String)> = None;
    let mut warnings = warnings(inputs);
    for (input, label) in inputs.iter().zip(&labels) {
        let name = input.name.clone().unwrap_or_else(|| format!("`{label}`"));
        let document = input.workspace.document.clone();
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
    let documents = inputs.iter().map(|input| &input.workspace.document);
    let analyses: Vec<(&str, &WorkspaceDocument)> = labels.iter().map(String::as_str).zip(documents).collect();
    let mut report = report_by_name(&analyses, &workspace);
    report.warnings.splice(0..0, warnings);
    Ok(Combination { workspace, report, provenance })
}

/// Splits parameters of a workspace, or of a data card that is read as `card` says.
///
/// # Errors
/// Those of [`ns_translate::workspace::decorrelate`], and options for cards with another document.
pub fn decorrelate(
    input: CombinationInput,
    request: &DecorrelateRequest,
    card: &CardOptions,
) -> Result<Combination, Error> {
    require_card(card, input.is_card())?;
    let input = input.read(card)?;
    let (sources, name, warnings) = (vec![input.provenance()], input.name.clone(), input.workspace.warnings.clone());
    let mut made = workspace::decorrelate(input.labelled(0), request).map_err(|error| {
        let error = DocumentError::from(error);
        match &name {
            Some(name) => error.in_file(name),
            None => error,
        }
    })?;
    made.report.warnings.splice(0..0, warnings);
    let labels = made.report.analyses.iter().map(|analysis| analysis.label.clone()).collect();
    let provenance = provenance(sources, labels, card);
    Ok(Combination { workspace: made.document, report: made.report, provenance })
}

/// Returns what the documents of `inputs` have otherwise than their formats say.
fn warnings(inputs: &[ReadInput]) -> Vec<String> {
    inputs.iter().flat_map(|input| &input.workspace.warnings).cloned().collect()
}

/// Returns a label for each workspace: `short` where those differ, else the path of its file, with
/// its number where that is not enough.
fn unique(short: Vec<String>, files: &[Option<String>]) -> Vec<String> {
    let is_unique = |labels: &[String]| labels.iter().collect::<HashSet<_>>().len() == labels.len();
    if is_unique(&short) {
        return short;
    }
    let long: Vec<String> = files.iter().zip(short).map(|(file, short)| file.clone().unwrap_or(short)).collect();
    if is_unique(&long) {
        return long;
    }
    long.into_iter().enumerate().map(|(i, label)| format!("{label} ({})", i + 1)).collect()
}

fn provenance(mut sources: Vec<Value>, labels: Vec<String>, card: &CardOptions) -> Value {
    for (source, label) in sources.iter_mut().zip(labels) {
        source["label"] = json!(label);
    }
    let mut provenance = json!({"nextstat_version": VERSION, "workspaces": sources});
    if let Some(card) = CardProvenance::of(card) {
        provenance["card"] = to_document(&card);
    }
    provenance
}

/// Formats which of two different parts was kept, of the workspaces called `names`.
fn decision(JoinDecision { part, name, side, difference }: &JoinDecision, names: &[String; 2]) -> String {
    let from = match side {
        WorkspaceSide::Left => &names[0],
        WorkspaceSide::Right => &names[1],
    };
    format!("keeping the {part} `{name}` of {from}; that of the other workspace differs: {difference}")
}
