//! The slow reading of a workspace: from a tree, key by key, with the place and the reason of whatever is wrong.
//!
//! It is also the plain twin of [`super::typed`]: both must accept the same documents and read the same from them.

use ns_core::spec::{
    Channel, Measurement, Modifier, ModifierData, ModifierKind, Observation, ParameterConfig, Sample, Workspace,
};

use super::VERSION;
use crate::DocumentError;
use crate::json::{Cursor, Object};
use crate::kind::DocumentKind;

type Read<T> = Result<T, DocumentError>;

/// The workspace whose tree is at `root`.
pub(crate) fn workspace(root: &Cursor<'_>) -> Read<Workspace> {
    let wanted = DocumentKind::Workspace;
    if let Some(found) = DocumentKind::of(root.node()).filter(|&found| found != wanted) {
        return Err(DocumentError::WrongDocument { wanted, found });
    }
    let object = root.object(&["channels", "measurements", "observations", "version"])?;
    Ok(Workspace {
        channels: each(&object.need("channels")?, channel)?,
        observations: each(&object.need("observations")?, observation)?,
        measurements: each(&object.need("measurements")?, measurement)?,
        version: version(&object.need("version")?)?,
    })
}

/// The schema version, which must be ours.
pub(crate) fn version(cursor: &Cursor<'_>) -> Read<String> {
    match cursor.text()? {
        VERSION => Ok(VERSION.to_owned()),
        other => Err(DocumentError::UnsupportedVersion { found: other.to_owned(), place: cursor.place() }),
    }
}

/// A list with at least one entry, each read by `read`.
fn each<T>(cursor: &Cursor<'_>, read: fn(&Cursor<'_>) -> Read<T>) -> Read<Vec<T>> {
    cursor.filled_list()?.map(|item| read(&item)).collect()
}

/// A list, possibly empty, each entry read by `read`.
fn each_if_any<T>(cursor: &Cursor<'_>, read: fn(&Cursor<'_>) -> Read<T>) -> Read<Vec<T>> {
    cursor.list()?.map(|item| read(&item)).collect()
}

fn name(object: &Object<'_>) -> Read<String> {
    object.need("name")?.text().map(str::to_owned)
}

fn channel(cursor: &Cursor<'_>) -> Read<Channel> {
    let object = cursor.object(&["name", "samples"])?;
    Ok(Channel { name: name(&object)?, samples: each(&object.need("samples")?, sample)? })
}

fn sample(cursor: &Cursor<'_>) -> Read<Sample> {
    let object = cursor.object(&["name", "data", "modifiers"])?;
    Ok(Sample {
        name: name(&object)?,
        data: object.need("data")?.numbers()?,
        modifiers: each_if_any(&object.need("modifiers")?, modifier)?,
    })
}

fn observation(cursor: &Cursor<'_>) -> Read<Observation> {
    let object = cursor.object(&["name", "data"])?;
    Ok(Observation { name: name(&object)?, data: object.need("data")?.numbers()? })
}

fn modifier(cursor: &Cursor<'_>) -> Read<Modifier> {
    let object = cursor.object(&["name", "type", "data"])?;
    let name = name(&object)?;
    let kind = modifier_kind(&object.need("type")?)?;
    let data = modifier_data(kind, &object.need("data")?)?;
    if kind == ModifierKind::Lumi && name != "lumi" {
        let place = object.need("name")?.place();
        return Err(DocumentError::MisnamedLumi { name, place });
    }
    Ok(Modifier { name, data })
}

fn modifier_kind(cursor: &Cursor<'_>) -> Read<ModifierKind> {
    let word = cursor.text()?;
    ModifierKind::from_word(word)
        .ok_or_else(|| DocumentError::UnknownModifier { kind: word.to_owned(), place: cursor.place() })
}

fn modifier_data(kind: ModifierKind, cursor: &Cursor<'_>) -> Read<ModifierData> {
    if !has_shape_of(kind, cursor) {
        let (found, place) = (cursor.found(), cursor.place());
        return Err(DocumentError::ModifierData { kind, found, place });
    }
    Ok(match kind {
        ModifierKind::NormFactor => ModifierData::NormFactor,
        ModifierKind::ShapeFactor => ModifierData::ShapeFactor,
        ModifierKind::Lumi => ModifierData::Lumi,
        ModifierKind::ShapeSys => ModifierData::ShapeSys(cursor.numbers()?),
        ModifierKind::StatError => ModifierData::StatError(cursor.numbers()?),
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
    })
}

/// Whether the data are null, a list or an object as the type has it, so that a mix-up is named as one.
fn has_shape_of(kind: ModifierKind, cursor: &Cursor<'_>) -> bool {
    match kind {
        ModifierKind::NormFactor | ModifierKind::ShapeFactor | ModifierKind::Lumi => cursor.is_null(),
        ModifierKind::ShapeSys | ModifierKind::StatError => cursor.list().is_ok(),
        ModifierKind::NormSys | ModifierKind::HistoSys => cursor.members().is_ok(),
    }
}

fn measurement(cursor: &Cursor<'_>) -> Read<Measurement> {
    let object = cursor.object(&["name", "config"])?;
    let name = name(&object)?;
    let config = object.need("config")?;
    let config = config.object(&["poi", "parameters"])?;
    let poi = config.need("poi")?.text()?.to_owned();
    Ok(Measurement {
        name,
        poi: (!poi.is_empty()).then_some(poi),
        parameters: each_if_any(&config.need("parameters")?, parameter)?,
    })
}

fn parameter(cursor: &Cursor<'_>) -> Read<ParameterConfig> {
    let object = cursor.object(&["name", "inits", "bounds", "auxdata", "factors", "sigmas", "fixed"])?;
    let numbers = |key| object.get(key).map(|cursor| cursor.numbers()).transpose();
    Ok(ParameterConfig {
        name: name(&object)?,
        inits: numbers("inits")?,
        bounds: object.get("bounds").map(|list| each(&list, range)).transpose()?,
        auxdata: numbers("auxdata")?,
        factors: numbers("factors")?,
        sigmas: numbers("sigmas")?,
        fixed: object.get("fixed").map(|cursor| cursor.boolean()).transpose()?,
    })
}

fn range(cursor: &Cursor<'_>) -> Read<[f64; 2]> {
    let numbers: Vec<f64> = cursor.list()?.map(|item| item.number()).collect::<Read<_>>()?;
    <[f64; 2]>::try_from(numbers).map_err(|numbers| DocumentError::WrongLength {
        expected: 2,
        found: numbers.len(),
        place: cursor.place(),
    })
}
