//! From the arguments that verbs share to a workspace and a model.

use nextstat::CompiledModel;
use ns_core::interpolate::Interpolation;
use ns_core::spec::Workspace;
use ns_core::{CompileError, CompileOptions, PoiChoice};
use ns_translate::{DocumentSource, LoadRequest, load};

use crate::args::{InputArgs, InterpolationDefaults, ModelArgs};
use crate::error::CliError;

/// A workspace with its patches applied, and its name for messages.
pub(super) fn workspace(input: &InputArgs) -> Result<(Workspace, String), CliError> {
    let workspace = input.workspace.source()?;
    let n_from_stdin =
        input.patch.iter().chain([&workspace]).filter(|&source| *source == DocumentSource::Stdin).count();
    if n_from_stdin > 1 {
        return Err(CliError::TwoFromStdin);
    }
    let patchset = match (&input.patchset, &input.patch_name) {
        (Some(path), None) => return Err(CliError::NoPatchName { path: path.display().to_string() }),
        (path, name) => path.clone().zip(name.clone()),
    };
    let is_patched = patchset.is_some() || !input.patch.is_empty();
    let name = if is_patched { format!("{}, patched", workspace.name()) } else { workspace.name() };
    Ok((load(&LoadRequest { workspace, patches: input.patch.clone(), patchset })?, name))
}

/// The model that the arguments mean.
pub(super) fn model(args: &ModelArgs) -> Result<CompiledModel, CliError> {
    let (workspace, name) = workspace(&args.input)?;
    model_of(args, workspace, name)
}

/// The model of `workspace`, called `name` in messages, that the arguments mean.
pub(super) fn model_of(args: &ModelArgs, workspace: Workspace, name: String) -> Result<CompiledModel, CliError> {
    let options = CompileOptions {
        measurement: args.measurement.clone(),
        poi: poi_choice(&args.poi)?,
        interpolation: interpolation(args),
    };
    CompiledModel::new(workspace, &options).map_err(|error| in_file(name, error))
}

/// Names the file in which a workspace is no model.
pub(super) fn in_file(name: String, error: CompileError) -> CliError {
    CliError::Compile { name, error }
}

fn poi_choice(names: &[String]) -> Result<PoiChoice, CliError> {
    let is_none = |name: &&String| name.as_str() == "none";
    match (names.iter().find(is_none), names.iter().find(|name| !is_none(name))) {
        (None, None) => Ok(PoiChoice::FromMeasurement),
        (Some(_), None) => Ok(PoiChoice::None),
        (None, Some(_)) => Ok(PoiChoice::Named(names.to_vec())),
        (Some(_), Some(name)) => Err(CliError::PoiAndNone { name: name.clone() }),
    }
}

fn interpolation(args: &ModelArgs) -> Interpolation {
    let mut interpolation = match args.interp_defaults {
        InterpolationDefaults::Smooth => Interpolation::default(),
        InterpolationDefaults::Pyhf => Interpolation::KINKED,
    };
    for rule in &args.interpolation {
        rule.apply(&mut interpolation);
    }
    interpolation
}
