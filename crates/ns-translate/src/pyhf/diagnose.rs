//! The diagnosing reader of workspaces: reads a tree key by key, and gives every error its place
//! and its reason.
//!
//! It is also the reference for [`super::fast`]: both must accept the same documents and return the
//! same workspaces.

use ns_core::spec::{
    Channel, Measurement, Modifier, ModifierData, ModifierKind, Observation, ParameterConfig, Sample, Workspace,
};

use super::{PyhfError, VERSION, extension, formula};
use crate::json::{JsonCursor, JsonError, JsonObject};
use crate::kind::DocumentKind;

type Read<T> = Result<T, PyhfError>;

/// Reads the workspace whose tree is at `root`.
pub(crate) fn workspace(root: &JsonCursor<'_>) -> Read<Workspace> {
    DocumentKind::Workspace.require(root.node())?;
    let object = root.object(&["channels", "measurements", "observations", "version"])?;
    let workspace = Workspace {
        channels: each(&object.need("channels")?, channel)?,
        observations: each(&object.need("observations")?, observation)?,
        measurements: each(&object.need("measurements")?, measurement)?,
    };
    check_version(&object.need("version")?)?;
    Ok(workspace)
}

/// Refuses a schema version other than [`VERSION`].
pub(crate) fn check_version(cursor: &JsonCursor<'_>) -> Read<()> {
    match cursor.text()? {
        VERSION => Ok(()),
        other => Err(PyhfError::UnsupportedVersion { found: other.to_owned(), place: cursor.place() }),
    }
}

/// Reads a list with at least one entry, each by `read`.
fn each<T>(cursor: &JsonCursor<'_>, read: fn(&JsonCursor<'_>) -> Read<T>) -> Read<Vec<T>> {
    cursor.filled_list()?.map(|item| read(&item)).collect()
}

/// Reads a list, possibly empty, each entry by `read`.
fn each_if_any<T>(cursor: &JsonCursor<'_>, read: fn(&JsonCursor<'_>) -> Read<T>) -> Read<Vec<T>> {
    cursor.list()?.map(|item| read(&item)).collect()
}

fn name(object: &JsonObject<'_>) -> Result<String, JsonError> {
    object.need("name")?.text().map(str::to_owned)
}

fn channel(cursor: &JsonCursor<'_>) -> Read<Channel> {
    let object = cursor.object(&["name", "samples"])?;
    Ok(Channel { name: name(&object)?, samples: each(&object.need("samples")?, sample)? })
}

fn sample(cursor: &JsonCursor<'_>) -> Read<Sample> {
    let object = cursor.object(&["name", "data", "modifiers", "clip", "normalize"])?;
    Ok(Sample {
        name: name(&object)?,
        data: object.need("data")?.numbers()?,
        modifiers: each_if_any(&object.need("modifiers")?, modifier)?,
        template: extension::template_rule(&object)?,
    })
}

fn observation(cursor: &JsonCursor<'_>) -> Read<Observation> {
    let object = cursor.object(&["name", "data"])?;
    Ok(Observation { name: name(&object)?, data: object.need("data")?.numbers()? })
}

fn modifier(cursor: &JsonCursor<'_>) -> Read<Modifier> {
    let object = cursor.object(&["name", "type", "data", "interpolation", "scale"])?;
    let name = name(&object)?;
    let kind = modifier_kind(&object.need("type")?)?;
    let data = modifier_data(kind, &object.need("data")?)?;
    if kind == ModifierKind::Lumi && name != "lumi" {
        let place = object.need("name")?.place();
        return Err(PyhfError::MisnamedLumi { name, place });
    }
    let interpolation = extension::interpolation(&object, kind)?;
    Ok(Modifier { name, data, interpolation })
}

fn modifier_kind(cursor: &JsonCursor<'_>) -> Read<ModifierKind> {
    let word = cursor.text()?;
    ModifierKind::from_word(word)
        .ok_or_else(|| PyhfError::UnknownModifier { kind: word.to_owned(), place: cursor.place() })
}

fn modifier_data(kind: ModifierKind, cursor: &JsonCursor<'_>) -> Read<ModifierData> {
    if !has_shape_of(kind, cursor) {
        let (found, place) = (cursor.found(), cursor.place());
        return Err(PyhfError::ModifierData { kind, found, place });
    }
    Ok(match kind {
        ModifierKind::NormFactor => ModifierData::NormFactor,
        ModifierKind::ShapeFactor => ModifierData::ShapeFactor,
        ModifierKind::Lumi => ModifierData::Lumi,
        ModifierKind::ShapeSys => ModifierData::ShapeSys(cursor.numbers()?),
        ModifierKind::StatError => ModifierData::StatError(cursor.numbers()?),
        ModifierKind::McStat => ModifierData::McStat(cursor.numbers()?),
        ModifierKind::NormSys => {
            let object = cursor.object(&["lo", "hi"])?;
            let (lo, hi) = (object.need("lo")?.number()?, object.need("hi")?.number()?);
            ModifierData::NormSys { lo, hi }
        }
        ModifierKind::HistoSys => {
            let object = cursor.object(&["lo_data", "hi_data"])?;
            let (lo_data, hi_data) = (object.need("lo_data")?.numbers()?, object.need("hi_data")?.numbers()?);
            ModifierData::HistoSys { lo_data, hi_data }
        }
        ModifierKind::Formula => formula::formula(cursor)?,
        ModifierKind::Morphing => formula::morphing(cursor)?,
    })
}

/// Returns whether the data are null, a list or an object as the type demands.
fn has_shape_of(kind: ModifierKind, cursor: &JsonCursor<'_>) -> bool {
    match kind {
        ModifierKind::NormFactor | ModifierKind::ShapeFactor | ModifierKind::Lumi => cursor.is_null(),
        ModifierKind::ShapeSys | ModifierKind::StatError | ModifierKind::McStat => cursor.list().is_ok(),
        ModifierKind::NormSys | ModifierKind::HistoSys | ModifierKind::Formula | ModifierKind::Morphing => {
            cursor.members().is_ok()
        }
    }
}

fn measurement(cursor: &JsonCursor<'_>) -> Read<Measurement> {
    let object = cursor.object(&["name", "config"])?;
    let name = name(&object)?;
    let config = object.need("config")?;
    let config = config.object(&["poi", "parameters", "clip"])?;
    let poi = config.need("poi")?.text()?.to_owned();
    Ok(Measurement {
        name,
        poi: (!poi.is_empty()).then_some(poi),
        parameters: each_if_any(&config.need("parameters")?, parameter)?,
        clip: config.get("clip").map(|cursor| extension::clipping(&cursor)).transpose()?.unwrap_or_default(),
    })
}

/// The keys of the settings for one parameter: its name, pyhf's, and those beyond pyhf's schema.
pub(crate) const PARAMETER_KEYS: [&str; 13] = [
    "name",
    "inits",
    "bounds",
    "auxdata",
    "factors",
    "sigmas",
    "fixed",
    "constraints",
    "per_bin",
    "beta",
    "elements",
    "poi",
    "groups",
];

/// Refuses what is not the settings of a measurement for one parameter.
pub(crate) fn check_parameter(cursor: &JsonCursor<'_>) -> Read<()> {
    parameter(cursor).map(drop)
}

/// Reads the settings of a measurement for one parameter.
pub(crate) fn parameter(cursor: &JsonCursor<'_>) -> Read<ParameterConfig> {
    let object = cursor.object(&PARAMETER_KEYS)?;
    let numbers = |key| object.get(key).map(|cursor| cursor.numbers()).transpose();
    Ok(ParameterConfig {
        name: name(&object)?,
        inits: numbers("inits")?,
        bounds: object.get("bounds").map(|list| ranges(&list)).transpose()?,
        auxdata: numbers("auxdata")?,
        factors: numbers("factors")?,
        sigmas: numbers("sigmas")?,
        fixed: object.get("fixed").map(|cursor| cursor.boolean()).transpose()?,
        constraints: object.get("constraints").map(|list| each(&list, extension::constraint_term)).transpose()?,
        per_bin: object.get("per_bin").map(|cursor| extension::per_bin(&cursor)).transpose()?,
        beta: object.get("beta").map(|cursor| extension::constrained_quantity(&cursor)).transpose()?,
        elements: object.get("elements").map(|list| names(&list)).transpose()?,
        is_poi: object.get("poi").map(|cursor| cursor.boolean()).transpose()?.unwrap_or_default(),
        groups: object.get("groups").map(|list| distinct_names(&list)).transpose()?.unwrap_or_default(),
    })
}

/// Reads a list of at least one name.
fn names(cursor: &JsonCursor<'_>) -> Result<Vec<String>, JsonError> {
    cursor.filled_list()?.map(|item| item.text().map(str::to_owned)).collect()
}

/// Reads a list of at least one name, none of them twice.
fn distinct_names(cursor: &JsonCursor<'_>) -> Result<Vec<String>, JsonError> {
    let mut names: Vec<String> = Vec::new();
    for item in cursor.filled_list()? {
        let name = item.text()?.to_owned();
        if names.contains(&name) {
            return Err(JsonError::RepeatedName { name, place: item.place() });
        }
        names.push(name);
    }
    Ok(names)
}

/// Reads a list of at least one range.
fn ranges(cursor: &JsonCursor<'_>) -> Result<Vec<[f64; 2]>, JsonError> {
    cursor.filled_list()?.map(|item| range(&item)).collect()
}

fn range(cursor: &JsonCursor<'_>) -> Result<[f64; 2], JsonError> {
    let numbers: Vec<f64> = cursor.list()?.map(|item| item.number()).collect::<Result<_, _>>()?;
    <[f64; 2]>::try_from(numbers).map_err(|numbers| JsonError::WrongLength {
        expected: 2,
        found: numbers.len(),
        place: cursor.place(),
    })
}
