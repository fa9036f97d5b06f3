//! Arguments that name a workspace, its model, and the number of threads.

use super::card::CardArgs;
use super::values::{InterpolationRule, interpolation_rule, source, threads};
use crate::error::CliError;
use crate::output::reporter;
use clap::{Args, ValueEnum};
use nextstat::CompiledModel;
use nextstat::patchsets::SignalGrid;
use ns_core::interpolate::Interpolation;
use ns_core::{CompileError, CompileOptions, PoiChoice};
use ns_translate::workspace::WorkspaceDocument;
use ns_translate::{
    CardOptions, DocumentError, DocumentSource, DocumentText, LoadRequest, LoadedWorkspace, WorkspaceText,
    load_document_with, read_workspace_text_with,
};
use std::io::{self, IsTerminal};
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Where a workspace is.
#[derive(Debug, Args)]
pub(crate) struct SourceArgs {
    /// Workspace: pyhf JSON, HS3, a combination in HistFactory XML, or a data card of Combine,
    /// plain or compressed as .gz or .zst; `-`, or no workspace, reads standard input
    #[arg(value_name = "WORKSPACE", value_parser = source())]
    workspace: Option<DocumentSource>,

    /// Same as WORKSPACE
    #[arg(long, value_name = "FILE", value_parser = source(), conflicts_with = "workspace", help_heading = "Model")]
    input: Option<DocumentSource>,

    #[command(flatten)]
    card: CardArgs,
}

impl SourceArgs {
    /// Returns the workspace, if it was named.
    pub(crate) fn named(&self) -> Option<&DocumentSource> {
        self.workspace.as_ref().or(self.input.as_ref())
    }

    /// Returns the source of the workspace.
    pub(crate) fn source(&self) -> Result<DocumentSource, CliError> {
        named_or_piped(self.named())
    }

    /// Returns how a data card is read.
    pub(crate) fn card_options(&self) -> CardOptions {
        self.card.options()
    }

    /// Reads the workspace for a verb that rewrites it, and returns it with its name in messages.
    pub(crate) fn rewritable(&self) -> Result<(WorkspaceDocument, String), CliError> {
        let source = self.source()?;
        Ok((rewritable(&source, &self.card.options())?, source.name()))
    }
}

/// Reads the workspace in `source` for a verb that rewrites it.
fn rewritable(source: &DocumentSource, card: &CardOptions) -> Result<WorkspaceDocument, CliError> {
    let WorkspaceText { bytes, warnings } = read_workspace_text_with(source, card)?;
    warnings.iter().for_each(|text| reporter::warning(text));
    WorkspaceDocument::from_bytes(&bytes)
        .map_err(|error| CliError::NotRewritable(DocumentError::from(error).in_file(&source.name())))
}

/// Returns the document that was named, or standard input if something is piped in.
pub(crate) fn named_or_piped(named: Option<&DocumentSource>) -> Result<DocumentSource, CliError> {
    match named {
        Some(source) => Ok(source.clone()),
        None if io::stdin().is_terminal() => Err(CliError::NoDocument),
        None => Ok(DocumentSource::Stdin),
    }
}

/// A workspace and the patches to apply to it.
#[derive(Debug, Args)]
pub(crate) struct InputArgs {
    #[command(flatten)]
    pub(crate) workspace: SourceArgs,

    /// JSON patch to apply to the workspace, `-` for standard input; repeatable, applied in order
    #[arg(short, long, value_name = "FILE", value_parser = source(), help_heading = "Model")]
    pub(crate) patch: Vec<DocumentSource>,

    /// Patch set made for the workspace; one of its patches is applied first
    #[arg(long, value_name = "FILE", help_heading = "Model")]
    pub(crate) patchset: Option<PathBuf>,

    /// Name of the patch of the patch set
    #[arg(long, value_name = "NAME", requires = "patchset", help_heading = "Model")]
    pub(crate) patch_name: Option<String>,
}

impl InputArgs {
    /// Returns whether all patches of a patch set are meant.
    pub(crate) fn names_grid(&self) -> bool {
        self.patchset.is_some() && self.patch_name.is_none()
    }

    /// Reads the workspace, applies the patches, and returns it with its name in messages.
    pub(crate) fn load(&self) -> Result<(LoadedWorkspace, String), CliError> {
        self.load_with(None, |_| {})
    }

    /// Reads the workspace as [`Self::load`] does, for a measurement.
    pub(crate) fn load_for(&self, measurement: Option<String>) -> Result<(LoadedWorkspace, String), CliError> {
        self.load_with(measurement, |_| {})
    }

    /// Reads the workspace and the patch set, all of whose patches `what` takes.
    pub(crate) fn grid(&self, what: &'static str) -> Result<SignalGrid, CliError> {
        let one = self.patch_name.as_ref().map(|_| "--patch-name");
        if let Some(option) = one.or_else(|| self.patch.first().map(|_| "--patch")) {
            return Err(CliError::WholePatchSet { what, option });
        }
        let Some(path) = self.patchset.clone() else { return Err(CliError::NoPatchSet { what }) };
        Ok(SignalGrid::load(&self.workspace.source()?, &DocumentSource::Path(path))?)
    }

    /// Returns the files that were read.
    pub(crate) fn read_files(&self, loaded: &LoadedWorkspace) -> Vec<PathBuf> {
        let documents = self.workspace.named().into_iter().chain(&self.patch);
        let named = documents.filter_map(|source| source.path_on_disk().map(ToOwned::to_owned));
        named.chain(self.patchset.clone()).chain(loaded.files.iter().cloned()).collect()
    }

    /// Reads the workspace as [`Self::load`] does, for a measurement, and calls `begin` with its
    /// text beforehand.
    fn load_with(
        &self,
        measurement: Option<String>,
        begin: impl FnOnce(&DocumentText),
    ) -> Result<(LoadedWorkspace, String), CliError> {
        let workspace = self.workspace.source()?;
        let documents = self.patch.iter().chain([&workspace]);
        if documents.filter(|&source| *source == DocumentSource::Stdin).count() > 1 {
            return Err(CliError::TwoFromStdin);
        }
        let patchset = match (&self.patchset, &self.patch_name) {
            (Some(path), None) => return Err(CliError::NoPatchName { path: path.display().to_string() }),
            (path, name) => path.clone().zip(name.clone()),
        };
        let is_patched = patchset.is_some() || !self.patch.is_empty();
        let name = if is_patched { format!("{}, patched", workspace.name()) } else { workspace.name() };
        let card = self.workspace.card.options();
        let request = LoadRequest { workspace, patches: self.patch.clone(), patchset, measurement, card };
        let loaded = load_document_with(&request, begin)?;
        loaded.warnings.iter().for_each(|text| reporter::warning(text));
        Ok((loaded, name))
    }
}

/// A workspace and the choice of a model.
#[derive(Debug, Args)]
pub(crate) struct ModelArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,

    /// Measurement, or analysis of an HS3 document; the first one if not given
    #[arg(long, visible_alias = "analysis", value_name = "NAME", help_heading = "Model")]
    measurement: Option<String>,

    /// Parameter of interest, instead of the measurement's; repeatable: tests, limits and rankings
    /// are then done for each, the others being profiled; `none` for no parameter of interest
    #[arg(long, value_name = "NAME|none", help_heading = "Model")]
    poi: Vec<String>,

    /// Interpolation rules: `smooth` as in pyhf today, `pyhf` as in pyhf before release 0.6
    #[arg(long, value_name = "RULES", value_enum, default_value_t, help_heading = "Model")]
    interp_defaults: InterpolationDefaults,

    /// Interpolation rule of one kind of modifier, such as `normsys=code1`: normsys has code1 and
    /// code4, histosys code0, code2 and code4p; repeatable
    #[arg(long, value_name = "KIND=CODE", value_parser = interpolation_rule, help_heading = "Model")]
    interpolation: Vec<InterpolationRule>,
}

impl ModelArgs {
    /// Reads the workspace and compiles the model. The digest of the workspace, which every
    /// document has, is computed beside that and what follows.
    pub(crate) fn model(&self) -> Result<CompiledModel, CliError> {
        let (loaded, name) = self.input.load_with(self.measurement.clone(), DocumentText::begin_digest)?;
        CompiledModel::from_loaded(loaded, &self.options()?).map_err(|error| compile_error(name, error))
    }

    /// Returns the options for compiling.
    pub(crate) fn options(&self) -> Result<CompileOptions, CliError> {
        let (measurement, poi) = (self.measurement.clone(), self.poi_choice()?);
        Ok(CompileOptions { measurement, poi, interpolation: self.interpolation() })
    }

    fn poi_choice(&self) -> Result<PoiChoice, CliError> {
        let is_none = |name: &&String| name.as_str() == "none";
        match (self.poi.iter().find(is_none), self.poi.iter().find(|name| !is_none(name))) {
            (None, None) => Ok(PoiChoice::FromMeasurement),
            (Some(_), None) => Ok(PoiChoice::None),
            (None, Some(_)) => Ok(PoiChoice::Named(self.poi.clone())),
            (Some(_), Some(name)) => Err(CliError::PoiAndNone { name: name.clone() }),
        }
    }

    fn interpolation(&self) -> Interpolation {
        let mut interpolation = match self.interp_defaults {
            InterpolationDefaults::Smooth => Interpolation::default(),
            InterpolationDefaults::Pyhf => Interpolation::KINKED,
        };
        for rule in &self.interpolation {
            rule.apply(&mut interpolation);
        }
        interpolation
    }
}

/// Adds the name of the workspace to `error`.
pub(crate) fn compile_error(name: String, error: CompileError) -> CliError {
    CliError::Compile { name, error }
}

/// Pairs of interpolation rules that have a name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum InterpolationDefaults {
    /// As pyhf today: normsys code4 and histosys code4p
    #[default]
    Smooth,
    /// As pyhf before 0.6: normsys code1 and histosys code0, with a kink at zero
    Pyhf,
}

/// How many threads to use.
#[derive(Debug, Args)]
pub(crate) struct ThreadArgs {
    /// Maximum number of threads, all of the machine if not given; a single fit uses one, and
    /// results do not depend on it
    #[arg(long, value_name = "N", value_parser = threads, allow_hyphen_values = true, help_heading = "Computation")]
    threads: Option<NonZeroUsize>,
}

impl ThreadArgs {
    /// Returns the number of threads, if it was given.
    pub(crate) fn given(&self) -> Option<NonZeroUsize> {
        self.threads
    }

    /// Returns the number of threads.
    pub(crate) fn count(&self) -> NonZeroUsize {
        self.threads.unwrap_or_else(ns_inference::parallel::all_threads)
    }
}
